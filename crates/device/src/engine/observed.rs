//! The requests of a volume, as the model charged them, for a follower.

use ebbtide_volume::{Io, Nanos};

use super::LiveVolume;

/// Requests that are kept between two calls of [`LiveVolume::take_observed`], at most: at 1,000,000 IOPS those of 65 ms.
pub const OBSERVED_MOST: usize = 1 << 16;

/// A request that was charged to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedIo {
    /// When it arrived, by the volume's clock. Requests of several threads may be out of order by microseconds.
    pub at: Nanos,
    /// When it completes: the model's time, with an injected latency.
    pub completes: Nanos,
    /// What it does.
    pub io: Io,
}

/// The requests since the last look.
#[derive(Debug)]
pub(super) struct Observed {
    kept: Vec<ObservedIo>,
    lost: u64,
}

impl Observed {
    /// Keeps a request, or counts it where no more are kept. It allocates nothing: the data path calls it.
    pub(super) fn push(&mut self, request: ObservedIo) {
        if self.kept.len() < OBSERVED_MOST {
            self.kept.push(request);
        } else {
            self.lost += 1;
        }
    }
}

impl LiveVolume {
    /// Keeps requests for [`Self::take_observed`] from now on, or no more.
    pub fn observe(&self, on: bool) {
        let observed = on.then(|| Observed { kept: Vec::with_capacity(OBSERVED_MOST), lost: 0 });
        let before = std::mem::replace(&mut self.core.state.lock().observed, observed);
        drop(before);
    }

    /// Replaces the content of `batch` by the requests since the last call, at most [`OBSERVED_MOST`]. Returns how many more
    /// there were.
    pub fn take_observed(&self, batch: &mut Vec<ObservedIo>) -> u64 {
        batch.clear();
        batch.reserve(OBSERVED_MOST);
        self.core.state.lock().observed.as_mut().map_or(0, |observed| {
            std::mem::swap(&mut observed.kept, batch);
            std::mem::take(&mut observed.lost)
        })
    }
}
