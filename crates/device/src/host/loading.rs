//! How far a volume from a snapshot is loaded, as its metadata keep it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_volume::{Array, LoadCounts, LoadState, Nanos};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the host keeps [`SavedLoading`] in a volume's metadata.
const LOADING: &str = "loading";

/// The loading of a volume at a moment, a state for each member of an array. A background that loads goes on from there
/// by the wall clock, attached or not.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedLoading {
    /// The states, in the order of the members; never empty.
    pub members: Vec<LoadState>,
}

/// A state as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    /// The missing blocks: a roaring bitmap in its portable format, in base64.
    missing: String,
    since: Nanos,
    at: Nanos,
    counts: LoadCounts,
}

/// Metadata of a loading that this program has not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the state of loading in the volume's metadata cannot be read: {0}")]
pub struct LoadingDamage(String);

impl SavedLoading {
    /// The loading of a volume's model now; none where everything was there from the beginning.
    #[must_use]
    pub fn of(array: &Array, now: Nanos) -> Option<Self> {
        let members = array.load_states(now);
        (!members.is_empty()).then_some(Self { members })
    }

    /// Reads it from a volume's metadata; none where a volume has none, such as one of a program before there was any.
    ///
    /// # Errors
    /// [`LoadingDamage`] where there is something else.
    pub fn read(meta: &Value) -> Result<Option<Self>, LoadingDamage> {
        let damage = |error: &dyn std::fmt::Display| LoadingDamage(error.to_string());
        let written = Option::<Vec<Written>>::deserialize(&meta[LOADING]).map_err(|error| damage(&error))?;
        let Some(written) = written else { return Ok(None) };
        if written.is_empty() {
            return Err(damage(&"it has no member"));
        }
        let members = written.into_iter().map(|member| -> Result<LoadState, LoadingDamage> {
            let packed = STANDARD.decode(&member.missing).map_err(|error| damage(&error))?;
            let missing = RoaringBitmap::deserialize_from(&packed[..]).map_err(|error| damage(&error))?;
            Ok(LoadState { missing, since: member.since, at: member.at, counts: member.counts })
        });
        Ok(Some(Self { members: members.collect::<Result<_, _>>()? }))
    }

    /// Writes it into a volume's metadata. None leaves no trace there.
    pub fn write(loading: Option<Self>, meta: &mut Value) {
        let Some(loading) = loading else {
            if let Some(fields) = meta.as_object_mut() {
                fields.remove(LOADING);
            }
            return;
        };
        let members: Vec<Written> = loading.members.into_iter().map(written).collect();
        meta[LOADING] = serde_json::to_value(members).expect("texts and numbers are plain data");
    }

    /// As it is for a clock that may have been set back since: nothing began in the future.
    #[must_use]
    pub fn not_after(mut self, now: Nanos) -> Self {
        for member in &mut self.members {
            member.at = member.at.min(now);
            member.since = member.since.min(now);
        }
        self
    }
}

fn written(state: LoadState) -> Written {
    let LoadState { mut missing, since, at, counts } = state;
    missing.optimize();
    let mut packed = Vec::with_capacity(missing.serialized_size());
    missing.serialize_into(&mut packed).expect("memory takes every write");
    Written { missing: STANDARD.encode(packed), since, at, counts }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::LOAD_BLOCK_BYTES;
    use serde_json::json;

    use super::*;

    fn state() -> LoadState {
        let block = LOAD_BLOCK_BYTES;
        let mut state = LoadState::new([0..3 * block, 70_000 * block..200_000 * block], Nanos(7));
        state.at = Nanos(9);
        state.counts = LoadCounts { touched: 1, background: 2, overwritten: 3, discarded: 4 };
        state
    }

    #[test]
    fn a_loading_reads_back_and_leaves_the_rest_of_the_metadata_alone() {
        let mut meta = json!({ "credits": null, "control": { "spec": "gp3" } });
        let before = meta.clone();
        assert_eq!(SavedLoading::read(&meta).unwrap(), None);
        let saved = SavedLoading { members: vec![state(), LoadState::new([], Nanos(7))] };
        SavedLoading::write(Some(saved.clone()), &mut meta);
        // As a manifest keeps it.
        let kept: Value = serde_json::from_str(&meta.to_string()).unwrap();
        assert_eq!(SavedLoading::read(&kept).unwrap(), Some(saved));
        assert_eq!(kept["control"], before["control"]);
        SavedLoading::write(None, &mut meta);
        assert_eq!(meta, before);
        let mut nothing = Value::Null;
        SavedLoading::write(None, &mut nothing);
        assert_eq!((SavedLoading::read(&nothing).unwrap(), nothing), (None, Value::Null));
    }

    #[test]
    fn a_loading_that_someone_has_changed_is_refused() {
        let mut meta = json!({});
        SavedLoading::write(Some(SavedLoading { members: vec![state()] }), &mut meta);
        for (field, value) in
            [("missing", json!("no base64!")), ("missing", json!("AAAA")), ("at", json!("soon"))]
        {
            let mut changed = meta.clone();
            changed["loading"][0][field] = value;
            SavedLoading::read(&changed).unwrap_err();
        }
        SavedLoading::read(&json!({ "loading": [] })).unwrap_err();
        SavedLoading::read(&json!({ "loading": 3 })).unwrap_err();
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_loading_of_the_future() {
        let saved = SavedLoading { members: vec![state()] }.not_after(Nanos(8));
        assert_eq!((saved.members[0].at, saved.members[0].since), (Nanos(8), Nanos(7)));
    }
}
