//! Captures: a readable file with all that was seen of a server, without passwords; and what clients printed of one.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ebbtide_mysql::captured::{self, Hints, Input};
use ebbtide_observe::{Files, Observation, Origin, Variables, Version};
use serde::{Deserialize, Serialize};

use crate::exit::Refusal;
use crate::text::note;

/// The word by which a file is known as one of ours.
const FORMAT: &str = "ebbtide-capture";
/// Version of the format; a reader takes its own and older ones.
const VERSION: u32 = 1;
/// Larger files are no captures: one of a server with a thousand variables has about 100 KiB.
const LARGEST: u64 = 64 << 20;
/// Bytes by which a file that is no text is known.
const HEAD: u64 = 4096;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Bundle {
    format: String,
    version: u32,
    program: String,
    observation: Observation,
}

/// The text of a capture.
pub(crate) fn text(mut observation: Observation) -> String {
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

/// The observation of files: one capture, or what other programs printed, in any number of files and directories.
pub(crate) fn read(paths: &[PathBuf], hints: &Hints) -> anyhow::Result<Observation> {
    let mut inputs = Vec::new();
    for path in paths {
        inputs.extend(texts(path)?);
    }
    let captures = inputs.iter().filter(|input| is_bundle(&input.text)).count();
    match &inputs[..] {
        [input] if captures == 1 => parse(&input.path, &input.text),
        _ if captures > 0 => {
            let message = "give one capture, or files with what other programs printed, not both";
            Err(Refusal::usage(message).into())
        }
        _ => captured::observation(&paths[0].display().to_string(), &inputs, hints).map_err(|error| {
            let hint = "give the files of one server; `ebbtide doctor` looks at one at a time";
            Refusal::usage(error.to_string()).hint(hint).into()
        }),
    }
}

/// The texts of a path: a file, the files of a directory, or those whose names begin with it, as pt-stalk's do.
fn texts(path: &Path) -> anyhow::Result<Vec<Input>> {
    if path.is_dir() {
        return several(path, path, "");
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !path.exists() && !name.is_empty() && !names(parent, &format!("{name}-")).is_empty() {
        return several(path, parent, &format!("{name}-"));
    }
    let input = Input { path: path.to_owned(), text: contents(path)? };
    if is_bundle(&input.text) || captured::is_known(&input) {
        Ok(vec![input])
    } else {
        Err(foreign(path, "its content is of no known kind"))
    }
}

/// Files of a directory whose names begin so, by name.
pub(crate) fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(name).filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// The time with which pt-stalk begins the names of its files, such as `2026_11_22_23_18_22`.
fn moment(name: &str) -> Option<&str> {
    let (moment, _) = name.split_once('-')?;
    let digits = |part: &str| matches!(part.len(), 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    (moment.split('_').count() == 6 && moment.split('_').all(digits)).then_some(moment)
}

/// The files of a directory that are of a known kind.
fn several(named: &Path, dir: &Path, prefix: &str) -> anyhow::Result<Vec<Input>> {
    several_up_to(LARGEST, named, dir, prefix)
}

/// The same, of so many bytes together.
fn several_up_to(most: u64, named: &Path, dir: &Path, prefix: &str) -> anyhow::Result<Vec<Input>> {
    let names = names(dir, prefix);
    let mut moments: Vec<&str> = names.iter().filter_map(|name| moment(name)).collect();
    moments.dedup();
    if let [first, .., last] = moments[..] {
        let message = format!("{} has files of {} runs of pt-stalk", named.display(), moments.len());
        let hint = format!("name one, from {} to {last}", dir.join(first).display());
        return Err(Refusal::usage(message).hint(hint).into());
    }
    let mut known = Vec::new();
    let mut forbidden = Vec::new();
    let mut bytes = 0;
    for name in &names {
        let path = dir.join(name);
        if leads_out(dir, &path) {
            note(&format!("warning: {} is a link out of {}, and is not read", path.display(), dir.display()));
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
        if !captured::is_known(&input) && !is_capture(&input.text) {
            continue;
        }
        bytes += input.text.len() as u64;
        if bytes > most {
            let most = crate::text::size(most);
            return Err(foreign(
                named,
                &format!("its files of known kinds have over {most}: name some of them"),
            ));
        }
        known.push(input);
    }
    if let Some(first) = forbidden.first() {
        let others =
            if forbidden.len() > 1 { format!(" and {} more", forbidden.len() - 1) } else { String::new() };
        note(&format!("warning: {}{others} may not be read, and is not judged", first.display()));
    }
    if known.is_empty() {
        return Err(foreign(named, "no file in it is of a known kind"));
    }
    Ok(known)
}

/// Whether a file of a directory is a link to what lies outside of it: who packed the directory is not who reads it.
fn leads_out(dir: &Path, path: &Path) -> bool {
    path.is_symlink()
        && !matches!((dir.canonicalize(), path.canonicalize()), (Ok(dir), Ok(real)) if real.starts_with(&dir))
}

/// Whether the system did not let a file be read.
fn is_forbidden(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::PermissionDenied)
}

/// The text of a file, without a mark of its byte order.
pub(crate) fn contents(file: &Path) -> anyhow::Result<String> {
    let refused = |error: std::io::Error| {
        let refusal = Refusal::usage(format!("cannot read {}", file.display()));
        anyhow::Error::new(error).context(refusal)
    };
    // Some files of the kernel, such as /proc/kmsg, have a reader wait for more.
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(no_wait).open(file).map_err(refused)?;
    let metadata = opened.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(Refusal::usage(format!("{} is no file", file.display())).into());
    }
    let too_large = |bytes: u64| {
        let (size, most) = (crate::text::size(bytes), crate::text::size(LARGEST));
        foreign(file, &format!("it has {size}, and captures have up to {most}"))
    };
    if metadata.len() > LARGEST {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    // Binary files are known by their beginning; others may grow, and those of the kernel have no size.
    (&opened).take(HEAD).read_to_end(&mut bytes).map_err(refused)?;
    if let Some(why) = not_text(&bytes) {
        return Err(foreign(file, why));
    }
    opened.take(LARGEST).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(bytes.len() as u64));
    }
    let text = String::from_utf8(bytes).map_err(|_| foreign(file, "it is no text in UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Why the beginning of a file is that of no text; None where it may be one.
fn not_text(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some("it is compressed: unpack it first (gunzip)"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("it is UTF-16: write it as UTF-8 first (iconv -f UTF-16 -t UTF-8)")
        }
        _ => head.contains(&0).then_some("it is no text"),
    }
}

/// Whether a text says that it is a capture.
fn is_capture(text: &str) -> bool {
    is_bundle(text) && text.chars().take(200).collect::<String>().contains(FORMAT)
}

fn is_bundle(text: &str) -> bool {
    let text = text.trim_start();
    let head: String = text.chars().take(200).collect();
    // iostat and CloudWatch print JSON too.
    text.starts_with('{')
        && !["\"sysstat\"", "\"MetricDataResults\"", "\"Datapoints\""].iter().any(|word| head.contains(word))
}

/// The observation of a capture's text.
pub(crate) fn parse(file: &Path, text: &str) -> anyhow::Result<Observation> {
    /// What is read before the rest.
    #[derive(Deserialize)]
    struct Head {
        format: Option<String>,
        version: Option<u32>,
    }
    let broken = |error: serde_json::Error| {
        let what = if error.is_eof() { "its end is missing" } else { "it is damaged, or no capture" };
        foreign(file, &format!("{what}: {error}"))
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.format.as_deref() != Some(FORMAT) {
        return Err(foreign(file, &format!("it does not say that its format is {FORMAT}")));
    }
    if let Some(version) = head.version.filter(|version| *version > VERSION) {
        let message = format!(
            "{}: this capture has version {version}, and this program reads up to {VERSION}",
            file.display()
        );
        return Err(Refusal::usage(message).hint("use the ebbtide that wrote it, or a newer one").into());
    }
    let bundle: Bundle = serde_json::from_str(text).map_err(broken)?;
    let origin = Origin::Capture { path: file.display().to_string() };
    Ok(Observation { origin, ..bundle.observation })
}

fn foreign(file: &Path, why: &str) -> anyhow::Error {
    let message = format!("{} cannot be used: {why}", file.display());
    Refusal::usage(message).hint(format!("what is known: {}", captured::KNOWN)).into()
}

/// A version as the server has it in its variables: MariaDB's has its name.
pub(crate) fn parse_version(text: &str) -> Result<String, String> {
    let version = Version::parse(text).ok_or("use a version such as 8.0.36 or 10.11.6-MariaDB")?;
    // MySQL has no release 10.
    let bare = version.major >= 10 && !text.contains("MariaDB");
    Ok(if bare { format!("{text}-MariaDB") } else { text.to_owned() })
}

/// A device with what lies on it; without a role, the data.
pub(crate) fn parse_device(text: &str) -> Result<(Files, String), String> {
    let (files, name) = match text.split_once('=') {
        Some((role, name)) => (role_of_device(role)?, name),
        None => (Files::Data, text),
    };
    let name = name.trim_start_matches("/dev/");
    if name.is_empty() { Err("a name is missing, such as nvme1n1".into()) } else { Ok((files, name.into())) }
}

fn role_of_device(role: &str) -> Result<Files, String> {
    match role {
        "data" => Ok(Files::Data),
        "redo" => Ok(Files::Redo),
        "binlog" => Ok(Files::Binlog),
        _ => Err(format!("{role} is no role: use data, redo or binlog, as in data=nvme1n1")),
    }
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
            read(&[path], &Hints::default())
        };
        let why = |bytes: &[u8]| of(bytes).unwrap_err().to_string();
        assert!(why(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
        assert!(why(b"\xff\xfev\0e\0r\0").contains("UTF-16"));
        assert!(why(b"version\t8\xe9\n").contains("UTF-8"));
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
        let of = || read(&[dir.path().to_owned()], &Hints::default());
        assert_eq!(of().unwrap().variables.unwrap().get("sync_binlog"), Some("0"));
        put("b", "version\t8.0.36\n");
        assert!(of().unwrap_err().to_string().contains("one capture"));
        std::fs::remove_file(dir.path().join("a.capture")).unwrap();
        put("c", "version\t8.0.36\n");
        let error = several_up_to(20, dir.path(), dir.path(), "").unwrap_err().to_string();
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
        let seen = read(std::slice::from_ref(&inside), &Hints::default()).unwrap();
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
