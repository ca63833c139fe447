//! What `ebbtide load` prints: sysbench's layout first, so that scripts that read it go on working,
//! then what sysbench does not report.

use std::fmt::Write as _;

use ebbtide_load::{
    Arrival, Bucket, ClientOptions, ClientUse, Ended, ErrorCount, Fairness, Generator, Latency,
    LedgerOptions, Omission, OpenLoop, Outcome, PrepareOptions, Prepared, Progress, RunOptions, RunReport,
    Sample, ServerInfo, StatementLatency, Target, Totals,
};

/// What a summary shows, whatever the workload was.
pub(super) struct LoadSummary<'a> {
    pub(super) server: &'a ServerInfo,
    pub(super) ended: &'a Ended,
    pub(super) elapsed_s: f64,
    pub(super) totals: &'a Totals,
    pub(super) response: &'a Latency,
    /// Which percentile is in sysbench's lines, and what it is, us.
    pub(super) percentile: f64,
    pub(super) percentile_us: f64,
    pub(super) service: Option<&'a Latency>,
    pub(super) omission: Option<&'a Omission>,
    pub(super) open_loop: Option<&'a OpenLoop>,
    pub(super) generator: &'a Generator,
    pub(super) client: &'a ClientUse,
    pub(super) fairness: &'a Fairness,
    pub(super) statements: &'a [StatementLatency],
    pub(super) errors: &'a [ErrorCount],
    pub(super) ledger_records: u64,
    pub(super) histogram: &'a [Bucket],
}

/// The fields that the report of a run and the outcome of an execution have both.
macro_rules! load_summary {
    ($of:expr, $percentile:expr, $ledger_records:expr) => {
        LoadSummary {
            server: &$of.server,
            ended: &$of.ended,
            elapsed_s: $of.elapsed_s,
            totals: &$of.totals,
            response: &$of.response,
            percentile: $percentile,
            percentile_us: $of.percentile_us,
            service: $of.service.as_ref(),
            omission: $of.omission.as_ref(),
            open_loop: $of.open_loop.as_ref(),
            generator: &$of.generator,
            client: &$of.client,
            fairness: &$of.fairness,
            statements: &$of.statements,
            errors: &$of.errors,
            ledger_records: $ledger_records,
            histogram: &$of.histogram,
        }
    };
}

impl<'a> LoadSummary<'a> {
    pub(super) fn of_run(report: &'a RunReport) -> Self {
        load_summary!(report, report.options.clients.percentile, report.ledger_records)
    }

    pub(super) fn of_outcome(outcome: &'a Outcome, percentile: f64, ledger_records: u64) -> Self {
        load_summary!(outcome, percentile, ledger_records)
    }
}

pub(super) fn endpoints(target: &Target) -> String {
    let list: Vec<String> = target.endpoints.iter().map(ToString::to_string).collect();
    list.join(", ")
}

pub(super) fn prepare_header(target: &Target, options: &PrepareOptions) -> String {
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

pub(super) fn progress(progress: &Progress) -> String {
    let share = 100.0 * progress.rows as f64 / progress.rows_total.max(1) as f64;
    format!(
        "{share:3.0}%  {} of {} rows, {} of {} tables with their index",
        progress.rows, progress.rows_total, progress.tables, progress.tables_total
    )
}

pub(super) fn prepared(done: &Prepared) -> String {
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

pub(super) fn run_header(target: &Target, options: &RunOptions, report_interval: u32) -> String {
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
pub(super) fn live(sample: &Sample, time: f64) -> String {
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
pub(super) fn interval(samples: &[Sample], threads: u32, percentile: f64, open: bool) -> String {
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

pub(super) fn summary(report: &LoadSummary<'_>, histogram: bool) -> String {
    let mut text = String::new();
    if histogram {
        print_histogram(&mut text, report.histogram);
    }
    statistics(&mut text, report);
    percentiles(&mut text, report);
    statements(&mut text, report);
    errors(&mut text, report);
    arrivals(&mut text, report);
    generator(&mut text, report);
    ended(&mut text, report);
    text.truncate(text.trim_end().len());
    text
}

fn statistics(text: &mut String, report: &LoadSummary<'_>) {
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
    let ordinal = format!("{}th percentile:", report.percentile);
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
        "    execution time (avg/stddev):   {:.4}/{:.2}\n",
        fair.busy_mean_s, fair.busy_stddev_s
    );
}

fn percentiles(text: &mut String, report: &LoadSummary<'_>) {
    let _ = writeln!(
        text,
        "{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "Percentiles (ms):", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"
    );
    let mut row = |name: &str, of: &Latency| {
        let _ = write!(text, "    {name:<22}");
        for us in [of.p50_us, of.p90_us, of.p95_us, of.p99_us, of.p99_9_us, of.p99_99_us, of.max_us] {
            let _ = write!(text, "{:>10.3}", us / 1e3);
        }
        text.push('\n');
    };
    match (report.service, report.omission) {
        (Some(service), _) => {
            row("from the intended start", report.response);
            row("service time", service);
        }
        (None, Some(omission)) => {
            row("as measured", report.response);
            row("omission corrected", &omission.corrected);
        }
        (None, None) => row("as measured", report.response),
    }
    if let Some(omission) = report.omission {
        let weight = if omission.misleading {
            "WARNING: coordinated omission: this closed loop sent nothing while it waited, and its percentiles hide \
             what clients would have met. The corrected line is"
        } else {
            "A closed loop omits what it would have sent while it waited. The corrected line is"
        };
        let _ = writeln!(
            text,
            "    {weight} an estimate, as if each connection had sent every {:.3} ms; --rate measures it.",
            omission.interval_us / 1e3
        );
    }
    text.push('\n');
}

fn statements(text: &mut String, report: &LoadSummary<'_>) {
    if report.statements.len() < 2 {
        return;
    }
    let _ = writeln!(
        text,
        "{:<26}{:>10}{:>10}{:>10}{:>10}{:>12}",
        "By statement (ms):", "p50", "p95", "p99", "max", "count"
    );
    for statement in report.statements {
        let of = &statement.latency;
        let _ = writeln!(
            text,
            "    {:<22}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>12}",
            statement.statement,
            of.p50_us / 1e3,
            of.p95_us / 1e3,
            of.p99_us / 1e3,
            of.max_us / 1e3,
            of.count
        );
    }
    text.push('\n');
}

fn errors(text: &mut String, report: &LoadSummary<'_>) {
    if report.errors.is_empty() {
        return;
    }
    text.push_str("Errors by code:\n");
    for error in report.errors {
        let _ = writeln!(
            text,
            "    {} x {}, {} retried: {}",
            error.code, error.count, error.retried, error.message
        );
    }
    text.push('\n');
}

fn arrivals(text: &mut String, report: &LoadSummary<'_>) {
    let Some(open) = report.open_loop else { return };
    let _ = writeln!(
        text,
        "Arrivals:\n    due {}, finished {}, shed {}, unfinished {}\n    started over 1 ms late: {:.1}%; longest \
         backlog {}",
        open.due, report.totals.events, open.shed, open.unfinished, open.late_percent, open.longest_backlog
    );
    if open.unfinished > 0 {
        let _ = writeln!(
            text,
            "    the unfinished ones had waited up to {:.1} ms, and are in the percentiles with what they had waited",
            open.oldest_unfinished_ms
        );
    }
    if open.shed > 0 {
        let share = 100.0 * open.shed as f64 / open.due.max(1) as f64;
        let _ = writeln!(
            text,
            "    OVERLOAD: {share:.1}% of the arrivals found the backlog full and are in no percentile"
        );
    }
    text.push('\n');
}

fn generator(text: &mut String, report: &LoadSummary<'_>) {
    let (generator, client) = (report.generator, report.client);
    let _ = writeln!(
        text,
        "Generator:\n    {} event loop(s); own lag p99 {:.3} ms, max {:.3} ms\n    {:.2} us of CPU per query ({:.2} s); \
         peak memory {:.1} MiB",
        generator.loops,
        generator.lag.p99_us / 1e3,
        generator.lag.max_us / 1e3,
        client.cpu_us_per_query,
        client.cpu_s,
        client.peak_rss_mib
    );
    if let Some(why) = &generator.disqualified {
        let _ = writeln!(text, "    DISQUALIFIED: {why}");
    }
    let _ = writeln!(text, "    server {} at {}", report.server.version, report.server.endpoint);
    if report.ledger_records > 0 {
        let _ = writeln!(text, "    {} commits in the ledger", report.ledger_records);
    }
}

fn ended(text: &mut String, report: &LoadSummary<'_>) {
    match report.ended {
        Ended::Cancelled => text.push_str("\nCancelled before its end.\n"),
        Ended::Failed { code, .. } => {
            let _ = writeln!(text, "\nEnded early by server error {code}.");
        }
        Ended::Time | Ended::Events => {}
    }
}

/// As sysbench draws it, with steps of 1.8%.
fn print_histogram(text: &mut String, buckets: &[Bucket]) {
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
    text.push('\n');
}
