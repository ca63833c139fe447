//! Limits by size and provisioning, row for row as AWS's tables give them.

use ebbtide_catalog::{Catalog, Raid0, Spec};
use ebbtide_volume::{AtomicUnit, Merge, Nanos};
use proptest::prelude::*;

use crate::support::{MIB, resolve, spec};

#[test]
fn gp2_earns_and_bursts_as_its_table_gives() {
    // (GiB, baseline, burst s at 3,000, refill s) of the EBS user guide, general-purpose.
    let rows = [
        (1, 100, Some((1_862, 54_000))),
        (33, 100, Some((1_862, 54_000))),
        (100, 300, Some((2_000, 18_000))),
        (334, 1_002, Some((2_703, 5_389))),
        (750, 2_250, Some((7_200, 2_400))),
        (1_000, 3_000, None),
        (5_333, 15_999, None),
        (5_334, 16_000, None),
        (16_384, 16_000, None),
    ];
    for (gib, baseline, burst) in rows {
        let volume = resolve(&format!("gp2:size={gib}GiB"));
        let iops = volume.members[0].iops.unwrap();
        assert_eq!(iops.rate, baseline, "{gib} GiB");
        assert_eq!(iops.ceiling, baseline.max(3_000), "{gib} GiB");
        assert_eq!(iops.allowance, 0, "no allowance was measured on gp2");
        assert_eq!(volume.figures.burst_seconds.map(f64::round), burst.map(|b| f64::from(b.0)), "{gib} GiB");
        assert_eq!(volume.figures.refill_seconds.map(f64::round), burst.map(|b| f64::from(b.1)), "{gib} GiB");
        assert_eq!(iops.credits, if burst.is_some() { 5_400_000 } else { 0 });
    }
}

#[test]
fn gp2_throughput_steps_at_170_gib() {
    for (gib, mib_s) in [(1, 128), (170, 128), (171, 250), (333, 250), (334, 250), (16_384, 250)] {
        let limits = &resolve(&format!("gp2:size={gib}GiB")).members[0];
        assert_eq!(limits.throughput.unwrap().rate, mib_s * MIB, "{gib} GiB");
    }
}

#[test]
fn below_334_gib_gp2_without_credits_cannot_reach_250_mib_s() {
    for gib in 171..334 {
        let limits = &resolve(&format!("gp2:size={gib}GiB")).members[0];
        let baseline_bytes = limits.iops.unwrap().rate * u64::from(limits.accounting.unit_bytes);
        assert!(baseline_bytes < 250 * MIB, "{gib} GiB");
    }
}

#[test]
fn gp3_gives_what_is_provisioned_and_one_idle_second_beyond() {
    let volume = resolve("gp3:size=500GiB,iops=6000,throughput=250");
    let limits = &volume.members[0];
    let (iops, throughput) = (limits.iops.unwrap(), limits.throughput.unwrap());
    assert_eq!((iops.rate, iops.ceiling, iops.allowance, iops.credits), (6_000, 6_000, 6_000, 0));
    assert_eq!((throughput.rate, throughput.allowance), (250 * MIB, 250 * MIB));
    assert_eq!(volume.figures.burst_seconds, None);
    let default = resolve("gp3:size=1GiB");
    assert_eq!(default.spec.to_string(), "gp3:size=1GiB,iops=3000,throughput=125,twp=on");
    assert_eq!(resolve("gp3:size=160GiB,iops=80000,throughput=2000").figures.iops, Some(80_000));
    assert_eq!(resolve("gp3:size=16GiB,iops=8000,throughput=2000").figures.throughput_mib_s, Some(2_000.0));
}

#[test]
fn io1_throughput_follows_its_iops() {
    for (iops, mib_s) in [(1_000, 250), (2_000, 500), (32_000, 500), (48_000, 750), (64_000, 1_000)] {
        let limits = &resolve(&format!("io1:size=1280GiB,iops={iops}")).members[0];
        assert_eq!(limits.throughput.unwrap().rate, mib_s * MIB, "{iops} IOPS");
        assert_eq!(limits.iops.unwrap().allowance, 0, "no allowance was measured on io1");
    }
}

#[test]
fn io2_gives_a_quarter_mib_per_iops_up_to_4000() {
    for (iops, mib_s) in
        [(100, 25.6), (1_000, 256.0), (10_000, 2_560.0), (16_000, 4_000.0), (256_000, 4_000.0)]
    {
        let volume = resolve(&format!("io2:size=256GiB,iops={iops}"));
        let measured = volume.figures.throughput_mib_s.unwrap();
        assert!((measured - mib_s).abs() < 1e-5, "{iops} IOPS: {measured}");
    }
}

#[test]
fn hdd_types_have_base_burst_and_a_tib_of_credits_per_tib() {
    // (type, GiB, base, burst) of the EBS user guide, hdd-vols; 125 GiB is its 0.125 TiB.
    let rows = [
        ("st1", 128, 5.0, Some(31.25)),
        ("st1", 1_024, 40.0, Some(250.0)),
        ("st1", 2_048, 80.0, Some(500.0)),
        ("st1", 5_120, 200.0, Some(500.0)),
        ("st1", 12_800, 500.0, None),
        ("st1", 16_384, 500.0, None),
        ("sc1", 128, 1.5, Some(10.0)),
        ("sc1", 3_200, 37.5, Some(250.0)),
        ("sc1", 16_384, 192.0, Some(250.0)),
    ];
    for (kind, gib, base, burst) in rows {
        let volume = resolve(&format!("{kind}:size={gib}GiB"));
        assert_eq!(volume.figures.throughput_mib_s, Some(base), "{kind} {gib}");
        assert_eq!(volume.figures.burst_throughput_mib_s, burst, "{kind} {gib}");
        let limits = &volume.members[0];
        assert_eq!(limits.iops, None, "HDD volumes are limited by throughput alone");
        assert_eq!(limits.throughput.unwrap().credits, if burst.is_some() { limits.size_bytes } else { 0 });
    }
}

#[test]
fn full_credits_outlast_one_scan_of_an_hdd_volume() {
    for (kind, hours) in [("st1", 2.91), ("sc1", 5.83)] {
        let volume = resolve(&format!("{kind}:size=5TiB"));
        let burst = volume.figures.burst_throughput_mib_s.unwrap();
        let scan_s = 5.0 * 1024.0 * 1024.0 / burst;
        assert!((scan_s / 3_600.0 - hours).abs() < 0.01, "{kind}: {scan_s} s");
        assert!(volume.figures.burst_seconds.unwrap() >= scan_s, "{kind}");
    }
}

#[test]
fn io_is_counted_at_256_kib_on_ssd_and_1_mib_on_hdd() {
    for (text, unit_kib, merge, whole) in [
        ("gp2:size=1GiB", 256, Merge::Waiting, false),
        ("gp3:size=1GiB", 256, Merge::Waiting, false),
        ("io1:size=4GiB,iops=100", 256, Merge::Waiting, false),
        ("io2:size=4GiB,iops=100", 256, Merge::Waiting, false),
        ("st1:size=125GiB", 1024, Merge::Contiguous, true),
        ("sc1:size=125GiB", 1024, Merge::Contiguous, true),
        ("standard:size=1GiB", 1024, Merge::Contiguous, false),
    ] {
        let accounting = resolve(text).members[0].accounting;
        assert_eq!(accounting.unit_bytes, unit_kib << 10, "{text}");
        assert_eq!((accounting.merge, accounting.whole_units), (merge, whole), "{text}");
    }
}

#[test]
fn arrays_repeat_their_member_and_default_to_md_chunks() {
    let volume = resolve("raid0(2x gp3:size=250GiB)");
    assert_eq!(volume.members.len(), 2);
    assert_eq!(volume.chunk_bytes, 512 << 10);
    assert_eq!(volume.size_bytes(), 500 << 30);
    assert_eq!(
        volume.spec.to_string(),
        "raid0(2x gp3:size=250GiB,iops=3000,throughput=125,twp=on; chunk=512KiB)"
    );
    assert_eq!(resolve("raid0(4x nvme; chunk=64KiB)").chunk_bytes, 64 << 10);
}

#[test]
fn credits_at_creation_reach_every_member() {
    let volume = resolve("raid0(2x gp2:size=100GiB,credits=2%)");
    let array = volume.array(Nanos::ZERO);
    let shares: Vec<_> =
        array.members().iter().map(|member| member.credit_share(Nanos::ZERO).unwrap()).collect();
    assert!(shares.iter().all(|share| (share - 0.02).abs() < 1e-9), "{shares:?}");
    let full = resolve("gp2:size=100GiB").array(Nanos::ZERO);
    assert_eq!(full.credit_share(Nanos::ZERO), Some(1.0));
}

#[test]
fn power_cuts_keep_16_kib_on_ebs_and_lose_the_cache_of_a_consumer_ssd() {
    for (text, unit, cache) in [
        ("gp3:size=1GiB", AtomicUnit::SixteenKib, 0),
        ("gp3:size=1GiB,twp=off", AtomicUnit::FourKib, 0),
        ("gp2@2016:size=1GiB", AtomicUnit::FourKib, 0),
        ("st1:size=125GiB", AtomicUnit::SixteenKib, 0),
        ("sas-hdd-15k", AtomicUnit::FourKib, 0),
        ("sata-ssd", AtomicUnit::FourKib, 32 * MIB),
        ("nvme", AtomicUnit::FourKib, 0),
        ("ideal", AtomicUnit::FourKib, 0),
        ("ideal:twp=on", AtomicUnit::SixteenKib, 0),
        ("instance-store:i3en.large", AtomicUnit::FourKib, 0),
        ("instance-store:i4i.large", AtomicUnit::SixteenKib, 0),
    ] {
        let durability = resolve(text).members[0].durability;
        assert_eq!((durability.atomic_unit, durability.volatile_cache_bytes), (unit, cache), "{text}");
    }
}

#[test]
fn a_resolved_spec_resolves_to_itself() {
    let catalog = Catalog::builtin();
    let texts = catalog.types().iter().map(|info| match &info.name[..] {
        "io1" | "io2" => format!("{}:size=500GiB,iops=2000", info.name),
        name if info.launched.is_some() => format!("{name}:size=500GiB"),
        name => name.to_owned(),
    });
    for text in texts.chain(["raid0(3x gp2@2016:size=200GiB,credits=12.5%; chunk=64KiB)".to_owned()]) {
        let first = resolve(&text);
        let again = catalog.resolve(&spec(&first.spec.to_string())).unwrap();
        assert_eq!(first, again, "{text}");
    }
}

#[test]
fn descriptions_name_size_limits_and_burst() {
    assert_eq!(
        resolve("gp2:size=100GiB").description,
        "gp2, 100 GiB, 300 IOPS (3000 for 33 min 20 s on full credits, refilled in 5 h), 128 MiB/s"
    );
    assert_eq!(resolve("ideal:size=4GiB").description, "ideal, 4 GiB, no limits");
    let sc1 = resolve("sc1:size=125GiB").description;
    assert!(sc1.contains(", 1.46 MiB/s ("), "{sc1}");
    assert_eq!(
        resolve("raid0(2x gp3@2021:size=250GiB)").description,
        "RAID 0 of 2, chunk 512 KiB, each: gp3 as of 2021, 250 GiB, 3000 IOPS, 125 MiB/s"
    );
}

#[test]
fn an_array_that_no_text_could_ask_for_is_refused() {
    let Spec { volume, .. } = spec("nvme");
    for raid0 in [Raid0 { members: 0, chunk_bytes: None }, Raid0 { members: 2, chunk_bytes: Some(1_000) }] {
        let refused = Catalog::builtin().resolve(&Spec { volume: volume.clone(), raid0: Some(raid0) });
        assert!(refused.is_err(), "{raid0:?}");
    }
}

proptest! {
    #[test]
    fn a_gp3_is_accepted_exactly_where_its_rules_allow_it(
        gib in prop_oneof![0..200_u64, 0..70_000_u64],
        iops in prop_oneof![2_900..3_100_u64, 0..90_000_u64],
        mib_s in prop_oneof![100..800_u64, 0..2_200_u64],
    ) {
        prop_assume!(gib > 0);
        let allowed = gib <= 65_536
            && (3_000..=80_000).contains(&iops)
            && (iops == 3_000 || iops <= 500 * gib)
            && (125..=2_000).contains(&mib_s)
            && 4 * mib_s <= iops;
        let text = format!("gp3:size={gib}GiB,iops={iops},throughput={mib_s}");
        let resolved = Catalog::builtin().resolve(&spec(&text));
        prop_assert_eq!(resolved.is_ok(), allowed, "{}: {:?}", text, resolved.map(|r| r.description));
    }

    #[test]
    fn whatever_resolves_makes_volumes_and_resolves_to_itself(
        kind in 0..32_usize,
        gib in 1..20_000_u64,
        iops in proptest::option::of(100..20_000_u64),
        members in 1..5_u16,
        day in prop_oneof![Just(""), Just("@2016-06-01"), Just("@2019"), Just("@2021"), Just("@2026")],
    ) {
        let catalog = Catalog::builtin();
        let name = &catalog.types()[kind].name;
        let iops = iops.map(|iops| format!(",iops={iops}")).unwrap_or_default();
        let text = format!("raid0({members}x {name}{day}:size={gib}GiB{iops})");
        if let Ok(resolved) = catalog.resolve(&spec(&text)) {
            prop_assert_eq!(resolved.array(Nanos::ZERO).members().len(), usize::from(members));
            prop_assert!(resolved.size_bytes() > 0);
            prop_assert_eq!(catalog.resolve(&spec(&resolved.spec.to_string())).unwrap(), resolved);
        }
    }
}
