//! Settings that are left from other times.

use ebbtide_observe::{Files, Role};

use super::sources::{MARIADB_INNODB, MYSQL_INNODB, OWN_LAB, WHITEPAPER, says};
use super::{EVERY, MARIADB, MYSQL, figure, mysql, percent};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply};
use ebbtide_observe::metric::Servers;

/// Before MySQL 8.0.3, which removed the query cache.
const WITH_QUERY_CACHE: &[Servers] =
    &[Servers::MARIADB, Servers { until: Some((8, 0, 3)), ..Servers::MYSQL }];
/// Before MariaDB 11.0, which removed the change buffer.
const WITH_CHANGE_BUFFER: &[Servers] =
    &[Servers { until: Some((11, 0, 0)), ..Servers::MARIADB }, Servers::MYSQL];

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "C04",
        title: "One way to size the server",
        condition: "innodb_dedicated_server is ON, and innodb_buffer_pool_size, the redo log or innodb_flush_method is set too",
        reason: "what is set goes before what the server works out, so that its parts do not fit each other",
        servers: &[mysql((8, 0, 3))],
        severity: Severity::Low,
        gain: "sizes that belong together",
        risk: "other sizes after a restart",
        cost: "none",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/innodb-dedicated-server.html",
            "an explicit setting goes before the one that is worked out, with a warning",
        )],
        judge: dedicated,
    },
    Check {
        code: "C05",
        title: "The query cache is off",
        condition: "query_cache_type is not OFF and query_cache_size is over 0",
        reason: "one mutex for all statements: it costs more than it saves where tables are written",
        servers: WITH_QUERY_CACHE,
        severity: Severity::Medium,
        gain: "statements that do not wait for each other",
        risk: "a server that only reads few statements gets slower",
        cost: "none",
        sources: &[
            says(
                "https://mariadb.com/docs/server/ha-and-performance/optimization-and-tuning/buffers-caches-and-threads/query-cache",
                "off by default: it does not scale where there are many processors",
            ),
            says(
                WHITEPAPER,
                "older advice: use the query cache for data that are read again. MySQL 8.0 removed it",
            ),
            says(
                OWN_LAB,
                "our lab's servers run without one, and no run with it is recorded: `ebbtide run same-twice --set load.workload=read_write --set two.query_cache_type=ON` measures it on MariaDB",
            ),
        ],
        judge: query_cache,
    },
    Check {
        code: "C06",
        title: "Looking at metadata costs no I/O",
        condition: "innodb_stats_on_metadata is ON",
        reason: "SHOW TABLE STATUS and information_schema then read pages of each table",
        servers: EVERY,
        severity: Severity::Low,
        gain: "no reads by monitoring",
        risk: "none that is known",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "off by default")],
        judge: metadata,
    },
    Check {
        code: "C07",
        title: "Each table has a file",
        condition: "innodb_file_per_table is OFF",
        reason: "space of a dropped table in the system tablespace never goes back to the file system",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "DROP and TRUNCATE free space",
        risk: "tables of before stay where they are until they are rebuilt",
        cost: "a rebuild of each table: ALTER TABLE name ENGINE = InnoDB",
        sources: &[says(MYSQL_INNODB, "on by default")],
        judge: per_table,
    },
    Check {
        code: "C08",
        title: "Pages of new indexes are full",
        condition: "innodb_fill_factor under 80",
        reason: "a larger index takes more reads and more of the buffer pool; it holds for indexes that are built at once",
        servers: EVERY,
        severity: Severity::Low,
        gain: "fewer pages",
        risk: "pages are split earlier where rows are added in between",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "100 by default, which leaves a sixteenth free")],
        judge: fill_factor,
    },
    Check {
        code: "C09",
        title: "The adaptive hash index is of use",
        condition: "innodb_adaptive_hash_index is ON and finds under half of the searches, at 1,000 a second or more",
        reason: "each change of a page has to keep it; it saves no I/O. Under 1,000 searches neither counts",
        servers: &[Servers::MARIADB],
        severity: Severity::Low,
        gain: "less contention where tables are written",
        risk: "point reads of a server that fits into memory may get slower: measure",
        cost: "none",
        sources: &[
            says(MARIADB_INNODB, "off by default from 10.5 on"),
            says(
                MYSQL_INNODB,
                "off by default from 8.4 on; before, on: it can help where all data are in memory",
            ),
            says(
                OWN_LAB,
                "no run is recorded that decides it: `ebbtide run flush-settings --arms base,hash-index-on` measures it, `ebbtide doctor --prove C09` under a load like the server's",
            ),
        ],
        judge: hash_index,
    },
    Check {
        code: "C10",
        title: "Changes of indexes are not put off",
        condition: "innodb_change_buffering is not none, on an SSD or an EBS volume",
        reason: "it saves random reads of a disk; later reads and recovery merge what was put off, at a time of their choosing",
        servers: WITH_CHANGE_BUFFER,
        severity: Severity::Low,
        gain: "even reads, and a shorter recovery",
        risk: "a server that inserts into many secondary indexes larger than memory reads more: measure",
        cost: "reads",
        sources: &[
            says(
                MARIADB_INNODB,
                "none by default from 10.5.15 and 10.6.7 on, removed in 11.0 for damage that it caused",
            ),
            says(MYSQL_INNODB, "none by default in 8.4, all before and in 9.7"),
        ],
        judge: change_buffer,
    },
    Check {
        code: "C11",
        title: "Threads enter InnoDB freely",
        condition: "innodb_thread_concurrency is not 0",
        reason: "threads queue at the door although processors and storage could take them",
        servers: MYSQL,
        severity: Severity::Low,
        gain: "the concurrency that the volume needs for its IOPS",
        risk: "with many hundreds of threads a limit may help: measure",
        cost: "none",
        sources: &[
            says(
                MYSQL_INNODB,
                "0 is the default, and right for most; other values are for servers with contention",
            ),
            says(WHITEPAPER, "older advice: a small multiple of the processors"),
            says(MARIADB_INNODB, "removed in 10.6"),
            says(
                OWN_LAB,
                "no run with it is recorded: `ebbtide doctor --prove C11 --volume data=SPEC` measures it under a load like the server's",
            ),
        ],
        judge: concurrency,
    },
    Check {
        code: "C12",
        title: "Page compression is not on tables that change all the time",
        condition: "over 100 pages a second are compressed when they are written",
        reason: "each write compresses the page and punches a hole: processor time, and a file in many pieces",
        servers: MARIADB,
        severity: Severity::Low,
        gain: "processor time, and a file system with fewer extents",
        risk: "the tables take more space",
        cost: "space on the volume",
        sources: &[says(MARIADB_INNODB, "innodb_num_pages_page_compressed counts the pages")],
        judge: compression,
    },
];

fn dedicated(v: &View<'_>) -> Judged {
    if !v.on("innodb_dedicated_server")? {
        return FINE;
    }
    let names = [
        "innodb_buffer_pool_size",
        "innodb_redo_log_capacity",
        "innodb_log_file_size",
        "innodb_flush_method",
    ];
    let mut set = Vec::new();
    for name in names {
        if v.is_set(name)? {
            set.push(name);
        }
    }
    if set.is_empty() {
        return FINE;
    }
    Found::because(format!("innodb_dedicated_server is ON, and {} is set.", set.join(", ")))
        .fix(Fix::by_hand(format!(
            "Delete {} from the configuration, or turn innodb_dedicated_server off.",
            set.join(", ")
        )))
        .answer()
}

fn query_cache(v: &View<'_>) -> Judged {
    if v.text("query_cache_type")?.eq_ignore_ascii_case("off") || v.number("query_cache_size")? == 0.0 {
        return FINE;
    }
    Found::because("The query cache is on.")
        .fix(v.fix(
            "Turn it off.",
            &[("query_cache_type", "OFF", Dynamic::ALWAYS), ("query_cache_size", "0", Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn metadata(v: &View<'_>) -> Judged {
    if !v.on("innodb_stats_on_metadata")? {
        return FINE;
    }
    Found::because("Each look at metadata reads pages.")
        .fix(v.fix("Turn it off.", &[("innodb_stats_on_metadata", "OFF", Dynamic::ALWAYS)])?)
        .answer()
}

fn per_table(v: &View<'_>) -> Judged {
    if v.on("innodb_file_per_table")? {
        return FINE;
    }
    Found::because("New tables lie in the system tablespace, which never shrinks.")
        .fix(v.fix(
            "Give new tables files of their own.",
            &[("innodb_file_per_table", "ON", Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn fill_factor(v: &View<'_>) -> Judged {
    let percent = v.number("innodb_fill_factor")?;
    if percent >= 80.0 {
        return FINE;
    }
    Found::because(format!("Indexes that are built at once fill their pages to {percent}%."))
        .fix(v.fix("Fill pages.", &[("innodb_fill_factor", "100", Dynamic::ALWAYS)])?)
        .answer()
}

fn hash_index(v: &View<'_>) -> Judged {
    if !v.on("innodb_adaptive_hash_index")? {
        return FINE;
    }
    let hits = v.growth("innodb_adaptive_hash_hash_searches")?;
    let others = v.growth("innodb_adaptive_hash_non_hash_searches")?;
    let all = hits + others;
    if all < 1_000.0 || hits >= 0.5 * all {
        return FINE;
    }
    Found::because(format!(
        "The adaptive hash index finds {} of {} searches a second.",
        percent(hits / all),
        figure(all)
    ))
    .confidence(Confidence::Medium)
    .fix(v.fix("Turn it off, and measure.", &[("innodb_adaptive_hash_index", "OFF", Dynamic::ALWAYS)])?)
    .answer()
}

fn change_buffer(v: &View<'_>) -> Judged {
    if v.text("innodb_change_buffering")?.eq_ignore_ascii_case("none") {
        return FINE;
    }
    let solid = match v.volume(Role::Data) {
        Ok(volume) => !volume.members[0].accounting.whole_units,
        Err(_) => v.device(Files::Data)?.is_solid(),
    };
    if !solid {
        return does_not_apply("the data are on a disk that seeks");
    }
    Found::because("Changes of secondary indexes are put off and merged later.")
        .confidence(Confidence::Medium)
        .fix(v.fix("Make changes at once.", &[("innodb_change_buffering", "none", Dynamic::ALWAYS)])?)
        .answer()
}

fn concurrency(v: &View<'_>) -> Judged {
    let threads = v.number("innodb_thread_concurrency")?;
    if threads == 0.0 {
        return FINE;
    }
    Found::because(format!("At most {threads} threads are inside InnoDB."))
        .fix(v.fix("Let all threads in.", &[("innodb_thread_concurrency", "0", Dynamic::ALWAYS)])?)
        .answer()
}

fn compression(v: &View<'_>) -> Judged {
    let pages = v.growth("innodb_num_pages_page_compressed")?;
    if pages <= 100.0 {
        return FINE;
    }
    Found::because(format!("{} pages a second are compressed.", figure(pages)))
        .confidence(Confidence::Medium)
        .fix(Fix::by_hand(
            "Measure without: ALTER TABLE ... PAGE_COMPRESSED=0 for the tables that change most.",
        ))
        .answer()
}
