//! Where the server's files lie and what its machine has: df, mount, findmnt, lsblk, /proc/mounts, /proc/meminfo, sysctl, and
//! pt-summary.

mod blocks;
mod mounted;
mod space;

use std::path::Path;

use ebbtide_observe::{Device, Host, ServerDirectory, Variables, directories};
use ebbtide_proc::machine::kilobytes;
use serde_json::Value;

use blocks::Block;
use mounted::Mounted;
use space::Space;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Storage {
    spaces: Vec<Space>,
    mounts: Vec<Mounted>,
    blocks: Vec<Block>,
    memory: Option<u64>,
    swap: Option<u64>,
    swappiness: Option<u64>,
    aio_max: Option<u64>,
    aio_used: Option<u64>,
}

impl Storage {
    pub(super) fn add(&mut self, other: Self) {
        self.spaces.extend(other.spaces);
        self.mounts.extend(other.mounts);
        self.blocks.extend(other.blocks);
        self.memory = other.memory.or(self.memory);
        self.swap = other.swap.or(self.swap);
        self.swappiness = other.swappiness.or(self.swappiness);
        self.aio_max = other.aio_max.or(self.aio_max);
        self.aio_used = other.aio_used.or(self.aio_used);
    }

    /// The machine, with the places of the directories that the variables name.
    pub(super) fn host(&self, variables: &Variables) -> Host {
        let places = match variables.get("datadir") {
            Some(_) => directories(variables),
            None => Vec::new(),
        };
        // Of lsblk only where nothing else names the directory: it has no options.
        let mut mounts = blocks::mounts(&self.blocks);
        mounts.retain(|block| self.mounts.iter().all(|known| known.point != block.point));
        mounts.extend(self.mounts.iter().cloned());
        let place = |(files, directory): (ebbtide_observe::Files, std::path::PathBuf)| {
            let above = |point: &str| directory.starts_with(Path::new(point));
            let depth = |point: &str| Path::new(point).components().count();
            // Of lines for one point the last one is the newest.
            let mount =
                mounts.iter().filter(|mount| above(&mount.point)).max_by_key(|mount| depth(&mount.point));
            // A df of some file systems may not have that of the mount: another one's space is none of it.
            let same = |space: &&Space| mount.is_none_or(|mount| mount.point == space.point);
            let space = self
                .spaces
                .iter()
                .filter(|space| above(&space.point))
                .max_by_key(|space| depth(&space.point))
                .filter(same);
            let device = mount.map(|mount| &mount.device).or(space.map(|space| &space.device))?;
            Some(ServerDirectory {
                files,
                directory: directory.to_string_lossy().into_owned(),
                mount_point: mount.map(|mount| &mount.point).or(space.map(|space| &space.point))?.clone(),
                file_system: mount.map(|mount| mount.kind.clone()).unwrap_or_default(),
                options: mount.map(|mount| mount.options.clone()).unwrap_or_default(),
                size_bytes: space.map(|space| space.size),
                free_bytes: space.map(|space| space.free),
                device: self.device(device),
            })
        };
        Host {
            memory_bytes: self.memory,
            swap_bytes: self.swap,
            swappiness: self.swappiness,
            aio_max: self.aio_max,
            aio_used: self.aio_used,
            places: places.into_iter().filter_map(place).collect(),
            ..Host::default()
        }
    }

    /// The device of a path, with the disks that it is on.
    fn device(&self, path: &str) -> Option<Device> {
        let disks = blocks::disks_of(&self.blocks, path);
        match disks.as_deref() {
            Some([disk]) => Some(Device { name: disk.clone(), ..Device::default() }),
            Some(members) => {
                let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                Some(Device { name, members: members.to_vec(), ..Device::default() })
            }
            None => whole(path).map(|name| Device { name, ..Device::default() }),
        }
    }

    /// Says which space of the places is rounded, and by how much, for people.
    pub(super) fn rounded(&self, places: &[ServerDirectory]) -> Vec<String> {
        let used = |space: &&Space| places.iter().any(|place| place.mount_point == space.point);
        let said = |space: &Space| {
            let (printed, step) = space.rounded.as_ref()?;
            let less = ebbtide_text::size(*step);
            Some(format!(
                "df printed {printed} free of {}, which is rounded up: there may be {less} less",
                space.point
            ))
        };
        let mut all: Vec<String> = self.spaces.iter().filter(used).filter_map(said).collect();
        all.dedup();
        all
    }
}

/// The name of the whole device of a path such as `/dev/nvme1n1p1`; None for a mapping, whose device no text names.
fn whole(path: &str) -> Option<String> {
    let name = path.strip_prefix("/dev/")?;
    if name.contains('/') || name.starts_with("dm-") {
        return None;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = ["nvme", "mmcblk", "loop", "md"].iter().any(|kind| name.starts_with(kind));
    Some(match (numbered, stem.strip_suffix('p')) {
        (true, Some(device)) if stem.len() < name.len() && device.ends_with(|c: char| c.is_ascii_digit()) => {
            device.to_owned()
        }
        (true, _) => name.to_owned(),
        (false, _) => stem.to_owned(),
    })
}

/// Reads what the lines of a text are, if most of them are of one kind.
pub(super) fn read(text: &str) -> Option<Storage> {
    let mut all = Storage { spaces: space::spaces(text), blocks: blocks::blocks(text), ..Storage::default() };
    if text.lines().any(|line| line.starts_with("MemTotal:")) {
        // Of several looks the first; memory does not change.
        (all.memory, all.swap) = (kilobytes(text, "MemTotal"), kilobytes(text, "SwapTotal"));
    } else if text.lines().any(|line| line.starts_with("vm.swappiness =")) {
        let value = |name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))?;
            line.trim().parse().ok()
        };
        all.swappiness = value("vm.swappiness");
        (all.aio_max, all.aio_used) = (value("fs.aio-max-nr"), value("fs.aio-nr"));
    } else if text.contains("# Percona Toolkit System Summary Report") {
        let below = text.split_once("\n# Memory ##").map_or("", |(_, below)| below);
        let value = |name: &str| {
            let rows = below.lines().skip(1).take_while(|line| !line.starts_with("# "));
            rows.filter_map(|line| line.split_once(" | ")).find(|(known, _)| known.trim() == name)
        };
        all.swappiness = value("Swappiness").and_then(|(_, value)| value.trim().parse().ok());
        all.memory = value("Total").and_then(|(_, value)| Some(space::figure(value.trim(), None)?.0));
    } else if all.spaces.is_empty() && all.blocks.is_empty() {
        all.mounts = mounted::mounts(text);
    }
    (all != Storage::default()).then_some(all)
}

/// A column of a row in JSON.
fn word(row: &Value, name: &str) -> Option<String> {
    row.get(name)?.as_str().map(str::to_owned)
}

/// Names and values of a line such as `NAME="sda" TYPE="disk"`; None of another line.
fn assignments(line: &str) -> Option<Vec<(&str, &str)>> {
    let mut all = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"")?;
        let (value, after) = value.split_once('"')?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase() || b":_%-".contains(&byte)) {
            return None;
        }
        all.push((name, value));
        rest = after.trim_start();
    }
    (!all.is_empty()).then_some(all)
}
