//! What the risk buys: the experiment of the lab that a crash experiment names, run after its cuts.

use std::path::Path;

use ebbtide_catalog::Catalog;
use ebbtide_crash::CrashOptions;
use ebbtide_crash::record::{GAIN_DIR, GainRun, Gained};
use ebbtide_lab::experiment::{self, Experiment};
use ebbtide_lab::results::DATABASE;
use ebbtide_lab::run::{self as lab, Plan, RunOptions};
use ebbtide_lab::words::plan::AfterCuts;
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, NamedServers};
use ebbtide_text::shell_words::quoted;

use super::args::CrashArgs;
use crate::answers::GainPlan;
use crate::run::{Measured, Shown, measured, name_servers, refuse_experiment};
use crate::text::line;

/// The experiment of the lab that measures what the risk buys; None where the experiment names none, or nobody wants it.
pub(super) fn wanted(experiment: &Experiment, args: &CrashArgs) -> anyhow::Result<Option<Experiment>> {
    if args.no_gain {
        return Ok(None);
    }
    let gain = experiment::load_gain(experiment, args.quick).map_err(refuse_experiment)?;
    if let Some(gain) = &gain {
        name_servers(gain, experiment.gain.as_deref().unwrap_or_default());
    }
    Ok(gain)
}

/// Its plan. What cannot be run is refused here, before anything is cut.
pub(super) fn plan(
    gain: Option<Experiment>,
    catalog: &Catalog,
    server: &Binary,
    servers: &NamedServers,
) -> anyhow::Result<Option<Plan>> {
    gain.map(|gain| lab::plan_with(gain, catalog, server, servers).map_err(refuse_experiment)).transpose()
}

/// What would be measured, as an object.
pub(super) fn planned((gain, took): AfterCuts<'_>) -> GainPlan<'_> {
    let arms = gain.arms.iter().map(|arm| arm.name.as_str()).collect();
    GainPlan { name: &gain.name, arms, estimate_s: took.as_secs() }
}

/// An experiment of the lab that waits for the end of the cuts.
pub(crate) struct Gain {
    plan: Plan,
    options: RunOptions,
}

impl Gain {
    /// Settings that it shares with the cuts: the home, and the version.
    pub(super) fn new(plan: Plan, named: &str, args: &CrashArgs, options: &CrashOptions) -> Self {
        let out = options.out.join(GAIN_DIR);
        let options = RunOptions {
            home: options.home.clone(),
            resume: out.join(DATABASE).exists(),
            out,
            // A slow host is noted with every trial: after the cuts it is too late to refuse it.
            over_limit: true,
            command: command(named, plan.experiment().seed, args, &options.home),
            ebbtide: options.ebbtide.clone(),
            overrides: options.overrides.clone(),
        };
        Self { plan, options }
    }

    /// Measures it. Whatever ends it early is reported and recorded, since the cuts are there in any case.
    pub(super) fn measure(self, cancel: &Cancel, json: bool) -> Gained {
        if !json {
            line("");
        }
        match measured(self.plan, self.options, &[], cancel, Shown { json, prefix: "" }) {
            Ok(Some(measured)) => kept(&measured),
            Ok(None) => Gained { measured: None, failed: Some("it was ended before its first trial".into()) },
            Err(error) => {
                let why = format!("{error:#}");
                crate::text::note(&format!("what the risk buys was not measured: {why}"));
                Gained { measured: None, failed: Some(why) }
            }
        }
    }
}

fn kept(measured: &Measured) -> Gained {
    let failed = match &measured.cancelled {
        Some(error) => {
            let hint = error.hint().map_or_else(String::new, |hint| format!(": {hint}"));
            Some(format!("{error}{hint}"))
        }
        None if measured.is_whole() => None,
        None => Some("trials failed, were disqualified or are missing".into()),
    };
    Gained { measured: Some(GainRun::of(&measured.record, &measured.summary)), failed }
}

/// The command that makes the same run again.
fn command(named: &str, seed: u64, args: &CrashArgs, home: &Path) -> String {
    let mut words = vec!["ebbtide run".to_owned(), quoted(named)];
    words.push(format!("--home {}", quoted(&home.display().to_string())));
    words.extend(args.server.iter().map(|path| format!("--server {}", quoted(&path.display().to_string()))));
    words.push(format!("--seed {seed}"));
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.push("--over-limit".to_owned());
    words.extend(args.allow_servers.then(|| "--allow-servers".to_owned()));
    words.join(" ")
}
