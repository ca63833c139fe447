//! Burst credits as an amount, in the unit of the limit that has them.

/// What a credit pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditUnit {
    /// An operation, as the limit counts them (gp2).
    Operations,
    /// A byte (st1, sc1).
    Bytes,
}

/// The burst credits of a volume, or of the members of an array together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credits {
    /// What the amounts below count.
    pub unit: CreditUnit,
    /// Credits left.
    pub left: f64,
    /// Credits when all are there.
    pub capacity: u64,
    /// Credits that come back a second.
    pub refill_rate: u64,
}

impl Credits {
    /// Those of two members of an array. Members are of one type, so that both have one unit.
    #[must_use]
    pub fn combined(self, other: Self) -> Self {
        Self {
            unit: self.unit,
            left: self.left + other.left,
            capacity: self.capacity + other.capacity,
            refill_rate: self.refill_rate + other.refill_rate,
        }
    }

    /// Seconds in which empty credits fill up on an idle volume.
    #[must_use]
    pub fn refill_seconds(&self) -> f64 {
        self.capacity as f64 / self.refill_rate.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use crate::{Array, Limits, Nanos, RateLimit};

    use super::*;

    fn credited(size_bytes: u64) -> Limits {
        let iops = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        Limits { iops: Some(iops), ..Limits::unlimited(size_bytes) }
    }

    #[test]
    fn credits_are_amounts_of_the_limit_that_has_them_and_add_up_in_an_array() {
        let mut single = Array::single(credited(1 << 30), Nanos::ZERO).unwrap();
        single.set_credit_share(0.25, Nanos::ZERO);
        let credits = single.credits(Nanos::ZERO).unwrap();
        assert_eq!((credits.unit, credits.capacity), (CreditUnit::Operations, 5_400_000));
        assert!((credits.left - 1_350_000.0).abs() < 1.0, "{credits:?}");
        assert!((credits.refill_seconds() - 18_000.0).abs() < 1e-9, "{credits:?}");
        let members = [credited(1 << 30), credited(1 << 30)].into();
        let mut striped = Array::striped(members, 4096, Nanos::ZERO).unwrap();
        striped.set_credit_share(0.5, Nanos::ZERO);
        let both = striped.credits(Nanos::ZERO).unwrap();
        assert!(both.capacity == 10_800_000 && (both.left - 5_400_000.0).abs() < 1.0, "{both:?}");
        let limit = striped.iops_limit().unwrap();
        assert_eq!((limit.rate, limit.ceiling, striped.throughput_limit()), (600, 6_000, None));
        let bytes = RateLimit { rate: 20 << 20, ceiling: 125 << 20, allowance: 0, credits: 1 << 40 };
        let disk = Limits { throughput: Some(bytes), ..Limits::unlimited(1 << 30) };
        let disk = Array::single(disk, Nanos::ZERO).unwrap().credits(Nanos::ZERO).unwrap();
        assert_eq!((disk.unit, disk.capacity, disk.refill_rate), (CreditUnit::Bytes, 1 << 40, 20 << 20));
        let plain = Array::single(Limits::unlimited(1 << 30), Nanos::ZERO).unwrap();
        assert_eq!(plain.credits(Nanos::ZERO), None);
    }
}
