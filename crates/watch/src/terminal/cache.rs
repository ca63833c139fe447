//! The graphs that were read last. A long span is not read each second: nothing would be seen of it.

use crate::view::{Graph, Range, Subject, ViewSource};

/// The graphs that were read last.
#[derive(Debug, Default)]
pub struct GraphCache {
    read: Option<(Subject, Range)>,
    graphs: Vec<Graph>,
}

impl GraphCache {
    /// The graphs that are wanted, read from the source where those that were read last differ by a point or more.
    pub fn graphs(&mut self, wanted: Option<(Subject, Range)>, source: &dyn ViewSource) -> &[Graph] {
        match wanted {
            None => {
                self.read = None;
                self.graphs.clear();
            }
            Some((subject, range)) => {
                let fresh =
                    self.read.as_ref().is_some_and(|(last, read)| *last == subject && is_fresh(*read, range));
                if !fresh {
                    self.graphs = source.graphs(&subject, range);
                    self.read = Some((subject, range));
                }
            }
        }
        &self.graphs
    }
}

/// Whether a range that was read still shows what is wanted: it has the same length, and ends less than a point earlier.
fn is_fresh(read: Range, wanted: Range) -> bool {
    let span = |range: Range| range.to_s.saturating_sub(range.from_s);
    let points = i64::try_from(wanted.most_points.max(1)).unwrap_or(i64::MAX);
    let point_s = (span(wanted) / points).max(1);
    read.most_points == wanted.most_points
        && span(read) == span(wanted)
        && (0..point_s).contains(&wanted.to_s.saturating_sub(read.to_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_a_point_is_read_once_a_minute_and_a_second_a_point_each_second() {
        let range = |to_s: i64, span_s: i64| Range { from_s: to_s - span_s, to_s, most_points: 160 };
        assert!(is_fresh(range(50_000, 9_600), range(50_059, 9_600)));
        assert!(!is_fresh(range(50_000, 9_600), range(50_060, 9_600)));
        assert!(!is_fresh(range(50_000, 9_600), range(49_999, 9_600)), "a clock that was set back");
        assert!(!is_fresh(range(50_000, 60), range(50_001, 60)));
        assert!(!is_fresh(range(50_000, 9_600), range(50_000, 4_800)));
    }
}
