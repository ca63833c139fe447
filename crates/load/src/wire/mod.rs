//! The MySQL client protocol, as far as a load needs it.
//!
//! [`session`] opens a connection and speaks to it blocking; the event loop then takes the
//! [`transport`] over, writes commands with [`command`] and reads answers with [`answer`].

pub(crate) mod answer;
pub(crate) mod command;
mod handshake;
mod session;
mod tls;
mod transport;

pub use handshake::own_version;
pub use session::Session;
pub(crate) use session::{Closer, quoted};
pub(crate) use transport::{Received, Transport};
