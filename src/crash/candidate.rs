//! `ebbtide crash --candidate`: would a live server gain from running without the doublewrite buffer?
//!
//! Two looks at its counters, and the judgement of [`ebbtide_advisor::optimized_writes`]. The server may be
//! anyone's: nothing of it is changed.

mod text;

use std::time::{Duration, Instant};

use clap::Args;
use ebbtide_advisor::optimized_writes::{
    Candidate, Doublewrite, FileSystem, Release, Settings, Storage, Verdict, Workload, judge,
};
use ebbtide_catalog::Spec;
use ebbtide_device::host::{CLUSTER_BYTES, FsType, Home};
use ebbtide_load::{Cancel, Session};
use ebbtide_mysql::status::{Counters, Facts, Rates, Sampler, StatusError};

use crate::answers::{self, Judged};
use crate::exit::{Exit, Refusal};
use crate::home::Place;
use crate::load::{ServerArgs, refuse};
use crate::run::signals;
use crate::signals::cancel_on;
use crate::status_line::StatusLine;
use crate::text::{line, parse_duration};

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
    /// The volume that the server's files lie on, such as gp3:size=500GiB: its limits decide
    #[arg(long, value_name = "SPEC")]
    volume: Option<String>,
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

/// How long to look where nothing is said.
const INTERVAL: Duration = Duration::from_secs(30);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("use 1s to 24h".into()) }
}

/// Looks twice, judges and says so.
///
/// # Errors
/// A volume that there is not (exit code 2); a server that does not answer, or does not tell what is
/// needed (exit code 3).
pub(super) fn run(args: &CandidateArgs, place: &Place, json: bool) -> anyhow::Result<Exit> {
    let home = place.existing()?;
    let storage = args.volume.as_deref().map(|spec| storage(home.as_ref(), spec)).transpose()?;
    let target = args.server.target();
    let [endpoint] = &target.endpoints[..] else {
        return Err(Refusal::usage(
            "--candidate looks at one server: name one host and one port, or one socket",
        )
        .into());
    };
    let cancel = cancel_on(signals())?;
    let mut session = Session::open_without_database(&target, endpoint).map_err(refuse)?;
    let facts = Facts::read(&mut session).map_err(refuse_status)?;
    let settings = settings(&facts, args.fs)?;
    let mut sampler = Sampler::open_as_it_is(session, facts.flavour).map_err(refuse_status)?;
    let Some((before, after)) = look(&mut sampler, args.interval.unwrap_or(INTERVAL), &cancel)? else {
        let message = "ended before the second look: nothing was judged";
        return Err(Refusal::environment(message).hint("a shorter --interval ends sooner").into());
    };
    let rates = Counters::between(&before, &after);
    let work = workload(&rates, (after.at - before.at).as_secs_f64())
        .map_err(|missing| untold(&missing, before.uptime() > after.uptime()))?;
    let candidate = judge(&work, &settings, storage.as_ref());
    if json {
        answers::print(&Judged {
            server: &facts,
            at: endpoint.to_string(),
            settings: &settings,
            volume: storage.as_ref(),
            workload: &work,
            judgement: &candidate,
        });
    } else {
        let seen =
            text::Seen { facts: &facts, at: endpoint.to_string(), work: &work, storage: storage.as_ref() };
        line(&text::answer(&seen, &candidate));
    }
    Ok(exit(&candidate))
}

/// No answer is not a no: scripts are told apart from both.
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

/// What lies below the server.
fn storage(home: Option<&Home>, spec: &str) -> anyhow::Result<Storage> {
    let resolved = ebbtide_control::resolve(home, spec).map_err(crate::refusal::refuse)?;
    if resolved.members[0].accounting.whole_units {
        let message =
            format!("--volume {spec}: an operation there takes a whole unit, which is not reckoned here");
        return Err(Refusal::usage(message).hint("name an SSD volume, or leave --volume out").into());
    }
    let written = Spec::parse(spec).expect("it has been read before it was resolved");
    Ok(Storage::of(&written, &resolved))
}

fn settings(facts: &Facts, fs: Option<FsType>) -> anyhow::Result<Settings> {
    if let Some(version) = &facts.aurora {
        let message = format!(
            "this is Aurora {version}: its storage takes redo and no pages, so none is written twice"
        );
        return Err(Refusal::environment(message).into());
    }
    let word = facts.doublewrite.as_deref().unwrap_or_default().to_ascii_uppercase();
    let doublewrite = match &*word {
        "ON" | "1" | "TRUE" | "FAST" | "DETECT_AND_RECOVER" => Doublewrite::On,
        "DETECT_ONLY" => Doublewrite::DetectOnly,
        "OFF" | "0" | "FALSE" => Doublewrite::Off,
        "" => return Err(Refusal::environment("the server has no innodb_doublewrite: is InnoDB off?").into()),
        _ => {
            let message = format!("innodb_doublewrite is {word}, which is not known here");
            return Err(Refusal::environment(message).into());
        }
    };
    let page_bytes = facts.page_bytes.filter(|bytes| *bytes > 0);
    let page_bytes = page_bytes.ok_or_else(|| Refusal::environment("the server has no innodb_page_size"))?;
    let (direct, flush_neighbors) = (facts.direct, facts.flush_neighbors);
    let files = fs.map(|fs| FileSystem {
        name: fs.name().to_owned(),
        aligned_bytes: if fs == FsType::Ext4Bigalloc { CLUSTER_BYTES } else { 0 },
    });
    let release = facts.release().map(|version| Release {
        name: format!("{} {version}", facts.flavour),
        listed: facts.flavour.runs_without_doublewrite(version),
    });
    Ok(Settings { doublewrite, page_bytes, direct, flush_neighbors, files, release })
}

/// Two looks; none where it was ended in between.
fn look(
    sampler: &mut Sampler,
    interval: Duration,
    cancel: &Cancel,
) -> anyhow::Result<Option<(Counters, Counters)>> {
    let mut status = StatusLine::new();
    let before = sampler.sample().map_err(refuse_status)?;
    let (begun, mut asked) = (Instant::now(), Instant::now());
    let end = begun + interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if cancel.is_cancelled() {
            return Ok(None);
        }
        if left.is_zero() {
            break;
        }
        status.show(&format!("watching the server's counters: {:.0} s left", left.as_secs_f64().ceil()));
        if asked.elapsed() >= KEEP_ALIVE {
            sampler.session().execute("DO 1").map_err(lost)?;
            asked = Instant::now();
        }
        std::thread::sleep(left.min(Duration::from_millis(200)));
    }
    let after = sampler.sample().map_err(lost)?;
    Ok(Some((before, after)))
}

/// How often a connection is used, so that neither server (`wait_timeout`) nor firewall takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

fn lost(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let message = "the connection was lost between the two looks";
    let refusal = Refusal::environment(message).hint("look again, once the server answers");
    anyhow::Error::new(error).context(refusal)
}

/// The figures that the judgement needs, or the names of those that the server does not tell.
fn workload(rates: &Rates, seconds: f64) -> Result<Workload, Vec<&'static str>> {
    let mut missing = Vec::new();
    let mut needed = |name, rate: Option<f64>| {
        rate.unwrap_or_else(|| {
            missing.push(name);
            f64::NAN
        })
    };
    let work = Workload {
        seconds,
        page_writes: needed("Innodb_pages_written", rates.page_writes),
        doublewrite_pages: needed("Innodb_dblwr_pages_written", rates.doublewrite_pages),
        doublewrite_batches: needed("Innodb_dblwr_writes", rates.doublewrite_batches),
        page_reads: needed("Innodb_pages_read", rates.page_reads),
        redo_bytes: needed("Innodb_os_log_written", rates.redo_bytes),
        redo_writes: rates.redo_syncs.or(rates.redo_writes),
        binlog_bytes: rates.binlog_bytes,
        commits: rates.commits,
        write_statements: needed("Com_insert, Com_update and their kin", rates.write_statements),
        read_statements: needed("Com_select", rates.read_statements),
        free_page_waits: rates.wait_free,
        doublewrite_wait: rates.doublewrite_wait,
        doublewrite_mutex_wait: rates.doublewrite_mutex_wait,
    };
    if missing.is_empty() { Ok(work) } else { Err(missing) }
}

/// `restarted`: behind a proxy, whose connection outlives the server.
fn untold(missing: &[&'static str], restarted: bool) -> anyhow::Error {
    let names = missing.join(", ");
    let refusal = if restarted {
        Refusal::environment("the server was started again between the two looks: its counters began anew")
            .hint("look again")
    } else {
        Refusal::environment(format!("these counters of the server went back or are not there: {names}"))
            .hint("FLUSH STATUS sets some of them back; look again without it")
    };
    refusal.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(doublewrite: Option<&str>) -> Facts {
        Facts {
            flavour: ebbtide_mysql::Flavour::MySql,
            version: "8.4.0".into(),
            aurora: None,
            doublewrite: doublewrite.map(str::to_owned),
            page_bytes: Some(16_384),
            direct: None,
            flush_neighbors: None,
        }
    }

    #[test]
    fn every_word_of_the_setting_means_on_off_or_only_detecting() {
        let of = |word| settings(&facts(Some(word)), None).unwrap().doublewrite;
        assert_eq!(["ON", "fast", "DETECT_AND_RECOVER"].map(of), [Doublewrite::On; 3]);
        assert_eq!((of("OFF"), of("DETECT_ONLY")), (Doublewrite::Off, Doublewrite::DetectOnly));
        assert!(settings(&facts(Some("PERHAPS")), None).unwrap_err().to_string().contains("PERHAPS"));
        assert!(settings(&facts(None), None).unwrap_err().to_string().contains("InnoDB"));
        let aurora = Facts { aurora: Some("3.04".into()), ..facts(Some("ON")) };
        assert!(settings(&aurora, None).unwrap_err().to_string().contains("no pages"));
    }

    #[test]
    fn counters_that_are_missing_are_named_and_never_taken_for_zero() {
        let missing = workload(&Rates { page_writes: Some(1.0), ..Rates::default() }, 1.0).unwrap_err();
        assert!(missing.contains(&"Innodb_dblwr_writes") && !missing.contains(&"Innodb_pages_written"));
        assert!(untold(&missing, false).to_string().contains("Innodb_dblwr_writes"));
        assert!(untold(&missing, true).to_string().contains("started again"));
    }

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
        let settings = settings(&Facts { direct: Some(true), ..facts(Some("OFF")) }, None).unwrap();
        let of = |spec| exit(&judge(&work, &settings, Some(&storage(None, spec).unwrap())));
        assert_eq!(of("gp3:size=500GiB,twp=off"), Exit::Finding);
        assert_eq!(of("gp3:size=500GiB,twp=on"), Exit::Clean);
    }

    #[test]
    fn the_file_system_and_the_release_are_known_only_where_they_are_told() {
        let of = |fs: Option<FsType>| settings(&facts(Some("ON")), fs).unwrap();
        assert_eq!(of(None).files, None);
        let aligned = |fs| of(Some(fs)).files.unwrap().aligned_bytes;
        assert_eq!([FsType::Ext4Bigalloc, FsType::Ext4, FsType::Xfs].map(aligned), [16 << 10, 0, 0]);
        assert_eq!(of(None).release, Some(Release { name: "MySQL 8.4.0".into(), listed: true }));
        let own = Facts { version: "own build".into(), ..facts(Some("ON")) };
        assert_eq!(settings(&own, None).unwrap().release, None);
    }

    #[test]
    fn an_interval_of_less_than_a_second_or_over_a_day_is_refused() {
        assert!(parse_interval("500ms").is_err() && parse_interval("25h").is_err());
        assert_eq!(parse_interval("1s").unwrap(), Duration::from_secs(1));
    }
}
