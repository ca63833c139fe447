//! Where the events of the AWS endpoint go.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use ebbtide_cloud::monitoring::{Delivery, EventFile, EventPlace, EventSink, Sinks, Webhook, WebhookError};
use ebbtide_device::host::HomeFolder;

use super::places::{EventPath, HomeEvents};

/// Where events go, read from `FILE`, `exec:COMMAND` or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventTarget {
    /// A file, to which they are appended.
    File(PathBuf),
    /// A command of a shell, which gets each as its input.
    Command(String),
    /// A URL, to which each is posted.
    Webhook(Webhook),
}

/// A text that is no target of events. The message follows the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventTargetError {
    /// `exec:` alone.
    #[error("has no command behind exec:")]
    NoCommand,
    /// A URL that cannot be posted to.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// None of the three.
    #[error("is neither a FILE, nor exec:COMMAND, nor a URL with http:// or https://")]
    Unknown,
}

impl FromStr for EventTarget {
    type Err = EventTargetError;

    fn from_str(text: &str) -> Result<Self, EventTargetError> {
        if let Some(command) = text.strip_prefix("exec:") {
            if command.trim().is_empty() {
                return Err(EventTargetError::NoCommand);
            }
            return Ok(Self::Command(command.to_owned()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Webhook(text.parse()?));
        }
        if text.is_empty() || text.contains("://") {
            return Err(EventTargetError::Unknown);
        }
        Ok(Self::File(text.into()))
    }
}

impl EventTarget {
    /// Whether events can go there, as far as that shows without one. A missing file is made, empty.
    ///
    /// # Errors
    /// A file to which nothing can be appended: no directory, no permission, a directory or a symbolic link in its place, a pipe
    /// that nobody reads.
    pub fn check(&self) -> io::Result<()> {
        match self {
            Self::File(file) => EventPath(file.clone()).check(),
            Self::Command(_) | Self::Webhook(_) => Ok(()),
        }
    }

    /// The word that names it, from whatever directory.
    ///
    /// # Errors
    /// The working directory is gone, and the file is given relative to it.
    pub fn word(&self) -> io::Result<OsString> {
        Ok(match self {
            Self::File(file) => std::path::absolute(file)?.into(),
            Self::Command(command) => format!("exec:{command}").into(),
            Self::Webhook(webhook) => webhook.to_string().into(),
        })
    }
}

/// Opens the targets; without one, the file of the home.
pub(crate) fn open(targets: &[EventTarget], folder: &HomeFolder) -> io::Result<Arc<dyn EventSink>> {
    let file = |place: Box<dyn EventPlace>| EventFile::new(place, EventFile::MOST_BYTES);
    let mut sinks: Vec<Arc<dyn EventSink>> = Vec::new();
    for target in targets {
        sinks.push(match target {
            EventTarget::File(path) => Arc::new(file(Box::new(EventPath(path.clone())))),
            EventTarget::Command(command) => Arc::new(Delivery::to_command(command.clone())?),
            EventTarget::Webhook(webhook) => Arc::new(Delivery::to_webhook(webhook.clone())?),
        });
    }
    if sinks.is_empty() {
        sinks.push(Arc::new(file(Box::new(HomeEvents(folder.clone())))));
    }
    Ok(Arc::new(Sinks(sinks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_events_cannot_go_to_is_refused() {
        for wrong in ["", "exec:", "exec: ", "ftp://host/file", "http://", "https://user@host/"] {
            assert!(wrong.parse::<EventTarget>().is_err(), "{wrong}");
        }
    }
}
