//! STS: who calls, and why a call was denied.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::iam::Sealer;
use crate::service::{Access, Answer, ApiError, Call, Service};

/// The service STS.
#[derive(Debug)]
pub struct Sts {
    sealer: Arc<Sealer>,
}

impl Sts {
    /// The service, with what encoded the messages that it decodes.
    #[must_use]
    pub const fn new(sealer: Arc<Sealer>) -> Self {
        Self { sealer }
    }

    fn decode(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        call.authorize(&Access {
            action: "sts:DecodeAuthorizationMessage".into(),
            resource: "*".to_owned(),
            context: std::collections::BTreeMap::new(),
        })?;
        let encoded = call.input.get("EncodedMessage").and_then(Value::as_str).unwrap_or_default();
        let message = self.sealer.open(encoded).ok_or_else(|| {
            ApiError::client("InvalidAuthorizationMessageException", "The message cannot be decoded")
        })?;
        Ok(answer([("DecodedMessage", message)]))
    }
}

/// No permission is needed, and none can take it away.
fn identity(call: &Call<'_>) -> Answer {
    let caller = call.caller;
    answer([
        ("Account", caller.account.clone()),
        ("Arn", caller.arn.clone()),
        ("UserId", caller.user_id.clone()),
    ])
}

fn answer<const N: usize>(members: [(&str, String); N]) -> Answer {
    let output: Map<_, _> =
        members.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    Answer { output, payload: Vec::new() }
}

impl Service for Sts {
    fn name(&self) -> &'static str {
        "sts"
    }

    fn actions(&self) -> &'static [&'static str] {
        &["DecodeAuthorizationMessage", "GetCallerIdentity"]
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        match call.action {
            "DecodeAuthorizationMessage" => self.decode(call),
            "GetCallerIdentity" => Ok(identity(call)),
            other => Err(ApiError::client(
                "InvalidAction",
                format!("The action {other} is not valid for this web service."),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn every_action_is_one_of_the_model() {
        let sts = Sts::new(Arc::new(Sealer::new().unwrap()));
        let model = Model::of(sts.name()).unwrap();
        for action in sts.actions() {
            assert!(model.actions().any(|known| known == *action), "{action}");
        }
    }
}
