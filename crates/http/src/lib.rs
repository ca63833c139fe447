//! Web pages of this machine: the only crate that serves them.
//!
//! A [`Site`] is a table of paths: with a [`Page`], which is the same for every request; a [`Resource`], which reads the path below
//! its own and the query; or a [`Feed`], which pushes events (server-sent events) to a bounded number of clients. A [`Server`] answers with them at a loopback address, until it is stopped. It
//! bounds what clients can take: connections, the size and the time of a request's head, and the time in which an answer is read.
//! A request that names another host than this machine is refused, so that a page in a browser cannot read answers through a name
//! of its own (DNS rebinding).
//!
//! The AWS endpoint in `ebbtide-cloud` has a server of its own, for TLS, bodies and clients of other machines:
//! docs/decisions/web.md.
//!
//! # Where to begin reading
//!
//! [`Server::start`] in `server`, then `site`, which makes the table of routes; `resource` has the headers that tell a browser what
//! it may do; `host` has the check of names, `deadline` that of clients that read nothing, [`LoopbackAddress`] that of where it
//! listens.
#![forbid(unsafe_code)]

mod address;
mod deadline;
mod feed;
mod host;
mod resource;
mod server;
mod site;

pub use address::{AddressError, LoopbackAddress};
pub use feed::{Feed, FeedEvent};
pub use resource::{Answer, AnswerStatus, Resource, ResourceRequest};
pub use server::Server;
pub use site::{Page, Rendered, Site, Unavailable};
