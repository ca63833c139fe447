//! The id of a volume, and whose it is, as AWS's APIs know it.

use std::fmt;
use std::str::FromStr;

use ebbtide_catalog::Initialization;
use ebbtide_catalog::modify::ModificationRecord;
use ebbtide_text::seed;
use serde::{Deserialize, Serialize};

use crate::UnixTime;

/// What the id of a volume begins with.
const PREFIX: &str = "vol-";

/// Digits of an account.
const ACCOUNT_DIGITS: usize = 12;

/// Whether a text has the form of a volume's id: `vol-` and 8 or 17 lower-case hexadecimal digits, not all zero. A volume with such a name has
/// it as its id.
#[must_use]
pub fn is_volume_id(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|digits| {
        matches!(digits.len(), 8 | 17)
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && digits.bytes().any(|byte| byte != b'0')
    })
}

/// The id of a new volume: its name, if that has the form of an id, and else one that is drawn, of 64 bits.
pub(crate) fn new_volume_id(name: &str) -> String {
    if is_volume_id(name) {
        return name.to_owned();
    }
    // A fresh seed has 32 bits.
    format!("{PREFIX}0{:016x}", (seed::fresh() << 32) | seed::fresh())
}

/// The account and the availability zone that a volume belongs to. As text `ACCOUNT/ZONE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Owner {
    /// The account, 12 digits.
    pub account: String,
    /// The zone, such as `us-east-1a`.
    pub zone: String,
}

impl Default for Owner {
    /// The account of the AWS endpoint's users, and the first zone of the region that the endpoint takes where a request names none.
    fn default() -> Self {
        Self { account: "000000000000".to_owned(), zone: "us-east-1a".to_owned() }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.account, self.zone)
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

impl From<String> for Owner {
    /// What is stored is taken as it is: a volume with an owner that this version would not give stays usable.
    fn from(text: String) -> Self {
        let (account, zone) = text.split_once('/').unwrap_or((&text, ""));
        Self { account: account.to_owned(), zone: zone.to_owned() }
    }
}

/// An owner as a request names it: `ACCOUNT` or `ACCOUNT/ZONE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct OwnerRequest {
    /// The account, 12 digits.
    pub account: String,
    /// The zone. None: that of the volume, and of a new volume that of the server.
    pub zone: Option<String>,
}

/// A text that names no owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The account has another form.
    #[error(
        "'{0}' is no account: give 12 digits, such as 000000000000, and perhaps a zone, as in 000000000000/us-east-1a"
    )]
    Account(String),
    /// There is a slash, and no zone behind it.
    #[error(
        "'{0}' has no zone behind the slash: give ACCOUNT or ACCOUNT/ZONE, such as 000000000000/us-east-1a"
    )]
    Zone(String),
}

impl OwnerRequest {
    /// The owner, with a zone for a request without one.
    #[must_use]
    pub fn or_zone(&self, zone: &str) -> Owner {
        let zone = self.zone.as_deref().unwrap_or(zone).to_owned();
        Owner { account: self.account.clone(), zone }
    }
}

impl From<Owner> for OwnerRequest {
    fn from(Owner { account, zone }: Owner) -> Self {
        Self { account, zone: Some(zone) }
    }
}

impl FromStr for OwnerRequest {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, OwnerError> {
        let (account, zone) = match text.split_once('/') {
            Some((account, zone)) => (account, Some(zone)),
            None => (text, None),
        };
        if account.len() != ACCOUNT_DIGITS || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(OwnerError::Account(account.to_owned()));
        }
        if zone.is_some_and(str::is_empty) {
            return Err(OwnerError::Zone(text.to_owned()));
        }
        Ok(Self { account: account.to_owned(), zone: zone.map(str::to_owned) })
    }
}

impl fmt::Display for OwnerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{}/{zone}", self.account),
            None => f.write_str(&self.account),
        }
    }
}

impl From<OwnerRequest> for String {
    fn from(owner: OwnerRequest) -> Self {
        owner.to_string()
    }
}

impl TryFrom<String> for OwnerRequest {
    type Error = OwnerError;

    fn try_from(text: String) -> Result<Self, OwnerError> {
        text.parse()
    }
}

/// What the AWS endpoint needs to know of a volume. It is read quickly: nothing is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeIdentity {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Whether the owner is stored with it. A volume of before there were owners has the server's default one.
    pub has_own_owner: bool,
    /// What it is, as text with every default written out.
    pub spec: String,
    /// Its latest modification.
    pub modification: Option<ModificationRecord>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// How the blocks of its snapshot are loaded; none where all were there from the beginning.
    pub initialization: Option<Initialization>,
    /// The snapshot that it began as.
    pub from_snapshot: Option<String>,
    /// Name of the key that its data key is wrapped with; none: it is not encrypted.
    pub key_id: Option<String>,
    /// When it was created.
    pub created: UnixTime,
    /// Whether it is attached; none while a request is being carried out on it.
    pub is_attached: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_id_has_the_form_of_an_id_and_a_name_of_that_form_is_the_id() {
        let drawn = new_volume_id("db");
        assert!(is_volume_id(&drawn), "{drawn}");
        assert_ne!(drawn, new_volume_id("db"));
        for name in ["vol-0123456789abcdef0", "vol-1234abcd"] {
            assert_eq!(new_volume_id(name), name);
        }
        for name in ["vol-1", "vol-1234ABCD", "vol-00000000", "vol-0123456789abcdeg0", "snap-1234abcd"] {
            assert!(!is_volume_id(name), "{name}");
        }
    }

    #[test]
    fn an_owner_is_an_account_of_12_digits_and_perhaps_a_zone() {
        let read = |text: &str| text.parse::<OwnerRequest>();
        let whole = read("111122223333/eu-west-1b").unwrap();
        assert_eq!(whole.or_zone("us-east-1a").to_string(), "111122223333/eu-west-1b");
        assert_eq!(
            read("111122223333").unwrap().or_zone("us-east-1a").to_string(),
            "111122223333/us-east-1a"
        );
        for wrong in ["", "1", "11112222333", "1111222233334", "11112222333a", "anna", "/us-east-1a"] {
            let refused = read(wrong).unwrap_err().to_string();
            assert!(refused.contains("give 12 digits"), "{refused}");
        }
        assert!(read("111122223333/").unwrap_err().to_string().contains("no zone behind the slash"));
    }

    #[test]
    fn owners_are_stored_and_sent_as_their_texts() {
        for text in ["111122223333", "111122223333/eu-west-1b"] {
            let asked: OwnerRequest = text.parse().unwrap();
            let sent = serde_json::to_value(&asked).unwrap();
            assert_eq!(sent, text);
            assert_eq!(serde_json::from_value::<OwnerRequest>(sent).unwrap(), asked);
        }
        let owner = Owner::default();
        let stored = serde_json::to_value(&owner).unwrap();
        assert_eq!(stored, "000000000000/us-east-1a");
        assert_eq!(serde_json::from_value::<Owner>(stored).unwrap(), owner);
    }
}
