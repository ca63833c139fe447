//! For tests: reports when a file of the store has reached the host's disk, so that a test can keep what a loss of the
//! host's power at any later moment leaves at least. Nothing of it is in the program.

use std::path::Path;

/// What has reached the host's disk.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests observe it"))]
pub(super) enum Synced<'a> {
    /// The content of this file.
    Content(&'a Path),
    /// A rename of the first to the second.
    Name(&'a Path, &'a Path),
}

/// Calls the observers of the directory.
#[cfg(not(test))]
pub(super) const fn notify_synced(_: Synced<'_>) {}

#[cfg(test)]
pub(super) use observers::{notify_synced, observe};

#[cfg(test)]
mod observers {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::Synced;

    type Observer = Arc<dyn Fn(Synced<'_>) + Send + Sync>;

    static OBSERVERS: Mutex<Vec<(PathBuf, Observer)>> = Mutex::new(Vec::new());

    /// Calls `observer` for each data file and journal in `dir` from now on, on the thread that synced it.
    pub(in super::super) fn observe(dir: &Path, observer: impl Fn(Synced<'_>) + Send + Sync + 'static) {
        OBSERVERS.lock().push((dir.to_owned(), Arc::new(observer)));
    }

    pub(in super::super) fn notify_synced(what: Synced<'_>) {
        let (Synced::Content(path) | Synced::Name(path, _)) = what;
        let all = OBSERVERS.lock();
        let of_dir = all.iter().filter(|(dir, _)| Some(dir.as_path()) == path.parent());
        let found: Vec<_> = of_dir.map(|(_, observer)| Arc::clone(observer)).collect();
        drop(all);
        found.iter().for_each(|observer| observer(what));
    }
}
