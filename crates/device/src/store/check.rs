//! The full check of a store, and the reading of one layer that opening shares with it.

use std::collections::BTreeSet;
use std::path::Path;

use super::boot::host_restarted;
use super::entries::LayerId;
use super::files::{data_name, data_path};
use super::home::{former_manifests, layers, lock, orphans};
use super::journal::{Scan, journal_path, scan};
use super::manifest::Manifest;
use super::manifest_file::{MANIFEST, load};
use super::maps::SEGMENTS;
use super::{BLOCK_BYTES, CheckReport, Damage, StoreError};
use ebbtide_dir::Dir;

/// Reads all metadata of a store that no process has open, changes nothing, and lists every damage.
///
/// With `volume`, only what that volume needs is looked at. The bytes of data have no checksums: of the data files it is
/// checked that they are long enough for every block that the journals put there.
///
/// # Errors
///
/// [`StoreError::Locked`] while the store is open, [`StoreError::NotFound`] for an unknown volume,
/// [`StoreError::Foreign`] for the store of a later version, [`StoreError::Io`] where there is no store or the host does
/// not let it read. Damage is no error here; it is in the report.
pub fn check(dir: &Path, volume: Option<&str>) -> Result<CheckReport, StoreError> {
    let dir = &Dir::open(dir).map_err(StoreError::io("open", dir))?;
    let _lock = lock(dir, false)?;
    let restarted = host_restarted(dir);
    let mut report = CheckReport::default();
    let loaded = match load(dir, restarted) {
        Ok(Some(loaded)) => loaded,
        Ok(None) => {
            let file = dir.path().join(MANIFEST);
            report.damages.push(Damage { file, offset: 0, what: "the file is missing".to_owned() });
            return Ok(report);
        }
        Err(StoreError::Damaged(damage)) => {
            report.damages.push(damage);
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    let (manifest, layers_dir) = (loaded.manifest, layers(dir)?);
    if let Some(log) = loaded.log.as_ref().filter(|log| log.torn_bytes > 0) {
        let (file, bytes, offset) = (log.path.display(), log.torn_bytes, log.end);
        let note =
            format!("{file} ends in a torn change ({bytes} bytes at {offset}), which the next open cuts off");
        report.notes.push(note);
    }
    let layers: BTreeSet<LayerId> = match volume {
        Some(name) => {
            let not_found = || StoreError::NotFound { kind: "volume", name: name.to_owned() };
            let entry = manifest.volumes().get(name).ok_or_else(not_found)?;
            report.volumes = 1;
            manifest.chain(entry.top).into_iter().collect()
        }
        None => {
            report.volumes = manifest.volumes().len();
            report.snapshots = manifest.snapshots().len();
            let former = former_manifests(dir, loaded.log.as_ref().map(|log| log.number))?;
            let former = former.into_iter().map(|name| dir.path().join(name));
            let orphans = orphans(&layers_dir, &manifest)?.into_iter();
            for path in former.chain(orphans.map(|name| layers_dir.path().join(name))) {
                report.notes.push(format!("{} is left over; the next open removes it", path.display()));
            }
            manifest.layers().keys().copied().collect()
        }
    };
    for id in layers {
        check_layer(&layers_dir, &manifest, id, restarted, &mut report)?;
    }
    Ok(report)
}

fn check_layer(
    dir: &Dir,
    manifest: &Manifest,
    id: LayerId,
    restarted: bool,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let mut scan = load_layer(dir, id, manifest.parent(id).is_some(), restarted)?;
    report.layers += 1;
    report.records += scan.records;
    report.blocks += scan.maps.data_blocks();
    if let Some(torn) = &scan.torn {
        let (file, bytes, offset) = (journal_path(dir, id), torn.bytes, torn.offset);
        let note = format!(
            "{} ends in {} ({bytes} bytes at {offset}), which the next open cuts off",
            file.display(),
            torn.why.name()
        );
        report.notes.push(note);
    }
    let unsealed = scan.unsealed();
    if unsealed > 0 {
        report.unsealed += unsealed;
        report.notes.push(format!(
            "{} has {unsealed} of {} records that are not sealed, as after a kill: it cannot be determined whether more followed \
             them; opening the store seals them",
            journal_path(dir, id).display(),
            scan.records
        ));
    }
    if let (Some(name), Some(last)) = (manifest.volume_on(id), scan.maps.last_data()) {
        let size = manifest.volumes().get(name).map_or(0, |v| v.size_bytes);
        if (last + 1) * BLOCK_BYTES > size {
            let what = format!("block {last} is beyond the {size} bytes of volume {name}");
            scan.damages.push(Damage { file: journal_path(dir, id), offset: 0, what });
        }
    }
    report.damages.append(&mut scan.damages);
    Ok(())
}

/// Reads the journal of a layer and compares it with the data files.
pub(super) fn load_layer(
    dir: &Dir,
    id: LayerId,
    has_parent: bool,
    host_restarted: bool,
) -> Result<Scan, StoreError> {
    let mut scan = scan(dir, id, has_parent, host_restarted)?;
    for segment in 0..SEGMENTS {
        let Some(last) = scan.maps.last_data_in_segment(segment) else { continue };
        let file = data_path(dir, id, segment);
        let len = dir.stat(data_name(id, segment)).map(|found| u64::try_from(found.st_size).unwrap_or(0));
        let what = match len {
            Ok(len) if len < (last + 1) * BLOCK_BYTES => {
                Some((len, "the file ends before a block it has to hold"))
            }
            Ok(_) => None,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some((0, "the file is missing")),
            Err(e) => return Err(StoreError::io("examine", file)(e)),
        };
        if let Some((offset, what)) = what {
            scan.damages.push(Damage { file, offset, what: what.to_owned() });
        }
    }
    Ok(scan)
}
