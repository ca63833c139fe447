//! What statements do by their first word, from the sums of the statement digests. Neither digests nor their texts are kept.

use std::collections::BTreeMap;

use ebbtide_load::Session;
use ebbtide_observe::{StatementRates, Variables};

use super::StatusError;
use super::sampler::accepted;

/// Counters by first word.
pub(super) type Sums = BTreeMap<String, [u64; 4]>;

/// The words whose statements read or change rows.
const WORDS: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"];

/// What is summed up, in the order of the fields of [`StatementRates`].
const COLUMNS: [&str; 4] = ["COUNT_STAR", "SUM_ROWS_SENT", "SUM_ROWS_EXAMINED", "SUM_ROWS_AFFECTED"];

/// One row of sums, so that the server makes no temporary table for groups.
fn sql() -> String {
    let sum = |(word, column): (&str, &str)| format!("SUM(IF(DIGEST_TEXT LIKE '{word} %', {column}, 0))");
    let all = WORDS.iter().flat_map(|word| COLUMNS.map(|column| sum((*word, column))));
    let all: Vec<String> = all.collect();
    format!("SELECT {} FROM performance_schema.events_statements_summary_by_digest", all.join(", "))
}

/// Whether the rows that statements look at are not known without digests. MySQL, and MariaDB before 10.9, have InnoDB count them
/// at no cost, where MySQL 9.7 takes 45 ms for the sums of a full table of digests: it computes quantiles for each row.
pub(super) fn are_needed(status: &Variables) -> bool {
    status.get("innodb_rows_read").is_none()
}

/// The sums so far; None where the account may not read them.
///
/// # Errors
/// A broken connection.
pub(super) fn sums(session: &mut Session) -> Result<Option<Sums>, StatusError> {
    let Some(rows) = accepted(session.rows(&sql()))? else { return Ok(None) };
    Ok(rows.first().map(|row| of_row(row)))
}

/// The sums of each word whose cells are numbers: those of an empty table are NULL.
fn of_row(row: &[Option<String>]) -> Sums {
    let word = |(word, cells): (&&str, &[Option<String>])| {
        let counts: Option<Vec<u64>> = cells.iter().map(|cell| cell.as_ref()?.parse().ok()).collect();
        Some(((*word).to_owned(), counts?.try_into().ok()?))
    };
    WORDS.iter().zip(row.chunks_exact(COLUMNS.len())).filter_map(word).collect()
}

/// What grew in `seconds`; None where nothing did, because digests are not collected or were cleared.
pub(super) fn between(before: &Sums, after: &Sums, seconds: f64) -> Option<BTreeMap<String, StatementRates>> {
    let rates = |(word, after): (&String, &[u64; 4])| {
        let before = before.get(word).copied().unwrap_or_default();
        let mut grown = [0.0; 4];
        for (place, rate) in grown.iter_mut().enumerate() {
            *rate = after[place].checked_sub(before[place])? as f64 / seconds;
        }
        let [count, rows_sent, rows_examined, rows_affected] = grown;
        (count > 0.0)
            .then(|| (word.clone(), StatementRates { count, rows_sent, rows_examined, rows_affected }))
    };
    let all: BTreeMap<_, _> = after.iter().filter_map(rates).collect();
    (seconds > 0.0 && !all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_sums_of_each_word() {
        let cell = |number: usize| Some(number.to_string());
        let row: Vec<Option<String>> = (0..20).map(cell).collect();
        let sums = of_row(&row);
        assert_eq!((sums["SELECT"], sums["REPLACE"]), ([0, 1, 2, 3], [16, 17, 18, 19]));
        assert!(of_row(&vec![None; 20]).is_empty() && of_row(&row[..3]).is_empty());
    }

    #[test]
    fn digests_are_needed_where_innodb_does_not_count_the_rows_that_are_read() {
        assert!(!are_needed(&Variables::from_iter([("Innodb_rows_read", "0")])));
        assert!(are_needed(&Variables::from_iter([("Handler_read_key", "0")])));
    }

    #[test]
    fn rates_are_what_grew_and_digests_that_were_cleared_have_none() {
        let sums = |counts: [u64; 4]| Sums::from([("SELECT".to_owned(), counts)]);
        let rates = between(&sums([10, 10, 10, 0]), &sums([30, 50, 90, 0]), 10.0).unwrap()["SELECT"];
        assert_eq!((rates.count, rates.rows_sent, rates.rows_examined), (2.0, 4.0, 8.0));
        assert_eq!(between(&Sums::new(), &sums([30, 0, 0, 0]), 10.0).unwrap()["SELECT"].count, 3.0);
        assert_eq!(between(&sums([30, 5, 9, 0]), &sums([1, 0, 0, 0]), 10.0), None);
        assert_eq!(between(&sums([1, 0, 0, 0]), &sums([1, 0, 0, 0]), 10.0), None);
    }
}
