//! Whether the host has restarted since the store was last open: what its page cache held is lost then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::manifest::sync_dir;

/// Name of the file with the kernel's identifier of the boot in which the store was last opened.
pub(super) const BOOT: &str = "boot";
/// Its successor, while it is written.
pub(super) const NEW_BOOT: &str = "boot.new";

/// A number that the kernel draws anew when it starts (random(4)).
const KERNEL_BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whether the store was last opened before the host's present boot. False where nothing is known:
/// an older program does not write the file.
pub(super) fn host_restarted(dir: &Path) -> bool {
    match (fs::read_to_string(dir.join(BOOT)), fs::read_to_string(KERNEL_BOOT_ID)) {
        (Ok(last), Ok(now)) => last.trim() != now.trim(),
        _ => false,
    }
}

/// Writes down the present boot, with `durable` on the host's disk. Where that fails, for example on
/// a full disk, nothing is known of a restart, and every record is believed after it.
pub(super) fn note_boot(dir: &Path, durable: bool) {
    if dir.join(BOOT).exists() && !host_restarted(dir) {
        return;
    }
    if let Err(error) = write(dir, durable) {
        tracing::warn!(dir = %dir.display(), %error, "a restart of the host will not be noticed");
        for name in [NEW_BOOT, BOOT] {
            drop(fs::remove_file(dir.join(name))); // an old one would tell of a restart that was seen
        }
    }
}

fn write(dir: &Path, durable: bool) -> io::Result<()> {
    let now = fs::read(KERNEL_BOOT_ID)?;
    let new = dir.join(NEW_BOOT);
    let mut file = File::create(&new)?;
    file.write_all(&now)?;
    if durable {
        file.sync_all()?;
    }
    fs::rename(&new, dir.join(BOOT))?;
    if durable { sync_dir(dir).map_err(io::Error::other) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_noticed_once_and_never_without_a_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!host_restarted(dir.path()), "an older program's store");
        note_boot(dir.path(), true);
        assert!(!host_restarted(dir.path()));
        fs::write(dir.path().join(BOOT), "another boot\n").unwrap();
        assert!(host_restarted(dir.path()));
        note_boot(dir.path(), false);
        assert!(!host_restarted(dir.path()));
    }
}
