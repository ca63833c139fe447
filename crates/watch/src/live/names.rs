//! How storage is named: a volume of Ebbtide's own by its name, everything else by its device.

use std::collections::BTreeMap;

use super::looks::{Looks, ServerLook};

/// Names of storage by device and by mount point, and what lies where.
#[derive(Debug, Default)]
pub(super) struct StorageNames {
    own_by_device: BTreeMap<String, String>,
    own_by_mount: BTreeMap<String, String>,
}

impl StorageNames {
    pub(super) fn new(looks: &Looks) -> Self {
        let mut names = Self::default();
        let own = looks.own.iter().flat_map(|own| own.volumes.iter());
        for volume in own {
            if !volume.device.is_empty() {
                names.own_by_device.insert(volume.device.clone(), volume.name.clone());
            }
            if let Some(mount) = &volume.mount {
                names.own_by_mount.insert(mount.clone(), volume.name.clone());
            }
        }
        names
    }

    /// The name of a device.
    pub(super) fn of_device<'a>(&'a self, device: &'a str) -> &'a str {
        self.own_by_device.get(device).map_or(device, String::as_str)
    }

    /// Whether a device is a volume of Ebbtide's own.
    pub(super) fn is_own(&self, device: &str) -> bool {
        self.own_by_device.contains_key(device)
    }

    /// The roles of a server's files with the names of the storage that they lie on, each pair once.
    pub(super) fn files(&self, server: &ServerLook) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for placement in server.placements.iter() {
            let mount = placement.mount_point.as_ref().map(|mount| mount.display().to_string());
            let own = mount.and_then(|mount| self.own_by_mount.get(&mount)).filter(|_| !placement.is_said);
            let found: Vec<&str> = match own {
                Some(name) => vec![name.as_str()],
                None => placement.devices.iter().map(|device| self.of_device(device)).collect(),
            };
            for name in found {
                let pair = (placement.role.key().to_owned(), name.to_owned());
                if !files.contains(&pair) {
                    files.push(pair);
                }
            }
        }
        files
    }
}
