//! The socket's adapter of the control plane: each request of the protocol becomes a call of [`ControlPlane`], and what that
//! returns the answer.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ebbtide_cloud::ec2::{DeleteError, Hold};
use ebbtide_control::protocol::{
    Answer, AttachRequest, ExitStatus, ModifyRequest, RefusedRequest, Request, ServerChange, ServerChanged,
    ServerStatus,
};
use ebbtide_control::socket::{Completed, ReplySender};
use ebbtide_control::{
    AttachVolume, ControlError, ControlPlane, CreateVolume, DetachVolume, RecordVolume, RecordingView,
    RequestsView, ResourceKind, VolumeDetail,
};
use ebbtide_device::host::Home;
use ebbtide_text::closest;

use crate::attached::{AttachedList, mount_of};
use crate::endpoint::endpoint_url;
use crate::error::{ServeError, chain};
use crate::recording;
use crate::resources::Ec2Resources;
use crate::running::RunningServer;

/// Changes the running server as the words of a request ask for. The program does so, which has the options and the log.
pub trait ServerChanges: std::fmt::Debug + Sync {
    /// Carries a change out: all of it, or what an error leaves.
    ///
    /// # Errors
    /// Words that are no options; a change that is not possible.
    fn apply(&self, change: &ServerChange) -> Result<ServerChanged, RefusedRequest>;
}

/// Answers the clients of one home's socket.
#[derive(Debug)]
pub struct Service<'a> {
    plane: &'a dyn ControlPlane,
    home: &'a Home,
    running: &'a RunningServer<'a>,
    attached: &'a AttachedList<'a>,
    changes: &'a dyn ServerChanges,
    asked_to_stop: AtomicBool,
}

impl<'a> Service<'a> {
    /// A service for the volumes of a home, whose server is `running`.
    pub const fn new(
        plane: &'a dyn ControlPlane,
        home: &'a Home,
        running: &'a RunningServer<'a>,
        attached: &'a AttachedList<'a>,
        changes: &'a dyn ServerChanges,
    ) -> Self {
        Self { plane, home, running, attached, changes, asked_to_stop: AtomicBool::new(false) }
    }

    /// Whether a client has asked the server to end. It does so after the answer has been sent.
    pub fn is_asked_to_stop(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed)
    }

    /// Carries out one request.
    ///
    /// # Errors
    /// What is wrong with it, or does not allow it.
    pub fn handle(&self, request: Request, replies: &ReplySender<'_>) -> Result<Completed, ServeError> {
        // Whatever is wrong with a request, a server that stops reports that it does.
        self.plane.ready()?;
        // Until the request is carried out: EC2 must not begin to look in between. A change of the server takes this lock itself.
        let ec2 = (!matches!(request, Request::ServerChange(_))).then(|| self.running.ec2());
        let request = self.with_name(request);
        if let Some(ec2) = &ec2 {
            self.leave_to_ec2(ec2, &request)?;
        }
        self.carry_out(request, ec2.as_deref(), replies).map_err(|error| self.suggest(error))
    }

    /// The same request with the name of a volume in place of its id, where what is done is noted by the name.
    fn with_name(&self, mut request: Request) -> Request {
        match &mut request {
            Request::VolumeAttach(AttachRequest { name, .. })
            | Request::VolumeDetach(DetachVolume { name, .. })
            | Request::VolumeDelete { name } => *name = self.running.name_of(name),
            _ => {}
        }
        request
    }

    fn carry_out(
        &self,
        request: Request,
        ec2: Option<&Ec2Resources>,
        replies: &ReplySender<'_>,
    ) -> Result<Completed, ServeError> {
        let plane = self.plane;
        let progress: ebbtide_control::Progress<'_> = &|text| replies.progress(text);
        match request {
            Request::Ping => Ok(clean(Answer::Pong(env!("CARGO_PKG_VERSION").to_owned()))),
            Request::Status => {
                let metrics = self.running.metrics_url();
                Ok(clean(server_status(self.home, metrics, plane.requests())))
            }
            Request::ServerChange(change) => {
                Ok(clean(self.changes.apply(&change).map_err(ServeError::Refused)?))
            }
            Request::Stop { force } => self.stop(force, progress),
            Request::VolumeCreate(request) => {
                done(CreateVolume::try_from(request).and_then(|request| plane.create_volume(&request)))
            }
            Request::VolumeAttach(request) => Ok(clean(self.attach(request, progress)?)),
            Request::VolumeDetach(request) => self.detach(&request, replies),
            Request::VolumeRecord { name, file } => self.record(name, &file),
            Request::VolumeRecordEnd { name } => {
                let view = plane.end_recording(&name)?;
                warn_of_loss(&view, replies);
                Ok(clean(view))
            }
            Request::VolumeList { region } => done(plane.volumes(region.as_deref())),
            Request::VolumeShow { name, region } => done(plane.volume(&name, region.as_deref())),
            Request::VolumeModify(request) => self.modify(&request, ec2, replies),
            Request::VolumeDelete { name } => self.delete(name, ec2),
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

    /// Refuses what would contradict the records of EC2. While its endpoint is not served, a volume that an instance has by its record
    /// may be attached: it is detached before an endpoint can look, by the end of this server or because `--change` refuses to
    /// begin one.
    fn leave_to_ec2(&self, ec2: &Ec2Resources, request: &Request) -> Result<(), ServeError> {
        // Whether an instance may have the volume.
        let (name, shares) = match request {
            Request::SnapshotDelete { name } if ec2.has_snapshot(name)? => {
                let is_served = ec2.is_served();
                return Err(ServeError::SnapshotOfEc2 { name: name.clone(), is_served });
            }
            Request::VolumeDelete { name } => (name, false),
            Request::VolumeModify(request) => (&request.name, request.owner.is_none()),
            Request::VolumeAttach(request) => (&request.name, !ec2.is_served()),
            Request::VolumeDetach(request) => (&request.name, !ec2.is_served()),
            _ => return Ok(()),
        };
        let Some(id) = self.running.volume_id(name) else { return Ok(()) };
        match ec2.hold(&id)? {
            None => Ok(()),
            Some(Hold::Instance(_)) if shares => Ok(()),
            Some(hold) => Err(held(name, &id, &hold, ec2)),
        }
    }

    /// A refusal of a name that does not exist, with the one that was meant.
    fn suggest(&self, error: ServeError) -> ServeError {
        let error = match error {
            ServeError::Control(error) => error,
            other => return other,
        };
        let ControlError::NotFound { thing, name } = &error else { return error.into() };
        let names = self.running.known_names();
        let names = match thing {
            ResourceKind::Volume => names.volumes,
            ResourceKind::Snapshot => names.snapshots,
        };
        let nearest = closest(name, names.iter().map(String::as_str)).map(str::to_owned);
        match nearest {
            Some(nearest) => ServeError::Misnamed { error: Box::new(error), nearest },
            None => error.into(),
        }
    }

    /// Attaches again what was attached when the last server ended. What cannot be is in the log, and stays in the list for the next
    /// start, unless it no longer exists. The answer is a sentence for people.
    pub fn restore(&self) -> String {
        let wanted = self.attached.to_restore();
        let mut count = 0;
        for request in &wanted {
            let mount = mount_of(request).map(|dir| dir.display().to_string());
            let name = &request.name;
            match self.attach_again(request) {
                Ok(_) => {
                    count += 1;
                    tracing::info!(volume = name, mount, "attached again");
                }
                Err(error) => {
                    let causes = chain(&error);
                    tracing::error!(volume = name, mount, "the volume could not be attached again: {causes}");
                    if is_missing(&error) {
                        self.attached.ended(name);
                    }
                }
            }
        }
        format!("{count} of {} volumes attached again", wanted.len())
    }

    fn attach_again(&self, request: &AttachRequest) -> Result<VolumeDetail, ServeError> {
        self.plane.ready()?;
        let ec2 = self.running.ec2();
        self.leave_to_ec2(&ec2, &Request::VolumeAttach(request.clone()))?;
        self.attach(request.clone(), &|_| ()).map_err(|error| self.suggest(error))
    }

    /// `volume attach`: a start with `--restore` is to know of it.
    fn attach(
        &self,
        request: AttachRequest,
        progress: ebbtide_control::Progress<'_>,
    ) -> Result<VolumeDetail, ServeError> {
        let wanted = AttachVolume::try_from(request.clone());
        let view = wanted.and_then(|wanted| self.plane.attach_volume(&wanted, progress))?;
        self.attached.attached(request);
        Ok(view)
    }

    /// `volume detach`: a volume that lost something is a finding.
    fn detach(&self, request: &DetachVolume, replies: &ReplySender<'_>) -> Result<Completed, ServeError> {
        let view = self.plane.detach_volume(request, &|text| replies.progress(text))?;
        self.attached.ended(&request.name);
        view.recording.iter().for_each(|recording| warn_of_loss(recording, replies));
        Ok(Completed { exit: clean_if(view.is_lossless()), answer: view.into() })
    }

    /// `volume delete`: by EC2's rules where EC2 knows the volume.
    fn delete(&self, name: String, ec2: Option<&Ec2Resources>) -> Result<Completed, ServeError> {
        let is_deleted = match ec2.zip(self.running.volume_id(&name)) {
            Some((ec2, id)) => ec2.delete(self.plane, &id).map_err(|error| match error {
                DeleteError::Held(hold) => held(&name, &id, &hold, ec2),
                DeleteError::Control(error) => error.into(),
                source => ServeError::NotDeleted { volume: name.clone(), source: Box::new(source) },
            })?,
            None => false,
        };
        if !is_deleted {
            self.plane.delete_volume(&name)?;
        }
        self.attached.ended(&name);
        Ok(clean(Answer::Deleted(name)))
    }

    /// `volume modify`: first what the volume is, then whose.
    fn modify(
        &self,
        request: &ModifyRequest,
        ec2: Option<&Ec2Resources>,
        replies: &ReplySender<'_>,
    ) -> Result<Completed, ServeError> {
        let name = &request.name;
        if let Some(change) = request.change()? {
            self.plane.modify_volume(&change, &|text| replies.progress(text))?;
        }
        if let Some(owner) = &request.owner {
            let give = || self.plane.set_owner(name, owner);
            let given = match ec2.zip(self.running.volume_id(name)) {
                Some((ec2, id)) => ec2.while_free(&id, give)?.map_err(|hold| held(name, &id, &hold, ec2))?,
                None => give(),
            };
            given?;
        }
        done(self.plane.volume(name, None))
    }

    /// `volume record`: the file is made first, and goes again where the volume cannot be recorded.
    fn record(&self, name: String, file: &Path) -> Result<Completed, ServeError> {
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
    fn stop(&self, force: bool, progress: ebbtide_control::Progress<'_>) -> Result<Completed, ServeError> {
        let detached = self.plane.stop(force, progress)?;
        self.asked_to_stop.store(true, Ordering::Relaxed);
        let lossless = detached.iter().all(|volume| volume.lost.is_empty() && volume.host_errors == 0);
        let answer = Answer::Stopped { home: self.home.root().to_owned(), detached };
        Ok(Completed { exit: clean_if(lossless), answer })
    }
}

/// The refusal of what a volume does not allow because EC2 has it.
fn held(name: &str, id: &str, hold: &Hold, ec2: &Ec2Resources) -> ServeError {
    let (volume, id, hold) = (name.to_owned(), id.to_owned(), hold.clone());
    ServeError::Held { volume, id, hold, is_served: ec2.is_served() }
}

/// Whether a volume does not exist, as an error says.
fn is_missing(error: &ServeError) -> bool {
    matches!(error, ServeError::Control(ControlError::NotFound { .. }) | ServeError::Misnamed { .. })
}

/// The status of this process.
fn server_status(home: &Home, metrics: Option<String>, requests: RequestsView) -> ServerStatus {
    ServerStatus {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        home: home.root().to_owned(),
        aws: endpoint_url(home),
        metrics,
        requests,
    }
}

fn done(result: Result<impl Into<Answer>, ControlError>) -> Result<Completed, ServeError> {
    Ok(clean(result?))
}

fn clean(answer: impl Into<Answer>) -> Completed {
    Completed { exit: ExitStatus::Clean, answer: answer.into() }
}

/// How a client ends whose volume lost nothing, or lost something.
const fn clean_if(lossless: bool) -> ExitStatus {
    if lossless { ExitStatus::Clean } else { ExitStatus::Finding }
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
