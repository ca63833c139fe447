//! Brings a real MySQL or MariaDB server up on directories that it is given, passes its settings in
//! its own words, and reads what it reports and what it leaves: the only crate that does.
//!
//! # Where to begin reading
//!
//! - [`Server::start`] in `src/server.rs`. Its settings are the table `data/settings.toml`; [`Settings`] puts them into the words of a
//!   maker and a version.
//! - [`status`] samples a server of ours once a second; [`status::Observer`] looks at one that is not changed.
//! - [`sampling`] asks a server that is watched each second, for as little as it can give.
//! - [`replication`] has the statements that make a server follow another, [`backup`] the tools that copy one, [`recovery`] what a
//!   recovered server left.
#![forbid(unsafe_code)]

mod binary;
mod end;
mod error;
mod layout;
mod named_servers;
mod plan;
mod unstarted;

mod initialize;
mod server;

mod account;
mod cgroup;
mod install;
mod launch;
mod log;
mod login;
mod options;
mod process;
mod record;
mod replication_part;

pub mod backup;
pub mod recovery;
pub mod replication;
pub mod sampling;
pub mod settings;
pub mod status;

pub use binary::{Binary, Flavour, Version, short_name};
pub use cgroup::MemoryUse;
pub use end::{GivenUp, ProcessEnd};
pub use error::{Cause, CgroupError, ServerError, SettingError};
pub use initialize::initialize;
pub use launch::missing_for_memory_limit;
pub use layout::Layout;
pub use named_servers::{NamedServers, is_trusted};
pub use plan::{START_TIMEOUT, ServerPlan, WorkPaths};
pub use record::{Cleared, clear_leftovers, is_recorded};
pub use server::Server;
pub use settings::Settings;
