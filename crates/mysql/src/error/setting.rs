//! What can be wrong with a setting.

/// A setting that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// No server has it.
    #[error("there is no setting '{name}'{}", advice(nearest.as_deref()))]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest one that there is.
        nearest: Option<String>,
    },
    /// A name that would be ambiguous, or that is not the user's to set.
    #[error("'{name}' cannot be set: {why}")]
    Refused {
        /// The name given.
        name: String,
        /// Why, and what to set instead.
        why: String,
    },
    /// A value that the setting cannot take on any server, or on this one.
    #[error("{name} cannot be '{value}': {expected}")]
    Value {
        /// The canonical name.
        name: String,
        /// The value given.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// A setting that this version of the server does not have.
    #[error("{server} has no {name} ({own_name}): {why}")]
    NotHere {
        /// The canonical name.
        name: String,
        /// What the server called it, or would call it.
        own_name: String,
        /// The server and its version.
        server: String,
        /// Since or until when, and what replaces it.
        why: String,
    },
    /// Two settings of the same thing in different forms.
    #[error("{one} and {other} cannot both be set for {server}: {why}")]
    Conflict {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// The server and its version.
        server: String,
        /// How they exclude each other.
        why: String,
    },
    /// A server that the table does not know.
    #[error("the settings of {server} are not known: they are from {oldest} on")]
    Server {
        /// The server and its version.
        server: String,
        /// The oldest version known.
        oldest: String,
    },
    /// A setting that the server accepted, and did not follow.
    #[error("the server ignored {name}: {option} was asked for, and it has {running}")]
    Ignored {
        /// The canonical name.
        name: String,
        /// The option it was started with.
        option: String,
        /// What it has.
        running: String,
    },
    /// The server could not be asked.
    #[error("could not read the server's settings back")]
    Session(#[source] ebbtide_load::LoadError),
}

/// What to do about a name that there is not.
fn advice(nearest: Option<&str>) -> String {
    match nearest {
        None => "; `raw.NAME` hands a server's own variable on as it is".to_owned(),
        named => ebbtide_text::did_you_mean(named),
    }
}
