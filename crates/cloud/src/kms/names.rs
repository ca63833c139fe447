//! What callers name keys by: ids, aliases and ARNs.

/// What a caller names a key by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Id(&'a str),
    /// With `alias/`.
    Alias(&'a str),
    /// Region, account, and the id or the alias.
    Arn(&'a str, &'a str, &'a str),
}

impl<'a> Name<'a> {
    /// Reads it; none where the text has no form that a key is named in.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        if let Some(arn) = text.strip_prefix("arn:") {
            let parts: Vec<&str> = arn.splitn(5, ':').collect();
            let [_, "kms", region, account, resource] = parts[..] else { return None };
            let id = resource.strip_prefix("key/").filter(|id| is_id(id));
            let name = id.or_else(|| Some(resource).filter(|name| is_alias(name)))?;
            return Some(Self::Arn(region, account, name));
        }
        if is_alias(text) {
            return Some(Self::Alias(text));
        }
        is_id(text).then_some(Self::Id(text))
    }
}

/// Whether a text has the form of a key's id: a UUID.
fn is_id(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Whether a text has the form of an alias.
pub(super) fn is_alias(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-".contains(&byte);
    text.len() <= 256
        && text.strip_prefix("alias/").is_some_and(|name| !name.is_empty() && name.bytes().all(plain))
}
