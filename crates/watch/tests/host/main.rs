//! The machine beside Debian's `prometheus-node-exporter`: the same names, labels and values.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test panics where something is missing")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ebbtide_watch::host::{HostOptions, HostReader, host_text};

const EXPORTER: &str = "prometheus-node-exporter";

/// What version 1.12 leaves out by default. Older ones, and Debian's, leave out more.
const PATTERNS: [&str; 3] = [
    r"--collector.diskstats.device-exclude=^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$",
    "--collector.filesystem.mount-points-exclude=^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)",
    "--collector.filesystem.fs-types-exclude=^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$",
];

/// Labels that older versions do not have, and a family.
const NEWER_LABELS: [&str; 2] = ["device_error", "rotational"];
/// What older versions read of the options of the mount alone.
const CHANGED: &str = "node_filesystem_readonly";

/// How often both are read. On a busy machine a gauge may change between two readings.
const ATTEMPTS: u32 = 40;

/// The exporter, until it is dropped.
struct Exporter {
    child: Child,
    address: String,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Exporter {
    /// None where it is not installed.
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(EXPORTER)
            .args(["--collector.disable-defaults", "--web.disable-exporter-metrics"])
            .args(["--collector.diskstats", "--collector.filesystem", "--collector.pressure"])
            .args(PATTERNS)
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => panic!("{EXPORTER} cannot be started: {error}"),
        };
        let exporter = Self { child, address };
        for _ in 0..600 {
            if TcpStream::connect(&exporter.address).is_ok() {
                return Some(exporter);
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("{EXPORTER} does not listen at {}", exporter.address);
    }

    fn scrape(&self) -> Values {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{head}");
        Values::parse(body)
    }
}

/// A family with the labels of a value.
type Series = (String, BTreeMap<String, String>);

/// The values of a text by their series, and the types of the families.
#[derive(Debug, Default)]
struct Values {
    series: BTreeMap<Series, f64>,
    types: BTreeMap<String, String>,
}

impl Values {
    fn parse(text: &str) -> Self {
        let mut values = Self::default();
        for line in text.lines() {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                values.types.insert(name.to_owned(), kind.to_owned());
            }
            if ["node_disk_", "node_filesystem_", "node_pressure_"]
                .iter()
                .any(|begin| line.starts_with(begin))
            {
                let (series, value) = line.rsplit_once(' ').unwrap();
                values.series.insert(parse_series(series), value.parse().unwrap());
            }
        }
        values
    }

    fn labels(&self) -> BTreeSet<&str> {
        self.series.keys().flat_map(|(_, labels)| labels.keys().map(String::as_str)).collect()
    }

    /// Without labels that the others do not have.
    fn without(self, labels: &[&str]) -> Self {
        let stripped = |((name, mut own), value): (Series, f64)| {
            own.retain(|label, _| !labels.contains(&label.as_str()));
            ((name, own), value)
        };
        Self { series: self.series.into_iter().map(stripped).collect(), ..self }
    }
}

/// Whether a line, or a name, is of the three collectors. The exporter has families of its own besides.
fn is_compared(text: &str) -> bool {
    ["node_disk_", "node_filesystem_", "node_pressure_"].iter().any(|begin| text.starts_with(begin))
}

/// Reads `name{label="value",...}`. The values stay escaped.
fn parse_series(text: &str) -> Series {
    let Some((name, rest)) = text.split_once('{') else { return (text.to_owned(), BTreeMap::new()) };
    let mut labels = BTreeMap::new();
    let mut rest = rest.strip_suffix('}').unwrap();
    while let Some((label, behind)) = rest.split_once("=\"") {
        let mut is_escaped = false;
        let end = behind.find(|c: char| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let end = end.unwrap();
        labels.insert(label.trim_start_matches(',').to_owned(), behind[..end].to_owned());
        rest = &behind[end + 1..];
    }
    (name.to_owned(), labels)
}

/// Names of families that both have.
fn shared_families(ours: &Values, theirs: &Values) -> BTreeSet<String> {
    let names = |values: &Values| values.series.keys().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
    names(ours).intersection(&names(theirs)).cloned().collect()
}

#[test]
fn names_labels_and_values_are_those_of_node_exporter() {
    let Some(exporter) = Exporter::start() else {
        println!("SKIPPED: {EXPORTER} is not installed (Debian's package of that name)");
        return;
    };
    let options = HostOptions { has_network: true, ..HostOptions::default() };
    let mut reader = HostReader::new(options);
    let mut read = |absent: &[&str]| {
        reader.refresh();
        Values::parse(&host_text(&reader.read(), &[])).without(absent)
    };
    let first = exporter.scrape();
    let absent: Vec<&str> =
        NEWER_LABELS.into_iter().filter(|label| !first.labels().contains(label)).collect();
    // Series that have not agreed yet, with what was seen last.
    let mut open: BTreeMap<Series, String> = BTreeMap::new();
    let mut agreed: BTreeSet<Series> = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let (before, theirs, after) = (read(&absent), exporter.scrape(), read(&absent));
        open.clear();
        for (series, value) in &theirs.series {
            match (before.series.get(series), after.series.get(series)) {
                (Some(low), Some(high)) if is_between(*value, *low, *high) => {
                    agreed.insert(series.clone());
                }
                _ if series.0 == CHANGED && absent.contains(&"device_error") => {
                    agreed.insert(series.clone());
                }
                seen => _ = open.insert(series.clone(), format!("{value} there, {seen:?} here")),
            }
        }
        let families = shared_families(&before, &theirs);
        for series in before.series.keys().filter(|series| families.contains(&series.0)) {
            if !theirs.series.contains_key(series) && after.series.contains_key(series) {
                open.insert(series.clone(), "here alone".to_owned());
            }
        }
        open.retain(|series, _| !agreed.contains(series));
        for (name, kind) in theirs.types.iter().filter(|(name, _)| is_compared(name)) {
            assert_eq!(before.types.get(name), Some(kind), "the type of {name}");
        }
        if open.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert!(open.is_empty(), "{open:#?}");
    assert!(
        agreed.iter().any(|(name, _)| name == "node_filesystem_size_bytes"),
        "there was something to compare"
    );
}

/// Whether a value lies between two others, or is one of them but for the digits that a float lacks.
fn is_between(value: f64, first: f64, second: f64) -> bool {
    let tolerance = value.abs() * 1e-12;
    (first.min(second) - tolerance..=first.max(second) + tolerance).contains(&value)
}

#[test]
fn a_difference_of_a_name_a_label_or_a_value_would_be_seen() {
    let parse = |text: &str| Values::parse(text).series;
    let both =
        parse("node_disk_info{device=\"a\\\"b,c=\\\"d\",x=\"\"} 1\nother 2\nnode_pressure_x_total 0.5\n");
    let labels = BTreeMap::from(
        [("device", "a\\\"b,c=\\\"d"), ("x", "")].map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    assert_eq!(both.len(), 2);
    assert_eq!(both[&("node_disk_info".to_owned(), labels)], 1.0);
    assert!(is_between(2.0, 1.0, 3.0) && is_between(2.0, 3.0, 2.0) && !is_between(2.0, 2.1, 3.0));
    assert!(is_between(326.018_000_000_000_03, 326.018, 326.018));
}
