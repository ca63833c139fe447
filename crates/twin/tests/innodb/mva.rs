//! Exact mean value analysis of a closed network with one class, the oracle of the model's tests.
//!
//! Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", JACM 27(2), 1980; stations whose
//! rate depends on their queue as in Lazowska et al., "Quantitative System Performance", chapter 8.

/// Throughput, transactions a second, of `clients` that each spend `delay_s` without a queue and then need `work_s`
/// of a station that does `rate(n)` times the work of one server when n are there.
pub(crate) fn throughput(clients: usize, delay_s: f64, work_s: f64, rate: impl Fn(usize) -> f64) -> f64 {
    // Probabilities of 0, 1, ... transactions at the station, with one client fewer.
    let mut before = vec![1.0];
    let mut throughput = 0.0;
    for n in 1..=clients {
        let time: f64 = (1..=n).map(|at| at as f64 * work_s / rate(at) * before[at - 1]).sum();
        throughput = n as f64 / (delay_s + time);
        let mut now = vec![0.0; n + 1];
        for at in 1..=n {
            now[at] = throughput * work_s / rate(at) * before[at - 1];
        }
        now[0] = 1.0 - now[1..].iter().sum::<f64>();
        before = now;
    }
    throughput
}

#[test]
fn one_server_without_delay_is_always_busy() {
    assert!((throughput(5, 0.0, 0.01, |_| 1.0) - 100.0).abs() < 1e-9);
}

#[test]
fn a_station_without_a_queue_only_delays() {
    assert!((throughput(8, 0.5, 0.5, |n| n as f64) - 8.0).abs() < 1e-9);
}
