//! The version of the control protocol, in a file of its own: tests of the running program speak it too.

/// Version of the protocol. Both sides must speak the same one, since both come from one build.
pub(crate) const VERSION: u32 = 7;
