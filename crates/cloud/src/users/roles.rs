//! Roles: who may assume one, what its sessions may do, and how long they last.

use std::ops::RangeInclusive;

use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};

use super::{ACCOUNT, FILE, Kind, UserError, UserStore, check_name, time_of};
use crate::iam::{Policy, TrustPolicy};
use crate::key_ids::id;
use crate::service::Caller;

/// How long sessions of a role may last, seconds: the setting `MaxSessionDuration` of IAM.
pub const MAX_SESSION_S: RangeInclusive<u32> = 3_600..=43_200;

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IamRole {
    /// Its name.
    pub name: String,
    /// Its unique id.
    pub role_id: String,
    /// When it was created, RFC 3339.
    pub created: String,
    /// Who may assume it: its trust policy, as it was given.
    pub trust: String,
    /// What its sessions may do, as it was given; without a policy, everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How long its sessions may last, seconds, in [`MAX_SESSION_S`].
    pub max_session_s: u32,
}

/// A role that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewRole<'a> {
    /// Its name, 1 to 64 of the characters of a user's.
    pub name: &'a str,
    /// Its trust policy, a policy of IAM with principals and without resources.
    pub trust: &'a str,
    /// What its sessions may do; without a policy, everything.
    pub policy: Option<&'a str>,
    /// How long its sessions may last, seconds, in [`MAX_SESSION_S`].
    pub max_session_s: u32,
}

impl IamRole {
    /// Its ARN.
    #[must_use]
    pub fn arn(&self) -> String {
        format!("arn:aws:iam::{ACCOUNT}:role/{}", self.name)
    }

    /// A session of it, with a name.
    pub(crate) fn caller(&self, session: &str) -> Caller {
        Caller {
            account: ACCOUNT.to_owned(),
            arn: format!("arn:aws:sts::{ACCOUNT}:assumed-role/{}/{session}", self.name),
            user_id: format!("{}:{session}", self.role_id),
            access_key: None,
        }
    }
}

impl UserStore {
    /// All roles, by name.
    ///
    /// # Errors
    /// The file cannot be read, or others can read it too.
    pub fn roles(&self) -> Result<Vec<IamRole>, UserError> {
        Ok(self.read()?.roles)
    }

    /// Makes a role.
    ///
    /// # Errors
    /// A bad name, policy or longest session; a role of that name; what the host refuses.
    pub fn create_role(
        &self,
        new: NewRole<'_>,
        now_ms: u64,
        random: &dyn SecureRandom,
    ) -> Result<IamRole, UserError> {
        let NewRole { name, trust, policy, max_session_s } = new;
        check_name(Kind::Role, name)?;
        if !MAX_SESSION_S.contains(&max_session_s) {
            return Err(UserError::SessionDuration(max_session_s));
        }
        TrustPolicy::parse(trust).map_err(UserError::Trust)?;
        policy.map(Policy::parse).transpose().map_err(UserError::Policy)?;
        let _lock = self.lock()?;
        let mut file = self.read()?;
        if file.roles.iter().any(|role| role.name.eq_ignore_ascii_case(name)) {
            return Err(UserError::Exists { kind: Kind::Role, name: name.to_owned() });
        }
        let role = IamRole {
            name: name.to_owned(),
            role_id: id("AROA", random).ok_or(UserError::Random)?,
            created: time_of(now_ms),
            trust: trust.to_owned(),
            policy: policy.map(str::to_owned),
            max_session_s,
        };
        file.roles.push(role.clone());
        file.roles.sort_by(|a, b| a.name.cmp(&b.name));
        self.write(&file)?;
        Ok(role)
    }

    /// Deletes a role; the keys of its sessions are refused from then on.
    ///
    /// # Errors
    /// No role of that name; what the host refuses.
    pub fn delete_role(&self, name: &str) -> Result<(), UserError> {
        let missing = || UserError::NotFound { kind: Kind::Role, name: name.to_owned() };
        if !self.path(FILE).exists() {
            return Err(missing());
        }
        let _lock = self.lock()?;
        let mut file = self.read()?;
        let place = file.roles.iter().position(|role| role.name == name).ok_or_else(missing)?;
        file.roles.remove(place);
        self.write(&file)
    }
}
