//! Pages whose answer follows from the request: from the path below theirs, and from the query.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

const TEXT: &str = "text/plain; charset=utf-8";

/// What a browser may do with an answer: scripts and styles are files of this server, data come from it alone, and no page of
/// another origin shows it in a frame or reads it. Nothing is kept: the next version of the program has other files.
pub(crate) const RULES: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A page that reads its request. It is called on a thread that may wait.
pub trait Resource: fmt::Debug + Send + Sync + 'static {
    /// The answer to a request as it is now.
    fn answer(&self, request: &ResourceRequest) -> Answer;
}

/// What a request asks of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRequest {
    /// What follows the path of the resource, with its percent codes read; empty for the path itself.
    pub below: String,
    /// The names and values of the query, in their order.
    pub query: Vec<(String, String)>,
}

impl ResourceRequest {
    /// The first value of a name in the query; None where the query does not have it.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads the request of a resource at a path. Its path begins with the resource's: the router has found it so. None where the
    /// percent codes of the path are no UTF-8.
    fn read(path: &str, uri: &Uri) -> Option<Self> {
        let below = uri.path().strip_prefix(path).unwrap_or_default();
        let below = percent_encoding::percent_decode_str(below).decode_utf8().ok()?.into_owned();
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Some(Self { below, query: query.into_owned().collect() })
    }
}

/// Whether a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus {
    /// 200: the body is what was asked for.
    Found,
    /// 400: the request is wrong, and the body says why.
    BadRequest,
    /// 404: there is nothing of this name.
    Missing,
    /// 503: it cannot be had now.
    Unavailable,
}

impl AnswerStatus {
    const fn code(self) -> StatusCode {
        match self {
            Self::Found => StatusCode::OK,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Missing => StatusCode::NOT_FOUND,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// What a resource answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether it was answered.
    pub status: AnswerStatus,
    /// The media type of the body, with parameters.
    pub content_type: &'static str,
    /// The text.
    pub body: Cow<'static, str>,
}

impl Answer {
    /// What was asked for.
    #[must_use]
    pub fn found(content_type: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status: AnswerStatus::Found, content_type, body: body.into() }
    }

    /// A sentence without a full stop that says why there is no answer.
    #[must_use]
    pub fn refused(status: AnswerStatus, reason: &str) -> Self {
        Self { status, content_type: TEXT, body: format!("{reason}\n").into() }
    }
}

/// Answers a request for the resource at a path.
pub(crate) async fn answer(path: &'static str, resource: Arc<dyn Resource>, request: Request) -> Response {
    let Some(request) = ResourceRequest::read(path, request.uri()) else {
        let reason = "the path is no UTF-8 text: percent-encode a name byte by byte in UTF-8";
        return respond(Answer::refused(AnswerStatus::BadRequest, reason));
    };
    // A resource takes locks and reads files: not on the threads of the connections.
    match tokio::task::spawn_blocking(move || resource.answer(&request)).await {
        Ok(answer) => respond(answer),
        Err(error) => {
            tracing::error!("a page ended by a panic: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, RULES, "an internal error has occurred\n").into_response()
        }
    }
}

pub(crate) fn respond(answer: Answer) -> Response {
    let Answer { status, content_type, body } = answer;
    (status.code(), RULES, [(CONTENT_TYPE, content_type)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_name_below_the_path_and_the_query_with_their_codes_read() {
        let read = |uri: &str| ResourceRequest::read("/server/", &uri.parse().unwrap());
        let request = read("/server/%2Frun%2Fa%20b%3C.sock?from=1&x=a%26b+c&from=2&flag").unwrap();
        assert_eq!(request.below, "/run/a b<.sock");
        assert_eq!(request.parameter("from"), Some("1"));
        assert_eq!(request.parameter("x"), Some("a&b c"));
        assert_eq!(request.parameter("flag"), Some(""));
        assert_eq!(request.parameter("to"), None);
        assert_eq!(read("/server/").unwrap(), ResourceRequest::default());
        assert_eq!(read("/server/%ff"), None, "no UTF-8");
    }
}
