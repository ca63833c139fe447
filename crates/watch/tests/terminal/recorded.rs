//! Views and graphs that screens are drawn of.

use ebbtide_watch::view::{
    AlarmView, CreditsView, FileSystemView, Graph, GraphLine, NotSeenView, OwnCost, Range, RedoView,
    ReplicaView, ServerView, StorageView, Subject, View,
};

const GIB: f64 = 1_073_741_824.0;
/// 2026-11-28 13:04:42 UTC.
const NOW_S: i64 = 1_795_871_082;

/// Three servers, of which one is down and one has a stopped replica; a gp2 volume that runs out of credits.
pub(crate) fn view() -> View {
    View {
        unix_s: NOW_S,
        utc_offset_s: 3_600,
        watched_s: Some(86_400.0),
        own: OwnCost {
            processor_share: Some(0.004),
            resident_bytes: Some(24 << 20),
            server_share: Some(0.001_2),
            skipped: 1,
        },
        servers: vec![server("shop"), replica(), down()],
        storage: storage(),
        file_systems: vec![
            FileSystemView {
                mount: "/".into(),
                device: "/dev/vda1".into(),
                size_bytes: 40.0 * GIB,
                free_bytes: 20.0 * GIB,
                full_s: None,
            },
            FileSystemView {
                mount: "/var/lib/mysql".into(),
                device: "/dev/loop0".into(),
                size_bytes: 100.0 * GIB,
                free_bytes: 18.0 * GIB,
                full_s: Some(260_000.0),
            },
        ],
        alarms: alarms(),
        not_seen: vec![NotSeenView {
            subject: "shop".into(),
            figure: "latency of redo writes".into(),
            reason: "performance_schema is off".into(),
            remedy: "performance_schema=ON in the option file, and a restart".into(),
        }],
    }
}

pub(crate) fn server(name: &str) -> ServerView {
    ServerView {
        name: name.into(),
        address: "127.0.0.1:3306".into(),
        version: "MariaDB 11.8.9".into(),
        down: None,
        uptime_s: Some(93_784.0),
        statements: Some(1_234.4),
        write_statements: Some(402.0),
        commits: Some(98.7),
        threads_running: Some(7.0),
        connections: Some((42.0, 151.0)),
        page_reads: Some(180.0),
        page_writes: Some(240.5),
        pool_hits: Some(0.987),
        dirty: Some(0.31),
        redo: Some(RedoView {
            capacity_bytes: 2.0 * GIB,
            used_bytes: Some(1.1 * GIB),
            written: Some(4_400_000.0),
            sync_flush_s: Some(150.0),
        }),
        log_waits: Some(0.0),
        free_waits: Some(2.5),
        row_lock_waits: Some(0.2),
        history: Some(12_345.0),
        log_time: Some(0.61),
        main_thread: Some(0.12),
        replicas: Vec::new(),
        files: vec![("data".into(), "data".into()), ("redo".into(), "redo".into())],
    }
}

fn replica() -> ServerView {
    let channel = |name: &str, receiver: &str, lag_s: Option<f64>, error: &str| ReplicaView {
        channel: name.into(),
        source: "shop:3306".into(),
        threads: [receiver.into(), "running".into()],
        lag_s,
        lag_by: "heartbeat".into(),
        error: error.into(),
    };
    let replicas = vec![
        channel("orders", "running", Some(0.4), ""),
        channel("stock", "connecting", None, "error connecting to source 'repl@shop:3306' (Errno: 2003)"),
    ];
    ServerView { version: "MySQL 9.7.4".into(), replicas, ..server("shop-replica") }
}

fn down() -> ServerView {
    ServerView {
        name: "old".into(),
        address: "/run/mysqld/old.sock".into(),
        down: Some("connection refused (os error 111); tried 3 times".into()),
        ..ServerView::default()
    }
}

/// A server that has answered once, and gives little.
pub(crate) fn unknown_server() -> ServerView {
    ServerView { name: "new".into(), statements: Some(1.0), ..ServerView::default() }
}

fn storage() -> Vec<StorageView> {
    vec![
        StorageView {
            name: "data".into(),
            spec: "gp2:size=100GiB".into(),
            mounts: vec!["/var/lib/mysql".into()],
            roles: vec!["data of shop".into()],
            exact: true,
            reads: Some(120.0),
            writes: Some(180.0),
            read_bytes: Some(1_966_080.0),
            written_bytes: Some(2_949_120.0),
            read_s: Some(0.012_3),
            write_s: Some(0.087),
            queue: Some(14.2),
            iops_limit: Some(300.0),
            bytes_limit: Some(134_217_728.0),
            throttled: Some(0.42),
            limited_by: Some("volume IOPS".into()),
            credits: Some(CreditsView { share: 0.04, end_s: Some(720.0), full_s: Some(17_400.0) }),
        },
        StorageView {
            name: "redo".into(),
            spec: "gp3:size=20GiB".into(),
            mounts: vec!["/var/lib/mysql-redo".into()],
            roles: vec!["redo of shop".into()],
            exact: true,
            reads: Some(0.0),
            writes: Some(612.0),
            read_bytes: Some(0.0),
            written_bytes: Some(4_400_000.0),
            read_s: None,
            write_s: Some(0.000_7),
            queue: Some(0.4),
            iops_limit: Some(3_000.0),
            bytes_limit: Some(131_072_000.0),
            throttled: Some(0.0),
            limited_by: None,
            credits: None,
        },
        StorageView { name: "nvme0n1".into(), reads: Some(3.0), writes: Some(9.0), ..StorageView::default() },
    ]
}

fn alarms() -> Vec<AlarmView> {
    let alarm = |rule: &str, subject: &str, severity: &str, reason: &str, fix: &str| AlarmView {
        rule: rule.into(),
        subject: subject.into(),
        state: "ALARM".into(),
        severity: severity.into(),
        since_s: NOW_S - 400,
        reason: reason.into(),
        fix: fix.into(),
        silenced_until_s: None,
    };
    let credits = alarm(
        "credits-end",
        "data",
        "critical",
        "burst credits are at 4% and end in 12 min at this load (300 IOPS more than the base rate of 300)",
        "ebbtide volume modify data gp3:size=100GiB,iops=3000",
    );
    let refused = alarm("server-down", "old", "high", "no answer for 400 s", "start the server");
    let silenced = AlarmView {
        silenced_until_s: Some(NOW_S + 3_600),
        ..alarm("replica-stopped", "shop-replica", "high", "the receiver of 'stock' is connecting", "")
    };
    vec![credits, refused, silenced]
}

/// Values that are no numbers, shares above 1, times that are negative.
pub(crate) fn broken() -> View {
    let mut view = view();
    let bad = [Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(-1.0), Some(f64::MAX)];
    view.servers = bad
        .iter()
        .enumerate()
        .map(|(place, bad)| {
            let redo = RedoView {
                capacity_bytes: bad.unwrap_or(0.0),
                used_bytes: *bad,
                written: *bad,
                sync_flush_s: *bad,
            };
            ServerView {
                statements: *bad,
                commits: *bad,
                threads_running: *bad,
                connections: bad.map(|bad| (bad, bad)),
                pool_hits: *bad,
                redo: Some(redo),
                log_time: *bad,
                uptime_s: *bad,
                history: *bad,
                ..server(&format!("bad-{place}"))
            }
        })
        .collect();
    for (storage, bad) in view.storage.iter_mut().zip(bad) {
        storage.reads = bad;
        storage.write_s = bad;
        storage.queue = bad;
        storage.throttled = bad;
        storage.iops_limit = bad;
        storage.credits = Some(CreditsView { share: bad.unwrap_or(0.0), end_s: bad, full_s: bad });
    }
    for (system, bad) in view.file_systems.iter_mut().zip(bad) {
        system.free_bytes = bad.unwrap_or(0.0);
        system.full_s = bad;
    }
    view.unix_s = i64::MAX;
    view
}

/// Twenty servers, thirty volumes.
pub(crate) fn crowd() -> View {
    let storage = |place: usize| StorageView { name: format!("volume-{place:02}"), ..storage()[0].clone() };
    View {
        servers: (0..20).map(|place| server(&format!("server-{place:02}"))).collect(),
        storage: (0..30).map(storage).collect(),
        ..view()
    }
}

/// Names that would move the cursor, hide text, or take two cells a character.
pub(crate) fn hostile() -> View {
    let escape = "a\u{1b}[2J\u{1b}]0;title\u{7}\r\nb\u{202e}c";
    let wide = "\u{8cc7}\u{6599}\u{5eab}\u{4e3b}\u{4f3a}\u{670d}\u{5668}\u{8cc7}\u{6599}\u{5eab}";
    let mut view = view();
    view.servers = vec![server(escape), server(wide)];
    view.servers[0].replicas = replica().replicas;
    view.servers[0].replicas[0].error = escape.into();
    view.servers[0].version = escape.into();
    view.storage[0].name = escape.into();
    view.storage[1].spec = escape.into();
    view.alarms[0].reason = escape.into();
    view.alarms[1].state = escape.into();
    view.storage[0].mounts = vec![escape.into()];
    view.file_systems[1].mount = escape.into();
    view.not_seen[0].reason = escape.into();
    view
}

/// The article's four graphs, with a gap of a tenth of the time.
pub(crate) fn graphs(subject: &Subject, range: Range) -> Vec<Graph> {
    let (Subject::Server(name) | Subject::Storage(name)) = subject;
    let points = range.most_points.clamp(2, 240);
    let span_s = range.to_s.saturating_sub(range.from_s);
    let step_s =
        u32::try_from(span_s / i64::try_from(points).expect("few points")).unwrap_or(u32::MAX).max(1);
    let line = |label: &str, value: &dyn Fn(f64) -> f64| GraphLine {
        label: label.into(),
        values: (0..points)
            .map(|point| {
                let share = point as f64 / points as f64;
                (!(0.6..0.7).contains(&share)).then(|| value(share))
            })
            .collect(),
    };
    let graph = |key, title, unit, logarithmic, lines| Graph {
        key,
        title,
        unit,
        logarithmic,
        start_s: range.from_s,
        step_s,
        lines,
    };
    let wave = |share: f64| (share * 20.0).sin().mul_add(0.4, 0.6);
    vec![
        graph(
            "iops",
            "operations",
            "/s",
            false,
            vec![
                line("reads", &|share| 2_000.0 * wave(share)),
                line("writes", &|share| 900.0 * wave(share + 0.1)),
            ],
        ),
        graph(
            "latency",
            "latency",
            "s",
            true,
            vec![
                line("reads", &|share| 0.000_5 * 10_f64.powf(2.0 * share)),
                line("writes", &|share| 0.001 * wave(share)),
            ],
        ),
        graph("log", "time in logs", "share", false, vec![line(name, &wave)]),
        graph("main", "main thread", "share", false, vec![line("active", &|share| 0.1 * wave(share))]),
    ]
}
