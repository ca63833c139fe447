//! Filters of the describe actions: names, and values with wildcards.

use std::borrow::Cow;

use super::ask::Input;
use super::refuse;
use crate::ApiError;

/// Most values of the filters of a call.
const VALUES: usize = 200;

pub(super) use super::tag_set::Tags;

/// The values that a resource has for a filter; it matches where one of them does.
pub(super) type Values<'a> = Vec<Cow<'a, str>>;

/// The filters of a call. All must match; of a filter's values one.
#[derive(Debug, Default)]
pub(super) struct Filters<'a>(Vec<Filter<'a>>);

#[derive(Debug)]
struct Filter<'a> {
    name: &'a str,
    patterns: Vec<Pattern<'a>>,
}

#[derive(Debug)]
enum Pattern<'a> {
    Exact(&'a str),
    Wild(Vec<Part>),
}

/// A part of a pattern with wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    One,
    Any,
    Char(char),
}

/// Whether resources of an action have tags to filter by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tagged {
    Yes,
    No,
}

impl<'a> Filters<'a> {
    /// The filters of a call to an action that knows `known`, and `tag:KEY` and `tag-key` where its resources are tagged.
    pub(super) fn read(input: Input<'a>, known: &[&str], tagged: Tagged) -> Result<Self, ApiError> {
        let mut filters = Vec::new();
        let mut values = 0;
        for filter in input.structures("Filters") {
            let name = filter.text("Name").unwrap_or_default();
            let by_tag = tagged == Tagged::Yes && (name == "tag-key" || tag_of(name).is_some());
            if !by_tag && !known.contains(&name) {
                return Err(refuse::invalid_value(format!("The filter '{name}' is invalid")));
            }
            let texts = filter.texts("Values");
            values += texts.len();
            filters.push(Filter { name, patterns: texts.into_iter().map(Pattern::new).collect() });
        }
        if values > VALUES {
            let message =
                format!("The maximum number of filter values specified on a single call is {VALUES}");
            return Err(ApiError::client("FilterLimitExceeded", message));
        }
        Ok(Self(filters))
    }

    /// A value that a filter of the call accepts: its first pattern with `any` for each `*`. None without such a filter.
    pub(super) fn example(&self, name: &str, any: &str) -> Option<String> {
        let filter = self.0.iter().find(|filter| filter.name == name)?;
        Some(match filter.patterns.first()? {
            Pattern::Exact(text) => (*text).to_owned(),
            Pattern::Wild(parts) => parts.iter().fold(String::new(), |mut text, part| {
                match part {
                    Part::Any => text.push_str(any),
                    Part::One => text.push('0'),
                    Part::Char(char) => text.push(*char),
                }
                text
            }),
        })
    }

    /// Whether a resource passes: `values` gives what it has for a filter that is not about tags.
    pub(super) fn pass<'r>(&self, tags: &'r Tags, values: impl Fn(&str) -> Values<'r>) -> bool {
        self.0.iter().all(|filter| {
            if let Some(key) = tag_of(filter.name) {
                return tags.get(key).is_some_and(|value| filter.has(value));
            }
            if filter.name == "tag-key" {
                return tags.keys().any(|key| filter.has(key));
            }
            values(filter.name).iter().any(|value| filter.has(value))
        })
    }
}

fn tag_of(name: &str) -> Option<&str> {
    name.strip_prefix("tag:")
}

impl Filter<'_> {
    fn has(&self, value: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(value))
    }
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Self {
        if !text.contains(['*', '?', '\\']) {
            return Self::Exact(text);
        }
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            parts.push(match char {
                '*' => Part::Any,
                '?' => Part::One,
                '\\' => Part::Char(chars.next().unwrap_or('\\')),
                char => Part::Char(char),
            });
        }
        Self::Wild(parts)
    }

    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => *text == value,
            Self::Wild(parts) => wild(parts, value),
        }
    }
}

/// Goes back to the last `*` only, so that it takes at most the product of the lengths.
fn wild(parts: &[Part], value: &str) -> bool {
    let chars: Vec<char> = value.chars().collect();
    let (mut part, mut at) = (0, 0);
    let mut back = None;
    while at < chars.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                back = Some((part, at));
                part += 1;
            }
            Some(Part::One) => (part, at) = (part + 1, at + 1),
            Some(Part::Char(char)) if *char == chars[at] => (part, at) = (part + 1, at + 1),
            _ => {
                let Some((star, from)) = back else { return false };
                back = Some((star, from + 1));
                (part, at) = (star + 1, from + 1);
            }
        }
    }
    parts[part..].iter().all(|part| *part == Part::Any)
}

/// The values of a filter for a resource that has one.
pub(super) fn one<'a>(value: impl Into<Cow<'a, str>>) -> Values<'a> {
    vec![value.into()]
}

/// The values of a filter for a resource that has one or none.
pub(super) fn some<'a, T: Into<Cow<'a, str>>>(value: Option<T>) -> Values<'a> {
    value.into_iter().map(Into::into).collect()
}

/// A flag as filters have it.
pub(super) const fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, value: &str) -> bool {
        Pattern::new(pattern).matches(value)
    }

    #[test]
    fn wildcards_match_as_documented() {
        for (pattern, value) in [
            ("gp3", "gp3"),
            ("gp?", "gp3"),
            ("*", ""),
            ("*", "x"),
            ("a*b*c", "a1b2b3c"),
            ("*a*b", "aab"),
            ("\\*", "*"),
            ("a\\?c*", "a?cd"),
            ("\\\\", "\\"),
            ("2026-*", "2026-11-22T00:00:00.000Z"),
        ] {
            assert!(matches(pattern, value), "{pattern} {value}");
        }
        for (pattern, value) in [
            ("gp3", "GP3"),
            ("gp?", "gp"),
            ("?", ""),
            ("a*b*c", "a1b2b3"),
            ("\\*", "x"),
            ("a*a", "a"),
            ("", "x"),
        ] {
            assert!(!matches(pattern, value), "{pattern} {value}");
        }
    }

    #[test]
    fn the_example_of_a_filter_passes_it() {
        for pattern in ["a*b?c", "*", "plain", "\\*x*", "al2023-ami-2023*-x86_64"] {
            let input = serde_json::json!({"Filters": [{"Name": "name", "Values": [pattern]}]});
            let filters =
                Filters::read(Input(input.as_object().unwrap()), &["name", "state"], Tagged::No).unwrap();
            let example = filters.example("name", "20260101").unwrap();
            assert!(filters.pass(&Tags::new(), |_| one(example.clone())), "{pattern}: {example}");
            assert_eq!(filters.example("state", ""), None);
        }
    }

    #[test]
    fn a_pattern_of_many_stars_ends_soon() {
        let pattern = "*a".repeat(50) + "b";
        assert!(!matches(&pattern, &"a".repeat(2_000)));
    }
}
