//! What there is today, for a terminal: what the record says of it, and else the model.

use std::fmt::Write as _;

use ebbtide_advisor::sizing::{LoadOrigin, RecordedLatency, RecordedPast, Today, change};
use ebbtide_catalog::NO_LIMITS;
use ebbtide_forecast::sizing::SizingPlan;
use ebbtide_text::{percent, seconds};

use super::words::{cost_words, instant, room_words, time};

/// Today's volume and instance.
pub(super) fn today(plan: &SizingPlan<'_>, today: &Today, out: &mut String) {
    let choice = &today.choice;
    let _ = writeln!(
        out,
        "\ntoday    {}  {}",
        change::short(&choice.volumes.spec),
        cost_words(choice.storage.as_ref())
    );
    if let Some(instance) = plan.instance.as_ref() {
        let price = plan.prices().instance(&instance.name);
        let price =
            price.map_or_else(|| "no price here".to_owned(), |price| format!("{} a month", price.month()));
        let limits = if instance.has_limits() { String::new() } else { format!("; {NO_LIMITS}") };
        let _ = writeln!(out, "         {}  {price}{limits}", instance.name);
    }
    let _ = writeln!(out, "         with the load as it is it {}; {}", verdict(today), p99_words(today));
    if let Some(credits) = credits(plan, today) {
        let _ = writeln!(out, "         {credits}");
    }
    let planned = match (today.meets_planned, choice.room) {
        (true, Some(room)) => format!("meets what is asked; it carries {}", room_words(plan, room)),
        _ => format!("does not meet what is asked{}", why_not(plan, today)),
    };
    let _ = writeln!(out, "         it {planned}");
}

/// How today's volume carried the load: by the record where it has the latency, or else by the model. What a record shows and what
/// the model expects of one volume do not stand side by side.
fn verdict(today: &Today) -> String {
    let throttled = today.past.as_ref().map_or(0.0, |past| past.throttled);
    match &today.latency {
        _ if throttled > 0.0 => format!("was throttled in {} of the time", percent(throttled)),
        Some(latency) if latency.slow_time() > 0.0 => {
            format!("was slow in {} of the time, with means below its limits", percent(latency.slow_time()))
        }
        Some(_) => "waited for no limit that the record shows".to_owned(),
        None => modelled(today),
    }
}

/// How the model expects it to carry the load.
fn modelled(today: &Today) -> String {
    let now = &today.now;
    if now.overloaded {
        let until = if now.lowest_credits.is_some() {
            "it carries the load only until its credits end"
        } else {
            "what waits for its limits grows with each repetition"
        };
        format!("is overloaded if it repeats: {until}")
    } else if now.waiting > 0.0 {
        let limited = now.limited_by().map_or_else(String::new, |limit| format!(" for {}", limit.words()));
        format!("waits{limited} in {} of the time, for up to {}", percent(now.waiting), time(now.longest))
    } else {
        "waits for no limit".to_owned()
    }
}

/// The burst credits of today's volume: those of the record where it has them, or when the model's would end. None where neither
/// says anything.
fn credits(plan: &SizingPlan<'_>, today: &Today) -> Option<String> {
    let recorded = today.past.as_ref().and_then(|past| past.credits);
    let zero = recorded.and_then(|credits| Some((credits, credits.first_zero_s?)));
    if let Some((credits, first_s)) = zero {
        let first = match (plan.source.origin, credits.zero_after_s) {
            (LoadOrigin::EbsMetrics, _) | (_, None) => format!("first at {}", instant(first_s)),
            (_, Some(after_s)) => format!("first after {}", seconds(after_s)),
        };
        let share = percent(credits.at_zero);
        return Some(format!("its burst credits were at zero in {share} of the time, {first}"));
    }
    let ends = seconds(today.now.credits_end?.as_secs_f64());
    Some(match recorded {
        Some(credits) => format!(
            "its burst credits were never below {}; if this load repeats, full ones end after {ends}",
            percent(credits.lowest)
        ),
        None => format!("if this load repeats, full burst credits end after {ends}"),
    })
}

/// The p99 of today's volume, and where it comes from.
fn p99_words(today: &Today) -> String {
    let p99 = time(today.latency(0.99));
    match today.latency.as_ref().map(RecordedLatency::longest_mean) {
        Some(Some(longest)) => {
            format!("p99 of an I/O {p99} by the record (means of up to {})", time(longest))
        }
        Some(None) => format!("p99 of an I/O {p99}"),
        // What waits grows with each repetition: a quantile of one pass says how long the record is.
        None if today.now.overloaded => "by the model the p99 of an I/O has no bound".to_owned(),
        None => format!("p99 of an I/O {p99} by the model"),
    }
}

/// Why today's volume does not meet what is asked, where that is known.
fn why_not(plan: &SizingPlan<'_>, today: &Today) -> String {
    let too_long = today.past.as_ref().is_some_and(|past| past.throttled > 1.0 - plan.objective.carried);
    let recorded = today.past.as_ref().filter(|_| too_long).and_then(RecordedPast::limited_by);
    match recorded.or(today.choice.limited_by) {
        Some(limit) => format!(", for its {}", limit.words()),
        None => String::new(),
    }
}
