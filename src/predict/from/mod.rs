//! `--profile-from`: a profile of what was measured of a server.
//!
//! [`lab`] takes a run of the lab, [`seen`] what the doctor observes or reads of files; [`settings`] makes the server's
//! table of its variables. What they leave is a [`Draft`], of which everything that is missing is named at once.

mod busy;
mod lab;
mod seen;
mod settings;

use std::path::PathBuf;

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_mysql::captured::Hints;
use ebbtide_twin::innodb::{CalibrateError, calibrate, contradicting};
use ebbtide_twin::profile::{Profile, WorkloadTable};
use serde::Serialize;

use super::plan::set;
use super::server::{Runs, calibrating, calibration_points, facts, instance_of, trials};
use super::{PredictArgs, ProfileArgs};
use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::text::{line, note, write};

/// What a source shows, before the user adds what it lacks.
#[derive(Debug, Default)]
struct Draft {
    profile: Profile,
    /// Another description of the workload, for where the first does not fit what was measured.
    observed: Option<WorkloadTable>,
    /// What a reader of the profile must know, in sentences.
    notes: Vec<String>,
}

/// Something that a profile needs and the source lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Missing {
    /// Its key, as `--set` takes it.
    key: &'static str,
    /// Where to get it.
    from: &'static str,
}

/// What `predict --profile-from` prints.
#[derive(Debug, Serialize)]
pub(super) struct ProfileMade<'a> {
    /// The file that was written; null without --out.
    file: Option<&'a PathBuf>,
    /// The profile, as TOML.
    profile: String,
    /// Measured points in it.
    points: usize,
    /// What a reader of it must know, in sentences: what was assumed, and what was left out. For people; the wording may
    /// change.
    notes: &'a [String],
    /// Points that contradict the others and were left out, in sentences.
    contradicting: &'a [String],
}

/// Makes the profile, checks that `predict` can use it, and writes it.
///
/// # Errors
/// A source that cannot be read, or that lacks something which `--set` does not give: exit code 2.
pub(super) fn make(args: &PredictArgs, catalog: &Catalog, json: bool) -> anyhow::Result<Exit> {
    let mut draft = draft(&args.source)?;
    set(&mut draft.profile, &args.set)?;
    refuse_missing(&draft.profile)?;
    let contradicting = fit(&mut draft, catalog, args.seed)?;
    let text = text(args, &draft, &contradicting);
    if let Some(file) = &args.source.out {
        std::fs::write(file, &text).with_context(|| {
            Refusal::environment(format!("cannot write {}", file.display()))
                .hint("give --out a file in a directory that is there and that you may write")
        })?;
    }
    show(args, &draft, text, &contradicting, json)?;
    Ok(if contradicting.is_empty() { Exit::Clean } else { Exit::Finding })
}

fn show(
    args: &PredictArgs,
    draft: &Draft,
    text: String,
    contradicting: &[String],
    json: bool,
) -> anyhow::Result<()> {
    let points = draft.profile.points.len();
    let file = args.source.out.as_ref();
    if json {
        answers::print(&ProfileMade { file, profile: text, points, notes: &draft.notes, contradicting });
        return Ok(());
    }
    match file {
        None => write(&text)?,
        Some(file) => {
            draft.notes.iter().for_each(|one| line(one));
            let s = if points == 1 { "" } else { "s" };
            line(&format!("wrote {} with {points} measured point{s}", file.display()));
        }
    }
    contradicting.iter().for_each(|one| note(one));
    Ok(())
}

fn draft(source: &ProfileArgs) -> anyhow::Result<Draft> {
    let paths = &source.profile_from;
    if let [dir] = &paths[..]
        && lab::is_run(dir)
    {
        return lab::draft(dir, source.arm.as_deref());
    }
    if let Some(arm) = &source.arm {
        let message = format!("--arm {arm}: the source is no run of the lab, and has no arms");
        return Err(Refusal::usage(message).hint("give the directory of `ebbtide run`, or no --arm").into());
    }
    let hints = Hints { version: source.server_version.clone(), devices: source.device.clone() };
    seen::draft(&crate::bundle::read(paths, &hints)?)
}

/// Everything that `predict` would refuse the profile for, one thing after the other.
fn missing(profile: &Profile) -> Vec<Missing> {
    let (server, workload) = (&profile.server, &profile.workload);
    let observed = workload.kind.as_deref() == Some("observed");
    let pages = "two SHOW GLOBAL STATUS under the usual load, some minutes apart: the growth of Innodb_pages_read and \
                 Innodb_pages_written by that of Com_commit";
    let has = |of: fn(&ebbtide_twin::profile::PointTable) -> bool| profile.points.iter().all(of);
    let rows = [
        (
            server.flavour.is_none(),
            "server.flavour",
            "SELECT VERSION(): mysql-8.0, mariadb-11 or another of docs/predict.md",
        ),
        (
            server.buffer_pool_size.is_none(),
            "server.buffer_pool_size",
            "SHOW GLOBAL VARIABLES LIKE 'innodb_buffer_pool_size'",
        ),
        (
            profile.machine.vcpus.is_none() && profile.machine.instance.is_none(),
            "machine.vcpus",
            "`nproc` on the server's machine; or give machine.instance, such as r6i.large",
        ),
        (observed && workload.pages.is_empty(), "[[workload.pages]]", pages),
        (
            observed && workload.redo_bytes.is_none(),
            "workload.redo_bytes",
            "the growth of Innodb_os_log_written by that of Com_commit",
        ),
        (
            observed && server.log_bin == Some(true) && workload.binlog_bytes.is_none(),
            "workload.binlog_bytes",
            "the growth of the files in SHOW BINARY LOGS by that of Com_commit; 0 where nothing is written",
        ),
        (
            !has(|point| point.volume.is_some()),
            "point.volume",
            "the volume that the data are on, such as gp3:size=500GiB",
        ),
        (
            !has(|point| point.tps.is_some()),
            "point.tps",
            "two SHOW GLOBAL STATUS under the usual load: the growth of Com_commit by that of Uptime",
        ),
        (
            !has(|point| point.clients.is_some() || point.rate.is_some()),
            "point.clients",
            "connections that were busy: the mean of Threads_running over some looks",
        ),
        (
            workload.cpu_us.is_none() && !profile.points.iter().any(|point| point.cpu_pct.is_some()),
            "point.cpu_pct",
            "us + sy of vmstat on the server's machine, or `iostat -x 60 2` among the files; or workload.cpu_us, the processor \
             time of a transaction",
        ),
    ];
    rows.into_iter().filter(|(lacks, ..)| *lacks).map(|(_, key, from)| Missing { key, from }).collect()
}

fn refuse_missing(profile: &Profile) -> anyhow::Result<()> {
    let missing = missing(profile);
    if missing.is_empty() {
        return Ok(());
    }
    let each = missing.iter().map(|one| format!("{} ({})", one.key, one.from));
    let message = format!("the source lacks what a profile needs: {}", each.collect::<Vec<_>>().join("; "));
    let example =
        missing.iter().map(|one| one.key).find(|key| !key.starts_with('[')).unwrap_or("machine.vcpus");
    Err(Refusal::usage(message).hint(format!("add it with --set, as in --set {example}=VALUE")).into())
}

/// Leaves out the points that contradict the others, and says which; takes the observed workload where the described one
/// does not fit. What is left is a profile that `predict` takes.
fn fit(draft: &mut Draft, catalog: &Catalog, seed: u64) -> anyhow::Result<Vec<String>> {
    let useless =
        || Refusal::usage("no profile can be made of this source").hint("docs/predict.md has every key");
    loop {
        let profile = &draft.profile;
        let instance = instance_of(profile, None, None, catalog)?;
        let known = instance.as_ref().map(|of| facts(of, profile.machine.divided_by.unwrap_or(1)));
        let planned = profile.plan(known.unwrap_or_default(), seed).with_context(useless)?;
        let points = calibration_points(profile, &planned, catalog, instance.as_ref())?;
        let runs = Runs { seed, asked: None };
        let apart = contradicting(&points, &trials(&planned, runs), planned.costs);
        let kept: Vec<_> = (0..points.len()).filter(|n| !apart.iter().any(|one| one.point == *n)).collect();
        let points: Vec<_> = kept.iter().map(|n| points[*n].clone()).collect();
        match calibrate(&points, &calibrating(&planned, runs)) {
            Ok(_) => {
                let said = apart.iter().map(|one| {
                    format!(
                        "{} contradicts the other points and is left out: its {} are {:.2} times what the others have",
                        name(profile, one.point),
                        one.what,
                        one.times
                    )
                });
                let said = said.collect();
                draft.profile.points = kept.iter().map(|n| profile.points[*n].clone()).collect();
                return Ok(said);
            }
            Err(error @ (CalibrateError::OutOfBounds { .. } | CalibrateError::Unreached { .. }))
                if draft.observed.is_some() =>
            {
                draft.notes.push(format!(
                    "the workload is taken as it was observed, since its description does not fit: {error}"
                ));
                draft.profile.workload = draft.observed.take().expect("it was looked at");
            }
            Err(error) => return Err(anyhow::Error::new(error).context(useless())),
        }
    }
}

fn name(profile: &Profile, point: usize) -> String {
    let number = format!("point {}", point + 1);
    match profile.points.get(point).and_then(|point| point.name.as_ref()) {
        Some(name) => format!("{number} ({name})"),
        None => number,
    }
}

/// The file: what a reader must know as comments, and the profile.
fn text(args: &PredictArgs, draft: &Draft, contradicting: &[String]) -> String {
    let sources: Vec<String> =
        args.source.profile_from.iter().map(|path| path.display().to_string()).collect();
    let mut text = format!(
        "# Made of {} by `ebbtide predict --profile-from`, {}. Keys: docs/predict.md.\n",
        sources.join(", "),
        crate::version::of_results()
    );
    for one in draft.notes.iter().chain(contradicting) {
        text.push_str(&format!("# {}\n", one.replace('\n', " ")));
    }
    text.push('\n');
    text.push_str(&draft.profile.to_toml());
    text
}

/// Four digits: no figure here is known better.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        assert_eq!((rounded(0.0), rounded(1.0 / 3.0), rounded(12_345.6)), (0.0, 0.3333, 12_350.0));
        assert_eq!((rounded(431.27), rounded(-0.001_234_56)), (431.3, -0.001_235));
    }

    #[test]
    fn everything_that_is_missing_is_named_with_where_to_get_it() {
        let profile = Profile {
            workload: WorkloadTable { kind: Some("observed".into()), ..WorkloadTable::default() },
            points: vec![ebbtide_twin::profile::PointTable::default()],
            ..Profile::default()
        };
        let keys: Vec<&str> = missing(&profile).iter().map(|one| one.key).collect();
        assert_eq!(
            keys,
            [
                "server.flavour",
                "server.buffer_pool_size",
                "machine.vcpus",
                "[[workload.pages]]",
                "workload.redo_bytes",
                "point.volume",
                "point.tps",
                "point.clients",
                "point.cpu_pct"
            ]
        );
        let error = refuse_missing(&profile).unwrap_err().to_string();
        assert!(error.contains("SELECT VERSION()") && error.contains("vmstat"), "{error}");
    }
}
