//! Times of a record: dates where its source has them.

use ebbtide_advisor::sizing::{LoadOrigin, WithoutCredits};
use ebbtide_text::{count, percent, seconds, timestamp};

use crate::sizing::SizingPlan;

/// Clocks below this count from the start of a recording, s: no record is that long, and none is that old.
const FIRST_DATE: f64 = 366.0 * 86_400.0;
const DAY: f64 = 86_400.0;
const HOUR: f64 = 3_600.0;
/// Times of several days whose starts are no further apart are the same time of the day, s.
const SAME_TIME: f64 = 2.0 * HOUR;

/// When the record begins and ends; None where its source has no dates.
pub(super) fn dates(plan: &SizingPlan<'_>) -> Option<String> {
    let (start, end) = bounds(plan)?;
    is_dated(start).then(|| format!("{} to {}", date(start), dated_from(start, end) + zone(plan)))
}

/// A moment of the record.
pub(super) fn moment(plan: &SizingPlan<'_>, at_s: f64) -> String {
    if is_dated(at_s) { date(at_s) + zone(plan) } else { format!("{} from its start", seconds(at_s)) }
}

/// When burst credits were at 0, and what an I/O took then: `in 14 of 14 nights, 02:00 to 06:05 (17% of the time); an I/O took
/// 53.0 ms instead of 900 us`.
pub(super) fn without_credits(plan: &SizingPlan<'_>, without: &WithoutCredits) -> String {
    let all: f64 = plan.source.load.intervals.iter().map(|interval| interval.seconds).sum();
    let spent: f64 = without.spans.iter().map(|(start, end)| end - start).sum();
    let (start, end) = bounds(plan).unwrap_or_default();
    let when = when(start, end, &without.spans, zone(plan));
    let latency = without.latency_s.map_or_else(String::new, |(then, otherwise)| {
        let [then, otherwise] = [then, otherwise].map(|s| ebbtide_text::latency(s * 1e6));
        format!("; an I/O took {then} instead of {otherwise}")
    });
    format!("{when} ({} of the time){latency}", percent(spent / all.max(1.0)))
}

fn bounds(plan: &SizingPlan<'_>) -> Option<(f64, f64)> {
    let intervals = &plan.source.load.intervals;
    Some((intervals.first()?.start_s, intervals.last()?.end_s()))
}

const fn is_dated(at_s: f64) -> bool {
    at_s >= FIRST_DATE
}

/// Metrics are in UTC; tools print the time of their host.
fn zone(plan: &SizingPlan<'_>) -> &'static str {
    if plan.source.origin == LoadOrigin::EbsMetrics { " UTC" } else { "" }
}

/// In words when spans of a record were.
fn when(start: f64, end: f64, spans: &[(f64, f64)], zone: &str) -> String {
    let longest = spans.iter().map(|(from, to)| to - from).fold(0.0, f64::max);
    let first = spans.first().map_or(start, |(from, _)| *from);
    if !is_dated(start) {
        let after = seconds(first - start);
        return match spans.len() {
            1 => format!("after {after}, for {}", seconds(longest)),
            several => format!("{several} times, first after {after}, for up to {}", seconds(longest)),
        };
    }
    if let [(from, to)] = spans {
        return format!("from {} to {}{zone}", date(*from), dated_from(*from, *to));
    }
    // As far from the first one's time of the day, at most half a day before or behind it.
    let offset = |start_s: f64| (start_s - first + DAY / 2.0).rem_euclid(DAY) - DAY / 2.0;
    let starts: Vec<f64> = spans.iter().map(|(from, _)| offset(*from)).collect();
    let earliest = starts.iter().copied().fold(0.0, f64::min);
    let latest = starts.iter().copied().fold(0.0, f64::max);
    let one_a_day = spans.windows(2).all(|pair| pair[1].0 - pair[0].0 > DAY / 2.0);
    if latest - earliest <= SAME_TIME && one_a_day && longest < DAY / 2.0 {
        let end_of_day = spans.iter().map(|(from, to)| offset(*from) + to - from).fold(0.0, f64::max);
        let (from, to) = (first + earliest, first + end_of_day);
        let hour = from.rem_euclid(DAY) / HOUR;
        let noun = if (8.0..18.0).contains(&hour) { "day" } else { "night" };
        // A record that begins in the middle of a night has that night too.
        let days = ((end - start) / DAY).round().max(spans.len() as f64);
        return format!("in {} of {days} {noun}s, {} to {}{zone}", spans.len(), clock(from), clock(to));
    }
    let days = (((end - start) / DAY).ceil()).max(1.0);
    let times = count(spans.len(), "time");
    format!("{times} in {days} days, first {}{zone}, for up to {}", date(first), seconds(longest))
}

/// `2026-11-01 02:00`.
fn date(at_s: f64) -> String {
    stamp(at_s).get(..16).map_or_else(|| stamp(at_s), |text| text.replace('T', " "))
}

/// `02:00`.
fn clock(at_s: f64) -> String {
    stamp(at_s).get(11..16).map_or_else(|| stamp(at_s), str::to_owned)
}

/// The end of what began: without its date where that is the same.
fn dated_from(start: f64, end: f64) -> String {
    if (start / DAY).floor() == (end / DAY).floor() { clock(end) } else { date(end) }
}

/// To the minute, as RFC 3339.
#[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
fn stamp(at_s: f64) -> String {
    timestamp((at_s / 60.0).round() as i64 * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-01 00:00 UTC.
    const NOVEMBER: f64 = 1_793_491_200.0;

    #[test]
    fn times_without_credits_are_nights_dates_or_spans() {
        let hours = |from: f64, to: f64| (NOVEMBER + from * HOUR, NOVEMBER + to * HOUR);
        let days = 14.0 * DAY;
        let nights: Vec<(f64, f64)> = (0..14)
            .map(|day| hours(f64::from(day) * 24.0 + 2.0, f64::from(day) * 24.0 + 6.0 + 1.0 / 12.0))
            .collect();
        let said = |spans: &[(f64, f64)]| when(NOVEMBER, NOVEMBER + days, spans, " UTC");
        assert_eq!(said(&nights), "in 14 of 14 nights, 02:00 to 06:05 UTC");
        assert_eq!(said(&[hours(12.0, 13.0), hours(36.5, 37.0)]), "in 2 of 14 days, 12:00 to 13:00 UTC");
        assert_eq!(said(&[hours(26.0, 30.0)]), "from 2026-11-02 02:00 to 06:00 UTC");
        assert_eq!(said(&[hours(23.0, 25.0)]), "from 2026-11-01 23:00 to 2026-11-02 01:00 UTC");
        let apart = [hours(2.0, 3.0), hours(14.0, 18.0), hours(31.0, 32.0)];
        assert_eq!(said(&apart), "3 times in 14 days, first 2026-11-01 02:00 UTC, for up to 4 h");
        assert_eq!(when(0.0, DAY, &[(60.0, 120.0)], ""), "after 60 s, for 60 s");
    }
}
