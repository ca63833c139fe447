//! `ebbtide config`, and the user's file of names: servers, volumes, instances and regions that commands take by name.
//!
//! [`file`](mod@file) finds the file and refuses one that others may write, [`names`] reads it. [`crate::named`] puts what it says in
//! place of the names of a command line.

mod file;
mod names;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Subcommand;
use ebbtide_catalog::Catalog;
use ebbtide_text::{closest, did_you_mean};
use serde::Serialize;

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::text::{self, TextTable, line};
use file::Place;
pub(crate) use names::{NamedServer, expanded, is_name};
use names::{Names, Problem};

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A server.
    Server,
    /// A volume.
    Volume,
    /// An EC2 instance.
    Instance,
    /// An AWS region.
    Region,
}

impl Kind {
    /// Whether the catalogue has a word itself, so that it is no name.
    pub(crate) fn is_known(self, text: &str, catalog: &Catalog) -> bool {
        match self {
            Self::Server => false,
            Self::Volume => catalog.types().iter().any(|known| known.name.eq_ignore_ascii_case(text)),
            // `none` is a word of `predict --instance`.
            Self::Instance => text == "none" || catalog.instance(text).is_ok(),
            Self::Region => catalog.regions().any(|region| region == text),
        }
    }
}

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
    let file = Place::find().ok_or_else(no_place)?;
    let text = file.read()?.ok_or_else(|| missing(&file.path))?;
    let (names, mut problems) = names::parse(&text);
    match command {
        ConfigCommand::Check => {
            problems.extend(names.problems(&catalog()?));
            problems.sort_by_key(|problem| problem.line);
            Ok(checked(&file.path, &names, &problems, json))
        }
        ConfigCommand::Show => {
            refuse_problems(&file.path, &problems)?;
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

/// The file of names, as a command reads it.
#[derive(Debug)]
pub(crate) struct NamesFile {
    /// None where there is nowhere to look for one.
    place: Option<Place>,
    /// None where there is no file.
    names: Option<Names>,
}

impl NamesFile {
    /// Reads the file of this user, if there is one.
    ///
    /// # Errors
    /// A file that is wrong, or that others may write (exit code 3).
    pub(crate) fn read() -> anyhow::Result<Self> {
        let place = Place::find();
        let text = place.as_ref().map_or(Ok(None), Place::read)?;
        let names = place.as_ref().zip(text).map(|(place, text)| {
            let (names, problems) = names::parse(&text);
            refuse_problems(&place.path, &problems).map(|()| names)
        });
        Ok(Self { names: names.transpose()?, place })
    }

    /// A server. `others` are words that may have been meant, too.
    ///
    /// # Errors
    /// No file, or no server of this name in it (exit code 2).
    pub(crate) fn server(&self, wanted: &str, others: &[&str]) -> anyhow::Result<&NamedServer> {
        let place = self.place.as_ref().ok_or_else(no_place)?;
        let names = self.names.as_ref().ok_or_else(|| {
            let nearest = did_you_mean(closest(wanted, others.iter().copied()));
            let message =
                format!("there is no server '{wanted}'{nearest}: {} does not exist", place.path.display());
            Refusal::usage(message).hint(NO_NAME)
        })?;
        names.servers.get(wanted).ok_or_else(|| {
            let nearest = did_you_mean(closest(wanted, names.of(Kind::Server).chain(others.iter().copied())));
            let message = format!("there is no server '{wanted}' in {}{nearest}", place.path.display());
            Refusal::usage(message).hint(NO_NAME).into()
        })
    }

    /// What a name is; None for a word that the file does not have.
    pub(crate) fn value(&self, kind: Kind, name: &str) -> Option<&str> {
        self.names.as_ref()?.value(kind, name)
    }

    /// The refusal of a word that is almost a name of the file; None where no name is like it.
    pub(crate) fn almost(&self, kind: Kind, word: &str) -> Option<anyhow::Error> {
        let nearest = closest(word, self.names.as_ref()?.of(kind))?;
        let nearest = did_you_mean(Some(nearest));
        let message = format!("neither the catalogue nor the file of names has '{word}'{nearest}");
        Some(Refusal::usage(message).hint("'ebbtide config show' lists the names").into())
    }
}

/// What to do about a server that has no name.
const NO_NAME: &str = "'ebbtide config show' lists the names; a server without one is named with --mysql-socket or --mysql-host";

fn refuse_problems(path: &Path, problems: &[Problem]) -> anyhow::Result<()> {
    let Some(first) = problems.first() else { return Ok(()) };
    Err(Refusal::environment(first.placed(path))
        .hint("'ebbtide config check' lists all that is wrong")
        .into())
}

fn missing(path: &Path) -> anyhow::Error {
    let message = format!("there is no file of names: {} does not exist", path.display());
    Refusal::usage(message).hint("'ebbtide config show --help' has an example of it").into()
}

fn no_place() -> anyhow::Error {
    Refusal::usage("there is no file of names: neither HOME nor EBBTIDE_CONFIG is set")
        .hint("name a file with EBBTIDE_CONFIG")
        .into()
}

/// The names that the user's file has of a kind, as far as it can be read: for completion.
pub(crate) fn names_of(kind: Kind) -> Vec<String> {
    let names = Place::find().and_then(|file| file.read_quietly());
    names.map_or_else(Vec::new, |text| names::parse(&text).0.of(kind).map(str::to_owned).collect())
}
