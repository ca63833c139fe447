//! The lab's own home: its lock, its volumes, and the directories that a server can reach.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ebbtide_device::host::{
    Home, HomeError, HomeLock, Host, HostError, HostOptions, clear_leftovers, release_dying,
};
use ebbtide_device::store::{SnapshotInfo, list_snapshots};
use ebbtide_dir::Dir;
use ebbtide_load::Cancel;
use ebbtide_mysql::WorkPaths;
use ebbtide_text::seed::fnv1a;
use parking_lot::Mutex;

use super::RunError;
use super::event::{Event, EventSink};

/// Prefix of the volumes that a trial makes. None of them outlives its trial.
pub const TRIAL_PREFIX: &str = "trial-";

/// Prefix of the snapshots that a trial takes. None of them outlives its trial.
pub const SNAPSHOT_PREFIX: &str = "backup-of-";

/// How long a run that was killed may take to get away.
const DYING: Duration = Duration::from_secs(10);

/// Where the lab keeps its volumes below a home.
pub fn lab_dir(home: &Path) -> PathBuf {
    home.join("lab")
}

/// The snapshots of a home's lab. What a killed run left there is cleared; a run that has the lab goes on.
///
/// # Errors
/// A store that cannot be read.
pub fn snapshots(home: &Path) -> Result<Vec<SnapshotInfo>, RunError> {
    // A list can be had without the lab's lock, and of a lab that this user may only read.
    if lab_dir(home).is_dir()
        && let Err(error) = Lab::open(home, &Cancel::default(), EventSink::new(&|_| ()))
    {
        tracing::debug!(%error, "the lab is listed and not cleared");
    }
    listed(home)
}

/// The same as it is, with what a killed run left in the lab: for those who take the lab next.
///
/// # Errors
/// A store that cannot be read.
pub fn listed(home: &Path) -> Result<Vec<SnapshotInfo>, RunError> {
    let lab = lab_dir(home);
    if !lab.is_dir() {
        return Ok(Vec::new());
    }
    let store = Home::open(&lab).map_err(RunError::Home)?.store_dir();
    Ok(list_snapshots(&store).map_err(HostError::from)?)
}

/// A locked lab.
#[derive(Debug)]
pub struct Lab {
    /// The host of its volumes.
    pub host: Host,
    /// Mounts and servers' work directories, which root alone can change. A server runs as a user of its own, who
    /// cannot enter the home; and a socket's path must be short.
    runtime: Dir,
    /// Records and locks of servers. They decide which processes are ended and what is removed, so that they are in the
    /// home, which no server's user can enter.
    records: PathBuf,
    /// What could not be cleared away since someone asked.
    trouble: Mutex<Vec<String>>,
}

impl Lab {
    /// Takes the lab of a home and clears what a killed run left in it.
    ///
    /// # Errors
    /// [`RunError::Busy`] where another run has it, and a home that cannot be used.
    pub fn open(home: &Path, cancel: &Cancel, events: EventSink<'_>) -> Result<Self, RunError> {
        let home = Home::open(&lab_dir(home)).map_err(RunError::Home)?;
        let lock = lock(&home, cancel)?;
        let cleared = |what| events.send(Event::Cleared { what });
        let runtime = make_reachable(&runtime_dir(home.root()))?;
        let records = home.root().join("servers");
        // Servers first: they keep the mounts busy.
        let servers = ebbtide_mysql::clear_leftovers(&records);
        servers.cleared.into_iter().for_each(cleared);
        let kept = |what| Event::Noted { text: format!("{what}: the next command tries again") };
        servers.kept.into_iter().map(kept).for_each(|note| events.send(note));
        let left = clear_leftovers(&lock)
            .map_err(|error| RunError::io("clear what a killed run left")(std::io::Error::other(error)))?;
        left.iter().for_each(|leftover| cleared(leftover.to_string()));
        let host = Host::open(lock, HostOptions::default())?;
        let lab = Self { host, runtime, records, trouble: Mutex::default() };
        lab.delete_stray_volumes(events)?;
        lab.clear_runtime()?;
        Ok(lab)
    }

    /// Keeps and logs that something could not be cleared away.
    pub fn note_trouble(&self, what: String) {
        tracing::error!("{what}");
        self.trouble.lock().push(what);
    }

    /// What could not be cleared away since the last time.
    pub fn take_trouble(&self) -> Vec<String> {
        std::mem::take(&mut self.trouble.lock())
    }

    /// Where a trial has files that are not its servers'; cleared with the work directories of servers.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn files_dir(&self) -> std::io::Result<Dir> {
        self.runtime.make_sub("files.run")
    }

    /// Where a volume is mounted.
    pub fn mount_dir(&self, name: &str) -> PathBuf {
        self.runtime.path().join(name)
    }

    /// Where a server has its socket and log: not where something is recorded that could not be ended.
    pub fn work(&self, name: &str) -> WorkPaths {
        let first = format!("{name}.run");
        let others = (2..).map(|number| format!("{name}-{number}.run"));
        let mut all = std::iter::once(first).chain(others).map(|name| self.paths(&name));
        all.find(|paths| !ebbtide_mysql::is_recorded(paths)).expect("there is always a further number")
    }

    fn paths(&self, name: &str) -> WorkPaths {
        WorkPaths { dir: self.runtime.path().join(name), records: self.records.clone() }
    }

    /// Every volume of a lab belongs to a trial or to data that are being prepared; what is kept is
    /// snapshots. So a volume that is there before anything runs was left behind.
    fn delete_stray_volumes(&self, events: EventSink<'_>) -> Result<(), RunError> {
        for volume in self.host.store().volumes() {
            self.host.store().delete_volume(&volume.name).map_err(HostError::from)?;
            events.send(Event::Cleared { what: format!("volume {} of a run that was killed", volume.name) });
        }
        let snapshots = self.host.store().snapshots().into_iter();
        for snapshot in snapshots.filter(|snapshot| snapshot.name.starts_with(SNAPSHOT_PREFIX)) {
            self.host.store().delete_snapshot(&snapshot.name).map_err(HostError::from)?;
            events.send(Event::Cleared {
                what: format!("snapshot {} of a run that was killed", snapshot.name),
            });
        }
        Ok(())
    }

    /// Nothing in the runtime directory outlives the servers and mounts in it, but for the record of a
    /// server that could not be ended. What is still mounted there belongs to no record any more, and holds
    /// nothing that anyone could read.
    fn clear_runtime(&self) -> Result<(), RunError> {
        let action = || format!("clear {}", self.runtime.path().display());
        for name in self.runtime.names().map_err(RunError::io(action()))? {
            // Work directories have an extension. A mount is never emptied, only taken away.
            let path = self.runtime.path().join(&name);
            let removed = match path.extension() {
                Some(_) if ebbtide_mysql::is_recorded(&self.paths(&name.to_string_lossy())) => Ok(()),
                Some(_) => self.runtime.remove_all(&name),
                None => self.runtime.remove_dir(&name).or_else(|_| {
                    let _ = Command::new("umount").arg("--lazy").arg(&path).output();
                    self.runtime.remove_dir(&name)
                }),
            };
            removed.map_err(RunError::io(format!("remove {}", path.display())))?;
        }
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for detached in self.host.stop(&|_| ()) {
            tracing::warn!(volume = detached.volume, "was still attached");
        }
        let _ = self.clear_runtime();
        let runtime = self.runtime.path();
        if let (Some(parent), Some(name)) = (runtime.parent(), runtime.file_name()) {
            let _ = Dir::open(parent).and_then(|parent| parent.remove_dir(name));
        }
    }
}

/// Takes the lock, if need be from a run that was killed and does not get away.
fn lock(home: &Home, cancel: &Cancel) -> Result<HomeLock, RunError> {
    let give_up = Instant::now() + DYING;
    loop {
        match home.lock() {
            Ok(lock) => return Ok(lock),
            Err(HomeError::Served { home: served, pid }) => {
                let dying = release_dying(home).map_err(RunError::io("look at a run that was killed"))?;
                if cancel.is_cancelled() {
                    return Err(RunError::Cancelled { done: 0, of: 0 });
                }
                if !dying || Instant::now() > give_up {
                    return Err(RunError::Busy { home: served, pid });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(other) => return Err(RunError::Home(other)),
        }
    }
}

/// A directory that other users can pass through, for one home and no other.
fn runtime_dir(home: &Path) -> PathBuf {
    let run = Path::new("/run");
    let base = if run.is_dir() { run } else { home };
    base.join(format!("ebbtide-{:012x}", fnv1a(home.as_os_str().as_encoded_bytes().iter().copied()) >> 16))
}

/// Makes a directory that other users can pass through, and nobody else can change.
fn make_reachable(dir: &Path) -> Result<Dir, RunError> {
    let make = || {
        let made = Dir::make_entry(dir)?;
        made.set_owner_and_mode(None, 0o711)?;
        Ok(made)
    };
    make().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            RunError::Missing(vec![format!("the right to create {} ({error})", dir.display())])
        }
        _ => RunError::io(format!("create {}", dir.display()))(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(home: &Path, events: EventSink<'_>) -> Result<Lab, RunError> {
        Lab::open(home, &Cancel::default(), events)
    }

    #[test]
    fn homes_do_not_share_a_runtime_directory_and_socket_paths_stay_short() {
        let [a, b] = ["/srv/a/lab", "/srv/b/lab"].map(|home| runtime_dir(Path::new(home)));
        assert_ne!(a, b);
        assert!(a.join("trial-0123.run").join("mysqld.sock").as_os_str().len() < 100, "{}", a.display());
    }

    #[test]
    fn a_second_run_in_the_same_home_is_refused_with_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let events = EventSink::new(&|_| ());
        let lab = open(dir.path(), events).unwrap();
        let refused = open(dir.path(), events).map(drop).unwrap_err();
        let RunError::Busy { pid, .. } = &refused else { panic!("{refused}") };
        assert_eq!(*pid, std::process::id().to_string());
        drop(lab);
        open(dir.path(), events).unwrap();
    }

    #[test]
    fn what_cannot_be_cleared_stays_recorded_and_is_reported_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let events = Mutex::new(Vec::new());
        let record = |event| events.lock().push(event);
        let lab = open(dir.path(), EventSink::new(&record)).unwrap();
        let left = lab.work("trial");
        std::fs::create_dir(&left.dir).unwrap();
        std::fs::create_dir_all(&left.records).unwrap();
        let file = left.records.join("trial.run.json");
        // Its content cannot be known, so it must not be thrown away.
        std::fs::write(&file, "{").unwrap();
        assert_ne!(lab.work("trial"), left, "it is not used again");
        drop(lab);
        for _ in 0..2 {
            assert!(ebbtide_mysql::is_recorded(&left) && left.dir.exists());
            drop(open(dir.path(), EventSink::new(&record)).unwrap());
            let events = std::mem::take(&mut *events.lock());
            let [Event::Noted { text }] = &events[..] else { panic!("{events:?}") };
            assert!(text.contains("cannot clear") && text.contains("trial.run"), "{text}");
        }
        std::fs::remove_file(&file).unwrap();
        drop(open(dir.path(), EventSink::new(&record)).unwrap());
    }

    #[test]
    fn the_lab_leaves_the_home_itself_to_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let served = Home::open(dir.path()).unwrap();
        let _lock = served.lock().unwrap();
        open(dir.path(), EventSink::new(&|_| ())).unwrap();
    }
}
