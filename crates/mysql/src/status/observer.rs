//! An observation of a running server that is not changed: its variables, and two looks at its counters.

use std::time::{Duration, Instant, SystemTime};

use ebbtide_load::Session;
use ebbtide_observe::{Facts, Flavour, Observation, Origin, Rates, Span, StatusVariables, Variables};

use super::counters::Counters;
use super::facts::{status, variables};
use super::sampler::{StatusError, StatusSampler};
use super::selects;

/// An observation that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The server could not be looked at.
    #[error("cannot look at the server")]
    First(#[source] StatusError),
    /// The server could not be looked at a second time.
    #[error("the connection was lost between the two looks")]
    Lost {
        /// What was seen until then: no rates are among it.
        seen: Box<Observation>,
        /// What ended the connection.
        source: StatusError,
    },
}

/// How often the gauges are looked at. Neither server (`wait_timeout`) nor firewall takes such a connection for dead.
const MOMENTS: Duration = Duration::from_secs(1);

/// No question waits longer than this for a lock on metadata, which a statement that alters a table may hold. It holds for
/// the session alone.
const NO_WAIT: &str = "SET SESSION lock_wait_timeout = 1";

/// A server that sends nothing for so long hangs, or its machine is gone: no one is kept waiting for it.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);

/// Looks at a running server, which may be anyone's. Nothing of it is changed.
#[derive(Debug)]
pub struct Observer {
    session: Session,
    seen: Observation,
}

impl Observer {
    /// Reads a server's variables; any account may. `at` is where it was reached.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn open(mut session: Session, at: String) -> Result<Self, StatusError> {
        session.limit_answers(LONGEST_ANSWER)?;
        session.execute(NO_WAIT)?;
        let variables = variables(&mut session)?;
        let seen = Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            ..Observation::of(Origin::Server { at })
        };
        Ok(Self { session, seen })
    }

    /// What is known before the counters are read.
    #[must_use]
    pub const fn first(&self) -> &Observation {
        &self.seen
    }

    /// Asks for replication, the origin of variables, and the sizes of tables: of 200 for each second of `interval`, which is
    /// the one that follows, and of 10,000 at most. What the server refuses, and what would cost it too much, is listed in
    /// [`Observation::not_seen`].
    ///
    /// # Errors
    /// A broken connection.
    pub fn survey(&mut self, interval: Duration) -> Result<(), StatusError> {
        super::survey::survey(&mut self.session, &mut self.seen, interval)
    }

    /// Looks at the counters at the beginning and at the end of an interval. Several times a second `go_on` is called with
    /// the time that is left; None where it answers that it is enough.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn watch(
        self,
        interval: Duration,
        mut go_on: impl FnMut(Duration) -> bool,
    ) -> Result<Option<Observation>, ObserveError> {
        let mut seen = self.seen;
        let flavour = seen.facts.as_ref().map_or(Flavour::MySql, |facts| facts.flavour);
        let mut sampler = StatusSampler::open_as_it_is(self.session, flavour).map_err(ObserveError::First)?;
        let status_before = status(sampler.session()).map_err(ObserveError::First)?;
        let selects = if selects::are_needed(&status_before) {
            selects::sums(sampler.session()).map_err(ObserveError::First)?
        } else {
            None
        };
        let before = sampler.sample().map_err(ObserveError::First)?;
        let first = FirstLook { selects, status: status_before, counters: before };
        match second_look(&mut sampler, &first, interval, &mut go_on, &mut seen) {
            Ok(true) => Ok(Some(seen)),
            Ok(false) => Ok(None),
            Err(source) => {
                // What was read first stays true of that moment.
                seen.status = Some(StatusVariables::once(first.status));
                (seen.span, seen.rates, seen.selects) = (None, None, None);
                (seen.clients, seen.highest_checkpoint_age) = (None, None);
                Err(ObserveError::Lost { seen: Box::new(seen), source })
            }
        }
    }
}

/// The counters at the beginning of an interval.
#[derive(Debug)]
struct FirstLook {
    selects: Option<selects::Sums>,
    status: Variables,
    counters: Counters,
}

/// Waits for the end of the interval, looks again, and adds what happened; false where `go_on` ended it.
fn second_look(
    sampler: &mut StatusSampler,
    first: &FirstLook,
    interval: Duration,
    go_on: &mut impl FnMut(Duration) -> bool,
    seen: &mut Observation,
) -> Result<bool, StatusError> {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    let Some(moments) = wait(sampler, interval, go_on)? else { return Ok(false) };
    let status_after = status(sampler.session())?;
    let after = sampler.sample()?;
    let before = &first.counters;
    let seconds = (after.at - before.at).as_secs_f64();
    seen.status = Some(StatusVariables::between(&first.status, status_after, seconds));
    seen.clients = Rates::mean(&moments).threads_running;
    seen.highest_checkpoint_age = moments.iter().filter_map(|moment| moment.checkpoint_age).reduce(f64::max);
    seen.span = Some(Span {
        began_unix_s: began.map(|time| time.as_secs()),
        seconds,
        restarted: before.uptime() > after.uptime(),
    });
    // After all counters, so that it is in none of them.
    if let Some(before) = first.selects {
        let after = selects::sums(sampler.session())?;
        seen.selects = after.and_then(|after| selects::between(before, after, seconds));
    }
    seen.rates = Some(Counters::between(before, &after));
    let now = variables(sampler.session())?;
    seen.changed = seen.variables.as_ref().map(|before| before.changed_in(&now)).unwrap_or_default();
    Ok(true)
}

/// The gauges of looks within the interval; None where `go_on` ended it.
fn wait(
    sampler: &mut StatusSampler,
    interval: Duration,
    go_on: &mut impl FnMut(Duration) -> bool,
) -> Result<Option<Vec<Rates>>, StatusError> {
    let mut asked = Instant::now();
    let end = asked + interval;
    let mut moments = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !go_on(left) {
            return Ok(None);
        }
        if left.is_zero() {
            return Ok(Some(moments));
        }
        if asked.elapsed() >= MOMENTS {
            moments.push(Rates::at(&sampler.moment()?));
            asked = Instant::now();
        }
        std::thread::sleep(left.min(Duration::from_millis(200)));
    }
}
