//! When a volume may be modified, into what, and how long it takes.

use crate::{Catalog, CatalogError, Resolved, Spec};

/// A modification that was started earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModificationRecord {
    /// When it was requested, in seconds since 1970.
    pub started_unix_s: i64,
    /// When `optimizing` begins (or began), in seconds since 1970.
    pub optimizing_unix_s: i64,
    /// When it completes (or completed), in seconds since 1970.
    pub completes_unix_s: i64,
}

/// An allowed modification.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyPlan {
    /// The target with everything filled in; `target.spec` is what the volume becomes.
    pub target: Resolved,
    /// Seconds from the request until the new size is there and `optimizing` begins.
    pub optimizing_after_s: u64,
    /// Seconds from the request until it is completed.
    pub completes_after_s: u64,
}

impl ModifyPlan {
    /// The record to keep of this modification, started at `now`.
    #[must_use]
    pub fn record(&self, now_unix_s: i64) -> ModificationRecord {
        ModificationRecord {
            started_unix_s: now_unix_s,
            optimizing_unix_s: now_unix_s.saturating_add_unsigned(self.optimizing_after_s),
            completes_unix_s: now_unix_s.saturating_add_unsigned(self.completes_after_s),
        }
    }
}

/// Decides on a modification as AWS does.
///
/// `to` may leave out whatever stays as it is. `past` are the volume's earlier modifications in
/// any order; `now_unix_s` is the wall clock in seconds since 1970.
///
/// # Errors
/// What AWS would refuse, in its words.
pub fn check_modify(
    _catalog: &Catalog,
    _from: &Spec,
    _to: &Spec,
    _past: &[ModificationRecord],
    _now_unix_s: i64,
) -> Result<ModifyPlan, CatalogError> {
    unimplemented!("the signature is published first")
}
