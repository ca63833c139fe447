//! The servers of an arm: the section `[topology]`.

use std::collections::BTreeMap;

use ebbtide_analysis::record::Role;
use ebbtide_mysql::Settings;
use serde::{Deserialize, Serialize};

use super::named::named;

/// The servers of an arm besides the one that the load goes to: replicas that follow it, all alike. By default there
/// are none, and the arm is a single server.
///
/// The settings and volumes of the server of the load, which is then the source, are those of the `Arm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Replicas. Each has a machine of its own, as `Arm::instance` specifies.
    pub replicas: u32,
    /// How replicas remember how far they have come.
    #[serde(default)]
    pub by: Replication,
    /// Whether the source is killed under its load at the end of a trial, and the first replica promoted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub promote: bool,
    /// What each replica is; without meaning where there are none.
    #[serde(default)]
    pub replica: ServerSpec,
}

/// The settings, volumes and program of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// The volumes, as volume specs.
    pub volumes: BTreeMap<Role, String>,
    /// The settings.
    pub settings: Settings,
    /// The server program, as `--server` names it; none: of a source the run's, of a replica its source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl Topology {
    /// Whether there is one server alone.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.replicas == 0
    }

    /// How many servers there are.
    #[must_use]
    pub fn servers(&self) -> u64 {
        u64::from(self.replicas) + 1
    }
}

/// Which server of a pair is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRole {
    /// The one that clients talk to.
    #[default]
    Primary,
    /// One that follows a source, which lives on when the replica's power is cut.
    Replica,
}

/// How a replica remembers how far it has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// By file and offset of the source's binary log, in files of its own.
    #[default]
    Position,
    /// By global transaction id, in an InnoDB table.
    Gtid,
}

impl ServerRole {
    const ALL: [(Self, &'static str); 2] = [(Self::Primary, "primary"), (Self::Replica, "replica")];
}

impl Replication {
    const ALL: [(Self, &'static str); 2] = [(Self::Position, "position"), (Self::Gtid, "gtid")];
}

named!(ServerRole, Replication);
