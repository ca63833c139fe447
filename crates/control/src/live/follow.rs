//! What follows the requests of an attached volume: shadow volumes, and a recording.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use ebbtide_catalog::{MonthlyCost, Spec};
use ebbtide_device::engine::ObservedIo;
use ebbtide_device::host::{Attachment, Follow, InstanceRequest};
use ebbtide_twin::trace::Writer;
use ebbtide_twin::{Latencies, Percentiles, Shadow};
use ebbtide_volume::{Instance, Nanos};
use parking_lot::Mutex;

use super::LiveControl;
use crate::{
    AttachVolume, ControlError, LatencyView, RecordVolume, RecordingView, ShadowView, ShadowsView, UnixTime,
};

/// Follows a volume for the whole of its attachment.
#[derive(Debug)]
pub(super) struct Following(Mutex<Followed>);

#[derive(Debug)]
struct Followed {
    since: Nanos,
    requests: u64,
    lost: u64,
    live: Latencies,
    shadows: Vec<ShadowVolume>,
    recording: Option<Recording>,
}

/// A shadow with what is known of its spec.
#[derive(Debug)]
pub(super) struct ShadowVolume {
    spec: String,
    description: String,
    monthly_cost: Option<MonthlyCost>,
    shadow: Shadow,
}

/// A recording that goes on, or that ended by an error.
struct Recording {
    since: Nanos,
    /// None when it could not be written any more.
    writer: Option<Writer<Box<dyn Write + Send>>>,
    view: RecordingView,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("view", &self.view).finish_non_exhaustive()
    }
}

impl Follow for Following {
    fn requests(&self, batch: &[ObservedIo], lost: u64) {
        let mut followed = self.0.lock();
        followed.requests += batch.len() as u64;
        followed.lost += lost;
        let Followed { live, shadows, recording, .. } = &mut *followed;
        for ObservedIo { at, completes, io } in batch {
            live.record(io.op, completes.since(*at));
            for shadow in &mut *shadows {
                shadow.shadow.submit(*at, *io);
            }
        }
        if let Some(recording) = recording {
            recording.view.lost += lost;
            recording.add(batch);
        }
    }
}

impl Following {
    fn new(shadows: Vec<ShadowVolume>, since: Nanos) -> Self {
        let live = Latencies::default();
        Self(Mutex::new(Followed { since, requests: 0, lost: 0, live, shadows, recording: None }))
    }

    /// The shadows at a time; none where there are none.
    pub(super) fn shadows(&self, now: Nanos) -> Option<ShadowsView> {
        let mut followed = self.0.lock();
        if followed.shadows.is_empty() {
            return None;
        }
        let seconds = now.since(followed.since).as_secs_f64();
        let (live_read, live_write) = latency_views(&followed.live);
        let shadows = followed.shadows.iter_mut().map(|shadow| shadow.view(now, seconds)).collect();
        let (requests, lost) = (followed.requests, followed.lost);
        Some(ShadowsView { seconds, requests, lost, live_read, live_write, shadows })
    }

    /// The recording, where there is one.
    pub(super) fn recording(&self) -> Option<RecordingView> {
        self.0.lock().recording.as_ref().map(|recording| recording.view.clone())
    }

    /// Ends the recording, where there is one.
    pub(super) fn end_recording(&self) -> Option<RecordingView> {
        let recording = self.0.lock().recording.take()?;
        Some(recording.end())
    }
}

impl ShadowVolume {
    fn view(&mut self, now: Nanos, seconds: f64) -> ShadowView {
        let stats = self.shadow.stats(now);
        let share = |time: Nanos| (time.as_secs_f64() / seconds.max(f64::MIN_POSITIVE) * 100.0).min(100.0);
        let (read, write) = latency_views(self.shadow.latencies());
        ShadowView {
            spec: self.spec.clone(),
            description: self.description.clone(),
            monthly_cost: self.monthly_cost.clone(),
            read,
            write,
            over_volume_iops_pct: share(stats.volume_iops_exceeded),
            over_volume_throughput_pct: share(stats.volume_throughput_exceeded),
            over_instance_iops_pct: share(stats.instance_iops_exceeded),
            over_instance_throughput_pct: share(stats.instance_throughput_exceeded),
            credit_pct: stats.credit_share.map(|share| share * 100.0),
        }
    }
}

fn latency_views(latencies: &Latencies) -> (LatencyView, LatencyView) {
    (latency_view(&latencies.read), latency_view(&latencies.write))
}

fn latency_view(latencies: &Percentiles) -> LatencyView {
    let us = |quantile| latencies.at(quantile).map(|latency| latency.0 as f64 / 1e3);
    LatencyView {
        ops: latencies.count(),
        p50_us: us(0.50),
        p95_us: us(0.95),
        p99_us: us(0.99),
        max_us: us(1.0),
    }
}

impl Recording {
    fn new(path: String, output: Box<dyn Write + Send>, since: Nanos) -> Self {
        let view =
            RecordingView { path, since: UnixTime::of(since), requests: 0, bytes: 0, lost: 0, failed: None };
        Self { since, writer: Some(Writer::new(output)), view }
    }

    fn add(&mut self, batch: &[ObservedIo]) {
        let Some(writer) = &mut self.writer else { return };
        // What arrived before the recording began is not in it.
        let new = batch.iter().filter(|request| request.at >= self.since);
        let mut added = Ok(());
        for ObservedIo { at, completes, io } in new {
            added = added.and_then(|()| writer.add(*at, *io, *completes));
        }
        self.count();
        if let Err(error) = added {
            tracing::warn!(path = self.view.path, %error, "the recording ended");
            self.view.failed = Some(error.to_string());
            self.writer = None;
        }
    }

    fn count(&mut self) {
        if let Some(writer) = &self.writer {
            (self.view.requests, self.view.bytes) = (writer.requests(), writer.bytes());
        }
    }

    fn end(mut self) -> RecordingView {
        if let Some(Err(error)) = self.writer.as_mut().map(Writer::finish) {
            self.view.failed = Some(error.to_string());
        }
        self.count();
        self.view
    }
}

impl LiveControl {
    /// The shadows of a volume that is to be attached to an instance, or to none.
    pub(super) fn shadows_of(
        &self,
        request: &AttachVolume,
        instance: Option<&InstanceRequest>,
        size_bytes: u64,
        seed: u64,
    ) -> Result<Vec<ShadowVolume>, ControlError> {
        if request.shadows.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.catalog()?;
        let prices = catalog.prices(None)?;
        let now = self.host.now();
        let plan = |(number, spec): (u64, &Spec)| {
            let resolved = catalog.resolve(&sized(spec, size_bytes))?;
            if resolved.size_bytes() < size_bytes {
                let (volume, spec) = (request.name.clone(), spec.to_string());
                return Err(ControlError::ShadowTooSmall { volume, spec, size_bytes });
            }
            let own_instance = instance.map(|instance| Instance::new(instance.limits));
            Ok(ShadowVolume {
                spec: resolved.spec.to_string(),
                monthly_cost: prices.monthly_cost(&resolved),
                shadow: Shadow::new(resolved.array(now), own_instance, seed ^ !number),
                description: resolved.description,
            })
        };
        (0..).zip(&request.shadows).map(plan).collect()
    }

    /// Lets shadows follow a volume that has just been attached.
    pub(super) fn follow(&self, volume: &str, shadows: Vec<ShadowVolume>) -> Result<(), ControlError> {
        if !shadows.is_empty() {
            self.following(&*self.host.attached(volume)?, shadows)?;
        }
        Ok(())
    }

    /// What follows an attached volume; nothing has followed it where `shadows` are given.
    fn following(
        &self,
        attachment: &Attachment,
        shadows: Vec<ShadowVolume>,
    ) -> Result<Arc<Following>, ControlError> {
        let mut all = self.following.lock();
        let name = &attachment.info().volume;
        if let Some(known) = all.get(name) {
            return Ok(Arc::clone(known));
        }
        let following = Arc::new(Following::new(shadows, self.host.now()));
        let follower: Arc<dyn Follow> = following.clone();
        attachment.follow(follower)?;
        all.insert(name.clone(), Arc::clone(&following));
        Ok(following)
    }

    /// What has followed an attached volume; none where nothing has.
    pub(super) fn followed(&self, volume: &str) -> Option<Arc<Following>> {
        self.following.lock().get(volume).cloned()
    }

    /// Ends what followed a volume that is detached.
    pub(super) fn end_following_of(&self, volume: &str) -> Option<Arc<Following>> {
        self.following.lock().remove(volume)
    }

    /// Ends all recordings: every volume is detached.
    pub(super) fn end_following(&self) {
        for following in std::mem::take(&mut *self.following.lock()).into_values() {
            following.end_recording();
        }
    }

    /// Begins to record a volume.
    pub(super) fn record(
        &self,
        request: &RecordVolume,
        output: Box<dyn Write + Send>,
    ) -> Result<RecordingView, ControlError> {
        let attachment = self.host.attached(&request.name)?;
        let following = self.following(&attachment, Vec::new())?;
        let mut followed = following.0.lock();
        if let Some(recording) = &followed.recording {
            let (volume, path) = (request.name.clone(), recording.view.path.clone());
            return Err(ControlError::Recorded { volume, path });
        }
        let recording = Recording::new(request.path.clone(), output, self.host.now());
        let view = recording.view.clone();
        followed.recording = Some(recording);
        tracing::info!(volume = request.name, path = request.path, "recording");
        Ok(view)
    }

    /// Ends the recording of a volume.
    pub(super) fn end_recording_of(&self, volume: &str) -> Result<RecordingView, ControlError> {
        let attachment = self.host.attached(volume)?;
        let following = self.followed(volume).filter(|following| following.recording().is_some());
        let following = following.ok_or_else(|| ControlError::NotRecorded { volume: volume.to_owned() })?;
        if following.0.lock().shadows.is_empty() {
            // A recording that begins meanwhile waits, and gets a follower of its own.
            let mut all = self.following.lock();
            attachment.end_following();
            all.remove(volume);
        } else {
            attachment.catch_up();
        }
        let ended = following.end_recording();
        tracing::info!(volume, "recorded");
        ended.ok_or_else(|| ControlError::NotRecorded { volume: volume.to_owned() })
    }
}

/// A spec with a size: that of the followed volume, where it has none.
fn sized(spec: &Spec, size_bytes: u64) -> Spec {
    let mut spec = spec.clone();
    let members = u64::from(spec.members());
    spec.volume.size_bytes.get_or_insert(size_bytes.div_ceil(members));
    spec
}
