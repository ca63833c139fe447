//! Whether the host has restarted since the store was last open: what its page cache held is lost then.

use std::io::{self, Write};

use ebbtide_dir::{Access, Dir};

/// Name of the file with the kernel's identifier of the boot in which the store was last opened.
pub(super) const BOOT: &str = "boot";
/// Its successor, while it is written.
pub(super) const NEW_BOOT: &str = "boot.new";

/// A number that the kernel draws anew when it starts (random(4)).
const KERNEL_BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whether the store was last opened before the host's present boot. False where nothing is known:
/// an older program does not write the file.
pub(super) fn host_restarted(dir: &Dir) -> bool {
    match (dir.read(BOOT), std::fs::read(KERNEL_BOOT_ID)) {
        (Ok(last), Ok(now)) => last.trim_ascii() != now.trim_ascii(),
        _ => false,
    }
}

/// Writes down the present boot, with `durable` on the host's disk. Where that fails, for example on
/// a full disk, nothing is known of a restart, and every record is believed after it.
pub(super) fn note_boot(dir: &Dir, durable: bool) {
    if dir.stat(BOOT).is_ok() && !host_restarted(dir) {
        return;
    }
    if let Err(error) = write(dir, durable) {
        tracing::warn!(dir = %dir.path().display(), %error, "a restart of the host will not be noticed");
        for name in [NEW_BOOT, BOOT] {
            drop(dir.remove(name)); // an old one would report a restart that was seen
        }
    }
}

fn write(dir: &Dir, durable: bool) -> io::Result<()> {
    let now = std::fs::read(KERNEL_BOOT_ID)?;
    let mut file = dir.file(NEW_BOOT, Access::Empty)?;
    file.write_all(&now)?;
    if durable {
        file.sync_all()?;
    }
    dir.rename(NEW_BOOT, BOOT)?;
    if durable { dir.sync() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_noticed_once_and_never_without_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path()).unwrap();
        assert!(!host_restarted(&dir), "an older program's store");
        note_boot(&dir, true);
        assert!(!host_restarted(&dir));
        std::fs::write(temp.path().join(BOOT), "another boot\n").unwrap();
        assert!(host_restarted(&dir));
        note_boot(&dir, false);
        assert!(!host_restarted(&dir));
    }
}
