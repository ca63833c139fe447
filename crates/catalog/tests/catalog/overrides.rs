//! A user's own figures.

use std::io::Write as _;

use ebbtide_catalog::{Catalog, CatalogError};

use crate::support::spec;

const OVERRIDES: &str = r#"
[[override]]
type = "gp3"
reason = "our region still has the old maximum"
source = "support case"
date = "2026-11-01"
set = { iops = { max = 16000, allowance_s = 0.0 } }

[[override]]
type = "fast-gp3"
like = "gp3"
reason = "measured on vol-1"
source = "fio"
date = "2026-11-02"
[override.service]
read = [[0, 100], [50, 200], [100, 300]]

[[override]]
instance = "r5.large"
reason = "a lower baseline was measured"
source = "fio"
date = "2026-11-03"
set = { baseline_iops = 3000 }

[[override]]
instance = "r9.huge"
like = "r5.8xlarge"
reason = "too new for the table"
source = "DescribeInstanceTypes"
date = "2026-11-04"
set = { baseline_mbps = 20000, maximum_mbps = 40000, maximum_iops = 100000 }
"#;

#[test]
fn overrides_are_read_from_a_file_and_report_it() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(OVERRIDES.as_bytes()).unwrap();
    let catalog = Catalog::with_overrides(file.path()).unwrap();

    let error = catalog.resolve(&spec("gp3:size=500GiB,iops=16001")).unwrap_err();
    assert_eq!(error.to_string(), "Volume iops of 16001 is too high; maximum is 16000.");
    let gp3 = catalog.resolve(&spec("gp3:size=500GiB")).unwrap();
    assert_eq!(gp3.members[0].iops.unwrap().allowance, 0);
    assert_eq!(gp3.provenance.source, "support case");
    assert_eq!(gp3.provenance.overridden.as_deref(), Some("our region still has the old maximum"));

    let fast = catalog.resolve(&spec("fast-gp3:size=500GiB")).unwrap();
    assert_eq!(fast.members[0].service.read.quantile(500_000).as_us(), 200);
    assert_eq!(fast.members[0].service.write, gp3.members[0].service.write, "what is not given is kept");
    assert_eq!(fast.service_provenance.source, "fio");

    let large = catalog.instance("r5.large").unwrap();
    assert_eq!((large.baseline_iops, large.maximum_iops), (3_000, 18_750));
    let huge = catalog.instance("r9.huge").unwrap();
    assert_eq!((huge.vcpus, huge.limits.throughput.ceiling, huge.bursts()), (32, 5_000_000_000, true));
    assert_eq!(Catalog::builtin().instance("r5.large").unwrap().baseline_iops, 3_600, "the built-in stays");
}

#[test]
fn overrides_of_one_type_add_up() {
    let entry = |part: &str, us: u32| {
        format!(
            "[[override]]\ntype = \"gp3\"\nreason = \"r\"\nsource = \"s\"\ndate = \"2026-11-20\"\n\
             service = {{ {part} = [[0, {us}], [100, {us}]] }}\n"
        )
    };
    let text = entry("read", 100) + &entry("write", 200) + &entry("read", 300);
    let catalog = Catalog::with_overrides_text("user.toml", &text).unwrap();
    let service = catalog.resolve(&spec("gp3:size=1GiB")).unwrap().members.remove(0).service;
    assert_eq!((service.read.minimum().as_us(), service.write.minimum().as_us()), (300, 200));
}

#[test]
fn a_bad_override_is_refused_with_its_place() {
    let entry = |body: &str| format!("[[override]]\n{body}\nsource = \"s\"\ndate = \"2026-11-20\"\n");
    let quorum = |zones: &str, needed: u32| {
        let quorum = format!("zones = {zones}, copies_per_zone = 6, needed = {needed}");
        entry(&format!(
            "type = \"x\"\nlike = \"aurora-log\"\nreason = \"r\"\nservice = {{ write_quorum = {{ {quorum} }} }}"
        ))
    };
    for (text, part) in [
        (entry("type = \"gp9\"\nreason = \"r\""), "there is no type 'gp9'"),
        (entry("type = \"gp3\"\nreason = \" \""), "needs a reason"),
        (entry("reason = \"r\""), "give either type"),
        (
            entry("type = \"x\"\nlike = \"nvme\"\nreason = \"r\"\nservice = { read = [[0, 5]] }"),
            "must start at 0 ppm",
        ),
        (quorum("[[[0, 5], [100, 5]]]", 7), "needs 7 of 6 copies"),
        (quorum("[[[0, 5]]]", 4), "a zone of write_quorum"),
        (entry("type = \"gp2\"\nlike = \"gp3\"\nreason = \"r\""), "is a type already"),
        (entry("instance = \"q1.tiny\"\nreason = \"r\""), "missing field"),
        (
            entry("instance = \"r5.large\"\nreason = \"r\"\nset = { baseline_iops = 20000 }"),
            "baseline above its maximum",
        ),
        ("nonsense".into(), "user.toml"),
    ] {
        let error = Catalog::with_overrides_text("user.toml", &text).expect_err(&text);
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert!(matches!(error, CatalogError::Data { .. }));
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Catalog::with_overrides("/nonexistent/catalog.toml".as_ref()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot read the overrides in /nonexistent/catalog.toml"),
        "{error}"
    );
}

#[test]
fn the_example_of_the_documentation_is_one() {
    let page = include_str!("../../../../docs/catalog.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let catalog = Catalog::with_overrides_text("docs/catalog.md", example).unwrap();
    let error = catalog.resolve(&spec("gp3:size=500GiB,iops=16001")).unwrap_err();
    assert_eq!(error.to_string(), "Volume iops of 16001 is too high; maximum is 16000.");
    catalog.resolve(&spec("my-gp3:size=1GiB")).unwrap();
    assert_eq!(catalog.instance("r9g.large").unwrap().maximum_iops, 60_000);
}

#[test]
fn every_spec_of_the_documentation_resolves() {
    let page = include_str!("../../../../docs/catalog.md");
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let lines: Vec<_> = block.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert!(lines.len() >= 7, "{lines:?}");
    for line in lines {
        Catalog::builtin().resolve(&spec(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
