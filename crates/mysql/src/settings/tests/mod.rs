//! Settings, on made-up servers and held against real ones.

mod document;
mod help;
mod live;
mod table;
mod words;

use std::path::Path;

use super::render::check_server;
use crate::{Binary, Flavour, Version};

/// A server of which only the version counts.
pub(crate) fn server(flavour: Flavour, version: (u32, u32, u32)) -> Binary {
    let version = Version { major: version.0, minor: version.1, patch: version.2 };
    Binary { path: "server".into(), flavour, version, text: format!("server {version}") }
}

pub(crate) fn mariadb(major: u32, minor: u32, patch: u32) -> Binary {
    server(Flavour::MariaDb, (major, minor, patch))
}

pub(crate) fn mysql(major: u32, minor: u32, patch: u32) -> Binary {
    server(Flavour::MySql, (major, minor, patch))
}

/// The system's server and those of `./dev servers`; prints which are missing.
pub(crate) fn servers() -> Vec<Binary> {
    let names = [None, Some("mariadb-11.8"), Some("mysql-8.0"), Some("mysql-9.7")];
    let found = names.into_iter().filter_map(|name| match Binary::detect(name.map(Path::new)) {
        Ok(binary) => check_server(&binary).ok().map(|()| binary),
        Err(error) => {
            println!(
                "SKIPPED: the server {}, which `./dev servers` fetches ({error})",
                name.unwrap_or("of the system")
            );
            None
        }
    });
    found.collect()
}
