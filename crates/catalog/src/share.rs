//! A share of a machine: volumes and instance limits divided, latencies as they are.

use ebbtide_volume::{Limits, MIB, RateLimit};

use crate::{InstanceType, Resolved};

impl Resolved {
    /// A share of the volume, one of `by` (1 or more): everything that adds up is divided, which is size, IOPS,
    /// throughput, credits, and how many I/Os its stations serve at a time. How long an I/O takes stays.
    ///
    /// [`Self::spec`] stays that of the whole volume: no text names a share.
    #[must_use]
    pub fn divided(mut self, by: u32) -> Self {
        if by == 1 {
            return self;
        }
        let divisor = u64::from(by);
        for limits in &mut self.members {
            divide(limits, by);
        }
        let figures = &mut self.figures;
        for iops in [&mut figures.iops, &mut figures.burst_iops].into_iter().flatten() {
            *iops = (*iops / divisor).max(1);
        }
        let rates = [&mut figures.throughput_mib_s, &mut figures.burst_throughput_mib_s];
        for rate in rates.into_iter().flatten() {
            *rate /= f64::from(by);
        }
        self.description = format!("1/{by} of {}", self.description);
        self
    }
}

impl InstanceType {
    /// The instance with its EBS limits divided by `by` (1 or more).
    #[must_use]
    pub fn divided(mut self, by: u32) -> Self {
        let divisor = u64::from(by);
        self.limits.iops = rate(self.limits.iops, divisor);
        self.limits.throughput = rate(self.limits.throughput, divisor);
        self.baseline_iops /= divisor;
        self.maximum_iops /= divisor;
        self.baseline_mbps /= divisor;
        self.maximum_mbps /= divisor;
        self
    }

    /// The instance whose half hour of burst is behind it.
    #[must_use]
    pub fn without_burst(mut self) -> Self {
        self.limits.iops = RateLimit::flat(self.limits.iops.rate);
        self.limits.throughput = RateLimit::flat(self.limits.throughput.rate);
        self.maximum_iops = self.baseline_iops;
        self.maximum_mbps = self.baseline_mbps;
        self
    }
}

fn divide(limits: &mut Limits, by: u32) {
    let divisor = u64::from(by);
    // Whole MiB, so that file systems and stripes come out even.
    limits.size_bytes = (limits.size_bytes / divisor / MIB * MIB).max(MIB);
    limits.iops = limits.iops.map(|limit| rate(limit, divisor));
    limits.throughput = limits.throughput.map(|limit| rate(limit, divisor));
    let stations = |all: u16| u16::try_from(u32::from(all) / by).unwrap_or(all).max(1);
    let service = &mut limits.service;
    service.parallelism = service.parallelism.map(stations);
    service.write_parallelism = service.write_parallelism.map(stations);
    // Of a smaller disk of the same seeks.
    if let Some(mechanics) = &mut service.mechanics {
        mechanics.capacity_bytes = (mechanics.capacity_bytes / divisor).max(1);
    }
}

/// Credits are divided with the rate, so that they last as long as before.
fn rate(limit: RateLimit, divisor: u64) -> RateLimit {
    RateLimit {
        rate: (limit.rate / divisor).max(1),
        ceiling: (limit.ceiling / divisor).max(1),
        allowance: limit.allowance / divisor,
        credits: limit.credits / divisor,
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{GIB, Nanos};

    use super::*;
    use crate::Catalog;

    fn resolved(spec: &str) -> Resolved {
        Catalog::builtin().resolve(&spec.parse().unwrap()).unwrap()
    }

    #[test]
    fn an_eighth_of_a_gp2_has_an_eighth_of_everything_and_bursts_as_long() {
        let whole = resolved("gp2:size=500GiB");
        let eighth = whole.clone().divided(8);
        let [limits] = eighth.members.as_slice() else { panic!("one volume") };
        let iops = limits.iops.unwrap();
        assert_eq!((iops.rate, iops.ceiling, iops.credits), (187, 375, 675_000));
        assert_eq!(limits.size_bytes, 500 * GIB / 8);
        assert_eq!(eighth.size_bytes(), 500 * GIB / 8);
        let lasts = |limit: RateLimit| limit.credits as f64 / (limit.ceiling - limit.rate) as f64;
        let before = lasts(whole.members[0].iops.unwrap());
        assert!((lasts(iops) / before - 1.0).abs() < 0.01, "{} against {before} s", lasts(iops));
        assert_eq!(limits.service, whole.members[0].service);
        assert_eq!(eighth.description, format!("1/8 of {}", whole.description));
    }

    #[test]
    fn a_share_of_any_volume_and_instance_can_be_attached() {
        let catalog = Catalog::builtin();
        for info in catalog.types() {
            let sized = format!("{}:size=500GiB", info.name);
            let of_their_own = || catalog.resolve(&info.name.parse().unwrap());
            let provisioned = || catalog.resolve(&format!("{sized},iops=3000").parse().unwrap());
            let whole = catalog.resolve(&sized.parse().unwrap()).or_else(|_| provisioned());
            let whole = whole.or_else(|_| of_their_own()).unwrap();
            for by in [2, 7, 1000] {
                let volume = whole.clone().divided(by);
                for limits in &volume.members {
                    limits.check().unwrap_or_else(|error| panic!("{}/{by}: {error}", info.name));
                }
                assert!(volume.array(Nanos::ZERO).size_bytes() > 0);
            }
        }
        for kind in catalog.instances() {
            let share = kind.clone().divided(1000);
            share.limits.check().unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
    }

    #[test]
    fn a_whole_machine_stays_as_it_is() {
        let whole = resolved("raid0(2x gp3:size=250GiB,iops=8000)");
        assert_eq!(whole.clone().divided(1), whole);
    }
}
