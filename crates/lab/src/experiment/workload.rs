//! The keys that belong to one kind of workload alone.

use ebbtide_load::tpcc::{Isolation, Statements, WaitMode};
use ebbtide_workload::LoadKind;

use super::ExperimentError;
use super::section::Section;

/// The keys of `[load]` that only TPC-C has.
const OF_TPCC: [&str; 3] = ["trx_level", "wait_mode", "statements"];
/// The keys of `[load]` that every workload has.
const OF_ALL: [&str; 5] = ["workload", "connections", "round_trip", "rate", "arrival"];

const LEVELS: [(&str, Isolation); 3] =
    [("rc", Isolation::ReadCommitted), ("rr", Isolation::RepeatableRead), ("ser", Isolation::Serializable)];
const WAITS: [(&str, WaitMode); 2] = [("none", WaitMode::None), ("spec", WaitMode::Spec)];

const STATEMENTS: [(&str, Statements); 2] =
    [("single", Statements::Single), ("batched", Statements::Batched)];

/// The isolation level, the waits and the statements of a load: only TPC-C's have a choice.
pub(super) fn tpcc(section: &Section<'_>) -> Result<(Isolation, WaitMode, Statements), ExperimentError> {
    let isolation = choice(section, "trx_level", &LEVELS)?.unwrap_or_default();
    let wait = choice(section, "wait_mode", &WAITS)?.unwrap_or_default();
    let statements = choice(section, "statements", &STATEMENTS)?.unwrap_or_default();
    Ok((isolation, wait, statements))
}

/// The value that a key names; none where it is not there.
fn choice<T: Copy>(
    section: &Section<'_>,
    key: &'static str,
    known: &[(&str, T)],
) -> Result<Option<T>, ExperimentError> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    let found = known.iter().find(|(name, _)| *name == text);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, value)| Some(*value))
        .ok_or_else(|| section.wrong(key, format!("'{text}' is none of {}", names.join(", "))))
}

/// Refuses keys that the workload does not have, and a workload on the tables of another one: `warehouses` are those
/// of TPC-C's tables, None for sysbench's.
pub(super) fn check(
    section: &Section<'_>,
    kind: LoadKind,
    warehouses: Option<u32>,
) -> Result<(), ExperimentError> {
    let foreign = section.keys().find(|key| match kind {
        LoadKind::Tpcc => !OF_ALL.contains(key) && !OF_TPCC.contains(key),
        LoadKind::Sysbench(_) => OF_TPCC.contains(key),
    });
    if let Some(key) = foreign {
        let of = if kind == LoadKind::Tpcc { "sysbench's workloads" } else { "tpcc" };
        return Err(section.wrong(key, format!("it belongs to {of}, and the workload is {kind}")));
    }
    match (kind, warehouses) {
        (LoadKind::Tpcc, None) => Err(section.wrong(
            "workload",
            "it needs the number of its warehouses: say, for example, warehouses = 10 in [data]",
        )),
        (LoadKind::Sysbench(_), Some(_)) => Err(section.wrong(
            "workload",
            format!(
                "[data] has warehouses, and {kind} runs on sysbench's tables: say workload = \"{}\", or take \
                 warehouses out",
                LoadKind::Tpcc
            ),
        )),
        _ => Ok(()),
    }
}
