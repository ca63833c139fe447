//! A checker: attaches a crash image, lets the file system and the server recover, and judges what is there.
//!
//! Nothing that it could not look at is ever called clean: such a cut is *unverified*.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_device::store::StoreError;
use ebbtide_lab::experiment::Role;
use ebbtide_lab::run::error::{StepError, chain};
use ebbtide_lab::run::home::{Lab, TRIAL_PREFIX};
use ebbtide_lab::run::proc;
use ebbtide_load::DATABASE;
use ebbtide_load::invariant::{Evidence as Shown, Findings, Rule};
use ebbtide_load::{LoadError, Session};
use ebbtide_mysql::recovery::{self, LogEvidence, PageCheck};
use ebbtide_mysql::{Server, ServerError, ServerPlan};
use parking_lot::Mutex;

use super::binlog::STATEMENTS;
use super::cutter::{CutState, Images, PendingCut};
use super::error::StintError;
use super::kept_images::ImageRetention;
use super::mounted_arm::{ArmContext, MountedArm};
use super::record::{Corruption, Cut, CutCpu, Failure, Loss, PageFound, Recovery, Verdict, VerdictKind};
use super::recovery_gate::RecoveryGate;
use super::replica;
use super::replication_part;
use super::stint_workload::StintWorkload;
use super::verdict::{self, Evidence, Log};

/// How much of a server's log a verdict keeps.
const LOG_LINES: usize = 60;
/// How much of the log is read for evidence: all of a start's, in practice.
const ALL_LINES: usize = 10_000;
/// How long a recovered server may take to end, on volumes without limits.
const STOP: Duration = Duration::from_secs(60);
/// How long a server that breaks a connection may take to be gone.
const DYING: Duration = Duration::from_secs(2);
/// Lines from the end of the log that follow the words of damage.
const AFTER: usize = 12;
/// Pages that a verdict names at most.
const MOST_PAGES: usize = 16;

/// Judges the cuts of one arm.
pub(super) struct Checker<'a> {
    pub(super) context: ArmContext<'a>,
    pub(super) work: &'a StintWorkload,
    pub(super) has_binlog: bool,
    pub(super) retention: &'a ImageRetention<'a>,
    /// How many servers recover side by side, whatever the number of checkers.
    pub(super) recoveries: &'a RecoveryGate,
    /// Which of the checkers side by side it is.
    pub(super) number: usize,
    /// Takes the lines of the server's log, where somebody reads them.
    pub(super) log: Option<&'a Mutex<Vec<String>>>,
}

impl Checker<'_> {
    /// Judges a cut from its images, which are gone afterwards, or kept where it is bad; none where the user has
    /// ended the run, which takes the volumes away from under the server.
    pub(super) fn judge(&self, pending: PendingCut) -> Option<Cut> {
        let PendingCut { mut cut, images, state } = pending;
        let (began, cpu_s) = (Instant::now(), proc::thread_time_s());
        if let Err(error) = self.recover(&images, &mut cut, &state) {
            cut.verdicts.push(unverified(&error));
        }
        if self.context.cancel.is_cancelled() {
            super::cutter::delete(self.context.lab, &images);
            return None;
        }
        let clearing = Instant::now();
        cut.kept = self.retention.keep_or_delete(&images, &cut, &state.expected);
        cut.took.clear += clearing.elapsed().as_secs_f64();
        cut.took.total = cut.took.image + began.elapsed().as_secs_f64();
        note_cpu(&mut cut, cpu_s);
        Some(cut)
    }

    /// Throws away what nobody will judge.
    pub(super) fn throw_away(&self, pending: &PendingCut) {
        super::cutter::delete(self.context.lab, &pending.images);
    }

    /// Everything happens on copies of the images: what recovery changes must not alter the evidence.
    fn recover(&self, images: &Images, cut: &mut Cut, state: &CutState) -> Result<(), StintError> {
        let attaching = Instant::now();
        let name = |role: Role| format!("{TRIAL_PREFIX}check-{}-{}", self.number, role.volume_name());
        let store = self.context.lab.host.store();
        let cloned = images
            .iter()
            .try_for_each(|(role, image)| store.clone_volume(image, &name(*role), serde_json::Value::Null));
        let attached = match cloned {
            Ok(()) => MountedArm::of_images(self.context, name, &|_| ()),
            Err(error) => Err(error.into()),
        };
        cut.took.attach = attaching.elapsed().as_secs_f64();
        let mounted = match attached {
            Ok(mounted) => mounted,
            Err(error) => {
                delete_copies(self.context.lab, images.keys().map(|role| name(*role)));
                cut.verdicts.push(refused(error)?);
                return Ok(());
            }
        };
        let examined = self.examine(&mounted, &format!("check-{}", self.number), cut, state).and_then(|()| {
            let checking = Instant::now();
            self.check_file_systems(&mounted, cut)?;
            cut.took.file_system = checking.elapsed().as_secs_f64();
            Ok(())
        });
        doubt(cut, mounted.host_failures());
        examined?;
        let clearing = Instant::now();
        drop(mounted);
        cut.took.clear += clearing.elapsed().as_secs_f64();
        Ok(())
    }

    /// Lets the server recover on mounted volumes and judges what it has.
    pub(super) fn examine(
        &self,
        mounted: &MountedArm<'_>,
        work: &str,
        cut: &mut Cut,
        state: &CutState,
    ) -> Result<(), StintError> {
        let looking = Instant::now();
        match recovery::scan_pages(&mounted.layout()) {
            Ok(check) => cut.torn_before = pages(&check, mounted),
            Err(error) => cut.verdicts.push(not_looked("the pages before recovery", &error)),
        }
        cut.took.pages = looking.elapsed().as_secs_f64();
        if let Err(error) = recovery::own_binlog_index(&mounted.layout()) {
            cut.verdicts.push(not_looked("the index of the binary log", &error));
        }
        let recovering = self.recoveries.enter();
        mounted.limit(self.context)?;
        let before = mounted.io();
        let starting = Instant::now();
        let (started, failed_start) = start(&self.plan(mounted, work));
        let starts_took = starting.elapsed().as_secs_f64();
        cut.took.start = starts_took;
        let io = mounted.io().since(&before);
        drop(recovering);
        mounted.hasten()?;
        let server = match started {
            Ok(server) => server,
            Err(error) => {
                self.hand_out(|| error.log().to_vec());
                return self.take_end(mounted, cut, no_start(&error), "and the server did not recover");
            }
        };
        let start_cpu = server.cpu_time();
        let log = LogEvidence::read(&server.log_tail(ALL_LINES));
        cut.recovery = Some(Recovery {
            seconds: if failed_start.is_some() { starts_took } else { server.ready_after().as_secs_f64() },
            reads: io.read.ops,
            read_bytes: io.read.bytes,
            writes: io.write.ops,
            written_bytes: io.write.bytes,
            doublewrite_pages: u64::try_from(log.doublewrite.len()).unwrap_or(u64::MAX),
            rolled_back: log.unfinished,
            failed_start,
        });
        let asking = Instant::now();
        let asked = self.ask(mounted, &server, cut, state);
        cut.verdicts.extend(asked.err().map(|error| no_answer(&server, &error)));
        cut.took.ask = asking.elapsed().as_secs_f64();
        // Much damage shows only where the data are read or written.
        let lines = read_log(&server, cut, 0);
        let resuming = Instant::now();
        let resumed = self.resume(&server, cut, state);
        cut.verdicts.extend(resumed.err().map(|error| no_answer(&server, &error)));
        cut.took.resume = resuming.elapsed().as_secs_f64();
        read_log(&server, cut, lines);
        self.hand_out(|| server.log_tail(ALL_LINES));
        let ask = server.cpu_time().saturating_sub(start_cpu).as_secs_f64();
        cut.took.cpu = Some(CutCpu { start: start_cpu.as_secs_f64(), ask, ..CutCpu::default() });
        let ending = Instant::now();
        let died = end(server, !cut.torn_before.is_empty())?;
        cut.took.clear += ending.elapsed().as_secs_f64();
        match died {
            Some(verdict) => self.take_end(mounted, cut, verdict, "after recovery"),
            None => self.look_at_pages(mounted, cut, "after recovery"),
        }
    }

    /// Hands out what the server wrote.
    fn hand_out(&self, lines: impl FnOnce() -> Vec<String>) {
        if let Some(log) = self.log {
            *log.lock() = lines();
        }
    }

    /// Takes the verdict on a server that did not start or that died, and checks its pages if that shows damage.
    /// Otherwise they show nothing: it may not have recovered at all, and a kill can tear a page.
    fn take_end(
        &self,
        mounted: &MountedArm<'_>,
        cut: &mut Cut,
        verdict: Verdict,
        when: &str,
    ) -> Result<(), StintError> {
        let damaged = verdict.kind() == VerdictKind::Corrupt;
        // One that died of a question has its verdict already.
        if !cut.verdicts.contains(&verdict) {
            cut.verdicts.push(verdict);
        }
        if damaged { self.look_at_pages(mounted, cut, when) } else { Ok(()) }
    }

    /// The arm's server with what recovery depends on, and without what only makes its start slow.
    fn plan(&self, mounted: &MountedArm<'_>, work: &str) -> ServerPlan {
        let plan = mounted.plan(self.context, work);
        let (layout, work) = (plan.layout.clone(), plan.work.clone());
        let part = replication_part::of_checker(self.context.planned.arm.crash.as_ref(), self.number);
        ServerPlan { part, ..plan.for_recovery(layout, work) }
    }

    /// Has a replica go on, where it has a source still. Where tables are damaged, it has other worries.
    fn resume(&self, server: &Server, cut: &mut Cut, state: &CutState) -> Result<(), StintError> {
        let damaged = [VerdictKind::Corrupt, VerdictKind::Unverified];
        if cut.kinds().iter().any(|kind| damaged.contains(kind)) {
            return Ok(());
        }
        match (&state.applied, &state.journal) {
            (Some(applied), Some(journal)) => {
                replica::resume(server, self.work, applied, journal, cut, self.context.cancel)
            }
            _ => Ok(()),
        }
    }

    fn ask(
        &self,
        mounted: &MountedArm<'_>,
        server: &Server,
        cut: &mut Cut,
        state: &CutState,
    ) -> Result<(), StintError> {
        let target = server.target();
        let mut session = Session::open(&target, &target.endpoints[0])?;
        let mut findings = self.work.check(&target, &state.expected, self.context.cancel)?;
        if let Some(journal) = &state.journal {
            findings.date(journal, state.at);
        }
        cut.loss = loss(&findings);
        cut.verdicts.extend(verdicts(&findings));
        if self.has_binlog {
            self.compare_binlog(mounted, &findings, cut);
        }
        let checks = recovery::check_tables(&mut session, DATABASE)?;
        let bad: Vec<String> = checks
            .into_iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{}: {}", check.table, check.messages.join("; ")))
            .collect();
        if !bad.is_empty() {
            let how = Corruption::CheckTable;
            cut.verdicts.push(Verdict::Corrupt { how, messages: bad, pages: Vec::new() });
        }
        let tables = tables_with_file(&mut session, self.context.binary.is_mariadb())?;
        match lost_at_next_start(&mounted.layout().data, &tables) {
            Ok(lost) if lost.is_empty() => {}
            Ok(messages) => {
                let how = Corruption::Files;
                cut.verdicts.push(Verdict::Corrupt { how, messages, pages: Vec::new() });
            }
            Err(error) => cut.verdicts.push(not_looked("the files of the tables", &error)),
        }
        Ok(())
    }

    fn compare_binlog(&self, mounted: &MountedArm<'_>, findings: &Findings, cut: &mut Cut) {
        let clients = u32::try_from(findings.recovered.len()).unwrap_or(u32::MAX);
        let commits = match recovery::binlog_tail(&mounted.layout(), clients) {
            Ok(commits) => commits,
            Err(error) => return cut.verdicts.push(not_looked("the binary log", &error)),
        };
        if commits.last.is_empty() && !self.names_transactions() {
            let why = "the binary log names no transaction: were its statements left out of it?".to_owned();
            return cut.verdicts.push(Verdict::Unverified { why, log: Vec::new() });
        }
        let (mut missing_in_binlog, mut missing_in_tables, mut differences) = (0, 0, Vec::new());
        for mark in &findings.recovered {
            let logged = commits.last.get(&mark.client).copied().unwrap_or(0);
            if logged != mark.seq {
                missing_in_binlog += mark.seq.saturating_sub(logged);
                missing_in_tables += logged.saturating_sub(mark.seq);
                differences.push(format!(
                    "client {}: the tables have {} transactions, the binary log {logged}",
                    mark.client, mark.seq
                ));
            }
        }
        if !differences.is_empty() {
            cut.verdicts.push(Verdict::BinlogDisagrees { missing_in_binlog, missing_in_tables, differences });
        }
    }

    /// Whether the binary log records whose transactions it has: MariaDB's does unless it is configured not to, MySQL's
    /// where it is configured to.
    fn names_transactions(&self) -> bool {
        let is_on = |name, off: &str| {
            let value = self.context.planned.arm.settings.get(name).unwrap_or(off);
            ["on", "1", "true"].contains(&value.to_ascii_lowercase().as_str())
        };
        if self.context.binary.is_mariadb() {
            is_on("raw.binlog_annotate_row_events", "on")
        } else {
            is_on(STATEMENTS, "off")
        }
    }

    /// Looks at all pages once more: the server is gone, and what it has written is on the volume.
    fn look_at_pages(&self, mounted: &MountedArm<'_>, cut: &mut Cut, when: &str) -> Result<(), StintError> {
        let looking = Instant::now();
        match recovery::check_pages(self.context.binary, &mounted.layout()) {
            Ok(check) if check.invalid.is_empty() => {}
            Ok(check) => {
                let messages =
                    vec![format!("{} of {} pages are invalid {when}", check.invalid.len(), check.pages)];
                let pages = pages(&check, mounted);
                cut.verdicts.push(Verdict::Corrupt { how: Corruption::Pages, messages, pages });
            }
            Err(error) => cut.verdicts.push(not_looked("the pages after recovery", &error)),
        }
        cut.took.pages += looking.elapsed().as_secs_f64();
        Ok(())
    }

    fn check_file_systems(&self, mounted: &MountedArm<'_>, cut: &mut Cut) -> Result<(), StintError> {
        for (role, volume) in &mounted.volumes {
            let check = volume.check()?;
            if !check.clean {
                let messages =
                    vec![format!("the file system of the {} volume: {}", role.key(), check.output)];
                let how = Corruption::FileSystem;
                cut.verdicts.push(Verdict::Corrupt { how, messages, pages: Vec::new() });
            }
        }
        Ok(())
    }
}

/// Offset of a tablespace's number in its first page, bytes (`FIL_PAGE_SPACE_ID`).
const SPACE_ID: u64 = 34;

/// Tables of the load that have a file of their own, with the numbers of their tablespaces.
fn tables_with_file(session: &mut Session, is_mariadb: bool) -> Result<Vec<(String, u32)>, LoadError> {
    let dictionary = if is_mariadb { "INNODB_SYS_TABLES" } else { "INNODB_TABLES" };
    let listed = format!(
        "SELECT name, space FROM information_schema.{dictionary} WHERE space <> 0 AND name LIKE '{DATABASE}/%' AND \
         name NOT LIKE '%#sql%'"
    );
    let read = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter().flatten();
        Some((fields.next()?, fields.next()?.parse().ok()?))
    };
    Ok(session.rows(&listed)?.into_iter().filter_map(read).collect())
}

/// Which of these tables the next start of a server loses, each with what follows: their files are not those that it looks
/// for. A server that has recovered may read such a table all the same, by a file that recovery did not rename
/// (findings/lost-at-the-second-start.md).
fn lost_at_next_start(data: &Path, tables: &[(String, u32)]) -> std::io::Result<Vec<String>> {
    let mut lost = Vec::new();
    for (table, space) in tables {
        let found = match File::open(data.join(format!("{table}.ibd"))) {
            Ok(file) => {
                let mut number = [0; 4];
                file.read_exact_at(&mut number, SPACE_ID)?;
                u32::from_be_bytes(number)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let beside = files_of_statements(&data.join(DATABASE));
                lost.push(format!(
                    "{table}.ibd does not exist, and the next start looks for it; files of statements: {beside}"
                ));
                continue;
            }
            Err(error) => return Err(error),
        };
        // A first page that is not written yet names none.
        if found != 0 && found != *space {
            let beside = files_of_statements(&data.join(DATABASE));
            lost.push(format!(
                "{table}.ibd is that of tablespace {found}, and the next start looks for {space} in it; files of \
                 statements: {beside}"
            ));
        }
    }
    Ok(lost)
}

/// The data files of a directory that statements made for themselves.
fn files_of_statements(dir: &Path) -> String {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found: Vec<_> = names.filter(|name| name.starts_with("#sql") && name.ends_with(".ibd")).collect();
    if found.is_empty() { "none".to_owned() } else { found.join(", ") }
}

/// Deletes copies of images that were not all attached. Those that were are gone already.
pub(super) fn delete_copies(lab: &Lab, names: impl Iterator<Item = String>) {
    for name in names {
        match lab.host.store().delete_volume(&name) {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => lab.note_trouble(format!("{name}: {error}")),
        }
    }
}

/// Starts a server that is to recover. One that crashes without a report of damage is started a second time, as a service
/// manager does; how the first start ended is beside its outcome then.
pub(super) fn start(plan: &ServerPlan) -> (Result<Server, ServerError>, Option<Failure>) {
    match Server::start(plan, &|_| ()) {
        Err(first) if is_crash(&first) => {
            let failure = Failure { why: first.to_string(), log: last(first.log()) };
            (Server::start(plan, &|_| ()), Some(failure))
        }
        started => (started, None),
    }
}

/// Whether a server ended by a crash of its own code that its log does not call damage.
fn is_crash(error: &ServerError) -> bool {
    let (end, cause) = verdict::end_of(error);
    verdict::is_crash(end, cause, Log::of(&LogEvidence::read(error.log())))
}

/// Leaves nothing of what was found but that the host failed requests, where it did: a file system or a server that
/// cannot read shows what damage shows.
pub(super) fn doubt(cut: &mut Cut, host_failures: Option<String>) {
    if let Some(why) = host_failures {
        cut.verdicts = vec![Verdict::Unverified { why, log: Vec::new() }];
        cut.loss = None;
    }
}

/// Notes what this thread has used of the processors since a reading of [`proc::thread_time_s`].
pub(super) fn note_cpu(cut: &mut Cut, before_s: f64) {
    cut.took.cpu.get_or_insert_default().checker = proc::thread_time_s() - before_s;
}

/// Takes the damage that the server's log reports, without the first `known` lines of it. Reports how many there are.
fn read_log(server: &Server, cut: &mut Cut, known: usize) -> usize {
    let mut messages = LogEvidence::read(&server.log_tail(ALL_LINES)).corruption;
    messages.dedup();
    let all = messages.len();
    if all > known {
        let messages = messages.split_off(known);
        cut.verdicts.push(Verdict::Corrupt { how: Corruption::Log, messages, pages: Vec::new() });
    }
    all
}

/// Volumes that could not be attached: a file system that its tools refuse is damage, anything else is no
/// verdict at all.
fn refused(error: StepError) -> Result<Verdict, StepError> {
    match verdict::of_attaching(&error) {
        Evidence::Damage => Ok(Verdict::Corrupt {
            how: Corruption::FileSystem,
            messages: vec![error.chain()],
            pages: Vec::new(),
        }),
        Evidence::Nothing => Err(error),
    }
}

/// Ends a server that recovered. It is asked to, since a kill can cut a page in half that goes through the page
/// cache. `written` has it write back all that it has in memory first: a page that was invalid before is valid
/// there long before it is on the volume. The verdict is on a server that died; None where it ended cleanly.
fn end(server: Server, written: bool) -> Result<Option<Verdict>, StintError> {
    if written {
        let set = || -> Result<(), StintError> {
            server.session()?.execute("SET GLOBAL innodb_fast_shutdown = 1")?;
            Ok(())
        };
        // How it died is more exact than that it does not answer.
        if let Err(error) = set()
            && died(&server, &error).is_none()
        {
            return Err(error);
        }
    }
    ended(server.stop(STOP))
}

/// What the end of a server shows that was to stop: a stop writes pages back, and so can meet damage.
fn ended(stopped: Result<(), ServerError>) -> Result<Option<Verdict>, StintError> {
    match stopped {
        Err(died @ ServerError::Died { .. }) => Ok(Some(no_start(&died))),
        stopped => Ok(stopped.map(|()| None)?),
    }
}

/// What it means that a server does not answer.
fn no_answer(server: &Server, error: &StintError) -> Verdict {
    match died(server, error) {
        // What lives after it has recovered, and dies of a question, has found damage.
        Some(died) => no_start(&died),
        None if verdict::of_answer(error) == Evidence::Damage => {
            Verdict::Corrupt { how: Corruption::Rows, messages: vec![error.chain()], pages: Vec::new() }
        }
        None => Verdict::Unverified { why: error.chain(), log: server.log_tail(LOG_LINES) },
    }
}

/// How a server died that was asked; one that has broken a connection is given the time to be gone.
fn died(server: &Server, error: &StintError) -> Option<ServerError> {
    let broken = matches!(error, StintError::Step(StepError::Load(LoadError::Broken { .. })));
    let give_up = Instant::now() + if broken { DYING } else { Duration::ZERO };
    loop {
        let died = server.died();
        if died.is_some() || Instant::now() >= give_up {
            return died;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server that did not come up, or died when it was asked or stopped.
fn no_start(error: &ServerError) -> Verdict {
    let log = error.log();
    let found = LogEvidence::read(log);
    let reported = Log::of(&found);
    let mut messages = [found.corruption, found.crash].concat();
    messages.dedup();
    let (end, cause) = verdict::end_of(error);
    match verdict::of_end(end, cause, reported) {
        Evidence::Damage => {
            messages.extend_from_slice(&log[log.len().saturating_sub(AFTER)..]);
            Verdict::Corrupt { how: Corruption::NoStart, messages, pages: Vec::new() }
        }
        Evidence::Nothing => Verdict::Unverified { why: error.to_string(), log: last(log) },
    }
}

fn last(log: &[String]) -> Vec<String> {
    log[log.len().saturating_sub(LOG_LINES)..].to_vec()
}

pub(super) fn unverified(error: &StintError) -> Verdict {
    Verdict::Unverified { why: error.chain(), log: Vec::new() }
}

fn not_looked(what: &str, error: &dyn std::error::Error) -> Verdict {
    Verdict::Unverified { why: format!("{what}: {}", chain(error)), log: Vec::new() }
}

fn loss(findings: &Findings) -> Option<Loss> {
    let transactions = findings.lost_commits();
    (transactions > 0).then(|| Loss {
        transactions,
        seconds: findings.lost_ms().unwrap_or(0.0) / 1e3,
        clients: findings.lost.iter().map(|lost| (lost.client, lost.acknowledged, lost.recovered)).collect(),
    })
}

/// What broken rules are evidence of.
fn verdicts(findings: &Findings) -> Vec<Verdict> {
    let texts = |shown: Shown| -> Vec<String> {
        let of = findings.findings.iter().filter(|finding| finding.rule.evidence() == shown);
        of.map(ToString::to_string).collect()
    };
    let mut verdicts = Vec::new();
    let corrupt = texts(Shown::Corrupt);
    if !corrupt.is_empty() {
        let how = Corruption::Rows;
        verdicts.push(Verdict::Corrupt { how, messages: corrupt, pages: Vec::new() });
    }
    let partial = texts(Shown::PhantomOrPartial);
    if !partial.is_empty() {
        verdicts.push(Verdict::Partial { findings: partial });
    }
    if findings.rules().contains(&Rule::LostCommits) {
        verdicts.push(Verdict::LostCommits);
    }
    verdicts
}

/// Invalid pages, their files named as on the volume.
fn pages(check: &PageCheck, mounted: &MountedArm<'_>) -> Vec<PageFound> {
    let roots: Vec<_> = mounted.volumes.values().map(|volume| volume.dir()).collect();
    let found = check.invalid.iter().take(MOST_PAGES).map(|bad| {
        let short = roots.iter().find_map(|root| bad.file.strip_prefix(root).ok()).unwrap_or(&bad.file);
        PageFound {
            file: short.display().to_string(),
            page: bad.page.into(),
            message: bad.reason.clone(),
            copy: bad.copy,
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Cause, ProcessEnd};

    use super::*;

    fn died(signal: i32, cause: Option<Cause>, log: &[&str]) -> ServerError {
        let log = log.iter().map(|line| (*line).to_owned()).collect();
        ServerError::Died { end: ProcessEnd::Signaled { signal }, cause, log }
    }

    #[test]
    fn what_was_found_on_volumes_whose_requests_the_host_failed_is_no_evidence() {
        let found = || {
            let damage =
                Verdict::Corrupt { how: Corruption::NoStart, messages: Vec::new(), pages: Vec::new() };
            let mut cut = crate::fixture::clean("a", 1);
            cut.verdicts = vec![damage, Verdict::LostCommits];
            cut
        };
        let mut sound = found();
        doubt(&mut sound, None);
        assert_eq!(sound, found());
        let mut failed = found();
        doubt(&mut failed, Some("data: read failed once: Input/output error (os error 5)".into()));
        let [Verdict::Unverified { why, .. }] = &failed.verdicts[..] else { panic!("{:?}", failed.verdicts) };
        assert!(why.contains("os error 5") && !failed.is_bad(), "{why}");
    }

    #[test]
    fn a_table_that_the_next_start_loses_is_named_with_the_file_that_has_its_rows() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join(DATABASE)).unwrap();
        let write = |name: &str, space: u32| {
            let mut page = [0; 64];
            page[34..38].copy_from_slice(&space.to_be_bytes());
            std::fs::write(data.path().join(format!("{DATABASE}/{name}.ibd")), page).unwrap();
        };
        write("whole", 5);
        write("unwritten", 0);
        write("old", 6);
        write("#sql-alter-1-5", 8);
        let lost = |tables: &[(&str, u32)]| {
            let tables: Vec<_> =
                tables.iter().map(|(name, space)| (format!("{DATABASE}/{name}"), *space)).collect();
            lost_at_next_start(data.path(), &tables).unwrap()
        };
        assert_eq!(lost(&[("whole", 5), ("unwritten", 7)]), Vec::<String>::new());
        let found = lost(&[("old", 8), ("whole", 5), ("missing", 9)]);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(
            found[0].contains("/old.ibd is that of tablespace 6") && found[0].contains("looks for 8"),
            "{found:#?}"
        );
        assert!(found[1].contains("/missing.ibd does not exist"), "{found:#?}");
        assert!(found.iter().all(|text| text.ends_with("#sql-alter-1-5.ibd")), "{found:#?}");
    }

    #[test]
    fn a_server_that_dies_while_it_is_stopped_has_a_verdict() {
        assert_eq!(ended(Ok(())).unwrap(), None);
        for (signal, expected) in [(6, VerdictKind::Corrupt), (15, VerdictKind::Unverified)] {
            let verdict = ended(Err(died(signal, None, &[]))).unwrap();
            assert_eq!(verdict.map(|verdict| verdict.kind()), Some(expected), "signal {signal}");
        }
        let hangs = ServerError::DidNotStop { seconds: 60, log: Vec::new() };
        for error in [hangs, ServerError::Cancelled] {
            assert!(ended(Err(error)).is_err());
        }
    }

    #[test]
    fn a_server_that_crashes_for_want_of_room_or_memory_shows_no_damage() {
        const CRASH: &str = "[ERROR] mysqld got signal 6 ;";
        const CORRUPT: &str = "[ERROR] InnoDB: Page [page id: space=7, page number=3] is corrupted";
        let want = [Cause::NoSpace, Cause::Memory];
        for cause in want.into_iter().map(Some) {
            let crashed = no_start(&died(6, cause.clone(), &[CRASH]));
            assert_eq!(crashed.kind(), VerdictKind::Unverified, "{cause:?}");
            let damaged = no_start(&died(6, cause.clone(), &[CORRUPT, CRASH]));
            assert_eq!(damaged.kind(), VerdictKind::Corrupt, "{cause:?}");
        }
        // What ended it may hide that it had crashed.
        assert_eq!(no_start(&died(15, None, &[CRASH])).kind(), VerdictKind::Corrupt);
    }
}
