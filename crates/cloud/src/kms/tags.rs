//! Tags of keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::db::Change;
use super::policies::{permitted, refuse_managed};
use super::records::{Key, KeyState};
use super::{Ask, Kms, refuse};
use crate::ApiError;

/// Most tags of a key, and most characters of keys and values.
const TAGS: usize = 50;
const NAME_CHARS: usize = 128;
const VALUE_CHARS: usize = 256;

fn invalid(message: String) -> ApiError {
    ApiError::client("TagException", message)
}

/// The tags that a call brings.
pub(super) fn of(ask: &Ask<'_>) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for tag in ask.input.array("Tags") {
        let text = |member: &str| tag[member].as_str().unwrap_or_default();
        let (name, value) = (text("TagKey"), text("TagValue"));
        if !(1..=NAME_CHARS).contains(&name.chars().count()) {
            return Err(invalid(format!("Tag key '{name}' has not 1 to {NAME_CHARS} characters.")));
        }
        if value.chars().count() > VALUE_CHARS {
            return Err(invalid(format!(
                "The value of tag '{name}' has more than {VALUE_CHARS} characters."
            )));
        }
        if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:")) {
            return Err(invalid(format!("Tag key '{name}' begins with 'aws:', which is reserved.")));
        }
        if tags.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(invalid(format!("Tag key '{name}' is there twice.")));
        }
    }
    at_most(tags)
}

fn at_most(tags: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
    if tags.len() > TAGS {
        return Err(invalid(format!("{} tags; a key has at most {TAGS}.", tags.len())));
    }
    Ok(tags)
}

impl Kms {
    pub(super) fn tag_resource(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let given = of(ask)?;
        self.retag(ask, |tags| tags.extend(given))
    }

    pub(super) fn untag_resource(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.retag(ask, |tags| {
            for name in ask.input.texts("TagKeys") {
                tags.remove(name);
            }
        })
    }

    fn retag(
        &self,
        ask: &Ask<'_>,
        change: impl FnOnce(&mut BTreeMap<String, String>),
    ) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let mut key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        refuse_managed(ask, &key)?;
        if matches!(key.state, KeyState::PendingDeletion { .. }) {
            return Err(refuse::wrong_state(&key));
        }
        change(&mut key.tags);
        let tags = at_most(key.tags.clone())?;
        state.commit(vec![Change::Key(Box::new(Key { tags, ..key }))])?;
        Ok(Map::new())
    }

    pub(super) fn list_resource_tags(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        let row = |(name, value): (&String, &String)| json!({"TagKey": name, "TagValue": value});
        ask.input.page("Tags", (50, 50), key.tags.iter().map(|tag| (tag.0.as_str(), row(tag))))
    }
}
