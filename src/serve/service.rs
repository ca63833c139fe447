//! The socket's adapter of the control plane: requests of the protocol become typed ones, typed views
//! become JSON.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ebbtide_catalog::Spec;
use ebbtide_control::{
    AttachVolume, ControlError, ControlPlane, CreateSnapshot, CreateVolume, DetachVolume, Export, FsType,
    ModifyVolume, MountRequest, NbdAddress, Optimizing, RecordVolume, RecordingView, ResourceKind, SetFaults,
    TakeCrashImage,
};
use ebbtide_device::host::Home;
use ebbtide_text::closest;
use serde::Serialize;

use crate::answers::{Deleted, Stopped};
use crate::control::{Answer, Progress, Request};
use crate::exit::{Exit, Refusal, Report};
use crate::refusal::refuse;
use crate::volume::args::{AttachArgs, CreateArgs, Fs, ModifyArgs, RecordFile};

use super::attached::AttachedList;
use super::aws::Ec2Resources;
use super::change::Changeable;
use super::recording;
use super::status::ServerStatus;

/// Answers the clients of one home's socket.
#[derive(Debug)]
pub(super) struct Service<'a> {
    plane: &'a dyn ControlPlane,
    home: &'a Home,
    running: &'a Changeable<'a>,
    attached: &'a AttachedList<'a>,
    asked_to_stop: AtomicBool,
}

impl<'a> Service<'a> {
    /// A service for the volumes of a home.
    pub(super) const fn new(
        plane: &'a dyn ControlPlane,
        home: &'a Home,
        running: &'a Changeable<'a>,
        attached: &'a AttachedList<'a>,
    ) -> Self {
        Self { plane, home, running, attached, asked_to_stop: AtomicBool::new(false) }
    }

    /// Whether a client has asked the server to end. It does so after the answer has been sent.
    pub(super) fn is_asked_to_stop(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed)
    }

    /// Carries out one request.
    pub(super) fn handle(&self, request: Request, progress: Progress<'_>) -> anyhow::Result<Answer> {
        // Whatever is wrong with a request, a server that stops reports that it does.
        self.plane.ready().map_err(refuse)?;
        if let Request::ServerChange(change) = &request {
            return answer(Exit::Clean, &self.running.apply(change)?);
        }
        // Until the request is carried out: EC2 must not begin to look in between.
        let ec2 = self.running.ec2();
        leave_to_ec2(&ec2, &request)?;
        self.carry_out(request, progress).map_err(|error| self.suggest(error))
    }

    fn carry_out(&self, request: Request, progress: Progress<'_>) -> anyhow::Result<Answer> {
        let plane = self.plane;
        match request {
            Request::Ping => done(Ok(env!("CARGO_PKG_VERSION"))),
            Request::Status => done(Ok(ServerStatus::of(self.home, plane.requests()))),
            Request::ServerChange(change) => answer(Exit::Clean, &self.running.apply(&change)?),
            Request::Stop { force } => self.stop(force, progress),
            Request::VolumeCreate(args) => done(plane.create_volume(&create(args)?)),
            Request::VolumeAttach(args) => {
                let view = plane.attach_volume(&attach(args.clone())?, progress).map_err(refuse)?;
                self.attached.attached(&args);
                answer(Exit::Clean, &view)
            }
            Request::VolumeDetach(args) => {
                let request = DetachVolume { name: args.name, force: args.force };
                let view = plane.detach_volume(&request, progress).map_err(refuse)?;
                self.attached.ended(&request.name);
                answer(clean_if(view.is_lossless()), &view)
            }
            Request::VolumeRecord(args) => done(self.record(&args)?),
            Request::VolumeRecordEnd(args) => done(plane.end_recording(&args.name)),
            Request::VolumeModify(args) => done(plane.modify_volume(&modify(args)?, progress)),
            Request::VolumeList(args) => done(plane.volumes(args.region.as_deref())),
            Request::VolumeShow(args) => done(plane.volume(&args.name, args.region.as_deref())),
            Request::VolumeDelete(args) => {
                let deleted = Deleted { deleted: &args.name };
                let done = done(plane.delete_volume(&args.name).map(|()| deleted))?;
                self.attached.ended(&args.name);
                Ok(done)
            }
            Request::VolumeFault(args) => {
                done(plane.set_faults(&SetFaults { name: args.name, settings: args.settings }))
            }
            Request::VolumeCrashImage(args) => {
                let request = TakeCrashImage { name: args.name, image: args.image, seed: args.seed };
                done(plane.take_crash_image(&request))
            }
            Request::Calibrate { quick } => done(plane.calibrate(quick, progress)),
            Request::SnapshotCreate(args) => {
                done(plane.create_snapshot(&CreateSnapshot { name: args.name, volume: args.volume }))
            }
            Request::SnapshotList => done(plane.snapshots()),
            Request::SnapshotDelete(args) => {
                let deleted = Deleted { deleted: &args.name };
                done(plane.delete_snapshot(&args.name).map(|()| deleted))
            }
        }
    }

    /// A refusal of a name that does not exist, with the one that was meant.
    fn suggest(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(ControlError::NotFound { thing, name }) = error.downcast_ref() else { return error };
        let names = self.running.known_names();
        let names = match thing {
            ResourceKind::Volume => names.volumes,
            ResourceKind::Snapshot => names.snapshots,
        };
        let Some(nearest) = closest(name, names.iter().map(String::as_str)) else { return error };
        let hint = format!("did you mean '{nearest}'? 'ebbtide {thing} list' shows what there is");
        let refusal = Refusal::usage(error.to_string()).hint(hint);
        error.context(refusal)
    }

    /// Attaches again what was attached when the last server ended. What cannot be is in the log, and stays in the list for the next
    /// start, unless it no longer exists. The answer is a sentence for people.
    pub(super) fn restore(&self) -> String {
        let wanted = self.attached.to_restore();
        let mut count = 0;
        for args in &wanted {
            let (name, mount) = (&args.name, args.mount.as_ref().map(|dir| dir.display().to_string()));
            match self.handle(Request::VolumeAttach(args.clone()), &|_| ()) {
                Ok(_) => {
                    count += 1;
                    tracing::info!(volume = name, mount, "attached again");
                }
                Err(error) => {
                    let report = Report::of(&error);
                    tracing::error!(volume = name, mount, "the volume could not be attached again: {report}");
                    if matches!(error.downcast_ref(), Some(ControlError::NotFound { .. })) {
                        self.attached.ended(name);
                    }
                }
            }
        }
        format!("{count} of {} volumes attached again", wanted.len())
    }

    /// `volume record`: the file is made first, and goes again where the volume cannot be recorded.
    fn record(&self, args: &RecordFile) -> anyhow::Result<Result<RecordingView, ControlError>> {
        let output = recording::create(&args.file)?;
        let request = RecordVolume { name: args.name.clone(), path: args.file.display().to_string() };
        let begun = self.plane.record_volume(&request, output);
        if begun.is_err() {
            // It is empty, and was made a moment ago.
            let _ = std::fs::remove_file(&args.file);
        }
        Ok(begun)
    }

    /// `serve --stop`: detaches everything, after which the server ends. Where it is refused, the
    /// server goes on.
    fn stop(&self, force: bool, progress: Progress<'_>) -> anyhow::Result<Answer> {
        let detached = self.plane.stop(force, progress).map_err(refuse)?;
        self.asked_to_stop.store(true, Ordering::Relaxed);
        let lossless = detached.iter().all(|one| one.lost.is_empty() && one.host_errors == 0);
        answer(clean_if(lossless), &Stopped { stopped: self.home.root(), detached })
    }
}

/// Refuses what would contradict the records of EC2. While its endpoint is not served, a volume may be attached: it is detached
/// before an endpoint can look, by the end of this server or because `--change` refuses to begin one.
fn leave_to_ec2(ec2: &Ec2Resources, request: &Request) -> anyhow::Result<()> {
    let is_served = ec2.is_served();
    let (name, thing, call) = match request {
        Request::VolumeDelete(args) => (&args.name, "volume", "delete-volume --volume-id"),
        Request::VolumeModify(args) => (&args.name, "volume", "modify-volume --volume-id"),
        Request::VolumeAttach(args) if is_served => (&args.name, "volume", "attach-volume --volume-id"),
        Request::VolumeDetach(args) if is_served => (&args.name, "volume", "detach-volume --volume-id"),
        Request::SnapshotDelete(args) => (&args.name, "snapshot", "delete-snapshot --snapshot-id"),
        _ => return Ok(()),
    };
    if !ec2.has(name) {
        return Ok(());
    }
    let served = if is_served { "" } else { ", while 'ebbtide serve --aws' runs" };
    Err(Refusal::usage(format!("{thing} '{name}' belongs to EC2 of this home"))
        .hint(format!("use 'aws ec2 {call} {name}'{served}"))
        .into())
}

fn done(result: Result<impl Serialize, ControlError>) -> anyhow::Result<Answer> {
    answer(Exit::Clean, &result.map_err(refuse)?)
}

fn answer(exit: Exit, view: &impl Serialize) -> anyhow::Result<Answer> {
    Ok(Answer { exit, value: serde_json::to_value(view)? })
}

/// How a client ends whose volume lost nothing, or lost something.
const fn clean_if(lossless: bool) -> Exit {
    if lossless { Exit::Clean } else { Exit::Finding }
}

fn spec(text: &str) -> anyhow::Result<Spec> {
    Spec::parse(text).map_err(|error| refuse(error.into()))
}

fn create(args: CreateArgs) -> anyhow::Result<CreateVolume> {
    let CreateArgs { name, spec: text, snapshot, initialization, block_size, seed, region } = args;
    let (spec, token) = (spec(&text)?, None);
    let key = None;
    Ok(CreateVolume { name, spec, snapshot, initialization, block_size, seed, region, token, key })
}

fn attach(args: AttachArgs) -> anyhow::Result<AttachVolume> {
    let export = match &args.nbd {
        Some(address) => {
            Export::Nbd(NbdAddress::parse(address).map_err(|error| Refusal::usage(error.to_string()))?)
        }
        None => Export::Block { mount: mount(&args) },
    };
    let shadows = args.shadow.iter().map(|text| spec(text)).collect::<anyhow::Result<_>>()?;
    let AttachArgs { name, instance, over_limit, .. } = args;
    Ok(AttachVolume { name, export, instance, over_limit, shadows })
}

fn mount(args: &AttachArgs) -> Option<MountRequest> {
    let (dir, fs) = args.mount.as_ref().zip(args.fs)?;
    let fs = match fs {
        Fs::Xfs => FsType::Xfs,
        Fs::Ext4 => FsType::Ext4,
        Fs::Ext4Bigalloc => FsType::Ext4Bigalloc,
    };
    Some(MountRequest { dir: dir.clone(), fs, destroy: args.execute, grow: false, noexec: false })
}

fn modify(args: ModifyArgs) -> anyhow::Result<ModifyVolume> {
    Ok(ModifyVolume {
        name: args.name,
        spec: spec(&args.spec)?,
        optimizing: args.optimizing.unwrap_or(Optimizing::For(Duration::ZERO)),
        over_limit: args.over_limit,
    })
}
