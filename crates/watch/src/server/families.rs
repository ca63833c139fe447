//! Families whose names are made of what a server calls its counters. The table of the others is [`crate::names`].

use std::collections::BTreeMap;

use crate::exposition::{Exposition, Label, Number};
use crate::family::{Family, FamilyKind};

/// So many samples are taken of one server. A MySQL with all of its counters on has 2,000.
const MOST_SAMPLES: usize = 20_000;

/// Labels with their values.
pub type Labels = Vec<(&'static str, String)>;

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until the server is started again or its counters are cleared.
    Counter,
    /// Goes up and down.
    Gauge,
    /// The server does not say which of both it is.
    Untyped,
    /// Counts by upper bounds, with the sum of all values.
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Untyped => "untyped",
            Self::Histogram => "histogram",
        }
    }
}

impl From<FamilyKind> for Kind {
    fn from(kind: FamilyKind) -> Self {
        match kind {
            FamilyKind::Counter => Self::Counter,
            FamilyKind::Gauge => Self::Gauge,
            FamilyKind::Histogram => Self::Histogram,
        }
    }
}

/// Counts by upper bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Upper bounds, s, with the count of all values up to each; smallest first.
    pub buckets: Vec<(f64, u64)>,
    /// All values.
    pub count: u64,
    /// Their sum, s.
    pub sum: f64,
}

/// A family and its values by their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFamily {
    /// Its type.
    pub kind: Kind,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Values that are one number.
    pub samples: BTreeMap<Labels, f64>,
    /// Values that are histograms.
    pub histograms: BTreeMap<Labels, Histogram>,
}

/// The families of any number of servers.
#[derive(Debug, Default)]
pub struct Families {
    families: BTreeMap<String, ServerFamily>,
    constant: Labels,
    taken: usize,
    dropped: u64,
}

impl Families {
    /// What is added from now on is of a server with these labels.
    pub fn begin_server(&mut self, constant: Labels) {
        self.constant = constant;
        self.taken = 0;
    }

    /// Adds a value. Of two with the same name and labels, the later one holds.
    pub(super) fn add(&mut self, name: &str, kind: Kind, help: &'static str, labels: Labels, value: f64) {
        if let Some((family, labels)) = self.family(name, kind, help, labels) {
            family.samples.insert(labels, value);
        }
    }

    /// Adds a value of a family of the project's own.
    pub(super) fn add_own(&mut self, family: &Family, labels: Labels, value: f64) {
        debug_assert!(labels.iter().map(|(label, _)| label).eq(family.labels), "labels of {}", family.name);
        self.add(family.name, family.kind.into(), family.help, labels, value);
    }

    pub(super) fn add_histogram(&mut self, name: &str, help: &'static str, added: Histogram) {
        if let Some((family, labels)) = self.family(name, Kind::Histogram, help, Labels::new()) {
            family.histograms.insert(labels, added);
        }
    }

    /// The family, and the labels with the constant ones; None where the server has too many values.
    fn family(
        &mut self,
        name: &str,
        kind: Kind,
        help: &'static str,
        mut labels: Labels,
    ) -> Option<(&mut ServerFamily, Labels)> {
        if self.taken >= MOST_SAMPLES {
            self.dropped += 1;
            return None;
        }
        self.taken += 1;
        labels.extend(self.constant.iter().cloned());
        let family = self.families.entry(name.to_owned()).or_insert_with(|| ServerFamily {
            kind,
            help,
            samples: BTreeMap::new(),
            histograms: BTreeMap::new(),
        });
        Some((family, labels))
    }

    /// Values that were left out because a server has too many: 0 for every server that is one.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Each family with its name, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServerFamily)> {
        self.families.iter().map(|(name, family)| (name.as_str(), family))
    }

    /// The value of a name without labels but the constant ones; None where there is none.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&'static str, &str)]) -> Option<f64> {
        let labels: Labels = labels.iter().map(|(label, value)| (*label, (*value).to_owned())).collect();
        let labels = [labels, self.constant.clone()].concat();
        self.families.get(name)?.samples.get(&labels).copied()
    }

    /// Prometheus's text format 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = Exposition::default();
        for (name, family) in &self.families {
            text.begin(name, family.kind.name(), family.help);
            for (labels, value) in &family.samples {
                text.line(name, "", &borrowed(labels), None, Number::Real(*value));
            }
            for (labels, histogram) in &family.histograms {
                add_buckets(&mut text, name, &borrowed(labels), histogram);
            }
        }
        text.into_text()
    }
}

fn add_buckets(text: &mut Exposition, name: &str, labels: &[Label<'_>], histogram: &Histogram) {
    for (bound, count) in &histogram.buckets {
        let bound = Number::Real(*bound).to_string();
        text.line(name, "_bucket", labels, Some(&bound), Number::Whole(*count));
    }
    text.line(name, "_bucket", labels, Some("+Inf"), Number::Whole(histogram.count));
    text.line(name, "_sum", labels, None, Number::Real(histogram.sum));
    text.line(name, "_count", labels, None, Number::Whole(histogram.count));
}

fn borrowed(labels: &Labels) -> Vec<Label<'_>> {
    labels.iter().map(|(label, value)| (*label, value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_several_servers_stand_together_and_values_of_labels_are_escaped() {
        let mut families = Families::default();
        for (name, value) in [("a\"b\\\n", 1.0), ("c", 2.5)] {
            families.begin_server(vec![("service_name", name.to_owned())]);
            families.add("mysql_up", Kind::Gauge, "Up.", Labels::new(), value);
            families.add("mysql_a", Kind::Untyped, "A.", vec![("x", "1".to_owned())], value);
        }
        assert_eq!(
            families.text(),
            "# HELP mysql_a A.\n# TYPE mysql_a untyped\nmysql_a{x=\"1\",service_name=\"a\\\"b\\\\\\n\"} 1\n\
             mysql_a{x=\"1\",service_name=\"c\"} 2.5\n# HELP mysql_up Up.\n# TYPE mysql_up gauge\n\
             mysql_up{service_name=\"a\\\"b\\\\\\n\"} 1\nmysql_up{service_name=\"c\"} 2.5\n"
        );
        assert_eq!(families.value("mysql_a", &[("x", "1")]), Some(2.5), "of the last server");
    }

    #[test]
    fn a_histogram_has_an_infinite_bucket_sum_and_count() {
        let mut families = Families::default();
        let histogram = Histogram { buckets: vec![(0.001, 3), (0.01, 4)], count: 6, sum: 2.5 };
        families.add_histogram("h", "H.", histogram);
        assert_eq!(
            families.text(),
            "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0.001\"} 3\nh_bucket{le=\"0.01\"} 4\n\
             h_bucket{le=\"+Inf\"} 6\nh_sum 2.5\nh_count 6\n"
        );
    }

    #[test]
    fn a_server_with_too_many_values_does_not_fill_the_memory() {
        let mut families = Families::default();
        for number in 0..MOST_SAMPLES + 5 {
            families.add("m", Kind::Gauge, "M.", vec![("x", number.to_string())], 1.0);
        }
        assert_eq!((families.iter().next().unwrap().1.samples.len(), families.dropped()), (MOST_SAMPLES, 5));
        families.begin_server(Labels::new());
        families.add("m", Kind::Gauge, "M.", Labels::new(), 1.0);
        assert_eq!(families.dropped(), 5, "each server has room of its own");
    }
}
