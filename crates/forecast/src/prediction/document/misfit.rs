//! A measured point that the calibrated model does not give: predictions then rest on a server that the model is not.

use ebbtide_twin::profile::PlannedPoint;

use super::words;
use crate::prediction::PredictionPlan;

/// Share of the measured throughput by which the model may miss it: comparisons with published results allow no more
/// (docs/accuracy.md).
const MOST: f64 = 0.25;
/// Processors are busy for more than the clients can use from this factor on: a measured share has a rounding.
const OVER: f64 = 1.05;

/// The sentence on the point that the calibrated model misses the most; None where it misses none by more than [`MOST`].
pub(super) fn caution(plan: &PredictionPlan) -> Option<String> {
    let points = plan.planned.points.iter().zip(&plan.calibration.residuals).enumerate();
    let missed = points.filter(|(_, (_, residual))| (**residual - 1.0).abs() > MOST);
    let distance = |residual: f64| residual.max(1e-9).ln().abs();
    let (place, (point, residual)) =
        missed.max_by(|(_, (_, a)), (_, (_, b))| distance(**a).total_cmp(&distance(**b)))?;
    Some(format!(
        "at point {} of the profile the model gives {} transactions a second where {} were measured ({}), so this \
         prediction is not to be trusted: {}",
        place + 1,
        words::rate(point.tps * residual),
        words::rate(point.tps),
        difference(*residual),
        reason(point, *residual, vcpus(plan))
    ))
}

/// How far the model is from what was measured: `50% less`; `residual` is the first divided by the second.
pub(super) fn difference(residual: f64) -> String {
    let percent = (residual - 1.0).abs() * 100.0;
    let side = if residual < 1.0 { "less" } else { "more" };
    format!("{}% {side}", ebbtide_text::fixed(percent, usize::from(percent < 10.0)))
}

/// The processors of the machine that was measured; None where only those of another machine are known.
fn vcpus(plan: &PredictionPlan) -> Option<u32> {
    let machine = &plan.profile.machine;
    let own = machine.instance.as_deref();
    let same = own.is_none() || own == plan.instance.as_ref().map(|instance| instance.name.as_str());
    machine.vcpus.or(same.then_some(plan.planned.machine.vcpus))
}

/// The likely reason.
fn reason(point: &PlannedPoint, residual: f64, vcpus: Option<u32>) -> String {
    let clients = f64::from(point.load.clients);
    if let (Some(share), Some(vcpus), None) = (point.cpu_pct, vcpus, point.load.rate)
        && residual < 1.0
        && share / 100.0 * f64::from(vcpus) > clients * OVER
    {
        return format!(
            "its cpu_pct of {} on {} is more than {} can use, so clients is too low, or other programs used processors too",
            ebbtide_text::figure(share),
            ebbtide_text::count(vcpus, "processor"),
            words::load(point.load)
        );
    }
    if residual < 1.0 {
        "its clients are probably too few, its volume too slow, or its cpu_pct has the time of other programs"
            .to_owned()
    } else {
        "the server probably waited for what the profile does not have, such as locks, or a volume slower than the point's"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_report::TextOptions;
    use ebbtide_volume::Nanos;

    use super::*;
    use crate::prediction::{PredictionAnswer, PredictionRequest, document, predict};

    /// A plan whose only point finished `tps` with one client and busy processors, and was calibrated to `residual`.
    fn plan(tps: f64, cpu_pct: f64, residual: f64) -> PredictionPlan {
        let request = PredictionRequest {
            profile: concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/profiles/sysbench-tpcc-gp2.toml")
                .into(),
            made: None,
            volumes: vec!["gp3:size=600GiB".into()],
            clients: Vec::new(),
            rates: Vec::new(),
            span: Nanos::from_secs(30),
            instance: None,
            sweep: None,
            seed: 1,
            divided_by: None,
            set: Vec::new(),
        };
        let mut plan = PredictionPlan::read(&request, &Catalog::builtin()).unwrap();
        plan.planned.points.truncate(1);
        let point = &mut plan.planned.points[0];
        (point.tps, point.cpu_pct, point.load.clients) = (tps, Some(cpu_pct), 1);
        plan.calibration.residuals = vec![residual];
        plan
    }

    #[test]
    fn a_point_that_the_model_misses_by_more_than_a_quarter_is_a_caution_with_its_reason() {
        let said = caution(&plan(39.18, 98.47, 0.499)).unwrap();
        for part in [
            "the model gives 19.6 transactions a second where 39.2 were measured (50% less)",
            "not to be trusted",
            "more than 1 client can use, so clients is too low",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let few = caution(&plan(39.18, 5.0, 0.499)).unwrap();
        assert!(few.contains("its clients are probably too few"), "{few}");
        let fast = caution(&plan(39.18, 5.0, 1.9)).unwrap();
        assert!(fast.contains("(90% more)") && fast.contains("such as locks"), "{fast}");
        for near in [0.76, 1.0, 1.24] {
            assert_eq!(caution(&plan(39.18, 98.47, near)), None);
        }
    }

    #[test]
    fn the_short_answer_and_the_details_say_what_the_model_misses() {
        println!("seed 1");
        let (catalog, plan) = (Catalog::builtin(), plan(39.18, 98.47, 0.499));
        let predicted = predict(&plan);
        let answer = PredictionAnswer::new(&plan, &predicted, catalog.prices(None).unwrap());
        let document = document(&plan, &predicted, &answer, "test");
        let text =
            |details| document.to_text(TextOptions { columns: 500, details, ..TextOptions::default() });
        assert!(
            text(false).contains("\ncaution: at point 1 of the profile the model gives 19.6"),
            "{}",
            text(false)
        );
        assert!(
            text(true).contains("the model gives 50% less than the measured throughput"),
            "{}",
            text(true)
        );
    }

    #[test]
    fn a_difference_says_its_side_and_not_a_negative_share() {
        assert_eq!([0.499, 0.969, 1.12].map(difference), ["50% less", "3.1% less", "12% more"]);
    }
}
