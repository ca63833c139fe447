//! When burst credits end and when they come back.

use ebbtide_volume::{Array, Instance, Nanos};

/// Below this share credits count as ended: what is left lasts less than a second of a burst.
const ENDED: f64 = 0.000_1;
/// Above this share, after an end, credits count as back.
const BACK: f64 = 0.01;

/// A balance of burst credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// The volume's own.
    Volume,
    /// The instance's IOPS.
    InstanceIo,
    /// The instance's bandwidth.
    InstanceBytes,
}

/// A balance has changed what the volume can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceChange {
    /// Which one.
    pub balance: Balance,
    /// When, to the second.
    pub at: Nanos,
    /// Whether the credits have ended, or are back.
    pub ended: bool,
}

/// Watches the balances of one volume and its instance.
#[derive(Debug)]
pub(crate) struct Balances {
    ended: [bool; 3],
    changes: Vec<BalanceChange>,
}

impl Balances {
    pub(crate) fn new(volume: &Array, instance: Option<&Instance>) -> Self {
        let mut balances = Self { ended: [false; 3], changes: Vec::new() };
        balances.look(volume, instance, Nanos::ZERO);
        balances
    }

    pub(crate) fn look(&mut self, volume: &Array, instance: Option<&Instance>, now: Nanos) {
        let shares = [
            (Balance::Volume, volume.credit_share(now)),
            (Balance::InstanceIo, instance.and_then(|instance| instance.io_balance(now))),
            (Balance::InstanceBytes, instance.and_then(|instance| instance.byte_balance(now))),
        ];
        for ((balance, share), ended) in shares.into_iter().zip(&mut self.ended) {
            let Some(share) = share else { continue };
            let is_ended = if *ended { share < BACK } else { share < ENDED };
            if is_ended != *ended {
                *ended = is_ended;
                self.changes.push(BalanceChange { balance, at: now, ended: is_ended });
            }
        }
    }

    /// Whether any of them has ended and is not back.
    pub(crate) fn any_ended(&self) -> bool {
        self.ended.contains(&true)
    }

    pub(crate) fn into_changes(self) -> Vec<BalanceChange> {
        self.changes
    }
}
