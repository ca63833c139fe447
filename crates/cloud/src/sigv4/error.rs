//! Why a signature is refused, and what each service calls it.

use crate::service::ApiError;

/// Why a signature is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The request has none.
    #[error("the request is not signed")]
    Missing,
    /// It is not complete, or not in AWS's form.
    #[error("{0}")]
    Incomplete(String),
    /// It is for another service.
    #[error("it is for another service than '{wanted}'")]
    Service {
        /// The service of the request.
        wanted: String,
    },
    /// It is for a region that is not served.
    #[error("it is for a region that is not served")]
    Region,
    /// It is too old, or of the future.
    #[error("{0}")]
    Time(String),
    /// The access key is not known.
    #[error("the access key is not known")]
    UnknownKey,
    /// It is not the one that the key gives.
    #[error("it is not the one that the key gives")]
    Mismatch,
    /// The session token is missing, not wanted, or another one.
    #[error("the session token is not the key's")]
    Token,
    /// The temporary key has ended.
    #[error("the temporary key has ended")]
    TokenExpired,
    /// The keys cannot be read.
    #[error("{0}")]
    Keys(ApiError),
}

/// How a service names errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Ec2,
    /// STS and CloudWatch.
    Query,
    /// KMS and the EBS direct APIs.
    Json,
}

const NOT_VALIDATED: &str = "AWS was not able to validate the provided access credentials";
const MISMATCH: &str = "The request signature we calculated does not match the signature you provided. Check your AWS \
    Secret Access Key and signing method. Consult the service documentation for details.";
const INVALID_TOKEN: &str = "The security token included in the request is invalid.";
const EXPIRED_TOKEN: &str = "The security token included in the request is expired";

impl SignatureError {
    /// What a service answers.
    #[must_use]
    pub fn answer(&self, service: &str) -> ApiError {
        let family = match service {
            "ec2" => Family::Ec2,
            "sts" | "monitoring" => Family::Query,
            _ => Family::Json,
        };
        let (code, message, status) = match family {
            Family::Ec2 => self.of_ec2(),
            Family::Query => self.of_query(),
            Family::Json => self.of_json(),
        };
        let error = ApiError { status, ..ApiError::client(code, message) };
        if let Self::Keys(error) = self { error.clone() } else { error }
    }

    fn of_ec2(&self) -> (&'static str, String, u16) {
        match self {
            Self::Missing => {
                ("MissingAuthenticationToken", "Request is missing Authentication Token".to_owned(), 403)
            }
            Self::Incomplete(why) => ("IncompleteSignature", why.clone(), 400),
            Self::Service { .. } | Self::Region => ("AuthFailure", self.scope(), 401),
            Self::Time(_) | Self::TokenExpired => ("RequestExpired", "Request has expired.".to_owned(), 400),
            Self::UnknownKey | Self::Mismatch | Self::Token | Self::Keys(_) => {
                ("AuthFailure", NOT_VALIDATED.to_owned(), 401)
            }
        }
    }

    fn of_query(&self) -> (&'static str, String, u16) {
        match self {
            Self::Missing => {
                ("MissingAuthenticationToken", "Request is missing Authentication Token".to_owned(), 403)
            }
            Self::Incomplete(why) => ("IncompleteSignature", why.clone(), 400),
            Self::Service { .. } | Self::Region => ("SignatureDoesNotMatch", self.scope(), 403),
            Self::Time(why) => ("SignatureDoesNotMatch", why.clone(), 403),
            Self::Mismatch => ("SignatureDoesNotMatch", MISMATCH.to_owned(), 403),
            Self::UnknownKey | Self::Token | Self::Keys(_) => {
                ("InvalidClientTokenId", INVALID_TOKEN.to_owned(), 403)
            }
            Self::TokenExpired => ("ExpiredToken", EXPIRED_TOKEN.to_owned(), 403),
        }
    }

    fn of_json(&self) -> (&'static str, String, u16) {
        match self {
            Self::Missing => {
                ("MissingAuthenticationTokenException", "Missing Authentication Token".to_owned(), 403)
            }
            Self::Incomplete(why) => ("IncompleteSignatureException", why.clone(), 400),
            Self::Service { .. } | Self::Region => ("InvalidSignatureException", self.scope(), 403),
            Self::Time(why) => ("InvalidSignatureException", why.clone(), 403),
            Self::Mismatch => ("InvalidSignatureException", MISMATCH.to_owned(), 403),
            Self::UnknownKey | Self::Token | Self::Keys(_) => {
                ("UnrecognizedClientException", INVALID_TOKEN.to_owned(), 403)
            }
            Self::TokenExpired => ("ExpiredTokenException", EXPIRED_TOKEN.to_owned(), 403),
        }
    }

    /// The text of a wrong scope.
    fn scope(&self) -> String {
        match self {
            Self::Service { wanted } => {
                format!("Credential should be scoped to correct service: '{wanted}'. ")
            }
            _ => "Credential should be scoped to a valid region. ".to_owned(),
        }
    }
}
