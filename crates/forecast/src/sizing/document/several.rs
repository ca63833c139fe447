//! The answers for several volumes as one document: what they cost together, and each of them by its money.

use std::cmp::Reverse;

use ebbtide_advisor::sizing::change::short;
use ebbtide_catalog::Usd;
use ebbtide_report::{Block, Cell, Note, Report, Section, Table, Tone};
use ebbtide_text::{count, first_of};
use ebbtide_volume::Nanos;

use super::words::time;
use super::{inputs, sections, slower};
use crate::sizing::{Answer, SizingPlan};

/// Volumes in the table of the answer; the others are details.
const FIRST_VOLUMES: usize = 6;
/// Names of volumes that are written out in a sentence.
const NAMES: usize = 3;

/// A plan with its answer.
type Answered<'p, 'a> = (&'p SizingPlan<'a>, Answer<'a>);

/// What storage costs a month together, without instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTogether {
    /// That of the answers; None where one has no answer or no price.
    pub answers: Option<Usd>,
    /// That of today's volumes; None where they were not named, or one has no price.
    pub today: Option<Usd>,
}

impl StorageTogether {
    /// The sums over all volumes.
    #[must_use]
    pub fn of_all(answered: &[Answered<'_, '_>]) -> Self {
        let sum = |usd: fn(&Answer<'_>) -> Option<Usd>| {
            answered.iter().try_fold(Usd::from_micros(0), |sum, (_, answer)| Some(sum + usd(answer)?))
        };
        Self { answers: sum(new_usd), today: sum(old_usd) }
    }
}

fn new_usd(answer: &Answer<'_>) -> Option<Usd> {
    Some(answer.sizing.choices.first()?.storage.as_ref()?.usd)
}

fn old_usd(answer: &Answer<'_>) -> Option<Usd> {
    Some(answer.sizing.today.as_ref()?.choice.storage.as_ref()?.usd)
}

/// What a volume is called.
#[must_use]
pub fn volume_name<'p>(plan: &'p SizingPlan<'_>) -> &'p str {
    match plan.source.volume.as_str() {
        "" => "a volume that the metrics do not name",
        name => name,
    }
}

/// The answers for several volumes.
#[must_use]
pub fn documents(answered: &[Answered<'_, '_>], version: &str) -> Report {
    let blocks = vec![
        Block::Findings(vec![sentence(answered)]),
        Block::Table(by_money(answered)),
        Block::Notes(notes(answered)),
    ];
    let mut all = vec![Section::new("", blocks)];
    for (plan, answer) in answered {
        let name = volume_name(plan);
        let of_volume = |section: Section| {
            let heading = match section.heading.as_str() {
                "" => name.to_owned(),
                heading => format!("{name}: {heading}"),
            };
            Section { heading, ..section }.details()
        };
        all.extend(sections(plan, answer).into_iter().map(of_volume));
    }
    Report {
        title: count(answered.len(), "volume"),
        subtitle: "The cheapest storage that carries each load".into(),
        sections: all,
        footer: format!("ebbtide {version}."),
        ..Report::default()
    }
}

/// What the answers cost together, and how much less or more that is than today.
fn sentence(answered: &[Answered<'_, '_>]) -> String {
    let StorageTogether { answers, today } = StorageTogether::of_all(answered);
    let cost = match answers {
        Some(cost) => format!("the answers cost {cost} a month together"),
        None => "there is no price of all answers together".to_owned(),
    };
    let difference = match (answers, today) {
        (Some(new), Some(old)) if new < old => format!(", {} less than today's volumes", old.less(new)),
        (Some(new), Some(old)) if new > old => format!(", {} more than today's volumes", new.less(old)),
        (Some(_), Some(_)) => ", as much as today's volumes".to_owned(),
        (None, Some(old)) => format!(", today's volumes {old}"),
        (_, None) => String::new(),
    };
    let all: Vec<&str> = answered.iter().map(|(plan, _)| volume_name(plan)).collect();
    format!("{} ({}): {cost}{difference}.", count(answered.len(), "volume"), first_of(&all, NAMES))
}

/// A row for each volume: where most is saved first; without a volume of today the dearest first; the doubtful before their equals.
fn by_money(answered: &[Answered<'_, '_>]) -> Table {
    let mut sorted: Vec<&Answered<'_, '_>> = answered.iter().collect();
    let change = |answer: &Answer<'_>| Some((old_usd(answer)?, new_usd(answer)?));
    // What costs more than today comes last. Of equals the doubtful come first: rows below the first ones are not shown.
    sorted.sort_by_key(|(plan, answer)| {
        let (rank, money) = match change(answer) {
            Some((old, new)) if old >= new => (0, old.less(new)),
            None => (1, new_usd(answer).unwrap_or(Usd::from_micros(0))),
            Some((old, new)) => (2, new.less(old)),
        };
        (rank, Reverse(money), answer.is_sound(plan))
    });
    let row = |(plan, answer): &&Answered<'_, '_>| {
        let best = answer.sizing.choices.first();
        // What has no answer costs nothing; what has one, and no price, is not known.
        let unknown = if best.is_some() { "?" } else { "-" };
        let usd = |usd: Option<Usd>| usd.map_or_else(|| unknown.to_owned(), |usd| usd.to_string());
        let less = match change(answer) {
            Some((old, new)) if old >= new => {
                Cell { tone: Tone::Good, ..Cell::from(old.less(new).to_string()) }
            }
            Some((old, new)) => Cell { tone: Tone::Bad, ..Cell::from(format!("-{}", new.less(old))) },
            None => unknown.into(),
        };
        let doubt = if answer.is_sound(plan) { "" } else { " !" };
        vec![
            format!("{}{doubt}", volume_name(plan)).into(),
            best.map_or_else(|| "nothing meets it".into(), |best| short(&best.volumes.spec).to_string())
                .into(),
            usd(new_usd(answer)).into(),
            less,
            best.and_then(|best| best.limited_by).map_or("-", |limit| limit.words()).into(),
        ]
    };
    let table = Table {
        columns: ["Volume", "Answer", "Monthly", "Saves", "Limited by"].map(str::to_owned).to_vec(),
        rows: sorted.iter().map(row).collect(),
        first_rows: Some(FIRST_VOLUMES),
        spare: vec![4],
        ..Table::default()
    };
    if answered.iter().all(|(_, answer)| change(answer).is_none()) { table.without("Saves") } else { table }
}

/// Whose answers are doubtful, and what holds for all.
fn notes(answered: &[Answered<'_, '_>]) -> Vec<Note> {
    let mut notes = Vec::new();
    let doubtful: Vec<&str> = answered
        .iter()
        .filter(|(plan, answer)| !answer.is_sound(plan))
        .map(|(plan, _)| volume_name(plan))
        .collect();
    if !doubtful.is_empty() {
        notes.push(Note::caution(format!(
            "!  no answer, a throttled past or figures that contradict each other: {}. --show NAME says which",
            first_of(&doubtful, NAMES)
        )));
    }
    notes.extend(inputs::first_note(&notes_of_all(answered)).into_iter().map(Note::caution));
    notes.extend(slower_words(answered).map(Note::caution));
    notes.push(Note::plain(
        "each volume is sized by itself, with the same --volume and --size: name one with --device where they differ",
    ));
    if answered.iter().any(|(plan, _)| plan.instance.is_some()) {
        notes.push(Note::plain(
            "the instance is not in these costs, and its EBS limits hold for all its volumes together: they are not added up here",
        ));
    }
    notes
}

/// What was said when the files were read, and holds for all volumes.
fn notes_of_all(answered: &[Answered<'_, '_>]) -> Vec<String> {
    let Some(((first, _), others)) = answered.split_first() else { return Vec::new() };
    let is_common = |note: &&String| others.iter().all(|(plan, _)| plan.source.notes.contains(note));
    first.source.notes.iter().filter(is_common).cloned().collect()
}

/// How many answers have a p99 of an I/O that is pointed out beside today's, and the longest; None where none has.
fn slower_words(answered: &[Answered<'_, '_>]) -> Option<String> {
    let all: Vec<(&str, Nanos, Nanos)> = answered
        .iter()
        .filter_map(|(plan, answer)| {
            let (before, after) = slower(answer)?;
            Some((volume_name(plan), before, after))
        })
        .collect();
    let (_, before, after) = all.iter().max_by_key(|(_, _, after)| *after)?;
    let shortest = all.iter().map(|(_, before, _)| *before).min()?;
    let slow: Vec<&str> = all.iter().map(|(name, _, _)| *name).collect();
    let have = if all.len() == 1 { "has" } else { "have" };
    Some(format!(
        "{} of {} {have} a longer p99 of an I/O than today ({}), at most {} in place of {}: --p99 {}us keeps today's",
        all.len(),
        count(answered.len(), "answer"),
        first_of(&slow, NAMES),
        time(*after),
        time(*before),
        shortest.as_us() + 1
    ))
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::sizing::LittlesLaw;
    use ebbtide_catalog::Catalog;
    use ebbtide_report::TextOptions;

    use super::*;
    use crate::sizing::tests::request;

    /// The plans of volumes with these names and specs of today, whose load is that of a shop.
    fn plans<'a>(catalog: &'a Catalog, volumes: &[(&str, &str)]) -> Vec<SizingPlan<'a>> {
        let plan = |(name, spec): &(&str, &str)| {
            let mut request = request();
            request.volume = Some((*spec).to_owned());
            let mut plan = SizingPlan::read(&request, catalog, &[]).unwrap().remove(0);
            (*name).clone_into(&mut plan.source.volume);
            plan
        };
        volumes.iter().map(plan).collect()
    }

    fn document<'a>(plans: &'a [SizingPlan<'a>]) -> Report {
        let answered: Vec<Answered<'a, 'a>> = plans.iter().map(|plan| (plan, Answer::of(plan))).collect();
        documents(&answered, "0")
    }

    /// The answers as text without details, on a terminal so wide that no sentence is wrapped.
    fn screen<'a>(plans: &'a [SizingPlan<'a>]) -> String {
        document(plans).to_text(TextOptions { columns: 2_000, color: false, details: false })
    }

    #[test]
    fn a_section_of_each_volume_says_whose_it_is() {
        let catalog = Catalog::builtin();
        let plans = plans(&catalog, &[("vol-0a", "gp2:size=600GiB"), ("2 shops", "gp2:size=600GiB")]);
        let document = document(&plans);
        let shown = |word: &str| {
            let report = document.only(&[word.to_owned()]).unwrap();
            report.to_text(TextOptions { columns: 80, color: false, details: true })
        };
        let terraform = shown("terraform");
        for words in
            ["vol-0a: Terraform\n", "\"vol-0a\" {", "2 shops: Terraform\n", "\"_2_shops_ccb30346\" {"]
        {
            assert!(terraform.contains(words), "{words}: {terraform}");
        }
        assert!(shown("today").contains("2 shops: Today\n"));
        assert!(shown("vol-0a").starts_with("vol-0a\n"));
    }

    #[test]
    fn volumes_whose_answer_is_slower_than_today_are_counted() {
        let catalog = Catalog::builtin();
        let plans = plans(&catalog, &[("slow", "gp2:size=600GiB"), ("same", "gp3:size=600GiB,iops=3400")]);
        let text = screen(&plans);
        let caution = "caution: 1 of 2 answers has a longer p99 of an I/O than today (slow), at most 2.01 ms in place of 1.41 ms: \
                       --p99 1411us keeps today's\n";
        assert!(text.contains(caution), "{text}");
        assert!(!screen(&plans[1..]).contains("a longer p99"), "{text}");
    }

    #[test]
    fn a_doubtful_answer_comes_before_its_equals() {
        let catalog = Catalog::builtin();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, "gp2:size=600GiB"));
        let mut plans = plans(&catalog, &names);
        // Figures that contradict each other: the answer and its cost are the same.
        plans[7].inputs.little =
            Some(LittlesLaw { agrees_pct: 0.0, window_s: 300.0, queue: 1.0, expected: 9.0 });
        let text = screen(&plans);
        let rows: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("Volume ")).skip(1).take(2).collect();
        assert!(rows[0].starts_with("h !") && rows[1].starts_with("a "), "{text}");
    }
}
