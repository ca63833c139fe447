//! The two ends of the control socket: how a command talks to the server of a home.
//!
//! One connection carries one request. Both directions are lines of JSON, of the types of [`protocol`](crate::protocol): the
//! client sends one `Envelope`, the server answers with a stream of `Reply`.

mod client;
mod server;

pub use self::client::{Answered, AskError, ask, ask_if_there};
pub use self::server::{BindError, Completed, Listener, ReplySender, serve_client};
