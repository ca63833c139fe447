//! A volume of the lab while it is in use, from its making to its end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ebbtide_catalog::Resolved;
use ebbtide_device::engine::LiveVolume;
use ebbtide_device::host::{
    AttachRequest, Attachment, Detached, Export, FsCheck, FsType, HostError, HostMatch, MountRequest,
};
use ebbtide_device::store::StoreError;
use ebbtide_load::Cancel;
use ebbtide_volume::{Array, Instance, InstanceLimits, Limits, Nanos, RateLimit, ServiceTimes};
use parking_lot::Mutex;

use super::abandon::Watchman;
use super::error::StepError;
use super::home::Lab;
use super::proc;

/// How long a volume that is in use is waited for. Tests see whether it is waited for at all, on any machine.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });
/// The same when the user has ended the run.
const HURRY: Duration = Duration::from_secs(1);
/// The pause before it is looked again whether it still is: at first, and at most. Most users are gone in a moment.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LOOK: Duration = Duration::from_millis(50);

/// What a volume is made of.
#[derive(Debug, Clone, Copy)]
pub enum VolumeOrigin<'a> {
    /// Nothing but holes; a file system is made on it.
    Blank,
    /// A snapshot; its file system is grown.
    Snapshot(&'a str),
    /// A volume that is in the store already, with its file system.
    Stored,
}

/// A volume that is to be made.
#[derive(Debug)]
pub struct VolumeRequest<'a> {
    /// Its name, and that of its mount.
    pub name: String,
    /// What it is made of.
    pub origin: VolumeOrigin<'a>,
    /// Its physics while the limits are off; size and durability are those of the real one.
    pub unlimited: Array,
    /// The file system that is made, or that it has.
    pub fs: FsType,
    /// Whether it reports that it is a rotating disk.
    pub rotational: bool,
    /// Seed of its draws.
    pub seed: u64,
    /// Where the run is ended, what is on the volume and not yet written back is given up.
    pub cancel: &'a Cancel,
}

/// The operations a second that a volume may do, on an instance where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IopsLimit {
    rate: f64,
    /// While credits last.
    ceiling: f64,
}

/// Credits below this share are gone: an empty bucket refills a little between two I/Os.
const GONE: f64 = 0.000_5;

impl IopsLimit {
    /// None where a member of the volume has no such limit.
    pub fn of(real: &Resolved, instance: Option<&InstanceLimits>) -> Option<Self> {
        let members: Option<Vec<RateLimit>> = real.members.iter().map(|limits| limits.iops).collect();
        let members = members?;
        // What an instance has saved up is not known second by second: it is held to what lasts.
        let most = instance.map_or(f64::INFINITY, |instance| instance.iops.rate as f64);
        let all = |of: fn(&RateLimit) -> u64| members.iter().map(of).sum::<u64>() as f64;
        Some(Self { rate: all(|limit| limit.rate).min(most), ceiling: all(|limit| limit.ceiling).min(most) })
    }

    /// In a second with these credits.
    pub(super) fn at(self, credits: Option<f64>) -> f64 {
        if credits.is_none_or(|share| share > GONE) { self.ceiling } else { self.rate }
    }
}

/// A volume's physics without its limits and its service times.
pub fn without_limits(real: &Resolved, now: Nanos) -> Array {
    at_once(real, now, |_| None)
}

/// A volume's physics with its limits multiplied, and without its service times.
fn hastened(real: &Resolved, by: u32, now: Nanos) -> Array {
    at_once(real, now, |limit| {
        Some(RateLimit {
            rate: limit.rate.saturating_mul(by.into()),
            ceiling: limit.ceiling.saturating_mul(by.into()),
            allowance: limit.allowance.saturating_mul(by.into()),
            credits: limit.credits.saturating_mul(by.into()),
        })
    })
}

/// A volume's physics with other limits, and without its service times.
fn at_once(real: &Resolved, now: Nanos, limit: impl Fn(RateLimit) -> Option<RateLimit>) -> Array {
    let changed = |limits: &Limits| Limits {
        iops: limits.iops.and_then(&limit),
        throughput: limits.throughput.and_then(&limit),
        service: ServiceTimes::instant(),
        ..limits.clone()
    };
    Array::striped(real.members.iter().map(changed).collect(), real.chunk_bytes, now)
        .expect("the limits were checked with the real ones")
}

/// A volume of a size that nothing limits.
pub fn ideal(size_bytes: u64, now: Nanos) -> Array {
    let limits = Limits::unlimited(size_bytes);
    Array::single(limits, now).expect("the limits are constants, and the size is not zero")
}

/// A volume that is attached and mounted. Dropping it throws it away, by force where it is in use.
#[derive(Debug)]
pub struct LabVolume<'a> {
    lab: &'a Lab,
    name: String,
    unlimited: Array,
    fs: FsType,
    attachment: Option<Arc<Attachment>>,
    /// Whether it has been unmounted: all that its file system had in memory is on it.
    unmounted: AtomicBool,
    cancel: Cancel,
    watchman: Option<Watchman>,
}

impl<'a> LabVolume<'a> {
    /// Makes a volume, attaches and mounts it.
    pub fn make(
        lab: &'a Lab,
        request: VolumeRequest<'_>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        let (store, size) = (lab.host.store(), request.unlimited.size_bytes());
        let meta = serde_json::Value::Null;
        match request.origin {
            VolumeOrigin::Blank => store.create_volume(&request.name, size, meta)?,
            VolumeOrigin::Snapshot(snapshot) => {
                store.create_from_snapshot(&request.name, snapshot, size, meta)?
            }
            VolumeOrigin::Stored => {}
        }
        let unlimited = request.unlimited.clone();
        let (cancel, fs) = (request.cancel.clone(), request.fs);
        let mut made = Self {
            lab,
            name: request.name,
            unlimited,
            fs,
            attachment: None,
            unmounted: AtomicBool::new(false),
            cancel,
            watchman: None,
        };
        let mount = MountRequest {
            dir: lab.mount_dir(&made.name),
            fs: request.fs,
            destroy: false,
            grow: matches!(request.origin, VolumeOrigin::Snapshot(_)),
            // A server of another user has files on it, and no programs.
            noexec: true,
        };
        let attach = AttachRequest {
            meta: store.meta(&made.name)?,
            volume: made.name.clone(),
            array: request.unlimited,
            seed: request.seed,
            block_bytes: 512,
            instance: None,
            export: Export::Block { mount: Some(mount) },
            host_match: HostMatch::default(),
        };
        let attachment = lab.host.attach(attach, progress)?;
        made.attachment = Some(Arc::clone(&attachment));
        let watchman = Watchman::start(attachment.live(), &made.cancel);
        let no_thread = |source| StepError::Io { action: "start a thread".into(), source };
        made.watchman = Some(watchman.map_err(no_thread)?);
        if request.rotational {
            attachment.set_rotational(true)?;
        }
        Ok(made)
    }

    fn attachment(&self) -> &Attachment {
        self.attachment.as_ref().expect("it is attached until it is consumed")
    }

    /// The volume itself.
    pub fn live(&self) -> &LiveVolume {
        self.attachment().live()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is mounted.
    pub fn dir(&self) -> &Path {
        self.attachment().info().mount.as_deref().expect("every volume of the lab is mounted")
    }

    /// Unmounts it and checks its file system, which is not changed. A server that has just ended may hold its files
    /// for a while yet, as in [`Self::detach`].
    pub fn check(&self) -> Result<FsCheck, HostError> {
        let give_up = Instant::now() + PATIENCE;
        let mut pause = FIRST_LOOK;
        loop {
            match self.attachment().unmount() {
                Err(HostError::InUse { .. }) if Instant::now() < give_up && !self.cancel.is_cancelled() => {
                    wait(&mut pause);
                }
                unmounted => break unmounted?,
            }
        }
        self.unmounted.store(true, Ordering::Relaxed);
        self.attachment().check_fs(self.fs)
    }

    /// How long its device's reads and writes have taken so far, in sum, as the kernel counts it, s.
    pub fn device_time_s(&self) -> Option<f64> {
        proc::device_time_s(self.attachment().info().device.as_deref()?)
    }

    /// Switches its limits off: nobody waits for what it carries any more.
    pub fn release(&self) {
        if let Err(error) = self.live().replace_model(self.unlimited.clone(), None) {
            tracing::warn!(volume = self.name, %error, "its limits stay on while it is thrown away");
        }
    }

    /// Switches the limits on, multiplied.
    pub fn lead_in(&self, real: &Resolved, speed: u32) -> Result<(), StepError> {
        let live = self.live();
        live.replace_model(hastened(real, speed, live.now()), None).map_err(HostError::from)?;
        Ok(())
    }

    /// Switches the limits on.
    pub fn limit(&self, real: &Resolved, instance: Option<Arc<Mutex<Instance>>>) -> Result<(), StepError> {
        let live = self.live();
        live.replace_model(real.array(live.now()), instance).map_err(HostError::from)?;
        Ok(())
    }

    /// Switches the limits off again.
    pub fn unlimit(&self) -> Result<(), StepError> {
        self.live().replace_model(self.unlimited.clone(), None).map_err(HostError::from)?;
        Ok(())
    }

    /// Detaches it in order, so that everything written is on the volume, and keeps a snapshot of it.
    pub fn keep(
        mut self,
        snapshot: &str,
        meta: serde_json::Value,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<(), StepError> {
        self.attachment = None;
        let detached = self.lab.host.detach(&self.name, false, progress)?;
        if self.cancel.is_cancelled() {
            return Err(StepError::Cancelled);
        }
        if let Some(lost) = loss(&detached) {
            return Err(StepError::HostFailed(format!("the data could not be written: {lost}")));
        }
        self.lab.host.store().snapshot(&self.name, snapshot, meta)?;
        Ok(())
    }
}

/// What the host could not write of a volume.
fn loss(detached: &Detached) -> Option<String> {
    if let Some(lost) = detached.lost.first() {
        return Some(lost.clone());
    }
    (detached.host_errors > 0).then(|| format!("{} requests failed at the host", detached.host_errors))
}

impl Drop for LabVolume<'_> {
    fn drop(&mut self) {
        if self.attachment.is_some() {
            // What is still to be written back is thrown away with the volume: let it be quick.
            self.release();
            self.attachment = None;
        }
        if self.discard() {
            return;
        }
        let thrown_away = self.detach().and_then(|()| self.delete());
        if let Err(error) = thrown_away {
            let error = StepError::from(error).chain();
            self.lab
                .note_trouble(format!("volume {} is left until the next run clears it: {error}", self.name));
        }
    }
}

impl LabVolume<'_> {
    /// Throws it away at once where it is unmounted already: nothing has to be written back, and nobody's files to be
    /// waited for. False: it has to be detached, whatever was in the way.
    fn discard(&self) -> bool {
        if !self.unmounted.load(Ordering::Relaxed) || self.cancel.is_cancelled() {
            return false;
        }
        let discarded = self.lab.host.discard(&self.name);
        discarded.inspect_err(|error| tracing::debug!(volume = self.name, %error, "not discarded")).is_ok()
    }

    /// Detaches it in order, once those who have it in use have gone: what a killed server had asked the
    /// kernel for through io_uring holds its files for a while after its end. Then by force.
    fn detach(&self) -> Result<(), HostError> {
        let began = Instant::now();
        let mut pause = FIRST_LOOK;
        loop {
            let patience = if self.cancel.is_cancelled() { HURRY } else { PATIENCE };
            let patient = began.elapsed() < patience;
            match self.lab.host.detach(&self.name, !patient, &|_| ()) {
                Ok(_) | Err(HostError::NotAttached { .. }) => return Ok(()),
                Err(HostError::InUse { .. } | HostError::Loop(_)) if patient => {
                    wait(&mut pause);
                }
                Err(error) if patient => {
                    tracing::warn!(volume = self.name, %error, "detaching by force");
                    return self.lab.host.detach(&self.name, true, &|_| ()).map(drop);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes it, once its files are closed.
    fn delete(&self) -> Result<(), HostError> {
        let give_up = Instant::now() + PATIENCE;
        let mut pause = FIRST_LOOK;
        loop {
            match self.lab.host.store().delete_volume(&self.name) {
                Err(StoreError::Busy { .. }) if Instant::now() < give_up => {
                    wait(&mut pause);
                }
                other => return Ok(other?),
            }
        }
    }
}

/// Waits before the next look. The next pause is twice as long, up to [`LOOK`].
fn wait(pause: &mut Duration) {
    std::thread::sleep(*pause);
    *pause = (*pause * 2).min(LOOK);
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use ebbtide_device::faults::{AddedLatency, Affected, Faults};

    use super::*;
    use crate::run::event::EventSink;

    /// Whether volumes can be attached here; prints what is missing where not.
    fn can_attach() -> bool {
        let lacks = |file: &&str| std::fs::File::options().read(true).write(true).open(file).is_err();
        let missing = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|file| lacks(file));
        missing.inspect(|missing| println!("SKIPPED: root, and {missing}")).is_none()
    }

    fn lab(home: &Path, cancel: &Cancel) -> Lab {
        Lab::open(home, cancel, EventSink::new(&|_| ())).unwrap()
    }

    fn volume<'a>(lab: &'a Lab, cancel: &Cancel) -> LabVolume<'a> {
        let request = VolumeRequest {
            name: "trial-1-data".into(),
            origin: VolumeOrigin::Blank,
            unlimited: ideal(1 << 30, lab.host.now()),
            fs: FsType::Xfs,
            rotational: false,
            seed: 1,
            cancel,
        };
        LabVolume::make(lab, request, &|_| ()).unwrap()
    }

    /// Writes blocks of 64 KiB to a file on a volume, one after the other.
    fn write(volume: &LabVolume<'_>, blocks: u32) -> Child {
        Command::new("dd")
            .args(["if=/dev/zero", "bs=64k", "oflag=direct", "status=none"])
            .arg(format!("count={blocks}"))
            .arg(format!("of={}", volume.dir().join("file").display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn pauses_between_looks_grow_to_their_limit() {
        let mut pause = FIRST_LOOK;
        for expected in [2, 4, 8, 16, 32, 50, 50].map(Duration::from_millis) {
            assert_eq!(pause, expected);
            wait(&mut pause);
        }
    }

    #[test]
    fn a_volume_whose_file_system_was_checked_is_thrown_away_with_all_that_it_had() {
        if !can_attach() {
            return;
        }
        let (dir, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
        let lab = lab(dir.path(), &cancel);
        let volume = volume(&lab, &cancel);
        let mount = volume.dir().to_owned();
        assert!(write(&volume, 10).wait().unwrap().success());
        assert!(!volume.discard(), "it is mounted");
        assert!(volume.check().unwrap().clean && !mount.exists());
        drop(volume);
        assert_eq!(lab.take_trouble(), Vec::<String>::new());
        assert!(lab.host.store().volumes().is_empty());
    }

    #[test]
    fn the_time_of_a_device_has_what_the_model_does_not_know_of() {
        if !can_attach() {
            return;
        }
        let (dir, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
        let lab = lab(dir.path(), &cancel);
        let volume = volume(&lab, &cancel);
        let late = AddedLatency { affected: Affected::Writes, us: 50_000 };
        volume.live().set_faults(Faults { latency: vec![late], ..Faults::default() }).unwrap();
        let before = volume.device_time_s().unwrap();
        let began = Instant::now();
        assert!(write(&volume, 10).wait().unwrap().success());
        let took = volume.device_time_s().unwrap() - before;
        // The file system writes beside them.
        let most = 8.0 * began.elapsed().as_secs_f64();
        assert!((0.5..most).contains(&took), "ten writes of 50 ms took {took} s of {most} at most");
    }

    #[test]
    fn a_volume_of_a_run_that_was_ended_is_not_waited_for_long() {
        if !can_attach() {
            return;
        }
        let (dir, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
        let lab = lab(dir.path(), &cancel);
        let volume = volume(&lab, &cancel);
        volume.live().set_faults(Faults { stalled: true, ..Faults::default() }).unwrap();
        let mut writer = write(&volume, 1);
        std::thread::sleep(Duration::from_millis(300));
        assert!(writer.try_wait().unwrap().is_none(), "it waits");
        let began = Instant::now();
        cancel.cancel();
        while writer.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
        drop(volume);
        let took = began.elapsed();
        assert!(!writer.wait().unwrap().success());
        assert_eq!(lab.take_trouble(), Vec::<String>::new());
        assert!(lab.host.store().volumes().is_empty());
        assert!(took < Duration::from_secs(60), "it took {took:?}");
    }
}
