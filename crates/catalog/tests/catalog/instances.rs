//! The instance table.

use ebbtide_catalog::{Catalog, EbsOptimized};

#[test]
fn the_table_is_whole() {
    let catalog = Catalog::builtin();
    assert_eq!(catalog.instances().len(), 1_373, "the source has 1,373 types");
    assert!(catalog.instances().windows(2).all(|pair| pair[0].name < pair[1].name), "they are in order");
    for family in
        ["r5", "r5b", "r6g", "r6i", "r7g", "r7i", "r8g", "m5", "m6i", "c5", "t3", "t4g", "i3", "i3en", "i4i"]
    {
        let prefix = format!("{family}.");
        assert!(catalog.instances().iter().any(|i| i.name.starts_with(&prefix)), "{family} is missing");
    }
}

#[test]
fn limits_are_as_the_table_gives() {
    let catalog = Catalog::builtin();
    // (name, baseline and maximum IOPS, baseline and maximum 10^6 bytes/s, bursts)
    for (name, iops, mb_s, bursts) in [
        ("r5.large", (3_600, 18_750), (81.25, 593.75), true),
        ("r5.8xlarge", (30_000, 30_000), (850.0, 850.0), false),
        ("r6g.8xlarge", (40_000, 40_000), (1_187.5, 1_187.5), false),
        ("r8gb.48xlarge", (1_440_000, 1_440_000), (37_500.0, 37_500.0), false),
        ("t3.medium", (2_000, 11_800), (43.375, 260.625), true),
        ("i3.large", (3_000, 3_000), (53.125, 53.125), false),
        ("i3en.large", (3_000, 20_000), (72.0, 593.75), true),
        ("c5.9xlarge", (40_000, 40_000), (1_187.5, 1_187.5), false),
        ("m4.large", (3_600, 3_600), (56.25, 56.25), false),
        ("t3.nano", (250, 11_800), (5.375, 260.625), true),
        ("g4ad.xlarge", (1_700, 13_333), (50.0, 396.25), true),
        ("u7in-32tb.224xlarge", (560_000, 560_000), (12_500.0, 12_500.0), false),
    ] {
        let instance = catalog.instance(name).unwrap();
        let limits = instance.limits;
        assert_eq!((limits.iops.rate, limits.iops.ceiling), iops, "{name}");
        assert_eq!(limits.throughput.rate as f64 / 1e6, mb_s.0, "{name}");
        assert_eq!(limits.throughput.ceiling as f64 / 1e6, mb_s.1, "{name}");
        assert_eq!(instance.bursts(), bursts, "{name}");
    }
}

#[test]
fn a_burst_holds_the_maximum_for_thirty_minutes() {
    for instance in Catalog::builtin().instances() {
        instance.limits.check().unwrap();
        for rate in [instance.limits.iops, instance.limits.throughput] {
            let seconds = rate.credits.checked_div(rate.ceiling - rate.rate);
            assert!(seconds.is_none_or(|seconds| seconds == 1_800), "{}", instance.name);
        }
    }
}

#[test]
fn database_classes_are_their_instances() {
    let catalog = Catalog::builtin();
    assert_eq!(catalog.instance("db.r6g.8xlarge").unwrap(), catalog.instance("R6G.8xlarge").unwrap());
    let host = catalog.instance("r6g.8xlarge").unwrap();
    assert_eq!((host.vcpus, host.memory_gib, host.ebs_slots, host.slots_shared), (32, 256.0, 27, true));
    let store = catalog.instance("i4i.32xlarge").unwrap();
    assert_eq!((store.store_disks, store.store_disk_gb), (8, 3_750));
}

#[test]
fn every_type_has_the_facts_of_its_row() {
    let catalog = Catalog::builtin();
    for (name, vcpus, memory_gib, architecture, optimized, current, disks) in [
        ("c5.9xlarge", 36, 72.0, "x86_64", EbsOptimized::Default, false, (0, 0)),
        ("t2.micro", 1, 1.0, "x86_64", EbsOptimized::Unsupported, true, (0, 0)),
        ("m3.xlarge", 4, 15.0, "x86_64", EbsOptimized::Supported, false, (2, 40)),
        ("a1.large", 2, 4.0, "arm64", EbsOptimized::Default, false, (0, 0)),
        ("i3.large", 2, 15.25, "x86_64", EbsOptimized::Default, true, (1, 475)),
        ("mac2.metal", 8, 16.0, "arm64_mac", EbsOptimized::Default, true, (0, 0)),
    ] {
        let kind = catalog.instance(name).unwrap();
        let facts =
            (kind.vcpus, kind.memory_gib, kind.architecture.as_str(), kind.ebs_optimized, kind.current);
        assert_eq!(facts, (vcpus, memory_gib, architecture, optimized, current), "{name}");
        assert_eq!((kind.store_disks, kind.store_disk_gb), disks, "{name}");
        assert_eq!(kind.provenance.date, "2026-08-22", "{name}");
    }
}

#[test]
fn a_type_that_is_not_ebs_optimized_has_no_limit_that_any_volume_waits_for() {
    let catalog = Catalog::builtin();
    let without: Vec<_> = catalog.instances().iter().filter(|kind| !kind.has_limits()).collect();
    assert_eq!(without.len(), 19);
    for kind in without {
        assert_eq!(kind.ebs_optimized, EbsOptimized::Unsupported, "{}", kind.name);
        assert_eq!((kind.baseline_iops, kind.maximum_iops, kind.maximum_mbps), (0, 0, 0), "{}", kind.name);
        assert!(kind.limits.iops.rate >= 1_000_000_000 && kind.limits.throughput.rate >= 1_000_000_000_000);
        assert!(!kind.bursts() && !kind.is_ebs_optimized(), "{}", kind.name);
    }
}

#[test]
fn prices_are_of_nearly_all_types_and_dated() {
    let catalog = Catalog::builtin();
    let prices = catalog.prices(Some("us-east-1")).unwrap();
    let priced = catalog.instances().iter().filter(|kind| prices.instance(&kind.name).is_some()).count();
    assert_eq!(priced, 1_345, "28 types have no price in the list");
    for (name, micros) in [("c5.9xlarge", 1_530_000), ("t2.micro", 11_600), ("r5.large", 126_000)] {
        let price = prices.instance(name).unwrap();
        assert_eq!((price.usd_hour.micros(), price.as_of.as_str()), (micros, "2026-07-20"), "{name}");
    }
    assert_eq!(prices.instance("mac2.metal"), None);
    assert_eq!(catalog.prices(Some("eu-west-1")).unwrap().instance("c5.9xlarge"), None, "no source");
}

#[test]
fn an_override_of_one_instance_leaves_the_others() {
    let text = "[[override]]\ninstance = \"t2.micro\"\nreason = \"measured\"\nsource = \"fio\"\ndate = \"2026-11-20\"\n\
                set = { ebs_optimized = \"default\", baseline_mbps = 64, maximum_mbps = 512, baseline_iops = 500, maximum_iops = 4000 }\n";
    let catalog = Catalog::with_overrides_text("user.toml", text).unwrap();
    let micro = catalog.instance("t2.micro").unwrap();
    assert!(micro.has_limits() && micro.bursts());
    assert_eq!((micro.limits.iops.rate, micro.limits.throughput.rate), (500, 8_000_000));
    assert_eq!(catalog.instances().len(), 1_373);
    assert_eq!(catalog.instance("c5.9xlarge").unwrap(), Catalog::builtin().instance("c5.9xlarge").unwrap());
    assert_eq!(catalog.instance("zz.large").unwrap_err().to_string().find("unknown"), Some(0));
}
