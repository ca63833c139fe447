//! How long a write takes that is answered when some of several copies have it.

use crate::{
    ServiceError,
    data::Quorum,
    service::{Points, curve},
};

/// Percentiles at which a derived curve has its points.
const PERCENTS: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99, 99.999];
/// Halvings of an interval of time: to far below a nanosecond.
const HALVINGS: usize = 60;
/// Evenly spaced quantiles that stand for the other write.
const OTHERS: u32 = 500;

impl Quorum {
    /// The curve of the write: that of the `needed`th of all copies, whose times are independent.
    pub(crate) fn points(&self) -> Result<Points, ServiceError> {
        self.check()?;
        let answered = Answered(self);
        let (fastest, slowest) = (answered.extreme(first), answered.extreme(last));
        let quorum = |percent: f64| invert(|us| answered.share(us), percent / 100.0, fastest, slowest);
        if !self.beyond_another {
            return Ok(points(0.0, fastest, slowest, quorum));
        }
        let others: Vec<f64> =
            (0..OTHERS).map(|n| quorum((f64::from(n) + 0.5) / f64::from(OTHERS) * 100.0)).collect();
        let share =
            |us: f64| others.iter().map(|other| answered.share(other + us)).sum::<f64>() / f64::from(OTHERS);
        // Of two writes that are sent at the same time, each is the slower one in half of the cases.
        Ok(points(50.0, 0.0, slowest - fastest, |percent| {
            invert(share, percent / 100.0, 0.0, slowest - fastest)
        }))
    }

    /// Whether there are enough copies, and each zone has a curve.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let copies = self.zones.len() * usize::from(self.copies_per_zone);
        if self.needed == 0 || usize::from(self.needed) > copies {
            return Err(ServiceError::Quorum { needed: self.needed, copies });
        }
        self.zones.iter().try_for_each(|zone| curve(zone).map(drop).map_err(ServiceError::Zone))
    }
}

fn first(zone: &Points) -> f64 {
    zone.first().map_or(0.0, |point| point.1)
}

fn last(zone: &Points) -> f64 {
    zone.last().map_or(0.0, |point| point.1)
}

/// The copies that have answered by a time.
struct Answered<'a>(&'a Quorum);

impl Answered<'_> {
    /// The `needed`th of all copies, each at the end of its curve that `end` gives.
    fn extreme(&self, end: fn(&Points) -> f64) -> f64 {
        let copies = usize::from(self.0.copies_per_zone);
        let mut all: Vec<f64> =
            self.0.zones.iter().flat_map(|zone| std::iter::repeat_n(end(zone), copies)).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[usize::from(self.0.needed) - 1]
    }

    /// The probability that at least `needed` copies have answered after so many microseconds.
    fn share(&self, us: f64) -> f64 {
        let copies = self.0.zones.len() * usize::from(self.0.copies_per_zone);
        let mut exactly = vec![0.0; copies + 1];
        exactly[0] = 1.0;
        for zone in &self.0.zones {
            let answered = reached(zone, us);
            for _ in 0..self.0.copies_per_zone {
                for number in (1..=copies).rev() {
                    exactly[number] = exactly[number - 1] * answered + exactly[number] * (1.0 - answered);
                }
                exactly[0] *= 1.0 - answered;
            }
        }
        exactly[usize::from(self.0.needed)..].iter().sum()
    }
}

/// The share of a curve that is no longer than `us`.
fn reached(zone: &Points, us: f64) -> f64 {
    let above = zone.partition_point(|point| point.1 <= us);
    match (above.checked_sub(1).map(|below| zone[below]), zone.get(above)) {
        (None, _) => 0.0,
        (Some(_), None) => 1.0,
        (Some((low, from)), Some(&(high, to))) => (low + (high - low) * (us - from) / (to - from)) / 100.0,
    }
}

/// The first time at which a rising share reaches a value.
fn invert(share: impl Fn(f64) -> f64, value: f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if share(middle) < value { low = middle } else { high = middle }
    }
    high
}

/// A curve that stays at `fastest` up to a percentage.
fn points(flat: f64, fastest: f64, slowest: f64, at: impl Fn(f64) -> f64) -> Points {
    let mut points = vec![(0.0, fastest)];
    if flat > 0.0 {
        points.push((flat, fastest));
    }
    points.extend(PERCENTS.iter().filter(|percent| **percent > flat).map(|&percent| (percent, at(percent))));
    points.push((100.0, slowest));
    points
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{Nanos, QuantileCurve, QuantileError};
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::CurveError;

    const SEED: u64 = 4;
    const DRAWS: usize = 200_000;

    fn aurora(beyond_another: bool) -> Quorum {
        let zone = |us: f64| vec![(0.0, us), (50.0, us * 1.5), (99.0, us * 5.0), (100.0, us * 100.0)];
        Quorum {
            zones: vec![zone(300.0), zone(700.0), zone(900.0)],
            copies_per_zone: 2,
            needed: 4,
            beyond_another,
        }
    }

    /// The fourth of six draws, sorted over many of them.
    fn fourth_of_six(quorum: &Quorum, seed: u64) -> Vec<Nanos> {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let zones: Vec<QuantileCurve> = quorum.zones.iter().map(|zone| curve(zone).unwrap()).collect();
        let draw = |_| {
            let mut six: Vec<Nanos> = (0..6).map(|copy| zones[copy / 2].draw(&mut rng)).collect();
            six.sort_unstable();
            six[3]
        };
        (0..DRAWS).map(draw).collect()
    }

    fn compare(derived: &QuantileCurve, mut drawn: Vec<Nanos>) {
        drawn.sort_unstable();
        for ppm in [10_000, 100_000, 400_000, 550_000, 700_000, 900_000, 990_000] {
            let (wanted, got) =
                (drawn[DRAWS * ppm as usize / 1_000_000].0 as f64, derived.quantile(ppm).0 as f64);
            assert!((got - wanted).abs() <= wanted * 0.02 + 2_000.0, "{ppm} ppm: {got} ns, drawn {wanted}");
        }
    }

    #[test]
    fn a_quorum_write_takes_as_long_as_the_fourth_of_six_draws() {
        let quorum = aurora(false);
        compare(&curve(&quorum.points().unwrap()).unwrap(), fourth_of_six(&quorum, SEED));
    }

    #[test]
    fn a_write_beside_another_adds_what_it_takes_longer() {
        let quorum = aurora(true);
        let pairs = fourth_of_six(&quorum, SEED).into_iter().zip(fourth_of_six(&quorum, SEED + 1));
        compare(
            &curve(&quorum.points().unwrap()).unwrap(),
            pairs.map(|(one, other)| one.since(other)).collect(),
        );
    }

    #[test]
    fn a_quorum_of_more_copies_than_there_are_is_refused() {
        for (needed, message) in [(7, "7 of 6 copies"), (0, "0 of 6 copies")] {
            let error = Quorum { needed, ..aurora(false) }.points().unwrap_err();
            assert_eq!(error, ServiceError::Quorum { needed, copies: 6 });
            assert!(error.to_string().contains(message), "{error}");
        }
        let error = Quorum { zones: vec![vec![(0.0, 5.0)]; 3], ..aurora(false) }.points().unwrap_err();
        let cause = CurveError::Quantiles(QuantileError::Ends);
        assert_eq!(error, ServiceError::Zone(cause));
        assert!(error.to_string().starts_with("a zone of write_quorum: "), "{error}");
    }
}
