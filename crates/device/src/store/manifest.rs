//! The manifest: which volumes, snapshots and layers there are. One small file, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BLOCK_BYTES, Damage, MAX_VOLUME_BYTES, StoreError, WrappedKey};
use crate::dir::{Access, Dir};

/// Name of the manifest in the store's directory.
pub(super) const MANIFEST: &str = "manifest";
const NEW_MANIFEST: &str = "manifest.new";
const MAGIC: &str = "ebbtide-store";
const VERSION: &str = "1";

/// Number of a layer; never used twice in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct LayerId(pub(super) u64);

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// All names, and which layer is on top of which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) next_layer: u64,
    pub(super) layers: BTreeMap<LayerId, LayerEntry>,
    pub(super) volumes: BTreeMap<String, VolumeEntry>,
    pub(super) snapshots: BTreeMap<String, SnapshotEntry>,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayerEntry {
    pub(super) parent: Option<LayerId>,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeEntry {
    pub(super) size_bytes: u64,
    pub(super) meta: Value,
    pub(super) created_unix_s: u64,
    pub(super) from_snapshot: Option<String>,
    pub(super) from_volume: Option<String>,
    pub(super) top: LayerId,
    /// The key of its data; none of plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<WrappedKey>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotEntry {
    pub(super) size_bytes: u64,
    pub(super) meta: Value,
    pub(super) created_unix_s: u64,
    pub(super) from_volume: String,
    pub(super) layer: LayerId,
    /// The key of its data; none of plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<WrappedKey>,
}

impl Manifest {
    /// Adds a layer on top of `parent`.
    pub(super) fn add_layer(&mut self, parent: Option<LayerId>) -> LayerId {
        let id = LayerId(self.next_layer);
        self.next_layer += 1;
        self.layers.insert(id, LayerEntry { parent });
        id
    }

    /// The layer below.
    pub(super) fn parent(&self, id: LayerId) -> Option<LayerId> {
        self.layers.get(&id).and_then(|l| l.parent)
    }

    /// A layer and all below it, nearest first.
    pub(super) fn chain(&self, top: LayerId) -> Vec<LayerId> {
        std::iter::successors(Some(top), |id| self.parent(*id)).collect()
    }

    /// Of a layer and all below it, nearest first: whether nothing else needs them.
    pub(super) fn owned(&self, top: LayerId) -> Vec<bool> {
        let mut own = true;
        let owned = |id: LayerId| {
            if id != top {
                own &= !self.is_snapshot(id) && self.children(id).count() == 1;
            }
            own
        };
        self.chain(top).into_iter().map(owned).collect()
    }

    /// Layers directly above.
    pub(super) fn children(&self, id: LayerId) -> impl Iterator<Item = LayerId> + '_ {
        self.layers.iter().filter(move |(_, l)| l.parent == Some(id)).map(|(child, _)| *child)
    }

    /// Whether a volume writes to this layer; gives its name.
    pub(super) fn volume_on(&self, id: LayerId) -> Option<&str> {
        self.volumes.iter().find(|(_, v)| v.top == id).map(|(name, _)| name.as_str())
    }

    /// Whether a snapshot names this layer.
    pub(super) fn is_snapshot(&self, id: LayerId) -> bool {
        self.snapshots.values().any(|s| s.layer == id)
    }

    /// Forgets the layers that no volume and no snapshot needs, and gives their numbers.
    pub(super) fn drop_unreachable(&mut self) -> Vec<LayerId> {
        let roots = self.volumes.values().map(|v| v.top).chain(self.snapshots.values().map(|s| s.layer));
        let needed: BTreeSet<LayerId> = roots.flat_map(|root| self.chain(root)).collect();
        let gone: Vec<LayerId> = self.layers.keys().copied().filter(|id| !needed.contains(id)).collect();
        self.layers.retain(|id, _| needed.contains(id));
        gone
    }

    /// Puts the only child of `parent` in its place: whatever named `child` names `parent` from now on.
    pub(super) fn merge_child(&mut self, parent: LayerId, child: LayerId) {
        self.layers.remove(&child);
        for layer in self.layers.values_mut().filter(|l| l.parent == Some(child)) {
            layer.parent = Some(parent);
        }
        for volume in self.volumes.values_mut().filter(|v| v.top == child) {
            volume.top = parent;
        }
        for snapshot in self.snapshots.values_mut().filter(|s| s.layer == child) {
            snapshot.layer = parent;
        }
    }

    /// Reads the manifest; `None` where there is none.
    pub(super) fn load(dir: &Dir) -> Result<Option<Self>, StoreError> {
        let path = dir.path().join(MANIFEST);
        let bytes = match dir.read(MANIFEST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::io("read", path)(e)),
        };
        let manifest = parse(&bytes, dir.path()).map_err(|e| match e {
            ParseError::Version(what) => StoreError::Foreign { dir: dir.path().to_owned(), what },
            ParseError::Damaged(offset, what) => Damage { file: path, offset, what }.into(),
        })?;
        Ok(Some(manifest))
    }

    /// Replaces the manifest on the host's file system, and with `durable` on its disk.
    pub(super) fn save(&self, dir: &Dir, durable: bool) -> Result<(), StoreError> {
        let body = serde_json::to_vec_pretty(self).expect("the manifest has string and integer keys only");
        let head = format!("{MAGIC} {VERSION} {:08x} {}\n", crc32c::crc32c(&body), body.len());
        let write = || {
            let mut file = dir.file(NEW_MANIFEST, Access::Empty)?;
            file.write_all(&[head.as_bytes(), &body].concat())?;
            if durable { file.sync_all() } else { Ok(()) }
        };
        write().and_then(|()| dir.rename(NEW_MANIFEST, MANIFEST)).map_err(|e| {
            drop(dir.remove(NEW_MANIFEST));
            StoreError::io("write", dir.path().join(NEW_MANIFEST))(e)
        })
    }
}

/// Puts the manifest that is there on the host's disk.
pub(super) fn sync_manifest(dir: &Dir) -> Result<(), StoreError> {
    let path = dir.path().join(MANIFEST);
    let file = dir.file(MANIFEST, Access::Read).map_err(StoreError::io("open", &path))?;
    file.sync_all().map_err(StoreError::io("sync", &path))?;
    sync_dir(dir)
}

/// Puts the names in a directory on the host's disk.
pub(super) fn sync_dir(dir: &Dir) -> Result<(), StoreError> {
    dir.sync().map_err(StoreError::io("sync", dir.path()))
}

enum ParseError {
    Version(String),
    Damaged(u64, String),
}

fn parse(bytes: &[u8], dir: &Path) -> Result<Manifest, ParseError> {
    let damaged =
        |offset: usize, what: String| ParseError::Damaged(u64::try_from(offset).unwrap_or(u64::MAX), what);
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .ok_or_else(|| damaged(0, "its first line has no end".into()))?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let words: Vec<&str> = head.split(' ').collect();
    let (magic, version, crc, len) = match words[..] {
        [magic, version, crc, len] => (magic, version, crc, len),
        _ => return Err(damaged(0, format!("its first line is '{head}'"))),
    };
    if magic != MAGIC {
        return Err(damaged(0, format!("it begins with '{magic}' instead of '{MAGIC}'")));
    }
    let body = &bytes[end + 1..];
    if len.parse() != Ok(body.len()) {
        return Err(damaged(
            bytes.len(),
            format!("{len} bytes should follow its first line, {} do", body.len()),
        ));
    }
    let actual = format!("{:08x}", crc32c::crc32c(body));
    if crc != actual {
        return Err(damaged(end + 1, format!("the checksum is {actual}, {crc} was stored")));
    }
    if version != VERSION {
        let what = format!(
            "its format is version {version}, {VERSION} is known; use the program that wrote {}",
            dir.display()
        );
        return Err(ParseError::Version(what));
    }
    let manifest: Manifest = serde_json::from_slice(body).map_err(|e| damaged(end + 1, e.to_string()))?;
    manifest.inconsistency().map_or(Ok(manifest), |what| Err(damaged(end + 1, what)))
}

impl Manifest {
    /// What contradicts itself, if anything does.
    fn inconsistency(&self) -> Option<String> {
        for (id, layer) in &self.layers {
            if id.0 >= self.next_layer {
                return Some(format!("layer {id} is not below the next number {}", self.next_layer));
            }
            if let Some(parent) = layer.parent.filter(|p| !self.layers.contains_key(p)) {
                return Some(format!("layer {id} is on top of layer {parent}, which is not listed"));
            }
        }
        let looped = self.layers.keys().find(|id| {
            std::iter::successors(Some(**id), |at| self.parent(*at)).take(self.layers.len() + 1).count()
                > self.layers.len()
        });
        if let Some(id) = looped {
            return Some(format!("layer {id} is on top of itself"));
        }
        // Layers that a volume cannot write to. Sets, as a search for each volume takes seconds with 10,000 of them.
        let parents: BTreeSet<LayerId> = self.layers.values().filter_map(|layer| layer.parent).collect();
        let of_snapshots: BTreeSet<LayerId> =
            self.snapshots.values().map(|snapshot| snapshot.layer).collect();
        let mut tops = BTreeSet::new();
        for (name, volume) in &self.volumes {
            let top = volume.top;
            if !self.layers.contains_key(&top) {
                return Some(format!("volume {name} writes to layer {top}, which is not listed"));
            }
            if !tops.insert(top) || of_snapshots.contains(&top) || parents.contains(&top) {
                return Some(format!("layer {top}, which volume {name} writes to, is shared"));
            }
            if volume.size_bytes == 0
                || volume.size_bytes > MAX_VOLUME_BYTES
                || volume.size_bytes % BLOCK_BYTES != 0
            {
                return Some(format!("volume {name} has a size of {} bytes", volume.size_bytes));
            }
        }
        let lost = self.snapshots.iter().find(|(_, s)| !self.layers.contains_key(&s.layer));
        lost.map(|(name, s)| format!("snapshot {name} is layer {}, which is not listed", s.layer))
    }
}
