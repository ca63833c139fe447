//! CloudWatch for the volumes and instances of EC2: metrics of `AWS/EBS` and `AWS/EC2`, metric math, alarms.
//!
//! [`Monitoring::tick`] gives the counters of all attached volumes to the history ([`ebbtide_history`]); its caller has the clock.
//! A minute that has ended is in the history, and is read from there alone ([`recorded`]). What a metric is
//! made of is in [`metrics`]; its figures are the model's own. docs/aws-reference.md has what is different from AWS.
//!
//! An action is a row of the table `actions!`, a metric one of `EBS` or `EC2` in `metrics.rs`. Alarms are in `cloudwatch.db` of the
//! home ([`db`]). Expressions are `math`, states of alarms `alarms/evaluate.rs`, their actions `Alarm::execute` in `alarms/actions.rs`. Where
//! events go is [`EventSink`] in `events.rs`; commands and webhooks are `delivery.rs` and `webhook.rs`.

mod access;
mod alarms;
mod data;
mod db;
mod delivery;
mod events;
mod input;
mod instance_minute;
mod inventory;
mod math;
mod metrics;
mod read;
mod recorded;
mod refuse;
mod span;
mod statistic;
mod webhook;

use std::path::Path;
use std::sync::Arc;

use ebbtide_control::{ControlError, ControlPlane};
use ebbtide_history::{Durability, History};
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use db::{Bounds, DbError};
pub use delivery::{Delivery, Sinks};
pub(crate) use events::Envelope;
pub use events::{EventFile, EventPlace, EventSink};
pub use inventory::{Attached, Gauge, Inventory, Recorded, Running, SHARED};
pub use webhook::{Webhook, WebhookError};

use alarms::Alarms;
use db::Db;
use input::Input;

use crate::{Answer, ApiError, Call, Service};

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

/// How often old items of the history of alarms are looked for, in minutes.
const PRUNE_MINUTES: u64 = 60;

/// How the service runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether the minute that has not ended is shown too, as far as it is, and alarms are evaluated at each call.
    pub instant: bool,
    /// What the records may need.
    pub bounds: Bounds,
    /// Takes changes of alarms' states; none: they are in the history alone.
    pub events: Option<Arc<dyn EventSink>>,
    /// When it begins to record ([`ebbtide_history::Options::began_ms`]).
    pub began_ms: u64,
}

/// The CloudWatch service of a home.
#[derive(Debug)]
pub struct Monitoring {
    control: Arc<dyn ControlPlane>,
    inventory: Arc<dyn Inventory>,
    options: Options,
    history: History,
    /// Held from reading the counters until they are recorded, so that none are recorded after later ones.
    sampling: Mutex<()>,
    db: Mutex<Db>,
    alarms: Mutex<Alarms>,
    /// The minute of the latest tick, and of the latest pruning.
    ticked: Mutex<(u64, u64)>,
}

/// A sample that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TickError {
    /// The records cannot be written.
    #[error("the metrics cannot be stored")]
    Db(#[from] DbError),
    /// The control plane refuses.
    #[error("the volumes cannot be asked for their counters")]
    Control(#[from] ControlError),
}

impl Monitoring {
    /// Opens the service of a home whose volumes `control` has.
    ///
    /// # Errors
    /// Records that cannot be read or written.
    pub fn open(
        home: &Path,
        control: Arc<dyn ControlPlane>,
        inventory: Arc<dyn Inventory>,
        options: Options,
    ) -> Result<Self, DbError> {
        // Its file has the alarms of a home of before.
        let history = History::open(
            home,
            ebbtide_history::Options {
                durability: Durability::Disk,
                most_minutes: options.bounds.minutes,
                marks: recorded::marks,
                began_ms: options.began_ms,
            },
        )?;
        let db = Db::open(home, options.bounds.history)?;
        let alarms = Alarms::of(db.alarms()?);
        Ok(Self {
            control,
            inventory,
            options,
            history,
            sampling: Mutex::default(),
            db: Mutex::new(db),
            alarms: Mutex::new(alarms),
            ticked: Mutex::default(),
        })
    }

    /// Takes a sample. Once a minute has ended, its metrics are there and alarms are evaluated. To be called about once a
    /// second, and at the beginning of each minute.
    ///
    /// # Errors
    /// Records that cannot be written; a control plane that refuses.
    pub fn tick(&self, now_ms: u64) -> Result<(), TickError> {
        self.inventory.tick(now_ms);
        self.sample(now_ms, false)?;
        let minute = now_ms / MINUTE_MS;
        let mut ticked = self.ticked.lock();
        // Not at the first tick, with which no minute ends.
        let ends = ticked.0 > 0 && minute > ticked.0;
        let ended = ticked.0;
        ticked.0 = minute.max(ended);
        if ends {
            self.store_gauges(ended, (ended + 1) * MINUTE_MS)?;
            self.evaluate_alarms(now_ms, minute * 60)?;
        }
        self.history.keep_up(now_ms).map_err(DbError::from)?;
        if minute >= ticked.1 + PRUNE_MINUTES {
            ticked.1 = minute;
            self.db.lock().prune(now_ms)?;
        }
        Ok(())
    }

    /// Stores what the present minute has so far, before the process ends. A control plane that has stopped already is
    /// not asked any more: the latest tick was the last sample then.
    ///
    /// # Errors
    /// As [`Self::tick`].
    pub fn close(&self, now_ms: u64) -> Result<(), TickError> {
        match self.sample(now_ms, true) {
            Err(TickError::Control(ControlError::Stopping)) => {
                Ok(self.history.publish().map_err(DbError::from)?)
            }
            other => other,
        }
    }

    fn sample(&self, now_ms: u64, publishes: bool) -> Result<(), TickError> {
        let _sampling = self.sampling.lock();
        let readings = self.readings(now_ms)?;
        self.history.record(now_ms, readings).map_err(DbError::from)?;
        if publishes {
            self.history.publish().map_err(DbError::from)?;
        }
        Ok(())
    }

    /// Stores the metrics that are neither of volumes nor of instances for a minute, as far as it has passed at a time.
    fn store_gauges(&self, minute: u64, until_ms: u64) -> Result<(), DbError> {
        let gauges = self.inventory.gauges(minute * MINUTE_MS..until_ms);
        Ok(recorded::write_gauges(&mut self.history.store(), minute, &gauges)?)
    }

    /// Shows the present minute and evaluates alarms on it.
    fn refresh(&self, now_ms: u64) -> Result<(), TickError> {
        self.sample(now_ms, true)?;
        self.store_gauges(now_ms / MINUTE_MS, now_ms + 1)?;
        Ok(self.evaluate_alarms(now_ms, (now_ms / MINUTE_MS + 1) * 60)?)
    }
}

/// A call.
#[derive(Debug, Clone, Copy)]
struct Ask<'a> {
    call: &'a Call<'a>,
    input: Input<'a>,
}

impl<'a> Ask<'a> {
    /// Account and Region.
    fn account(&self) -> (&'a str, &'a str) {
        (&self.call.caller.account, self.call.region)
    }
}

/// How an action is carried out.
type Action = fn(&Monitoring, &Ask<'_>) -> Result<Map<String, Value>, ApiError>;

macro_rules! actions {
    ($($name:literal => $method:ident,)*) => {
        /// The actions, in alphabetical order.
        const NAMES: &[&str] = &[$($name),*];
        const METHODS: &[Action] = &[$(Monitoring::$method),*];
    };
}

actions! {
    "DeleteAlarms" => delete_alarms,
    "DescribeAlarmHistory" => describe_alarm_history,
    "DescribeAlarms" => describe_alarms,
    "DescribeAlarmsForMetric" => describe_alarms_for_metric,
    "DisableAlarmActions" => disable_alarm_actions,
    "EnableAlarmActions" => enable_alarm_actions,
    "GetMetricData" => get_metric_data,
    "GetMetricStatistics" => get_metric_statistics,
    "ListMetrics" => list_metrics,
    "ListTagsForResource" => list_tags_for_resource,
    "PutMetricAlarm" => put_metric_alarm,
    "SetAlarmState" => set_alarm_state,
    "TagResource" => tag_resource,
    "UntagResource" => untag_resource,
}

impl Service for Monitoring {
    fn name(&self) -> &'static str {
        "monitoring"
    }

    fn actions(&self) -> &'static [&'static str] {
        NAMES
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let Ok(at) = NAMES.binary_search(&call.action) else {
            let message = format!("The action {} is not valid for this web service.", call.action);
            return Err(ApiError::client("InvalidAction", message));
        };
        if self.options.instant {
            self.refresh(call.now_ms).map_err(|error| refuse::internal(&error))?;
        }
        let output = METHODS[at](self, &Ask { call, input: Input(call.input) })?;
        Ok(Answer { output, payload: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn actions_are_in_the_order_in_which_they_are_looked_for_and_of_the_model() {
        assert!(NAMES.is_sorted());
        let model = Model::of("monitoring").unwrap();
        for name in NAMES {
            assert!(model.actions().any(|known| known == *name), "{name}");
        }
    }
}
