//! How pages reach storage.

use ebbtide_observe::{Files, NotSeen, Role, Version};

use super::buffer_pool::useful;
use super::durability::share;
use super::redo::{checkpoint, waits_to_flush};
use super::sources::{MARIADB_INNODB, MYSQL_INNODB, OWN_LAB, WHITEPAPER, says};
use super::{EVERY, MYSQL, figure, mariadb, mysql, percent, size, whole};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "F01",
        title: "Pages are cached once",
        condition: "data files go through the page cache",
        reason: "a page is then in memory twice, and the kernel writes it back in bursts of its own",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "memory for the buffer pool, and even write latency",
        risk: "a pool that is too small loses the page cache behind it: enlarge the pool first",
        cost: "none",
        sources: &[
            says(WHITEPAPER, "O_DIRECT avoids double buffering"),
            says(MYSQL_INNODB, "the default is O_DIRECT from 8.4 on, fsync before"),
            says(
                MARIADB_INNODB,
                "the default is O_DIRECT from 10.6 on; four switches replace the variable in 11.0",
            ),
        ],
        judge: cached_once,
    },
    Check {
        code: "F02",
        title: "A page is written without its neighbours",
        condition: "innodb_flush_neighbors is not 0, and the data are on an SSD or an EBS volume (MariaDB: where the kernel calls it rotational)",
        reason: "neighbours save seeks of a disk that turns; on an SSD they are only more writes",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "fewer page writes for the same work",
        risk: "on HDD volumes (st1, sc1) it helps: leave it there",
        cost: "none",
        sources: &[
            says(WHITEPAPER, "0 for SSD volumes"),
            says(MYSQL_INNODB, "the default is 0 from 8.0 on, 1 before"),
            says(
                MARIADB_INNODB,
                "the default is 1; from 10.4 on it is ignored where the kernel calls the device non-rotational",
            ),
            says(
                "https://github.com/major/MySQLTuner-perl",
                "other advice: 1 where the kernel calls the device rotational, which virtual disks often are by mistake",
            ),
            says(
                OWN_LAB,
                "our lab (`./dev bench lab-ratio`): four settings together, this one as 0 among them, gave 12.3 to 13.4 times the transactions on an eighth of a gp2",
            ),
            says(
                OWN_LAB,
                "no run of it alone is recorded: `ebbtide run flush-settings --arms base,neighbors-on` measures it, `ebbtide doctor --prove F02` under a load like the server's",
            ),
        ],
        judge: neighbours,
    },
    Check {
        code: "F03",
        title: "Flushing leaves the volume room for reads",
        condition: "innodb_io_capacity_max over 75% of the volume's sustained IOPS; or innodb_io_capacity of 200 or less with a checkpoint age over 60% (on MariaDB from 10.5 on 97%, as of R02)",
        reason: "flushing at the limit makes reads and commits queue; too low a limit lets the checkpoint age run up",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "even latency of reads and commits",
        risk: "too low a value lets the checkpoint age grow (R02): as low as keeps it under 75%",
        cost: "none",
        sources: &[
            says(
                MYSQL_INNODB,
                "about the operations a second that the system can do, as low as practical. The default is 10000 from 8.4 on, 200 before",
            ),
            says(WHITEPAPER, "set it to the IOPS of the volume. That leaves nothing for reads and logs"),
        ],
        judge: io_capacity,
    },
    Check {
        code: "F04",
        title: "How much of the buffer pool may be dirty",
        condition: "innodb_max_dirty_pages_pct under 50 or over 95, or its low-water mark not below it",
        reason: "too low writes pages again and again; too high leaves no clean page to evict",
        servers: EVERY,
        severity: Severity::Low,
        gain: "fewer page writes, or fewer bursts",
        risk: "a higher value makes a shutdown longer",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "the default is 90; the mark must be lower")],
        judge: dirty_pages,
    },
    Check {
        code: "F05",
        title: "Flushing follows the redo log",
        condition: "innodb_adaptive_flushing is OFF",
        reason: "without it pages are flushed in bursts when the log is full",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "even throughput",
        risk: "none that is known",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "on by default, to avoid bursts of I/O")],
        judge: adaptive,
    },
    Check {
        code: "F06",
        title: "A page cleaner for each part of the buffer pool",
        condition: "innodb_page_cleaners under innodb_buffer_pool_instances, of which those are counted that have 1 GiB (B05)",
        reason: "a cleaner that serves two parts leaves one without free pages",
        servers: MYSQL,
        severity: Severity::Low,
        gain: "free pages in every part of the pool",
        risk: "none that is known",
        cost: "a thread each",
        sources: &[says(MYSQL_INNODB, "the default is the number of instances from 8.4 on, 4 before")],
        judge: cleaners,
    },
    Check {
        code: "F07",
        title: "Enough pages are kept free",
        condition: "innodb_lru_scan_depth under 1024 while threads wait for a free page",
        reason: "it bounds how many free pages flushing makes a second for each part of the pool; 1024 is MySQL's default",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "statements do not wait for page writes",
        risk: "more writes on an idle server",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "raise it where there is spare I/O capacity")],
        judge: scan_depth,
    },
    Check {
        code: "F08",
        title: "Bursts of the checkpoint respect the volume",
        condition: "innodb_flush_sync is ON, pages are flushed because the redo log is full (counted, or the checkpoint is so far behind that they are), and the volume has a limit of IOPS",
        reason: "such flushes ignore innodb_io_capacity_max, and take all of the volume's IOPS from reads and commits",
        servers: EVERY,
        severity: Severity::Low,
        gain: "even latency while the checkpoint is behind",
        risk: "with OFF writers wait longer for space in the redo log: enlarge it first (R01)",
        cost: "none",
        sources: &[says(
            MYSQL_INNODB,
            "innodb_flush_sync, on by default, ignores innodb_io_capacity for bursts of I/O at checkpoints",
        )],
        judge: flush_sync,
    },
    Check {
        code: "F09",
        title: "Enough background I/O at a time",
        condition: "innodb_read_io_threads or innodb_write_io_threads under 4",
        reason: "an EBS volume needs several operations in flight to reach its IOPS; 4 is the default",
        servers: EVERY,
        severity: Severity::Low,
        gain: "queue depth for read-ahead and page writes",
        risk: "none that is known",
        cost: "threads",
        sources: &[
            says(WHITEPAPER, "keep a queue of operations for the volume's IOPS"),
            says(MYSQL_INNODB, "the default is 4, from 8.4 on at least 4"),
        ],
        judge: io_threads,
    },
    Check {
        code: "F10",
        title: "I/O is asynchronous",
        condition: "innodb_use_native_aio is OFF",
        reason: "without it a few threads do one operation each at a time",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "queue depth for read-ahead and page writes",
        risk: "none that is known; the server also turns it off by itself where fs.aio-max-nr or locked memory is too small",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "on by default on Linux")],
        judge: native_aio,
    },
    Check {
        code: "F11",
        title: "Syncs leave the file's times out",
        condition: "innodb_use_fdatasync is OFF",
        reason: "fsync writes the inode too; the default is ON from 8.4 on",
        servers: &[mysql((8, 0, 26))],
        severity: Severity::Low,
        gain: "one write less at a sync of a file whose size did not change",
        risk: "none that is known",
        cost: "none",
        sources: &[says(
            MYSQL_INNODB,
            "fdatasync does not flush changes of metadata that are not needed to read the data",
        )],
        judge: fdatasync,
    },
    Check {
        code: "F12",
        title: "Commits share syncs of the redo log",
        condition: "over 1.2 syncs of the redo log for each COMMIT while 8 or more threads run; with under 5 COMMIT for 100 statements that write, these count as commits too",
        reason: "with group commit there is less than one; 1.2 leaves room for the odd statement that commits by itself",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "more commits at the same IOPS",
        risk: "a delay that makes groups larger adds to each commit",
        cost: "latency of a commit",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/innodb-performance-group_commit.html",
            "InnoDB syncs once for a group of transactions that commit at the same time",
        )],
        judge: group_commit,
    },
    Check {
        code: "F13",
        title: "Old row versions are purged",
        condition: "history list longer than 100,000 transactions (high over 10,000,000)",
        reason: "each read of a changed row walks its old versions; the undo log grows and is read from storage",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "shorter reads, and space of the undo log",
        risk: "a transaction that is ended is rolled back",
        cost: "none",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/innodb-purge-configuration.html",
            "a long history list shows that purge lags; a long transaction holds it back",
        )],
        judge: history,
    },
    Check {
        code: "F14",
        title: "Purge has threads enough",
        condition: "innodb_purge_threads of 1 with a history list longer than 100,000 and rows deleted or updated",
        reason: "one thread purges one table at a time",
        servers: EVERY,
        severity: Severity::Low,
        gain: "purge keeps up",
        risk: "purge takes more I/O and processor time at once",
        cost: "threads",
        sources: &[says(
            MYSQL_INNODB,
            "more threads help where several tables are changed; the default is 4, from 8.4 on 1 up to 16 processors",
        )],
        judge: purge_threads,
    },
];

fn flush_sync(v: &View<'_>) -> Judged {
    if !v.on("innodb_flush_sync")? || v.volume(Role::Data)?.members[0].iops.is_none() {
        return FINE;
    }
    let Ok(pages) = v.metric("sync_flushed") else { return uncounted_bursts(v) };
    if pages <= 0.0 {
        return FINE;
    }
    Found::because(format!("{} pages a second are flushed because the redo log is full.", figure(pages)))
        .fix(Fix::by_hand(BURSTS))
        .answer()
}

/// F08 where the server does not count such flushes: MySQL does not by default.
fn uncounted_bursts(v: &View<'_>) -> Judged {
    let missing = || {
        let why = "SET GLOBAL innodb_monitor_enable = 'buffer_flush_sync_total_pages' (on RDS in the parameter group) counts them";
        Gap::Missing(NotSeen { what: "flushes because the redo log is full".into(), why: why.into() })
    };
    let (age, most) = checkpoint(v).map_err(|_| missing())?;
    if age > most {
        return Found::because(format!(
            "The checkpoint is {} behind, past the {} at which pages are flushed because the redo log is full.",
            size(age),
            size(most)
        ))
        .fix(Fix::by_hand(BURSTS))
        .answer();
    }
    // The checkpoint was behind by no more than this at any moment: what it moved since the beginning is added.
    let moved = ["innodb_redo_log_checkpoint_lsn", "innodb_lsn_last_checkpoint"];
    let Some(moved) = moved.into_iter().find_map(|name| v.growth(name).ok()) else { return Err(missing()) };
    let highest = v.noted(
        "checkpoint_age_bound",
        age + moved * v.interval(),
        "bytes that the checkpoint was behind at most in the interval",
    );
    if highest < most { FINE } else { Err(missing()) }
}

/// What to do about bursts that flush.
const BURSTS: &str = "Enlarge the redo log (R01). Where that is not possible, innodb_flush_sync = OFF keeps bursts within innodb_io_capacity_max, and writers wait instead.";

fn cached_once(v: &View<'_>) -> Judged {
    let buffering = v.maybe("innodb_data_file_buffering")?;
    let method = v.maybe("innodb_flush_method")?;
    if buffering.is_none() && method.is_none() {
        return Err(Gap::Undecided("No variable of the server says how data files are opened.".into()));
    }
    if v.observation().facts.as_ref().and_then(|facts| facts.direct) != Some(false) {
        return FINE;
    }
    let fix = if buffering.is_some() {
        uncached(v, method)?
    } else {
        v.fix(
            "Write data files past the page cache.",
            &[("innodb_flush_method", "O_DIRECT", Dynamic::NEVER)],
        )?
    };
    Found::because("Data files go through the page cache: pages are in memory twice.").fix(fix).answer()
}

/// Methods with which MariaDB from 11.0 on turns innodb_data_file_buffering on at its start, whatever that is set to (seen on
/// 11.8.9).
const BUFFERED: [&str; 3] = ["fsync", "littlesync", "nosync"];

/// Past the page cache, on MariaDB from 11.0 on: now, and after the next start.
fn uncached(v: &View<'_>, method: Option<&str>) -> Result<Fix, Gap> {
    let set = [("innodb_data_file_buffering", "OFF", Dynamic::ALWAYS)];
    let buffered = method.filter(|method| BUFFERED.iter().any(|own| own.eq_ignore_ascii_case(method)));
    let Some(method) = buffered else { return v.fix("Write data files past the page cache.", &set) };
    let text = format!(
        "Write data files past the page cache. At the next start innodb_flush_method = {method} goes before \
         innodb_data_file_buffering: remove it from the option files, or set it to O_DIRECT."
    );
    Ok(v.fix(text, &set)?.kept_by("innodb_flush_method", "O_DIRECT"))
}

/// Whether the data are on storage without seeks; None where nothing tells.
fn on_ssd(v: &View<'_>) -> Result<bool, Gap> {
    if let Ok(volume) = v.volume(Role::Data) {
        return Ok(!volume.members[0].accounting.whole_units && !volume.spec.volume.kind.contains("hdd"));
    }
    let device = v.device(Files::Data)?;
    if let Some(rotational) = device.rotational {
        v.noted(
            "rotational",
            f64::from(u8::from(rotational)),
            "1 where the kernel calls the device rotating",
        );
    }
    Ok(device.is_solid() || device.name.starts_with("vd") || device.name.starts_with("xvd"))
}

fn neighbours(v: &View<'_>) -> Judged {
    if v.one_of("innodb_flush_neighbors", &["0", "1", "2"])? == "0" {
        return FINE;
    }
    let (flavour, version) = v.server()?;
    if flavour.is_among(version, mariadb((10, 4, 0))) {
        match v.device(Files::Data).map(|device| device.rotational) {
            Ok(Some(false)) => return FINE,
            Ok(Some(true)) => {}
            _ if v.volume(Role::Data).is_err() => {
                return v.device(Files::Data).and_then(|_| {
                    Err(Gap::Undecided("The kernel does not say whether the device rotates.".into()))
                });
            }
            _ => {}
        }
    }
    if !on_ssd(v)? {
        return FINE;
    }
    Found::because("Dirty neighbours of a page are written with it, on storage that has no seeks to save.")
        .fix(v.fix("Write pages alone.", &[("innodb_flush_neighbors", "0", Dynamic::ALWAYS)])?)
        .answer()
}

fn io_capacity(v: &View<'_>) -> Judged {
    let (normal, most) = (v.number("innodb_io_capacity")?, v.number("innodb_io_capacity_max")?);
    let volume = v.volume(Role::Data);
    let carried = volume
        .as_ref()
        .ok()
        .and_then(|volume| Some(volume.members[0].iops?.rate as f64 * volume.members.len() as f64));
    if let Some(iops) = carried {
        v.noted("volume_iops", iops, "operations a second that the volume carries for ever");
        if most > 0.75 * iops {
            return too_much(v, normal, most, iops);
        }
    }
    if normal <= 200.0
        && let Some(found) = too_little(v, normal, most, carried)?
    {
        return found.answer();
    }
    volume.map(|_| None)
}

/// Shares of a volume's IOPS that are advised for `innodb_io_capacity` and for `innodb_io_capacity_max`.
const ADVISED: (f64, f64) = (0.3, 0.6);

fn too_much(v: &View<'_>, normal: f64, most: f64, iops: f64) -> Judged {
    let to_most = (iops * ADVISED.1).floor().max(100.0);
    // What is lower already stays: this is to leave room, not to write more.
    let to_normal = (iops * ADVISED.0).floor().max(100.0).min(normal);
    let set = [
        ("innodb_io_capacity", &*format!("{to_normal:.0}"), Dynamic::ALWAYS),
        ("innodb_io_capacity_max", &*format!("{to_most:.0}"), Dynamic::ALWAYS),
    ];
    let why = format!(
        "Flushing may take {} operations a second, {} of the volume's {}.",
        figure(most),
        percent(most / iops),
        figure(iops)
    );
    Found::because(why).fix(v.fix("Leave room for reads and logs.", &set)?).answer()
}

fn too_little(v: &View<'_>, normal: f64, most: f64, iops: Option<f64>) -> Result<Option<Found>, Gap> {
    let Ok((age, limit)) = checkpoint(v) else { return Ok(None) };
    if limit <= 0.0 || age <= if waits_to_flush(v) { 0.97 } else { 0.6 } * limit {
        return Ok(None);
    }
    let why = format!("innodb_io_capacity is {normal} while the checkpoint age is at {}.", share(age, limit));
    // No more than the volume carries beside reads and logs.
    let bound = |share: f64| iops.map_or(f64::INFINITY, |iops| (iops * share).floor());
    let (to_normal, to_most) = (bound(ADVISED.0).min(1_000.0), bound(ADVISED.1).min(4_000.0).max(most));
    if to_normal <= normal {
        let text = "The volume carries no more: enlarge the redo log (R01), or raise its IOPS.";
        return Ok(Some(Found::because(why).fix(Fix::by_hand(text))));
    }
    let set = [
        ("innodb_io_capacity_max", &*format!("{to_most:.0}"), Dynamic::ALWAYS),
        ("innodb_io_capacity", &*format!("{to_normal:.0}"), Dynamic::ALWAYS),
    ];
    Ok(Some(Found::because(why).fix(v.fix("Let flushing write more.", &set)?)))
}

fn dirty_pages(v: &View<'_>) -> Judged {
    let (most, mark) = (v.number("innodb_max_dirty_pages_pct")?, v.number("innodb_max_dirty_pages_pct_lwm")?);
    let why = match most {
        _ if mark >= most => {
            format!("The low-water mark of {mark}% is not below {most}%: there is no early flushing.")
        }
        m if m < 50.0 => format!(
            "Pages are flushed as soon as {most}% of the pool are dirty, and written again when they change again."
        ),
        m if m > 95.0 => {
            format!("{most}% of the pool may be dirty: hardly a page can be evicted without a write.")
        }
        _ => return FINE,
    };
    let mark = if v.is_mariadb()? { "0" } else { "10" };
    let set = [
        ("innodb_max_dirty_pages_pct", "90", Dynamic::ALWAYS),
        ("innodb_max_dirty_pages_pct_lwm", mark, Dynamic::ALWAYS),
    ];
    Found::because(why).fix(v.fix("Take the defaults.", &set)?).answer()
}

fn adaptive(v: &View<'_>) -> Judged {
    if v.on("innodb_adaptive_flushing")? {
        return FINE;
    }
    Found::because("Pages are flushed in bursts, when the redo log is full.")
        .fix(v.fix(
            "Let flushing follow the redo log.",
            &[("innodb_adaptive_flushing", "ON", Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn cleaners(v: &View<'_>) -> Judged {
    let (cleaners, parts) = (v.number("innodb_page_cleaners")?, v.number("innodb_buffer_pool_instances")?);
    // Where B05 advises fewer parts, a cleaner for each of those is enough.
    let parts = match v.number("innodb_buffer_pool_size") {
        Ok(pool) => useful(pool, parts),
        Err(_) => parts,
    };
    if cleaners >= parts {
        return FINE;
    }
    Found::because(format!(
        "{parts} parts of the pool share the page cleaners, of which there are {cleaners}."
    ))
    .fix(v.fix(
        "Take a cleaner for each part.",
        &[("innodb_page_cleaners", &format!("{parts:.0}"), Dynamic::NEVER)],
    )?)
    .answer()
}

fn scan_depth(v: &View<'_>) -> Judged {
    let depth = v.number("innodb_lru_scan_depth")?;
    if depth >= 1_024.0 {
        return FINE;
    }
    let waits = v.metric("wait_free")?;
    if waits <= 0.0 {
        return FINE;
    }
    Found::because(format!(
        "Threads wait {} times a second for a free page, and flushing keeps {depth} free.",
        figure(waits)
    ))
    .fix(v.fix("Keep more pages free.", &[("innodb_lru_scan_depth", "1024", Dynamic::ALWAYS)])?)
    .answer()
}

fn io_threads(v: &View<'_>) -> Judged {
    // MariaDB can change both while it runs from 10.11 on.
    let online = Dynamic { mariadb: Some(Version::new(10, 11, 0)), mysql: None };
    let few: Vec<_> = [
        ("innodb_read_io_threads", v.number("innodb_read_io_threads")?),
        ("innodb_write_io_threads", v.number("innodb_write_io_threads")?),
    ]
    .into_iter()
    .filter(|(_, number)| *number < 4.0)
    .map(|(name, _)| (name, "4", online))
    .collect();
    if few.is_empty() {
        return FINE;
    }
    Found::because("Few operations can be in flight at a time.")
        .fix(v.fix("Take the default or more.", &few)?)
        .answer()
}

fn native_aio(v: &View<'_>) -> Judged {
    if v.on("innodb_use_native_aio")? {
        return FINE;
    }
    let text = "Turn it on. If it is on in my.cnf, the error log says why the kernel gave none: see fs.aio-max-nr and LimitMEMLOCK.";
    Found::because("Page reads and writes of the background are done one at a time by each thread.")
        .fix(v.fix(text, &[("innodb_use_native_aio", "ON", Dynamic::NEVER)])?)
        .answer()
}

fn fdatasync(v: &View<'_>) -> Judged {
    if v.on("innodb_use_fdatasync")? {
        return FINE;
    }
    Found::because("Each sync writes the file's times too.")
        .fix(v.fix("Sync the data alone.", &[("innodb_use_fdatasync", "ON", Dynamic::ALWAYS)])?)
        .answer()
}

fn group_commit(v: &View<'_>) -> Judged {
    let (running, commits, syncs) =
        (v.metric("threads_running")?, v.metric("commits")?, v.metric("redo_syncs")?);
    // So many statements for each COMMIT commit by themselves.
    let writes = v.metric("write_statements").unwrap_or(0.0);
    let commits = if commits < 0.05 * writes { commits + writes } else { commits };
    if running < 8.0 || commits < 1.0 || syncs <= 1.2 * commits {
        return FINE;
    }
    Found::because(format!("{} syncs of the redo log for {} commits a second, with {} threads running.", figure(syncs), figure(commits), whole(running)))
        .confidence(Confidence::Medium)
        .fix(Fix::by_hand("Put statements that belong together into one transaction. Make groups of the binary log larger (check L04)."))
        .answer()
}

fn history(v: &View<'_>) -> Judged {
    let length = v.metric("history_length")?;
    if length <= 100_000.0 {
        return FINE;
    }
    let severity = if length > 10_000_000.0 { Severity::High } else { Severity::Medium };
    let text = "Find the oldest transaction: SELECT trx_mysql_thread_id, trx_started FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 1. End it, or make reports shorter.";
    Found::because(format!("{} transactions wait to be purged.", whole(length)))
        .severity(severity)
        .fix(Fix::by_hand(text))
        .answer()
}

fn purge_threads(v: &View<'_>) -> Judged {
    if v.number("innodb_purge_threads")? > 1.0 {
        return FINE;
    }
    let (length, writes) = (v.metric("history_length")?, v.metric("write_statements")?);
    if length <= 100_000.0 || writes < 1.0 {
        return FINE;
    }
    let online = Dynamic { mariadb: Some(Version::new(10, 5, 2)), mysql: None };
    Found::because(format!("One thread purges, and {} transactions wait.", whole(length)))
        .fix(v.fix("Purge with four threads.", &[("innodb_purge_threads", "4", online)])?)
        .answer()
}
