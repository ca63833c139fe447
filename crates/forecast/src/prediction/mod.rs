//! What a server would do on volumes: runs of its calibrated model, with an interval for each figure.
//!
//! [`PredictionPlan`] checks a [`PredictionRequest`], [`predict`] runs it; [`knee`] is where the load line bends.

mod document;
mod error;
mod figures;
mod plan;
mod points;
mod sweep;

pub use document::{PredictionAnswer, document};
pub use error::{MOST_VOLUMES, PredictionError};
pub use figures::{Prediction, figures};
pub use plan::{PROCESSOR_TIME, PlannedVolume, PredictionPlan, PredictionRequest, SPANS};
pub use points::{PredictedPoint, PredictedVolume, interval, knee, mib, predict};
pub use sweep::{NoSweep, Sweep};

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_twin::accuracy::Figure;
    use ebbtide_volume::Nanos;

    use super::*;

    fn request(volume: &str) -> PredictionRequest {
        PredictionRequest {
            profile: concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/profiles/sysbench-tpcc-gp2.toml")
                .into(),
            made: None,
            volumes: vec![volume.into()],
            clients: Vec::new(),
            rates: Vec::new(),
            span: Nanos::from_secs(30),
            instance: None,
            sweep: None,
            seed: 1,
            divided_by: None,
            set: Vec::new(),
        }
    }

    #[test]
    fn a_request_is_predicted_and_the_prediction_lies_in_its_interval() {
        println!("seed 1");
        let plan = PredictionPlan::read(&request("gp3:size=600GiB"), &Catalog::builtin()).unwrap();
        let predicted = predict(&plan);
        let point = &predicted[0].points[0];
        let tps = point.figure(Figure::Tps).unwrap();
        let (low, high) = point.range(Figure::Tps).unwrap();
        assert!(0.0 < low && low < tps && tps < high, "{low} {tps} {high}");
    }

    #[test]
    fn refusals_name_what_is_wrong_and_no_option_of_a_command() {
        let refused = |change: fn(&mut PredictionRequest)| {
            let mut request = request("gp3:size=600GiB");
            change(&mut request);
            PredictionPlan::read(&request, &Catalog::builtin()).unwrap_err().to_string()
        };
        let refusals = [
            (refused(|request| request.rates = vec![0.0]), "more than 0"),
            (refused(|request| request.clients = vec![0]), "1 to 10000"),
            (refused(|request| request.volumes = vec!["gp3:size=6GiB".into()]), "6 GiB"),
            (refused(|request| request.volumes = vec!["redo=gp3:size=6GiB".into()]), "for the data"),
            (refused(|request| request.sweep = "redo.iops=3000..4000:500".parse().ok()), "for redo"),
            (refused(|request| request.set = vec![("point.tps".into(), "5".into())]), "measured"),
            (refused(|request| request.set = vec![("workload.cpu_us".into(), "5".into())]), "cpu_pct"),
        ];
        for (refusal, part) in refusals {
            assert!(refusal.contains(part) && !refusal.contains("--"), "{part}: {refusal}");
        }
    }
}
