//! Situations that have to alarm: each by its own rules, and by no others.

use ebbtide_volume::{InstanceLimits, Nanos, RateLimit};
use ebbtide_watch::alarm::RULES;
use ebbtide_watch::reading::{
    Answer, CheckReading, CheckVerdict, InstanceReading, LatencyFloor, ReadingSet, ReplicaReading,
    ThreadState, Throttling, VolumeLimits,
};

use crate::support::{Pace, ServerPace, Situation, Watched, play, replica};

/// A gp2 of 100 GiB.
pub(crate) const GP2: RateLimit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
/// An st1 of 1 TiB.
pub(crate) const ST1: RateLimit =
    RateLimit { rate: 40 << 20, ceiling: 250 << 20, allowance: 0, credits: 1 << 40 };

/// A volume with credits whose share falls by so much an hour.
pub(crate) fn spend(watched: &mut Watched, seconds: u64, share: f64, an_hour: f64, pace: Pace) {
    watched.volume.stats.credit_share = Some(share);
    let start = watched.second;
    watched.run(seconds, |watched, _| {
        let passed = (watched.second - start) as f64;
        watched.count(pace);
        watched.volume.stats.credit_share = Some((share - an_hour * passed / 3_600.0).clamp(0.0, 1.0));
        ReadingSet { volumes: vec![watched.volume.clone()], ..ReadingSet::default() }
    });
}

/// An instance whose shares of both kinds of credits fall by so much an hour.
pub(crate) fn instance(watched: &mut Watched, seconds: u64, shares: [f64; 2], an_hour: [f64; 2]) {
    let limit = RateLimit { rate: 3_600, ceiling: 15_700, allowance: 0, credits: 12_100 * 1_800 };
    let bytes = RateLimit { rate: 80 << 20, ceiling: 500 << 20, allowance: 0, credits: (420 << 20) * 1_800 };
    let start = watched.second;
    watched.run(seconds, |watched, _| {
        let passed = (watched.second - start) as f64;
        let left = |place: usize| Some((shares[place] - an_hour[place] * passed / 3_600.0).clamp(0.0, 1.0));
        let reading = InstanceReading {
            name: "r5.large".to_owned(),
            limits: InstanceLimits { iops: limit, throughput: bytes },
            io_share: left(0),
            byte_share: left(1),
        };
        ReadingSet { instances: vec![reading], ..ReadingSet::default() }
    });
}

/// Looks of the doctor with one check.
pub(crate) fn checks(watched: &mut Watched, verdicts: &[CheckVerdict]) {
    for verdict in verdicts {
        watched.second += 600;
        let check =
            CheckReading { server: "shop".to_owned(), code: "D01".to_owned(), verdict: verdict.clone() };
        watched.look(ReadingSet { checks: vec![check], ..ReadingSet::default() });
    }
}

pub(crate) fn found() -> CheckVerdict {
    CheckVerdict::Found { why: "A commit waits for no sync.".to_owned(), fix: "Set it to 1.".to_owned() }
}

/// A volume of these IOPS and this floor.
pub(crate) fn provisioned(watched: &mut Watched, iops: u64, floor_s: f64) {
    let floor = Some(LatencyFloor { read_s: floor_s, write_s: floor_s });
    watched.volume.limits = VolumeLimits { iops: Some(RateLimit::flat(iops)), throughput: None, floor };
}

const DOWN: &str = "Connection refused";

const STORAGE: &[Situation] = &[
    Situation {
        name: "a gp2 spends a tenth of its credits in ten minutes, with a third left",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 2_400, 0.7, 0.6, Pace::USUAL);
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "a burst that has gone on for 15 minutes and ends in 15",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 1_200, 1.0, 1.8, Pace::USUAL);
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "the credits end within 10 minutes, and the watch has just begun",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 240, 0.3, 1.5, Pace::USUAL);
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "the credits of a gp2 have ended and requests wait",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            let pace = Pace { reads: 100.0, writes: 200.0, queue: Some(1.2), ..Pace::USUAL };
            spend(watched, 300, 0.0, 0.0, pace);
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "an st1 spends its throughput credits",
        play: |watched| {
            (watched.volume.limits.iops, watched.volume.limits.throughput) = (None, Some(ST1));
            spend(watched, 2_400, 0.6, 0.6, Pace::USUAL);
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "a cold volume (sc1) whose credits have ended",
        play: |watched| {
            let limit = RateLimit { rate: 12 << 20, ceiling: 80 << 20, allowance: 0, credits: 1 << 40 };
            (watched.volume.limits.iops, watched.volume.limits.throughput) = (None, Some(limit));
            spend(watched, 300, 0.001, 0.0, Pace { queue: Some(2.0), ..Pace::USUAL });
        },
        raises: &["credits_end"],
    },
    Situation {
        name: "an instance spends its credits of operations",
        play: |watched| instance(watched, 1_800, [0.9, 1.0], [1.6, 0.0]),
        raises: &["instance_credits_end"],
    },
    Situation {
        name: "an instance spends its credits of bytes",
        play: |watched| instance(watched, 1_800, [1.0, 0.8], [0.0, 1.5]),
        raises: &["instance_credits_end"],
    },
    Situation {
        name: "15 requests wait on a gp3 of 3,000 IOPS: the 200 rule calls that right",
        play: |watched| {
            let pace =
                Pace { reads: 0.0, writes: 3_000.0, write_s: 0.004_5, queue: Some(15.0), ..Pace::USUAL };
            watched.storage(400, pace);
        },
        raises: &["queue_length"],
    },
    Situation {
        name: "80 requests wait on an io2 of 64,000 IOPS",
        play: |watched| {
            provisioned(watched, 64_000, 0.000_25);
            let pace = Pace { writes: 64_000.0, write_s: 0.001_2, queue: Some(80.0), ..Pace::IDLE };
            watched.storage(400, pace);
        },
        raises: &["queue_length"],
    },
    Situation {
        name: "the volume's IOPS hold requests back",
        play: |watched| watched.storage(300, Pace { over: [0.6, 0.0, 0.0, 0.0], ..Pace::USUAL }),
        raises: &["throttled_volume_iops"],
    },
    Situation {
        name: "the volume's throughput holds requests back",
        play: |watched| watched.storage(300, Pace { over: [0.0, 0.25, 0.0, 0.0], ..Pace::USUAL }),
        raises: &["throttled_volume_throughput"],
    },
    Situation {
        name: "the instance's IOPS hold requests back",
        play: |watched| watched.storage(300, Pace { over: [0.0, 0.0, 1.0, 0.0], ..Pace::USUAL }),
        raises: &["throttled_instance_iops"],
    },
    Situation {
        name: "the instance's throughput holds requests back, in bursts of ten seconds",
        play: |watched| {
            watched.storage_by(600, |second| {
                let over = if second % 20.0 < 10.0 { 0.9 } else { 0.0 };
                Pace { over: [0.0, 0.0, 0.0, over], ..Pace::USUAL }
            });
        },
        raises: &["throttled_instance_throughput"],
    },
    Situation {
        name: "writes take 100 ms: the published case",
        play: |watched| {
            watched.storage(120, Pace::USUAL);
            watched.storage(240, Pace { writes: 30.0, write_s: 0.1, queue: Some(3.3), ..Pace::USUAL });
        },
        raises: &["latency"],
    },
    Situation {
        name: "reads alone are slow, as of a volume whose blocks are not loaded",
        play: |watched| {
            watched.storage(240, Pace { reads: 100.0, read_s: 0.02, queue: Some(2.7), ..Pace::USUAL });
        },
        raises: &["latency"],
    },
    Situation {
        name: "a device without a known type becomes slower than it was",
        play: |watched| {
            (watched.volume.limits, watched.volume.throttling) =
                (VolumeLimits::default(), Throttling::Unknown);
            watched.storage(2_400, Pace { read_s: 0.000_3, write_s: 0.000_4, ..Pace::USUAL });
            watched.storage(240, Pace { read_s: 0.000_3, write_s: 0.004, ..Pace::USUAL });
        },
        raises: &["latency"],
    },
    Situation {
        name: "latency comes and goes, and is there for most of each minute",
        play: |watched| {
            watched.storage_by(600, |second| {
                let write_s = if second % 20.0 < 14.0 { 0.01 } else { 0.001 };
                Pace { writes: 200.0, write_s, queue: Some(2.0), ..Pace::USUAL }
            });
        },
        raises: &["latency"],
    },
    Situation {
        name: "requests wait and none completes",
        play: |watched| {
            watched.storage(60, Pace::USUAL);
            watched.storage(20, Pace { queue: Some(3.0), ..Pace::IDLE });
        },
        raises: &["io_stalled"],
    },
    Situation {
        name: "a volume stalls from the first reading on",
        play: |watched| watched.storage(15, Pace { queue: Some(1.0), ..Pace::IDLE }),
        raises: &["io_stalled"],
    },
];

const SERVERS: &[Situation] = &[
    Situation {
        name: "a server is down from the beginning",
        play: |watched| watched.answer(40, &Answer::Down(DOWN.to_owned())),
        raises: &["server_down"],
    },
    Situation {
        name: "a server goes down",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            watched.answer(40, &Answer::Down(DOWN.to_owned()));
        },
        raises: &["server_down"],
    },
    Situation {
        name: "a server takes connections and does not answer",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            watched.answer(40, &Answer::TimedOut(Nanos::from_secs(2)));
        },
        raises: &["server_hangs"],
    },
    Situation {
        name: "the password was changed",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            watched.answer(90, &Answer::LoginRefused("Access denied (1045)".to_owned()));
        },
        raises: &["login_refused"],
    },
    Situation {
        name: "a server was started again between two readings",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            watched.restart();
            watched.server(20, ServerPace::USUAL);
        },
        raises: &["server_restarted"],
    },
    Situation {
        name: "a server was started again while nobody looked, and its uptime is larger than before",
        play: |watched| {
            watched.uptime_s = 100.0;
            watched.server(20, ServerPace::USUAL);
            watched.second += 1_000;
            watched.restart();
            watched.uptime_s = 200.0;
            watched.server(20, ServerPace::USUAL);
        },
        raises: &["server_restarted"],
    },
    Situation {
        name: "a server crashes each minute, and starts within seconds",
        play: |watched| {
            for _ in 0..5 {
                watched.server(55, ServerPace::USUAL);
                watched.answer(5, &Answer::Down(DOWN.to_owned()));
                watched.restart();
            }
            watched.server(5, ServerPace::USUAL);
        },
        raises: &["server_restarted"],
    },
    Situation {
        name: "the checkpoint is far behind, on MySQL",
        play: |watched| watched.server(60, ServerPace { age_mib: 900.0, ..ServerPace::USUAL }),
        raises: &["redo_nearly_full"],
    },
    Situation {
        name: "the checkpoint is farther behind than MariaDB lets it be",
        play: |watched| {
            watched.mariadb = true;
            watched.server(60, ServerPace { age_mib: 985.0, ..ServerPace::USUAL });
        },
        raises: &["redo_nearly_full"],
    },
    Situation {
        name: "the checkpoint is far behind on a server that does not count where it flushes",
        play: |watched| {
            watched.redo_sync_bytes = Some(83.0 * 1_048_576.0);
            watched.server(60, ServerPace { age_mib: 76.0, sync_age_mib: 0.0, ..ServerPace::USUAL });
        },
        raises: &["redo_nearly_full"],
    },
    Situation {
        name: "the sync flush is seconds away",
        play: |watched| {
            watched
                .server_by(34, |second| ServerPace { age_mib: 500.0 + 13.0 * second, ..ServerPace::USUAL });
        },
        raises: &["redo_sync_flush"],
    },
    Situation {
        name: "the sync flush goes on",
        play: |watched| watched.server(60, ServerPace { sync_flushed: 400.0, ..ServerPace::USUAL }),
        raises: &["redo_sync_flush"],
    },
    Situation {
        name: "statements wait for free pages",
        play: |watched| watched.server(90, ServerPace { free_page_waits: 20.0, ..ServerPace::USUAL }),
        raises: &["free_page_waits"],
    },
    Situation {
        name: "free pages run out now and then",
        play: |watched| {
            watched.server_by(300, |second| {
                let free_page_waits = if second % 30.0 < 5.0 { 12.0 } else { 0.0 };
                ServerPace { free_page_waits, ..ServerPace::USUAL }
            });
        },
        raises: &["free_page_waits"],
    },
    Situation {
        name: "transactions wait for the log buffer",
        play: |watched| watched.server(90, ServerPace { log_waits: 50.0, ..ServerPace::USUAL }),
        raises: &["log_waits"],
    },
    Situation {
        name: "two transactions a second wait for the log buffer: a public rule is silent",
        play: |watched| watched.server(120, ServerPace { log_waits: 2.0, ..ServerPace::USUAL }),
        raises: &["log_waits"],
    },
];

const REPLICAS: &[Situation] = &[
    Situation {
        name: "the applying thread has stopped with an error",
        play: |watched| {
            let error = Some("1062: Duplicate entry".to_owned());
            let stopped = ReplicaReading { applier: ThreadState::Stopped, lag_s: None, error, ..replica() };
            watched.replica(40, &stopped);
        },
        raises: &["replica_stopped"],
    },
    Situation {
        name: "the receiving thread has stopped, and the lag is 0",
        play: |watched| {
            watched.replica(40, &ReplicaReading { receiver: ThreadState::Stopped, ..replica() });
        },
        raises: &["replica_stopped"],
    },
    Situation {
        name: "the receiving thread connects for a minute",
        play: |watched| {
            watched.replica(60, &ReplicaReading { receiver: ThreadState::Connecting, ..replica() });
        },
        raises: &["replica_stopped"],
    },
    Situation {
        name: "both threads run, and the lag is NULL",
        play: |watched| watched.replica(40, &ReplicaReading { lag_s: None, ..replica() }),
        raises: &["replica_stopped"],
    },
    Situation {
        name: "a replica is five minutes behind",
        play: |watched| watched.replica(180, &ReplicaReading { lag_s: Some(300.0), ..replica() }),
        raises: &["replica_lag"],
    },
    Situation {
        name: "a delayed replica is behind more than it is to be",
        play: |watched| {
            watched.replica(180, &ReplicaReading { lag_s: Some(3_700.0), delay_s: 3_600.0, ..replica() });
        },
        raises: &["replica_lag"],
    },
];

const SPACE: &[Situation] = &[
    Situation {
        name: "a file system fills within three hours",
        play: |watched| watched.disk(240, |minute| 50.0 + minute / 8.0),
        raises: &["disk_full", "disk_fills"],
    },
    Situation {
        name: "two percent are free",
        play: |watched| watched.disk(30, |_| 98.0),
        raises: &["disk_full", "disk_fills"],
    },
    Situation {
        name: "a file system fills within a day",
        play: |watched| watched.disk(240, |minute| 65.0 + minute / 40.0),
        raises: &["disk_fills"],
    },
    Situation {
        name: "a saw-tooth of binary logs climbs, and has 3 GiB to go",
        play: |watched| {
            watched.disk(1_600, |minute| 70.0 + (minute % 120.0) / 12.0 + (minute / 120.0).floor() * 1.5);
        },
        raises: &["disk_full", "disk_fills"],
    },
    Situation {
        name: "a purge came once, and the growth goes on beyond it",
        play: |watched| {
            watched.disk(840, |minute| if minute < 120.0 { 60.0 } else { 50.0 + (minute - 120.0) / 16.0 });
        },
        raises: &["disk_full", "disk_fills"],
    },
];

const CHECKS: &[Situation] = &[Situation {
    name: "a check of the doctor becomes true",
    play: |watched| checks(watched, &[CheckVerdict::Fine, CheckVerdict::Fine, found()]),
    raises: &["doctor_check"],
}];

fn all() -> impl Iterator<Item = &'static Situation> {
    [STORAGE, SERVERS, REPLICAS, SPACE, CHECKS].into_iter().flatten()
}

#[test]
fn storage_in_trouble_alarms() {
    play(STORAGE);
}

#[test]
fn servers_in_trouble_alarm() {
    play(SERVERS);
}

#[test]
fn replicas_in_trouble_alarm() {
    play(REPLICAS);
}

#[test]
fn file_systems_that_fill_alarm() {
    play(SPACE);
}

#[test]
fn checks_that_become_true_alarm() {
    play(CHECKS);
}

#[test]
fn credits_that_have_ended_while_requests_wait_alarm_after_ten_seconds_and_a_forecast_after_a_minute() {
    let pace = Pace { reads: 100.0, writes: 200.0, queue: Some(1.2), ..Pace::USUAL };
    // Ten seconds are seen before anything is said of the queue. The forecast needs a minute of the load.
    for (share, an_hour, quiet, rest) in [(0.0, 0.0, 15, 15), (0.3, 1.5, 110, 20)] {
        let mut watched = Watched::new();
        watched.volume.limits.iops = Some(GP2);
        spend(&mut watched, quiet, share, an_hour, pace);
        assert!(watched.raised().is_empty(), "{share}: {:?}", watched.events);
        let left = share - an_hour * quiet as f64 / 3_600.0;
        spend(&mut watched, rest, left, an_hour, pace);
        assert!(watched.raised().contains("credits_end"), "{share}: {:?}", watched.events);
    }
}

#[test]
fn each_rule_has_a_situation_and_there_are_forty() {
    // The load of yesterday needs a day: credits.rs has it.
    let others = ["credits_end_yesterday"];
    for rule in RULES {
        let planted = all().any(|situation| situation.raises.contains(&rule.name));
        assert!(planted || others.contains(&rule.name), "{} is in no situation", rule.name);
    }
    assert!(all().count() >= 40, "{} situations", all().count());
}
