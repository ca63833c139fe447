//! The servers of a topology: what a source and its replicas are started with, and how replicas come to follow.
//!
//! A trial measures them; the crash lab has one replica and a source that is not measured. Both start them on data that
//! are copies of the same bytes, and [`connect`] them before the load begins, so that a replica has everything that
//! its source ever logged.

use std::time::Duration;

use ebbtide_load::Cancel;
use ebbtide_mysql::replication::{self, Position, ReplicationPart};
use ebbtide_mysql::{Server, ServerPlan, Settings};

use super::error::StepError;
use crate::experiment::Replication;

/// The number of the source; those of its replicas follow it.
const SOURCE_ID: u32 = 1;
/// How long a replica may take to reach its source, which is on this machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What makes a source that is not measured cost as little as possible.
const CHEAP: [(&str, &str); 5] = [
    ("log_bin", "on"),
    ("sync_binlog", "0"),
    ("flush_log_at_trx_commit", "2"),
    ("doublewrite", "off"),
    ("redo_capacity", "256MiB"),
];

const GTID_MODE: &str = "raw.gtid_mode";

/// How replicas remember how far they have come, as servers call it.
const fn position(by: Replication) -> Position {
    match by {
        Replication::Position => Position::Files,
        Replication::Gtid => Position::Gtid,
    }
}

/// The part of a source.
#[must_use]
pub const fn source_part(by: Replication) -> ReplicationPart {
    ReplicationPart { server_id: SOURCE_ID, replica: false, position: position(by) }
}

/// The part of a replica by its number, from 1 on: a source talks to one server of each number at a time.
#[must_use]
pub const fn replica_part(number: u32, by: Replication) -> ReplicationPart {
    ReplicationPart { server_id: SOURCE_ID + number, replica: true, position: position(by) }
}

/// A server with its part. By position a server of MySQL numbers no transactions (`gtid_mode = OFF`), unless its settings say
/// otherwise. By default 9.7 does and 8.0 does not, and a replica refuses a source that differs from it (error 1593). With
/// GTIDs MySQL also skips what comes a second time, and does not recover several appliers.
#[must_use]
pub fn with_part(mut plan: ServerPlan, part: ReplicationPart) -> ServerPlan {
    let by_position = part.position == Position::Files;
    if by_position && !plan.binary.is_mariadb() && plan.settings.get(GTID_MODE).is_none() {
        plan.settings.set(GTID_MODE, "OFF").expect("a raw setting is anything");
    }
    ServerPlan { part: Some(part), ..plan }
}

/// A server as a source.
#[must_use]
pub fn as_source(plan: ServerPlan, by: Replication) -> ServerPlan {
    ServerPlan { tcp: true, ..with_part(plan, source_part(by)) }
}

/// A server as a source that is not measured: it costs those that are as little as possible.
#[must_use]
pub fn as_cheap_source(mut plan: ServerPlan, by: Replication) -> ServerPlan {
    let mut cheap = Settings::new();
    for (name, value) in CHEAP {
        cheap.set(name, value).expect("a setting of the table, and a value that it takes");
    }
    plan.settings.merge(&cheap);
    as_source(plan, by)
}

/// A server as the replica of a number, from 1 on.
#[must_use]
pub fn as_replica(plan: ServerPlan, number: u32, by: Replication) -> ServerPlan {
    with_part(plan, replica_part(number, by))
}

/// Has servers follow a source from here on, and waits until they do. Both sides must have the same data.
///
/// # Errors
/// The servers', and [`StepError::Replica`] for one that does not follow.
pub fn connect<'s>(
    source: &Server,
    replicas: impl IntoIterator<Item = &'s Server>,
    by: Replication,
    cancel: &Cancel,
) -> Result<(), StepError> {
    let address = replication::open(source)?;
    for replica in replicas {
        let mut session = replica.session()?;
        replication::follow(&mut session, &address, position(by))?;
        replication::wait_until_following(&mut session, PATIENCE, cancel)?;
    }
    Ok(())
}

/// Refuses replicas that have died or no longer follow.
///
/// # Errors
/// Of the first of them.
pub fn check(replicas: &[Server]) -> Result<(), StepError> {
    for replica in replicas {
        if let Some(died) = replica.died() {
            return Err(died.into());
        }
        replication::check_follows(&mut replica.session()?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Binary, Flavour, Layout, Version, WorkPaths};

    use super::*;

    #[test]
    fn by_position_mysql_alone_is_told_to_number_no_transactions() {
        let gtid_mode_by = |by, flavour, own: Option<&str>| {
            let version = Version { major: 9, minor: 7, patch: 4 };
            let binary = Binary { path: "/x/server".into(), flavour, version, text: String::new() };
            let work = WorkPaths { dir: "/x/work".into(), records: "/x/records".into() };
            let mut plan = ServerPlan::new(binary, Layout::single("/x/data"), work);
            own.into_iter().for_each(|own| plan.settings.set(GTID_MODE, own).unwrap());
            as_replica(plan, 1, by).settings.get(GTID_MODE).map(str::to_owned)
        };
        let gtid_mode = |flavour, own| gtid_mode_by(Replication::Position, flavour, own);
        assert_eq!(gtid_mode(Flavour::MySql, None).as_deref(), Some("OFF"));
        assert_eq!(gtid_mode(Flavour::MySql, Some("ON_PERMISSIVE")).as_deref(), Some("ON_PERMISSIVE"));
        assert_eq!(gtid_mode(Flavour::MariaDb, None), None);
        assert_eq!(gtid_mode_by(Replication::Gtid, Flavour::MySql, None), None, "its part says ON");
    }

    #[test]
    fn no_two_servers_of_a_topology_have_the_same_number() {
        let by = Replication::Gtid;
        let mut all: Vec<u32> = (1..=8).map(|number| replica_part(number, by).server_id).collect();
        all.push(source_part(by).server_id);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 9);
    }
}
