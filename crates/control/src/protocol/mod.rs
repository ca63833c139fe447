//! What travels between a command and the server of a home, as plain data.
//!
//! A client sends one [`Envelope`] with a [`Request`]. The server answers with a stream of [`Reply`]: any number of
//! [`Reply::Progress`] and [`Reply::Warning`], then one [`Reply::Done`] or [`Reply::Failed`]. How they are written is
//! that of [`socket`](crate::socket): one JSON text a line, on a Unix socket.
//!
//! Both sides must be of one [`VERSION`]. Two shapes stay as they are in every version, since they are how sides of
//! different versions understand that they differ: that of [`Envelope`], and that of [`Reply::Failed`].

mod reply;
mod request;

use serde::{Deserialize, Serialize};

pub use reply::{Answer, ExitStatus, RefusedRequest, Reply, ServerChanged, ServerStatus};
pub use request::{
    AttachRequest, CreateRequest, ExportRequest, ModifyRequest, MountPoint, Request, ServerChange,
};

/// Version of the protocol. Both sides must speak the same one, since both come from one build.
pub const VERSION: u32 = 9;

/// A request with the protocol version of who sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`VERSION`] of the client.
    v: u32,
    /// The request, as a value that is read after the version: another version may have other requests.
    request: serde_json::Value,
}

impl Envelope {
    /// A request of this version.
    ///
    /// # Errors
    /// A path that is not UTF-8.
    pub fn seal(request: &Request) -> Result<Self, serde_json::Error> {
        Ok(Self { v: VERSION, request: serde_json::to_value(request)? })
    }

    /// The request of a client of this version.
    ///
    /// # Errors
    /// A client of another version; a request that this version does not have.
    pub fn open(self) -> Result<Request, ProtocolError> {
        if self.v != VERSION {
            return Err(ProtocolError::OtherVersion { client: self.v });
        }
        serde_json::from_value(self.request).map_err(|error| ProtocolError::UnknownRequest(error.to_string()))
    }
}

/// Why a server does not read a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The client is of another version.
    #[error("the server speaks version {VERSION} of the control protocol, the client version {client}")]
    OtherVersion {
        /// The client's.
        client: u32,
    },
    /// The version is right and the request is not.
    #[error("the request is not understood: {0}")]
    UnknownRequest(String),
}

#[cfg(test)]
mod tests;
