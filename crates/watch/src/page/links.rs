//! Subjects in links: their paths, and their keys in queries.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::view::{Subject, View};

/// What RFC 3986 leaves unreserved stands for itself; a slash does not, so that a name is one part of a path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a subject's page.
pub(super) fn path(subject: &Subject) -> String {
    let (folder, name) = parts(subject);
    let encoded = utf8_percent_encode(name, RESERVED);
    // A browser takes these out of a path, with their percent codes too.
    let is_a_step = matches!(name, "" | "." | "..");
    if is_a_step { format!("/{folder}/?name={encoded}") } else { format!("/{folder}/{encoded}") }
}

/// The key of a subject as a value of a query, with its percent codes: `server%3ANAME` or `volume%3ANAME`.
pub(super) fn query_key(subject: &Subject) -> String {
    let (folder, name) = parts(subject);
    utf8_percent_encode(&format!("{folder}:{name}"), RESERVED).to_string()
}

/// The subject of a key whose percent codes are read; None where it has another form.
pub(super) fn subject(key: &str) -> Option<Subject> {
    match key.split_once(':')? {
        ("server", name) => Some(Subject::Server(name.to_owned())),
        ("volume", name) => Some(Subject::Storage(name.to_owned())),
        _ => None,
    }
}

/// The subject of a view that has a name; None where neither a server nor a volume has it.
pub(super) fn named(view: &View, name: &str) -> Option<Subject> {
    if view.servers.iter().any(|server| server.name == name) {
        Some(Subject::Server(name.to_owned()))
    } else if view.storage.iter().any(|storage| storage.name == name) {
        Some(Subject::Storage(name.to_owned()))
    } else {
        None
    }
}

/// Whether a view has a subject.
pub(super) fn has(view: &View, subject: &Subject) -> bool {
    match subject {
        Subject::Server(name) => view.servers.iter().any(|server| server.name == *name),
        Subject::Storage(name) => view.storage.iter().any(|storage| storage.name == *name),
    }
}

fn parts(subject: &Subject) -> (&'static str, &str) {
    match subject {
        Subject::Server(name) => ("server", name),
        Subject::Storage(name) => ("volume", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_part_of_a_path() {
        let server = |name: &str| path(&Subject::Server(name.to_owned()));
        assert_eq!(server("db-1.example_x~"), "/server/db-1.example_x~");
        assert_eq!(server("/run/a b?#%.sock"), "/server/%2Frun%2Fa%20b%3F%23%25.sock");
        assert_eq!(server("\"><script>"), "/server/%22%3E%3Cscript%3E");
        assert_eq!(server(".."), "/server/?name=..");
        assert_eq!(path(&Subject::Storage("ä".to_owned())), "/volume/%C3%A4");
    }

    #[test]
    fn a_key_leads_back_to_its_subject() {
        for known in [Subject::Server("[::1]:3306 &".to_owned()), Subject::Storage(String::new())] {
            let encoded = query_key(&known);
            assert!(!encoded.contains(['&', ' ', ':', '[']), "{encoded}");
            let key = percent_encoding::percent_decode_str(&encoded).decode_utf8().unwrap();
            assert_eq!(subject(&key), Some(known));
        }
        for wrong in ["", "server", "host:a", "Server:a"] {
            assert_eq!(subject(wrong), None, "{wrong}");
        }
    }
}
