//! A volume or a device in a view.

use ebbtide_volume::{RateLimit, Stats};

use super::storage_track::{StorageTrack, allowed};
use crate::alarm::CreditForecast;
use crate::reading::VolumeReading;
use crate::view::{CreditsView, StorageView};

/// What is known of a volume or a device besides its counters.
#[derive(Debug, Default)]
pub(super) struct StorageFacts {
    pub(super) spec: String,
    pub(super) mounts: Vec<String>,
    pub(super) roles: Vec<String>,
    pub(super) exact: bool,
    /// Seconds until the credits are full, as the volume itself says it.
    pub(super) credits_full_s: Option<f64>,
}

/// The view of a volume or a device. `is_fresh` says whether its counters are of this moment: without it no figure is shown.
pub(super) fn storage_view(
    reading: &VolumeReading,
    facts: StorageFacts,
    (track, is_fresh): (&StorageTrack, bool),
    forecast: Option<&CreditForecast>,
) -> StorageView {
    let stats = &reading.stats;
    let limit = |limit: Option<RateLimit>| limit.map(|limit| allowed(limit, stats.credit_share));
    let mut view = StorageView {
        name: reading.name.clone(),
        spec: facts.spec,
        mounts: facts.mounts,
        roles: facts.roles,
        exact: facts.exact,
        iops_limit: limit(reading.limits.iops),
        bytes_limit: limit(reading.limits.throughput),
        credits: credits(stats, facts.credits_full_s, forecast),
        ..StorageView::default()
    };
    if let Some(step) = track.step().filter(|_| is_fresh) {
        step.show(&mut view);
    }
    if is_fresh {
        track.show_throttling(&mut view);
    }
    view
}

/// The credits: their end at the load that was seen in the last minute, by the law of the alarms.
fn credits(stats: &Stats, own_full_s: Option<f64>, forecast: Option<&CreditForecast>) -> Option<CreditsView> {
    Some(CreditsView {
        share: stats.credit_share?,
        end_s: forecast.and_then(|forecast| forecast.recent_ends_s),
        full_s: forecast.map(|forecast| forecast.full_s).or(own_full_s),
    })
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::Nanos;

    use super::*;
    use crate::reading::{Throttling, VolumeLimits};

    #[test]
    fn credits_end_at_the_load_that_was_seen_also_before_the_alarms_know_enough() {
        let limit = RateLimit { rate: 100, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        let forecast = CreditForecast {
            limit,
            share: 0.029,
            load: None,
            load_seen_s: 0.0,
            ends_s: None,
            recent_ends_s: Some(148.0),
            sustained_ends_s: None,
            sustained_seen_s: 5.0,
            knows_yesterday: false,
            yesterday_ends_s: None,
            full_s: 52_434.0,
        };
        let stats = Stats { credit_share: Some(0.029), ..Stats::default() };
        let shown = credits(&stats, Some(9.0), Some(&forecast));
        assert_eq!(shown, Some(CreditsView { share: 0.029, end_s: Some(148.0), full_s: Some(52_434.0) }));
        let before = credits(&stats, Some(9.0), None).unwrap();
        assert_eq!((before.end_s, before.full_s), (None, Some(9.0)), "nothing was seen of its load");
    }

    #[test]
    fn figures_of_a_source_that_is_silent_are_not_shown_and_its_limits_are() {
        let reading = |second: u64, ops: u64| {
            let mut stats = Stats { at: Nanos::from_secs(second), ..Stats::default() };
            stats.read.ops = ops;
            let limits = VolumeLimits { iops: Some(RateLimit::flat(3_000)), ..VolumeLimits::default() };
            VolumeReading {
                name: "db".to_owned(),
                epoch: String::new(),
                stats,
                throttling: Throttling::Counted,
                limits,
            }
        };
        let mut track = StorageTrack::default();
        track.take(Nanos::from_secs(1), &reading(1, 0));
        track.take(Nanos::from_secs(2), &reading(2, 100));
        let view =
            |is_fresh| storage_view(&reading(2, 100), StorageFacts::default(), (&track, is_fresh), None);
        assert_eq!((view(true).reads, view(true).iops_limit), (Some(100.0), Some(3_000.0)));
        assert_eq!((view(false).reads, view(false).iops_limit), (None, Some(3_000.0)));
        assert_eq!(view(true).credits, None);
    }
}
