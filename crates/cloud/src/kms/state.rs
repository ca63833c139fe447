//! All records in memory, written through to the database, and how keys are found by what callers name.

use std::collections::BTreeMap;

use super::db::{Change, Db, Records};
use super::names::{Name, is_alias};
use super::records::{Alias, Grant, Key, KeyState, Schedule};
use super::{Ask, refuse};
use crate::{ApiError, Caller, partition};

/// The records of the service.
#[derive(Debug)]
pub(super) struct State {
    db: Db,
    keys: BTreeMap<String, Key>,
    /// By ARN.
    aliases: BTreeMap<String, Alias>,
    grants: BTreeMap<String, Grant>,
}

/// A key that AWS manages is rotated each year; records of earlier versions do not say so.
fn with_schedule(key: Key) -> Key {
    let managed = key.is_managed.then(|| Schedule::managed(key.created_ms));
    Key { schedule: key.schedule.or(managed), ..key }
}

impl State {
    pub(super) fn new(db: Db, records: Records) -> Self {
        Self {
            db,
            keys: records.keys.into_iter().map(|key| (key.id.clone(), with_schedule(key))).collect(),
            aliases: records.aliases.into_iter().map(|alias| (alias.arn(), alias)).collect(),
            grants: records.grants.into_iter().map(|grant| (grant.id.clone(), grant)).collect(),
        }
    }

    /// Makes changes durable, all of them or none, and then visible.
    pub(super) fn commit(&mut self, changes: Vec<Change>) -> Result<(), ApiError> {
        self.db.commit(&changes).map_err(|error| refuse::internal(&error))?;
        for change in changes {
            match change {
                Change::Key(key) => drop(self.keys.insert(key.id.clone(), *key)),
                Change::Alias(alias) => drop(self.aliases.insert(alias.arn(), alias)),
                Change::Grant(grant) => drop(self.grants.insert(grant.id.clone(), grant)),
                Change::DropKey(id) => drop(self.keys.remove(&id)),
                Change::DropAlias(arn) => drop(self.aliases.remove(&arn)),
                Change::DropGrant(id) => drop(self.grants.remove(&id)),
            }
        }
        Ok(())
    }

    /// Deletes the keys whose time has come, with their aliases and grants.
    pub(super) fn sweep(&mut self, now: u64) -> Result<(), ApiError> {
        let over = |key: &&Key| matches!(key.state, KeyState::PendingDeletion { at_ms, .. } if at_ms <= now);
        let gone: Vec<String> = self.keys.values().filter(over).map(|key| key.id.clone()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let aliases = self.aliases.values().filter(|alias| gone.contains(&alias.key));
        let mut changes: Vec<Change> = aliases.map(|alias| Change::DropAlias(alias.arn())).collect();
        let grants = self.grants.values().filter(|grant| gone.contains(&grant.key));
        changes.extend(grants.map(|grant| Change::DropGrant(grant.id.clone())));
        changes.extend(gone.into_iter().map(Change::DropKey));
        self.commit(changes)
    }

    pub(super) const fn keys(&self) -> &BTreeMap<String, Key> {
        &self.keys
    }

    pub(super) const fn aliases(&self) -> &BTreeMap<String, Alias> {
        &self.aliases
    }

    pub(super) const fn grants(&self) -> &BTreeMap<String, Grant> {
        &self.grants
    }

    /// A grant by which a caller may do an action with a key, if there is one.
    pub(super) fn grant_for(
        &self,
        caller: &Caller,
        key: &Key,
        action: &str,
        encryption: &BTreeMap<String, String>,
    ) -> Option<&Grant> {
        let is_its = |grant: &&Grant| grant.key == key.id && caller.is_named(&grant.grantee);
        self.grants.values().filter(is_its).find(|grant| grant.allows(action, encryption))
    }

    /// The key of a name, as an account sees it in a Region: its own, or another account's by its ARN.
    pub(super) fn named(&self, account: &str, region: &str, name: Name<'_>) -> Option<&Key> {
        let of_alias = |region: &str, account: &str, name: &str| {
            let alias = self
                .aliases
                .get(&format!("arn:{}:kms:{region}:{account}:{name}", partition::of_region(region)))?;
            self.keys.get(&alias.key)
        };
        let own = |key: &&Key| key.owner == account && key.region == region;
        match name {
            Name::Id(id) => self.keys.get(id).filter(own),
            Name::Alias(alias) => of_alias(region, account, alias),
            Name::Arn(at, owner, name) if at == region => {
                let key = if is_alias(name) { of_alias(at, owner, name) } else { self.keys.get(name) };
                key.filter(|key| key.owner == owner && key.region == at)
            }
            Name::Arn(..) => None,
        }
    }

    /// The key of the caller's account that a call names.
    pub(super) fn own_key(&self, ask: &Ask<'_>, text: &str) -> Result<&Key, ApiError> {
        let name = Name::read(text).ok_or_else(|| refuse::bad_name(text))?;
        let key = self.named(ask.account(), ask.region(), name).filter(|key| key.owner == ask.account());
        key.ok_or_else(|| refuse::not_found(ask, text, name))
    }

    /// The key that a call names.
    pub(super) fn key(&self, ask: &Ask<'_>, text: &str) -> Result<&Key, ApiError> {
        let name = Name::read(text).ok_or_else(|| refuse::bad_name(text))?;
        let key = self.named(ask.account(), ask.region(), name);
        key.ok_or_else(|| refuse::not_found(ask, text, name))
    }
}
