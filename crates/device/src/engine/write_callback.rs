//! The write write_callback: a callback for every write that has come into flight.

use std::{fmt, sync::Arc};

use super::LiveVolume;

/// A write that has been submitted and is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmittedWrite {
    /// First byte on the volume.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// The callback.
pub(super) struct WriteCallback(pub(super) Arc<dyn Fn(SubmittedWrite) + Send + Sync>);

impl fmt::Debug for WriteCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCallback")
    }
}

impl LiveVolume {
    /// Has `callback` called for every write that brings data, on the thread that submits it, as soon as it
    /// is in flight: a cut that is taken from then on until its answer decides about it. It must be
    /// quick, since the guest's next requests wait for it. A write that the model lets pass at once
    /// is never in flight, and not reported. None ends it; a call under way may end a little later.
    pub fn set_write_callback(&self, callback: Option<Arc<dyn Fn(SubmittedWrite) + Send + Sync>>) {
        self.core.write_callback.store(callback.map(|callback| Arc::new(WriteCallback(callback))));
    }
}
