//! The judgement.

use serde::Serialize;

use super::conditions::{Condition, Standing, conditions};
use super::demand::Demand;
use super::figures::{Doublewrite, Settings, Storage, Workload};
use super::sources::{SOURCES, Source};

/// Fewer pages in the interval, and a share of them is uncertain by more than a tenth (the deviation of a
/// count is its root).
pub const FEWEST_PAGES: f64 = 100.0;
/// Fewer statements in the interval, and the server was idle.
pub const FEWEST_STATEMENTS: f64 = 100.0;
/// A smaller ceiling is no gain to look for. Batches that fill their units cost an IOPS-bound volume of EBS
/// one operation for 16 pages, 6%; what is really gained stays below the ceiling, and repeats of one arm
/// differ by as much.
pub const SMALLEST_GAIN: f64 = 1.1;
/// From this share of a limit on, the limit holds the server back: I/O that arrives at random waits on average
/// twice its own time then (`share / 2 / (1 - share)`), and more in every peak.
pub const BUSY: f64 = 0.8;
/// From one wait for a free page in so many statements that change rows on, page writes hold the server back.
pub const WAITING_SHARE: f64 = 0.01;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Page writes hold the server back, and it would have fewer of them.
    Yes,
    /// It would have fewer page writes, and they are not known to hold it back.
    Perhaps,
    /// There is nothing to gain, or it must not be.
    No,
    /// The doublewrite buffer is off.
    AlreadyOff,
    /// The interval does not tell.
    NotKnown,
}

/// How many times the work that the server does now would fit, at most.
///
/// A server that gets faster may take fewer pages for a transaction (pages that are changed often are written once
/// for more changes), and then gain a little more than that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Where the volume's throughput holds it back.
    pub if_throughput: f64,
    /// Where the volume's operations do.
    pub if_iops: f64,
    /// On the volume that was named, whichever of the two decides there; none where none was.
    pub on_volume: Option<Ceiling>,
}

impl Gain {
    /// The largest where a limit of the volume decides, as far as the volume is known.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        self.on_volume.map_or(self.if_throughput.max(self.if_iops), |volume| volume.ceiling)
    }
}

/// What a volume with limits makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ceiling {
    /// The limit that is nearest.
    pub limit: Limit,
    /// Share of it in use; over 1 on burst credits.
    pub used: f64,
    /// Share of the nearest limit in use without the doublewrite buffer, at the same pace.
    pub used_without: f64,
    /// How many times as much the volume carries without it: `used / used_without`.
    pub ceiling: f64,
}

/// A limit of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Bytes a second.
    Throughput,
    /// Operations a second.
    Iops,
}

/// The judgement with all that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Always `optimized-writes`.
    pub code: &'static str,
    /// The answer.
    pub verdict: Verdict,
    /// Why, in a sentence; for people.
    pub why: String,
    /// What the server takes of its storage a second, with the doublewrite buffer.
    pub with: Demand,
    /// The same work without it.
    pub without: Demand,
    /// Pages that share a doublewrite batch; none without batches.
    pub pages_a_batch: Option<f64>,
    /// Upper bounds of what can be gained; none where there is nothing to count.
    pub gain: Option<Gain>,
    /// What has to be true.
    pub conditions: Vec<Condition>,
    /// What to do.
    pub fix: &'static str,
    /// What a power cut does where a condition is not true.
    pub risk: &'static str,
    /// What it costs in money.
    pub cost: &'static str,
    /// What others report.
    pub sources: &'static [Source],
}

const UNIT: u64 = 256 << 10;

/// Whether a server is a candidate. Without a volume, the limits that decide are not known, and both ceilings
/// are given; operations are then counted as EBS's SSD volumes do.
#[must_use]
pub fn judge(work: &Workload, settings: &Settings, storage: Option<&Storage>) -> Candidate {
    let unit = storage.map_or(UNIT, |storage| storage.unit_bytes);
    let without = Demand::without(work, settings.page_bytes, unit);
    let doublewrite = Demand::of_doublewrite(work, settings.page_bytes, unit);
    let with = without.and(doublewrite);
    let conditions = conditions(settings, storage);
    let counted = settings.doublewrite == Doublewrite::On && without.bytes > 0.0 && without.ios > 0.0;
    let gain = counted.then(|| Gain {
        if_throughput: with.bytes / without.bytes,
        if_iops: with.ios / without.ios,
        on_volume: storage.and_then(|storage| on_volume(with, without, storage)),
    });
    let (verdict, why) = verdict(work, settings, &conditions, gain.as_ref());
    let batches = work.doublewrite_batches;
    Candidate {
        code: "optimized-writes",
        verdict,
        why,
        with,
        without,
        pages_a_batch: (batches > 0.0).then(|| work.doublewrite_pages / batches),
        gain,
        conditions,
        fix: "innodb_doublewrite = OFF and a restart; on RDS an instance class and storage with Optimized Writes",
        risk: "Where one of these is not true, a power cut leaves pages half old and half new, and nothing mends \
               them: tables are damaged or the server does not start. How often: docs/crash.md",
        cost: "none",
        sources: &SOURCES,
    }
}

fn on_volume(with: Demand, without: Demand, storage: &Storage) -> Option<Ceiling> {
    let nearest = |demand: Demand| {
        let bytes = storage.bytes_s.map(|limit| (Limit::Throughput, demand.bytes / limit));
        let ios = storage.iops.map(|limit| (Limit::Iops, demand.ios / limit));
        bytes.into_iter().chain(ios).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ((limit, used), (_, used_without)) = (nearest(with)?, nearest(without)?);
    Some(Ceiling { limit, used, used_without, ceiling: used / used_without })
}

fn verdict(
    work: &Workload,
    settings: &Settings,
    conditions: &[Condition],
    gain: Option<&Gain>,
) -> (Verdict, String) {
    match settings.doublewrite {
        Doublewrite::Off => return (Verdict::AlreadyOff, "the doublewrite buffer is off".into()),
        Doublewrite::DetectOnly => {
            let why = "innodb_doublewrite is DETECT_ONLY: pages are written once, and a torn one would be \
                       known and not mended";
            return (Verdict::AlreadyOff, why.into());
        }
        Doublewrite::On => {}
    }
    if let Some(broken) = conditions.iter().find(|one| one.standing == Standing::Broken) {
        return (Verdict::No, format!("it would not be safe: {}", broken.how));
    }
    if work.page_writes * work.seconds < FEWEST_PAGES {
        return few_pages(work);
    }
    let Some(gain) = gain else { return (Verdict::NotKnown, "nothing was counted".into()) };
    match gain.on_volume {
        Some(volume) if volume.used >= BUSY => on_busy_volume(volume),
        _ if gain.if_throughput.max(gain.if_iops) < SMALLEST_GAIN => {
            let most = percent(gain.if_throughput.max(gain.if_iops));
            (
                Verdict::No,
                format!("whatever holds it back, at most {most} more of its work would fit without it"),
            )
        }
        Some(volume) => on_idle_volume(volume),
        None => on_unknown_volume(work, gain),
    }
}

/// What an interval with hardly a page written says.
fn few_pages(work: &Workload) -> (Verdict, String) {
    let statements = |rate: f64| rate * work.seconds >= FEWEST_STATEMENTS;
    let pages = work.page_writes * work.seconds;
    if statements(work.write_statements) {
        let why = format!(
            "rows were changed, and only {pages:.0} pages were written yet: InnoDB writes them later. Look for longer"
        );
        return (Verdict::NotKnown, why);
    }
    if statements(work.read_statements) {
        return (Verdict::No, format!("it reads: {pages:.0} pages were written in {:.0} s", work.seconds));
    }
    let why = format!(
        "the server was idle: {:.0} statements and {pages:.0} pages written in {:.0} s. Look while it works",
        (work.write_statements + work.read_statements) * work.seconds,
        work.seconds
    );
    (Verdict::NotKnown, why)
}

fn on_busy_volume(volume: Ceiling) -> (Verdict, String) {
    let (used, limit, more) = (volume.used * 100.0, limit(volume.limit), percent(volume.ceiling));
    let is_busy = format!("{used:.0}% of the volume's {limit} is in use");
    if volume.ceiling < SMALLEST_GAIN {
        (Verdict::No, format!("{is_busy}, and at most {more} more of its work would fit without it"))
    } else {
        (Verdict::Yes, format!("{is_busy}; up to {more} more of its work would fit without it"))
    }
}

fn on_idle_volume(volume: Ceiling) -> (Verdict, String) {
    let (used, limit) = (volume.used * 100.0, limit(volume.limit));
    let why = format!(
        "only {used:.0}% of the volume's {limit} is in use: what could be gained are shorter waits, which these \
         figures do not bound"
    );
    (Verdict::Perhaps, why)
}

fn on_unknown_volume(work: &Workload, gain: &Gain) -> (Verdict, String) {
    let [throughput, iops] = [gain.if_throughput, gain.if_iops].map(percent);
    let either = format!(
        "up to {throughput} more of its work would fit where the volume's throughput holds it back, up to {iops} where \
         its IOPS do"
    );
    let waits = work.free_page_waits.unwrap_or(0.0);
    if waits > 0.0 && waits >= WAITING_SHARE * work.write_statements {
        (Verdict::Yes, format!("page writes hold it back; {either}"))
    } else {
        (Verdict::Perhaps, format!("{either}; what does is not known"))
    }
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Throughput => "throughput",
        Limit::Iops => "IOPS",
    }
}

/// `43%` for 1.43.
fn percent(ratio: f64) -> String {
    let more = (ratio - 1.0) * 100.0;
    if more < 9.95 { format!("{more:.1}%") } else { format!("{more:.0}%") }
}
