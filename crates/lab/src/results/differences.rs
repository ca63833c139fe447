//! Whether two runs are the same one, and where they part.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Header, ResultsError};
use crate::experiment::{Experiment, TrialPlan};
use crate::record::{LabRun, ProgramFacts, ServerFacts};

/// At most so many differences are named; the rest is counted.
const NAMED: usize = 8;

impl Header {
    /// Refuses to let `now` go on with the results of this run in a directory.
    ///
    /// # Errors
    /// [`ResultsError::Different`] with everything that keeps it from that.
    pub fn refuse_other(&self, dir: &Path, now: &Self) -> Result<(), ResultsError> {
        let differences = differences(self, now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(ResultsError::Different { dir: dir.to_path_buf(), differences })
    }
}

/// What keeps `now` from going on with the results of `before`: its place and both values, in words. The
/// command, the start and the host's load may differ; what is measured, with what and on what may not.
/// Volumes and instances are what the catalogue has, so overrides of it count too.
fn differences(before: &Header, now: &Header) -> Vec<String> {
    let mut found = Vec::new();
    // The region too: nothing that is measured depends on it, but the report is that of the run as it was begun.
    compare("experiment", &json(&before.experiment), &json(&now.experiment), &mut found);
    let facts = |run: &Header| {
        serde_json::json!({
            "program": run.ebbtide,
            "server": servers(&run.server, str::to_owned),
            "host": {
                "cpus": run.host.cpus,
                "cpu_model": run.host.cpu_model,
                "memory_bytes": run.host.memory_bytes,
                "kernel": run.host.kernel,
            },
        })
    };
    compare("", &facts(before), &facts(now), &mut found);
    compare(
        "catalogue",
        &overrides(before.overrides.as_deref()),
        &overrides(now.overrides.as_deref()),
        &mut found,
    );
    shortened(found)
}

/// In what an experiment on a server is another one than an earlier run's. Texts for people, the seed and
/// the number of trials may differ: a ratio is of the same things whatever they are.
pub(super) fn other_experiment(before: &LabRun, now: &Experiment, server: &ServerFacts) -> Vec<String> {
    let mut found = Vec::new();
    if before.experiment.name != now.name {
        // All else differs too, and means nothing.
        compare("experiment.name", &json(&before.experiment.name), &json(&now.name), &mut found);
        return found;
    }
    let measured = |experiment: &Experiment| {
        json(&Experiment {
            title: String::new(),
            question: String::new(),
            source: String::new(),
            scale: String::new(),
            region: None,
            claims: Vec::new(),
            seed: 0,
            trial: TrialPlan { repeats: 0 },
            ..experiment.clone()
        })
    };
    compare("experiment", &measured(&before.experiment), &measured(now), &mut found);
    // What is before it is the program's path, in whatever way it was called.
    let number = |text: &str| text.split_once("Ver ").map_or(text, |(_, version)| version).trim().to_owned();
    let facts = |facts: &ServerFacts| serde_json::json!({ "server": servers(facts, number) });
    compare("", &facts(&before.server), &facts(server), &mut found);
    shortened(found)
}

/// What is compared of the servers of a run: products, and versions as `version` has them.
fn servers(facts: &ServerFacts, version: impl Fn(&str) -> String) -> Value {
    let one = |flavour: &str, text: &str| serde_json::json!({ "flavour": flavour, "version": version(text) });
    let of_arms = |programs: &BTreeMap<String, ProgramFacts>| {
        let of_arm =
            |(arm, program): (&String, &ProgramFacts)| (arm.clone(), one(&program.flavour, &program.version));
        Value::Object(programs.iter().map(of_arm).collect())
    };
    let mut all = one(&facts.flavour, &facts.version);
    all["sources"] = of_arms(&facts.sources);
    all["replicas"] = of_arms(&facts.replicas);
    all
}

/// The first few differences, and how many there are besides.
fn shortened(mut found: Vec<String>) -> Vec<String> {
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("an experiment has text for keys and finite figures")
}

/// What the overrides of a run set; not for what reason, from which source, or since when.
fn overrides(text: Option<&str>) -> Value {
    let text = text.unwrap_or_default();
    let Ok(mut table) = toml::from_str::<toml::Table>(text) else { return Value::from(text) };
    let entries = table.get_mut("override").and_then(toml::Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
        entry.retain(|key, _| !["reason", "source", "date"].contains(&key));
    }
    json(&table)
}

fn compare(place: &str, before: &Value, now: &Value, found: &mut Vec<String>) {
    let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match (before, now) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                compare(&inside(name), value, b.get(name).unwrap_or(&Value::Null), found);
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                compare(&inside(name), &Value::Null, value, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{place}[{}]", item_name(a, b, index)), a, b, found);
            }
        }
        _ if before != now => found.push(format!("{place} was {}, is {}", shown(before), shown(now))),
        _ => {}
    }
}

/// Arms are known by their names, other items by their place.
fn item_name(before: &Value, now: &Value, index: usize) -> String {
    match (before.get("name").and_then(Value::as_str), now.get("name").and_then(Value::as_str)) {
        (Some(a), Some(b)) if a == b => a.to_owned(),
        _ => index.to_string(),
    }
}

/// A value as it is reported: long ones are cut.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "absent".to_owned(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("a list of {}", items.len()),
        other => other.to_string(),
    };
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text }
}
