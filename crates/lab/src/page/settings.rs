//! What the arms do not have in common, in the server's own words.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_load::Arrival;
use ebbtide_load::tpcc::{Statements, WaitMode};
use ebbtide_report::{Block, Cell, Fold, Listing, Section, Table};
use ebbtide_text::without_zeros;

use super::text;
use crate::experiment::{Arm, Fault, LoadKind, LoadPlan};
use crate::record::{ProgramFacts, ServerFacts};

/// More arms than this are listed one under the other, each by its differences from the first.
const COLUMNS: usize = 4;

/// Options that name a place or a trial's own file, and change nothing in the server.
const PLACES: [&str; 16] = [
    "basedir",
    "datadir",
    "defaults_file",
    "innodb_data_home_dir",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "lc_messages_dir",
    "log_bin_index",
    "log_error",
    "pid_file",
    "port",
    "server_id",
    "socket",
    "tmpdir",
    "user",
];

/// What an arm has, by name.
type Properties = BTreeMap<String, String>;

/// What is shown where an arm does not set an option.
const UNSET: &str = "server's default";

/// How these arms differ, each with the name that its page has for it.
#[must_use]
pub fn section(arms: &[(&str, &Arm)], server: &ServerFacts) -> Section {
    let arms: Vec<(&str, Properties)> =
        arms.iter().map(|(name, arm)| (*name, properties(server, arm))).collect();
    let names = differing(&arms);
    let mut blocks = Vec::new();
    if names.is_empty() {
        blocks.push(Block::Text("Nothing: all arms are the same.".into()));
    } else if arms.len() <= COLUMNS {
        blocks.push(Block::Table(side_by_side(&arms, &names)));
    } else {
        blocks.push(Block::Table(one_by_one(&arms, &names)));
    }
    blocks.extend(options(server));
    Section::new("What differs between the arms", blocks)
        .lead("Everything else is the same. Server options are written as the server was given them.")
}

/// Everything about an arm that another may have otherwise.
fn properties(server: &ServerFacts, arm: &Arm) -> Properties {
    let mut all = Properties::new();
    for (role, spec) in &arm.volumes {
        all.insert(format!("volume: {}", role.holds()), spec.clone());
    }
    let version = |programs: &BTreeMap<String, ProgramFacts>| {
        programs.get(&arm.name).map_or(&server.version, |program| &program.version).clone()
    };
    if !server.sources.is_empty() {
        // Of an arm whose power is cut, that is not the server with these settings.
        let of = if arm.crash.is_some() { "source: version" } else { "server: version" };
        all.insert(of.into(), version(&server.sources));
    }
    if !server.replicas.is_empty() && !arm.topology.is_single() {
        all.insert("replicas: version".into(), version(&server.replicas));
    }
    let instance = &arm.instance;
    all.insert("machine: memory".into(), text::bytes(instance.memory_bytes as f64));
    all.insert("machine: file system".into(), instance.fs.clone());
    all.insert("machine: share of".into(), format!("1/{}", instance.divided_by));
    if let Some(kind) = &instance.kind {
        all.insert("machine: EC2 type".into(), kind.clone());
    }
    if instance.rotational {
        all.insert("machine: disks".into(), "say that they rotate".into());
    }
    all.insert("load: workload".into(), workload(&arm.load));
    all.insert("load: connections".into(), arm.load.connections.to_string());
    if let Some(round_trip) = round_trip(&arm.load) {
        all.insert("load: round trip of its network".into(), round_trip);
    }
    all.insert("load: arrival".into(), arrival(arm.load.arrival));
    if let Some(batch) = &arm.batch {
        all.insert("load: batch job".into(), batch.sql.clone());
    }
    if let Some(crash) = &arm.crash {
        all.insert("crash: what ends".into(), crash.end.name().to_owned());
        all.insert("crash: fault".into(), crash.fault.map_or("none", Fault::name).to_owned());
    }
    match server.options.get(&arm.name) {
        Some(lines) => all.extend(lines.iter().filter_map(|line| option(line))),
        None => all.extend(arm.settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned()))),
    }
    all
}

/// An option line as a name and a value; none for those that name places.
fn option(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_start_matches("--");
    let (name, value) = line.split_once('=').unwrap_or((line, "ON"));
    let name = name.trim().replace('-', "_");
    (!name.is_empty() && !name.starts_with(['[', '#']) && !PLACES.contains(&name.as_str()))
        .then(|| (name, value.trim().to_owned()))
}

/// The round trip of a load's emulated network; none where it has none.
#[must_use]
pub fn round_trip(load: &LoadPlan) -> Option<String> {
    let us = load.round_trip_us;
    (us > 0).then(|| format!("{} ms", f64::from(us) / 1e3))
}

/// What a load runs, in words.
#[must_use]
pub fn workload(load: &LoadPlan) -> String {
    if load.workload == LoadKind::Tpcc {
        let waits = match load.wait {
            WaitMode::None => "without keying and think times",
            WaitMode::Spec => "with keying and think times",
        };
        let statements = match load.statements {
            Statements::Single => "",
            Statements::Batched => ", batched statements",
        };
        return format!("TPC-C 5.11, {waits}, {}{statements}", load.isolation);
    }
    let usual = ebbtide_load::Mix::default();
    let mix = &load.mix;
    let name = load.workload.name().to_owned();
    if *mix == usual {
        return name;
    }
    let counts = [
        ("point_selects", mix.point_selects, usual.point_selects),
        ("simple_ranges", mix.simple_ranges, usual.simple_ranges),
        ("sum_ranges", mix.sum_ranges, usual.sum_ranges),
        ("order_ranges", mix.order_ranges, usual.order_ranges),
        ("distinct_ranges", mix.distinct_ranges, usual.distinct_ranges),
        ("range_size", mix.range_size, usual.range_size),
        ("index_updates", mix.index_updates, usual.index_updates),
        ("non_index_updates", mix.non_index_updates, usual.non_index_updates),
        ("delete_inserts", mix.delete_inserts, usual.delete_inserts),
        ("gets_pct", mix.gets_pct, usual.gets_pct),
    ];
    let changed = counts.into_iter().filter(|(_, count, usual)| count != usual);
    let mut parts: Vec<String> = changed.map(|(name, count, _)| format!("{name}={count}")).collect();
    for (name, value, usual) in [
        ("range_selects", mix.range_selects, usual.range_selects),
        ("skip_trx", mix.skip_trx, usual.skip_trx),
    ] {
        if value != usual {
            parts.push(format!("{name}={}", if value { "on" } else { "off" }));
        }
    }
    format!("{name}, {}", parts.join(", "))
}

/// A rate that was chosen, not measured: without the zeros at its end.
fn chosen(per_second: f64) -> String {
    without_zeros(&text::short(per_second)).to_owned()
}

/// When transactions start, in words.
#[must_use]
pub fn arrival(arrival: Arrival) -> String {
    match arrival {
        Arrival::Closed => "closed loop: each connection waits for its answer".into(),
        Arrival::Fixed { per_second } => format!("open loop: {} a second, evenly", chosen(per_second)),
        Arrival::Poisson { per_second } => {
            format!("open loop: {} a second, Poisson", chosen(per_second))
        }
    }
}

/// The names whose values are not the same in all arms.
fn differing(arms: &[(&str, Properties)]) -> Vec<String> {
    let names: BTreeSet<&String> = arms.iter().flat_map(|(_, properties)| properties.keys()).collect();
    let differs = |name: &&String| {
        let values: BTreeSet<_> = arms.iter().map(|(_, properties)| properties.get(*name)).collect();
        values.len() > 1
    };
    names.into_iter().filter(differs).cloned().collect()
}

fn value(properties: &Properties, name: &str) -> String {
    let unset = if name.contains(": ") { "none" } else { UNSET };
    properties.get(name).cloned().unwrap_or_else(|| unset.into())
}

fn side_by_side(arms: &[(&str, Properties)], names: &[String]) -> Table {
    let columns = std::iter::once("").chain(arms.iter().map(|(name, _)| *name));
    let row = |name: &String| {
        let values = arms.iter().map(|(_, properties)| readable(&value(properties, name)));
        std::iter::once(Cell::from(name.as_str())).chain(values).collect()
    };
    Table {
        columns: columns.map(str::to_owned).collect(),
        rows: names.iter().map(row).collect(),
        prose: true,
        ..Table::default()
    }
}

/// A value, and what it comes to where it is a long number of bytes.
fn readable(value: &str) -> Cell {
    let bytes = value.parse::<u64>().ok().filter(|bytes| *bytes >= 1024 && bytes.is_multiple_of(1024));
    let detail = bytes.map_or(String::new(), |bytes| text::bytes(bytes as f64));
    Cell { detail, ..Cell::from(breakable(value)) }
}

/// Volume specs are long words: a space after each comma lets them wrap.
fn breakable(text: &str) -> String {
    text.replace(',', ", ").replace(",  ", ", ")
}

/// Every arm by what sets it apart from the first one.
fn one_by_one(arms: &[(&str, Properties)], names: &[String]) -> Table {
    let Some((_, first)) = arms.first() else { return Table::default() };
    let row = |(index, (name, properties)): (usize, &(&str, Properties))| {
        let apart = |name: &&String| index == 0 || value(properties, name) != value(first, name);
        let parts: Vec<String> =
            names.iter().filter(apart).map(|name| format!("{name} = {}", value(properties, name))).collect();
        let text = if parts.is_empty() { "the same as the first arm".to_owned() } else { parts.join("\n") };
        vec![Cell { group: Some(index), ..Cell::from(*name) }, Cell::from(text)]
    };
    Table {
        columns: vec!["Arm".into(), "The first arm in full, the others where they differ from it".into()],
        rows: arms.iter().enumerate().map(row).collect(),
        prose: true,
        ..Table::default()
    }
}

/// Every arm's options in full, in a fold; none where no server was started.
fn options(server: &ServerFacts) -> Option<Block> {
    let listing = |(arm, lines): (&String, &Vec<String>)| {
        Block::Listing(Listing { label: arm.clone(), text: lines.join("\n") })
    };
    let blocks: Vec<Block> = server.options.iter().map(listing).collect();
    (!blocks.is_empty())
        .then(|| Block::Fold(Fold { summary: "All options of every arm's server".into(), blocks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_a_name_and_a_value_however_it_is_written() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(option("innodb-flush-method = O_DIRECT"), pair("innodb_flush_method", "O_DIRECT"));
        assert_eq!(option("--skip-log-bin"), pair("skip_log_bin", "ON"));
        assert_eq!(option("socket=/run/x.sock"), None);
        assert_eq!(option("[mysqld]"), None);
    }

    #[test]
    fn only_what_differs_is_named() {
        let arm = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<Properties>()
        };
        let arms = [("a", arm(&[("x", "1"), ("y", "2")])), ("b", arm(&[("x", "1"), ("z", "3")]))];
        assert_eq!(differing(&arms), ["y", "z"]);
    }
}
