//! sysbench's order of words: the workload comes before what is done with it (`oltp_read_write run`).

use std::path::Path;

use ebbtide_load::{LoadKind, WORKLOADS};
use ebbtide_text::shell_words::quoted;

/// The commands, as sysbench has them.
const COMMANDS: [&str; 4] = ["prepare", "run", "check", "cleanup"];

/// For a command line with the workload before the command, or without a command: what to do, with the command
/// line that was meant. None for every other one.
pub(crate) fn in_our_order(words: &[String]) -> Option<String> {
    let load = words.iter().position(|word| word == "load")?;
    let (before, after) = words.split_at(load);
    let is_command = |word: &String| COMMANDS.contains(&word.as_str());
    let at = after.iter().position(|word| is_command(word) || workload(word).is_some())?;
    let workload = workload(&after[at])?;
    let command = after.iter().position(is_command);
    let name = command.map_or("run", |command| after[command].as_str());
    let options =
        after.iter().enumerate().skip(1).filter(|(index, _)| *index != at && Some(*index) != command);
    let mut meant = vec!["ebbtide".to_owned()];
    meant.extend(before.iter().skip(1).map(|word| quoted(word)));
    meant.extend(["load".to_owned(), name.to_owned()]);
    // The tables are the same for every workload of sysbench.
    meant.extend((name != "cleanup" || workload == LoadKind::Tpcc.name()).then(|| workload.to_owned()));
    meant.extend(options.map(|(_, word)| quoted(word)));
    Some(format!("the command comes before the workload: {}", meant.join(" ")))
}

/// The workload that a word names, as sysbench does: by its name, or by the path of its script.
fn workload(word: &str) -> Option<&str> {
    let name = match word.strip_suffix(".lua") {
        Some(script) => Path::new(script).file_name()?.to_str()?,
        None => word,
    };
    WORKLOADS.iter().find(|one| one.is_script && one.name == name).map(|one| one.name)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn hint(words: &str) -> Option<String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let hint = in_our_order(&words)?;
        Some(hint.strip_prefix("the command comes before the workload: ").unwrap().to_owned())
    }

    #[test]
    fn sysbenchs_order_is_answered_with_the_command_that_was_meant_and_that_one_is_taken() {
        for (written, meant) in [
            ("ebbtide load oltp_read_write run", "ebbtide load run oltp_read_write"),
            ("ebbtide load oltp_read_write", "ebbtide load run oltp_read_write"),
            (
                "ebbtide --json load --threads=4 oltp_read_only --tables 2 run --time=5",
                "ebbtide --json load run oltp_read_only --threads=4 --tables 2 --time=5",
            ),
            (
                "ebbtide load oltp_insert --table-size=100 prepare",
                "ebbtide load prepare oltp_insert --table-size=100",
            ),
            ("ebbtide load oltp_read_write --tables=4 cleanup", "ebbtide load cleanup --tables=4"),
            ("ebbtide load tpcc --warehouses=2 run", "ebbtide load run tpcc --warehouses=2"),
            ("ebbtide load ./tpcc.lua cleanup", "ebbtide load cleanup tpcc"),
            ("ebbtide load tpcc check --threads=4", "ebbtide load check tpcc --threads=4"),
            (
                "ebbtide load /usr/share/sysbench/oltp_point_select.lua run",
                "ebbtide load run oltp_point_select",
            ),
        ] {
            assert_eq!(hint(written).as_deref(), Some(meant));
            assert!(Cli::try_parse_from(written.split(' ')).is_err(), "{written}");
            Cli::try_parse_from(meant.split(' ')).unwrap();
        }
    }

    #[test]
    fn our_own_order_and_other_mistakes_get_no_hint() {
        for written in [
            "ebbtide load run oltp_read_write --no-such",
            "ebbtide load prepare --tables=x",
            "ebbtide load start",
            "ebbtide load delete",
            "ebbtide volume create load",
            "ebbtide run oltp_read_write",
        ] {
            assert_eq!(hint(written), None, "{written}");
        }
    }
}
