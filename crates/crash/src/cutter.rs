//! Cuts: crash images of all volumes of a server at one instant, and what was in flight then.

use std::collections::BTreeMap;
use std::time::Instant;

use ebbtide_device::engine::{CrashReport, CutWrite, GroupCut, ImageRequest, Keep, crash_images};
use ebbtide_device::host::HostError;
use ebbtide_lab::experiment::Role;
use ebbtide_lab::run::error::StepError;
use ebbtide_lab::run::home::{Lab, TRIAL_PREFIX};
use ebbtide_load::invariant::{Expected, Journal};
use ebbtide_mysql::recovery::page;
use ebbtide_text::seed;
use ebbtide_volume::Nanos;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use super::file_map::{FileMap, PAGE};
use super::mounted_arm::MountedArm;
use super::record::{Cut, FileKind, InFlight, PageState, TornWrite};
use super::stint_load::Marks;

/// Writes in flight that a cut keeps at most, the largest first.
const MOST_IN_FLIGHT: usize = 48;
/// Torn page writes that a cut keeps at most.
const MOST_TORN: usize = 4;

/// The images of a cut in the store, by role.
pub(super) type Images = BTreeMap<Role, String>;

/// A cut that waits for its judgement.
#[derive(Debug)]
pub(super) struct PendingCut {
    /// Its record so far.
    pub(super) cut: Cut,
    pub(super) images: Images,
    pub(super) state: CutState,
}

/// What the clients, and a replica, had done at the moment of a cut.
#[derive(Debug)]
pub(super) struct CutState {
    /// What each client had sent and what was acknowledged to it.
    pub(super) expected: Vec<Expected>,
    /// What a replica had applied, at least; none of a primary, and where its source is gone.
    pub(super) applied: Option<Marks>,
    /// When each commit was acknowledged; none for a cut that is judged again.
    pub(super) journal: Option<Journal>,
    /// When it was.
    pub(super) at: Instant,
}

/// The seed of a cut: from the run's, its arm and its number.
pub(super) fn seed_of(run: u64, arm: &str, number: u32) -> u64 {
    let mixed = run ^ seed::fnv1a(arm.bytes()) ^ (u64::from(number) << 40);
    Xoshiro256PlusPlus::seed_from_u64(mixed).next_u64()
}

/// The volume that an image is.
pub(super) fn image_name(seed: u64, role: Role) -> String {
    format!("{TRIAL_PREFIX}cut-{}-{}", seed::hex(seed), role.volume_name())
}

/// Images of all volumes, of one instant.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) images: Images,
    /// What the power cut that each shows would have done, by what the volume holds.
    pub(super) reports: BTreeMap<Role, CrashReport>,
    /// The instant.
    pub(super) at: Instant,
    /// How long no write could complete on any of the volumes.
    pub(super) paused: Nanos,
}

/// Takes the images of all volumes of an arm. The seed decides about each unit in flight, in each volume
/// with draws of its own.
pub(super) fn take(lab: &Lab, mounted: &MountedArm<'_>, seed: u64, keep: Keep) -> Result<Taken, StepError> {
    let images: Images = mounted.volumes.keys().map(|role| (*role, image_name(seed, *role))).collect();
    let requests: Vec<ImageRequest<'_>> = mounted
        .volumes
        .iter()
        .map(|(role, volume)| ImageRequest {
            volume: volume.live(),
            image: &images[role],
            seed: seed ^ seed::fnv1a(role.key().bytes()),
            meta: Value::Null,
        })
        .collect();
    let GroupCut { at, paused, images: reports } =
        crash_images(lab.host.store(), &requests, keep).map_err(HostError::from)?;
    // The reports come in the order of the requests, which is that of the volumes.
    let reports = mounted.volumes.keys().copied().zip(reports).collect();
    Ok(Taken { images, reports, at, paused })
}

/// Copies the volumes of an arm as they are, for a server that was killed: its operating system lives, and
/// so does what it had answered.
pub(super) fn copy(lab: &Lab, mounted: &MountedArm<'_>, seed: u64) -> Result<Images, StepError> {
    Ok(take(lab, mounted, seed, Keep::Nothing)?.images)
}

/// Throws images away.
pub(super) fn delete(lab: &Lab, images: &Images) {
    for image in images.values() {
        if let Err(error) = lab.host.store().delete_volume(image) {
            lab.note_trouble(format!("crash image {image} is left until the next run clears it: {error}"));
        }
    }
}

/// Writes down what was in flight.
pub(super) fn describe(cut: &mut Cut, maps: &BTreeMap<Role, FileMap>, taken: &Taken) {
    let mut torn = Vec::new();
    let mut all = Vec::new();
    for (role, report) in &taken.reports {
        cut.writes_in_flight += report.cut.writes_in_flight;
        cut.cached_units_lost += report.cut.cached_units_lost;
        for write in &report.writes {
            let found = maps[role].find(write.offset);
            all.push(InFlight {
                role: *role,
                kind: found.kind,
                file: found.file.to_owned(),
                offset: found.offset,
                len: write.len,
                units: write.units,
                new_units: u64::try_from(write.new.len()).unwrap_or(u64::MAX),
            });
            if write.is_torn() && found.kind == FileKind::Page {
                torn.extend(torn_pages(write, found.file, found.offset));
            }
        }
    }
    all.sort_by_key(|write| (std::cmp::Reverse(write.is_torn()), std::cmp::Reverse(write.len)));
    all.truncate(MOST_IN_FLIGHT);
    // The first page of a file is what all others hang on.
    torn.sort_by_key(|write| write.page);
    torn.truncate(MOST_TORN);
    cut.in_flight = all;
    cut.torn_writes = torn;
    cut.paused_us = taken.paused.as_secs_f64() * 1e6;
}

/// The pages of a write of which the image has a part. `at` is where the write begins in its file.
fn torn_pages(write: &CutWrite, file: &str, at: u64) -> Vec<TornWrite> {
    let page = usize::try_from(PAGE).expect("a page is small");
    let is_new = |offset: u64| write.new.iter().any(|(from, len)| (*from..from + len).contains(&offset));
    let whole = write.before.len() == write.after.len() && at.is_multiple_of(PAGE);
    let count = if whole { write.after.len() / page } else { 0 };
    let pages = (0..count).map(|index| {
        let range = index * page..(index + 1) * page;
        let (before, after) = (&write.before[range.clone()], &write.after[range]);
        let start = write.offset + u64::try_from(index * page).expect("inside a write");
        let new: Vec<bool> = (0..PAGE / UNIT).map(|unit| is_new(start + unit * UNIT)).collect();
        let unit = usize::try_from(UNIT).expect("a unit is small");
        let halves = before.chunks(unit).zip(after.chunks(unit)).zip(&new);
        let found: Vec<u8> =
            halves.flat_map(|((old, fresh), new)| if *new { fresh } else { old }).copied().collect();
        TornWrite {
            file: file.to_owned(),
            page: at / PAGE + u64::try_from(index).expect("inside a write"),
            before: state(before),
            after: state(after),
            found: state(&found),
            new,
        }
    });
    pages.filter(|torn| torn.new.contains(&true) && torn.new.contains(&false)).collect()
}

/// The smallest atomic unit, bytes.
const UNIT: u64 = 4 << 10;

fn state(bytes: &[u8]) -> PageState {
    let blank = bytes.iter().all(|byte| *byte == 0);
    match page::inspect(bytes) {
        Some(facts) => PageState {
            lsn: facts.lsn_head,
            lsn_tail: facts.lsn_tail,
            kind: facts.kind_name().to_owned(),
            blank,
        },
        None => PageState { blank, ..PageState::default() },
    }
}
