//! What `ebbtide load` prints in sysbench's layout, so that scripts that read it go on working: the lines before and while it
//! runs, and the summary, which is a detail of the answer.

use std::fmt::Write as _;

use super::summary::LoadSummary;
use crate::{
    Arrival, Bucket, ClientOptions, LedgerOptions, PrepareOptions, Prepared, Progress, RunOptions, Sample,
    Target, Totals,
};

pub(super) fn endpoints(target: &Target) -> String {
    let list: Vec<String> = target.endpoints.iter().map(ToString::to_string).collect();
    list.join(", ")
}

/// What is loaded, before it is.
#[must_use]
pub fn prepare_header(target: &Target, options: &PrepareOptions) -> String {
    format!(
        "Loading {} at {}: {} tables of {} rows, {} connections\nRandom numbers: {}, seed {}",
        target.database,
        endpoints(target),
        options.schema.tables,
        options.schema.table_size,
        options.threads,
        options.distribution.describe(),
        options.seed
    )
}

/// The status line while tables are loaded.
#[must_use]
pub fn progress(progress: &Progress) -> String {
    let share = 100.0 * progress.rows as f64 / progress.rows_total.max(1) as f64;
    format!(
        "{share:3.0}%  {} of {} rows, {} of {} tables with their index",
        progress.rows, progress.rows_total, progress.tables, progress.tables_total
    )
}

/// What was loaded.
#[must_use]
pub fn prepared(done: &Prepared) -> String {
    let created = if done.database_created { " (the database was created, too)" } else { "" };
    let rate = done.rows as f64 / done.elapsed_s.max(1e-9);
    format!(
        "Loaded {} tables with {} rows in {:.1} s: {rate:.0} rows/s{created}",
        done.tables, done.rows, done.elapsed_s
    )
}

pub(super) fn ledger(text: &mut String, ledger: Option<&LedgerOptions>) {
    if let Some(ledger) = ledger {
        let marks =
            if ledger.marks { "one update more in each transaction" } else { "no marks in the server" };
        let _ = writeln!(text, "Ledger of commits: {} ({marks})", ledger.path.display());
    }
}

/// What runs, before it does.
#[must_use]
pub fn run_header(target: &Target, options: &RunOptions, report_interval: u32) -> String {
    let mut text = format!("Running {} at {}\n", options.workload, endpoints(target));
    clients(&mut text, &options.clients, report_interval);
    ledger(&mut text, options.ledger.as_ref());
    let _ =
        write!(text, "Random numbers: {}, seed {}", options.distribution.describe(), options.clients.seed);
    text
}

pub(super) fn clients(text: &mut String, clients: &ClientOptions, report_interval: u32) {
    let _ = writeln!(text, "Number of threads: {}", clients.connections);
    if !clients.round_trip.is_zero() {
        let _ = writeln!(text, "Emulated network: {:?} a round trip", clients.round_trip);
    }
    match clients.arrival {
        Arrival::Closed => text.push_str("Closed loop: each connection waits for its answer\n"),
        Arrival::Fixed { per_second } => {
            let _ = writeln!(text, "Target transaction rate: {per_second}/sec, at even intervals");
        }
        Arrival::Poisson { per_second } => {
            let _ = writeln!(text, "Target transaction rate: {per_second}/sec, Poisson");
        }
    }
    if report_interval > 0 {
        let _ = writeln!(text, "Report intermediate results every {report_interval} second(s)");
    }
}

/// The status line while a run lasts.
#[must_use]
pub fn live(sample: &Sample, time: f64) -> String {
    let phase = if sample.warmup { "warm-up, " } else { "" };
    let rate = |count: u64| count as f64 / sample.length_s;
    let backlog = if sample.due > 0 { format!("  backlog {}", sample.backlog) } else { String::new() };
    format!(
        "[{phase}{:.0} s of {time:.0} s]  {:.0} tps  {:.0} qps  p95 {:.2} ms  {} errors{backlog}",
        sample.t_s,
        rate(sample.totals.events),
        rate(sample.totals.queries()),
        sample.response.p95_us / 1e3,
        sample.totals.errors
    )
}

/// sysbench's line for an interval.
#[must_use]
pub fn interval(samples: &[Sample], threads: u32, percentile: f64, open: bool) -> String {
    let seconds: f64 = samples.iter().map(|sample| sample.length_s).sum();
    let sum = |of: fn(&Totals) -> u64| {
        samples.iter().map(|sample| of(&sample.totals)).sum::<u64>() as f64 / seconds
    };
    let last = samples.last().expect("an interval has a sample");
    let mut text = format!(
        "[ {:.0}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): \
         {:.2} err/s: {:.2} reconn/s: {:.2}",
        last.t_s,
        sum(|totals| totals.events),
        sum(Totals::queries),
        sum(|totals| totals.reads),
        sum(|totals| totals.writes),
        sum(|totals| totals.other),
        Sample::percentile_of(samples, percentile) / 1e3,
        sum(|totals| totals.errors),
        sum(|totals| totals.reconnects),
    );
    if open {
        let _ = write!(
            text,
            "\n[ {:.0}s ] queue length: {}, concurrency: {}",
            last.t_s, last.backlog, last.in_flight
        );
    }
    text
}

/// sysbench's summary.
pub(super) fn statistics(report: &LoadSummary<'_>) -> String {
    let mut text = String::new();
    let totals = report.totals;
    let rate = |count: u64| if report.elapsed_s > 0.0 { count as f64 / report.elapsed_s } else { 0.0 };
    let ms = |us: f64| us / 1e3;
    let response = report.response;
    let counted =
        |name: &str, count: u64| format!("    {name:<37}{count:<6} ({:.2} per sec.)\n", rate(count));
    text.push_str("SQL statistics:\n    queries performed:\n");
    for (name, count) in [
        ("read:", totals.reads),
        ("write:", totals.writes),
        ("other:", totals.other),
        ("total:", totals.queries()),
    ] {
        let _ = writeln!(text, "        {name:<33}{count}");
    }
    text.push_str(&counted("transactions:", totals.events));
    text.push_str(&counted("queries:", totals.queries()));
    text.push_str(&counted("ignored errors:", totals.errors));
    text.push_str(&counted("reconnects:", totals.reconnects));
    let _ = writeln!(
        text,
        "\nGeneral statistics:\n    total time:                          {:.4}s",
        report.elapsed_s
    );
    let _ = writeln!(text, "    total number of events:              {}\n", totals.events);
    let sum = ms(response.mean_us) * response.count as f64;
    let ordinal = format!("{}th percentile:", report.clients.percentile);
    let _ = writeln!(text, "Latency (ms):");
    let _ = writeln!(text, "         min: {:39.2}", ms(response.min_us));
    let _ = writeln!(text, "         avg: {:39.2}", ms(response.mean_us));
    let _ = writeln!(text, "         max: {:39.2}", ms(response.max_us));
    let _ = writeln!(text, "        {ordinal:>17} {:28.2}", ms(report.percentile_us));
    let _ = writeln!(text, "         sum: {sum:39.2}\n");
    let fair = report.fairness;
    let _ = writeln!(text, "Threads fairness:");
    let _ = writeln!(
        text,
        "    events (avg/stddev):           {:.4}/{:.2}",
        fair.events_mean, fair.events_stddev
    );
    let _ = writeln!(
        text,
        "    execution time (avg/stddev):   {:.4}/{:.2}",
        fair.busy_mean_s, fair.busy_stddev_s
    );
    text
}

/// As sysbench draws it, with steps of 1.8%.
pub(super) fn histogram(buckets: &[Bucket]) -> String {
    let mut text = String::new();
    const WIDTH: f64 = 40.0;
    /// sysbench has 1,024 steps from 0.001 to 100,000 ms.
    const STEP: f64 = 1.018_169;
    let mut steps: Vec<(i32, u64)> = Vec::new();
    for bucket in buckets {
        let place = (bucket.up_to_us.max(1.0).ln() / STEP.ln()).ceil();
        let step = format!("{place:.0}").parse().unwrap_or(i32::MAX);
        match steps.last_mut() {
            Some((last, count)) if *last == step => *count += bucket.count,
            _ => steps.push((step, bucket.count)),
        }
    }
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
    text.push_str("Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n");
    for (step, count) in steps {
        let stars = WIDTH * count as f64 / most;
        let bar: String = (0..40).take_while(|star| f64::from(*star) < stars.round()).map(|_| '*').collect();
        let _ = writeln!(text, "{:12.3} |{bar:<40} {count}", STEP.powi(step) / 1e3);
    }
    text
}
