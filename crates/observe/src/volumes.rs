//! Something for each volume of a server, and the text that names the volumes by what lies on them:
//! `data=gp3:size=500GiB,redo+binlog=io2:size=20GiB,iops=3000`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;

use crate::role::{Role, UnknownRole};

/// Something for each volume of a server: its spec, its limits, or what it did. What has no volume of its own lies on that of
/// the data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volumes<T> {
    /// The volume of the data.
    pub data: T,
    /// The others. Never both [`Role::Logs`] and one of the logs.
    others: BTreeMap<Role, T>,
}

impl<T> From<T> for Volumes<T> {
    fn from(data: T) -> Self {
        Self::new(data)
    }
}

impl<T> Volumes<T> {
    /// One volume for all files.
    pub const fn new(data: T) -> Self {
        Self { data, others: BTreeMap::new() }
    }

    /// Puts what a role names on a volume of its own, or on another one. A log that is named alone leaves the volume that
    /// both logs shared to the other one.
    pub fn set(&mut self, role: Role, volume: T)
    where
        T: Clone,
    {
        match role {
            Role::Data => {
                self.data = volume;
                return;
            }
            Role::Logs => LOGS.iter().for_each(|log| drop(self.others.remove(log))),
            Role::Redo | Role::Binlog => {
                if let Some(shared) = self.others.remove(&Role::Logs) {
                    self.others.extend(LOGS.map(|log| (log, shared.clone())));
                }
            }
            Role::Undo | Role::Tmp | Role::Relay | Role::Backup => {}
        }
        self.others.insert(role, volume);
    }

    /// The same with what a role names on a volume of its own.
    #[must_use]
    pub fn with(mut self, role: Role, volume: T) -> Self
    where
        T: Clone,
    {
        self.set(role, volume);
        self
    }

    /// The volume that what a role names lies on: of a log its own, or that of both logs. None where that is the volume of the
    /// data, and for both logs where they do not share one.
    pub fn get(&self, role: Role) -> Option<&T> {
        match self.holder(role)? {
            Role::Data => Some(&self.data),
            other => self.others.get(&other),
        }
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, role: Role) -> Option<&mut T> {
        match self.holder(role)? {
            Role::Data => Some(&mut self.data),
            other => self.others.get_mut(&other),
        }
    }

    /// The volume that what a role names lies on, that of the data too.
    pub fn on(&self, role: Role) -> &T {
        self.get(role).unwrap_or(&self.data)
    }

    /// The role of that volume.
    pub fn role_of(&self, role: Role) -> Role {
        self.holder(role).unwrap_or(Role::Data)
    }

    fn holder(&self, role: Role) -> Option<Role> {
        let shared = LOGS.contains(&role).then_some(Role::Logs);
        [Some(role), shared]
            .into_iter()
            .flatten()
            .find(|role| *role == Role::Data || self.others.contains_key(role))
    }

    /// Whether all files lie on one volume.
    pub fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// Each volume with its role, that of the data first.
    pub fn roles(&self) -> impl Iterator<Item = (Role, &T)> {
        let others = self.others.iter().map(|(role, volume)| (*role, volume));
        std::iter::once((Role::Data, &self.data)).chain(others)
    }

    /// The same by reference.
    pub fn as_ref(&self) -> Volumes<&T> {
        self.map(|volume| volume)
    }

    /// The same of each volume.
    pub fn map<'a, U>(&'a self, mut change: impl FnMut(&'a T) -> U) -> Volumes<U> {
        let Ok(all) = self.try_map(|volume| Ok::<_, Infallible>(change(volume)));
        all
    }

    /// The same of each volume.
    ///
    /// # Errors
    /// The first error of `change`.
    pub fn try_map<'a, U, E>(
        &'a self,
        mut change: impl FnMut(&'a T) -> Result<U, E>,
    ) -> Result<Volumes<U>, E> {
        let data = change(&self.data)?;
        let others = self.others.iter().map(|(role, volume)| Ok((*role, change(volume)?)));
        Ok(Volumes { data, others: others.collect::<Result<_, E>>()? })
    }

    /// A text of each with its role before it, and `between` between them; of one volume alone its text.
    pub fn joined(&self, between: &str, text: impl Fn(&T) -> String) -> String {
        if self.is_one() {
            return text(&self.data);
        }
        let each = self.roles().map(|(role, volume)| format!("{}={}", role.key(), text(volume)));
        each.collect::<Vec<_>>().join(between)
    }
}

/// The logs that may share a volume.
const LOGS: [Role; 2] = [Role::Redo, Role::Binlog];

/// As [`Volumes::parse`] reads it.
impl<T: fmt::Display> fmt::Display for Volumes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined(",", T::to_string))
    }
}

impl<'a> Volumes<&'a str> {
    /// Reads the specs of a server's volumes. One of [`Role::NAMED`] begins the spec of its volume; a text without roles, or
    /// before the first one, is the volume of the data.
    ///
    /// # Errors
    /// A role that there is not or that is there twice, or no volume of the data.
    pub fn parse(text: &'a str) -> Result<Self, WrongVolumes> {
        let mut data = None;
        let mut others = BTreeMap::new();
        for (role, spec) in by_role(text)? {
            let is_taken = match role {
                Role::Data => data.is_some(),
                Role::Logs => !others.is_empty(),
                log => others.contains_key(&log) || others.contains_key(&Role::Logs),
            };
            if is_taken {
                return Err(WrongVolumes::Twice { text: text.to_owned(), role });
            }
            if role == Role::Data {
                data = Some(spec);
            } else {
                others.insert(role, spec);
            }
        }
        let data = data.ok_or_else(|| WrongVolumes::NoData { text: text.to_owned() })?;
        Ok(Self { data, others })
    }
}

/// The parts of a text, each with its role.
fn by_role(text: &str) -> Result<Vec<(Role, &str)>, UnknownRole> {
    let mut begins = Vec::new();
    let mut offset = 0;
    for piece in text.split(',') {
        let (name, value) = piece.split_once('=').map_or((piece, ""), |(name, value)| (name.trim(), value));
        // A spec begins with a type, and `:` follows the type where it has keys; a role stands before a type.
        let has_type = name.contains([':', '(']) || !piece.contains('=');
        let role = Role::named(name);
        if role.is_ok() || !has_type && (value.contains(':') || begins.is_empty()) {
            begins.push((role?, offset, offset + piece.len() - value.len()));
        } else if begins.is_empty() {
            begins.push((Role::Data, offset, offset));
        }
        offset += piece.len() + 1;
    }
    let ends = begins.iter().skip(1).map(|(_, begin, _)| begin - 1).chain([text.len()]);
    Ok(begins.iter().zip(ends).map(|((role, _, from), to)| (*role, &text[*from..to])).collect())
}

/// A text that names no volumes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongVolumes {
    /// A role that there is not.
    UnknownRole(UnknownRole),
    /// What a role names has a volume already.
    Twice {
        /// The specs as they were given.
        text: String,
        /// The role.
        role: Role,
    },
    /// Only logs have a volume.
    NoData {
        /// The specs as they were given.
        text: String,
    },
}

impl fmt::Display for WrongVolumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownRole(error) => error.fmt(f),
            Self::Twice { text, role } => write!(f, "{text} has two volumes for {}", role.key()),
            Self::NoData { text } => write!(f, "{text} has no volume for the data"),
        }
    }
}

impl std::error::Error for WrongVolumes {}

impl From<UnknownRole> for WrongVolumes {
    fn from(error: UnknownRole) -> Self {
        Self::UnknownRole(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_volume_lies_on_that_of_the_data() {
        let one = Volumes::new("a");
        assert!(one.is_one() && one.get(Role::Redo).is_none());
        assert_eq!((one.on(Role::Redo), one.role_of(Role::Redo)), (&"a", Role::Data));
        let two = one.with(Role::Redo, "b");
        assert_eq!((two.role_of(Role::Redo), two.role_of(Role::Binlog)), (Role::Redo, Role::Data));
        assert_eq!(two.roles().collect::<Vec<_>>(), [(Role::Data, &"a"), (Role::Redo, &"b")]);
    }

    #[test]
    fn a_volume_that_both_logs_lie_on_is_one_volume_until_one_of_them_has_another() {
        let mut logs = Volumes::new("a").with(Role::Logs, "b");
        assert_eq!(logs.roles().collect::<Vec<_>>(), [(Role::Data, &"a"), (Role::Logs, &"b")]);
        for log in LOGS {
            assert_eq!((logs.get(log), logs.role_of(log)), (Some(&"b"), Role::Logs));
        }
        assert_eq!(logs.map(|name| name.len()).role_of(Role::Binlog), Role::Logs);
        *logs.get_mut(Role::Binlog).unwrap() = "c";
        assert_eq!(logs.get(Role::Logs), Some(&"c"));
        logs.set(Role::Redo, "d");
        assert_eq!(logs.to_string(), "data=a,redo=d,binlog=c");
        assert!(logs.get(Role::Logs).is_none());
        logs.set(Role::Logs, "e");
        assert_eq!(logs.to_string(), "data=a,redo+binlog=e");
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        for text in [
            "gp3:size=500GiB,iops=6000",
            "raid0(2x gp3:size=1TiB,iops=4000)",
            "nvme",
            "data=nvme,redo=nvme",
            "data=gp3:size=500GiB,iops=6000,redo=io2:size=20GiB,iops=3000,binlog=gp2:size=50GiB",
            "data=raid0(2x gp3:size=1TiB,iops=4000),binlog=gp3:size=50GiB",
            "data=gp3:size=500GiB,redo+binlog=io2:size=20GiB,iops=3000",
        ] {
            assert_eq!(Volumes::parse(text).unwrap().to_string(), text);
        }
        let shown = |text| Volumes::parse(text).unwrap().to_string();
        assert_eq!(shown("data=gp3:size=5GiB"), "gp3:size=5GiB");
        assert_eq!(shown("gp3:size=5GiB,redo=nvme"), "data=gp3:size=5GiB,redo=nvme");
        assert_eq!(shown("redo=nvme,data=gp3:size=5GiB"), "data=gp3:size=5GiB,redo=nvme");
    }

    #[test]
    fn wrong_volumes_are_refused_with_what_to_write() {
        let why = |text: &str| Volumes::parse(text).unwrap_err().to_string();
        assert!(
            why("logs=gp3:size=5GiB").starts_with("logs is no role: use data, redo, binlog or redo+binlog")
        );
        assert_eq!(why("redo=nvme"), "redo=nvme has no volume for the data");
        let logs = "data=nvme,redo+binlog=nvme";
        for role in ["redo", "binlog", "redo+binlog", "data"] {
            let text = format!("{logs},{role}=nvme");
            assert_eq!(why(&text), format!("{text} has two volumes for {role}"));
        }
    }
}
