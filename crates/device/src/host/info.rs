//! Where a volume is attached.

use std::fmt;
use std::path::PathBuf;

use ebbtide_volume::Nanos;
use serde::Serialize;

use super::filesystem::FsType;

/// Where a volume is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentInfo {
    /// The volume.
    pub volume: String,
    /// The block device; none for NBD.
    pub device: Option<PathBuf>,
    /// The NBD URI; none for a block device.
    pub uri: Option<String>,
    /// Where it is mounted.
    pub mount: Option<PathBuf>,
    /// What is mounted there.
    pub fs: Option<FsType>,
    /// Whether the file system was made by this attachment.
    pub made_fs: bool,
    /// The instance whose limits hold too, as its identifier.
    pub instance: Option<String>,
    /// Since when.
    pub since: Nanos,
}

impl AttachmentInfo {
    /// A volume that nothing has been made for yet.
    pub(super) fn nowhere(volume: &str, since: Nanos) -> Self {
        Self {
            volume: volume.to_owned(),
            device: None,
            uri: None,
            mount: None,
            fs: None,
            made_fs: false,
            instance: None,
            since,
        }
    }

    /// Where, for people: `as /dev/loop0 on /mnt/db`.
    #[must_use]
    pub fn place(&self) -> impl fmt::Display {
        let at = match (&self.device, &self.uri) {
            (Some(device), _) => format!("as {}", device.display()),
            (None, Some(uri)) => format!("at {uri}"),
            (None, None) => "nowhere".to_owned(),
        };
        match &self.mount {
            Some(dir) => format!("{at} on {}", dir.display()),
            None => at,
        }
    }
}
