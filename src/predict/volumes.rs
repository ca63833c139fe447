//! Volumes by what lies on them: `data=gp3:size=500GiB,redo=io2:size=20GiB,iops=3000`, or one spec for all files.

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_observe::Files;
use ebbtide_twin::innodb::{VolumeRole, Volumes};

use crate::bundle::parse_role;
use crate::exit::Refusal;

/// Reads the specs of a server's volumes. A role begins the spec of its volume; a text without roles, or before the first one, is
/// the volume of the data and of each log without one.
///
/// # Errors
/// A role that there is not or that is there twice, no volume of the data, or a spec that is none.
pub(crate) fn parse(text: &str) -> anyhow::Result<Volumes<Spec>> {
    let mut data = None;
    let (mut redo, mut binlog) = (None, None);
    for (role, spec) in by_role(text)? {
        let slot = match role {
            VolumeRole::Data => &mut data,
            VolumeRole::Redo => &mut redo,
            VolumeRole::Binlog => &mut binlog,
        };
        if slot.is_some() {
            let message = format!("{text} has two volumes for {}", role.name());
            return Err(Refusal::usage(message).hint("give each role once").into());
        }
        *slot = Some(Spec::parse(spec).map_err(usage)?);
    }
    let data = data.ok_or_else(|| {
        Refusal::usage(format!("{text} has no volume for the data"))
            .hint("as in data=gp3:size=500GiB,redo=gp3:size=50GiB")
    })?;
    Ok(Volumes { data, redo, binlog })
}

/// Names of the roles.
const ROLES: [&str; 3] = ["data", "redo", "binlog"];

/// The parts of a text, each with its role.
fn by_role(text: &str) -> anyhow::Result<Vec<(VolumeRole, &str)>> {
    let mut begins = Vec::new();
    let mut at = 0;
    for piece in text.split(',') {
        let (name, value) = piece.split_once('=').map_or((piece, ""), |(name, value)| (name.trim(), value));
        // A spec begins with a type, and `:` follows the type where it has keys; a role stands before a type.
        let has_type = name.contains([':', '(']) || !piece.contains('=');
        let is_role = ROLES.contains(&name) || !has_type && (value.contains(':') || begins.is_empty());
        if is_role {
            let role = match parse_role(name).map_err(Refusal::usage)? {
                Files::Redo => VolumeRole::Redo,
                Files::Binlog => VolumeRole::Binlog,
                Files::Data | Files::Temporary => VolumeRole::Data,
            };
            let spec = at + piece.len() - value.len();
            begins.push((role, at, spec));
        } else if begins.is_empty() {
            begins.push((VolumeRole::Data, at, at));
        }
        at += piece.len() + 1;
    }
    let ends = begins.iter().skip(1).map(|(_, at, _)| at - 1).chain([text.len()]);
    Ok(begins.iter().zip(ends).map(|((role, _, from), to)| (*role, &text[*from..to])).collect())
}

/// The volumes of specs, divided as the machine is.
///
/// # Errors
/// A volume that there is not.
pub(crate) fn resolved(
    catalog: &Catalog,
    specs: &Volumes<Spec>,
    divided_by: u32,
) -> anyhow::Result<Volumes<Resolved>> {
    specs.try_map(|spec| Ok(resolve(catalog, spec)?.divided(divided_by)))
}

/// The specs as a text that [`parse`] reads.
pub(crate) fn text(specs: &Volumes<Spec>) -> String {
    joined(specs, ",", |spec| spec.to_string())
}

/// The volumes in words, with their limits.
pub(crate) fn description(volumes: &Volumes<Resolved>) -> String {
    joined(volumes, "; ", |resolved| resolved.description.clone())
}

fn joined<T>(volumes: &Volumes<T>, between: &str, of: impl Fn(&T) -> String) -> String {
    if volumes.is_one() {
        return of(&volumes.data);
    }
    let each = volumes.roles().map(|(role, one)| format!("{}={}", role.name(), of(one)));
    each.collect::<Vec<_>>().join(between)
}

/// The words of a library's error, as a wrong request.
pub(super) fn usage(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let message = error.to_string();
    anyhow::Error::new(error).context(Refusal::usage(message))
}

/// The volumes of a spec.
pub(super) fn resolve(catalog: &Catalog, spec: &Spec) -> anyhow::Result<Resolved> {
    catalog.resolve(spec).map_err(|error| {
        let refusal = Refusal { hint: error.hint(), ..Refusal::usage(error.to_string()) };
        anyhow::Error::new(error).context(refusal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(given: &str) -> String {
        text(&parse(given).unwrap_or_else(|error| panic!("{given}: {error}")))
    }

    #[test]
    fn a_spec_without_a_role_is_the_volume_of_all_files() {
        for spec in ["gp3:size=500GiB,iops=6000", "raid0(2x gp3:size=1TiB,iops=4000)", "nvme"] {
            let volumes = parse(spec).unwrap();
            assert!(volumes.is_one(), "{spec}");
            assert_eq!(text(&volumes), spec);
        }
    }

    #[test]
    fn roles_begin_the_spec_of_their_volume() {
        let both = "data=gp3:size=500GiB,iops=6000,redo=io2:size=20GiB,iops=3000,binlog=gp2:size=50GiB";
        assert_eq!(shown(both), both);
        assert_eq!(shown("data=gp3:size=500GiB"), "gp3:size=500GiB");
        assert_eq!(shown("gp3:size=500GiB,redo=gp3:size=20GiB"), "data=gp3:size=500GiB,redo=gp3:size=20GiB");
        let array = "data=raid0(2x gp3:size=1TiB,iops=4000),binlog=gp3:size=50GiB";
        assert_eq!(shown(array), array);
        assert_eq!(shown("data=nvme,redo=nvme"), "data=nvme,redo=nvme");
        let later = parse("redo=io2:size=20GiB,iops=3000,data=gp3:size=500GiB").unwrap();
        assert_eq!(later.redo.unwrap().to_string(), "io2:size=20GiB,iops=3000");
    }

    #[test]
    fn wrong_roles_are_refused_with_what_to_write() {
        let why = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(why("logs=gp3:size=5GiB").contains("logs is no role"), "{}", why("logs=gp3:size=5GiB"));
        assert!(why("redo=gp3:size=5GiB").contains("no volume for the data"));
        assert!(why("data=gp3:size=5GiB,data=gp3:size=5GiB").contains("two volumes for data"));
        assert!(why("data=gp3:size=5GiB,undo=gp3:size=5GiB").contains("undo is no role"));
    }
}
