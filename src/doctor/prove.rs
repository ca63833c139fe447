//! `--prove`: runs the experiment that [`ebbtide_doctor::proof`] makes of findings, as `ebbtide run` does.

use std::path::{Path, PathBuf};

use ebbtide_advisor::Finding;
use ebbtide_doctor::proof::{self, BEFORE, FILE, Proof, ProofError, Proposal, Scale, propose};
use ebbtide_lab::experiment::{self, Experiment, Overrides};
use ebbtide_lab::run::{self as lab, Plan, RunOptions};
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use ebbtide_observe::Observation;
use ebbtide_text::shell_words::quoted;

use super::args::{Explain, ProveArgs};
use super::refusal::refuse;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::run::{
    Shown, catalog, detect, directory_for, measured, refuse_experiment, show_missing, show_plan,
};
use crate::signals::{cancel_on, signals};
use crate::text::{line, note};
use crate::version;

/// The name of the experiment, and the beginning of the directory's.
const NAME: &str = "doctor-proof";

/// How a proof ended.
pub(super) enum Ended {
    /// Something was measured, or there was nothing to measure.
    Proof(Box<Proof>),
    /// `--check`, or a run that was ended: no answer follows.
    Exit(Exit),
}

/// The lab's server, found before the observed one is looked at.
///
/// # Errors
/// A program that is no server (exit code 2), or none on this machine (exit code 3).
pub(super) fn server(args: &ProveArgs) -> anyhow::Result<Option<Binary>> {
    args.prove.map(|_| detect(args.server.as_deref())).transpose()
}

/// Proves findings, and puts what was measured into them.
///
/// # Errors
/// A finding that there is not or that the lab cannot express, a server of another maker, an observation that does not show
/// the workload (exit code 2); a machine that cannot run it (exit code 3).
pub(super) fn prove(
    args: &ProveArgs,
    wanted: Explain,
    seen: &Observation,
    findings: &mut [Finding],
    binary: &Binary,
    place: &HomePath,
    json: bool,
) -> anyhow::Result<Ended> {
    let check = match wanted {
        Explain::All => None,
        Explain::One(check) => Some(check),
    };
    let chosen = proof::choose(check, findings).map_err(refuse)?;
    proof::check_maker(seen, binary).map_err(refuse)?;
    let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    let (catalog, catalog_text) = catalog(place)?;
    let proposal =
        propose(seen, &chosen, &catalog, binary, scale).map_err(|why| refuse(ProofError::NoProposal(why)))?;
    if let (Some(_), Some(not)) = (check, proposal.not_proved.first()) {
        return Err(refuse(ProofError::NotProved(not.clone())));
    }
    if proposal.codes.is_empty() {
        return Ok(Ended::Proof(Box::new(Proof::nothing(&binary.text, &proposal))));
    }
    let overrides = Overrides { seed: args.seed, ..Overrides::default() };
    let experiment = experiment::parse(NAME, FILE, &proposal.text, &overrides).map_err(refuse_experiment)?;
    let out = args.out.clone().unwrap_or_else(|| directory_for(&experiment.name));
    let plan = lab::plan(experiment, &catalog, binary).map_err(refuse_experiment)?;
    if args.check {
        return Ok(Ended::Exit(self::check(&plan, &proposal, json)));
    }
    if !json {
        announce(&plan.experiment(), seen);
    }
    write(&out, &proposal)?;
    let options = RunOptions {
        home: place.made()?.root().to_owned(),
        out: out.clone(),
        resume: false,
        over_limit: args.over_limit,
        command: command(&out, args, place, plan.experiment().seed),
        ebbtide: version::of_results(),
        overrides: catalog_text,
    };
    let cancel = cancel_on(signals())?;
    let proof = run(&proposal, plan, options, &Observed { seen, cancel: &cancel, json }, findings)?;
    Ok(proof.map_or(Ended::Exit(Exit::Finding), |proof| Ended::Proof(Box::new(proof))))
}

/// What a run needs besides its plan.
struct Observed<'a> {
    seen: &'a Observation,
    cancel: &'a Cancel,
    json: bool,
}

/// Runs a plan, and puts what was measured into the findings; None where it was ended before anything was measured.
fn run(
    proposal: &Proposal,
    plan: Plan,
    options: RunOptions,
    observed: &Observed<'_>,
    findings: &mut [Finding],
) -> anyhow::Result<Option<Proof>> {
    let out = options.out.clone();
    let shown = Shown { json: observed.json, prefix: "" };
    let Some(measured) = measured(plan, options, &[], observed.cancel, shown)? else {
        return Ok(None);
    };
    if !measured.is_whole() {
        note("not every trial was made and counts: the proof rests on those that do");
    }
    proof::attach(findings, &measured.record, &measured.summary);
    let results = (&measured.record, &measured.summary);
    Ok(Some(Proof::of(proposal, observed.seen, results, &out, &measured.report)))
}

/// What would run.
fn check(plan: &Plan, proposal: &Proposal, json: bool) -> Exit {
    let experiment = plan.experiment();
    let missing = lab::missing(plan);
    if !json {
        line(&format!("{}\nthe workload: {}\n", proposal.text, proposal.workload()));
        let not =
            proposal.not_proved.iter().map(|one| format!("not proved: {}, because {}", one.code, one.why));
        let left = proposal.left_out.iter().map(|what| format!("not taken by the lab's server: {what}"));
        not.chain(left).for_each(|text| line(&text));
    }
    let took = experiment::estimate(&experiment);
    show_plan(plan, &experiment, took, None, &missing, json);
    show_missing(&missing, json)
}

/// What runs, and for how long; that a run beside a server in use is no good idea.
fn announce(experiment: &Experiment, seen: &Observation) {
    let estimate = ebbtide_lab::words::span(experiment::estimate(experiment).as_secs_f64());
    line(&format!("proving {} in the lab: about {estimate}", arms(experiment)));
    if seen.host.is_some() && matches!(seen.origin, ebbtide_observe::Origin::Server { .. }) {
        note(
            "the lab works beside the server and takes processors, memory and disk of this machine: for a server in use, capture it and prove on another machine with --from",
        );
    }
}

/// The arms that are held against the settings of now.
fn arms(experiment: &Experiment) -> String {
    let names = experiment.arms.iter().map(|arm| arm.name.as_str()).filter(|name| *name != BEFORE);
    names.collect::<Vec<_>>().join(", ")
}

/// Writes the experiment where its results will be.
fn write(out: &Path, proposal: &Proposal) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).map_err(|error| {
        let refusal = Refusal::environment(format!("cannot make {}", out.display()))
            .hint("name a directory that you may write with --out");
        anyhow::Error::new(error).context(refusal)
    })?;
    super::output::write(&out.join(FILE), &proposal.text)
}

/// The command that makes the same run again.
fn command(out: &Path, args: &ProveArgs, place: &HomePath, seed: u64) -> String {
    let file: PathBuf = std::path::absolute(out).unwrap_or_else(|_| out.to_owned()).join(FILE);
    let path = |path: &Path| quoted(&path.display().to_string());
    let mut words = vec![format!("ebbtide run {} --home {}", path(&file), path(place.path()))];
    words.extend(args.server.iter().map(|server| format!("--server {}", path(server))));
    words.push(format!("--seed {seed}"));
    words.extend(args.over_limit.then(|| "--over-limit".to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;

    use ebbtide_advisor::judge;
    use ebbtide_doctor::answer::proof_rows;
    use ebbtide_doctor::fixture::busy_mariadb;
    use ebbtide_observe::Volumes;

    use super::*;

    /// With a buffer pool of 32 MiB, on a small volume.
    fn seen() -> Observation {
        let seen = busy_mariadb(&[("innodb_buffer_pool_size", "33554432")]);
        Observation { volumes: Volumes::new(Some("gp3:size=2GiB".into())), ..seen }
    }

    #[test]
    fn a_fix_is_run_in_the_lab_and_what_it_gains_stands_in_the_finding() {
        let seen = seen();
        let findings = judge(&seen, &Catalog::builtin());
        let chosen: Vec<&Finding> = findings.iter().filter(|finding| finding.code == "D03").collect();
        let Ok(binary) = Binary::detect(None) else { return println!("SKIPPED: no server program") };
        if proof::check_maker(&seen, &binary).is_err() {
            return println!("SKIPPED: the server is no MariaDB");
        }
        let proposal = propose(&seen, &chosen, &Catalog::builtin(), &binary, Scale::QUICK).unwrap();
        let overrides = Overrides { seed: Some(7), ..Overrides::default() };
        let mut experiment = experiment::parse(NAME, FILE, &proposal.text, &overrides).unwrap();
        // Shorter than a file may ask for: these trials are not to be believed, only to be run.
        (experiment.trial.repeats, experiment.data.rows) = (1, 5_000);
        for arm in &mut experiment.arms {
            (arm.measure_s, arm.warmup.lead_in_s) = (3, 1);
        }
        let plan = lab::plan(experiment, &Catalog::builtin(), &binary).unwrap();
        if let [first, ..] = &lab::missing(&plan)[..] {
            return println!("SKIPPED: {first}");
        }
        let observed = Observed { seen: &seen, cancel: &Cancel::default(), json: true };
        // A trial whose machine was too busy is disqualified, and a gain needs both.
        let tries = (1..=5).find_map(|attempt| {
            let dir = tempfile::tempdir().unwrap();
            let options = RunOptions {
                home: dir.path().join("home"),
                out: dir.path().join("out"),
                resume: false,
                over_limit: true,
                command: "a test".into(),
                ebbtide: "test".into(),
                overrides: None,
            };
            std::fs::create_dir(&options.home).unwrap();
            let mut findings = findings.clone();
            let proof = run(&proposal, plan.clone(), options, &observed, &mut findings).unwrap().unwrap();
            let gain = findings.iter().find(|finding| finding.code == "D03").unwrap().measured;
            println!("attempt {attempt}: {gain:?}");
            gain.map(|gain| (gain, proof, findings, dir))
        });
        let (gain, proof, findings, dir) = tries.unwrap();
        assert!(gain.times > 0.0 && gain.trials == 1 && gain.low.is_none(), "{gain:?}");
        assert!(findings.iter().all(|finding| finding.code == "D03" || finding.measured.is_none()));
        let rows = proof_rows(&proof);
        let selects = rows.iter().find(|row| row[0].starts_with("SELECT")).unwrap();
        let measured: f64 = selects[2].parse().unwrap();
        assert!(selects[1] == "10.0" && (8.0..12.0).contains(&measured), "{rows:?}");
        assert!(rows.iter().all(|row| row[2] != "-"), "the lab's server counts all of them: {rows:?}");
        assert!(dir.path().join("out/report.html").exists());
    }
}
