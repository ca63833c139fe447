//! The records of snapshots as the EBS direct APIs need them: those that are put together from blocks, and what may be
//! read of all others.

use std::collections::BTreeMap;

use ebbtide_control::{BeginSnapshot, ControlError, ControlPlane};

use super::db::Change;
use super::ids::Kind;
use super::records::{
    COPIED_VOLUME, Direct, Permissions, Snapshot, SnapshotExtras, Stage, TIMED_OUT, TokenUse,
};
use super::state::State;
use super::{Ec2, ask::gib};
use crate::kms::{KeyProblem, VolumeKey};
use crate::{Call, RecordsError};

/// How long the end of a pending snapshot may be known too late: each block moves it, and not each is recorded.
const GRACE_MS: u64 = 60_000;

/// Who a snapshot belongs to, for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    /// The caller.
    ByCaller,
    /// Another account, which lets the caller read it.
    Shared,
    /// Another account, which lets everyone make volumes of it.
    Public,
    /// Another account, which keeps it from the caller.
    ByOther,
}

/// A snapshot of the caller's region.
#[derive(Debug, Clone)]
pub(crate) struct SeenSnapshot {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) owned: Owned,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) description: String,
    pub(crate) size_gib: u64,
    pub(crate) started_ms: u64,
    /// `pending`, `completed` or `error`.
    pub(crate) state: &'static str,
    /// Whether it was put together from blocks, and the snapshot that it began as.
    pub(crate) direct: Option<Option<String>>,
    /// The ARN of its key; none: it is not encrypted.
    pub(crate) kms_key: Option<String>,
    /// Whether blocks can still be put.
    pub(crate) is_open: bool,
    /// Whether its data are in the archive tier.
    pub(crate) is_archived: bool,
}

impl SeenSnapshot {
    fn of(snapshot: &Snapshot, call: &Call<'_>) -> Option<Self> {
        let account = call.caller.account.as_str();
        let owned = if snapshot.owner == account {
            Owned::ByCaller
        } else if snapshot.permissions.users.contains(account) {
            Owned::Shared
        } else if snapshot.permissions.all {
            Owned::Public
        } else {
            Owned::ByOther
        };
        Some(Self {
            id: snapshot.id.clone(),
            owner: snapshot.owner.clone(),
            owned,
            tags: snapshot.tags.clone().into_iter().collect(),
            description: snapshot.description.clone(),
            size_gib: snapshot.size_gib,
            started_ms: snapshot.started_ms,
            state: snapshot.state(call.now_ms)?,
            direct: snapshot.direct.as_ref().map(|direct| direct.parent.clone()),
            kms_key: snapshot.kms_key.clone(),
            is_open: snapshot.is_open(call.now_ms),
            is_archived: !snapshot.is_usable(call.now_ms),
        })
    }
}

/// A snapshot to begin.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) size_gib: u64,
    pub(crate) parent: Option<String>,
    pub(crate) description: String,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) timeout_ms: u64,
    pub(crate) token: Option<String>,
    /// The key of one without a parent; none: it is not encrypted.
    pub(crate) key: Option<VolumeKey>,
    /// What a repeated call must ask for too.
    pub(crate) parameters: String,
}

/// Why a snapshot is not begun, or not recorded.
#[derive(Debug)]
pub(crate) enum DirectError {
    /// The token was used with other parameters.
    TokenUsed,
    /// So many snapshots are pending already.
    TooManyPending(usize),
    /// So many snapshots are there already.
    TooMany(usize),
    /// The key cannot be used.
    Key(KeyProblem),
    Control(ControlError),
    Db(RecordsError),
}

impl From<ControlError> for DirectError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

impl From<RecordsError> for DirectError {
    fn from(error: RecordsError) -> Self {
        Self::Db(error)
    }
}

impl Ec2 {
    pub(crate) fn control(&self) -> &dyn ControlPlane {
        &*self.control
    }

    /// A snapshot of the call's region, whoever owns it; none that is deleted.
    pub(crate) fn seen_snapshot(&self, call: &Call<'_>, id: &str) -> Option<SeenSnapshot> {
        let state = self.state.lock();
        let snapshot = state.snapshots().get(id).filter(|snapshot| snapshot.region == call.region)?;
        SeenSnapshot::of(snapshot, call)
    }

    /// Begins a snapshot, or finds the one that an earlier call with the same token has begun.
    pub(crate) fn start_direct(&self, call: &Call<'_>, start: Start) -> Result<SeenSnapshot, DirectError> {
        let mut state = self.state.lock();
        let key = start.token.as_ref().map(|token| token_key(call, token));
        let known = key.as_ref().and_then(|key| state.token(key));
        if let Some((known, made)) = known.and_then(|known| Some((known, made_by(&state, known)?))) {
            if known.parameters != start.parameters {
                return Err(DirectError::TokenUsed);
            }
            return SeenSnapshot::of(made, call).ok_or(DirectError::TokenUsed);
        }
        self.room_for_direct(&state, call)?;
        let now = call.now_ms;
        let id = state.new_id(Kind::Snapshot);
        let parent = start.parent.as_ref().and_then(|parent| state.snapshots().get(parent));
        let mut kms_key = parent.and_then(|parent| parent.kms_key.clone());
        let data_key = match (&start.key, &self.kms) {
            (Some(wrapping), Some(kms)) => {
                kms_key = Some(wrapping.arn.clone());
                Some(kms.new_data_key(wrapping, &id).map_err(DirectError::Key)?)
            }
            _ => None,
        };
        let mut snapshot = Snapshot {
            id,
            owner: call.caller.account.clone(),
            region: call.region.to_owned(),
            volume: COPIED_VOLUME.to_owned(),
            size_gib: start.size_gib,
            data_bytes: 0,
            kms_key,
            description: start.description,
            started_ms: now,
            completes_ms: now,
            stage: Stage::Making,
            error: None,
            copy: false,
            completion_minutes: None,
            permissions: Permissions::default(),
            tags: start.tags.into_iter().collect(),
            transfer: None,
            fast_restores: Vec::new(),
            direct: Some(Direct {
                parent: start.parent.clone(),
                timeout_ms: start.timeout_ms,
                ends_ms: now.saturating_add(start.timeout_ms),
                progress: None,
                sealed: false,
            }),
            extras: SnapshotExtras::default(),
        };
        state.try_commit(vec![Change::Snapshot(snapshot.clone())])?;
        let request = BeginSnapshot {
            name: snapshot.id.clone(),
            size_bytes: gib(start.size_gib),
            parent: start.parent,
            key: data_key,
        };
        if let Err(error) = self.control.begin_snapshot(&request) {
            state.try_commit(vec![Change::DropSnapshot(snapshot.id)])?;
            return Err(error.into());
        }
        snapshot.stage = Stage::Ready;
        let mut changes = vec![Change::Snapshot(snapshot.clone())];
        let made = vec![snapshot.id.clone()];
        let parameters = start.parameters;
        changes.extend(key.map(|key| Change::Token(TokenUse { key, used_ms: now, parameters, made })));
        state.try_commit(changes)?;
        SeenSnapshot::of(&snapshot, call).ok_or(DirectError::TokenUsed)
    }

    fn room_for_direct(&self, state: &State, call: &Call<'_>) -> Result<(), DirectError> {
        let quotas = &self.options.quotas;
        let own = || {
            let is_own = |snapshot: &&Snapshot| {
                snapshot.owner == call.caller.account && snapshot.region == call.region
            };
            state.snapshots().values().filter(is_own)
        };
        let most = quotas.pending_direct;
        if own().filter(|snapshot| snapshot.is_open(call.now_ms)).count() >= most {
            return Err(DirectError::TooManyPending(most));
        }
        let most = quotas.snapshots;
        if own().count() >= most { Err(DirectError::TooMany(most)) } else { Ok(()) }
    }

    /// Lets an open snapshot stay open for its timeout from now on, and notes its progress.
    pub(crate) fn extend_direct(
        &self,
        call: &Call<'_>,
        id: &str,
        progress: Option<u64>,
    ) -> Result<(), DirectError> {
        let mut state = self.state.lock();
        let Some(mut snapshot) = state.snapshots().get(id).cloned() else { return Ok(()) };
        let Some(direct) = snapshot.direct.as_mut().filter(|direct| !direct.sealed) else { return Ok(()) };
        let ends_ms = call.now_ms.saturating_add(direct.timeout_ms);
        let is_later = ends_ms > direct.ends_ms;
        let has_gone_on = progress.is_some_and(|progress| Some(progress) > direct.progress);
        if !is_later && !has_gone_on {
            return Ok(());
        }
        if is_later {
            direct.ends_ms = ends_ms.saturating_add(GRACE_MS);
        }
        direct.progress = direct.progress.max(progress);
        Ok(state.try_commit(vec![Change::Snapshot(snapshot)])?)
    }

    /// Ends an open snapshot: with its data, or with the reason for which it will be in `error`.
    pub(crate) fn seal_direct(
        &self,
        call: &Call<'_>,
        id: &str,
        error: Option<&str>,
    ) -> Result<(), DirectError> {
        let mut state = self.state.lock();
        let Some(mut snapshot) = state.snapshots().get(id).cloned() else { return Ok(()) };
        let Some(direct) = snapshot.direct.as_mut() else { return Ok(()) };
        direct.sealed = true;
        match error {
            None => {
                // A start after a kill finds the snapshot without its seal, and seals it.
                let view = match self.control.complete_snapshot(id) {
                    Err(ControlError::NotFound { .. }) => self.control.snapshot(id),
                    other => other,
                }?;
                snapshot.data_bytes = view.data_bytes;
                snapshot.completes_ms = call.now_ms.saturating_add(self.pending_ms(view.data_bytes));
                state.try_commit(vec![Change::Snapshot(snapshot)])?;
            }
            Some(error) => {
                snapshot.error = Some(error.to_owned());
                snapshot.completes_ms = call.now_ms.saturating_add(self.pending_ms(0));
                state.try_commit(vec![Change::Snapshot(snapshot)])?;
                self.forget_blocks(id)?;
            }
        }
        Ok(())
    }

    /// Frees what was put of snapshots whose time is over; the ids of all that are open after that.
    pub(crate) fn expire_direct(&self, now_ms: u64) -> Result<Vec<String>, DirectError> {
        let mut state = self.state.lock();
        let unsealed = state.snapshots().values().filter(|snapshot| snapshot.is_unsealed());
        let (open, over): (Vec<Snapshot>, Vec<Snapshot>) =
            unsealed.cloned().partition(|snapshot| snapshot.is_open(now_ms));
        for mut snapshot in over {
            let id = snapshot.id.clone();
            snapshot.error = Some(TIMED_OUT.to_owned());
            if let Some(direct) = &mut snapshot.direct {
                snapshot.completes_ms = direct.ends_ms;
                direct.sealed = true;
            }
            state.try_commit(vec![Change::Snapshot(snapshot)])?;
            self.forget_blocks(&id)?;
        }
        Ok(open.into_iter().map(|snapshot| snapshot.id).collect())
    }

    /// Deletes the data of a snapshot that was never completed.
    pub(super) fn forget_blocks(&self, id: &str) -> Result<(), ControlError> {
        match self.control.abandon_snapshot(id) {
            Ok(()) | Err(ControlError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the data of a snapshot, completed or not.
    pub(super) fn forget_snapshot(&self, snapshot: &Snapshot) -> Result<(), ControlError> {
        if snapshot.direct.is_some() || snapshot.copy {
            self.forget_blocks(&snapshot.id)?;
        }
        match self.control.delete_snapshot(&snapshot.id) {
            Ok(()) | Err(ControlError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The snapshot that a token has begun, as long as it is there.
fn made_by<'a>(state: &'a State, known: &TokenUse) -> Option<&'a Snapshot> {
    let snapshot = state.snapshots().get(known.made.first()?)?;
    (snapshot.stage == Stage::Ready).then_some(snapshot)
}

/// No action of EC2 has this name, so that its tokens are others.
fn token_key(call: &Call<'_>, token: &str) -> String {
    format!("{}/{}/{}/{token}", call.caller.account, call.region, call.action)
}
