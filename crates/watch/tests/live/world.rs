//! A machine with a server, a device and a volume of Ebbtide's own, whose counters grow evenly.

use std::sync::Arc;
use std::time::Duration;

use ebbtide_mysql::sampling::{Reading, Timed};
use ebbtide_observe::metric::Maker;
use ebbtide_observe::{Role, Variables, Version};
use ebbtide_proc::parse_block_statistics;
use ebbtide_volume::{Nanos, OpStats, RateLimit, Stats};
use ebbtide_watch::host::{EbsPage, EbsVolume, HostDisk, HostReading, Placement, UdevProperties};
use ebbtide_watch::live::{
    HostLook, Looks, OwnLook, OwnVolume, ServerLook, ServerState, Tick, WatchOptions, Watcher,
};
use ebbtide_watch::reading::{Moment, VolumeLimits};
use ebbtide_watch::view::{View, ViewSource as _};

/// What grows in each second: statements of the server, and operations of the device and of the volume.
pub(crate) const STATEMENTS: u64 = 800;
pub(crate) const OPERATIONS: u64 = 300;

/// 2026-11-29 00:00 UTC.
const MIDNIGHT: i64 = 1_795_910_400;

/// What is watched, second by second.
pub(crate) struct World {
    pub(crate) watcher: Watcher,
    pub(crate) second: u64,
    /// What the wall clock is ahead.
    pub(crate) wall_s: i64,
    pub(crate) server: String,
    pub(crate) state: ServerState,
    /// Run of the server, its uptime and its statements.
    pub(crate) run: u64,
    pub(crate) uptime_s: u64,
    pub(crate) statements: u64,
    /// What it answered last: a server that does not answer keeps it.
    pub(crate) answered: (u64, u64),
    /// The second at which the machine was read last; None: it is read in each.
    pub(crate) host_read: Option<u64>,
    pub(crate) has_device: bool,
    /// Whether the device gives its statistics page, every 10 s: it is over its IOPS for 20 ms of each second.
    pub(crate) has_page: bool,
    pub(crate) device_ops: u64,
    pub(crate) serial: String,
    pub(crate) has_volume: bool,
    pub(crate) volume_ops: u64,
    pub(crate) epoch: u64,
    pub(crate) ticks: Vec<Tick>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::named("shop")
    }

    pub(crate) fn named(server: &str) -> Self {
        let options =
            WatchOptions { machine: "db1".to_owned(), build: ["0.0.0", ""], ..WatchOptions::default() };
        Self {
            watcher: Watcher::new(options, None),
            second: 1_000,
            wall_s: MIDNIGHT - 1_000,
            server: server.to_owned(),
            state: ServerState::Answers,
            run: 0,
            uptime_s: 50_000,
            statements: 1_000_000,
            answered: (50_000, 1_000_000),
            host_read: None,
            has_device: true,
            has_page: false,
            device_ops: 5_000_000,
            serial: "vol0123456789abcdef0".to_owned(),
            has_volume: true,
            volume_ops: 7_000_000,
            epoch: 1,
            ticks: Vec::new(),
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        let unix_s = i64::try_from(self.second).unwrap() + self.wall_s;
        Moment { elapsed: Nanos::from_secs(self.second), unix_s, utc_offset_s: 0 }
    }

    /// Goes on for some seconds, and returns the view of each.
    pub(crate) fn run(&mut self, seconds: u64) -> Vec<Arc<View>> {
        (0..seconds).map(|_| self.step()).collect()
    }

    /// Goes on for a second.
    pub(crate) fn step(&mut self) -> Arc<View> {
        self.second += 1;
        self.uptime_s += 1;
        self.statements += STATEMENTS;
        if self.state == ServerState::Answers {
            self.answered = (self.uptime_s, self.statements);
        }
        self.device_ops += OPERATIONS;
        self.volume_ops += OPERATIONS;
        let looks = self.looks();
        let tick = self.watcher.tick(self.moment(), looks);
        self.ticks.push(tick);
        self.watcher.source().view()
    }

    /// Events as `TO rule subject`.
    pub(crate) fn events(&self) -> Vec<String> {
        let events = self.ticks.iter().flat_map(|tick| &tick.events);
        events.map(|event| format!("{} {} {}", event.to, event.rule, event.subject.name)).collect()
    }

    pub(crate) fn notices(&self) -> Vec<&str> {
        self.ticks.iter().flat_map(|tick| &tick.notices).map(String::as_str).collect()
    }

    pub(crate) fn looks(&self) -> Looks {
        let elapsed = Nanos::from_secs(self.second);
        let own = OwnLook { elapsed, volumes: self.has_volume.then(|| self.volume()).into_iter().collect() };
        let host_elapsed = self.host_read.map_or(elapsed, Nanos::from_secs);
        let host = HostLook { elapsed: host_elapsed, reading: Arc::new(self.host()) };
        Looks { servers: vec![self.server()], host: Some(host), own: Some(own), ..Looks::default() }
    }

    fn server(&self) -> ServerLook {
        let (uptime_s, statements) = self.answered;
        let status: Variables = [
            ("uptime", uptime_s),
            ("questions", statements),
            ("com_commit", statements / 10),
            ("threads_running", 3),
            ("threads_connected", 7),
        ]
        .map(|(name, value)| (name, value.to_string()))
        .into_iter()
        .collect();
        let variables: Variables = [("max_connections", "151")].into_iter().collect();
        let read_at = Duration::from_secs(uptime_s + 100_000 * self.run);
        let reading = Reading {
            up: matches!(self.state, ServerState::Answers | ServerState::Rests),
            run: self.run,
            maker: Some(Maker::MariaDb),
            release: Some(Version::new(11, 8, 9)),
            status: Some(Timed { at: read_at, value: status }),
            variables: Some(Timed { at: Duration::ZERO, value: variables }),
            ..Reading::default()
        };
        let placement = Placement {
            role: Role::Data,
            directory: "/data/mysql".into(),
            mount_point: Some("/data".into()),
            devices: vec!["loop3".to_owned()],
            is_said: false,
        };
        ServerLook {
            name: self.server.clone(),
            address: "/run/mysqld/mysqld.sock".to_owned(),
            reading: Arc::new(reading),
            state: self.state.clone(),
            placements: Arc::from([placement]),
            elsewhere: None,
        }
    }

    fn host(&self) -> HostReading {
        if !self.has_device {
            return HostReading::default();
        }
        let ops = self.device_ops;
        let line = format!(" 259 0 nvme1n1 {ops} 0 {} {ops} 0 0 0 0 0 {ops} {ops} 0 0 0 0 0 0\n", ops * 8);
        let udev = UdevProperties { serial: self.serial.clone(), ..UdevProperties::default() };
        let statistics = parse_block_statistics(line.as_bytes()).remove(0);
        HostReading {
            disks: vec![HostDisk { statistics, udev, is_rotational: false }],
            ebs: self.has_page.then(|| self.page()).into_iter().collect(),
            ..HostReading::default()
        }
    }

    fn page(&self) -> EbsVolume {
        let read_s = self.second / 10 * 10;
        EbsVolume {
            volume_id: "vol-0123456789abcdef0".to_owned(),
            device: "nvme1n1".to_owned(),
            mount_path: String::new(),
            read_at: Nanos::from_secs(read_s),
            page: EbsPage { volume_iops_exceeded: Nanos::from_ms(read_s * 20), ..EbsPage::default() },
        }
    }

    fn volume(&self) -> OwnVolume {
        let time = Nanos::from_us(self.volume_ops * 500);
        let write = OpStats { ops: self.volume_ops, bytes: self.volume_ops * 4_096, time };
        let stats = Stats {
            at: Nanos::from_secs(self.second),
            write,
            consumed_ops: self.volume_ops,
            queue_time: time,
            credit_share: Some(0.5),
            ..Stats::default()
        };
        let limit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        OwnVolume {
            name: "shop-data".to_owned(),
            spec: "gp2:size=100GiB".to_owned(),
            device: "loop3".to_owned(),
            mount: Some("/data".to_owned()),
            epoch: self.epoch.to_string(),
            stats,
            limits: VolumeLimits { iops: Some(limit), ..VolumeLimits::default() },
            instance: None,
            credits_full_s: Some(9_000.0),
        }
    }
}

/// Asserts that each rate of a view is what the world does or is not known: no spike, and no zero in its place.
#[track_caller]
pub(crate) fn assert_even(views: &[Arc<View>]) {
    let is_even =
        |rate: Option<f64>, expected: u64| rate.is_none_or(|rate| (rate - expected as f64).abs() < 1.0);
    for view in views {
        for server in &view.servers {
            assert!(is_even(server.statements, STATEMENTS), "{server:?}");
            assert!(is_even(server.commits, STATEMENTS / 10), "{server:?}");
        }
        for storage in &view.storage {
            let busy = if storage.exact { storage.writes } else { storage.reads };
            assert!(is_even(busy, OPERATIONS), "{storage:?}");
        }
    }
}
