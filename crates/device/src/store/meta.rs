//! What the owner keeps with a volume or snapshot, as its text.
//!
//! A store has tens of thousands of them in memory, and looks into none: as a tree of values each takes 1.5 KiB, as text a
//! tenth of that.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A value of JSON, as the text that the manifest has.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Meta(Box<RawValue>);

impl Meta {
    /// The value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).expect("it was read or written as a value of JSON")
    }
}

impl From<Value> for Meta {
    fn from(value: Value) -> Self {
        Self(serde_json::value::to_raw_value(&value).expect("a value of JSON has keys that are texts"))
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        // Manifests of the first format have line ends between the values, and a change is one line of the log.
        if text.get().contains(['\n', '\r']) {
            let value: Value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
            return Ok(Self::from(value));
        }
        Ok(Self(text))
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get() || self.value() == other.value()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_are_read_written_and_compared_as_values() {
        let value = json!({"control": {"spec": "gp3:size=1GiB", "seed": 18_446_744_073_709_551_615_u64}, "é\n": [1.5, null]});
        let meta = Meta::from(value.clone());
        let text = serde_json::to_string(&meta).unwrap();
        let read: Meta = serde_json::from_str(&text).unwrap();
        assert_eq!((read.value(), &read), (value, &meta));
        let spaced: Meta = serde_json::from_str(r#"{ "b" : 1, "a" : 2 }"#).unwrap();
        assert_eq!(spaced, Meta::from(json!({"a": 2, "b": 1})));
        assert_ne!(spaced, Meta::from(json!({"a": 2})));
        let pretty: Meta = serde_json::from_str("{\n  \"a\": 1,\r\n  \"b\": \"\\n\"\n}").unwrap();
        assert_eq!(serde_json::to_string(&pretty).unwrap(), r#"{"a":1,"b":"\n"}"#, "one line");
    }
}
