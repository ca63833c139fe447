//! An observation from what a client printed of a server before.

use ebbtide_observe::metric::MetricKind;
use ebbtide_observe::{
    Counter, Facts, Flavour, Interval, Observation, Origin, Rates, Readings, Span, StatusVariables, Variables,
};

use super::sources::{Asked, UPTIME};

/// What was captured of a server.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// File or directory that it comes from.
    pub path: &'a str,
    /// What `SHOW GLOBAL VARIABLES` printed.
    pub variables: &'a str,
    /// What `SHOW GLOBAL STATUS` printed twice, and the seconds between; None where it did not.
    pub status: Option<([&'a str; 2], f64)>,
}

impl Capture<'_> {
    /// Its content. Lines have a name and a value, with a tab between (`mysql --batch`) or in a table; others are left
    /// out.
    #[must_use]
    pub fn observation(&self) -> Observation {
        let status = self.status.map(|(texts, seconds)| (texts.map(|text| pairs(text).collect()), seconds));
        let status = status.as_ref().map(|([before, after], seconds)| ([before, after], *seconds));
        assemble(self.path, pairs(self.variables).collect(), status)
    }
}

fn assemble(path: &str, variables: Variables, status: Option<([&Variables; 2], f64)>) -> Observation {
    let mut seen = Observation::of(Origin::Capture { path: path.to_owned() });
    if variables.is_empty() {
        return seen;
    }
    let facts = Facts::of(&variables);
    if let Some((both, seconds)) = status.filter(|(_, seconds)| *seconds > 0.0) {
        let (span, rates) = over(both, facts.flavour, seconds);
        (seen.span, seen.rates) = (Some(span), Some(rates));
        seen.status = Some(StatusVariables::between(both[0], both[1].clone(), seconds));
    }
    Observation { facts: Some(facts), variables: Some(variables), ..seen }
}

/// What a server did between two statuses, `seconds` apart; `seconds` is over 0.
pub(crate) fn over(status: [&Variables; 2], flavour: Flavour, seconds: f64) -> (Span, Rates) {
    let asked = Asked::of(flavour);
    let [before, after] = status.map(|status| readings(status, &asked));
    let restarted = before.get(UPTIME) > after.get(UPTIME);
    let rates = Rates::over(&Interval { before: &before, after: &after, seconds });
    (Span { began_unix_s: None, seconds, restarted }, rates)
}

/// The rates that follow from growth a second of status variables alone. Gauges, which do not grow, are not known.
pub(crate) fn rates_of_growth(growth: &[(String, u64)], flavour: Flavour) -> Rates {
    let asked = Asked::of(flavour);
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

fn readings(status: &Variables, asked: &Asked) -> Readings {
    let counter = |name: &'static str| Some((Counter::Status(name), status.get(name)?.parse::<u64>().ok()?));
    asked.status().filter_map(counter).collect()
}

/// Name and value of each line that has both.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.trim().trim_matches('|').split_once(['\t', '|'])?;
        Some((name.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: &str = "Variable_name\tValue\ninnodb_doublewrite\tON\ninnodb_page_size\t16384\n\
                             version\t10.11.19-MariaDB-log\n";

    #[test]
    fn what_a_client_printed_gives_the_same_as_a_server() {
        let before = "Innodb_pages_written\t100\nUptime\t50\n";
        let after = "+-------+\n| Innodb_pages_written | 700 |\n| Uptime | 60 |\n";
        let capture = Capture { path: "/c", variables: VARIABLES, status: Some(([before, after], 10.0)) };
        let seen = capture.observation();
        let facts = seen.facts.unwrap();
        assert_eq!((facts.flavour, facts.page_bytes), (Flavour::MariaDb, Some(16_384)));
        assert_eq!(facts.doublewrite.as_deref(), Some("ON"));
        assert_eq!(seen.rates.unwrap(), Rates { page_writes: Some(60.0), ..Rates::default() });
        assert!(!seen.span.unwrap().restarted);
    }

    #[test]
    fn what_was_not_captured_is_none() {
        let capture = Capture { path: "/c", variables: VARIABLES, status: None };
        assert_eq!((capture.observation().rates, capture.observation().span), (None, None));
        let nothing = Capture { variables: "", ..capture }.observation();
        assert_eq!(nothing, Observation::of(Origin::Capture { path: "/c".into() }));
    }
}
