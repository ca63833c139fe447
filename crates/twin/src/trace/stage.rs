//! The stages of a request in the block layer, as far as a trace has them.

/// Where a request is on its way through the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A client handed it in.
    Queued,
    /// It was given to the device.
    Issued,
    /// The device answered.
    Completed,
    /// The device did not take it; it is issued again.
    Requeued,
}
