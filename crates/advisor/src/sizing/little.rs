//! Little's law: whether queue, operations and latency of a record agree.
//!
//! It holds over a time that is long against the latency. A tool counts the time of a request when it ends, and the queue while
//! it waits: at the edges of a short sample the two are not of the same requests. So it is judged over windows.

use ebbtide_observe::{LoadInterval, VolumeLoad};
use serde::Serialize;

/// Little's law: the mean queue is the operations a second times the mean time of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LittlesLaw {
    /// Percent of the time in which the queue is within 20%, or within half a request, of operations times latency. It is
    /// judged over windows of at least 100 times the mean latency.
    pub agrees_pct: f64,
    /// The longest of these windows, s; of intervals that are longer, the longest interval.
    pub window_s: f64,
    /// The mean queue.
    pub queue: f64,
    /// Operations a second times the mean time of one, the mean over time.
    pub expected: f64,
}

/// Two figures that differ by less agree.
const AGREES: f64 = 0.2;
/// Percent of the time in which figures have to agree.
const AGREES_MOSTLY: f64 = 90.0;
/// Means of the whole record that differ by less agree, whatever shorter windows have.
const MEANS_AGREE: f64 = 0.01;
/// Requests by which a mean queue may differ whatever its size: what is sampled is not exact.
const QUEUE_NEAR: f64 = 0.5;
/// A window is so many times its mean latency. What is in flight at its two edges is then at most 2% of its requests.
const LATENCIES: f64 = 100.0;
/// Intervals that are further apart are not of one window, s.
const APART: f64 = 0.5;

impl LittlesLaw {
    /// Whether they agree in nine tenths of the time, or over the whole record to a hundredth.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let apart = (self.queue - self.expected).abs();
        self.agrees_pct >= AGREES_MOSTLY || apart <= MEANS_AGREE * self.queue.max(self.expected)
    }
}

/// What a queue may be too high by: tools print two decimals.
const QUEUE_ROUNDED: f64 = 0.005;

/// Mean times of a read and a write of an interval, s, as they were recorded: where one is not, that of the queue by Little's law,
/// which does not tell the two apart. None where neither says it, and without such a request.
pub(super) fn measured_times_s(interval: &LoadInterval) -> [Option<f64>; 2] {
    let (ios, queue) = (interval.ios(), interval.queue);
    let queued = queue.filter(|_| ios > 0.0).map(|queue| (queue - QUEUE_ROUNDED).max(0.0) / ios);
    let time = |number: f64, mean: Option<f64>| mean.or(queued).filter(|_| number > 0.0);
    [time(interval.reads, interval.read_s), time(interval.writes, interval.write_s)]
}

/// The mean time of an operation of an interval, s, from the same.
pub(super) fn measured_latency_s(interval: &LoadInterval) -> Option<f64> {
    let [read_s, write_s] = measured_times_s(interval);
    LoadInterval { read_s, write_s, ..*interval }.latency_s()
}

/// Sums over a time without gaps.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    seconds: f64,
    /// Queue times seconds.
    queued: f64,
    /// Requests times the time of one, s.
    waited: f64,
    requests: f64,
    /// The longest mean queue of one of its intervals: at most so much was in flight at an edge, in the mean of it.
    most: f64,
    ends_s: f64,
}

impl Window {
    /// None where queue or latency are not known.
    fn of(interval: &LoadInterval) -> Option<Self> {
        let waited = if interval.ios() > 0.0 { interval.ios() * interval.latency_s()? } else { 0.0 };
        let queue = interval.queue?;
        let seconds = interval.seconds;
        Some(Self {
            seconds,
            queued: queue * seconds,
            waited: waited * seconds,
            requests: interval.ios() * seconds,
            most: queue,
            ends_s: interval.end_s(),
        })
    }

    fn and(self, later: Self) -> Self {
        Self {
            seconds: self.seconds + later.seconds,
            queued: self.queued + later.queued,
            waited: self.waited + later.waited,
            requests: self.requests + later.requests,
            most: self.most.max(later.most),
            ends_s: later.ends_s,
        }
    }

    /// The mean time of a request, s; 0 without one.
    fn latency_s(&self) -> f64 {
        if self.requests > 0.0 { self.waited / self.requests } else { 0.0 }
    }

    /// Whether it is long against the time of its requests. A window in which none ended may be within one of them.
    fn is_long(&self) -> bool {
        let idle = self.queued <= QUEUE_NEAR * self.seconds;
        (self.requests > 0.0 || idle) && self.seconds >= LATENCIES * self.latency_s()
    }

    fn agrees(&self) -> bool {
        let (queue, expected) = (self.queued / self.seconds, self.waited / self.seconds);
        // Of a record that is shorter than a window should be, what was in flight at its edges shows.
        let edges = self.most * self.latency_s() / self.seconds;
        let near = QUEUE_NEAR.max(AGREES * queue.max(expected)).max(edges.min(expected));
        (queue - expected).abs() <= near
    }
}

/// Little's law in a load; None where queue or latency are not known.
pub(super) fn littles_law(load: &VolumeLoad) -> Option<LittlesLaw> {
    let windows = windows(load);
    let record = windows.iter().copied().reduce(Window::and).filter(|record| record.seconds > 0.0)?;
    let agrees: f64 = windows.iter().filter(|window| window.agrees()).map(|window| window.seconds).sum();
    Some(LittlesLaw {
        agrees_pct: agrees / record.seconds * 100.0,
        window_s: windows.iter().map(|window| window.seconds).fold(0.0, f64::max),
        queue: record.queued / record.seconds,
        expected: record.waited / record.seconds,
    })
}

/// The record in windows that are long against their latency; a short rest belongs to the window before it, where there is no gap.
fn windows(load: &VolumeLoad) -> Vec<Window> {
    let mut closed: Vec<Window> = Vec::new();
    let mut open: Option<Window> = None;
    // Where the run of intervals without a gap begins.
    let mut begun = 0;
    let close = |open: &mut Option<Window>, begun: usize, closed: &mut Vec<Window>| {
        let Some(rest) = open.take() else { return };
        match closed[begun..].last_mut() {
            Some(last) => *last = last.and(rest),
            None => closed.push(rest),
        }
    };
    let mut ends_s = None;
    for interval in &load.intervals {
        let next = Window::of(interval);
        if next.is_none() || ends_s.is_some_and(|end: f64| interval.start_s - end > APART) {
            close(&mut open, begun, &mut closed);
            begun = closed.len();
        }
        ends_s = Some(interval.end_s());
        let Some(next) = next else { continue };
        let window = open.take().map_or(next, |window| window.and(next));
        if window.is_long() {
            closed.push(window);
        } else {
            open = Some(window);
        }
    }
    close(&mut open, begun, &mut closed);
    closed
}
