//! `--probe DIR`: how long a small write and its sync take, on a file that has no name.
//!
//! The only part of the doctor that writes, and only where it is asked to: 4 KiB in place, one write after the other. The file
//! is gone when this ends, however it ends.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_observe::SyncProbe;

use crate::exit::Refusal;

/// How long it writes at most; a write that is under way is waited for.
const LONGEST: Duration = Duration::from_secs(2);
/// Writes at most: more make no better percentile.
const MOST: usize = 2_000;
/// One in a hundred is not known of fewer.
const LEAST: usize = 100;
const BLOCK: usize = 4096;

/// Writes and syncs for up to 2 s.
///
/// # Errors
/// A directory in which no file can be made (exit code 2), and a write or sync that fails or is so slow that there are under
/// 100 of them (exit code 3).
pub(super) fn probe(directory: &Path) -> anyhow::Result<SyncProbe> {
    let file = unnamed(directory).map_err(|error| {
        let refusal = Refusal::usage(format!("--probe {}: no file can be made there", directory.display()))
            .hint("name a directory on the volume that you may write to, on a local file system");
        anyhow::Error::new(error).context(refusal)
    })?;
    let mut times = times(&file, Instant::now() + LONGEST).map_err(|error| {
        let refusal = Refusal::environment(format!("--probe {}: cannot write", directory.display()));
        anyhow::Error::new(error).context(refusal)
    })?;
    if times.len() < LEAST {
        let message = format!(
            "--probe {}: {} writes in {} s are too few to judge",
            directory.display(),
            times.len(),
            LONGEST.as_secs()
        );
        return Err(Refusal::environment(message)
            .hint("such a sync takes over 20 ms: no percentile is needed to see it")
            .into());
    }
    times.sort_unstable();
    // The time that so many of a hundred are not above.
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e6;
    Ok(SyncProbe {
        directory: directory.display().to_string(),
        writes: times.len() as u64,
        p50_us: at(50),
        p99_us: at(99),
    })
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
    while times.len() < MOST && Instant::now() < end {
        let began = Instant::now();
        file.write_all_at(&block, 0)?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_timed_and_no_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let probe = probe(dir.path()).unwrap();
        assert!(
            probe.writes >= LEAST as u64 && probe.p50_us > 0.0 && probe.p50_us <= probe.p99_us,
            "{probe:?}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_none_is_refused_with_its_name() {
        let error = probe(Path::new("/proc/none")).unwrap_err().to_string();
        assert!(error.contains("--probe /proc/none"), "{error}");
    }
}
