//! The answer on one screen, for text: the strongest finding with its interval and its price, the arms in one table, why, and
//! the commands to go on with. The sections after it are details.

use std::cmp::Ordering;

use ebbtide_analysis::stats::Interval;
use ebbtide_analysis::summary::{Headline, TWO_TRIALS, Undecided, headline, too_few_trials};
use ebbtide_report::{Block, Cell, Listing, Medium, Note, Section, Table, Tone};
use ebbtide_text::shell_words::{quoted, unquoted};
use ebbtide_text::{change, change_interval, figure, first_sentence, latency};

use super::arms::{Row, rows};
use super::{ArmView, PageContext, text, verdict};
use crate::summary::{ArmSummary, Compared, Metric, Repetition, Verdict};

/// Rows of the table that text shows without details; the fewer where names take several lines each.
const FIRST_ROWS: usize = 7;
const FIRST_LONG_ROWS: usize = 4;
/// A name that is longer wraps beside the figures.
const LONG_NAME: usize = 24;
/// A remark that is longer ends behind a clause.
const REMARK: usize = 150;
/// What is shorter is no clause to end behind, but the name of an arm or the begin of a list.
const CLAUSE: usize = 60;

/// `out` is the directory of the results, for the commands; empty where it has no place yet.
pub(super) fn section(page: &PageContext, out: &str) -> Section {
    let headline = headline(&page.run.experiment.design(), page.summary);
    let mut findings = vec![answer(page, headline.as_ref())];
    findings.extend(page.summary.repeated.as_ref().and_then(agreement));
    let mut blocks = vec![Block::Findings(findings), Block::Table(table(page))];
    blocks.extend(headline.and_then(|headline| headline.why).map(Block::Text));
    blocks.extend(remark(page));
    let commands = commands(page, out);
    if !commands.is_empty() {
        blocks.push(Block::Listing(Listing { label: "Next".into(), text: commands.join("\n") }));
    }
    Section::new("", blocks).only(Medium::Text)
}

/// The first sentence.
fn answer(page: &PageContext, headline: Option<&Headline>) -> String {
    let Some(headline) = headline else { return "Nothing was measured: no trial counts.".to_owned() };
    let price = headline.sides.and_then(|(arm, baseline)| price(page, arm, baseline));
    // A name of an arm stays as it is.
    let words = ["no ", "from ", "with ", "too "].iter().any(|begin| headline.verdict.starts_with(begin));
    let verdict = if words { text::capital(&headline.verdict) } else { headline.verdict.clone() };
    format!("{verdict}{}.", price.unwrap_or_default())
}

/// What the volumes of an arm cost more or less than those that it is held against; None where one of them has no price.
fn price(page: &PageContext, arm: usize, baseline: usize) -> Option<String> {
    let costs = page.summary.monthly_cost.as_ref()?;
    let usd = |arm: usize| costs.arm(&page.arms.get(arm)?.arm.name)?.usd;
    let (ours, theirs) = (usd(arm)?, usd(baseline)?);
    Some(match ours.cmp(&theirs) {
        Ordering::Less => format!("; its volumes cost {} a month, {} less", ours, theirs.less(ours)),
        Ordering::Equal => format!("; the volumes cost {ours} a month, with either"),
        Ordering::Greater => format!("; its volumes cost {} a month, {} more", ours, ours.less(theirs)),
    })
}

/// Whether runs of the same experiment agree: the first comparison that does not, else the first one.
fn agreement(repetition: &Repetition) -> Option<String> {
    let apart = repetition.comparisons.iter().find(|repeated| repeated.overlap != Some(true));
    let shown = apart.or(repetition.comparisons.first())?;
    Some(shown.text.clone())
}

/// The arms, or their regimes, side by side.
fn table(page: &PageContext) -> Table {
    let against = match common_baseline(page) {
        Some(baseline) => format!("Against {baseline} (95%)"),
        None => "Against its baseline (95%)".to_owned(),
    };
    let has = |wanted: fn(&ArmSummary) -> bool| page.summary.arms.iter().any(wanted);
    let (tpcc, lag) = (has(|arm| arm.tpcc.is_some()), has(|arm| arm.lag.is_some()));
    let incomplete = has(|arm| arm.trials.disqualified + arm.trials.failed > 0);
    let mut columns = vec!["Arm".to_owned(), "TPS (95%)".to_owned()];
    if !page.summary.comparisons.is_empty() {
        columns.push(against);
    }
    columns.push("p95".to_owned());
    columns.extend(tpcc.then(|| "tpmC".to_owned()));
    columns.extend(lag.then(|| "Lag, p95".to_owned()));
    columns.extend(incomplete.then(|| "Trials".to_owned()));
    columns.extend(["I/O per tx", "Monthly"].map(str::to_owned));
    let mut shown = rows(page);
    let is_long =
        shown.iter().any(|row| row.view.name.chars().count() + row.label.chars().count() > LONG_NAME);
    let first_rows = if is_long { FIRST_LONG_ROWS } else { FIRST_ROWS };
    if shown.len() > first_rows {
        // Those that the findings are about come first.
        shown.sort_by_key(|row| row.view.style);
    }
    let row = |row: &Row| {
        let mut cells = vec![
            Cell { text: row.view.name.clone(), detail: row.label.clone(), ..Cell::default() },
            throughput(row),
        ];
        if !page.summary.comparisons.is_empty() {
            cells.push(ratio(page, row));
        }
        let figures = row.figures;
        cells.push(figures.map_or_else(dash, |figures| latency(figures.p95_us.median).into()));
        let summary = row.view.summary;
        if tpcc {
            let tpcc = summary.and_then(|arm| arm.tpcc.as_ref());
            cells.push(tpcc.map_or_else(dash, |tpcc| figure(tpcc.tpmc.mean).into()));
        }
        if lag {
            let lag = summary.and_then(|arm| arm.lag);
            cells.push(lag.map_or_else(dash, |lag| latency(lag.p95_s.median * 1e6).into()));
        }
        if incomplete {
            let trials = summary.map(|arm| arm.trials).unwrap_or_default();
            let all = trials.measured + trials.disqualified + trials.failed;
            let tone = if trials.measured < all { Tone::Caution } else { Tone::Plain };
            cells.push(Cell { tone, ..Cell::from(format!("{} of {all}", trials.measured)) });
        }
        let per = figures.and_then(|figures| figures.per_transaction.as_ref());
        cells.push(per.map_or_else(dash, |per| figure(per.consumed_ios).into()));
        cells.push(monthly(page, row));
        cells
    };
    let column = |head: &str| columns.iter().position(|other| other == head);
    Table {
        spare: ["I/O per tx", "Monthly", "p95", "Trials"].into_iter().filter_map(column).collect(),
        rows: shown.iter().map(row).collect(),
        columns,
        first_rows: Some(first_rows),
        ..Table::default()
    }
}

fn dash() -> Cell {
    "-".into()
}

fn throughput(row: &Row) -> Cell {
    let Some(figures) = row.figures else { return dash() };
    let interval = figures.tps.interval;
    let interval = interval.map(|interval| format!("{} to {}", figure(interval.low), figure(interval.high)));
    Cell { detail: interval.unwrap_or_default(), ..Cell::from(figure(figures.tps.mean)) }
}

/// What all volumes of a row's arm cost a month.
fn monthly(page: &PageContext, row: &Row) -> Cell {
    let costs = page.summary.monthly_cost.as_ref();
    let cost = costs.and_then(|costs| costs.arm(&row.view.arm.name)?.short());
    cost.map_or_else(dash, Cell::from)
}

/// The ratio of a row's arm to what it is held against, with its interval.
fn ratio(page: &PageContext, row: &Row) -> Cell {
    let comparisons = || page.summary.comparisons.iter();
    let own = |compared: &&Compared| {
        compared.arm == row.group
            && (row.regime.is_none() || compared.regimes.is_none_or(|(ours, _)| Some(ours) == row.regime))
    };
    let Some(compared) = comparisons().find(own) else {
        let is_baseline = comparisons().any(|compared| compared.baseline == row.group);
        return if is_baseline { "baseline".into() } else { dash() };
    };
    let Some(ratio) = verdict::ratio(compared) else { return dash() };
    let metric = if compared.metric == Metric::P95 { "p95 " } else { "" };
    let tone = match compared.verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifferenceSeen
            if Undecided::of_comparison(page.summary, compared).is_none()
                && too_few_trials(page.summary, compared).is_none() =>
        {
            Tone::Plain
        }
        Verdict::NoDifferenceSeen | Verdict::NotComparable { .. } => Tone::Caution,
    };
    Cell {
        detail: interval_detail(ratio.interval),
        tone,
        ..Cell::from(format!("{metric}{}", change(ratio.ratio)))
    }
}

/// The arm that all others are held against; None where they are held against several.
fn common_baseline<'a>(page: &'a PageContext) -> Option<&'a str> {
    let first = page.summary.comparisons.first()?.baseline;
    let same = page.summary.comparisons.iter().all(|compared| compared.baseline == first);
    same.then(|| page.name(first))
}

/// The remark that matters most, in its first sentence, and how many there are. Where trials are too few for a verdict, it is
/// that of their number.
fn remark(page: &PageContext) -> Option<Block> {
    let mut comparisons = page.summary.comparisons.iter();
    let is_few = comparisons.any(|compared| too_few_trials(page.summary, compared).is_some());
    let mut remarks: Vec<_> = page.summary.notes.iter().collect();
    let is_of_number = |text: &str| is_few && text == TWO_TRIALS;
    remarks.sort_by_key(|remark| (!is_of_number(&remark.text), verdict::weight(remark)));
    let first = super::notes::sentence(page, remarks.first()?);
    Some(first_remark(&first, remarks.len() - 1))
}

/// A remark in its first sentence, and how many `more` there are.
#[must_use]
pub fn first_remark(first: &str, more: usize) -> Block {
    let more = match more {
        0 => String::new(),
        more => format!(" {}: --details.", text::count(more, "further remark")),
    };
    Block::Notes(vec![Note::caution(format!("{}{more}", brief(first)))])
}

/// The interval of a ratio, for the cell that has the ratio; empty where there is none.
#[must_use]
pub fn interval_detail(interval: Option<Interval>) -> String {
    let interval = interval.map(|interval| change_interval(interval.mid, interval.low, interval.high));
    interval.map_or_else(String::new, |text| text.trim_end_matches(" times").to_owned())
}

/// The first sentence of a text. Where it is long, it ends behind one of its clauses; without one it stays whole.
#[must_use]
pub fn brief(remark: &str) -> String {
    let (first, _) = first_sentence(remark);
    if first.chars().count() <= REMARK {
        return format!("{first}.");
    }
    format!("{}.", &first[..clause_end(first)])
}

/// Where the last clause ends that fits into [`REMARK`]; the end of the sentence where none does.
fn clause_end(sentence: &str) -> usize {
    let mut brackets = 0_usize;
    let mut ends: Vec<(bool, usize)> = Vec::new();
    for (count, (place, letter)) in sentence.char_indices().enumerate() {
        let fits = brackets == 0 && (CLAUSE..REMARK).contains(&count);
        match letter {
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            ':' | ';' | ',' if fits && sentence[place + 1..].starts_with(' ') => {
                ends.push((letter != ',', place));
            }
            _ => {}
        }
    }
    // A comma may be one of a list: any other sign goes before it.
    ends.into_iter().max().map_or(sentence.len(), |(_, place)| place)
}

/// More trials where they would decide, other volumes in virtual time, and the same run again.
fn commands(page: &PageContext, out: &str) -> Vec<String> {
    let again = &page.run.command;
    let undecided = page.summary.comparisons.iter().filter_map(|compared| {
        match Undecided::of_comparison(page.summary, compared) {
            Some(Undecided::Corrected { repeats, .. }) => repeats,
            Some(Undecided::Small(_)) => None,
            None => too_few_trials(page.summary, compared),
        }
    });
    let mut commands: Vec<String> = undecided
        .max()
        .and_then(|repeats| with_option(again, "--repeats", &repeats.to_string()))
        .into_iter()
        .collect();
    let single = |view: &ArmView| view.arm.topology.is_single() && view.arm.backup.is_none();
    let measured = page.arms.iter().any(|view| !view.trials.is_empty());
    if !out.is_empty() && measured && page.arms.iter().all(single) {
        let out = quoted(out);
        commands.push(format!("ebbtide predict --profile-from {out} --out server.toml"));
    }
    commands.extend((!again.is_empty()).then(|| again.clone()));
    commands
}

/// A command with another value of an option; None where the command is not readable.
fn with_option(command: &str, option: &str, value: &str) -> Option<String> {
    let mut words = unquoted(command)?;
    if let Some(place) = words.iter().position(|word| word == option) {
        words.drain(place..(place + 2).min(words.len()));
    }
    words.extend([option.to_owned(), value.to_owned()]);
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_command_gets_another_value_and_is_there_once() {
        let command = "ebbtide run '/my dir/mine.toml' --repeats 3 --seed 7";
        let more = with_option(command, "--repeats", "5").unwrap();
        assert_eq!(more, "ebbtide run '/my dir/mine.toml' --seed 7 --repeats 5");
        assert_eq!(with_option("ebbtide run x", "--repeats", "4").unwrap(), "ebbtide run x --repeats 4");
    }

    #[test]
    fn a_remark_is_its_first_sentence_and_ends_at_the_end_of_a_clause() {
        assert_eq!(brief("Trial 1 drifted. Measure for longer."), "Trial 1 drifted.");
        let begin = "flush-2 / units-16k: Stint 1: its throughput is not counted: a thread of the load waited for a \
                     processor 35% of the time, more than 25%";
        let long = format!("{begin}: this machine limits the load, not the server. Measure on another one.");
        assert_eq!(brief(&long), format!("{begin}."));
        let listed = format!("{} of the load (a: b, c), and more {}", "word ".repeat(12), "word ".repeat(30));
        assert_eq!(brief(&listed), format!("{} of the load (a: b, c).", "word ".repeat(12)));
        let whole = "word ".repeat(60);
        assert_eq!(
            brief(whole.trim_end()),
            format!("{}.", whole.trim_end()),
            "it has no clause to end behind"
        );
    }
}
