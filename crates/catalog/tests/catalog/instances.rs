//! The instance table.

use ebbtide_catalog::Catalog;

#[test]
fn the_table_is_whole() {
    let catalog = Catalog::builtin();
    assert_eq!(catalog.instances().len(), 103, "the source has 103 rows");
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
