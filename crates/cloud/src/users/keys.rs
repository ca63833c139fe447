//! The access keys of a home: those of its users, and the temporary ones of their sessions and of roles.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use super::{FILE, IamRole, Kind, User, UserError, UserStore, Users};
use crate::iam::{Policy, TrustPolicy};
use crate::service::{ApiError, Caller};
use crate::sessions::{Principal, Session, Sessions};
use crate::sigv4::{Credential, Keys};

/// The access keys of a home. The file of its users and roles is read again when it has changed.
#[derive(Debug)]
pub struct KeyRing {
    store: UserStore,
    sessions: Sessions,
    read: Mutex<Option<(Stamp, Arc<Ring>)>>,
}

/// Which file was read: it is replaced at each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// The users by access key and the roles by name, with their policies.
#[derive(Debug, Default)]
struct Ring {
    users: BTreeMap<String, (User, Option<Arc<Policy>>)>,
    roles: BTreeMap<String, KnownRole>,
}

/// A role with its policies, read.
#[derive(Debug, Clone)]
pub(crate) struct KnownRole {
    /// The role.
    pub(crate) role: IamRole,
    /// Who may assume it.
    pub(crate) trust: Arc<TrustPolicy>,
    policy: Option<Arc<Policy>>,
}

/// What an access key may do. Without a policy and a session, everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permissions {
    /// The policy of the user or role; without one, everything.
    pub(crate) policy: Option<Arc<Policy>>,
    /// The session of a temporary key.
    pub(crate) session: Option<Arc<Session>>,
}

impl KeyRing {
    /// The keys of the users in a store, and of sessions.
    #[must_use]
    pub const fn new(store: UserStore, sessions: Sessions) -> Self {
        Self { store, sessions, read: Mutex::new(None) }
    }

    /// The temporary keys.
    pub(crate) const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// What an access key may do; none of a key that is not there, or not any more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn permissions(&self, access_key: &str) -> Result<Option<Permissions>, UserError> {
        let ring = self.ring()?;
        let session = self.sessions.find(access_key);
        let policy = match session.as_deref() {
            None => ring.users.get(access_key).map(|(_, policy)| policy.clone()),
            Some(session) => ring.policy_of(&session.of),
        };
        Ok(policy.map(|policy| Permissions { policy, session }))
    }

    /// The role with a name; none where there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn role(&self, name: &str) -> Result<Option<KnownRole>, UserError> {
        Ok(self.ring()?.roles.get(name).cloned())
    }

    fn ring(&self) -> Result<Arc<Ring>, UserError> {
        let path = self.store.path(FILE);
        let stamp = match fs::metadata(&path) {
            Ok(found) => Stamp {
                inode: found.ino(),
                bytes: found.size(),
                modified: (found.mtime(), found.mtime_nsec()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(self.store.io("read", FILE)(error)),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, ring)) = &*read
            && *of == stamp
        {
            return Ok(Arc::clone(ring));
        }
        let ring = Arc::new(Ring::of(self.store.read()?)?);
        *read = Some((stamp, Arc::clone(&ring)));
        Ok(ring)
    }
}

impl Ring {
    fn of(file: Users) -> Result<Self, UserError> {
        let user = |user: User| {
            let policy = policy_of(user.policy.as_deref(), Kind::User, &user.name)?;
            Ok((user.access_key.clone(), (user, policy)))
        };
        let role = |role: IamRole| {
            let policy = policy_of(role.policy.as_deref(), Kind::Role, &role.name)?;
            let wrong = |error| UserError::Stored { kind: Kind::Role, name: role.name.clone(), error };
            let trust = Arc::new(TrustPolicy::parse(&role.trust).map_err(wrong)?);
            Ok((role.name.clone(), KnownRole { role, trust, policy }))
        };
        Ok(Self {
            users: file.users.into_iter().map(user).collect::<Result<_, UserError>>()?,
            roles: file.roles.into_iter().map(role).collect::<Result<_, UserError>>()?,
        })
    }

    /// The role of a session; none where it was deleted, also if there is another of that name.
    fn role(&self, name: &str, id: &str) -> Option<&KnownRole> {
        self.roles.get(name).filter(|known| known.role.role_id == id)
    }

    /// The policy of a session's user or role, if it has one; none where that was deleted.
    fn policy_of(&self, principal: &Principal) -> Option<Option<Arc<Policy>>> {
        match principal {
            Principal::User { access_key } => self.users.get(access_key).map(|(_, policy)| policy.clone()),
            Principal::Role { name, id, .. } => self.role(name, id).map(|known| known.policy.clone()),
        }
    }

    /// Who a session is; none where its user or role was deleted.
    fn caller(&self, session: &Session) -> Option<Caller> {
        let caller = match &session.of {
            Principal::User { access_key } => self.users.get(access_key)?.0.caller(),
            Principal::Role { name, id, session } => self.role(name, id)?.role.caller(session),
        };
        Some(Caller { access_key: Some(session.key.id.clone()), ..caller })
    }
}

fn policy_of(text: Option<&str>, kind: Kind, name: &str) -> Result<Option<Arc<Policy>>, UserError> {
    let policy = text.map(Policy::parse).transpose();
    let policy = policy.map_err(|error| UserError::Stored { kind, name: name.to_owned(), error })?;
    Ok(policy.map(Arc::new))
}

impl Keys for KeyRing {
    fn find(&self, access_key: &str) -> Result<Option<Credential>, ApiError> {
        let ring = self.ring().map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "access keys cannot be read");
            ApiError { status: 500, ..ApiError::client("InternalFailure", "The access keys cannot be read.") }
        })?;
        if let Some(session) = self.sessions.find(access_key) {
            return Ok(ring.caller(&session).map(|caller| Credential {
                secret: session.key.secret.clone(),
                session_token: Some(session.key.token.clone()),
                expires_ms: Some(session.key.expires_ms),
                caller,
            }));
        }
        Ok(ring.users.get(access_key).map(|(user, _)| Credential {
            secret: user.secret.clone(),
            session_token: None,
            expires_ms: None,
            caller: user.caller(),
        }))
    }
}
