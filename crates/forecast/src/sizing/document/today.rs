//! What there is today: what the record says of it, and else the model.

use crate::sizing::SizingPlan;
use ebbtide_advisor::sizing::{RecordedLatency, RecordedPast, Today, WithoutCredits, change};
use ebbtide_catalog::NO_LIMITS;
use ebbtide_report::Fact;
use ebbtide_text::{percent, seconds};

use super::times;
use super::words::{cost_words, room_words, time};

/// Today's volume and instance.
pub(super) fn facts(plan: &SizingPlan<'_>, today: &Today) -> Vec<Fact> {
    let choice = &today.choice;
    let mut facts = vec![
        Fact::new("Volumes", change::short(&choice.volumes.spec).to_string()),
        Fact::new("Storage", cost_words(choice.storage.as_ref())),
    ];
    if let Some(instance) = plan.instance.as_ref() {
        let price = plan.prices().instance(&instance.name);
        let price =
            price.map_or_else(|| "no price here".to_owned(), |price| format!("{} a month", price.month()));
        let limits = if instance.has_limits() { String::new() } else { format!("; {NO_LIMITS}") };
        facts.push(Fact::new("Instance", format!("{}  {price}{limits}", instance.name)));
    }
    facts.push(Fact::new("The load as it is", format!("it {}; {}", verdict(today), p99_words(today))));
    facts.extend(credits(plan, today).map(|credits| Fact::new("Burst credits", credits)));
    facts.push(Fact::new("What is asked", format!("it {}", planned(plan, today))));
    facts
}

/// Today's volume in one sentence.
pub(super) fn sentence(plan: &SizingPlan<'_>, today: &Today) -> String {
    let credits = credits(plan, today).map_or_else(String::new, |credits| format!("; {credits}"));
    let planned = if today.meets_planned { String::new() } else { format!("; it {}", planned(plan, today)) };
    format!("Today's {} {}{credits}{planned}.", change::short(&today.choice.volumes.spec), verdict(today))
}

/// Whether it does what is asked.
fn planned(plan: &SizingPlan<'_>, today: &Today) -> String {
    match (today.meets_planned, today.choice.room) {
        (true, Some(room)) => format!("meets what is asked; it carries {}", room_words(plan, room)),
        _ => format!("does not meet what is asked{}", why_not(plan, today)),
    }
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
    if let Some(without) = recorded.and_then(|_| WithoutCredits::of_load(&plan.source.load)) {
        return Some(format!("its burst credits were at 0 {}", times::without_credits(plan, &without)));
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
