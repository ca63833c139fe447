//! Links to attached block devices under the names that Nitro instances have for them.

use std::io::ErrorKind;
use std::path::Path;

use super::ids::Kind;
use super::options::Options;

/// What Linux makes of the model and the serial number that EBS reports; the serial number follows.
const PREFIX: &str = "nvme-Amazon_Elastic_Block_Store_";

/// The name of a volume's link.
pub(super) fn name(volume: &str) -> String {
    format!("{PREFIX}{}", volume.replace('-', ""))
}

/// Links a volume's device. The directory is made where it is missing, as on a
/// host without udev. Where it refuses the link, there is none, and the log says so.
pub(super) fn make(options: &Options, volume: &str, device: Option<&str>) {
    let (Some(dir), Some(device)) = (&options.device_links, device) else { return };
    let link = dir.join(name(volume));
    remove(options, volume);
    let made = std::fs::create_dir_all(dir).and_then(|()| std::os::unix::fs::symlink(device, &link));
    if let Err(error) = made {
        tracing::warn!(volume, link = %link.display(), %error, "the device has no link");
    }
}

/// Removes a volume's link, where there is one. What is no link stays.
pub(super) fn remove(options: &Options, volume: &str) {
    let Some(dir) = &options.device_links else { return };
    remove_at(&dir.join(name(volume)));
}

fn remove_at(link: &Path) {
    match link.symlink_metadata() {
        Ok(found) if found.is_symlink() => {}
        _ => return,
    }
    match std::fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(link = %link.display(), %error, "a link stays behind");
        }
        _ => {}
    }
}

/// The volumes that have a link in a directory.
pub(super) fn linked(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let volume = |file: &str| {
        let digits = file.strip_prefix(PREFIX)?.strip_prefix("vol")?;
        Some(format!("{}{digits}", Kind::Volume.prefix()))
    };
    entries.flatten().filter_map(|entry| volume(entry.file_name().to_str()?)).collect()
}

/// Removes the links of a directory to volumes for which `is_ours` holds.
pub(super) fn clear(dir: &Path, is_ours: impl Fn(&str) -> bool) {
    for volume in linked(dir).iter().filter(|volume| is_ours(volume)) {
        remove_at(&dir.join(name(volume)));
    }
}
