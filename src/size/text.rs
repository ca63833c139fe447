//! The answer for a terminal.

use std::fmt::Write as _;
use std::path::Path;

use ebbtide_advisor::sizing::change::{self, ChangePlan};
use ebbtide_advisor::sizing::managed::{CONDITIONS, Platform, list_url};
use ebbtide_advisor::sizing::{ARRAY_OPERATION, Choice, KINDS, QueueRule, Safer, Safety, Spread, Throttled};
use ebbtide_catalog::{MonthlyCost, Usd};
use ebbtide_forecast::sizing::{Answer, SizeOrigin, SizingPlan};
use ebbtide_text::{figure, latency, percent, seconds};
use ebbtide_volume::{MIB, format_size};

use super::counted::{mix_words, sizes_words};
use super::today;
use super::words::{cost_words, instances_skipped, instant, room_words, time};
use crate::text::TextTable;

/// The whole answer.
pub(super) fn answer(plan: &SizingPlan<'_>, answer: &Answer<'_>, html: Option<&Path>) -> String {
    let mut out = String::new();
    load(plan, &mut out);
    checks(plan, &mut out);
    asked(plan, &mut out);
    if let Some(today) = &answer.sizing.today {
        today::today(plan, today, &mut out);
    }
    found(plan, answer, &mut out);
    if !answer.sizing.choices.is_empty() {
        choices(plan, answer, &mut out);
        instances(answer, &mut out);
        safer(plan, answer, &mut out);
    }
    if let Some(rule) = &answer.queue_rule {
        let _ = writeln!(out, "\n{}", rule_words(rule));
    }
    if let Some(change) = answer.change(plan) {
        changes(&change, &mut out);
    }
    if !answer.platforms.is_empty() {
        platforms(&answer.platforms, &plan.region, &mut out);
    }
    if let Some(path) = html {
        let _ = writeln!(out, "\ncharts: {}", path.display());
    }
    out
}

fn load(plan: &SizingPlan<'_>, out: &mut String) {
    if plan.source.server.is_some() {
        let _ = writeln!(out, "seed {}", plan.seed);
    }
    let intervals = &plan.source.load.intervals;
    let longest = plan.longest_interval();
    let _ = writeln!(
        out,
        "load     {}; {} in {} of {} at most",
        plan.source.what,
        seconds(plan.now.seconds()),
        crate::text::count(intervals.len(), "interval"),
        seconds(longest)
    );
    let spread = |name: &str, spread: Option<Spread>, unit: f64| {
        spread.map(|of| {
            let value = |value: f64| figure(value / unit);
            format!(
                "         {name:<6} mean {}, p50 {}, p95 {}, p99 {}, p99.9 {}, highest {}\n",
                value(of.mean),
                value(of.p50),
                value(of.p95),
                value(of.p99),
                value(of.p999),
                value(of.max)
            )
        })
    };
    out.extend(spread("IOPS", plan.now.operations(plan.unit()), 1.0));
    out.extend(spread("MiB/s", plan.now.throughput(), MIB as f64));
    let _ = writeln!(out, "         {}", sizes_words(plan));
    if let Some(mix) = mix_words(plan) {
        let _ = writeln!(out, "         {mix}");
    }
    for note in &plan.source.notes {
        let _ = writeln!(out, "         {note}");
    }
    if longest >= 60.0 {
        let _ = writeln!(
            out,
            "         means of {} hide shorter peaks: the headroom is for them",
            seconds(longest)
        );
    }
}

fn checks(plan: &SizingPlan<'_>, out: &mut String) {
    let inputs = &plan.inputs;
    match inputs.little {
        Some(little) => {
            let verdict = if little.agrees() {
                ""
            } else {
                "  INCONSISTENT: the answer is no better than these figures"
            };
            let longest = plan.longest_interval();
            let windows = if little.window_s > longest * 1.5 {
                format!(", in windows of up to {}", seconds(little.window_s))
            } else {
                String::new()
            };
            let _ = writeln!(
                out,
                "checks   Little's law, queue = IOPS x latency: within 20% in {} of the time{windows} (mean queue {}, expected {}){verdict}",
                percent(little.agrees_pct / 100.0),
                figure(little.queue),
                figure(little.expected)
            );
        }
        None => {
            let _ =
                writeln!(out, "checks   queue or latency are not in the figures: Little's law says nothing");
        }
    }
    if inputs.gaps > 0 {
        let _ = writeln!(
            out,
            "         {} without figures, {} together: what happened in them is not known",
            crate::text::count(inputs.gaps, "gap"),
            seconds(inputs.gaps_s)
        );
    }
    for one in &inputs.inconsistent {
        let _ = writeln!(
            out,
            "         INCONSISTENT at {}, and in {} of the time: {}.\n         The answer is no better than these figures",
            instant(one.at_s),
            percent(one.time_pct / 100.0),
            one.what
        );
    }
    if let Some(throttled) = &inputs.throttled {
        self::throttled(throttled, out);
    }
}

fn throttled(throttled: &Throttled, out: &mut String) {
    let _ = writeln!(
        out,
        "         THROTTLED in {} of the time: {}",
        percent(throttled.time_pct / 100.0),
        throttled.because.join("; ")
    );
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
            "it is more than the {} IOPS that were seen in it. How much more, the record\n         does not show: clients that wait for \
             an answer send less",
            figure(throttled.seen_iops)
        ),
    };
    let _ = writeln!(
        out,
        "         a throttled past understates the need: {bound}.\n         What follows is the least; raise the limit, record again, \
         size again"
    );
}

fn asked(plan: &SizingPlan<'_>, out: &mut String) {
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
    let _ = writeln!(
        out,
        "asked    {} ({}); {load}; no wait for a limit in {} of the time{p99}{of_transactions}",
        format_size(objective.size_bytes),
        size_words(plan.size_origin),
        share(objective.carried)
    );
    let _ = writeln!(
        out,
        "         the recorded time is taken to repeat: burst credits count as far as they come back in it",
    );
    let _ = writeln!(out, "prices   {}", prices_words(plan));
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
    let mut dates: Vec<String> = searched.map(|(_, of)| of.date).collect();
    dates.sort_unstable();
    dates.dedup();
    words.push(format!("EBS of {}", dates.join(" and ")));
    if let Some(price) = plan.instance.as_ref().and_then(|one| prices.instance(&one.name)) {
        words.push(format!("instances of {}", price.as_of));
    }
    if let Some(managed) = prices.managed() {
        words.push(format!("RDS and Aurora of {}", managed.as_of()));
    }
    words.extend(plan.lists.iter().cloned());
    words.join("; ")
}

fn found(plan: &SizingPlan<'_>, answer: &Answer<'_>, out: &mut String) {
    let sizing = &answer.sizing;
    let Some(best) = sizing.choices.first() else {
        let why = if plan.source.server.is_some() { ", or none passes the model's check" } else { "" };
        let _ = writeln!(
            out,
            "\nNothing in the catalogue meets what is asked{why}. Ask for less: --carry 99%, a longer --p99, less --headroom; or allow \
             more volumes with --raid0."
        );
        return;
    };
    let _ = writeln!(
        out,
        "\nanswer   {}  {}",
        change::short(&best.volumes.spec),
        cost_words(best.storage.as_ref())
    );
    if let Some(instance) = sizing.instance {
        let price =
            best.instance_usd.map_or_else(|| "no price here".to_owned(), |usd| format!("{usd} a month"));
        let together = best.usd().filter(|_| best.instance_usd.is_some());
        let together = together.map_or_else(String::new, |usd| format!(", together {usd}"));
        let _ = writeln!(out, "         {}  {price}{together}", instance.name);
    } else {
        out.push_str("         no instance was named (--instance): its EBS limits are not looked at\n");
    }
    if let Some(skipped) = instances_skipped(plan) {
        let _ = writeln!(out, "         {skipped}");
    }
    if let Some(difference) = difference(answer) {
        let _ = writeln!(out, "         {difference}");
    }
    if let Some(room) = best.room {
        let _ = writeln!(out, "         carries {}", room_words(plan, room));
    }
    if let Some(today) = &sizing.today {
        let (before, after) = (today.latency(0.99), best.carried.latency(0.99));
        if after.0 as f64 > SLOWER * before.0 as f64 {
            let _ = writeln!(
                out,
                "         its p99 of an I/O is {}, today's {}: --p99 {}us keeps today's",
                time(after),
                time(before),
                before.as_us() + 1
            );
        }
    }
    if let Some(with) = &sizing.counting_allowance {
        let _ = writeln!(
            out,
            "         an idle gp3 gives twice its rate for about a second. That was measured, AWS does not promise it, and the answer does\n         \
             not count on it: with it {} would do, for {}",
            change::short(&with.resolved.spec),
            with.usd
        );
    }
    array(answer, out);
}

/// The cheaper array, with what it costs beside money; and that the answer is one where no single volume will do.
fn array(answer: &Answer<'_>, out: &mut String) {
    if let Some(array) = answer.sizing.cheaper_array() {
        let _ = writeln!(
            out,
            "\ncheaper  {}  {}\n         {} a month less, as {} volumes in RAID 0",
            change::short(&array.choice.volumes.spec),
            cost_words(array.choice.storage.as_ref()),
            array.saves,
            array.members
        );
        costs_of_array(array.members, out);
    } else if let Some(best) = answer.sizing.choices.first()
        && best.volumes.spec.members() > 1
    {
        let members = best.volumes.spec.members();
        let single = answer.sizing.choices.iter().any(|one| one.volumes.spec.members() == 1);
        let why = if single { "arrays were asked for" } else { "no single volume meets what is asked" };
        let _ = writeln!(out, "         {why}: these are {members} volumes in RAID 0");
        costs_of_array(members, out);
    }
}

fn costs_of_array(members: u16, out: &mut String) {
    let _ = writeln!(
        out,
        "         risk: the loss of any volume loses all data, {members} times as likely as with one volume"
    );
    for operation in ARRAY_OPERATION {
        let _ = writeln!(out, "         operation: {operation}");
    }
}

/// A p99 that is so many times today's is pointed out.
const SLOWER: f64 = 1.3;

/// What the answer costs more or less than today's.
pub(super) fn difference(answer: &Answer<'_>) -> Option<String> {
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

fn choices(plan: &SizingPlan<'_>, answer: &Answer<'_>, out: &mut String) {
    let checked = !answer.verified.is_empty();
    let mut heads = vec!["VOLUMES", "A MONTH", "WAITS", "P99 OF I/O", "CARRIES", "LIMITED BY"];
    if checked {
        heads.extend(["MODEL: TPS", "AT LEAST", "P99", "AT MOST", "MEETS"]);
    }
    let mut table = TextTable::new(&heads);
    for (place, choice) in answer.sizing.choices.iter().enumerate() {
        let mut cells = vec![
            change::short(&choice.volumes.spec).to_string(),
            choice.storage.as_ref().map_or_else(|| "-".into(), MonthlyCost::short),
            percent(choice.carried.waiting),
            time(choice.carried.latency(0.99)),
            choice.room.map_or_else(
                || "-".into(),
                |room| format!("{}x{}", figure(room * plan.factor()), burst_mark(plan, choice.needs_burst)),
            ),
            choice.limited_by.map_or_else(|| "-".into(), |limit| limit.words().to_owned()),
        ];
        if let Some(check) = answer.verified.get(place) {
            cells.extend([
                figure(check.tps),
                figure(check.tps_low),
                check.p99.map_or_else(|| "-".into(), time),
                check.p99_high.map_or_else(|| "-".into(), time),
                if check.meets { "yes".into() } else { format!("no: {}", check.limiter) },
            ]);
        }
        table.row(cells);
    }
    let _ = writeln!(out, "\n{}", table.text());
    let sizing = &answer.sizing;
    let needs = sizing.choices.iter().any(|choice| choice.needs_burst)
        || sizing.safer.iter().any(|row| row.needs_burst);
    if needs && plan.inputs.throttled.is_some() {
        out.push_str(
            "*  only while burst credits last. The past was throttled: the load is more than what was recorded, and uses them up sooner\n",
        );
    }
}

/// Marks a row that depends on burst credits, where the past was throttled: see the line below the table.
fn burst_mark(plan: &SizingPlan<'_>, needs_burst: bool) -> &'static str {
    if needs_burst && plan.inputs.throttled.is_some() { "*" } else { "" }
}

fn instances(answer: &Answer<'_>, out: &mut String) {
    if answer.sizing.instances.is_empty() {
        return;
    }
    let mut table = TextTable::new(&["OTHER INSTANCES", "A MONTH", "VCPU", "GIB", "IOPS", "MB/S"]);
    for one in &answer.sizing.instances {
        let instance = one.instance;
        let today = if one.is_today { " (today)" } else { "" };
        let range = |low: u64, high: u64| match (low, high) {
            (0, 0) => "-".to_owned(),
            (low, high) if low == high => low.to_string(),
            (low, high) => format!("{low} to {high}"),
        };
        table.row([
            format!("{}{today}", instance.name),
            one.price.month().to_string(),
            instance.vcpus.to_string(),
            instance.memory_gib.to_string(),
            range(instance.baseline_iops, instance.maximum_iops),
            range(instance.baseline_mbps / 8, instance.maximum_mbps / 8),
        ]);
    }
    let _ = writeln!(out, "\n{}", table.text());
}

fn safer(plan: &SizingPlan<'_>, answer: &Answer<'_>, out: &mut String) {
    let best = answer.sizing.choices.first().and_then(|best| best.storage.as_ref());
    let mut table = TextTable::new(&["SAFETY", "VOLUMES", "A MONTH", "MORE"]);
    for one in &answer.sizing.safer {
        let (volumes, usd, more) = match &one.candidate {
            Some(candidate) => {
                let other =
                    one.instance.filter(|one| answer.sizing.instance.is_some_and(|own| own.name != one.name));
                let mark = burst_mark(plan, one.needs_burst);
                let volumes = format!("{}{mark}", change::short(&candidate.resolved.spec));
                match other {
                    Some(instance) => (
                        format!("{volumes} on {}", instance.name),
                        candidate.usd.to_string(),
                        "and the instance".into(),
                    ),
                    None => {
                        let more = best.map_or_else(String::new, |best| signed(candidate.usd, best.usd));
                        (volumes, candidate.usd.to_string(), more)
                    }
                }
            }
            None => ("nothing meets it".into(), "-".into(), "-".into()),
        };
        table.row([safety_words(one), volumes, usd, more]);
    }
    let _ = writeln!(out, "\n{}", table.text());
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
pub(super) fn rule_words(rule: &QueueRule) -> String {
    let why = rule.latency_ms.map_or_else(String::new, |ms| {
        format!(
            " An operation takes {} here: by Little's law the queue of {} is {} IOPS.",
            latency(ms * 1e3),
            figure(rule.queue),
            figure(rule.queue / (ms / 1e3))
        )
    });
    format!(
        "queue    The AWS whitepaper's rule, 200 IOPS for each request in the queue, gives {} for the mean queue of {}; AWS's newer one, \
         1,000,\n         gives {}. The load had {}. Either rule takes one latency for all volumes (5 ms, 1 ms), and a queue that a limit \
         made\n         for a need.{why}",
        figure(rule.whitepaper_iops),
        figure(rule.queue),
        figure(rule.newer_iops),
        figure(rule.seen_iops)
    )
}

fn changes(plan: &ChangePlan, out: &mut String) {
    out.push('\n');
    for (name, lines) in [("AWS CLI", &plan.cli), ("Terraform", &plan.terraform)] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{name}:");
        for line in lines {
            let _ = writeln!(out, "  {line}");
        }
    }
    for note in &plan.notes {
        let _ = writeln!(out, "note: {note}");
    }
}

fn platforms(all: &[Platform], region: &str, out: &mut String) {
    let mut table = TextTable::new(&[
        "THE SAME LOAD ON",
        "WITH",
        "STORAGE",
        "I/O",
        "INSTANCE",
        "A MONTH",
        "WITH STANDBY",
    ]);
    for one in all {
        // Without anything missing there is nothing to price: no instance, or no way to meet the objective.
        let unknown = if one.missing.is_empty() { "-" } else { "?" };
        let usd = |usd: Option<Usd>| usd.map_or_else(|| unknown.to_owned(), |usd| usd.to_string());
        let sum = |usd: Option<[Usd; 2]>| usd.map_or_else(|| unknown.to_owned(), range);
        table.row([
            one.name.clone(),
            one.what.clone(),
            usd(one.storage_usd),
            one.io_usd.map_or_else(|| no_io(one).to_owned(), range),
            usd(one.instance_usd),
            sum(one.total_usd),
            sum(one.with_standby_usd),
        ]);
    }
    let _ = writeln!(out, "\n{}\n", table.text());
    unpriced(all, region, out);
    for one in all {
        for note in &one.notes {
            let _ = writeln!(out, "{}: {note}", one.name);
        }
    }
    out.push_str("\nConditions:\n");
    for condition in CONDITIONS {
        let _ = writeln!(out, "- {}: {}.", condition.topic, condition.says);
    }
}

/// What stands for I/O without a price: `?` where it is charged.
fn no_io(platform: &Platform) -> &'static str {
    if platform.missing.iter().any(|missing| missing.what.starts_with("I/O requests")) { "?" } else { "-" }
}

/// What `?` stands for, and how to supply it: a sentence for each of AWS's lists.
fn unpriced(all: &[Platform], region: &str, out: &mut String) {
    if all.len() == 1 {
        let _ = writeln!(
            out,
            "RDS and Aurora: the catalogue has no price of them in {region}.\n   Download AWS's list AmazonRDS and give it with --prices FILE: {}",
            list_url("AmazonRDS", region)
        );
    }
    for list in ["AmazonEC2", "AmazonRDS"] {
        let mut lacking: Vec<&str> = Vec::new();
        for missing in all.iter().flat_map(|one| &one.missing).filter(|missing| missing.list == list) {
            if !lacking.contains(&missing.what.as_str()) {
                lacking.push(&missing.what);
            }
        }
        if !lacking.is_empty() {
            let _ = writeln!(
                out,
                "?: the catalogue has no price in {region} of {}.\n   Download AWS's list {list} and give it with --prices FILE: {}",
                lacking.join("; "),
                list_url(list, region)
            );
        }
    }
}

/// A share near all of something, with its decimals: `99.9%`.
fn share(share: f64) -> String {
    let digits = ebbtide_text::fixed(share * 100.0, 3);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}%")
}

/// An amount, from the least to the most.
pub(super) fn range([least, most]: [Usd; 2]) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}
