//! Views and graphs that are made up.

use std::sync::Arc;
use std::time::Instant;

use ebbtide_watch::view::{
    AlarmView, CreditsView, FileSystemView, Graph, GraphLine, NotSeenView, OwnCost, Range, RedoView,
    ReplicaView, ServerView, StorageView, Subject, View, ViewSource,
};

/// The time of the first view.
pub(crate) const START_S: i64 = 1_790_000_000;

/// Names of servers that a page must not take for anything else.
pub(crate) const HOSTILE: &str =
    "\"><img src=x onerror=alert(1)></script><script>alert(2)</script>&amp;/../%2e%2e";
pub(crate) const STEPS: &str = "..";

/// A watcher whose time goes on.
pub(crate) struct MadeUp {
    begun: Instant,
    servers: Vec<String>,
}

impl MadeUp {
    /// One with so many servers, of which each has a volume; the last two have hostile names.
    pub(crate) fn with_servers(count: usize) -> Arc<dyn ViewSource> {
        let plain = (1..=count.saturating_sub(2)).map(|number| format!("db{number}"));
        let servers = plain.chain([HOSTILE.to_owned(), STEPS.to_owned()]).collect();
        Arc::new(Self { begun: Instant::now(), servers })
    }

    fn knows(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Server(name) => self.servers.contains(name) || name == "gone",
            Subject::Storage(name) => self.servers.iter().any(|server| volume(server) == *name),
        }
    }
}

/// The volume of a server.
pub(crate) fn volume(server: &str) -> String {
    format!("vol-{server}")
}

impl ViewSource for MadeUp {
    fn view(&self) -> Arc<View> {
        let unix_s = START_S + i64::try_from(self.begun.elapsed().as_secs()).unwrap();
        Arc::new(View {
            unix_s,
            utc_offset_s: 3_600,
            watched_s: Some(86_400.0),
            own: OwnCost {
                processor_share: Some(0.004),
                resident_bytes: Some(30 << 20),
                server_share: Some(0.001),
                skipped: 2,
            },
            servers: self.servers.iter().map(|name| server_view(name)).collect(),
            storage: self.servers.iter().map(|name| storage_view(name)).collect(),
            file_systems: vec![FileSystemView {
                mount: "/var/lib/mysql".to_owned(),
                device: volume(HOSTILE),
                size_bytes: 1e11,
                free_bytes: 2e10,
                full_s: Some(90_000.0),
            }],
            alarms: alarms(unix_s),
            not_seen: vec![NotSeenView {
                subject: HOSTILE.to_owned(),
                figure: "history list".to_owned(),
                reason: "the account has no PROCESS".to_owned(),
                remedy: "GRANT PROCESS ON *.* TO 'watch'@'%'".to_owned(),
            }],
        })
    }

    fn graphs(&self, subject: &Subject, range: Range) -> Vec<Graph> {
        if !self.knows(subject) {
            return Vec::new();
        }
        let graph = |key, title, unit, logarithmic, labels: &[&str], scale: f64| {
            let most = i64::try_from(range.most_points).unwrap();
            let step = ((range.to_s - range.from_s) / most + 1).max(1);
            let points = usize::try_from((range.to_s - range.from_s) / step).unwrap();
            let lines = labels.iter().enumerate().map(|(number, label)| GraphLine {
                label: (*label).to_owned(),
                values: values(points, scale * (number + 1) as f64),
            });
            let step_s = u32::try_from(step).unwrap();
            Graph { key, title, unit, logarithmic, start_s: range.from_s, step_s, lines: lines.collect() }
        };
        vec![
            graph("operations", "Operations", "/s", false, &["reads", "writes", HOSTILE], 800.0),
            graph("latency", "Latency", "s", true, &["reads", "writes"], 0.0007),
            graph("log-time", "Time in logs", "share", false, &["syncs"], 0.3),
            graph("main-thread", "Main thread", "share", false, &["active"], 0.5),
            graph("redo", "Redo log", "bytes", false, &["used"], 3e8),
            graph("empty", "Nothing yet", "s", true, &["none"], f64::NAN),
        ]
    }
}

/// A wave with a gap in it; of no scale, gaps alone.
fn values(points: usize, scale: f64) -> Vec<Option<f64>> {
    let is_gap = |index: usize| scale.is_nan() || (index * 10 / points.max(1)) == 4;
    let value = |index: usize| scale * (1.2 + (index as f64 / 40.0).sin());
    (0..points).map(|index| (!is_gap(index)).then(|| value(index))).collect()
}

fn server_view(name: &str) -> ServerView {
    ServerView {
        name: name.to_owned(),
        address: "127.0.0.1:3306".to_owned(),
        version: "MariaDB 11.8.9".to_owned(),
        down: (name == STEPS).then(|| "the login is refused".to_owned()),
        uptime_s: Some(86_400.0),
        statements: Some(1_234.0),
        connections: Some((12.0, 151.0)),
        redo: Some(RedoView {
            capacity_bytes: 1e9,
            used_bytes: Some(6e8),
            written: Some(2e6),
            sync_flush_s: Some(180.0),
        }),
        replicas: vec![ReplicaView {
            source: "source:3306".to_owned(),
            threads: ["running".to_owned(), "stopped".to_owned()],
            lag_by: "heartbeat".to_owned(),
            error: "<b>Duplicate entry</b>".to_owned(),
            ..ReplicaView::default()
        }],
        files: vec![("data".to_owned(), volume(name))],
        ..ServerView::default()
    }
}

fn storage_view(server: &str) -> StorageView {
    StorageView {
        name: volume(server),
        spec: "gp2:size=100GiB".to_owned(),
        roles: vec![format!("data of {server}")],
        exact: true,
        reads: Some(200.0),
        writes: Some(90.0),
        read_s: Some(0.0008),
        iops_limit: Some(300.0),
        throttled: Some(0.2),
        limited_by: Some("volume IOPS".to_owned()),
        credits: Some(CreditsView { share: 0.4, end_s: Some(3_000.0), full_s: Some(20_000.0) }),
        ..StorageView::default()
    }
}

fn alarms(unix_s: i64) -> Vec<AlarmView> {
    let alarm = |state: &str, silenced_until_s| AlarmView {
        rule: "credits-end".to_owned(),
        subject: HOSTILE.to_owned(),
        state: state.to_owned(),
        severity: "critical".to_owned(),
        since_s: START_S,
        reason: format!("40% of the credits are left, and end in {} s", 3_000 - (unix_s - START_S)),
        fix: "Change the volume to gp3.".to_owned(),
        silenced_until_s,
    };
    vec![alarm("ALARM", None), alarm("ALARM", Some(START_S + 600)), alarm("INSUFFICIENT_DATA", None)]
}
