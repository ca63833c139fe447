//! CopyVolumes: a volume with the content that another one has at one instant.
//!
//! The copy is made of a snapshot of its own, which is deleted again: the block store shares the layers of both volumes.
//! All blocks are there at once. Until the copy counts as initialized, the limits of provisioned types are lower (EBS user guide,
//! `ebs-copying-volume`).

use std::time::Duration;

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_control::{ControlError, CreateSnapshot, CreateVolume, ModifyVolume, Optimizing, WrappedKey};
use parking_lot::MutexGuard;
use serde_json::{Map, Value};

use super::access;
use super::ask::{Ask, Members};
use super::encryption::Wish;
use super::ids::Kind;
use super::places::{self, Zone};
use super::records::{Shape, Volume};
use super::shape::{self, Asked};
use super::state::State;
use super::volumes::{BLOCK_BYTES, Wanted, refuse_unbuilt};
use super::{Ec2, describe_volumes, quota, refuse, tags};
use crate::ApiError;

/// What a copy performs at most until it is initialized.
const BASELINE_IOPS: u64 = 3_000;
const BASELINE_MIB_S: u64 = 125;

const TIB: u64 = 1 << 40;

/// How long a copy of so much data is initialized, in milliseconds: 6 hours for the first TiB, 1.2 for each further one up
/// to 16 TiB, 24 beyond. Less than a TiB takes its share.
fn initialization_ms(data_bytes: u64) -> u64 {
    const HOUR_MS: u64 = 3_600_000;
    let first = share(6 * HOUR_MS, data_bytes.min(TIB));
    let further = share(HOUR_MS * 12 / 10, data_bytes.saturating_sub(TIB));
    (first + further).min(24 * HOUR_MS)
}

/// What a part of a TiB takes of the time of a whole one.
fn share(tib_ms: u64, bytes: u64) -> u64 {
    let ms = u128::from(tib_ms) * u128::from(bytes) / u128::from(TIB);
    u64::try_from(ms).unwrap_or(u64::MAX)
}

/// What a copy is until it is initialized; none where its type has no provisioned figures, or they are not higher.
fn baseline(source: &Shape, copy: &Shape) -> Option<Shape> {
    let least = |provisioned: Option<u64>, other: Option<u64>, most: u64| {
        provisioned.map(|own| own.min(most).min(other.unwrap_or(most)))
    };
    // A gp3 cannot be slower than its own baseline, which is the same.
    let (source_iops, source_mib_s) =
        if copy.kind == "gp3" { (None, None) } else { (source.iops, source.throughput) };
    let lower = Shape {
        iops: least(copy.iops, source_iops, BASELINE_IOPS),
        throughput: least(copy.throughput, source_mib_s, BASELINE_MIB_S),
        ..copy.clone()
    };
    (matches!(copy.kind.as_str(), "gp3" | "io1" | "io2") && lower != *copy).then_some(lower)
}

/// The name of the snapshot of which a copy is made.
pub(super) fn snapshot_name(copy: &str) -> String {
    format!("copy-{copy}")
}

impl Ec2 {
    pub(super) fn copy_volumes(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("SourceVolumeId", "sourceVolumeId")?;
        Kind::Volume.check(id, "sourceVolumeId")?;
        let mut state = self.state.lock();
        let source = access::permitted_volume(ask, &state, id)?.clone();
        let wanted = self.read_copy(ask, &state, &source)?;
        let zone_id = &wanted.zone.id;
        let mut right = access::new_volume(ask, &wanted.provision, &source.zone, zone_id);
        if let Wish::Same(key) | Wish::Own(key) = &wanted.encryption {
            right = right.encrypted(self.kms.as_ref().and_then(|kms| kms.arn_of(ask.call, key)).as_ref());
        }
        right.requests(&wanted.tags).demand(ask)?;
        access::demand_tagging(ask, Kind::Volume, &wanted.tags)?;
        ask.end_dry_run()?;
        refuse_unbuilt(ask, &wanted.provision.shape.kind)?;
        let parameters = wanted.parameters();
        let answer = |volume: &Volume, state| {
            let volume = describe_volumes::of_create(ask, volume, state);
            Members::default().put("Volumes", vec![Value::Object(volume)]).end()
        };
        if let Some(known) = state.made_by(ask, &parameters)? {
            let id = known.made.first().map_or("", String::as_str);
            let volume = state.volume(ask, id)?;
            return Ok(answer(volume, volume.state(ask.now())));
        }
        self.may_copy_volume(ask, &state, &source)?;
        quota::room_for_volume(&self.options.quotas, &state, ask, &wanted.provision.shape, None)?;
        let key = self.find_key(ask, wanted.encryption.clone(), Some((&source).into()))?;
        let volume = self.make_volume(ask, &mut state, (wanted, &key), Some(parameters))?;
        self.expect_events_of_new(ask, &volume);
        Ok(answer(&volume, Some("creating")))
    }

    fn read_copy(&self, ask: &Ask<'_>, state: &State, source: &Volume) -> Result<Wanted, ApiError> {
        let tags = tags::of_new(ask.input, Kind::Volume)?;
        let least = source.shape.size_gib;
        let provision = shape::provision(&self.options.catalog, &Asked::read(ask.input)?, Some(least))?;
        let size_gib = provision.shape.size_gib;
        if size_gib < least {
            let message = format!(
                "Volume of {size_gib}GiB is smaller than source volume '{}', expect size >= {least}GiB",
                source.id
            );
            return Err(refuse::invalid_value(message));
        }
        let id = places::zone_id(&source.region, &source.zone);
        let zone = Zone { name: source.zone.clone(), id };
        Ok(Wanted {
            zone,
            provision,
            snapshot: None,
            source: Some(source.clone()),
            rate: None,
            charged: None,
            tags,
            encryption: self.wish_of_volume(ask, state, Some(source.into()))?,
        })
    }

    /// Whether the state of a volume, and the copies in progress, allow a copy of it.
    fn may_copy_volume(&self, ask: &Ask<'_>, state: &State, source: &Volume) -> Result<(), ApiError> {
        let (now, id) = (ask.now(), &source.id);
        match source.state(now) {
            Some("available" | "in-use") => {}
            _ => {
                let message = format!("Volume '{id}' is not in the 'available' or 'in-use' state.");
                return Err(refuse::incorrect_state(message));
            }
        }
        if source.modifications.last().is_some_and(|latest| latest.state(now) == "modifying") {
            let message = format!("Volume {id} cannot be copied in modification state MODIFYING");
            return Err(ApiError::client("IncorrectModificationState", message));
        }
        if source.is_copying(now) {
            let message = format!("Volume '{id}' is a copy that is being initialized.");
            return Err(refuse::incorrect_state(message));
        }
        let copies = || {
            let of_caller = state.volumes().values().filter(|copy| {
                copy.owner == ask.account() && copy.region == ask.region() && copy.is_copying(now)
            });
            of_caller.filter_map(|copy| copy.copied.as_ref())
        };
        let limit = |message: String| Err(ApiError::client("CopyVolumesLimitExceeded", message));
        if copies().any(|copied| copied.source == *id) {
            return limit(format!(
                "A copy of volume '{id}' is in progress; the limit is 1 for a source volume."
            ));
        }
        let most = self.options.quotas.volume_copies;
        if copies().count() >= most {
            return limit(format!(
                "Too many volume copies in progress. The limit is {most} for this region."
            ));
        }
        Ok(())
    }

    /// Makes a copy on this host; how long it is initialized, in milliseconds. Where it fails, nothing of it stays.
    pub(super) fn copy_here(
        &self,
        state: &mut MutexGuard<'_, State>,
        source: &Volume,
        (copy, spec, data_key): (&Volume, Spec, Option<WrappedKey>),
    ) -> Result<u64, ControlError> {
        // To encrypt the data anew takes its time: the records are free meanwhile.
        let made = if data_key.is_some() {
            MutexGuard::unlocked(state, || self.try_copy_here(source, copy, spec, data_key))
        } else {
            self.try_copy_here(source, copy, spec, None)
        };
        if made.is_err()
            && let Err(error) = self.forget_copy(&copy.id)
        {
            tracing::warn!(volume = copy.id, %error, "a part of a copy stays behind");
        }
        made
    }

    fn try_copy_here(
        &self,
        source: &Volume,
        copy: &Volume,
        spec: Spec,
        data_key: Option<WrappedKey>,
    ) -> Result<u64, ControlError> {
        let snapshot = snapshot_name(&copy.id);
        let taken = CreateSnapshot { name: snapshot.clone(), volume: source.id.clone() };
        let data_bytes = self.control.create_snapshot(&taken)?.data_bytes;
        let ms = if self.options.timing.volume_copies { initialization_ms(data_bytes) } else { 0 };
        // In whole seconds, as modifications are.
        let span = Duration::from_secs(ms.div_ceil(1_000));
        let lower = baseline(&source.shape, &copy.shape).filter(|_| !span.is_zero());
        self.control.create_volume(&CreateVolume {
            name: copy.id.clone(),
            spec: lower.as_ref().map_or(spec, shape::spec_of),
            snapshot: Some(snapshot.clone()),
            initialization: Some(Initialization::None),
            block_size: BLOCK_BYTES,
            seed: None,
            region: None,
            token: None,
            // Without one, that of the snapshot.
            key: data_key,
            owner: Some(copy.owner_request()),
        })?;
        if lower.is_some() {
            let request = ModifyVolume {
                name: copy.id.clone(),
                spec: shape::spec_of(&copy.shape),
                optimizing: Optimizing::Decided { modifying: span, completes: span },
                over_limit: true,
            };
            self.control.modify_volume(&request, &|_| ())?;
        }
        self.control.delete_snapshot(&snapshot)?;
        Ok(ms)
    }

    /// Deletes what there is of a copy on this host.
    pub(super) fn forget_copy(&self, id: &str) -> Result<(), ControlError> {
        for gone in [self.control.delete_volume(id), self.control.delete_snapshot(&snapshot_name(id))] {
            match gone {
                Ok(()) | Err(ControlError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_initialized_as_long_as_documented() {
        const MINUTE_MS: u64 = 60_000;
        for (data_bytes, minutes) in
            [(0, 0), (TIB / 2, 180), (TIB, 360), (2 * TIB, 432), (16 * TIB, 1_440), (64 * TIB, 1_440)]
        {
            assert_eq!(initialization_ms(data_bytes), minutes * MINUTE_MS, "{data_bytes}");
        }
    }

    #[test]
    fn a_copy_has_the_least_of_the_documented_three_until_it_is_initialized() {
        let shape = |kind: &str, iops, throughput| Shape {
            kind: kind.to_owned(),
            size_gib: 100,
            iops: Some(iops),
            throughput,
            multi_attach: false,
        };
        let least =
            |source: &Shape, copy: &Shape| baseline(source, copy).map(|lower| (lower.iops, lower.throughput));
        let (fast, slow) = (shape("gp3", 9_000, Some(500)), shape("gp3", 3_000, Some(125)));
        assert_eq!(least(&fast, &fast), Some((Some(3_000), Some(125))));
        assert_eq!(least(&fast, &slow), None, "it is not faster");
        assert_eq!(least(&fast, &shape("io2", 8_000, None)), Some((Some(3_000), None)));
        assert_eq!(least(&shape("io1", 500, None), &shape("io2", 8_000, None)), Some((Some(500), None)));
        assert_eq!(least(&fast, &shape("gp2", 300, None)), None);
    }
}
