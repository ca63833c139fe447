//! The redo log: its size against the rate at which it is written, and how it is written.

use ebbtide_catalog::Resolved;
use ebbtide_observe::{Device, Files, NotSeen, REDO_SYNC_FLUSH_SHARE, Role, Version};
use ebbtide_volume::RateLimit;

use super::durability::{commit_mode, share};
use super::sources::{
    KERNEL_BLOCK, MARIADB_INNODB, MYSQL_INNODB, MYSQL_REDO, OWN_CUTS, PERCONA_RESULTS, WHITEPAPER, says,
};
use super::{EVERY, MARIADB_RESIZES, MYSQL, figure, mariadb, mysql, percent, size, time, whole};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "R01",
        title: "The redo log holds an hour of writes",
        condition: "redo capacity under 60 minutes of the redo written in the interval (high under 10 minutes); the interval saw at least 1 MiB of redo, and the log has less than 64 GiB",
        reason: "MySQL's manual sizes the log for an hour of peak writes; with less, pages are written for the checkpoint again and again",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "fewer page writes for the same work, and no stall when the log is full",
        risk: "recovery after a crash reads more log: its time grows with the log in use. On MariaDB a mariadb-backup that runs fails, and from a resize to the next restart the log is written through the page cache, although innodb_log_file_buffering is OFF",
        cost: "space on the volume",
        sources: &[
            says(
                MYSQL_REDO,
                "a redo log that is large enough for one hour of peak activity smooths checkpoints",
            ),
            says(
                PERCONA_RESULTS,
                "TPC-C, 100 connections: 105,510 against 81,439 transactions a minute with 30 GiB and 4 GiB of redo (201605-tpcc-mysql-w1500-log-size)",
            ),
        ],
        judge: minutes,
    },
    Check {
        code: "R02",
        title: "The checkpoint keeps up",
        condition: "the highest checkpoint age that was seen in the interval over 75% of the age at which the server flushes before all else (high over 85%), on MariaDB from 10.5 on over 97% (high over 99%); where the server does not count that age, 83% of the redo capacity",
        reason: "near the maximum, writers wait while pages are flushed. The age rises and falls, so that one look may miss it. MariaDB flushes for the checkpoint from 88% on alone, whatever the size of the log: with few writes it stays at 88% to 95%",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "no stall of all writers",
        risk: "as of R01",
        cost: "space, or page writes spread over time",
        sources: &[says(
            MYSQL_INNODB,
            "adaptive flushing speeds up with the checkpoint age; at its limit user threads wait",
        )],
        judge: checkpoint_age,
    },
    Check {
        code: "R03",
        title: "The log buffer has room",
        condition: "Innodb_log_waits grows in the interval",
        reason: "each is a transaction that waited because the buffer was full",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "transactions do not wait for a write of the log before they commit",
        risk: "none that is known",
        cost: "memory, tens of MiB",
        sources: &[says(
            MYSQL_INNODB,
            "a large log buffer lets large transactions run without writing the log before they commit",
        )],
        judge: log_waits,
    },
    Check {
        code: "R04",
        title: "Recovery after a crash is short",
        condition: "what a crash would leave to do takes over 5 minutes at the volume's own limits: the log since the checkpoint, and a read of each dirty page",
        reason: "no server recovers faster than its volume reads. 5 minutes is a third of what MariaDB's unit of systemd waits for a start. The real time is longer, because pages are changed and written too",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a shorter outage after a crash",
        risk: "with a smaller log or fewer dirty pages the same page is written more often (R01)",
        cost: "page writes, or IOPS of the volume",
        sources: &[
            says(MYSQL_REDO, "a larger redo log lets more changes wait, and recovery has to redo them"),
            says(OWN_CUTS, "ebbtide crash measures the recovery of a server of yours, kill by kill"),
        ],
        judge: recovery,
    },
    Check {
        code: "R05",
        title: "How MariaDB writes a redo log that no commit waits for",
        condition: "ib_logfile0 is open with O_DIRECT, or where that is not seen innodb_log_file_buffering is OFF, while innodb_flush_log_at_trx_commit is 0 or 2",
        reason: "without the page cache each write of the log goes to the device, although its durability was not asked for",
        servers: &[mariadb((10, 8, 4))],
        severity: Severity::Low,
        gain: "commits do not wait for the device",
        risk: "none beyond what innodb_flush_log_at_trx_commit accepts. From ON to OFF the variable changes at a restart alone: SET GLOBAL answers success, and it stays ON",
        cost: "none",
        sources: &[says(
            MARIADB_INNODB,
            "the variable was added because writes past the page cache can be slow with innodb_flush_log_at_trx_commit = 2",
        )],
        judge: log_buffering,
    },
    Check {
        code: "R06",
        title: "Writes of the redo log fill whole blocks of the device",
        condition: "innodb_log_write_ahead_size below the physical block of the redo log's device",
        reason: "a smaller write has the kernel or the device read the block first",
        servers: MYSQL,
        severity: Severity::Low,
        gain: "no read before a write",
        risk: "none that is known",
        cost: "none",
        sources: &[
            says(
                MYSQL_INNODB,
                "set it to the block of the operating system or the file system to avoid read-on-write",
            ),
            says(
                KERNEL_BLOCK,
                "physical_block_size is the smallest unit that a device writes without a read",
            ),
        ],
        judge: write_ahead,
    },
    Check {
        code: "R07",
        title: "Threads that write the redo log",
        condition: "innodb_log_writer_threads ON with fewer than 32 processors, or with up to 4 where there is no binary log",
        reason: "the threads pay with many commits at a time; with few processors they cost switches. MySQL's own default is OFF there since 9.5; without a binary log it is OFF up to 4 processors",
        servers: &[mysql((8, 0, 22))],
        severity: Severity::Low,
        gain: "a shorter way to the device for a commit",
        risk: "at hundreds of commits at a time the threads are faster: measure",
        cost: "none",
        sources: &[says(
            MYSQL_INNODB,
            "dedicated writer threads help high concurrency; low concurrency is better without",
        )],
        judge: writer_threads,
    },
    Check {
        code: "R08",
        title: "Redo log and binary log do not wait behind the data",
        condition: "redo log or binary log on the device of the data, over 100 page writes a second, and a sync of the redo log takes over 5 ms, or a thread is in the binary log's I/O for over half of the time",
        reason: "a sync waits for its writes, of which one takes {gp3.write} at the median on gp3; on a device of its own they do not queue behind page writes. One thread at a time writes the binary log",
        servers: EVERY,
        severity: Severity::Low,
        gain: "shorter commits",
        risk: "a second volume to be snapshot together with the first",
        cost: "a small volume",
        sources: &[
            says(WHITEPAPER, "a volume of its own for logs"),
            says(MYSQL_INNODB, "innodb_log_group_home_dir is where the redo log lies"),
        ],
        judge: own_device,
    },
    Check {
        code: "R09",
        title: "One way to size the redo log",
        condition: "innodb_redo_log_capacity is set, and innodb_log_file_size or innodb_log_files_in_group too",
        reason: "the older two are then ignored, so that a reader takes the wrong size for the true one",
        servers: &[mysql((8, 0, 30))],
        severity: Severity::Low,
        gain: "the configuration says what holds",
        risk: "none",
        cost: "none",
        sources: &[says(
            MYSQL_REDO,
            "if innodb_redo_log_capacity is set, innodb_log_files_in_group and innodb_log_file_size are ignored",
        )],
        judge: two_sizes,
    },
];

/// A redo log of this size takes long to recover from; more is not advised without a measurement.
const LARGEST_ADVISED: f64 = (64_u64 << 30) as f64;
const MIB_64: f64 = (64_u64 << 20) as f64;
/// Redo of less than this a second fills no log that matters: an idle server.
const SLOWEST: f64 = 4096.0;
/// Redo of less than this in an interval is no rate: a server without clients writes so much in its first second.
const LEAST_WRITTEN: f64 = (1_u64 << 20) as f64;

/// Bytes of the redo log's files together.
pub(super) fn capacity(v: &View<'_>) -> Result<f64, Gap> {
    if v.maybe("innodb_redo_log_capacity")?.is_some() {
        v.number("innodb_redo_log_capacity")?;
        let _ = v.last("innodb_redo_log_capacity_resized");
        if v.observation().is_redo_sized_by_files() {
            let _ = (v.maybe("innodb_log_file_size")?, v.maybe("innodb_log_files_in_group")?);
        }
    } else {
        // MariaDB has one file since 10.5, and still may have the variable of their number before that.
        v.number("innodb_log_file_size")?;
        files(v)?;
    }
    let Some(bytes) = v.observation().redo_capacity_bytes() else {
        return Err(Gap::Undecided("The variables do not say how large the redo log is.".into()));
    };
    Ok(v.noted("redo_capacity", bytes as f64, "bytes of the redo log's files together"))
}

/// What turns on the counters of the checkpoint.
const COUNT_CHECKPOINT: &str = "SET GLOBAL innodb_monitor_enable = 'log_lsn_checkpoint_age' (on RDS in the parameter group) counts it; or grant PROCESS, with which SHOW ENGINE INNODB STATUS has it";

/// The checkpoint's age, bytes.
fn checkpoint_age_of(v: &View<'_>) -> Result<f64, Gap> {
    v.metric("checkpoint_age").map_err(|gap| match gap {
        Gap::Missing(missing) if v.observation().rates.is_some() => {
            Gap::Missing(NotSeen { why: COUNT_CHECKPOINT.to_owned(), ..missing })
        }
        gap => gap,
    })
}

/// Whether the page cleaner sleeps until the checkpoint is seven eighths of the way to where writers wait (`buf0flu.cc` of MariaDB
/// from 10.5 on): under each load that goes on for long enough, the age is there.
pub(super) fn waits_to_flush(v: &View<'_>) -> bool {
    v.server().is_ok_and(|(flavour, version)| flavour.is_among(version, mariadb((10, 5, 0))))
}

/// The checkpoint's age, and the age at which the server flushes before all else, bytes.
pub(super) fn checkpoint(v: &View<'_>) -> Result<(f64, f64), Gap> {
    let age = checkpoint_age_of(v)?;
    if let Ok(most) = v.metric("checkpoint_age_max") {
        return Ok((age, most));
    }
    let most = REDO_SYNC_FLUSH_SHARE * capacity(v)?;
    Ok((
        age,
        v.noted(
            "checkpoint_age_sync",
            most,
            "checkpoint age at which the server flushes before all else, by the capacity",
        ),
    ))
}

fn files(v: &View<'_>) -> Result<f64, Gap> {
    let (flavour, version) = v.server()?;
    if flavour.is_among(version, mariadb((10, 5, 0))) || v.maybe("innodb_log_files_in_group")?.is_none() {
        return Ok(1.0);
    }
    v.number("innodb_log_files_in_group")
}

/// The largest log in steps of 64 MiB up to `wanted` that leaves half of what is free now on its file system; `wanted` where the free
/// space is not known.
fn with_room(v: &View<'_>, wanted: f64, capacity: f64) -> f64 {
    // Evidence only where it decides.
    let free = v.observation().host.as_ref().and_then(|host| host.place(Files::Redo)?.free_bytes);
    let Some(free) = free else { return wanted };
    let free_half = 0.5 * free as f64;
    // MariaDB writes the new file before it deletes the old one.
    let most = if v.is_mariadb().unwrap_or(false) { free_half } else { capacity + free_half };
    let most = (most / MIB_64).floor() * MIB_64;
    if wanted <= most {
        return wanted;
    }
    v.noted("free_bytes", free as f64, "free bytes of the file system of the redo log");
    most
}

/// The fix that gives the log a capacity, bytes, or as much of it as its file system holds.
fn resize(v: &View<'_>, wanted: f64, capacity: f64) -> Result<Fix, Gap> {
    let bytes = if wanted > capacity { with_room(v, wanted, capacity) } else { wanted };
    if bytes < wanted && bytes < 1.1 * capacity {
        return Ok(Fix::by_hand(format!(
            "The redo log should have {}, for which its file system has no room: enlarge the volume first, or move the log to \
             a volume of its own (innodb_log_group_home_dir).",
            size(wanted)
        )));
    }
    let text = if bytes < wanted {
        format!(
            "Give the redo log {}, which leaves half of the free space; {} would be enough, on a larger volume.",
            size(bytes),
            size(wanted)
        )
    } else {
        format!("Give the redo log {}.", size(bytes))
    };
    if v.maybe("innodb_redo_log_capacity")?.is_some() {
        let text = if v.observation().is_redo_sized_by_files() {
            format!(
                "{text} innodb_redo_log_capacity, once set, takes the place of innodb_log_file_size: delete that from the configuration."
            )
        } else {
            text
        };
        return v.fix(text, &[("innodb_redo_log_capacity", &format!("{bytes:.0}"), Dynamic::ALWAYS)]);
    }
    let each = format!("{:.0}", bytes / files(v)?);
    let online = Dynamic { mariadb: Some(MARIADB_RESIZES), mysql: None };
    let fix = v.fix(text, &[("innodb_log_file_size", &each, online)])?;
    if fix.statements.is_empty() {
        return Ok(fix);
    }
    let text =
        format!("{} Read the size back: a resize that is killed while it waits answers success.", fix.text);
    Ok(Fix { text, ..fix }.statement("SELECT @@GLOBAL.innodb_log_file_size"))
}

/// How much more than an hour of the present writes is advised. With an hour exactly, the next look with a few more writes would
/// find the log too small again.
const HEADROOM: f64 = 1.25;

/// Bytes of the redo of an hour, at most the largest log that is advised; None where the interval saw too little of it.
fn an_hour(v: &View<'_>) -> Result<Option<f64>, Gap> {
    let rate = v.metric("redo_bytes")?;
    if rate < SLOWEST || rate * v.interval() < LEAST_WRITTEN {
        return Ok(None);
    }
    Ok(Some(((rate * 3_600.0 / MIB_64).ceil() * MIB_64).min(LARGEST_ADVISED)))
}

/// The log that is advised where an hour writes so many bytes.
fn for_an_hour(bytes: f64) -> f64 {
    ((bytes * HEADROOM / MIB_64).ceil() * MIB_64).min(LARGEST_ADVISED)
}

fn minutes(v: &View<'_>) -> Judged {
    let rate = v.metric("redo_bytes")?;
    let capacity = capacity(v)?;
    if rate < SLOWEST || rate * 3_600.0 <= capacity {
        return FINE;
    }
    let Some(wanted) = an_hour(v)? else {
        return Err(Gap::Undecided(format!(
            "The interval saw {} of redo, which is no rate: look for longer, such as --interval={:.0}s.",
            size(rate * v.interval()),
            (1.5 * LEAST_WRITTEN / rate).ceil().max(60.0)
        )));
    };
    let seconds =
        v.noted("redo_seconds", capacity / rate, "seconds of the present writes that the redo log holds");
    if wanted <= capacity {
        return FINE;
    }
    let severity = if seconds < 600.0 { Severity::High } else { Severity::Medium };
    Found::because(format!(
        "The redo log of {} is full after {} at the present {}/s.",
        size(capacity),
        time(seconds),
        size(rate)
    ))
    .severity(severity)
    .fix(resize(v, for_an_hour(wanted), capacity)?)
    .answer()
}

fn checkpoint_age(v: &View<'_>) -> Judged {
    let (last, most) = checkpoint(v)?;
    let highest = v.observation().highest_checkpoint_age;
    let meaning = "the highest checkpoint age of several looks, bytes";
    let age = highest.map_or(last, |highest| v.noted("highest_checkpoint_age", highest, meaning).max(last));
    let [medium, high] = if waits_to_flush(v) { [0.97, 0.99] } else { [0.75, 0.85] };
    if most <= 0.0 || age <= medium * most {
        return FINE;
    }
    let severity = if age > high * most { Severity::High } else { Severity::Medium };
    let capacity = capacity(v)?;
    Found::because(format!(
        "The checkpoint was {} behind, {} of the most that is allowed.",
        size(age),
        share(age, most)
    ))
    .severity(severity)
    .fix(resize(v, larger(v, capacity), capacity)?)
    .answer()
}

/// The log that R02 advises: twice the present one, or as much as R01 does.
fn larger(v: &View<'_>, capacity: f64) -> f64 {
    let hour = an_hour(v).ok().flatten().map_or(0.0, for_an_hour);
    (capacity * 2.0).max(hour).min(LARGEST_ADVISED).max(capacity)
}

/// The longest recovery that is no finding, s.
const LONGEST_RECOVERY_S: f64 = 300.0;

fn recovery(v: &View<'_>) -> Judged {
    let (age, dirty) = (checkpoint_age_of(v)?, v.metric("dirty_pages")?);
    let page = v.number("innodb_page_size")?;
    let log = v.volume_with(Files::Redo);
    let (data, redo) = (v.volume(Role::Data)?, v.volume(log)?);
    let accounting = &data.members[0].accounting;
    // A disk's throughput is counted in whole units, however little is read.
    let unit = if accounting.whole_units { page.max(f64::from(accounting.unit_bytes)) } else { page };
    let most = |volume: &Resolved, rate: Option<RateLimit>| {
        rate.map_or(f64::INFINITY, |rate| rate.ceiling as f64 * volume.members.len() as f64)
    };
    let log_of_data = if log == Role::Data { age } else { 0.0 };
    let pages_s = (dirty / most(&data, data.members[0].iops))
        .max((dirty * unit + log_of_data) / most(&data, data.members[0].throughput));
    let log_s = age / most(&redo, redo.members[0].throughput);
    let seconds = v.noted(
        "recovery_s",
        pages_s.max(log_s),
        "seconds that a recovery takes at least, by the limits of the volume",
    );
    if seconds <= LONGEST_RECOVERY_S {
        return FINE;
    }
    Found::because(format!(
        "A recovery now takes at least {}: {} dirty pages and {} of the redo log are read.",
        time(seconds),
        whole(dirty),
        size(age)
    ))
    .fix(Fix::by_hand("Write dirty pages sooner (a lower innodb_max_dirty_pages_pct_lwm), raise the volume's IOPS, or accept the time: measure it with ebbtide crash. A smaller redo log shortens it too, against R01 and R02: choose which matters more."))
    .answer()
}

fn log_waits(v: &View<'_>) -> Judged {
    let waits = v.metric("log_waits")?;
    if waits <= 0.0 {
        return FINE;
    }
    let bytes = v.number("innodb_log_buffer_size")?;
    let online = Dynamic { mariadb: None, mysql: Some(Version::new(8, 0, 11)) };
    let wanted = format!("{:.0}", (bytes * 2.0).max(MIB_64));
    Found::because(format!(
        "{} transactions a second wait because the log buffer of {} is full.",
        figure(waits),
        size(bytes)
    ))
    .fix(v.fix("Enlarge the log buffer.", &[("innodb_log_buffer_size", &wanted, online)])?)
    .answer()
}

/// Whether the redo log is written past the page cache. The variable says it of the next start: after a resize of the log
/// MariaDB writes through the page cache, and the variable stays OFF (seen on 10.11.19 and 11.8.9).
fn is_redo_direct(v: &View<'_>) -> Result<bool, Gap> {
    let by_variable = !v.on("innodb_log_file_buffering")?;
    let Some(direct) = v.observation().host.as_ref().and_then(|host| host.redo_direct) else {
        return Ok(by_variable);
    };
    v.noted(
        "redo_direct",
        f64::from(u8::from(direct)),
        "1 where the server has ib_logfile0 open with O_DIRECT",
    );
    Ok(direct)
}

fn log_buffering(v: &View<'_>) -> Judged {
    if !matches!(commit_mode(v)?, "0" | "2") || !is_redo_direct(v)? {
        return FINE;
    }
    let found = Found::because(
        "The redo log is written past the page cache, although no commit waits for the device.",
    )
    .confidence(Confidence::Medium);
    // What D01 asks for comes first: commits that wait for the device are slower through the page cache.
    if !v.is_copy() {
        return found
            .fix(Fix::by_hand(
                "Where the loss of D01 is accepted, measure with innodb_log_file_buffering = ON.",
            ))
            .answer();
    }
    found
        .fix(v.fix("Measure with the page cache.", &[("innodb_log_file_buffering", "ON", Dynamic::ALWAYS)])?)
        .answer()
}

fn write_ahead(v: &View<'_>) -> Judged {
    let bytes = v.number("innodb_log_write_ahead_size")?;
    let block = v.device(Files::Redo)?.physical_block_bytes;
    let block = v.fact("physical_block_bytes", block, "physical block of the device, bytes")?;
    // The server takes up to a page of 16 KiB.
    if bytes >= block || block > 16_384.0 {
        return FINE;
    }
    Found::because(format!("Writes of {} go to a device with blocks of {}.", size(bytes), size(block)))
        .fix(v.fix(
            "Pad writes to the block.",
            &[("innodb_log_write_ahead_size", &format!("{block:.0}"), Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn writer_threads(v: &View<'_>) -> Judged {
    if !v.on("innodb_log_writer_threads")? {
        return FINE;
    }
    let processors = v.fact("processors", v.host()?.processors, "processors of the machine")?;
    let few = if v.on("log_bin")? { processors < 32.0 } else { processors <= 4.0 };
    if !few {
        return FINE;
    }
    Found::because(format!("Four threads write the redo log on {processors} processors."))
        .confidence(Confidence::Medium)
        .fix(v.fix(
            "Let committing threads write the log themselves.",
            &[("innodb_log_writer_threads", "OFF", Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn own_device(v: &View<'_>) -> Judged {
    let data = v.device(Files::Data)?;
    let redo = v.device(Files::Redo)?;
    let binlog = if v.on("log_bin").unwrap_or(false) { v.device(Files::Binlog).map(Some) } else { Ok(None) };
    let is_beside = |device: &Option<&Device>| device.is_some_and(|device| device.shares_with(data));
    let beside = [redo.shares_with(data), binlog.as_ref().is_ok_and(is_beside)];
    if beside == [false, false] {
        return binlog.map(|_| None);
    }
    let writes = v.metric("page_writes")?;
    if writes <= 100.0 {
        return FINE;
    }
    let [redo_sync, binlog_wait] = [
        beside[0].then(|| v.metric("redo_sync_us")).transpose(),
        beside[1].then(|| v.metric("binlog_wait")).transpose(),
    ];
    let mut why = Vec::new();
    if let Ok(Some(sync_us)) = redo_sync
        && sync_us > 5_000.0
    {
        why.push(format!("A sync of the redo log takes {:.1} ms", sync_us / 1e3));
    }
    if let Ok(Some(share)) = binlog_wait
        && share > 0.5
    {
        why.push(format!("A thread is in the binary log's I/O for {} of the time", percent(share)));
    }
    if why.is_empty() {
        return redo_sync.and(binlog_wait).and(binlog).map(|_| None);
    }
    Found::because(format!("{} on {}, which writes pages too.", why.join(", and "), data.name))
        .confidence(Confidence::Medium)
        .fix(Fix::by_hand("Move the log to a volume of its own (innodb_log_group_home_dir for the redo log, log_bin for the binary log), or raise the limits of this one (E03)."))
        .answer()
}

fn two_sizes(v: &View<'_>) -> Judged {
    if !v.is_set("innodb_redo_log_capacity")? {
        return FINE;
    }
    let old = ["innodb_log_file_size", "innodb_log_files_in_group"];
    let set: Vec<&str> = old.into_iter().filter(|name| v.is_set(name).unwrap_or(false)).collect();
    if set.is_empty() {
        return FINE;
    }
    Found::because(format!("innodb_redo_log_capacity is set, so that {} has no effect.", set.join(" and ")))
        .fix(Fix::by_hand(format!("Delete {} from the configuration.", set.join(" and "))))
        .answer()
}
