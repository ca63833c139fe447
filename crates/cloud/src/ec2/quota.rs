//! Quotas of an account in a region.

use super::ask::Ask;
use super::options::Quotas;
use super::records::{Power, Shape, Stage, Volume};
use super::state::{State, is_of};
use crate::ApiError;

/// The volumes of the caller that count.
fn own<'a>(state: &'a State, ask: &'a Ask<'_>) -> impl Iterator<Item = &'a Volume> {
    let counts = move |volume: &&Volume| {
        !matches!(volume.stage, Stage::Gone { .. }) && is_of(ask, &volume.owner, &volume.region)
    };
    state.volumes().values().filter(counts)
}

/// Refuses a volume for which there is no room. `instead_of` is what a volume is before its modification.
pub(super) fn room_for_volume(
    quotas: &Quotas,
    state: &State,
    ask: &Ask<'_>,
    shape: &Shape,
    instead_of: Option<&Shape>,
) -> Result<(), ApiError> {
    let (mut volumes, mut size_gib, mut iops) = (0, 0, 0);
    for volume in own(state, ask) {
        volumes += 1;
        if volume.shape.kind == shape.kind {
            size_gib += volume.shape.size_gib;
            iops += volume.shape.iops.unwrap_or_default();
        }
    }
    let before = instead_of.filter(|before| before.kind == shape.kind);
    let size_gib = size_gib + shape.size_gib - before.map_or(0, |before| before.size_gib).min(size_gib);
    let iops =
        iops + shape.iops.unwrap_or_default() - before.and_then(|before| before.iops).unwrap_or(0).min(iops);
    let kind = &shape.kind;
    if instead_of.is_none() && quotas.volumes.is_some_and(|most| volumes >= most) {
        let message = "You have exceeded the maximum number of volumes.";
        return Err(ApiError::client("VolumeLimitExceeded", message));
    }
    let most = if kind == "io2" { quotas.io2_gib } else { quotas.type_gib };
    if size_gib > most {
        let message = format!(
            "You have exceeded your maximum {kind} storage limit of {} TiB in this region.",
            most >> 10
        );
        return Err(ApiError::client("VolumeLimitExceeded", message));
    }
    let most = match kind.as_str() {
        "io1" => quotas.io1_iops,
        "io2" => quotas.io2_iops,
        _ => u64::MAX,
    };
    if iops > most {
        let message = format!("You have exceeded your maximum {kind} limit of {most} IOPS in this region.");
        return Err(ApiError::client("MaxIOPSLimitExceeded", message));
    }
    Ok(())
}

/// Refuses a modification where too much storage is being modified.
pub(super) fn room_for_modification(
    quotas: &Quotas,
    state: &State,
    ask: &Ask<'_>,
    shape: &Shape,
) -> Result<(), ApiError> {
    let now = ask.now();
    let modifying = own(state, ask).filter(|volume| {
        volume.shape.kind == shape.kind
            && volume.modifications.last().is_some_and(|latest| now < latest.completes_ms)
    });
    let size_gib: u64 = modifying.map(|volume| volume.shape.size_gib).sum();
    let most = if shape.kind == "io2" { quotas.modifying_io2_gib } else { quotas.modifying_gib };
    if size_gib + shape.size_gib > most {
        let message = format!(
            "You have exceeded the {} TiB of {} storage that can be modified.",
            most >> 10,
            shape.kind
        );
        return Err(ApiError::client("VolumeModificationSizeLimitExceeded", message));
    }
    Ok(())
}

/// Refuses snapshots for which there is no room.
pub(super) fn room_for_snapshots(
    quotas: &Quotas,
    state: &State,
    ask: &Ask<'_>,
    more: usize,
) -> Result<(), ApiError> {
    // Most homes have fewer than the quota in all.
    if state.snapshots().len() + more <= quotas.snapshots {
        return Ok(());
    }
    let own = state.snapshots().values().filter(|snapshot| is_of(ask, &snapshot.owner, &snapshot.region));
    if own.count() + more > quotas.snapshots {
        let message = format!("You have exceeded the maximum of {} snapshots.", quotas.snapshots);
        return Err(ApiError::client("SnapshotLimitExceeded", message));
    }
    Ok(())
}

/// Refuses instances for which there is no room.
pub(super) fn room_for_instances(
    quotas: &Quotas,
    state: &State,
    ask: &Ask<'_>,
    more: usize,
) -> Result<(), ApiError> {
    let now = ask.now();
    let own = state.instances().values().filter(|instance| {
        is_of(ask, &instance.owner, &instance.region)
            && matches!(instance.power(now), Power::Pending | Power::Running)
    });
    let running = own.count();
    if running + more > quotas.instances {
        let message = format!(
            "You have requested more instances ({}) than your current instance limit of {} allows for the \
             specified instance type.",
            running + more,
            quotas.instances
        );
        return Err(ApiError::client("InstanceLimitExceeded", message));
    }
    Ok(())
}
