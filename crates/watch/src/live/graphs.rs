//! Graphs of the history. Those of the first row: operations, latency, time in logs, main thread.

use ebbtide_history::{DEVICE, Figure, SeriesKey, Store, Tier};

use super::columns::{server_key, storage_key};
use crate::view::{Graph, GraphLine, Range, ServerView, Subject, View};

/// The most storage of a server that its graphs show: more lines are not told apart.
const MOST_STORAGE: usize = 4;
/// The most points of a line, whoever asks: a screen has fewer columns.
const MOST_POINTS: usize = 20_000;
/// The end of the year 9999. Later times are no times of a history.
const LATEST_S: u64 = 253_402_300_800;

/// The history, and what is known of its subjects.
pub(super) struct History<'a> {
    pub(super) store: &'a Store,
    /// The name of the machine that devices are of.
    pub(super) machine: &'a str,
    /// The last view.
    pub(super) view: &'a View,
}

/// A graph, and how its lines are made of the columns of a series.
struct Plot {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    logarithmic: bool,
    lines: &'static [(&'static str, Figures)],
}

/// How a line is made.
#[derive(Debug, Clone, Copy)]
enum Figures {
    /// The growth of a counter a second.
    Rate(&'static str),
    /// A number of the moment.
    Gauge(&'static str),
    /// The growth of a time in nanoseconds, as a share of the time that passed; of a queue's time, the mean queue.
    Share(&'static str),
    /// The growth of a time in nanoseconds, divided by that of a count: the mean time, s.
    Mean(&'static str, &'static str),
}

const OPERATIONS: Plot = Plot {
    key: "iops",
    title: "Operations",
    unit: "/s",
    logarithmic: false,
    lines: &[("reads", Figures::Rate("reads")), ("writes", Figures::Rate("writes"))],
};
const LATENCY: Plot = Plot {
    key: "latency",
    title: "Mean latency",
    unit: "s",
    logarithmic: true,
    lines: &[("read", Figures::Mean("read_time", "reads")), ("write", Figures::Mean("write_time", "writes"))],
};

const SERVER_PLOTS: [Plot; 8] = [
    Plot {
        key: "log-time",
        title: "Time in syncs of logs",
        unit: "share",
        logarithmic: false,
        lines: &[("log", Figures::Gauge("log_time"))],
    },
    Plot {
        key: "main-thread",
        title: "Main thread, active",
        unit: "share",
        logarithmic: false,
        lines: &[("active", Figures::Gauge("main_thread"))],
    },
    Plot {
        key: "statements",
        title: "Statements",
        unit: "/s",
        logarithmic: false,
        lines: &[
            ("statements", Figures::Rate("statements")),
            ("that write", Figures::Rate("write_statements")),
            ("commits", Figures::Rate("commits")),
        ],
    },
    Plot {
        key: "waits",
        title: "Waits",
        unit: "/s",
        logarithmic: false,
        lines: &[
            ("log buffer", Figures::Rate("log_waits")),
            ("free page", Figures::Rate("free_waits")),
            ("row lock", Figures::Rate("row_lock_waits")),
        ],
    },
    Plot {
        key: "redo",
        title: "Redo since the checkpoint",
        unit: "bytes",
        logarithmic: false,
        lines: &[("used", Figures::Gauge("redo_used")), ("capacity", Figures::Gauge("redo_capacity"))],
    },
    Plot {
        key: "pages",
        title: "Pages of the buffer pool",
        unit: "/s",
        logarithmic: false,
        lines: &[("read", Figures::Rate("page_reads")), ("written", Figures::Rate("page_writes"))],
    },
    Plot {
        key: "threads",
        title: "Threads that run a statement",
        unit: "",
        logarithmic: false,
        lines: &[("running", Figures::Gauge("threads_running"))],
    },
    Plot {
        key: "lag",
        title: "Replication lag",
        unit: "s",
        logarithmic: true,
        lines: &[("longest", Figures::Gauge("lag"))],
    },
];

const STORAGE_PLOTS: [Plot; 5] = [
    Plot {
        key: "throughput",
        title: "Throughput",
        unit: "bytes/s",
        logarithmic: false,
        lines: &[("read", Figures::Rate("read_bytes")), ("written", Figures::Rate("written_bytes"))],
    },
    Plot {
        key: "queue",
        title: "Requests in flight",
        unit: "",
        logarithmic: false,
        lines: &[("queue", Figures::Share("queue_time"))],
    },
    Plot {
        key: "throttled",
        title: "Time over a limit",
        unit: "share",
        logarithmic: false,
        lines: &[("throttled", Figures::Share("throttled"))],
    },
    // The same of a device, whose four limits have a column each. A series has one of both.
    Plot {
        key: "throttled",
        title: "Time over a limit",
        unit: "share",
        logarithmic: false,
        lines: &[
            ("volume IOPS", Figures::Share("volume_iops_exceeded")),
            ("volume throughput", Figures::Share("volume_throughput_exceeded")),
            ("instance IOPS", Figures::Share("instance_iops_exceeded")),
            ("instance throughput", Figures::Share("instance_throughput_exceeded")),
        ],
    },
    Plot {
        key: "credits",
        title: "Burst credits left",
        unit: "share",
        logarithmic: false,
        lines: &[("credits", Figures::Gauge("credit_share"))],
    },
];

/// A span of time in steps of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    tier: Tier,
    start_s: u64,
    step_s: u64,
    steps: usize,
}

impl Grid {
    /// The steps of a range: the shortest that give no more points than are wanted, and that the history still has.
    fn new(range: Range, now_ms: u64) -> Option<Self> {
        let (from_s, to_s) = (u64::try_from(range.from_s).ok()?, u64::try_from(range.to_s).ok()?);
        let most = u64::try_from(range.most_points.clamp(1, MOST_POINTS)).ok()?;
        let span_s = to_s.checked_sub(from_s).filter(|span| *span > 0 && to_s < LATEST_S)?;
        let tier = Tier::for_span(&(from_s * 1_000..to_s * 1_000), now_ms, most);
        let points = span_s.div_ceil(tier.seconds());
        let step_s = tier.seconds() * points.div_ceil(most).max(1);
        // A step that began before the range is left out: it would take one point more.
        let start_s = from_s.div_ceil(step_s) * step_s;
        let steps = usize::try_from(to_s.saturating_sub(start_s).div_ceil(step_s).max(1)).ok()?;
        Some(Self { tier, start_s, step_s, steps })
    }

    fn place(&self, start_ms: u64) -> Option<usize> {
        let place = (start_ms / 1_000).checked_sub(self.start_s)? / self.step_s;
        usize::try_from(place).ok().filter(|place| *place < self.steps)
    }
}

/// The graphs of a subject; empty for one that is not known.
pub(super) fn graphs(history: &History<'_>, subject: &Subject, range: Range) -> Vec<Graph> {
    let now_ms = u64::try_from(history.view.unix_s).unwrap_or(0).saturating_mul(1_000);
    let Some(grid) = Grid::new(range, now_ms) else { return Vec::new() };
    match subject {
        Subject::Server(name) => {
            let server = history.view.servers.iter().find(|server| server.name == *name);
            server.map_or_else(Vec::new, |server| server_graphs(history, server, grid))
        }
        Subject::Storage(name) => storage_graphs(history, name, grid),
    }
}

fn server_graphs(history: &History<'_>, server: &ServerView, grid: Grid) -> Vec<Graph> {
    let mut storage: Vec<&str> = Vec::new();
    for (_, name) in &server.files {
        if !storage.contains(&name.as_str()) && storage.len() < MOST_STORAGE {
            storage.push(name);
        }
    }
    let mut graphs: Vec<Graph> = [OPERATIONS, LATENCY]
        .iter()
        .map(|plot| {
            let lines = storage.iter().flat_map(|name| {
                let label =
                    |line: &str| if storage.len() > 1 { format!("{line} {name}") } else { line.to_owned() };
                lines(history, plot, &series(history, name), grid, label)
            });
            graph(plot, lines.collect(), grid)
        })
        .collect();
    let key = server_key(&server.name);
    let own =
        SERVER_PLOTS.iter().map(|plot| graph(plot, lines(history, plot, &key, grid, str::to_owned), grid));
    // The first row is always there; of the others those that the server has.
    graphs.extend(
        own.enumerate().filter(|(place, graph)| *place < 2 || has_values(graph)).map(|(_, graph)| graph),
    );
    graphs
}

fn storage_graphs(history: &History<'_>, name: &str, grid: Grid) -> Vec<Graph> {
    if history.view.storage.iter().all(|storage| storage.name != name) {
        return Vec::new();
    }
    let key = series(history, name);
    let plots = [OPERATIONS, LATENCY].into_iter().chain(STORAGE_PLOTS);
    let graphs = plots.map(|plot| graph(&plot, lines(history, &plot, &key, grid, str::to_owned), grid));
    graphs
        .enumerate()
        .filter(|(place, graph)| *place < 2 || has_values(graph))
        .map(|(_, graph)| graph)
        .collect()
}

/// The series of a volume of Ebbtide's own, or of a device.
fn series(history: &History<'_>, name: &str) -> SeriesKey {
    let is_own = history.view.storage.iter().any(|storage| storage.name == name && storage.exact);
    if is_own {
        return storage_key(name);
    }
    SeriesKey::new(DEVICE, [("device", name.to_owned()), ("host", history.machine.to_owned())])
}

fn graph(plot: &Plot, lines: Vec<GraphLine>, grid: Grid) -> Graph {
    Graph {
        key: plot.key,
        title: plot.title,
        unit: plot.unit,
        logarithmic: plot.logarithmic,
        start_s: i64::try_from(grid.start_s).unwrap_or(i64::MAX),
        step_s: u32::try_from(grid.step_s).unwrap_or(u32::MAX),
        lines,
    }
}

fn has_values(graph: &Graph) -> bool {
    graph.lines.iter().any(|line| line.values.iter().any(Option::is_some))
}

/// The lines of a plot. A history that cannot be read has gaps alone.
fn lines(
    history: &History<'_>,
    plot: &Plot,
    key: &SeriesKey,
    grid: Grid,
    label: impl Fn(&str) -> String,
) -> Vec<GraphLine> {
    let wanted: Vec<(&str, Figure)> = plot.lines.iter().flat_map(|(_, figures)| figures.wanted()).collect();
    let mut means = read(history.store, key, &wanted, grid).into_iter();
    let line = |(name, figures): &(&str, Figures)| GraphLine {
        label: label(name),
        values: figures.values(&mut means, grid.steps),
    };
    plot.lines.iter().map(line).collect()
}

impl Figures {
    /// The figures of the history that a line is made of.
    fn wanted(self) -> Vec<(&'static str, Figure)> {
        match self {
            Self::Rate(column) | Self::Share(column) => vec![(column, Figure::Rate)],
            Self::Gauge(column) => vec![(column, Figure::Mean)],
            Self::Mean(time, count) => vec![(time, Figure::Rate), (count, Figure::Rate)],
        }
    }

    /// The line of the next of the means that were read.
    fn values(self, means: &mut impl Iterator<Item = Vec<Option<f64>>>, steps: usize) -> Vec<Option<f64>> {
        let mut next = || means.next().unwrap_or_else(|| vec![None; steps]);
        let scaled = |values: Vec<Option<f64>>, scale: f64| -> Vec<Option<f64>> {
            values.into_iter().map(|value| Some(value? * scale)).collect()
        };
        match self {
            Self::Rate(_) | Self::Gauge(_) => next(),
            Self::Share(_) => scaled(next(), 1e-9),
            Self::Mean(..) => {
                let (times, counts) = (next(), next());
                let mean = |(time, count): (Option<f64>, Option<f64>)| {
                    Some(time? / count.filter(|count| *count > 0.0)? / 1e9)
                };
                times.into_iter().zip(counts).map(mean).collect()
            }
        }
    }
}

/// The mean of each figure in each step; None where nothing was recorded.
fn read(store: &Store, key: &SeriesKey, wanted: &[(&str, Figure)], grid: Grid) -> Vec<Vec<Option<f64>>> {
    let end_s = grid.start_s + grid.step_s * u64::try_from(grid.steps).unwrap_or(0);
    let found = store.lines(grid.tier, key, wanted, &(grid.start_s * 1_000..end_s * 1_000));
    let Ok(found) = found else { return vec![vec![None; grid.steps]; wanted.len()] };
    let mean_of = |values: &Vec<Option<f64>>| {
        let mut sums = vec![(0.0, 0_u32); grid.steps];
        for (start_ms, value) in found.start_ms.iter().zip(values) {
            if let (Some(place), Some(value)) = (grid.place(*start_ms), value) {
                sums[place].0 += value;
                sums[place].1 += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
    };
    found.values.iter().map(mean_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_shortest_that_keeps_the_points() {
        let now_ms = 1_000_000_000_000;
        let grid = |seconds: i64, most_points| {
            let range = Range { from_s: 1_000_000_000 - seconds, to_s: 1_000_000_000, most_points };
            Grid::new(range, now_ms).unwrap()
        };
        assert_eq!((grid(600, 600).tier, grid(600, 600).step_s), (Tier::Second, 1));
        let day = grid(86_000, 1_440);
        assert_eq!((day.tier, day.step_s), (Tier::Minute, 60));
        let week = grid(7 * 86_400, 1_000);
        assert!(week.step_s % 60 == 0 && week.steps <= 1_000, "{week:?}");
        let year = grid(365 * 86_400, 100);
        assert_eq!(year.tier, Tier::Hour);
        assert!(year.steps <= 100, "{year:?}");
        assert_eq!(Grid::new(Range { from_s: 5, to_s: 5, most_points: 10 }, now_ms), None);
        assert_eq!(Grid::new(Range { from_s: 5, to_s: i64::MAX, most_points: usize::MAX }, now_ms), None);
        assert_eq!(Grid::new(Range { from_s: -5, to_s: 5, most_points: 10 }, now_ms), None);
    }
}
