//! The rows that SELECT statements look at, from the sums of the statement digests. Neither digests nor their texts are kept.

use ebbtide_load::Session;
use ebbtide_observe::{SelectRates, Variables};

use super::StatusError;
use super::sampler::accepted;

/// One row of sums.
const SUMS: &str = "SELECT SUM(COUNT_STAR), SUM(SUM_ROWS_EXAMINED) \
    FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE 'SELECT %'";

/// Statements and the rows that they looked at, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sums {
    count: u64,
    rows_examined: u64,
}

/// Whether the rows that statements look at are not known without digests. MySQL, and MariaDB before 10.9, have InnoDB count them
/// at no cost, where MySQL from 8.0 on computes quantiles for each digest that is read, and a full table has 10,000.
pub(super) fn are_needed(status: &Variables) -> bool {
    status.get("innodb_rows_read").is_none()
}

/// The sums so far; None where the account may not read them, and where there is no such digest.
///
/// # Errors
/// A broken connection.
pub(super) fn sums(session: &mut Session) -> Result<Option<Sums>, StatusError> {
    let rows = accepted(session.rows(SUMS))?;
    Ok(rows.and_then(|rows| of_row(rows.first()?)))
}

/// The sums of a row of two numbers: those of no digest are NULL.
fn of_row(row: &[Option<String>]) -> Option<Sums> {
    let number = |at: usize| row.get(at)?.as_ref()?.parse().ok();
    Some(Sums { count: number(0)?, rows_examined: number(1)? })
}

/// What grew in `seconds`; None where nothing did, because digests are not collected or were cleared.
pub(super) fn between(before: Sums, after: Sums, seconds: f64) -> Option<SelectRates> {
    let grown = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 / seconds);
    let rates = SelectRates {
        count: grown(before.count, after.count)?,
        rows_examined: grown(before.rows_examined, after.rows_examined)?,
    };
    (seconds > 0.0 && rates.count > 0.0).then_some(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_two_sums_and_that_of_no_digest_none() {
        let of = |cells: &[Option<&str>]| {
            let cells: Vec<_> = cells.iter().map(|cell| cell.map(str::to_owned)).collect();
            of_row(&cells)
        };
        assert_eq!(of(&[Some("3"), Some("70")]), Some(Sums { count: 3, rows_examined: 70 }));
        assert_eq!([of(&[None, None]), of(&[Some("3")]), of(&[])], [None; 3]);
    }

    #[test]
    fn digests_are_needed_where_innodb_does_not_count_the_rows_that_are_read() {
        assert!(!are_needed(&Variables::from_iter([("Innodb_rows_read", "0")])));
        assert!(are_needed(&Variables::from_iter([("Handler_read_key", "0")])));
    }

    #[test]
    fn rates_are_what_grew_and_digests_that_were_cleared_have_none() {
        let sums = |count, rows_examined| Sums { count, rows_examined };
        let rates = between(sums(10, 10), sums(30, 90), 10.0).unwrap();
        assert_eq!((rates.count, rates.rows_examined), (2.0, 8.0));
        assert_eq!(between(sums(10, 10), sums(1, 0), 10.0), None);
        assert_eq!(between(sums(1, 9), sums(1, 9), 10.0), None);
        assert_eq!(between(sums(1, 9), sums(2, 9), 0.0), None);
    }
}
