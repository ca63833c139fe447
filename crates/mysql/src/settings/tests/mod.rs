//! Settings, on made-up servers and held against real ones.

mod help;
mod table;
mod words;

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
