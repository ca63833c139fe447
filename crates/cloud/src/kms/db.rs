//! The records in SQLite: `kms.db` of the home.

use std::path::Path;

use super::records::{Alias, Grant, Key};
use crate::RecordsError;
use crate::records::{RecordFile, RowChange, Schema};

/// Name of the file in a home.
pub(super) const FILE: &str = "kms.db";

const SCHEMA: Schema = Schema { file: FILE, versions: &[include_str!("db.sql")], always: "" };

/// A change of one record.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Key(Box<Key>),
    Alias(Alias),
    Grant(Grant),
    DropKey(String),
    /// By ARN.
    DropAlias(String),
    DropGrant(String),
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) keys: Vec<Key>,
    pub(super) aliases: Vec<Alias>,
    pub(super) grants: Vec<Grant>,
}

impl Change {
    fn row(&self) -> RowChange<'_> {
        match self {
            Self::Key(key) => RowChange::put("keys", &key.id, key),
            Self::Alias(alias) => RowChange::put("aliases", alias.arn(), alias),
            Self::Grant(grant) => RowChange::put("grants", &grant.id, grant),
            Self::DropKey(id) => RowChange::Drop { table: "keys", id },
            Self::DropAlias(id) => RowChange::Drop { table: "aliases", id },
            Self::DropGrant(id) => RowChange::Drop { table: "grants", id },
        }
    }
}

/// The open file.
#[derive(Debug)]
pub(super) struct Db(RecordFile);

impl Db {
    /// Opens the file of a home, or makes it.
    pub(super) fn open(home: &Path) -> Result<Self, RecordsError> {
        Ok(Self(RecordFile::open(home, &SCHEMA)?))
    }

    /// Reads all records.
    pub(super) fn load(&self) -> Result<Records, RecordsError> {
        let (keys, aliases, grants) = (self.0.rows("keys")?, self.0.rows("aliases")?, self.0.rows("grants")?);
        Ok(Records { keys, aliases, grants })
    }

    /// Makes changes durable, all of them or none. The material of a key that is deleted leaves the files.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), RecordsError> {
        self.0.commit(changes.iter().map(Change::row))?;
        let deletes = changes.iter().any(|change| matches!(change, Change::DropKey(_)));
        if deletes { self.0.empty_log() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Kms;
    use crate::iam::Unrestricted;
    use crate::service::{Call, Caller, Service as _};

    /// Whether a file of a home has some bytes.
    fn is_in_a_file(home: &std::path::Path, bytes: &[u8]) -> bool {
        let files = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| path.is_file());
        files.any(|path| std::fs::read(path).unwrap().windows(bytes.len()).any(|part| part == bytes))
    }

    #[test]
    fn the_material_of_a_deleted_key_is_in_no_file_of_the_home() {
        const DAY_MS: u64 = 86_400_000;
        let home = tempfile::tempdir().unwrap();
        let kms = Kms::open(home.path()).unwrap();
        let account = "123456789012".to_owned();
        let arn = format!("arn:aws:iam::{account}:user/anna");
        let caller = Caller { account, arn, user_id: String::new(), access_key: None };
        let call = |action: &str, input: serde_json::Value, now_ms| {
            let call = Call {
                action,
                input: input.as_object().unwrap(),
                payload: &[],
                caller: &caller,
                region: "us-east-1",
                request_id: "",
                now_ms,
                authorizer: &Unrestricted,
            };
            serde_json::Value::Object(kms.call(&call).unwrap().output)
        };
        let made = call("CreateKey", json!({"Description": "the first of three"}), 0);
        let id = made["KeyMetadata"]["KeyId"].clone();
        for number in 0..2 {
            call("CreateKey", json!({"Description": format!("beside it {number}")}), 0);
        }
        // As it is stored: sealed, in base64.
        let material = |key: &serde_json::Value| {
            let state = kms.state.lock();
            let record = serde_json::to_value(&state.keys()[key.as_str().unwrap()]).unwrap();
            record["material"].as_str().unwrap().as_bytes().to_vec()
        };
        let first = material(&id);
        call("RotateKeyOnDemand", json!({"KeyId": id}), 0);
        let second = material(&id);
        assert!(is_in_a_file(home.path(), &first) && is_in_a_file(home.path(), &second));
        call("ScheduleKeyDeletion", json!({"KeyId": id, "PendingWindowInDays": 7}), 0);
        let left = call("ListKeys", json!({}), 8 * DAY_MS);
        assert_eq!(left["Keys"].as_array().unwrap().len(), 2);
        assert!(!is_in_a_file(home.path(), &first) && !is_in_a_file(home.path(), &second));
        assert!(
            !is_in_a_file(home.path(), b"the first of three") && is_in_a_file(home.path(), b"beside it 1")
        );
    }
}
