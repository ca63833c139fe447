//! A look at a running server and its machine, over an interval. Nothing of either is changed.

use std::time::Duration;

use ebbtide_captured::configuration;
use ebbtide_load::{Cancel, Endpoint, LoadError, Session, Target};
use ebbtide_mysql::status::{ObserveError, Observer, StatusError};
use ebbtide_observe::{Facts, Flavour, NotSeen, Observation, Variables};

use crate::machine::Machine;
use crate::storage::EbsLook;

/// What is looked at, and for how long.
#[derive(Debug, Clone)]
pub struct LookOptions {
    /// The server, with one endpoint, and the account.
    pub target: Target,
    /// Time between the two looks at the server's counters.
    pub interval: Duration,
}

impl LookOptions {
    /// The interval where none is asked for.
    pub const INTERVAL: Duration = Duration::from_secs(10);
}

/// What was seen of a server.
#[derive(Debug, Clone)]
pub struct Looked {
    /// What was seen.
    pub seen: Observation,
    /// That the connection was lost between the two looks, and why, as a sentence: rates are not known.
    pub lost: Option<String>,
}

/// Why a server was not looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookError {
    /// The target has no endpoint, or several.
    #[error("doctor looks at one server: name one host and one port, or one socket")]
    NotOneServer,
    /// No connection.
    #[error(transparent)]
    Connect(#[from] LoadError),
    /// The server refused what every account may ask for, or the connection broke.
    #[error("cannot look at the server")]
    Status(#[from] StatusError),
    /// It was ended before the second look.
    #[error("ended before the second look: nothing was judged")]
    Ended,
}

/// Looks at a server twice. Several times a second `waiting` gets the time that is left.
///
/// # Errors
/// The server cannot be looked at, or `cancel` ended it before the second look.
pub fn look(
    options: &LookOptions,
    cancel: &Cancel,
    waiting: impl FnMut(Duration),
) -> Result<Looked, LookError> {
    let [endpoint] = &options.target.endpoints[..] else { return Err(LookError::NotOneServer) };
    // A signal also ends the wait for an answer, as an error of the connection.
    observe(options, endpoint, cancel, waiting)
        .map_err(|error| if cancel.is_cancelled() { LookError::Ended } else { error })
}

fn observe(
    options: &LookOptions,
    endpoint: &Endpoint,
    cancel: &Cancel,
    mut waiting: impl FnMut(Duration),
) -> Result<Looked, LookError> {
    let session = Session::open_without_database(&options.target, endpoint)?;
    let mut observer = Observer::open(session, endpoint.to_string())?;
    observer.survey(options.interval)?;
    let machine = Machine::of(observer.first().variables.as_ref().unwrap_or(&Variables::default()));
    let ebs = machine.as_ref().map(|machine| EbsLook::of(machine.first())).unwrap_or_default();
    let observed = observer.watch(options.interval, |left| {
        if !left.is_zero() {
            waiting(left);
        }
        !cancel.is_cancelled()
    });
    let mut looked = match observed {
        Ok(Some(seen)) => Looked { seen, lost: None },
        Ok(None) => return Err(LookError::Ended),
        Err(_) if cancel.is_cancelled() => return Err(LookError::Ended),
        Err(ObserveError::First(error)) => return Err(error.into()),
        Err(ObserveError::Lost { seen, source }) => kept(*seen, &source),
    };
    let seen = &mut looked.seen;
    match machine {
        Ok(machine) => {
            configure(seen, &machine);
            seen.file_system = machine.file_system();
            let seconds = seen.span.map_or(0.0, |span| span.seconds);
            seen.host = Some(machine.after(seconds));
            ebs.finish(seen, seconds);
        }
        Err(error) => {
            seen.not_seen.push(NotSeen { what: "the server's machine".into(), why: error.to_string() });
        }
    }
    Ok(looked)
}

/// Adds what the server's option files set.
fn configure(seen: &mut Observation, machine: &Machine) {
    let Some(arguments) = machine.arguments() else { return };
    let facts = seen.facts.as_ref();
    let mariadb = facts.map(|facts| facts.flavour == Flavour::MariaDb);
    let version = facts.and_then(Facts::release);
    match configuration::of_arguments(&arguments, version, mariadb) {
        Ok(lines) => seen.configured = Some(lines),
        Err(error) => {
            seen.not_seen.push(NotSeen { what: "the server's option files".into(), why: error.to_string() });
        }
    }
}

/// What was read before the connection was lost: settings and sizes are judged, and rates are not known.
fn kept(mut seen: Observation, source: &StatusError) -> Looked {
    let cause = std::error::Error::source(source).map_or_else(|| source.to_string(), ToString::to_string);
    let why = format!(
        "the connection was lost between the two looks ({cause}); look again, once the server answers"
    );
    seen.not_seen.push(NotSeen { what: "SHOW GLOBAL STATUS, twice".into(), why: why.clone() });
    Looked { seen, lost: Some(why) }
}
