//! What may be asked for of a type: sizes, IOPS and throughput, for whoever searches among them.

use crate::{
    Catalog,
    data::{Class, IopsRule, ThroughputRule},
    numbers::whole,
};

/// What may be asked for of an EBS type today.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Provisioning {
    /// Smallest and largest size, GiB.
    pub size_gib: [u64; 2],
    /// The IOPS that may be provisioned; None where the size decides.
    pub iops: Option<IopsRange>,
    /// The throughput that may be provisioned; None where something else decides.
    pub throughput: Option<ThroughputRange>,
}

/// IOPS that may be provisioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IopsRange {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
    /// The most for each GiB, above `any_size`.
    pub per_gib: u64,
    /// So many are allowed whatever the size.
    pub any_size: u64,
}

impl IopsRange {
    /// The least size for so many IOPS, GiB.
    #[must_use]
    pub const fn least_gib(&self, iops: u64) -> u64 {
        if iops <= self.any_size { 1 } else { iops.div_ceil(self.per_gib) }
    }
}

/// Throughput that may be provisioned, MiB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThroughputRange {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
    /// The most for each provisioned operation a second.
    pub per_iops: f64,
}

impl ThroughputRange {
    /// The most with so many IOPS, MiB/s.
    #[must_use]
    pub fn most(&self, iops: u64) -> u64 {
        whole((iops as f64 * self.per_iops).floor()).min(self.max)
    }
}

impl Catalog {
    /// What may be asked for of a type today; None of what is no EBS type.
    #[must_use]
    pub fn provisioning(&self, kind: &str) -> Option<Provisioning> {
        let entry = self.entry(kind).filter(|entry| entry.class == Class::Ebs)?;
        let period = entry.period.last()?;
        let iops = match period.iops {
            Some(IopsRule::Provisioned { min, max, per_gib, any_size, .. }) => {
                Some(IopsRange { min, max, per_gib, any_size })
            }
            _ => None,
        };
        let throughput = match period.throughput {
            Some(ThroughputRule::Provisioned { min, max, per_iops, .. }) => {
                Some(ThroughputRange { min, max, per_iops })
            }
            _ => None,
        };
        Some(Provisioning { size_gib: period.size_gib?, iops, throughput })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    #[test]
    fn what_may_be_asked_for_is_what_aws_takes_and_one_more_is_not() {
        let catalog = Catalog::builtin();
        let takes = |spec: String| Spec::parse(&spec).is_ok_and(|spec| catalog.resolve(&spec).is_ok());
        for kind in ["gp3", "io1", "io2"] {
            let range = catalog.provisioning(kind).and_then(|of| of.iops).expect("its IOPS are provisioned");
            let gib = range.least_gib(range.max);
            assert!(takes(format!("{kind}:size={gib}GiB,iops={}", range.max)), "{kind}");
            assert!(!takes(format!("{kind}:size={gib}GiB,iops={}", range.max + 1)), "{kind}");
            assert!(!takes(format!("{kind}:size={}GiB,iops={}", gib - 1, range.max)), "{kind}");
        }
        let gp3 =
            catalog.provisioning("gp3").and_then(|of| of.throughput).expect("its throughput is provisioned");
        for (iops, most) in [(3_000, 750), (8_000, 2_000), (80_000, 2_000)] {
            assert_eq!(gp3.most(iops), most);
            assert!(takes(format!("gp3:size=1000GiB,iops={iops},throughput={most}")));
            assert!(!takes(format!("gp3:size=1000GiB,iops={iops},throughput={}", most + 1)));
        }
        assert_eq!(catalog.provisioning("nvme"), None);
        assert!(
            catalog.provisioning("gp2").is_some_and(|of| of.iops.is_none() && of.size_gib == [1, 16_384])
        );
    }
}
