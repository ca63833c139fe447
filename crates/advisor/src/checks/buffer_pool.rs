//! The buffer pool: its size against memory, data and misses.

use ebbtide_catalog::{Resolved, Spec};
use ebbtide_observe::Role;

use super::carried::{free_iops, load, whole_number};
use super::durability::share;
use super::sources::{KERNEL_VM, MYSQL_INNODB, MYSQL_POOL, WHITEPAPER, says};
use super::{EVERY, MYSQL, figure, percent, size};
use crate::check::Check;
use crate::finding::{Benefit, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "B01",
        title: "The buffer pool fits into memory",
        condition: "the pool takes over 85% of the memory that the server may use",
        reason: "connections, temporary tables and the kernel need the rest; beyond it the server swaps or is killed",
        servers: EVERY,
        severity: Severity::High,
        gain: "no swapping, no kill for want of memory",
        risk: "more pages are read from storage",
        cost: "page reads",
        sources: &[says(
            MYSQL_POOL,
            "a size that is too large causes swapping; 50% to 75% of memory is usual",
        )],
        judge: fits,
    },
    Check {
        code: "B02",
        title: "Pages are in the buffer pool when they are asked for",
        condition: "over 1% of the page requests miss, at 100 page reads a second or more",
        reason: "a miss takes a read of storage, a hundred times and more the time of a hit. Under 100 a second every volume carries them",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "each read that stays away is an operation that the volume does not need",
        risk: "a pool too large for the memory (B01)",
        cost: "memory; or an index that reads fewer pages",
        sources: &[
            says(WHITEPAPER, "a larger buffer pool takes reads off the volume"),
            says(MYSQL_POOL, "a larger pool needs less I/O for tables that are read again"),
        ],
        judge: misses,
    },
    Check {
        code: "B03",
        title: "There are free pages",
        condition: "Innodb_buffer_pool_wait_free grows in the interval",
        reason: "each is a thread that stood until a page was written",
        servers: EVERY,
        severity: Severity::High,
        gain: "statements do not wait for page writes",
        risk: "a pool too large for the memory (B01)",
        cost: "memory",
        sources: &[
            says(
                MYSQL_INNODB,
                "a count over 0 says that the pool is too small or that pages are not flushed in time",
            ),
            says(
                "https://github.com/major/MySQLTuner-perl",
                "other advice: raise innodb_io_capacity. It does not govern pages that are flushed from the LRU list",
            ),
        ],
        judge: free_pages,
    },
    Check {
        code: "B04",
        title: "The buffer pool is no larger than the data",
        condition: "a pool of over 1 GiB and over 1.5 times the size of all InnoDB tables",
        reason: "memory beyond data, undo and dictionary is never used; half again leaves room to grow",
        servers: EVERY,
        severity: Severity::Low,
        gain: "memory for other uses, or a smaller instance",
        risk: "data that grow: look again",
        cost: "none",
        sources: &[says(MYSQL_POOL, "the pool holds pages of tables and indexes")],
        judge: larger_than_data,
    },
    Check {
        code: "B05",
        title: "Instances of the buffer pool have a useful size",
        condition: "more than one instance, each under 1 GiB",
        reason: "MySQL's manual asks for 1 GiB in each",
        servers: MYSQL,
        severity: Severity::Low,
        gain: "one LRU list that sees the whole pool",
        risk: "more contention at hundreds of threads",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "for best efficiency, each instance has at least 1 GiB")],
        judge: instances,
    },
    Check {
        code: "B06",
        title: "The buffer pool is warm after a restart",
        condition: "innodb_buffer_pool_dump_at_shutdown or innodb_buffer_pool_load_at_startup is OFF",
        reason: "a cold pool reads every page from storage, most slowly on a volume that was made of a snapshot",
        servers: EVERY,
        severity: Severity::Low,
        gain: "minutes in place of hours until the hit ratio is back",
        risk: "reads in the first minutes after a start",
        cost: "none",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/innodb-preload-buffer-pool.html",
            "both are on by default",
        )],
        judge: warm,
    },
    Check {
        code: "B07",
        title: "Pages that are read ahead are used",
        condition: "over 20% of the pages read ahead are evicted unused, at 10 a second or more",
        reason: "each took an operation of the volume and the place of a page that may be needed",
        servers: EVERY,
        severity: Severity::Low,
        gain: "fewer reads",
        risk: "scans that read in order get slower where too little is read ahead",
        cost: "none",
        sources: &[says(
            MYSQL_INNODB,
            "innodb_read_ahead_threshold sets how regular reads must be before the next extent is read",
        )],
        judge: read_ahead,
    },
    Check {
        code: "B08",
        title: "The server's memory is not swapped out",
        condition: "memory of the server is in swap; low where swap exists and vm.swappiness is over 10",
        reason: "a page of the pool in swap is read twice; the kernel's default of 60 swaps to keep its page cache",
        servers: EVERY,
        severity: Severity::High,
        gain: "no reads for pages that are in memory already",
        risk: "with too little memory the kernel kills in place of swapping",
        cost: "memory",
        sources: &[says(KERNEL_VM, "a lower swappiness prefers to drop page cache over swapping")],
        judge: swap,
    },
    Check {
        code: "B09",
        title: "The buffer pool is spread over NUMA nodes",
        condition: "more than one node, a pool larger than a node, and innodb_numa_interleave OFF",
        reason: "a pool that fills one node makes the kernel reclaim or swap there while others are empty",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "even memory use",
        risk: "none that is known",
        cost: "some accesses to memory of another node",
        sources: &[says(
            MYSQL_INNODB,
            "innodb_numa_interleave spreads the pool; it is ON by default from 8.4 on",
        )],
        judge: numa,
    },
];

/// Pages read ahead a second below which it does not matter whether they are used.
const MUCH_READ_AHEAD: f64 = 10.0;
const GIB: f64 = (1_u64 << 30) as f64;
const MIB_128: f64 = (128_u64 << 20) as f64;
/// The most that is advised for the pool, as a share of the memory.
const ADVISED: f64 = 0.7;

fn pool(v: &View<'_>) -> Result<f64, Gap> {
    v.number("innodb_buffer_pool_size")
}

fn memory(v: &View<'_>) -> Result<f64, Gap> {
    v.fact("usable_memory_bytes", v.host()?.usable_memory_bytes(), "memory that the server may use, bytes")
}

/// The fix that gives the pool a size, in whole chunks.
fn resize(v: &View<'_>, text: &str, bytes: f64) -> Result<Fix, Gap> {
    let bytes = (bytes / MIB_128).floor().max(1.0) * MIB_128;
    // MariaDB from 10.11.12, 11.4.6 and 11.8.2 on reserves addresses at its start, and the pool grows no further.
    let most = match v.maybe("innodb_buffer_pool_size_max") {
        Ok(Some(_)) => Some(v.number("innodb_buffer_pool_size_max")?),
        _ => None,
    };
    let value = format!("{bytes:.0}");
    let mut set = vec![("innodb_buffer_pool_size", &*value, Dynamic::ALWAYS)];
    if most.is_some_and(|most| bytes > most) {
        set[0].2 = Dynamic::NEVER;
        // One that is larger than the pool was set.
        if most > Some(pool(v)?) {
            set.push(("innodb_buffer_pool_size_max", &value, Dynamic::NEVER));
        }
    }
    v.fix(format!("{text}: {}.", size(bytes)), &set)
}

fn fits(v: &View<'_>) -> Judged {
    let (pool, memory) = (pool(v)?, memory(v)?);
    if pool <= 0.85 * memory {
        return FINE;
    }
    Found::because(format!(
        "The pool of {} takes {} of {} of memory.",
        size(pool),
        share(pool, memory),
        size(memory)
    ))
    .fix(resize(v, "Make the pool smaller", memory * ADVISED)?)
    .answer()
}

/// A larger pool, where memory and data allow one.
fn larger(v: &View<'_>) -> Result<Fix, Gap> {
    let now = pool(v)?;
    let counted = v.tables().ok().filter(|tables| !tables.bounded);
    let data = counted.map_or(f64::INFINITY, |tables| tables.innodb_bytes() as f64 * 1.1);
    let Ok(memory) = memory(v) else {
        return Ok(Fix::by_hand(
            "Enlarge innodb_buffer_pool_size as far as the memory allows, up to the size of the data.",
        ));
    };
    if data < now {
        return Ok(Fix::by_hand(
            "The pool is larger than the data: after a start it has to fill first. Otherwise pages are not written in time (R02, E03).",
        ));
    }
    let most = (memory * ADVISED).min(data);
    if most < now * 1.1 {
        return Ok(Fix::by_hand(
            "The pool cannot grow: take a machine with more memory, or an index that reads fewer pages.",
        ));
    }
    resize(v, "Enlarge the pool", most)
}

fn misses(v: &View<'_>) -> Judged {
    let (reads, requests) = (v.metric("page_reads")?, v.metric("page_requests")?);
    if reads < 100.0 || reads <= 0.01 * requests {
        return FINE;
    }
    let volume = v.volume(Role::Data).ok();
    let load = volume.as_ref().and_then(|volume| load(v, volume, Role::Data).ok());
    let share = load.as_ref().filter(|load| load.ios > 0.0).map(|load| (reads / load.ios).min(1.0));
    let of_volume =
        share.map(|share| format!(" {} of the volume's operations are these reads.", percent(share)));
    let money = volume.and_then(|volume| price_of_iops(v, &volume, reads));
    Found::because(format!(
        "{} pages a second are read from storage, {} of the requests.{}{}",
        figure(reads),
        percent(reads / requests.max(reads)),
        of_volume.unwrap_or_default(),
        money.map(|money| format!(" As IOPS of gp3 they cost {money}.")).unwrap_or_default()
    ))
    .at_most(share.map(|share| Benefit {
        at_most: 1.0 / (1.0 - share).max(0.1),
        of: "the other I/O on the same volume",
    }))
    .fix(larger(v)?)
    .answer()
}

/// What so many operations a second cost a month beside those that a gp3 has for nothing; None where the volume's size is
/// too small for them, or without a price.
fn price_of_iops(v: &View<'_>, volume: &Resolved, iops: f64) -> Option<String> {
    let of = |iops: u64| {
        let mut spec = Spec { volume: volume.spec.volume.clone(), raid0: None };
        "gp3".clone_into(&mut spec.volume.kind);
        (spec.volume.iops, spec.volume.throughput_mib_s) = (Some(iops), None);
        (spec.volume.credits, spec.volume.as_of, spec.volume.twp) = (None, None, None);
        let resolved = v.catalog().resolve(&spec).ok()?;
        v.catalog().prices(None).ok()?.monthly_cost(&resolved)
    };
    let (free, more) = (of(free_iops(v))?, of(free_iops(v) + whole_number(iops.ceil()))?);
    Some(format!("{} a month ({}, {})", more.usd.less(free.usd), more.region, more.as_of))
}

fn free_pages(v: &View<'_>) -> Judged {
    let waits = v.metric("wait_free")?;
    if waits <= 0.0 {
        return FINE;
    }
    let (lru, list) = (v.metric("lru_flushed").unwrap_or(0.0), v.metric("list_flushed").unwrap_or(0.0));
    let mostly = if lru > list {
        format!(" {} of the pages are flushed to make room, not for the checkpoint.", share(lru, lru + list))
    } else {
        String::new()
    };
    Found::because(format!("Threads wait {} times a second for a free page.{mostly}", figure(waits)))
        .fix(larger(v)?)
        .answer()
}

fn larger_than_data(v: &View<'_>) -> Judged {
    let pool = pool(v)?;
    let tables = v.tables()?;
    if tables.bounded {
        return Err(Gap::Undecided("The server has more tables than were counted.".into()));
    }
    let data =
        v.noted("innodb_bytes", tables.innodb_bytes() as f64, "bytes of all InnoDB tables and indexes");
    if pool <= GIB || pool <= 1.5 * data {
        return FINE;
    }
    Found::because(format!("The pool of {} is for {} of data.", size(pool), size(data)))
        .fix(resize(v, "Make the pool smaller", (data * 1.25).max(GIB))?)
        .answer()
}

/// Instances of a pool that have 1 GiB or more each, at most as many as there are.
pub(super) fn useful(pool: f64, instances: f64) -> f64 {
    if instances <= 1.0 || pool / instances >= GIB { instances } else { (pool / GIB).floor().max(1.0) }
}

fn instances(v: &View<'_>) -> Judged {
    let (pool, number) = (pool(v)?, v.number("innodb_buffer_pool_instances")?);
    let wanted = useful(pool, number);
    if wanted >= number {
        return FINE;
    }
    Found::because(format!("{number} instances have {} each.", size(pool / number)))
        .fix(v.fix(
            "Take fewer instances.",
            &[("innodb_buffer_pool_instances", &format!("{wanted:.0}"), Dynamic::NEVER)],
        )?)
        .answer()
}

fn warm(v: &View<'_>) -> Judged {
    let (dump, load) =
        (v.on("innodb_buffer_pool_dump_at_shutdown")?, v.on("innodb_buffer_pool_load_at_startup")?);
    let mut set = Vec::new();
    if !dump {
        set.push(("innodb_buffer_pool_dump_at_shutdown", "ON", Dynamic::ALWAYS));
    }
    if !load {
        set.push(("innodb_buffer_pool_load_at_startup", "ON", Dynamic::NEVER));
    }
    if set.is_empty() {
        return FINE;
    }
    Found::because("After a restart the pool is cold.")
        .fix(v.fix("Keep the list of cached pages, and read them at the start.", &set)?)
        .answer()
}

fn read_ahead(v: &View<'_>) -> Judged {
    // innodb_buffer_pool_read_ahead counts linear read-ahead alone; what was evicted unused is counted of both together.
    let linear = v.growth("innodb_buffer_pool_read_ahead")?;
    let random =
        if v.on("innodb_random_read_ahead")? { v.growth("innodb_buffer_pool_read_ahead_rnd")? } else { 0.0 };
    let unused = v.growth("innodb_buffer_pool_read_ahead_evicted")?;
    let ahead = linear + random;
    if ahead < MUCH_READ_AHEAD || unused <= 0.2 * ahead {
        return FINE;
    }
    let found = Found::because(format!(
        "{} of {} pages read ahead a second are evicted unused.",
        figure(unused),
        figure(ahead)
    ));
    let no_random = ("innodb_random_read_ahead", "OFF", Dynamic::ALWAYS);
    let whole_extents = ("innodb_read_ahead_threshold", "64", Dynamic::ALWAYS);
    let fix = match (random > 0.0, linear >= MUCH_READ_AHEAD) {
        (true, false) => v.fix("Read ahead only where pages are read in order.", &[no_random])?,
        (true, true) => {
            v.fix("Read ahead only after a whole extent was read in order.", &[no_random, whole_extents])?
        }
        (false, _) => v.fix("Read ahead only after a whole extent in order.", &[whole_extents])?,
    };
    found.fix(fix).answer()
}

fn swap(v: &View<'_>) -> Judged {
    let host = v.host()?;
    if let Some(swapped) = host.server_swapped_bytes.filter(|bytes| *bytes > 0) {
        let swapped = v.noted("server_swapped_bytes", swapped as f64, "memory of the server in swap, bytes");
        return Found::because(format!("{} of the server's memory are in swap.", size(swapped)))
            .fix(Fix::by_hand("Make the buffer pool smaller or add memory, then set vm.swappiness = 1 and restart the server."))
            .answer();
    }
    let swap = v.fact("swap_bytes", host.swap_bytes, "swap space, bytes")?;
    if swap == 0.0 {
        return FINE;
    }
    let swappiness = v.fact("swappiness", host.swappiness, "vm.swappiness")?;
    if swappiness <= 10.0 {
        return FINE;
    }
    Found::because(format!(
        "vm.swappiness is {swappiness}: the kernel swaps the pool out to keep its page cache."
    ))
    .severity(Severity::Low)
    .fix(Fix::by_hand("Set it: sysctl vm.swappiness=1, and the same line in /etc/sysctl.d."))
    .answer()
}

fn numa(v: &View<'_>) -> Judged {
    let host = v.host()?;
    let nodes = v.fact("numa_nodes", host.numa_nodes, "NUMA nodes")?;
    if nodes <= 1.0 {
        return does_not_apply("the machine has one NUMA node");
    }
    let pool = pool(v)?;
    let node = v.fact("memory_bytes", host.memory_bytes, "memory of the machine, bytes")? / nodes;
    if v.on("innodb_numa_interleave")? || pool <= node {
        return FINE;
    }
    Found::because(format!("The pool of {} is larger than a node of {}.", size(pool), size(node)))
        .fix(v.fix("Spread the pool over all nodes.", &[("innodb_numa_interleave", "ON", Dynamic::NEVER)])?)
        .answer()
}
