//! How far replicas are behind their source: the age of a heartbeat as they show it, and the transactions that they
//! have not applied.
//!
//! A heartbeat is a row that the source is given again and again, with the time. `Seconds_Behind_Source` alone does not
//! do: it compares the clocks of two servers at the event that the applier is at, has whole seconds, and is 0 where the
//! applier waits for a receiver that is late.

use std::time::Duration;

use ebbtide_load::{LoadError, Session};

use super::words::Words;
use crate::{Server, ServerError};

/// Database and table of the heartbeat.
const BEAT: &str = "ebbtide_heartbeat.beat";
/// The database of the heartbeat.
pub const BEAT_DATABASE: &str = "ebbtide_heartbeat";
/// `ER_NO_SUCH_TABLE` and `ER_BAD_DB_ERROR`: the replica has not applied the heartbeat's table yet.
const NOT_THERE: [u16; 2] = [1146, 1049];

/// The heartbeat of a source.
#[derive(Debug)]
pub struct Heartbeat(Session);

impl Heartbeat {
    /// Makes the heartbeat's table on a source; its replicas get it with the binary log.
    ///
    /// # Errors
    /// The server's.
    pub fn open(source: &Server) -> Result<Self, ServerError> {
        let mut session = source.session()?;
        for sql in [
            "CREATE DATABASE IF NOT EXISTS ebbtide_heartbeat",
            &format!(
                "CREATE TABLE IF NOT EXISTS {BEAT} (id TINYINT NOT NULL PRIMARY KEY, at_us BIGINT UNSIGNED NOT NULL) \
                 ENGINE=InnoDB"
            ),
        ] {
            session.execute(sql)?;
        }
        Ok(Self(session))
    }

    /// Commits a heartbeat with its time, us since any moment.
    ///
    /// # Errors
    /// The server's.
    pub fn beat(&mut self, at_us: u64) -> Result<(), LoadError> {
        self.0.execute(&format!("REPLACE INTO {BEAT} VALUES (1, {at_us})")).map(drop)
    }
}

/// How far a replica is behind its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// The age of the newest heartbeat that it has applied.
    pub age: Duration,
    /// Transactions of the source's binary log that it has not applied; none where the servers do not number them:
    /// MySQL without GTIDs.
    pub transactions: Option<u64>,
    /// Its own estimate, `Seconds_Behind_Source`; none where it gives none.
    pub behind_s: Option<u64>,
}

/// Reads how far replicas are behind.
#[derive(Debug)]
pub struct LagReader {
    words: Words,
    /// What MySQL calls the source in its sets of transactions; empty on MariaDB.
    uuid: String,
    source: Session,
    /// Each with the words of its own version.
    replicas: Vec<(Words, Session)>,
}

impl LagReader {
    /// Connects to a source and its replicas.
    ///
    /// # Errors
    /// The servers'.
    pub fn open(source: &Server, replicas: &[Server]) -> Result<Self, ServerError> {
        let mut session = source.session()?;
        let words = Words::of(&session);
        let uuid = match words {
            Words::MariaDb => String::new(),
            Words::MySql(_) => session.value("SELECT @@GLOBAL.server_uuid")?.unwrap_or_default(),
        };
        let open = |replica: &Server| replica.session().map(|session| (Words::of(&session), session));
        let replicas = replicas.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { words, uuid, source: session, replicas })
    }

    /// How far the replica is behind that is farthest; none where one has applied no heartbeat yet. `now_us` is the
    /// time on the clock of the heartbeats.
    ///
    /// # Errors
    /// The servers'.
    pub fn read(&mut self, now_us: &dyn Fn() -> u64) -> Result<Option<Lag>, LoadError> {
        let logged = self.source.value(self.words.logged())?;
        let logged = logged.and_then(|text| self.words.transactions(&text, &self.uuid));
        let mut farthest: Option<Lag> = None;
        for (words, replica) in &mut self.replicas {
            let Some(at_us) = heartbeat(replica)? else { return Ok(None) };
            let age = Duration::from_micros(now_us().saturating_sub(at_us));
            let applied = replica.value(words.applied())?;
            let applied = applied.and_then(|text| words.transactions(&text, &self.uuid));
            let status = replica.named_row(words.show_status())?.unwrap_or_default();
            let lag = Lag {
                age,
                transactions: logged.map(|logged| logged.saturating_sub(applied.unwrap_or(0))),
                behind_s: status.get(words.behind()).and_then(|text| text.parse().ok()),
            };
            if farthest.is_none_or(|other| lag.age > other.age) {
                farthest = Some(lag);
            }
        }
        Ok(farthest)
    }
}

/// The newest heartbeat that a server shows, us; none before the first.
///
/// # Errors
/// The server's.
pub fn newest_beat(session: &mut Session) -> Result<Option<u64>, LoadError> {
    heartbeat(session)
}

/// The newest heartbeat that a replica shows; none before the first.
fn heartbeat(replica: &mut Session) -> Result<Option<u64>, LoadError> {
    match replica.value(&format!("SELECT at_us FROM {BEAT}")) {
        Ok(value) => Ok(value.and_then(|text| text.parse().ok())),
        Err(error) if error.code().is_some_and(|code| NOT_THERE.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}
