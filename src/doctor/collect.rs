//! An observation of a live server and its machine, or of a capture.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_captured::Hints;
use ebbtide_captured::configuration;
use ebbtide_catalog::{Catalog, Spec};
use ebbtide_doctor::machine::Machine;
use ebbtide_load::{Cancel, Endpoint, Session, Target};
use ebbtide_mysql::status::{ObserveError, Observer, StatusError};
use ebbtide_observe::{FileSystem, Flavour, NotSeen, Observation, VolumeFiles};

use super::args::LookArgs;
use super::probe::Probe;
use super::storage::EbsLook;
use super::{password, storage};
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

/// The catalogue of the home, if there is one.
///
/// # Errors
/// Overrides that cannot be read (exit code 2).
pub(super) fn catalog(place: Option<&HomePath>) -> anyhow::Result<Catalog> {
    let home = place.map_or(Ok(None), HomePath::existing)?;
    ebbtide_control::catalog(home.as_ref()).map_err(crate::refusal::refuse)
}

/// What is seen of the server, with what the user gives of its storage; and the catalogue of the home.
///
/// # Errors
/// Volumes and files that there are not (exit code 2); a server that does not answer (exit code 3).
pub(super) fn observation(
    look: &LookArgs,
    from: Option<(&[PathBuf], &Hints)>,
    place: Option<&HomePath>,
) -> anyhow::Result<(Observation, Catalog)> {
    let home = place.map_or(Ok(None), HomePath::existing)?;
    let catalog = catalog(place)?;
    check(look, &catalog)?;
    let probe = look.probe.as_deref().map(Probe::open).transpose()?;
    let mut seen = match from {
        None => {
            let mut seen = live(look)?;
            storage::name_own_volumes(&mut seen, home.as_ref());
            seen
        }
        Some((paths, hints)) => bundle::read(paths, hints)?,
    };
    name_volumes(&mut seen, &look.volume)?;
    seen.instance = look.instance.clone().or(seen.instance);
    // After the interval, so that its counters are those of the server alone.
    match probe.map(Probe::run) {
        None => {}
        Some(Ok(times)) => seen.sync_probe = Some(times),
        Some(Err(error)) => {
            let why = format!("the writes of --probe failed: {error}");
            note(&format!("warning: {why}"));
            seen.not_seen.push(NotSeen { what: "how long a sync takes".into(), why });
        }
    }
    let named = |fs: ebbtide_device::host::FsType| FileSystem {
        name: fs.name().to_owned(),
        aligned_bytes: fs.aligned_bytes(),
    };
    seen.file_system = look.fs.map(named).or(seen.file_system);
    Ok((seen, catalog))
}

/// Adds the volumes that the user names.
///
/// # Errors
/// One volume for both logs, which lie on two devices: exit code 2.
fn name_volumes(seen: &mut Observation, named: &[(VolumeFiles, String)]) -> anyhow::Result<()> {
    for (files, spec) in named {
        let spec = Some(spec.clone());
        match files {
            VolumeFiles::Data => seen.volume = spec,
            VolumeFiles::Redo => seen.redo_volume = spec,
            VolumeFiles::Binlog => seen.binlog_volume = spec,
            VolumeFiles::Logs => (seen.redo_volume, seen.binlog_volume) = (spec.clone(), spec),
        }
        // A capture may have another word for it.
        seen.logs_share_volume = match files {
            VolumeFiles::Data => seen.logs_share_volume,
            VolumeFiles::Redo | VolumeFiles::Binlog => false,
            VolumeFiles::Logs => true,
        };
    }
    let apart = seen.devices_of_logs_apart().filter(|_| seen.logs_share_volume && !seen.is_without_binlog());
    let Some([redo, binlog]) = apart else { return Ok(()) };
    let message = format!(
        "one volume is named for both logs, and the redo log lies on {redo} and the binary log on {binlog}"
    );
    Err(Refusal::usage(message).hint("name each: --volume redo=SPEC --volume binlog=SPEC").into())
}

/// Refuses volumes and instances that there are not before the server is looked at.
fn check(look: &LookArgs, catalog: &Catalog) -> anyhow::Result<()> {
    for (place, (of, spec)) in look.volume.iter().enumerate() {
        let before = || look.volume[..place].iter().flat_map(|(other, _)| other.files());
        if let Some(files) = of.files().iter().find(|files| before().any(|other| other == *files)) {
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
    // A signal also ends the wait for an answer, as an error of the connection.
    observe(look, &target, endpoint, &cancel)
        .map_err(|error| if cancel.is_cancelled() { ended() } else { error })
}

/// The answer to a signal.
fn ended() -> anyhow::Error {
    let message = "ended before the second look: nothing was judged";
    Refusal::cancelled(message).hint("a shorter --interval ends sooner").into()
}

fn observe(
    look: &LookArgs,
    target: &Target,
    endpoint: &Endpoint,
    cancel: &Cancel,
) -> anyhow::Result<Observation> {
    let session = Session::open_without_database(target, endpoint).map_err(refuse)?;
    let mut observer = Observer::open(session, endpoint.to_string()).map_err(refuse_status)?;
    let interval = look.interval.unwrap_or(INTERVAL);
    observer.survey(interval).map_err(refuse_status)?;
    let machine =
        Machine::of(observer.first().variables.as_ref().unwrap_or(&ebbtide_observe::Variables::default()));
    let ebs = machine.as_ref().map(|machine| EbsLook::of(machine.first())).unwrap_or_default();
    let mut status = StatusLine::new();
    let observed = observer.watch(interval, |left| {
        if !left.is_zero() {
            status.show(&format!("watching the server's counters: {:.0} s left", left.as_secs_f64().ceil()));
        }
        !cancel.is_cancelled()
    });
    drop(status);
    let mut seen = match observed {
        Ok(Some(seen)) => seen,
        Ok(None) => return Err(ended()),
        Err(_) if cancel.is_cancelled() => return Err(ended()),
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

#[cfg(test)]
mod tests {
    use ebbtide_observe::{Device, Files, Host, Origin, ServerDirectory, Variables};

    use super::*;

    fn on(redo: &str, binlog: &str, log_bin: &str) -> Observation {
        let place = |(files, name): (Files, &str)| ServerDirectory {
            files,
            directory: "/d".into(),
            mount_point: "/d".into(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(Device { name: name.into(), ..Device::default() }),
        };
        let places = [(Files::Data, "a"), (Files::Redo, redo), (Files::Binlog, binlog)].map(place).into();
        let variables: Variables = [("log_bin", log_bin)].into_iter().collect();
        Observation {
            host: Some(Host { places, ..Host::default() }),
            variables: Some(variables),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    #[test]
    fn one_volume_for_both_logs_is_that_of_each_and_a_later_word_for_one_of_them_ends_it() {
        let named = |files, spec: &str| (files, spec.to_owned());
        let mut seen = Observation::of(Origin::Capture { path: "/c".into() });
        name_volumes(&mut seen, &[named(VolumeFiles::Logs, "nvme")]).unwrap();
        let shared = seen.shared_logs().unwrap().unwrap();
        assert_eq!((shared.device, shared.spec), (None, Some("nvme")));
        // As where the file is a capture of that.
        name_volumes(&mut seen, &[named(VolumeFiles::Data, "gp3:size=5GiB")]).unwrap();
        assert!(seen.logs_share_volume);
        name_volumes(&mut seen, &[named(VolumeFiles::Redo, "gp3:size=5GiB")]).unwrap();
        assert_eq!(seen.shared_logs(), Ok(None));
        assert_eq!([seen.redo_volume.unwrap(), seen.binlog_volume.unwrap()], ["gp3:size=5GiB", "nvme"]);
    }

    #[test]
    fn one_volume_for_logs_on_two_devices_is_refused_with_both() {
        let named = [(VolumeFiles::Logs, "nvme".to_owned())];
        let error = name_volumes(&mut on("b", "c", "ON"), &named).unwrap_err().to_string();
        assert!(error.contains("redo log lies on b") && error.contains("binary log on c"), "{error}");
        name_volumes(&mut on("b", "b", "ON"), &named).unwrap();
        name_volumes(&mut on("b", "a", "OFF"), &named).unwrap();
    }
}
