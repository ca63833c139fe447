//! A proof in sentences and as a table.

use ebbtide_advisor::MeasuredGain;
use ebbtide_report::{Block, Cell, Fold, Note, Section, Table};
use ebbtide_text::{change, change_interval, count, figure};

use crate::proof::{FILE, Matched, Proof};

/// How the proof was made, in sentences.
fn sentences(proof: &Proof) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(directory) = &proof.directory {
        let part = match proof.divided_by {
            1 => String::new(),
            by => format!(", at 1/{by} of the machine"),
        };
        all.push(format!("Measured on {}{part}, with {}.", proof.server, proof.workload));
        let (alike, known) = proof.alike();
        all.push(format!("{alike} of {known} figures of the workload are within a quarter of the server's. The lab's clients never wait between statements: it shows what the server carries at most."));
        all.push(format!(
            "Results: {}; the experiment: {}.",
            directory.display(),
            directory.join(FILE).display()
        ));
    }
    all.extend(proof.notes.iter().map(|note| format!("Note: {note}")));
    all.extend(proof.left_out.iter().map(|what| format!("Not taken by the lab's server: {what}.")));
    all.extend(proof.not_proved.iter().map(|one| format!("Not proved: {}, because {}.", one.code, one.why)));
    all
}

/// The figures, as the cells of a table.
#[must_use]
pub fn proof_rows(proof: &Proof) -> Vec<[String; 4]> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
    let row = |one: &Matched| {
        let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{}x", figure(ratio)));
        [one.figure.to_owned(), cell(one.observed), cell(one.measured), ratio]
    };
    proof.figures.iter().map(row).collect()
}

/// The proof: how it was made, and how like the server's its workload was.
pub(super) fn section(proof: &Proof) -> Section {
    let (notes, sentences): (Vec<String>, Vec<String>) =
        sentences(proof).into_iter().partition(|text| text.starts_with("Note: "));
    let mut blocks = vec![Block::Notes(sentences.into_iter().map(Note::plain).collect())];
    if !proof.figures.is_empty() {
        blocks.push(Block::Table(Table {
            columns: ["Workload", "Observed", "Measured", "Ratio"].map(str::to_owned).to_vec(),
            rows: proof_rows(proof).into_iter().map(|row| row.map(Cell::from).to_vec()).collect(),
            ..Table::default()
        }));
    }
    if !notes.is_empty() {
        let notes = notes.into_iter().map(Note::plain).collect();
        blocks.push(Block::Fold(Fold {
            summary: "Notes of the proof".into(),
            blocks: vec![Block::Notes(notes)],
        }));
    }
    Section::new("Proof", blocks)
}

/// What was measured of a fix, in a sentence without a full stop.
pub(super) fn gain(measured: &MeasuredGain) -> String {
    let interval = measured
        .low
        .zip(measured.high)
        .map(|(low, high)| format!(" (95%: {})", change_interval(measured.times, low, high)))
        .unwrap_or_default();
    let trials = count(measured.trials, "trial");
    let none = if measured.difference { "" } else { ": no difference that can be told from noise" };
    format!("{} {}{interval}, {trials} of each in the lab{none}", change(measured.times), measured.of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_a_change_with_its_interval_and_says_where_there_is_none() {
        let of_interval = |difference, low, high| {
            let of = "transactions a second";
            gain(&MeasuredGain { times: 1.42, low, high, of, trials: 3, difference })
        };
        assert_eq!(
            of_interval(true, Some(1.31), Some(1.54)),
            "+42% transactions a second (95%: +31% to +54%), 3 trials of each in the lab"
        );
        let unsure = of_interval(false, Some(0.95), Some(1.54));
        assert!(unsure.contains("-5.0% to +54%"), "{unsure}");
        assert!(of_interval(false, None, None).ends_with("no difference that can be told from noise"));
    }
}
