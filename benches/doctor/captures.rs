//! Situations that this machine cannot be in: a real server is captured, and what the machine or the release would show is put
//! into the capture before it is judged.

use serde_json::{Value, json};

use crate::situations::{MARIADB_10, MARIADB_11, MYSQL_8, MYSQL_9, Situation as S};

/// All of them.
pub(crate) fn all() -> Vec<S> {
    [machine(), server(), volume()].concat()
}

/// The devices below all files of the server.
fn devices(capture: &mut Value, change: impl Fn(&mut Value)) {
    for place in capture["observation"]["host"]["places"].as_array_mut().into_iter().flatten() {
        if place["device"].is_null() {
            place["device"] = json!({"name": "nvme1n1"});
        }
        change(&mut place["device"]);
    }
}

fn host(capture: &mut Value, values: Value) {
    merge(&mut capture["observation"]["host"], values);
}

fn rates(capture: &mut Value, values: Value) {
    merge(&mut capture["observation"]["rates"], values);
}

fn merge(into: &mut Value, values: Value) {
    let Value::Object(values) = values else { panic!("{values} is no object") };
    let into = into.as_object_mut().expect("the capture has it");
    into.extend(values);
}

fn machine() -> Vec<S> {
    vec![
        S::fault("B08", "a server that is swapped out", MARIADB_10)
            .edit(|seen| host(seen, json!({"swap_bytes": 1_u64 << 30, "swappiness": 60, "server_swapped_bytes": 1 << 26}))),
        S::fault("B09", "a pool larger than a NUMA node", MYSQL_8)
            .set("innodb-numa-interleave", "OFF")
            .edit(|seen| host(seen, json!({"numa_nodes": 2, "memory_bytes": 120 << 20})))
            .also(&["B01", "B04"]),
        S::fault("O02", "bfq on a device without seeks", MARIADB_11).edit(|seen| {
            devices(seen, |device| merge(device, json!({"scheduler": "bfq", "rotational": false})));
        }),
        S::fault("O03", "an EBS volume that is said to rotate", MYSQL_9)
            .edit(|seen| devices(seen, |device| merge(device, json!({"name": "nvme1n1", "rotational": true})))),
        S::fault("O05", "flushes that fill the queue", MARIADB_10).edit(|seen| {
            let io = json!({"reads": 10.0, "writes": 500.0, "read_bytes": 1e5, "written_bytes": 8e6, "queue": 6.0,
                            "read_s": 0.001, "write_s": 0.002});
            devices(seen, |device| device["io"] = io.clone());
        })
        .also(&["E05"]),
        S::fault("O06", "a large read-ahead under the page cache", MYSQL_8)
            .set("innodb-flush-method", "fsync")
            .edit(|seen| devices(seen, |device| device["read_ahead_kib"] = 4096.into()))
            .also(&["F01"]),
        S::fault("O07", "huge pages that are always on", MARIADB_11)
            .edit(|seen| host(seen, json!({"huge_pages": "always"}))),
        S::fault("O10", "an array with chunks below a page", MYSQL_9)
            .edit(|seen| devices(seen, |device| device["chunk_bytes"] = 8192.into())),
        S::fault("O12", "a short time-out of NVMe", MARIADB_10).edit(|seen| {
            devices(seen, |device| merge(device, json!({"name": "nvme1n1", "model": "Amazon Elastic Block Store"})));
            host(seen, json!({"nvme_timeout_s": 30}));
        }),
        S::fault("R06", "writes below the block of the device", MYSQL_8)
            .set("innodb-log-write-ahead-size", "512")
            .edit(|seen| devices(seen, |device| device["physical_block_bytes"] = 4096.into())),
    ]
}

fn growth(capture: &mut Value, values: Value) {
    merge(&mut capture["observation"]["status"]["growth_per_s"], values);
}

fn server() -> Vec<S> {
    vec![
        S::fault("B03", "no free pages under writes", MARIADB_11)
            .edit(|seen| rates(seen, json!({"wait_free": 20.0}))),
        S::option("C09", MARIADB_10, &[("innodb-adaptive-hash-index", "ON")]).edit(|seen| {
            let searches = json!({
                "innodb_adaptive_hash_hash_searches": 1_000.0,
                "innodb_adaptive_hash_non_hash_searches": 9_000.0,
            });
            growth(seen, searches);
        }),
        S::option("C12", MARIADB_10, &[("innodb-compression-default", "ON")])
            .edit(|seen| growth(seen, json!({"innodb_num_pages_page_compressed": 500.0}))),
        S::fault("F12", "two syncs of the redo log for a commit", MYSQL_9)
            .edit(|seen| rates(seen, json!({"commits": 500.0, "redo_syncs": 1_000.0, "threads_running": 16.0}))),
        S::fault("L04", "commits that come one by one", MARIADB_11).edit(|seen| {
            rates(seen, json!({"threads_running": 16.0}));
            growth(seen, json!({"binlog_commits": 500.0, "binlog_group_commits": 490.0}));
        }),
        S::fault("L09", "a replica that is behind, with one thread", MARIADB_10).edit(|seen| {
            let running = json!({"slave_io_running": "Yes", "slave_sql_running": "Yes", "seconds_behind_master": "300",
                                 "using_gtid": "Slave_Pos"});
            seen["observation"]["replica"] = running;
        })
        .also(&["D10", "L07"]),
        S::fault("R09", "two ways to size the redo log", MYSQL_9).edit(|seen| {
            let origins = json!({"innodb_redo_log_capacity": "GLOBAL", "innodb_log_file_size": "GLOBAL"});
            merge(&mut seen["observation"]["origins"], origins);
        }),
        S::fault("W01", "pages that are never torn, with a doublewrite buffer", MYSQL_8)
            .words(&["--volume=data=gp3:size=500GiB,iops=16000,throughput=125,twp=on"])
            .edit(|seen| {
                let busy = json!({"page_writes": 4_100.0, "doublewrite_pages": 4_100.0, "doublewrite_batches": 41.0,
                                  "page_reads": 0.0, "redo_bytes": 1e6, "write_statements": 4_100.0,
                                  "read_statements": 0.0});
                rates(seen, busy);
            })
            .also(&["R01", "E03", "E11", "W02"]),
        S::fault("W02", "a doublewrite buffer that takes the time", MYSQL_9)
            .edit(|seen| rates(seen, json!({"doublewrite_wait": 0.6, "data_wait": 0.8}))),
        S::fault("W04", "RDS with a doublewrite buffer", MYSQL_9)
            .edit(|seen| seen["observation"]["variables"]["datadir"] = "/rdsdbdata/db/".into()),
    ]
}

fn volume() -> Vec<S> {
    vec![
        S::fault("E06", "IOPS that are never used", MARIADB_11)
            .words(&["--volume=data=gp3:size=500GiB,iops=12000"])
            .edit(|seen| {
                seen["observation"]["peaks"] =
                    json!({"seconds": 1_209_600.0, "minutes": 20_160, "ios": 2_100.0, "bytes": null});
            }),
        S::fault("E12", "limits that were read long ago", MARIADB_10)
            // 2030: by then the catalogue is older than half a year.
            .edit(|seen| seen["observation"]["span"]["began_unix_s"] = 1_900_000_000_u64.into()),
    ]
}
