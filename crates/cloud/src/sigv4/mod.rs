//! Verifies AWS's Signature Version 4, in the `Authorization` header or in the query of a presigned request.
//!
//! Source: "AWS Signature Version 4 for API requests", IAM User Guide. The path is encoded once more than it was sent, as
//! all services but S3 do. Signatures of version 2 and 4a are refused.

mod canonical;
mod error;
mod parse;
#[cfg(test)]
mod tests;

use http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};

use crate::service::{ApiError, Caller};

pub use error::SignatureError;
pub use parse::Scope;
use parse::Signature;

/// What an access key stands for.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The secret access key.
    pub secret: String,
    /// The token that a temporary key needs; none for a key that is not temporary.
    pub session_token: Option<String>,
    /// When a temporary key ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Whose key it is.
    pub caller: Caller,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Where access keys are looked up.
pub trait Keys: std::fmt::Debug + Send + Sync {
    /// What a key stands for; none where it is not known.
    ///
    /// # Errors
    /// The keys cannot be read: an internal error.
    fn find(&self, access_key: &str) -> Result<Option<Credential>, ApiError>;
}

/// What a signature must be for.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// The service that the request is for.
    pub service: &'a str,
    /// The only region that is served; all where there is none.
    pub region: Option<&'a str>,
    /// Whether the body need not be signed, as that of `PutSnapshotBlock`.
    pub allows_unsigned_payload: bool,
}

/// A verified signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Whose key signed.
    pub caller: Caller,
    /// The region that it is signed for.
    pub region: String,
}

/// How far the clocks of client and server may be apart: 5 minutes, 15 of STS.
const SKEW: SignedDuration = SignedDuration::from_mins(5);
const SKEW_OF_STS: SignedDuration = SignedDuration::from_mins(15);

/// Verifies the signature of a request.
///
/// # Errors
/// Why it is refused, or that the keys cannot be read.
pub fn verify(
    parts: &Parts,
    body: &[u8],
    keys: &dyn Keys,
    rules: &Rules<'_>,
) -> Result<Verified, SignatureError> {
    let signature = Signature::of(parts)?;
    check_scope(&signature.scope, rules)?;
    check_time(&signature, rules)?;
    let found = keys.find(&signature.scope.access_key).map_err(SignatureError::Keys)?;
    let credential = found.ok_or(SignatureError::UnknownKey)?;
    canonical::check_signed_headers(&signature, parts)?;
    let payload = payload_hash(parts, body, rules)?;
    let request = canonical::request(&signature, parts, &payload);
    let text = string_to_sign(&signature, &request);
    // `hmac::verify` takes the same time wherever the signatures differ.
    let key = hmac::Key::new(hmac::HMAC_SHA256, signing_key(&credential.secret, &signature.scope).as_ref());
    hmac::verify(&key, text.as_bytes(), &signature.bytes).map_err(|_| SignatureError::Mismatch)?;
    check_token(&credential, signature.token.as_deref(), rules)?;
    Ok(Verified { caller: credential.caller, region: signature.scope.region })
}

/// The scope of a request's signature, unverified: for requests that no one signs in earnest, and to find their service.
#[must_use]
pub fn scope(parts: &Parts) -> Option<Scope> {
    Signature::of(parts).ok().map(|signature| signature.scope)
}

fn check_scope(scope: &Scope, rules: &Rules<'_>) -> Result<(), SignatureError> {
    if scope.service != rules.service {
        return Err(SignatureError::Service { wanted: rules.service.to_owned() });
    }
    let is_served = rules.region.map_or_else(|| is_region(&scope.region), |region| region == scope.region);
    if is_served { Ok(()) } else { Err(SignatureError::Region) }
}

/// Whether a text has the form of a region's name: `us-gov-east-1`.
#[must_use]
pub fn is_region(text: &str) -> bool {
    let words: Vec<&str> = text.split('-').collect();
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    match words.split_last() {
        Some((number, names)) => {
            (2..=4).contains(&names.len())
                && names.iter().all(is_word)
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        }
        None => false,
    }
}

fn check_time(signature: &Signature, rules: &Rules<'_>) -> Result<(), SignatureError> {
    let (skew, minutes) = if rules.service == "sts" { (SKEW_OF_STS, 15) } else { (SKEW, 5) };
    let signed = signature.time()?;
    let now = time(rules.now_ms);
    let form = |time: Timestamp| time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let earliest = now.saturating_sub(skew).unwrap_or(Timestamp::MIN);
    let latest = now.saturating_add(skew).unwrap_or(Timestamp::MAX);
    let date = &signature.date;
    if signed > latest {
        let (latest, now) = (form(latest), form(now));
        let why = format!(
            "Signature not yet current: {date} is still later than {latest} ({now} + {minutes} min.)"
        );
        return Err(SignatureError::Time(why));
    }
    let is_expired = match signature.expires {
        Some(expires) => signed.saturating_add(expires).unwrap_or(Timestamp::MAX) < now,
        None => signed < earliest,
    };
    if is_expired {
        let (earliest, now) = (form(earliest), form(now));
        let why =
            format!("Signature expired: {date} is now earlier than {earliest} ({now} - {minutes} min.)");
        return Err(SignatureError::Time(why));
    }
    Ok(())
}

fn time(ms: u64) -> Timestamp {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

fn check_token(
    credential: &Credential,
    token: Option<&str>,
    rules: &Rules<'_>,
) -> Result<(), SignatureError> {
    let is_same = match (credential.session_token.as_deref(), token) {
        (None, None) => true,
        (Some(wanted), Some(sent)) => is_same(wanted.as_bytes(), sent.as_bytes()),
        _ => false,
    };
    if !is_same {
        return Err(SignatureError::Token);
    }
    if credential.expires_ms.is_some_and(|expires| expires <= rules.now_ms) {
        return Err(SignatureError::TokenExpired);
    }
    Ok(())
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(wanted: &[u8], sent: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, wanted);
    hmac::verify(&key, wanted, hmac::sign(&key, sent).as_ref()).is_ok()
}

/// The header with the hash of the body.
const CONTENT_HASH: &str = "x-amz-content-sha256";

/// The hash of the body, as the signature has it.
fn payload_hash(parts: &Parts, body: &[u8], rules: &Rules<'_>) -> Result<String, SignatureError> {
    let computed = || hex(digest::digest(&digest::SHA256, body).as_ref());
    match parts.headers.get(CONTENT_HASH).map(|value| value.to_str().unwrap_or_default()) {
        None => Ok(computed()),
        Some("UNSIGNED-PAYLOAD") if rules.allows_unsigned_payload => Ok("UNSIGNED-PAYLOAD".to_owned()),
        Some(sent) => {
            let computed = computed();
            // It is no secret: it is the hash of what was sent.
            if sent == computed { Ok(computed) } else { Err(SignatureError::Mismatch) }
        }
    }
}

fn string_to_sign(signature: &Signature, request: &str) -> String {
    let Scope { date, region, service, .. } = &signature.scope;
    let hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    format!("{ALGORITHM}\n{}\n{date}/{region}/{service}/aws4_request\n{hash}", signature.date)
}

/// The only algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

fn signing_key(secret: &str, scope: &Scope) -> hmac::Tag {
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let date = sign(format!("AWS4{secret}").as_bytes(), &scope.date);
    let region = sign(date.as_ref(), &scope.region);
    let service = sign(region.as_ref(), &scope.service);
    sign(service.as_ref(), "aws4_request")
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
