//! The canonical form of a request, which is what is signed.

use std::fmt::Write as _;

use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::parse::{self, Signature};
use super::{CONTENT_HASH, SignatureError};

/// What RFC 3986 does not reserve stays as it is.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &STRICT.remove(b'/');

/// Refuses a signature that leaves out what must be signed: the host, and all headers of AWS that say what is asked.
pub(super) fn check_signed_headers(signature: &Signature, parts: &Parts) -> Result<(), SignatureError> {
    let is_signed = |name: &str| signature.headers.iter().any(|signed| signed == name);
    if !is_signed("host") {
        return Err(SignatureError::Incomplete("'Host' must be a signed header.".to_owned()));
    }
    let must_be = |name: &&str| name.starts_with("x-amz-") && *name != CONTENT_HASH;
    let mut names = parts.headers.keys().map(http::HeaderName::as_str);
    match names.find(|name| must_be(name) && !is_signed(name)) {
        Some(name) => Err(SignatureError::Incomplete(format!("'{name}' must be a signed header."))),
        None => Ok(()),
    }
}

/// The canonical request, with the hash of its body.
pub(super) fn request(signature: &Signature, parts: &Parts, payload: &str) -> String {
    let mut text = format!("{}\n{}\n{}\n", parts.method, path(parts.uri.path()), query(signature, parts));
    for name in &signature.headers {
        let _ = writeln!(text, "{name}:{}", header(parts, name));
    }
    let _ = write!(text, "\n{}\n{payload}", signature.headers.join(";"));
    text
}

/// The path without `.`, `..` and empty parts, encoded once more.
fn path(path: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in path.split('/') {
        match word {
            "" | "." => {}
            ".." => drop(words.pop()),
            word => words.push(word),
        }
    }
    let ends = if words.is_empty() || !path.ends_with('/') { "" } else { "/" };
    format!("/{}{ends}", utf8_percent_encode(&words.join("/"), PATH))
}

fn query(signature: &Signature, parts: &Parts) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, STRICT).to_string();
    let mut pairs: Vec<_> = parse::query(parts)
        .iter()
        .filter(|(name, _)| !(signature.is_presigned && name == "X-Amz-Signature"))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// All values of a header, without blanks around them, and with single blanks inside.
fn header(parts: &Parts, name: &str) -> String {
    let trimmed = |value: &http::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    };
    parts.headers.get_all(name).iter().map(trimmed).collect::<Vec<_>>().join(",")
}
