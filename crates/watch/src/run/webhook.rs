//! Sends an event to a program of this machine, by HTTP. For other machines and TLS an alarm command can call what it needs.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::Duration;

/// How long connecting, sending and the answer may take, each.
const PATIENCE: Duration = Duration::from_secs(5);
/// As much of an answer as is read: its first line says all.
const LONGEST_ANSWER: u64 = 1_024;

/// Where events are sent: a URL of this machine, by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    address: SocketAddr,
    path: String,
}

impl FromStr for WebhookUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write it like http://127.0.0.1:9093/alarm".to_owned();
        if text.starts_with("https://") {
            return Err(
                "only http on this machine: --alarm-command can run a program that speaks TLS".to_owned()
            );
        }
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        if path.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
            return Err(wrong());
        }
        let address = match host.strip_prefix("localhost") {
            Some("") => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80),
            Some(port) => {
                let port = port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(wrong)?;
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
            }
            None => match (host.parse::<SocketAddr>(), host.parse::<IpAddr>()) {
                (Ok(address), _) => address,
                (_, Ok(ip)) => SocketAddr::new(ip, 80),
                _ => return Err(wrong()),
            },
        };
        if !address.ip().is_loopback() {
            return Err(format!(
                "{} is no address of this machine: --alarm-command can run a program that sends it there",
                address.ip()
            ));
        }
        Ok(Self { address, path: path.to_owned() })
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.address, self.path)
    }
}

impl WebhookUrl {
    /// Sends a text as JSON, and waits for the answer.
    ///
    /// # Errors
    /// Nobody listens, or the answer is no success; with what was answered.
    pub(super) fn send(&self, json: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Self { address, path } = self;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            json.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(json.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let line = answer.lines().next().unwrap_or_default();
        let status = line.split(' ').nth(1).unwrap_or_default();
        if status.len() == 3 && status.starts_with('2') {
            return Ok(());
        }
        Err(io::Error::other(format!("it answered '{line}', and not with a status of 200 to 299")))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn only_this_machine_and_only_http_are_taken() {
        for (text, written) in [
            ("http://127.0.0.1:9093/alarm?x=1", "http://127.0.0.1:9093/alarm?x=1"),
            ("http://localhost:80", "http://127.0.0.1:80/"),
            ("http://[::1]:9093/", "http://[::1]:9093/"),
            ("http://127.0.0.1/a", "http://127.0.0.1:80/a"),
        ] {
            assert_eq!(text.parse::<WebhookUrl>().unwrap().to_string(), written);
        }
        for (text, part) in [
            ("https://127.0.0.1/", "TLS"),
            ("http://192.0.2.1/", "no address of this machine"),
            ("http://example.com/", "write it like"),
            ("http://127.0.0.1:1/a b", "write it like"),
            ("http://localhost:x/", "write it like"),
            ("ftp://localhost/", "write it like"),
        ] {
            assert!(text.parse::<WebhookUrl>().unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn an_event_is_sent_and_an_answer_that_is_no_success_is_an_error() {
        for (status, is_taken) in [("204 No Content", true), ("500 Internal Server Error", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url: WebhookUrl = format!("http://{}/a", listener.local_addr().unwrap()).parse().unwrap();
            let server = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4_096];
                let mut text = String::new();
                while !text.ends_with("{\"a\":1}") {
                    let read = stream.read(&mut request).unwrap();
                    text.push_str(&String::from_utf8_lossy(&request[..read]));
                }
                stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
                text
            });
            assert_eq!(url.send("{\"a\":1}").is_ok(), is_taken, "{status}");
            assert!(server.join().unwrap().starts_with("POST /a HTTP/1.1\r\n"));
        }
    }
}
