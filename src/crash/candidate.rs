//! `ebbtide crash --candidate`: would a live server gain from running without the doublewrite buffer?
//!
//! Two looks at its counters, and the judgement of [`ebbtide_advisor::doublewrite`]. The server may be
//! anyone's: nothing of it is changed.

use std::time::Duration;

use clap::Args;
use ebbtide_advisor::doublewrite::{
    Candidate, Examined, NotJudged, PageWriteSettings, Storage, Verdict, examine,
};
use ebbtide_catalog::Catalog;
use ebbtide_device::host::{FsType, Home};
use ebbtide_doctor::candidate::{Seen, document};
use ebbtide_load::{Cancel, Session};
use ebbtide_mysql::status::{ObserveError, Observer, StatusError};
use ebbtide_observe::{FileSystem, Observation};
use ebbtide_report::TextOptions;

use crate::answers::{self, Judged};
use crate::duration::parse_interval;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::load::{ServerArgs, refuse};
use crate::signals::{cancel_on, signals};
use crate::status_line::StatusLine;

/// What goes with `--candidate`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Would a server gain from running without the doublewrite buffer?")]
pub(super) struct CandidateArgs {
    /// Look at the counters of a running server, which may be anyone's and is not changed, and say so
    #[arg(long, conflicts_with_all = [
        "experiment", "list", "show", "check", "quick", "no_gain", "out", "resume", "set", "arms", "server", "checkers", "seed", "kept", "replay",
        "delete_kept",
    ])]
    candidate: bool,
    /// How long to look, 1s to 24h [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Duration>,
    /// The volume that the server's files are on, such as gp3:size=500GiB: its limits decide
    #[arg(long, value_name = "SPEC")]
    pub(super) volume: Option<String>,
    /// The file system of the data files: ext4-bigalloc (clusters of 16 KiB, on a device whose start is a multiple of
    /// 16 KiB), ext4 or xfs. Only the first keeps pages in one piece
    #[arg(long, value_name = "FS")]
    fs: Option<FsType>,
    #[command(flatten)]
    server: ServerArgs,
}

impl CandidateArgs {
    /// Whether it is this that is asked for.
    ///
    /// # Errors
    /// A server is named, and it is something else that is asked for: no power is cut under a server that is
    /// not ours.
    pub(super) fn is_asked(&self) -> anyhow::Result<bool> {
        let named =
            self.server.names_one() || self.interval.is_some() || self.volume.is_some() || self.fs.is_some();
        if self.candidate || !named {
            return Ok(self.candidate);
        }
        let message = "--interval, --volume, --fs and --mysql-... go with --candidate alone: cuts are made under servers that the crash lab starts itself";
        Err(Refusal::usage(message).hint("leave them out, or add --candidate").into())
    }
}

/// How long to look by default.
const INTERVAL: Duration = Duration::from_secs(30);

/// Looks twice, judges and prints the judgement.
///
/// # Errors
/// A volume that there is not (exit code 2); a server that does not answer, or does not report what is
/// needed (exit code 3).
pub(super) fn run(
    args: &CandidateArgs,
    place: &HomePath,
    options: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let home = place.existing()?;
    let catalog = catalog(home.as_ref(), args.volume.as_deref())?;
    let target = args.server.target()?;
    let [endpoint] = &target.endpoints[..] else {
        return Err(Refusal::usage(
            "--candidate looks at one server: name one host and one port, or one socket",
        )
        .into());
    };
    let cancel = cancel_on(signals())?;
    let session = Session::open_without_database(&target, endpoint).map_err(refuse)?;
    let observer = Observer::open(session, endpoint.to_string()).map_err(refuse_status)?;
    // What makes the answer impossible is refused before the interval, not after it.
    PageWriteSettings::of(observer.first()).map_err(unjudged)?;
    let Some(mut observation) = look(observer, args.interval.unwrap_or(INTERVAL), &cancel)? else {
        let message = "ended before the second look: nothing was judged";
        return Err(Refusal::environment(message).hint("a shorter --interval ends sooner").into());
    };
    observation.volumes.data.clone_from(&args.volume);
    observation.file_system = args.fs.map(file_system);
    let Examined { settings, workload, storage, candidate } =
        examine(&observation, &catalog).map_err(unjudged)?;
    let facts = observation.facts.as_ref().expect("settings were made of them");
    let at = endpoint.to_string();
    if json {
        answers::print(&Judged {
            server: facts,
            at,
            settings: &settings,
            volume: storage.as_ref(),
            workload: &workload,
            judgement: &candidate,
        });
    } else {
        let seen = Seen { facts, at, work: &workload, storage: storage.as_ref() };
        crate::text::write(&document(&seen, &candidate).to_text(options))?;
    }
    Ok(exit(&candidate))
}

/// No answer is not a no: scripts can distinguish all three.
fn exit(candidate: &Candidate) -> Exit {
    match candidate.verdict {
        Verdict::Yes | Verdict::Perhaps => Exit::Finding,
        Verdict::AlreadyOff if candidate.is_off_and_unsafe() => Exit::Finding,
        Verdict::No | Verdict::AlreadyOff => Exit::Clean,
        Verdict::NotKnown => Exit::Environment,
    }
}

fn refuse_status(error: StatusError) -> anyhow::Error {
    anyhow::Error::new(error).context(Refusal::environment("cannot look at the server"))
}

/// The catalogue that knows the volume, which is refused here where there is none such; the built-in one without a volume.
fn catalog(home: Option<&Home>, volume: Option<&str>) -> anyhow::Result<Catalog> {
    let Some(spec) = volume else { return Ok(Catalog::builtin()) };
    let catalog = ebbtide_control::catalog(home).map_err(crate::refusal::refuse)?;
    Storage::named(spec, &catalog).map_err(unjudged)?;
    Ok(catalog)
}

/// The file system as `--fs` gives it.
fn file_system(fs: FsType) -> FileSystem {
    FileSystem { name: fs.name().to_owned(), aligned_bytes: fs.aligned_bytes() }
}

/// Two looks; none where it was ended in between.
fn look(observer: Observer, interval: Duration, cancel: &Cancel) -> anyhow::Result<Option<Observation>> {
    let mut status = StatusLine::new();
    let observed = observer.watch(interval, |left| {
        if !left.is_zero() {
            let left = left.as_secs_f64().ceil();
            status.show(&format!("watching the server's counters: {left:.0} s left"));
        }
        !cancel.is_cancelled()
    });
    observed.map_err(|error| match error {
        ObserveError::First(error) => refuse_status(error),
        ObserveError::Lost { source, .. } => lost(source),
    })
}

fn lost(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let message = "the connection was lost between the two looks";
    let refusal = Refusal::environment(message).hint("look again, once the server answers");
    anyhow::Error::new(error).context(refusal)
}

/// Why there is no answer, with what to do.
fn unjudged(error: NotJudged) -> anyhow::Error {
    let refusal = match error {
        NotJudged::Spec(error) => return crate::refusal::refuse(error.into()),
        NotJudged::Catalog(error) => return crate::refusal::refuse(error.into()),
        NotJudged::WholeUnits { .. } => {
            Refusal::usage(format!("--volume {error}")).hint("name an SSD volume, or leave --volume out")
        }
        NotJudged::Restarted => Refusal::environment(error.to_string()).hint("look again"),
        NotJudged::NotCounted { .. } => Refusal::environment(error.to_string())
            .hint("FLUSH STATUS sets some of them back; look again without it"),
        _ => Refusal::environment(error.to_string()),
    };
    refusal.into()
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::doublewrite::{Doublewrite, Workload, judge};

    use super::*;

    #[test]
    fn a_buffer_that_is_off_where_pages_tear_is_a_finding() {
        let work = Workload {
            seconds: 1.0,
            page_writes: 500.0,
            doublewrite_pages: 0.0,
            doublewrite_batches: 0.0,
            page_reads: 0.0,
            redo_bytes: 0.0,
            redo_writes: None,
            binlog_bytes: None,
            commits: None,
            write_statements: 500.0,
            read_statements: 0.0,
            free_page_waits: None,
            doublewrite_wait: None,
            doublewrite_mutex_wait: None,
        };
        let settings = PageWriteSettings {
            doublewrite: Doublewrite::Off,
            page_bytes: 16_384,
            direct: Some(true),
            flush_neighbors: None,
            files: None,
            release: None,
        };
        let storage = |spec| Storage::named(spec, &Catalog::builtin()).unwrap();
        let of = |spec| exit(&judge(&work, &settings, Some(&storage(spec))));
        assert_eq!(of("gp3:size=500GiB,twp=off"), Exit::Finding);
        assert_eq!(of("gp3:size=500GiB,twp=on"), Exit::Clean);
    }

    #[test]
    fn only_bigalloc_keeps_pages_aligned() {
        let aligned = |fs| file_system(fs).aligned_bytes;
        assert_eq!([FsType::Ext4Bigalloc, FsType::Ext4, FsType::Xfs].map(aligned), [16 << 10, 0, 0]);
    }

    #[test]
    fn a_reason_for_no_answer_comes_with_what_to_do() {
        let text = |error| format!("{:#}", unjudged(error));
        assert!(
            text(NotJudged::NotCounted { names: vec!["Innodb_dblwr_writes"] })
                .contains("Innodb_dblwr_writes")
        );
        assert!(text(NotJudged::Restarted).contains("started again"));
        let whole = catalog(None, Some("st1:size=500GiB")).unwrap_err().to_string();
        assert!(
            whole.starts_with("--volume st1:size=500GiB: an operation there takes a whole unit"),
            "{whole}"
        );
    }
}
