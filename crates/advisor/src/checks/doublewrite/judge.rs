//! The judgement.

use ebbtide_text::{percent, seconds, whole};
use serde::Serialize;

use super::advice::{Action, advise};
use super::conditions::{Condition, Standing, conditions};
use super::demand::Demand;
use super::figures::{Doublewrite, PageWriteSettings, Storage, Workload};
use super::sources::SOURCES;
use super::verdict::Verdict;
use crate::finding::Source;

/// Name of the check.
const CODE: &str = "optimized-writes";
/// Fewer pages in the interval, and a share of them is uncertain by more than a tenth (the deviation of a
/// count is its root).
pub(super) const FEWEST_PAGES: f64 = 100.0;
/// Fewer statements in the interval, and the server was idle.
pub(super) const FEWEST_STATEMENTS: f64 = 100.0;
/// A smaller ceiling is no gain to look for. Batches that fill their units cost an IOPS-bound volume of EBS
/// one operation for 16 pages, 6%; what is really gained stays below the ceiling, and repeats of one arm
/// differ by as much.
pub(super) const SMALLEST_GAIN: f64 = 1.1;
/// From this share of a limit on, the limit holds the server back: I/O that arrives at random waits on average
/// twice its own time then (`share / 2 / (1 - share)`), and more in every peak.
pub(super) const BUSY: f64 = 0.8;
/// From one wait for a free page in so many statements that change rows on, page writes hold the server back.
pub(super) const WAITING_SHARE: f64 = 0.01;
/// Fewer waits for a free page in the interval are chance.
pub(super) const FEWEST_WAITS: f64 = 100.0;
/// Fewer SELECT statements a second do not make a server one that reads.
pub(super) const FEWEST_READS: f64 = 10.0;
/// More of a limit than this cannot be in use without burst credits (5% for the moments at which counters are
/// read): pages travelled together, or the volume is another one.
pub(super) const MOST_USED: f64 = 1.05;

/// How many times the work that the server does now would fit, at most.
///
/// A server that gets faster may take fewer pages for a transaction (pages that are changed often are written once
/// for more changes), and then gain a little more than that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Where the volume's throughput holds it back.
    pub if_throughput: f64,
    /// Where the volume's operations do, if each page is one.
    pub if_iops: f64,
    /// On the volume that was named, whichever of the two decides there; none where none was.
    pub on_volume: Option<Ceiling>,
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

impl Limit {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Iops => "IOPS",
        }
    }
}

/// The judgement with all that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Always `optimized-writes`.
    pub code: &'static str,
    /// The answer.
    pub verdict: Verdict,
    /// What to do now.
    pub action: Action,
    /// The same, in sentences; for people.
    pub advice: String,
    /// Why the answer is what it is, in sentences; for people.
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
    /// What a power cut does where a condition is not true.
    pub risk: &'static str,
    /// What it costs in money.
    pub cost: &'static str,
    /// What others report.
    pub sources: &'static [Source],
}

impl Candidate {
    /// Whether the buffer is off where a condition is known not to be met.
    #[must_use]
    pub fn is_off_and_unsafe(&self) -> bool {
        self.verdict == Verdict::AlreadyOff && self.conditions.iter().any(|one| one.standing.fails())
    }
}

const UNIT: u64 = 256 << 10;

/// Whether a server is a candidate. Without a volume, the limits that decide are not known, and both ceilings
/// are given; operations are then counted as EBS's SSD volumes do.
#[must_use]
pub fn judge(work: &Workload, settings: &PageWriteSettings, storage: Option<&Storage>) -> Candidate {
    let unit = storage.map_or(UNIT, |storage| storage.unit_bytes);
    let without = Demand::without(work, settings, unit);
    let doublewrite = Demand::of_doublewrite(work, settings, unit);
    let with = without.and(doublewrite);
    let conditions = conditions(settings, storage);
    let counted = settings.doublewrite == Doublewrite::On && without.bytes > 0.0 && without.ios > 0.0;
    let gain = counted.then(|| Gain {
        if_throughput: with.bytes / without.bytes,
        if_iops: with.ios / without.ios,
        on_volume: storage.and_then(|storage| on_volume(with, without, storage)),
    });
    let most = if settings.flush_neighbors == Some(false) {
        Most::of(without, without, doublewrite, storage)
    } else {
        Most::of(without.packed(work, settings.page_bytes, unit), without, doublewrite, storage)
    };
    let (verdict, why) = verdict(work, settings, &conditions, gain.map(|gain| (gain, most)), storage);
    let (action, advice) = advise(verdict, &conditions);
    let batches = work.doublewrite_batches;
    Candidate {
        code: CODE,
        verdict,
        action,
        advice,
        why,
        with,
        without,
        pages_a_batch: (batches > 0.0).then(|| work.doublewrite_pages / batches),
        gain,
        conditions,
        risk: "Where one is not true, a power cut leaves pages half old and half new. Nothing mends them: tables are \
               damaged, or the server does not start. How often: docs/crash.md",
        cost: "None. On RDS, another instance class may cost more.",
        sources: &SOURCES,
    }
}

/// The share of its nearest limit that a demand takes of a volume.
fn nearest(demand: Demand, storage: &Storage) -> Option<(Limit, f64)> {
    let bytes = storage.bytes_s.map(|limit| (Limit::Throughput, demand.bytes / limit));
    let ios = storage.iops.map(|limit| (Limit::Iops, demand.ios / limit));
    bytes.into_iter().chain(ios).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn on_volume(with: Demand, without: Demand, storage: &Storage) -> Option<Ceiling> {
    let ((limit, used), (_, used_without)) = (nearest(with, storage)?, nearest(without, storage)?);
    Some(Ceiling { limit, used, used_without, ceiling: used / used_without })
}

/// What stays true where adjacent pages are written together, however many of them are.
#[derive(Debug, Clone, Copy)]
struct Most {
    /// No less of the volume's nearest limit is in use.
    least_used: f64,
    /// No more fits on it.
    on_volume: f64,
    /// No more fits where operations hold the server back.
    if_iops: f64,
}

impl Most {
    /// Of a demand without the buffer that is between two, which differ in their operations.
    fn of(least: Demand, most: Demand, doublewrite: Demand, storage: Option<&Storage>) -> Self {
        let if_iops = (least.ios + doublewrite.ios) / least.ios;
        let limits = storage.and_then(|storage| Some((storage, storage.iops?)));
        // The quotient falls with the operations where they are the nearest limit without the buffer, and rises
        // with them where they are not: it is largest where both limits are equally near.
        let even = limits.and_then(|(storage, iops)| Some(most.bytes / storage.bytes_s? * iops));
        let worst = Demand { ios: even.map_or(least.ios, |even| even.max(least.ios).min(most.ios)), ..most };
        let at = |demand: Demand| {
            let storage = storage?;
            on_volume(demand.and(doublewrite), demand, storage)
        };
        Self {
            least_used: at(least).map_or(0.0, |volume| volume.used),
            on_volume: at(worst).map_or(if_iops, |volume| volume.ceiling),
            if_iops,
        }
    }
}

fn verdict(
    work: &Workload,
    settings: &PageWriteSettings,
    conditions: &[Condition],
    gain: Option<(Gain, Most)>,
    storage: Option<&Storage>,
) -> (Verdict, String) {
    match settings.doublewrite {
        Doublewrite::Off => return already_off("The doublewrite buffer is off.", conditions),
        Doublewrite::DetectOnly => {
            let what = "innodb_doublewrite is DETECT_ONLY. Pages are written once: a torn one is detected and not restored.";
            return already_off(what, conditions);
        }
        Doublewrite::On => {}
    }
    if let Some(broken) = conditions.iter().find(|one| one.standing == Standing::Broken) {
        return (Verdict::No, format!("It would not be safe: {}.", broken.how));
    }
    if work.page_writes * work.seconds < FEWEST_PAGES {
        return few_pages(work);
    }
    let Some((gain, most)) = gain else { return (Verdict::NotKnown, "Nothing was counted.".into()) };
    let bursts = storage.is_some_and(|storage| storage.bursts);
    match gain.on_volume {
        Some(volume) if volume.used > MOST_USED && !bursts => over_the_volume(volume),
        Some(volume) if volume.used >= BUSY => on_busy_volume(volume, most),
        _ if gain.if_throughput.max(gain.if_iops) < SMALLEST_GAIN => small(work, gain, most),
        Some(volume) => on_idle_volume(volume),
        None => on_unknown_volume(work, gain),
    }
}

fn already_off(what: &str, conditions: &[Condition]) -> (Verdict, String) {
    let why = match conditions.iter().find(|one| one.standing.fails()) {
        Some(one) => format!("{what} That is not safe: {}.", one.how),
        None => what.to_owned(),
    };
    (Verdict::AlreadyOff, why)
}

/// The answer for an interval with hardly a page written.
fn few_pages(work: &Workload) -> (Verdict, String) {
    let pages = whole(work.page_writes * work.seconds);
    let (writes, reads) = (work.write_statements * work.seconds, work.read_statements * work.seconds);
    if writes >= FEWEST_STATEMENTS {
        let why = format!(
            "Rows were changed, and only {pages} pages were written yet. InnoDB writes them later: look for longer."
        );
        return (Verdict::NotKnown, why);
    }
    if writes < 1.0 && reads >= FEWEST_STATEMENTS && work.read_statements >= FEWEST_READS {
        return (Verdict::No, format!("It reads: {pages} pages were written in {}.", seconds(work.seconds)));
    }
    let why = format!(
        "It hardly wrote: {} statements that write, {} that read and {pages} pages written in {}. Look while it writes.",
        whole(writes),
        whole(reads),
        seconds(work.seconds)
    );
    (Verdict::NotKnown, why)
}

fn over_the_volume(volume: Ceiling) -> (Verdict, String) {
    let (used, limit) = (percent(volume.used), volume.limit.name());
    let other = match volume.limit {
        Limit::Throughput => "The volume bursts, or it is another volume.",
        Limit::Iops => {
            "Pages may travel together, so that more fit than these figures show. Or it is another volume."
        }
    };
    (
        Verdict::Perhaps,
        format!("The work comes to {used} of the volume's {limit}, more than there is. {other}"),
    )
}

fn on_busy_volume(volume: Ceiling, most: Most) -> (Verdict, String) {
    let (used, limit, more) = (percent(volume.used), volume.limit.name(), percent(volume.ceiling - 1.0));
    let is_busy = format!("{used} of the volume's {limit} is in use.");
    if most.on_volume < SMALLEST_GAIN {
        let most = percent(most.on_volume - 1.0);
        (
            Verdict::No,
            format!("{is_busy} Without the buffer, at most {most} more of the same work would fit."),
        )
    } else if volume.ceiling >= SMALLEST_GAIN && most.least_used >= BUSY {
        (Verdict::Yes, format!("{is_busy} Without the buffer, up to {more} more of the same work would fit."))
    } else {
        let together = percent(most.on_volume.max(volume.ceiling) - 1.0);
        (Verdict::Perhaps, format!("{is_busy} {}", apart_or_together(&more, &together)))
    }
}

/// What fits more without the buffer, if each page is an operation and if pages travel together.
fn apart_or_together(apart: &str, together: &str) -> String {
    format!(
        "Without the buffer, up to {apart} more of the same work would fit, if each page is an operation. \
         innodb_flush_neighbors is not known to be 0: where pages travel together, up to {together} more."
    )
}

/// Where neither limit, each page being an operation, leaves a gain to look for.
fn small(work: &Workload, gain: Gain, most: Most) -> (Verdict, String) {
    let at_most = gain.if_throughput.max(most.if_iops);
    if waits_for_pages(work) || holds_the_buffer(work) {
        let why = "Threads wait for page writes. Without the buffer they would wait less, and these figures do not \
                   say by how much.";
        return (Verdict::Perhaps, why.into());
    }
    if at_most < SMALLEST_GAIN {
        let most = percent(at_most - 1.0);
        let why = format!(
            "Where the volume's limits hold it back, at most {most} more of the same work would fit."
        );
        return (Verdict::No, why);
    }
    let apart = percent(gain.if_throughput.max(gain.if_iops) - 1.0);
    (Verdict::Perhaps, apart_or_together(&apart, &percent(at_most - 1.0)))
}

/// Whether statements waited until pages were written, too often for chance.
fn waits_for_pages(work: &Workload) -> bool {
    let waits = work.free_page_waits.unwrap_or(0.0);
    waits * work.seconds >= FEWEST_WAITS && waits >= WAITING_SHARE * work.write_statements
}

/// Whether the doublewrite buffer keeps about one thread busy all the time.
fn holds_the_buffer(work: &Workload) -> bool {
    work.doublewrite_wait.unwrap_or(0.0) + work.doublewrite_mutex_wait.unwrap_or(0.0) >= BUSY
}

fn on_idle_volume(volume: Ceiling) -> (Verdict, String) {
    let (used, limit) = (percent(volume.used), volume.limit.name());
    let why = format!(
        "The work that the counters show takes {used} of the volume's {limit}: this limit does not hold the server \
         back. Waits for page writes may get shorter, and these figures do not say by how much. A lower limit of the \
         instance would count too: give it to --volume."
    );
    (Verdict::Perhaps, why)
}

fn on_unknown_volume(work: &Workload, gain: Gain) -> (Verdict, String) {
    let [throughput, iops] = [gain.if_throughput, gain.if_iops].map(|ratio| percent(ratio - 1.0));
    let either = format!(
        "Up to {throughput} more of the same work would fit where throughput is the limit, up to {iops} where IOPS are."
    );
    if waits_for_pages(work) {
        (Verdict::Yes, format!("Page writes hold the server back. {either}"))
    } else {
        (
            Verdict::Perhaps,
            format!("{either} Which limit holds it back is not known: name the volume with --volume."),
        )
    }
}
