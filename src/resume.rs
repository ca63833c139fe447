//! Going on with a run of either lab: its directory knows the experiment, and the command that it was begun with.

use std::path::Path;

use clap::Parser as _;
use ebbtide_lab::experiment::Overrides;
use ebbtide_lab::record::ServerFacts;
use ebbtide_lab::shell_words::{quoted, unquoted};
use ebbtide_mysql::Binary;

use crate::cli::Cli;
use crate::exit::Refusal;
use crate::run::detect;

/// The command that goes on with the run in a directory, from wherever it is given.
pub(crate) fn command(lab: &str, out: &Path) -> String {
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    format!("ebbtide {lab} --resume --out {}", quoted(&out.display().to_string()))
}

/// The name of an experiment, or the path of its file as it is found from every directory.
pub(crate) fn from_anywhere(name: &str) -> String {
    let path = Path::new(name);
    match std::path::absolute(path) {
        Ok(absolute) if path.is_file() => absolute.display().to_string(),
        _ => name.to_owned(),
    }
}

/// Refuses changes of a run that goes on as it was begun.
pub(crate) fn refuse_changes(changes: &Overrides) -> anyhow::Result<()> {
    if *changes == Overrides::default() {
        return Ok(());
    }
    let message =
        "--resume goes on with a run as it was begun: its experiment, seed and region cannot be changed";
    Err(Refusal::usage(message)
        .hint("give --resume and --out alone, or begin anew in another directory")
        .into())
}

/// The command line that a run was begun with, from the text that the run has kept.
pub(crate) fn begun(command: &str, out: &Path) -> anyhow::Result<Cli> {
    let words = unquoted(command).unwrap_or_default();
    Cli::try_parse_from(words).map_err(|_| other_command(out))
}

/// The refusal of results that do not have how they were begun.
pub(crate) fn other_command(out: &Path) -> anyhow::Error {
    let message = format!("{} does not say how its run was begun", out.display());
    Refusal::usage(message).hint("name the experiment and all options that it was begun with").into()
}

/// The server of a run that goes on: the one that was given now, or the one that it was begun with.
pub(crate) fn server(given: Option<&Path>, known: &ServerFacts) -> anyhow::Result<Binary> {
    if given.is_some() {
        return detect(given);
    }
    Binary::detect(Some(Path::new(&known.path))).map_err(|error| {
        let message = format!("the server of this run, {}, is gone: {error}", known.version.trim());
        Refusal::environment(message).hint("name a server of the same version with --server PATH").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command;

    #[test]
    fn the_command_that_a_run_has_kept_is_taken_again() {
        let command = "ebbtide crash '/my dir/mine.toml' --home /srv/ebb --set 'a / b.io_capacity=7' --checkers 3 \
                       --server mariadb-11.8 --seed 9 --quick --no-gain";
        let begun = begun(command, Path::new("out")).unwrap();
        assert_eq!(begun.home.as_deref(), Some(Path::new("/srv/ebb")));
        let Command::Crash(args) = &begun.command else { panic!("{begun:?}") };
        assert_eq!(args.experiment.as_deref(), Some("/my dir/mine.toml"));
        let changes = crate::crash::changes(args).unwrap();
        assert_eq!((changes.quick, changes.seed), (true, Some(9)));
        assert_eq!(changes.set, [("a / b.io_capacity".to_owned(), "7".to_owned())]);
        super::begun("a test", Path::new("out")).unwrap_err();
    }

    #[test]
    fn what_goes_on_is_not_changed() {
        refuse_changes(&Overrides::default()).unwrap();
        refuse_changes(&Overrides { quick: true, ..Overrides::default() }).unwrap_err();
        let region = Some("eu-west-1".to_owned());
        let error = refuse_changes(&Overrides { region, ..Overrides::default() }).unwrap_err();
        assert!(format!("{error:#}").contains("region"), "{error:#}");
    }
}
