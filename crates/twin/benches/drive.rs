//! How many I/Os a second of one core's time the simulator drives, and that a day at 3,000 IOPS stays within
//! 20 s and takes no more memory than an hour. Run with `cargo bench -p ebbtide-twin`.
//!
//! Times are processor time where the system reports it, since other programs on the machine are no fault of
//! the simulator.
//!
//! An argument gives the millions of I/Os of each case (default 10); `trace` has traces and shadows alone. A tiny run (`BENCH_TINY=1`, or under
//! `cargo test`) does a thousandth of everything.

use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;

use ebbtide_twin::trace::{Options, Trace};
use ebbtide_twin::{
    Interval, Observer, Outcome, Percentiles, ReplaySetup, Setup, Shadow, Workload, fio, replay, simulate,
};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, GIB, Io, Limits, MIB, Merge, Nanos, Op, QuantileCurve,
    RateLimit, ServiceTimes,
};

use ebbtide_testing::Time;

struct Ignore;

impl Observer for Ignore {
    fn interval(&mut self, _: usize, _: &Interval, _: &Percentiles) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn gp3() -> Limits {
    let curve = QuantileCurve::new(vec![
        (0, 300_000),
        (500_000, 500_000),
        (990_000, 1_200_000),
        (999_000, 4_000_000),
        (1_000_000, 20_000_000),
    ])
    .expect("the points rise");
    Limits {
        size_bytes: 100 * GIB,
        iops: Some(RateLimit { allowance: 3_000, ..RateLimit::flat(3_000) }),
        throughput: Some(RateLimit::flat(125 * MIB)),
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
    }
}

/// Seconds of one core that a day of virtual time may take.
const DAY_LIMIT_S: f64 = 20.0;
/// Requests of a trace that are read in a second of one core, at least.
const READ_PER_S: f64 = 5e6;
/// The same, read and replayed on a gp3 volume.
const REPLAYED_PER_S: f64 = 5e6;
/// Processor time that an I/O may take on a shadow, ns.
const SHADOW_NS: f64 = 2_000.0;
/// Growth of memory from an hour to a day that counts as none, in KiB: the allocator's own.
const GROWTH_KIB: u64 = 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = !ebbtide_testing::tiny();
    let millions = arguments.iter().filter_map(|arg| arg.parse().ok()).next().unwrap_or(10_u64);
    let ios = millions * if whole { 1_000_000 } else { 1_000 };
    let unlimited = Limits { iops: None, throughput: None, ..gp3() };
    let (read, trace) = replayed(ios / 5, &unlimited);
    let shadow = shadowed(ios / 5);
    assert!(
        !whole || read >= READ_PER_S,
        "a trace is read at {read:.0} requests a second, under {READ_PER_S:.0}"
    );
    assert!(
        !whole || trace >= REPLAYED_PER_S,
        "a trace is read and replayed on gp3 at {trace:.0} requests a second, under {REPLAYED_PER_S:.0}"
    );
    assert!(
        !whole || shadow <= SHADOW_NS,
        "an I/O takes {shadow:.0} ns of processor on a shadow, over {SHADOW_NS:.0}"
    );
    if arguments.iter().any(|word| word == "trace") {
        return;
    }
    let cases = [
        ("gp3 at its cap, depth 64", gp3(), "rw=randread,bs=16k,iodepth=64"),
        ("gp3 at its cap, 32 clones, mixed", gp3(), "rw=randrw,bs=4k,iodepth=32,numjobs=32"),
        ("gp3 below its cap, depth 1", gp3(), "rw=randread,bs=16k"),
        ("gp3 below its cap, open loop", gp3(), "rw=randread,bs=16k,rate_iops=2000"),
        ("no limits, depth 64", unlimited.clone(), "rw=randread,bs=16k,iodepth=64"),
    ];
    for (name, limits, words) in cases {
        let mut workload = fio::parse_words(words, &fio::Nothing).expect("the words are fio's");
        let clones = u64::from(workload.jobs[0].clones);
        workload.jobs[0].amount = Some(u64::MAX);
        workload.jobs[0].max_ios = Some(ios / clones);
        run(name, limits, &workload);
    }
    let (hour, day) = if whole { (3_600, 86_400) } else { (4, 86) };
    let of_time = |seconds: u64| {
        let words = format!("rw=randread,bs=16k,iodepth=64,runtime={seconds}");
        fio::parse_words(&words, &fio::Nothing).expect("the words are fio's")
    };
    run("an hour at 3,000 IOPS", gp3(), &of_time(hour));
    let before = peak_kib();
    let took = run("a day at 3,000 IOPS", gp3(), &of_time(day));
    let grown = peak_kib().saturating_sub(before);
    println!(
        "a day took {took:.2} s of one core, of at most {DAY_LIMIT_S} s, and {grown} KiB more memory than an hour"
    );
    assert!(took < DAY_LIMIT_S, "a day at 3,000 IOPS must stay below {DAY_LIMIT_S} s");
    assert!(grown <= GROWTH_KIB, "memory must not grow with simulated time");
}

/// Reads traces of so many requests, 2,000 a second, and replays them on a gp3 volume, and the one of MSR on a volume without
/// limits, too; prints the speed of each. Returns the lowest of reading alone and of reading and replaying on gp3, both in
/// one thread, requests a second. blkparse's text has two lines for each request: it is in neither.
fn replayed(requests: u64, unlimited: &Limits) -> (f64, f64) {
    let speed = |name: &str, took: f64| {
        println!("{name:34} {:6.2} million requests a second ({took:.2} s)", requests as f64 / took / 1e6);
        requests as f64 / took
    };
    let (mut least_read, mut least_on_gp3) = (f64::INFINITY, f64::INFINITY);
    for (name, counts, line) in FORMATS {
        let mut text = Vec::new();
        if name == "fio" {
            text.extend_from_slice(b"fio version 3 iolog\n0 /dev/vdb add\n0 /dev/vdb open\n");
        }
        for number in 0..requests {
            // Spread over 64 GiB.
            let page = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42;
            line(&mut text, number, page * 16_384, number % 4 == 0).expect("memory takes it");
        }
        let trace = || Trace::open(&text[..], &Options::default()).expect("it is a trace");
        let setup = |limits: Limits| {
            let volumes = vec![Array::single(limits, Nanos::ZERO).expect("the limits are valid")];
            ReplaySetup { volumes, instance: None, seed: 1, interval: Nanos::SECOND }
        };
        let all = |outcome: Outcome| assert_eq!(outcome.volumes[0].totals().all().ios, requests);
        // The names of the first one are those of earlier versions of this bench.
        let of = if name == "MSR" { String::new() } else { format!(" of {name}") };
        let began = Time::now();
        assert_eq!(trace().filter(Result::is_ok).count() as u64, requests);
        let read = speed(&format!("a trace{of}, read alone"), began.seconds());
        let began = Time::now();
        all(replay(setup(gp3()), &mut trace(), &mut Ignore).expect("the trace is replayed"));
        let on_gp3 = speed(&format!("a trace{of} on gp3"), began.seconds());
        if counts {
            (least_read, least_on_gp3) = (least_read.min(read), least_on_gp3.min(on_gp3));
        }
        if name == "MSR" {
            let began = Time::now();
            all(replay(setup(unlimited.clone()), &mut trace(), &mut Ignore).expect("the trace is replayed"));
            speed("a trace on a volume without limits", began.seconds());
        }
    }
    (least_read, least_on_gp3)
}

/// Writes a request in a format: its number, its offset and whether it is a write.
type WriteLine = fn(&mut Vec<u8>, u64, u64, bool) -> io::Result<()>;

/// Formats, whether their speed is promised, and their lines.
const FORMATS: [(&str, bool, WriteLine); 4] =
    [("MSR", true, msr), ("Alibaba", true, alibaba), ("fio", true, iolog), ("blkparse", false, blkparse)];

fn msr(text: &mut Vec<u8>, number: u64, offset: u64, write: bool) -> io::Result<()> {
    let at = 128_166_372_000_000_000 + number * 5_000;
    writeln!(text, "{at},host,0,{},{offset},16384,5000", if write { "Write" } else { "Read" })
}

fn alibaba(text: &mut Vec<u8>, number: u64, offset: u64, write: bool) -> io::Result<()> {
    let at = 1_577_808_000_000_046 + number * 500;
    writeln!(text, "419,{},{offset},16384,{at}", if write { "W" } else { "R" })
}

fn iolog(text: &mut Vec<u8>, number: u64, offset: u64, write: bool) -> io::Result<()> {
    writeln!(text, "{} /dev/vdb {} {offset} 16384", number * 500, if write { "write" } else { "read" })
}

fn blkparse(text: &mut Vec<u8>, number: u64, offset: u64, write: bool) -> io::Result<()> {
    for (half, action) in [(0, "D"), (1, "C")] {
        let at = number * 500_000 + half * 300_000;
        let (s, ns, pid) = (at / 1_000_000_000, at % 1_000_000_000, 700 * (1 - half));
        let (sequence, side) = (number * 2 + half, if write { "WS" } else { "R" });
        let sector = offset / 512;
        writeln!(
            text,
            "  8,0    3 {sequence:8} {s:5}.{ns:09} {pid:5}  {action}  {side:>2} {sector} + 32 [mysqld]"
        )?;
    }
    Ok(())
}

/// Feeds shadows with random I/O at 2,500 a second, and prints what one I/O costs on each; the most, ns.
fn shadowed(ios: u64) -> f64 {
    let mut most = 0.0_f64;
    for (name, limits) in
        [("a shadow, gp3", gp3()), ("a shadow, gp3 without limits", Limits { iops: None, ..gp3() })]
    {
        let array = Array::single(limits, Nanos::ZERO).expect("the limits are valid");
        let mut shadow = Shadow::new(array, None, 1);
        let began = Time::now();
        for number in 0..ios {
            let page = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42;
            let op = if number % 4 == 0 { Op::Write } else { Op::Read };
            shadow.submit(Nanos(number * 400_000), Io { op, offset: page * 16_384, len: 16_384 });
        }
        let took = began.seconds() * 1e9 / ios as f64;
        println!("{name:34} {took:6.0} ns of processor an I/O");
        most = most.max(took);
        assert_eq!(shadow.latencies().read.count() + shadow.latencies().write.count(), ios);
    }
    most
}

/// Runs one case and prints its speed; the seconds that it took.
fn run(name: &str, limits: Limits, workload: &Workload) -> f64 {
    let volumes = vec![Array::single(limits, Nanos::ZERO).expect("the limits are valid")];
    let setup = Setup { volumes, instance: None, workload, seed: 1, interval: Nanos::SECOND };
    let began = Time::now();
    let outcome = simulate(setup, &mut Ignore).expect("the workload runs");
    let took = began.seconds();
    let ios = outcome.volumes[0].totals().all().ios as f64;
    let virtual_s = outcome.duration.as_secs_f64();
    println!("{name:34} {:6.2} million I/Os a second ({took:.2} s for {virtual_s:.0} s)", ios / took / 1e6);
    took
}

/// The most memory that this process has held, where the system reports.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
