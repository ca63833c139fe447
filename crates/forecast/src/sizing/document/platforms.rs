//! The same load on RDS and Aurora, with what is not in the catalogue.

use ebbtide_advisor::sizing::managed::{CONDITIONS, Platform, list_url};
use ebbtide_catalog::Usd;
use ebbtide_report::{Block, Cell, Fact, Note, Section, Table};

/// The platforms side by side, and their conditions.
pub(super) fn section(all: &[Platform], region: &str) -> Section {
    let columns = ["Platform", "With", "Storage", "I/O", "Instance", "Monthly", "With standby"];
    let table = Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
        ..Table::default()
    };
    let mut notes: Vec<Note> = unpriced(all, region).into_iter().map(Note::plain).collect();
    let of_platform = |platform: &Platform| {
        let name = platform.name.clone();
        platform.notes.iter().map(move |note| Note::plain(format!("{name}: {note}"))).collect::<Vec<_>>()
    };
    notes.extend(all.iter().flat_map(of_platform));
    let conditions =
        CONDITIONS.iter().map(|condition| Fact::new(condition.topic, format!("{}.", condition.says)));
    let blocks = vec![
        Block::Table(table),
        Block::Notes(notes),
        Block::Heading("Conditions".into()),
        Block::Facts(conditions.collect()),
    ];
    Section::new("The same load on RDS and Aurora", blocks).named("aurora")
}

fn row(platform: &Platform) -> Vec<Cell> {
    // A platform that does not meet the objective has nothing to price. Elsewhere what has no figure is charged and not known: a
    // price is missing, or no instance was named.
    let is_charged = !platform.missing.is_empty() || platform.storage_usd.is_some();
    let unknown = if is_charged { "?" } else { "-" };
    let usd = |usd: Option<Usd>| usd.map_or_else(|| unknown.to_owned(), |usd| usd.to_string());
    let sum = |usd: Option<[Usd; 2]>| usd.map_or_else(|| unknown.to_owned(), range);
    [
        platform.name.clone(),
        platform.what.clone(),
        usd(platform.storage_usd),
        platform.io_usd.map_or_else(|| no_io(platform).to_owned(), range),
        usd(platform.instance_usd),
        sum(platform.total_usd),
        sum(platform.with_standby_usd),
    ]
    .map(Cell::from)
    .to_vec()
}

/// What stands for I/O without a price: `?` where it is charged.
fn no_io(platform: &Platform) -> &'static str {
    if platform.missing.iter().any(|missing| missing.what.starts_with("I/O requests")) { "?" } else { "-" }
}

/// What `?` stands for, and how to supply it: a sentence for each of AWS's lists.
fn unpriced(all: &[Platform], region: &str) -> Vec<String> {
    let download = |list: &str| {
        format!("Download AWS's list {list} and give it with --prices FILE: {}", list_url(list, region))
    };
    let mut sentences = Vec::new();
    if all.len() == 1 {
        sentences.push(format!(
            "RDS and Aurora: the catalogue has no price of them in {region}. {}",
            download("AmazonRDS")
        ));
    }
    for list in ["AmazonEC2", "AmazonRDS"] {
        let mut lacking: Vec<&str> = Vec::new();
        for missing in
            all.iter().flat_map(|platform| &platform.missing).filter(|missing| missing.list == list)
        {
            if !lacking.contains(&missing.what.as_str()) {
                lacking.push(&missing.what);
            }
        }
        if !lacking.is_empty() {
            let lacking = lacking.join("; ");
            sentences
                .push(format!("?: the catalogue has no price in {region} of {lacking}. {}", download(list)));
        }
    }
    sentences
}

/// An amount, from the least to the most.
fn range([least, most]: [Usd; 2]) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(storage_usd: Option<Usd>) -> Vec<String> {
        let platform = Platform {
            name: "RDS, gp3".into(),
            what: "600 GiB".into(),
            storage_usd,
            io_usd: None,
            instance_usd: None,
            total_usd: None,
            with_standby_usd: None,
            missing: Vec::new(),
            notes: Vec::new(),
        };
        row(&platform).into_iter().skip(2).map(|cell| cell.text).collect()
    }

    #[test]
    fn what_is_charged_and_not_known_is_no_dash() {
        // No instance was named: I/O alone is not charged.
        assert_eq!(cells(Some(Usd::from_micros(69_000_000))), ["$69.00", "-", "?", "?", "?"]);
        assert_eq!(cells(None), ["-"; 5], "it does not meet the objective");
    }
}
