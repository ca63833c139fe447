//! A backup restored to a server of its own, on volumes without limits, and checked there.
//!
//! What must hold: the server starts on it; it has the mark that the server of the backup showed when the backup began;
//! CHECK TABLE calls every table whole; and the workload's own condition holds, which is the number of rows for
//! sysbench's workloads that keep it, and the twelve consistency conditions for TPC-C.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Instant;

use ebbtide_dir::{Access, Dir};
use ebbtide_load::tpcc::{self, CheckOptions};
use ebbtide_load::{Cancel, DATABASE};
use ebbtide_mysql::backup::{self as tools, Source};
use ebbtide_mysql::recovery::check_tables;
use ebbtide_mysql::replication::newest_beat;
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan};
use ebbtide_text::{count, span};

use super::{BackupPlace, Made};
use crate::experiment::{BackupPlan, DataPlan, LoadKind, PlannedArm, Role};
use crate::load_report::inconsistency;
use crate::record::Restored;
use crate::run::error::StepError;
use crate::run::home::{Lab, TRIAL_PREFIX};
use crate::run::prepared::{fs_type, made_with};
use crate::run::proc;
use crate::run::volume::{LabVolume, VolumeOrigin, VolumeRequest, without_limits};

/// The work directory of the restored server.
const WORK: &str = "restored";
/// What damaged pages are made of: none is valid with it. A page of zeros would be an empty one.
static DAMAGE: [u8; 64 << 10] = [0x55; 64 << 10];
/// A damaged file has at most so many pieces of [`DAMAGE`]: 16 MiB. Recovery mends some hundred pages from the doublewrite
/// buffer and the redo log.
const MOST_PIECES: u64 = 256;
/// Of a dump, as much at its end is looked at for a row to take out.
const TAIL_BYTES: u64 = 1 << 20;

/// What restoring takes.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct Restore<'a> {
    pub(in crate::run) plan: BackupPlan,
    pub(in crate::run) lab: &'a Lab,
    pub(in crate::run) binary: &'a Binary,
    /// The server that was backed up, with the load of the arm.
    pub(in crate::run) planned: &'a PlannedArm,
    pub(in crate::run) data: DataPlan,
    /// The plan of a server on any directory, with the settings and the part of the one that was backed up.
    pub(in crate::run) server: &'a ServerPlan,
    pub(in crate::run) seed: u64,
    pub(in crate::run) cancel: &'a Cancel,
}

/// Restores a backup and checks it.
///
/// # Errors
/// [`StepError::Cancelled`]; whatever else goes wrong is what is wrong with the backup.
pub(in crate::run) fn restored(restore: &Restore<'_>, made: &Made<'_>) -> Result<Restored, StepError> {
    let began = Instant::now();
    let mut checked = Vec::new();
    let held = restore.check(made, &mut checked);
    if restore.cancel.is_cancelled() {
        return Err(StepError::Cancelled);
    }
    let failed = held.err().map(|error| error.chain());
    Ok(Restored { took_s: began.elapsed().as_secs_f64(), checked, failed })
}

impl Restore<'_> {
    fn check(&self, made: &Made<'_>, checked: &mut Vec<String>) -> Result<(), StepError> {
        let stop = tools::until(self.cancel);
        let volume = self.volume(&made.at)?;
        let dir = match (&made.at, &volume) {
            (BackupPlace::Files(dir), _) => dir.clone(),
            (_, Some(volume)) => volume.dir().join(Role::Data.key()),
            (_, None) => unreachable!("all but copied files are restored to a volume"),
        };
        if self.plan.damage {
            damage(&made.at, &dir)
                .map_err(|source| StepError::Io { action: "damage the backup on purpose".into(), source })?;
        }
        let mut settings = self.server.settings.clone();
        if let BackupPlace::Dump(_) = made.at {
            // What a data directory is made with; the rest is for a load, and this server is to be fast.
            settings = made_with(&settings, self.binary);
        }
        let plan = ServerPlan {
            settings,
            layout: Layout::single(&dir),
            work: self.lab.work(WORK),
            part: self.server.part.filter(|_| matches!(made.at, BackupPlace::Snapshot(_))),
            ..self.server.clone()
        };
        let began = Instant::now();
        match &made.at {
            BackupPlace::Dump(_) => ebbtide_mysql::initialize(&plan, &|_| ())?,
            BackupPlace::Files(dir) => tools::prepare_files(self.binary, dir, &stop)?,
            BackupPlace::Snapshot(_) => {}
        }
        let server = Server::start(&plan, &|_| ())?;
        if let BackupPlace::Dump(file) = &made.at {
            tools::load_dump(&Source::of(&server), self.binary, file, &stop)?;
        }
        let blocks = match made.at {
            BackupPlace::Snapshot(_) => ", with all blocks of the snapshot there (initialization none)",
            BackupPlace::Dump(_) | BackupPlace::Files(_) => "",
        };
        checked.push(format!("a server runs on it after {}{blocks}", span(began.elapsed())));
        self.judge(&server, made.seen, checked)
    }

    /// The volume that it is restored to; none for copied files, which a server runs on as they are.
    fn volume(&self, at: &BackupPlace<'_>) -> Result<Option<LabVolume<'_>>, StepError> {
        let origin = match at {
            BackupPlace::Files(_) => return Ok(None),
            BackupPlace::Dump(_) => VolumeOrigin::Blank,
            BackupPlace::Snapshot(kept) => VolumeOrigin::Snapshot(&kept.name),
        };
        let real = self.planned.volumes.get(&Role::Data).expect("every arm has a data volume");
        let request = VolumeRequest {
            name: format!("{TRIAL_PREFIX}{WORK}"),
            origin,
            unlimited: without_limits(real, self.lab.host.now()),
            fs: fs_type(&self.planned.arm.instance.fs),
            rotational: false,
            seed: self.seed,
            cancel: self.cancel,
        };
        LabVolume::make(self.lab, request, &|_| ()).map(Some)
    }

    fn judge(&self, server: &Server, seen: Option<u64>, checked: &mut Vec<String>) -> Result<(), StepError> {
        let mut session = server.session()?;
        let mark = newest_beat(&mut session)?;
        if mark < seen {
            let words = |mark: Option<u64>| mark.map_or("none".to_owned(), |mark| mark.to_string());
            let why = "it is older than its begin: the newest mark";
            return Err(StepError::NotRestored(format!(
                "{why} in it is {}, and {} was there",
                words(mark),
                words(seen)
            )));
        }
        checked.push("it has what was committed when the backup began".to_owned());
        let tables = check_tables(&mut session, DATABASE)?;
        if let Some(bad) = tables.iter().find(|table| !table.ok) {
            let why = format!("CHECK TABLE {}: {}", bad.table, bad.messages.join("; "));
            return Err(StepError::NotRestored(why));
        }
        let wanted: Vec<String> = self
            .planned
            .arm
            .tables(self.data)
            .tables
            .iter()
            .flat_map(|table| table.names().collect::<Vec<_>>())
            .collect();
        if tables.len() != wanted.len() {
            let why = format!("it has {}, and {} were backed up", count(tables.len(), "table"), wanted.len());
            return Err(StepError::NotRestored(why));
        }
        checked.push(format!("CHECK TABLE calls {} whole", count(tables.len(), "table")));
        let load = &self.planned.arm.load;
        // A batch job may add or take away rows.
        let is_alone = self.planned.arm.batch.is_none();
        match load.workload {
            LoadKind::Sysbench(workload) if workload.keeps_rows(&load.mix) && is_alone => {
                for name in &wanted {
                    let rows = session.value(&format!("SELECT COUNT(*) FROM {DATABASE}.{name}"))?;
                    let rows: u64 = rows.and_then(|text| text.parse().ok()).unwrap_or(0);
                    if rows != u64::from(self.data.rows) {
                        let why =
                            format!("{name} has {rows} rows, and each transaction leaves {}", self.data.rows);
                        return Err(StepError::NotRestored(why));
                    }
                }
                checked.push(format!("each has its {}", count(self.data.rows, "row")));
            }
            LoadKind::Sysbench(_) => {}
            LoadKind::Tpcc => {
                let warehouses = self.data.warehouses;
                let options = CheckOptions { warehouses, table_sets: 0, threads: proc::cpus().clamp(1, 8) };
                let report = tpcc::check(&server.target(), options, self.cancel, &|_, _| ())?;
                if let Some(why) = inconsistency(&report) {
                    return Err(StepError::NotRestored(why));
                }
                checked.push("TPC-C's twelve consistency conditions hold".to_owned());
            }
        }
        Ok(())
    }
}

/// Damages a backup: one row of a dump, or half of the largest table of files.
fn damage(at: &BackupPlace<'_>, dir: &Path) -> std::io::Result<()> {
    match at {
        BackupPlace::Dump(file) => take_row_out(file),
        BackupPlace::Files(_) | BackupPlace::Snapshot(_) => {
            let (mut file, len) = largest_table(dir)?;
            // Half of it, in whole pages of any size.
            let pieces = len / DAMAGE.len() as u64;
            file.seek(SeekFrom::Start(pieces / 4 * DAMAGE.len() as u64))?;
            (0..(pieces / 2).clamp(1, MOST_PIECES)).try_for_each(|_| file.write_all(&DAMAGE))
        }
    }
}

/// Writes blanks over one row of the last statement that inserts several.
fn take_row_out(file: &Path) -> std::io::Result<()> {
    let (dir, name) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
    let mut file = Dir::open_entry(dir)?.plain_file(name, Access::Write)?;
    let len = file.seek(SeekFrom::End(0))?;
    let from = len.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let none =
        || std::io::Error::new(std::io::ErrorKind::InvalidData, "the dump has no statement of several rows");
    let (begin, row) = row_of(&tail).ok_or_else(none)?;
    file.seek(SeekFrom::Start(from + begin as u64))?;
    file.write_all(&vec![b' '; row])
}

/// Where a row `(...),` between two others begins, and how long it is with its comma.
fn row_of(text: &[u8]) -> Option<(usize, usize)> {
    // Tools put a line break between rows, or nothing.
    let is_between = |at: usize| text[at..].starts_with(b"),(") || text[at..].starts_with(b"),\n(");
    let mut between = (0..text.len()).rev().filter(|at| is_between(*at));
    let (last, before) = (between.next()?, between.next()?);
    let begin = before + text[before..].iter().position(|byte| *byte == b'(')?;
    Some((begin, last + 2 - begin))
}

/// The largest file of a table below a data directory, to write, and its bytes.
fn largest_table(dir: &Path) -> std::io::Result<(File, u64)> {
    let mut largest: Option<(File, u64)> = None;
    let database = Dir::open_entry(dir)?.open_sub(DATABASE)?;
    for name in database.files()? {
        if Path::new(&name).extension().is_none_or(|extension| extension != "ibd") {
            continue;
        }
        let file = database.plain_file(&name, Access::Write)?;
        let len = file.metadata()?.len();
        if largest.as_ref().is_none_or(|(_, most)| len > *most) {
            largest = Some((file, len));
        }
    }
    largest.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, "there is no file of a table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_between_two_others_is_taken_out_and_the_statement_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dump.sql");
        for (before, after) in [
            (
                "INSERT INTO t VALUES\n(1,'a'),\n(2,'b'),\n(3,'c');\n",
                "INSERT INTO t VALUES\n(1,'a'),\n        \n(3,'c');\n",
            ),
            ("VALUES (1),(2),(3);", "VALUES (1),    (3);"),
        ] {
            std::fs::write(&file, before).unwrap();
            take_row_out(&file).unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(text, after);
        }
        std::fs::write(&file, "VALUES (1);").unwrap();
        take_row_out(&file).unwrap_err();
    }

    #[test]
    fn half_of_the_largest_table_is_damaged_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let tables = dir.path().join(DATABASE);
        std::fs::create_dir(&tables).unwrap();
        std::fs::write(tables.join("small.ibd"), vec![1; 1 << 16]).unwrap();
        std::fs::write(tables.join("large.ibd"), vec![2; 1 << 20]).unwrap();
        std::fs::write(tables.join("large.frm"), vec![3; 2 << 20]).unwrap();
        damage(&BackupPlace::Files(dir.path().to_owned()), dir.path()).unwrap();
        let large = std::fs::read(tables.join("large.ibd")).unwrap();
        assert_eq!(large.len(), 1 << 20);
        assert_eq!(large.iter().filter(|byte| **byte == 0x55).count(), 1 << 19);
        assert_eq!((large[(1 << 18) - 1], large[1 << 18], large[3 << 18]), (2, 0x55, 2));
        assert!(std::fs::read(tables.join("small.ibd")).unwrap().iter().all(|byte| *byte == 1));
    }
}
