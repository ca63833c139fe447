//! What it costs to look at requests: the trace, while nobody asks for it and while it is on, and a follower.
//!
//! `cargo bench -p ebbtide-device --bench trace`. Overwrites of 4 KiB on an ideal volume, from one thread; the states
//! take turns in one process, and the median of the rounds counts. A tiny run (`BENCH_TINY=1`, or under `cargo test`)
//! has two short rounds.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant;

use ebbtide_device::clock::{Clock as _, MonotonicClock};
use ebbtide_device::engine::{LiveOptions, LiveVolume};
use ebbtide_device::request::{Command, Reply, Request};
use ebbtide_device::store::{StoreOptions, VolumeStore};
use ebbtide_volume::{Array, Limits};
use tracing::{Level, Subscriber};

const SIZE: u64 = 16 << 20;
const BLOCK: u32 = 4096;

/// The states, in the order of their turns.
const STATES: [&str; 4] = [
    "no subscriber",
    "a subscriber of level info (as serve has)",
    "every request traced, to nowhere",
    "every request kept for shadows or a recording",
];

fn subscriber(level: Level) -> impl Subscriber + Send + Sync {
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::sink).finish()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (rounds, requests) = if ebbtide_testing::tiny() { (2, 500) } else { (41, 20_000) };
    let dir = tempfile::tempdir()?;
    let store = VolumeStore::open(dir.path(), StoreOptions::default())?;
    store.create_volume("bench", SIZE, serde_json::Value::Null)?;
    let limits = Limits::unlimited(SIZE);
    let array = Array::single(limits, MonotonicClock::new().now())?;
    let volume = LiveVolume::start(LiveOptions::new("bench", array, store.open_volume("bench")?, 1))?;
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut observed = Vec::new();
    for _ in 0..rounds {
        for (state, times) in times.iter_mut().enumerate() {
            let run = || nanoseconds_each(requests, |number| overwrite(&volume, number));
            times.push(match state {
                0 => run(),
                1 => tracing::subscriber::with_default(subscriber(Level::INFO), run),
                3 => {
                    volume.observe(true);
                    let each = run();
                    assert_eq!(volume.take_observed(&mut observed), 0);
                    assert_eq!(observed.len() as u64, requests);
                    volume.observe(false);
                    each
                }
                _ => tracing::subscriber::with_default(subscriber(Level::TRACE), run),
            });
        }
    }
    for (name, times) in STATES.iter().zip(&mut times) {
        println!("{name:<46} {:>8.0} ns a request", median(times));
    }
    let check = tracing::subscriber::with_default(subscriber(Level::INFO), || {
        let mut all: Vec<f64> = (0..rounds)
            .map(|_| {
                nanoseconds_each(requests, |_| {
                    black_box(tracing::enabled!(Level::TRACE));
                })
            })
            .collect();
        median(&mut all)
    });
    println!("{:<44} {check:>8.2} ns, of which a request has three", "one look whether a trace is wanted");
    volume.stop()?;
    Ok(())
}

fn overwrite(volume: &LiveVolume, number: u64) {
    let (answer, answered) = mpsc::sync_channel(1);
    let mut data = volume.buffer(BLOCK);
    data.fill(1);
    volume.submit(Request {
        command: Command::Write,
        offset: number * u64::from(BLOCK) % SIZE,
        len: BLOCK,
        fua: false,
        data: Some(data),
        reply: Reply::callback(move |outcome| answer.send(outcome.is_ok()).unwrap()),
    });
    assert!(answered.recv().unwrap());
}

fn nanoseconds_each(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..count).for_each(&mut work);
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
