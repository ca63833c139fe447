//! The search against trying everything.

use ebbtide_catalog::{Catalog, InstanceType, Raid0, Spec, Usd, VolumeSpec};
use ebbtide_volume::{GIB, Nanos};
use proptest::prelude::*;

use super::{load, of_size, volume};
use crate::sizing::objective::Objective;
use crate::sizing::search::{PricedInstance, Space};
use crate::sizing::{Asked, Choice, Demand, InstanceNeeds, size};

fn objective(gib: u64, carried: f64, p99: Option<Nanos>) -> Objective {
    Objective { size_bytes: gib * GIB, carried, p99 }
}

/// All configurations of a coarse grid: every type, arrays, sizes beyond the need, IOPS and throughput.
fn everything(gib: u64, most_members: u16) -> Vec<Spec> {
    let mut all = Vec::new();
    let mut add = |kind: &str, members: u16, gib: u64, iops: Option<u64>, throughput: Option<u64>| {
        let volume = VolumeSpec {
            kind: kind.into(),
            size_bytes: Some(gib * GIB),
            iops,
            throughput_mib_s: throughput,
            ..VolumeSpec::default()
        };
        let raid0 = (members > 1).then_some(Raid0 { members, chunk_bytes: None });
        all.push(Spec { volume, raid0 });
    };
    for members in 1..=most_members {
        let need = gib.div_ceil(u64::from(members));
        let sizes =
            [need, need * 2, need.max(125), need.max(334), need.max(1_000), need * 4 + 7, need.max(5_334)];
        for size in sizes {
            for kind in ["gp2", "st1", "sc1"] {
                add(kind, members, size, None, None);
            }
            for iops in (1..=20_u64).map(|n| n * 900) {
                add("io1", members, size.max(iops.div_ceil(50)), Some(iops), None);
                add("io2", members, size, Some(iops), None);
            }
            for iops in (0..12).map(|n| 3_000 + n * 1_500) {
                for throughput in (0..10).map(|n| 125 + n * 70) {
                    add("gp3", members, size, Some(iops), Some(throughput));
                }
            }
        }
    }
    all
}

fn cheapest_by_trying(space: &Space<'_>, gib: u64) -> Option<(Usd, Spec)> {
    let priced = everything(gib, space.most_members).into_iter().filter_map(|spec| {
        let resolved = space.catalog.resolve(&spec).ok()?;
        let usd = space.prices.monthly_cost(&resolved)?.usd;
        space.meets(&resolved).then_some((usd, spec))
    });
    priced.min_by_key(|(usd, _)| *usd)
}

fn any_steps() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let step = prop_oneof![
        6 => (0.0_f64..2_500.0, 30.0_f64..3_600.0),
        2 => (2_000.0_f64..9_000.0, 5.0_f64..900.0),
        1 => (9_000.0_f64..22_000.0, 1.0_f64..120.0),
    ];
    proptest::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_search_is_never_dearer_than_trying_everything(
        steps in any_steps(), kib in prop_oneof![Just(8.0_f64), Just(16.0), Just(48.0), Just(256.0)],
        gib in prop_oneof![Just(20_u64), Just(300), Just(1_200)],
        carried in prop_oneof![Just(0.9_f64), Just(0.99), Just(1.0)],
        p99_ms in proptest::option::of(prop_oneof![Just(1_u64), Just(20)]),
    ) {
        let catalog = Catalog::builtin();
        let demand = Demand::of(&of_size(kib * 1_024.0, &steps), 1.0);
        let space = Space {
            catalog: &catalog,
            prices: catalog.prices(None).unwrap(),
            demand: &demand,
            objective: objective(gib, carried, p99_ms.map(Nanos::from_ms)),
            most_members: 2,
            instance: None,
            counts_allowance: false,
            too_little: None,
        };
        let found = space.cheapest(None);
        if let Some((usd, spec)) = cheapest_by_trying(&space, gib) {
            let found = found.as_ref().map(|found| found.usd);
            prop_assert!(found.is_some_and(|found| found <= usd), "{found:?}, and {spec} costs {usd}");
        }
        if let Some(found) = &found {
            prop_assert!(space.meets(&found.resolved), "{} does not meet it", found.resolved.spec);
            prop_assert_eq!(space.cheapest_of_each()[0].usd, found.usd);
            let below = Usd::from_micros(found.usd.micros() + 1);
            prop_assert_eq!(space.cheapest(Some(below)).map(|same| same.usd), Some(found.usd));
            prop_assert_eq!(space.cheapest(Some(found.usd)), None);
        }
    }
}

#[test]
fn the_oracle_would_find_a_dearer_answer() {
    // The canary of the test above: the search bounded by an answer that is too cheap finds none, and trying everything does.
    let catalog = Catalog::builtin();
    let demand = Demand::of(&load(&[(4_000.0, 600.0), (500.0, 3_600.0)]), 1.0);
    let space = Space {
        catalog: &catalog,
        prices: catalog.prices(None).unwrap(),
        demand: &demand,
        objective: objective(300, 1.0, None),
        most_members: 1,
        instance: None,
        counts_allowance: false,
        too_little: None,
    };
    let found = space.cheapest(None).unwrap();
    let (tried, _) = cheapest_by_trying(&space, 300).unwrap();
    assert!(found.usd <= tried, "{} {tried}", found.usd);
    // 24 GiB of storage and 1,000 IOPS above those included are $24.00 and $5.00.
    assert_eq!(found.resolved.spec.to_string(), "gp3:size=300GiB,iops=4000,throughput=125,twp=on");
    assert_eq!(found.usd.to_string(), "$29.00");
}

#[test]
fn more_is_bought_only_of_what_is_needed() {
    let catalog = Catalog::builtin();
    let answer = |bytes: f64, ios: f64, gib: u64, members: u16| {
        let demand = Demand::of(&of_size(bytes, &[(ios, 600.0)]), 1.0);
        let space = Space {
            catalog: &catalog,
            prices: catalog.prices(None).unwrap(),
            demand: &demand,
            objective: objective(gib, 1.0, None),
            most_members: members,
            instance: None,
            counts_allowance: false,
            too_little: None,
        };
        let found = space.cheapest(None).unwrap();
        (crate::sizing::change::short(&found.resolved.spec).to_string(), found.usd.to_string())
    };
    let said = |spec: &str, usd: &str| (spec.to_owned(), usd.to_owned());
    // 2,000 operations of 128 KiB are 250 MiB/s.
    assert_eq!(
        answer(131_072.0, 2_000.0, 500, 1),
        said("gp3:size=500GiB,iops=3000,throughput=250", "$45.00")
    );
    // Two volumes have 6,000 IOPS for nothing.
    assert_eq!(
        answer(8_192.0, 6_000.0, 500, 2),
        said("raid0(2x gp3:size=250GiB,iops=3000,throughput=125)", "$40.00")
    );
    // 10,000 IOPS on 10 GiB need 20 GiB for them.
    assert_eq!(answer(8_192.0, 10_000.0, 10, 1), said("gp3:size=20GiB,iops=10000,throughput=125", "$36.60"));
    // Beyond gp3.
    assert!(answer(8_192.0, 100_000.0, 500, 1).0.starts_with("io2:size=500GiB,iops=100000"));
    // Little load on much data goes to a disk.
    assert!(answer(65_536.0, 5.0, 8_000, 1).0.starts_with("sc1:size=8000GiB"));
}

#[test]
fn an_instance_is_chosen_with_the_volumes_and_its_price_counts() {
    let catalog = Catalog::builtin();
    let prices = catalog.prices(None).unwrap();
    let today = catalog.instance("r5.large").unwrap();
    let needs = InstanceNeeds::of(&today);
    let fitting: Vec<PricedInstance<'_>> = catalog
        .instances()
        .iter()
        // As `ebbtide size` has it where no architecture is named.
        .filter(|one| needs.met_by(one) && one.has_processors_of(&today))
        .filter_map(|instance| Some(PricedInstance { instance, price: prices.instance(&instance.name)? }))
        .collect();
    // Types with burst credits for processors are t2, t3 and t4; trn1 has none.
    let is_burstable = |name: &str| {
        name.strip_prefix('t').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let is_other = |instance: &InstanceType| instance.is_arm() || is_burstable(&instance.name);
    assert!(!fitting.iter().any(|one| is_other(one.instance)));
    let answer = |ios: f64| {
        let demand = Demand::of(&load(&[(ios, 3_600.0)]), 1.0);
        let space = Space {
            catalog: &catalog,
            prices,
            demand: &demand,
            objective: objective(500, 1.0, None),
            most_members: 1,
            instance: None,
            counts_allowance: false,
            too_little: None,
        };
        let (instance, volumes) = space.cheapest_with(&fitting).unwrap();
        let by_trying = fitting.iter().filter_map(|one| {
            let found = Space { instance: Some(one.instance), ..space }.cheapest(None)?;
            Some(found.usd + one.price.month())
        });
        assert_eq!(Some(volumes.usd + instance.price.month()), by_trying.min(), "at {ios}");
        instance.instance.name.clone()
    };
    assert_eq!(answer(3_000.0), "r5.large");
    // An r5.large holds 3,600 for ever; of those that hold 5,000 r5b.large costs least.
    assert_eq!(answer(5_000.0), "r5b.large");
    assert_ne!(answer(18_000.0), "r5.large");
}

#[test]
fn a_p99_below_that_of_a_type_leaves_it_out() {
    let catalog = Catalog::builtin();
    let demand = Demand::of(&load(&[(1_000.0, 3_600.0)]), 1.0);
    let space = Space {
        catalog: &catalog,
        prices: catalog.prices(None).unwrap(),
        demand: &demand,
        objective: objective(500, 1.0, Some(Nanos::from_us(700))),
        most_members: 1,
        instance: None,
        counts_allowance: false,
        too_little: None,
    };
    let kinds: Vec<String> =
        space.cheapest_of_each().iter().map(|one| one.resolved.spec.volume.kind.clone()).collect();
    assert_eq!(kinds, ["io2"]);
    assert!(!space.meets(&volume("gp3:size=500GiB")));
}

#[test]
fn iops_are_bought_in_place_of_throughput_where_that_is_cheaper() {
    // A peak of IOPS, and later one of throughput: one of the two may wait, and the IOPS cost less.
    let mut all = load(&[(3_400.0, 100.0), (100.0, 300.0)]).intervals;
    all.extend(of_size(262_144.0, &[(1_200.0, 100.0)]).intervals);
    all.extend(load(&[(100.0, 500.0)]).intervals);
    let demand = Demand::of(&ebbtide_observe::VolumeLoad { intervals: all }, 1.0);
    let catalog = Catalog::builtin();
    let space = Space {
        catalog: &catalog,
        prices: catalog.prices(None).unwrap(),
        demand: &demand,
        objective: objective(500, 0.75, None),
        most_members: 1,
        instance: None,
        counts_allowance: false,
        too_little: None,
    };
    let found = space.cheapest_of("gp3", 1, None).unwrap();
    // Every step that the search has, as far as it may matter.
    let steps = (0..=10).flat_map(|n| (0..=45).map(move |m| (3_000 + n * 100, 125 + m * 5)));
    let priced = steps.filter_map(|(iops, mib_s)| {
        let volume = volume(&format!("gp3:size=500GiB,iops={iops},throughput={mib_s}"));
        space.meets(&volume).then(|| (space.prices.monthly_cost(&volume).unwrap().usd, iops, mib_s))
    });
    let (usd, iops, mib_s) = priced.min().unwrap();
    assert_eq!((found.usd, found.resolved.spec.volume.iops), (usd, Some(iops)), "{mib_s} MiB/s");
    assert!(iops > 3_000, "the least IOPS with more throughput would cost more");
}

fn asked<'q, 'a>(catalog: &'a Catalog, demand: &'q Demand, gib: u64, most_members: u16) -> Asked<'q, 'a> {
    Asked {
        catalog,
        prices: catalog.prices(None).unwrap(),
        now: demand,
        planned: demand,
        implied: None,
        objective: objective(gib, 0.999, None),
        most_members,
        arrays_asked: false,
        today: None,
        past: None,
        instance: None,
        instances: &[],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_is_the_cheapest_single_volume_and_a_cheaper_array_is_beside_it(
        steps in any_steps(), gib in prop_oneof![Just(300_u64), Just(3_000), Just(20_000)],
    ) {
        let catalog = Catalog::builtin();
        let demand = Demand::of(&load(&steps), 1.0);
        let single = size(&asked(&catalog, &demand, gib, 1));
        let sizing = size(&asked(&catalog, &demand, gib, 4));
        let spec = |choice: Option<&Choice>| choice.map(|choice| choice.volumes.spec.clone());
        if single.choices.is_empty() {
            prop_assert!(sizing.cheaper_array().is_none());
        } else {
            prop_assert_eq!(spec(sizing.choices.first()), spec(single.choices.first()));
        }
        let usd = |choice: &Choice| choice.storage.as_ref().unwrap().usd;
        let dearer = |pair: &[Choice]| usd(&pair[0]) > usd(&pair[1]);
        prop_assert!(!sizing.choices.iter().skip(1).cloned().collect::<Vec<_>>().windows(2).any(dearer));
        if let Some(array) = sizing.cheaper_array() {
            let best = &sizing.choices[0];
            prop_assert!(array.members > 1 && best.volumes.spec.members() == 1);
            prop_assert_eq!(usd(array.choice) + array.saves, usd(best));
            prop_assert_eq!(&sizing.choices[array.place].volumes.spec, &array.choice.volumes.spec);
        }
    }
}

#[test]
fn an_array_is_the_answer_where_no_single_volume_will_do() {
    let catalog = Catalog::builtin();
    // No volume of any type has 80 TiB.
    let demand = Demand::of(&load(&[(500.0, 3_600.0)]), 1.0);
    let sizing = size(&asked(&catalog, &demand, 80 * 1_024, 4));
    assert!(sizing.choices[0].volumes.spec.members() > 1 && sizing.cheaper_array().is_none());
}

#[test]
fn many_iops_cost_less_as_an_array_whose_members_have_them_included() {
    let catalog = Catalog::builtin();
    let demand = Demand::of(&load(&[(11_000.0, 3_600.0)]), 1.0);
    let sizing = size(&asked(&catalog, &demand, 2_000, 4));
    assert_eq!(sizing.choices[0].volumes.spec.members(), 1);
    let array = sizing.cheaper_array().expect("each gp3 volume has 3,000 IOPS without a charge");
    // Where arrays were asked for, it is the answer.
    let wanted = size(&Asked { arrays_asked: true, ..asked(&catalog, &demand, 2_000, 4) });
    assert_eq!(wanted.choices[0].volumes.spec, array.choice.volumes.spec);
    assert!(wanted.cheaper_array().is_none(), "the answer is no cheaper than itself");
    assert_eq!((array.choice.volumes.spec.volume.kind.as_str(), array.members), ("gp3", 4));
}
