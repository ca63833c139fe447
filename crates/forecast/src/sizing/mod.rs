//! Sizing: the cheapest storage that carries a load, of what was recorded of it or of a server's profile.
//!
//! [`take_prices`] reads price lists. [`SizingPlan::read`] checks a [`SizingRequest`]: a [`Source`] is a load with what it comes
//! from, of records of other tools, a trace, a run of the lab, or the model of a profile's server. [`Answer::of`] has
//! [`ebbtide_advisor::sizing`] search, and checks the choices for a profile's server with its model.

mod answer;
mod document;
mod error;
mod figures;
mod files;
mod modelled;
mod plan;
mod prices;
mod request;
mod run;
mod source;
mod traced;
mod verify;

pub use answer::Answer;
pub use document::{StorageTogether, document, documents, volume_name};
pub use error::{SizeOrigin, SizingError, TraceOption};
pub use figures::{SizingFigures, sized};
pub use modelled::JudgedRate;
pub use plan::SizingPlan;
pub use prices::{PriceListRead, PricesError, take_prices};
pub use request::{MOST_MEMBERS, Processors, SizingRequest};
pub use source::Source;
pub use verify::Verified;

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;

    use super::*;

    pub(super) fn request() -> SizingRequest {
        SizingRequest {
            from: vec![concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/metrics/shop-gp2.csv").into()],
            volume: Some("gp2:size=500GiB".into()),
            instance: None,
            keep_instance: false,
            processors: None,
            size_bytes: None,
            device: None,
            trace_format: None,
            trace_unit_ns: None,
            arm: None,
            interval: None,
            tps: None,
            tps_measured: None,
            p99: None,
            headroom: 1.2,
            yearly_growth: 0.0,
            horizon_months: 12,
            carried: 0.999,
            most_members: None,
            region: None,
            seed: 1,
        }
    }

    #[test]
    fn a_load_that_was_recorded_is_sized_and_the_answer_stands_beside_today() {
        let catalog = Catalog::builtin();
        let plans = SizingPlan::read(&request(), &catalog, &[]).unwrap();
        let answer = Answer::of(&plans[0]);
        let best = answer.sizing.choices.first().unwrap();
        assert!(best.usd() < answer.sizing.today.as_ref().unwrap().choice.usd());
        assert!(answer.change(&plans[0]).is_some_and(|change| !change.cli.is_empty()));
    }

    #[test]
    fn refusals_name_what_is_wrong_and_no_option_of_a_command() {
        let catalog = Catalog::builtin();
        let refused = |change: fn(&mut SizingRequest)| {
            let mut request = request();
            change(&mut request);
            SizingPlan::read(&request, &catalog, &[]).unwrap_err().to_string()
        };
        let refusals = [
            (refused(|request| request.device = Some("vol-none".into())), "vol-none"),
            (refused(|request| request.volume = None), "not known"),
            (refused(|request| request.volume = Some("gp9:size=5GiB".into())), "gp9"),
            (refused(|request| request.instance = Some("r5.none".into())), "r5.none"),
            (refused(|request| request.region = Some("eu-none-1".into())), "eu-none-1"),
            (refused(|request| request.tps = Some(0.0)), "more than 0"),
            (refused(|request| request.tps = Some(5.0)), "how many transactions"),
            (refused(|request| request.most_members = Some(17)), "1 to 16"),
            (refused(|request| request.trace_unit_ns = Some(1)), "no trace"),
        ];
        for (refusal, part) in refusals {
            assert!(refusal.contains(part) && !refusal.contains("--"), "{part}: {refusal}");
        }
    }
}
