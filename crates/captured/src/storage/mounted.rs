//! Mounted file systems: mount, `/proc/mounts`, `/proc/self/mountinfo`, and findmnt.

use ebbtide_proc::parse_mounts;
use serde_json::Value;

use super::{assignments, word};

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) device: String,
    pub(super) point: String,
    pub(super) kind: String,
    pub(super) options: Vec<String>,
}

/// The lines of a text, if most of them are of one kind; empty in another text.
pub(super) fn mounts(text: &str) -> Vec<Mounted> {
    if let Some(rows) = from_json(text, "filesystems") {
        let column = |row: &Value, name: &str| word(row, name).unwrap_or_default();
        let row = |row: &Value| {
            let [source, target, kind, list] =
                ["source", "target", "fstype", "options"].map(|name| column(row, name));
            of(&source, &target, &kind, options(&list))
        };
        return rows.iter().filter_map(row).collect();
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mounts: Vec<Mounted> = lines.iter().filter_map(|line| mounted(line)).collect();
    if mounts.len() * 2 > lines.len() { mounts } else { Vec::new() }
}

/// The rows of a list in JSON, and those below them (`children`), as findmnt prints them; None of another text.
fn from_json(text: &str, name: &str) -> Option<Vec<Value>> {
    fn below(value: &Value, all: &mut Vec<Value>) {
        all.push(value.clone());
        let children = value.get("children").and_then(Value::as_array).into_iter().flatten();
        children.for_each(|child| below(child, all));
    }
    let text = text.trim_start();
    let document: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()?;
    let mut all = Vec::new();
    document.get(name)?.as_array()?.iter().for_each(|row| below(row, &mut all));
    Some(all)
}

fn options(list: &str) -> Vec<String> {
    list.trim_matches(['(', ')']).split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect()
}

/// findmnt writes the part of a file system that is mounted behind its device: `/dev/sdb[/mysql]`.
fn of(device: &str, point: &str, kind: &str, options: Vec<String>) -> Option<Mounted> {
    let device = device.split_once('[').map_or(device, |(device, _)| device);
    (point.starts_with('/') && !options.is_empty()).then(|| Mounted {
        device: device.into(),
        point: point.into(),
        kind: kind.into(),
        options,
    })
}

/// A line of mount, /proc/mounts, /proc/self/mountinfo or findmnt.
fn mounted(line: &str) -> Option<Mounted> {
    if let Some(row) = assignments(line) {
        let [source, target, kind, list] = ["SOURCE", "TARGET", "FSTYPE", "OPTIONS"]
            .map(|name| row.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        return of(source, target, kind, options(list));
    }
    let fields: Vec<&str> = line.split_whitespace().collect();
    match fields[..] {
        [device, "on", point, "type", kind, list] if list.starts_with('(') => {
            of(device, point, kind, options(list))
        }
        [device, point, kind, list, "0" | "1", "0" | "1" | "2"] => of(device, point, kind, options(list)),
        // findmnt, as a tree or a list.
        [.., point, device, kind, list] if point.contains('/') && is_findmnt(&fields, list) => {
            of(device, point.trim_start_matches(|letter: char| letter != '/'), kind, options(list))
        }
        _ => {
            let mount = parse_mounts(line.trim().as_bytes()).pop()?;
            let options = mount.all_options().map(str::to_owned).collect();
            of(&mount.source.to_string_lossy(), &mount.dir.to_string_lossy(), &mount.fs, options)
        }
    }
}

/// Whether the last field of a line is findmnt's list of options; mountinfo has a `-` before the type.
fn is_findmnt(fields: &[&str], list: &str) -> bool {
    matches!(list.split(',').next(), Some("rw" | "ro")) && !fields.contains(&"-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_of_every_program_that_prints_it() {
        let wanted = Mounted {
            device: "/dev/nvme1n1".into(),
            point: "/var/lib/mysql".into(),
            kind: "xfs".into(),
            options: vec!["rw".into(), "noatime".into()],
        };
        for text in [
            "/dev/nvme1n1 on /var/lib/mysql type xfs (rw,noatime)\n",
            "/dev/nvme1n1 /var/lib/mysql xfs rw,noatime 0 0\n",
            "22 27 259:1 / /var/lib/mysql rw,noatime - xfs /dev/nvme1n1 rw\n",
            "TARGET SOURCE FSTYPE OPTIONS\n/ /dev/nvme0n1p1 ext4 rw\n├─/var/lib/mysql /dev/nvme1n1 xfs rw,noatime\n",
            "TARGET SOURCE FSTYPE OPTIONS\n/ /dev/nvme0n1p1 ext4 rw\n│ └─/var/lib/mysql /dev/nvme1n1[/sub] xfs rw,noatime\n",
            "|-/var/lib/mysql /dev/nvme1n1 xfs rw,noatime\n",
            "TARGET=\"/var/lib/mysql\" SOURCE=\"/dev/nvme1n1\" FSTYPE=\"xfs\" OPTIONS=\"rw,noatime\"\n",
            "{\"filesystems\": [{\"target\":\"/\", \"source\":\"/dev/nvme0n1p1\", \"fstype\":\"ext4\", \"options\":\"rw\", \"children\": [\
             {\"target\":\"/var/lib/mysql\", \"source\":\"/dev/nvme1n1\", \"fstype\":\"xfs\", \"options\":\"rw,noatime\"}]}]}",
        ] {
            let mut found = mounts(text);
            found.retain(|mount| mount.point == wanted.point);
            let [mount] = &mut found[..] else { panic!("{text}: {:?}", mounts(text)) };
            mount.options.dedup();
            assert_eq!(mount.options[..2], wanted.options, "{text}");
            mount.options.truncate(2);
            assert_eq!(*mount, wanted, "{text}");
        }
        for other in ["", "a b c d\n", "{}", "{\"filesystems\": 1}", "NAME=\"a\"\n", "/a /b c rw x\n"] {
            assert_eq!(mounts(other), [], "{other}");
        }
    }
}
