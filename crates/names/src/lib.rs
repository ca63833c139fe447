//! The user's file of names: the only crate that reads it. Servers, volumes, instances and regions have names there, which commands
//! take.
//!
//! # Where to begin reading
//!
//! [`NamesFile::read`] is what a command needs. `file` finds the file and refuses one that others may write, [`Names::read`] in
//! `contents` reads it key by key. Errors are typed: the program gives them exit codes and hints in `src/config.rs`.
#![forbid(unsafe_code)]

mod contents;
mod file;

use std::path::{Path, PathBuf};

use ebbtide_catalog::Catalog;
use ebbtide_text::{closest, did_you_mean};

pub use contents::{NamedServer, Names, Problem, expanded, is_name};
pub use file::Place;

/// Why a name is not known, or the file of names is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamesError {
    /// There is nowhere to look for a file.
    #[error("there is no file of names: neither HOME nor EBBTIDE_CONFIG is set")]
    NoPlace,
    /// There is no file.
    #[error("there is no file of names: {} does not exist", .0.display())]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the file of names {}", .path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file could be somebody else's.
    #[error("the file of names {} is not read: {why}", .path.display())]
    Untrusted {
        /// Its path.
        path: PathBuf,
        /// Why.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// The first that is wrong with the file, with its place.
    #[error("{0}")]
    Wrong(String),
    /// The file has no such server, or there is no file; with what may have been meant.
    #[error("{0}")]
    NoServer(String),
    /// A word is almost a name of the file; with that name, as a question.
    #[error("neither the catalogue nor the file of names has '{word}'{nearest}")]
    Almost {
        /// The word.
        word: String,
        /// `; did you mean ...?`
        nearest: String,
    },
}

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    #[must_use]
    pub fn is_known(self, text: &str, catalog: &Catalog) -> bool {
        match self {
            Self::Server => false,
            Self::Volume => catalog.types().iter().any(|known| known.name.eq_ignore_ascii_case(text)),
            // `none` is a word of `predict --instance`.
            Self::Instance => text == "none" || catalog.instance(text).is_ok(),
            Self::Region => catalog.regions().any(|region| region == text),
        }
    }
}

/// The file of names, as a command reads it.
#[derive(Debug)]
pub struct NamesFile {
    /// None where there is nowhere to look for one.
    place: Option<Place>,
    /// None where there is no file.
    names: Option<Names>,
}

impl NamesFile {
    /// Reads the file of this user, if there is one. `note` is called with which file is read where that may surprise.
    ///
    /// # Errors
    /// A file that is wrong, or that others may write.
    pub fn read(note: &mut dyn FnMut(&str)) -> Result<Self, NamesError> {
        Self::read_at(Place::find(), note)
    }

    /// The same of the file at a place; None where there is nowhere to look for one.
    ///
    /// # Errors
    /// As [`Self::read`]; a file that is named and is not there.
    pub fn read_at(place: Option<Place>, note: &mut dyn FnMut(&str)) -> Result<Self, NamesError> {
        let text = place.as_ref().map_or(Ok(None), |place| place.read(note))?;
        let names = place.as_ref().zip(text).map(|(place, text)| {
            let (names, problems) = Names::read(&text);
            refuse_problems(&place.path, &problems).map(|()| names)
        });
        Ok(Self { names: names.transpose()?, place })
    }

    /// A server. `others` are words that may have been meant, too.
    ///
    /// # Errors
    /// No file, or no server of this name in it.
    pub fn server(&self, wanted: &str, others: &[&str]) -> Result<&NamedServer, NamesError> {
        let place = self.place.as_ref().ok_or(NamesError::NoPlace)?;
        let names = self.names.as_ref().ok_or_else(|| {
            let nearest = did_you_mean(closest(wanted, others.iter().copied()));
            let message =
                format!("there is no server '{wanted}'{nearest}: {} does not exist", place.path.display());
            NamesError::NoServer(message)
        })?;
        names.servers.get(wanted).ok_or_else(|| {
            let nearest = did_you_mean(closest(wanted, names.of(Kind::Server).chain(others.iter().copied())));
            let message = format!("there is no server '{wanted}' in {}{nearest}", place.path.display());
            NamesError::NoServer(message)
        })
    }

    /// The servers that the file names, by name.
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        self.names.iter().flat_map(|names| names.servers.keys().cloned()).collect()
    }

    /// What a name is; None for a word that the file does not have.
    #[must_use]
    pub fn value(&self, kind: Kind, name: &str) -> Option<&str> {
        self.names.as_ref()?.value(kind, name)
    }

    /// The refusal of a word that is almost a name of the file; None where no name is like it.
    #[must_use]
    pub fn almost(&self, kind: Kind, word: &str) -> Option<NamesError> {
        let nearest = closest(word, self.names.as_ref()?.of(kind))?;
        Some(NamesError::Almost { word: word.to_owned(), nearest: did_you_mean(Some(nearest)) })
    }
}

/// Refuses a file that something is wrong with.
///
/// # Errors
/// The first of the problems.
pub fn refuse_problems(path: &Path, problems: &[Problem]) -> Result<(), NamesError> {
    problems.first().map_or(Ok(()), |first| Err(NamesError::Wrong(first.placed(path))))
}

/// The names that the user's file has of a kind, as far as it can be read: for completion.
#[must_use]
pub fn names_of(kind: Kind) -> Vec<String> {
    let text = Place::find().and_then(|file| file.read_quietly());
    text.map_or_else(Vec::new, |text| Names::read(&text).0.of(kind).map(str::to_owned).collect())
}
