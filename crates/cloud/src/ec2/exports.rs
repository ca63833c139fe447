//! What an attachment is on this host: a block device, or an export of the NBD protocol for an instance that is another host.
//!
//! An instance is such a host by its tag [`TAG`]. Its volumes are exported, and the answers say where: as `AssociatedResource`
//! of the attachment, where AWS has the ARN of the task that has a volume.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ebbtide_control::{Export, NbdAddress};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::options::{AttachAs, Options};
use super::records::{Instance, Volume};
use super::refuse;
use crate::ApiError;

/// The tag of an instance that is another host.
pub(super) const TAG: &str = "ebbtide:attach";
/// Its value for a Unix socket in the home.
const SOCKET: &str = "nbd";
/// The first port that is no system service's.
const UNPRIVILEGED: u16 = 1_024;

/// Where the volumes of other hosts are exported: their NBD URIs. They last as long as the process, as the exports do.
#[derive(Debug, Default)]
pub(super) struct Exports(Mutex<BTreeMap<String, String>>);

impl Exports {
    /// Notes where a volume is exported.
    pub(super) fn note(&self, volume: &str, uri: &str) {
        self.0.lock().insert(volume.to_owned(), uri.to_owned());
    }

    /// Notes that a volume is not exported any more.
    pub(super) fn forget(&self, volume: &str) {
        self.0.lock().remove(volume);
    }

    /// Says in an attachment of a volume where that is exported, if it is.
    pub(super) fn describe(&self, volume: &str, attachment: &mut Map<String, Value>) {
        if let Some(uri) = self.0.lock().get(volume) {
            attachment.insert("AssociatedResource".to_owned(), uri.as_str().into());
        }
    }

    /// The same for all attachments of a described volume.
    pub(super) fn describe_all(&self, volume: &str, members: &mut Map<String, Value>) {
        let attachments = members.get_mut("Attachments").and_then(Value::as_array_mut);
        let attachments = attachments.into_iter().flatten().filter_map(Value::as_object_mut);
        attachments.for_each(|attachment| self.describe(volume, attachment));
    }
}

/// Whether an instance is another host.
pub(super) fn is_other_host(instance: &Instance) -> bool {
    instance.tags.get(TAG).is_some()
}

/// What an attachment of a volume to an instance is.
///
/// # Errors
/// `InvalidParameterValue` of a tag with another value than `nbd` or a port of the loopback interface; `UnsupportedOperation` where this
/// service has no place for sockets, does not export over TCP, or the volume is encrypted and would be exported so.
pub(super) fn export(options: &Options, volume: &Volume, instance: &Instance) -> Result<Export, ApiError> {
    let unsupported = |message: String| Err(ApiError::client("UnsupportedOperation", message));
    match instance.tags.get(TAG).map(String::as_str) {
        None => Ok(match &options.attach_as {
            AttachAs::BlockDevice => Export::Block { mount: None },
            AttachAs::NbdSocket(dir) => Export::Nbd(NbdAddress::Unix(socket(dir, &volume.id))),
        }),
        Some(SOCKET) => match directory(options) {
            Some(dir) => Ok(Export::Nbd(NbdAddress::Unix(socket(dir, &volume.id)))),
            None => unsupported("There is no directory for sockets of NBD.".to_owned()),
        },
        Some(text) => match NbdAddress::parse(text) {
            Ok(NbdAddress::Tcp { host, port })
                if is_loopback(&host) && (port == 0 || port >= UNPRIVILEGED) =>
            {
                // Every user of this host reaches the port, whatever policies say.
                if !options.tcp_exports {
                    return unsupported(format!(
                        "The tag {TAG} of instance '{}' asks for an export over TCP, which this server does not do: start it \
                         with --tcp-exports, or give {SOCKET}.",
                        instance.id
                    ));
                }
                if volume.kms_key.is_some() {
                    return unsupported(format!(
                        "The encrypted volume '{}' is not exported over TCP, where its data would be plain. Give instance \
                         '{}' {SOCKET} as its tag {TAG}.",
                        volume.id, instance.id
                    ));
                }
                Ok(Export::Nbd(NbdAddress::Tcp { host, port }))
            }
            _ => Err(refuse::invalid_value(format!(
                "Value ({text}) of the tag {TAG} of instance '{}' is invalid. Give {SOCKET}, or tcp:127.0.0.1:PORT with port 0 or \
                 from {UNPRIVILEGED} on.",
                instance.id
            ))),
        },
    }
}

/// Whether a host is the loopback interface without asking a name server, which a caller could make speak.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn directory(options: &Options) -> Option<&Path> {
    match &options.attach_as {
        AttachAs::NbdSocket(dir) => Some(dir),
        AttachAs::BlockDevice => options.nbd_sockets.as_deref(),
    }
}

fn socket(dir: &Path, volume: &str) -> PathBuf {
    dir.join(format!("{volume}.sock"))
}
