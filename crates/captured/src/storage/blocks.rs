//! Block devices, and what is made of them: lsblk as a tree, a list, pairs, or JSON.

use serde_json::Value;

use super::mounted::Mounted;
use super::{assignments, word};

/// A device that lsblk prints; one that is made of several disks is below each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) name: String,
    /// The disk that it is on, through partitions and mappings.
    pub(super) disk: String,
    kind: String,
    file_system: String,
    points: Vec<String>,
}

/// What stands in front of a name in a tree.
const TREE: [char; 7] = ['├', '└', '│', '─', '|', '`', '-'];

/// The devices of a text; empty in another text.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut all = Vec::new();
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) {
        if let Some(Value::Array(list)) = object.get("blockdevices") {
            list.iter().for_each(|value| of_json(value, None, &mut all));
        }
        return all;
    }
    let pairs = pairs(text);
    if pairs.is_empty() { tree(text) } else { pairs }
}

fn of_json(value: &Value, disk: Option<&str>, all: &mut Vec<Block>) {
    let Some(name) = word(value, "name").map(|name| bare(&name).to_owned()) else { return };
    let disk = disk.unwrap_or(&name).to_owned();
    let listed = value.get("mountpoints").and_then(Value::as_array).into_iter().flatten();
    let points = listed.filter_map(Value::as_str).map(str::to_owned).chain(word(value, "mountpoint"));
    all.push(Block {
        name,
        disk: disk.clone(),
        kind: word(value, "type").unwrap_or_default(),
        file_system: word(value, "fstype").unwrap_or_default(),
        points: points.collect(),
    });
    let children = value.get("children").and_then(Value::as_array).into_iter().flatten();
    children.for_each(|child| of_json(child, Some(&disk), all));
}

/// `lsblk -P` names no parents, unless `-o +PKNAME` asks for them: a device is on the one before it that is a disk.
fn pairs(text: &str) -> Vec<Block> {
    let mut all = Vec::new();
    let mut disk = String::new();
    for row in text.lines().filter_map(assignments) {
        let column =
            |name: &str| row.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let (Some(name), Some(kind)) = (column("NAME"), column("TYPE")) else { continue };
        if kind == "disk" {
            disk.clone_from(&name);
        }
        let points = ["MOUNTPOINT", "MOUNTPOINTS"].into_iter().filter_map(column);
        let points = points.flat_map(|list| list.split("\\x0a").map(str::to_owned).collect::<Vec<_>>());
        let points = points.filter(|point| !point.is_empty()).collect();
        let disk = if disk.is_empty() { name.clone() } else { disk.clone() };
        all.push(Block { name, disk, kind, file_system: column("FSTYPE").unwrap_or_default(), points });
    }
    all
}

/// The rows below a heading that begins with NAME. Columns without a value are blank: their places tell them apart.
fn tree(text: &str) -> Vec<Block> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("NAME "));
    let Some(heading) = lines.next() else { return Vec::new() };
    let place = |names: &[&str]| names.iter().find_map(|name| Some(heading.find(&format!(" {name}"))? + 1));
    let (kind, file_system) = (place(&["TYPE"]), place(&["FSTYPE"]));
    let point = place(&["MOUNTPOINTS", "MOUNTPOINT"]);
    if kind.is_none() && file_system.is_none() && point.is_none() {
        return Vec::new();
    }
    let mut all: Vec<Block> = Vec::new();
    for line in lines.take_while(|line| !line.trim().is_empty()) {
        let letters: Vec<char> = line.chars().collect();
        let cell = |begin: Option<usize>| -> String {
            let rest = begin.and_then(|begin| letters.get(begin..)).unwrap_or_default();
            rest.iter().take_while(|letter| !letter.is_whitespace()).collect()
        };
        // The directory is the last column, and may have blanks.
        let last =
            point.and_then(|begin| letters.get(begin..)).unwrap_or_default().iter().collect::<String>();
        let name: String = letters
            .iter()
            .skip_while(|letter| letter.is_whitespace() || TREE.contains(letter))
            .take_while(|letter| !letter.is_whitespace())
            .collect();
        let depth = letters.iter().position(|letter| letter.is_alphanumeric()).unwrap_or(0);
        let points = Some(last.trim().to_owned()).filter(|point| !point.is_empty());
        // A device with several directories has a line for each, without its name.
        let only_point = point.is_some_and(|begin| {
            letters.iter().take(begin).all(|letter| letter.is_whitespace() || TREE.contains(letter))
        });
        match all.last_mut() {
            Some(known) if only_point => known.points.extend(points),
            last => {
                let disk = match last {
                    Some(last) if depth > 0 => last.disk.clone(),
                    _ => name.clone(),
                };
                let (kind, file_system) = (cell(kind), cell(file_system));
                all.push(Block { name, disk, kind, file_system, points: points.into_iter().collect() });
            }
        }
    }
    all
}

/// A name without its directory.
fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The disks that a device is on, each once; None where lsblk does not name it.
pub(super) fn disks_of(blocks: &[Block], device: &str) -> Option<Vec<String>> {
    let name = bare(device);
    let mut disks: Vec<String> = Vec::new();
    for block in blocks.iter().filter(|block| block.name == name) {
        if !disks.contains(&block.disk) {
            disks.push(block.disk.clone());
        }
    }
    (!disks.is_empty()).then_some(disks)
}

/// What is mounted, as far as lsblk says it: without the options.
pub(super) fn mounts(blocks: &[Block]) -> Vec<Mounted> {
    let mounted = |block: &Block| {
        let points = block.points.iter().filter(|point| point.starts_with('/'));
        points
            .map(|point| Mounted {
                device: format!("/dev/{}", block.name),
                point: point.clone(),
                kind: block.file_system.clone(),
                options: Vec::new(),
            })
            .collect::<Vec<_>>()
    };
    blocks.iter().flat_map(mounted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE_OF_LVM: &str = "\
NAME           MAJ:MIN RM  SIZE RO TYPE  MOUNTPOINTS
nvme0n1        259:0    0    8G  0 disk  
├─nvme0n1p1    259:1    0  7.9G  0 part  /
└─nvme0n1p128  259:2    0    1M  0 part  
nvme1n1        259:3    0  100G  0 disk  
└─vg0-data     253:0    0  200G  0 lvm   /srv/my data
                                         /var/lib/mysql
nvme2n1        259:4    0  100G  0 disk  
└─vg0-data     253:0    0  200G  0 lvm   /srv/my data
                                         /var/lib/mysql
";

    #[test]
    fn the_disks_below_a_mapping_are_found_in_every_form() {
        let json = "{\"blockdevices\": [{\"name\":\"nvme0n1\",\"type\":\"disk\",\"mountpoints\":[null],\"children\":[{\"name\":\"nvme0n1p1\",\
                    \"type\":\"part\",\"mountpoint\":\"/\"}]},\
                    {\"name\":\"nvme1n1\",\"type\":\"disk\",\"mountpoint\":null,\"children\":[{\"name\":\"vg0-data\",\"type\":\"lvm\",\"fstype\":\"xfs\",\
                    \"mountpoints\":[\"/srv/my data\",\"/var/lib/mysql\"]}]},\
                    {\"name\":\"nvme2n1\",\"type\":\"disk\",\"children\":[{\"name\":\"vg0-data\",\"type\":\"lvm\"}]}]}";
        let pairs = "NAME=\"nvme0n1\" MAJ:MIN=\"259:0\" TYPE=\"disk\" MOUNTPOINTS=\"\"\nNAME=\"nvme0n1p1\" TYPE=\"part\" MOUNTPOINTS=\"/\"\n\
                     NAME=\"nvme1n1\" TYPE=\"disk\" MOUNTPOINTS=\"\"\n\
                     NAME=\"vg0-data\" TYPE=\"lvm\" MOUNTPOINTS=\"/srv/my data\\x0a/var/lib/mysql\"\n\
                     NAME=\"nvme2n1\" TYPE=\"disk\" MOUNTPOINTS=\"\"\nNAME=\"vg0-data\" TYPE=\"lvm\" MOUNTPOINTS=\"\"\n";
        for text in [TREE_OF_LVM, &TREE_OF_LVM.replace(['├', '└'], "`").replace('─', "-"), json, pairs]
        {
            let all = blocks(text);
            assert_eq!(
                disks_of(&all, "/dev/mapper/vg0-data").unwrap(),
                ["nvme1n1", "nvme2n1"],
                "{text}\n{all:?}"
            );
            assert_eq!(disks_of(&all, "/dev/nvme0n1p1").unwrap(), ["nvme0n1"], "{text}");
            assert_eq!(disks_of(&all, "/dev/sdx"), None);
            let points: Vec<String> = mounts(&all).into_iter().map(|mount| mount.point).collect();
            for point in ["/", "/srv/my data", "/var/lib/mysql"] {
                assert!(points.iter().any(|known| known == point), "{point} of {text}: {points:?}");
            }
        }
        for other in ["", "NAME a\nb c\n", "{}", "{\"blockdevices\": 3}", "x=\"1\"\n"] {
            assert_eq!(blocks(other), [], "{other}");
        }
    }
}
