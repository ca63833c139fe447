//! `ebbtide config`, and the user's file of names: servers, volumes, instances and regions that commands take by name.
//!
//! `ebbtide_names` reads the file. [`crate::named`] puts what it says in place of the names of a command line.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Subcommand;
use ebbtide_catalog::Catalog;
use ebbtide_names::{Kind, NamedServer, Names, NamesError, Place, Problem, refuse_problems};
use serde::Serialize;

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::text::{self, TextTable, line};

/// A value of the command line that may be a name.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    /// Of what.
    pub(crate) kind: Kind,
    /// The value.
    pub(crate) text: &'a mut String,
}

impl<'a> Slot<'a> {
    /// Values of one kind.
    pub(crate) fn all(kind: Kind, texts: impl IntoIterator<Item = &'a mut String>) -> Vec<Self> {
        texts.into_iter().map(|text| Self { kind, text }).collect()
    }
}

/// The file of names.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the file of names: keys, specs, types, regions. Exit code 1 where something is wrong
    #[command(after_help = FILE_HELP)]
    Check,
    /// Print what the file of names has, and where it is
    #[command(after_help = FILE_HELP)]
    Show,
}

const FILE_HELP: &str = "The file is $EBBTIDE_CONFIG, else ebbtide/config.toml in $XDG_CONFIG_HOME, else ~/.config/ebbtide/config.toml:

  [servers.shop]
  socket = \"/run/mysqld/mysqld.sock\"     # or host and port
  user = \"ebbtide\"
  defaults_file = \"~/.shop.cnf\"          # an option file; no password stands here
  volumes = { data = \"shop-data\" }
  instance = \"web\"
  [volumes]
  shop-data = \"gp3:size=500GiB,iops=6000\"
  [instances]
  web = \"r6i.large\"
  [regions]
  home = \"eu-west-1\"

Examples:
  ebbtide config check
  ebbtide doctor shop
  ebbtide size metrics.json --volume shop-data --instance web --region home";

/// What `config show` prints.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigShown<'a> {
    /// The file.
    file: &'a Path,
    /// Servers by name.
    servers: &'a BTreeMap<String, NamedServer>,
    /// Volume specs by name.
    volumes: &'a BTreeMap<String, String>,
    /// Instance types by name, with an id where volumes share one instance.
    instances: &'a BTreeMap<String, String>,
    /// AWS regions by name.
    regions: &'a BTreeMap<String, String>,
}

/// What `config check` prints.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigChecked<'a> {
    /// The file.
    file: &'a Path,
    /// Whether nothing is wrong with it.
    clean: bool,
    /// What is wrong with it.
    problems: &'a [Problem],
}

/// Checks or shows the file of names. The catalogue is that of the home.
///
/// # Errors
/// No file (exit code 2); one that others may write, or that cannot be read (exit code 3).
pub(crate) fn run(
    command: &ConfigCommand,
    catalog: impl FnOnce() -> anyhow::Result<Catalog>,
    json: bool,
) -> anyhow::Result<Exit> {
    let file = Place::find().ok_or_else(|| refuse(NamesError::NoPlace))?;
    let contents = file.read(&mut text::note).map_err(refuse)?;
    let contents = contents.ok_or_else(|| refuse(NamesError::Missing(file.path.clone())))?;
    let (names, mut problems) = Names::read(&contents);
    match command {
        ConfigCommand::Check => {
            problems.extend(names.problems(&catalog()?));
            problems.sort_by_key(|problem| problem.line);
            Ok(checked(&file.path, &names, &problems, json))
        }
        ConfigCommand::Show => {
            refuse_problems(&file.path, &problems).map_err(refuse)?;
            shown(&file.path, &names, json);
            Ok(Exit::Clean)
        }
    }
}

fn checked(path: &Path, names: &Names, problems: &[Problem], json: bool) -> Exit {
    if json {
        answers::print(&ConfigChecked { file: path, clean: problems.is_empty(), problems });
    } else if problems.is_empty() {
        line(&format!("{}: {}; nothing is wrong", path.display(), counts(names)));
    } else {
        problems.iter().for_each(|problem| line(&problem.placed(path)));
    }
    if problems.is_empty() { Exit::Clean } else { Exit::Finding }
}

fn counts(names: &Names) -> String {
    let counts = [
        (names.servers.len(), "server"),
        (names.volumes.len(), "volume"),
        (names.instances.len(), "instance"),
        (names.regions.len(), "region"),
    ];
    counts.map(|(count, word)| text::count(count, word)).join(", ")
}

fn shown(path: &Path, names: &Names, json: bool) {
    let Names { servers, volumes, instances, regions, .. } = names;
    if json {
        return answers::print(&ConfigShown { file: path, servers, volumes, instances, regions });
    }
    line(&format!("names of {}", path.display()));
    let mut table = TextTable::new(&["KIND", "NAME", "IS"]);
    for (name, server) in servers {
        table.row(["server".to_owned(), name.clone(), server.to_string()]);
    }
    for (kind, names) in [("volume", volumes), ("instance", instances), ("region", regions)] {
        for (name, value) in names {
            table.row([kind.to_owned(), name.clone(), value.clone()]);
        }
    }
    table.print("it has no names");
}

/// An error of the file of names with its exit code and its hint.
pub(crate) fn refuse(error: NamesError) -> anyhow::Error {
    let message = error.to_string();
    let (refusal, hint) = match error {
        NamesError::NoPlace => (Refusal::usage(message), "name a file with EBBTIDE_CONFIG".to_owned()),
        NamesError::Missing(_) => {
            (Refusal::usage(message), "'ebbtide config show --help' has an example of it".to_owned())
        }
        NamesError::Unreadable { source, .. } => {
            return anyhow::Error::new(source).context(Refusal::environment(message));
        }
        NamesError::Untrusted { hint, .. } => (Refusal::environment(message), hint),
        NamesError::Wrong(_) => {
            (Refusal::environment(message), "'ebbtide config check' lists all that is wrong".to_owned())
        }
        NamesError::NoServer(_) => (Refusal::usage(message), NO_NAME.to_owned()),
        _ => (Refusal::usage(message), "'ebbtide config show' lists the names".to_owned()),
    };
    refusal.hint(hint).into()
}

/// What to do about a server that has no name.
const NO_NAME: &str = "'ebbtide config show' lists the names; a server without one is named with --mysql-socket or --mysql-host";
