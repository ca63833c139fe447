//! Brings a real MySQL or MariaDB server up on directories that it is given, tells it its settings in
//! its own words, and reads what it reports: the only crate that does.
#![forbid(unsafe_code)]

mod binary;
mod error;

pub mod settings;
pub mod status;

pub use binary::{Binary, Flavour, Version};
pub use error::ServerError;
pub use settings::{SettingError, Settings};
