//! Waiting for a moment, or making it come: a checkpoint, a page write, a rotation of the binary log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ebbtide_device::engine::SubmittedWrite;
use ebbtide_lab::experiment::{Arm, Moment, Role};
use ebbtide_load::{DATABASE, LoadError, Session};
use rand_core::Rng;

use super::file_map::FileMap;
use super::mounted_arm::MountedArm;
use super::record::FileKind;
use super::summary;

/// How long a write of the wanted kind is waited for. Checkpoints come about once a second.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest wait before a cut at random.
const RANDOM_WAIT_US: u64 = 100_000;
/// Writes of the wanted kind that pass before the cut, at most: the first is not always the one.
const MOST_PASSED: u64 = 8;
/// From the wanted write to the cut at most: it is in flight for about half a millisecond on EBS.
const IN_FLIGHT_US: u64 = 300;
/// From a rotation's statement to the cut, at most.
const ROTATION_US: u64 = 8_000;
/// From a DDL statement to the cut, at most: copying a small table takes tens of milliseconds.
const DDL_US: u64 = 60_000;
/// How often a growing file is looked at.
const LOOK: Duration = Duration::from_micros(200);
/// What the table that is there to grow may reach, bytes.
const MOST_GROWTH: u64 = 48 << 20;

/// The table that is altered and the one that grows. Nothing is ever asked of their rows.
const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS crash_ddl (id INT NOT NULL PRIMARY KEY, v VARCHAR(200) NOT NULL)",
    "CREATE TABLE IF NOT EXISTS crash_growth (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)",
];
/// What is done to the first, over and over. The second to last leaves it as it was.
const DDL: [&str; 6] = [
    "ALTER TABLE crash_ddl ADD COLUMN w INT NOT NULL DEFAULT 7, ALGORITHM=COPY",
    "ALTER TABLE crash_ddl ADD INDEX by_v (v(20))",
    "ALTER TABLE crash_ddl RENAME TO crash_ddl_renamed",
    "ALTER TABLE crash_ddl_renamed RENAME TO crash_ddl",
    "ALTER TABLE crash_ddl DROP INDEX by_v, DROP COLUMN w, ALGORITHM=COPY",
    "ALTER TABLE crash_ddl ENGINE=InnoDB",
];
/// What makes the second grow by some pages.
const GROW: &str = "INSERT INTO crash_growth (b) VALUES (REPEAT('g', 1500000))";

/// The rows of the first: whatever the load, it needs no other table.
fn rows_to_alter() -> String {
    let rows: Vec<String> = (1..=1_000).map(|id| format!("({id},REPEAT('v',150))")).collect();
    format!("INSERT IGNORE INTO crash_ddl (id, v) VALUES {}", rows.join(","))
}

/// Makes moments come.
pub(super) struct Moments<'a> {
    mounted: &'a MountedArm<'a>,
    arm: &'a Arm,
    session: Session,
    /// The file of the table that grows.
    growing: PathBuf,
    /// Which DDL statement comes next.
    next_ddl: usize,
    has_binlog: bool,
}

impl<'a> Moments<'a> {
    /// Makes the tables that DDL and growth need, where they are wanted.
    pub(super) fn new(
        mounted: &'a MountedArm<'a>,
        arm: &'a Arm,
        mut session: Session,
        wanted: &[Moment],
        has_binlog: bool,
    ) -> Result<Self, LoadError> {
        if wanted.iter().any(|moment| matches!(moment, Moment::Ddl | Moment::Extension)) {
            for sql in TABLES {
                session.execute(sql)?;
            }
            session.execute(&rows_to_alter())?;
        }
        let growing = mounted.layout().data.join(DATABASE).join("crash_growth.ibd");
        Ok(Self { mounted, arm, session, growing, next_ddl: 0, has_binlog })
    }

    /// Does `cut` at a moment, and returns whether the moment was met; otherwise it was done after a patient
    /// wait, or at random where the moment cannot come with this arm.
    pub(super) fn at<T>(
        &mut self,
        moment: Moment,
        maps: &BTreeMap<Role, FileMap>,
        rng: &mut impl Rng,
        cut: impl FnOnce() -> T,
    ) -> Result<(T, bool), LoadError> {
        let met = match moment {
            Moment::Random => {
                std::thread::sleep(below(rng, RANDOM_WAIT_US));
                true
            }
            // Waiting would take all of the patience, every time.
            moment if !summary::can_come(moment, self.arm, self.has_binlog) => {
                std::thread::sleep(below(rng, RANDOM_WAIT_US));
                false
            }
            Moment::Checkpoint => self.await_write(maps, FileKind::Checkpoint, 0, rng),
            Moment::Doublewrite => self.await_write(maps, FileKind::Doublewrite, MOST_PASSED, rng),
            Moment::Page => self.await_write(maps, FileKind::Page, MOST_PASSED, rng),
            Moment::Redo => self.await_write(maps, FileKind::Redo, MOST_PASSED, rng),
            Moment::BinlogRotation => {
                let wait = below(rng, ROTATION_US);
                return self.during("FLUSH BINARY LOGS", |_| std::thread::sleep(wait), cut);
            }
            Moment::Ddl => {
                let sql = DDL[self.next_ddl];
                self.next_ddl = (self.next_ddl + 1) % DDL.len();
                let wait = below(rng, DDL_US);
                return self.during(sql, |_| std::thread::sleep(wait), cut);
            }
            Moment::Extension => return self.extension(cut),
        };
        Ok((cut(), met))
    }

    /// Waits until a write of a kind is in flight.
    fn await_write(
        &self,
        maps: &BTreeMap<Role, FileMap>,
        kind: FileKind,
        most_passed: u64,
        rng: &mut impl Rng,
    ) -> bool {
        let pass = u32::try_from(rng.next_u64() % (most_passed + 1)).expect("a few");
        let wait = below(rng, IN_FLIGHT_US);
        let to_pass = Arc::new(AtomicU32::new(pass));
        let (sender, receiver) = mpsc::sync_channel(1);
        for (role, volume) in &self.mounted.volumes {
            let (map, sender, to_pass) = (maps[role].clone(), sender.clone(), to_pass.clone());
            let tap = move |write: SubmittedWrite| {
                let wanted = map.find(write.offset).kind == kind;
                if wanted && to_pass.fetch_update(Ordering::Relaxed, Ordering::Relaxed, passed).is_err() {
                    // Full means that one has been sent already.
                    let _ = sender.try_send(());
                }
            };
            volume.live().set_write_callback(Some(Arc::new(tap)));
        }
        let met = receiver.recv_timeout(PATIENCE).is_ok();
        let met_at = Instant::now();
        for volume in self.mounted.volumes.values() {
            volume.live().set_write_callback(None);
        }
        // A sleep would be longer than the write is in flight.
        while met_at.elapsed() < wait {
            std::hint::spin_loop();
        }
        met
    }

    /// Does `cut` while a statement is being carried out, after `wait`, which is notified when it has ended.
    fn during<T>(
        &mut self,
        sql: &str,
        wait: impl FnOnce(&AtomicBool),
        cut: impl FnOnce() -> T,
    ) -> Result<(T, bool), LoadError> {
        let ended = AtomicBool::new(false);
        let session = &mut self.session;
        std::thread::scope(|scope| {
            let statement = scope.spawn(|| {
                let answer = session.execute(sql);
                ended.store(true, Ordering::Release);
                answer
            });
            wait(&ended);
            let met = !ended.load(Ordering::Acquire);
            let done = cut();
            statement.join().expect("a statement's thread does not panic")?;
            Ok((done, met))
        })
    }

    /// Does `cut` when a table's file has just become longer.
    fn extension<T>(&mut self, cut: impl FnOnce() -> T) -> Result<(T, bool), LoadError> {
        let growing = self.growing.clone();
        let length = || growing.metadata().map_or(0, |facts| facts.len());
        if length() > MOST_GROWTH {
            self.session.execute("TRUNCATE TABLE crash_growth")?;
        }
        let before = length();
        let mut grown = false;
        let wait = |ended: &AtomicBool| {
            while !grown && !ended.load(Ordering::Acquire) {
                std::thread::sleep(LOOK);
                grown = length() > before;
            }
        };
        let (done, _) = self.during(GROW, wait, cut)?;
        Ok((done, grown))
    }
}

fn passed(left: u32) -> Option<u32> {
    left.checked_sub(1)
}

/// A time at random, below a bound.
fn below(rng: &mut impl Rng, us: u64) -> Duration {
    Duration::from_micros(rng.next_u64() % us)
}
