//! What is kept of servers, and what it says of their rules.

use ebbtide_observe::{Interval, Rates, Readings, UPTIME};
use ebbtide_text::{bytes, figure, percent, rough};
use ebbtide_volume::Nanos;

use crate::alarm::event::Judgement;
use crate::alarm::rule::{RuleId, Verdict};
use crate::alarm::table::rule;
use crate::alarm::window::Window;
use crate::reading::{Answer, Moment, ReplicaReading, ServerCounters, ServerReading, ThreadState};
use crate::server::RedoUse;

/// Means are of this time.
const MINUTE: Nanos = Nanos::from_secs(60);
/// Less than this is no mean.
const LEAST_SPAN_S: f64 = 10.0;
/// Over a longer gap two readings are not compared.
const LONGEST_GAP: Nanos = Nanos::from_secs(120);
/// An uptime that has grown by so much less than the time that passed is another one, s.
const UPTIME_ERROR_S: f64 = 5.0;
/// How far along the redo log has to be before its growth says something, as `redo_nearly_full` counts.
const REDO_FAR: f64 = 0.8;
/// Where MariaDB from 10.5 on stays under any load, and what is beyond it (`ebbtide-advisor`, check R02).
const MARIADB_USUAL: f64 = 0.95;
const MARIADB_MUCH: f64 = 0.97;

/// What is kept of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerHistory {
    last: Option<LastAnswer>,
    minute: Window<ServerStep>,
    /// When a restart was seen, and the uptime at that time.
    restarted: Option<(Nanos, f64)>,
}

#[derive(Debug, Clone)]
struct LastAnswer {
    time: Nanos,
    uptime_s: Option<u64>,
    counters: Readings,
}

/// What happened between two readings.
#[derive(Debug, Clone, Copy)]
struct ServerStep {
    seconds: f64,
    log_waits: Option<f64>,
    free_page_waits: Option<f64>,
    sync_flushed: Option<f64>,
    checkpoint_age: Option<f64>,
}

/// What is known of a redo log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RedoForecast {
    /// Redo since the checkpoint, bytes.
    pub(crate) age_bytes: f64,
    /// Where the server flushes before all else, bytes.
    pub(crate) sync_bytes: f64,
    /// Growth of the age, bytes a second; None: too little was seen.
    pub(crate) growth_per_s: Option<f64>,
    /// Seconds until the sync flush; 0 while it goes on; None: not at this growth, or not known.
    pub(crate) sync_in_s: Option<f64>,
    /// As `redo_nearly_full` counts: the share, and on MariaDB from 10.5 on what lies above its usual one.
    pub(crate) fullness: f64,
}

impl ServerHistory {
    pub(crate) const fn new() -> Self {
        Self { last: None, minute: Window::new(MINUTE, Nanos::ZERO), restarted: None }
    }

    /// Takes a reading, and says what it means for each rule that applies. What is not known of a server that did not answer is left
    /// out.
    pub(crate) fn judge(&mut self, moment: Moment, reading: &ServerReading) -> Vec<(RuleId, Judgement)> {
        let name = reading.name.as_str();
        let now = moment.elapsed;
        let mut judged = Vec::new();
        if let Answer::Counters(counters) = &reading.answer {
            self.take(now, counters);
            judged.push((RuleId::FreePageWaits, self.waits(RuleId::FreePageWaits, name)));
            judged.push((RuleId::LogWaits, self.waits(RuleId::LogWaits, name)));
            if let Some(redo) = self.redo(counters) {
                judged.extend(redo_judgements(name, &redo));
            }
        }
        judged.extend(answer_judgements(reading));
        judged.push((RuleId::ServerRestarted, self.restart(now, reading)));
        judged
    }

    /// What is known of the redo log; None where the server does not show it.
    pub(crate) fn redo(&self, counters: &ServerCounters) -> Option<RedoForecast> {
        let rates = Rates::at(&counters.counters);
        let age_bytes = rates.checkpoint_age?;
        let sync_bytes = rates.checkpoint_age_max.or(counters.redo_sync_bytes).filter(|most| *most > 0.0)?;
        let growth_per_s = self.age_growth();
        let is_flushing = self.mean(|step| step.sync_flushed).is_some_and(|(pages, _)| pages > 0.0);
        // The law is that of views and metrics.
        let redo = RedoUse {
            used_bytes: Some(age_bytes),
            sync_flush_bytes: Some(sync_bytes),
            growth_per_s,
            ..RedoUse::default()
        };
        let sync_in_s = if is_flushing { Some(0.0) } else { redo.seconds_to_sync_flush() };
        let share = age_bytes / sync_bytes;
        let fullness = if counters.flushes_late() { mariadb_fullness(share) } else { share };
        Some(RedoForecast { age_bytes, sync_bytes, growth_per_s, sync_in_s, fullness })
    }

    fn take(&mut self, now: Nanos, reading: &ServerCounters) {
        let uptime_s = reading.counters.get(UPTIME);
        let last = self.last.take();
        let restarted = last.as_ref().is_some_and(|last| is_restarted(last, now, uptime_s));
        if restarted {
            self.restarted = Some((now, uptime_s.unwrap_or(0) as f64));
        }
        let before = last.filter(|last| !restarted && now.since(last.time) <= LONGEST_GAP);
        match before {
            None => self.minute.clear(),
            Some(before) => {
                let seconds = now.since(before.time).as_secs_f64();
                let interval = Interval { before: &before.counters, after: &reading.counters, seconds };
                let rates = Rates::over(&interval);
                let step = ServerStep {
                    seconds,
                    log_waits: rates.log_waits,
                    free_page_waits: rates.wait_free,
                    sync_flushed: rates.sync_flushed,
                    checkpoint_age: rates.checkpoint_age,
                };
                self.minute.push(now, step);
            }
        }
        self.last = Some(LastAnswer { time: now, uptime_s, counters: reading.counters.clone() });
    }

    /// The mean of a rate over the last minute, and how many seconds of it are known; None where these are less than 10.
    fn mean(&self, rate: impl Fn(&ServerStep) -> Option<f64>) -> Option<(f64, f64)> {
        let known = self.minute.iter().filter_map(|(_, step)| Some((rate(step)?, step.seconds)));
        let (sum, seconds) =
            known.fold((0.0, 0.0), |(sum, total), (rate, seconds)| (sum + rate * seconds, total + seconds));
        (seconds >= LEAST_SPAN_S).then(|| (sum / seconds, seconds))
    }

    /// Growth of the checkpoint's age over the last minute, bytes a second.
    fn age_growth(&self) -> Option<f64> {
        let age = |entry: Option<&(Nanos, ServerStep)>| {
            let (time, step) = entry?;
            Some((time.as_secs_f64(), step.checkpoint_age?))
        };
        let (first, last) = (age(self.minute.oldest())?, age(self.minute.newest())?);
        let seconds = last.0 - first.0;
        (seconds >= LEAST_SPAN_S).then(|| (last.1 - first.1) / seconds)
    }

    fn waits(&self, id: RuleId, name: &str) -> Judgement {
        let (mean, kind) = match id {
            RuleId::FreePageWaits => {
                (self.mean(|step| step.free_page_waits), "a free page of the buffer pool")
            }
            _ => (self.mean(|step| step.log_waits), "room in the log buffer"),
        };
        let Some((rate, seconds)) = mean else {
            return judgement(
                Verdict::Unknown,
                None,
                format!("too little is known of the waits of {name} for {kind}"),
            );
        };
        let reason = format!(
            "{name} waits {} times a second for {kind}, over the last {}",
            figure(rate),
            rough(seconds)
        );
        judgement(rule(id).threshold.verdict(rate), Some(rate), reason)
    }

    fn restart(&self, now: Nanos, reading: &ServerReading) -> Judgement {
        let name = &reading.name;
        let Some((seen, uptime_s)) = self.restarted else {
            let verdict = if self.last.is_some() { Verdict::Clear } else { Verdict::Unknown };
            return judgement(verdict, None, format!("{name} was not started again since it is watched"));
        };
        let uptime_s = uptime_s + now.since(seen).as_secs_f64();
        let reason = format!("{name} was started again {} ago", rough(uptime_s));
        let verdict = rule(RuleId::ServerRestarted).threshold.verdict(uptime_s);
        judgement(verdict, Some(uptime_s), reason)
    }
}

/// Whether a server is another life of the one that answered before.
fn is_restarted(last: &LastAnswer, now: Nanos, uptime_s: Option<u64>) -> bool {
    let (Some(before), Some(after)) = (last.uptime_s, uptime_s) else { return false };
    let expected = before as f64 + now.since(last.time).as_secs_f64();
    (after as f64) + UPTIME_ERROR_S < expected
}

/// MariaDB waits with flushing: 95% counts as the 75% at which an alarm of others ends, and 97% as the 85% at which it begins.
fn mariadb_fullness(share: f64) -> f64 {
    let row = rule(RuleId::RedoNearlyFull).threshold;
    if share < MARIADB_USUAL {
        return share * row.clear / MARIADB_USUAL;
    }
    row.clear + (share - MARIADB_USUAL) * (row.raise - row.clear) / (MARIADB_MUCH - MARIADB_USUAL)
}

fn redo_judgements(name: &str, redo: &RedoForecast) -> [(RuleId, Judgement); 2] {
    let grown = match redo.growth_per_s {
        Some(growth) if growth > 0.0 => format!(", and grows by {}/s", bytes(growth)),
        _ => String::new(),
    };
    let reached = format!(
        "the checkpoint of {name} is {} behind, {} of the {} at which the server flushes before all else{grown}",
        bytes(redo.age_bytes),
        percent(redo.age_bytes / redo.sync_bytes),
        bytes(redo.sync_bytes)
    );
    let full = rule(RuleId::RedoNearlyFull).threshold.verdict(redo.fullness);
    let sync = match redo.sync_in_s {
        Some(0.0) => format!("{name} flushes before all else: {reached}"),
        Some(seconds) => format!("{reached}: the sync flush begins in {}", rough(seconds)),
        None => reached.clone(),
    };
    let is_near = redo.fullness >= REDO_FAR || redo.sync_in_s == Some(0.0);
    let sync_in_s = redo.sync_in_s.filter(|_| is_near);
    let verdict = rule(RuleId::RedoSyncFlush).threshold.verdict(sync_in_s.unwrap_or(f64::INFINITY));
    [
        (RuleId::RedoNearlyFull, judgement(full, Some(redo.fullness), reached)),
        (RuleId::RedoSyncFlush, Judgement { verdict, value: sync_in_s, reason: sync, in_s: sync_in_s }),
    ]
}

/// Whether the server answers, and why not.
fn answer_judgements(reading: &ServerReading) -> Vec<(RuleId, Judgement)> {
    let name = &reading.name;
    let (is_true, reason) = match &reading.answer {
        // A server that is asked less often is neither down nor known to be up.
        Answer::NotAsked => return Vec::new(),
        Answer::Counters(_) => (None, format!("{name} answers")),
        Answer::Down(error) => (Some(RuleId::ServerDown), format!("no connection to {name}: {error}")),
        Answer::LoginRefused(error) => {
            (Some(RuleId::LoginRefused), format!("{name} refuses the login: {error}"))
        }
        Answer::TimedOut(limit) => {
            let waited = rough(limit.as_secs_f64());
            (Some(RuleId::ServerHangs), format!("{name} did not answer within {waited}"))
        }
    };
    let rows = [RuleId::ServerDown, RuleId::ServerHangs, RuleId::LoginRefused];
    // A server that is down shows nothing of the others: whether it would refuse a login is not known.
    let is_known = |id: RuleId| is_true.is_none() || is_true == Some(id) || id == RuleId::ServerDown;
    let judged = rows.into_iter().filter(|id| is_known(*id)).map(|id| {
        let holds = is_true == Some(id);
        let value = f64::from(u8::from(holds));
        (id, judgement(rule(id).threshold.verdict(value), Some(value), reason.clone()))
    });
    judged.collect()
}

/// What a channel says of both of its rules.
pub(crate) fn judge_replica(name: &str, replica: &ReplicaReading) -> [(RuleId, Judgement); 2] {
    let (receiver, applier) = (replica.receiver, replica.applier);
    let runs = receiver == ThreadState::Running && applier == ThreadState::Running;
    let error = replica.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
    let stopped = match replica.lag_s {
        _ if !runs => format!(
            "of {name} the receiving thread is {}, and the applying one {}{error}",
            receiver.name(),
            applier.name()
        ),
        None => format!("both threads of {name} run, and its lag is NULL{error}"),
        Some(_) => format!("both threads of {name} run"),
    };
    let is_stopped = !runs || replica.lag_s.is_none();
    let value = f64::from(u8::from(is_stopped));
    let verdict = rule(RuleId::ReplicaStopped).threshold.verdict(value);
    let lag = match replica.lag_s {
        Some(lag) => {
            let late = (lag - replica.delay_s).max(0.0);
            let reason = format!("{name} is {} behind its source, more than it is to be", rough(late));
            judgement(rule(RuleId::ReplicaLag).threshold.verdict(late), Some(late), reason)
        }
        None => judgement(Verdict::Unknown, None, format!("the lag of {name} is NULL")),
    };
    [(RuleId::ReplicaStopped, judgement(verdict, Some(value), stopped)), (RuleId::ReplicaLag, lag)]
}

fn judgement(verdict: Verdict, value: Option<f64>, reason: String) -> Judgement {
    Judgement { verdict, value, reason, in_s: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_age_of_mariadb_is_no_alarm_and_two_percent_more_are() {
        let row = rule(RuleId::RedoNearlyFull).threshold;
        let verdicts = [0.5, 0.88, 0.94, 0.96, 0.975].map(|share| row.verdict(mariadb_fullness(share)));
        assert_eq!(
            verdicts,
            [Verdict::Clear, Verdict::Clear, Verdict::Clear, Verdict::Between, Verdict::Raise]
        );
    }

    #[test]
    fn an_uptime_that_grew_too_little_is_a_restart_and_a_second_of_error_is_none() {
        let last =
            LastAnswer { time: Nanos::from_secs(1_000), uptime_s: Some(500), counters: Readings::default() };
        let seen = |second: u64, uptime: Option<u64>| is_restarted(&last, Nanos::from_secs(second), uptime);
        assert!(seen(1_001, Some(0)), "it went back");
        assert!(seen(2_000, Some(900)), "it is larger, and still another one");
        assert!(!seen(1_001, Some(500)) && !seen(2_000, Some(1_499)) && !seen(2_000, None));
    }
}
