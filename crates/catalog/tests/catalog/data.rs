//! The data files: complete, sourced, and refused when they contradict themselves.

use std::collections::BTreeSet;

use ebbtide_catalog::{Catalog, TypeInfo};

#[test]
fn every_type_is_there() {
    let catalog = Catalog::builtin();
    let names: BTreeSet<_> = catalog.types().iter().map(|info| &info.name[..]).collect();
    for name in [
        "gp2",
        "gp3",
        "io1",
        "io2",
        "st1",
        "sc1",
        "standard",
        "sas-hdd-15k",
        "sata-ssd",
        "sas-ssd",
        "nvme",
        "aurora-pages",
        "aurora-log",
        "aurora-enhanced-binlog",
        "aurora-pages-io-optimized",
        "aurora-log-io-optimized",
        "aurora-enhanced-binlog-io-optimized",
        "ideal",
        "instance-store:i3.large",
        "instance-store:i3en.24xlarge",
        "instance-store:i8g.48xlarge",
    ] {
        assert!(names.contains(name), "{name} is missing");
    }
    let classes = names.iter().filter(|name| name.starts_with("instance-store:")).count();
    assert_eq!(classes, 20, "the published table has 20 classes");
    assert_eq!(names.len(), 38);
}

#[test]
fn every_figure_has_its_source_and_date() {
    let catalog = Catalog::builtin();
    let of_types = catalog.types().iter().flat_map(|info| [&info.provenance, &info.service_provenance]);
    let of_instances = catalog.instances().iter().map(|instance| &instance.provenance);
    let of_rules: Vec<_> = catalog.rules().into_iter().map(|(_, provenance)| provenance).collect();
    assert!(of_rules.len() >= 7, "accounting, torn writes, arrays and modifications");
    for provenance in of_types.chain(of_instances).chain(&of_rules) {
        assert!(provenance.source.len() >= 10, "{provenance:?}");
        assert_eq!(provenance.date.len(), 10, "{provenance:?}");
        assert_eq!(provenance.overridden, None, "nothing is overridden in the built-in catalogue");
    }
}

#[test]
fn listings_name_the_keys_of_each_type() {
    let catalog = Catalog::builtin();
    let keys = |name| catalog.types().iter().find(|info| info.name == name).unwrap().keys.clone();
    assert_eq!(keys("gp3"), ["size", "iops", "throughput", "twp"]);
    assert_eq!(keys("gp2"), ["size", "credits", "twp"]);
    assert_eq!(keys("io1"), ["size", "iops", "twp"]);
    assert_eq!(keys("st1"), ["size", "credits", "twp"]);
    assert_eq!(keys("sata-ssd"), ["size"]);
    assert_eq!(keys("nvme"), ["size", "twp"]);
}

#[test]
fn listings_report_what_boots_and_what_several_instances_share() {
    let catalog = Catalog::builtin();
    let named = |wanted: fn(&TypeInfo) -> bool| -> Vec<_> {
        catalog.types().iter().filter(|info| wanted(info)).map(|info| &info.name[..]).collect()
    };
    assert_eq!(named(|info| info.boot), ["gp2", "gp3", "io1", "io2", "standard"]);
    assert_eq!(named(|info| info.multi_attach), ["io1", "io2"]);
    assert_eq!(named(|info| info.annual_failure_percent.as_deref() == Some("0.001")), ["io2"]);
}

#[test]
fn contradictory_figures_are_refused() {
    for (set, part) in [
        ("size_gib = [10, 4]", "sizes do not rise"),
        ("size_gib = [0, 4]", "sizes do not rise"),
        ("iops = { min = 90000 }", "IOPS do not rise"),
        ("iops = { default = 100 }", "IOPS do not rise"),
        ("throughput = { max = 100 }", "MiB/s do not rise"),
        ("service = \"none\"", "has no service times 'none'"),
        ("iops = { maximum = 5 }", "unknown field"),
        ("speed = 5", "unknown field"),
        ("from = \"2019-01-01\"", "periods out of order"),
    ] {
        let text = format!(
            "[[override]]\ntype = \"gp3\"\nreason = \"test\"\nsource = \"test\"\ndate = \"2026-11-20\"\nset = {{ {set} }}\n"
        );
        let error = Catalog::with_overrides_text("user.toml", &text).expect_err(set).to_string();
        assert!(error.contains(part), "{set}: {error}");
    }
}
