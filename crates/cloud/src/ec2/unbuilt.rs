//! Parameters of what is not built. One that asks for nothing, such as hibernation that is off, is no request for a feature:
//! clients send it with every call.

use serde_json::Value;

use super::ask::Input;
use super::refuse;
use crate::ApiError;

/// Parameters of RunInstances that would change what an instance is, with the value that means the same as none.
const OF_INSTANCES: [(&str, Option<&str>); 5] = [
    ("InstanceMarketOptions", Some("on-demand")),
    ("LaunchTemplate", None),
    ("HibernationOptions", None),
    ("EnclaveOptions", None),
    ("ElasticGpuSpecification", None),
];

/// Whether a value asks for something: it is not false, empty or the default.
fn asks(value: &Value, default: Option<&str>) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        // Flags and numbers of the query protocol may be texts still.
        Value::String(text) => !matches!(text.as_str(), "" | "false") && Some(text.as_str()) != default,
        Value::Array(items) => items.iter().any(|item| asks(item, default)),
        Value::Object(members) => members.values().any(|member| asks(member, default)),
    }
}

/// Refuses what this service does not have for an instance.
pub(super) fn refuse_of_instance(input: Input<'_>) -> Result<(), ApiError> {
    let asked = |(name, default): &&(&str, Option<&str>)| {
        input.0.get(*name).is_some_and(|value| asks(value, *default))
    };
    match OF_INSTANCES.iter().find(asked) {
        Some((name, _)) => Err(refuse::unsupported(name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refused(input: &Value) -> Option<String> {
        refuse_of_instance(Input(input.as_object().unwrap())).err().map(|error| error.message)
    }

    #[test]
    fn what_is_switched_off_is_no_request_and_what_is_on_is_refused_by_its_name() {
        for off in [
            json!({}),
            json!({"HibernationOptions": {"Configured": false}, "EnclaveOptions": {"Enabled": false}}),
            json!({"InstanceMarketOptions": {"MarketType": "on-demand"}, "LaunchTemplate": {}}),
            json!({"InstanceMarketOptions": {}, "ElasticGpuSpecification": [], "LaunchTemplate": {"LaunchTemplateId": ""}}),
        ] {
            assert_eq!(refused(&off), None, "{off}");
        }
        for (on, name) in [
            (json!({"HibernationOptions": {"Configured": true}}), "HibernationOptions"),
            (json!({"EnclaveOptions": {"Enabled": true}}), "EnclaveOptions"),
            (json!({"InstanceMarketOptions": {"MarketType": "spot"}}), "InstanceMarketOptions"),
            (json!({"LaunchTemplate": {"LaunchTemplateName": "x", "Version": "1"}}), "LaunchTemplate"),
            (json!({"ElasticGpuSpecification": [{"Type": "eg1.medium"}]}), "ElasticGpuSpecification"),
        ] {
            assert!(refused(&on).is_some_and(|message| message.starts_with(name)), "{on}");
        }
    }

    proptest! {
        #[test]
        fn empty_structures_of_any_depth_ask_for_nothing(depth in 0_usize..6, lists in any::<u8>(), flag in any::<bool>()) {
            let mut value = json!(flag);
            for level in 0..depth {
                value = if lists >> level & 1 == 1 { json!([value]) } else { json!({"Member": value}) };
            }
            prop_assert_eq!(asks(&value, None), flag);
        }
    }
}
