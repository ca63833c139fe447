//! The web page, over HTTP and in a browser, with views and graphs that are made up.
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod browser;
mod routes;
mod source;
