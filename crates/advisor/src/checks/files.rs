//! File systems, devices and the kernel, on the server's machine.

use ebbtide_observe::metric::Servers;
use ebbtide_observe::{Files, NotSeen, Role, ServerDirectory};

use super::sources::{EBS_NVME, EBS_TYPES, KERNEL_BLOCK, KERNEL_VM, MOUNT, MYSQL_INNODB, WHITEPAPER, says};
use super::{EVERY, figure, percent, size};
use crate::check::Check;
use crate::finding::{FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "O01",
        title: "The file system suits a database",
        condition: "data, redo or binary log not on xfs or ext4; or mounted with discard, strictatime or sync",
        reason: "discard sends a command with each deletion; strictatime writes at each read. Copy-on-write file systems move each page that is written",
        servers: EVERY,
        severity: Severity::Low,
        gain: "even latency",
        risk: "none that is known; run fstrim once a week in place of discard",
        cost: "a remount, or a copy of the data",
        sources: &[says(MOUNT, "options of ext4"), says(WHITEPAPER, "xfs or ext4, with noatime")],
        judge: file_system,
    },
    Check {
        code: "O02",
        title: "The I/O scheduler suits the device",
        condition: "bfq or cfq on a device without seeks",
        reason: "they order I/O for heads that move, and cost time for each operation",
        servers: EVERY,
        severity: Severity::Low,
        gain: "lower latency",
        risk: "none that is known",
        cost: "none",
        sources: &[says(KERNEL_BLOCK, "the schedulers of a device; none for fast devices")],
        judge: scheduler,
    },
    Check {
        code: "O03",
        title: "The kernel knows that the device does not rotate",
        condition: "rotational is 1 on NVMe, EBS or a virtual disk",
        reason: "MariaDB and tools decide by it: neighbours of a page are written along (F02)",
        servers: EVERY,
        severity: Severity::Low,
        gain: "the right defaults",
        risk: "none that is known; on an HDD volume (st1, sc1) it is right",
        cost: "none",
        sources: &[says(
            KERNEL_BLOCK,
            "rotational says whether the device is of rotational type; it can be set",
        )],
        judge: rotational,
    },
    Check {
        code: "O04",
        title: "A sync is short",
        condition: "of the writes of 4 KiB with a sync that --probe makes, one in a hundred takes over 5 ms; or over 2 ms and over five times the median",
        reason: "each group of commits waits for such a sync, and that for its writes: one takes {gp3.write} at the median on gp3, and {io2.write} on io2. A tail far above the median is a limit that throttles",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "shorter commits",
        risk: "as of E01",
        cost: "a volume with lower latency, or more IOPS",
        sources: &[
            says(EBS_TYPES, "the latency of each type"),
            says(WHITEPAPER, "latency of the log's volume is that of commits"),
        ],
        judge: sync_time,
    },
    Check {
        code: "O05",
        title: "Reads and writes account for the device's queue",
        condition: "the requests in flight, at 1 or more, are over 20% apart from reads and writes a second times their mean times (Little's law)",
        reason: "the rest are flushes and discards, or requests that do not end; 20% is more than the times of the two looks explain. Figures that contradict each other support no other finding",
        servers: EVERY,
        severity: Severity::Low,
        gain: "the device's time for reads and writes, or figures that can be trusted",
        risk: "none that is known",
        cost: "none",
        sources: &[says(
            "https://docs.kernel.org/admin-guide/iostats.html",
            "what the kernel counts: time of reads, of writes, of discards, of flushes, and of all together",
        )],
        judge: queue,
    },
    Check {
        code: "O06",
        title: "The kernel does not read far ahead",
        condition: "read-ahead over 256 KiB on the device of the data, while data files go through the page cache",
        reason: "a random read of a page then takes up to that much of the volume's throughput; 128 KiB is the default",
        servers: EVERY,
        severity: Severity::Low,
        gain: "throughput of the volume",
        risk: "scans and backups read in smaller pieces",
        cost: "none",
        sources: &[says(KERNEL_BLOCK, "read_ahead_kb is the most that is read ahead for buffered reads")],
        judge: read_ahead,
    },
    Check {
        code: "O07",
        title: "The kernel's limits suit the server",
        condition: "transparent huge pages are always on; over 90% of fs.aio-max-nr is in use; or under 1,024 open files are allowed",
        reason: "huge pages stall while memory is compacted. Without room for requests the server falls back to slow I/O. With few files it opens tables again and again",
        servers: EVERY,
        severity: Severity::Low,
        gain: "no stalls of the kernel's making",
        risk: "none that is known",
        cost: "none",
        sources: &[
            says(
                "https://docs.kernel.org/admin-guide/mm/transhuge.html",
                "madvise leaves the choice to programs",
            ),
            says(KERNEL_VM, "limits of the kernel"),
            says(MYSQL_INNODB, "asynchronous I/O fails to start where aio-max-nr is reached"),
        ],
        judge: limits,
    },
    Check {
        code: "O08",
        title: "Temporary tables do not take the data's IOPS",
        condition: "temporary tables beside the data, and over 10 of them a second on disk. MySQL from 8.0.16 on has them in innodb_temp_tablespaces_dir, MySQL before that with internal_tmp_disk_storage_engine = INNODB beside the data, other servers in tmpdir",
        reason: "under 10 a second they are small against any volume",
        servers: EVERY,
        severity: Severity::Low,
        gain: "IOPS of the volume",
        risk: "a tmpfs that fills up fails statements: bound it",
        cost: "memory, or a volume",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/temporary-files.html",
            "where temporary files lie",
        )],
        judge: temporary,
    },
    Check {
        code: "O09",
        title: "There is free space",
        condition: "under 15% of the file system of data, redo or binary log is free (high under 5%)",
        reason: "a full file system stops the server; an EBS volume grows while it is in use: {modifications}",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "no outage",
        risk: "none that is known",
        cost: "space",
        sources: &[says(
            "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-modify-volume.html",
            "grow a volume while it is in use, then the file system",
        )],
        judge: space,
    },
    Check {
        code: "O10",
        title: "Pages do not cross the devices of an array",
        condition: "the data are on a striped array (RAID 0, LVM) whose chunk is no multiple of the page size",
        reason: "a page that crosses a chunk is two operations, on two volumes, and may be torn between them",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "one operation for a page",
        risk: "the array has to be made anew",
        cost: "a copy of the data",
        sources: &[says(
            "https://docs.aws.amazon.com/ebs/latest/userguide/raid-config.html",
            "RAID 0 of volumes, and snapshots of all of them together",
        )],
        judge: chunk,
    },
    Check {
        code: "O11",
        title: "The data have a volume of their own",
        condition: "the data directory is on the root file system",
        reason: "logs of the system, package updates and swap take IOPS and space of the database; it cannot be snapshot alone",
        servers: EVERY,
        severity: Severity::Low,
        gain: "limits, snapshots and growth that are the database's own",
        risk: "a copy of the data",
        cost: "a volume",
        sources: &[says(WHITEPAPER, "keep data on volumes apart from the root volume")],
        judge: root,
    },
    Check {
        code: "O12",
        title: "A hiccup of EBS is no I/O error",
        condition: "nvme_core.io_timeout under 255 s on an EBS volume",
        reason: "an operation that takes longer fails, and the file system turns read-only",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a pause in place of an outage",
        risk: "none that is known",
        cost: "none",
        sources: &[says(EBS_NVME, "set it to the maximum, 4294967295, or 255 on kernels before 4.15")],
        judge: nvme_timeout,
    },
];

const KEPT: [Files; 3] = [Files::Data, Files::Redo, Files::Binlog];

fn file_system(v: &View<'_>) -> Judged {
    v.mount(Files::Data)?;
    let known = |place: &&ServerDirectory| KEPT.contains(&place.files) && !place.file_system.is_empty();
    for place in v.host()?.places.iter().filter(known) {
        let bad =
            place.options.iter().find(|option| matches!(option.as_str(), "discard" | "strictatime" | "sync"));
        if let Some(option) = bad {
            v.word("options", &place.options.join(","), "options of the mount");
            let text = format!("Mount {} without {option}, and with noatime.", place.mount_point);
            return Found::because(format!("{} is mounted with {option}.", place.mount_point))
                .fix(Fix::by_hand(text))
                .answer();
        }
        if !matches!(place.file_system.as_str(), "xfs" | "ext4") {
            v.word("file_system", &place.file_system, "type of the file system");
            let why = format!("The {} lie on {}.", place.files.name(), place.file_system);
            return Found::because(why).fix(Fix::by_hand("Move them to xfs or ext4.")).answer();
        }
    }
    FINE
}

fn scheduler(v: &View<'_>) -> Judged {
    let device = v.device(Files::Data)?;
    let Some(scheduler) = &device.scheduler else { return does_not_apply("the device has no scheduler") };
    v.word("scheduler", scheduler, "I/O scheduler of the device");
    if !device.is_solid() || !matches!(scheduler.as_str(), "bfq" | "cfq") {
        return FINE;
    }
    let text =
        format!("echo none > /sys/block/{}/queue/scheduler, and a udev rule that keeps it.", device.name);
    Found::because(format!("{scheduler} orders the I/O of {}, which has no seeks.", device.name))
        .fix(Fix::by_hand(text))
        .answer()
}

fn rotational(v: &View<'_>) -> Judged {
    let device = v.device(Files::Data)?;
    let Some(rotational) = device.rotational else { return does_not_apply("the kernel does not say") };
    v.noted("rotational", f64::from(u8::from(rotational)), "1 where the kernel calls the device rotating");
    // A volume that is named as one of disks is one.
    let disks = v.volume(Role::Data).is_ok_and(|volume| volume.members[0].accounting.whole_units);
    let virtual_disk = ["vd", "xvd", "nvme"].iter().any(|name| device.name.starts_with(name));
    if !rotational || disks || !(virtual_disk || device.is_ebs()) {
        return FINE;
    }
    let text = format!(
        "echo 0 > /sys/block/{}/queue/rotational, and a udev rule: ATTR{{queue/rotational}}=\"0\".",
        device.name
    );
    Found::because(format!("The kernel takes {} for a disk that rotates.", device.name))
        .fix(Fix::by_hand(text))
        .answer()
}

fn sync_time(v: &View<'_>) -> Judged {
    let Some(probe) = &v.observation().sync_probe else {
        return Err(Gap::Missing(NotSeen {
            what: "how long a sync takes".into(),
            why: "name a directory on the volume with --probe DIR: it is written to for 2 s".into(),
        }));
    };
    v.word("probe", &probe.directory, "directory that was written to");
    let p50 = v.noted("sync_p50_us", probe.p50_us, "median of a write of 4 KiB and its sync, us");
    let p99 = v.noted("sync_p99_us", probe.p99_us, "time that one sync in a hundred is above, us");
    if p99 <= 5_000.0 && (p99 <= 2_000.0 || p99 <= 5.0 * p50) {
        return FINE;
    }
    // Fewer than a hundred fit into the time of the probe.
    let slowest = match probe.writes {
        few @ ..100 => format!("the longest of {few} took"),
        _ => "one in a hundred takes over".to_owned(),
    };
    Found::because(format!(
        "A sync takes {:.1} ms in the median, and {slowest} {:.1} ms.",
        p50 / 1e3,
        p99 / 1e3
    ))
    .fix(Fix::by_hand("Where the volume is at its limit, raise that (E03) or give the logs a volume of their own (R08). Else take a type with lower latency (io2)."))
    .answer()
}

fn queue(v: &View<'_>) -> Judged {
    let missing = |what: &str, why: &str| Gap::Missing(NotSeen { what: what.into(), why: why.into() });
    let Some(io) = v.device(Files::Data)?.io else {
        return Err(missing("what the device did", "run this on the server's machine, or capture iostat -x"));
    };
    // The confidence of an interval.
    let _ = v.metric("page_writes");
    let in_flight = v.noted("queue", io.queue, "requests in flight, mean");
    if in_flight < 1.0 {
        return FINE;
    }
    let of = |number: f64, time: Option<f64>| if number > 0.0 { time.map(|s| s * number) } else { Some(0.0) };
    let Some((reads, writes)) = of(io.reads, io.read_s).zip(of(io.writes, io.write_s)) else {
        return Err(missing(
            "the time of a read and of a write",
            "use an iostat with r_await and w_await (sysstat 10 or newer)",
        ));
    };
    let by_times = v.noted(
        "queue_of_reads_and_writes",
        reads + writes,
        "reads and writes a second times their mean times",
    );
    let apart = (in_flight - by_times).abs() / in_flight.max(by_times);
    if apart <= 0.2 {
        return FINE;
    }
    Found::because(format!(
        "{} requests are in flight, and reads and writes account for {}.",
        figure(in_flight),
        figure(by_times)
    ))
    .fix(Fix::by_hand("Where the figures are the kernel's, the rest are flushes and discards: let commits share syncs (F12, L04), and mount without discard (O01). Where they come from a file, take them again."))
    .answer()
}

fn read_ahead(v: &View<'_>) -> Judged {
    let kib =
        v.fact("read_ahead_kib", v.device(Files::Data)?.read_ahead_kib, "read-ahead of the device, KiB")?;
    match v.observation().facts.as_ref().and_then(|facts| facts.direct) {
        Some(true) => return FINE,
        None => {
            return Err(Gap::Undecided(
                "The server does not say whether data files go through the page cache.".into(),
            ));
        }
        Some(false) => {}
    }
    if kib <= 256.0 {
        return FINE;
    }
    Found::because(format!("The kernel reads {kib} KiB ahead for buffered reads."))
        .fix(Fix::by_hand("Write data files past the page cache (F01), or set the read-ahead to 128: blockdev --setra 256 DEVICE."))
        .answer()
}

fn limits(v: &View<'_>) -> Judged {
    let host = v.host()?;
    let (mut why, mut text) = (Vec::new(), Vec::new());
    if let Some(mode) = &host.huge_pages {
        v.word("transparent_hugepage", mode, "transparent huge pages");
        if mode == "always" {
            why.push("Transparent huge pages are always on.".to_owned());
            text.push("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
        }
    }
    if let (Some(used), Some(most)) = (host.aio_used, host.aio_max) {
        v.noted("aio_used", used as f64, "asynchronous requests that are reserved");
        if used as f64 > 0.9 * most as f64 {
            why.push(format!("{used} of {most} asynchronous requests are reserved."));
            text.push("sysctl fs.aio-max-nr=1048576");
        }
    }
    if let Some(files) = host.server_open_files {
        v.noted("open_files", files as f64, "files that the server may have open");
        if files < 1_024 {
            why.push(format!("The server may have {files} files open."));
            text.push("LimitNOFILE=65536 in the server's unit");
        }
    }
    if why.is_empty() {
        return FINE;
    }
    Found::because(why.join(" ")).fix(Fix::by_hand(format!("{}.", text.join("; ")))).answer()
}

/// From this release on MySQL has temporary tables on disk in tablespaces of InnoDB.
const IN_TABLESPACES: Servers = Servers { since: Some((8, 0, 16)), ..Servers::MYSQL };

fn temporary(v: &View<'_>) -> Judged {
    let (flavour, version) = v.server()?;
    let engine = v.maybe("internal_tmp_disk_storage_engine")?;
    let tables = if flavour.is_among(version, IN_TABLESPACES) {
        in_tablespaces(v)?
    } else if engine.is_some_and(|engine| engine.eq_ignore_ascii_case("innodb")) {
        let text = "Set internal_tmp_disk_storage_engine = MYISAM with tmpdir on a volume of its own or a bounded tmpfs";
        Some((v.growth("created_tmp_disk_tables")?, text))
    } else {
        in_tmpdir(v)?
    };
    let Some((tables, text)) = tables.filter(|(tables, _)| *tables > 10.0) else { return FINE };
    Found::because(format!("{} temporary tables a second are written beside the data.", figure(tables)))
        .fix(Fix::by_hand(format!(
            "{text}, and restart. Find the statements: they sort or group without an index."
        )))
        .answer()
}

/// Temporary tables a second in tablespaces beside the data, and where to put them; None where they lie elsewhere.
fn in_tablespaces(v: &View<'_>) -> Result<Option<(f64, &'static str)>, Gap> {
    let (dir, data) = (v.text("innodb_temp_tablespaces_dir")?, v.text("datadir")?);
    // A path of its own may be another mount.
    if dir.starts_with('/') && !dir.starts_with(data) {
        return Ok(None);
    }
    let text = "Set innodb_temp_tablespaces_dir to a volume of its own, or keep more in memory (temptable_max_ram, tmp_table_size)";
    Ok(Some((v.growth("created_tmp_disk_tables")?, text)))
}

/// The same of servers that have them in `tmpdir`.
fn in_tmpdir(v: &View<'_>) -> Result<Option<(f64, &'static str)>, Gap> {
    let (temporary, data) = (v.place(Files::Temporary)?, v.place(Files::Data)?);
    if data.mount_point.is_empty() {
        return Err(Gap::Undecided("Where the data are mounted is not known.".into()));
    }
    if temporary.mount_point != data.mount_point {
        return Ok(None);
    }
    let text = "Set tmpdir to a volume of its own or a bounded tmpfs";
    Ok(Some((v.growth("created_tmp_disk_tables")?, text)))
}

fn space(v: &View<'_>) -> Judged {
    v.fact("data_bytes", v.place(Files::Data)?.size_bytes, "size of the file system of the data, bytes")?;
    let share = |place: &ServerDirectory| {
        let all = place.size_bytes.filter(|bytes| *bytes > 0)?;
        Some(place.free_bytes? as f64 / all as f64)
    };
    let kept = v.host()?.places.iter().filter(|place| KEPT.contains(&place.files));
    let shares = kept.filter_map(|place| Some((place, share(place)?)));
    let Some((place, share)) = shares.min_by(|one, other| one.1.total_cmp(&other.1)) else { return FINE };
    v.noted("free_share", share, "free share of the fullest file system");
    if share >= 0.15 {
        return FINE;
    }
    let severity = if share < 0.05 { Severity::High } else { Severity::Medium };
    Found::because(format!(
        "{} with the {} has {} free, {}.",
        place.mount_point,
        place.files.name(),
        size(place.free_bytes.unwrap_or(0) as f64),
        percent(share)
    ))
    .severity(severity)
    .fix(Fix::by_hand("Grow the volume and the file system, or delete what is old (L03)."))
    .answer()
}

fn chunk(v: &View<'_>) -> Judged {
    let Some(chunk) = v.device(Files::Data)?.chunk_bytes else {
        return does_not_apply("the data are on no striped array");
    };
    let chunk = v.noted("chunk_bytes", chunk as f64, "bytes on one device of the array before the next");
    let page = v.number("innodb_page_size")?;
    if page <= 0.0 || chunk % page == 0.0 {
        return FINE;
    }
    Found::because(format!(
        "The array has chunks of {}, and pages of {} cross them.",
        size(chunk),
        size(page)
    ))
    .fix(Fix::by_hand("Make the array anew with a chunk of 64 to 256 KiB, and copy the data."))
    .answer()
}

fn root(v: &View<'_>) -> Judged {
    let place = v.place(Files::Data)?;
    if place.mount_point.is_empty() {
        return Err(Gap::Undecided("Where the data are mounted is not known.".into()));
    }
    if place.mount_point != "/" {
        return FINE;
    }
    Found::because(format!("{} is on the root file system.", place.directory))
        .fix(Fix::by_hand("Move the data to a volume of their own."))
        .answer()
}

fn nvme_timeout(v: &View<'_>) -> Judged {
    if !v.device(Files::Data)?.is_ebs() {
        return does_not_apply("the data are on no EBS volume that NVMe shows");
    }
    let seconds = v.fact("nvme_timeout_s", v.host()?.nvme_timeout_s, "nvme_core.io_timeout, s")?;
    if seconds >= 255.0 {
        return FINE;
    }
    Found::because(format!("An operation that takes over {seconds} s fails."))
        .fix(Fix::by_hand("Boot with nvme_core.io_timeout=4294967295."))
        .answer()
}
