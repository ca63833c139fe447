//! What is kept between two ticks.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::Role;
use ebbtide_volume::Nanos;

use super::latest::LatestReadings;
use super::looks::{Looks, ServerLook};
use super::own_cost::CostMeter;
use super::server_track::ServerTrack;
use super::storage_track::StorageTrack;
use crate::alarm::{AlarmState, Alarms, Event, Subject};
use crate::reading::{ReadingSet, VolumeLimits};

/// What is watched, and how it is named.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// The name of the machine, which is a label of its series in the history.
    pub machine: String,
    /// Volumes that the user names, since no server can be asked for them.
    pub volumes: Vec<NamedVolume>,
    /// The label `node_name` of each metric; None for none.
    pub node_name: Option<String>,
    /// How often the sources are read.
    pub interval: Nanos,
    /// Whether metrics of servers have the label `service_name`. Without it the metrics of two servers are the same series.
    pub has_service_name: bool,
    /// The version of the program, and the commit that it was built from.
    pub build: [&'static str; 2],
}

/// A volume below the files of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedVolume {
    /// The name of the server.
    pub server: String,
    /// What lies on it.
    pub role: Role,
    /// What it is, such as `gp3:size=500GiB`.
    pub spec: String,
    /// What one device of it may do.
    pub limits: VolumeLimits,
}

/// What a source gave before so long is of another moment, where it is read each few seconds.
const LEAST_STALE: Nanos = Nanos::from_secs(15);

impl WatchOptions {
    /// The age from which on what a source gave is neither shown, judged nor scraped: 15 s, or two intervals.
    pub(super) fn stale_after(&self) -> Nanos {
        LEAST_STALE.max(Nanos(self.interval.0.saturating_mul(2)))
    }

    /// The devices of a server that the user has named: what they are, and what they may do.
    pub(super) fn named_devices<'a>(
        &'a self,
        server: &'a ServerLook,
    ) -> impl Iterator<Item = (&'a str, &'a NamedVolume)> {
        server.placements.iter().flat_map(move |placement| {
            let is_named = |volume: &&NamedVolume| {
                let is_log = matches!(placement.role, Role::Redo | Role::Binlog);
                volume.server == server.name
                    && (volume.role == placement.role || is_log && volume.role == Role::Logs)
            };
            let volume = self.volumes.iter().find(is_named);
            let devices = placement.devices.iter().map(String::as_str);
            volume.into_iter().flat_map(move |volume| devices.clone().map(move |device| (device, volume)))
        })
    }
}

/// The latest transition of an alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) state: AlarmState,
    pub(super) fix: String,
}

/// What is kept between two ticks.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    pub(super) alarms: Alarms,
    pub(super) transitions: BTreeMap<(&'static str, Subject), Transition>,
    pub(super) servers: BTreeMap<String, ServerTrack>,
    pub(super) storage: BTreeMap<String, StorageTrack>,
    pub(super) cost: CostMeter,
    /// When the first tick came.
    pub(super) begun: Option<Nanos>,
    /// Ticks that came no later than the one before them.
    pub(super) late_ticks: u64,
    /// What the sources gave at the last tick.
    pub(super) looks: Looks,
    /// The same, as the alarms took it: with what is new in it alone.
    pub(super) readings: ReadingSet,
    /// The newest of them by subject, for scrapes.
    pub(super) latest: LatestReadings,
    /// Devices and volumes that were there at the last tick.
    pub(super) known: Option<BTreeSet<String>>,
}

impl WatchState {
    /// Notes what has changed. Alarms of subjects that are no longer known go.
    pub(super) fn note(&mut self, events: &[Event]) {
        for event in events {
            let transition = Transition { state: event.to, fix: event.fix.clone() };
            self.transitions.insert((event.rule, event.subject.clone()), transition);
        }
        if !events.is_empty() {
            let known: BTreeSet<_> = self.alarms.all().map(|alarm| (alarm.rule, alarm.subject)).collect();
            self.transitions.retain(|key, _| known.contains(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::looks::ServerState;
    use super::*;
    use crate::host::Placement;

    #[test]
    fn what_a_source_gave_is_old_after_15_s_or_two_intervals() {
        let stale_after = |seconds| {
            let options = WatchOptions { interval: Nanos::from_secs(seconds), ..WatchOptions::default() };
            options.stale_after()
        };
        assert_eq!([0, 1, 60].map(stale_after), [15, 15, 120].map(Nanos::from_secs));
    }

    #[test]
    fn a_volume_of_both_logs_is_that_of_each_of_them_and_of_no_other_server() {
        let placement = |role: Role, device: &str| Placement {
            role,
            directory: "/var/lib/mysql".into(),
            mount_point: None,
            devices: vec![device.to_owned()],
            is_said: false,
        };
        let look = |name: &str| ServerLook {
            name: name.to_owned(),
            address: String::new(),
            reading: Arc::default(),
            state: ServerState::Answers,
            placements: [(Role::Data, "a"), (Role::Redo, "b"), (Role::Binlog, "b"), (Role::Tmp, "c")]
                .map(|(role, device)| placement(role, device))
                .into_iter()
                .collect(),
            elsewhere: None,
        };
        let named = |role: Role, spec: &str| NamedVolume {
            server: "shop".to_owned(),
            role,
            spec: spec.to_owned(),
            limits: VolumeLimits::default(),
        };
        let options = WatchOptions {
            volumes: vec![named(Role::Data, "gp2"), named(Role::Logs, "io2")],
            ..WatchOptions::default()
        };
        let shop = look("shop");
        let found: Vec<(&str, &str)> =
            options.named_devices(&shop).map(|(device, volume)| (device, volume.spec.as_str())).collect();
        assert_eq!(found, [("a", "gp2"), ("b", "io2"), ("b", "io2")]);
        assert_eq!(options.named_devices(&look("other")).count(), 0);
    }
}
