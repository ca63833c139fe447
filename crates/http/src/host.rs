//! Which host a request means.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::HOST;

/// Whether a request means this machine. A browser names the host of the page's address, so that a page of a stranger, whose name
/// leads to 127.0.0.1, is refused. A request without a name is of HTTP/1.0, which no browser speaks.
pub(crate) fn is_this_machine<B>(request: &Request<B>) -> bool {
    let header = request.headers().get(HOST);
    let is_named_so = header.is_none_or(|name| name.to_str().is_ok_and(is_loopback_name));
    is_named_so && request.uri().authority().is_none_or(|authority| is_loopback_name(authority.as_str()))
}

/// Whether `HOST` or `HOST:PORT` is `localhost` or a loopback address.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(name, _)| name).unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_taken_and_all_others_refused() {
        for own in ["localhost", "LocalHost:9421", "127.0.0.1", "127.0.0.1:9421", "127.9.9.9:1", "[::1]:9421"]
        {
            assert!(is_loopback_name(own), "{own}");
        }
        for other in
            ["", "evil.example", "localhost.evil.example:9421", "192.0.2.1:9421", "[::]:1", "::1", "[::1"]
        {
            assert!(!is_loopback_name(other), "{other}");
        }
    }

    #[test]
    fn the_name_in_the_request_line_counts_too() {
        let request = |uri: &str, host: Option<&str>| {
            let mut builder = Request::builder().uri(uri);
            if let Some(host) = host {
                builder = builder.header(HOST, host);
            }
            is_this_machine(&builder.body(()).unwrap())
        };
        assert!(request("/metrics", None) && request("/metrics", Some("127.0.0.1:1")));
        assert!(!request("/metrics", Some("evil.example")));
        assert!(!request("http://evil.example/metrics", Some("127.0.0.1")));
    }
}
