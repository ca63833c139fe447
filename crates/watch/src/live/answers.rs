//! What a server answered, as the alarms take it.

use ebbtide_mysql::sampling::Reading;
use ebbtide_observe::Version;
use ebbtide_volume::Nanos;

use super::looks::{ServerLook, ServerState, Unanswered};
use super::replica_error::without_quotes;
use super::server_track::ServerTrack;
use crate::reading::{Answer, ReplicaReading, ServerCounters, ServerReading, ThreadState};
use crate::server::{ReplicaLag, lags};

/// The reading of a server. `is_new` says whether its status is a new one: the same counters at a later time would be no growth at all.
pub(super) fn server_reading(look: &ServerLook, track: &ServerTrack, is_new: bool) -> ServerReading {
    let answer = match &look.state {
        ServerState::NotAsked | ServerState::Rests => Answer::NotAsked,
        ServerState::Answers if !is_new => Answer::NotAsked,
        ServerState::Answers => counters(look, track).unwrap_or(Answer::NotAsked),
        ServerState::Unanswered { kind, error, waited } => unanswered(*kind, error, *waited),
    };
    ServerReading { name: look.name.clone(), answer }
}

fn unanswered(kind: Unanswered, error: &str, waited: Nanos) -> Answer {
    match kind {
        Unanswered::Down => Answer::Down(error.to_owned()),
        Unanswered::LoginRefused => Answer::LoginRefused(error.to_owned()),
        Unanswered::Hangs => Answer::TimedOut(waited),
    }
}

fn counters(look: &ServerLook, track: &ServerTrack) -> Option<Answer> {
    let (flavour, counters) = track.counters(&look.reading)?;
    Some(Answer::Counters(Box::new(ServerCounters {
        flavour,
        version: look.reading.release.unwrap_or(Version::new(0, 0, 0)),
        counters,
        redo_sync_bytes: track.trend().redo().sync_flush_bytes,
        replicas: replicas(&look.reading),
    })))
}

/// The channels by which a server replicates.
fn replicas(reading: &Reading) -> Vec<ReplicaReading> {
    let channel = |lag: ReplicaLag| ReplicaReading {
        channel: lag.channel,
        receiver: ThreadState::of_word(&lag.receiver_word),
        applier: ThreadState::of_word(&lag.applier_word),
        lag_s: lag.seconds,
        delay_s: lag.delay_s,
        error: lag.error.as_deref().map(without_quotes),
    };
    lags(reading).into_iter().map(channel).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use ebbtide_mysql::sampling::{ReplicaRow, Timed};

    use super::*;

    fn look(state: ServerState, reading: Reading) -> ServerLook {
        ServerLook {
            name: "shop".to_owned(),
            address: "/run/mysqld/mysqld.sock".to_owned(),
            reading: Arc::new(reading),
            state,
            placements: Arc::from([]),
            elsewhere: None,
        }
    }

    #[test]
    fn a_server_that_rests_is_no_fault_and_one_that_refuses_the_login_is_one() {
        let track = ServerTrack::default();
        let answer = |state| server_reading(&look(state, Reading::default()), &track, false).answer;
        assert_eq!(answer(ServerState::Rests), Answer::NotAsked);
        assert_eq!(answer(ServerState::Answers), Answer::NotAsked, "the same status as before");
        let lost =
            |kind| ServerState::Unanswered { kind, error: "no".to_owned(), waited: Nanos::from_secs(5) };
        assert_eq!(answer(lost(Unanswered::LoginRefused)), Answer::LoginRefused("no".to_owned()));
        assert_eq!(answer(lost(Unanswered::Down)), Answer::Down("no".to_owned()));
        assert_eq!(answer(lost(Unanswered::Hangs)), Answer::TimedOut(Nanos::from_secs(5)));
    }

    #[test]
    fn a_thread_that_has_stopped_has_its_error_and_no_lag() {
        let row: ReplicaRow = [
            ("Slave_IO_Running", "Yes"),
            ("Slave_SQL_Running", "No"),
            ("Last_SQL_Errno", "1062"),
            ("Last_SQL_Error", "Duplicate entry '4111' for key 'PRIMARY'"),
            ("Seconds_Behind_Master", "0"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
        let replica = Some(Timed { at: Duration::ZERO, value: vec![row] });
        let found = replicas(&Reading { replica, ..Reading::default() });
        assert_eq!((found[0].receiver, found[0].applier), (ThreadState::Running, ThreadState::Stopped));
        let error = "error 1062: Duplicate entry ...";
        assert_eq!((found[0].lag_s, found[0].error.as_deref()), (None, Some(error)), "no value of a row");
    }
}
