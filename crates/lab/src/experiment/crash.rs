//! How the power of an arm is cut: the section `[crash]`.

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Replication, ServerRole};

/// How an arm's power is cut, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrashPlan {
    /// Whose power it is.
    #[serde(default)]
    pub role: ServerRole,
    /// How a replica remembers how far it has come; without meaning for a primary.
    #[serde(default)]
    pub replication: Replication,
    /// The program of a replica's source, as `--server` takes it; none: the replica's own. Without meaning for a primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How often, over all repeats of the arm.
    pub cuts: u32,
    /// What ends.
    pub end: End,
    /// What the arm's volumes do wrong on purpose.
    pub fault: Option<Fault>,
    /// When, each in its turn.
    pub moments: Vec<Moment>,
    /// Images of bad cuts that are kept of each kind of verdict, at most.
    pub keep: u32,
    /// What it is to prove, where it is there to prove that the tester sees damage.
    pub canary: Option<Canary>,
}

impl Default for CrashPlan {
    /// A hundred power cuts at all kinds of moments.
    fn default() -> Self {
        Self {
            role: ServerRole::default(),
            replication: Replication::default(),
            source: None,
            cuts: 100,
            end: End::PowerCut,
            fault: None,
            moments: Moment::ALL.iter().map(|(moment, _)| *moment).collect(),
            keep: 3,
            canary: None,
        }
    }
}

/// What ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The power of the whole instance, with all of its volumes at one instant. What was only in its
    /// memory, the page cache included, is lost.
    PowerCut,
    /// The server's process, by `kill -9`. The operating system goes on, and with it the page cache.
    Kill,
}

/// What a volume does wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It answers writes before they are durable.
    AnswerEarly,
    /// It answers flushes without writing its cache out. Only a volume with a volatile cache can.
    IgnoreFlush,
}

/// When the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// At any time: all instants are alike.
    Random,
    /// While a checkpoint is being written to the header of the redo log.
    Checkpoint,
    /// While pages are being written to the doublewrite area.
    Doublewrite,
    /// While a page is being written to its place.
    Page,
    /// While redo is being written.
    Redo,
    /// While the server goes on to the next file of the binary log.
    BinlogRotation,
    /// While a table is being altered.
    Ddl,
    /// When a table's file has just been extended.
    Extension,
}

/// What a canary arm proves: a tester that does not see its damage proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Canary {
    /// A volume that answers before it is durable loses commits.
    AnswersEarly,
    /// A volatile cache that ignores flushes loses commits.
    IgnoresFlushes,
    /// Pages torn without a doublewrite buffer cannot be recovered.
    TornPages,
    /// A replica that never syncs where it is does not go on there: MariaDB's position is in a file, and transactions are
    /// applied twice; MySQL's is in a table, and the relay log that it refers to is lost. It is needed where there are
    /// replicas.
    StalePosition,
}

impl End {
    const ALL: [(Self, &'static str); 2] = [(Self::PowerCut, "power-cut"), (Self::Kill, "kill")];
}

impl Fault {
    const ALL: [(Self, &'static str); 2] =
        [(Self::AnswerEarly, "answer-early"), (Self::IgnoreFlush, "ignore-flush")];
}

impl Moment {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Random, "random"),
        (Self::Checkpoint, "checkpoint"),
        (Self::Doublewrite, "doublewrite"),
        (Self::Page, "page"),
        (Self::Redo, "redo"),
        (Self::BinlogRotation, "binlog-rotation"),
        (Self::Ddl, "ddl"),
        (Self::Extension, "extension"),
    ];
}

impl Canary {
    const ALL: [(Self, &'static str); 4] = [
        (Self::AnswersEarly, "answers-early"),
        (Self::IgnoresFlushes, "ignores-flushes"),
        (Self::TornPages, "torn-pages"),
        (Self::StalePosition, "stale-position"),
    ];
}

named!(End, Fault, Moment, Canary);
