//! Experiments, profiles, specs of volumes, and AWS's price lists.

use std::sync::LazyLock;

use ebbtide_catalog::price_list::PriceList;
use ebbtide_catalog::{Catalog, Spec};
use ebbtide_lab::experiment::{Overrides, parse};
use ebbtide_twin::profile::{MachineFacts, Profile};

use crate::text;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

/// Read alone: a check asks the programs that the experiment names for their versions.
pub(super) fn experiment(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    for quick in [false, true] {
        let _ = parse("x", "x.toml", text, &Overrides { seed: Some(1), quick, ..Overrides::default() });
    }
}

pub(super) fn profile(bytes: &[u8]) {
    let Some(Ok(profile)) = text(bytes).map(Profile::parse) else { return };
    if let Ok(planned) = profile.plan(MachineFacts { vcpus: Some(2), memory_bytes: Some(1 << 33) }, 1) {
        let _ = planned.not_modelled(false);
    }
}

pub(super) fn spec(bytes: &[u8]) {
    let Some(Ok(spec)) = text(bytes).map(str::parse::<Spec>) else { return };
    assert_eq!(spec.to_string().parse().ok().as_ref(), Some(&spec), "a spec is read as it is written");
    let _ = CATALOG.resolve(&spec);
}

pub(super) fn price_list(bytes: &[u8]) {
    let Ok(list) = PriceList::read("x", bytes) else { return };
    let _ = Catalog::builtin().take_prices(&list);
}
