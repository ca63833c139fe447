//! What the forecasts of burst credits say, in verdicts and in words.

use ebbtide_text::{bytes, percent, rough, whole};

use crate::alarm::credit::CreditForecast;
use crate::alarm::event::{Judgement, time_of_day};
use crate::alarm::rule::{Rule, Verdict};
use crate::reading::Moment;

/// Below this share no credits are left: an empty bucket earns a little between two operations.
const NONE_LEFT: f64 = 0.005;
/// With less than this of the last 30 minutes seen, the present load has to do.
const LEAST_SUSTAINED_S: f64 = 900.0;
/// What then counts as soon, as a share of the threshold.
const SOON: f64 = 0.25;

/// What the credits of a subject pay for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreditUse {
    /// Operations.
    Operations,
    /// Bytes.
    Bytes,
}

impl CreditUse {
    fn rate(self, per_second: f64) -> String {
        match self {
            Self::Operations => format!("{} IOPS", whole(per_second)),
            Self::Bytes => format!("{}/s", bytes(per_second)),
        }
    }
}

/// Credits of a subject, and what else is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreditCase<'a> {
    pub(crate) name: &'a str,
    pub(crate) paid: CreditUse,
    pub(crate) forecast: &'a CreditForecast,
    /// Whether requests wait, so that empty credits hold something back.
    pub(crate) waits: bool,
    pub(crate) moment: Moment,
}

impl CreditCase<'_> {
    /// Whether they end soon at the present load.
    pub(crate) fn at_present(&self, rule: &Rule) -> Judgement {
        let forecast = self.forecast;
        if forecast.share < NONE_LEFT && self.waits {
            return self.judgement(Verdict::Raise, Some(0.0), self.ended());
        }
        if forecast.load.is_none() {
            return self.judgement(
                Verdict::Unknown,
                None,
                format!("too little is known of the load of {}", self.name),
            );
        }
        let ends_s = self.end_of_a_load_that_goes_on(rule);
        let verdict = rule.threshold.verdict(ends_s);
        self.judgement(verdict, ends_s.is_finite().then_some(ends_s), self.ends())
    }

    /// The later of the two ends: a load has to go on to alarm. Without half an hour of it, the end has to be near.
    fn end_of_a_load_that_goes_on(&self, rule: &Rule) -> f64 {
        let forecast = self.forecast;
        let present = forecast.ends_s.unwrap_or(f64::INFINITY);
        if forecast.sustained_seen_s >= LEAST_SUSTAINED_S {
            return present.max(forecast.sustained_ends_s.unwrap_or(f64::INFINITY));
        }
        if present <= rule.threshold.raise * SOON { present } else { f64::INFINITY }
    }

    /// Whether they end within hours if the load goes on as yesterday.
    pub(crate) fn by_yesterday(&self, rule: &Rule) -> Judgement {
        if !self.forecast.knows_yesterday {
            let reason = format!("the load of {} is known of less than 20 of the last 24 hours", self.name);
            return self.judgement(Verdict::Unknown, None, reason);
        }
        let ends_s = self.forecast.yesterday_ends_s;
        let verdict = rule.threshold.verdict(ends_s.unwrap_or(f64::INFINITY));
        let reason = match ends_s {
            Some(seconds) => format!(
                "credits of {} ({} left) end at {}, in {}, if the load goes on as yesterday from this hour on",
                self.name,
                percent(self.forecast.share),
                time_of_day(self.moment, seconds),
                rough(seconds)
            ),
            None => format!("credits of {} last through a day like yesterday", self.name),
        };
        self.judgement(verdict, ends_s, reason)
    }

    fn judgement(&self, verdict: Verdict, ends_s: Option<f64>, reason: String) -> Judgement {
        Judgement { verdict, value: ends_s, reason, in_s: ends_s }
    }

    fn ended(&self) -> String {
        let limit = self.forecast.limit;
        format!(
            "credits of {} have ended: it is held to {}, where {} were possible; full again {} after the load stops",
            self.name,
            self.paid.rate(limit.rate as f64),
            self.paid.rate(limit.ceiling as f64),
            rough(self.forecast.full_s)
        )
    }

    /// When they end at the present load, at that of yesterday, and when they are full again.
    fn ends(&self) -> String {
        let forecast = self.forecast;
        let load = self.paid.rate(forecast.load.unwrap_or(0.0));
        let seen = rough(forecast.load_seen_s);
        let present = match forecast.ends_s {
            Some(seconds) => format!(
                "credits of {} ({} left) end at {}, in {}, at the {load} of the last {seen}",
                self.name,
                percent(forecast.share),
                time_of_day(self.moment, seconds),
                rough(seconds)
            ),
            None => format!(
                "credits of {} ({} left) are not being spent at the {load} of the last {seen}",
                self.name,
                percent(forecast.share)
            ),
        };
        let yesterday = forecast.yesterday_ends_s.map_or(String::new(), |seconds| {
            format!("; at yesterday's load of this hour at {}", time_of_day(self.moment, seconds))
        });
        let full = match forecast.full_s {
            seconds if seconds < 1.0 => String::new(),
            seconds => format!("; full again {} after it stops", rough(seconds)),
        };
        format!("{present}{yesterday}{full}")
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::RateLimit;

    use crate::alarm::rule::RuleId;
    use crate::alarm::table::rule;

    use super::*;

    fn forecast() -> CreditForecast {
        let limit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        CreditForecast {
            limit,
            share: 0.216_2,
            load: Some(812.0),
            load_seen_s: 305.0,
            ends_s: Some(2_280.0),
            recent_ends_s: Some(2_280.0),
            sustained_ends_s: Some(3_000.0),
            sustained_seen_s: 1_800.0,
            knows_yesterday: true,
            yesterday_ends_s: Some(4_080.0),
            full_s: 18_600.0,
        }
    }

    fn judged(forecast: &CreditForecast, waits: bool) -> Judgement {
        let moment = Moment { unix_s: 1_795_831_320, ..Moment::default() };
        CreditCase { name: "shop-data", paid: CreditUse::Operations, forecast, waits, moment }
            .at_present(rule(RuleId::CreditsEnd))
    }

    #[test]
    fn the_reason_has_both_loads_the_times_and_when_they_are_full_again() {
        let judgement = judged(&forecast(), false);
        assert_eq!(
            judgement.reason,
            "credits of shop-data (22% left) end at 02:40, in 38 min, at the 812 IOPS of the last 5 min; at yesterday's load of this \
             hour at 03:10; full again 5 h 10 min after it stops"
        );
        assert_eq!((judgement.verdict, judgement.value), (Verdict::Raise, Some(3_000.0)));
    }

    #[test]
    fn the_time_that_was_seen_is_said() {
        let short = CreditForecast { load_seen_s: 61.0, ..forecast() };
        for (ends_s, words) in [
            (Some(93.0), "end at 02:03, in 93 s, at the 812 IOPS of the last 61 s"),
            (None, "are not being spent at the 812 IOPS of the last 61 s"),
        ] {
            let reason = judged(&CreditForecast { ends_s, ..short }, false).reason;
            assert!(reason.contains(words), "{words} is not in: {reason}");
        }
    }

    #[test]
    fn a_load_of_some_minutes_has_to_end_them_soon() {
        let unseen = CreditForecast { sustained_seen_s: 300.0, ..forecast() };
        assert_eq!(judged(&unseen, false).verdict, Verdict::Clear);
        assert_eq!(judged(&CreditForecast { ends_s: Some(800.0), ..unseen }, false).verdict, Verdict::Raise);
        assert_eq!(
            judged(&CreditForecast { sustained_ends_s: None, ..forecast() }, false).verdict,
            Verdict::Clear
        );
        assert_eq!(judged(&CreditForecast { load: None, ..forecast() }, false).verdict, Verdict::Unknown);
    }

    #[test]
    fn credits_that_have_ended_alarm_where_something_waits() {
        let empty = CreditForecast { share: 0.0, load: Some(300.0), ends_s: None, ..forecast() };
        let judgement = judged(&empty, true);
        assert_eq!((judgement.verdict, judgement.value), (Verdict::Raise, Some(0.0)));
        assert!(
            judgement.reason.contains("held to 300 IOPS, where 3,000 IOPS were possible"),
            "{}",
            judgement.reason
        );
        assert_eq!(judged(&empty, false).verdict, Verdict::Clear);
    }
}
