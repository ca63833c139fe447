//! What came out, in words first.

use std::cmp::Ordering;

use ebbtide_analysis::summary::{Undecided, too_few_trials};
use ebbtide_report::{Block, Note, Tone, Verdict as Card};

use super::{ArmView, PageContext, repeats, text};
use crate::experiment::{Arm, Role};
use crate::record::Outcome;
use crate::summary::{
    Bottleneck, Cause, Compared, CurveGain, CurvePoint, Figures, LOADED, Metric, Note as Remark,
    PerTransaction, Ratio, Regime, RegimeSummary, Summary, Verdict, without,
};

/// Of more comparisons than this only the strongest are reported.
const CARDS: usize = 4;
/// More remarks than this wait for their own section.
const REMARKS: usize = 4;

/// The verdicts, then what must be known before believing them; `rest` is where more of that is.
pub(super) fn blocks(page: &PageContext, rest: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let measured = measured(page);
    let curves: Vec<Card> =
        page.summary.curves.iter().filter(|_| measured).filter_map(|gain| curve(page, gain)).collect();
    // A point of a curve is reported with its curve.
    let compared = strongest(page.summary).into_iter().filter(|one| !on_curve(page.summary, one));
    let compared: Vec<&Compared> = compared.collect();
    let has_curves = !curves.is_empty();
    if has_curves {
        blocks.push(Block::Verdicts(curves));
    }
    match compared.len() {
        0 if has_curves => {}
        _ if !measured => blocks.push(Block::Findings(lonely(page))),
        0 => blocks.push(Block::Findings(lonely(page))),
        1..=CARDS => blocks.push(cards(page, compared.into_iter())),
        _ => {
            let strong = compared.iter().copied().filter(|one| is_difference(one)).take(CARDS - 1);
            blocks.push(cards(page, strong));
            blocks.push(Block::Findings(others(page, &compared)));
        }
    }
    let courses = courses(page);
    if !courses.is_empty() {
        blocks.push(Block::Findings(courses));
    }
    blocks.extend(remarks(page, rest));
    blocks
}

/// The remarks that matter most; `rest` is where the others are.
fn remarks(page: &PageContext, rest: &str) -> Option<Block> {
    let mut remarks: Vec<&Remark> = page.summary.notes.iter().collect();
    remarks.sort_by_key(|remark| weight(remark));
    let shown = remarks.iter().take(REMARKS);
    let mut notes: Vec<Note> = shown.map(|note| Note::caution(super::notes::sentence(page, note))).collect();
    if remarks.len() > REMARKS {
        let more = text::count(remarks.len() - REMARKS, "further remark");
        notes.push(Note::plain(format!("{more} {rest}.")));
    }
    (!notes.is_empty()).then_some(Block::Notes(notes))
}

fn measured(page: &PageContext) -> bool {
    page.summary.arms.iter().any(|arm| arm.whole.is_some())
}

/// What concerns the whole run first, then whole arms, then single trials.
pub(super) fn weight(remark: &Remark) -> u8 {
    match (&remark.arm, remark.text.starts_with("Trial ")) {
        (None, _) => 0,
        (Some(_), false) => 1,
        (Some(_), true) => 2,
    }
}

/// The comparisons, the largest difference that the data carry first, then those without one.
pub(super) fn strongest(summary: &Summary) -> Vec<&Compared> {
    let mut order: Vec<&Compared> = summary.comparisons.iter().collect();
    let size = |compared: &Compared| ratio(compared).map_or(0.0, |ratio| ratio.ratio.ln().abs());
    order.sort_by(|a, b| {
        (is_difference(b), size(b)).partial_cmp(&(is_difference(a), size(a))).unwrap_or(Ordering::Equal)
    });
    order
}

/// Whether a comparison is a point of a curve that has a verdict of its own.
fn on_curve(summary: &Summary, compared: &Compared) -> bool {
    let mut points = summary
        .curves
        .iter()
        .filter(|gain| gain.loaded.is_some())
        .flat_map(|gain| &gain.points)
        .filter_map(|point| summary.comparisons.get(point.comparison));
    points.any(|point| std::ptr::eq(point, compared))
}

/// What an option gains where the load is high, and on its way there; none where that was not measured.
fn curve(page: &PageContext, gain: &CurveGain) -> Option<Card> {
    let loaded = gain.loaded?;
    let at = |point: &CurvePoint| page.summary.comparisons.get(point.comparison);
    let (tone, seen) = match gain.direction(page.summary.noise.floor) {
        None => (Tone::Caution, true),
        Some(Ordering::Greater) => (Tone::Good, true),
        Some(Ordering::Less) => (Tone::Bad, true),
        Some(Ordering::Equal) => (Tone::Plain, false),
    };
    let CurveGain { axis, option, baseline, .. } = gain;
    let small = loaded.interval.is_some_and(|interval| !interval.contains(1.0));
    let headline = if !seen && small {
        let words = Undecided::Small(page.summary.noise.floor).words("");
        format!("From {LOADED} connections on, {axis} {option} and {baseline} differ by {words}.")
    } else if !seen && loaded.interval.is_some_and(|interval| interval.is_wide()) {
        format!("From {LOADED} connections on, too few trials to tell {axis} {option} from {baseline}.")
    } else if !seen {
        format!("From {LOADED} connections on, no difference seen between {axis} {option} and {baseline}.")
    } else if loaded.interval.is_some() {
        format!("From {LOADED} connections on, {axis} {option} carries {} {baseline}.", more(loaded.ratio))
    } else {
        let measured = format!("{axis} {option} was measured with {} {baseline}", more(loaded.ratio));
        format!("From {LOADED} connections on, {measured}, in too few trials to tell.")
    };
    let counts: Vec<String> =
        gain.loaded_points().map(|point| text::whole(f64::from(point.connections))).collect();
    let measured = text::change(loaded.ratio);
    let interval = loaded.interval.map_or_else(
        || "no interval: that takes two trials of either side".to_owned(),
        |interval| format!("95% interval: {}", text::change_interval(&interval)),
    );
    let without = without(gain).map_or_else(String::new, |counts| format!(", {counts}"));
    let mut details =
        vec![format!("{measured} in the mean of {} connections{without} ({interval}).", text::list(&counts))];
    let way = gain.points.iter().filter_map(|point| {
        let ratio = at(point)?.tps?;
        Some(format!("{} at {}", text::change(ratio.ratio), text::whole(f64::from(point.connections))))
    });
    details.push(format!("By connections: {}.", way.collect::<Vec<_>>().join(", ")));
    if let Some((point, compared)) = gain.typical().and_then(|point| Some((point, at(point)?))) {
        let sides = sides(page, compared);
        details.push(format!("At {} connections:", text::whole(f64::from(point.connections))));
        details.extend(limits(&sides));
        details.extend(costs(compared, &sides));
        details.extend(bytes(&sides));
    }
    let figure = if seen { measured } else { "\u{2248}".to_owned() };
    Some(Card { figure, context: gain.place.clone(), headline, details, tone })
}

/// How many times or how much more, as it goes between the names of the arms.
fn more(ratio: f64) -> String {
    match ratio {
        times if times >= 2.0 => format!("{} times the transactions of", text::short(times)),
        more if more >= 1.0 => format!("{} more transactions than", text::percent(more - 1.0)),
        less => format!("{} fewer transactions than", text::percent(1.0 - less)),
    }
}

/// Bytes for the same work, and how many of them a write has.
fn bytes(sides: &Sides) -> Option<String> {
    let (arm, baseline) = (sides.arm_figures?.per_transaction?, sides.baseline_figures?.per_transaction?);
    if arm.writes <= 0.0 && baseline.writes <= 0.0 {
        return None;
    }
    let write = |cost: PerTransaction| match cost.writes {
        none if none <= 0.0 => "\u{2013}".to_owned(),
        writes => text::short(cost.written_kib / writes),
    };
    Some(format!(
        "{} against {} KiB written per transaction, {} against {} KiB a write.",
        text::short(arm.written_kib),
        text::short(baseline.written_kib),
        write(arm),
        write(baseline)
    ))
}

/// Whether the data carry a difference.
fn is_difference(compared: &Compared) -> bool {
    matches!(compared.verdict, Verdict::Faster | Verdict::Slower)
}

/// The ratio that the verdict is about.
pub(super) fn ratio(compared: &Compared) -> Option<Ratio> {
    match compared.metric {
        Metric::Tps => compared.tps,
        Metric::P95 => compared.p95,
    }
}

/// The figures of an arm in a regime, or in all of its time.
pub(super) fn figures<'a>(page: &PageContext<'a>, arm: usize, regime: Option<Regime>) -> Option<&'a Figures> {
    let arm = page.summary.arms.get(arm)?;
    match regime {
        None => arm.whole.as_ref(),
        // An arm that was never split is the same throughout.
        Some(_) if arm.regimes.is_empty() => arm.whole.as_ref(),
        Some(regime) => arm.regimes.iter().find(|part| part.regime == regime).map(|part| &part.figures),
    }
}

/// Both sides of a comparison: the arm and what it is held against, by what sets them apart.
struct Sides<'a> {
    /// What they have in common, such as `gp2, writes`.
    place: String,
    arm: String,
    baseline: String,
    arm_figures: Option<&'a Figures>,
    baseline_figures: Option<&'a Figures>,
}

fn sides<'a>(page: &PageContext<'a>, compared: &Compared) -> Sides<'a> {
    let arms = &page.run.experiment.arms;
    let (arm, baseline) = (arms.get(compared.arm), arms.get(compared.baseline));
    let option = |arm: &Arm| {
        arm.options.iter().find(|(axis, _)| *axis == compared.axis).map(|(_, option)| option.clone())
    };
    let options = arm.and_then(option).zip(baseline.and_then(option)).filter(|(ours, theirs)| ours != theirs);
    let mut place = Vec::new();
    if options.is_some() {
        let shared = arm.iter().flat_map(|arm| &arm.options).filter(|(axis, _)| *axis != compared.axis);
        place.extend(shared.map(|(_, option)| option.clone()));
    }
    if !compared.label.is_empty() {
        place.push(compared.label.clone());
    }
    let name = |arm: usize| page.name(arm).to_owned();
    let (ours, theirs) = options.unwrap_or_else(|| (name(compared.arm), name(compared.baseline)));
    Sides {
        place: place.join(", "),
        arm: ours,
        baseline: theirs,
        arm_figures: figures(page, compared.arm, compared.regimes.map(|(arm, _)| arm)),
        baseline_figures: figures(page, compared.baseline, compared.regimes.map(|(_, baseline)| baseline)),
    }
}

fn cards<'a>(page: &PageContext, compared: impl Iterator<Item = &'a Compared>) -> Block {
    Block::Verdicts(compared.map(|compared| card(page, compared)).collect())
}

fn card(page: &PageContext, compared: &Compared) -> Card {
    let sides = sides(page, compared);
    let mut details = Vec::new();
    let is_few = too_few_trials(page.summary, compared).is_some();
    let tone = match compared.verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifferenceSeen if !is_few => Tone::Plain,
        Verdict::NoDifferenceSeen => Tone::Caution,
        Verdict::NotComparable { .. } => Tone::Caution,
    };
    if let Verdict::NotComparable { why } = &compared.verdict {
        details.push(format!("{}.", text::capital(why.trim_end_matches('.'))));
    }
    let undecided = Undecided::of_comparison(page.summary, compared);
    let (figure, headline) = match (&compared.verdict, ratio(compared)) {
        (Verdict::NoDifferenceSeen, Some(ratio)) if undecided.is_some() => {
            let headline = headline(compared, &sides, &ratio);
            (figure(compared, &ratio), format!("Not certain: {headline}"))
        }
        (Verdict::NoDifferenceSeen, _) if is_few => {
            ("?".to_owned(), format!("Too few trials to tell {} from {}", sides.arm, sides.baseline))
        }
        (Verdict::NoDifferenceSeen, _) => {
            let equal = if compared.equal { ", which are equal" } else { "" };
            let headline = format!("No difference seen between {} and {}{equal}", sides.arm, sides.baseline);
            ("\u{2248}".to_owned(), headline)
        }
        (_, Some(ratio)) => (figure(compared, &ratio), headline(compared, &sides, &ratio)),
        (_, None) => ("?".to_owned(), format!("{} and {} cannot be compared", sides.arm, sides.baseline)),
    };
    if ratio(compared).is_some() {
        details.extend(evidence(compared, &sides, undecided));
        details.extend(repeats::detail(page, compared));
        details.extend(limits(&sides));
        details.extend(costs(compared, &sides));
    }
    Card { figure, context: sides.place, headline: format!("{headline}."), details, tone }
}

fn figure(compared: &Compared, ratio: &Ratio) -> String {
    match compared.metric {
        Metric::Tps => text::change(ratio.ratio),
        Metric::P95 => format!("p95 {}", text::change(ratio.ratio)),
    }
}

fn headline(compared: &Compared, sides: &Sides, ratio: &Ratio) -> String {
    let Sides { arm, baseline, .. } = sides;
    match compared.metric {
        Metric::Tps => {
            format!(
                "{arm} carries {} {baseline}{}",
                more(ratio.ratio),
                against(sides, |f| text::short(f.tps.mean), " a second")
            )
        }
        Metric::P95 => {
            let longer = match ratio.ratio {
                times if times >= 2.0 => format!("{} times the response time of", text::short(times)),
                more if more >= 1.0 => format!("{} more response time than", text::percent(more - 1.0)),
                less => format!("{} less response time than", text::percent(1.0 - less)),
            };
            let figures = against(sides, |f| text::latency(f.p95_us.median), "");
            format!("{arm} takes {longer} {baseline} at the 95th percentile{figures}")
        }
    }
}

/// `: 4,412 against 351 a second`.
fn against(sides: &Sides, figure: impl Fn(&Figures) -> String, unit: &str) -> String {
    match (sides.arm_figures, sides.baseline_figures) {
        (Some(arm), Some(baseline)) => format!(": {} against {}{unit}", figure(arm), figure(baseline)),
        _ => String::new(),
    }
}

/// What the verdict rests on.
fn evidence(compared: &Compared, sides: &Sides, undecided: Option<Undecided>) -> Option<String> {
    let ratio = ratio(compared)?;
    let trials = |figures: Option<&Figures>| figures.map_or(0, |figures| figures.trials);
    let trials = match (trials(sides.arm_figures), trials(sides.baseline_figures)) {
        (1, 1) => "from one trial of each".to_owned(),
        (arm, baseline) if arm == baseline => format!("from {arm} trials of each"),
        (arm, baseline) => format!("from {arm} and {baseline} trials"),
    };
    let Some(interval) = ratio.interval else {
        return Some(format!("Measured {} {trials}: too few for an interval.", text::change(ratio.ratio)));
    };
    let interval = text::change_interval(&interval);
    if is_difference(compared) {
        return Some(format!("95% interval: {interval}, {trials}."));
    }
    if let Some(undecided) = undecided {
        let words = text::capital(&undecided.words("--repeats "));
        return Some(format!("95% interval: {interval}, {trials}. {words}."));
    }
    let seen = compared.smallest_effect.map_or(String::new(), |effect| {
        format!(
            " A true difference of {} or more would have been seen in four of five such runs.",
            text::percent(effect)
        )
    });
    Some(format!("Measured {} (95% interval: {interval}, {trials}).{seen}", text::change(ratio.ratio)))
}

/// What holds the sides back, in one line where it is the same.
fn limits(sides: &Sides) -> Vec<String> {
    let (Some(arm), Some(baseline)) = (sides.arm_figures, sides.baseline_figures) else { return Vec::new() };
    let (arm, baseline) = (&arm.limiter, &baseline.limiter);
    let same = arm.what == baseline.what && arm.volume == baseline.volume;
    if same && arm.what == Bottleneck::Unknown {
        return Vec::new();
    }
    if same && (arm.share - baseline.share).abs() < 0.05 {
        return vec![format!("Both are {}.", text::limiter(arm))];
    }
    let side = |name: &str, limiter| format!("{name}: {}.", text::limiter(limiter));
    vec![side(&sides.arm, arm), side(&sides.baseline, baseline)]
}

/// What else distinguishes the sides: response time, and I/Os for the same work.
fn costs(compared: &Compared, sides: &Sides) -> Option<String> {
    let (arm, baseline) = (sides.arm_figures?, sides.baseline_figures?);
    let mut parts = Vec::new();
    let known = arm.p95_us.median > 0.0 && baseline.p95_us.median > 0.0;
    if compared.metric == Metric::Tps && known {
        let latency = |figures: &Figures| text::latency(figures.p95_us.median);
        parts.push(format!(
            "95th percentile of the response time {} against {}",
            latency(arm),
            latency(baseline)
        ));
    }
    if let (Some(arm), Some(baseline)) = (arm.per_transaction, baseline.per_transaction) {
        parts.push(format!(
            "{} against {} I/Os per transaction",
            text::short(arm.consumed_ios),
            text::short(baseline.consumed_ios)
        ));
    }
    (!parts.is_empty()).then(|| format!("{}.", text::capital(&parts.join("; "))))
}

/// The comparisons that have no card: in groups, by what was found.
fn others(page: &PageContext, all: &[&Compared]) -> Vec<String> {
    let several = all.iter().any(|one| one.baseline != all[0].baseline || !one.label.is_empty());
    let names = |of: &[&Compared]| {
        let name = |compared: &&Compared| {
            let Sides { place, arm, baseline, .. } = sides(page, compared);
            match (several, place.is_empty()) {
                (false, _) => arm,
                (true, true) => format!("{arm} against {baseline}"),
                (true, false) => format!("{place}: {arm} against {baseline}"),
            }
        };
        let names: Vec<String> = of.iter().map(name).collect();
        if several { names.join("; ") } else { text::list(&names) }
    };
    let changed: Vec<&Compared> = all.iter().copied().filter(|one| is_difference(one)).collect();
    let (few, same): (Vec<&Compared>, Vec<&Compared>) = all
        .iter()
        .copied()
        .filter(|compared| compared.verdict == Verdict::NoDifferenceSeen)
        .partition(|compared| too_few_trials(page.summary, compared).is_some());
    let mut sentences =
        vec![format!("{} of {} show a difference.", changed.len(), text::count(all.len(), "comparison"))];
    let further: Vec<String> = changed
        .iter()
        .skip(CARDS - 1)
        .filter_map(|one| Some(format!("{} {}", names(&[one]), figure(one, &ratio(one)?))))
        .collect();
    if !further.is_empty() {
        sentences.push(format!("Further differences: {}.", further.join("; ")));
    }
    let largest = same.iter().filter_map(|compared| compared.smallest_effect).max_by(f64::total_cmp);
    if !same.is_empty() {
        let seen = largest.map_or(String::new(), |effect| {
            format!(
                " A true difference of {} or more would have been seen in four of five such runs.",
                text::percent(effect)
            )
        });
        sentences.push(format!("No difference seen: {}.{seen}", names(&same)));
    }
    if !few.is_empty() {
        sentences.push(format!("Too few trials to tell: {}.", names(&few)));
    }
    let never = |one: &&Compared| matches!(one.verdict, Verdict::NotComparable { .. });
    let never: Vec<&Compared> = all.iter().copied().filter(never).collect();
    if !never.is_empty() {
        sentences.push(format!("Not comparable: {}.", names(&never)));
    }
    sentences
}

/// Arms whose conditions changed under way: when, and what became of them.
fn courses(page: &PageContext) -> Vec<String> {
    page.arms.iter().filter_map(|view| course(page, view)).collect()
}

fn course(page: &PageContext, view: &ArmView) -> Option<String> {
    let regimes = &view.summary?.regimes;
    if regimes.len() < 2 {
        return None;
    }
    let window = view.trials.get(view.typical).and_then(|trial| page.window(trial));
    let ended = window.and_then(|window| window.changes.iter().find(|one| one.cause == Cause::CreditsEnded));
    let when =
        ended.map_or(String::new(), |change| format!("burst credits gone after {:.0} s. ", change.t_s));
    let part = |regime: &RegimeSummary| {
        let figures = &regime.figures;
        let mut parts = vec![format!("{} transactions a second", text::short(figures.tps.mean))];
        if figures.p95_us.median > 0.0 {
            parts.push(format!("95% within {}", text::latency(figures.p95_us.median)));
        }
        let reads = figures.volumes.get(&Role::Data).map(|volume| volume.read_us).filter(|us| *us > 0.0);
        parts.extend(reads.map(|us| format!("a read takes {}", text::latency(us))));
        format!("{}: {}", text::capital(&regime.label), parts.join(", "))
    };
    let parts: Vec<String> = regimes.iter().map(part).collect();
    Some(format!("{}: {when}{}.", view.name, parts.join(". ")))
}

/// The findings where nothing is compared.
fn lonely(page: &PageContext) -> Vec<String> {
    if measured(page) {
        return page.summary.findings.clone();
    }
    let mut reasons: Vec<String> = Vec::new();
    for trial in &page.run.trials {
        if let Outcome::Failed { why, .. } | Outcome::Disqualified { why } = &trial.outcome {
            reasons.push(why.clone());
        }
    }
    reasons.sort();
    reasons.dedup();
    let begin = "Nothing was measured, so that nothing can be said about the arms.".to_owned();
    std::iter::once(begin).chain(reasons).collect()
}
