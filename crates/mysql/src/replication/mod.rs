//! Replication: a source that others follow, a replica that follows it, and what the replica reports of itself.
//!
//! `words` has the statements of each server and version, `status` what a replica
//! reports, `following` whether it follows, `lag` how far it is behind,
//! `promotion` makes it the server that takes writes. What a replica is asked besides has its place in a module next to these,
//! with its statement in `words`.

mod following;
mod lag;
mod promotion;
mod status;
mod words;

use ebbtide_load::{Endpoint, LoadError, Session};

use crate::login::Password;
use crate::{Server, ServerError};

pub use crate::replication_part::{Position, ReplicationPart};
pub use following::{ReplicaLost, check_follows, wait_until_following};
pub use lag::{BEAT_DATABASE, Heartbeat, Lag, LagReader, newest_beat};
pub use promotion::promote;
pub use status::{Status, status};

use words::Words;

/// The account that replicas log in with.
const USER: &str = "ebbtide_replica";
/// Where they log in from: by this address the account is found whatever name it has.
const FROM: &str = "127.0.0.1";

/// Where replicas reach a source, and the password of their account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    password: Password,
}

/// Makes a started server a source: its binary log begins anew, and replicas on this machine have an account with a new
/// password. The server needs a binary log and a TCP port ([`ServerPlan::tcp`](crate::ServerPlan::tcp)).
///
/// # Errors
/// The server's.
///
/// # Panics
/// Where the server listens on its socket alone.
pub fn open(server: &Server) -> Result<Address, ServerError> {
    let mut session = server.session()?;
    let words = Words::of(&session);
    let password = Password::random().map_err(ServerError::io("read random bytes for a password"))?;
    for sql in [
        "SET SESSION sql_log_bin=0",
        &format!("DROP USER IF EXISTS '{USER}'@'{FROM}'"),
        &format!("CREATE USER '{USER}'@'{FROM}' IDENTIFIED BY '{}'", password.text()),
        &format!("GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'{FROM}'"),
        words.reset(),
    ] {
        session.execute(sql)?;
    }
    let tcp = server.target().endpoints.into_iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Some((host, port)),
        Endpoint::Unix(_) => None,
    });
    let (host, port) = tcp.expect("a source is started with a port");
    Ok(Address { host, port, password })
}

/// Has a server follow a source from the beginning of its binary log.
///
/// # Errors
/// The server's.
pub fn follow(session: &mut Session, source: &Address, position: Position) -> Result<(), LoadError> {
    let words = Words::of(session);
    if let Some(sql) = words.forget(position) {
        session.execute(sql)?;
    }
    session.execute(&words.change_source(source, USER, position))?;
    resume(session)
}

/// Has a replica go on where it thinks that it was.
///
/// # Errors
/// The server's: it may be unable to read its own position.
pub fn resume(session: &mut Session) -> Result<(), LoadError> {
    let sql = Words::of(session).start();
    session.execute(sql).map(drop)
}

/// Stops a replica between two transactions.
///
/// # Errors
/// The server's.
pub fn pause(session: &mut Session) -> Result<(), LoadError> {
    let sql = Words::of(session).stop();
    session.execute(sql).map(drop)
}
