//! The sources: each server, the machine, and the volumes of a home, on threads of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ebbtide_catalog::Catalog;
use ebbtide_control::protocol::{Answer, Request};
use ebbtide_control::socket::ask_if_there;
use ebbtide_control::{AttachmentView, VolumeDetail, VolumeView};
use ebbtide_device::host::Home;
use ebbtide_device::nvme::ebs_log_page;
use ebbtide_doctor::machine::device_below;
use ebbtide_load::Cancel;
use ebbtide_mysql::sampling::{Reading, SampleError, Sampled, ServerSampler};
use ebbtide_observe::Variables;
use ebbtide_proc::host_mounts;
use ebbtide_proc::machine::setting;
use ebbtide_proc::process::own_usage;

use super::error::RunError;
use super::faults::Faults;
use super::servers::{WatchedServer, volume_limits};
use super::worker::{Clock, Slot, every, have_ended};
use crate::host::{EbsDevice, EbsPages, HostOptions, HostReader, PageReader, Placement, placements};
use crate::live::{HostLook, Looks, OwnLook, OwnVolume, ServerLook, ServerState, Unanswered};
use crate::reading::VolumeLimits;

/// How often mounts, properties of devices and the space of file systems are read.
const REFRESH: Duration = Duration::from_secs(60);
/// How often it is looked which EBS volumes are to be asked for their statistics page.
const PAGE_LOOK: Duration = Duration::from_secs(1);
/// How long the server of the home may take to name its volumes.
const PATIENCE: Duration = Duration::from_secs(1);
/// A server that has not answered for so long hangs: a statement is waited for 5 s, and a connection for 40 s.
const LONGEST_WAIT: Duration = Duration::from_secs(6);
/// How long the sessions of servers may take to end: each notices within 100 ms, where it does not wait for an answer.
const LONGEST_END: Duration = Duration::from_millis(500);

/// The name of this machine; empty where it is not known.
#[must_use]
pub fn machine_name() -> String {
    setting("kernel/hostname").unwrap_or_default()
}

/// What the threads have read last.
#[derive(Debug)]
pub struct Sources {
    servers: Vec<ServerSlot>,
    clock: Clock,
    host: Slot<Option<HostLook>>,
    own: Slot<Option<OwnLook>>,
    /// Troubles of others that are shown beside those of the sources, such as of the history.
    pub(super) faults: Faults,
    /// Each ends the session of its server when it ends.
    server_threads: Vec<JoinHandle<()>>,
}

/// What is known of a server, and since when its thread waits for it.
#[derive(Debug, Clone)]
struct ServerSlot {
    look: Slot<ServerLook>,
    /// When the question began that is not answered yet; None between two questions.
    asked: Slot<Option<Duration>>,
}

impl ServerSlot {
    fn new(server: &WatchedServer) -> Self {
        Self { look: Slot::new(first_look(server)), asked: Slot::default() }
    }

    /// What is known at a time. A server that a question waits for is said to hang: its thread can say so only afterwards.
    fn look(&self, now: Duration) -> ServerLook {
        let asked = *self.asked.lock();
        let mut look = self.look.lock().clone();
        let waited = asked.map_or(Duration::ZERO, |asked| now.saturating_sub(asked));
        if waited > LONGEST_WAIT && !matches!(look.state, ServerState::Unanswered { .. }) {
            look.state = ServerState::Unanswered {
                kind: Unanswered::Hangs,
                error: format!("the server has not answered for {} s", waited.as_secs()),
                waited: waited.into(),
            };
        }
        look
    }
}

/// How the sources are read.
#[derive(Debug, Clone)]
pub struct SourceOptions<'a> {
    /// How often.
    pub interval: Duration,
    /// The clock of all of them.
    pub clock: Clock,
    /// Whether EBS volumes are asked for their statistics pages.
    pub has_ebs_pages: bool,
    /// What ends it.
    pub stop: &'a Cancel,
}

impl Sources {
    /// Begins to read everything. Each source is asked at once, and then every interval.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        servers: &[WatchedServer],
        home: Option<&Home>,
        catalog: Catalog,
        options: &SourceOptions<'_>,
    ) -> Result<Self, RunError> {
        let SourceOptions { interval, clock, has_ebs_pages, stop } = options;
        let mut sources = Self {
            servers: servers.iter().map(ServerSlot::new).collect(),
            clock: *clock,
            host: Slot::default(),
            own: Slot::default(),
            faults: Faults::default(),
            server_threads: Vec::new(),
        };
        for (server, slot) in servers.iter().zip(&sources.servers) {
            let mut reader = ServerReader::new(server, slot.clone(), *clock);
            sources.server_threads.push(every("server", *interval, stop, move || reader.read())?);
        }
        let mut reader = MachineReader::new(sources.host.clone(), *clock);
        if *has_ebs_pages {
            every("EBS pages", PAGE_LOOK, stop, reader.page_work())?;
        }
        every("machine", *interval, stop, move || reader.read())?;
        if let Some(home) = home {
            let mut reader = OwnReader {
                home: home.clone(),
                catalog,
                limits: BTreeMap::new(),
                slot: sources.own.clone(),
                clock: *clock,
            };
            every("volumes", *interval, stop, move || reader.read())?;
        }
        Ok(sources)
    }

    /// The clock of all of them.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the sources have now. Nobody is waited for.
    pub(super) fn looks(&self) -> Looks {
        Looks {
            servers: self.servers.iter().map(|slot| slot.look(self.clock.elapsed())).collect(),
            host: self.host.lock().clone(),
            own: self.own.lock().clone(),
            checks: Vec::new(),
            process: own_usage(),
            faults: self.faults.all(),
        }
    }

    /// Waits after the end was asked for until the sessions have ended, for half a second at most: a session that the end of the
    /// program cuts off is an aborted connection in the server's counters and log.
    pub(super) fn end(&self) {
        have_ended(&self.server_threads, LONGEST_END);
    }

    /// Whether each server has answered or failed, and the machine was read: what a single look waits for.
    pub(super) fn are_known(&self) -> bool {
        let asked = |slot: &ServerSlot| slot.look.lock().state != ServerState::NotAsked;
        self.host.lock().is_some() && self.servers.iter().all(asked)
    }
}

fn first_look(server: &WatchedServer) -> ServerLook {
    ServerLook {
        name: server.name.clone(),
        address: server.address(),
        reading: Arc::default(),
        state: ServerState::NotAsked,
        placements: Arc::from([]),
        elsewhere: None,
    }
}

/// Reads a server.
struct ServerReader {
    sampler: ServerSampler,
    slot: ServerSlot,
    clock: Clock,
    /// When the variables were read by which its files were looked for.
    placed: Option<Duration>,
}

impl ServerReader {
    fn new(server: &WatchedServer, slot: ServerSlot, clock: Clock) -> Self {
        Self { sampler: ServerSampler::new(server.target.clone()), slot, clock, placed: None }
    }

    fn read(&mut self) {
        let now = self.clock.elapsed();
        *self.slot.asked.lock() = Some(now);
        let sampled = self.sampler.sample(now);
        let reading = self.sampler.reading().clone();
        let placed = self.places(&reading);
        let mut look = self.slot.look.lock();
        look.state = state(&look.state, &sampled);
        look.reading = Arc::new(reading);
        if let Some(placed) = placed {
            (look.placements, look.elsewhere) = match placed {
                Ok(placements) => (placements.into(), None),
                Err(reason) => (Arc::from([]), Some(reason)),
            };
        }
        *self.slot.asked.lock() = None;
    }

    /// Where the files lie, once for each reading of the variables: mounts may change. None where nothing is new.
    fn places(&mut self, reading: &Reading) -> Option<Result<Vec<Placement>, String>> {
        let variables = reading.variables.as_ref().filter(|variables| self.placed != Some(variables.at))?;
        self.placed = Some(variables.at);
        Some(places(&variables.value))
    }
}

/// What a server does after a sample. One that was not there stays so while it is left alone.
fn state(before: &ServerState, sampled: &Result<Sampled, SampleError>) -> ServerState {
    match (sampled, before) {
        (Ok(Sampled::Taken), _) => ServerState::Answers,
        (Ok(Sampled::Rests { .. }), ServerState::Answers | ServerState::Rests) => ServerState::Rests,
        (Ok(Sampled::Rests { .. }), before) => before.clone(),
        (Err(error), before) => longer(before, ServerState::of_error(error)),
    }
}

/// A server that hangs is waited for since it began to.
fn longer(before: &ServerState, now: ServerState) -> ServerState {
    use ServerState::Unanswered as State;
    match (before, now) {
        (
            State { kind: Unanswered::Hangs, waited: before, .. },
            State { kind: Unanswered::Hangs, error, waited },
        ) => State { kind: Unanswered::Hangs, error, waited: waited.max(*before) },
        (_, now) => now,
    }
}

/// Where the files of a server lie, or why that is not known.
fn places(variables: &Variables) -> Result<Vec<Placement>, String> {
    let (server, here) = (variables.get("hostname").unwrap_or_default(), machine_name());
    if server != here {
        return Err(format!("the server runs on the machine {server}, and this is {here}"));
    }
    let mounts = host_mounts().map_err(|error| format!("/proc cannot be read: {error}"))?;
    let found = placements(variables, &mounts, None, resolved, |number| device_below(number, &mounts));
    Ok(found)
}

/// A directory without symbolic links; as it is where it cannot be read.
fn resolved(directory: &Path) -> PathBuf {
    std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Reads the machine.
struct MachineReader {
    /// Made on its own thread: the first look at file systems may take a second for each.
    reader: Option<HostReader>,
    slot: Slot<Option<HostLook>>,
    /// The EBS volumes that there are, and their pages.
    volumes: Slot<Vec<EbsDevice>>,
    pages: Slot<EbsPages>,
    clock: Clock,
    refreshed: Duration,
}

impl MachineReader {
    fn new(slot: Slot<Option<HostLook>>, clock: Clock) -> Self {
        let (volumes, pages) = (Slot::default(), Slot::default());
        Self { reader: None, slot, volumes, pages, clock, refreshed: Duration::ZERO }
    }

    /// What a thread of its own does again and again: it asks the volumes for their pages. A device that does not answer delays no counter.
    fn page_work(&self) -> impl FnMut() + Send + use<> {
        let (volumes, pages, clock) = (self.volumes.clone(), self.pages.clone(), self.clock);
        let mut reader = PageReader::new(ebs_log_page);
        move || {
            let devices = volumes.lock().clone();
            let read = reader.read(&devices, || clock.elapsed().into());
            *pages.lock() = read;
        }
    }

    fn read(&mut self) {
        let now = self.clock.elapsed();
        let is_new = self.reader.is_none();
        let reader = self.reader.get_or_insert_with(|| HostReader::new(HostOptions::default()));
        if !is_new && now.saturating_sub(self.refreshed) >= REFRESH {
            reader.refresh();
            self.refreshed = now;
        }
        // Rates are of the time between two readings of the counters: whatever else is read takes its own time.
        let (mut reading, elapsed) = reader.read_with(|| self.clock.elapsed().into());
        *self.volumes.lock() = reader.volumes().to_vec();
        reading.add_pages(self.pages.lock().clone(), elapsed);
        *self.slot.lock() = Some(HostLook { elapsed, reading: Arc::new(reading) });
    }
}

/// Reads the volumes that the server of a home has attached.
struct OwnReader {
    home: Home,
    catalog: Catalog,
    /// What specs may do: resolving one each second would cost more than reading it.
    limits: BTreeMap<String, VolumeLimits>,
    slot: Slot<Option<OwnLook>>,
    clock: Clock,
}

/// The server of the home did not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimedOut;

impl OwnReader {
    fn read(&mut self) {
        // What was read before stays, with its time: after a while it is too old to be shown.
        let Ok(volumes) = self.volumes() else { return };
        let look =
            volumes.map(|volumes| OwnLook { elapsed: self.clock.elapsed().into(), volumes: volumes.into() });
        *self.slot.lock() = look;
    }

    /// The attached volumes; None where no server of the home listens, or it refuses. The first question that is not answered in time
    /// is the last one: with 100 volumes as many would wait one after the other.
    fn volumes(&mut self) -> Result<Option<Vec<OwnVolume>>, TimedOut> {
        let Some(Answer::Volumes(volumes)) = self.ask(&Request::VolumeList { region: None })? else {
            return Ok(None);
        };
        let mut shown = Vec::new();
        for VolumeView { name, .. } in volumes.into_iter().filter(|volume| volume.attachment.is_some()) {
            // One that was detached since has no answer.
            if let Some(Answer::Volume(detail)) = self.ask(&Request::VolumeShow { name, region: None })? {
                shown.push(detail);
            }
        }
        Ok(Some(shown.into_iter().filter_map(|detail| self.volume(*detail)).collect()))
    }

    /// Asks the server of the home; None where there is none, or it refuses.
    fn ask(&self, request: &Request) -> Result<Option<Answer>, TimedOut> {
        let began = self.clock.elapsed();
        let answer = ask_if_there(&self.home, request, PATIENCE);
        let is_late = answer.is_none() && self.clock.elapsed().saturating_sub(began) >= PATIENCE;
        if is_late { Err(TimedOut) } else { Ok(answer) }
    }

    fn volume(&mut self, detail: VolumeDetail) -> Option<OwnVolume> {
        let VolumeDetail { volume, live } = detail;
        let AttachmentView { device, mount, since, .. } = volume.attachment?;
        let limits = match self.limits.get(&volume.spec) {
            Some(limits) => *limits,
            None => {
                let limits = volume_limits(&self.catalog, &volume.spec);
                self.limits.insert(volume.spec.clone(), limits);
                limits
            }
        };
        Some(OwnVolume {
            credits_full_s: volume.credits.as_ref().and_then(|credits| credits.full_in_s),
            device: device.unwrap_or_default().trim_start_matches("/dev/").to_owned(),
            mount,
            epoch: since.0.to_string(),
            stats: live?.stats,
            limits,
            instance: None,
            name: volume.name,
            spec: volume.spec,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_stays_so_while_it_is_left_alone() {
        let down = ServerState::Unanswered {
            kind: Unanswered::Down,
            error: "no".to_owned(),
            waited: ebbtide_volume::Nanos::ZERO,
        };
        let rests = Ok(Sampled::Rests { until: Duration::ZERO });
        assert_eq!(state(&down, &rests), down);
        assert_eq!(state(&ServerState::Answers, &rests), ServerState::Rests);
        assert_eq!(state(&ServerState::NotAsked, &rests), ServerState::NotAsked);
        assert_eq!(state(&down, &Ok(Sampled::Taken)), ServerState::Answers);
    }

    #[test]
    fn a_server_that_a_question_waits_for_hangs() {
        let target = ebbtide_load::Target {
            endpoints: Vec::new(),
            user: String::new(),
            password: String::new(),
            database: String::new(),
            tls: None,
        };
        let slot = ServerSlot::new(&WatchedServer { name: "shop".to_owned(), target });
        let now = Duration::from_secs(100);
        assert_eq!(slot.look(now).state, ServerState::NotAsked);
        *slot.asked.lock() = Some(Duration::from_secs(95));
        assert_eq!(slot.look(now).state, ServerState::NotAsked);
        *slot.asked.lock() = Some(Duration::from_secs(90));
        let state = slot.look(now).state;
        assert!(matches!(state, ServerState::Unanswered { kind: Unanswered::Hangs, .. }), "{state:?}");
    }

    #[test]
    fn what_was_read_of_own_volumes_stays_where_their_server_does_not_answer_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let before = OwnLook { elapsed: ebbtide_volume::Nanos::SECOND, volumes: Vec::new().into() };
        let slot = Slot::new(Some(before));
        let (catalog, limits, clock) = (Catalog::builtin(), BTreeMap::new(), Clock::start());
        let mut reader = OwnReader { home: home.clone(), catalog, limits, slot: slot.clone(), clock };
        // It accepts connections, and nobody reads them.
        let listener = std::os::unix::net::UnixListener::bind(home.socket()).unwrap();
        reader.read();
        let elapsed = slot.lock().as_ref().map(|look| look.elapsed);
        assert_eq!(elapsed, Some(ebbtide_volume::Nanos::SECOND));
        drop(listener);
        reader.read();
        assert!(slot.lock().is_none());
    }

    #[test]
    fn a_server_of_another_machine_has_no_devices_here() {
        let variables: Variables =
            [("hostname", "elsewhere"), ("datadir", "/var/lib/mysql/")].into_iter().collect();
        assert!(places(&variables).unwrap_err().contains("elsewhere"));
    }
}
