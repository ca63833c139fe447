//! The judgement against hand-made servers, published results, and any figures at all.

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_observe::FileSystem;
use proptest::prelude::*;

use super::figures::Release;
use super::judge::{Limit, SMALLEST_GAIN};
use super::*;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// A server that writes pages and little else, for half a minute.
fn writer() -> Workload {
    Workload {
        seconds: 30.0,
        page_writes: 3000.0,
        doublewrite_pages: 3000.0,
        doublewrite_batches: 30.0,
        page_reads: 200.0,
        redo_bytes: 4.0 * MIB,
        redo_writes: Some(400.0),
        binlog_bytes: None,
        commits: Some(800.0),
        write_statements: 3200.0,
        read_statements: 0.0,
        free_page_waits: Some(0.0),
        doublewrite_wait: None,
        doublewrite_mutex_wait: None,
    }
}

fn settings() -> PageWriteSettings {
    PageWriteSettings {
        doublewrite: Doublewrite::On,
        page_bytes: 16 << 10,
        direct: Some(true),
        flush_neighbors: Some(false),
        files: None,
        release: None,
    }
}

/// A server that writes pages of these bytes twice.
fn with_buffer(page_bytes: u64) -> PageWriteSettings {
    PageWriteSettings { page_bytes, ..settings() }
}

/// Settings with which every condition that is not the storage's is known to be met.
fn safe() -> PageWriteSettings {
    PageWriteSettings {
        files: Some(files("ext4-bigalloc", 16 << 10)),
        release: Some(release(true)),
        ..settings()
    }
}

fn files(name: &str, aligned_bytes: u64) -> FileSystem {
    FileSystem { name: name.to_owned(), aligned_bytes }
}

fn release(listed: bool) -> Release {
    Release { name: "MariaDB 10.11.19".to_owned(), listed }
}

fn storage(spec: &str) -> Storage {
    let written = spec.parse::<Spec>().unwrap();
    Storage::of(&written, &Catalog::builtin().resolve(&written).unwrap())
}

/// The largest where a limit of the volume decides, as far as the volume is known.
fn ceiling(gain: &Gain) -> f64 {
    gain.on_volume.map_or(gain.if_throughput.max(gain.if_iops), |volume| volume.ceiling)
}

fn verdict(work: &Workload, spec: Option<&str>) -> Verdict {
    judge(work, &settings(), spec.map(storage).as_ref()).verdict
}

#[test]
fn bytes_and_operations_are_counted_as_on_paper() {
    let candidate = judge(&writer(), &settings(), None);
    // 3,200 pages of 16 KiB and 4 MiB of redo; 3,000 pages more.
    assert_eq!(candidate.without.bytes, 54.0 * MIB);
    assert_eq!(candidate.with.bytes, (54.0 + 46.875) * MIB);
    // 400 writes of redo are more than its 16 units. Batches of 100 pages are 7 units, at most 115 / 16.
    assert_eq!(candidate.without.ios, 3600.0);
    assert_eq!(candidate.with.ios, 3600.0 + 30.0 * 115.0 / 16.0);
    assert_eq!(candidate.pages_a_batch, Some(100.0));
    let gain = candidate.gain.unwrap();
    assert_eq!(gain.if_throughput, 100.875 / 54.0);
    assert_eq!(gain.if_iops, 3815.625 / 3600.0);
}

#[test]
fn pages_that_are_counted_before_they_are_written_do_not_make_more_of_the_buffer_than_there_can_be() {
    let early = Workload {
        page_writes: 10.0,
        doublewrite_pages: 400.0,
        doublewrite_batches: 12.0,
        page_reads: 0.0,
        redo_bytes: 0.0,
        ..writer()
    };
    let of = Demand::of_doublewrite(&early, &with_buffer(16 << 10), 256 << 10);
    assert_eq!((of.bytes, of.ios), (160.0 * KIB, 10.0));
}

#[test]
fn pages_that_are_counted_and_not_written_twice_are_no_bytes() {
    for doublewrite in [Doublewrite::DetectOnly, Doublewrite::Off] {
        let candidate = judge(&writer(), &PageWriteSettings { doublewrite, ..settings() }, None);
        assert_eq!(candidate.with, candidate.without, "{doublewrite:?}");
    }
}

#[test]
fn a_writer_is_a_candidate_where_it_lacks_throughput_and_not_where_it_lacks_operations() {
    // 101 MiB/s of 125, and 3,816 operations of 16,000.
    let throughput = judge(&writer(), &settings(), Some(&storage("gp3:size=500GiB,iops=16000")));
    assert_eq!(throughput.verdict, Verdict::Yes);
    let volume = throughput.gain.unwrap().on_volume.unwrap();
    assert_eq!(volume.limit, Limit::Throughput);
    assert!((volume.used - 100.875 / 125.0).abs() < 1e-9, "{volume:?}");
    assert!((volume.ceiling - 100.875 / 54.0).abs() < 1e-9, "{volume:?}");
    let iops = judge(&writer(), &settings(), Some(&storage("gp3:size=500GiB,iops=4000,throughput=1000")));
    assert_eq!(iops.verdict, Verdict::No);
    assert_eq!(iops.gain.unwrap().on_volume.unwrap().limit, Limit::Iops);
    assert!(iops.why.contains("6.0%"), "{}", iops.why);
}

#[test]
fn where_both_limits_are_near_the_one_that_is_left_decides() {
    // 101 MiB/s of 125 with it. Without, 54, and 3,600 operations of 4,000.
    let candidate = judge(&writer(), &settings(), Some(&storage("gp3:size=500GiB,iops=4000")));
    let volume = candidate.gain.unwrap().on_volume.unwrap();
    assert_eq!((volume.limit, volume.used_without), (Limit::Iops, 0.9));
    assert!(volume.ceiling < 1.07, "{volume:?}");
    assert_eq!(candidate.verdict, Verdict::No);
    // All 3,000 pages in a row were 188 operations, and then 101 MiB/s would become 54.
    for flush_neighbors in [None, Some(true)] {
        let together = PageWriteSettings { flush_neighbors, ..settings() };
        let candidate = judge(&writer(), &together, Some(&storage("gp3:size=500GiB,iops=4000")));
        assert_eq!(candidate.verdict, Verdict::Perhaps);
        assert!(candidate.why.contains("up to 87%"), "{}", candidate.why);
    }
}

#[test]
fn operations_that_may_travel_together_do_not_make_a_volume_busy() {
    // 3,000 batches of a page each: 6,600 operations of 7,000, or in a row 3,788.
    let single = Workload { doublewrite_batches: 3000.0, ..writer() };
    let of = |flush_neighbors| {
        let settings = PageWriteSettings { flush_neighbors, ..settings() };
        judge(&single, &settings, Some(&storage("gp3:size=500GiB,iops=7000,throughput=1000"))).verdict
    };
    assert_eq!((of(Some(false)), of(Some(true))), (Verdict::Yes, Verdict::Perhaps));
}

#[test]
fn more_than_a_volume_has_is_a_perhaps_unless_it_bursts() {
    let over = judge(&writer(), &settings(), Some(&storage("gp3:size=500GiB,iops=3000,throughput=750")));
    assert_eq!(over.verdict, Verdict::Perhaps);
    assert!(over.why.contains("127%") && over.why.contains("together"), "{}", over.why);
    let bytes = Workload { page_reads: 3000.0, ..writer() };
    let over = judge(&bytes, &settings(), Some(&storage("gp3:size=500GiB,iops=16000")));
    assert_eq!(over.verdict, Verdict::Perhaps);
    assert!(over.why.contains("another volume"), "{}", over.why);
    let credits = judge(&writer(), &settings(), Some(&storage("gp2:size=100GiB")));
    assert_eq!(credits.verdict, Verdict::No, "{}", credits.why);
    let a_little = Storage { iops: Some(3700.0), ..storage("gp3:size=500GiB,throughput=750") };
    assert_eq!(
        judge(&writer(), &settings(), Some(&a_little)).verdict,
        Verdict::No,
        "103% is the looks' error"
    );
}

#[test]
fn reads_that_the_page_cache_may_have_answered_lower_no_ceiling() {
    let reads = Workload { page_reads: 300_000.0, ..writer() };
    for direct in [Some(false), None] {
        let candidate = judge(&reads, &PageWriteSettings { direct, ..settings() }, None);
        assert_eq!((candidate.verdict, candidate.without.ios), (Verdict::Perhaps, 3400.0));
        assert!(candidate.gain.unwrap().if_throughput > 1.9, "{candidate:?}");
    }
    assert_eq!(verdict(&reads, None), Verdict::No);
}

#[test]
fn a_server_that_waits_for_page_writes_is_no_no_although_the_limits_leave_little() {
    let reads = Workload { page_reads: 300_000.0, ..writer() };
    let candidate = judge(&reads, &settings(), None);
    assert!(candidate.why.starts_with("Where the volume's limits hold it back"), "{}", candidate.why);
    for held in [
        Workload { free_page_waits: Some(33.0), ..reads },
        Workload { doublewrite_wait: Some(0.9), ..reads },
        Workload { doublewrite_wait: Some(0.3), doublewrite_mutex_wait: Some(0.6), ..reads },
    ] {
        assert_eq!(verdict(&held, None), Verdict::Perhaps, "{held:?}");
    }
    assert_eq!(verdict(&Workload { doublewrite_wait: Some(0.3), ..reads }, None), Verdict::No);
}

#[test]
fn a_few_waits_for_a_free_page_are_chance() {
    let rare = Workload { write_statements: 1.0, free_page_waits: Some(3.0), ..writer() };
    assert_eq!(verdict(&rare, None), Verdict::Perhaps);
    assert_eq!(verdict(&Workload { free_page_waits: Some(4.0), ..rare }, None), Verdict::Yes);
}

#[test]
fn a_buffer_that_is_off_where_pages_tear_is_not_safe() {
    let of = |doublewrite, direct, spec: &str| {
        let settings = PageWriteSettings { doublewrite, direct, ..settings() };
        judge(&writer(), &settings, Some(&storage(spec)))
    };
    for (direct, spec) in [(Some(true), "gp3:size=500GiB,twp=off"), (Some(false), "gp3:size=500GiB,twp=on")] {
        for doublewrite in [Doublewrite::Off, Doublewrite::DetectOnly] {
            let candidate = of(doublewrite, direct, spec);
            assert!(candidate.is_off_and_unsafe() && candidate.why.contains("not safe"), "{candidate:?}");
        }
    }
    let safe = of(Doublewrite::Off, Some(true), "gp3:size=500GiB,twp=on");
    assert!(!safe.is_off_and_unsafe() && !safe.why.contains("not safe"), "{safe:?}");
    assert!(!of(Doublewrite::On, Some(true), "gp3:size=500GiB,twp=off").is_off_and_unsafe());
}

#[test]
fn a_volume_with_room_makes_it_a_perhaps_and_so_does_an_unknown_one() {
    assert_eq!(verdict(&writer(), Some("gp3:size=500GiB,iops=16000,throughput=1000")), Verdict::Perhaps);
    let room = judge(&writer(), &settings(), Some(&storage("gp3:size=500GiB,iops=16000,throughput=1000")));
    assert!(room.why.contains("takes 24%") && room.why.contains("of the instance"), "{}", room.why);
    assert_eq!(verdict(&writer(), Some("ideal:size=100GiB,twp=on")), Verdict::Perhaps);
    assert_eq!(verdict(&writer(), None), Verdict::Perhaps);
    // Threads that wait for a free page do not wait for a volume with room, but for page writes they do.
    let waits = |rate| Workload { free_page_waits: Some(rate), ..writer() };
    assert_eq!(verdict(&waits(31.0), None), Verdict::Perhaps);
    assert_eq!(verdict(&waits(33.0), None), Verdict::Yes);
    assert_eq!(verdict(&Workload { free_page_waits: None, ..writer() }, None), Verdict::Perhaps);
}

#[test]
fn a_server_that_reads_is_none_an_idle_one_and_one_that_writes_later_give_no_answer() {
    let quiet = Workload { page_writes: 3.0, doublewrite_pages: 3.0, doublewrite_batches: 1.0, ..writer() };
    let reader = Workload { write_statements: 0.0, read_statements: 9000.0, redo_bytes: 0.0, ..quiet };
    assert_eq!(verdict(&reader, None), Verdict::No);
    assert_eq!(verdict(&quiet, None), Verdict::NotKnown);
    let idle = Workload { read_statements: 3.0, ..reader };
    assert_eq!(verdict(&idle, None), Verdict::NotKnown);
    assert_eq!(
        verdict(&Workload { seconds: 33.0, ..idle }, None),
        Verdict::NotKnown,
        "100 reads are not many"
    );
    assert_eq!(verdict(&Workload { read_statements: 10.0, ..idle }, None), Verdict::No);
    let writes_a_little = Workload { write_statements: 1.0, ..reader };
    assert_eq!(verdict(&writes_a_little, None), Verdict::NotKnown, "its pages are written later");
    // A hundred pages are enough, however long that takes.
    assert_ne!(verdict(&Workload { seconds: 34.0, ..quiet }, None), Verdict::NotKnown);
}

#[test]
fn a_server_that_reads_a_hundred_times_what_it_writes_has_nothing_to_gain_on_any_volume() {
    let candidate = judge(&Workload { page_reads: 300_000.0, ..writer() }, &settings(), None);
    assert_eq!(candidate.verdict, Verdict::No);
    assert!(ceiling(&candidate.gain.unwrap()) < 1.02);
}

#[test]
fn what_is_off_is_off_and_what_is_not_safe_is_a_no() {
    let with = |doublewrite| judge(&writer(), &PageWriteSettings { doublewrite, ..settings() }, None);
    assert_eq!(with(Doublewrite::Off).verdict, Verdict::AlreadyOff);
    assert_eq!(with(Doublewrite::Off).gain, None);
    assert!(with(Doublewrite::DetectOnly).why.contains("not restored"));
    let large = judge(&writer(), &PageWriteSettings { page_bytes: 32 << 10, ..settings() }, None);
    assert_eq!(large.verdict, Verdict::No);
    assert!(large.why.contains("32 KiB"), "{}", large.why);
    for spec in ["gp3:size=500GiB,iops=16000,twp=off", "raid0(2x gp3:size=500GiB; chunk=4KiB)", "sata-ssd"] {
        let candidate = judge(&writer(), &settings(), Some(&storage(spec)));
        assert_eq!(candidate.verdict, Verdict::No, "{spec}");
        assert!(candidate.why.contains("4 KiB whole"), "{spec}: {}", candidate.why);
    }
    let small = PageWriteSettings { page_bytes: 4 << 10, ..settings() };
    let torn = storage("gp3:size=500GiB,iops=16000,twp=off");
    assert_ne!(judge(&writer(), &small, Some(&torn)).verdict, Verdict::No, "a page of 4 KiB stays whole");
}

#[test]
fn stripes_carry_together_what_each_carries_and_keep_whole_what_is_on_one() {
    let two = storage("raid0(2x gp3:size=500GiB; chunk=64KiB)");
    assert_eq!((two.iops, two.bytes_s), (Some(6000.0), Some(250.0 * MIB)));
    assert_eq!((two.whole_bytes, two.unit_bytes), (16 << 10, 256 << 10));
    assert_eq!(storage("raid0(2x gp3:size=500GiB; chunk=24KiB)").whole_bytes, 8 << 10);
    assert!(storage("gp2:size=100GiB").bursts && !two.bursts);
}

#[test]
fn what_has_to_be_true_has_what_is_known_of_it() {
    let standing = |direct, spec: Option<&str>| {
        let settings = PageWriteSettings { direct, ..settings() };
        let candidate = judge(&writer(), &settings, spec.map(storage).as_ref());
        candidate.conditions.iter().map(|one| one.standing).collect::<Vec<_>>()
    };
    use Standing::{Met, ToDo, Unknown};
    assert_eq!(standing(Some(true), Some("gp3:size=500GiB,twp=on")), [Met, Unknown, Met, Unknown]);
    assert_eq!(
        standing(Some(true), Some("gp3:size=500GiB")),
        [Unknown, Unknown, Met, Unknown],
        "not on every instance"
    );
    assert_eq!(standing(Some(false), None), [Unknown, Unknown, ToDo, Unknown]);
    assert_eq!(standing(None, None), [Unknown; 4]);
}

#[test]
fn a_file_system_that_moves_pages_makes_it_a_no_and_an_unlisted_release_is_not_known() {
    let of =
        |settings: PageWriteSettings| judge(&writer(), &settings, Some(&storage("gp3:size=500GiB,twp=on")));
    let standing = |settings: PageWriteSettings| {
        of(settings).conditions.iter().map(|one| one.standing).collect::<Vec<_>>()
    };
    use Standing::{Broken, Met, Unknown};
    assert_eq!(standing(safe()), [Met; 4]);
    let plain = PageWriteSettings { files: Some(files("xfs", 0)), ..safe() };
    assert_eq!(standing(plain.clone()), [Met, Broken, Met, Met]);
    let candidate = of(plain);
    assert_eq!((candidate.verdict, candidate.action), (Verdict::No, Action::LeaveOn));
    assert!(candidate.why.contains("xfs does not keep pages of 16"), "{}", candidate.why);
    let older = PageWriteSettings { release: Some(release(false)), ..safe() };
    assert_eq!(standing(older), [Met, Met, Met, Unknown]);
}

/// The volume on which [`writer`] has a gain, with torn-write prevention.
const GAIN: &str = "gp3:size=500GiB,iops=16000,twp=on";

#[test]
fn off_is_advised_only_where_a_gain_is_shown_and_every_condition_is_known_to_be_met() {
    let of = |settings: &PageWriteSettings, spec: &str| judge(&writer(), settings, Some(&storage(spec)));
    let all = of(&safe(), GAIN);
    assert_eq!((all.verdict, all.action), (Verdict::Yes, Action::TurnOff));
    assert!(all.advice.contains("innodb_doublewrite = OFF"), "{}", all.advice);
    let without = [
        (PageWriteSettings { files: None, ..safe() }, GAIN, Verdict::Yes, "1 of 4"),
        (PageWriteSettings { release: None, ..safe() }, GAIN, Verdict::Yes, "1 of 4"),
        (PageWriteSettings { release: Some(release(false)), ..safe() }, GAIN, Verdict::Yes, "1 of 4"),
        (safe(), "gp3:size=500GiB,iops=16000", Verdict::Yes, "1 of 4"),
        (settings(), "gp3:size=500GiB,iops=16000", Verdict::Yes, "3 of 4"),
        (safe(), "gp3:size=500GiB,iops=16000,throughput=1000,twp=on", Verdict::Perhaps, "no gain is shown"),
        (safe(), "gp3:size=500GiB,iops=4000,throughput=1000,twp=on", Verdict::No, "nothing to gain"),
        (safe(), "gp3:size=500GiB,iops=16000,twp=off", Verdict::No, "can damage tables"),
    ];
    for (settings, spec, verdict, text) in without {
        let candidate = of(&settings, spec);
        assert_eq!((candidate.verdict, candidate.action), (verdict, Action::LeaveOn), "{spec}");
        assert!(candidate.advice.starts_with("Leave the doublewrite buffer on"), "{}", candidate.advice);
        assert!(candidate.advice.contains(text), "{spec}: {}", candidate.advice);
        assert!(!candidate.advice.contains("OFF"), "{}", candidate.advice);
    }
    let indirect = PageWriteSettings { direct: Some(false), ..safe() };
    assert_eq!(of(&indirect, GAIN).action, Action::LeaveOn, "a setting is to be changed first");
    let idle = judge(&Workload { page_writes: 1.0, ..writer() }, &safe(), Some(&storage(GAIN)));
    assert_eq!((idle.verdict, idle.action), (Verdict::NotKnown, Action::LeaveOn));
}

#[test]
fn a_buffer_that_is_off_stays_off_is_turned_on_or_is_looked_into() {
    let of = |settings: PageWriteSettings, spec: &str| {
        let settings = PageWriteSettings { doublewrite: Doublewrite::Off, ..settings };
        judge(&writer(), &settings, Some(&storage(spec)))
    };
    assert_eq!(of(safe(), GAIN).action, Action::LeaveOff);
    assert_eq!(of(safe(), "gp3:size=500GiB,twp=off").action, Action::TurnOn);
    assert_eq!(of(PageWriteSettings { direct: Some(false), ..safe() }, GAIN).action, Action::TurnOn);
    let unknown = of(settings(), GAIN);
    assert_eq!(unknown.action, Action::FindOut);
    assert!(unknown.advice.contains("2 of 4"), "{}", unknown.advice);
}

/// The words of each sentence; what is within a command or a figure ends none.
fn longest_sentence(text: &str) -> usize {
    text.split(". ")
        .flat_map(|part| part.split(": "))
        .map(|part| part.split_whitespace().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn answers_are_in_short_sentences() {
    let held = Workload { free_page_waits: Some(33.0), ..writer() };
    let reads = Workload { page_reads: 300_000.0, ..held };
    let quiet = Workload { page_writes: 1.0, write_statements: 1.0, ..writer() };
    let together = PageWriteSettings { flush_neighbors: None, ..settings() };
    let specs = [
        None,
        Some(GAIN),
        Some("gp3:size=500GiB,iops=4000"),
        Some("gp3:size=500GiB,iops=3000,throughput=750"),
        Some("gp3:size=500GiB,iops=16000,throughput=1000"),
        Some("gp3:size=500GiB,twp=off"),
    ];
    for work in [writer(), held, reads, quiet] {
        for settings in [
            settings(),
            safe(),
            together.clone(),
            PageWriteSettings { doublewrite: Doublewrite::Off, ..safe() },
        ] {
            for spec in specs {
                let candidate = judge(&work, &settings, spec.map(storage).as_ref());
                for text in [&candidate.advice, &candidate.why] {
                    assert!(longest_sentence(text) <= 22, "{text}");
                    assert!(
                        text.ends_with('.')
                            && text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == 'i'),
                        "{text}"
                    );
                }
            }
        }
    }
}

/// Percona's raw results of sysbench-tpcc on MySQL 8.0, XFS, without a binary log, buffer pools of 5 to 70 GB:
/// with the doublewrite buffer KiB read and written for a transaction, and transactions a second with it and
/// without. What is written is pages twice and 10 KiB of redo.
/// <https://github.com/Percona-Lab-results/201805-sysbench-tpcc-mysql8>
const PERCONA: [[f64; 4]; 8] = [
    [281.7, 278.8, 817.4, 1042.2],
    [135.6, 204.1, 1318.7, 1760.0],
    [86.3, 160.8, 1750.0, 2346.6],
    [66.8, 131.8, 2120.5, 2795.4],
    [51.6, 110.0, 2550.2, 3229.0],
    [37.0, 86.3, 3113.3, 3792.8],
    [23.2, 61.6, 3863.3, 4320.6],
    [9.5, 41.2, 4739.6, 4838.7],
];

#[test]
fn no_published_gain_is_over_its_ceiling_and_the_nearest_is_close_to_it() {
    let mut nearest = f64::MAX;
    for [read, written, on, off] in PERCONA {
        let pages = (written - 10.0) / 2.0 * KIB * on / (16.0 * KIB);
        let work = Workload {
            seconds: 3600.0,
            page_writes: pages,
            doublewrite_pages: pages,
            doublewrite_batches: pages / 4.0,
            page_reads: read / 16.0 * on,
            redo_bytes: 10.0 * KIB * on,
            ..writer()
        };
        let ceiling = judge(&work, &settings(), None).gain.unwrap().if_throughput;
        let gain = off / on;
        assert!(gain <= ceiling, "{gain} over {ceiling}");
        nearest = nearest.min(ceiling / gain);
    }
    assert!(nearest < 1.05, "{nearest}: a ceiling that is never neared is no limit");
}

fn any_work() -> impl Strategy<Value = Workload> {
    let rate = || 1.0..20_000.0;
    (rate(), 0.0..1.0, 0.01..1.0, 0.0..20_000.0, 0.0..1e8, proptest::option::of(0.0..5_000.0)).prop_map(
        |(page_writes, share, a_page, page_reads, redo_bytes, redo_writes)| Workload {
            page_writes,
            doublewrite_pages: page_writes * share,
            doublewrite_batches: page_writes * share * a_page,
            page_reads,
            redo_bytes,
            redo_writes,
            ..writer()
        },
    )
}

fn any_storage() -> impl Strategy<Value = Option<Storage>> {
    let limits = (proptest::option::of(100.0..80_000.0), proptest::option::of(1e7..2e9));
    proptest::option::of(limits).prop_map(|limits| {
        limits.map(|(iops, bytes_s)| Storage { iops, bytes_s, ..storage("gp3:size=500GiB") })
    })
}

fn ceilings(work: &Workload, storage: Option<&Storage>) -> Vec<f64> {
    let gain = judge(work, &settings(), storage).gain.unwrap();
    vec![gain.if_throughput, gain.if_iops, ceiling(&gain)]
}

fn no_lower(less: &[f64], more: &[f64]) -> bool {
    less.iter().zip(more).all(|(less, more)| *more >= less * (1.0 - 1e-12))
}

proptest! {
    #[test]
    fn more_through_the_doublewrite_buffer_never_lowers_a_ceiling(
        work in any_work(), storage in any_storage(), pages in 0.0..5_000.0, batches in 0.0..500.0,
    ) {
        let more = Workload {
            doublewrite_pages: work.doublewrite_pages + pages,
            doublewrite_batches: work.doublewrite_batches + batches,
            ..work
        };
        let (less, more) = (ceilings(&work, storage.as_ref()), ceilings(&more, storage.as_ref()));
        prop_assert!(no_lower(&less, &more), "{less:?} {more:?}");
    }

    #[test]
    fn more_of_anything_else_never_raises_a_ceiling(
        work in any_work(), reads in 0.0..5_000.0, redo in 0.0..1e8, writes in 0.0..5_000.0,
    ) {
        let more = Workload {
            page_reads: work.page_reads + reads,
            redo_bytes: work.redo_bytes + redo,
            redo_writes: Some(work.redo_writes.unwrap_or(0.0) + writes),
            ..work
        };
        let (less, more) = (ceilings(&work, None), ceilings(&more, None));
        prop_assert!(no_lower(&more, &less), "{less:?} {more:?}");
    }

    #[test]
    fn a_ceiling_is_at_least_one_and_in_bytes_at_most_two(work in any_work(), storage in any_storage()) {
        let all = ceilings(&work, storage.as_ref());
        prop_assert!(all.iter().all(|ceiling| *ceiling >= 1.0), "{all:?}");
        prop_assert!(all[0] <= 2.0, "{all:?}");
    }

    #[test]
    fn a_volume_gives_no_more_than_its_nearest_limit_would_alone(work in any_work(), storage in any_storage()) {
        let gain = judge(&work, &settings(), storage.as_ref()).gain.unwrap();
        if let Some(volume) = gain.on_volume {
            let alone = match volume.limit {
                Limit::Throughput => gain.if_throughput,
                Limit::Iops => gain.if_iops,
            };
            prop_assert!(volume.ceiling <= alone * (1.0 + 1e-12), "{gain:?}");
        }
    }

    #[test]
    fn a_no_stays_true_however_many_pages_travel_together(
        work in any_work(), storage in any_storage(), apart in 0.0..1.0,
    ) {
        let settings = PageWriteSettings { flush_neighbors: Some(true), ..settings() };
        let candidate = judge(&work, &settings, storage.as_ref());
        prop_assume!(candidate.verdict == Verdict::No);
        let (with, without) = (candidate.with, candidate.without);
        let joined = work.page_writes * 15.0 / 16.0 * (1.0 - apart);
        let limit = |of: fn(&Storage) -> Option<f64>| storage.as_ref().and_then(of).unwrap_or(f64::INFINITY);
        let (iops, bytes_s) = (limit(|storage| storage.iops), limit(|storage| storage.bytes_s));
        let share = |demand: Demand| (demand.bytes / bytes_s).max((demand.ios - joined) / iops);
        let gains = if storage.is_some() && share(without) > 0.0 {
            vec![share(with) / share(without)]
        } else {
            vec![with.bytes / without.bytes, (with.ios - joined) / (without.ios - joined)]
        };
        prop_assert!(gains.iter().all(|gain| *gain < SMALLEST_GAIN + 1e-9), "{gains:?} {}", candidate.why);
    }

    #[test]
    fn batches_of_any_sizes_take_no_more_operations_than_are_reckoned(
        sizes in proptest::collection::vec(1_u32..300, 1..40), page in prop_oneof![Just(4_u64), Just(8), Just(16)],
    ) {
        let in_a_unit = u32::try_from(256 / page).unwrap();
        let really: u32 = sizes.iter().map(|pages| pages.div_ceil(in_a_unit)).sum();
        let pages: u32 = sizes.iter().sum();
        let work = Workload {
            page_writes: f64::from(pages),
            doublewrite_pages: f64::from(pages),
            doublewrite_batches: sizes.len() as f64,
            ..writer()
        };
        let reckoned = Demand::of_doublewrite(&work, &with_buffer(page << 10), 256 << 10).ios;
        prop_assert!(f64::from(really) <= reckoned + 1e-9, "{really} {reckoned}");
        prop_assert!(reckoned <= f64::from(really) + sizes.len() as f64, "no more than a unit for each batch");
    }
}
