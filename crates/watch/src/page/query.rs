//! What is asked of graphs: a subject and a span of time.

use ebbtide_http::ResourceRequest;
use ebbtide_text::printable;

use super::links;
use crate::view::{Range, Subject};

/// How many points a line has where the query does not say it.
const DEFAULT_POINTS: usize = 600;
/// The fewest points of a line that can be asked for.
const LEAST_POINTS: i64 = 2;
/// The most points of a line that can be asked for: more than a screen has pixels.
const MOST_POINTS: i64 = 4_000;
const DAY_S: i64 = 24 * 3_600;
/// The longest span, s: more than the two years of the history.
const LONGEST_S: i64 = 1_100 * DAY_S;
/// The latest time: the end of the year 9999.
const LATEST_S: i64 = 253_402_300_799;
/// So many characters of a wrong value are repeated.
const SHOWN: usize = 40;

/// Why a query for graphs is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum GraphQueryError {
    /// A parameter is not there.
    #[error(
        "the parameter '{0}' is missing: give subject=server:NAME or subject=volume:NAME, and from and to in seconds since 1970"
    )]
    Missing(&'static str),
    /// The subject has another form.
    #[error("subject={0} is no subject: give server:NAME or volume:NAME, with a name of /api/view")]
    Subject(String),
    /// No whole number, or out of its range.
    #[error("{name}={value} is no whole number from {least} to {most}")]
    Number {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// The least that it may be.
        least: i64,
        /// The most.
        most: i64,
    },
    /// It ends before it begins.
    #[error("from={from_s} is not before to={to_s}: give a time that is earlier")]
    Order {
        /// The beginning, seconds since 1970.
        from_s: i64,
        /// The end.
        to_s: i64,
    },
    /// It is too long.
    #[error("from={from_s} to={to_s} is {days} days, and {most_days} are the most: give a later from")]
    Span {
        /// The beginning, seconds since 1970.
        from_s: i64,
        /// The end.
        to_s: i64,
        /// How long it is.
        days: i64,
        /// The most that it may be.
        most_days: i64,
    },
}

/// What a request asks of the graphs.
///
/// # Errors
/// What is wrong with the query.
pub(super) fn parse(request: &ResourceRequest) -> Result<(Subject, Range), GraphQueryError> {
    let key = request.parameter("subject").ok_or(GraphQueryError::Missing("subject"))?;
    let subject = links::subject(key).ok_or_else(|| GraphQueryError::Subject(shown(key)))?;
    let time = |name| number(request, name, 0, LATEST_S)?.ok_or(GraphQueryError::Missing(name));
    let (from_s, to_s) = (time("from")?, time("to")?);
    if from_s >= to_s {
        return Err(GraphQueryError::Order { from_s, to_s });
    }
    if to_s - from_s > LONGEST_S {
        let (days, most_days) = ((to_s - from_s) / DAY_S, LONGEST_S / DAY_S);
        return Err(GraphQueryError::Span { from_s, to_s, days, most_days });
    }
    let points = number(request, "points", LEAST_POINTS, MOST_POINTS)?;
    let most_points = points.and_then(|points| usize::try_from(points).ok()).unwrap_or(DEFAULT_POINTS);
    Ok((subject, Range { from_s, to_s, most_points }))
}

/// A whole number in a range; None where the query does not have it.
fn number(
    request: &ResourceRequest,
    name: &'static str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, GraphQueryError> {
    let Some(value) = request.parameter(name) else { return Ok(None) };
    match value.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => Err(GraphQueryError::Number { name, value: shown(value), least, most }),
    }
}

/// The beginning of a value that a message repeats.
fn shown(value: &str) -> String {
    let start: String = value.chars().take(SHOWN).collect();
    let rest = if value.chars().count() > SHOWN { "..." } else { "" };
    format!("{}{rest}", printable(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &[(&str, &str)]) -> Result<(Subject, Range), GraphQueryError> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        parse(&ResourceRequest { below: String::new(), query })
    }

    const GOOD: [(&str, &str); 3] = [("subject", "server:a:3306"), ("from", "100"), ("to", "200")];

    #[test]
    fn a_query_has_a_subject_a_span_and_a_number_of_points() {
        let range = Range { from_s: 100, to_s: 200, most_points: DEFAULT_POINTS };
        assert_eq!(ask(&GOOD), Ok((Subject::Server("a:3306".to_owned()), range)));
        let points = |points| {
            ask(&[&GOOD[..], &[("points", points)][..]].concat()).map(|(_, range)| range.most_points)
        };
        assert_eq!((points("2"), points("4000")), (Ok(2), Ok(4_000)));
        for wrong in ["1", "4001", "-5", "x", "", "18446744073709551616"] {
            let message = points(wrong).unwrap_err().to_string();
            assert_eq!(message, format!("points={wrong} is no whole number from 2 to 4000"));
        }
    }

    #[test]
    fn a_wrong_span_is_refused_with_its_value_and_what_to_do() {
        let span = |from, to| ask(&[GOOD[0], ("from", from), ("to", to)]).unwrap_err().to_string();
        assert_eq!(span("200", "200"), "from=200 is not before to=200: give a time that is earlier");
        assert!(span("0", "253402300799").contains("days, and 1100 are the most"));
        assert!(span("-1", "5").starts_with("from=-1 is no whole number from 0"));
        assert!(span("1.5", "5").starts_with("from=1.5 is no whole number"));
        assert!(ask(&GOOD[..2]).unwrap_err().to_string().starts_with("the parameter 'to' is missing"));
        assert!(ask(&GOOD[1..]).unwrap_err().to_string().starts_with("the parameter 'subject' is missing"));
        let hostile = "host:\u{1b}[2J<script>".repeat(100);
        let message = ask(&[("subject", &hostile)]).unwrap_err().to_string();
        assert!(message.starts_with("subject=host:\\u{1b}[2J<script>") && message.len() < 200, "{message}");
    }
}
