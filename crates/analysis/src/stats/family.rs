//! Many comparisons in one run.

/// Holm's adjusted p-values, in the order given: called different where the adjusted one is at most 5%,
/// the probability of even one false call among all of them is at most 5%, however they depend on each
/// other. None is left out of the count.
#[must_use]
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        p_values.iter().enumerate().filter_map(|(index, p)| p.map(|p| (index, p))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![None; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, (index, p)) in order.iter().enumerate() {
        highest = highest.max(p * (order.len() - rank) as f64).min(1.0);
        adjusted[*index] = Some(highest);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_p_pays_for_all_and_order_is_kept() {
        let adjusted = holm(&[Some(0.01), None, Some(0.04), Some(0.03)]);
        let expected = [Some(0.03), None, Some(0.06), Some(0.06)];
        for (got, want) in adjusted.iter().zip(expected) {
            assert_eq!(got.is_some(), want.is_some());
            assert!((got.unwrap_or(0.0) - want.unwrap_or(0.0)).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[Some(0.9), Some(0.8)]), [Some(1.0), Some(1.0)]);
    }
}
