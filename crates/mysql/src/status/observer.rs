//! An observation of a running server that is not changed: its variables, and two looks at its counters.

use std::time::{Duration, Instant, SystemTime};

use ebbtide_load::{LoadError, Session};
use ebbtide_observe::{Facts, Flavour, Observation, Origin, Span, StatusVariables};

use super::counters::Counters;
use super::facts::{status, variables};
use super::sampler::{StatusError, StatusSampler};
use super::statements;

/// An observation that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The server could not be looked at.
    #[error("cannot look at the server")]
    First(#[source] StatusError),
    /// The connection ended while it was kept open between the two looks.
    #[error("the connection was lost between the two looks")]
    Between(#[source] LoadError),
    /// The server could not be looked at a second time.
    #[error("the connection was lost between the two looks")]
    Second(#[source] StatusError),
}

/// How often a connection is used, so that neither server (`wait_timeout`) nor firewall takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// The threads of the moment: one look shows little, several their mean.
const RUNNING: &str = "SHOW GLOBAL STATUS LIKE 'Threads_running'";

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

    /// Asks for replication, the origin of variables, and the sizes of tables. What the server refuses is listed in
    /// [`Observation::not_seen`].
    ///
    /// # Errors
    /// A broken connection.
    pub fn survey(&mut self) -> Result<(), StatusError> {
        super::survey::survey(&mut self.session, &mut self.seen)
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
        let statements = statements::sums(sampler.session()).map_err(ObserveError::First)?;
        let status_before = status(sampler.session()).map_err(ObserveError::First)?;
        let before = sampler.sample().map_err(ObserveError::First)?;
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let (begun, mut asked) = (Instant::now(), Instant::now());
        let end = begun + interval;
        let mut clients = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if !go_on(left) {
                return Ok(None);
            }
            if left.is_zero() {
                break;
            }
            if asked.elapsed() >= KEEP_ALIVE {
                let running = sampler.session().rows(RUNNING).map_err(ObserveError::Between)?;
                let running = running.first().and_then(|row| row.get(1)?.as_ref()?.parse::<f64>().ok());
                // The thread that asks runs too.
                clients.extend(running.map(|threads| (threads - 1.0).max(0.0)));
                asked = Instant::now();
            }
            std::thread::sleep(left.min(Duration::from_millis(200)));
        }
        let status_after = status(sampler.session()).map_err(ObserveError::Second)?;
        let after = sampler.sample().map_err(ObserveError::Second)?;
        let seconds = (after.at - before.at).as_secs_f64();
        seen.status = Some(StatusVariables::between(&status_before, status_after, seconds));
        seen.clients = (!clients.is_empty()).then(|| clients.iter().sum::<f64>() / clients.len() as f64);
        seen.span = Some(Span {
            began_unix_s: began.map(|time| time.as_secs()),
            seconds,
            restarted: before.uptime() > after.uptime(),
        });
        // After all counters, so that it is in none of them.
        let statements_after = statements::sums(sampler.session()).map_err(ObserveError::Second)?;
        let both = statements.zip(statements_after);
        seen.statements = both.and_then(|(before, after)| statements::between(&before, &after, seconds));
        seen.rates = Some(Counters::between(&before, &after));
        Ok(Some(seen))
    }
}
