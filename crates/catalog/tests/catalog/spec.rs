//! The text of a spec.

use ebbtide_catalog::{Catalog, CreditShare, Raid0, Spec, SpecError, VolumeSpec};
use proptest::prelude::*;

use crate::support::spec;

#[test]
fn the_grammar_is_read_as_written() {
    let full = spec("gp3:size=500GiB,iops=6000,throughput=250MiB/s,twp=off");
    let volume = VolumeSpec {
        kind: "gp3".into(),
        size_bytes: Some(500 << 30),
        iops: Some(6_000),
        throughput_mib_s: Some(250),
        twp: Some(false),
        ..VolumeSpec::default()
    };
    assert_eq!(full, Spec { volume, raid0: None });
    assert_eq!(spec(" nvme ").volume.kind, "nvme");
    assert_eq!(spec("instance-store:i3en.large").volume.kind, "instance-store:i3en.large");
    let store = spec("instance-store:i3en.large:size=100GiB").volume;
    assert_eq!((&store.kind[..], store.size_bytes), ("instance-store:i3en.large", Some(100 << 30)));
    let array = spec("raid0( 2 x gp3:size=250GiB ; chunk = 64KiB )");
    assert_eq!(array.raid0, Some(Raid0 { members: 2, chunk_bytes: Some(64 << 10) }));
    let credits = spec("gp2:size=100GiB,credits=2.5%").volume.credits;
    assert_eq!(credits, Some(CreditShare::from_ppm(25_000)));
    assert_eq!(spec("gp2@2016-11:size=1TiB").to_string(), "gp2@2016-11:size=1TiB");
}

#[test]
fn an_unknown_key_names_the_nearest_and_lists_all() {
    let error = Spec::parse("gp3:size=1GiB,iop=3000").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown key 'iop' (did you mean 'iops'?); the keys are size, iops, throughput, credits, twp"
    );
    let error = Spec::parse("gp3:xyzzy=1").unwrap_err();
    assert_eq!(error, SpecError::UnknownKey { key: "xyzzy".into(), nearest: None });
}

#[test]
fn bad_texts_are_refused_with_what_to_write_instead() {
    for (text, part) in [
        ("", "names no volume type"),
        (":size=1GiB", "names no volume type"),
        ("size=1GiB", "names no volume type"),
        ("g p3", "is not a volume type's name"),
        ("gp3:size=1GiB,", "is not KEY=VALUE"),
        ("gp3:size=1GiB,size=2GiB", "'size' is given twice"),
        ("gp3:size=500", "a whole number with its unit, like 500GiB"),
        ("gp3:size=0GiB", "a multiple of 4KiB"),
        ("gp3:size=5GB", "size=5GB: the unit is decimal, and sizes are binary: write 5GiB or 4768MiB"),
        ("gp3:size=100GB", "write 100GiB or 93GiB"),
        ("gp3:throughput=250MB/s", "write 250MiB or 238MiB"),
        ("raid0(2x nvme; chunk=64kB)", "write 64KiB or 63KiB"),
        ("gp3:size=-1GiB", "a multiple of 4KiB"),
        ("gp3:size=99999999999TiB", "from 4KiB to 65536TiB"),
        ("gp3:size=99999999999999999999GiB", "from 4KiB to 65536TiB"),
        ("ideal:size=65537TiB", "from 4KiB to 65536TiB"),
        ("gp3:size=1.5GiB", "a whole number of TiB, GiB, MiB or KiB"),
        ("gp3:iops=many", "a whole number, like 6000"),
        ("gp3:throughput=1.5", "whole MiB a second"),
        ("gp3:throughput=100KiB", "whole MiB a second"),
        ("gp2:credits=2", "a percentage of full credits"),
        ("gp2:credits=101%", "a percentage of full credits"),
        ("gp2:credits=-1%", "a percentage of full credits"),
        ("gp3:twp=maybe", "on or off"),
        ("gp2@16:size=1GiB", "is not a date"),
        ("gp2@2016-13:size=1GiB", "is not a date"),
        ("gp2@2016-02-30:size=1GiB", "is not a date"),
        ("gp2@:size=1GiB", "is not a date"),
        ("raid0(gp3:size=1GiB)", "is not an array"),
        ("raid0(2x gp3:size=1GiB", "is not an array"),
        ("raid0(0x nvme)", "the number must be 1 to 128"),
        ("raid0(129x nvme)", "the number must be 1 to 128"),
        ("raid0(2x nvme; chunk=1000)", "a multiple of 4KiB, like 64KiB"),
        ("raid0(2x nvme; stripe=64KiB)", "is not an array"),
    ] {
        let message = Spec::parse(text).expect_err(text).to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

fn dates() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (2008..2030).prop_map(|year| format!("@{year}")),
        (2008..2030, 1..=12).prop_map(|(year, month)| format!("@{year}-{month:02}")),
        (2008..2030, 1..=12, 1..=28).prop_map(|(year, month, day)| format!("@{year}-{month:02}-{day:02}")),
    ]
}

prop_compose! {
    fn volumes()(
        kind in "[a-z][a-z0-9-]{0,8}(:[a-z][a-z0-9.]{0,8}[a-z0-9])?",
        date in dates(),
        size in proptest::option::of(1..=1_u64 << 44),
        iops in proptest::option::of(any::<u64>()),
        throughput_mib_s in proptest::option::of(any::<u64>()),
        credits in proptest::option::of(0..=1_000_000_u32),
        twp in any::<Option<bool>>(),
    ) -> VolumeSpec {
        let as_of = date.strip_prefix('@').map(|date| date.parse().unwrap());
        let credits = credits.map(CreditShare::from_ppm);
        VolumeSpec { kind, as_of, size_bytes: size.map(|s| s << 12), iops, throughput_mib_s, credits, twp }
    }
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(
        volume in volumes(),
        striped in proptest::option::of((1..=128_u16, proptest::option::of(1..=1_u64 << 44))),
    ) {
        let raid0 = striped.map(|(members, chunk)| Raid0 { members, chunk_bytes: chunk.map(|c| c << 12) });
        let spec = Spec { volume, raid0 };
        prop_assert_eq!(Spec::parse(&spec.to_string()), Ok(spec.clone()));
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
        let _ = Spec::parse(&text);
    }

    #[test]
    fn texts_near_the_grammar_are_read_or_refused(text in "(raid0\\()?[0-9x ]{0,4}[a-z:@=,%;.0-9-]{0,40}\\)?") {
        if let Ok(spec) = Spec::parse(&text) {
            prop_assert_eq!(Spec::parse(&spec.to_string()), Ok(spec));
        }
    }
}

#[test]
fn the_largest_array_has_a_size_that_can_be_counted() {
    let largest = Catalog::builtin().resolve(&spec("raid0(128x ideal:size=65536TiB)")).unwrap();
    assert_eq!(largest.size_bytes(), 1 << 63);
}
