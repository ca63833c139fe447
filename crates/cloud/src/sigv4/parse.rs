//! The parts of a signature, as the header or the query of a request has them.

use http::request::Parts;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::percent_decode_str;

use super::{ALGORITHM, SignatureError};

/// What a signature is for: `KEY/DATE/REGION/SERVICE/aws4_request`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The access key.
    pub access_key: String,
    /// The day, as eight digits.
    pub date: String,
    /// The region.
    pub region: String,
    /// The service.
    pub service: String,
}

/// A signature that is not yet verified.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) scope: Scope,
    /// The names of the signed headers, in lower case, in their order.
    pub(super) headers: Vec<String>,
    pub(super) bytes: Vec<u8>,
    /// The time, as it was sent: `20261122T010203Z`.
    pub(super) date: String,
    pub(super) token: Option<String>,
    /// How long a presigned request holds.
    pub(super) expires: Option<SignedDuration>,
    /// Whether it is in the query.
    pub(super) is_presigned: bool,
}

/// The longest time for which a request may be presigned: a week.
const MAX_EXPIRES_S: i64 = 604_800;

impl Signature {
    /// Reads the signature of a request.
    pub(super) fn of(parts: &Parts) -> Result<Self, SignatureError> {
        let query: Vec<(String, String)> = query(parts);
        let is_signed = |(name, _): &(String, String)| name == "X-Amz-Signature" || name == "X-Amz-Algorithm";
        match parts.headers.get("authorization") {
            Some(header) => Self::of_header(parts, header.to_str().unwrap_or_default()),
            None if query.iter().any(is_signed) => Self::of_query(&query),
            None if query.iter().any(|(name, _)| name == "Signature") => Err(incomplete(
                "Signature Version 2 is not supported; use Signature Version 4 (AWS4-HMAC-SHA256).",
            )),
            None => Err(SignatureError::Missing),
        }
    }

    fn of_header(parts: &Parts, header: &str) -> Result<Self, SignatureError> {
        let Some((ALGORITHM, fields)) = header.trim().split_once(' ') else {
            return Err(incomplete(format!("Authorization header requires the algorithm {ALGORITHM}.")));
        };
        let field = |wanted: &str| {
            let found = fields
                .split(',')
                .filter_map(|field| field.trim().split_once('='))
                .find(|(n, _)| *n == wanted);
            found
                .map(|(_, value)| value)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| incomplete(format!("Authorization header requires '{wanted}' parameter.")))
        };
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let date = header("x-amz-date").ok_or_else(|| {
            incomplete("Authorization header requires existence of an 'X-Amz-Date' header.")
        })?;
        Ok(Self {
            scope: scope(field("Credential")?)?,
            headers: headers(field("SignedHeaders")?),
            bytes: bytes(field("Signature")?)?,
            date: date.to_owned(),
            token: header("x-amz-security-token").map(str::to_owned),
            expires: None,
            is_presigned: false,
        })
    }

    fn of_query(query: &[(String, String)]) -> Result<Self, SignatureError> {
        let find =
            |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let field = |wanted: &str| {
            find(wanted)
                .ok_or_else(|| incomplete(format!("AWS query-string parameters must include '{wanted}'.")))
        };
        if field("X-Amz-Algorithm")? != ALGORITHM {
            return Err(incomplete(format!("X-Amz-Algorithm must be {ALGORITHM}.")));
        }
        let seconds = field("X-Amz-Expires")?.parse().ok().filter(|s: &i64| (1..=MAX_EXPIRES_S).contains(s));
        let seconds = seconds.ok_or_else(|| {
            incomplete(format!("X-Amz-Expires must be a number from 1 to {MAX_EXPIRES_S}."))
        })?;
        Ok(Self {
            scope: scope(field("X-Amz-Credential")?)?,
            headers: headers(field("X-Amz-SignedHeaders")?),
            bytes: bytes(field("X-Amz-Signature")?)?,
            date: field("X-Amz-Date")?.to_owned(),
            token: find("X-Amz-Security-Token").map(str::to_owned),
            expires: Some(SignedDuration::from_secs(seconds)),
            is_presigned: true,
        })
    }

    /// The time at which it was made, which is of the day of its scope.
    pub(super) fn time(&self) -> Result<Timestamp, SignatureError> {
        let wrong = || incomplete(format!("Date must be in ISO-8601 'basic format'. Got '{}'.", self.date));
        let time = DateTime::strptime("%Y%m%dT%H%M%SZ", &self.date).map_err(|_| wrong())?;
        let time = time.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp();
        if !self.date.starts_with(&self.scope.date) {
            return Err(incomplete(format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{}' != '{}'.",
                self.scope.date,
                self.date.get(..8).unwrap_or_default()
            )));
        }
        Ok(time)
    }
}

/// The parameters of a request's query. A `+` is a `+`: clients write blanks as `%20` in what they sign.
pub(super) fn query(parts: &Parts) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(n, v)| (decoded(n), decoded(v)))
        .collect()
}

fn incomplete(why: impl Into<String>) -> SignatureError {
    SignatureError::Incomplete(why.into())
}

fn scope(credential: &str) -> Result<Scope, SignatureError> {
    let words: Vec<&str> = credential.split('/').collect();
    let [access_key, date, region, service, "aws4_request"] = words[..] else {
        return Err(incomplete(format!(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{credential}'."
        )));
    };
    if date.len() != 8 || !date.chars().all(|c| c.is_ascii_digit()) {
        return Err(incomplete("The date of the credential's scope must have eight digits."));
    }
    Ok(Scope {
        access_key: access_key.to_owned(),
        date: date.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    })
}

fn headers(names: &str) -> Vec<String> {
    names.split(';').map(str::to_ascii_lowercase).collect()
}

/// The 32 bytes of a signature in hexadecimal digits.
fn bytes(hex: &str) -> Result<Vec<u8>, SignatureError> {
    let wrong = || incomplete("The signature must have 64 hexadecimal digits.");
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    (0..64).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| wrong())).collect()
}
