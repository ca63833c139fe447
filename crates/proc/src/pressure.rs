//! Pressure: how long processes waited for a resource of the machine (Documentation/accounting/psi.rst of the kernel).
//!
//! procfs wants two lines of each file, of which `cpu` had one until Linux 5.13, and `irq` has one.

use std::fs;

/// How long processes have waited for one resource since the machine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stall {
    /// At least one process waited, us; None for interrupts, which have no such line.
    pub some_us: Option<u64>,
    /// No process could go on, us; None for processors before Linux 5.13.
    pub full_us: Option<u64>,
}

/// The pressure of a machine. None for a resource that the kernel does not report: it is older than 4.20, or it was started without
/// `psi=1` where that is not the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Processors.
    pub cpu: Option<Stall>,
    /// I/O.
    pub io: Option<Stall>,
    /// Memory.
    pub memory: Option<Stall>,
    /// Interrupts, from Linux 6.1 on.
    pub irq: Option<Stall>,
}

/// The pressure of this machine.
#[must_use]
pub fn pressure() -> Pressure {
    let stall = |name: &str| parse_stall(&fs::read_to_string(format!("/proc/pressure/{name}")).ok()?);
    Pressure { cpu: stall("cpu"), io: stall("io"), memory: stall("memory"), irq: stall("irq") }
}

/// Reads a text like `/proc/pressure/io`; None of one without any total.
#[must_use]
pub fn parse_stall(text: &str) -> Option<Stall> {
    let total = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    let stall = Stall { some_us: total("some"), full_us: total("full") };
    (stall != Stall::default()).then_some(stall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_a_resource_are_read_whichever_lines_it_has() {
        let io = "some avg10=4.50 avg60=0.91 avg300=0.00 total=681245\nfull avg10=2.10 avg60=0.12 avg300=0.00 total=391926\n";
        assert_eq!(parse_stall(io), Some(Stall { some_us: Some(681_245), full_us: Some(391_926) }));
        let irq = "full avg10=0.00 avg60=0.00 avg300=0.00 total=77\n";
        assert_eq!(parse_stall(irq), Some(Stall { some_us: None, full_us: Some(77) }));
        let cpu = "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n";
        assert_eq!(parse_stall(cpu), Some(Stall { some_us: Some(u64::MAX), full_us: None }));
    }

    #[test]
    fn a_text_without_totals_is_no_pressure() {
        let texts =
            ["", "some", "something total=1\n", "some avg10=0.00 total=-1\n", "some avg10=0.00 total=\n"];
        assert_eq!(texts.map(parse_stall), [None; 5]);
    }

    #[test]
    fn this_machine_is_asked_without_an_error() {
        let now = pressure();
        assert!(now.io.is_none_or(|io| io.some_us >= io.full_us), "{now:?}");
    }
}
