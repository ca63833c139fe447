//! Captures: a readable file with all that was seen of a server, without passwords; and what clients printed of one.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ebbtide_observe::{Observation, Origin, Variables};
use serde::{Deserialize, Serialize};

use crate::packed::{self, is_utf_16};
use crate::{Elsewhere, Hints, Input, SeveralServers, cloudwatch, elsewhere, is_known, observation};

/// The word by which a file is known as one of ours.
const FORMAT: &str = "ebbtide-capture";
/// Version of the format; a reader takes its own and older ones.
const VERSION: u32 = 1;
/// Larger files are no captures: one of a server with a thousand variables has about 100 KiB.
const LARGEST: u64 = 64 << 20;
/// Bytes by which a file that is no text is known.
const HEAD: u64 = 4096;

/// Why files give no observation of one server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The system refused.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It is a directory, a socket or a device.
    #[error("{} is no file", .path.display())]
    NoFile {
        /// What was named.
        path: PathBuf,
    },
    /// Its content cannot be used.
    #[error("{} cannot be used: {why}", .path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Why its content cannot be used.
        why: Foreign,
    },
    /// A newer program wrote the capture.
    #[error("{}: this capture has version {version}, and this program reads up to {VERSION}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        version: u32,
    },
    /// A directory has files of several runs of pt-stalk.
    #[error("{} has files of {runs} runs of pt-stalk", .path.display())]
    SeveralRuns {
        /// The directory, or the prefix of the files.
        path: PathBuf,
        /// How many.
        runs: usize,
        /// Prefix of the files of the first run.
        first: PathBuf,
        /// The time with which the names of the last run begin.
        last: String,
    },
    /// A capture stands beside other files.
    #[error("give one capture, or files with what other programs printed, not both")]
    Mixed,
    /// The files are of several servers.
    #[error(transparent)]
    SeveralServers(#[from] SeveralServers),
}

/// Why the content of a file, or of the files of a directory, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// It is no text of a known kind.
    #[error("its content is of no known kind")]
    Unknown,
    /// A directory without a file of a known kind.
    #[error("no file in it is of a known kind")]
    NothingKnown,
    /// The files of a directory are more than is read, bytes.
    #[error("its files of known kinds have over {}: name some of them", ebbtide_text::size(*.0))]
    TooMuch(u64),
    /// A file has so many bytes, which is more than is read.
    #[error("it has {}, and captures have up to {}", ebbtide_text::size(*.0), ebbtide_text::size(LARGEST))]
    TooLarge(u64),
    /// It is a text of another known kind.
    #[error("it is {0}")]
    Elsewhere(Elsewhere),
    /// It is packed with gzip.
    #[error("it is compressed: unpack it first (gunzip)")]
    Compressed,
    /// It begins as a text in UTF-16 and is none.
    #[error("it is damaged UTF-16: write it as UTF-8 first (iconv -f UTF-16 -t UTF-8)")]
    Utf16,
    /// Its beginning is that of no text.
    #[error("it is no text")]
    Binary,
    /// A capture that ends before its end.
    #[error("its end is missing: {0}")]
    CutOff(serde_json::Error),
    /// JSON that is none, or not that of a capture.
    #[error("it is damaged, or no capture: {0}")]
    Damaged(serde_json::Error),
    /// JSON of something else.
    #[error("it does not say that its format is {FORMAT}")]
    OtherFormat,
}

/// Files of a directory that were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// A link out of the directory.
    Link {
        /// The link.
        path: PathBuf,
        /// The directory.
        dir: PathBuf,
    },
    /// Files that the system does not let this process read.
    Forbidden {
        /// The first of them.
        first: PathBuf,
        /// How many more there are.
        others: usize,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { path, dir } => {
                write!(f, "{} is a link out of {}, and is not read", path.display(), dir.display())
            }
            Self::Forbidden { first, others } => {
                let first = first.display();
                let others = if *others > 0 { format!(" and {others} more") } else { String::new() };
                write!(f, "{first}{others} may not be read, and is not judged")
            }
        }
    }
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Bundle {
    format: String,
    version: u32,
    program: String,
    observation: Observation,
}

/// The text of a capture, without passwords, accounts and statements.
///
/// # Panics
/// Never: an observation is plain data.
#[must_use]
pub fn text(mut observation: Observation) -> String {
    observation.variables = observation.variables.map(|variables| redacted(&variables));
    // What the variables have of a secret, an option file may have too.
    for line in observation.configured.iter_mut().flatten() {
        if is_secret(&line.name, &line.value) {
            line.value = REMOVED.into();
        }
    }
    if let Some(status) = &mut observation.status {
        // Numbers are counters.
        let removed = |name: &str, value: &str| is_secret(name, value) && value.parse::<f64>().is_err();
        let last = status.last.iter();
        status.last =
            last.map(|(name, value)| (name, if removed(name, value) { REMOVED } else { value })).collect();
    }
    // The server's refusals name the account.
    for one in &mut observation.not_seen {
        one.why = without_accounts(&one.why);
    }
    let bundle = Bundle {
        format: FORMAT.into(),
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").into(),
        observation,
    };
    let mut text = serde_json::to_string_pretty(&bundle).expect("an observation is plain data");
    text.push('\n');
    text
}

/// What stands in place of a value that a capture does not have.
const REMOVED: &str = "(removed)";

/// Parts of the names of variables that may hold a secret, or of whose values no check reads any and some hold one:
/// `authentication_ldap_simple_bind_root_pwd`, `file_key_management_filekey`, `telemetry.otel_exporter_otlp_traces_headers`.
const SECRET_WORDS: [&str; 13] = [
    "password",
    "passwd",
    "_pwd",
    "passphrase",
    "secret",
    "token",
    "_auth",
    "private_key",
    "credential",
    "access_key",
    "filekey",
    "headers",
    "http_proxy",
];
/// Statements, accounts and addresses of the owner, which no check reads.
const HIDDEN: [&str; 12] = [
    "init_connect",
    "init_slave",
    "init_replica",
    "init_file",
    "report_host",
    "report_user",
    "master_host",
    "master_user",
    "feedback_user_info",
    "group_replication_group_seeds",
    "group_replication_local_address",
    "connect_conn_str",
];

/// Whether a variable has a value that a capture must not have.
fn is_secret(name: &str, value: &str) -> bool {
    let hidden = SECRET_WORDS.iter().any(|word| name.contains(word))
        || (name.starts_with("wsrep_") && name != "wsrep_on")
        || name.ends_with("_key")
        || HIDDEN.contains(&name)
        || has_login(value);
    hidden && !value.is_empty()
}

/// Whether a text may have a URL with an account in it, such as `http://user:password@proxy:8080`.
fn has_login(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'))
}

fn redacted(variables: &Variables) -> Variables {
    variables
        .iter()
        .map(|(name, value)| (name, if is_secret(name, value) { REMOVED } else { value }))
        .collect()
}

/// A text of the server without accounts such as `'app'@'10.0.0.5'`.
fn without_accounts(text: &str) -> String {
    const BETWEEN: &str = "'@'";
    let mut rest = text;
    let mut all = String::new();
    while let Some(at) = rest.find(BETWEEN) {
        let begin = rest[..at].rfind('\'').unwrap_or(at);
        let host = &rest[at + BETWEEN.len()..];
        all.push_str(&rest[..begin]);
        all.push_str(REMOVED);
        rest = host.find('\'').map_or("", |end| &host[end + 1..]);
    }
    all + rest
}

/// The observation of files: one capture, or what other programs printed, in any number of files and directories. Of these,
/// `left_out` gets the files that are not read.
///
/// # Errors
/// A file that cannot be read or is of no known kind, and files of several servers.
pub fn read(
    paths: &[PathBuf],
    hints: &Hints,
    mut left_out: impl FnMut(LeftOut),
) -> Result<Observation, BundleError> {
    let mut inputs = Vec::new();
    for path in paths {
        inputs.extend(texts(path, &mut left_out)?);
    }
    let captures = inputs.iter().filter(|input| is_bundle(input)).count();
    match &inputs[..] {
        [input] if captures == 1 => parse(&input.path, &input.text),
        _ if captures > 0 => Err(BundleError::Mixed),
        _ => Ok(observation(&paths[0].display().to_string(), &inputs, hints)?),
    }
}

/// The texts of a path: a file, the files of a directory, or those whose names begin with it, as pt-stalk's do.
fn texts(path: &Path, left_out: &mut impl FnMut(LeftOut)) -> Result<Vec<Input>, BundleError> {
    if path.is_dir() {
        return several(LARGEST, path, path, "", left_out);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !path.exists() && !name.is_empty() && !names(parent, &format!("{name}-")).is_empty() {
        return several(LARGEST, path, parent, &format!("{name}-"), left_out);
    }
    let input = Input { path: path.to_owned(), text: contents(path)? };
    if is_capture(&input.text) || is_known(&input) {
        return Ok(vec![input]);
    }
    // An answer of CloudWatch in another form than JSON.
    let metrics = cloudwatch::other_form(&input.text).map(|why| {
        let kind = why.to_string();
        Elsewhere::new(kind.strip_prefix("is ").unwrap_or(&kind), why.hint())
    });
    match metrics.or_else(|| elsewhere::found(&input.text)) {
        Some(kind) => Err(foreign(path, Foreign::Elsewhere(kind))),
        // That it is of no kind is known by here.
        None if is_object(&input.text) => Ok(vec![input]),
        None => Err(foreign(path, Foreign::Unknown)),
    }
}

/// Names of the files of a directory that begin so, in order; none for a directory that cannot be listed.
#[must_use]
pub fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(name).filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// The time with which pt-stalk begins the names of its files, such as `2026_11_22_23_18_22`.
#[must_use]
pub fn moment(name: &str) -> Option<&str> {
    let (moment, _) = name.split_once('-')?;
    let digits = |part: &str| matches!(part.len(), 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    (moment.split('_').count() == 6 && moment.split('_').all(digits)).then_some(moment)
}

/// The files of a directory that are of a known kind, of up to `most` bytes together.
fn several(
    most: u64,
    named: &Path,
    dir: &Path,
    prefix: &str,
    left_out: &mut impl FnMut(LeftOut),
) -> Result<Vec<Input>, BundleError> {
    let names = names(dir, prefix);
    let mut moments: Vec<&str> = names.iter().filter_map(|name| moment(name)).collect();
    moments.dedup();
    if let [first, .., last] = moments[..] {
        let (runs, first) = (moments.len(), dir.join(first));
        return Err(BundleError::SeveralRuns { path: named.to_owned(), runs, first, last: last.to_owned() });
    }
    let mut known = Vec::new();
    let mut forbidden = Vec::new();
    let mut bytes = 0;
    for name in &names {
        let path = dir.join(name);
        if leads_out(dir, &path) {
            left_out(LeftOut::Link { path, dir: dir.to_owned() });
            continue;
        }
        let text = match contents(&path) {
            Ok(text) => text,
            Err(error) => {
                forbidden.extend(is_forbidden(&error).then_some(path));
                continue;
            }
        };
        let input = Input { path, text };
        if !is_known(&input) && !is_capture(&input.text) {
            continue;
        }
        bytes += input.text.len() as u64;
        if bytes > most {
            return Err(foreign(named, Foreign::TooMuch(most)));
        }
        known.push(input);
    }
    if let Some(first) = forbidden.first() {
        left_out(LeftOut::Forbidden { first: first.clone(), others: forbidden.len() - 1 });
    }
    if known.is_empty() {
        return Err(foreign(named, Foreign::NothingKnown));
    }
    Ok(known)
}

/// Whether a file of a directory is a link to what lies outside of it: who packed the directory is not who reads it.
fn leads_out(dir: &Path, path: &Path) -> bool {
    path.is_symlink()
        && !matches!((dir.canonicalize(), path.canonicalize()), (Ok(dir), Ok(real)) if real.starts_with(&dir))
}

/// Whether the system did not let a file be read.
fn is_forbidden(error: &BundleError) -> bool {
    matches!(error, BundleError::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

/// The text of a file, without a mark of its byte order.
///
/// # Errors
/// A file that cannot be read, is larger than any capture, or is no text.
pub fn contents(file: &Path) -> Result<String, BundleError> {
    let refused = |source| BundleError::Read { path: file.to_owned(), source };
    // Some files of the kernel, such as /proc/kmsg, have a reader wait for more.
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(no_wait).open(file).map_err(refused)?;
    let metadata = opened.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(BundleError::NoFile { path: file.to_owned() });
    }
    if metadata.len() > LARGEST {
        return Err(foreign(file, Foreign::TooLarge(metadata.len())));
    }
    let mut bytes = Vec::new();
    // Binary files are known by their beginning; others may grow, and those of the kernel have no size.
    (&opened).take(HEAD).read_to_end(&mut bytes).map_err(refused)?;
    if let Some(why) = not_text(&bytes) {
        return Err(foreign(file, why));
    }
    opened.take(LARGEST).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST {
        return Err(foreign(file, Foreign::TooLarge(bytes.len() as u64)));
    }
    // Option files of old machines are in Latin-1: their comments have letters that are lost.
    let damage = if is_utf_16(&bytes) { Foreign::Utf16 } else { Foreign::Binary };
    packed::text(bytes).ok_or_else(|| foreign(file, damage))
}

/// Why the beginning of a file is that of no text; None where it may be one.
fn not_text(head: &[u8]) -> Option<Foreign> {
    match head {
        [0x1f, 0x8b, ..] => Some(Foreign::Compressed),
        head if is_utf_16(head) => None,
        _ => head.contains(&0).then_some(Foreign::Binary),
    }
}

/// Whether a text says that it is a capture.
fn is_capture(text: &str) -> bool {
    is_object(text) && text.chars().take(200).collect::<String>().contains(FORMAT)
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Whether a text is a capture, or may be a damaged one: iostat, CloudWatch and clients print JSON too.
fn is_bundle(input: &Input) -> bool {
    is_capture(&input.text) || (is_object(&input.text) && !is_known(input))
}

/// The observation of a capture's text.
///
/// # Errors
/// It is no capture, is damaged, or of a newer version.
pub fn parse(file: &Path, text: &str) -> Result<Observation, BundleError> {
    /// What is read before the rest.
    #[derive(Deserialize)]
    struct Head {
        format: Option<String>,
        version: Option<u32>,
    }
    let broken = |error: serde_json::Error| {
        foreign(file, if error.is_eof() { Foreign::CutOff(error) } else { Foreign::Damaged(error) })
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.format.as_deref() != Some(FORMAT) {
        return Err(foreign(file, Foreign::OtherFormat));
    }
    if let Some(version) = head.version.filter(|version| *version > VERSION) {
        return Err(BundleError::Newer { path: file.to_owned(), version });
    }
    let bundle: Bundle = serde_json::from_str(text).map_err(broken)?;
    let origin = Origin::Capture { path: file.display().to_string() };
    Ok(Observation { origin, ..bundle.observation })
}

fn foreign(path: &Path, why: Foreign) -> BundleError {
    BundleError::Foreign { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Observation {
        let variables = [
            ("version", "8.0.36"),
            ("report_password", "s3cret"),
            ("init_connect", "SET @k = 's3cret'"),
            ("sync_binlog", "0"),
        ];
        Observation {
            variables: Some(variables.into_iter().collect()),
            configured: Some(vec![ebbtide_observe::Configured {
                name: "report_password".into(),
                value: "s3cret".into(),
                group: "mysqld".into(),
                place: "/c:1".into(),
            }]),
            ..Observation::of(Origin::Server { at: "/s".into() })
        }
    }

    #[test]
    fn a_capture_comes_back_as_it_was_but_for_secrets() {
        let text = text(seen());
        assert!(!text.contains("s3cret"), "{text}");
        let back = parse(Path::new("/c"), &text).unwrap();
        let variables = back.variables.unwrap();
        assert_eq!(
            (variables.get("sync_binlog"), variables.get("report_password")),
            (Some("0"), Some("(removed)"))
        );
        assert_eq!(back.origin, Origin::Capture { path: "/c".into() });
    }

    #[test]
    fn no_secret_account_or_statement_is_in_a_capture() {
        let planted = [
            ("authentication_ldap_simple_bind_root_pwd", "s3cret"),
            ("file_key_management_filekey", "s3cret"),
            ("feedback_http_proxy", "http://u:s3cret@proxy:80"),
            ("feedback_url", "http://a.example/, https://u:s3cret@b.example/x"),
            ("telemetry.otel_exporter_otlp_traces_headers", "Authorization=s3cret"),
            ("s3_access_key", "s3cret"),
            ("ssl_key", "/etc/s3cret.pem"),
            ("wsrep_sst_auth", "sst:s3cret"),
            ("init_replica", "SET @k = 's3cret'"),
            ("report_user", "s3cret"),
        ];
        let line = |(name, value): (&str, &str)| ebbtide_observe::Configured {
            name: name.into(),
            value: value.into(),
            group: "mysqld".into(),
            place: "/c:1".into(),
        };
        let mut status = ebbtide_observe::StatusVariables::once(
            [("wsrep_incoming_addresses", "s3cret:3306"), ("wsrep_cluster_size", "3"), ("uptime", "5")]
                .into_iter()
                .collect(),
        );
        status.growth_per_s.insert("uptime".into(), 1.0);
        let why = "SELECT command denied to user 's3cret'@'s3cret.example' for table 'x'; grant SELECT";
        let text = text(Observation {
            variables: Some(
                planted
                    .into_iter()
                    .chain([("foreign_key_checks", "ON"), ("plain_url", "http://x/a"), ("wsrep_on", "ON")])
                    .collect(),
            ),
            configured: Some(planted.into_iter().map(line).collect()),
            status: Some(status),
            not_seen: vec![ebbtide_observe::NotSeen { what: "x".into(), why: why.into() }],
            ..seen()
        });
        assert!(!text.contains("s3cret"), "{text}");
        let back = parse(Path::new("/c"), &text).unwrap();
        let (variables, last) = (back.variables.unwrap(), back.status.unwrap().last);
        assert_eq!(
            [variables.get("foreign_key_checks"), variables.get("plain_url"), last.get("wsrep_cluster_size")],
            [Some("ON"), Some("http://x/a"), Some("3")]
        );
        assert_eq!(variables.get("wsrep_on"), Some("ON"), "checks ask whether it is a node of a cluster");
        assert_eq!(variables.get("wsrep_sst_auth"), Some(REMOVED));
        assert!(
            back.not_seen[0].why.ends_with("to user (removed) for table 'x'; grant SELECT"),
            "{}",
            back.not_seen[0].why
        );
    }

    #[test]
    fn every_beginning_of_a_capture_is_refused_and_none_panics() {
        let text = text(seen());
        let whole = text.trim_end().len();
        for end in (0..whole).filter(|end| text.is_char_boundary(*end)) {
            assert!(parse(Path::new("/c"), &text[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn files_that_are_no_text_are_refused_with_what_to_do_and_a_mark_of_the_byte_order_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let of = |bytes: &[u8]| {
            let path = dir.path().join("x");
            std::fs::write(&path, bytes).unwrap();
            read(&[path], &Hints::default(), |_| ())
        };
        let why = |bytes: &[u8]| of(bytes).unwrap_err().to_string();
        assert!(why(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
        let saved = |text: &str| {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [&b"\xff\xfe"[..], &units.collect::<Vec<u8>>()].concat()
        };
        let of_power_shell = of(&saved("version\t8.0.36\r\nsync_binlog\t0\r\n")).unwrap();
        assert_eq!(of_power_shell.variables.unwrap().get("sync_binlog"), Some("0"));
        assert!(of(&saved(&text(seen()))).unwrap().facts.is_none(), "a capture too");
        assert!(why(b"\xff\xfe\x34\xd8v\0").contains("damaged UTF-16"));
        let latin = of(b"# f\xfcr alle\n[mysqld]\nsync_binlog=0\n").unwrap();
        assert_eq!(latin.variables.unwrap().get("sync_binlog"), Some("0"));
        assert!(why(b"version\t8\xe9\0\n").contains("no text"));
        assert!(why(b"METRICDATARESULTS\tr\n").contains("it is CloudWatch's answer as text"));
        assert!(
            why(b"{\"Volumes\": [{\"VolumeType\": \"gp3\"}]}")
                .contains("it is the answer of DescribeVolumes")
        );
        let marked = of("\u{feff}version\t8.0.36\n".as_bytes()).unwrap();
        assert_eq!(marked.variables.unwrap().get("version"), Some("8.0.36"));
        assert!(of(text(seen()).as_bytes()).unwrap().facts.is_none());
        let statistics = r#"{"Label": "VolumeReadOps", "Datapoints": [{"Timestamp": 60, "Sum": 6.0}, {"Timestamp": 120, "Sum": 6.0}]}"#;
        assert!(of(statistics.as_bytes()).unwrap().peaks.is_some());
    }

    #[test]
    fn a_directory_may_have_a_capture_and_not_without_end_of_texts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        put("other.json", "{}");
        put("a.capture", &text(seen()));
        let of = || read(&[dir.path().to_owned()], &Hints::default(), |_| ());
        assert_eq!(of().unwrap().variables.unwrap().get("sync_binlog"), Some("0"));
        put("b", "version\t8.0.36\n");
        assert!(of().unwrap_err().to_string().contains("one capture"));
        std::fs::remove_file(dir.path().join("a.capture")).unwrap();
        put("c", "version\t8.0.36\n");
        let error = several(20, dir.path(), dir.path(), "", &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("have over 20 B"), "{error}");
    }

    #[test]
    fn a_link_out_of_a_directory_is_not_read() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("bundle"), dir.path().join("other"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&outside, "[mysqld]\nsync_binlog=0\n").unwrap();
        std::fs::write(inside.join("variables"), "version\t8.0.36\n").unwrap();
        symlink(&outside, inside.join("my.cnf")).unwrap();
        symlink(inside.join("variables"), inside.join("again")).unwrap();
        let mut left_out = Vec::new();
        let seen =
            read(std::slice::from_ref(&inside), &Hints::default(), |file| left_out.push(file)).unwrap();
        assert_eq!(left_out, [LeftOut::Link { path: inside.join("my.cnf"), dir: inside }]);
        assert_eq!((seen.configured, seen.variables.unwrap().get("version")), (None, Some("8.0.36")));
    }

    #[test]
    fn foreign_json_is_refused_in_a_sentence() {
        let why = |text: &str| parse(Path::new("/c"), text).unwrap_err().to_string();
        assert!(why("{\"a\": 1}").contains("does not say that its format"));
        assert!(why("{\"format\": \"ebbtide-capture\", \"version\": 9}").contains("version 9"));
        let deep = format!("{{\"format\":{}", "[".repeat(100_000));
        assert!(why(&deep).contains("cannot be used"));
    }
}
