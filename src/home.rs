//! Which home a command works on.

use std::path::{Path, PathBuf};

use ebbtide_device::host::Home;

use crate::cli::Cli;
use crate::exit::Refusal;

/// Opens the home that the user named, or the default one.
///
/// # Errors
/// Where it cannot be made or read.
pub(crate) fn open(cli: &Cli) -> anyhow::Result<Home> {
    at(&path(cli)?)
}

/// The home, where it is there already: for commands that only read it.
///
/// # Errors
/// Where it is there and cannot be used.
pub(crate) fn existing(cli: &Cli) -> anyhow::Result<Option<Home>> {
    match path(cli) {
        Ok(path) if path.is_dir() => at(&path).map(Some),
        _ => Ok(None),
    }
}

fn path(cli: &Cli) -> anyhow::Result<PathBuf> {
    cli.home.clone().map_or_else(default, Ok)
}

fn at(path: &Path) -> anyhow::Result<Home> {
    Home::open(path).map_err(|error| {
        let refusal = Refusal::environment("this home cannot be used")
            .hint("name a directory that you may write with --home or EBBTIDE_HOME");
        anyhow::Error::new(error).context(refusal)
    })
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
