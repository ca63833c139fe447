//! The answer as a document, from which the text and the page are made: what to buy and what it saves first, then the choices,
//! then everything that it rests on.

mod charts;
mod counted;
mod inputs;
mod platforms;
mod several;
mod times;
mod today;
mod words;

use crate::sizing::{Answer, SizingPlan};
use ebbtide_advisor::sizing::change::{self, ChangePlan};
use ebbtide_advisor::sizing::{
    ARRAY_OPERATION, CheaperArray, Choice, InstanceChoice, QueueRule, Safer, Safety, Today,
};
use ebbtide_catalog::{InstanceType, MonthlyCost, Resolved, Usd};
use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table};
use ebbtide_text::{figure, latency, percent};
use ebbtide_volume::{Nanos, RateLimit};

pub use self::several::{StorageTogether, documents, volume_name};
pub(super) use self::words::instances_skipped;
use self::words::{cost_words, room_words, share, time};

/// Choices in the table of the answer; the others are details.
const FIRST_CHOICES: usize = 2;
/// A p99 that is so many times today's is pointed out.
const SLOWER: f64 = 1.3;

/// The answer for one volume, with the load over time as charts.
#[must_use]
pub fn document(plan: &SizingPlan<'_>, answer: &Answer<'_>, version: &str) -> Report {
    let mut sections = sections(plan, answer);
    sections.insert(1, Section::new("The load over time", vec![Block::Plots(charts::load(plan, answer))]));
    Report {
        title: plan.source.what.clone(),
        subtitle: "The cheapest storage that carries a load".into(),
        sections,
        footer: format!("ebbtide {version}. List prices of {}.", plan.region),
        ..Report::default()
    }
}

/// The answer for one volume: what is printed of each of several. All but the first have a word of their own, whatever their heading.
fn sections(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Vec<Section> {
    let change = answer.change(plan);
    let next = change.as_ref().and_then(|change| change.cli.first());
    let mut sections = vec![first(plan, answer, next), inputs::section(plan).details()];
    if let Some(today) = &answer.sizing.today {
        let facts = vec![Block::Facts(today::facts(plan, today))];
        sections.push(Section::new("Today", facts).named("today").details());
    }
    if let Some(best) = answer.sizing.choices.first() {
        sections.push(
            Section::new("The answer", vec![Block::Facts(answer_facts(plan, answer, best))])
                .named("answer")
                .details(),
        );
        let every = answer.sizing.choices.len();
        let mut all = vec![Block::Table(choices(plan, answer, every))];
        all.extend(legend_of_choices(plan, answer, every).map(|legend| Block::Notes(vec![legend])));
        sections.push(Section::new("All choices", all).named("choices").details());
        sections.extend(instances(answer).map(Section::details));
        let mut safer = vec![Block::Table(safer(plan, answer))];
        safer.extend(legend_of_safer(plan, answer).map(|legend| Block::Notes(vec![legend])));
        sections.push(Section::new("More safety", safer).named("safety").details());
    }
    if let Some(rule) = &answer.queue_rule {
        let rules = vec![Block::Text(rule_words(rule))];
        sections.push(Section::new("Rules of thumb", rules).named("rules").details());
    }
    sections.extend(change.iter().flat_map(changes).map(Section::details));
    if !answer.platforms.is_empty() {
        sections.push(platforms::section(&answer.platforms, &plan.region).details());
    }
    sections
}

/// The sentence, the choices beside today's volume, what has to be known, and what to do.
fn first(plan: &SizingPlan<'_>, answer: &Answer<'_>, next: Option<&String>) -> Section {
    let mut blocks = vec![Block::Findings(findings(plan, answer))];
    if !answer.sizing.choices.is_empty() {
        // They wait in no more of the time than was allowed.
        blocks.push(Block::Table(choices(plan, answer, FIRST_CHOICES).without("Waits")));
    }
    let notes = notes(plan, answer);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    if let Some(line) = next {
        blocks.push(Block::Listing(Listing { label: "Next".into(), text: line.clone() }));
    }
    Section::new("", blocks)
}

/// What to buy, with its price; and what was wrong with today's volume.
fn findings(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Vec<String> {
    let sizing = &answer.sizing;
    let Some(best) = sizing.choices.first() else {
        let why = if plan.source.server.is_some() { ", or none passes the model's check" } else { "" };
        return vec![format!(
            "Nothing in the catalogue meets what is asked{why}. Ask for less: --carry 99%, a longer --p99, less --headroom; or \
             allow more volumes with --raid0."
        )];
    };
    let price = best.storage.as_ref().map_or_else(
        || "; it has no price here".to_owned(),
        |cost| format!(" for {} a month{}", cost.usd, storage_difference(answer).unwrap_or_default()),
    );
    let answer = format!("{} carries the load{price}.", change::short(&best.volumes.spec));
    let today = sizing.today.as_ref().map(|today| today::sentence(plan, today));
    [Some(answer), today].into_iter().flatten().collect()
}

/// How much less or more the storage of the answer costs than today's: `, $10.00 less than today`.
fn storage_difference(answer: &Answer<'_>) -> Option<String> {
    let usd = |choice: &Choice| choice.storage.as_ref().map(|cost| cost.usd);
    let new = usd(answer.sizing.choices.first()?)?;
    let old = usd(&answer.sizing.today.as_ref()?.choice)?;
    Some(match new.cmp(&old) {
        std::cmp::Ordering::Less => format!(", {} less than today", old.less(new)),
        std::cmp::Ordering::Equal => ", as much as today".to_owned(),
        std::cmp::Ordering::Greater => format!(", {} more than today", new.less(old)),
    })
}

fn notes(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Vec<Note> {
    let mut notes: Vec<Note> = inputs::doubts(plan).into_iter().map(Note::caution).collect();
    notes.extend(inputs::left_out(plan).into_iter().map(Note::caution));
    let sizing = &answer.sizing;
    let Some(best) = sizing.choices.first() else { return notes };
    if let Some((before, after)) = slower(answer) {
        notes.push(Note::caution(format!(
            "its p99 of an I/O is {}, today's {}: --p99 {}us keeps today's",
            time(after),
            time(before),
            before.as_us() + 1
        )));
    }
    notes.extend(legend_of_choices(plan, answer, FIRST_CHOICES));
    notes.extend(instance_note(plan, answer, best).map(Note::plain));
    if sizing.instance.is_none() {
        notes.push(Note::plain("no instance was named (--instance): its EBS limits are not looked at"));
    }
    if let Some(array) = sizing.cheaper_array() {
        notes.push(Note::plain(format!(
            "{} volumes in RAID 0 cost {} a month less: {}. The loss of any volume loses all data",
            array.members,
            array.saves,
            change::short(&array.choice.volumes.spec)
        )));
    } else if best.volumes.spec.members() > 1 {
        let single = sizing.choices.iter().any(|choice| choice.volumes.spec.members() == 1);
        let why = if single { "arrays were asked for" } else { "no single volume meets what is asked" };
        let members = best.volumes.spec.members();
        notes.push(Note::caution(format!(
            "{why}: these are {members} volumes in RAID 0, and the loss of any of them loses all data"
        )));
    }
    notes
}

/// The p99 of an I/O of today's volume, and that of the answer, where it is so much longer that it is pointed out; None elsewhere.
fn slower(answer: &Answer<'_>) -> Option<(Nanos, Nanos)> {
    let (best, today) = (answer.sizing.choices.first()?, answer.sizing.today.as_ref()?);
    let (before, after) = (today.latency(0.99), best.carried.latency(0.99));
    (after.0 as f64 > SLOWER * before.0 as f64).then_some((before, after))
}

/// The instance of the answer, which is no part of the storage's money; None where none was named.
fn instance_note(plan: &SizingPlan<'_>, answer: &Answer<'_>, best: &Choice) -> Option<String> {
    let instance = answer.sizing.instance?;
    let usd = best.instance_usd?;
    let today = plan.instance.as_ref().filter(|today| today.name != instance.name);
    let before = today.and_then(|today| Some((today, plan.prices().instance(&today.name)?.month())));
    let difference = match before {
        Some((today, old)) if old > usd => format!(", {} less than {}", old.less(usd), today.name),
        Some((today, old)) if old < usd => format!(", {} more than {}", usd.less(old), today.name),
        Some((today, _)) => format!(", as much as {}", today.name),
        None => String::new(),
    };
    Some(format!("the instance stands apart: {} for {usd} a month{difference}", instance.name))
}

/// What the marks in a table of so many choices mean; None where it has none.
fn legend_of_choices(plan: &SizingPlan<'_>, answer: &Answer<'_>, most: usize) -> Option<Note> {
    let sizing = &answer.sizing;
    let shown = sizing.today.iter().map(|today| &today.choice).chain(sizing.choices.iter().take(most));
    let marked =
        shown.filter(|choice| choice.room.is_some() && !burst_mark(plan, choice.needs_burst).is_empty());
    burst_legend(marked.map(|choice| credits_of(&choice.volumes, sizing.instance)))
}

/// What the marks in the table of [`safer`] mean; None where it has none.
fn legend_of_safer(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Option<Note> {
    let marked = answer.sizing.safer.iter().filter(|row| !burst_mark(plan, row.needs_burst).is_empty());
    burst_legend(marked.filter_map(|row| Some(credits_of(&row.candidate.as_ref()?.resolved, row.instance))))
}

/// Whether volumes have burst credits, and whether their instance has.
fn credits_of(volumes: &Resolved, instance: Option<&InstanceType>) -> [bool; 2] {
    let has = |limit: Option<RateLimit>| limit.is_some_and(|limit| limit.has_credits());
    let own = &volumes.members[0];
    let limits = instance.map(|instance| instance.limits);
    [
        has(own.iops) || has(own.throughput),
        has(limits.map(|limits| limits.iops)) || has(limits.map(|limits| limits.throughput)),
    ]
}

/// What [`burst_mark`] stands for, by the [`credits_of`] the rows that have it; None without such a row.
fn burst_legend(marked: impl Iterator<Item = [bool; 2]>) -> Option<Note> {
    let owner = match marked.reduce(|all, row| [all[0] || row[0], all[1] || row[1]])? {
        [true, true] => "the volume or the instance",
        [false, true] => "the instance",
        [_, false] => "the volume",
    };
    Some(Note::caution(format!(
        "*  only while burst credits of {owner} last. The past was throttled: the load is more than what was recorded, and uses \
         them up sooner"
    )))
}

/// Marks a row that depends on burst credits, where the past was throttled.
fn burst_mark(plan: &SizingPlan<'_>, needs_burst: bool) -> &'static str {
    if needs_burst && plan.inputs.throttled.is_some() { "*" } else { "" }
}

/// The cheapest of the choices, after today's volume.
fn choices(plan: &SizingPlan<'_>, answer: &Answer<'_>, most: usize) -> Table {
    let checked = !answer.verified.is_empty();
    let mut heads = vec!["Volumes", "Monthly", "Waits", "p99 of I/O", "Carries", "Limited by"];
    if checked {
        heads.extend(["Model: tps", "at least", "p99", "at most", "Meets"]);
    }
    let row = |name: String, choice: &Choice, waits: String, p99: String| {
        [
            name,
            choice.storage.as_ref().map_or_else(|| "?".into(), MonthlyCost::short),
            waits,
            p99,
            choice.room.map_or_else(
                || "-".into(),
                |room| format!("{}x{}", figure(room * plan.factor()), burst_mark(plan, choice.needs_burst)),
            ),
            choice.limited_by.map_or_else(|| "-".into(), |limit| limit.words().to_owned()),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let today = answer.sizing.today.iter().map(|today: &Today| {
        let choice = &today.choice;
        let name = format!("today: {}", change::short(&choice.volumes.spec));
        let p99 = if today.latency.is_none() && today.now.overloaded {
            "no bound".to_owned()
        } else {
            time(today.latency(0.99))
        };
        let mut cells = row(name, choice, percent(choice.carried.waiting), p99);
        cells.resize(heads.len(), Cell::from("-"));
        cells
    });
    let found = answer.sizing.choices.iter().enumerate().take(most).map(|(place, choice)| {
        let name = change::short(&choice.volumes.spec).to_string();
        let carried = &choice.carried;
        let mut cells = row(name, choice, percent(carried.waiting), time(carried.latency(0.99)));
        if let Some(check) = answer.verified.get(place) {
            let verdict = if check.meets { "yes".into() } else { format!("no: {}", check.limiter) };
            let p99 = check.p99.map_or_else(|| "-".into(), time);
            let at_most = check.p99_high.map_or_else(|| "-".into(), time);
            cells.extend([figure(check.tps), figure(check.tps_low), p99, at_most, verdict].map(Cell::from));
        } else {
            cells.resize(heads.len(), Cell::from("-"));
        }
        cells
    });
    let column = |head: &str| heads.iter().position(|other| *other == head);
    Table {
        rows: today.chain(found).collect(),
        columns: heads.iter().map(|head| (*head).to_owned()).collect(),
        spare: ["Waits", "p99", "at most", "Model: tps", "at least"].into_iter().filter_map(column).collect(),
        ..Table::default()
    }
}

/// What the answer costs and carries, in full.
fn answer_facts(plan: &SizingPlan<'_>, answer: &Answer<'_>, best: &Choice) -> Vec<Fact> {
    let sizing = &answer.sizing;
    let mut facts = vec![
        Fact::new("Volumes", change::short(&best.volumes.spec).to_string()),
        Fact::new("Storage", cost_words(best.storage.as_ref())),
    ];
    if let Some(instance) = sizing.instance {
        let price =
            best.instance_usd.map_or_else(|| "no price here".to_owned(), |usd| format!("{usd} a month"));
        let together = best.usd().filter(|_| best.instance_usd.is_some());
        let together = together.map_or_else(String::new, |usd| format!(", together {usd}"));
        facts.push(Fact::new("Instance", format!("{}  {price}{together}", instance.name)));
    }
    facts.extend(instances_skipped(plan).map(|skipped| Fact::new("", skipped)));
    facts.extend(difference(answer).map(|difference| Fact::new("Difference", difference)));
    if let Some(room) = best.room {
        facts.push(Fact::new("Carries", room_words(plan, room)));
    }
    if let Some(with) = &sizing.counting_allowance {
        facts.push(Fact::new(
            "First second",
            format!(
                "an idle gp3 gives twice its rate for about a second. That was measured, AWS does not promise it, and the answer \
                 does not count on it: with it {} would do, for {}",
                change::short(&with.resolved.spec),
                with.usd
            ),
        ));
    }
    if let Some(array) = sizing.cheaper_array() {
        facts.extend(array_facts(&array));
    } else if best.volumes.spec.members() > 1 {
        facts.extend(costs_of_array(best.volumes.spec.members()));
    }
    facts
}

/// The cheaper array, with what it costs beside money.
fn array_facts(array: &CheaperArray<'_>) -> Vec<Fact> {
    let choice = array.choice;
    let price = cost_words(choice.storage.as_ref());
    let mut facts = vec![
        Fact::new("Cheaper", format!("{}  {price}", change::short(&choice.volumes.spec))),
        Fact::new("", format!("{} a month less, as {} volumes in RAID 0", array.saves, array.members)),
    ];
    facts.extend(costs_of_array(array.members));
    facts
}

fn costs_of_array(members: u16) -> Vec<Fact> {
    let risk = format!("the loss of any volume loses all data, {members} times as likely as with one volume");
    let operation = ARRAY_OPERATION.into_iter().map(|operation| Fact::new("Operation", operation));
    [Fact::new("Risk", risk)].into_iter().chain(operation).collect()
}

/// What the answer costs more or less than today's.
fn difference(answer: &Answer<'_>) -> Option<String> {
    let (best, today) = (answer.sizing.choices.first()?, answer.sizing.today.as_ref()?);
    let priced = |choice: &Choice| Some((choice.storage.as_ref()?.usd, choice.instance_usd));
    let ((new, new_instance), (old, old_instance)) = (priced(best)?, priced(&today.choice)?);
    let sum = |storage: Usd, instance: Option<Usd>| instance.map_or(storage, |usd| storage + usd);
    let both = new_instance.is_some() == old_instance.is_some();
    let (new, old) = if both { (sum(new, new_instance), sum(old, old_instance)) } else { (new, old) };
    Some(match new.cmp(&old) {
        std::cmp::Ordering::Less => format!("{} a month less than today", old.less(new)),
        std::cmp::Ordering::Equal => "as much as today".to_owned(),
        std::cmp::Ordering::Greater => format!("{} a month more than today", new.less(old)),
    })
}

/// Other types of instance that would do.
fn instances(answer: &Answer<'_>) -> Option<Section> {
    if answer.sizing.instances.is_empty() {
        return None;
    }
    let range = |low: u64, high: u64| match (low, high) {
        (0, 0) => "-".to_owned(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    };
    let row = |choice: &InstanceChoice<'_>| {
        let instance = choice.instance;
        let today = if choice.is_today { " (today)" } else { "" };
        [
            format!("{}{today}", instance.name),
            choice.price.month().to_string(),
            instance.vcpus.to_string(),
            instance.memory_gib.to_string(),
            range(instance.baseline_iops, instance.maximum_iops),
            range(instance.baseline_mbps / 8, instance.maximum_mbps / 8),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let table = Table {
        columns: ["Type", "Monthly", "vCPU", "GiB", "IOPS", "MB/s"].map(str::to_owned).to_vec(),
        rows: answer.sizing.instances.iter().map(row).collect(),
        ..Table::default()
    };
    Some(Section::new("Other instances", vec![Block::Table(table)]).named("instances"))
}

/// The cheapest for other degrees of safety.
fn safer(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Table {
    let sizing = &answer.sizing;
    let best = sizing.choices.first().and_then(|best| best.storage.as_ref());
    let row = |safer: &Safer<'_>| {
        let Some(candidate) = &safer.candidate else {
            return [safety_words(safer), "nothing meets it".into(), "-".into(), "-".into()]
                .map(Cell::from)
                .to_vec();
        };
        let other = safer.instance.filter(|other| sizing.instance.is_some_and(|own| own.name != other.name));
        let volumes =
            format!("{}{}", change::short(&candidate.resolved.spec), burst_mark(plan, safer.needs_burst));
        let (volumes, more) = match other {
            Some(instance) => (format!("{volumes} on {}", instance.name), "and the instance".into()),
            None => (volumes, best.map_or_else(String::new, |best| signed(candidate.usd, best.usd))),
        };
        [safety_words(safer), volumes, candidate.usd.to_string(), more].map(Cell::from).to_vec()
    };
    Table {
        columns: ["Safety", "Volumes", "Monthly", "More"].map(str::to_owned).to_vec(),
        rows: sizing.safer.iter().map(row).collect(),
        ..Table::default()
    }
}

fn signed(usd: Usd, other: Usd) -> String {
    if usd >= other { format!("+{}", usd.less(other)) } else { format!("-{}", other.less(usd)) }
}

/// A degree of safety in words.
fn safety_words(safer: &Safer<'_>) -> String {
    match safer.what {
        Safety::Carried(carried) if carried >= 1.0 => "no wait at any time".to_owned(),
        Safety::Carried(carried) => format!("no wait in {} of the time", share(carried)),
        Safety::Load(factor) => format!("{} more load", percent(factor - 1.0)),
        Safety::Implied => "what the throttled past may have needed".to_owned(),
    }
}

/// The rules of the queue length, and why they mislead.
fn rule_words(rule: &QueueRule) -> String {
    let why = rule.latency_ms.map_or_else(String::new, |ms| {
        format!(
            " An operation takes {} here: by Little's law the queue of {} is {} IOPS.",
            latency(ms * 1e3),
            figure(rule.queue),
            figure(rule.queue / (ms / 1e3))
        )
    });
    format!(
        "The AWS whitepaper's rule, 200 IOPS for each request in the queue, gives {} for the mean queue of {}; AWS's newer one, \
         1,000, gives {}. The load had {}. Either rule takes one latency for all volumes (5 ms, 1 ms), and a queue that a limit \
         made for a need.{why}",
        figure(rule.whitepaper_iops),
        figure(rule.queue),
        figure(rule.newer_iops),
        figure(rule.seen_iops)
    )
}

/// How to get there: by the command line, and in Terraform.
fn changes(plan: &ChangePlan) -> Vec<Section> {
    let listing = |lines: &[String]| {
        let listing = Listing { label: String::new(), text: lines.join("\n") };
        (!lines.is_empty()).then_some(Block::Listing(listing))
    };
    let mut cli: Vec<Block> = listing(&plan.cli).into_iter().collect();
    cli.push(Block::Notes(plan.notes.iter().map(Note::plain).collect()));
    let terraform = listing(&plan.terraform);
    let terraform = terraform.map(|block| Section::new("Terraform", vec![block]).named("terraform"));
    [Section::new("How to change it", cli).named("change")].into_iter().chain(terraform).collect()
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;

    use super::*;
    use crate::sizing::tests::request;

    #[test]
    fn a_choice_without_a_price_has_a_question_mark_in_place_of_one() {
        let catalog = Catalog::builtin();
        let plans = SizingPlan::read(&request(), &catalog, &[]).unwrap();
        let mut answer = Answer::of(&plans[0]);
        answer.sizing.choices[0].storage = None;
        let table = choices(&plans[0], &answer, 1);
        let monthly: Vec<&str> = table.rows.iter().map(|row| row[1].text.as_str()).collect();
        assert_eq!(monthly, ["$50.00", "?"]);
    }

    #[test]
    fn the_legend_of_burst_credits_says_whose_they_are_and_is_there_for_a_marked_row_alone() {
        let catalog = Catalog::builtin();
        let volumes = |spec: &str| catalog.resolve(&spec.parse().unwrap()).unwrap();
        let bursts = catalog.instance("r5.large").unwrap();
        let gp2 = credits_of(&volumes("gp2:size=150GiB"), None);
        let gp3 = credits_of(&volumes("gp3:size=150GiB"), Some(&bursts));
        assert_eq!((gp2, gp3), ([true, false], [false, true]));
        let owner = |rows: &[[bool; 2]]| {
            let legend = burst_legend(rows.iter().copied())?.text;
            Some(legend.split(" last. ").next()?.to_owned())
        };
        assert_eq!(owner(&[]), None);
        assert_eq!(owner(&[gp2]).unwrap(), "*  only while burst credits of the volume");
        assert_eq!(owner(&[gp3]).unwrap(), "*  only while burst credits of the instance");
        assert_eq!(owner(&[gp2, gp3]).unwrap(), "*  only while burst credits of the volume or the instance");
    }
}
