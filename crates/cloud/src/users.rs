//! Users of a home: their access keys and policies, in a file that only its owner can read.
//!
//! The secrets are stored as they are: without them a signature cannot be verified.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};

use crate::iam::{Policy, PolicyError};
use crate::service::{ApiError, Caller};
use crate::sigv4::{Credential, Keys};

/// The account of all users.
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

/// Why users cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The name is no name of a user.
    #[error("'{0}' is no name of a user: use 1 to 64 of A-Z, a-z, 0-9 and _+=,.@-")]
    Name(String),
    /// There is a user of this name.
    #[error("there is a user '{0}' already")]
    Exists(String),
    /// There is none.
    #[error("there is no user '{0}'")]
    NotFound(String),
    /// The policy is wrong.
    #[error("the policy is wrong at {0}")]
    Policy(PolicyError),
    /// The file has a policy that cannot be read.
    #[error("the policy of user '{name}' is wrong at {error}")]
    Stored {
        /// The user.
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
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
        if !(1..=64).contains(&name.len()) || !name.chars().all(is_letter) {
            return Err(UserError::Name(name.to_owned()));
        }
        policy.map(Policy::parse).transpose().map_err(UserError::Policy)?;
        let _lock = self.lock()?;
        let mut file = self.read()?;
        // As in IAM, names that differ in case alone are the same.
        if file.users.iter().any(|user| user.name.eq_ignore_ascii_case(name)) {
            return Err(UserError::Exists(name.to_owned()));
        }
        let now = i64::try_from(now_ms / 1000).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
        let mut secret = [0; 30];
        random.fill(&mut secret).map_err(|_| UserError::Random)?;
        let user = User {
            name: name.to_owned(),
            user_id: id("AIDA", random)?,
            access_key: id("AKIA", random)?,
            secret: STANDARD.encode(secret),
            created: now.unwrap_or_default().to_string(),
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
        let missing = || UserError::NotFound(name.to_owned());
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
                return Ok(Users { version: VERSION, users: Vec::new() });
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

/// An id as AWS has them: four letters for its kind, and 16 of base 32.
fn id(kind: &str, random: &dyn SecureRandom) -> Result<String, UserError> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bytes = [0; 16];
    random.fill(&mut bytes).map_err(|_| UserError::Random)?;
    let letters = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Ok(kind.chars().chain(letters).collect())
}

/// The access keys of a home's users, read again when the file has changed.
#[derive(Debug)]
pub struct KeyRing {
    store: UserStore,
    read: Mutex<Option<(Stamp, Arc<Ring>)>>,
}

/// Which file was read: it is replaced at each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// Users by access key, with their policies.
type Ring = BTreeMap<String, Entry>;
type Entry = (User, Option<Arc<Policy>>);

impl KeyRing {
    /// The keys of the users in a store.
    #[must_use]
    pub const fn new(store: UserStore) -> Self {
        Self { store, read: Mutex::new(None) }
    }

    /// The policy of the user with an access key; none where there is no such user, or no policy.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn policy(&self, access_key: &str) -> Result<Option<Arc<Policy>>, UserError> {
        Ok(self.ring()?.get(access_key).and_then(|(_, policy)| policy.clone()))
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
        let ring = Arc::new(self.store.list()?.into_iter().map(keyed).collect::<Result<Ring, _>>()?);
        *read = Some((stamp, Arc::clone(&ring)));
        Ok(ring)
    }
}

fn keyed(user: User) -> Result<(String, Entry), UserError> {
    let policy = user.policy.as_deref().map(Policy::parse).transpose();
    let policy = policy.map_err(|error| UserError::Stored { name: user.name.clone(), error })?;
    Ok((user.access_key.clone(), (user, policy.map(Arc::new))))
}

impl Keys for KeyRing {
    fn find(&self, access_key: &str) -> Result<Option<Credential>, ApiError> {
        let ring = self.ring().map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "access keys cannot be read");
            ApiError { status: 500, ..ApiError::client("InternalFailure", "The access keys cannot be read.") }
        })?;
        Ok(ring.get(access_key).map(|(user, _)| Credential {
            secret: user.secret.clone(),
            session_token: None,
            expires_ms: None,
            caller: user.caller(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use ring::rand::SystemRandom;

    use super::*;

    const POLICY: &str =
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"ec2:*","Resource":"*"}}"#;

    fn store() -> (tempfile::TempDir, UserStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = UserStore::new(&dir.path().join("aws"));
        (dir, store)
    }

    fn create(store: &UserStore, name: &str, policy: Option<&str>) -> Result<User, UserError> {
        store.create(name, policy, 1_795_309_323_000, &SystemRandom::new())
    }

    #[test]
    fn a_user_has_keys_in_the_form_of_aws_and_is_there_when_read_again() {
        let (_dir, store) = store();
        let user = create(&store, "anna", Some(POLICY)).unwrap();
        assert_eq!((user.access_key.len(), user.secret.len(), user.user_id.len()), (20, 40, 20));
        assert!(user.access_key.starts_with("AKIA") && user.user_id.starts_with("AIDA"));
        assert_eq!(user.created, "2026-11-22T01:02:03Z");
        let listed = store.list().unwrap();
        assert_eq!((listed.len(), &listed[0].secret), (1, &user.secret));
        assert_ne!(create(&store, "bert", None).unwrap().secret, user.secret);
    }

    #[test]
    fn only_the_owner_can_read_the_file_and_one_that_others_can_read_is_refused() {
        let (_dir, store) = store();
        create(&store, "anna", None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.path(FILE)), mode(&store.folder)), (0o600, 0o700));
        fs::set_permissions(store.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(store.list(), Err(UserError::Open(_))));
    }

    #[test]
    fn names_and_policies_that_are_wrong_are_refused_and_change_nothing() {
        let (_dir, store) = store();
        create(&store, "anna", None).unwrap();
        assert!(matches!(create(&store, "Anna", None), Err(UserError::Exists(_))));
        assert!(matches!(create(&store, "an na", None), Err(UserError::Name(_))));
        assert!(matches!(create(&store, "", None), Err(UserError::Name(_))));
        let error = create(&store, "bert", Some("{}")).unwrap_err();
        assert_eq!(error.to_string(), "the policy is wrong at Statement: it is missing");
        assert!(matches!(store.delete("bert"), Err(UserError::NotFound(_))));
        assert_eq!(store.list().unwrap().len(), 1);
    }

    #[test]
    fn a_running_endpoint_sees_new_and_deleted_users() {
        let (_dir, store) = store();
        let ring = KeyRing::new(store.clone());
        assert_eq!(ring.find("AKIAANNA").unwrap(), None);
        let anna = create(&store, "anna", Some(POLICY)).unwrap();
        let found = ring.find(&anna.access_key).unwrap().unwrap();
        assert_eq!(found.caller.arn, "arn:aws:iam::000000000000:user/anna");
        assert_eq!(found.secret, anna.secret);
        assert!(ring.policy(&anna.access_key).unwrap().is_some());
        create(&store, "bert", None).unwrap();
        store.delete("anna").unwrap();
        assert_eq!(ring.find(&anna.access_key).unwrap(), None);
    }

    #[test]
    fn a_damaged_file_lets_nobody_in() {
        let (_dir, store) = store();
        let anna = create(&store, "anna", None).unwrap();
        fs::write(store.path(FILE), "{\"version\":1,\"users\":[{}]}").unwrap();
        assert_eq!(KeyRing::new(store).find(&anna.access_key).unwrap_err().status, 500);
    }

    #[test]
    fn secrets_are_in_no_debug_output() {
        let (_dir, store) = store();
        let anna = create(&store, "anna", None).unwrap();
        let ring = KeyRing::new(store);
        let credential = ring.find(&anna.access_key).unwrap();
        assert!(!format!("{anna:?} {ring:?} {credential:?}").contains(&anna.secret));
    }
}
