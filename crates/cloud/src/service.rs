//! What the wire and the services have in common: a call, its answer, its error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::partition;

/// A service of AWS, such as EC2.
pub trait Service: std::fmt::Debug + Send + Sync {
    /// Its name in a signature's scope: `ec2`, `ebs`, `monitoring`, `kms`, `sts`.
    fn name(&self) -> &'static str;

    /// The operations that are built, in alphabetical order.
    fn actions(&self) -> &'static [&'static str];

    /// Carries out a call. A call that fails leaves everything as it was.
    ///
    /// # Errors
    /// What AWS answers to the same call, with its code, message and HTTP status.
    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError>;
}

/// One call: authenticated, and decoded by AWS's model of the operation.
#[derive(Debug)]
pub struct Call<'a> {
    /// The operation, such as `CreateVolume`.
    pub action: &'a str,
    /// The parameters by the names of their members in AWS's model, whatever the protocol calls them. A blob is
    /// base64 text, a timestamp is seconds since 1970 (whole or not). A member that was not sent is absent.
    pub input: &'a Map<String, Value>,
    /// The body that is no parameter: the data of `PutSnapshotBlock`. Else empty.
    pub payload: &'a [u8],
    /// Who calls.
    pub caller: &'a Caller,
    /// The region that the request is signed for.
    pub region: &'a str,
    /// The id of the request, as the answer carries it.
    pub request_id: &'a str,
    /// The time of the call, in milliseconds since 1970.
    pub now_ms: u64,
    /// Decides what the caller may do.
    pub authorizer: &'a dyn Authorizer,
}

impl Call<'_> {
    /// Refuses what the caller may not do.
    ///
    /// # Errors
    /// The service's error of a denied call: `UnauthorizedOperation` of EC2, `AccessDenied` or
    /// `AccessDeniedException` of the others.
    pub fn authorize(&self, access: &Access) -> Result<(), ApiError> {
        self.authorizer.authorize(self.caller, access)
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account, twelve digits.
    pub account: String,
    /// The ARN of the user, or of the role's session.
    pub arn: String,
    /// The unique id of the user, such as `AIDA...`; of a role's session `AROA...:NAME`.
    pub user_id: String,
    /// The access key that signed; none where authorization is off.
    pub access_key: Option<String>,
}

impl Caller {
    /// The ARN of who acts: of a role's session that of the role, else [`Self::arn`]. Policies compare it with `aws:PrincipalArn`.
    #[must_use]
    pub fn principal_arn(&self) -> Cow<'_, str> {
        let session =
            partition::global_arn(&self.arn, "sts").and_then(|rest| rest.split_once(":assumed-role/"));
        match session.and_then(|(account, names)| Some((account, names.split_once('/')?.0))) {
            Some((account, role)) => {
                let partition = self.arn.split(':').nth(1).unwrap_or("aws");
                format!("arn:{partition}:iam::{account}:role/{role}").into()
            }
            None => self.arn.as_str().into(),
        }
    }

    /// Whether a policy or a grant that names this principal means the caller: a role's session by the role or by itself.
    #[must_use]
    pub fn is_named(&self, principal: &str) -> bool {
        // A home's users and roles are the same in every partition.
        let means = |arn: &str| partition::is_same(principal, arn);
        means(&self.arn) || means(&self.principal_arn())
    }

    /// Whether it is a session of a role.
    #[must_use]
    pub fn is_role_session(&self) -> bool {
        self.principal_arn() != self.arn
    }

    /// Whether the key that signed is a temporary one.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.access_key.as_deref().is_some_and(|key| key.starts_with("ASIA"))
    }
}

/// Decides what a caller may do.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// Refuses what the caller's policies do not allow, or deny.
    ///
    /// # Errors
    /// The service's error of a denied call.
    fn authorize(&self, caller: &Caller, access: &Access) -> Result<(), ApiError>;

    /// What the caller's policies say to an access, for a service whose resources have policies, too.
    fn judge(&self, caller: &Caller, access: &Access) -> Judgement {
        let says = match self.authorize(caller, access) {
            Ok(()) => OwnPolicy::Allows,
            Err(error) => OwnPolicy::Denies(error),
        };
        Judgement { says, context: access.keys() }
    }
}

/// What a caller's own policies say to an access.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What they say.
    pub says: OwnPolicy,
    /// The condition keys of the call.
    pub context: Context,
}

/// What a caller's own policies say.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnPolicy {
    /// Nothing is asked for: authorization is off.
    Unchecked,
    /// A statement allows the access, or there is no policy.
    Allows,
    /// No statement allows it; with the error of a denied call.
    Silent(ApiError),
    /// A statement denies it, or the policy of the session does not allow it; with the error of a denied call.
    Denies(ApiError),
}

/// An action on a resource, as policies name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The action, such as `ec2:CreateVolume`.
    pub action: Cow<'static, str>,
    /// The ARN of the resource, or `*`.
    pub resource: String,
    /// Values of condition keys, such as `ec2:VolumeType` or `aws:ResourceTag/Name`.
    pub context: BTreeMap<String, Vec<String>>,
}

impl Access {
    /// Its condition keys, without those of the request.
    #[must_use]
    pub fn keys(&self) -> Context {
        let mut keys = Context::default();
        self.context.iter().for_each(|(key, values)| keys.set(key, values.iter().cloned()));
        keys
    }
}

/// The answer to a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The members of the operation's output in AWS's model; blobs and timestamps as in [`Call::input`].
    pub output: Map<String, Value>,
    /// The body where the output's payload is a blob: the data of `GetSnapshotBlock`. Else empty.
    pub payload: Vec<u8>,
}

/// An error and what caused it, in one text.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The error that AWS answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// AWS's code, such as `InvalidVolume.NotFound`.
    pub code: Cow<'static, str>,
    /// AWS's message.
    pub message: String,
    /// The HTTP status, 400 to 599.
    pub status: u16,
    /// Members of the error's shape besides the message, such as `Reason` of the EBS direct APIs.
    pub members: Map<String, Value>,
}

impl ApiError {
    /// An error of the caller, status 400.
    #[must_use]
    pub fn client(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), status: 400, members: Map::new() }
    }
}
