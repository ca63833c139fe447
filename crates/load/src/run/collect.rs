//! Adds the event loops' counts up: a sample for each second, and the report at the end.

use std::collections::BTreeMap;

use super::Shared;
use super::interval::Interval;
use super::is_open_loop;
use super::worker::{Failure, Finish, Message, SECOND};
use crate::latency::{self, Latency, Nanos, percentile_us, us, whole_u64};
use crate::report::{
    ClientUse, Ended, Fairness, Generator, Omission, OpenLoop, Outcome, Sample, ServerInfo, StatementLatency,
    TransactionLatency,
};
use crate::usage;

/// A last interval shorter than this is in the totals and has no sample of its own.
const SHORTEST_SAMPLE_S: f64 = 0.1;

/// Reads what the event loops report.
pub(super) struct Collector<'a> {
    shared: &'a Shared<'a>,
    server: ServerInfo,
    total: Interval,
    /// Seconds that not all loops have reported yet, and how many have.
    open: BTreeMap<u64, (u32, Interval)>,
    finished: Vec<Finish>,
    samples: Vec<Sample>,
    statements: BTreeMap<usize, Nanos>,
    transactions: BTreeMap<usize, Nanos>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, server: ServerInfo) -> Self {
        Self {
            total: Interval::new(is_open_loop(shared.execution)),
            shared,
            server,
            open: BTreeMap::new(),
            finished: Vec::new(),
            samples: Vec::new(),
            statements: BTreeMap::new(),
            transactions: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, message: Message, on_sample: &mut dyn FnMut(&Sample)) {
        match message {
            Message::Ready(_) => {}
            Message::Second { tick, interval } => self.add(tick, &interval),
            Message::Ended(mut finish) => {
                self.add(finish.tick, &finish.interval);
                merge(&mut self.statements, &mut finish.statements);
                merge(&mut self.transactions, &mut finish.transactions);
                self.finished.push(*finish);
            }
        }
        self.report_complete_seconds(on_sample);
    }

    fn add(&mut self, tick: u64, interval: &Interval) {
        let new = || (0, Interval::new(is_open_loop(self.shared.execution)));
        let (loops, sum) = self.open.entry(tick).or_insert_with(new);
        *loops += 1;
        sum.merge(interval);
    }

    /// A second is complete when every loop has reported it or has ended before it.
    fn report_complete_seconds(&mut self, on_sample: &mut dyn FnMut(&Sample)) {
        while let Some(entry) = self.open.first_entry() {
            let tick = *entry.key();
            let ended_before = self.finished.iter().filter(|finish| finish.tick < tick).count();
            let reported = entry.get().0 + u32::try_from(ended_before).expect("loops are few");
            if reported < self.shared.loops {
                return;
            }
            let (_, interval) = entry.remove();
            let warmup = tick < u64::from(self.shared.execution.warmup_s);
            if !warmup {
                self.total.merge(&interval);
                // Gauges are not sums over time.
                (self.total.backlog, self.total.in_flight) = (0, 0);
            }
            let mut sample = self.sample(tick, warmup, &interval);
            if sample.length_s >= SHORTEST_SAMPLE_S {
                sample.histogram = Some(Box::new(interval.response));
                on_sample(&sample);
                sample.histogram = None;
                self.samples.push(sample);
            }
        }
    }

    fn sample(&self, tick: u64, warmup: bool, interval: &Interval) -> Sample {
        let end = self.finished.iter().map(|finish| finish.at).max();
        let all_ended = self.finished.len() == usize::try_from(self.shared.loops).expect("a u32 fits");
        let full = (tick + 1) * SECOND;
        let to = if all_ended { end.unwrap_or(full).min(full) } else { full };
        let length_s = seconds(to.saturating_sub(tick * SECOND));
        Sample {
            t_s: seconds(to) - f64::from(self.shared.execution.warmup_s),
            length_s,
            warmup,
            totals: interval.totals,
            response: Latency::of(&interval.response),
            service: interval.service.as_ref().map(Latency::of),
            percentile_us: percentile_us(&interval.response, self.shared.execution.percentile),
            lag_p99_us: percentile_us(&interval.lag, 99.0),
            lag_max_us: percentile_us(&interval.lag, 100.0),
            due: interval.arrivals.due,
            shed: interval.arrivals.shed,
            backlog: interval.backlog,
            in_flight: interval.in_flight,
            histogram: None,
        }
    }

    pub(super) fn finish(self) -> Outcome {
        let execution = self.shared.execution;
        let warmup_ns = u64::from(execution.warmup_s) * SECOND;
        let at = self.finished.iter().map(|finish| finish.at).max().unwrap_or(0);
        let elapsed_s = seconds(at.saturating_sub(warmup_ns));
        let total = &self.total;
        let response = Latency::of(&total.response);
        let open = is_open_loop(execution);
        let cpu_s = seconds(self.finished.iter().map(|finish| finish.cpu_ns).sum());
        let queries = total.totals.queries().max(1) as f64;
        Outcome {
            server: self.server.clone(),
            ended: self.ended(),
            elapsed_s,
            totals: total.totals,
            percentile_us: percentile_us(&total.response, execution.percentile),
            service: total.service.as_ref().map(Latency::of),
            omission: (!open).then(|| omission(total, &response, execution.connections, elapsed_s)).flatten(),
            open_loop: execution.arrival.per_second().map(|rate| self.open_loop(rate)),
            generator: Generator {
                loops: self.shared.loops,
                lag: Latency::of(&total.lag),
                disqualified: stalled(total.told_late)
                    .or_else(|| disqualified(&Latency::of(&total.lag), &response)),
            },
            client: ClientUse {
                cpu_s,
                cpu_us_per_query: cpu_s * 1e6 / queries,
                peak_rss_mib: usage::peak_rss_mib(),
            },
            fairness: self.fairness(),
            statements: self.statement_latencies(),
            transactions: self.transaction_latencies(),
            errors: total.errors.values().cloned().collect(),
            commits: total.commits,
            rolled_back: total.rolled_back,
            histogram: latency::buckets(&total.response),
            response,
            samples: self.samples,
        }
    }

    fn ended(&self) -> Ended {
        if let Some(failure) = self.finished.iter().find_map(|finish| finish.failure.clone()) {
            let Failure { code, message, statement } = failure;
            return Ended::Failed { code, message, statement: statement.to_owned() };
        }
        if self.shared.cancel.is_cancelled() {
            return Ended::Cancelled;
        }
        let started = self.shared.started.load(std::sync::atomic::Ordering::Relaxed);
        match self.shared.execution.events {
            Some(limit) if started >= limit => Ended::Events,
            _ => Ended::Time,
        }
    }

    fn open_loop(&self, offered_per_s: f64) -> OpenLoop {
        let total = &self.total;
        let started = total.totals.events.max(1) as f64;
        OpenLoop {
            offered_per_s,
            due: total.arrivals.due,
            shed: total.arrivals.shed,
            unfinished: self.finished.iter().map(|finish| finish.unfinished).sum(),
            oldest_unfinished_ms: us(self.finished.iter().map(|finish| finish.oldest_ns).max().unwrap_or(0))
                / 1e3,
            longest_backlog: total.arrivals.longest,
            late_percent: (100.0 * total.late as f64 / started).min(100.0),
        }
    }

    fn fairness(&self) -> Fairness {
        let clients = || self.finished.iter().flat_map(|finish| &finish.clients);
        let (events_mean, events_stddev) = spread(clients().map(|(events, _)| *events as f64).collect());
        let (busy_mean_s, busy_stddev_s) = spread(clients().map(|(_, busy)| seconds(*busy)).collect());
        Fairness { events_mean, events_stddev, busy_mean_s, busy_stddev_s }
    }

    fn statement_latencies(&self) -> Vec<StatementLatency> {
        self.statements
            .iter()
            .map(|(statement, histogram)| StatementLatency {
                statement: self.shared.name(*statement).into(),
                latency: Latency::of(histogram),
            })
            .collect()
    }

    fn transaction_latencies(&self) -> Vec<TransactionLatency> {
        let transactions = &self.shared.program.description().transactions;
        let of = |(at, histogram): (&usize, &Nanos)| TransactionLatency {
            transaction: transactions[*at].name.into(),
            response: Latency::of(histogram),
            rolled_back: self.finished.iter().map(|finish| finish.rolled_back[*at]).sum(),
        };
        self.transactions.iter().map(of).collect()
    }
}

fn merge(total: &mut BTreeMap<usize, Nanos>, more: &mut Vec<(usize, Nanos)>) {
    for (at, histogram) in more.drain(..) {
        latency::merge(total.entry(at).or_insert_with(latency::coarse), &histogram);
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Mean and standard deviation of the whole population.
fn spread(values: Vec<f64>) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

fn omission(total: &Interval, response: &Latency, connections: u32, elapsed_s: f64) -> Option<Omission> {
    if response.count == 0 {
        return None;
    }
    let interval_us = f64::from(connections) * elapsed_s * 1e6 / response.count as f64;
    let corrected = latency::without_omission(&total.response, whole_u64(interval_us * 1e3));
    let corrected = Latency::of(&corrected);
    let misleading = corrected.p99_us > 2.0 * response.p99_us;
    Some(Omission { interval_us, corrected, misleading })
}

/// A generator that is late by less than this at its 99th percentile is never disqualified.
const LAG_FREE_US: f64 = 1_000.0;
/// Above it, this share of the response time's 99th percentile may be the generator's.
const LAG_SHARE: f64 = 0.25;

/// A loop wakes at the end of every second. One that comes this late has missed whole seconds: nobody
/// was there to send or to look.
fn stalled(told_late: u64) -> Option<String> {
    (told_late >= SECOND).then(|| {
        format!(
            "this machine or the generator stalled for at least {:.1} s: what was measured then is neither \
             the load nor the server",
            seconds(told_late)
        )
    })
}

/// The rule that takes a run out of the comparison.
fn disqualified(lag: &Latency, response: &Latency) -> Option<String> {
    let allowed = (LAG_SHARE * response.p99_us).max(LAG_FREE_US);
    (lag.p99_us > allowed).then(|| {
        format!(
            "the generator was {:.2} ms late at its own 99th percentile, more than {:.2} ms (the larger of \
             {:.0} ms and {:.0}% of the response time's): this run measures the generator's machine",
            lag.p99_us / 1e3,
            allowed / 1e3,
            LAG_FREE_US / 1e3,
            LAG_SHARE * 100.0,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p99(us: f64) -> Latency {
        Latency { count: 1, p99_us: us, ..Latency::default() }
    }

    #[test]
    fn a_generator_that_is_late_by_much_of_the_response_time_is_disqualified() {
        assert_eq!(disqualified(&p99(900.0), &p99(950.0)), None);
        assert_eq!(disqualified(&p99(2_000.0), &p99(20_000.0)), None);
        let why = disqualified(&p99(1_900_000.0), &p99(1_900_100.0)).unwrap();
        assert!(why.contains("1900.00 ms late"), "{why}");
    }

    #[test]
    fn a_generator_that_missed_whole_seconds_stalled() {
        let mut total = Interval::new(false);
        for told_late in [4_300_000_000, 3_300_000_000, 300_000_000, 20_000] {
            total.merge(&Interval { told_late, ..Interval::new(false) });
        }
        assert!(stalled(total.told_late).unwrap().contains("at least 4.3 s"));
        assert_eq!(stalled(900_000_000), None, "a single second was reported late");
    }

    #[test]
    fn equal_connections_have_no_spread() {
        assert_eq!(spread(vec![4.0, 4.0, 4.0]), (4.0, 0.0));
        assert_eq!(spread(vec![2.0, 4.0]), (3.0, 1.0));
    }
}
