//! The answer to a prediction: one sentence, with its interval and its price.

use crate::prediction::{PredictedPoint, PredictedVolume, PredictionPlan, knee};
use ebbtide_catalog::{Prices, Resolved, Usd};
use ebbtide_observe::Volumes;
use ebbtide_twin::accuracy::Figure;

use super::words;

/// Throughputs that differ by less are the same: the model's own draws differ by as much from seed to seed.
const SAME: f64 = 0.02;

/// What a prediction comes to.
#[derive(Debug)]
pub struct PredictionAnswer<'a> {
    plan: &'a PredictionPlan,
    predicted: &'a [PredictedVolume<'a>],
    /// US dollars a month of each volume; None where its type has no price, or a share of it is predicted.
    costs: Vec<Option<Usd>>,
    /// Whose prices these are, and of which day.
    prices: Option<String>,
}

impl<'a> PredictionAnswer<'a> {
    /// What a prediction comes to at the prices of a region.
    #[must_use]
    pub fn new(plan: &'a PredictionPlan, predicted: &'a [PredictedVolume<'a>], prices: Prices<'_>) -> Self {
        let cost = |volume: &PredictedVolume<'_>| {
            if plan.divided_by > 1 { None } else { monthly(&volume.volume.resolved, prices) }
        };
        let costs: Vec<Option<Usd>> = predicted.iter().map(cost).collect();
        let priced = costs.iter().position(Option::is_some).and_then(|place| {
            let cost = prices.monthly_cost(&predicted[place].volume.resolved.data)?;
            Some(format!("list prices of {}, {}", cost.region, cost.as_of))
        });
        Self { plan, predicted, costs, prices: priced }
    }

    /// Where the prices come from; None where nothing has one.
    #[must_use]
    pub fn prices(&self) -> Option<&str> {
        self.prices.as_deref()
    }

    /// The cost of a volume, by its place.
    pub(super) fn cost(&self, place: usize) -> Option<Usd> {
        self.costs[place]
    }

    /// Whether any volume has a price.
    pub(super) fn has_costs(&self) -> bool {
        self.costs.iter().any(Option::is_some)
    }

    /// The sentence.
    pub(super) fn sentence(&self) -> String {
        let best = self.best();
        let (volume, point) = (&self.predicted[best], self.point(best));
        let mut sentence = format!(
            "{}: {} transactions a second ({}) {}",
            volume.volume.spec,
            words::value(point, Figure::Tps),
            words::range(point, Figure::Tps).unwrap_or_else(|| "no interval".to_owned()),
            match point.load.rate {
                Some(rate) => format!("of the {rate} that arrive"),
                None => format!("at {}", words::load(point.load)),
            },
        );
        if knee(&volume.points).is_some() {
            sentence.push_str(", the knee of the load line");
        }
        if self.predicted.len() > 1 {
            sentence.push_str(&self.compared(best));
        }
        sentence.push_str(&self.limited(best));
        sentence.push_str(&self.price(best));
        sentence.push('.');
        sentence
    }

    /// The volume that the sentence is about: the cheapest of those with the highest throughput, where all have a price.
    fn best(&self) -> usize {
        let highest = self.predicted.iter().enumerate().map(|(place, _)| self.tps(place)).fold(0.0, f64::max);
        let high: Vec<usize> =
            (0..self.predicted.len()).filter(|place| self.tps(*place) >= highest * (1.0 - SAME)).collect();
        let cheapest = || high.iter().copied().min_by_key(|place| self.costs[*place]);
        let priced = high.iter().all(|place| self.costs[*place].is_some());
        let highest = || high.iter().copied().max_by(|a, b| self.tps(*a).total_cmp(&self.tps(*b)));
        if priced { cheapest() } else { highest() }.unwrap_or(0)
    }

    /// The point of a volume that stands for it: the knee of its load line, or the last one.
    fn point(&self, place: usize) -> &PredictedPoint {
        let points = &self.predicted[place].points;
        &points[knee(points).unwrap_or(points.len() - 1)]
    }

    fn tps(&self, place: usize) -> f64 {
        self.point(place).outcome.tps()
    }

    /// The volume that it is compared with: the first, or the second where the first is the best.
    fn other(&self, best: usize) -> usize {
        usize::from(best == 0)
    }

    fn compared(&self, best: usize) -> String {
        if self.plan.swept.is_some() {
            return ", within 2% of the highest of the sweep".to_owned();
        }
        let other = self.other(best);
        let ratio = self.tps(best) / self.tps(other).max(1e-9);
        let spec = &self.predicted[other].volume.spec;
        if (ratio - 1.0).abs() < SAME {
            format!(", the same as {spec}")
        } else {
            format!(", {} times {spec}", ebbtide_text::fixed(ratio, 2))
        }
    }

    fn limited(&self, best: usize) -> String {
        let limiter_of = |place: usize| {
            let point = self.point(place);
            let (limiter, share) = point.outcome.limiter();
            (words::limiter(point, limiter), share)
        };
        let (limiter, share) = limiter_of(best);
        let both = self.predicted.len() == 2 && limiter_of(self.other(best)).0 == limiter;
        if both {
            format!("; {limiter} limit both")
        } else {
            format!("; limited by {limiter} {} of the time", ebbtide_text::percent(share))
        }
    }

    fn price(&self, best: usize) -> String {
        let Some(cost) = self.costs[best] else { return String::new() };
        let other = self.costs.get(self.other(best)).copied().flatten();
        match other.filter(|_| self.predicted.len() == 2) {
            Some(other) if cost > other => format!("; {} a month, {} more", cost, cost.less(other)),
            Some(other) if cost < other => format!("; {} a month, {} less", cost, other.less(cost)),
            _ => format!("; {cost} a month"),
        }
    }
}

/// What all volumes of a server cost a month; None where one has no price.
fn monthly(volumes: &Volumes<Resolved>, prices: Prices<'_>) -> Option<Usd> {
    volumes.roles().map(|(_, volume)| Some(prices.monthly_cost(volume)?.usd)).sum()
}
