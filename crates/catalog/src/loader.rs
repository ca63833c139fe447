//! What the model needs to load a volume from a snapshot.

use std::num::NonZeroU64;

use ebbtide_volume::{Loader, MIB};

use crate::{Catalog, CatalogError, Initialization, Rejection, Spec, data::Class, service::curve};

impl Catalog {
    /// How the blocks of a volume are loaded; none where all are there from the beginning.
    ///
    /// # Errors
    /// [`Rejection::InitializationRate`] for a rate that AWS does not offer.
    pub fn loader(&self, initialization: Initialization) -> Result<Option<Loader>, CatalogError> {
        let rules = &self.initialization;
        let rate = match initialization {
            Initialization::None => return Ok(None),
            Initialization::Lazy => None,
            Initialization::Rate { mib_s } => {
                let (min, max) = (rules.min_mib_s, rules.max_mib_s);
                if !(min..=max).contains(&mib_s) {
                    return Err(Rejection::InitializationRate { mib_s, min, max }.into());
                }
                NonZeroU64::new(mib_s * MIB)
            }
        };
        let first_touch = curve(&rules.first_touch).expect("the curve was checked when it was loaded");
        Ok(Some(Loader { first_touch, rate }))
    }

    /// What a volume from a snapshot has where nothing else is asked for: an EBS volume is lazy, another device has all
    /// of its blocks.
    #[must_use]
    pub fn default_initialization(&self, spec: &Spec) -> Initialization {
        match self.entry(&spec.volume.kind).map(|entry| entry.class) {
            Some(Class::Ebs) => Initialization::Lazy,
            _ => Initialization::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_aws_does_not_offer_is_refused_with_the_range() {
        let catalog = Catalog::builtin();
        for mib_s in [100, 101, 300] {
            let loader = catalog.loader(Initialization::Rate { mib_s }).unwrap().unwrap();
            assert_eq!(loader.rate.unwrap().get(), mib_s * MIB);
        }
        for mib_s in [0, 99, 301, u64::MAX] {
            let error = catalog.loader(Initialization::Rate { mib_s }).unwrap_err();
            assert!(error.to_string().contains("100 to 300 MiB/s"), "{error}");
            assert!(error.to_string().contains(&mib_s.to_string()), "{error}");
            assert!(error.hint().unwrap().contains("rate=100MiB/s"), "{error}");
        }
        assert_eq!(catalog.loader(Initialization::Lazy).unwrap().unwrap().rate, None);
        assert_eq!(catalog.loader(Initialization::None).unwrap(), None);
    }

    #[test]
    fn the_first_touch_takes_what_was_reported_in_the_mean() {
        let mean = crate::service::mean_us(&Catalog::builtin().initialization.first_touch);
        // The source names 35 ms.
        assert!((33_000.0..38_000.0).contains(&mean), "{mean} us");
    }

    #[test]
    fn ebs_volumes_are_lazy_by_default_and_other_devices_are_not() {
        let catalog = Catalog::builtin();
        let default = |text: &str| catalog.default_initialization(&Spec::parse(text).unwrap());
        for spec in ["gp3:size=1GiB", "gp2@2016:size=1GiB", "st1:size=500GiB", "raid0(2x gp3:size=1GiB)"] {
            assert_eq!(default(spec), Initialization::Lazy, "{spec}");
        }
        for spec in ["ideal:size=1GiB", "nvme", "instance-store:i3en.large", "aurora-log"] {
            assert_eq!(default(spec), Initialization::None, "{spec}");
        }
    }
}
