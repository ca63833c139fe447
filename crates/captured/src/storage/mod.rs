//! Where the server's files lie and what its machine has: df, mount, /proc/mounts, /proc/meminfo, sysctl.

use std::path::Path;

use ebbtide_observe::{Device, Host, ServerDirectory, Variables, directories};
use ebbtide_proc::machine::kilobytes;
use ebbtide_proc::parse_mounts;

/// A line of df.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Space {
    device: String,
    point: String,
    size: u64,
    free: u64,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mounted {
    device: String,
    point: String,
    kind: String,
    options: Vec<String>,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Storage {
    spaces: Vec<Space>,
    mounts: Vec<Mounted>,
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
        let place = |(files, directory): (ebbtide_observe::Files, std::path::PathBuf)| {
            let above = |point: &str| directory.starts_with(Path::new(point));
            let depth = |point: &str| Path::new(point).components().count();
            // Of lines for one point the last one is the newest.
            let mount =
                self.mounts.iter().filter(|one| above(&one.point)).max_by_key(|one| depth(&one.point));
            // A df of some file systems may not have that of the mount: another one's space is none of it.
            let same = |one: &&Space| mount.is_none_or(|mount| mount.point == one.point);
            let space = self
                .spaces
                .iter()
                .filter(|one| above(&one.point))
                .max_by_key(|one| depth(&one.point))
                .filter(same);
            let device = mount.map(|one| &one.device).or(space.map(|one| &one.device))?;
            Some(ServerDirectory {
                files,
                directory: directory.to_string_lossy().into_owned(),
                mount_point: mount.map(|one| &one.point).or(space.map(|one| &one.point))?.clone(),
                file_system: mount.map(|one| one.kind.clone()).unwrap_or_default(),
                options: mount.map(|one| one.options.clone()).unwrap_or_default(),
                size_bytes: space.map(|one| one.size),
                free_bytes: space.map(|one| one.free),
                device: whole(device).map(|name| Device { name, ..Device::default() }),
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
    let mut all = Storage::default();
    if text.lines().any(|line| line.starts_with("Filesystem") && line.contains("Mounted on")) {
        all.spaces = spaces(text);
    } else if text.lines().any(|line| line.starts_with("MemTotal:")) {
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
    } else {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        all.mounts = lines.iter().filter_map(|line| mounted(line)).collect();
        if all.mounts.len() * 2 <= lines.len() {
            return None;
        }
    }
    (all != Storage::default()).then_some(all)
}

/// Bytes of the units in df's heading: `1K-blocks`, `1B-blocks` of `df -B1`, `1kB-blocks` of `df -BkB`.
const UNITS: [(&str, u64); 9] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

/// The lines of df. Its blocks are those of the heading; without a size in bytes (`df -h`) a line is left out.
fn spaces(text: &str) -> Vec<Space> {
    let mut block = None;
    let mut all = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("Filesystem") {
            block = fields.iter().find_map(|field| {
                let size = field.strip_suffix("-blocks")?;
                let known = UNITS.iter().find_map(|(end, bytes)| Some((size.strip_suffix(end)?, *bytes)));
                let (number, unit) = known.unwrap_or((size, 1));
                number.parse::<u64>().ok()?.checked_mul(unit)
            });
            continue;
        }
        let Some(block) = block else { continue };
        // With `df -T` a type stands second.
        let first = fields.iter().position(|field| field.ends_with('%'));
        let Some(used) = first.filter(|place| *place >= 4) else { continue };
        // `df -BG` writes the unit behind each number, too.
        let bytes = |place: usize| {
            let number = fields.get(place)?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            number.parse::<u64>().ok()?.checked_mul(block)
        };
        // The name of a directory may have blanks.
        let point = fields[used + 1..].join(" ");
        if let (Some(size), Some(free), false) = (bytes(used - 3), bytes(used - 1), point.is_empty()) {
            all.push(Space { device: fields[0].into(), point, size, free });
        }
    }
    all
}

/// A line of mount, /proc/mounts or /proc/self/mountinfo.
fn mounted(line: &str) -> Option<Mounted> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let options = |list: &str| -> Vec<String> {
        list.trim_matches(['(', ')']).split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    let of = |device: &str, point: &str, kind: &str, options: Vec<String>| {
        (point.starts_with('/') && !options.is_empty()).then(|| Mounted {
            device: device.into(),
            point: point.into(),
            kind: kind.into(),
            options,
        })
    };
    match fields[..] {
        [device, "on", point, "type", kind, list] if list.starts_with('(') => {
            of(device, point, kind, options(list))
        }
        [device, point, kind, list, "0" | "1", "0" | "1" | "2"] => of(device, point, kind, options(list)),
        _ => {
            let mount = parse_mounts(line.trim().as_bytes()).pop()?;
            let options = mount.all_options().map(str::to_owned).collect();
            of(&mount.source.to_string_lossy(), &mount.dir.to_string_lossy(), &mount.fs, options)
        }
    }
}
