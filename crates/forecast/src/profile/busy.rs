//! How busy a run's transactions kept the processors.

use ebbtide_lab::record::{HostSecond, LabRun, Outcome, Second};
use ebbtide_lab::summary::Figures;

/// Percent of all processors that the transactions of an arm kept busy.
#[must_use]
pub fn busy_pct(run: &LabRun, arm: &str, figures: &Figures) -> f64 {
    let trials = run.trials.iter().filter(|trial| trial.arm == arm && trial.outcome == Outcome::Measured);
    let seconds: Vec<&Second> = trials.flat_map(|trial| &trial.seconds).collect();
    processors(&seconds, figures) / f64::from(run.host.cpus.max(1)) * 100.0
}

/// Processors that transactions kept busy, on average. The volumes' own work is that of the lab, and belongs to no server.
///
/// A server may be busy without a transaction: threads of MariaDB that wait for a checkpoint poll. So the processor time of a
/// transaction is the median over all of them, each with the mean of its second.
fn processors(seconds: &[&Second], figures: &Figures) -> f64 {
    let of = |host: &HostSecond| host.server_cpus + host.load_cpus;
    let mut each: Vec<(f64, f64)> = seconds
        .iter()
        .filter(|second| second.load.tps > 0.0)
        .map(|second| (of(&second.host) / second.load.tps, second.load.tps))
        .collect();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = each.iter().map(|(_, tps)| tps).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    let median = each.iter().find(|(_, tps)| {
        passed += tps;
        passed >= half
    });
    median.map_or(figures.host.server_cpus + figures.host.load_cpus, |(time, _)| time * figures.tps.mean)
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::record::LoadSecond;
    use ebbtide_lab::summary::{HostFigures, Measured};

    use super::*;

    #[test]
    fn processors_that_poll_while_no_transaction_goes_on_are_no_part_of_their_time() {
        let second = |tps: f64, server_cpus: f64| Second {
            load: LoadSecond { tps, ..LoadSecond::default() },
            host: HostSecond { server_cpus, load_cpus: 0.1 * tps / 1_000.0, ..HostSecond::default() },
            ..Second::default()
        };
        // 400 us of a transaction, and 1.4 processors where nothing goes on, or next to nothing.
        let all = [
            second(1_000.0, 0.3),
            second(0.0, 1.4),
            second(1.0, 1.4),
            second(3_000.0, 0.9),
            second(0.0, 1.4),
        ];
        let tps = Measured { mean: 800.2, ..Measured::default() };
        let figures = Figures { tps, ..Figures::default() };
        let found = processors(&all.iter().collect::<Vec<_>>(), &figures);
        assert!((found - 800.2 * 400e-6).abs() < 1e-9, "{found}");
        let host = HostFigures { server_cpus: 0.5, load_cpus: 0.1, ..HostFigures::default() };
        assert!(
            (processors(&[], &Figures { host, ..figures }) - 0.6).abs() < 1e-9,
            "results without seconds"
        );
    }
}
