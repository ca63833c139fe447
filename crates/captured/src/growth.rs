//! Rates of a server from the status that clients printed of it.

use ebbtide_observe::metric::MetricKind;
use ebbtide_observe::{AskedCounters, Counter, Flavour, Interval, Rates, Readings, Span, UPTIME, Variables};

/// What a server did between two statuses, `seconds` apart; `seconds` is over 0.
pub(crate) fn over(status: [&Variables; 2], flavour: Flavour, seconds: f64) -> (Span, Rates) {
    let asked = AskedCounters::of(flavour);
    let [before, after] = status.map(|status| readings(status, &asked));
    let restarted = before.get(UPTIME) > after.get(UPTIME);
    let rates = Rates::over(&Interval { before: &before, after: &after, seconds });
    (Span { began_unix_s: None, seconds, restarted }, rates)
}

/// The rates that follow from growth a second of status variables alone. Gauges, which do not grow, are not known.
pub(crate) fn rates_of_growth(growth: &[(String, u64)], flavour: Flavour) -> Rates {
    let asked = AskedCounters::of(flavour);
    let (mut before, mut after) = (Readings::default(), Readings::default());
    for name in asked.status() {
        if let Some((_, grown)) = growth.iter().find(|(known, _)| known == name) {
            before.insert(Counter::Status(name), 0);
            after.insert(Counter::Status(name), *grown);
        }
    }
    let all = Rates::over(&Interval { before: &before, after: &after, seconds: 1.0 }).to_values();
    Rates::from_fn(|place, metric| all[place].filter(|_| metric.kind != MetricKind::Gauge))
}

fn readings(status: &Variables, asked: &AskedCounters) -> Readings {
    let counter = |name: &'static str| Some((Counter::Status(name), status.get(name)?.parse::<u64>().ok()?));
    asked.status().filter_map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_statuses_of_a_client_give_the_rates_of_a_server() {
        let before = Variables::from_iter([("Innodb_pages_written", "100"), ("Uptime", "50")]);
        let after = Variables::from_iter([("Innodb_pages_written", "700"), ("Uptime", "60")]);
        let (span, rates) = over([&before, &after], Flavour::MariaDb, 10.0);
        assert_eq!(rates, Rates { page_writes: Some(60.0), ..Rates::default() });
        assert!(!span.restarted);
    }
}
