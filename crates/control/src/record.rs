//! What is kept with a volume, and what follows from it and the time alone.

use ebbtide_catalog::modify::{self, ModificationRecord};
use ebbtide_catalog::{Catalog, Initialization, Resolved, Spec};
use ebbtide_device::host::{SavedCredits, SavedLoading};
use ebbtide_volume::{Array, ModificationPhase, Nanos};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ForeignRecord;
use crate::{ControlError, Optimizing, Owner};

/// The control plane's part of a volume's metadata. The host keeps its own part (credits) next to
/// it, under another key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRecord {
    /// What the volume is: a spec with every default written out.
    pub spec: String,
    /// Logical block size in bytes.
    pub block_size: u32,
    /// Seed of its draws.
    pub seed: u64,
    /// Its id, which it keeps; none in a store of before there were ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whose it is; none in a store of before there were owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// What it was before the latest modification; none where it was never modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_from: Option<String>,
    /// Its modifications, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modifications: Vec<ModificationRecord>,
    /// How the blocks of its snapshot are loaded; none where all of them were there from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The request that created it, where that had a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation: Option<Creation>,
}

/// A create request with a token, by which a repetition of it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creation {
    /// The token.
    pub token: String,
    /// What was asked for, with every default written out.
    pub spec: String,
    /// The snapshot that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The initialization that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Logical block size in bytes.
    pub block_size: u32,
    /// The seed that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A modification that is allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedModification {
    /// The record from now on.
    pub record: VolumeRecord,
    /// What the volume becomes.
    pub target: Resolved,
    /// When which phase of it begins.
    pub latest: ModificationRecord,
}

/// Key of [`VolumeRecord`] in the store's metadata.
const KEY: &str = "control";

impl VolumeRecord {
    /// Reads it from a volume's or snapshot's metadata.
    ///
    /// # Errors
    /// Where the metadata are not what this program wrote.
    pub fn read(meta: &Value) -> Result<Self, ForeignRecord> {
        Self::deserialize(&meta[KEY]).map_err(|error| ForeignRecord(error.to_string()))
    }

    /// Metadata of a new volume.
    #[must_use]
    pub fn fresh(&self) -> Value {
        let mut whole = serde_json::json!({});
        self.write(&mut whole);
        whole
    }

    /// Replaces the control plane's part of a volume's metadata.
    pub fn write(&self, whole: &mut Value) {
        whole[KEY] = serde_json::to_value(self).expect("a record is plain data");
    }

    /// The state of the latest modification; none where there was none.
    #[must_use]
    pub fn phase(&self, now_unix_s: i64) -> Option<ModificationPhase> {
        let record = self.modifications.last()?;
        Some(if now_unix_s >= record.completes_unix_s {
            ModificationPhase::Completed
        } else if now_unix_s < record.optimizing_unix_s {
            ModificationPhase::Modifying
        } else {
            let span = (record.completes_unix_s - record.optimizing_unix_s).max(1);
            let percent = (now_unix_s - record.optimizing_unix_s).saturating_mul(100) / span;
            ModificationPhase::Optimizing { percent: u8::try_from(percent.clamp(0, 99)).unwrap_or(99) }
        })
    }

    /// The volume's model as it is at a time: its credits, its modification and the loading in its background have
    /// gone on by the wall clock while nobody served it.
    ///
    /// # Errors
    /// A stored spec or rate that the catalogue no longer knows.
    pub fn model(
        &self,
        credits: Option<SavedCredits>,
        loading: Option<SavedLoading>,
        catalog: &Catalog,
        now: Nanos,
    ) -> Result<Array, ControlError> {
        // A clock that was set back must not make credits of the future.
        let from = credits.map_or(now, |credits| credits.at.min(now));
        let under_way = self.under_way(from);
        let resolve = |text: &str| Ok::<_, ControlError>(catalog.resolve(&Spec::parse(text)?)?);
        let mut array = resolve(under_way.map_or(self.spec.as_str(), |(source, _)| source))?.array(from);
        if let Some(credits) = credits {
            array.set_credit_share(credits.share, from);
        }
        if let Some((_, record)) = under_way {
            let target = resolve(&self.spec)?;
            array
                .modify(
                    &target.members[0],
                    at(record.started_unix_s),
                    at(record.optimizing_unix_s),
                    at(record.completes_unix_s),
                )
                .map_err(ControlError::contradiction("the stored modification contradicts itself"))?;
        }
        let loader = self.initialization.map(|wanted| catalog.loader(wanted)).transpose()?.flatten();
        if let (Some(loader), Some(loading)) = (loader, loading) {
            array
                .begin_loading(&loader, loading.not_after(now).members)
                .map_err(ControlError::contradiction("the stored state of loading contradicts itself"))?;
        }
        array.advance(now);
        Ok(array)
    }

    /// The latest modification, where it was still under way at a time, and what the volume was
    /// before it.
    fn under_way(&self, at: Nanos) -> Option<(&str, ModificationRecord)> {
        let record = *self.modifications.last()?;
        let source = self.modified_from.as_deref()?;
        (record.completes_unix_s > unix_s(at)).then_some((source, record))
    }

    /// What the volume becomes by a modification that is asked for now.
    ///
    /// # Errors
    /// What AWS would refuse; a stored spec that the catalogue no longer knows.
    pub fn modified(
        &self,
        catalog: &Catalog,
        to: &Spec,
        optimizing: Optimizing,
        now_unix_s: i64,
    ) -> Result<AllowedModification, ControlError> {
        let from = Spec::parse(&self.spec)?;
        let past = match optimizing {
            Optimizing::Decided { .. } => &[],
            Optimizing::Aws | Optimizing::For(_) => self.modifications.as_slice(),
        };
        let plan = modify::check_modify(catalog, &from, to, past, now_unix_s)?;
        let latest = match optimizing {
            Optimizing::Aws => plan.record(now_unix_s),
            Optimizing::For(span) => ModificationRecord {
                started_unix_s: now_unix_s,
                optimizing_unix_s: now_unix_s,
                completes_unix_s: now_unix_s.saturating_add_unsigned(span.as_secs()),
            },
            Optimizing::Decided { modifying, completes } => ModificationRecord {
                started_unix_s: now_unix_s,
                optimizing_unix_s: now_unix_s.saturating_add_unsigned(modifying.as_secs()),
                completes_unix_s: now_unix_s.saturating_add_unsigned(completes.as_secs()),
            },
        };
        let mut record = self.clone();
        record.modified_from = Some(std::mem::replace(&mut record.spec, plan.target.spec.to_string()));
        record.modifications.push(latest);
        Ok(AllowedModification { record, target: plan.target, latest })
    }
}

/// A second since 1970 as a time of the model; the first one where it is before it.
pub(crate) fn at(unix_s: i64) -> Nanos {
    Nanos::from_secs(u64::try_from(unix_s).unwrap_or(0))
}

/// The second since 1970 of a time of the model.
pub(crate) fn unix_s(at: Nanos) -> i64 {
    i64::try_from(at.0 / Nanos::SECOND.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
