//! The EBS direct APIs: snapshots are read, compared and put together in blocks of 512 KiB.
//!
//! [`Ebs`] answers calls. Its records are EC2's ([`Ec2`]): a snapshot that is begun here is described there. Blocks are in
//! the block store of the control plane, so that what was put survives this process.
//!
//! `Ebs::call` is where a call arrives. The blocks of snapshots are `blocks.rs` and `pending.rs` of `crates/device/src/store`; between
//! the two is `crates/control/src/live/blocks.rs`.

mod input;
mod put;
mod read;
mod refuse;
mod tokens;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ebbtide_control::SNAPSHOT_BLOCK_BYTES;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::ec2::Ec2;
use crate::ec2::direct::{Owned, SeenSnapshot};
use crate::{Access, Answer, ApiError, Call, Service, partition};

use tokens::Tokens;

/// How long tokens of blocks and pages are good, in milliseconds: what AWS says in `ExpiryTime`, a little under seven days.
const TOKEN_MS: u64 = 585_000_000;

/// How often snapshots are looked through for those whose time is over, in milliseconds of the calls' time.
const EXPIRE_MS: u64 = 60_000;

/// The actions, in alphabetical order.
const ACTIONS: [&str; 6] = [
    "CompleteSnapshot",
    "GetSnapshotBlock",
    "ListChangedBlocks",
    "ListSnapshotBlocks",
    "PutSnapshotBlock",
    "StartSnapshot",
];

/// The only algorithm of checksums.
const SHA256: &str = "SHA256";

/// The checksums of the blocks that were put in this process, by index. Of others the blocks are read again.
type Checksums = BTreeMap<u64, [u8; 32]>;

/// The service `ebs` of a home.
#[derive(Debug)]
pub struct Ebs {
    ec2: Arc<Ec2>,
    tokens: Tokens,
    /// By open snapshot. Held while a block is put, and while the snapshot is completed: no block comes between.
    open: Mutex<BTreeMap<String, Arc<Mutex<Checksums>>>>,
    /// When snapshots were looked through last.
    expired_ms: Mutex<u64>,
}

impl Ebs {
    /// Opens the service over the records and volumes of EC2, which is open in the same home.
    ///
    /// # Errors
    /// The key of its tokens can be neither read nor made.
    pub fn open(home: &Path, ec2: Arc<Ec2>) -> io::Result<Self> {
        let tokens = Tokens::open(home)?;
        Ok(Self { ec2, tokens, open: Mutex::new(BTreeMap::new()), expired_ms: Mutex::new(0) })
    }

    /// Frees what belongs to snapshots whose time is over, from time to time.
    fn expire(&self, now_ms: u64) -> Result<(), ApiError> {
        let mut expired_ms = self.expired_ms.lock();
        if now_ms < expired_ms.saturating_add(EXPIRE_MS) {
            return Ok(());
        }
        let open = self.ec2.expire_direct(now_ms).map_err(|error| refuse::of_direct(&error, ""))?;
        self.open.lock().retain(|id, _| open.contains(id));
        *expired_ms = now_ms;
        Ok(())
    }

    /// A snapshot of the caller, in whatever state, once the caller may act on it.
    fn own(&self, call: &Call<'_>, id: &str) -> Result<SeenSnapshot, ApiError> {
        let seen = self.ec2.seen_snapshot(call, id).filter(|seen| seen.owned == Owned::ByCaller);
        demand(call, id, seen.as_ref())?;
        seen.ok_or_else(|| refuse::not_found(id))
    }

    /// Refuses the data of an encrypted snapshot to whom its key does not allow them.
    fn demand_data(&self, call: &Call<'_>, seen: &SeenSnapshot) -> Result<(), ApiError> {
        let key = seen.kms_key.as_deref();
        let refused = |problem| refuse::of_key(&problem, key.unwrap_or_default());
        self.ec2.demand_data(call, key).map_err(refused)
    }

    /// A completed snapshot that the caller may read.
    fn readable(&self, call: &Call<'_>, id: &str) -> Result<SeenSnapshot, ApiError> {
        let seen = self.ec2.seen_snapshot(call, id).filter(|seen| seen.state == "completed");
        demand(call, id, seen.as_ref())?;
        let seen = seen.ok_or_else(|| refuse::not_found(id))?;
        match seen.owned {
            Owned::ByCaller | Owned::Shared => {}
            Owned::Public => {
                return Err(refuse::invalid("INVALID_SNAPSHOT_ID", "Public snapshots are not supported"));
            }
            Owned::ByOther => return Err(refuse::not_found(id)),
        }
        if seen.is_archived {
            let message = format!("The snapshot '{id}' is in the archive tier.");
            return Err(refuse::invalid("INVALID_SNAPSHOT_ID", message));
        }
        Ok(seen)
    }
}

/// The ARN of a snapshot.
fn arn(call: &Call<'_>, id: &str) -> String {
    format!("arn:{}:ec2:{}::snapshot/{id}", partition::of_region(call.region), call.region)
}

/// Demands the right to the call's action on a snapshot, whether it exists or not.
fn demand(call: &Call<'_>, id: &str, seen: Option<&SeenSnapshot>) -> Result<(), ApiError> {
    // The tags of others' snapshots are theirs.
    let own = seen.filter(|seen| seen.owned == Owned::ByCaller);
    let tag = |(key, value): (&String, &String)| (format!("aws:ResourceTag/{key}"), vec![value.clone()]);
    call.authorize(&Access {
        action: format!("ebs:{}", call.action).into(),
        resource: arn(call, id),
        context: own.into_iter().flat_map(|seen| &seen.tags).map(tag).collect(),
    })
}

/// The blocks of a disk.
const fn blocks_of(size_gib: u64) -> u64 {
    size_gib.saturating_mul((1 << 30) / SNAPSHOT_BLOCK_BYTES)
}

impl Service for Ebs {
    fn name(&self) -> &'static str {
        "ebs"
    }

    fn actions(&self) -> &'static [&'static str] {
        &ACTIONS
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        self.expire(call.now_ms)?;
        let plain = |output: Map<String, Value>| Answer { output, payload: Vec::new() };
        match call.action {
            "CompleteSnapshot" => self.complete_snapshot(call).map(plain),
            "GetSnapshotBlock" => self.get_snapshot_block(call),
            "ListChangedBlocks" => self.list_changed_blocks(call).map(plain),
            "ListSnapshotBlocks" => self.list_snapshot_blocks(call).map(plain),
            "PutSnapshotBlock" => self.put_snapshot_block(call).map(plain),
            "StartSnapshot" => self.start_snapshot(call).map(plain),
            other => Err(ApiError::client(
                "UnknownOperationException",
                format!("The operation {other} is not known."),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ACTIONS;
    use crate::model::Model;

    #[test]
    fn every_operation_of_the_model_is_built() {
        let model = Model::of("ebs").unwrap();
        assert_eq!(model.actions().collect::<Vec<_>>(), ACTIONS);
    }
}
