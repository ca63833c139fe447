//! The search for a factor with which a figure of the model has its measured value.

/// How far the logarithm of the figure may be off.
const CLOSE: f64 = 0.002;
/// Runs of the model in one search, at most.
const TRIALS: u32 = 10;

/// The factor in `from..=to` at which `reached` is 0, where it falls with the factor: the logarithm of the model's figure by
/// the measured one. `known` are factors with their values. The nearer end where it is 0 nowhere.
///
/// The false position between two factors of opposite signs, as the Illinois rule weighs them: an end that stays counts half.
pub(crate) fn falling_root(
    from: f64,
    to: f64,
    known: &[(f64, f64)],
    mut reached: impl FnMut(f64) -> f64,
) -> (f64, f64) {
    let mut below =
        known.iter().copied().filter(|(_, value)| *value >= 0.0).max_by(|a, b| a.0.total_cmp(&b.0));
    let mut above =
        known.iter().copied().filter(|(_, value)| *value < 0.0).min_by(|a, b| a.0.total_cmp(&b.0));
    let mut trials = 0;
    let mut ends = [(from, &mut below), (to, &mut above)];
    for (factor, end) in &mut ends {
        if end.is_none() {
            trials += 1;
            **end = Some((*factor, reached(*factor)));
        }
    }
    let (Some(mut low), Some(mut high)) = (below, above) else { unreachable!("both ends were set") };
    if low.1 < 0.0 {
        return low;
    }
    if high.1 > 0.0 {
        return high;
    }
    let mut best = if low.1.abs() < high.1.abs() { low } else { high };
    let (mut low_weight, mut high_weight) = (low.1, high.1);
    while best.1.abs() > CLOSE && trials < TRIALS {
        let share = (low_weight / (low_weight - high_weight)).clamp(0.02, 0.98);
        let factor = (low.0.ln() + share * (high.0 / low.0).ln()).exp();
        let value = reached(factor);
        trials += 1;
        if value.abs() <= best.1.abs() {
            best = (factor, value);
        }
        if value >= 0.0 {
            low = (factor, value);
            (low_weight, high_weight) = (value, high_weight / 2.0);
        } else {
            high = (factor, value);
            (high_weight, low_weight) = (value, low_weight / 2.0);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_figure_is_met_in_a_few_trials() {
        for (root, power) in [(0.3, 1.0), (1.7, 0.4), (4.0, 3.0)] {
            let mut trials = 0;
            let (factor, value) = falling_root(0.2, 5.0, &[], |factor: f64| {
                trials += 1;
                (root / factor).ln() * power
            });
            assert!((factor / root - 1.0).abs() < 0.01 && value.abs() <= CLOSE, "{root}: {factor} {value}");
            assert!(trials <= 6, "{root}: {trials}");
        }
    }

    #[test]
    fn a_step_is_found_by_its_sides_and_what_is_met_nowhere_is_the_nearer_end() {
        let (factor, _) =
            falling_root(0.2, 5.0, &[(1.0, 0.3)], |factor| if factor < 2.0 { 0.3 } else { -0.3 });
        assert!((1.5..2.5).contains(&factor), "{factor}");
        assert_eq!(falling_root(0.2, 5.0, &[], |_| 0.5).0, 5.0);
        assert_eq!(falling_root(0.2, 5.0, &[], |_| -0.5).0, 0.2);
    }
}
