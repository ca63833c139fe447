//! Brings a real MySQL or MariaDB server up on directories that it is given, tells it its settings in
//! its own words, and reads what it reports: the only crate that does.
#![forbid(unsafe_code)]

mod binary;
mod error;
mod initialize;
mod layout;
mod plan;
mod server;

pub mod settings;
pub mod status;

pub use binary::{Binary, Flavour, Version};
pub use error::{Cause, ServerError};
pub use initialize::initialize;
pub use layout::Layout;
pub use plan::{START_TIMEOUT, ServerPlan};
pub use server::{IoUse, MemoryUse, Server, clear_leftovers};
pub use settings::{SettingError, Settings};
