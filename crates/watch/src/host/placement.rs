//! On which devices which files of a server lie: found by its directories, or said by the user.

use std::path::{Path, PathBuf};

use ebbtide_observe::{Device, Files, Role, Variables, Volumes, WrongVolumes, directories};
use ebbtide_proc::{Mount, mount_of};

/// Where files of a server lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// What they are.
    pub role: Role,
    /// Their directory.
    pub directory: PathBuf,
    /// Where the file system of the directory is mounted; None where it is not known.
    pub mount_point: Option<PathBuf>,
    /// The names of the devices below it, several of RAID or LVM; empty where none are known.
    pub devices: Vec<String>,
    /// Whether the devices were said, and not found.
    pub is_said: bool,
}

/// Devices of a server that the user names, by what lies on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDevices {
    devices: Volumes<Vec<String>>,
}

/// Devices that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A text that names no devices.
    #[error(
        "{text}: name devices by what lies on them, such as data=nvme1n1,redo=nvme2n1, or data=nvme1n1+nvme2n1 for an array"
    )]
    Wrong {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: WrongVolumes,
    },
    /// A device that the machine does not have.
    #[error("there is no device {name} here; there is {}", .there.join(", "))]
    NoDevice {
        /// The device.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
}

impl NamedDevices {
    /// Reads a text such as `data=nvme1n1,redo+binlog=nvme2n1`, in which `+` is between the devices of an array. A name may have `/dev/`
    /// before it. `there` has the devices of the machine.
    ///
    /// # Errors
    /// A text without devices for the data, with a role that there is not, or with a device that is not there.
    pub fn parse(text: &str, there: &[String]) -> Result<Self, PlacementError> {
        let wrong = |source| PlacementError::Wrong { text: text.to_owned(), source };
        let devices = Volumes::parse(text).map_err(wrong)?.try_map(|names| {
            let names = names.split('+').map(|name| {
                let name = name.trim().trim_start_matches("/dev/");
                let is_there = there.iter().any(|device| device == name);
                let missing = || PlacementError::NoDevice { name: name.to_owned(), there: there.to_vec() };
                if is_there { Ok(name.to_owned()) } else { Err(missing()) }
            });
            names.collect::<Result<Vec<String>, PlacementError>>()
        })?;
        Ok(Self { devices })
    }
}

/// The directories of a server by what lies there, as its variables name them.
fn server_directories(variables: &Variables) -> Vec<(Role, PathBuf)> {
    let role = |files| match files {
        Files::Data => Role::Data,
        Files::Redo => Role::Redo,
        Files::Binlog => Role::Binlog,
        Files::Temporary => Role::Tmp,
    };
    let data = Path::new(variables.get("datadir").unwrap_or("/"));
    let named = |name: &str| variables.get(name).filter(|path| !path.is_empty()).map(|path| data.join(path));
    let mut all: Vec<_> = directories(variables).into_iter().map(|(files, dir)| (role(files), dir)).collect();
    all.extend(named("innodb_undo_directory").map(|dir| (Role::Undo, dir)));
    let relay = named("relay_log_basename").and_then(|base| base.parent().map(Path::to_owned));
    all.extend(relay.map(|dir| (Role::Relay, dir)));
    all
}

/// Where the files of a server lie. `resolved` gives a directory without symbolic links, and `device_below` the device below a file
/// system by its device number (`ebbtide_doctor::machine::device_below`). Devices that are said go before those that are found, also
/// for files that lie with the data.
#[must_use]
pub fn placements(
    variables: &Variables,
    mounts: &[Mount],
    said: Option<&NamedDevices>,
    resolved: impl Fn(&Path) -> PathBuf,
    device_below: impl Fn(&str) -> Option<Device>,
) -> Vec<Placement> {
    let place = |(role, directory): (Role, PathBuf)| {
        let directory = resolved(&directory);
        let mount = mount_of(mounts, &directory);
        let found = || {
            let device = mount.and_then(|mount| device_below(&mount.device));
            device.map(|device| device.names().map(str::to_owned).collect()).unwrap_or_default()
        };
        let named = said.map(|said| said.devices.on(role).clone());
        Placement {
            role,
            mount_point: mount.map(|mount| mount.dir.clone()),
            directory,
            is_said: named.is_some(),
            devices: named.unwrap_or_else(found),
        }
    };
    server_directories(variables).into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 259:1 / /data rw - xfs /dev/nvme1n1 rw
31 22 9:0 / /logs rw - xfs /dev/md0 rw
32 22 0:40 / /tmp rw - tmpfs tmpfs rw
";

    fn variables() -> Variables {
        Variables::from_iter([
            ("datadir", "/data/mysql/"),
            ("innodb_log_group_home_dir", "/logs/redo"),
            ("log_bin_basename", "/logs/binlog/bin"),
            ("tmpdir", "/tmp"),
            ("innodb_undo_directory", "./"),
            ("relay_log_basename", "relay"),
        ])
    }

    fn device_below(number: &str) -> Option<Device> {
        let members = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match number {
            "259:1" => Some(Device { name: "nvme1n1".to_owned(), ..Device::default() }),
            "9:0" => Some(Device {
                name: "nvme2n1".to_owned(),
                members: members(&["nvme2n1", "nvme3n1"]),
                ..Device::default()
            }),
            _ => None,
        }
    }

    fn placed(said: Option<&NamedDevices>) -> Vec<(Role, String, bool)> {
        let mounts = ebbtide_proc::parse_mounts(MOUNTS);
        let all = placements(&variables(), &mounts, said, Path::to_owned, device_below);
        all.into_iter().map(|place| (place.role, place.devices.join("+"), place.is_said)).collect()
    }

    fn there() -> Vec<String> {
        ["nvme1n1", "nvme2n1", "nvme3n1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn files_of_a_server_are_found_on_their_devices() {
        let expected = [
            (Role::Data, "nvme1n1"),
            (Role::Redo, "nvme2n1+nvme3n1"),
            (Role::Binlog, "nvme2n1+nvme3n1"),
            (Role::Tmp, ""),
            (Role::Undo, "nvme1n1"),
            (Role::Relay, "nvme1n1"),
        ];
        assert_eq!(placed(None), expected.map(|(role, devices)| (role, devices.to_owned(), false)));
        let mounts = ebbtide_proc::parse_mounts(MOUNTS);
        let linked = |_: &Path| PathBuf::from("/logs/elsewhere");
        let all = placements(&variables(), &mounts, None, linked, device_below);
        assert!(all.iter().all(|place| place.mount_point.as_deref() == Some(Path::new("/logs"))));
    }

    #[test]
    fn devices_that_are_said_go_before_those_that_are_found() {
        let said = NamedDevices::parse("data=/dev/nvme3n1,redo+binlog=nvme1n1+nvme2n1", &there()).unwrap();
        let found = placed(Some(&said));
        assert_eq!(found[0], (Role::Data, "nvme3n1".to_owned(), true));
        assert_eq!((found[1].1.as_str(), found[2].1.as_str()), ("nvme1n1+nvme2n1", "nvme1n1+nvme2n1"));
        assert_eq!(found[3].1, "nvme3n1", "what has no device of its own lies with the data");
        let alone = NamedDevices::parse("nvme2n1", &there()).unwrap();
        assert!(placed(Some(&alone)).iter().all(|(_, devices, is_said)| devices == "nvme2n1" && *is_said));
    }

    #[test]
    fn devices_that_cannot_be_are_refused_with_those_that_there_are() {
        let refused = |text: &str| NamedDevices::parse(text, &there()).unwrap_err();
        assert_eq!(
            refused("data=sdb").to_string(),
            "there is no device sdb here; there is nvme1n1, nvme2n1, nvme3n1"
        );
        assert!(matches!(refused("redo=nvme1n1"), PlacementError::Wrong { .. }));
        assert!(matches!(refused("data=nvme1n1,data=nvme2n1"), PlacementError::Wrong { .. }));
    }
}
