//! For each check a value one step inside its threshold, and one that is not.

use ebbtide_catalog::Catalog;
use ebbtide_observe::{
    Device, DeviceIo, Exceeded, Files, Role, ServerDirectory, Span, SyncProbe, VolumePeaks,
};

use super::support::{Seen, device, mariadb, mysql, server};
use crate::checks::volumes::days;

/// A check, a value with which it finds something, one with which it does not, and a server of the value.
pub(super) type Pair = (&'static str, &'static str, &'static str, fn(&str) -> Seen);

fn n(text: &str) -> f64 {
    text.parse().unwrap()
}

fn whole(text: &str) -> u64 {
    text.parse().unwrap()
}

const GIB: u64 = 1 << 30;

fn flushing() -> Seen {
    mysql()
        .var("innodb_io_capacity", "200")
        .var("innodb_io_capacity_max", "2000")
        .on("gp3:size=500GiB,iops=6000")
}

pub(super) fn redo(bytes: &str) -> Seen {
    mysql().var("innodb_redo_log_capacity", bytes).rate("redo_bytes", 1e6)
}

pub(super) fn load(writes: f64, spec: &str) -> Seen {
    let io = DeviceIo { writes, written_bytes: writes * 4096.0, queue: 1.0, ..DeviceIo::default() };
    mysql().on(spec).rate("page_writes", 1.0).device(Device { io: Some(io), ..device("nvme1n1") })
}

fn doublewrite(word: &str) -> Seen {
    mysql()
        .var("innodb_doublewrite", word)
        .var("innodb_page_size", "16384")
        .var("innodb_flush_method", "O_DIRECT")
}

fn candidate(iops: &str) -> Seen {
    doublewrite("ON")
        .on(&format!("gp3:size=500GiB,iops={iops},throughput=125,twp=on"))
        .rate("page_writes", 4_100.0)
        .rate("doublewrite_pages", 4_100.0)
        .rate("doublewrite_batches", 41.0)
        .rate("page_reads", 0.0)
        .rate("redo_bytes", 1e6)
        .rate("write_statements", 4_100.0)
        .rate("read_statements", 0.0)
}

fn binlog(bytes: &str) -> Seen {
    mysql()
        .var("binlog_row_image", "FULL")
        .var("binlog_transaction_compression", "OFF")
        .rate("binlog_bytes", n(bytes))
        .rate("data_bytes", 6e6)
        .rate("redo_bytes", 3e6)
}

/// A device with 1,000 reads of 10 ms, and 100 writes, a second.
fn reading(change: impl Fn(&mut DeviceIo)) -> Seen {
    let mut io = DeviceIo {
        reads: 1_000.0,
        writes: 100.0,
        queue: 10.1,
        read_s: Some(0.01),
        write_s: Some(0.001),
        ..DeviceIo::default()
    };
    change(&mut io);
    let device = Device { io: Some(io), ..device("nvme1n1") };
    mysql().on("gp3:size=500GiB").rate("page_writes", 1.0).device(device)
}

/// A volume with 10,000 IOPS, and what it carried over days.
fn carried(days: f64, ios: f64, spec: &str) -> Seen {
    let mut seen = mysql().on(spec);
    seen.rest.peaks = Some(VolumePeaks {
        seconds: days * 86_400.0,
        minutes: 20_160,
        ios,
        bytes: None,
        burst_balance: None,
        exceeded: None,
    });
    seen
}

/// A server whose temporary tables lie in tablespaces of InnoDB.
fn in_tablespaces(dir: &str) -> Seen {
    mysql().var("datadir", "/data/").var("innodb_temp_tablespaces_dir", dir)
}

pub(super) fn probed(p50_us: f64, p99_us: f64) -> Seen {
    let mut seen = mysql();
    seen.rest.sync_probe = Some(SyncProbe { directory: "/d".into(), writes: 1_000, p50_us, p99_us });
    seen
}

/// A server with dirty pages on a volume of 3,000 IOPS.
pub(super) fn dirty(pages: &str) -> Seen {
    mysql()
        .var("innodb_page_size", "16384")
        .on("gp3:size=500GiB")
        .rate("dirty_pages", n(pages))
        .rate("checkpoint_age", 0.0)
}

const DURABILITY: &[Pair] = &[
    ("D01", "2", "1", |x| mysql().var("innodb_flush_log_at_trx_commit", x)),
    ("D01", "0", "3", |x| mariadb().var("innodb_flush_log_at_trx_commit", x)),
    ("D02", "2", "1", |x| {
        mysql().var("innodb_flush_log_at_trx_commit", "2").var("innodb_flush_log_at_timeout", x)
    }),
    ("D03", "0", "1", |x| mariadb().var("sync_binlog", x)),
    ("D03", "2", "1", |x| mysql().var("sync_binlog", x)),
    ("D04", "OFF", "ON", doublewrite),
    ("D04", "DETECT_ONLY", "DETECT_AND_RECOVER", doublewrite),
    ("D05", "OFF", "ON", |x| mysql().last("innodb_redo_log_enabled", x)),
    ("D06", "none", "crc32", |x| mysql().var("innodb_checksum_algorithm", x)),
    ("D06", "crc32", "full_crc32", |x| mariadb().var("innodb_checksum_algorithm", x)),
    ("D06", "OFF", "ON", |x| {
        mysql().var("innodb_checksum_algorithm", "crc32").var("innodb_log_checksums", x)
    }),
    ("D07", "1", "0", |x| mysql().var("innodb_force_recovery", x)),
    ("D08", "nosync", "fsync", |x| mysql().var("innodb_flush_method", x)),
    ("D09", "barrier=0", "barrier=1", |x| mysql().place(|place| place.options.push(x.into()), device("sda"))),
    ("D09", "nobarrier", "noatime", |x| mysql().place(|place| place.options.push(x.into()), device("sda"))),
    ("D10", "OFF", "ON", |x| mysql().var("relay_log_recovery", x).replica(&[("auto_position", "0")])),
    ("D11", "1", "0", |x| mysql().tables("MyISAM", whole(x), 1)),
    ("L10", "NONE", "CRC32", |x| mysql().var("binlog_checksum", x)),
];

/// A server with little to do, whose volume has metrics.
fn metered(change: impl Fn(&mut VolumePeaks)) -> Seen {
    let mut seen = load(10.0, "gp2:size=500GiB");
    let metered = carried(14.0, 10.0, "gp2:size=500GiB").rest.peaks;
    seen.rest.peaks = metered;
    seen.rest.peaks.iter_mut().for_each(change);
    seen
}

/// A server with little to do, whose EBS volume counted time over a limit.
fn over_limit(change: impl Fn(&mut Exceeded)) -> Seen {
    let mut seen = load(10.0, "gp3:size=500GiB");
    let device = seen.rest.host.as_mut().unwrap().places[0].device.as_mut().unwrap();
    change(device.exceeded.get_or_insert_with(Exceeded::default));
    seen
}

/// A server whose redo log is on a volume of its own, with writes of 4 KiB that take a latency, s.
fn logs_on(spec: &str, writes: f64, latency: f64) -> Seen {
    let mut seen = mysql().on("gp3:size=500GiB").rate("page_writes", 1.0).device(device("nvme1n1"));
    seen.rest.volumes.set(Role::Redo, Some(spec.into()));
    for place in &mut seen.rest.host.as_mut().unwrap().places {
        let io = DeviceIo { writes: 1.0, written_bytes: 4_096.0, ..DeviceIo::default() };
        place.device.as_mut().unwrap().io = Some(io);
        if place.files == Files::Redo {
            let queue = writes * latency;
            let io = DeviceIo { writes, written_bytes: writes * 4_096.0, queue, ..DeviceIo::default() };
            place.device = Some(Device { io: Some(io), ..device("nvme2n1") });
        }
    }
    seen
}

fn slow_sync(us: &str, writes: &str) -> Seen {
    let seen = mysql().rate("redo_sync_us", n(us)).rate("page_writes", n(writes));
    seen.rate("binlog_wait", 0.5).device(device("vda"))
}

/// A volume whose device has operations in flight for a latency, s.
pub(super) fn slow(ios: f64, latency: f64, bytes: f64, spec: &str) -> Seen {
    let io = DeviceIo { reads: ios, read_bytes: ios * bytes, queue: ios * latency, ..DeviceIo::default() };
    mysql().on(spec).rate("page_writes", 1.0).device(Device { io: Some(io), ..device("nvme1n1") })
}

/// A server whose option file has lines of name and value.
pub(super) fn with_file(seen: Seen, lines: &[(&str, &str)]) -> Seen {
    let mut seen = seen;
    let line = |(number, (name, value)): (usize, &(&str, &str))| ebbtide_observe::Configured {
        name: (*name).into(),
        value: (*value).into(),
        group: "mysqld".into(),
        place: format!("/my.cnf:{number}"),
    };
    seen.rest.configured = Some(lines.iter().enumerate().map(line).collect());
    seen
}

const REDO: &[Pair] = &[
    ("R01", "3599000000", "3600000000", redo),
    ("R01", "100663296", "3600000000", |x| mariadb().var("innodb_log_file_size", x).rate("redo_bytes", 1e6)),
    ("R01", "1799000000", "1800000000", |x| {
        server("8.0.15")
            .var("innodb_log_file_size", x)
            .var("innodb_log_files_in_group", "2")
            .rate("redo_bytes", 1e6)
    }),
    ("R01", "17999999", "18000000", |x| {
        mysql()
            .var("innodb_redo_log_capacity", "104857600")
            .set("innodb_log_file_size", "GLOBAL")
            .var("innodb_log_file_size", x)
            .var("innodb_log_files_in_group", "2")
            .rate("redo_bytes", 10_000.0)
    }),
    ("R01", "68719476735", "68719476736", |x| redo(x).rate("redo_bytes", 1e9)),
    ("R02", "751", "750", |x| redo("100").rate("checkpoint_age", n(x)).rate("checkpoint_age_max", 1_000.0)),
    ("R02", "751", "750", |x| {
        let last = redo("100").rate("checkpoint_age", 400.0).rate("checkpoint_age_max", 1_000.0);
        last.highest_checkpoint_age(n(x))
    }),
    ("R02", "971", "970", |x| {
        mariadb()
            .var("innodb_log_file_size", "100")
            .rate("checkpoint_age", n(x))
            .rate("checkpoint_age_max", 1_000.0)
    }),
    ("R02", "6226", "6225", |x| {
        mysql()
            .var("innodb_redo_log_capacity", "100")
            .last("innodb_redo_log_capacity_resized", "10000")
            .rate("checkpoint_age", n(x))
    }),
    ("R02", "6226", "6225", |x| {
        server("8.0.15")
            .var("innodb_log_file_size", "5000")
            .var("innodb_log_files_in_group", "2")
            .rate("checkpoint_age", n(x))
    }),
    ("R03", "0.1", "0", |x| mysql().var("innodb_log_buffer_size", "16777216").rate("log_waits", n(x))),
    ("R04", "900001", "900000", dirty),
    ("R04", "39321600001", "39321600000", |x| dirty("0").rate("checkpoint_age", n(x))),
    ("R05", "OFF", "ON", |x| {
        mariadb().var("innodb_flush_log_at_trx_commit", "2").var("innodb_log_file_buffering", x)
    }),
    ("R05", "1", "0", |x| {
        mariadb()
            .var("innodb_flush_log_at_trx_commit", "2")
            .var("innodb_log_file_buffering", "OFF")
            .host(|host| host.redo_direct = Some(x == "1"))
    }),
    ("R06", "2048", "4096", |x| {
        mysql()
            .var("innodb_log_write_ahead_size", x)
            .device(Device { physical_block_bytes: Some(4096), ..device("sda") })
    }),
    ("R07", "31", "32", |x| {
        mysql().var("innodb_log_writer_threads", "ON").host(|host| host.processors = Some(whole(x)))
    }),
    ("R08", "5001", "5000", |x| slow_sync(x, "101")),
    ("R08", "101", "100", |x| slow_sync("9000", x)),
    ("R08", "0.51", "0.5", |x| slow_sync("1000", "101").rate("binlog_wait", n(x))),
    ("R08", "vda", "vdb", |x| {
        let mut seen = slow_sync("9000", "200").rate("binlog_wait", 0.1);
        let places = &mut seen.rest.host.as_mut().unwrap().places;
        places.iter_mut().find(|place| place.files == Files::Redo).unwrap().device = Some(device(x));
        seen
    }),
    ("R07", "4", "5", |x| {
        mysql()
            .var("log_bin", "OFF")
            .var("innodb_log_writer_threads", "ON")
            .host(|host| host.processors = Some(whole(x)))
    }),
    ("R09", "GLOBAL", "COMPILED", |x| {
        mysql().set("innodb_redo_log_capacity", "GLOBAL").set("innodb_log_file_size", x)
    }),
];

const POOL: &[Pair] = &[
    ("B01", "8600", "8500", |x| {
        mysql().var("innodb_buffer_pool_size", x).host(|host| host.memory_bytes = Some(10_000))
    }),
    ("B02", "101", "100", |x| {
        mysql().var("innodb_buffer_pool_size", "1").rate("page_reads", n(x)).rate("page_requests", 10_000.0)
    }),
    ("B02", "100", "99", |x| {
        mysql().var("innodb_buffer_pool_size", "1").rate("page_reads", n(x)).rate("page_requests", 200.0)
    }),
    ("B03", "0.1", "0", |x| mysql().var("innodb_buffer_pool_size", "1").rate("wait_free", n(x))),
    ("B04", "3221225473", "3221225472", |x| {
        mysql().var("innodb_buffer_pool_size", x).tables("InnoDB", 1, 2 * GIB)
    }),
    ("B04", "1073741825", "1073741824", |x| mysql().var("innodb_buffer_pool_size", x).tables("InnoDB", 1, 1)),
    ("B05", "8589934591", "8589934592", |x| {
        mysql().var("innodb_buffer_pool_size", x).var("innodb_buffer_pool_instances", "8")
    }),
    ("B06", "OFF", "ON", |x| {
        mysql().var("innodb_buffer_pool_dump_at_shutdown", x).var("innodb_buffer_pool_load_at_startup", "ON")
    }),
    ("B06", "OFF", "ON", |x| {
        mysql().var("innodb_buffer_pool_dump_at_shutdown", "ON").var("innodb_buffer_pool_load_at_startup", x)
    }),
    ("B07", "21", "20", |x| {
        mysql()
            .var("innodb_random_read_ahead", "OFF")
            .grew("innodb_buffer_pool_read_ahead", 100.0)
            .grew("innodb_buffer_pool_read_ahead_evicted", n(x))
    }),
    ("B07", "10", "9.9", |x| {
        mysql()
            .var("innodb_random_read_ahead", "ON")
            .grew("innodb_buffer_pool_read_ahead", 4.0)
            .grew("innodb_buffer_pool_read_ahead_rnd", n(x) - 4.0)
            .grew("innodb_buffer_pool_read_ahead_evicted", 5.0)
    }),
    ("B08", "11", "10", |x| {
        mysql().host(|host| {
            (host.swap_bytes, host.swappiness, host.server_swapped_bytes) =
                (Some(GIB), Some(whole(x)), Some(0))
        })
    }),
    ("B08", "1", "0", |x| {
        mysql().host(|host| (host.swap_bytes, host.server_swapped_bytes) = (Some(0), Some(whole(x))))
    }),
    ("B09", "5001", "5000", |x| {
        mysql()
            .var("innodb_buffer_pool_size", x)
            .var("innodb_numa_interleave", "OFF")
            .host(|host| (host.numa_nodes, host.memory_bytes) = (Some(2), Some(10_000)))
    }),
];

const FLUSHING: &[Pair] = &[
    ("F01", "fsync", "O_DIRECT", |x| mysql().var("innodb_flush_method", x)),
    ("F01", "ON", "OFF", |x| server("11.8.6-MariaDB").var("innodb_data_file_buffering", x)),
    ("F02", "1", "0", |x| mysql().var("innodb_flush_neighbors", x).on("gp3:size=500GiB")),
    ("F02", "gp3:size=500GiB", "st1:size=500GiB", |x| mysql().var("innodb_flush_neighbors", "1").on(x)),
    ("F02", "1", "0", |x| {
        mariadb()
            .var("innodb_flush_neighbors", "1")
            .device(Device { rotational: Some(x == "1"), ..device("vda") })
    }),
    ("F03", "4501", "4500", |x| flushing().var("innodb_io_capacity_max", x)),
    ("F03", "4981", "4980", |x| {
        flushing().var("innodb_redo_log_capacity", "10000").rate("checkpoint_age", n(x))
    }),
    ("F03", "601", "600", |x| flushing().rate("checkpoint_age", n(x)).rate("checkpoint_age_max", 1_000.0)),
    ("F03", "971", "970", |x| {
        let seen = flushing().var("version", "10.11.19-MariaDB");
        seen.rate("checkpoint_age", n(x)).rate("checkpoint_age_max", 1_000.0)
    }),
    ("F04", "49", "50", |x| {
        mysql().var("innodb_max_dirty_pages_pct", x).var("innodb_max_dirty_pages_pct_lwm", "10")
    }),
    ("F04", "96", "95", |x| {
        mysql().var("innodb_max_dirty_pages_pct", x).var("innodb_max_dirty_pages_pct_lwm", "10")
    }),
    ("F04", "90", "89", |x| {
        mysql().var("innodb_max_dirty_pages_pct", "90").var("innodb_max_dirty_pages_pct_lwm", x)
    }),
    ("F05", "OFF", "ON", |x| mysql().var("innodb_adaptive_flushing", x)),
    ("F06", "7", "8", |x| mysql().var("innodb_page_cleaners", x).var("innodb_buffer_pool_instances", "8")),
    ("F07", "1023", "1024", |x| mysql().var("innodb_lru_scan_depth", x).rate("wait_free", 1.0)),
    ("F08", "0.1", "0", |x| flushing().var("innodb_flush_sync", "ON").rate("sync_flushed", n(x))),
    ("F08", "8301", "8300", |x| {
        flushing()
            .var("innodb_flush_sync", "ON")
            .var("innodb_redo_log_capacity", "10000")
            .rate("checkpoint_age", n(x))
            .grew("innodb_redo_log_checkpoint_lsn", -0.1)
    }),
    ("F08", "ON", "OFF", |x| flushing().var("innodb_flush_sync", x).rate("sync_flushed", 5.0)),
    ("F08", "gp3:size=500GiB", "ideal:size=500GiB", |x| {
        flushing().var("innodb_flush_sync", "ON").rate("sync_flushed", 5.0).on(x)
    }),
    ("F09", "3", "4", |x| mysql().var("innodb_read_io_threads", x).var("innodb_write_io_threads", "4")),
    ("F09", "3", "4", |x| mariadb().var("innodb_read_io_threads", "4").var("innodb_write_io_threads", x)),
    ("F10", "OFF", "ON", |x| mysql().var("innodb_use_native_aio", x)),
    ("F11", "OFF", "ON", |x| mysql().var("innodb_use_fdatasync", x)),
    ("F12", "121", "120", |x| {
        mysql().rate("threads_running", 8.0).rate("commits", 100.0).rate("redo_syncs", n(x))
    }),
    ("F12", "8", "7", |x| {
        mysql().rate("threads_running", n(x)).rate("commits", 100.0).rate("redo_syncs", 200.0)
    }),
    ("F12", "1", "0.9", |x| {
        mysql().rate("threads_running", 8.0).rate("commits", n(x)).rate("redo_syncs", 200.0)
    }),
    ("F12", "100", "100.1", |x| {
        // 5 COMMIT: with more statements for each, these commit by themselves.
        let seen = mysql().rate("threads_running", 8.0).rate("commits", 5.0).rate("redo_syncs", 7.0);
        seen.rate("write_statements", n(x))
    }),
    ("F13", "100001", "100000", |x| mysql().rate("history_length", n(x))),
    ("F14", "1", "2", |x| {
        mysql().var("innodb_purge_threads", x).rate("history_length", 1e6).rate("write_statements", 100.0)
    }),
    ("F14", "100001", "100000", |x| {
        mysql().var("innodb_purge_threads", "1").rate("history_length", n(x)).rate("write_statements", 100.0)
    }),
    ("F14", "1", "0.9", |x| {
        mysql().var("innodb_purge_threads", "1").rate("history_length", 1e6).rate("write_statements", n(x))
    }),
    ("F06", "3", "4", |x| {
        // Of 8 instances 4 have 1 GiB.
        mysql()
            .var("innodb_page_cleaners", x)
            .var("innodb_buffer_pool_instances", "8")
            .var("innodb_buffer_pool_size", "4294967296")
    }),
    ("W01", "16000", "4100", |x| {
        if x == "16000" {
            candidate(x)
        } else {
            candidate(x).rate("page_writes", 0.0).rate("write_statements", 0.0).rate("read_statements", 100.0)
        }
    }),
    ("W02", "26", "25", |x| mysql().rate("doublewrite_wait", n(x)).rate("data_wait", 100.0 - n(x))),
    ("W04", "ON", "OFF", |x| doublewrite(x).var("datadir", "/rdsdbdata/db/")),
    ("W02", "0.05", "0.049", |x| mysql().rate("doublewrite_wait", n(x)).rate("data_wait", 0.0)),
    ("W03", "DETECT_AND_RECOVER", "DETECT_ONLY", |x| doublewrite(x).var("innodb_doublewrite_pages", "4")),
    ("W03", "15", "16", |x| doublewrite("ON").var("innodb_doublewrite_pages", x)),
];

const BINLOG: &[Pair] = &[
    ("L01", "MIXED", "ROW", |x| mariadb().var("binlog_format", x)),
    ("L01", "STATEMENT", "ROW", |x| mysql().var("binlog_format", x)),
    ("L02", "4100000", "3900000", binlog),
    ("L02", "6000001", "5999999", |x| {
        let log = binlog(x).var("version", "10.11.19-MariaDB");
        log.rate("redo_bytes", 3e6)
    }),
    ("L02", "FULL", "MINIMAL", |x| binlog("9000000").var("binlog_row_image", x)),
    ("L02", "1048577", "1048576", |x| binlog(x).rate("data_bytes", 0.0)),
    ("L08", "1048577", "1048576", |x| binlog(x).rate("data_bytes", 0.0)),
    ("L03", "0", "1", |x| {
        mariadb()
            .var("slave_connections_needed_for_purge", "1")
            .var("binlog_expire_logs_seconds", "60")
            .last("slaves_connected", x)
    }),
    ("L03", "0", "604800", |x| mysql().var("binlog_expire_logs_seconds", x)),
    ("L03", "0", "7", |x| mariadb().var("expire_logs_days", x).var("binlog_expire_logs_seconds", "0")),
    ("L03", "101", "100", |x| {
        let place = |place: &mut ServerDirectory| place.free_bytes = Some(100_000);
        mysql()
            .var("binlog_expire_logs_seconds", "1000")
            .rate("binlog_bytes", n(x))
            .place(place, device("sda"))
    }),
    ("L04", "119", "120", |x| {
        mariadb()
            .rate("threads_running", 8.0)
            .grew("binlog_commits", n(x))
            .grew("binlog_group_commits", 100.0)
    }),
    ("L04", "8", "7", |x| {
        mariadb()
            .rate("threads_running", n(x))
            .grew("binlog_commits", 10.0)
            .grew("binlog_group_commits", 10.0)
    }),
    ("L04", "10", "9.9", |x| {
        mariadb().rate("threads_running", 8.0).grew("binlog_commits", n(x)).grew("binlog_group_commits", n(x))
    }),
    ("L06", "1.1", "1", |x| {
        mysql()
            .var("binlog_cache_size", "32768")
            .grew("binlog_cache_use", 100.0)
            .grew("binlog_cache_disk_use", n(x))
    }),
    ("L08", "4100000", "3900000", binlog),
    ("L08", "OFF", "ON", |x| binlog("9000000").var("binlog_transaction_compression", x)),
    ("L07", "0", "1", |x| mariadb().var("log_slave_updates", "ON").last("slaves_connected", x).replica(&[])),
    ("L07", "ON", "OFF", |x| {
        mariadb().var("log_slave_updates", x).last("slaves_connected", "0").replica(&[])
    }),
    ("L11", "OFF", "ON", |x| mysql().var("log_bin", x)),
    ("L05", "99", "100", |x| mysql().var("sync_relay_log", x).replica(&[])),
    ("L05", "1", "0", |x| mysql().var("sync_source_info", x).var("sync_master_info", x).replica(&[])),
    ("L09", "31", "30", |x| {
        mysql().var("replica_parallel_workers", "1").replica(&[("seconds_behind_source", x)])
    }),
    ("L09", "631", "630", |x| {
        mysql()
            .var("replica_parallel_workers", "1")
            .replica(&[("seconds_behind_source", x), ("sql_delay", "600")])
    }),
    ("L09", "1", "2", |x| {
        mariadb().var("slave_parallel_threads", x).replica(&[("seconds_behind_master", "31")])
    }),
    ("L12", "No", "Yes", |x| mariadb().replica(&[("slave_sql_running", x)])),
];

const VOLUMES: &[Pair] = &[
    ("E01", "gp2:size=500GiB", "gp3:size=500GiB", |x| mysql().on(x)),
    ("E01", "gp2:size=50GiB", "gp3:size=50GiB", |x| logs_on(x, 1.0, 1.0)),
    ("E02", "1563", "1562", |x| logs_on("gp2:size=500GiB", n(x), 0.001)),
    ("E03", "2701", "2700", |x| logs_on("gp3:size=20GiB", n(x), 0.001)),
    ("E05", "0.0051", "0.005", |x| logs_on("gp3:size=20GiB", 1_000.0, n(x))),
    ("E08", "io1:size=50GiB,iops=1000", "io2:size=50GiB,iops=1000", |x| logs_on(x, 1.0, 1.0)),
    ("E02", "0.199", "0.2", |x| metered(|peaks| peaks.burst_balance = Some(n(x)))),
    ("E03", "0.011", "0.01", |x| {
        metered(|peaks| peaks.exceeded = Some(Exceeded { volume_iops: n(x), ..Exceeded::default() }))
    }),
    ("E03", "0.011", "0.01", |x| over_limit(|over| over.volume_throughput = n(x))),
    ("E04", "0.011", "0.01", |x| {
        let mut seen = over_limit(|over| over.instance_iops = n(x));
        seen.rest.instance = Some("m5.2xlarge".into());
        seen
    }),
    ("E05", "0.01", "0.011", |x| {
        let mut seen = slow(1_000.0, 0.0051, 4_096.0, "gp3:size=500GiB");
        let device = seen.rest.host.as_mut().unwrap().places[0].device.as_mut().unwrap();
        device.exceeded = Some(Exceeded { volume_iops: n(x), ..Exceeded::default() });
        seen
    }),
    ("E04", "9001", "9000", |x| {
        let mut seen = logs_on(&format!("gp3:size=50GiB,iops={x}"), 1.0, 1.0);
        seen.rest.instance = Some("m5.2xlarge".into());
        seen
    }),
    ("E02", "1563", "1562", |x| load(n(x), "gp2:size=500GiB")),
    ("E03", "2701", "2700", |x| load(n(x), "gp3:size=500GiB")),
    ("E04", "6001", "6000", |x| {
        let mut seen = mysql().on(&format!("gp3:size=500GiB,iops={x},throughput=125"));
        seen.rest.instance = Some("m5.xlarge".into());
        seen
    }),
    ("E05", "0.0051", "0.005", |x| slow(1_000.0, n(x), 4_096.0, "gp3:size=500GiB")),
    ("E05", "2099", "2100", |x| slow(n(x), 0.02, 4_096.0, "gp3:size=500GiB")),
    ("E05", "50", "49", |x| slow(n(x), 0.02, 4_096.0, "gp3:size=500GiB")),
    ("E11", "27400", "27200", |x| slow(100.0, 0.001, n(x), "gp3:size=500GiB,iops=6000,throughput=125")),
    ("E11", "6000", "3000", |x| {
        slow(100.0, 0.001, 65_536.0, &format!("gp3:size=500GiB,iops={x},throughput=125"))
    }),
    ("E11", "100", "99", |x| slow(n(x), 0.001, 65_536.0, "gp3:size=500GiB,iops=6000,throughput=125")),
    ("E12", "181", "180", |x| {
        let catalog = Catalog::builtin();
        let read = &catalog.types().iter().find(|info| info.name == "gp3").unwrap().provenance.date;
        let days = u64::try_from(days(read).unwrap()).unwrap();
        let mut seen = mysql().on("gp3:size=500GiB");
        let now = (days + whole(x)) * 86_400;
        seen.rest.span = seen.rest.span.map(|span| Span { began_unix_s: Some(now), ..span });
        seen
    }),
    ("E06", "4999", "5000", |x| carried(14.0, n(x), "gp3:size=500GiB,iops=10000")),
    ("E07", "12", "13", |x| load(4_700.0, &format!("gp3:size={x}GiB,iops=5000"))),
    ("E07", "4501", "4500", |x| load(n(x), "gp3:size=12GiB,iops=5000")),
    ("E09", "0.0101", "0.01", |x| reading(|io| io.read_s = Some(n(x)))),
    ("E09", "0.0039", "0.004", |x| reading(|io| (io.read_s, io.write_s) = (Some(0.02), Some(n(x))))),
    ("E09", "20", "19", |x| reading(|io| (io.reads, io.read_s) = (n(x), Some(0.02)))),
    ("E09", "1999", "2000", |x| reading(|io| (io.reads, io.read_s) = (n(x), Some(0.02)))),
    ("E08", "io1:size=500GiB,iops=1000", "io2:size=500GiB,iops=1000", |x| mysql().on(x)),
    ("E10", "Amazon EC2 NVMe Instance Storage", "Amazon Elastic Block Store", |x| {
        mysql().device(Device { model: Some(x.into()), ..device("nvme1n1") })
    }),
];

const FILES: &[Pair] = &[
    ("O01", "btrfs", "ext4", |x| mysql().place(|place| place.file_system = x.into(), device("sda"))),
    ("O01", "discard", "relatime", |x| mysql().place(|place| place.options.push(x.into()), device("sda"))),
    ("O02", "bfq", "mq-deadline", |x| mysql().device(Device { scheduler: Some(x.into()), ..device("sda") })),
    ("O03", "1", "0", |x| mysql().device(Device { rotational: Some(x == "1"), ..device("vda") })),
    ("O10", "8192", "16384", |x| {
        let chunk_bytes = Some(whole(x));
        mysql().var("innodb_page_size", "16384").device(Device { chunk_bytes, ..device("sda") })
    }),
    ("O04", "5001", "5000", |x| probed(2_000.0, n(x))),
    ("O04", "2501", "2500", |x| probed(500.0, n(x))),
    ("O04", "2001", "2000", |x| probed(100.0, n(x))),
    ("O05", "12.7", "12.6", |x| reading(|io| io.queue = n(x))),
    ("O05", "1", "0.99", |x| reading(|io| io.queue = n(x))),
    ("O06", "257", "256", |x| {
        mysql()
            .var("innodb_flush_method", "fsync")
            .device(Device { read_ahead_kib: Some(whole(x)), ..device("sda") })
    }),
    ("O07", "always", "madvise", |x| mysql().host(|host| host.huge_pages = Some(x.into()))),
    ("O07", "901", "900", |x| {
        mysql().host(|host| (host.aio_used, host.aio_max) = (Some(whole(x)), Some(1_000)))
    }),
    ("O07", "1023", "1024", |x| mysql().host(|host| host.server_open_files = Some(whole(x)))),
    ("O08", "11", "10", |x| mariadb().grew("created_tmp_disk_tables", n(x)).device(device("sda"))),
    ("O08", "11", "10", |x| in_tablespaces("./#innodb_temp/").grew("created_tmp_disk_tables", n(x))),
    ("O08", "INNODB", "MYISAM", |x| {
        let mut seen = server("5.7.44").var("internal_tmp_disk_storage_engine", x).device(device("sda"));
        let places = &mut seen.rest.host.as_mut().unwrap().places;
        let temporary = places.iter_mut().find(|place| place.files == Files::Temporary).unwrap();
        temporary.mount_point = "/other".into();
        seen.grew("created_tmp_disk_tables", 11.0)
    }),
    ("O08", "/data/tmp/", "/other/", |x| in_tablespaces(x).grew("created_tmp_disk_tables", 11.0)),
    ("O09", "149", "150", |x| {
        mysql().place(
            |place| (place.size_bytes, place.free_bytes) = (Some(1_000), Some(whole(x))),
            device("sda"),
        )
    }),
    ("O11", "/", "/data", |x| mysql().place(|place| place.mount_point = x.into(), device("sda"))),
    ("O12", "254", "255", |x| {
        let ebs = Device { model: Some("Amazon Elastic Block Store".into()), ..device("nvme1n1") };
        mysql().device(ebs).host(|host| host.nvme_timeout_s = Some(whole(x)))
    }),
];

const OTHERS: &[Pair] = &[
    ("C04", "GLOBAL", "COMPILED", |x| {
        mysql().var("innodb_dedicated_server", "ON").set("innodb_buffer_pool_size", x)
    }),
    ("C05", "ON", "OFF", |x| mariadb().var("query_cache_type", x).var("query_cache_size", "1048576")),
    ("C05", "1", "0", |x| mariadb().var("query_cache_type", "DEMAND").var("query_cache_size", x)),
    ("C06", "ON", "OFF", |x| mysql().var("innodb_stats_on_metadata", x)),
    ("C07", "OFF", "ON", |x| mysql().var("innodb_file_per_table", x)),
    ("C08", "79", "80", |x| mysql().var("innodb_fill_factor", x)),
    ("C09", "499", "500", |x| {
        let hits = n(x);
        mariadb()
            .var("innodb_adaptive_hash_index", "ON")
            .grew("innodb_adaptive_hash_hash_searches", hits)
            .grew("innodb_adaptive_hash_non_hash_searches", 1_000.0 - hits)
    }),
    ("C09", "1000", "999", |x| {
        mariadb()
            .var("innodb_adaptive_hash_index", "ON")
            .grew("innodb_adaptive_hash_hash_searches", 0.0)
            .grew("innodb_adaptive_hash_non_hash_searches", n(x))
    }),
    ("C10", "all", "none", |x| mysql().var("innodb_change_buffering", x).on("gp3:size=500GiB")),
    ("C11", "1", "0", |x| mysql().var("innodb_thread_concurrency", x)),
    ("C01", "innodb_page_cleaners", "innodb_io_capacity", |x| with_file(mariadb(), &[(x, "4")])),
    ("C01", "innodb_idle_flush_pct", "innodb_lru_scan_depth", |x| with_file(mariadb(), &[(x, "4")])),
    ("C02", "1000", "200", |x| {
        with_file(mysql().var("innodb_io_capacity", "200"), &[("innodb_io_capacity", x)])
    }),
    ("C02", "GLOBAL", "PERSISTED", |x| {
        let seen = mysql().var("innodb_io_capacity", "300").set("innodb_io_capacity", x);
        with_file(seen, &[("innodb_io_capacity", "200")])
    }),
    ("C02", "OFF", "1", |x| with_file(mysql().var("innodb_doublewrite", "ON"), &[("innodb_doublewrite", x)])),
    ("C03", "1", "0", |x| with_file(mysql(), &[("sync_binlog", "0"), ("sync_binlog", x)])),
    ("C03", "sync_binlog", "replicate_do_db", |x| with_file(mysql(), &[(x, "0"), (x, "1")])),
    ("C12", "101", "100", |x| mariadb().grew("innodb_num_pages_page_compressed", n(x))),
];

// The check of docs/extending.md.
const EXTENDING: &[Pair] = &[("X01", "100001", "100000", |x| mysql().rate("history_length", n(x)))];

pub(super) fn pairs() -> impl Iterator<Item = &'static Pair> {
    [DURABILITY, REDO, POOL, FLUSHING, BINLOG, VOLUMES, FILES, OTHERS, EXTENDING].into_iter().flatten()
}
