//! What Ebbtide shows to a monitoring system: the only crate that raises alarms and knows Prometheus's names.
//!
//! It has the names, the text that a scrape answers with, the alarms, and what `ebbtide watch` shows. What was read, and how long that
//! took, come from the caller, which is [`run`]: it alone has threads, the clock and sockets, and [`host::HostReader`] reads the machine.
//! `ebbtide serve --metrics` reads the volumes through [`ebbtide_control::VolumeObserver`], and serves the text.
//!
//! # Where to begin reading
//!
//! - [`names`] is the table of metric families of volumes: name, type, unit, labels, help and source. Those of servers are in
//!   [`server::names`], of alarms [`alarm::ALARM_FAMILIES`], of the machine [`host::host_families`].
//! - [`scrape_text`] in `scrape` writes those of volumes, for `serve`; `live::scrape` the others, for `watch`. `volumes` and `process` know
//!   where each value comes from.
//! - `exposition` is the text format 0.0.4 of Prometheus.
//! - [`run`] reads the sources, and tells people and programs: [`run::Watching`] is `ebbtide watch` without its options and its terminal.
//! - [`live::Watcher`] takes what all sources gave, second by second: events of [`alarm`], a [`view::View`], samples for the history.
//! - [`alarm::Alarms`] takes a [`reading::ReadingSet`] each second and says which alarms have changed; [`alarm::RULES`] is the table of rules.
//! - [`dashboards`] makes rule files for Prometheus and a dashboard for Grafana of the same table.
//! - [`server`] and [`host`] have the names of mysqld_exporter and node_exporter. [`screen`] is a view as a document.
//! - [`view`] has what people are shown; [`page`] shows it to a browser, [`terminal::draw`] draws it on a terminal.
//! - [`names_page`] and [`alarms_page`] are the tables as docs/generated has them.
//!
//! How to add a family or a figure: docs/extending.md. How to add a rule: [`alarm`].
#![forbid(unsafe_code)]

pub mod alarm;
mod alarms_page;
pub mod dashboards;
mod exceeded;
mod exposition;
mod family;
pub mod host;
pub mod live;
pub mod names;
mod names_page;
pub mod page;
mod process;
pub mod reading;
pub mod run;
mod scrape;
pub mod screen;
pub mod server;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod view;
mod volumes;

pub use alarms_page::alarms_page;
pub use exposition::CONTENT_TYPE;
pub use family::{Family, FamilyKind};
pub use names_page::names_page;
pub use scrape::{Build, Scrape, scrape_text};
