//! A whole scrape: each family of the table is in it, with its labels, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ebbtide_control::{
    ActiveFaults, AttachmentKind, CreditsView, InjectedFaults, LatenessTotals, Nanos, ObservedAttachment,
    ObservedVolume, OpStats, Stats, VolumeReading, VolumeStatus, VolumeTotals,
};
use ebbtide_proc::process::OwnUsage;
use ebbtide_volume::{
    CreditUnit, Credits, InstanceLimits, LatencyHistogram, LoadCounts, LoadProgress, RateLimit,
};

use crate::names::FAMILIES;
use crate::{Build, FamilyKind, Scrape, alarms_page, names_page, scrape_text};

const BURSTING: RateLimit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };

fn histogram(us: &[u64]) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::default();
    us.iter().for_each(|us| histogram.record(Nanos::from_us(*us)));
    histogram
}

fn totals() -> VolumeTotals {
    VolumeTotals {
        stats: Stats {
            read: OpStats { ops: 2, bytes: 8192, time: Nanos::from_us(900) },
            write: OpStats { ops: 1, bytes: 16_384, time: Nanos::from_us(700) },
            flush_ops: 4,
            queue: 3,
            volume_iops_exceeded: Nanos::from_ms(1_500),
            read_latency: histogram(&[400, 500]),
            write_latency: histogram(&[700]),
            credit_share: Some(0.25),
            ..Stats::default()
        },
        lateness: LatenessTotals { histogram: histogram(&[3, 9, 40]), sum: Nanos::from_us(52) },
        injected: InjectedFaults { delayed: 5, failed: 6 },
        host_errors: 7,
    }
}

fn reading(unit: CreditUnit) -> VolumeReading {
    VolumeReading {
        totals: totals(),
        size_bytes: 1 << 30,
        iops_limit: Some(BURSTING),
        throughput_limit: Some(RateLimit::flat(128 << 20)),
        credits: Some(Credits { unit, left: 1_350_000.0, capacity: 5_400_000, refill_rate: 300 }),
        instance_limits: Some(InstanceLimits { iops: BURSTING, throughput: RateLimit::flat(1 << 30) }),
        instance_balances: Some((Some(0.5), None)),
        loading: Some(LoadProgress {
            since: Nanos::ZERO,
            missing: 3,
            counts: LoadCounts { touched: 1, ..LoadCounts::default() },
            completes: None,
        }),
        faults: ActiveFaults { stalled: true, ..ActiveFaults::default() },
        has_ended: false,
    }
}

fn attached(name: &str, unit: CreditUnit) -> ObservedVolume {
    let reading = reading(unit);
    ObservedVolume {
        name: name.to_owned(),
        kind: "gp2".to_owned(),
        status: VolumeStatus::InUse,
        size_bytes: 1 << 30,
        totals: Some(reading.totals),
        attachment: Some(ObservedAttachment {
            since: Nanos::from_secs(1_780_000_000),
            kind: AttachmentKind::Block,
            device: "/dev/loop0".to_owned(),
            mount: Some("/srv/\"odd\"\n".to_owned()),
            fs: Some("xfs".to_owned()),
            instance: Some("r5.large/web1".to_owned()),
            reading,
            credits: Some(CreditsView::new(0.25, Some((0.5, 60.0)), Some(18_000.0))),
            is_host_too_slow: false,
        }),
    }
}

fn detached(name: &str) -> ObservedVolume {
    ObservedVolume { status: VolumeStatus::Available, attachment: None, ..attached(name, CreditUnit::Bytes) }
}

fn text(volumes: &[ObservedVolume]) -> String {
    let process = OwnUsage {
        cpu: Duration::from_millis(1_250),
        resident_bytes: 1 << 25,
        started_unix_s: 1_780_000_000.25,
        open_files: 31,
    };
    let build = Build { version: "1.0.0", commit: "abc" };
    scrape_text(&Scrape { volumes, process: Some(process), build }, || Duration::from_micros(70))
}

/// A whole text with one volume of each kind of credits, and one that is detached.
fn whole() -> String {
    text(&[attached("disk", CreditUnit::Bytes), attached("ssd", CreditUnit::Operations), detached("spare")])
}

/// The family of a line.
fn family_of(line: &str) -> &str {
    let name = line.split(['{', ' ']).next().unwrap();
    let histogram = FAMILIES.iter().filter(|family| family.kind == FamilyKind::Histogram);
    let parts = ["_bucket", "_sum", "_count"];
    let of_histogram = |family: &str| parts.iter().any(|part| name.strip_suffix(part) == Some(family));
    histogram.map(|family| family.name).find(|family| of_histogram(family)).unwrap_or(name)
}

/// The names of a line's labels, but for the bounds of a histogram. Values have no comma here.
fn labels_of(line: &str) -> BTreeSet<&str> {
    let inside = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
    inside
        .split(',')
        .filter_map(|label| Some(label.split_once('=')?.0))
        .filter(|label| *label != "le")
        .collect()
}

#[test]
fn each_family_is_in_a_scrape_with_its_help_its_type_and_its_labels_and_nothing_else_is() {
    let text = whole();
    let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let family = family_of(line);
        if order.last() != Some(&family) {
            order.push(family);
        }
        lines.entry(family).or_default().push(line);
    }
    let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(order, names, "each stands together, in the order of the table");
    for family in FAMILIES {
        let head = format!("# HELP {0} {1}\n# TYPE {0} {2}\n", family.name, family.help, family.kind.name());
        assert_eq!(text.matches(&head).count(), 1, "{head}");
        let expected: BTreeSet<&str> = family.labels.iter().copied().collect();
        for line in &lines[family.name] {
            assert_eq!(labels_of(line), expected, "{line}");
        }
        assert_eq!(family.name.ends_with("_total"), family.kind == FamilyKind::Counter, "{}", family.name);
    }
}

#[test]
fn values_are_those_that_were_read() {
    let text = whole();
    for line in [
        "ebbtide_build_info{version=\"1.0.0\",commit=\"abc\"} 1",
        "ebbtide_volume_info{volume=\"ssd\",type=\"gp2\",transport=\"block\",device=\"/dev/loop0\",\
         mount=\"/srv/\\\"odd\\\"\\n\",fs=\"xfs\",instance=\"r5.large/web1\"} 1",
        "ebbtide_volume_info{volume=\"spare\",type=\"gp2\",transport=\"\",device=\"\",mount=\"\",fs=\"\",instance=\"\"} 1",
        "ebbtide_volume_state{volume=\"spare\",state=\"available\"} 1",
        "ebbtide_volume_state{volume=\"ssd\",state=\"available\"} 0",
        "ebbtide_volume_limit_iops{volume=\"ssd\",scope=\"volume\",level=\"sustained\"} 300",
        "ebbtide_volume_limit_iops{volume=\"ssd\",scope=\"instance\",level=\"burst\"} 3000",
        "ebbtide_volume_limit_throughput_bytes_per_second{volume=\"ssd\",scope=\"volume\",level=\"sustained\"} 134217728",
        "ebbtide_volume_reads_completed_total{volume=\"spare\"} 2",
        "ebbtide_volume_read_time_seconds_total{volume=\"ssd\"} 0.0009",
        "ebbtide_volume_throttled_seconds_total{volume=\"ssd\",cause=\"volume-iops\"} 1.5",
        "ebbtide_volume_credit_operations{volume=\"ssd\"} 1350000",
        "ebbtide_volume_credit_capacity_bytes{volume=\"disk\"} 5400000",
        "ebbtide_volume_credits_end_seconds{volume=\"ssd\"} 60",
        "ebbtide_volume_credits_full_seconds{volume=\"ssd\"} 13500",
        "ebbtide_volume_instance_credit_ratio{volume=\"ssd\",credits=\"operations\"} 0.5",
        "ebbtide_volume_read_latency_seconds_count{volume=\"ssd\"} 2",
        "ebbtide_volume_read_latency_seconds_sum{volume=\"ssd\"} 0.0009",
        "ebbtide_volume_answer_lateness_seconds_sum{volume=\"ssd\"} 0.000052",
        "ebbtide_volume_fault_active{volume=\"ssd\",fault=\"stall\"} 1",
        "ebbtide_volume_faults_injected_total{volume=\"ssd\",fault=\"errors\"} 6",
        "ebbtide_volume_initialization_loaded_bytes{volume=\"ssd\"} 524288",
        "process_cpu_seconds_total 1.25",
        "process_start_time_seconds 1780000000.25",
        "ebbtide_scrape_duration_seconds 0.00007",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for absent in [
        "ebbtide_volume_queue_length{volume=\"spare\"}",
        "ebbtide_volume_credit_bytes{volume=\"ssd\"}",
        "ebbtide_volume_instance_credit_ratio{volume=\"ssd\",credits=\"bytes\"}",
    ] {
        assert!(!text.contains(absent), "{absent} is in\n{text}");
    }
}

#[test]
fn a_server_without_volumes_has_only_its_own_families() {
    let text = text(&[]);
    assert!(!text.contains("ebbtide_volume_"), "{text}");
    assert!(text.ends_with("ebbtide_scrape_duration_seconds 0.00007\n"), "{text}");
}

#[test]
fn the_page_of_the_names_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, names_page()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page == names_page(),
        "docs/generated/metrics.md is not current: UPDATE_DOCS=1 cargo test -p ebbtide-watch page"
    );
}

#[test]
fn the_page_of_the_alarms_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/alarms.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, alarms_page()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page == alarms_page(),
        "docs/generated/alarms.md is not current: UPDATE_DOCS=1 cargo test -p ebbtide-watch page"
    );
}
