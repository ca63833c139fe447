//! What can go wrong with a server.

/// A server that could not be brought up, or did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A setting that this server does not have, or not with this value.
    #[error(transparent)]
    Setting(#[from] crate::SettingError),
}
