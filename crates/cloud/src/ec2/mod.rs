//! The EC2 service, as far as EBS needs it: volumes, snapshots, tags, and stand-ins for instances.
//!
//! [`Ec2`] answers calls. Behind each volume is one of the control plane, which knows it by its id: it has the id as its name, or
//! a command made it ([`follow`]). What commands may do is in [`commands`]. Records of what AWS knows besides are in `aws.db` of the home ([`db`]), and in memory ([`state`]). What must be done to both is done in
//! an order that a start after a kill can end or take back ([`reconcile`]). docs/decisions/ec2-state.md has the reasons.
//!
//! An action is a row of the table `actions!`; the records are `records.rs`, their places `state.rs` and `db.rs`. Which key a volume has
//! is `encryption.rs`; `direct.rs` has the snapshots of the EBS direct APIs, `bin.rs` what the Recycle Bin keeps. `Ec2::expect` in
//! `events.rs` notes an event for the time at which it is published.

mod access;
mod ask;
mod attach;
pub(crate) mod bin;
mod commands;
mod copy;
mod copy_volumes;
mod db;
mod describe_instances;
mod describe_snapshots;
mod describe_volumes;
mod devices;
pub(crate) mod direct;
mod encryption;
mod enumerations;
mod events;
mod exports;
mod fast_restore;
mod filter;
mod follow;
mod ids;
mod images;
mod instance_attributes;
mod instance_status;
mod instance_types;
mod instances;
mod inventory;
mod launch;
mod links;
mod lock;
mod modify;
mod multi_attach;
mod networks;
mod options;
mod owned;
mod page;
mod places;
mod public_access;
mod quota;
mod reconcile;
mod records;
mod refuse;
mod remove;
mod restore_credits;
mod retention;
mod shape;
mod snapshot_attribute;
mod snapshots;
mod state;
mod status;
mod tag_set;
mod tags;
mod tier;
mod unbuilt;
mod volumes;

use std::path::Path;
use std::sync::Arc;

use ebbtide_control::{ControlError, ControlPlane};
use ebbtide_text::seed;
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use commands::{DeleteError, Hold, StoredRecords};
pub use options::{AttachAs, DEVICE_LINKS, Options, Quotas, Timing};
pub use owned::remove_device_links;
pub use places::{first_zone, is_zone};

pub(crate) use places::is_region as is_enabled_region;

use ask::Ask;
use db::Db;
use state::State;

use crate::kms::Kms;
use crate::{Answer, ApiError, Call, RecordsError, Service};

/// The VPC that an account has without making one.
const DEFAULT_VPC: &str = "vpc-00000000000000001";

/// The EC2 service of a home.
#[derive(Debug)]
pub struct Ec2 {
    control: Arc<dyn ControlPlane>,
    options: Options,
    state: Mutex<State>,
    events: events::Events,
    exports: exports::Exports,
    /// See [`Self::sharing`].
    sharing: Mutex<()>,
    /// Held by creations that may take the time of their data, so that a repetition by its token waits for the first.
    creating: Mutex<()>,
    /// Has the keys; none: nothing is encrypted.
    kms: Option<Arc<Kms>>,
}

/// A service that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The records cannot be used.
    #[error("the records of the AWS services cannot be used")]
    Db(#[from] RecordsError),
    /// The control plane refuses what is needed to begin.
    #[error("the volumes of the AWS services cannot be used")]
    Control(#[from] ControlError),
}

impl Ec2 {
    /// Opens the service of a home whose volumes `control` has, and ends what a killed process began: volumes that are
    /// attached by their records are attached again.
    ///
    /// # Errors
    /// Records that cannot be read or written; a control plane that refuses.
    pub fn open(home: &Path, control: Arc<dyn ControlPlane>, options: Options) -> Result<Self, OpenError> {
        let seed = options.seed.unwrap_or_else(|| (seed::fresh() << 32) | seed::fresh());
        let state = State::load(Db::open(home)?, seed)?;
        let ec2 = Self {
            control,
            options,
            state: Mutex::new(state),
            events: events::Events::default(),
            exports: exports::Exports::default(),
            sharing: Mutex::default(),
            creating: Mutex::new(()),
            kms: None,
        };
        let ids = ec2.reconcile()?;
        ec2.expect_again();
        let mut state = ec2.state.lock();
        // The time is not known here: what has begun until now has begun.
        ec2.follow_these(&mut state, ids, u64::MAX)?;
        drop(state);
        Ok(ec2)
    }
}

impl Drop for Ec2 {
    /// The devices are gone once the process has ended.
    fn drop(&mut self) {
        self.close_events();
        self.clear_links();
    }
}

/// How an action is carried out.
type Action = fn(&Ec2, &Ask<'_>) -> Result<Map<String, Value>, ApiError>;

macro_rules! actions {
    ($($name:literal => $method:ident,)*) => {
        /// The actions, in alphabetical order.
        const NAMES: &[&str] = &[$($name),*];
        const METHODS: &[Action] = &[$(Ec2::$method),*];
    };
}

actions! {
    "AttachVolume" => attach_volume,
    "CopySnapshot" => copy_snapshot,
    "CopyVolumes" => copy_volumes,
    "CreateSnapshot" => create_snapshot,
    "CreateSnapshots" => create_snapshots,
    "CreateTags" => create_tags,
    "CreateVolume" => create_volume,
    "DeleteSnapshot" => delete_snapshot,
    "DeleteTags" => delete_tags,
    "DeleteVolume" => delete_volume,
    "DescribeAccountAttributes" => describe_account_attributes,
    "DescribeAvailabilityZones" => describe_availability_zones,
    "DescribeFastSnapshotRestores" => describe_fast_restores,
    "DescribeImages" => describe_images,
    "DescribeInstanceAttribute" => describe_instance_attribute,
    "DescribeInstanceCreditSpecifications" => describe_instance_credit_specifications,
    "DescribeInstanceStatus" => describe_instance_status,
    "DescribeInstanceTypeOfferings" => describe_instance_type_offerings,
    "DescribeInstanceTypes" => describe_instance_types,
    "DescribeInstances" => describe_instances,
    "DescribeLockedSnapshots" => describe_locked_snapshots,
    "DescribeRegions" => describe_regions,
    "DescribeSecurityGroups" => describe_security_groups,
    "DescribeSnapshotAttribute" => describe_snapshot_attribute,
    "DescribeSnapshotTierStatus" => describe_snapshot_tier_status,
    "DescribeSnapshots" => describe_snapshots,
    "DescribeSubnets" => describe_subnets,
    "DescribeTags" => describe_tags,
    "DescribeVolumeAttribute" => describe_volume_attribute,
    "DescribeVolumeStatus" => describe_volume_status,
    "DescribeVolumes" => describe_volumes,
    "DescribeVolumesModifications" => describe_volumes_modifications,
    "DescribeVpcAttribute" => describe_vpc_attribute,
    "DescribeVpcs" => describe_vpcs,
    "DetachVolume" => detach_volume,
    "DisableEbsEncryptionByDefault" => disable_ebs_encryption_by_default,
    "DisableFastSnapshotRestores" => disable_fast_restores,
    "DisableSnapshotBlockPublicAccess" => disable_snapshot_block_public_access,
    "EnableEbsEncryptionByDefault" => enable_ebs_encryption_by_default,
    "EnableFastSnapshotRestores" => enable_fast_restores,
    "EnableSnapshotBlockPublicAccess" => enable_snapshot_block_public_access,
    "EnableVolumeIO" => enable_volume_io,
    "GetEbsDefaultKmsKeyId" => get_ebs_default_kms_key_id,
    "GetEbsEncryptionByDefault" => get_ebs_encryption_by_default,
    "GetSnapshotBlockPublicAccessState" => get_snapshot_block_public_access_state,
    "ListSnapshotsInRecycleBin" => list_snapshots_in_recycle_bin,
    "ListVolumesInRecycleBin" => list_volumes_in_recycle_bin,
    "LockSnapshot" => lock_snapshot,
    "ModifyEbsDefaultKmsKeyId" => modify_ebs_default_kms_key_id,
    "ModifyInstanceAttribute" => modify_instance_attribute,
    "ModifySnapshotAttribute" => modify_snapshot_attribute,
    "ModifySnapshotTier" => modify_snapshot_tier,
    "ModifyVolume" => modify_volume,
    "ModifyVolumeAttribute" => modify_volume_attribute,
    "RebootInstances" => reboot_instances,
    "ResetEbsDefaultKmsKeyId" => reset_ebs_default_kms_key_id,
    "ResetSnapshotAttribute" => reset_snapshot_attribute,
    "RestoreSnapshotFromRecycleBin" => restore_snapshot_from_recycle_bin,
    "RestoreSnapshotTier" => restore_snapshot_tier,
    "RestoreVolumeFromRecycleBin" => restore_volume_from_recycle_bin,
    "RunInstances" => run_instances,
    "StartInstances" => start_instances,
    "StopInstances" => stop_instances,
    "TerminateInstances" => terminate_instances,
    "UnlockSnapshot" => unlock_snapshot,
}

impl Service for Ec2 {
    fn name(&self) -> &'static str {
        "ec2"
    }

    fn actions(&self) -> &'static [&'static str] {
        NAMES
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let Ok(at) = NAMES.binary_search(&call.action) else {
            let message = format!("The action {} is not valid for this web service.", call.action);
            return Err(ApiError::client("InvalidAction", message));
        };
        self.follow(call.now_ms);
        self.retry_detaches(call.now_ms);
        self.state.lock().sweep(call.now_ms, self.options.timing.terminated_ms)?;
        self.empty_bin(call.now_ms);
        enumerations::check(call)?;
        let ask = Ask::new(call);
        let output = METHODS[at](self, &ask)?;
        self.expect_events(&ask, &output);
        self.publish_due(call.now_ms);
        Ok(Answer { output, payload: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn actions_are_in_the_order_in_which_they_are_looked_for() {
        assert!(NAMES.is_sorted());
        assert_eq!(NAMES.len(), 65);
    }
}
