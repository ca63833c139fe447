//! The machine: its processors, memory, kernel, and how busy it is.

use std::collections::BTreeMap;

use procfs::process::Process;
use procfs::{CpuInfo, Current as _, CurrentSI as _, DiskStat, KernelStats, LoadAverage, Meminfo};

/// Processor time of the whole machine since it started, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineTime {
    /// Spent working.
    pub busy_s: f64,
    /// Taken away by the hypervisor.
    pub steal_s: f64,
}

/// The machine's processor time; None: the kernel does not report it.
#[must_use]
pub fn time() -> Option<MachineTime> {
    time_of(&KernelStats::current().ok()?)
}

fn time_of(stats: &KernelStats) -> Option<MachineTime> {
    let total = &stats.total;
    // Guests are counted in user and nice.
    let busy = total.user + total.nice + total.system + total.irq? + total.softirq?;
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    Some(MachineTime { busy_s: seconds(busy), steal_s: seconds(total.steal?) })
}

/// Processor time of a thread of this process, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadTime {
    /// On a processor; of one that runs at this moment, up to its last tick.
    pub ran_s: f64,
    /// Ready to run, without a processor.
    pub waited_s: f64,
}

/// The times of every thread of this process so far, by its number.
#[must_use]
pub fn threads() -> BTreeMap<u32, ThreadTime> {
    let Ok(tasks) = Process::myself().and_then(|own| own.tasks()) else { return BTreeMap::new() };
    let times = tasks.flatten().filter_map(|task| {
        let times = task.schedstat().ok()?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let time = ThreadTime { ran_s: seconds(times.sum_exec_runtime), waited_s: seconds(times.run_delay) };
        Some((u32::try_from(task.tid).ok()?, time))
    });
    times.collect()
}

/// Threads of the first processor's core, from `/sys`; None: the kernel does not report it.
#[must_use]
pub fn threads_per_core() -> Option<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").ok()?;
    listed(list.trim())
}

/// The count of a list of the kernel such as `0-3,8`; None in another text.
#[must_use]
pub fn listed(list: &str) -> Option<u32> {
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((first, last)) => {
                Some(last.trim().parse::<u32>().ok()?.checked_sub(first.trim().parse().ok()?)? + 1)
            }
            None => part.trim().parse::<u32>().ok().map(|_| 1),
        })
        .sum()
}

/// Memory of the machine, bytes; None: the kernel does not report it.
#[must_use]
pub fn memory() -> Option<u64> {
    Some(Meminfo::current().ok()?.mem_total)
}

/// Memory that could be given to a new process, bytes; None: the kernel does not report it.
#[must_use]
pub fn available_memory() -> Option<u64> {
    Meminfo::current().ok()?.mem_available
}

/// Swap space of the machine, bytes; None: the kernel does not report it.
#[must_use]
pub fn swap() -> Option<u64> {
    Some(Meminfo::current().ok()?.swap_total)
}

/// The model of the first processor; empty where the kernel does not report it.
#[must_use]
pub fn cpu_model() -> String {
    let info = CpuInfo::current().ok();
    info.and_then(|info| Some(info.model_name(0)?.to_owned())).unwrap_or_default()
}

/// The load average of the last minute; 0 where the kernel does not report it.
#[must_use]
pub fn load() -> f64 {
    // By its digits: the nearest f32 has others behind them.
    LoadAverage::current().ok().and_then(|load| load.one.to_string().parse().ok()).unwrap_or(0.0)
}

/// The kernel's release, such as `6.1.0-18-amd64`; empty: the kernel does not report it.
#[must_use]
pub fn kernel() -> String {
    setting("kernel/osrelease").unwrap_or_default()
}

/// A setting of the kernel by its path below `/proc/sys`, such as `vm/swappiness`; None: this kernel has none of the
/// name, or it may not be read.
#[must_use]
pub fn setting(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().to_owned())
}

/// What the kernel counts for a block device since it appeared (Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads that have ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that have ended.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time of the reads that have ended together, ms.
    pub read_ms: u64,
    /// Time of the writes that have ended together, ms.
    pub write_ms: u64,
    /// Time of all I/O together, each from its start to its end, ms.
    pub queue_ms: u64,
}

/// The counters of every block device, by its name; empty: the kernel does not report them. A device whose line cannot be
/// read is left out.
#[must_use]
pub fn disks() -> BTreeMap<String, DiskCounts> {
    parse_disks(&std::fs::read("/proc/diskstats").unwrap_or_default())
}

/// The counters of a text such as `/proc/diskstats`. Driver names are any bytes: one that is no text costs its own line.
fn parse_disks(text: &[u8]) -> BTreeMap<String, DiskCounts> {
    text.split(|byte| *byte == b'\n').filter_map(|line| parse_disk(str::from_utf8(line).ok()?)).collect()
}

/// A line of `/proc/diskstats`, of this machine or another; None: it is another line.
#[must_use]
pub fn parse_disk(line: &str) -> Option<(String, DiskCounts)> {
    let disk = DiskStat::from_line(line).ok()?;
    disk.name.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| (disk.name.clone(), counts(&disk)))
}

/// The value of a line `Name:  12 kB` in a text such as `/proc/meminfo`, of this machine or another, in bytes. A part of
/// the file will do, which procfs refuses.
#[must_use]
pub fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn counts(disk: &DiskStat) -> DiskCounts {
    // The kernel counts in sectors of 512 bytes, whatever the device's.
    let bytes = |sectors: u64| sectors.saturating_mul(512);
    DiskCounts {
        reads: disk.reads,
        read_bytes: bytes(disk.sectors_read),
        writes: disk.writes,
        written_bytes: bytes(disk.sectors_written),
        read_ms: disk.time_reading,
        write_ms: disk.time_writing,
        queue_ms: disk.weighted_time_in_progress,
    }
}

#[cfg(test)]
mod tests {
    use procfs::FromBufReadSI as _;

    use super::*;

    #[test]
    fn a_list_of_processors_is_counted() {
        assert_eq!([listed("0-3,8"), listed("0"), listed("x")], [Some(5), Some(1), None]);
    }

    #[test]
    fn waiting_is_not_working_and_stolen_time_is_distinguished() {
        let of = |cpu: &str| {
            let text = format!("{cpu}\ncpu0 1 2 3 4\nctxt 5\nbtime 6\nprocesses 7\n");
            time_of(&KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap())
        };
        let time = of("cpu  100 20 30 4000 500 6 4 70 9 9").unwrap();
        let ticks = procfs::ticks_per_second() as f64;
        assert!((time.busy_s - 160.0 / ticks).abs() < 1e-9, "{time:?}");
        assert!((time.steal_s - 70.0 / ticks).abs() < 1e-9, "{time:?}");
        assert_eq!(of("cpu  100 20 30 4000"), None, "a kernel that does not distinguish them");
    }

    #[test]
    fn the_machine_reports_what_it_is_and_how_busy() {
        assert!(memory().unwrap() > 1 << 26 && available_memory().unwrap() < memory().unwrap());
        assert!(!kernel().is_empty() && load() >= 0.0);
        assert!(time().unwrap().busy_s > 0.0);
        assert!(threads().values().any(|time| time.ran_s > 0.0));
        assert!(swap().is_some() && setting("vm/swappiness").is_some() && setting("vm/none-such").is_none());
    }

    #[test]
    fn a_device_is_counted_in_bytes() {
        let line = "259 0 nvme0n1 100 0 800 5 200 0 1600 9 0 10 1000";
        let all = DiskCounts {
            reads: 100,
            read_bytes: 409_600,
            writes: 200,
            written_bytes: 819_200,
            read_ms: 5,
            write_ms: 9,
            queue_ms: 1000,
        };
        assert_eq!(parse_disk(line), Some(("nvme0n1".to_owned(), all)));
        assert_eq!(parse_disk(&format!(" {line} 0 0 0 0 7 8")).unwrap().1, all);
        assert_eq!(
            [parse_disk("259 0 7 100 0 800 5 200 0 1600 9 0 10 1000"), parse_disk("259 0 nvme0n1 1")],
            [None, None]
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_costs_no_other_device() {
        let good = "259 0 nvme0n1 100 0 800 5 200 0 1600 9 0 10 1000";
        let mut text =
            format!("{good}\n7 0 loop0 short\n7 1 loop1 -1 0 0 0 0 0 0 0 0 0 0\n8 0 ").into_bytes();
        text.extend(b"\xff\xfe 1 2 3\n 8 16 sdb 1 0 8 2 3 0 24 4 0 5 6 0 0 0 0\n");
        let names: Vec<String> = parse_disks(&text).into_keys().collect();
        assert_eq!(names, ["nvme0n1", "sdb"]);
        assert_eq!(parse_disks(&text)["nvme0n1"], parse_disk(good).unwrap().1);
        assert!(parse_disks(b"").is_empty());
    }

    #[test]
    fn a_part_of_meminfo_is_read() {
        let part = "VmSwapX:\t1 kB\nVmSwap:\t     12 kB\n";
        assert_eq!((kilobytes(part, "VmSwap"), kilobytes(part, "VmPeak")), (Some(12 * 1024), None));
    }
}
