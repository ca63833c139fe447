//! The workloads that have names: the one list of them.
//!
//! The command line, experiments and profiles find a workload by its name here. Their help, their messages and docs/load.md
//! have the names and meanings of [`WORKLOADS`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::OptionError;
use crate::sysbench::{Mix, Workload};

/// What a load runs, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// TPC-C.
    Tpcc,
    /// One of sysbench's workloads.
    #[serde(untagged)]
    Sysbench(Workload),
}

/// A workload of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// What it is.
    pub kind: LoadKind,
    /// Its name, which is that of sysbench's script if there is one.
    pub name: &'static str,
    /// What a transaction does, as a part of a sentence.
    pub meaning: &'static str,
    /// Whether sysbench has a script of this name, its own or of a kit.
    pub is_script: bool,
}

/// All workloads, in the order of help texts and messages.
pub const WORKLOADS: [Registered; 11] = [
    script(Workload::PointSelect, "oltp_point_select", "a read by primary key"),
    script(
        Workload::ReadOnly,
        "oltp_read_only",
        "10 reads by primary key, 4 range reads of 100 rows, in BEGIN and COMMIT",
    ),
    script(
        Workload::ReadWrite,
        "oltp_read_write",
        "the same and the writes of oltp_write_only: 20 statements",
    ),
    script(
        Workload::WriteOnly,
        "oltp_write_only",
        "an update of the indexed column, one of another column, a delete and an insert of one id",
    ),
    script(Workload::Insert, "oltp_insert", "an insert"),
    script(Workload::Delete, "oltp_delete", "a delete by primary key"),
    script(Workload::UpdateIndex, "oltp_update_index", "an update of the indexed column"),
    script(Workload::UpdateNonIndex, "oltp_update_non_index", "an update of a column without an index"),
    script(
        Workload::BulkInsert,
        "bulk_insert",
        "rows in statements of 512 KiB, a table per connection; transactions are rows, latency is a statement's",
    ),
    Registered {
        is_script: false,
        ..script(
            Workload::KeyValue,
            "key_value",
            "a get (a read by primary key) or a put (an update of another column by primary key): --gets-pct=95. Not one \
             of sysbench's scripts",
        )
    },
    Registered {
        kind: LoadKind::Tpcc,
        name: "tpcc",
        meaning: "one of TPC-C's five transactions, on tables of its own",
        is_script: true,
    },
];

const fn script(workload: Workload, name: &'static str, meaning: &'static str) -> Registered {
    Registered { kind: LoadKind::Sysbench(workload), name, meaning, is_script: true }
}

impl LoadKind {
    fn registered(self) -> &'static Registered {
        let found = WORKLOADS.iter().find(|one| one.kind == self);
        found.expect("a test finds every kind in the list")
    }

    /// Its name, as commands and files have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.registered().name
    }

    /// All names, as a sentence's list.
    #[must_use]
    pub fn names() -> String {
        WORKLOADS.map(|one| one.name).join(", ")
    }

    /// sysbench's workload; None for another one.
    #[must_use]
    pub const fn sysbench(self) -> Option<Workload> {
        match self {
            Self::Tpcc => None,
            Self::Sysbench(workload) => Some(workload),
        }
    }

    /// Whether a mark can be added to its transactions, which shows after a crash or a promotion that they are there.
    #[must_use]
    pub fn leaves_marks(self, mix: &Mix) -> bool {
        match self {
            Self::Tpcc => true,
            Self::Sysbench(workload) => workload.leaves_marks(mix),
        }
    }
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LoadKind {
    type Err = OptionError;

    /// By the name, with or without `oltp_`, with dashes or underscores; or by the path of sysbench's script, which ends in `.lua`.
    fn from_str(text: &str) -> Result<Self, OptionError> {
        let short = |name: &str| name.strip_prefix("oltp_").unwrap_or(name).to_owned();
        let script = text.strip_suffix(".lua").map(|path| path.rsplit('/').next().unwrap_or(path));
        let wanted = short(&script.unwrap_or(text).replace('-', "_"));
        let found = WORKLOADS.iter().find(|one| short(one.name) == wanted);
        found
            .map(|one| one.kind)
            .ok_or_else(|| OptionError::UnknownWorkload { given: text.to_owned(), known: Self::names() })
    }
}

impl Workload {
    /// Its name, which is sysbench's where it has one.
    #[must_use]
    pub fn name(self) -> &'static str {
        LoadKind::Sysbench(self).name()
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_list_once_and_under_one_name() {
        for one in WORKLOADS {
            assert_eq!(one.kind.registered(), &one);
            assert_eq!(WORKLOADS.iter().filter(|other| other.name == one.name).count(), 1, "{}", one.name);
        }
        let all: Vec<_> = std::iter::successors(Some(LoadKind::Tpcc), |kind| next(*kind)).collect();
        assert!(
            all.iter().all(|kind| WORKLOADS.iter().any(|one| one.kind == *kind)),
            "one is not in the list"
        );
        assert_eq!(all.len(), WORKLOADS.len());
    }

    /// The kind after another one. The compiler refuses a kind without a place here.
    const fn next(kind: LoadKind) -> Option<LoadKind> {
        let workload = match kind {
            LoadKind::Tpcc => Workload::PointSelect,
            LoadKind::Sysbench(workload) => match workload {
                Workload::PointSelect => Workload::ReadOnly,
                Workload::ReadOnly => Workload::ReadWrite,
                Workload::ReadWrite => Workload::WriteOnly,
                Workload::WriteOnly => Workload::Insert,
                Workload::Insert => Workload::Delete,
                Workload::Delete => Workload::UpdateIndex,
                Workload::UpdateIndex => Workload::UpdateNonIndex,
                Workload::UpdateNonIndex => Workload::BulkInsert,
                Workload::BulkInsert => Workload::KeyValue,
                Workload::KeyValue => return None,
            },
        };
        Some(LoadKind::Sysbench(workload))
    }

    #[test]
    fn workloads_go_by_the_names_of_sysbenchs_scripts() {
        let read_write = LoadKind::Sysbench(Workload::ReadWrite);
        for text in [
            "oltp_read_write",
            "oltp_read_write.lua",
            "read_write",
            "read-write",
            "/usr/share/sysbench/oltp_read_write.lua",
            "./oltp_read_write.lua",
        ] {
            assert_eq!(text.parse(), Ok(read_write), "{text}");
        }
        assert!("/usr/share/oltp_read_write".parse::<LoadKind>().is_err());
        for one in WORKLOADS {
            assert_eq!(one.name.parse(), Ok(one.kind), "{}", one.name);
            assert_eq!(format!("{}.lua", one.name).parse(), Ok(one.kind), "{}", one.name);
            assert_eq!(one.kind.to_string(), one.name);
        }
        let error = "oltp_raed".parse::<LoadKind>().unwrap_err().to_string();
        assert!(error.contains("oltp_raed") && error.contains("oltp_read_only"), "{error}");
        assert!(error.ends_with("key_value, tpcc"), "{error}");
    }
}
