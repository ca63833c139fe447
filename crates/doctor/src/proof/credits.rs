//! Burst credits of a volume whose replacement is proved.

use ebbtide_catalog::{Catalog, CreditShare, Spec};
use ebbtide_volume::Nanos;

/// Where the volume of a role bursts, and how many credits are left was not said: the trial's are full.
pub(crate) fn full_credits(catalog: &Catalog, code: &str, role: &str, spec: &str) -> Option<String> {
    let mut spec: Spec = spec.parse().ok()?;
    let bursts = catalog.resolve(&spec).ok()?.array(Nanos::ZERO).credit_share(Nanos::ZERO).is_some();
    if !bursts || spec.volume.credits.is_some() {
        return None;
    }
    spec.volume.credits = Some(CreditShare::from_ppm(0));
    Some(format!(
        "{code}: a trial begins with full burst credits of the {role} volume, and the gain after their end is not in it. Say what is \
         left: --volume '{role}={spec}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_that_burst_have_full_credits_unless_a_share_is_named() {
        let said = |spec: &str| full_credits(&Catalog::builtin(), "E02", "data", spec);
        assert!(said("gp2:size=500GiB").unwrap().ends_with("--volume 'data=gp2:size=500GiB,credits=0%'"));
        let array = said("raid0(2x gp2:size=500GiB)").unwrap();
        assert!(array.ends_with("--volume 'data=raid0(2x gp2:size=500GiB,credits=0%)'"), "{array}");
        for other in ["gp2:size=500GiB,credits=20%", "gp2:size=2TiB", "gp3:size=500GiB", "no spec"] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
