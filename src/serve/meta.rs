//! What the control plane keeps with a volume in the block store.

use ebbtide_catalog::modify::ModificationRecord;
use serde::{Deserialize, Serialize};

/// The control plane's part of a volume's metadata. The host keeps its own part (credits) beside
/// it, under another key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    /// What the volume is: a spec with every default written out.
    pub(super) spec: String,
    /// Logical block size in bytes.
    pub(super) block_size: u32,
    /// Seed of its draws.
    pub(super) seed: u64,
    /// What it was before the latest modification; none where it was never modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) modified_from: Option<String>,
    /// Its modifications, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) modifications: Vec<ModificationRecord>,
}

/// Key of [`Meta`] in the store's metadata.
const KEY: &str = "control";

impl Meta {
    /// Reads it from a volume's or snapshot's metadata.
    ///
    /// # Errors
    /// Where the metadata are not what this program wrote.
    pub(super) fn read(meta: &serde_json::Value) -> serde_json::Result<Self> {
        Self::deserialize(&meta[KEY])
    }

    /// Metadata of a new volume.
    pub(super) fn fresh(&self) -> serde_json::Value {
        let mut whole = serde_json::json!({});
        self.write(&mut whole);
        whole
    }

    /// Replaces the control plane's part.
    pub(super) fn write(&self, whole: &mut serde_json::Value) {
        whole[KEY] = serde_json::to_value(self).expect("metadata are plain data");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_read_back_and_leave_the_hosts_part_alone() {
        let meta = Meta {
            spec: "gp3:size=1GiB".into(),
            block_size: 512,
            seed: 7,
            modified_from: None,
            modifications: Vec::new(),
        };
        let mut whole = meta.fresh();
        whole["credits"] = serde_json::json!(0.5);
        let changed = Meta { seed: 8, ..meta };
        changed.write(&mut whole);
        assert_eq!(Meta::read(&whole).unwrap(), changed);
        assert_eq!(whole["credits"], 0.5);
        Meta::read(&serde_json::json!({})).unwrap_err();
    }
}
