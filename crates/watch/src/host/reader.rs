//! Reads the machine: `/proc`, `/sys`, the data of udev, the space of file systems. It asks no device: pages of EBS volumes are read by
//! `pages`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ebbtide_proc::{Mount, block_statistics, host_mounts, pressure};

use super::exclusion::{is_device_excluded, is_mount_point_excluded, is_network, is_type_excluded};
use super::pages::EbsDevice;
use super::reading::{HostDisk, HostFileSystem, HostReading};
use super::space::SpaceReader;
use super::udev::UdevProperties;

/// How the model of an EBS volume begins (`/sys/block/*/device/model`).
const EBS_MODEL: &str = "Amazon Elastic Block Store";

/// What is read of a machine, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// Whether file systems on the network are asked for their space, too. Their servers may not answer.
    pub has_network: bool,
    /// How long a file system may take to answer.
    pub space_limit: Duration,
    /// The EC2 instance, such as `i-0123456789abcdef0`; empty where it is not known. Nobody is asked for it.
    pub instance_id: String,
}

/// Local file systems alone, which have a second each.
impl Default for HostOptions {
    fn default() -> Self {
        Self { has_network: false, space_limit: Duration::from_secs(1), instance_id: String::new() }
    }
}

/// Reads a machine, again and again.
#[derive(Debug)]
pub struct HostReader {
    options: HostOptions,
    sys: PathBuf,
    udev: PathBuf,
    space: SpaceReader,
    /// What changes seldom, by the number of the device.
    known: BTreeMap<(u32, u32), KnownDevice>,
    file_systems: Vec<HostFileSystem>,
    mounts: Vec<Mount>,
    refreshes: u64,
    volumes: Vec<EbsDevice>,
}

/// What changes seldom of a device.
#[derive(Debug, Clone, Default)]
struct KnownDevice {
    udev: UdevProperties,
    is_rotational: bool,
    /// The id of an EBS volume; None for other devices.
    volume_id: Option<String>,
}

impl HostReader {
    /// Reads this machine for the first time.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        let mut reader = Self {
            space: SpaceReader::new(options.space_limit),
            options,
            sys: "/sys".into(),
            udev: "/run/udev/data".into(),
            known: BTreeMap::new(),
            file_systems: Vec::new(),
            mounts: Vec::new(),
            refreshes: 0,
            volumes: Vec::new(),
        };
        reader.refresh();
        reader
    }

    /// Reads what changes seldom: properties of devices, mounts, and the space of file systems. To be called once a minute. Where
    /// `/proc` cannot be read, nothing is mounted.
    pub fn refresh(&mut self) {
        self.known.clear();
        self.mounts = host_mounts().unwrap_or_default();
        let mut found = Vec::new();
        for mount in &self.mounts {
            let is_left_out = is_type_excluded(&mount.fs)
                || is_mount_point_excluded(&mount.dir.to_string_lossy())
                || !self.options.has_network && is_network(&mount.fs);
            if !is_left_out {
                let space = self.space.read(&mount.dir);
                found.extend(HostFileSystem::of_mount(mount, space));
            }
        }
        self.file_systems = found;
        self.refreshes += 1;
    }

    /// Reads what changes at each moment, with what the latest [`Self::refresh`] found. To be called once a second. Where `/proc` cannot
    /// be read, there are no devices.
    pub fn read(&mut self) -> HostReading {
        self.read_with(|| ()).0
    }

    /// The same, with what `stamp` gives directly after the counters of devices were read, such as the time.
    pub fn read_with<T>(&mut self, stamp: impl FnOnce() -> T) -> (HostReading, T) {
        let mut reading = HostReading {
            file_systems: self.file_systems.clone(),
            refreshes: self.refreshes,
            pressure: pressure(),
            instance_id: self.options.instance_id.clone(),
            ..HostReading::default()
        };
        let counted = block_statistics().unwrap_or_default();
        let stamped = stamp();
        self.volumes.clear();
        for statistics in counted {
            if is_device_excluded(&statistics.name) {
                continue;
            }
            let number = (statistics.major, statistics.minor);
            let KnownDevice { udev, is_rotational, volume_id } = self.known(number, &statistics.name);
            let name = &statistics.name;
            self.volumes.extend(volume_id.map(|volume_id| EbsDevice { volume_id, name: name.clone() }));
            reading.disks.push(HostDisk { statistics, udev, is_rotational });
        }
        (reading, stamped)
    }

    /// The EBS volumes among the devices of the latest [`Self::read`]: for [`PageReader`](super::PageReader).
    #[must_use]
    pub fn volumes(&self) -> &[EbsDevice] {
        &self.volumes
    }

    /// What is mounted, as the latest [`Self::refresh`] found it.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    fn known(&mut self, number: (u32, u32), name: &str) -> KnownDevice {
        if let Some(known) = self.known.get(&number) {
            return known.clone();
        }
        let (major, minor) = number;
        // A name with a slash, such as `cciss/c0d0`, has an exclamation mark there.
        let block = self.sys.join("block").join(name.replace('/', "!"));
        let text = |path: &str| fs::read_to_string(block.join(path)).map(|text| text.trim().to_owned());
        let properties = fs::read_to_string(self.udev.join(format!("b{major}:{minor}")));
        let is_ebs = text("device/model").is_ok_and(|model| model.starts_with(EBS_MODEL));
        let volume_id = is_ebs.then(|| text("device/serial").map(|serial| volume_id(&serial)).ok()).flatten();
        let known = KnownDevice {
            udev: properties.map(|text| UdevProperties::parse(&text)).unwrap_or_default(),
            is_rotational: text("queue/rotational").is_ok_and(|text| text == "1"),
            volume_id,
        };
        self.known.insert(number, known.clone());
        known
    }
}

/// The id of an EBS volume by the serial number of its device, which has no hyphen: `vol0123456789abcdef0`.
fn volume_id(serial: &str) -> String {
    match serial.strip_prefix("vol") {
        Some(rest) if !rest.starts_with('-') => format!("vol-{rest}"),
        _ => serial.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A reader of directories in place of `/sys` and of udev's.
    fn reader(dir: &Path) -> HostReader {
        HostReader {
            sys: dir.join("sys"),
            udev: dir.join("udev"),
            known: BTreeMap::new(),
            ..HostReader::new(HostOptions::default())
        }
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn this_machine_is_read_without_what_node_exporter_leaves_out() {
        let mut reader = HostReader::new(HostOptions::default());
        let reading = reader.read();
        assert_eq!((reading.refreshes, reader.read().refreshes), (1, 1), "the same space");
        assert!(reading.disks.iter().all(|disk| !is_device_excluded(&disk.statistics.name)));
        assert!(reading.file_systems.iter().all(|mount| !is_network(&mount.fs_type)));
        let types: Vec<_> = reading.file_systems.iter().map(|mount| mount.fs_type.as_str()).collect();
        assert!(!types.contains(&"proc") && !types.contains(&"sysfs"), "{types:?}");
        assert!(!reader.mounts().is_empty());
    }

    #[test]
    fn an_ebs_volume_is_known_by_its_model_and_named_by_its_serial_number() {
        let dir = tempfile::tempdir().unwrap();
        let block = dir.path().join("sys/block/nvme1n1");
        put(&block.join("device/model"), "Amazon Elastic Block Store              \n");
        put(&block.join("device/serial"), "vol0123456789abcdef0\n");
        put(&block.join("queue/rotational"), "0\n");
        put(&dir.path().join("udev/b259:1"), "E:ID_MODEL=Amazon Elastic Block Store\n");
        let mut reader = reader(dir.path());
        let known = reader.known((259, 1), "nvme1n1");
        assert_eq!(known.volume_id.as_deref(), Some("vol-0123456789abcdef0"));
        assert_eq!((known.udev.model.as_str(), known.is_rotational), ("Amazon Elastic Block Store", false));
    }

    #[test]
    fn another_device_has_no_page_and_one_that_rotates_is_known() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("sys/block/sda/queue/rotational"), "1\n");
        put(&dir.path().join("sys/block/sda/device/model"), "Virtual disk\n");
        let mut reader = reader(dir.path());
        let known = reader.known((8, 0), "sda");
        assert_eq!(
            (known.volume_id, known.is_rotational, known.udev),
            (None, true, UdevProperties::default())
        );
        assert_eq!(volume_id("vol-0123"), "vol-0123");
        assert_eq!(volume_id("S4EV"), "S4EV");
    }
}
