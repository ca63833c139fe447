//! What policies decide on.

use std::collections::BTreeMap;

use super::Ask;
use crate::{Access, ApiError};

/// The ARN of an alarm of the caller's; `*` is all.
pub(super) fn alarm_arn((owner, region): (&str, &str), name: &str) -> String {
    format!("arn:{}:cloudwatch:{region}:{owner}:alarm:{name}", crate::partition::of_region(region))
}

fn demand(ask: &Ask<'_>, resource: String) -> Result<(), ApiError> {
    let action = format!("cloudwatch:{}", ask.call.action).into();
    ask.call.authorize(&Access { action, resource, context: BTreeMap::new() })
}

/// Demands an action that has no resource.
pub(super) fn demand_any(ask: &Ask<'_>) -> Result<(), ApiError> {
    demand(ask, "*".to_owned())
}

/// Demands an action on an alarm, or on all (`*`).
pub(super) fn demand_alarm(ask: &Ask<'_>, name: &str) -> Result<(), ApiError> {
    demand(ask, alarm_arn(ask.account(), name))
}
