//! Healthy neighbours of the planted situations: none may alarm.

use ebbtide_volume::Nanos;
use ebbtide_watch::alarm::AlarmState;
use ebbtide_watch::reading::{
    Answer, CheckVerdict, FileSystemReading, ReadingSet, ReplicaReading, ThreadState, Throttling,
    VolumeLimits,
};

use crate::planted::{GP2, ST1, checks, found, instance, provisioned, spend};
use crate::support::{GIB, Pace, ServerPace, Situation, play, replica};

const DOWN: &str = "Connection refused";

const STORAGE: &[Situation] = &[
    Situation {
        name: "a batch of eight minutes at the burst of a gp2 whose credits are full",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 1_800, 1.0, 0.0, Pace::USUAL);
            spend(watched, 480, 1.0, 1.8, Pace::USUAL);
            spend(watched, 1_800, 0.76, -0.2, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "credits that are low and come back",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 1_800, 0.05, -0.1, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "credits that are spent so slowly that they last for two days",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 3_600, 0.9, 0.02, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "credits that have ended on a volume that is idle",
        play: |watched| {
            watched.volume.limits.iops = Some(GP2);
            spend(watched, 300, 0.0, 0.0, Pace { reads: 5.0, writes: 5.0, ..Pace::USUAL });
        },
        raises: &[],
    },
    Situation {
        name: "an st1 within its baseline",
        play: |watched| {
            (watched.volume.limits.iops, watched.volume.limits.throughput) = (None, Some(ST1));
            spend(watched, 1_800, 1.0, 0.0, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "an instance bursts for five minutes",
        play: |watched| {
            instance(watched, 1_200, [1.0, 1.0], [0.0, 0.0]);
            instance(watched, 300, [1.0, 1.0], [2.0, 2.0]);
            instance(watched, 1_200, [0.83, 0.83], [-0.2, -0.2]);
        },
        raises: &[],
    },
    Situation {
        name: "a gp3 of 3,000 IOPS at its limit, with the queue that it needs",
        play: |watched| watched.storage(600, Pace { reads: 1_000.0, writes: 2_000.0, ..Pace::USUAL }),
        raises: &[],
    },
    Situation {
        name: "40 requests on an io2 of 64,000 IOPS",
        play: |watched| {
            provisioned(watched, 64_000, 0.000_25);
            watched
                .storage(400, Pace { writes: 60_000.0, write_s: 0.000_6, queue: Some(40.0), ..Pace::IDLE });
        },
        raises: &[],
    },
    Situation {
        name: "a second of each minute is over the limit: CloudWatch's check is 1 in each",
        play: |watched| {
            watched.storage_by(900, |second| {
                let over = if second % 60.0 < 1.0 { 1.0 } else { 0.0 };
                Pace { over: [over; 4], ..Pace::USUAL }
            });
        },
        raises: &[],
    },
    Situation {
        name: "a checkpoint holds requests back for a minute",
        play: |watched| {
            watched.storage(300, Pace::USUAL);
            watched.storage(60, Pace { over: [0.5, 0.0, 0.0, 0.0], ..Pace::USUAL });
            watched.storage(300, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "latency of eight times the floor that is still below 2 ms",
        play: |watched| {
            provisioned(watched, 64_000, 0.000_2);
            watched.storage(300, Pace { read_s: 0.001_6, write_s: 0.001_6, ..Pace::USUAL });
        },
        raises: &[],
    },
    Situation {
        name: "few operations, each of them slow",
        play: |watched| {
            watched.storage(300, Pace { reads: 2.0, writes: 5.0, read_s: 0.2, write_s: 0.2, ..Pace::USUAL })
        },
        raises: &[],
    },
    Situation {
        name: "latency rises for 20 seconds",
        play: |watched| {
            watched.storage(120, Pace::USUAL);
            watched.storage(20, Pace { write_s: 0.004, ..Pace::USUAL });
            watched.storage(240, Pace::USUAL);
        },
        raises: &[],
    },
    Situation { name: "an idle volume", play: |watched| watched.storage(600, Pace::IDLE), raises: &[] },
    Situation {
        name: "a device whose type is not known, at its usual latency, quick at night",
        play: |watched| {
            (watched.volume.limits, watched.volume.throttling) =
                (VolumeLimits::default(), Throttling::Unknown);
            watched.storage(2_400, Pace { read_s: 0.000_4, write_s: 0.000_5, ..Pace::USUAL });
            watched.storage(1_200, Pace { read_s: 0.001_2, write_s: 0.001_9, ..Pace::USUAL });
        },
        raises: &[],
    },
    Situation {
        name: "requests wait for eight seconds",
        play: |watched| {
            watched.storage(60, Pace::USUAL);
            watched.storage(8, Pace { queue: Some(2.0), ..Pace::IDLE });
            watched.storage(60, Pace::USUAL);
        },
        raises: &[],
    },
];

const RESETS: &[Situation] = &[
    Situation {
        name: "a volume is detached and attached: its counters begin again",
        play: |watched| {
            watched.storage(300, Pace::USUAL);
            watched.volume.stats = ebbtide_volume::Stats::default();
            watched.volume.epoch = "2".to_owned();
            watched.storage(300, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "counters begin again, and nothing says so",
        play: |watched| {
            for _ in 0..5 {
                watched.storage(100, Pace::USUAL);
                watched.volume.stats = ebbtide_volume::Stats::default();
            }
        },
        raises: &[],
    },
    Situation {
        name: "another device of the same name, with larger counters",
        play: |watched| {
            watched.storage(100, Pace::USUAL);
            watched.volume.epoch = "another serial number".to_owned();
            watched.volume.stats.write.ops += 1_000_000;
            watched.volume.stats.write.time += Nanos::from_secs(1_000_000);
            watched.volume.stats.volume_iops_exceeded += Nanos::from_secs(100_000);
            watched.storage(200, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "FLUSH STATUS sets the counters of a server to 0",
        play: |watched| {
            watched.server(100, ServerPace { log_waits: 0.05, ..ServerPace::USUAL });
            let uptime_s = watched.uptime_s;
            watched.restart();
            watched.uptime_s = uptime_s;
            watched.server(100, ServerPace { log_waits: 0.05, ..ServerPace::USUAL });
        },
        raises: &[],
    },
    Situation {
        name: "the wall clock steps by a day, back and forth",
        play: |watched| {
            for step_s in [86_400, -172_800, 86_400] {
                watched.storage(120, Pace::USUAL);
                watched.server(120, ServerPace::USUAL);
                watched.wall_ahead_s += step_s;
            }
        },
        raises: &[],
    },
    Situation {
        name: "the machine was suspended for eight hours",
        play: |watched| {
            watched.storage(300, Pace::USUAL);
            watched.second += 28_800;
            watched.storage(300, Pace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "every second reading is late, and comes with the time of the one before",
        play: |watched| {
            for _ in 0..300 {
                watched.storage(1, Pace::USUAL);
                watched.second -= 1;
                watched.storage(1, Pace::USUAL);
            }
        },
        raises: &[],
    },
];

const SERVERS: &[Situation] = &[
    Situation {
        name: "a server that is well",
        play: |watched| watched.server(900, ServerPace::USUAL),
        raises: &[],
    },
    Situation {
        name: "the watch begins while a server starts: its restart was not seen",
        play: |watched| {
            watched.answer(20, &Answer::Down(DOWN.to_owned()));
            watched.restart();
            watched.server(120, ServerPace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "a server does not answer for 20 seconds",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            watched.answer(20, &Answer::TimedOut(Nanos::from_secs(2)));
            watched.server(100, ServerPace::USUAL);
        },
        raises: &[],
    },
    Situation {
        name: "a server is slow and is asked less often",
        play: |watched| {
            watched.server(100, ServerPace::USUAL);
            for _ in 0..10 {
                watched.answer(25, &Answer::NotAsked);
                watched.server(5, ServerPace::USUAL);
            }
        },
        raises: &[],
    },
    Situation {
        name: "a MariaDB under load, whose checkpoint stays at 88% to 95%",
        play: |watched| {
            watched.mariadb = true;
            watched
                .server_by(900, |second| ServerPace { age_mib: 880.0 + second % 70.0, ..ServerPace::USUAL });
        },
        raises: &[],
    },
    Situation {
        name: "a small redo log that fills to three quarters between two checkpoints",
        play: |watched| {
            watched.server_by(900, |second| ServerPace {
                age_mib: 7.5 * (second % 10.0) / 10.0,
                sync_age_mib: 10.0,
                ..ServerPace::USUAL
            });
        },
        raises: &[],
    },
    Situation {
        name: "20 waits for the log buffer at the start of a batch",
        play: |watched| {
            watched.server_by(300, |second| ServerPace {
                log_waits: if (100.0..110.0).contains(&second) { 2.0 } else { 0.0 },
                ..ServerPace::USUAL
            });
        },
        raises: &[],
    },
    Situation {
        name: "some waits for a free page at the start of a scan",
        play: |watched| {
            watched.server_by(300, |second| ServerPace {
                free_page_waits: if (100.0..105.0).contains(&second) { 10.0 } else { 0.0 },
                ..ServerPace::USUAL
            });
        },
        raises: &[],
    },
];

const REPLICAS: &[Situation] = &[
    Situation {
        name: "a replica that is well",
        play: |watched| watched.replica(300, &replica()),
        raises: &[],
    },
    Situation {
        name: "a replica is stopped for 20 seconds",
        play: |watched| {
            watched.replica(60, &replica());
            let threads = ThreadState::Stopped;
            watched.replica(
                20,
                &ReplicaReading { receiver: threads, applier: threads, lag_s: None, ..replica() },
            );
            watched.replica(60, &replica());
        },
        raises: &[],
    },
    Situation {
        name: "a delayed replica is behind as much as it is to be",
        play: |watched| {
            watched.replica(300, &ReplicaReading { lag_s: Some(3_605.0), delay_s: 3_600.0, ..replica() });
        },
        raises: &[],
    },
    Situation {
        name: "a replica is 90 s behind for a minute",
        play: |watched| {
            watched.replica(60, &replica());
            watched.replica(60, &ReplicaReading { lag_s: Some(90.0), ..replica() });
            watched.replica(60, &replica());
        },
        raises: &[],
    },
];

const SPACE: &[Situation] = &[
    Situation {
        name: "a saw-tooth of binary logs whose peak is at 90%, from before it was watched",
        play: |watched| {
            // It is watched from shortly before a purge on.
            watched.disk(2_000, |minute| 80.0 + ((minute + 220.0) % 240.0) / 24.0);
        },
        raises: &[],
    },
    Situation {
        name: "a copy of half an hour",
        play: |watched| {
            watched.disk(400, |minute| 40.0 + (minute - 300.0).clamp(0.0, 25.0));
        },
        raises: &[],
    },
    Situation {
        name: "a growth that takes a month",
        play: |watched| watched.disk(600, |minute| 70.0 + minute / 1_440.0),
        raises: &[],
    },
    Situation {
        name: "a file system that is enlarged",
        play: |watched| {
            watched.step = 60;
            watched.run(3_600, |_, _| crate::support::file_system(100 * GIB, 70 * GIB));
            watched.run(3_600, |_, _| crate::support::file_system(200 * GIB, 71 * GIB));
        },
        raises: &[],
    },
    Situation {
        name: "a file system that is full and read-only",
        play: |watched| {
            watched.run(900, |_, _| {
                let reading = FileSystemReading {
                    mount_point: "/snap/core".to_owned(),
                    size_bytes: GIB,
                    free_bytes: 0,
                    read_only: true,
                };
                ReadingSet { file_systems: vec![reading], ..ReadingSet::default() }
            });
        },
        raises: &[],
    },
    Situation {
        name: "a hundredth of a large file system is free",
        play: |watched| {
            watched.step = 60;
            watched.run(3_600, |_, _| crate::support::file_system(10_000 * GIB, 9_900 * GIB));
        },
        raises: &[],
    },
];

const CHECKS: &[Situation] = &[
    Situation {
        name: "a check that was true at the first look",
        play: |watched| checks(watched, &[found(), found(), found()]),
        raises: &[],
    },
    Situation {
        name: "a check that could not be answered",
        play: |watched| checks(watched, &[CheckVerdict::Fine, CheckVerdict::Unknown, CheckVerdict::Fine]),
        raises: &[],
    },
];

#[test]
fn storage_that_is_well_does_not_alarm() {
    play(STORAGE);
}

#[test]
fn resets_steps_and_gaps_do_not_alarm() {
    play(RESETS);
}

#[test]
fn servers_that_are_well_do_not_alarm() {
    play(SERVERS);
}

#[test]
fn replicas_that_are_well_do_not_alarm() {
    play(REPLICAS);
}

#[test]
fn file_systems_with_room_do_not_alarm() {
    play(SPACE);
}

#[test]
fn checks_that_say_nothing_new_do_not_alarm() {
    play(CHECKS);
}

#[test]
fn there_are_thirty_healthy_situations_and_none_expects_an_alarm() {
    let all = [STORAGE, RESETS, SERVERS, REPLICAS, SPACE, CHECKS].concat();
    assert!(all.len() >= 30, "{} situations", all.len());
    assert!(all.iter().all(|situation| situation.raises.is_empty()));
}

#[test]
fn a_healthy_machine_is_ok_and_not_without_data() {
    let mut watched = crate::support::Watched::new();
    watched.storage(120, Pace::USUAL);
    for rule in ["queue_length", "throttled_volume_iops", "latency", "io_stalled"] {
        assert_eq!(watched.state(rule), Some(AlarmState::Ok), "{rule}");
    }
    watched.server(120, ServerPace::USUAL);
    for rule in ["server_down", "server_hangs", "server_restarted", "redo_nearly_full", "log_waits"] {
        assert_eq!(watched.state(rule), Some(AlarmState::Ok), "{rule}");
    }
}
