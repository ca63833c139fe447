//! Alarms with forecasts: rules, and what is kept to judge by them. Pure: time comes with the readings.
//!
//! # Where to begin reading
//!
//! - [`RULES`] in `table.rs` is the table: what each rule watches, its threshold and why, how long it has to be true, and the same as a
//!   query of Prometheus. `dashboards` makes rule files and panels of it.
//! - [`Alarms::observe`] in `alarms.rs` takes a [`ReadingSet`](crate::reading::ReadingSet) and returns [`Event`]s. It asks `volume.rs`,
//!   `server.rs` and `space.rs`, which keep the last minutes and say what they mean for each rule.
//! - `timer.rs` makes states of verdicts: OK, ALARM and INSUFFICIENT_DATA, as CloudWatch names them.
//! - Forecasts: `credit.rs` of burst credits, on the volume's own bucket; `space.rs` of a file system; `server.rs` of the redo log.
//!
//! To add a rule, add a [`RuleId`] and a row to the table, and have one of the three judge it; `tests/alarms` needs a situation that
//! raises it and a healthy neighbour that does not. Its query names families that exporters have (the list in `dashboards`) or ours.
//! `UPDATE_DOCS=1 cargo test -p ebbtide-watch --lib page` writes its row of docs/generated/alarms.md.
//!
//! # What makes no alarm
//!
//! A counter that begins again (a restart, another attachment, a reset) leaves a gap: nothing is computed over it. A reading that is late
//! or missing changes nothing for a minute. The wall clock is for texts alone. A value between the two thresholds of its rule keeps the
//! state.

mod alarms;
mod credit;
mod credit_judge;
mod event;
mod families;
mod floor;
mod rule;
mod server;
mod silence;
mod space;
mod table;
mod timer;
mod volume;
mod window;

pub use alarms::Alarms;
pub use credit::CreditForecast;
pub use event::{Alarm, Event, EventCause, Subject};
pub use families::{ALARM_FAMILIES, alarm_text};
pub use rule::{
    AlarmSeverity, AlarmState, Query, Rule, RuleId, Side, SubjectKind, Threshold, ValueUnit, Verdict,
};
pub use silence::Silence;
pub use space::SpaceForecast;
pub use table::{RULES, fed_with, rule, rule_of_name};
