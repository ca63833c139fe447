//! Answers to a client of NBD: what they are on the wire, and the order in which they leave.
//!
//! `wire` has the messages of the transmission phase, requests included. A client's request goes to the volume as one
//! [`NbdReply`] or several. `reply_sender` batches what the reader's own thread answers, and `output` sends.

pub(crate) mod output;
mod reply;
mod reply_sender;
pub(crate) mod wire;

pub(crate) use reply::{NbdReply, SplitRequest, encode_nothing, encode_refusal};
pub(crate) use reply_sender::ReplySender;
