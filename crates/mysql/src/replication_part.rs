//! A server's part in replication, and what it is started with for it.

use ebbtide_dir::Dir;

use crate::account::Account;
use crate::binary::{Binary, Version};
use crate::error::ServerError;
use crate::layout::Layout;

/// From this version on MySQL calls the option `skip-replica-start`.
const SKIP_REPLICA_START: Version = Version::new(8, 0, 26);
/// The file of a MySQL data directory that names its server. A copy of the directory has the same name, and a source
/// refuses a replica of its own name.
const IDENTITY: &str = "auto.cnf";

/// How a replica remembers how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// By file and offset of the source's binary log: MariaDB keeps it in the files `relay-log.info` and
    /// `master.info`, MySQL in InnoDB tables (from 8.0 on by default, from 9 on always).
    Files,
    /// By global transaction id, in an InnoDB table, with each transaction.
    Gtid,
}

/// A server's part in replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationPart {
    /// Its number, from 1 on; each server that talks to a source needs one of its own.
    pub server_id: u32,
    /// Whether it follows another: it is read-only, has relay logs, and does not begin by itself.
    pub replica: bool,
    /// How replicas remember how far they have come. Both sides have to agree on it.
    pub position: Position,
}

impl ReplicationPart {
    /// The option lines for it.
    pub(crate) fn lines(self, binary: &Binary) -> Vec<String> {
        let mut lines = vec![format!("server-id={}", self.server_id)];
        let mysql = (!binary.is_mariadb()).then_some(binary.version);
        if mysql.is_some() && self.position == Position::Gtid {
            // MariaDB has a GTID for every transaction, with or without replicas.
            lines.extend(["gtid-mode=ON", "enforce-gtid-consistency=ON"].map(str::to_owned));
        }
        if self.replica {
            lines.extend(["relay-log=relay", no_start_option(mysql), "read-only=1"].map(str::to_owned));
        }
        lines
    }

    /// Gives a data directory the name that belongs to this part's number: its server may run at the same time as those that its
    /// data were copied from.
    pub(crate) fn identify(
        self,
        layout: &Layout,
        binary: &Binary,
        account: &Account,
    ) -> Result<(), ServerError> {
        if binary.is_mariadb() {
            return Ok(());
        }
        let path = layout.data.join(IDENTITY);
        let text = format!("[auto]\nserver-uuid={}\n", self.uuid());
        let dir = Dir::open_entry(&layout.data).map_err(ServerError::at("open", &layout.data))?;
        dir.replace(IDENTITY, text.as_bytes(), 0o640, account.owner())
            .map_err(ServerError::at("write", &path))
    }

    /// The same for the same number, so that a server stays itself over its restarts.
    fn uuid(self) -> String {
        format!("ebb71de0-0000-4000-8000-{:012x}", self.server_id)
    }
}

/// The option that keeps a replica from beginning by itself when its server starts; MySQL's version, none for MariaDB.
fn no_start_option(mysql: Option<Version>) -> &'static str {
    match mysql {
        Some(version) if version >= SKIP_REPLICA_START => "skip-replica-start",
        _ => "skip-slave-start",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::Flavour;

    fn lines(flavour: Flavour, version: Version, part: ReplicationPart) -> Vec<String> {
        part.lines(&Binary { path: "/x/server".into(), flavour, version, text: String::new() })
    }

    #[test]
    fn a_replica_is_read_only_and_waits_to_be_started_and_a_source_is_neither() {
        let of = |replica| {
            let part = ReplicationPart { server_id: 7, replica, position: Position::Gtid };
            lines(Flavour::MariaDb, Version::new(10, 11, 14), part)
        };
        assert_eq!(of(false), ["server-id=7"]);
        assert_eq!(of(true), ["server-id=7", "relay-log=relay", "skip-slave-start", "read-only=1"]);
    }

    #[test]
    fn mysql_has_transaction_ids_only_where_replicas_go_by_them() {
        let of = |position| {
            let part = ReplicationPart { server_id: 1, replica: true, position };
            lines(Flavour::MySql, Version::new(9, 7, 4), part)
        };
        assert_eq!(
            of(Position::Files),
            ["server-id=1", "relay-log=relay", "skip-replica-start", "read-only=1"]
        );
        assert_eq!(of(Position::Gtid)[1..3], ["gtid-mode=ON", "enforce-gtid-consistency=ON"]);
    }

    #[test]
    fn every_number_has_a_name_of_its_own() {
        let of = |server_id| ReplicationPart { server_id, replica: false, position: Position::Files }.uuid();
        assert_eq!(of(1), "ebb71de0-0000-4000-8000-000000000001");
        assert_ne!(of(2), of(3));
    }

    #[test]
    fn the_option_that_keeps_a_replica_from_starting_has_the_name_of_its_version() {
        assert_eq!(no_start_option(Some(Version::new(8, 0, 15))), "skip-slave-start");
        assert_eq!(no_start_option(Some(Version::new(9, 7, 4))), "skip-replica-start");
        assert_eq!(no_start_option(None), "skip-slave-start");
    }
}
