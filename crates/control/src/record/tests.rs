//! What is kept reads back, and a model goes on while no server has its volume open.

use proptest::prelude::*;

use super::*;

/// 2026-11-20 00:00 UTC.
const NOW: i64 = 1_795_132_800;
const HOUR: u64 = 3_600;

fn record(spec: &str) -> VolumeRecord {
    VolumeRecord {
        spec: spec.to_owned(),
        block_size: 512,
        seed: 7,
        id: None,
        owner: None,
        modified_from: None,
        modifications: Vec::new(),
        initialization: None,
        creation: None,
    }
}

fn now() -> Nanos {
    at(NOW)
}

fn after(seconds: u64) -> Nanos {
    Nanos(now().0 + Nanos::from_secs(seconds).0)
}

fn share(record: &VolumeRecord, saved: SavedCredits, now: Nanos) -> f64 {
    record.model(Some(saved), None, &Catalog::builtin(), now).unwrap().credit_share(now).unwrap()
}

/// A gp3 of 3,000 IOPS that becomes one of 9,000 between 100 s and 200 s from now.
fn modified() -> VolumeRecord {
    let latest =
        ModificationRecord { started_unix_s: NOW, optimizing_unix_s: NOW + 100, completes_unix_s: NOW + 200 };
    VolumeRecord {
        modified_from: Some("gp3:size=100GiB,iops=3000,throughput=125".to_owned()),
        modifications: vec![latest],
        ..record("gp3:size=100GiB,iops=9000,throughput=125")
    }
}

fn iops(array: &Array) -> u64 {
    array.members()[0].limits().iops.unwrap().rate
}

#[test]
fn metadata_read_back_and_leave_the_hosts_part_alone() {
    let record = record("gp3:size=1GiB");
    let mut whole = record.fresh();
    whole["credits"] = serde_json::json!(0.5);
    let changed = VolumeRecord { seed: 8, ..record };
    changed.write(&mut whole);
    assert_eq!(VolumeRecord::read(&whole).unwrap(), changed);
    assert_eq!(whole["credits"], 0.5);
    VolumeRecord::read(&serde_json::json!({})).unwrap_err();
}

#[test]
fn a_record_without_a_token_is_written_as_before_there_were_tokens() {
    let known = serde_json::json!({
        "control": { "spec": "gp3:size=1GiB", "block_size": 512, "seed": 7 }
    });
    assert_eq!(record("gp3:size=1GiB").fresh(), known);
    assert_eq!(VolumeRecord::read(&known).unwrap(), record("gp3:size=1GiB"));
}

#[test]
fn each_phase_of_a_modification_begins_at_its_second() {
    assert_eq!(record("gp3:size=1GiB").phase(NOW), None);
    let phase = |after: i64| modified().phase(NOW + after).unwrap();
    assert_eq!(phase(0), ModificationPhase::Modifying);
    assert_eq!(phase(99), ModificationPhase::Modifying);
    assert_eq!(phase(100), ModificationPhase::Optimizing { percent: 0 });
    assert_eq!(phase(150), ModificationPhase::Optimizing { percent: 50 });
    assert_eq!(phase(199), ModificationPhase::Optimizing { percent: 99 });
    assert_eq!(phase(200), ModificationPhase::Completed);
    let mut at_once = modified();
    at_once.modifications[0].optimizing_unix_s = NOW;
    at_once.modifications[0].completes_unix_s = NOW;
    assert_eq!(at_once.phase(NOW), Some(ModificationPhase::Completed));
}

#[test]
fn credits_refill_while_a_volume_is_detached() {
    // 100 GiB of gp2 earn 300 a second, and the bucket holds 5.4 million.
    let gp2 = record("gp2:size=100GiB");
    let saved = SavedCredits { share: 0.5, at: now() };
    let later = share(&gp2, saved, after(HOUR));
    assert!((later - 0.7).abs() < 1e-6, "{later}");
    assert_eq!(share(&gp2, saved, after(10 * HOUR)), 1.0);
}

#[test]
fn a_clock_that_was_set_back_makes_no_credits() {
    let gp2 = record("gp2:size=100GiB");
    let saved = SavedCredits { share: 0.5, at: after(HOUR) };
    assert_eq!(share(&gp2, saved, now()), 0.5);
}

#[test]
fn a_modification_goes_on_while_a_volume_is_detached() {
    let saved = Some(SavedCredits { share: 1.0, at: now() });
    let model = |seconds: u64| modified().model(saved, None, &Catalog::builtin(), after(seconds)).unwrap();
    assert_eq!(
        [0, 99, 150, 200, 300].map(|seconds| iops(&model(seconds))),
        [3_000, 3_000, 6_000, 9_000, 9_000]
    );
}

#[test]
fn a_spec_that_the_catalogue_no_longer_knows_is_refused() {
    let error = record("gp9:size=1GiB").model(None, None, &Catalog::builtin(), now()).unwrap_err();
    assert!(matches!(error, ControlError::Catalog(_)), "{error:?}");
}

#[test]
fn a_modification_keeps_what_the_volume_was_and_when_it_began() {
    let gp3 = record("gp3:size=100GiB,iops=3000,throughput=125,twp=on");
    let to = Spec::parse("gp3:size=1TiB").unwrap();
    let change =
        gp3.modified(&Catalog::builtin(), &to, Optimizing::For(std::time::Duration::from_secs(90)), NOW);
    let change = change.unwrap();
    assert_eq!(change.record.modified_from.as_deref(), Some(gp3.spec.as_str()));
    assert_eq!(change.record.spec, "gp3:size=1TiB,iops=3000,throughput=125,twp=on");
    let latest =
        ModificationRecord { started_unix_s: NOW, optimizing_unix_s: NOW, completes_unix_s: NOW + 90 };
    assert_eq!((change.latest, change.record.modifications), (latest, vec![latest]));
    let aws = gp3.modified(&Catalog::builtin(), &to, Optimizing::Aws, NOW).unwrap().latest;
    // 6 h for a TiB, after 5 s.
    assert_eq!((aws.optimizing_unix_s, aws.completes_unix_s), (NOW + 5, NOW + 5 + 6 * 3_600));
}

proptest! {
    #[test]
    fn saving_credits_in_between_makes_no_difference(
        share_then in 0.0_f64..1.0,
        first in 0_u64..20_000,
        second in 0_u64..20_000,
    ) {
        let gp2 = record("gp2:size=100GiB");
        let saved = SavedCredits { share: share_then, at: now() };
        let whole = share(&gp2, saved, after(first + second));
        let between = SavedCredits { share: share(&gp2, saved, after(first)), at: after(first) };
        prop_assert!((share(&gp2, between, after(first + second)) - whole).abs() < 1e-6);
    }
}

/// What a volume of 1 GiB keeps of its loading when all of it is missing.
fn all_missing(record: &VolumeRecord) -> SavedLoading {
    let array = record.model(None, None, &Catalog::builtin(), now()).unwrap();
    let whole = 0..array.size_bytes();
    SavedLoading { members: array.new_load_states(&[whole], now()) }
}

#[test]
fn a_rate_goes_on_by_the_clock_without_a_server_and_a_lazy_volume_waits() {
    let catalog = Catalog::builtin();
    let missing = |initialization, at: Nanos| {
        let record = VolumeRecord { initialization, ..record("gp3:size=1GiB") };
        let model = record.model(None, Some(all_missing(&record)), &catalog, at).unwrap();
        model.load_progress(at).map(|progress| progress.missing)
    };
    let rate = Some(Initialization::Rate { mib_s: 128 });
    let left = [0, 4, 8, 3_600].map(|seconds| missing(rate, after(seconds)));
    assert_eq!(left, [Some(2_048), Some(1_024), Some(0), Some(0)]);
    assert_eq!(missing(Some(Initialization::Lazy), after(3_600)), Some(2_048));
    // The clock was set back.
    assert_eq!(missing(rate, Nanos(now().0 - 5)), Some(2_048));
    // Nothing is loaded without a word of how.
    assert_eq!(missing(None, now()), None);
}

#[test]
fn a_record_of_before_there_was_loading_has_all_blocks() {
    let old = serde_json::json!({
        "credits": null,
        "control": {
            "spec": "gp3:size=1GiB", "block_size": 512, "seed": 7,
            "creation": { "token": "t", "spec": "gp3:size=1GiB", "snapshot": "monday", "block_size": 512 }
        }
    });
    let read = VolumeRecord::read(&old).unwrap();
    assert_eq!((read.initialization, read.creation.as_ref().unwrap().initialization), (None, None));
    assert_eq!(SavedLoading::read(&old).unwrap(), None);
    let model = read.model(None, None, &Catalog::builtin(), now()).unwrap();
    assert_eq!(model.load_progress(now()), None);
    // It is written as it was.
    let mut whole = old.clone();
    read.write(&mut whole);
    assert_eq!(whole, old);
}

#[test]
fn an_initialization_reads_back() {
    for text in ["lazy", "rate=100MiB/s"] {
        let kept = VolumeRecord { initialization: Some(text.parse().unwrap()), ..record("gp3:size=1GiB") };
        let whole = kept.fresh();
        assert_eq!(whole["control"]["initialization"], text);
        assert_eq!(VolumeRecord::read(&whole).unwrap(), kept);
    }
}

#[test]
fn a_state_of_loading_of_another_array_is_a_contradiction() {
    let lazy = VolumeRecord { initialization: Some(Initialization::Lazy), ..record("gp3:size=1GiB") };
    let mut loading = all_missing(&lazy);
    loading.members.push(loading.members[0].clone());
    let error = lazy.model(None, Some(loading), &Catalog::builtin(), now()).unwrap_err();
    assert_eq!(error.kind(), crate::ControlErrorKind::Invariant, "{error}");
}
