//! Takes what the sources gave, second by second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ebbtide_history::{Sample, Samples};
use ebbtide_volume::Nanos;

use super::answers::server_reading;
use super::builder::{named, view};
use super::columns::{server_sample, storage_sample};
use super::complaints::Complaints;
use super::devices::{devices, file_system_reading, file_systems};
use super::looks::{Looks, ServerState};
use super::names::StorageNames;
use super::source::LiveSource;
use super::state::{WatchOptions, WatchState};
use super::storage_track::StorageTrack;
use crate::alarm::{Event, Silence};
use crate::host::HostSampler;
use crate::reading::{Moment, ReadingSet, VolumeReading};
use crate::view::View;

/// A wall clock that differs by so much from the time that passed was set, s.
const CLOCK_STEP_S: i64 = 3;

/// What a tick brought.
#[derive(Debug, Clone, Default)]
pub struct Tick {
    /// Alarms that have changed, in the order of subjects and rules.
    pub events: Vec<Event>,
    /// What is to be recorded of this moment.
    pub samples: Vec<Sample>,
    /// What is to be said once, in sentences. Names in them are somebody else's: make them printable.
    pub notices: Vec<String>,
}

/// Watches servers, storage and their machine. It has no clock and no thread.
#[derive(Debug)]
pub struct Watcher {
    source: Arc<LiveSource>,
    host: HostSampler,
    /// When the machine was sampled last.
    host_sampled: Option<Nanos>,
    complaints: Complaints,
    last: Option<Moment>,
    clock_steps: u64,
}

impl Watcher {
    /// A watcher that has seen nothing. Graphs are drawn of `history`; without it there are none.
    #[must_use]
    pub fn new(options: WatchOptions, history: Option<Arc<Samples>>) -> Self {
        let host = HostSampler::new(options.machine.clone());
        let source = Arc::new(LiveSource::new(options, history));
        let complaints = Complaints::default();
        Self { source, host, host_sampled: None, complaints, last: None, clock_steps: 0 }
    }

    /// What terminal, pages and scrapes read. It goes on to be there when the watcher ends, with the last view.
    #[must_use]
    pub fn source(&self) -> Arc<LiveSource> {
        Arc::clone(&self.source)
    }

    /// Silences alarms until a time.
    pub fn silence(&mut self, silence: Silence) {
        self.source.state.lock().alarms.silence(silence);
    }

    /// How often the wall clock was set.
    #[must_use]
    pub const fn clock_steps(&self) -> u64 {
        self.clock_steps
    }

    /// Takes what the sources have at a moment, and publishes the view of it. A moment that is not later than the one before is counted,
    /// and changes nothing.
    pub fn tick(&mut self, moment: Moment, looks: Looks) -> Tick {
        let mut tick = Tick::default();
        let shared = Arc::clone(&self.source);
        let mut guard = shared.state.lock();
        let state = &mut *guard;
        if self.last.is_some_and(|last| moment.elapsed <= last.elapsed) {
            state.late_ticks += 1;
            return tick;
        }
        tick.notices.extend(self.clock_step(moment));
        self.last = Some(moment);
        state.begun.get_or_insert(moment.elapsed);
        state.readings = ReadingSet { moment, checks: looks.checks.clone(), ..ReadingSet::default() };
        state.looks = looks;
        let fresh_from = moment.elapsed.since(shared.options.stale_after());
        let outcomes = state.looks.leave_out_before(fresh_from);
        let sees_all = outcomes.iter().all(|(_, outcome)| outcome.is_ok());
        let complaints = &mut self.complaints;
        tick.notices
            .extend(outcomes.into_iter().filter_map(|(task, outcome)| complaints.take(task, outcome)));
        let new_servers = self.take_servers(state, moment.elapsed, &mut tick);
        let new_volumes = take_storage(state, &shared.options, sees_all, &mut tick);
        self.take_machine(state, &mut tick);
        tick.events = state.alarms.observe(&state.readings);
        state.latest.take(&state.readings, fresh_from);
        state.note(&tick.events);
        take_cost(state, moment.elapsed);
        let view = view(state, &shared.options, moment);
        record(&view, &new_servers, &new_volumes, &mut tick.samples);
        shared.publish(view);
        tick
    }

    /// Whether the wall clock was set since the tick before.
    fn clock_step(&mut self, moment: Moment) -> Option<String> {
        let last = self.last?;
        let passed = moment.elapsed.since(last.elapsed).0 / Nanos::SECOND.0;
        let expected = last.unix_s.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
        let step_s = moment.unix_s.saturating_sub(expected);
        if step_s.abs() < CLOCK_STEP_S {
            return None;
        }
        self.clock_steps += 1;
        let direction = if step_s > 0 { "ahead" } else { "back" };
        Some(format!(
            "the clock of this machine was set {direction} by {}: rates and alarms go on, and the history has the new time",
            ebbtide_text::rough(step_s.unsigned_abs() as f64)
        ))
    }

    /// Takes the servers. Returns the seconds between the last two readings of those that have a new one.
    fn take_servers(&mut self, state: &mut WatchState, now: Nanos, tick: &mut Tick) -> BTreeMap<String, f64> {
        let mut sampled = BTreeMap::new();
        for look in &state.looks.servers {
            let outcome = match &look.state {
                ServerState::Answers => Some(Ok(())),
                ServerState::Unanswered { error, .. } => Some(Err(error.clone())),
                ServerState::NotAsked | ServerState::Rests => None,
            };
            let task = format!("server {}", look.name);
            tick.notices.extend(outcome.and_then(|outcome| self.complaints.take(&task, outcome)));
            let track = state.servers.entry(look.name.clone()).or_default();
            let is_new = track.take(now, &look.reading);
            state.readings.servers.push(server_reading(look, track, is_new));
            if let Some(seconds) = track.seconds().filter(|_| is_new) {
                sampled.insert(look.name.clone(), seconds);
            }
        }
        sampled
    }

    /// Takes file systems, and samples the machine where it was read again.
    fn take_machine(&mut self, state: &mut WatchState, tick: &mut Tick) {
        let Some(host) = &state.looks.host else { return };
        let systems = file_systems(&host.reading).into_iter().filter_map(file_system_reading);
        state.readings.file_systems.extend(systems);
        if self.host_sampled.is_none_or(|sampled| sampled < host.elapsed) {
            self.host_sampled = Some(host.elapsed);
            tick.samples.extend(self.host.sample(host.elapsed, host.reading.as_ref().clone()));
        }
    }
}

/// Takes volumes and devices. Returns the seconds between the last two readings of Ebbtide's own volumes that have a new one.
/// `sees_all`: no source was left out, so that what is not there has gone.
fn take_storage(
    state: &mut WatchState,
    options: &WatchOptions,
    sees_all: bool,
    tick: &mut Tick,
) -> BTreeMap<String, f64> {
    let names = StorageNames::new(&state.looks);
    let mut readings: Vec<(Nanos, VolumeReading)> = Vec::new();
    let mut sampled = BTreeMap::new();
    if let Some(own) = &state.looks.own {
        for volume in own.volumes.iter() {
            readings.push((own.elapsed, volume.reading()));
            let instances = &mut state.readings.instances;
            if let Some(instance) = &volume.instance
                && instances.iter().all(|known| known.name != instance.name)
            {
                instances.push(instance.clone());
            }
        }
    }
    let own_count = readings.len();
    if let Some(host) = &state.looks.host {
        let (_, limits) = named(options, &state.looks);
        let found = devices(&host.reading, &limits).into_iter().filter(|device| !names.is_own(&device.name));
        readings.extend(found.map(|device| (host.elapsed, device.as_volume(host.elapsed))));
    }
    let there: BTreeSet<String> = readings.iter().map(|(_, reading)| reading.name.clone()).collect();
    state.storage.retain(|name, _| there.contains(name));
    for (place, (elapsed, reading)) in readings.into_iter().enumerate() {
        let track: &mut StorageTrack = state.storage.entry(reading.name.clone()).or_default();
        if !track.take(elapsed, &reading) {
            continue;
        }
        if let Some(step) = track.step().filter(|_| place < own_count) {
            sampled.insert(reading.name.clone(), step.span.as_secs_f64());
        }
        state.readings.volumes.push(reading);
    }
    if sees_all {
        tick.notices.extend(changes(state, there));
    }
    sampled
}

/// Says which volumes and devices have gone or come. Those of the first look are no news.
fn changes(state: &mut WatchState, there: BTreeSet<String>) -> Vec<String> {
    let is_first = state.looks.host.is_none() && state.looks.own.is_none();
    let Some(before) = state.known.replace(there.clone()).filter(|before| !before.is_empty() && !is_first)
    else {
        return Vec::new();
    };
    let gone = before.difference(&there).map(|name| format!("{name} is no longer there"));
    let come = there.difference(&before).map(|name| format!("{name} is there now"));
    gone.chain(come).collect()
}

fn take_cost(state: &mut WatchState, now: Nanos) {
    let server_s = state.looks.servers.iter().map(|look| look.reading.cost.seconds).sum();
    state.cost.take(now, state.looks.process.as_ref(), server_s);
}

/// Samples of the servers and volumes that have new readings.
fn record(
    view: &View,
    servers: &BTreeMap<String, f64>,
    volumes: &BTreeMap<String, f64>,
    samples: &mut Vec<Sample>,
) {
    for server in &view.servers {
        if let Some(seconds) = servers.get(&server.name) {
            samples.push(server_sample(server, *seconds));
        }
    }
    for storage in view.storage.iter().filter(|storage| storage.exact) {
        if let Some(seconds) = volumes.get(&storage.name) {
            samples.push(storage_sample(storage, *seconds));
        }
    }
}
