//! Going on with a run of either lab: its directory knows the experiment, and the command that it was begun with.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use clap::Parser as _;
use ebbtide_lab::experiment::Overrides;
use ebbtide_lab::record::ServerFacts;
use ebbtide_mysql::{Binary, NamedServers, ServerError, is_trusted};
use ebbtide_text::shell_words::{quoted, unquoted};

use crate::cli::Cli;
use crate::exit::Refusal;
use crate::home::HomePath;
use crate::run::detect;
use crate::text::note;

/// The command that goes on with the run in a directory, from wherever it is given. A program that the user has named has to
/// be allowed again: the directory could be anyone's.
pub(crate) fn command(lab: &str, out: &Path, servers: &ServerFacts) -> String {
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let of_arms = servers.sources.values().chain(servers.replicas.values()).map(|program| &program.path);
    let trusted = |path: &String| is_trusted(Path::new(path));
    let allow = if of_arms.chain([&servers.path]).all(trusted) { "" } else { " --allow-servers" };
    format!("ebbtide {lab} --resume --out {}{allow}", quoted(&out.display().to_string()))
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

/// The home of a run that goes on: the one that it was begun with. A file of the results names it, which could be anyone's, so
/// it has to be the one that the user has named (`own`), or one of theirs where a lab has been.
pub(crate) fn home(begun: &Cli, own: &HomePath, out: &Path) -> anyhow::Result<HomePath> {
    let home = HomePath::of(begun)?;
    if home.path() == own.path() || has_lab(home.path()) {
        return Ok(home);
    }
    let path = home.path().display().to_string();
    let message = format!("{} names the home {path}, where you have run no lab", out.display());
    Err(Refusal::usage(message)
        .hint(format!("if it shall be made there, give it: --home {}", quoted(&path)))
        .into())
}

/// Whether this is a directory of this user in which a lab has run.
fn has_lab(home: &Path) -> bool {
    let is_own = |dir: &Path| {
        std::fs::symlink_metadata(dir)
            .is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw())
    };
    home.canonicalize().is_ok_and(|home| is_own(&home) && is_own(&home.join("lab")))
}

/// The refusal of results that do not have how they were begun.
pub(crate) fn other_command(out: &Path) -> anyhow::Error {
    let message = format!("{} does not say how its run was begun", out.display());
    Refusal::usage(message).hint("name the experiment and all options that it was begun with").into()
}

/// The server of a run that goes on: the one that was given now, or the one that it was begun with. The latter is named by a
/// file of the directory, and is started only if it is trusted or allowed.
pub(crate) fn server(
    given: Option<&Path>,
    known: &ServerFacts,
    out: &Path,
    servers: &NamedServers,
) -> anyhow::Result<Binary> {
    if given.is_some() {
        return detect(given);
    }
    if !is_trusted(Path::new(&known.path)) {
        note(&format!("note: {} names the server program {}", out.display(), known.path));
    }
    servers.find(&known.path).map_err(|error| {
        if let ServerError::NotAllowed { .. } = error {
            let hint =
                "name the server with --server PATH, or allow that of the results with --allow-servers";
            return Refusal::usage(error.to_string()).hint(hint).into();
        }
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
    fn the_command_that_goes_on_allows_the_programs_that_the_user_had_named() {
        let facts = |path: &str| ServerFacts { path: path.to_owned(), ..ServerFacts::default() };
        let named = command("run", Path::new("/o"), &facts("/nowhere/mysqld"));
        assert_eq!(named, "ebbtide run --resume --out /o --allow-servers");
        let Ok(own) = Binary::detect(None) else { return println!("SKIPPED: no server program") };
        let own = own.path.display().to_string();
        assert_eq!(command("run", Path::new("/o"), &facts(&own)), "ebbtide run --resume --out /o");
        let other =
            ebbtide_lab::record::ProgramFacts { path: "/nowhere/mysqld".into(), ..Default::default() };
        let facts = ServerFacts { replicas: [("a".to_owned(), other)].into(), ..facts(&own) };
        assert!(command("run", Path::new("/o"), &facts).ends_with(" --allow-servers"));
    }

    #[test]
    fn results_lead_to_no_home_that_the_user_has_neither_named_nor_run_a_lab_in() {
        let dir = tempfile::tempdir().unwrap();
        let named = dir.path().join("h");
        let begun = begun(&format!("ebbtide run same-twice --home {}", named.display()), dir.path()).unwrap();
        let own = |path: &Path| HomePath::named(Some(path.to_owned())).unwrap();
        let home_of =
            |own: &HomePath| home(&begun, own, Path::new("/out")).map(|home| home.path().to_owned());
        let error = home_of(&own(dir.path())).unwrap_err();
        assert!(
            format!("{error:#}").contains(&format!("/out names the home {}", named.display())),
            "{error:#}"
        );
        assert!(!named.exists());
        assert_eq!(home_of(&own(&named)).unwrap(), named);
        std::fs::create_dir_all(&named).unwrap();
        home_of(&own(dir.path())).unwrap_err();
        // What another put there is no lab of the user.
        std::os::unix::fs::symlink(dir.path(), named.join("lab")).unwrap();
        home_of(&own(dir.path())).unwrap_err();
        std::fs::remove_file(named.join("lab")).unwrap();
        std::fs::create_dir(named.join("lab")).unwrap();
        assert_eq!(home_of(&own(dir.path())).unwrap(), named);
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
