//! What the kernel reports about the machine and about this process's threads: small reads of `/proc`,
//! cheap enough for once a second.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ebbtide_proc::machine;
pub use ebbtide_proc::machine::{MachineTime, available_memory};
use ebbtide_proc::process::Stat;

use crate::record::HostFacts;

/// The machine's processor time; None: the kernel does not report it.
pub fn machine_time() -> Option<MachineTime> {
    machine::time()
}

/// Processor time of this thread so far, s.
pub fn thread_time_s() -> f64 {
    ebbtide_device::clock::thread_cpu_time().as_secs_f64()
}

/// Processor time of this process so far, s, with that of threads that have ended, in the kernel's clock ticks of 10 ms;
/// None: the kernel does not report it.
pub fn own_time_s() -> Option<f64> {
    Stat::of(std::process::id()).map(|stat| stat.cpu.as_secs_f64())
}

/// Processor time of every thread of this process so far, s, by its number; of those that run at this
/// moment, up to their last tick.
pub fn thread_times_s() -> BTreeMap<u32, f64> {
    machine::threads().into_iter().map(|(number, time)| (number, time.ran_s)).collect()
}

/// How long every thread of this process was ready to run and had no processor so far, s, by its number.
pub fn thread_waits_s() -> BTreeMap<u32, f64> {
    machine::threads().into_iter().map(|(number, time)| (number, time.waited_s)).collect()
}

/// How long the reads and writes of a block device have taken so far, in sum, s, from their arrival in the
/// kernel to their end; None: the kernel does not report it.
pub(super) fn device_time_s(device: &Path) -> Option<f64> {
    let name = device.file_name()?.to_str()?;
    parse_device_time(&fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?)
}

/// Fields 4 and 8 of `stat` (Linux, Documentation/block/stat.rst): times of reads and of writes, ms.
fn parse_device_time(text: &str) -> Option<f64> {
    let fields: Vec<f64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some((fields.get(3)? + fields.get(7)?) / 1e3)
}

/// How many processors this process may use.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// The machine; what is measured of it is left out.
pub fn host_facts() -> HostFacts {
    HostFacts {
        cpus: cpus(),
        threads_per_core: machine::threads_per_core(),
        cpu_model: machine::cpu_model(),
        memory_bytes: machine::memory().unwrap_or(0),
        kernel: machine::kernel(),
        calibration: Vec::new(),
        local_round_trip_us: None,
        load_before: machine::load(),
        home: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_devices_reads_and_writes_is_reported_and_no_other() {
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
    fn the_time_of_the_process_has_that_of_a_thread_that_has_ended() {
        let before = own_time_s().unwrap();
        let spin = || {
            let began = thread_time_s();
            while thread_time_s() < began + 0.1 {
                std::hint::black_box((0..100_000).fold(0_u64, |sum, n| sum.wrapping_mul(31) ^ n));
            }
        };
        std::thread::spawn(spin).join().unwrap();
        // Two figures are counted in whole ticks, each of 10 ms.
        assert!(own_time_s().unwrap() >= before + 0.07);
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
    fn the_machine_reports_what_it_is() {
        let facts = host_facts();
        assert!(facts.cpus > 0 && facts.memory_bytes > 1 << 26 && !facts.kernel.is_empty(), "{facts:?}");
        assert!(available_memory().unwrap() < facts.memory_bytes);
    }
}
