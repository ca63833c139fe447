//! What is stored of resources, and their state at a time.
//!
//! States that pass by themselves are not stored: a record has the times at which they end.

use std::collections::BTreeSet;

use ebbtide_control::OwnerRequest;
use serde::{Deserialize, Deserializer, Serialize};

use super::filter::Tags;
use super::restore_credits::FastRestore;
use super::retention::{Lock, Tiering};

/// Why a snapshot is in `error` whose blocks came too late.
pub(super) const TIMED_OUT: &str = "Snapshot timed out";

/// How far the work behind a resource has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// The control plane is asked to make it; no call has answered with it.
    Making,
    /// It is there.
    Ready,
    /// It was deleted and waits in the recycle bin, whole.
    Binned {
        /// Since when, in milliseconds since 1970.
        entered_ms: u64,
        /// When it is deleted for good, in milliseconds since 1970.
        exits_ms: u64,
    },
    /// It was deleted; it is shown until this time.
    Gone {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
}

/// What a modification can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) kind: String,
    pub(super) size_gib: u64,
    /// Of every type that AWS shows it of: provisioned, or a gp2's baseline.
    pub(super) iops: Option<u64>,
    pub(super) throughput: Option<u64>,
    /// Whether it may be attached to several instances.
    #[serde(default)]
    pub(super) multi_attach: bool,
}

/// A modification of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Modification {
    pub(super) started_ms: u64,
    pub(super) optimizing_ms: u64,
    pub(super) completes_ms: u64,
    pub(super) from: Shape,
    pub(super) to: Shape,
}

impl Modification {
    pub(super) const fn state(&self, now: u64) -> &'static str {
        if now < self.optimizing_ms {
            "modifying"
        } else if now < self.completes_ms {
            "optimizing"
        } else {
            "completed"
        }
    }

    pub(super) fn progress(&self, now: u64) -> u64 {
        if now >= self.completes_ms {
            return 100;
        }
        let span = self.completes_ms.saturating_sub(self.optimizing_ms).max(1);
        (now.saturating_sub(self.optimizing_ms).saturating_mul(100) / span).min(99)
    }
}

/// How far the work behind an attachment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AttachStage {
    /// The control plane is asked to attach it; no call has answered with it.
    Making,
    /// It is attached.
    Ready,
    /// The control plane is asked to detach it.
    Ending,
    /// A detach was answered; something on this host uses the device still.
    Busy,
    /// It is detached; it is shown until this time.
    Gone {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
    /// It never came about; it is shown as `attaching` until this time.
    Failed {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
}

/// Why an attachment never came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AttachFailure {
    /// The volume's key cannot be used.
    Key(String),
    /// This host did not allow it.
    Host(String),
}

/// A volume's attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attachment {
    pub(super) instance: String,
    /// As the call named it.
    pub(super) device: String,
    pub(super) since_ms: u64,
    /// When `attaching` ends.
    pub(super) attached_ms: u64,
    pub(super) delete_on_termination: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ebs_card: Option<u64>,
    /// Whether nothing of it is on this host: a root volume that nobody asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) without_device: bool,
    pub(super) stage: AttachStage,
    /// Of one that failed, for its event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<AttachFailure>,
}

impl Attachment {
    pub(super) const fn state(&self, now: u64) -> &'static str {
        match self.stage {
            AttachStage::Making | AttachStage::Failed { .. } => "attaching",
            AttachStage::Ready if now < self.attached_ms => "attaching",
            AttachStage::Ready => "attached",
            AttachStage::Busy => "busy",
            AttachStage::Ending | AttachStage::Gone { .. } => "detaching",
        }
    }

    /// Whether it is shown, and occupies its device name.
    pub(super) const fn is_there(&self, now: u64) -> bool {
        !matches!(
            self.stage,
            AttachStage::Gone { until_ms } | AttachStage::Failed { until_ms } if until_ms <= now
        )
    }

    /// Whether the control plane has it attached for the instance, or attaches or detaches it.
    pub(super) const fn has_device(&self) -> bool {
        self.holds() && !self.without_device
    }

    /// Whether the instance has the device, or is getting or giving it up.
    pub(super) const fn holds(&self) -> bool {
        !matches!(self.stage, AttachStage::Gone { .. } | AttachStage::Failed { .. })
    }
}

/// How CopyVolumes made a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) source: String,
    pub(super) began_ms: u64,
    /// When it is initialized.
    pub(super) completes_ms: u64,
}

impl Copied {
    /// How far it is initialized, in percent.
    pub(super) fn progress(&self, now: u64) -> u64 {
        let span = self.completes_ms.saturating_sub(self.began_ms).max(1);
        if now >= self.completes_ms { 100 } else { now.saturating_sub(self.began_ms) * 100 / span }
    }
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Volume {
    pub(super) id: String,
    /// Its name in the control plane, where a command made it; none: the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) zone: String,
    /// What it is after its latest modification.
    pub(super) shape: Shape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) initialization_rate: Option<u64>,
    /// Whether fast snapshot restore made it: all blocks of its snapshot were there from the beginning.
    #[serde(default)]
    pub(super) fast_restored: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copied: Option<Copied>,
    /// The ARN of the key that wraps its data key; none: it is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kms_key: Option<String>,
    /// Why it is never available; it is gone when `creating` ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    pub(super) created_ms: u64,
    /// When `creating` ends.
    pub(super) available_ms: u64,
    pub(super) stage: Stage,
    /// Whether the control plane has lost it.
    #[serde(default)]
    pub(super) lost: bool,
    #[serde(default)]
    pub(super) auto_enable_io: bool,
    /// Whether it is known that all blocks of its snapshot are loaded.
    #[serde(default)]
    pub(super) initialized: bool,
    #[serde(default)]
    pub(super) tags: Tags,
    /// To different instances, oldest first. Earlier versions wrote one `attachment`.
    #[serde(
        default,
        alias = "attachment",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_more"
    )]
    pub(super) attachments: Vec<Attachment>,
    /// Oldest first.
    #[serde(default)]
    pub(super) modifications: Vec<Modification>,
    /// The control plane is asked for this one; no call has answered with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Modification>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    /// Whether a command has it attached. It is not stored: the control plane knows it.
    #[serde(skip)]
    pub(super) occupied: bool,
}

/// Modifications that a record keeps: more than any rate rule counts.
const KEPT: usize = 8;

impl Volume {
    /// Its name in the control plane.
    pub(super) fn control_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// Account and zone, as the control plane stores them.
    pub(super) fn owner_request(&self) -> OwnerRequest {
        OwnerRequest { account: self.owner.clone(), zone: Some(self.zone.clone()) }
    }

    /// Adds the latest modification.
    pub(super) fn note_modification(&mut self, latest: Modification) {
        self.modifications.push(latest);
        let surplus = self.modifications.len().saturating_sub(KEPT);
        self.modifications.drain(..surplus);
    }

    /// Its state; none once it is gone, or as long as no call has answered with it.
    pub(super) fn state(&self, now: u64) -> Option<&'static str> {
        Some(match self.stage {
            Stage::Making | Stage::Binned { .. } => return None,
            Stage::Gone { until_ms } if until_ms <= now => return None,
            Stage::Gone { .. } => "deleting",
            Stage::Ready if self.failure.is_some() => {
                return (now < self.available_ms).then_some("creating");
            }
            Stage::Ready if self.lost => "error",
            Stage::Ready if now < self.available_ms => "creating",
            Stage::Ready if self.occupied || self.attachments_at(now).next().is_some() => "in-use",
            Stage::Ready => "available",
        })
    }

    /// Its attachments, as long as they are shown.
    pub(super) fn attachments_at(&self, now: u64) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().filter(move |attachment| attachment.is_there(now))
    }

    /// Its attachment to an instance, gone ones too.
    pub(super) fn attachment_to(&self, instance: &str) -> Option<&Attachment> {
        self.attachments.iter().find(|attachment| attachment.instance == instance)
    }

    /// The same with an attachment in place of an earlier one to its instance.
    pub(super) fn with_attachment(&self, attachment: Attachment) -> Self {
        let mut volume = self.without_attachment(&attachment.instance);
        let at = self.attachments.iter().position(|other| other.instance == attachment.instance);
        volume.attachments.insert(at.unwrap_or(volume.attachments.len()), attachment);
        volume
    }

    /// The same without its attachment to an instance.
    pub(super) fn without_attachment(&self, instance: &str) -> Self {
        let mut volume = self.clone();
        volume.attachments.retain(|attachment| attachment.instance != instance);
        volume
    }

    /// Whether it is a copy of a volume that is not initialized yet.
    pub(super) fn is_copying(&self, now: u64) -> bool {
        self.stage == Stage::Ready && self.copied.as_ref().is_some_and(|copied| now < copied.completes_ms)
    }

    /// What it is now: a modification is seen when `optimizing` begins.
    pub(super) fn shape_at(&self, now: u64) -> &Shape {
        match self.modifications.last() {
            Some(latest) if now < latest.optimizing_ms => &latest.from,
            _ => &self.shape,
        }
    }
}

/// Reads one attachment, or a list of them.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Attachment>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Many(Vec<Attachment>),
        One(Attachment),
    }
    Ok(match Stored::deserialize(deserializer)? {
        Stored::Many(all) => all,
        Stored::One(one) => vec![one],
    })
}

/// Who may make volumes of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Permissions {
    #[serde(default)]
    pub(super) users: BTreeSet<String>,
    #[serde(default)]
    pub(super) all: bool,
    /// Whether everyone might, if the account did not block it.
    #[serde(default)]
    pub(super) all_blocked: bool,
}

impl Permissions {
    /// Whether others than the owner may.
    pub(super) fn is_shared(&self) -> bool {
        self.all || self.all_blocked || !self.users.is_empty()
    }
}

/// What is known of a snapshot that is put together from blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Direct {
    /// The snapshot that it began as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// How long it stays open after a block.
    pub(super) timeout_ms: u64,
    /// When that is over.
    pub(super) ends_ms: u64,
    /// Percent, as the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<u64>,
    /// Whether no block can be put any more.
    pub(super) sealed: bool,
}

/// What a copy of a snapshot has moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Transfer {
    /// The Region of the source.
    pub(super) region: String,
    /// What the snapshots have in common of which later copies are incremental: the volume, or the first source.
    pub(super) lineage: String,
    /// Whether only what an earlier copy does not have was moved.
    pub(super) incremental: bool,
    /// Between Regions.
    pub(super) bytes: u64,
}

/// The volume that a copy of a snapshot shows.
pub(super) const COPIED_VOLUME: &str = "vol-ffffffff";

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) region: String,
    /// The volume that it shows; of a copy no existing one.
    pub(super) volume: String,
    pub(super) size_gib: u64,
    /// Bytes that hold data.
    pub(super) data_bytes: u64,
    #[serde(default)]
    pub(super) description: String,
    /// The ARN of the key that wraps its data key; none: it is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kms_key: Option<String>,
    pub(super) started_ms: u64,
    pub(super) completes_ms: u64,
    pub(super) stage: Stage,
    /// Why it does not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Whether it is a copy of another one.
    #[serde(default)]
    pub(super) copy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion_minutes: Option<u64>,
    #[serde(default)]
    pub(super) permissions: Permissions,
    #[serde(default)]
    pub(super) tags: Tags,
    /// Where the data of a copy came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) transfer: Option<Transfer>,
    /// Fast snapshot restore by zone, also where it is disabled again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fast_restores: Vec<FastRestore>,
    /// Of one that is put together from blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) direct: Option<Direct>,
    #[serde(default)]
    pub(super) extras: SnapshotExtras,
}

/// What few snapshots have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotExtras {
    /// Of a copy: Region and id of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copied_from: Option<(String, String)>,
    /// The request that made it with others at one instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made_with: Option<String>,
    /// Its latest change of storage tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tiering: Option<Tiering>,
    /// Its lock, also one that has expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lock: Option<Lock>,
}

impl Snapshot {
    /// Its state; none once it is gone, or as long as no call has answered with it.
    pub(super) fn state(&self, now: u64) -> Option<&'static str> {
        match self.stage {
            Stage::Making | Stage::Binned { .. } | Stage::Gone { .. } => None,
            Stage::Ready if self.is_unsealed() => Some(if self.is_open(now) { "pending" } else { "error" }),
            Stage::Ready if now < self.completes_ms => Some("pending"),
            Stage::Ready if self.error.is_some() => Some("error"),
            Stage::Ready => Some("completed"),
        }
    }

    /// Whether it can be what another one is incremental to.
    pub(super) fn has_data(&self) -> bool {
        self.stage == Stage::Ready && self.error.is_none() && !self.is_unsealed()
    }

    /// Whether it is put together from blocks and not completed, be it in time or not.
    pub(super) fn is_unsealed(&self) -> bool {
        self.direct.as_ref().is_some_and(|direct| !direct.sealed)
    }

    /// Whether blocks can be put.
    pub(super) fn is_open(&self, now: u64) -> bool {
        self.stage == Stage::Ready
            && self.direct.as_ref().is_some_and(|direct| !direct.sealed && now < direct.ends_ms)
    }

    /// Why it is in `error`.
    pub(super) fn failure(&self) -> Option<&str> {
        self.error.as_deref().or_else(|| self.is_unsealed().then_some(TIMED_OUT))
    }

    pub(super) fn progress(&self, now: u64) -> String {
        if let Some(direct) = self.direct.as_ref().filter(|direct| !direct.sealed) {
            return format!("{}%", direct.progress.unwrap_or_default());
        }
        if now >= self.completes_ms {
            return if self.error.is_some() { String::new() } else { "100%".to_owned() };
        }
        let span = self.completes_ms.saturating_sub(self.started_ms).max(1);
        let percent = now.saturating_sub(self.started_ms).saturating_mul(100) / span;
        format!("{}%", percent.min(99))
    }

    /// What a copy has moved between Regions by a time.
    pub(super) fn transferred(&self, at_ms: u64) -> u64 {
        let bytes = self.transfer.as_ref().map_or(0, |transfer| transfer.bytes);
        let span = self.completes_ms.saturating_sub(self.started_ms);
        let passed = at_ms.saturating_sub(self.started_ms);
        if passed >= span.max(1) {
            return bytes;
        }
        let part = u128::from(bytes) * u128::from(passed) / u128::from(span.max(1));
        u64::try_from(part).unwrap_or(bytes)
    }

    /// Whether an account may read it and make volumes of it.
    pub(super) fn is_open_to(&self, account: &str) -> bool {
        self.owner == account || self.permissions.all || self.permissions.users.contains(account)
    }
}

/// A state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Power {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
    Stopping,
    Stopped,
}

impl Power {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    pub(super) const fn code(self) -> u64 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }
}

/// An instance: a stand-in for this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) zone: String,
    pub(super) kind: String,
    pub(super) image: String,
    pub(super) reservation: String,
    pub(super) launch_index: u64,
    pub(super) launched_ms: u64,
    /// Its state until `until_ms`.
    pub(super) during: Power,
    /// Its state from then on.
    pub(super) after: Power,
    pub(super) until_ms: u64,
    #[serde(default)]
    pub(super) key_name: Option<String>,
    #[serde(default)]
    pub(super) tags: Tags,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
}

impl Instance {
    pub(super) const fn power(&self, now: u64) -> Power {
        if now < self.until_ms { self.during } else { self.after }
    }

    /// Whether it was terminated, at whatever time.
    pub(super) fn is_ending(&self) -> bool {
        self.after == Power::Terminated
    }
}

/// What a client token has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TokenUse {
    /// Account, region and action, and the token.
    pub(super) key: String,
    pub(super) used_ms: u64,
    /// The parameters of the call, normalised.
    pub(super) parameters: String,
    /// The ids that it answered with.
    pub(super) made: Vec<String>,
}

/// A setting of the service, or of an account in a Region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Setting {
    /// What it is of, with slashes between account, Region and name.
    pub(super) key: String,
    pub(super) value: serde_json::Value,
}

/// How what is new in a Region is encrypted: the value of a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegionSettings {
    /// Whether everything new is encrypted.
    pub(super) encrypts: bool,
    /// The ARN of the key for what is encrypted without naming one; none: `alias/aws/ebs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kms_key: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_with_one_attachment_are_read_as_a_list() {
        let attachment = json!({"instance": "i-1", "device": "/dev/sdf", "since_ms": 1, "attached_ms": 2,
            "delete_on_termination": false, "stage": "ready"});
        let mut record = json!({"id": "vol-1", "owner": "a", "region": "r", "zone": "z", "created_ms": 1,
            "available_ms": 1, "stage": "ready", "shape": {"kind": "gp3", "size_gib": 1, "iops": null, "throughput": null}});
        let read = |record: &serde_json::Value| {
            serde_json::from_value::<Volume>(record.clone()).unwrap().attachments
        };
        assert_eq!(read(&record), []);
        record["attachment"] = attachment.clone();
        let found = read(&record);
        assert_eq!((found.len(), found[0].instance.as_str()), (1, "i-1"));
        let mut volume: Volume = serde_json::from_value(record).unwrap();
        volume.attachments.push(Attachment { instance: "i-2".to_owned(), ..volume.attachments[0].clone() });
        let again: Volume = serde_json::from_value(serde_json::to_value(&volume).unwrap()).unwrap();
        assert_eq!(again, volume);
    }
}
