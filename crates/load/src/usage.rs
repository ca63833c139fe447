//! What this process takes of the machine.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The process's largest resident memory so far, MiB; 0 where the system does not report it.
pub(crate) fn peak_rss_mib() -> f64 {
    ebbtide_proc::process::peak_memory().unwrap_or(0) as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_thread_uses_cpu_and_memory() {
        let before = thread_cpu_ns();
        let mut sum = 0_u64;
        while thread_cpu_ns() < before + 1_000_000 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        assert!(std::hint::black_box(sum) > 0);
        assert!(peak_rss_mib() > 1.0);
    }
}
