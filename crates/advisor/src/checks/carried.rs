//! What checks of volumes share: each volume of the server, what it carries, and what another one costs.

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_observe::{Device, NotSeen, Role};
use ebbtide_volume::RateLimit;

use super::doublewrite::{Demand, PageWriteSettings, Workload};
use crate::finding::{FINE, Found, Gap, Judged, Severity};
use crate::view::View;

/// Operations and bytes a second.
pub(super) struct Load {
    pub(super) ios: f64,
    pub(super) bytes: f64,
}

/// Judges each volume of the server, the data's first. What is found of several is one finding.
pub(super) fn each(v: &View<'_>, severity: Severity, judge: fn(&View<'_>, Role) -> Judged) -> Judged {
    let (mut together, mut gap, mut fine): (Option<Found>, Option<Gap>, bool) = (None, None, false);
    let mut others = Vec::new();
    for files in v.volumes() {
        let own = v.of_files(files);
        match judge(&own, files) {
            Ok(Some(found)) => {
                v.take(own);
                together = Some(match together {
                    Some(earlier) => earlier.and(found, severity),
                    None => found,
                });
            }
            judged => {
                fine |= judged.is_ok();
                // What is not known goes before what has no meaning.
                let worse = |gap: &Option<Gap>| !matches!(gap, Some(Gap::Missing(_) | Gap::Undecided(_)));
                if let Err(own_gap) = judged
                    && worse(&gap)
                {
                    gap = Some(own_gap);
                }
                others.push(own);
            }
        }
    }
    if together.is_some() {
        return Ok(together);
    }
    others.into_iter().for_each(|own| v.take(own));
    match gap {
        Some(Gap::DoesNotApply(_)) if fine => FINE,
        Some(gap) => Err(gap),
        None => FINE,
    }
}

/// The volume of files as the subject of a sentence.
pub(super) fn subject(files: Role) -> String {
    match files {
        Role::Data => "The volume".to_owned(),
        _ => format!("The volume of the {}", files.holds()),
    }
}

/// What the volume of files carries: as the kernel counted it, else as follows from the server's counters.
pub(super) fn load(v: &View<'_>, volume: &Resolved, files: Role) -> Result<Load, Gap> {
    let device = v.device_of(files).ok();
    if let Some(device) = device {
        is_the_array(device, volume)?;
    }
    let load = if let Some(io) = device.and_then(|device| device.io) {
        // The confidence of an interval.
        let _ = v.metric("page_writes");
        Load { ios: io.reads + io.writes, bytes: io.read_bytes + io.written_bytes }
    } else {
        counted(v, files)?
    };
    v.noted("volume_ios", load.ios, "operations a second on the volume");
    v.noted("volume_bytes", load.bytes, "bytes a second on the volume");
    Ok(load)
}

/// The load of a volume by the server's counters.
fn counted(v: &View<'_>, files: Role) -> Result<Load, Gap> {
    match files {
        Role::Data => {}
        Role::Redo => {
            return Ok(Load { ios: v.metric("redo_writes")?, bytes: v.metric("redo_bytes")? });
        }
        // No counter has the operations of the binary log.
        _ => return Err(no_device_io()),
    }
    let undecided = |error: &dyn std::fmt::Display| Gap::Undecided(format!("{error}."));
    let _ = v.metric("page_writes")?;
    let settings = PageWriteSettings::of(v.observation()).map_err(|error| undecided(&error))?;
    let work = Workload::of(v.observation()).map_err(|error| undecided(&error))?;
    let unit = 256 << 10;
    let without = Demand::without(&work, &settings, unit);
    let both = without.and(Demand::of_doublewrite(&work, &settings, unit));
    Ok(Load { ios: both.ios, bytes: both.bytes })
}

pub(super) fn no_device_io() -> Gap {
    Gap::Missing(NotSeen {
        what: "what the device did".into(),
        why: "run this on the server's machine, or capture iostat -x".into(),
    })
}

/// Refuses a volume of other members than the array below the data: limits are those of all members, and so is the load.
/// One device may be an array itself, of Ebbtide or of a controller.
fn is_the_array(device: &Device, volume: &Resolved) -> Result<(), Gap> {
    let (devices, volumes) = (device.members.len(), volume.members.len());
    if devices == 0 || devices == volumes {
        return Ok(());
    }
    Err(Gap::Undecided(format!(
        "{devices} devices ({}) are below one file system, and --volume names {volumes}: name the array, such as raid0({devices}x {}).",
        device.members.join(", "),
        volume.spec.volume
    )))
}

/// The shares of IOPS and of throughput that are used; 0 where there is no limit.
pub(super) fn limit_shares(volume: &Resolved, load: &Load) -> (f64, f64) {
    let members = volume.members.len() as f64;
    let share =
        |used: f64, rate: Option<RateLimit>| rate.map_or(0.0, |rate| used / (rate.ceiling as f64 * members));
    (share(load.ios, volume.members[0].iops), share(load.bytes, volume.members[0].throughput))
}

pub(super) fn is_kind(volume: &Resolved, kind: &str) -> bool {
    volume.spec.volume.kind.eq_ignore_ascii_case(kind)
}

/// A volume in place of another.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) spec: Spec,
    /// The spec, with what both cost a month where that is known.
    words: String,
}

impl std::fmt::Display for Replacement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

/// The same volume with another type, and what both cost a month.
pub(super) fn instead(
    v: &View<'_>,
    volume: &Resolved,
    kind: &str,
    iops: Option<u64>,
    mib_s: Option<u64>,
) -> Result<Replacement, Gap> {
    let mut spec = Spec { volume: volume.spec.volume.clone(), raid0: volume.spec.raid0 };
    kind.clone_into(&mut spec.volume.kind);
    (
        spec.volume.iops,
        spec.volume.throughput_mib_s,
        spec.volume.credits,
        spec.volume.as_of,
        spec.volume.twp,
    ) = (iops, mib_s, None, None, None);
    let other = v.catalog().resolve(&spec).map_err(|error| Gap::Undecided(format!("{kind}: {error}.")))?;
    let words = match cost(v.catalog(), volume).zip(cost(v.catalog(), &other)) {
        Some((before, after)) => format!("{spec}: {after} a month in place of {before}"),
        None => spec.to_string(),
    };
    Ok(Replacement { spec, words })
}

/// What gp3 has for nothing.
pub(super) fn free_iops(v: &View<'_>) -> u64 {
    v.catalog().provisioning("gp3").and_then(|gp3| gp3.iops).map_or(0, |iops| iops.min)
}

/// The least IOPS with which a gp3 has so much throughput, MiB/s.
pub(super) fn iops_for(v: &View<'_>, mib_s: u64) -> u64 {
    let throughput = v.catalog().provisioning("gp3").and_then(|gp3| gp3.throughput);
    throughput.map_or(0, |range| whole_number((mib_s as f64 / range.per_iops).ceil()))
}

/// The same volume as a gp3 with so many IOPS and MiB/s, within what gp3 has, and what both cost a month.
pub(super) fn as_gp3(v: &View<'_>, volume: &Resolved, iops: u64, mib_s: u64) -> Result<Replacement, Gap> {
    let ranges = v.catalog().provisioning("gp3").and_then(|gp3| gp3.iops.zip(gp3.throughput));
    let Some((iops_range, range)) = ranges else {
        return Err(Gap::Undecided(
            "The catalogue has no gp3 whose IOPS and throughput are for sale.".into(),
        ));
    };
    let mib_s = mib_s.clamp(range.min, range.max);
    let iops = iops.max(iops_for(v, mib_s)).clamp(iops_range.min, iops_range.max);
    instead(v, volume, "gp3", Some(iops), Some(mib_s))
}

/// What a volume costs a month; None without a price.
pub(super) fn cost_of(v: &View<'_>, spec: &Spec) -> Option<String> {
    cost(v.catalog(), &v.catalog().resolve(spec).ok()?)
}

fn cost(catalog: &Catalog, volume: &Resolved) -> Option<String> {
    let prices = catalog.prices(None).ok()?;
    let cost = prices.monthly_cost(volume)?;
    Some(format!("{} ({}, {})", cost.usd, cost.region, cost.as_of))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
pub(super) fn whole_number(iops: f64) -> u64 {
    iops as u64
}
