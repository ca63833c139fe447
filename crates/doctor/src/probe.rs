//! How long a small write and its sync take, on a file that has no name. It is made before the look, so that
//! a directory that cannot be used is refused at once, and written to after it.
//!
//! The only part of the doctor that writes, and only where it is asked to: 4 KiB in place, one write after the other. The file
//! is gone when this ends, however it ends.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_observe::{NotSeen, Observation, SyncProbe};

/// How long it writes at most; a write that is under way is waited for.
const LONGEST: Duration = Duration::from_secs(2);
/// Writes at most: more make no better percentile.
const MOST: usize = 2_000;
const BLOCK: usize = 4096;

/// A directory in which no file can be made.
#[derive(Debug, thiserror::Error)]
#[error("no file can be made in {}", .directory.display())]
pub struct ProbeError {
    /// The directory.
    pub directory: PathBuf,
    /// The error of the system.
    pub source: std::io::Error,
}

/// A file that will be written to.
#[derive(Debug)]
pub struct Probe {
    directory: String,
    file: File,
}

impl Probe {
    /// Makes the file.
    ///
    /// # Errors
    /// A directory in which no file can be made.
    pub fn open(directory: &Path) -> Result<Self, ProbeError> {
        let file =
            unnamed(directory).map_err(|source| ProbeError { directory: directory.to_owned(), source })?;
        Ok(Self { directory: directory.display().to_string(), file })
    }

    /// Writes and syncs, and adds the times to what was seen. Where a write or a sync fails, the reason is returned, as a sentence,
    /// and stands in [`Observation::not_seen`].
    pub fn add_to(self, seen: &mut Observation) -> Option<String> {
        match self.run() {
            Ok(times) => {
                seen.sync_probe = Some(times);
                None
            }
            Err(error) => {
                let why = format!("the writes of --probe failed: {error}");
                seen.not_seen.push(NotSeen { what: "how long a sync takes".into(), why: why.clone() });
                Some(why)
            }
        }
    }

    /// Writes and syncs for up to 2 s, or once where one takes longer.
    ///
    /// # Errors
    /// A write or sync that fails.
    fn run(self) -> std::io::Result<SyncProbe> {
        let times = times(&self.file, Instant::now() + LONGEST)?;
        Ok(percentiles(self.directory, times))
    }
}

/// The percentiles of at least one time. Of fewer than 100, the time that one in a hundred is above is the longest.
fn percentiles(directory: String, mut times: Vec<Duration>) -> SyncProbe {
    times.sort_unstable();
    // The time that so many of a hundred are not above.
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e6;
    SyncProbe { directory, writes: times.len() as u64, p50_us: at(50), p99_us: at(99) }
}

fn unnamed(directory: &Path) -> std::io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).expect("a flag of open(2)");
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(flags).open(directory)
}

fn times(file: &File, end: Instant) -> std::io::Result<Vec<Duration>> {
    let block = [0x5a; BLOCK];
    // The first write allocates: it is none of the redo log's, whose file is there before.
    file.write_all_at(&block, 0)?;
    file.sync_data()?;
    let mut times = Vec::with_capacity(MOST);
    loop {
        let began = Instant::now();
        file.write_all_at(&block, 0)?;
        file.sync_data()?;
        times.push(began.elapsed());
        if times.len() == MOST || Instant::now() >= end {
            return Ok(times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_timed_and_no_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let probe = Probe::open(dir.path()).unwrap().run().unwrap();
        assert!(probe.writes >= 1 && probe.p50_us > 0.0 && probe.p50_us <= probe.p99_us, "{probe:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_volume_that_is_too_slow_for_a_hundred_syncs_is_timed_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = unnamed(dir.path()).unwrap();
        assert_eq!(times(&file, Instant::now()).unwrap().len(), 1, "the time is over after one");
        let slow = percentiles("/d".into(), [60, 700, 50].map(Duration::from_millis).to_vec());
        assert_eq!((slow.writes, slow.p50_us, slow.p99_us), (3, 60_000.0, 700_000.0));
    }

    #[test]
    fn a_directory_that_is_none_is_refused_with_its_name() {
        let error = Probe::open(Path::new("/proc/none")).unwrap_err().to_string();
        assert!(error.contains("/proc/none"), "{error}");
    }
}
