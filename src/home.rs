//! Which home a command works on.

use std::path::{Path, PathBuf};

use ebbtide_device::host::{Home, HomeError};

use crate::cli::Cli;
use crate::control;
use crate::exit::Refusal;

/// Where the user's home is, whether it is there yet or not: only a command that has something to
/// put into it makes it.
#[derive(Debug)]
pub(crate) struct HomePath(PathBuf);

impl HomePath {
    /// The home that the user named, or the default one.
    ///
    /// # Errors
    /// Where none is named and there is nowhere to put one.
    pub(crate) fn of(cli: &Cli) -> anyhow::Result<Self> {
        Self::named(cli.home.clone())
    }

    /// This home, or the default one.
    ///
    /// # Errors
    /// Where none is named and there is nowhere to put one.
    pub(crate) fn named(home: Option<PathBuf>) -> anyhow::Result<Self> {
        let home = home.map_or_else(default, Ok)?;
        // What names it later, such as the command that goes on with a run, may be given in another directory.
        Ok(Self(std::path::absolute(&home).unwrap_or(home)))
    }

    /// Its path from the root.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the home, and makes it where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made or read.
    pub(crate) fn made(&self) -> anyhow::Result<Home> {
        Home::open(&self.0).map_err(unusable)
    }

    /// The home, where it is there already, as it is: for commands that only read it.
    ///
    /// # Errors
    /// Where it is there and cannot be used.
    pub(crate) fn existing(&self) -> anyhow::Result<Option<Home>> {
        if self.0.is_dir() { Home::existing(&self.0).map(Some).map_err(unusable) } else { Ok(None) }
    }

    /// The home, for commands that its server carries out.
    ///
    /// # Errors
    /// Where it is missing, so that no server can hold it.
    pub(crate) fn served(&self) -> anyhow::Result<Home> {
        self.existing()?.ok_or_else(|| {
            let refusal = control::not_running(&self.0);
            let hint = refusal.hint.clone().unwrap_or_default();
            refusal.hint(format!("{hint}; --home or EBBTIDE_HOME names another home")).into()
        })
    }
}

fn unusable(error: HomeError) -> anyhow::Error {
    let refusal = Refusal::environment("this home cannot be used")
        .hint("name a directory that you may write with --home or EBBTIDE_HOME");
    anyhow::Error::new(error).context(refusal)
}

/// `/var/lib/ebbtide` for root, `~/.local/share/ebbtide` (or under `XDG_DATA_HOME`) otherwise.
fn default() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/ebbtide".into());
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("ebbtide"))
        .ok_or_else(|| {
            Refusal::environment("there is no HOME to keep volumes in")
                .hint("name a directory with --home or EBBTIDE_HOME")
                .into()
        })
}
