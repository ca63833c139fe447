//! The table of checks, a file for each area.
//!
//! A check is a row with a small pure function. It reads values through a [`View`](crate::view::View), which keeps them as evidence
//! and answers for what is missing. Counters are rates over the interval: what grew since the server's start shows nothing of now.

mod binary_log;
mod buffer_pool;
mod carried;
mod configuration;
pub mod doublewrite;
mod durability;
mod files;
mod flushing;
mod hygiene;
mod limits;
mod provisioning;
mod redo;
mod replication;
mod sources;
mod volumes;

#[cfg(test)]
mod extending;
#[cfg(test)]
mod tests;

use ebbtide_observe::Version;
use ebbtide_observe::metric::Servers;
use ebbtide_text::{bytes as size, figure, percent, rough as time, whole};

use crate::check::Check;

/// Checks of one part of a server or of its storage.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Name of the part.
    pub name: &'static str,
    /// Its checks.
    pub checks: &'static [Check],
}

/// All checks, by area.
pub const AREAS: &[Area] = &[
    Area { name: "Durability", checks: durability::CHECKS },
    Area { name: "Redo log", checks: redo::CHECKS },
    Area { name: "Buffer pool", checks: buffer_pool::CHECKS },
    Area { name: "Flushing", checks: flushing::CHECKS },
    Area { name: "Doublewrite", checks: doublewrite::CHECKS },
    Area { name: "Binary log", checks: binary_log::CHECKS },
    Area { name: "Replication", checks: replication::CHECKS },
    Area { name: "Volumes", checks: volumes::CHECKS },
    Area { name: "Provisioned performance", checks: provisioning::CHECKS },
    Area { name: "Files and kernel", checks: files::CHECKS },
    Area { name: "Option files", checks: configuration::CHECKS },
    Area { name: "Other settings", checks: hygiene::CHECKS },
    #[cfg(test)]
    Area { name: "The page docs/extending.md", checks: extending::CHECKS },
];

/// All checks, in the order of the areas.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    AREAS.iter().flat_map(|area| area.checks)
}

/// The check of a code, in upper or lower case.
#[must_use]
pub fn check(code: &str) -> Option<&'static Check> {
    checks().find(|check| check.code.eq_ignore_ascii_case(code))
}

const EVERY: &[Servers] = &[Servers::EVERY];
const MARIADB: &[Servers] = &[Servers::MARIADB];
const MYSQL: &[Servers] = &[Servers::MYSQL];

const fn mysql(since: (u32, u32, u32)) -> Servers {
    Servers { since: Some(since), ..Servers::MYSQL }
}

const fn mariadb(since: (u32, u32, u32)) -> Servers {
    Servers { since: Some(since), ..Servers::MARIADB }
}

/// MariaDB's first release that resizes its redo log while it runs.
const MARIADB_RESIZES: Version = Version::new(10, 9, 0);
