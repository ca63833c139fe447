//! Completion of names: the shell asks the program what may follow, so that it can offer what a home has.
//!
//! [`command`] adds a source of names to arguments of the table of commands; [`spec_completions`] is what a volume spec goes on with. The
//! scripts of bash and zsh are ours, since specs have `:` and `=` inside a word; that of fish is clap's. Why clap's engine:
//! docs/decisions/completion.md.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Command, CommandFactory as _};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _, complete,
};
use clap_complete::env::{CompleteEnv, EnvCompleter, Fish, Shells, Zsh};
use ebbtide_catalog::{Catalog, spec_completions};
use ebbtide_cloud::users::UserStore;
use ebbtide_control::protocol::Request;
use ebbtide_device::host::Home;
use ebbtide_lab::experiment::shipped;
use ebbtide_names::{Kind, expanded, names_of};
use ebbtide_text::seed;
use serde_json::Value;

use crate::cli::Cli;
use crate::control::ask_if_there;
use crate::docs;
use crate::home::HomePath;

/// The variable by which a shell asks.
const VARIABLE: &str = "EBBTIDE_COMPLETE";

/// How the program is found by the scripts.
const PROGRAM: &str = "ebbtide";

/// How long the server of the home may take: somebody waits at a prompt.
const PATIENCE: Duration = Duration::from_millis(500);

/// The shells.
const SHELLS: [&dyn EnvCompleter; 3] = [&NamesInBash, &Fish, &NamesInZsh];

/// Answers a shell that asks, on standard output. False: this is a command like any other.
///
/// # Errors
/// A shell that is not known; standard output takes no more.
pub(crate) fn answer() -> clap::error::Result<bool> {
    let place = std::env::current_dir().ok();
    let completion = CompleteEnv::with_factory(command).var(VARIABLE).completer(PROGRAM);
    completion.shells(Shells(&SHELLS)).try_complete(std::env::args_os(), place.as_deref())
}

/// The script that makes a shell ask; None for a shell that is not known.
pub(crate) fn script(shell: &str) -> Option<Vec<u8>> {
    let shell = SHELLS.into_iter().find(|known| known.is(shell))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).ok()?;
    Some(script)
}

/// A source of names: of all that there are.
type Names = fn() -> Vec<String>;

/// Where names stand: commands, the argument, and the source.
const NAMES: [(&[&str], &str, Names); 37] = [
    (&["volume", "create"], "snapshot", snapshots),
    (&["volume", "create"], "region", regions),
    (&["volume", "attach"], "name", volumes),
    (&["volume", "attach"], "instance", instances),
    (&["volume", "detach"], "name", volumes),
    (&["volume", "record"], "name", volumes),
    (&["volume", "modify"], "name", volumes),
    (&["volume", "list"], "region", regions),
    (&["volume", "show"], "name", volumes),
    (&["volume", "show"], "region", regions),
    (&["volume", "delete"], "name", volumes),
    (&["volume", "check"], "name", volumes),
    (&["volume", "fault"], "name", volumes),
    (&["volume", "fault"], "settings", faults),
    (&["volume", "crash-image"], "name", volumes),
    (&["snapshot", "create"], "volume", volumes),
    (&["snapshot", "delete"], "name", snapshots),
    (&["user", "delete"], "name", users),
    (&["role", "delete"], "name", roles),
    (&["run"], "region", regions),
    (&["run"], "delete_prepared", prepared),
    (&["crash"], "region", regions),
    (&["crash"], "replay", kept_seeds),
    (&["crash"], "delete_kept", kept_seeds),
    (&["doctor"], "server_name", servers),
    (&["doctor"], "instance", instances),
    (&["doctor"], "explain", checks),
    (&["doctor"], "prove", checks),
    (&["doctor", "capture"], "server_name", servers),
    (&["doctor", "capture"], "instance", instances),
    (&["watch"], "servers", servers),
    (&["predict"], "instance", instances),
    (&["size"], "instance", instances),
    (&["size"], "region", regions),
    (&["simulate"], "instance", instances),
    (&["simulate"], "region", regions),
    (&["docs"], "name", pages),
];

/// Where volume specs stand.
pub(crate) const SPECS: [(&[&str], &str); 10] = [
    (&["volume", "create"], "spec"),
    (&["volume", "modify"], "spec"),
    (&["volume", "attach"], "shadow"),
    (&["run"], "volume"),
    (&["crash"], "volume"),
    (&["doctor"], "volume"),
    (&["watch"], "volume"),
    (&["predict"], "volume"),
    (&["size"], "volume"),
    (&["simulate"], "volume"),
];

/// Where experiments stand: a name, or a file.
const EXPERIMENTS: [&str; 2] = ["run", "crash"];

/// The table of commands with what completes their arguments.
fn command() -> Command {
    let mut command = Cli::command();
    for (path, argument, names) in NAMES {
        command = with(
            command,
            path,
            argument,
            &ArgValueCompleter::new(move |word: &OsStr| beginning(word, names())),
        );
    }
    for (path, argument) in SPECS {
        command = with(command, path, argument, &ArgValueCompleter::new(spec));
    }
    for name in EXPERIMENTS {
        command = with(command, &[name], "experiment", &ArgValueCompleter::new(experiment));
    }
    command
}

/// Adds a completer to an argument, in its place: clap's `mut_arg` would make a positional argument the last one.
fn with(command: Command, path: &[&str], argument: &str, completer: &ArgValueCompleter) -> Command {
    match path.split_first() {
        None => command
            .mut_args(|known| if known.get_id() == argument { known.add(completer.clone()) } else { known }),
        Some((first, rest)) => command.mut_subcommands(|below| {
            if below.get_name() == *first { with(below, rest, argument, completer) } else { below }
        }),
    }
}

/// The names that begin with a word.
fn beginning(word: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*word)).map(CompletionCandidate::new).collect()
}

fn spec(word: &OsStr) -> Vec<CompletionCandidate> {
    let text = word.to_string_lossy();
    let mut all = spec_completions(&text, &Catalog::builtin());
    all.extend(names_of(Kind::Volume));
    beginning(word, all)
}

fn experiment(word: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = beginning(word, shipped().iter().map(|known| known.name.to_owned()).collect());
    all.extend(PathCompleter::any().complete(word));
    all
}

/// The home that the words before name, or the default one, if it is there.
fn home() -> Option<Home> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let named =
        words.iter().enumerate().find_map(|(place, word)| match word.to_str()?.strip_prefix("--home")? {
            // Shells hand over the words as they are typed.
            "" => words.get(place + 1)?.to_str().map(expanded),
            rest => rest.strip_prefix('=').map(expanded),
        });
    let variable = || std::env::var_os("EBBTIDE_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    HomePath::named(named.or_else(variable)).ok()?.existing().ok()?
}

/// The names in a list that the server of the home answers with.
fn listed(request: &Request) -> Vec<String> {
    let answer = home().and_then(|home| ask_if_there(&home, request, PATIENCE));
    let Some(Value::Array(entries)) = answer else { return Vec::new() };
    entries.iter().filter_map(|entry| Some(entry["name"].as_str()?.to_owned())).collect()
}

fn volumes() -> Vec<String> {
    listed(&Request::VolumeList { region: None })
}

fn snapshots() -> Vec<String> {
    listed(&Request::SnapshotList)
}

fn users() -> Vec<String> {
    let users = home().and_then(|home| UserStore::new(&home.aws_dir()).list().ok());
    users.into_iter().flatten().map(|user| user.name).collect()
}

fn roles() -> Vec<String> {
    let roles = home().and_then(|home| UserStore::new(&home.aws_dir()).roles().ok());
    roles.into_iter().flatten().map(|role| role.name).collect()
}

fn prepared() -> Vec<String> {
    let prepared = home().and_then(|home| ebbtide_lab::run::prepared::list(home.root()).ok());
    let mut names: Vec<String> = prepared.into_iter().flatten().map(|data| data.name).collect();
    names.push("all".to_owned());
    names
}

fn kept_seeds() -> Vec<String> {
    let kept = home().and_then(|home| ebbtide_crash::list_kept(home.root()).ok());
    kept.into_iter().flatten().map(|cut| seed::hex(cut.seed)).collect()
}

fn instances() -> Vec<String> {
    let mut names = names_of(Kind::Instance);
    names.extend(Catalog::builtin().instances().iter().map(|instance| instance.name.clone()));
    names
}

fn regions() -> Vec<String> {
    let mut names = names_of(Kind::Region);
    names.extend(Catalog::builtin().regions().map(str::to_owned));
    names
}

fn servers() -> Vec<String> {
    names_of(Kind::Server)
}

fn checks() -> Vec<String> {
    ebbtide_advisor::checks().map(|check| check.code.to_owned()).chain(["all".to_owned()]).collect()
}

fn pages() -> Vec<String> {
    docs::names().map(str::to_owned).collect()
}

fn faults() -> Vec<String> {
    const FAULTS: [&str; 14] = [
        "latency=",
        "latency=read:",
        "latency=write:",
        "errors=",
        "error-range=",
        "stall=on",
        "stall=off",
        "power-cut",
        "answer-early=on",
        "answer-early=off",
        "ignore-flush=on",
        "ignore-flush=off",
        "error-range=off",
        "clear",
    ];
    FAULTS.map(str::to_owned).to_vec()
}

/// bash, with words broken at blanks alone.
#[derive(Debug)]
struct NamesInBash;

impl EnvCompleter for NamesInBash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        bin: &str,
        program: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        out.write_all(filled(include_str!("ebbtide.bash"), variable, bin, program).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        place: Option<&Path>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let last = words.len().saturating_sub(1);
        let is_empty = words.last().is_none_or(|word| word.is_empty());
        let candidates = complete(command, words, last, place)?;
        let is_option =
            |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
        // Where a name may stand and nothing is typed yet, options would hide the names: they come after a hyphen.
        let names_alone = is_empty && candidates.iter().any(|candidate| !is_option(candidate));
        for candidate in candidates.iter().filter(|candidate| !(names_alone && is_option(candidate))) {
            writeln!(out, "{}", candidate.get_value().to_string_lossy())?;
        }
        Ok(())
    }
}

/// zsh, in which a word that has more to come gets no blank.
#[derive(Debug)]
struct NamesInZsh;

impl EnvCompleter for NamesInZsh {
    fn name(&self) -> &'static str {
        Zsh.name()
    }

    fn is(&self, name: &str) -> bool {
        Zsh.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        bin: &str,
        program: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        out.write_all(filled(include_str!("ebbtide.zsh"), variable, bin, program).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        place: Option<&Path>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        Zsh.write_complete(command, words, place, out)
    }
}

fn filled(script: &str, variable: &str, bin: &str, program: &str) -> String {
    script.replace("VARIABLE", variable).replace("PROGRAM", program).replace("BIN", bin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(words: &str) -> Vec<String> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let last = words.len() - 1;
        let candidates = complete(&mut command(), words, last, None).unwrap();
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_place_of_a_name_is_an_argument_of_the_table_of_commands() {
        let mut whole = command();
        whole.build();
        let names = NAMES.into_iter().map(|(path, argument, _)| (path, argument));
        let known = EXPERIMENTS;
        let experiments = known.iter().map(|name| (std::slice::from_ref(name), "experiment"));
        for (path, argument) in names.chain(SPECS).chain(experiments) {
            let below = path.iter().try_fold(&whole, |command, name| command.find_subcommand(name));
            let below = below.unwrap_or_else(|| panic!("there is no command {path:?}"));
            let found = below.get_arguments().find(|known| known.get_id() == argument);
            let found = found.unwrap_or_else(|| panic!("{path:?} has no argument {argument}"));
            assert!(found.get::<ArgValueCompleter>().is_some(), "{path:?} {argument}");
        }
    }

    #[test]
    fn positional_arguments_keep_their_order() {
        let order = |command: &Command| -> Vec<String> {
            let image = command.find_subcommand("volume").unwrap().find_subcommand("crash-image").unwrap();
            image.get_positionals().map(|argument| argument.get_id().to_string()).collect()
        };
        assert_eq!(order(&command()), order(&Cli::command()));
    }

    #[test]
    fn names_that_need_no_home_are_offered() {
        assert_eq!(completed("ebbtide run same-tw"), ["same-twice"]);
        assert_eq!(completed("ebbtide doctor --explain D03"), ["D03"]);
        assert_eq!(completed("ebbtide size x --instance r6i.la"), ["r6i.large"]);
        assert_eq!(completed("ebbtide volume list --region eu-west-1"), ["eu-west-1"]);
        assert_eq!(completed("ebbtide volume fault db sta"), ["stall=on", "stall=off"]);
        assert_eq!(completed("ebbtide docs secu"), ["security"]);
    }

    #[test]
    fn specs_are_offered_key_by_key_behind_an_option_with_and_without_its_sign() {
        assert_eq!(completed("ebbtide size x --volume gp3:si"), ["gp3:size="]);
        assert_eq!(completed("ebbtide size x --volume=gp3:si"), ["--volume=gp3:size="]);
    }
}
