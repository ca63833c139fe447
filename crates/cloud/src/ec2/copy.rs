//! CopySnapshot.

use parking_lot::MutexGuard;
use serde_json::{Map, Value};

use super::access::{self, Right};
use super::ask::{Ask, Members};
use super::db::Change;
use super::encryption::{self, Found};
use super::filter::Tags;
use super::ids::Kind;
use super::records::{COPIED_VOLUME, Permissions, Snapshot, SnapshotExtras, Stage, Transfer};
use super::snapshots::description;
use super::state::{State, is_of};
use super::{Ec2, places, quota, refuse, tags, tier};
use crate::ApiError;
use crate::kms::KeyProblem;

/// A copy that a call asks for.
struct Wanted<'a> {
    source: &'a str,
    region: &'a str,
    description: String,
    completion_minutes: Option<u64>,
    tags: Tags,
}

impl<'a> Wanted<'a> {
    fn read(ask: &Ask<'a>) -> Result<Self, ApiError> {
        let input = ask.input;
        let source = input.required("SourceSnapshotId", "sourceSnapshotId")?;
        let region = input.required("SourceRegion", "sourceRegion")?;
        if !Kind::Snapshot.is_id(source) {
            return Err(refuse::invalid_value("The specified snapshotId is invalid"));
        }
        if !places::is_region(region) && region != ask.region() {
            return Err(ApiError::client("InvalidRegion", format!("{region} is not a valid region name.")));
        }
        if let Some(other) =
            input.text("DestinationRegion").filter(|at| !at.is_empty() && *at != ask.region())
        {
            let message =
                format!("DestinationRegion '{other}' does not match the current region ({})", ask.region());
            return Err(refuse::invalid_value(message));
        }
        Ok(Self {
            source,
            region,
            description: description(ask)?.to_owned(),
            completion_minutes: completion_minutes(ask)?,
            tags: tags::of_new(input, Kind::Snapshot)?,
        })
    }
}

/// Refuses what this service does not have.
fn refuse_unbuilt(ask: &Ask<'_>) -> Result<(), ApiError> {
    let named = |member: &str| ask.input.text(member).is_some_and(|text| !text.is_empty());
    if named("DestinationOutpostArn") || named("DestinationAvailabilityZone") {
        return Err(refuse::unsupported("A copy outside of a region"));
    }
    Ok(())
}

impl Ec2 {
    pub(super) fn copy_snapshot(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let wanted = Wanted::read(ask)?;
        let mut state = self.state.lock();
        let found = state.open_snapshot(ask, wanted.region, wanted.source).ok().cloned();
        Right::on(ask, "CopySnapshot", Kind::Snapshot, "*").requests(&wanted.tags).demand(ask)?;
        access::copied_snapshot(ask, wanted.region, found.as_ref(), wanted.source).demand(ask)?;
        access::demand_tagging(ask, Kind::Snapshot, &wanted.tags)?;
        ask.end_dry_run()?;
        refuse_unbuilt(ask)?;
        let wish = self.wish_of_copy(ask, &state, found.as_ref().map(Into::into))?;
        self.may_copy(ask, &state, found.as_ref())?;
        let key = self.find_key(ask, wish, found.as_ref().map(Into::into))?;
        if let Found::Unusable(name, problem) = &key
            && *problem != KeyProblem::NotFound
            && ask.input.text("KmsKeyId") == Some(name)
        {
            return Err(encryption::refused_key(name, problem));
        }
        let copy = Snapshot {
            id: state.new_id(Kind::Snapshot),
            owner: ask.account().to_owned(),
            region: ask.region().to_owned(),
            volume: COPIED_VOLUME.to_owned(),
            size_gib: found.as_ref().map_or(0, |found| found.size_gib),
            data_bytes: 0,
            kms_key: key.arn(),
            description: wanted.description,
            started_ms: ask.now(),
            completes_ms: ask.now() + self.pending_ms(0),
            stage: Stage::Making,
            error: None,
            copy: true,
            completion_minutes: wanted.completion_minutes,
            permissions: Permissions::default(),
            tags: wanted.tags,
            transfer: None,
            fast_restores: Vec::new(),
            direct: None,
            extras: SnapshotExtras {
                copied_from: Some((wanted.region.to_owned(), wanted.source.to_owned())),
                ..SnapshotExtras::default()
            },
        };
        let copy = self.make_copy(&mut state, copy, found.as_ref(), &key)?;
        let tags = tags::members(&copy.tags);
        Ok(Members::default().put("SnapshotId", copy.id).put("Tags", tags).end())
    }

    /// Whether the source's state and the copies in progress allow another one.
    fn may_copy(&self, ask: &Ask<'_>, state: &State, source: Option<&Snapshot>) -> Result<(), ApiError> {
        match source.and_then(|source| source.state(ask.now())) {
            None | Some("completed") => {}
            Some(other) => {
                return Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {other}")));
            }
        }
        source.map_or(Ok(()), |source| tier::demand_usable(source, ask.now()))?;
        let running = state.snapshots().values().filter(|snapshot| {
            snapshot.copy
                && is_of(ask, &snapshot.owner, &snapshot.region)
                && snapshot.state(ask.now()) == Some("pending")
        });
        let most = self.options.quotas.pending_copies;
        if running.count() >= most {
            let message = format!(
                "Too many snapshot copies in progress. The limit is {most} for this destination region."
            );
            return Err(ApiError::client("ResourceLimitExceeded", message));
        }
        quota::room_for_snapshots(&self.options.quotas, state, ask, 1)
    }

    /// Makes a copy of a snapshot, or the record of one that fails later: AWS looks for source and key after its answer.
    fn make_copy(
        &self,
        state: &mut MutexGuard<'_, State>,
        mut copy: Snapshot,
        source: Option<&Snapshot>,
        key: &Found,
    ) -> Result<Snapshot, ApiError> {
        let failure = match (source, key) {
            (None, _) => Some("Source snapshot is not found"),
            (_, Found::Unusable(..)) => Some("Given key ID is not accessible"),
            _ => None,
        };
        let (Some(source), None) = (source, failure) else {
            copy.error = failure.map(str::to_owned);
            copy.stage = Stage::Ready;
            state.commit(vec![Change::Snapshot(copy.clone())])?;
            return Ok(copy);
        };
        let data_key = self.data_key(key, &copy.id)?;
        state.commit(vec![Change::Snapshot(copy.clone())])?;
        let copied = match &data_key {
            None => self.control.copy_snapshot(&source.id, &copy.id),
            // That takes the time of the data: the records are free meanwhile.
            Some(key) => {
                MutexGuard::unlocked(state, || self.control.encrypt_snapshot(&source.id, &copy.id, key))
            }
        };
        match copied {
            Ok(view) => {
                let moved = if data_key.is_some() {
                    transfer_of_all(&mut copy, source, view.data_bytes)
                } else {
                    self.transfer(state, &mut copy, source, view.data_bytes)
                };
                self.note_taken(&mut copy, &view, moved);
            }
            Err(error) => {
                state.commit(vec![Change::DropSnapshot(copy.id)])?;
                return Err(refuse::of_control(&error));
            }
        }
        state.commit(vec![Change::Snapshot(copy.clone())])?;
        Ok(copy)
    }

    /// Notes how much a copy moves: nothing within a Region and account; else what the latest copy of the same volume, from
    /// the same Region and account, does not have (EBS user guide, `ebs-copy-snapshot`). The bytes.
    fn transfer(&self, state: &State, copy: &mut Snapshot, source: &Snapshot, data_bytes: u64) -> u64 {
        let lineage = lineage(source);
        let within = source.region == copy.region && source.owner == copy.owner;
        let is_of_lineage = |other: &&Snapshot| {
            other.id != copy.id
                && other.owner == copy.owner
                && other.region == copy.region
                && other.has_data()
                && other.kms_key == copy.kms_key
                && other
                    .transfer
                    .as_ref()
                    .is_some_and(|transfer| transfer.lineage == lineage && transfer.region == source.region)
        };
        let latest =
            state.snapshots_of(COPIED_VOLUME).filter(is_of_lineage).max_by_key(|other| other.started_ms);
        let bytes = match latest {
            _ if within => 0,
            Some(latest) => self.changed_bytes(Some(&latest.id), &copy.id, data_bytes),
            None => data_bytes,
        };
        copy.transfer = Some(Transfer {
            region: source.region.clone(),
            lineage,
            incremental: within || latest.is_some(),
            bytes: if source.region == copy.region { 0 } else { bytes },
        });
        bytes
    }
}

/// What a snapshot has in common with those to which its copies are incremental.
fn lineage(source: &Snapshot) -> String {
    match &source.transfer {
        Some(earlier) => earlier.lineage.clone(),
        None if source.volume == COPIED_VOLUME => source.id.clone(),
        None => source.volume.clone(),
    }
}

/// Notes that a copy moves all data, since it is encrypted anew. The bytes.
fn transfer_of_all(copy: &mut Snapshot, source: &Snapshot, data_bytes: u64) -> u64 {
    copy.transfer = Some(Transfer {
        region: source.region.clone(),
        lineage: lineage(source),
        incremental: false,
        bytes: if source.region == copy.region { 0 } else { data_bytes },
    });
    data_bytes
}

fn completion_minutes(ask: &Ask<'_>) -> Result<Option<u64>, ApiError> {
    let Some(minutes) = ask.input.number("CompletionDurationMinutes") else { return Ok(None) };
    if !(15..=2_880).contains(&minutes) || minutes % 15 != 0 {
        return Err(refuse::invalid_value(format!(
            "'{minutes}' is not a valid value for completion duration. Specify a value between 15 and 2880 minutes, \
             in 15 minute increments only"
        )));
    }
    Ok(u64::try_from(minutes).ok())
}
