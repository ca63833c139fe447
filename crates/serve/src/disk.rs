//! Space on the disk that holds a home: what will happen is said before it does.

use ebbtide_control::VolumeView;
use ebbtide_device::host::{DiskSpace, Home};
use ebbtide_text::size;

/// From this share of the disk on a server warns, percent.
const FULL_PERCENT: u64 = 90;

/// What a full disk does to guests, in the words of the manual.
const CONSEQUENCE: &str = "when the disk is full, their writes fail with I/O errors, and a file system may go read-only; what was \
    answered stays";

/// A note for people that an attached volume may write more than the disk of the home has room for; None where it has, or
/// where the disk does not answer.
#[must_use]
pub fn attach_note(home: &Home, volume: &VolumeView) -> Option<String> {
    note_of_space(volume, home.disk_space().ok()?)
}

fn note_of_space(volume: &VolumeView, space: DiskSpace) -> Option<String> {
    let left = volume.size_bytes.saturating_sub(volume.data_bytes);
    (left > space.free_bytes).then(|| {
        format!(
            "note: volume '{}' may still take {}, and the disk of the home has {} free: {CONSEQUENCE}",
            volume.name,
            size(left),
            size(space.free_bytes)
        )
    })
}

/// Watches the disk of a home for its server.
#[derive(Debug, Default)]
pub struct DiskWatch {
    has_warned: bool,
}

impl DiskWatch {
    /// Looks; the text of a warning, once each time that the disk gets 90% full. `left` is what attached volumes may still take, bytes.
    pub fn look(&mut self, home: &Home, left: impl FnOnce() -> u64) -> Option<String> {
        let space = home.disk_space().ok()?;
        self.judge(space, left)
    }

    fn judge(&mut self, space: DiskSpace, left: impl FnOnce() -> u64) -> Option<String> {
        let used = space.used_percent();
        if used < FULL_PERCENT {
            // A little below it, or a disk at the border would fill the log.
            self.has_warned &= used + 2 >= FULL_PERCENT;
            return None;
        }
        if std::mem::replace(&mut self.has_warned, true) {
            return None;
        }
        Some(format!(
            "the disk of the home is {used}% full: {} are free, and attached volumes may still take {}: {CONSEQUENCE}. Free space on \
             it, or detach volumes",
            size(space.free_bytes),
            size(left())
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_disk_that_gets_full_is_warned_of_once() {
        let mut watch = DiskWatch::default();
        let mut look =
            |free: u64| watch.judge(DiskSpace { size_bytes: 100 * GIB, free_bytes: free * GIB }, || 40 * GIB);
        assert_eq!(look(11), None);
        let text = look(10).unwrap();
        for part in ["90% full", "10 GiB are free", "may still take 40 GiB", "I/O errors"] {
            assert!(text.contains(part), "'{part}' is not in: {text}");
        }
        assert_eq!(look(5), None, "it was said");
        assert_eq!((look(11), look(10)), (None, None), "it has hardly changed");
        assert_eq!(look(30), None);
        assert!(look(1).unwrap().contains("99% full"));
    }
}
