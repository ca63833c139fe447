//! The socket's adapter of the control plane: each request of the protocol becomes a call of [`ControlPlane`], and what that
//! returns the answer.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ebbtide_control::protocol::{Answer, Request};
use ebbtide_control::{
    AttachVolume, ControlError, ControlPlane, CreateVolume, DetachVolume, ModifyVolume, RecordVolume,
    RecordingView,
};
use ebbtide_device::host::Home;

use crate::control::{Completed, ReplySender};
use crate::exit::{Exit, Refusal};
use crate::refusal::refuse;

use super::aws::Ec2Resources;
use super::recording;
use super::status;

/// Answers the clients of one home's socket.
#[derive(Debug)]
pub(super) struct Service<'a> {
    plane: &'a dyn ControlPlane,
    home: &'a Home,
    ec2: Ec2Resources,
    asked_to_stop: AtomicBool,
}

impl<'a> Service<'a> {
    /// A service for the volumes of a home.
    pub(super) const fn new(plane: &'a dyn ControlPlane, home: &'a Home, ec2: Ec2Resources) -> Self {
        Self { plane, home, ec2, asked_to_stop: AtomicBool::new(false) }
    }

    /// Whether a client has asked the server to end. It does so after the answer has been sent.
    pub(super) fn is_asked_to_stop(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed)
    }

    /// Carries out one request.
    pub(super) fn handle(&self, request: Request, replies: &ReplySender<'_>) -> anyhow::Result<Completed> {
        // Whatever is wrong with a request, a server that stops reports that it does.
        self.plane.ready().map_err(refuse)?;
        self.leave_to_ec2(&request)?;
        let plane = self.plane;
        let progress: ebbtide_control::Progress<'_> = &|text| replies.progress(text);
        match request {
            Request::Ping => Ok(clean(Answer::Pong(env!("CARGO_PKG_VERSION").to_owned()))),
            Request::Status => Ok(clean(status::server_status(self.home, plane.requests()))),
            Request::Stop { force } => self.stop(force, progress),
            Request::VolumeCreate(request) => {
                done(CreateVolume::try_from(request).and_then(|request| plane.create_volume(&request)))
            }
            Request::VolumeAttach(request) => done(
                AttachVolume::try_from(request).and_then(|request| plane.attach_volume(&request, progress)),
            ),
            Request::VolumeDetach(request) => self.detach(&request, replies),
            Request::VolumeRecord { name, file } => self.record(name, &file),
            Request::VolumeRecordEnd { name } => {
                let view = plane.end_recording(&name).map_err(refuse)?;
                warn_of_loss(&view, replies);
                Ok(clean(view))
            }
            Request::VolumeModify(request) => done(
                ModifyVolume::try_from(request).and_then(|request| plane.modify_volume(&request, progress)),
            ),
            Request::VolumeList { region } => done(plane.volumes(region.as_deref())),
            Request::VolumeShow { name, region } => done(plane.volume(&name, region.as_deref())),
            Request::VolumeDelete { name } => {
                done(plane.delete_volume(&name).map(|()| Answer::Deleted(name)))
            }
            Request::VolumeFault(request) => done(plane.set_faults(&request)),
            Request::VolumeCrashImage(request) => done(plane.take_crash_image(&request)),
            Request::Calibrate { quick } => done(plane.calibrate(quick, progress)),
            Request::SnapshotCreate(request) => done(plane.create_snapshot(&request)),
            Request::SnapshotList => done(plane.snapshots()),
            Request::SnapshotDelete { name } => {
                done(plane.delete_snapshot(&name).map(|()| Answer::Deleted(name)))
            }
        }
    }

    /// Refuses what would contradict the records of EC2. While its endpoint is not served, a volume may be attached: the
    /// end of this server detaches it, before an endpoint can look.
    fn leave_to_ec2(&self, request: &Request) -> anyhow::Result<()> {
        let is_served = self.ec2.is_served();
        let (name, thing, call) = match request {
            Request::VolumeDelete { name } => (name, "volume", "delete-volume --volume-id"),
            Request::VolumeModify(request) => (&request.name, "volume", "modify-volume --volume-id"),
            Request::VolumeAttach(request) if is_served => {
                (&request.name, "volume", "attach-volume --volume-id")
            }
            Request::VolumeDetach(request) if is_served => {
                (&request.name, "volume", "detach-volume --volume-id")
            }
            Request::SnapshotDelete { name } => (name, "snapshot", "delete-snapshot --snapshot-id"),
            _ => return Ok(()),
        };
        if !self.ec2.has(name) {
            return Ok(());
        }
        let served = if is_served { "" } else { ", while 'ebbtide serve --aws' runs" };
        Err(Refusal::usage(format!("{thing} '{name}' belongs to EC2 of this home"))
            .hint(format!("use 'aws ec2 {call} {name}'{served}"))
            .into())
    }

    /// `volume detach`: a volume that lost something is a finding.
    fn detach(&self, request: &DetachVolume, replies: &ReplySender<'_>) -> anyhow::Result<Completed> {
        let view = self.plane.detach_volume(request, &|text| replies.progress(text)).map_err(refuse)?;
        view.recording.iter().for_each(|recording| warn_of_loss(recording, replies));
        Ok(Completed { exit: clean_if(view.is_lossless()), answer: view.into() })
    }

    /// `volume record`: the file is made first, and goes again where the volume cannot be recorded.
    fn record(&self, name: String, file: &Path) -> anyhow::Result<Completed> {
        let output = recording::create(file)?;
        let request = RecordVolume { name, path: file.display().to_string() };
        let begun = self.plane.record_volume(&request, output);
        if begun.is_err() {
            // It is empty, and was made a moment ago.
            let _ = std::fs::remove_file(file);
        }
        done(begun)
    }

    /// `serve --stop`: detaches everything, after which the server ends. Where it is refused, the
    /// server goes on.
    fn stop(&self, force: bool, progress: ebbtide_control::Progress<'_>) -> anyhow::Result<Completed> {
        let detached = self.plane.stop(force, progress).map_err(refuse)?;
        self.asked_to_stop.store(true, Ordering::Relaxed);
        let lossless = detached.iter().all(|volume| volume.lost.is_empty() && volume.host_errors == 0);
        let answer = Answer::Stopped { home: self.home.root().to_owned(), detached };
        Ok(Completed { exit: clean_if(lossless), answer })
    }
}

fn done(result: Result<impl Into<Answer>, ControlError>) -> anyhow::Result<Completed> {
    result.map(clean).map_err(refuse)
}

fn clean(answer: impl Into<Answer>) -> Completed {
    Completed { exit: Exit::Clean, answer: answer.into() }
}

/// How a client ends whose volume lost nothing, or lost something.
const fn clean_if(lossless: bool) -> Exit {
    if lossless { Exit::Clean } else { Exit::Finding }
}

/// Warns of a recording that does not have all requests.
fn warn_of_loss(recording: &RecordingView, replies: &ReplySender<'_>) {
    if let Some(why) = &recording.failed {
        replies.warn(format!("the recording to {} ended early: {why}", recording.path));
    }
    if recording.lost > 0 {
        let lost = ebbtide_text::count(recording.lost, "request");
        replies.warn(format!("{lost} are missing in {}: this machine was too slow", recording.path));
    }
}
