//! From axes to arms: every combination of the options, and what is held against what.

use super::claims::{self, ClaimScope};
use super::file::{Axis, Compare, File, no_such};
use super::quick;
use super::read::{self, ArmPlan};
use super::set_option::{self, ArmChange, Whom};
use super::tree::{TomlTable, WrittenAt};
use super::{Arm, ArmError, Comparison, Experiment, ExperimentError, Overrides, ServerRole, TrialPlan};

/// Most arms of an experiment: more would take days, and are a slip.
const MOST_ARMS: usize = 200;

/// The name of the only arm of an experiment without axes.
const ONLY_ARM: &str = "base";

/// Which option of each axis an arm has.
type Choice = Vec<usize>;

/// Combines a file and the command line into an experiment.
pub(super) fn expand(
    name: &str,
    file: &File,
    overrides: &Overrides,
    seed: u64,
) -> Result<Experiment, ExperimentError> {
    let choices = choices(&file.axes)?;
    let names: Vec<String> = choices.iter().map(|choice| arm_name(&file.axes, choice)).collect();
    let changes = changes(name, file, &names, overrides)?;
    let mut base = file.base.clone();
    if overrides.quick {
        base.merge(&file.quick.patch);
    }
    let mut common = base.clone();
    for change in changes.iter().filter(|change| change.whom == Whom::All) {
        common.merge(&change.patch);
    }
    let data = read::data(&common)?;
    let keep = keep(file, &names, &choices, overrides)?;
    let mut arms = Vec::new();
    for (choice, name) in choices.iter().zip(&names).filter(|(_, name)| keep.contains(name)) {
        let tree = arm_tree(file, &base, &changes, choice, name, overrides.quick);
        let plan = read::arm(&tree, data)?;
        arms.push((choice.clone(), arm(file, choice, name, plan)));
    }
    if !file.equal_arms {
        refuse_equal(&arms)?;
    }
    let scope = ClaimScope {
        arms: &names,
        crash: file.has("crash"),
        batch: file.has("batch"),
        backup: file.has("backup"),
    };
    Ok(Experiment {
        name: name.to_owned(),
        title: if file.title.is_empty() { name.to_owned() } else { file.title.clone() },
        question: file.question.clone(),
        source: file.source.clone(),
        scale: file.scale.clone(),
        data,
        trial: TrialPlan { repeats: read::repeats(&common)? },
        comparisons: all_comparisons(file, &arms),
        arms: arms.into_iter().map(|(_, arm)| arm).collect(),
        claims: claims::read(&file.claims, scope)?,
        gain: read::gain(&common)?,
        region: overrides
            .region
            .clone()
            .or_else(|| Some(file.region.clone()).filter(|name| !name.is_empty())),
        over_limit: file.over_limit,
        left_out: Vec::new(),
        left_to_full: match overrides.quick {
            true => names.iter().filter(|name| !keep.contains(name)).cloned().collect(),
            false => Vec::new(),
        },
        seed,
    })
}

/// All combinations of options; the last axis turns fastest.
fn choices(axes: &[Axis]) -> Result<Vec<Choice>, ExperimentError> {
    let mut choices: Vec<Choice> = vec![Vec::new()];
    for axis in axes {
        if choices.len() * axis.options.len() > MOST_ARMS {
            return Err(axis.options[0].place.wrong(format!(
                "with the axis '{}' the experiment has {} arms or more, and at most {MOST_ARMS} are allowed: \
                 take out options or make it several experiments",
                axis.name,
                choices.len() * axis.options.len(),
            )));
        }
        let extended = choices.iter().flat_map(|choice| {
            (0..axis.options.len()).map(move |option| choice.iter().copied().chain([option]).collect())
        });
        choices = extended.collect();
    }
    Ok(choices)
}

fn arm_name(axes: &[Axis], choice: &Choice) -> String {
    let options: Vec<&str> =
        axes.iter().zip(choice).map(|(axis, &option)| axis.options[option].name.as_str()).collect();
    if options.is_empty() { ONLY_ARM.to_owned() } else { options.join(" / ") }
}

/// What the command line changes, in its order; `--volume`, `--repeats` and the like come last, and `--quick` of a
/// file that does not specify what that is comes first.
fn changes(
    name: &str,
    file: &File,
    names: &[String],
    overrides: &Overrides,
) -> Result<Vec<ArmChange>, ExperimentError> {
    let mut quick = Vec::new();
    if overrides.quick && !file.has_quick() {
        let full = expand(name, file, &Overrides { quick: false, ..overrides.clone() }, 0)?;
        quick = quick::changes(&full);
    }
    let set = overrides.set.iter().map(|(path, value)| set_option::change(file, names, path, value));
    let volume = overrides.volume.iter().map(|spec| set_option::volume(file, spec));
    let repeats =
        overrides.repeats.map(|repeats| set_option::trial("repeats", "--repeats", &repeats.to_string()));
    let measure =
        overrides.measure_s.map(|seconds| set_option::trial("measure", "--measure", &format!("{seconds}s")));
    let given = set.chain(volume).chain(repeats.into_iter().chain(measure).map(Ok));
    quick.into_iter().map(Ok).chain(given).collect()
}

/// The sections of one arm: the base, its options, then the command line.
fn arm_tree(
    file: &File,
    base: &TomlTable,
    changes: &[ArmChange],
    choice: &Choice,
    name: &str,
    quick: bool,
) -> TomlTable {
    let mut tree = base.clone();
    let options = || file.axes.iter().zip(choice).map(|(axis, &option)| &axis.options[option]);
    options().for_each(|option| tree.merge(&option.patch));
    options().filter(|_| quick).for_each(|option| tree.merge(&option.quick));
    let concerned = changes.iter().filter(|change| match &change.whom {
        Whom::All => true,
        Whom::With(axis, option) => choice[*axis] == *option,
        Whom::Arm(whole) => whole == name,
    });
    for change in concerned {
        tree.merge(&change.patch);
    }
    tree
}

fn arm(file: &File, choice: &Choice, name: &str, plan: ArmPlan) -> Arm {
    let option = |(axis, &option): (&Axis, &usize)| (axis.name.clone(), axis.options[option].name.clone());
    Arm {
        name: name.to_owned(),
        options: file.axes.iter().zip(choice).map(option).collect(),
        volumes: plan.volumes,
        settings: plan.settings,
        server: plan.server,
        topology: plan.topology,
        instance: plan.instance,
        load: plan.load,
        batch: plan.batch,
        backup: plan.backup,
        measure_s: plan.measure_s,
        warmup: plan.warmup,
        crash: plan.crash,
        optional: file.axes.iter().zip(choice).any(|(axis, &option)| axis.options[option].optional),
    }
}

/// The names of the arms to keep. Options of one axis add up; options of several axes narrow down.
fn keep<'a>(
    file: &File,
    names: &'a [String],
    choices: &[Choice],
    overrides: &Overrides,
) -> Result<Vec<&'a String>, ExperimentError> {
    let given = |arm: &String| (arm.trim().to_owned(), WrittenAt::option(format!("--arms {arm}")));
    let wanted: Vec<(String, WrittenAt)> = match (overrides.arms.is_empty(), overrides.quick) {
        (false, _) => overrides.arms.iter().map(given).collect(),
        (true, true) => file.quick.arms.clone(),
        (true, false) => Vec::new(),
    };
    if wanted.is_empty() {
        return Ok(names.iter().collect());
    }
    let mut whole = Vec::new();
    let mut by_axis: Vec<Vec<usize>> = vec![Vec::new(); file.axes.len()];
    for (text, place) in &wanted {
        match file.options(text).as_slice() {
            [] if names.contains(text) => whole.push(text),
            [] => return Err(place.wrong(no_such("arm", text, known_arms(file, names)))),
            axes => axes.iter().for_each(|(axis, option)| by_axis[*axis].push(*option)),
        }
    }
    let narrowed = by_axis.iter().any(|options| !options.is_empty());
    let matches = |choice: &Choice| {
        let fits = |(options, option): (&Vec<usize>, &usize)| options.is_empty() || options.contains(option);
        narrowed && by_axis.iter().zip(choice).all(fits)
    };
    let kept = names.iter().zip(choices).filter(|(name, choice)| whole.contains(name) || matches(choice));
    Ok(kept.map(|(name, _)| name).collect())
}

/// The options, and the whole names of the arms where these are others.
fn known_arms<'a>(file: &'a File, names: &'a [String]) -> Vec<&'a str> {
    let whole = if file.axes.len() == 1 { &[] } else { names };
    file.option_names().into_iter().chain(whole.iter().map(String::as_str)).collect()
}

/// Two arms that would run the same are refused, unless that is what is asked.
fn refuse_equal(arms: &[(Choice, Arm)]) -> Result<(), ExperimentError> {
    let same = |a: &Arm, b: &Arm| {
        (&a.volumes, &a.settings, &a.server) == (&b.volumes, &b.settings, &b.server)
            && (&a.topology, &a.instance, &a.load, &a.batch, &a.backup, &a.crash)
                == (&b.topology, &b.instance, &b.load, &b.batch, &b.backup, &b.crash)
    };
    for (at, (_, arm)) in arms.iter().enumerate() {
        if let Some((_, twin)) = arms[..at].iter().find(|(_, earlier)| same(earlier, arm)) {
            let why = ArmError::Same { twin: twin.name.clone() };
            return Err(ExperimentError::of_arm(&arm.name, why));
        }
    }
    Ok(())
}

/// All that the file asks for, each once. An arm is held against one of its own role alone: what a replica
/// applies and what a primary commits are two figures.
fn all_comparisons(file: &File, arms: &[(Choice, Arm)]) -> Vec<Comparison> {
    let asked = file.compare.iter().flat_map(|compare| comparisons(file, compare, arms));
    let mut all: Vec<Comparison> = Vec::new();
    for comparison in asked.filter(|one| role(&arms[one.arm].1) == role(&arms[one.baseline].1)) {
        if !all.contains(&comparison) {
            all.push(comparison);
        }
    }
    all
}

/// Each arm against the one that differs from it in the axis alone. Where there is no arm of its role with the
/// baseline, such as one that was left out by `--arms`, the first option that has one is used.
fn comparisons(file: &File, compare: &Compare, arms: &[(Choice, Arm)]) -> Vec<Comparison> {
    let axis = compare.axis;
    let options = &file.axes[axis].options;
    let named = options.iter().position(|option| option.name == compare.baseline);
    let baseline_of = |arm: &Arm| {
        let there = |option: &usize| {
            arms.iter().any(|(choice, other)| choice[axis] == *option && role(other) == role(arm))
        };
        named.filter(&there).or_else(|| (0..options.len()).find(there))
    };
    let against = |choice: &Choice, baseline: usize| {
        let mut wanted = choice.clone();
        wanted[axis] = baseline;
        arms.iter().position(|(other, _)| *other == wanted)
    };
    let compared = arms.iter().enumerate().filter_map(|(index, (choice, arm))| {
        let baseline = baseline_of(arm).filter(|baseline| choice[axis] != *baseline)?;
        let baseline = against(choice, baseline)?;
        Some(Comparison { axis: file.axes[axis].name.clone(), arm: index, baseline })
    });
    compared.collect()
}

fn role(arm: &Arm) -> Option<ServerRole> {
    arm.crash.as_ref().map(|crash| crash.role)
}
