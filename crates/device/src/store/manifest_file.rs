//! The file of the manifest as a whole, which is replaced, never changed in place. It names the log of the changes since.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::change_log::{self, ChangeLog, LogScan};
use super::entries::{Entries, LayerEntry, LayerId, SnapshotEntry, VolumeEntry};
use super::manifest::Manifest;
use super::synced::{Synced, notify_synced};
use super::{Damage, StoreError};
use ebbtide_dir::{Access, Dir};

/// Name of the manifest in the store's directory.
pub(super) const MANIFEST: &str = "manifest";
/// Its successor, while it is written.
pub(super) const NEW_MANIFEST: &str = "manifest.new";
const MAGIC: &str = "ebbtide-store";
/// The format in which a change replaced the manifest, and that in which it is appended to a log.
const VERSIONS: [&str; 2] = ["1", "2"];

/// The manifest with all changes of the log made, and what was found of both files.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) manifest: Manifest,
    /// Length of the manifest's file, bytes.
    pub(super) file_bytes: u64,
    /// Its log; none in a store of the first format.
    pub(super) log: Option<LogScan>,
}

#[derive(Serialize)]
struct Written<'a> {
    changes: u64,
    next_layer: u64,
    layers: &'a BTreeMap<LayerId, LayerEntry>,
    volumes: &'a BTreeMap<String, VolumeEntry>,
    snapshots: &'a BTreeMap<String, SnapshotEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    /// Number of the log.
    changes: Option<u64>,
    next_layer: u64,
    layers: BTreeMap<LayerId, LayerEntry>,
    volumes: BTreeMap<String, VolumeEntry>,
    snapshots: BTreeMap<String, SnapshotEntry>,
}

/// Reads the manifest and its log; `None` where there is none. Nothing is changed.
pub(super) fn load(dir: &Dir, host_restarted: bool) -> Result<Option<Loaded>, StoreError> {
    let path = dir.path().join(MANIFEST);
    let bytes = match dir.read(MANIFEST) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::io("read", path)(e)),
    };
    let damaged = |offset, what| Damage { file: path.clone(), offset, what };
    let (body_at, number, mut entries) = parse(&bytes).map_err(|e| match e {
        ParseError::Version(found) => {
            let (known, dir) = (VERSIONS.join(" and "), dir.path().to_owned());
            let what = format!(
                "its format is version {found}, {known} are known; use the program that wrote {}",
                dir.display()
            );
            StoreError::Foreign { dir, what }
        }
        ParseError::Damaged(offset, what) => damaged(as_u64(offset), what).into(),
    })?;
    let file_bytes = as_u64(bytes.len());
    drop(bytes);
    let mut take = |change| entries.apply(change);
    let log = number.map(|number| change_log::scan(dir, number, host_restarted, &mut take)).transpose()?;
    let changed = log.as_ref().is_some_and(|log| log.changes > 0);
    let manifest = Manifest::of(entries).map_err(|what| match &log {
        Some(log) if changed => Damage { file: log.path.clone(), offset: 0, what },
        _ => damaged(body_at, what),
    })?;
    Ok(Some(Loaded { manifest, file_bytes, log }))
}

/// Puts the manifest of a store on the host's disk that has none yet, or one of the first format, and gives its log. Until
/// the rename the store is as it was.
pub(super) fn begin(dir: &Dir, manifest: &Manifest) -> Result<ChangeLog, StoreError> {
    let bytes = encode(manifest.entries(), change_log::FIRST);
    let log = ChangeLog::create(dir, change_log::FIRST, as_u64(bytes.len()))?;
    write_new(dir, &bytes).and_then(|()| put_in_place(dir)).inspect_err(|_| log.discard())?;
    // From here on the log is named, whatever becomes of the sync.
    sync_names(dir)?;
    Ok(log)
}

/// The bytes of a manifest whose changes are in the log with a number.
pub(super) fn encode(entries: &Entries, changes: u64) -> Vec<u8> {
    let Entries { next_layer, layers, volumes, snapshots } = entries;
    let written = Written { changes, next_layer: *next_layer, layers, volumes, snapshots };
    let body = serde_json::to_vec(&written).expect("the manifest has string and integer keys only");
    let version = VERSIONS[1];
    let head = format!("{MAGIC} {version} {:08x} {}\n", crc32c::crc32c(&body), body.len());
    [head.into_bytes(), body].concat()
}

/// Writes the file that is to take the manifest's place, and puts it on the host's disk.
pub(super) fn write_new(dir: &Dir, bytes: &[u8]) -> Result<(), StoreError> {
    let path = dir.path().join(NEW_MANIFEST);
    let write = || {
        let mut file = dir.file(NEW_MANIFEST, Access::Empty)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| {
        drop(dir.remove(NEW_MANIFEST));
        StoreError::io("write", &path)(e)
    })?;
    notify_synced(Synced::Content(&path));
    Ok(())
}

/// Puts it in the manifest's place.
pub(super) fn put_in_place(dir: &Dir) -> Result<(), StoreError> {
    dir.rename(NEW_MANIFEST, MANIFEST).map_err(|e| {
        drop(dir.remove(NEW_MANIFEST));
        StoreError::io("write", dir.path().join(MANIFEST))(e)
    })
}

/// Puts the names of the manifest and its log on the host's disk.
pub(super) fn sync_names(dir: &Dir) -> Result<(), StoreError> {
    sync_dir(dir)?;
    notify_synced(Synced::Name(&dir.path().join(NEW_MANIFEST), &dir.path().join(MANIFEST)));
    Ok(())
}

/// Puts the names in a directory on the host's disk.
pub(super) fn sync_dir(dir: &Dir) -> Result<(), StoreError> {
    dir.sync().map_err(StoreError::io("sync", dir.path()))
}

enum ParseError {
    Version(String),
    Damaged(usize, String),
}

/// Where the JSON begins, the number of the log, and the entries.
fn parse(bytes: &[u8]) -> Result<(u64, Option<u64>, Entries), ParseError> {
    let damaged = |offset: usize, what: String| ParseError::Damaged(offset, what);
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
    if !VERSIONS.contains(&version) {
        return Err(ParseError::Version(version.to_owned()));
    }
    let Read { changes, next_layer, layers, volumes, snapshots } =
        serde_json::from_slice(body).map_err(|e| damaged(end + 1, e.to_string()))?;
    if changes.is_some() != (version == VERSIONS[1]) {
        let what = format!("version {version} with the log {changes:?}");
        return Err(damaged(end + 1, what));
    }
    Ok((as_u64(end + 1), changes, Entries { next_layer, layers, volumes, snapshots }))
}

fn as_u64(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}
