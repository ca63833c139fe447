//! What a volume spec goes on with: a type, then its keys one by one, then values that are usual.

use crate::Catalog;

/// The keys of a spec, with values to begin with.
const KEYS: [(&str, &[&str]); 5] = [
    ("size", &["100GiB", "200GiB", "500GiB", "1TiB", "2TiB"]),
    ("iops", &["3000", "6000", "12000", "16000"]),
    ("throughput", &["125", "250", "500", "1000"]),
    ("credits", &["0%", "50%", "100%"]),
    ("twp", &["on", "off"]),
];

/// What a volume spec may become that somebody is typing: types, then keys that it does not have yet, then usual values of the last
/// key. Each is a whole text, and they need not begin with `text`. A role in front of it (`data=gp3:...`) stays.
#[must_use]
pub fn spec_completions(text: &str, catalog: &Catalog) -> Vec<String> {
    let begin = spec_begin(text);
    let (role, spec) = text.split_at(begin);
    let Some((kind, settings)) = split_kind(spec, catalog) else {
        let kinds = catalog.types().iter().flat_map(|known| [known.name.clone(), format!("{}:", known.name)]);
        return kinds.map(|kind| format!("{role}{kind}")).collect();
    };
    let (done, last) = settings.rfind(',').map_or(("", settings), |comma| settings.split_at(comma + 1));
    let head = format!("{role}{kind}:{done}");
    if let Some((key, _)) = last.split_once('=') {
        let values = KEYS.iter().find(|(known, _)| *known == key).map_or(&[][..], |(_, values)| values);
        return values.iter().map(|value| format!("{head}{key}={value}")).collect();
    }
    let is_free = |key: &&str| !done.split(',').any(|pair| pair.split('=').next() == Some(*key));
    KEYS.iter().map(|(key, _)| *key).filter(is_free).map(|key| format!("{head}{key}=")).collect()
}

/// Where the spec begins: behind a role, which has neither a colon nor a bracket in front of its sign.
fn spec_begin(text: &str) -> usize {
    match text.find('=') {
        Some(sign) if !text[..sign].contains([':', '(']) => sign + 1,
        _ => 0,
    }
}

/// The type and its settings; None while the type is being written. A type may itself have a colon.
fn split_kind<'a>(spec: &'a str, catalog: &Catalog) -> Option<(&'a str, &'a str)> {
    let colons = spec.match_indices(':').map(|(place, _)| place);
    colons.map(|colon| (&spec[..colon], &spec[colon + 1..])).find(|(kind, _)| {
        let kind = kind.split('@').next().unwrap_or(kind);
        catalog.types().iter().any(|known| known.name == kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(text: &str) -> Vec<String> {
        let all = spec_completions(text, &Catalog::builtin());
        all.into_iter().filter(|offered| offered.starts_with(text)).collect()
    }

    #[test]
    fn a_type_comes_first_then_each_key_once_then_values() {
        assert_eq!(offered("gp3"), ["gp3", "gp3:"]);
        assert_eq!(
            offered("gp3:"),
            ["gp3:size=", "gp3:iops=", "gp3:throughput=", "gp3:credits=", "gp3:twp="]
        );
        assert_eq!(offered("gp3:size=5"), ["gp3:size=500GiB"]);
        let rest = ["iops", "throughput", "credits", "twp"].map(|key| format!("gp3:size=500GiB,{key}="));
        assert_eq!(offered("gp3:size=500GiB,"), rest);
        assert_eq!(offered("gp2@2016-01:twp=o"), ["gp2@2016-01:twp=on", "gp2@2016-01:twp=off"]);
    }

    #[test]
    fn a_role_stays_in_front() {
        assert_eq!(offered("redo=io2:i"), ["redo=io2:iops="]);
        assert_eq!(offered("redo=io2:size=1TiB,iops=3"), ["redo=io2:size=1TiB,iops=3000"]);
    }
}
