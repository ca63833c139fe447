//! How often the statistics of the lab are right, on data whose truth is known.
//!
//! Every figure that `docs/decisions/statistics.md` gives is printed by these tests
//! (`cargo test -p ebbtide-analysis --test statistics -- --nocapture`). [`comparisons`] has many comparisons
//! in one run.

mod comparisons;
mod draws;

use draws::{Draws, SECONDS, percent};
use ebbtide_analysis::stats::{
    ALPHA, Interval, Prior, Sample, level_changes, mean_interval, ratio, smallest_effect, trend, warm_up,
};

/// How often the hierarchical percentile bootstrap (trials, then moving blocks of their seconds) of a mean
/// covers it; `expanded` takes Hesterberg's wider percentiles for few trials.
fn bootstrap(arm: &[Vec<f64>], draws: &mut Draws, expanded: bool) -> Interval {
    const BLOCK: usize = 8;
    let mut means: Vec<f64> = (0..400)
        .map(|_| {
            let trials = (0..arm.len()).map(|_| {
                let trial = &arm[draws.below(arm.len())];
                let blocks = (0..SECONDS / BLOCK).map(|_| {
                    let from = draws.below(SECONDS - BLOCK + 1);
                    trial[from..from + BLOCK].iter().sum::<f64>() / BLOCK as f64
                });
                blocks.sum::<f64>() / (SECONDS / BLOCK) as f64
            });
            trials.sum::<f64>() / arm.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    // Of 400 draws the expanded percentiles of three trials (below 1 in a million) are the ends.
    let cut = if expanded { 0 } else { 10 };
    Interval { mid: means[200], low: means[cut], high: means[399 - cut] }
}

#[test]
fn intervals_of_a_mean_hold_the_truth_as_often_as_they_claim() {
    let mut draws = Draws::new(1);
    for trials in [3, 5] {
        for between in [0.02, 0.05, 0.10] {
            let runs = 1000;
            let hits = (0..runs)
                .filter(|_| {
                    mean_interval(&draws.arm(trials, between), &Prior::NONE).unwrap().contains(1000.0)
                })
                .count();
            let crowded = (0..runs)
                .filter(|_| {
                    let arm = draws.crowded_arm(trials, between);
                    mean_interval(&arm, &Prior::NONE).unwrap().contains(1000.0)
                })
                .count();
            let rates = [hits, crowded].map(|count| percent(count, runs));
            println!(
                "mean, {trials} trials, {between} between: {:.1}%, in crowds {:.1}%",
                rates[0], rates[1]
            );
            assert!(rates.iter().all(|rate| *rate >= 90.0), "{trials} trials, {between} between: {rates:?}");
        }
    }
}

#[test]
fn a_percentile_bootstrap_of_three_trials_fails_that_test() {
    let mut draws = Draws::new(2);
    // Where trials differ more than their seconds let expect, even the widest percentiles end at the
    // smallest and the largest trial, and between these is the truth in 3 of 4 runs.
    for (expanded, inside, r) in [(false, 0.15, 0.6), (true, 0.05, 0.3)] {
        let runs = 400;
        let (mut bootstrapped, mut ours) = (0, 0);
        for _ in 0..runs {
            let arm: Vec<Vec<f64>> = (0..3).map(|_| draws.trial(0.10, inside, r)).collect();
            bootstrapped += usize::from(bootstrap(&arm, &mut draws, expanded).contains(1000.0));
            let samples: Vec<_> = arm.iter().filter_map(|trial| Sample::of_mean(trial)).collect();
            ours += usize::from(mean_interval(&samples, &Prior::NONE).unwrap().contains(1000.0));
        }
        println!(
            "bootstrap, 3 trials, expanded {expanded}: {:.1}%, ours {:.1}%",
            percent(bootstrapped, runs),
            percent(ours, runs)
        );
        assert!(percent(bootstrapped, runs) < 90.0, "the bootstrap would do, expanded: {expanded}");
        assert!(percent(ours, runs) >= 90.0);
    }
}

/// Ratio of the first arm to the second, with what all arms show about the spread.
fn tested(arms: &[Vec<Sample>]) -> ebbtide_analysis::stats::Tested {
    ratio(&arms[0], &arms[1], &Prior::learn(arms)).expect("arms have several trials")
}

#[test]
fn intervals_of_a_ratio_hold_the_truth_as_often_as_they_claim() {
    let mut draws = Draws::new(3);
    // The spread of each arm: alike, alike, two arms unlike, half of the arms quiet, one that sticks out.
    let kinds: [(&str, Vec<f64>); 5] = [
        ("2 alike", vec![0.03; 2]),
        ("20 alike", vec![0.03; 20]),
        ("2 unlike", vec![0.003, 0.05]),
        ("half quiet", [0.05, 0.003].repeat(6)),
        ("one sticks out", [vec![0.05], vec![0.005; 11]].concat()),
    ];
    for (kind, spreads) in &kinds {
        for trials in [3, 5] {
            let runs = 500;
            let hits = (0..runs)
                .filter(|_| {
                    let arms: Vec<_> = spreads
                        .iter()
                        .map(|spread| {
                            let logs = (0..trials).map(|_| spread * draws.normal());
                            logs.map(|log| Sample { log, within: 0.0 }).collect::<Vec<_>>()
                        })
                        .collect();
                    tested(&arms).interval.contains(1.0)
                })
                .count();
            println!("ratio, {kind}, {trials} trials: {:.1}%", percent(hits, runs));
            assert!(percent(hits, runs) >= 90.0, "{kind}, {trials} trials");
        }
    }
}

#[test]
fn equal_arms_are_rarely_called_different() {
    let mut draws = Draws::new(4);
    for trials in [2, 3, 5] {
        let runs = 600;
        let alarms = (0..runs)
            .filter(|_| {
                let arms = [draws.arm(trials, 0.03), draws.arm(trials, 0.03)];
                tested(&arms).p_value < ALPHA
            })
            .count();
        let crowded = (0..runs)
            .filter(|_| {
                let arms = [draws.crowded_arm(trials, 0.03), draws.crowded_arm(trials, 0.03)];
                tested(&arms).p_value < ALPHA
            })
            .count();
        let rates = [alarms, crowded].map(|count| percent(count, runs));
        println!("A/A, {trials} trials: {:.1}% called different, in crowds {:.1}%", rates[0], rates[1]);
        assert!(rates.iter().all(|rate| *rate <= 7.0), "{trials} trials: {rates:?}");
    }
}

#[test]
fn the_stated_smallest_effect_is_seen_four_times_of_five() {
    let mut draws = Draws::new(6);
    for (arms, alpha) in [(2_usize, ALPHA), (20, ALPHA / 19.0)] {
        for trials in [3, 5] {
            let spread = 0.03;
            let mut stated: Vec<f64> = (0..200)
                .map(|_| {
                    let all = equal_arms(&mut draws, arms, trials, spread);
                    smallest_effect(&all[0], &all[1], &Prior::learn(&all), alpha).unwrap()
                })
                .collect();
            stated.sort_by(f64::total_cmp);
            let effect = stated[100];
            let runs = 600;
            let seen = (0..runs)
                .filter(|_| {
                    let mut all = equal_arms(&mut draws, arms, trials, spread);
                    all[0].iter_mut().for_each(|sample| sample.log += effect.ln_1p());
                    tested(&all).p_value < alpha
                })
                .count();
            println!(
                "{arms} arms, {trials} trials: {:.1}% is seen in {:.1}%",
                100.0 * effect,
                percent(seen, runs)
            );
            assert!((70.0..=92.0).contains(&percent(seen, runs)), "{arms} arms, {trials} trials");
        }
    }
}

fn equal_arms(draws: &mut Draws, arms: usize, trials: usize, spread: f64) -> Vec<Vec<Sample>> {
    (0..arms)
        .map(|_| (0..trials).map(|_| Sample { log: spread * draws.normal(), within: 0.0 }).collect())
        .collect()
}

/// Series that have one level, as servers make them.
fn steady_series(draws: &mut Draws, kind: usize) -> (String, Vec<f64>) {
    let kinds: [(f64, f64); 6] =
        [(0.05, 0.0), (0.15, 0.0), (0.30, 0.0), (0.15, 0.3), (0.15, 0.6), (0.30, 0.8)];
    if kind == kinds.len() {
        return ("crowds".to_owned(), draws.crowds(0.0));
    }
    let waves: [(f64, f64); 4] = [(7.0, 0.4), (12.0, 0.6), (20.0, 0.4), (30.0, 0.3)];
    if let Some((inside, r)) = kinds.get(kind) {
        (format!("noise of {inside}, correlation {r}"), draws.trial(0.0, *inside, *r))
    } else {
        let (period, depth) = waves[kind - kinds.len() - 1];
        (format!("waves of {period} s, depth {depth}"), draws.waves(SECONDS, period, depth, 0.05))
    }
}

const KINDS: usize = 11;

#[test]
fn neither_noise_nor_flush_waves_are_called_changes_or_drifts() {
    let mut draws = Draws::new(7);
    for kind in 0..KINDS {
        let runs = 400;
        let (mut changes, mut drifts, mut cuts) = (0, 0, 0);
        let mut name = String::new();
        for _ in 0..runs {
            let series;
            (name, series) = steady_series(&mut draws, kind);
            changes += usize::from(!level_changes(&series).is_empty());
            drifts += usize::from(trend(&series).drifts);
            cuts += usize::from(warm_up(&series) > 0);
        }
        let rates = [changes, drifts, cuts].map(|count| percent(count, runs));
        println!("{name}: changes {:.1}%, drifts {:.1}%, warm-up cut {:.1}%", rates[0], rates[1], rates[2]);
        assert!(rates[0] <= 5.0 && rates[1] <= 7.0, "{name}: {rates:?}");
    }
}

#[test]
fn the_end_of_credits_is_found_and_a_ramp_is_a_drift() {
    let mut draws = Draws::new(8);
    let runs = 300;
    let (mut found, mut ramps) = (0, 0);
    for _ in 0..runs {
        let at = 15 + draws.below(30);
        let mut cliff = draws.trial(0.05, 0.15, 0.5);
        cliff[at..].iter_mut().for_each(|value| *value *= 0.4);
        let changes = level_changes(&cliff);
        found += usize::from(changes.iter().any(|change| change.abs_diff(at) <= 2));
        let ramp = draws.trial(0.05, 0.10, 0.3).into_iter().enumerate();
        let ramp: Vec<f64> = ramp.map(|(i, value)| value * (1.0 + 0.4 * i as f64 / SECONDS as f64)).collect();
        ramps += usize::from(trend(&ramp).drifts);
    }
    println!(
        "cliff found {:.1}%, ramp of 40% called a drift {:.1}%",
        percent(found, runs),
        percent(ramps, runs)
    );
    assert!(percent(found, runs) >= 95.0);
    assert!(percent(ramps, runs) >= 95.0);
}

#[test]
fn a_warm_up_is_cut_where_it_ends() {
    let mut draws = Draws::new(9);
    let runs = 300;
    let mut cuts: Vec<usize> = (0..runs)
        .map(|_| {
            let mut series = draws.trial(0.05, 0.10, 0.3);
            series.iter_mut().take(12).enumerate().for_each(|(i, v)| *v *= 0.3 + 0.7 * i as f64 / 12.0);
            warm_up(&series)
        })
        .collect();
    cuts.sort_unstable();
    let missed = cuts.iter().filter(|cut| **cut < 5).count();
    let generous = cuts.iter().filter(|cut| **cut > 20).count();
    println!(
        "warm-up of 12 s: median cut {} s, missed {:.1}%, cut over 20 s {:.1}%",
        cuts[runs / 2],
        percent(missed, runs),
        percent(generous, runs)
    );
    assert!(
        (10..=15).contains(&cuts[runs / 2]) && percent(missed, runs) <= 5.0 && percent(generous, runs) <= 5.0
    );
}
