//! `ebbtide simulate` as a user runs it: what it prints, its JSON, its page, and what it refuses.

#[path = "../support/browser.rs"]
mod browser;
mod output;
mod page;
mod refusals;
#[path = "../support/schema.rs"]
mod schema;
mod support;
