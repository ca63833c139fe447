//! How ids are drawn: sysbench's distributions, 1.0.20's and those of its newer source.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// A parameter out of its range.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("--{option}={value} is out of range: {allowed}")]
pub struct DistributionError {
    /// The option's name, without dashes.
    pub option: &'static str,
    /// The value given.
    pub value: String,
    /// What is allowed.
    pub allowed: &'static str,
}

/// The distribution of ids over a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Distribution {
    /// 1.0.20's default: `res` percent of the draws are uniform over the middle `pct` percent of the
    /// ids, the rest is bell-shaped over all of them.
    Special {
        /// Draws averaged for the bell shape.
        iterations: u32,
        /// Width of the special middle, in percent of the ids.
        pct: u32,
        /// Share of the special draws, in percent.
        res: u32,
    },
    /// All ids alike: the default of sysbench's newer source, which has no `special`.
    Uniform,
    /// Bell-shaped over all ids.
    Gaussian {
        /// Draws averaged.
        iterations: u32,
    },
    /// Low ids often: `h` is how often (0.2: a fifth of the ids gets four fifths of the draws).
    Pareto {
        /// The parameter h.
        h: f64,
    },
    /// Low ids often, by rank: the probability of the n-th id falls as n to the power of the exponent.
    Zipfian {
        /// The exponent.
        exponent: f64,
    },
}

impl Default for Distribution {
    fn default() -> Self {
        Self::Special { iterations: 12, pct: 1, res: 75 }
    }
}

impl Distribution {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter out of range.
    pub fn check(&self) -> Result<(), DistributionError> {
        let wrong = |option, value: String, allowed| Err(DistributionError { option, value, allowed });
        match *self {
            Self::Special { iterations, .. } | Self::Gaussian { iterations }
                if !(1..=10_000).contains(&iterations) =>
            {
                wrong("rand-spec-iter", iterations.to_string(), "1 to 10000 draws")
            }
            Self::Special { pct, .. } if !(1..=100).contains(&pct) => {
                wrong("rand-spec-pct", pct.to_string(), "1 to 100 percent")
            }
            Self::Special { res, .. } if res > 99 => {
                wrong("rand-spec-res", res.to_string(), "0 to 99 percent")
            }
            Self::Pareto { h } if !(h > 0.0 && h < 1.0) => {
                wrong("rand-pareto-h", h.to_string(), "more than 0, less than 1")
            }
            Self::Zipfian { exponent } if !(0.0..=100.0).contains(&exponent) => {
                wrong("rand-zipfian-exp", exponent.to_string(), "0 to 100")
            }
            _ => Ok(()),
        }
    }

    /// Which one runs, and its parameters, in sysbench's option names.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Special { iterations, pct, res } => format!(
                "special (--rand-spec-iter={iterations} --rand-spec-pct={pct} --rand-spec-res={res}): \
                 {res}% of the draws on {pct}% of the rows; the default of sysbench 1.0"
            ),
            Self::Uniform => "uniform; the default of sysbench's newer source".into(),
            Self::Gaussian { iterations } => format!("gaussian (--rand-spec-iter={iterations})"),
            Self::Pareto { h } => format!("pareto (--rand-pareto-h={h})"),
            Self::Zipfian { exponent } => format!("zipfian (--rand-zipfian-exp={exponent})"),
        }
    }
}

/// A distribution with its constants worked out, ready to draw from.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawer {
    distribution: Distribution,
    shape: Shape,
}

/// The constants of a distribution.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Special { iterations: u32, middle: f64, stretch: f64 },
    Uniform,
    Gaussian { iterations: u32 },
    Pareto { power: f64 },
    Zipfian(Zipf),
}

impl Drawer {
    /// Works the constants out.
    #[must_use]
    pub fn new(distribution: Distribution) -> Self {
        let shape = match distribution {
            Distribution::Special { iterations, pct, res } => Shape::Special {
                iterations,
                middle: f64::from(pct) / 100.0,
                stretch: 100.0 / (100.0 - f64::from(res)),
            },
            Distribution::Uniform => Shape::Uniform,
            Distribution::Gaussian { iterations } => Shape::Gaussian { iterations },
            Distribution::Pareto { h } => Shape::Pareto { power: h.ln() / (1.0 - h).ln() },
            Distribution::Zipfian { exponent } => Shape::Zipfian(Zipf::new(exponent)),
        };
        Self { distribution, shape }
    }

    /// The distribution.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// An id from 1 to `most`.
    pub fn id(&self, random: &mut Random, most: u32) -> u32 {
        let n = f64::from(most);
        let offset = match &self.shape {
            Shape::Special { iterations, middle, stretch } => {
                special(random, n - 1.0, *iterations, *middle, *stretch)
            }
            Shape::Uniform => return random.up_to(most),
            Shape::Gaussian { iterations } => n * random.bell(*iterations),
            Shape::Pareto { power } => n * random.unit().powf(*power),
            Shape::Zipfian(zipf) => return zipf.rank(random, most),
        };
        whole(offset).saturating_add(1).min(most)
    }
}

/// One draw in `[0, reach]`: within the bell-shaped share, or within the middle.
fn special(random: &mut Random, reach: f64, iterations: u32, middle: f64, stretch: f64) -> f64 {
    let unit = random.unit();
    if unit * stretch < 1.0 {
        return reach * random.bell(iterations);
    }
    let width = reach * middle;
    unit * (width + 1.0) + (reach - width) / 2.0
}

/// Rejection-inversion sampling of a bounded Zipf distribution (Hormann and Derflinger, "Rejection-
/// inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996).
#[derive(Debug, Clone, PartialEq)]
struct Zipf {
    exponent: f64,
    /// Below this distance from the rounded value a draw is accepted without a test.
    shortcut: f64,
    first: f64,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut zipf = Self { exponent, shortcut: 0.0, first: 0.0 };
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf
    }

    fn rank(&self, random: &mut Random, most: u32) -> u32 {
        let last = self.integral(f64::from(most) + 0.5);
        loop {
            let u = last + random.unit() * (self.first - last);
            let x = self.inverse(u);
            let rank = whole(x + 0.5).clamp(1, most);
            let k = f64::from(rank);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.density(k) {
                return rank;
            }
        }
    }

    /// The integral of the density from 1 to x: (x^(1-e) - 1) / (1-e), or ln x where e is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let y = (1.0 - self.exponent) * log;
        if y.abs() > 1e-8 { y.exp_m1() / y * log } else { log * (1.0 + y / 2.0) }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        let factor = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (factor * area).exp()
    }
}

/// A connection's own random source.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Stream `stream` of `seed`; streams of one seed are unrelated.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(ebbtide_text::seed::stream(seed, stream)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform from 1 to `most`.
    pub fn up_to(&mut self, most: u32) -> u32 {
        let scaled = ((self.bits() >> 32) * u64::from(most)) >> 32;
        u32::try_from(scaled).expect("less than a u32 by construction") + 1
    }

    /// The mean of some uniform draws, in [0, 1).
    fn bell(&mut self, draws: u32) -> f64 {
        (0..draws).map(|_| self.unit()).sum::<f64>() / f64::from(draws)
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Appends `groups` groups of eleven digits, joined by dashes: sysbench's c has ten, pad has five.
    pub fn digit_groups(&mut self, groups: usize, out: &mut Vec<u8>) {
        for group in 0..groups {
            if group > 0 {
                out.push(b'-');
            }
            // A fraction of 59 bits: each multiplication by ten moves one digit above them.
            let mut fraction = self.bits() >> 5;
            let digits: [u8; 11] = std::array::from_fn(|_| {
                let scaled = fraction * 10;
                fraction = scaled & ((1 << 59) - 1);
                b'0' + (scaled >> 59).to_le_bytes()[0]
            });
            out.extend_from_slice(&digits);
        }
    }
}

/// The whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
pub(crate) fn whole(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 10_000;
    const DRAWS: u32 = 200_000;

    fn share(distribution: Distribution, within: impl Fn(u32) -> bool) -> f64 {
        println!("seed 7");
        let drawer = Drawer::new(distribution);
        let mut random = Random::new(7, 0);
        let hits = (0..DRAWS).filter(|_| within(drawer.id(&mut random, MOST))).count();
        hits as f64 / f64::from(DRAWS)
    }

    #[test]
    fn every_distribution_stays_within_the_table() {
        for distribution in [
            Distribution::default(),
            Distribution::Special { iterations: 1, pct: 100, res: 99 },
            Distribution::Uniform,
            Distribution::Gaussian { iterations: 12 },
            Distribution::Pareto { h: 0.2 },
            Distribution::Zipfian { exponent: 0.8 },
            Distribution::Zipfian { exponent: 1.0 },
        ] {
            let drawer = Drawer::new(distribution);
            let mut random = Random::new(1, 2);
            for most in [1, 2, 3, 100, 2_147_483_647] {
                for _ in 0..2_000 {
                    let id = drawer.id(&mut random, most);
                    assert!((1..=most).contains(&id), "{distribution:?}: {id} of {most}");
                }
            }
        }
    }

    #[test]
    fn special_puts_three_quarters_of_the_draws_on_one_percent_of_the_rows() {
        // sysbench takes the same random number for the choice and for the place, so that its
        // special draws fill the upper three quarters of the middle percent.
        let middle = share(Distribution::default(), |id| (4_950..=5_051).contains(&id));
        assert!((0.75..0.80).contains(&middle), "{middle}");
    }

    #[test]
    fn pareto_gives_four_fifths_of_the_draws_to_a_fifth_of_the_rows() {
        let low = share(Distribution::Pareto { h: 0.2 }, |id| id <= MOST / 5);
        assert!((0.79..0.81).contains(&low), "{low}");
    }

    #[test]
    fn zipfian_falls_with_the_rank_by_its_exponent() {
        let exponent = 0.8;
        let norm: f64 = (1..=MOST).map(|rank| f64::from(rank).powf(-exponent)).sum();
        let first = share(Distribution::Zipfian { exponent }, |id| id == 1);
        assert!((first * norm - 1.0).abs() < 0.06, "{first} of {}", 1.0 / norm);
        let tenth = share(Distribution::Zipfian { exponent }, |id| id <= 10);
        let expected: f64 = (1..=10).map(|rank| f64::from(rank).powf(-exponent)).sum::<f64>() / norm;
        assert!((tenth / expected - 1.0).abs() < 0.03, "{tenth} of {expected}");
    }

    #[test]
    fn uniform_and_gaussian_have_the_middle_where_it_belongs() {
        let uniform = share(Distribution::Uniform, |id| id <= MOST / 10);
        assert!((0.098..0.102).contains(&uniform), "{uniform}");
        // The mean of 12 uniform draws has a standard deviation of 1/12.
        let gaussian = share(Distribution::Gaussian { iterations: 12 }, |id| (4_167..=5_833).contains(&id));
        assert!((0.66..0.70).contains(&gaussian), "{gaussian}");
    }

    #[test]
    fn a_text_value_has_the_shape_of_sysbenchs_template() {
        let mut text = Vec::new();
        Random::new(3, 3).digit_groups(10, &mut text);
        assert_eq!(text.len(), 119);
        for (at, byte) in text.iter().enumerate() {
            assert_eq!(*byte == b'-', at % 12 == 11, "{at}");
            assert!(*byte == b'-' || byte.is_ascii_digit());
        }
        let zeros = (0..10_000).fold(0_u32, |zeros, stream| {
            let mut text = Vec::new();
            Random::new(3, stream).digit_groups(1, &mut text);
            zeros + u32::from(text[10] == b'0')
        });
        assert!((900..1100).contains(&zeros), "the last digit is uniform: {zeros}");
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        assert_eq!(Random::new(5, 1).bits(), Random::new(5, 1).bits());
        assert_ne!(Random::new(5, 1).bits(), Random::new(5, 2).bits());
    }
}
