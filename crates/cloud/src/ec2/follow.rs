//! Volumes that commands made, changed, attached or deleted: the records follow the home.
//!
//! The control plane notes which volumes have changed, so that a call without a change costs nothing. The store decides what a
//! volume is and whose it is; a record adds what EC2 alone knows, such as tags. Lock order: the records, then the control plane.

use ebbtide_catalog::{Catalog, Initialization, Spec};
use ebbtide_control::VolumeIdentity;

use super::Ec2;
use super::db::Change;
use super::events::of_modification;
use super::filter::Tags;
use super::ids::Kind;
use super::places;
use super::records::{Attachment, Modification, Shape, Stage, Volume};
use super::shape;
use super::state::State;
use crate::RecordsError;
use crate::service::with_causes;

impl Ec2 {
    /// Brings the records up to the volumes of the home, at a time in milliseconds since 1970. Where that fails, the next call
    /// tries all volumes again.
    pub(super) fn follow(&self, now: u64) {
        let mut state = self.state.lock();
        let anew = std::mem::take(&mut state.is_behind);
        let changed = self.control.changed_volumes(anew);
        if let Err(error) = self.follow_these(&mut state, changed, now) {
            state.is_behind = true;
            tracing::warn!(error = with_causes(&error), "EC2 does not show the latest changes of volumes");
        }
    }

    /// The same for volumes by their ids.
    pub(super) fn follow_these(
        &self,
        state: &mut State,
        ids: Vec<String>,
        now: u64,
    ) -> Result<(), RecordsError> {
        let mut changes = Vec::new();
        let mut occupied = Vec::new();
        for id in ids {
            let known = state.volumes().get(&id);
            let Some(found) = self.control.identity(&id) else {
                // One that a call made is missed at the next start.
                changes.extend(known.filter(|volume| is_of_command(volume)).map(|_| Change::DropVolume(id)));
                continue;
            };
            let followed = match known {
                Some(known) if known.stage != Stage::Ready || known.failure.is_some() => continue,
                Some(known) => self.followed(known, &found, now),
                None => match new_record(&self.options.catalog, &found) {
                    Some(volume) => volume,
                    // AWS has no volume of this type.
                    None => continue,
                },
            };
            if !found.has_own_owner {
                self.keep_owner(&followed);
            }
            let is_held = followed.attachments.iter().any(Attachment::has_device);
            // While it is on its way, it is what it was.
            occupied.extend(found.is_attached.map(|is_attached| (id, is_attached && !is_held)));
            if known != Some(&followed) {
                if known.is_some_and(|known| known.modifications != followed.modifications) {
                    self.events.expect(of_modification(&followed));
                }
                changes.push(Change::Volume(followed));
            }
        }
        if !changes.is_empty() {
            state.try_commit(changes)?;
        }
        for (id, is_occupied) in occupied {
            state.occupy(&id, is_occupied);
        }
        Ok(())
    }

    /// A record as it is after what commands did to its volume.
    fn followed(&self, known: &Volume, found: &VolumeIdentity, now: u64) -> Volume {
        let mut volume = known.clone();
        // An instance and its volumes are of one owner: what an instance has is given to nobody.
        if found.has_own_owner && !volume.attachments.iter().any(Attachment::holds) {
            set_owner(&mut volume, found);
        }
        let shape = shape_of(&self.options.catalog, found).filter(|_| volume.pending.is_none());
        if let Some(shape) = shape {
            let has_multi_attach = matches!(shape.kind.as_str(), "io1" | "io2");
            let to = Shape { multi_attach: volume.shape.multi_attach && has_multi_attach, ..shape };
            if to != volume.shape {
                let from = std::mem::replace(&mut volume.shape, to.clone());
                modification(found, now, (from, to))
                    .into_iter()
                    .for_each(|latest| volume.note_modification(latest));
            }
        }
        volume
    }

    /// Stores the owner that a record has with its volume, which an earlier version made.
    fn keep_owner(&self, volume: &Volume) {
        if let Err(error) = self.control.set_owner(&volume.id, &volume.owner_request()) {
            tracing::warn!(volume = volume.id, %error, "the owner of a volume is not stored with it");
        }
    }
}

/// Whether a command made the volume of a record that is ready.
fn is_of_command(volume: &Volume) -> bool {
    volume.name.is_some() && volume.stage == Stage::Ready
}

/// The record of a volume that a command made; None where AWS has no volume of its type.
fn new_record(catalog: &Catalog, found: &VolumeIdentity) -> Option<Volume> {
    let created_ms = u64::try_from(found.created.0).unwrap_or_default().saturating_mul(1_000);
    let mut volume = Volume {
        id: found.id.clone(),
        name: Some(found.name.clone()),
        owner: String::new(),
        region: String::new(),
        zone: String::new(),
        shape: shape_of(catalog, found)?,
        // One of a command has no id.
        snapshot: found.from_snapshot.clone().filter(|name| Kind::Snapshot.is_id(name)),
        initialization_rate: match found.initialization {
            Some(Initialization::Rate { mib_s }) => Some(mib_s),
            _ => None,
        },
        fast_restored: false,
        copied: None,
        kms_key: found.key_id.clone(),
        failure: None,
        created_ms,
        // It was available before it had a record.
        available_ms: 0,
        stage: Stage::Ready,
        lost: false,
        auto_enable_io: false,
        initialized: false,
        tags: Tags::from([("Name".to_owned(), found.name.clone())]),
        attachments: Vec::new(),
        modifications: Vec::new(),
        pending: None,
        token: None,
        occupied: false,
    };
    set_owner(&mut volume, found);
    Some(volume)
}

fn set_owner(volume: &mut Volume, found: &VolumeIdentity) {
    volume.owner.clone_from(&found.owner.account);
    volume.zone.clone_from(&found.owner.zone);
    places::region_of(&found.owner.zone).clone_into(&mut volume.region);
}

/// What AWS shows of a volume; None where it has none of its type, or of an array.
fn shape_of(catalog: &Catalog, found: &VolumeIdentity) -> Option<Shape> {
    let spec = Spec::parse(&found.spec).ok()?;
    if spec.raid0.is_some() || !shape::TYPES.contains(&spec.volume.kind.as_str()) {
        return None;
    }
    let shape = shape::shape(&catalog.resolve(&spec).ok()?);
    Some(Shape { size_gib: found.size_bytes.div_ceil(1 << 30), ..shape })
}

/// The latest modification, which a command asked for. It has begun, whatever the clock of the control plane has: calls have
/// another one.
fn modification(found: &VolumeIdentity, now: u64, (from, to): (Shape, Shape)) -> Option<Modification> {
    let record = found.modification?;
    let unix_ms = |unix_s: i64| u64::try_from(unix_s).unwrap_or_default().saturating_mul(1_000);
    let ahead_ms = unix_ms(record.started_unix_s).saturating_sub(now);
    let ms = |unix_s: i64| unix_ms(unix_s).saturating_sub(ahead_ms);
    Some(Modification {
        started_ms: ms(record.started_unix_s),
        optimizing_ms: ms(record.optimizing_unix_s),
        completes_ms: ms(record.completes_unix_s),
        from,
        to,
    })
}
