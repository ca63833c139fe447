//! Which share of the time limits hold requests back: of counters that are read less often than all others.

use crate::reading::ExceededReading;

/// The newest times over limits of a volume, and what they grew by.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExceededTrack {
    /// Which life of the volume they are of.
    life: String,
    last: Option<ExceededReading>,
    shares: Option<[f64; 4]>,
}

impl ExceededTrack {
    /// Takes the times that are known now. A reading that was taken before changes nothing; one that is missing makes the shares unknown
    /// until there is another one, whose growth is of the whole time between.
    pub(crate) fn take(&mut self, life: &str, exceeded: Option<ExceededReading>) {
        if self.life != life {
            *self = Self { life: life.to_owned(), ..Self::default() };
        }
        let Some(now) = exceeded else { return self.miss() };
        if self.last.is_some_and(|last| last.read == now.read) {
            return;
        }
        let before = self.last.replace(now);
        self.shares = before.and_then(|before| now.shares_since(&before));
    }

    /// Takes that the times are not known now.
    pub(crate) const fn miss(&mut self) {
        self.shares = None;
    }

    /// Shares between the last two readings: over the volume's IOPS and throughput, then over those of the instance. None where they are
    /// not known.
    pub(crate) const fn shares(&self) -> Option<[f64; 4]> {
        self.shares
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::Nanos;

    use super::*;
    use crate::reading::ExceededTimes;

    #[test]
    fn a_page_that_is_missing_once_is_a_gap_and_no_spike() {
        let page = |second: u64, exceeded_s: u64| {
            let times =
                ExceededTimes { volume_iops: Nanos::from_secs(exceeded_s), ..ExceededTimes::default() };
            Some(ExceededReading { read: Nanos::from_secs(second), times })
        };
        let mut track = ExceededTrack::default();
        let mut share = |life: &str, exceeded| {
            track.take(life, exceeded);
            track.shares().map(|shares| shares[0])
        };
        assert_eq!(share("a", page(10, 5_000)), None);
        assert_eq!(share("a", page(20, 5_001)), Some(0.1));
        assert_eq!(share("a", page(20, 5_001)), Some(0.1), "the same page");
        assert_eq!(share("a", None), None);
        assert_eq!(share("a", page(40, 5_003)), Some(0.1), "of the 20 s between");
        assert_eq!(share("b", page(50, 9_000)), None, "another volume");
        assert_eq!(share("b", page(60, 0)), None, "attached anew");
    }
}
