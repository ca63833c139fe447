//! Answers in pages: `MaxResults` and `NextToken`.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use ebbtide_text::seed::fnv1a;

use super::ask::Input;
use super::refuse;
use crate::ApiError;

/// How an action answers in pages.
#[derive(Debug, Clone)]
pub(super) struct Paging {
    /// What a page may have. A larger number is taken for the largest.
    pub(super) bounds: RangeInclusive<u64>,
    /// The parameter in messages: `maxResults`, or `MaxResults`.
    pub(super) name: &'static str,
    /// The parameter of ids in messages, which exclude pages; none where they do not.
    pub(super) ids: Option<&'static str>,
}

impl Paging {
    /// Of most actions.
    pub(super) const fn usual(ids: &'static str) -> Self {
        Self { bounds: 5..=1_000, name: "maxResults", ids: Some(ids) }
    }
}

/// The page that a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    most: usize,
    /// The key after which it begins.
    pub(super) after: Option<String>,
}

impl Page {
    /// Reads it. `action` keeps a token of another action from being accepted.
    pub(super) fn read(
        input: Input<'_>,
        action: &str,
        ids_given: bool,
        paging: &Paging,
    ) -> Result<Self, ApiError> {
        let (least, largest) = (*paging.bounds.start(), *paging.bounds.end());
        let name = paging.name;
        // The CSI driver sends 0 where it has no limit, and works on AWS.
        let given = input.number("MaxResults").filter(|number| *number != 0);
        let most = match given.map(u64::try_from) {
            None => usize::MAX,
            Some(Ok(number)) if number >= least => usize::try_from(number.min(largest)).unwrap_or(usize::MAX),
            Some(_) => {
                let number = given.unwrap_or_default();
                let message = format!(
                    "Value ( {number} ) for parameter {name} is invalid. Expecting a value greater than {least}."
                );
                return Err(refuse::invalid_value(message));
            }
        };
        if let (true, Some(ids), Some(_)) = (ids_given, paging.ids, given) {
            let message = format!("The parameter {ids} cannot be used with the parameter {name}");
            return Err(refuse::invalid_combination(message));
        }
        let token = input.text("NextToken").filter(|token| !token.is_empty());
        let after = token.map(|token| decode(token, action)).transpose()?;
        Ok(Self { most, after })
    }

    /// Takes the rows of the page out of those behind [`Self::after`], in the order of their keys, with the token of the
    /// next page, if there is one.
    pub(super) fn fill<K: AsRef<str>, T>(
        &self,
        action: &str,
        mut rows: impl Iterator<Item = (K, T)>,
    ) -> (Vec<T>, Option<String>) {
        let mut page = Vec::new();
        let mut last = None;
        while page.len() < self.most {
            let Some((key, row)) = rows.next() else { return (page, None) };
            page.push(row);
            last = Some(key);
        }
        let more = rows.next().is_some();
        (page, last.filter(|_| more).map(|key| encode(key.as_ref(), action)))
    }
}

/// A token: 16 digits that are a checksum of action and key, and the key in hexadecimal digits.
fn encode(key: &str, action: &str) -> String {
    let mut token = format!("{:016x}", checksum(key, action));
    for byte in key.bytes() {
        write!(token, "{byte:02x}").expect("a text takes what is written");
    }
    token
}

fn decode(token: &str, action: &str) -> Result<String, ApiError> {
    let key = token.get(16..).and_then(|digits| {
        let bytes = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        });
        String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
    });
    key.filter(|key| encode(key, action) == token)
        .ok_or_else(|| refuse::invalid_value("Unable to parse pagination token"))
}

/// It finds slips, nobody is kept out by it.
fn checksum(key: &str, action: &str) -> u64 {
    fnv1a(action.bytes().chain([0]).chain(key.bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(input: &serde_json::Value, ids: bool) -> Result<Page, ApiError> {
        Page::read(Input(input.as_object().unwrap()), "DescribeVolumes", ids, &Paging::usual("volumeIdsSet"))
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        let keys: Vec<String> = (0..23).map(|number| format!("vol-{number:08x}")).collect();
        let mut seen = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let page = read(&json!({"MaxResults": 5, "NextToken": token}), false).unwrap();
            let rows = keys.iter().map(|key| (key.as_str(), key.clone()));
            let rows = rows.filter(|(key, _)| page.after.as_deref().is_none_or(|after| *key > after));
            let (rows, next) = page.fill("DescribeVolumes", rows);
            assert!(rows.len() == 5 || next.is_none());
            seen.extend(rows);
            token = next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, keys);
    }

    #[test]
    fn a_last_page_that_is_full_has_no_token() {
        let page = read(&json!({"MaxResults": 5}), false).unwrap();
        let rows = ["a", "b", "c", "d", "e"].map(|key| (key, ()));
        assert_eq!(page.fill("DescribeVolumes", rows.into_iter()).1, None);
    }

    #[test]
    fn no_most_is_none_and_so_is_zero() {
        let page = read(&json!({}), false).unwrap();
        assert_eq!(read(&json!({"MaxResults": 0}), false).unwrap(), page);
        assert_eq!(read(&json!({"MaxResults": 0}), true).unwrap(), page);
        read(&json!({"MaxResults": 4}), false).unwrap_err();
    }

    #[test]
    fn tokens_of_other_actions_and_altered_ones_are_refused() {
        let token = encode("vol-1", "DescribeVolumes");
        assert!(read(&json!({"NextToken": token}), false).is_ok());
        let altered = token.replace('0', "1");
        for bad in ["x", "é", &altered, &encode("vol-1", "DescribeTags")] {
            let error = read(&json!({"NextToken": bad}), false).unwrap_err();
            assert_eq!(error.message, "Unable to parse pagination token", "{bad}");
        }
    }
}
