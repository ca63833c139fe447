//! What the kernel says about the machine and about this process's threads: small reads of `/proc`,
//! cheap enough for once a second.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::record::HostFacts;

/// The unit of `/proc/stat`: every Linux architecture of today tells user space 100 ticks a second.
const TICKS_PER_S: f64 = 100.0;

/// Processor time of the whole machine since it started, s.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineTime {
    /// Spent working.
    pub busy_s: f64,
    /// Taken away by the hypervisor.
    pub steal_s: f64,
}

/// The machine's processor time; none where the kernel does not say.
pub fn machine_time() -> Option<MachineTime> {
    parse_machine_time(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse_machine_time(text: &str) -> Option<MachineTime> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are counted in user and nice.
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    let busy_s = (user + nice + system + irq + softirq) / TICKS_PER_S;
    Some(MachineTime { busy_s, steal_s: steal / TICKS_PER_S })
}

/// Processor time of this thread so far, s.
pub fn thread_time_s() -> f64 {
    ebbtide_device::clock::thread_cpu_time().as_secs_f64()
}

/// Processor time of every thread of this process so far, s, by its number; of those that run at this
/// moment, up to their last tick.
pub fn thread_times_s() -> BTreeMap<u32, f64> {
    of_threads(0)
}

/// How long every thread of this process was ready to run and had no processor so far, s, by its number.
pub fn thread_waits_s() -> BTreeMap<u32, f64> {
    of_threads(1)
}

/// A field of every thread's `schedstat`: time on a processor, time waiting for one, ns (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn of_threads(field: usize) -> BTreeMap<u32, f64> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return BTreeMap::new() };
    let times = threads.filter_map(|entry| {
        let path = entry.ok()?.path();
        let number = path.file_name()?.to_str()?.parse().ok()?;
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        let ns: f64 = text.split_whitespace().nth(field)?.parse().ok()?;
        Some((number, ns / 1e9))
    });
    times.collect()
}

/// How long the reads and writes of a block device have taken so far, in sum, s, from their arrival in the
/// kernel to their end; none where the kernel does not say.
pub(super) fn device_time_s(device: &Path) -> Option<f64> {
    let name = device.file_name()?.to_str()?;
    parse_device_time(&fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?)
}

/// Fields 4 and 8 of `stat` (Linux, Documentation/block/stat.rst): times of reads and of writes, ms.
fn parse_device_time(text: &str) -> Option<f64> {
    let fields: Vec<f64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some((fields.get(3)? + fields.get(7)?) / 1e3)
}

/// Memory that could be given to a server, bytes; none where the kernel does not say.
pub fn available_memory() -> Option<u64> {
    meminfo("MemAvailable:")
}

fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// How many processors this process may use.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// The machine, its calibration left out.
pub fn host_facts() -> HostFacts {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let load = read("/proc/loadavg");
    HostFacts {
        cpus: cpus(),
        cpu_model: model.map_or_else(String::new, |(_, name)| name.trim().to_owned()),
        memory_bytes: meminfo("MemTotal:").unwrap_or(0),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        calibration: Vec::new(),
        load_before: load.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        home: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_working_and_stolen_time_is_told_apart() {
        let time = parse_machine_time("cpu  100 20 30 4000 500 6 4 70 9 9\ncpu0 1 2 3\n").unwrap();
        assert!((time.busy_s - 1.6).abs() < 1e-9, "{time:?}");
        assert!((time.steal_s - 0.7).abs() < 1e-9, "{time:?}");
        assert!(parse_machine_time("intr 1 2 3\n").is_none());
    }

    #[test]
    fn the_time_of_a_devices_reads_and_writes_is_told_and_no_other() {
        let text = "  5 1 40 1500 7 2 56 2500 0 900 9000 3 0 24 77 2 50\n";
        assert!((parse_device_time(text).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(parse_device_time("1 2 3"), None);
        assert_eq!(device_time_s(Path::new("/dev/none-such")), None);
    }

    #[test]
    fn a_thread_that_works_is_seen_by_itself_and_among_all() {
        let before = thread_time_s();
        let mut sum = 0_u64;
        while thread_time_s() < before + 0.01 {
            sum = (0..100_000).fold(sum, |sum, n| std::hint::black_box(sum.wrapping_mul(31) ^ n));
        }
        assert!(std::hint::black_box(sum) != 1);
        assert!(thread_times_s().values().any(|&time| time >= 0.005));
    }

    #[test]
    fn threads_that_share_a_processor_are_seen_to_wait_for_it() {
        let spin = || {
            let before = thread_time_s();
            while thread_time_s() < before + 0.15 {
                std::hint::black_box((0..100_000).fold(0_u64, |sum, n| sum.wrapping_mul(31) ^ n));
            }
        };
        let waited = || thread_waits_s().values().sum::<f64>();
        let before = waited();
        let many = 4 * cpus();
        let seen = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..many).map(|_| scope.spawn(spin)).collect();
            std::thread::sleep(std::time::Duration::from_millis(250));
            let seen = waited();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            seen
        });
        assert!(
            seen - before > 0.25,
            "four threads a processor wait three of four seconds: {}",
            seen - before
        );
    }

    #[test]
    fn the_machine_says_what_it_is() {
        let facts = host_facts();
        assert!(facts.cpus > 0 && facts.memory_bytes > 1 << 26 && !facts.kernel.is_empty(), "{facts:?}");
        assert!(available_memory().unwrap() < facts.memory_bytes);
    }
}
