//! The MySQL client protocol, as far as a load needs it.
//!
//! [`session`] opens a connection and speaks to it blocking; the event loop then takes the
//! [`transport`] over, writes commands with [`command`] and reads answers with [`answer`],
//! which keeps the values that a script wants with [`capture`].

pub(crate) mod answer;
mod capture;
pub(crate) mod command;
mod handshake;
mod packet;
mod session;
mod tls;
mod transport;

pub(crate) use capture::ColumnType;
pub(crate) use command::Values;
pub use handshake::own_version;
pub use session::Session;
pub(crate) use session::{Prepared, quoted};
pub(crate) use transport::{Received, Transport};
