//! Users and roles of a home: access keys and policies, in a file that only its owner can read.
//!
//! The secrets are stored as they are: without them a signature cannot be verified. Temporary keys, which STS issues for users
//! and roles, are not here but in [`crate::sessions::Sessions`]; [`KeyRing`] finds both.

mod keys;
mod roles;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};

use crate::iam::{Policy, PolicyError};
use crate::key_ids::{id, secret};
use crate::service::Caller;

pub use keys::KeyRing;
pub(crate) use keys::{KnownRole, Permissions};
pub use roles::{IamRole, MAX_SESSION_S, NewRole};

/// The account of all users and roles.
pub const ACCOUNT: &str = "000000000000";

const FILE: &str = "users.json";
const NEW: &str = "users.new";
const LOCK: &str = "users.lock";

/// The folder of a home that has the files of the AWS endpoint.
#[derive(Debug, Clone)]
pub struct UserStore {
    folder: PathBuf,
}

/// A user, with the secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its unique id.
    pub user_id: String,
    /// The access key.
    pub access_key: String,
    /// The secret access key.
    pub secret: String,
    /// When it was created, RFC 3339.
    pub created: String,
    /// Its policy, as it was given; a user without one may do everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl User {
    /// Its ARN.
    #[must_use]
    pub fn arn(&self) -> String {
        format!("arn:aws:iam::{ACCOUNT}:user/{}", self.name)
    }

    fn caller(&self) -> Caller {
        Caller {
            account: ACCOUNT.to_owned(),
            arn: self.arn(),
            user_id: self.user_id.clone(),
            access_key: Some(self.access_key.clone()),
        }
    }
}

/// What the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A user.
    User,
    /// A role.
    Role,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Role => "role",
        })
    }
}

/// Why users and roles cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The name is none of a user or a role.
    #[error("'{name}' is no name of a {kind}: use 1 to 64 of A-Z, a-z, 0-9 and _+=,.@-")]
    Name {
        /// What was to be made.
        kind: Kind,
        /// The name.
        name: String,
    },
    /// There is one of this name.
    #[error("there is a {kind} '{name}' already")]
    Exists {
        /// What was to be made.
        kind: Kind,
        /// The name.
        name: String,
    },
    /// There is none.
    #[error("there is no {kind} '{name}'")]
    NotFound {
        /// What was looked for.
        kind: Kind,
        /// The name.
        name: String,
    },
    /// The policy is wrong.
    #[error("the policy is wrong at {0}")]
    Policy(PolicyError),
    /// The trust policy of a role is wrong.
    #[error("the trust policy is wrong at {0}")]
    Trust(PolicyError),
    /// The longest session of a role is out of its range.
    #[error("a session of {0} s is out of the range of 3600 to 43200 s")]
    SessionDuration(u32),
    /// The file has a policy that cannot be read.
    #[error("a policy of {kind} '{name}' is wrong at {error}")]
    Stored {
        /// Whether it is a user's or a role's.
        kind: Kind,
        /// The user or role.
        name: String,
        /// What is wrong.
        error: PolicyError,
    },
    /// The file cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Others can read the file.
    #[error("others than its owner can read {}; its access keys may be known", .0.display())]
    Open(PathBuf),
    /// The file is no file of users.
    #[error("{} is no file of users: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    Random,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Users {
    version: u32,
    users: Vec<User>,
    /// Left out where there are none, so that a program that knows no roles reads the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<IamRole>,
}

const VERSION: u32 = 1;

impl UserStore {
    /// The users in a folder, which need not be there.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// All users, by name.
    ///
    /// # Errors
    /// The file cannot be read, or others can read it too.
    pub fn list(&self) -> Result<Vec<User>, UserError> {
        Ok(self.read()?.users)
    }

    /// Makes a user with a new access key.
    ///
    /// # Errors
    /// A bad name or policy; a user of that name; what the host refuses.
    pub fn create(
        &self,
        name: &str,
        policy: Option<&str>,
        now_ms: u64,
        random: &dyn SecureRandom,
    ) -> Result<User, UserError> {
        check_name(Kind::User, name)?;
        policy.map(Policy::parse).transpose().map_err(UserError::Policy)?;
        let _lock = self.lock()?;
        let mut file = self.read()?;
        // As in IAM, names that differ in case alone are the same.
        if file.users.iter().any(|user| user.name.eq_ignore_ascii_case(name)) {
            return Err(UserError::Exists { kind: Kind::User, name: name.to_owned() });
        }
        let user = User {
            name: name.to_owned(),
            user_id: id("AIDA", random).ok_or(UserError::Random)?,
            access_key: id("AKIA", random).ok_or(UserError::Random)?,
            secret: secret(random).ok_or(UserError::Random)?,
            created: time_of(now_ms),
            policy: policy.map(str::to_owned),
        };
        file.users.push(user.clone());
        file.users.sort_by(|a, b| a.name.cmp(&b.name));
        self.write(&file)?;
        Ok(user)
    }

    /// Deletes a user; its access key is refused from then on.
    ///
    /// # Errors
    /// No user of that name; what the host refuses.
    pub fn delete(&self, name: &str) -> Result<(), UserError> {
        let missing = || UserError::NotFound { kind: Kind::User, name: name.to_owned() };
        if !self.path(FILE).exists() {
            return Err(missing());
        }
        let _lock = self.lock()?;
        let mut file = self.read()?;
        let place = file.users.iter().position(|user| user.name == name).ok_or_else(missing)?;
        file.users.remove(place);
        self.write(&file)
    }

    fn io(&self, what: &'static str, name: &str) -> impl FnOnce(io::Error) -> UserError {
        let path = self.path(name);
        move |source| UserError::Io { what, path, source }
    }

    /// Two commands do not change the users at the same time.
    fn lock(&self) -> Result<File, UserError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(self.io("create", ""))?;
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.path(LOCK));
        let file = file.map_err(self.io("open", LOCK))?;
        file.lock().map_err(self.io("lock", LOCK))?;
        Ok(file)
    }

    fn read(&self) -> Result<Users, UserError> {
        let path = self.path(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Users { version: VERSION, ..Users::default() });
            }
            Err(error) => return Err(self.io("read", FILE)(error)),
        };
        let mode = fs::metadata(&path).map_err(self.io("read", FILE))?.mode();
        if mode & 0o077 != 0 {
            return Err(UserError::Open(path));
        }
        let damaged = |why: String| UserError::Damaged { path: path.clone(), why };
        let file: Users = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if file.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", file.version)));
        }
        Ok(file)
    }

    /// Writes the file whole or not at all.
    fn write(&self, users: &Users) -> Result<(), UserError> {
        let text = serde_json::to_string_pretty(users).expect("users are plain data");
        // What an interrupted command left.
        let _ = fs::remove_file(self.path(NEW));
        let new = OpenOptions::new().create_new(true).write(true).mode(0o600).open(self.path(NEW));
        let mut new = new.map_err(self.io("create", NEW))?;
        new.write_all(text.as_bytes()).and_then(|()| new.sync_all()).map_err(self.io("write", NEW))?;
        fs::rename(self.path(NEW), self.path(FILE)).map_err(self.io("replace", FILE))
    }
}

fn check_name(kind: Kind, name: &str) -> Result<(), UserError> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(is_letter) {
        return Ok(());
    }
    Err(UserError::Name { kind, name: name.to_owned() })
}

/// A time in milliseconds since 1970, as RFC 3339 in whole seconds.
fn time_of(ms: u64) -> String {
    let time = i64::try_from(ms / 1000).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.unwrap_or_default().to_string()
}
