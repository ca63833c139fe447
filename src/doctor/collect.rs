//! An observation of a live server and its machine, or of a capture.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_load::Session;
use ebbtide_mysql::captured::Hints;
use ebbtide_mysql::configuration;
use ebbtide_mysql::machine::Machine;
use ebbtide_mysql::status::{ObserveError, Observer, StatusError};
use ebbtide_observe::{FileSystem, Files, Flavour, NotSeen, Observation};

use super::args::LookArgs;
use super::storage::EbsLook;
use super::{password, probe, storage};
use crate::bundle;
use crate::exit::Refusal;
use crate::home::HomePath;
use crate::load::refuse;
use crate::run::signals;
use crate::signals::cancel_on;
use crate::status_line::StatusLine;
use crate::text::note;

/// How long to look where no option sets it.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is seen of the server, with what the user gives of its storage; and the catalogue of the home.
///
/// # Errors
/// Volumes and files that there are not (exit code 2); a server that does not answer (exit code 3).
pub(super) fn observation(
    look: &LookArgs,
    from: Option<(&[PathBuf], &Hints)>,
    place: &HomePath,
) -> anyhow::Result<(Observation, Catalog)> {
    let catalog = ebbtide_control::catalog(place.existing()?.as_ref()).map_err(crate::refusal::refuse)?;
    check(look, &catalog)?;
    let mut seen = match from {
        None => {
            let mut seen = live(look)?;
            storage::name_own_volumes(&mut seen, place);
            seen
        }
        Some((paths, hints)) => bundle::read(paths, hints)?,
    };
    for (files, spec) in &look.volume {
        let own = match files {
            Files::Redo => &mut seen.redo_volume,
            Files::Binlog => &mut seen.binlog_volume,
            Files::Data | Files::Temporary => &mut seen.volume,
        };
        *own = Some(spec.clone());
    }
    seen.instance = look.instance.clone().or(seen.instance);
    // After the interval, so that its counters are those of the server alone.
    seen.sync_probe = look.probe.as_deref().map(probe::probe).transpose()?.or(seen.sync_probe);
    let named = |fs: ebbtide_device::host::FsType| FileSystem {
        name: fs.name().to_owned(),
        aligned_bytes: fs.aligned_bytes(),
    };
    seen.file_system = look.fs.map(named).or(seen.file_system);
    Ok((seen, catalog))
}

/// Refuses volumes and instances that there are not before the server is looked at.
fn check(look: &LookArgs, catalog: &Catalog) -> anyhow::Result<()> {
    for (place, (files, spec)) in look.volume.iter().enumerate() {
        if look.volume[..place].iter().any(|(other, _)| other == files) {
            return Err(
                Refusal::usage(format!("--volume names the volume of the {} twice", files.name())).into()
            );
        }
        let parsed = Spec::parse(spec).map_err(|error| crate::refusal::refuse(error.into()))?;
        catalog.resolve(&parsed).map_err(|error| crate::refusal::refuse(error.into()))?;
    }
    if let Some(name) = &look.instance {
        catalog.instance(name).map_err(|error| crate::refusal::refuse(error.into()))?;
    }
    Ok(())
}

fn live(look: &LookArgs) -> anyhow::Result<Observation> {
    let target = look.server.client_target(password::password(look)?)?;
    let [endpoint] = &target.endpoints[..] else {
        let message = "doctor looks at one server: name one host and one port, or one socket";
        return Err(Refusal::usage(message).into());
    };
    let cancel = cancel_on(signals())?;
    let session = Session::open_without_database(&target, endpoint).map_err(refuse)?;
    let mut observer = Observer::open(session, endpoint.to_string()).map_err(refuse_status)?;
    observer.survey().map_err(refuse_status)?;
    let machine =
        Machine::of(observer.first().variables.as_ref().unwrap_or(&ebbtide_observe::Variables::default()));
    let ebs = machine.as_ref().map(|machine| EbsLook::of(machine.first())).unwrap_or_default();
    let mut status = StatusLine::new();
    let observed = observer.watch(look.interval.unwrap_or(INTERVAL), |left| {
        if !left.is_zero() {
            status.show(&format!("watching the server's counters: {:.0} s left", left.as_secs_f64().ceil()));
        }
        !cancel.is_cancelled()
    });
    drop(status);
    let mut seen = match observed {
        Ok(Some(seen)) => seen,
        Ok(None) => {
            let message = "ended before the second look: nothing was judged";
            return Err(Refusal::cancelled(message).hint("a shorter --interval ends sooner").into());
        }
        Err(ObserveError::First(error)) => return Err(refuse_status(error)),
        Err(error) => kept(error)?,
    };
    match machine {
        Ok(machine) => {
            configure(&mut seen, &machine);
            seen.file_system = machine.file_system();
            let seconds = seen.span.map_or(0.0, |span| span.seconds);
            seen.host = Some(machine.after(seconds));
            ebs.finish(&mut seen, seconds);
        }
        Err(error) => {
            seen.not_seen.push(NotSeen { what: "the server's machine".into(), why: error.to_string() });
        }
    }
    Ok(seen)
}

/// Adds what the server's option files set.
fn configure(seen: &mut Observation, machine: &Machine) {
    let Some(arguments) = machine.arguments() else { return };
    let facts = seen.facts.as_ref();
    let mariadb = facts.map(|facts| facts.flavour == Flavour::MariaDb);
    let version = facts.and_then(ebbtide_observe::Facts::release);
    match configuration::of_arguments(&arguments, version, mariadb) {
        Ok(lines) => seen.configured = Some(lines),
        Err(error) => {
            seen.not_seen.push(NotSeen { what: "the server's option files".into(), why: error.to_string() });
        }
    }
}

fn refuse_status(error: StatusError) -> anyhow::Error {
    anyhow::Error::new(error).context(Refusal::environment("cannot look at the server"))
}

/// What was read before the connection was lost: settings and sizes are judged, and rates are not known.
fn kept(error: ObserveError) -> anyhow::Result<Observation> {
    let ObserveError::Lost { mut seen, source } = error else { return Err(error.into()) };
    let cause = std::error::Error::source(&source).map_or_else(|| source.to_string(), ToString::to_string);
    let why = format!(
        "the connection was lost between the two looks ({cause}); look again, once the server answers"
    );
    note(&format!("warning: {why}"));
    seen.not_seen.push(NotSeen { what: "SHOW GLOBAL STATUS, twice".into(), why });
    Ok(*seen)
}
