//! The temporary keys that STS issued, in SQLite: `sts.db` of the home. All are in memory, too.
//!
//! Secrets and tokens are stored as they are, like those of users: without them a signature cannot be verified.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};

use crate::RecordsError;
use crate::iam::{Policy, SessionTag, SessionTerms};
use crate::key_ids;
use crate::records::{RecordFile, RowChange, Schema};

const TABLE: &str = "sessions";
const SCHEMA: Schema = Schema { file: "sts.db", versions: &[include_str!("db.sql")], always: "" };

/// How long a key that has ended is remembered, milliseconds: its user learns that it has ended, not that it is unknown. As
/// long as the longest session.
const REMEMBERED_MS: u64 = 129_600_000;

/// The most keys that are kept, 1 to 14 KiB each. STS of AWS has a limit of requests a second instead.
const MOST: usize = 50_000;

/// The most keys of one user or role that have not ended: none keeps the others from theirs.
const MOST_OF_ONE: usize = 5_000;

/// Bytes of a token before its encoding, unless more are asked for.
const TOKEN_BYTES: usize = 96;

/// Whose a temporary key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Principal {
    /// A user's, by the access key that stands for the user.
    User { access_key: String },
    /// Of a session of a role, by the name and the id of the role.
    Role { name: String, id: String, session: String },
}

/// A temporary key, as its user gets it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemporaryKey {
    /// The access key, `ASIA...`.
    pub(crate) id: String,
    /// The secret access key.
    pub(crate) secret: String,
    /// The session token, which requests must carry.
    pub(crate) token: String,
    /// When it was issued, in milliseconds since 1970.
    pub(crate) issued_ms: u64,
    /// When it ends, in milliseconds since 1970, a whole second.
    pub(crate) expires_ms: u64,
}

impl std::fmt::Debug for TemporaryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporaryKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Principal {
    /// Whether it is the same user, or the same role whatever the session.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User { access_key: one }, Self::User { access_key: other }) => one == other,
            (Self::Role { id: one, .. }, Self::Role { id: other, .. }) => one == other,
            _ => false,
        }
    }
}

impl TemporaryKey {
    /// A key from now on, for some seconds, whose token has at least as many characters; none where the system has no random
    /// bytes.
    pub(crate) fn new(
        now_ms: u64,
        duration_s: u64,
        token_chars: usize,
        random: &dyn SecureRandom,
    ) -> Option<Self> {
        let mut token = vec![0; TOKEN_BYTES.max(token_chars.div_ceil(4) * 3)];
        random.fill(&mut token).ok()?;
        Some(Self {
            id: key_ids::id("ASIA", random)?,
            secret: key_ids::secret(random)?,
            token: STANDARD.encode(token),
            issued_ms: now_ms,
            expires_ms: (now_ms / 1000 + duration_s) * 1000,
        })
    }
}

/// A row of the table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    key: TemporaryKey,
    of: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<SessionTag>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_identity: Option<String>,
}

/// What a session is given besides its key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SessionAttributes<'a> {
    /// What it may do at most, a policy that can be read; without one, all that its user or role may.
    pub(crate) policy: Option<&'a str>,
    /// Its tags.
    pub(crate) tags: &'a [SessionTag],
    /// Its source identity.
    pub(crate) source_identity: Option<&'a str>,
}

/// A temporary key that requests may be signed with.
#[derive(Debug)]
pub(crate) struct Session {
    /// The key.
    pub(crate) key: TemporaryKey,
    /// Whose it is.
    pub(crate) of: Principal,
    /// What it may do at most; none where that is all that its user or role may.
    policy: Option<Policy>,
    /// Its tags, with those of the sessions before it.
    pub(crate) tags: Vec<SessionTag>,
    /// Who began the chain of sessions, as that caller said; it stays the same in the whole chain.
    pub(crate) source_identity: Option<String>,
}

impl Session {
    fn new(Record { key, of, policy, tags, source_identity }: Record) -> Self {
        // It could be read when the key was issued. What cannot be read allows nothing.
        let policy = policy.map(|text| Policy::parse(&text).unwrap_or_else(|_| Policy::of_nothing()));
        Self { key, of, policy, tags, source_identity }
    }

    /// What it adds to the policy of its user or role.
    pub(crate) fn terms(&self) -> SessionTerms<'_> {
        SessionTerms {
            policy: self.policy.as_ref(),
            issued_ms: self.key.issued_ms,
            tags: &self.tags,
            source_identity: self.source_identity.as_deref(),
        }
    }
}

/// Why a key cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// There are [`MOST`], or [`MOST_OF_ONE`] of one principal.
    #[error("there are {0} temporary keys")]
    TooMany(usize),
    /// They cannot be written.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// The temporary keys of a home.
#[derive(Debug)]
pub struct Sessions {
    state: Mutex<State>,
    most: usize,
    most_of_one: usize,
}

#[derive(Debug)]
struct State {
    file: RecordFile,
    /// By access key.
    sessions: BTreeMap<String, Arc<Session>>,
}

impl Sessions {
    /// Opens the keys of a home.
    ///
    /// # Errors
    /// Records that cannot be read or made.
    pub fn open(home: &Path) -> Result<Self, RecordsError> {
        let file = RecordFile::open(home, &SCHEMA)?;
        let records: Vec<Record> = file.rows(TABLE)?;
        let session = |record| {
            let session = Session::new(record);
            (session.key.id.clone(), Arc::new(session))
        };
        let sessions = records.into_iter().map(session).collect();
        Ok(Self { state: Mutex::new(State { file, sessions }), most: MOST, most_of_one: MOST_OF_ONE })
    }

    /// The session of an access key, whether it has ended or not; none where it is not known.
    pub(crate) fn find(&self, access_key: &str) -> Option<Arc<Session>> {
        self.state.lock().sessions.get(access_key).map(Arc::clone)
    }

    /// Keeps a new key: it is on the disk when this returns. Keys that ended long ago go.
    pub(crate) fn keep(
        &self,
        key: &TemporaryKey,
        of: Principal,
        given: SessionAttributes<'_>,
    ) -> Result<(), KeepError> {
        let record = Record {
            key: key.clone(),
            of,
            policy: given.policy.map(str::to_owned),
            tags: given.tags.to_vec(),
            source_identity: given.source_identity.map(str::to_owned),
        };
        let mut state = self.state.lock();
        let now_ms = key.issued_ms;
        let has_ended = |session: &&Arc<Session>| session.key.expires_ms <= now_ms;
        let own = state.sessions.values().filter(|one| !has_ended(one) && one.of.is_same(&record.of));
        if own.count() >= self.most_of_one {
            return Err(KeepError::TooMany(self.most_of_one));
        }
        let is_over =
            |session: &&Arc<Session>| session.key.expires_ms.saturating_add(REMEMBERED_MS) <= now_ms;
        let ids = |sessions: &mut dyn Iterator<Item = &Arc<Session>>| -> Vec<String> {
            sessions.map(|session| session.key.id.clone()).collect()
        };
        let mut over = ids(&mut state.sessions.values().filter(is_over));
        if state.sessions.len() - over.len() >= self.most {
            // Those that have ended are remembered only where there is room.
            over = ids(&mut state.sessions.values().filter(has_ended));
        }
        if state.sessions.len() - over.len() >= self.most {
            return Err(KeepError::TooMany(self.most));
        }
        let put = RowChange::put(TABLE, key.id.as_str(), &record);
        let drops = over.iter().map(|id| RowChange::Drop { table: TABLE, id });
        state.file.commit(drops.chain([put]))?;
        if !over.is_empty() {
            // Their secrets leave the files.
            state.file.empty_log()?;
        }
        for id in &over {
            state.sessions.remove(id);
        }
        state.sessions.insert(key.id.clone(), Arc::new(Session::new(record)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use ring::rand::SystemRandom;

    use super::*;

    const NOW_MS: u64 = 1_795_309_323_456;
    const PLAIN: SessionAttributes<'_> = SessionAttributes { policy: None, tags: &[], source_identity: None };

    fn key(now_ms: u64) -> TemporaryKey {
        TemporaryKey::new(now_ms, 900, 0, &SystemRandom::new()).unwrap()
    }

    fn anna() -> Principal {
        Principal::User { access_key: "AKIAANNA".to_owned() }
    }

    #[test]
    fn keys_have_the_form_of_aws_and_are_there_when_opened_again() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(home.path()).unwrap();
        let key = key(NOW_MS);
        assert_eq!((key.id.len(), key.secret.len(), key.token.len()), (20, 40, 128));
        assert!(key.id.starts_with("ASIA"));
        assert_eq!(key.expires_ms, 1_795_310_223_000, "a whole second");
        let tag = |key: &str, is_transitive| SessionTag {
            key: key.to_owned(),
            value: "a".to_owned(),
            is_transitive,
        };
        let tags = [tag("project", true), tag("Cost Center", false)];
        let given = SessionAttributes { policy: Some("{}"), tags: &tags, source_identity: Some("anna") };
        sessions.keep(&key, anna(), given).unwrap();
        let mode = std::fs::metadata(home.path().join("sts.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(sessions);
        let again = Sessions::open(home.path()).unwrap();
        let found = again.find(&key.id).unwrap();
        assert_eq!((&found.key.secret, &found.key.token, &found.of), (&key.secret, &key.token, &anna()));
        let terms = found.terms();
        assert!(terms.policy.is_some(), "a policy that cannot be read is one that allows nothing");
        assert_eq!((terms.tags, terms.source_identity), (&tags[..], Some("anna")));
        assert!(!format!("{found:?} {again:?}").contains(&key.secret), "secrets are in no debug output");
        let long = TemporaryKey::new(NOW_MS, 900, 4_095, &SystemRandom::new()).unwrap();
        assert_eq!(long.token.len(), 4_096);
    }

    #[test]
    fn keys_that_ended_are_remembered_for_a_time_and_there_is_a_most() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions { most: 2, most_of_one: 1, ..Sessions::open(home.path()).unwrap() };
        let role = |session: &str| Principal::Role {
            name: "r".to_owned(),
            id: "AROA".to_owned(),
            session: session.to_owned(),
        };
        let first = key(NOW_MS);
        sessions.keep(&first, anna(), PLAIN).unwrap();
        let over = first.expires_ms + REMEMBERED_MS;
        sessions.keep(&key(over - 1), anna(), PLAIN).unwrap();
        assert!(sessions.find(&first.id).is_some(), "its user learns that it has ended");
        let refused = sessions.keep(&key(over - 1), anna(), PLAIN).unwrap_err();
        assert_eq!(refused.to_string(), "there are 1 temporary keys", "of one user");
        let third = key(over - 1);
        sessions.keep(&third, role("a"), PLAIN).unwrap();
        assert!(sessions.find(&first.id).is_none(), "it had ended, and there was no room");
        assert!(sessions.keep(&key(over - 1), role("b"), PLAIN).is_err(), "another session of the same role");
        let bob = Principal::User { access_key: "AKIABOB".to_owned() };
        let refused = sessions.keep(&key(over - 1), bob, PLAIN).unwrap_err();
        assert_eq!(refused.to_string(), "there are 2 temporary keys");
        drop(sessions);
        let again = Sessions::open(home.path()).unwrap();
        assert!(again.find(&first.id).is_none() && again.find(&third.id).is_some());
    }
}
