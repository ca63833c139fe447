//! Replicas: the source that an arm's server follows, and whether it still follows after its power was cut.
//!
//! The source is another instance, whose power stays: it runs on a volume without limits, and everything that it
//! has ever logged is there to be fetched again. So nothing that a replica loses is lost; what may break is that
//! it knows where it was. [`resume`] has it go on from there. Applying a transaction twice stops it, or breaks
//! a sum; leaving one out leaves a gap, or breaks a sum. How a source is started and followed is `topology` of the lab.

use std::time::{Duration, Instant};

use ebbtide_lab::experiment::CrashPlan;
use ebbtide_lab::run::error::StepError;
use ebbtide_lab::run::topology;
use ebbtide_load::invariant::{self, Expected, Journal};
use ebbtide_load::{Cancel, LoadError, Session, Target};
use ebbtide_mysql::Server;
use ebbtide_mysql::replication::{self, Status};

use super::error::StintError;
use super::mounted_arm::{ArmContext, MountedArm};
use super::record::{Cut, Resumed, Verdict};
use super::stint_load::{Marks, sum};
use super::stint_workload::StintWorkload;

/// Transactions that a replica has to apply beyond what it had before: a wrong position shows with the first of them.
const BEYOND: u64 = 32;
/// How long a replica may stall while there is something to apply.
const STILL: Duration = Duration::from_secs(10);
/// How long one that applies transactions a second time is waited for until it reports that itself.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long it may take to catch up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked how far it is.
const LOOK: Duration = Duration::from_millis(5);

/// The server that a replica follows. Its volume goes with it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) server: Server,
    _mounted: MountedArm<'a>,
}

impl<'a> Source<'a> {
    /// Starts a source on data with the same rows as those of the arm's server, and has that follow it.
    pub(super) fn start(
        context: ArmContext<'a>,
        snapshot: &str,
        replica: (&MountedArm<'_>, &Server),
        plan: &CrashPlan,
        doing: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        let mounted = MountedArm::unlimited(context, snapshot, "source", doing)?;
        let source = topology::as_cheap_source(mounted.plan(context, "source"), plan.replication);
        let server = Server::start(&source, &doing)?;
        let (replica_mounted, replica) = replica;
        topology::connect(&server, [replica], plan.replication, context.cancel)?;
        // A replica is set up once in its life. That these files are there at all is not what is asked.
        replica_mounted.sync()?;
        Ok(Self { server, _mounted: mounted })
    }
}

/// How a replica fared that was to go on.
enum Outcome {
    /// It has all that it had, and more, after so long.
    There(Duration),
    /// It stopped, does a second time what it had done, or gets nowhere: in its words.
    Broken(Vec<String>),
    /// It was not seen to go on, nor to be unable to: why.
    Unseen(String),
}

/// Has a recovered replica go on, and judges whether it does so where it was. `applied` is what it had applied
/// before the cut, `journal` what the clients have sent to its source.
pub(super) fn resume(
    server: &Server,
    work: &StintWorkload,
    applied: &Marks,
    journal: &Journal,
    cut: &mut Cut,
    cancel: &Cancel,
) -> Result<(), StintError> {
    let target = server.target();
    let mut session = Session::open(&target, &target.endpoints[0])?;
    let recovered = invariant::marks(&mut session)?;
    let missing = |(client, mark): (&u32, &u64)| mark.saturating_sub(mark_of(&recovered, *client));
    let to_fetch_again = applied.iter().map(missing).sum();
    let status = match replication::status(&mut session) {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err("it no longer knows whom it follows: its replica status is empty".to_owned()),
        // What it cannot read of its own position.
        Err(error @ LoadError::Server { .. }) => Err(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let status = match status {
        Ok(status) => status,
        Err(message) => {
            let place = "unknown".into();
            cut.verdicts.push(Verdict::ReplicationBroken { messages: vec![message], place });
            return Ok(());
        }
    };
    let place = status.place();
    let outcome = go_on(&mut session, applied, &recovered)?;
    let caught_up_s = match &outcome {
        Outcome::There(took) => Some(took.as_secs_f64()),
        _ => None,
    };
    cut.resumed = Some(Resumed { place: place.clone(), to_fetch_again, caught_up_s });
    let broken = |messages: Vec<String>| Verdict::ReplicationBroken { messages, place };
    let verdict = match outcome {
        Outcome::There(_) => {
            replication::pause(&mut session)?;
            let messages = diverged(&target, work, applied, journal, cancel)?;
            (!messages.is_empty()).then(|| broken(messages))
        }
        Outcome::Broken(messages) => Some(broken(messages)),
        Outcome::Unseen(why) => Some(Verdict::Unverified { why, log: Vec::new() }),
    };
    cut.verdicts.extend(verdict);
    Ok(())
}

fn mark_of(marks: &Marks, client: u32) -> u64 {
    marks.get(&client).copied().unwrap_or(0)
}

/// Starts the replica and waits until it has what it had before, and some of what came after.
fn go_on(session: &mut Session, applied: &Marks, recovered: &Marks) -> Result<Outcome, StepError> {
    let began = Instant::now();
    match replication::resume(session) {
        Ok(()) => {}
        Err(error @ LoadError::Server { .. }) => return Ok(Outcome::Broken(vec![error.to_string()])),
        Err(error) => return Err(error.into()),
    }
    let goal = sum(applied).max(sum(recovered)) + BEYOND;
    let (mut place, mut moved) = (String::new(), began);
    let mut backwards: Option<(Instant, String)> = None;
    loop {
        let status = replication::status(session)?.unwrap_or_default();
        let marks = invariant::marks(session)?;
        if backwards.is_none() {
            backwards = went_back(&marks, recovered).map(|message| (Instant::now(), message));
        }
        let known = || backwards.iter().map(|(_, message)| message.clone());
        if let Some(why) = status.stopped_by() {
            let again = twice(why, recovered);
            return Ok(Outcome::Broken(
                std::iter::once(why.to_owned()).chain(again).chain(known()).collect(),
            ));
        }
        if backwards.as_ref().is_some_and(|(since, _)| since.elapsed() > LAST_WORDS) {
            return Ok(Outcome::Broken(known().collect()));
        }
        let has_all = applied.iter().all(|(client, mark)| mark_of(&marks, *client) >= *mark);
        if has_all && sum(&marks) >= goal {
            return Ok(Outcome::There(began.elapsed()));
        }
        if status.applied != place {
            (place, moved) = (status.applied.clone(), Instant::now());
        }
        if moved.elapsed() > STILL {
            return Ok(still(&status, has_all));
        }
        if began.elapsed() > PATIENCE {
            let why = format!("the replica was still catching up after {} s", PATIENCE.as_secs());
            return Ok(Outcome::Unseen(why));
        }
        std::thread::sleep(LOOK);
    }
}

/// Why a replica stalls: its source gives it nothing, or it cannot go on.
fn still(status: &Status, has_all: bool) -> Outcome {
    let span = STILL.as_secs();
    match &status.fetch_error {
        None if has_all => {
            Outcome::Unseen(format!("the source of the replica brought nothing new for {span} s"))
        }
        // One that cannot connect has an error; this one is still at it.
        None if status.fetching && !status.connected => {
            Outcome::Unseen(format!("the replica was not connected to its source for {span} s"))
        }
        Some(error) if status.is_alone() => {
            Outcome::Unseen(format!("the source of the replica does not answer: {error}"))
        }
        error => {
            let stalled = format!("it applied nothing for {span} s: {}", status.place());
            Outcome::Broken(std::iter::once(stalled).chain(error.clone()).collect())
        }
    }
}

/// How far marks have gone back, where any has: transactions are being applied a second time, which rows that
/// were deleted since do not stop.
fn went_back(marks: &Marks, recovered: &Marks) -> Option<String> {
    let back =
        |(client, mark): (&u32, &u64)| Some((mark.checked_sub(mark_of(marks, *client))?, *client, *mark));
    let (by, client, mark) = recovered.iter().filter_map(back).filter(|(by, ..)| *by > 0).max()?;
    let clients = recovered.iter().filter_map(back).filter(|(by, ..)| *by > 0).count();
    Some(format!(
        "it applies transactions a second time: the marks of {clients} of {} clients went back, that of client {client} \
         from {mark} to {}",
        recovered.len(),
        mark - by
    ))
}

/// What does not hold in the tables of a replica that went on and was stopped; empty where all does.
fn diverged(
    target: &Target,
    work: &StintWorkload,
    applied: &Marks,
    journal: &Journal,
    cancel: &Cancel,
) -> Result<Vec<String>, StintError> {
    let sent = journal.at(Instant::now())?;
    let expected: Vec<Expected> = sent
        .into_iter()
        .map(|one| Expected { acknowledged: mark_of(applied, one.client), acknowledged_at: None, ..one })
        .collect();
    let findings = work.check(target, &expected, cancel)?;
    if findings.is_clean() {
        return Ok(Vec::new());
    }
    let first = "it goes on without an error, and has other transactions than its source".to_owned();
    Ok(std::iter::once(first).chain(findings.findings.iter().map(ToString::to_string)).collect())
}

/// Which transaction came a second time, where the replica's words name it by its row of history.
fn twice(words: &str, recovered: &Marks) -> Option<String> {
    let (_, rest) = words.split_once("Duplicate entry '")?;
    let (client, seq) = rest.split_once('\'')?.0.split_once('-')?;
    let (client, seq) = (client.parse::<u32>().ok()?, seq.parse::<u64>().ok()?);
    let mark = mark_of(recovered, client);
    (mark >= seq).then(|| {
        format!("transaction {seq} of client {client} came a second time: the tables had {mark} of that client before")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_came_twice_is_named() {
        let words = "error 1062: Could not execute Write_rows_v1 event on table sbtest.ebbtide_history; Duplicate entry \
                     '3-881' for key 'PRIMARY', Error_code: 1062";
        let had = Marks::from([(3, 890)]);
        let message = twice(words, &had).unwrap();
        assert!(message.starts_with("transaction 881 of client 3 came a second time"), "{message}");
        assert!(message.ends_with("the tables had 890 of that client before"), "{message}");
        assert_eq!(twice(words, &Marks::from([(3, 880)])), None, "it is not there already");
        assert_eq!(twice("error 1032: Can't find record in 'ebbtide_history'", &had), None);
    }

    #[test]
    fn a_source_that_does_not_answer_is_distinguished_from_a_position_that_it_does_not_have() {
        let of = |errno: u32| {
            let fetch_error = Some(format!("error {errno}: in the server's words"));
            still(&Status { fetch_errno: errno, fetch_error, ..Status::default() }, false)
        };
        assert!(matches!(of(2003), Outcome::Unseen(_)));
        assert!(matches!(of(1236), Outcome::Broken(_)));
    }

    #[test]
    fn of_marks_that_go_back_the_one_that_goes_furthest_is_reported() {
        let recovered = Marks::from([(0, 10), (1, 20), (2, 30)]);
        assert_eq!(went_back(&Marks::from([(0, 10), (1, 25), (2, 31)]), &recovered), None);
        let message = went_back(&Marks::from([(0, 9), (1, 4), (2, 30)]), &recovered).unwrap();
        assert!(
            message.ends_with("the marks of 2 of 3 clients went back, that of client 1 from 20 to 4"),
            "{message}"
        );
    }
}
