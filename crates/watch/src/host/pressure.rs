//! The families of node_exporter's collector `pressure` (`collector/pressure_linux.go`).

use ebbtide_proc::Pressure;
use ebbtide_volume::Nanos;

use super::foreign::family;
use crate::exposition::{Exposition, Label, Number};
use crate::family::{Family, FamilyKind};

const fn counter(name: &'static str, help: &'static str) -> Family {
    family(name, FamilyKind::Counter, "seconds", &[], (help, "`/proc/pressure`"))
}

/// How a total is read, us; None: the kernel does not report it.
type Read = fn(&Pressure) -> Option<u64>;

const TOTALS: [(Family, Read); 6] = [
    (
        counter("node_pressure_cpu_waiting_seconds_total", "Time in which a process waited for a processor."),
        |pressure| pressure.cpu?.some_us,
    ),
    (
        counter("node_pressure_io_waiting_seconds_total", "Time in which a process waited for I/O."),
        |pressure| pressure.io?.some_us,
    ),
    (
        counter("node_pressure_io_stalled_seconds_total", "Time in which no process could go on, for I/O."),
        |pressure| pressure.io?.full_us,
    ),
    (
        counter("node_pressure_memory_waiting_seconds_total", "Time in which a process waited for memory."),
        |pressure| pressure.memory?.some_us,
    ),
    (
        counter(
            "node_pressure_memory_stalled_seconds_total",
            "Time in which no process could go on, for memory.",
        ),
        |pressure| pressure.memory?.full_us,
    ),
    (
        counter(
            "node_pressure_irq_stalled_seconds_total",
            "Time in which no process could go on, for interrupts.",
        ),
        |pressure| pressure.irq?.full_us,
    ),
];

/// The families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    TOTALS.iter().map(|(family, _)| *family).collect()
}

/// Adds what the kernel reports.
pub(super) fn add(text: &mut Exposition, pressure: &Pressure, shared: &[Label<'_>]) {
    for (family, read) in &TOTALS {
        if let Some(us) = read(pressure) {
            text.add(family, shared, Number::Time(Nanos(us.saturating_mul(1_000))));
        }
    }
}
