//! What the answer rests on: the load, whether its figures agree, what was asked, and whose prices.

use crate::sizing::{SizeOrigin, SizingPlan};
use ebbtide_advisor::sizing::{KINDS, Spread, Throttled};
use ebbtide_report::{Block, Fact, Section};
use ebbtide_text::{count, figure, percent, seconds};
use ebbtide_volume::{MIB, format_size};

use super::counted::{mix_words, sizes_words};
use super::times::{dates, moment};
use super::words::{share, time};

/// The load and its checks, what was asked, and the prices.
pub(super) fn section(plan: &SizingPlan<'_>) -> Section {
    let mut facts = load(plan);
    facts.push(Fact::new("Little's law", little(plan)));
    facts.push(Fact::new("Asked", asked(plan)));
    facts.push(Fact::new("Prices", prices_words(plan)));
    if plan.source.server.is_some() {
        facts.push(Fact::new("Seed", plan.seed.to_string()));
    }
    Section::new("The load", vec![Block::Facts(facts)]).named("load")
}

fn load(plan: &SizingPlan<'_>) -> Vec<Fact> {
    let longest = plan.longest_interval();
    let intervals = format!(
        "{} in {} of {} at most",
        seconds(plan.now.seconds()),
        count(plan.source.load.intervals.len(), "interval"),
        seconds(longest)
    );
    let spread = |name: &str, spread: Option<Spread>, unit: f64| {
        spread.map(|spread| {
            let value = |value: f64| figure(value / unit);
            let text = format!(
                "mean {}, p50 {}, p95 {}, p99 {}, p99.9 {}, highest {}",
                value(spread.mean),
                value(spread.p50),
                value(spread.p95),
                value(spread.p99),
                value(spread.p999),
                value(spread.max)
            );
            Fact::new(name, text)
        })
    };
    let time = dates(plan).map_or_else(|| intervals.clone(), |dates| format!("{dates}: {intervals}"));
    let mut facts = vec![Fact::new("Source", plan.source.what.as_str()), Fact::new("Time", time)];
    facts.extend(spread("IOPS", plan.now.operations(plan.unit()), 1.0));
    facts.extend(spread("MiB/s", plan.now.throughput(), MIB as f64));
    facts.push(Fact::new("Sizes", sizes_words(plan)));
    facts.extend(mix_words(plan).map(|mix| Fact::new("", mix)));
    facts.extend(plan.source.notes.iter().map(|note| Fact::new("Note", note.as_str())));
    if longest >= 60.0 {
        let hidden = format!("means of {} hide shorter peaks: the headroom is for them", seconds(longest));
        facts.push(Fact::new("Note", hidden));
    }
    facts
}

/// Whether the queue is the product of IOPS and latency.
fn little(plan: &SizingPlan<'_>) -> String {
    let Some(little) = plan.inputs.little else {
        return "queue or latency are not in the figures: it says nothing".to_owned();
    };
    let longest = plan.longest_interval();
    let windows = if little.window_s > longest * 1.5 {
        format!(", in windows of up to {}", seconds(little.window_s))
    } else {
        String::new()
    };
    format!(
        "queue = IOPS x latency within 20% in {} of the time{windows} (mean queue {}, expected {})",
        percent(little.agrees_pct / 100.0),
        figure(little.queue),
        figure(little.expected)
    )
}

/// Why the answer may be wrong: figures that contradict each other, times without figures, and a throttled past.
pub(super) fn doubts(plan: &SizingPlan<'_>) -> Vec<String> {
    let inputs = &plan.inputs;
    let mut doubts = Vec::new();
    if inputs.little.is_some_and(|little| !little.agrees()) {
        doubts.push(format!("INCONSISTENT: {}. The answer is no better than these figures", little(plan)));
    }
    for found in &inputs.inconsistent {
        doubts.push(format!(
            "INCONSISTENT at {}, and in {} of the time: {}. The answer is no better than these figures",
            moment(plan, found.at_s),
            percent(found.time_pct / 100.0),
            found.what
        ));
    }
    if inputs.gaps > 0 {
        doubts.push(format!(
            "{} without figures, {} together: what happened in them is not known",
            count(inputs.gaps, "gap"),
            seconds(inputs.gaps_s)
        ));
    }
    doubts.extend(inputs.throttled.as_ref().map(throttled));
    doubts
}

/// What was said when the files were read, such as that figures are missing in them: the first of it, and how much more there is.
pub(super) fn left_out(plan: &SizingPlan<'_>) -> Vec<String> {
    // Of a described load, they say how it was computed.
    if plan.source.server.is_some() {
        return Vec::new();
    }
    first_note(&plan.source.notes)
}

/// The first of some notes on the files, and how many there are more.
pub(super) fn first_note(notes: &[String]) -> Vec<String> {
    let Some((first, more)) = notes.split_first() else { return Vec::new() };
    let more =
        (!more.is_empty()).then(|| format!("{} on the files: --details", count(more.len(), "more note")));
    [Some(first.clone()), more].into_iter().flatten().collect()
}

fn throttled(throttled: &Throttled) -> String {
    let bound = match (throttled.served_before_iops, throttled.implied_iops) {
        (Some(before), Some(most)) => format!(
            "before the credits ended {} IOPS were served: with the work put off it may have been {} at most",
            figure(before),
            figure(most)
        ),
        (None, Some(most)) => format!(
            "it is more than the {} IOPS that were seen in it, with the work that its growing queue put off {} at most",
            figure(throttled.seen_iops),
            figure(most)
        ),
        (_, None) => format!(
            "it is more than the {} IOPS that were seen in it. How much more, the record does not show: clients that wait for an \
             answer send less",
            figure(throttled.seen_iops)
        ),
    };
    format!(
        "THROTTLED in {} of the time: {}. A throttled past understates the need: {bound}. What is above is the least; raise the \
         limit, record again, size again",
        percent(throttled.time_pct / 100.0),
        throttled.because.join("; ")
    )
}

/// What is asked of the volumes.
fn asked(plan: &SizingPlan<'_>) -> String {
    let objective = &plan.objective;
    let mut factors = Vec::new();
    if (plan.more - 1.0).abs() > 1e-9 {
        factors.push(format!("{} for more transactions", figure(plan.more)));
    }
    if (plan.growth - 1.0).abs() > 1e-9 {
        factors.push(format!("{} for growth in {} months", figure(plan.growth), plan.horizon));
    }
    if (plan.headroom - 1.0).abs() > 1e-9 {
        factors.push(format!("{} of headroom", figure(plan.headroom)));
    }
    let load = if factors.is_empty() {
        "the load as it is".into()
    } else {
        format!("the load x {}", factors.join(" x "))
    };
    let p99 = objective.p99.map_or_else(String::new, |p99| format!("; 99 of 100 I/Os within {}", time(p99)));
    let of_transactions = match (plan.tps, plan.transaction_p99) {
        (Some(tps), Some(p99)) => {
            format!("; {} transactions a second, 99 of 100 within {}", figure(tps), time(p99))
        }
        (Some(tps), None) => format!("; {} transactions a second", figure(tps)),
        _ => String::new(),
    };
    format!(
        "{} ({}); {load}; no wait for a limit in {} of the time{p99}{of_transactions}. The recorded time is taken to repeat: burst \
         credits count as far as they come back in it",
        format_size(objective.size_bytes),
        size_words(plan.size_origin),
        share(objective.carried)
    )
}

/// Where the size comes from.
const fn size_words(origin: SizeOrigin) -> &'static str {
    match origin {
        SizeOrigin::Asked => "--size",
        SizeOrigin::Today => "today's volume",
        SizeOrigin::Profile => "the profile's data and redo log, with a fifth of the volume free",
    }
}

fn prices_words(plan: &SizingPlan<'_>) -> String {
    let prices = plan.prices();
    let mut words =
        vec![format!("{}, list prices on demand for 730 hours a month, without tax", plan.region)];
    let searched = prices.provenance().filter(|(kind, _)| KINDS.contains(kind));
    let mut dates: Vec<String> = searched.map(|(_, provenance)| provenance.date).collect();
    dates.sort_unstable();
    dates.dedup();
    words.push(format!("EBS of {}", dates.join(" and ")));
    if let Some(price) = plan.instance.as_ref().and_then(|instance| prices.instance(&instance.name)) {
        words.push(format!("instances of {}", price.as_of));
    }
    if let Some(managed) = prices.managed() {
        words.push(format!("RDS and Aurora of {}", managed.as_of()));
    }
    words.extend(plan.lists.iter().cloned());
    words.join("; ")
}
