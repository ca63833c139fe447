//! The web page: what the terminal shows, for a browser on this machine.
//!
//! [`pages`] adds it to a site of `ebbtide-http`. `routes` has the paths, `query` reads what is asked of graphs, `data` answers as JSON
//! and pushes each view, and the pages themselves are `overview`, `server`, `storage` and `alarms`, in the frame of `layout`. All text
//! enters a page by `markup`, which escapes it.
//!
//! The server makes every table, so that a page reads without JavaScript. The script, `assets/page/watch.js`, draws the graphs; with
//! each view that is pushed it fetches its own page again, and changes what has changed.

mod alarms;
mod data;
mod figures;
mod layout;
mod links;
mod markup;
mod overview;
mod query;
mod routes;
mod server;
mod storage;

pub use routes::pages;
