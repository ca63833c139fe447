//! The space of file systems, asked with a time limit: one whose server or device does not answer must hang nobody.
//!
//! A thread asks. One that does not come back is left in the kernel, and its file system is not asked again before it does: so there are
//! never more such threads than file systems. The next one is asked by another thread.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use super::reading::Space;

/// What node_exporter shows for a file system that does not answer.
const STUCK: &str = "mountpoint timeout";

/// How the space of a directory is asked for.
type Ask = fn(&Path) -> io::Result<Space>;

/// A thread that asks, one directory after the other.
#[derive(Debug)]
struct Asker {
    directories: Sender<PathBuf>,
    answers: Receiver<io::Result<Space>>,
}

impl Asker {
    fn start(ask: Ask) -> io::Result<Self> {
        let (directories, asked) = mpsc::channel::<PathBuf>();
        let (answer, answers) = mpsc::channel();
        // It ends with the first answer that nobody waits for, or once nobody can ask.
        let work = move || {
            while let Ok(directory) = asked.recv() {
                if answer.send(ask(&directory)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("file systems".to_owned()).spawn(work)?;
        Ok(Self { directories, answers })
    }
}

/// Asks for the space of file systems.
#[derive(Debug)]
pub struct SpaceReader {
    limit: Duration,
    ask: Ask,
    asker: Option<Asker>,
    /// The threads that have not come back, by the directory that they ask for.
    stuck: BTreeMap<PathBuf, Asker>,
}

impl SpaceReader {
    /// One that waits for so long for each file system.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit, ask: space, asker: None, stuck: BTreeMap::new() }
    }

    /// The space of the file system that is mounted on a directory.
    ///
    /// # Errors
    /// Why it is not known, as node_exporter says it: the system's error, or `mountpoint timeout`.
    pub fn read(&mut self, directory: &Path) -> Result<Space, String> {
        if let Some(asker) = self.stuck.remove(directory) {
            if matches!(asker.answers.try_recv(), Err(TryRecvError::Empty)) {
                self.stuck.insert(directory.to_owned(), asker);
                return Err(STUCK.to_owned());
            }
            // It has come back: its answer is old, so it is asked again.
            if self.asker.is_none() {
                self.asker = Some(asker);
            }
        }
        let asker = match self.asker.take() {
            Some(asker) => asker,
            None => Asker::start(self.ask).map_err(|error| message(&error))?,
        };
        let has_ended = || "the thread that asks file systems has ended".to_owned();
        asker.directories.send(directory.to_owned()).map_err(|_| has_ended())?;
        match asker.answers.recv_timeout(self.limit) {
            Ok(answer) => {
                self.asker = Some(asker);
                answer.map_err(|error| message(&error))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.stuck.insert(directory.to_owned(), asker);
                Err(STUCK.to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => Err(has_ended()),
        }
    }
}

/// What statfs(2) says of the file system of a directory.
fn space(directory: &Path) -> io::Result<Space> {
    let found = rustix::fs::statfs(directory)?;
    let block = u64::try_from(found.f_bsize).unwrap_or_default();
    let bytes = |blocks: u64| blocks.saturating_mul(block);
    Ok(Space {
        size_bytes: bytes(found.f_blocks),
        free_bytes: bytes(found.f_bfree),
        available_bytes: bytes(found.f_bavail),
        files: found.f_files,
        files_free: found.f_ffree,
    })
}

/// The words of an error, without its number and with a small letter, as those of Go are.
fn message(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_root_has_space_and_a_directory_that_is_not_there_has_an_error_in_the_words_of_go() {
        let mut reader = SpaceReader::new(Duration::from_secs(60));
        let root = reader.read(Path::new("/")).unwrap();
        assert!(root.size_bytes >= root.free_bytes && root.free_bytes >= root.available_bytes, "{root:?}");
        assert!(root.size_bytes > 1 << 20, "{root:?}");
        assert_eq!(reader.read(Path::new("/none/such")).unwrap_err(), "no such file or directory");
        assert!(reader.read(Path::new("/")).is_ok(), "the same thread goes on");
    }

    /// Held while the file system `/stuck` does not answer.
    static STALL: Mutex<()> = Mutex::new(());

    fn stalled(directory: &Path) -> io::Result<Space> {
        if directory == Path::new("/stuck") {
            drop(STALL.lock().unwrap());
        }
        Ok(Space { files: 7, ..Space::default() })
    }

    #[test]
    fn a_file_system_that_does_not_answer_costs_its_limit_once_and_no_other_one() {
        let mut reader = SpaceReader { ask: stalled, ..SpaceReader::new(Duration::from_millis(100)) };
        let held = STALL.lock().unwrap();
        assert_eq!(reader.read(Path::new("/stuck")).unwrap_err(), STUCK);
        reader.limit = Duration::from_secs(60);
        let begun = Instant::now();
        for _ in 0..100 {
            assert_eq!(reader.read(Path::new("/stuck")).unwrap_err(), STUCK, "it is not asked again");
            assert_eq!(reader.read(Path::new("/")).unwrap().files, 7);
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody waited for it");
        assert_eq!(reader.stuck.len(), 1);
        drop(held);
        // Once it answers, it is asked again. When its thread runs is the system's affair.
        while reader.read(Path::new("/stuck")).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reader.stuck.is_empty());
    }
}
