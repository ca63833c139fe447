//! In which units an ext4 allocates: its superblock, which is read of the device.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Where the superblock is on the device, and how much of it is read.
const SUPERBLOCK: (u64, usize) = (1024, 256);

/// Bytes of a cluster, which is a block but for `bigalloc`; None where the device cannot be read, which takes root, or is
/// no ext4.
pub(super) fn cluster_bytes(device: &Path) -> Option<u64> {
    let mut superblock = [0; SUPERBLOCK.1];
    File::open(device).ok()?.read_exact_at(&mut superblock, SUPERBLOCK.0).ok()?;
    parse(&superblock)
}

/// Reads a superblock ("Super Block" in the kernel's page of ext4's layout).
fn parse(superblock: &[u8; SUPERBLOCK.1]) -> Option<u64> {
    let field = |at: usize| superblock.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let magic = superblock.get(0x38..0x3A)?;
    if magic != [0x53, 0xEF] {
        return None;
    }
    const BIGALLOC: u32 = 0x200;
    let log = if field(0x64)? & BIGALLOC == 0 { field(0x18)? } else { field(0x1C)? };
    1024_u64.checked_shl(log).filter(|_| log <= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(block: u32, cluster: u32, features: u32) -> [u8; 256] {
        let mut all = [0; 256];
        all[0x18..0x1C].copy_from_slice(&block.to_le_bytes());
        all[0x1C..0x20].copy_from_slice(&cluster.to_le_bytes());
        all[0x38..0x3A].copy_from_slice(&[0x53, 0xEF]);
        all[0x64..0x68].copy_from_slice(&features.to_le_bytes());
        all
    }

    #[test]
    fn a_cluster_is_a_block_but_with_bigalloc() {
        assert_eq!(parse(&superblock(2, 4, 0x200 | 0x1)), Some(16_384));
        assert_eq!(parse(&superblock(2, 2, 0x1)), Some(4_096));
        assert_eq!(parse(&superblock(2, 4, 0x1)), Some(4_096), "the field counts with the feature alone");
        assert_eq!(parse(&[0; 256]), None);
        assert_eq!(parse(&superblock(2, 40, 0x200)), None, "no ext4 has such a cluster");
    }

    #[test]
    fn a_file_system_that_mke2fs_made_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        let make = |options: &[&str]| {
            let made = std::process::Command::new("mke2fs")
                .args(["-q", "-F", "-t", "ext4"])
                .args(options)
                .arg(file.path())
                .status();
            made.is_ok_and(|status| status.success())
        };
        if !make(&["-b", "4096", "-O", "bigalloc", "-C", "16384"]) {
            println!("SKIPPED: mke2fs is missing");
            return;
        }
        assert_eq!(cluster_bytes(file.path()), Some(16_384));
        assert!(make(&["-b", "4096"]));
        assert_eq!(cluster_bytes(file.path()), Some(4_096));
    }
}
