//! Points in, the same points out, and what they take.

use ebbtide_volume::{Nanos, OpStats, Stats, VolumeInterval};
use proptest::prelude::*;

use super::*;
use crate::layout::{Aggregate, Number};
use crate::volume::{Balances, LAYOUT, VolumeMinute};

/// Of minutes that samples end up to 1 ms late.
fn idle(number: u64) -> VolumeMinute {
    let minute = Nanos(60_000_000_000 + number * 977_111 % 1_000_003);
    VolumeMinute {
        counters: VolumeInterval::of_growth(Stats { at: minute, idle_time: minute, ..Stats::default() }),
        ..VolumeMinute::default()
    }
}

fn busy(number: u64) -> VolumeMinute {
    let ops = |ops: u64| OpStats { ops, bytes: ops << 14, time: Nanos(ops * 612_345) };
    let counters = Stats {
        at: Nanos(60_000_000_000 + number * 977 % 1_000_003),
        read: ops(150_000 + number * 7_919 % 30_000),
        write: ops(90_000 + number * 104_729 % 20_000),
        consumed_ops: u64::MAX - number,
        queue: number % 5,
        queue_time: Nanos(number * 1_299_709),
        credit_share: Some(1.0 / (number + 1) as f64),
        iops_rate: (!number.is_multiple_of(3)).then_some(3_000),
        ..Stats::default()
    };
    VolumeMinute { counters: VolumeInterval::of_growth(counters), ..VolumeMinute::default() }
}

type Row = (u64, String, VolumeMinute);

fn pack_minutes<'a>(rows: impl IntoIterator<Item = (u64, &'a str, &'a VolumeMinute)>) -> Vec<u8> {
    let rows: Vec<_> =
        rows.into_iter().map(|(number, kind, minute)| (number, kind, minute.values())).collect();
    pack(rows.iter().map(|(number, kind, values)| (*number, *kind, values.as_slice())))
}

fn unpack_minutes(bytes: &[u8]) -> Vec<Row> {
    let mut found = Vec::new();
    unpack(bytes, &LAYOUT, |number, kind, values| {
        found.push((number, kind.to_owned(), VolumeMinute::read(&LAYOUT, values)));
    });
    found
}

#[test]
fn what_is_packed_is_unpacked_again() {
    let kinds = |number: u64| if number < 30 { "gp2" } else { "io2/multi-attach" };
    let hour: Vec<_> = (0_u64..60)
        .map(|number| {
            let minute = if number.is_multiple_of(7) { idle(number) } else { busy(number) };
            let share = |every: u64| number.is_multiple_of(every).then(|| 1.0 / (number + 2) as f64);
            VolumeMinute { balances: Balances { io: share(2), bytes: share(5) }, ..minute }
        })
        .collect();
    let rows = (0..60).zip(&hour).map(|(number, minute)| (number, kinds(number), minute));
    let bytes = pack_minutes(rows.clone());
    let found = unpack_minutes(&bytes);
    assert_eq!(found.len(), 60);
    for ((number, kind, minute), (n, k, m)) in rows.zip(&found) {
        assert_eq!((number, kind, minute), (*n, k.as_str(), m));
    }
    // Whatever is cut off: no panic, and what is whole before it.
    for length in 0..bytes.len() {
        assert!(unpack_minutes(&bytes[..length]).iter().zip(&found).all(|(a, b)| a == b), "{length}");
    }
}

#[test]
fn what_a_later_version_packed_is_not_read() {
    let mut bytes = pack_minutes([(0, "gp3", &busy(1))]);
    assert_eq!(unpack_minutes(&bytes).len(), 1);
    bytes[0] = VERSION + 1;
    assert!(unpack_minutes(&bytes).is_empty());
}

#[test]
fn an_idle_minute_takes_few_bytes() {
    let (idle, busy): (Vec<_>, Vec<_>) = (0..60).map(|number| (idle(number), busy(number))).unzip();
    let size = |hour: &[VolumeMinute]| {
        pack_minutes((0..60).zip(hour).map(|(number, minute)| (number, "gp3", minute))).len()
    };
    assert!(size(&idle) <= 6 * 60, "{} bytes", size(&idle));
    assert!(size(&busy) <= 60 * 60, "{} bytes", size(&busy));
    println!("an hour: idle {} bytes, busy {} bytes", size(&idle), size(&busy));
}

/// A layout of so many columns, every fifth of which is real.
fn layout(columns: usize) -> Layout {
    let number = |place: usize| if place.is_multiple_of(5) { Number::Real } else { Number::Whole };
    Layout::new((0..columns).map(|place| ("column", Aggregate::Latest, number(place))))
}

/// The bytes of a sample of chunks of so many points.
fn bytes_a_sample(rows: &[Vec<Option<Value>>], per_chunk: usize) -> f64 {
    let chunk = |rows: &[Vec<Option<Value>>]| {
        pack((0..).zip(rows).map(|(number, values)| (number, "8.4.3", values.as_slice()))).len()
    };
    let bytes: usize = rows.chunks(per_chunk).map(chunk).sum();
    bytes as f64 / (rows.len() * rows[0].len()) as f64
}

/// Of 500 metrics of a server, three fifths stand still, three tenths are counters that grow by 5,000 a second give or take a
/// fifth, and the rest are gauges of some hundreds.
#[test]
fn a_sample_of_a_server_each_second_takes_few_bytes() {
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut value = |place: u64| match place % 10 {
        0..6 => place,
        6..9 => 4_000 + draw(2_000),
        _ => 300 + draw(100),
    };
    let rows: Vec<Vec<_>> =
        (0..600).map(|_| (0..500).map(|place| Some(Value::Whole(value(place)))).collect()).collect();
    let found = bytes_a_sample(&rows, 600);
    println!("{found:.2} bytes a sample");
    assert!(found <= 1.5, "{found}");
}

/// The file has a line of numbers for each second, such as those of SHOW GLOBAL STATUS. What never falls is a counter.
#[test]
#[ignore = "a measurement of the file that EBBTIDE_SAMPLES names"]
fn recorded_samples_take_few_bytes() {
    let text = std::fs::read_to_string(std::env::var_os("EBBTIDE_SAMPLES").unwrap()).unwrap();
    let lines =
        text.lines().map(|line| line.split_whitespace().map(|word| word.parse::<f64>().unwrap()).collect());
    let lines: Vec<Vec<f64>> = lines.collect();
    let columns = lines[0].len();
    let is_counter = |place: usize| lines.windows(2).all(|pair| pair[0][place] <= pair[1][place]);
    let counters: Vec<bool> = (0..columns).map(is_counter).collect();
    let row = |pair: &[Vec<f64>]| {
        let value =
            |place: usize| if counters[place] { pair[1][place] - pair[0][place] } else { pair[1][place] };
        let store = |value: f64| {
            let is_whole = value.fract() == 0.0 && value >= 0.0;
            Some(if is_whole {
                Value::Whole(format!("{value:.0}").parse().unwrap())
            } else {
                Value::Real(value)
            })
        };
        (0..columns).map(|place| store(value(place))).collect::<Vec<_>>()
    };
    let rows: Vec<_> = lines.windows(2).map(row).collect();
    println!(
        "{} seconds of {columns} metrics, {} of them counters",
        rows.len(),
        counters.iter().filter(|is| **is).count()
    );
    for per_chunk in [5, 60, 600, 3_600] {
        println!("{per_chunk} seconds a chunk: {:.3} bytes a sample", bytes_a_sample(&rows, per_chunk));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn points_of_any_number_of_columns_are_unpacked_again(
        columns in 0_usize..40,
        drawn in prop::collection::vec((0_u64..5, prop::collection::vec(prop::option::of(any::<u64>()), 40)), 0..20),
    ) {
        let layout = layout(columns);
        let mut next = 0;
        let points: Vec<(u64, String, Vec<Option<Value>>)> = drawn
            .into_iter()
            .map(|(gap, numbers)| {
                next += gap + 1;
                let columns = layout.columns().iter().zip(numbers);
                // Any bits are a real number, but not one that equals itself.
                let real = |number: u64| Value::Real(f64::from_bits(number >> 2));
                let values = columns.map(|(column, number)| match column.number {
                    Number::Whole => number.map(Value::Whole),
                    Number::Real => number.map(real),
                });
                (next, format!("kind {}", gap / 2), values.collect())
            })
            .collect();
        let bytes = pack(points.iter().map(|(number, kind, values)| (*number, kind.as_str(), values.as_slice())));
        let mut found = Vec::new();
        unpack(&bytes, &layout, |number, kind, values| found.push((number, kind.to_owned(), values.to_vec())));
        prop_assert_eq!(found, points);
    }

    #[test]
    fn bytes_that_are_no_chunk_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0_u8..5) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        unpack(&bytes, &layout(19), |_, _, _| {});
        unpack(&bytes, &LAYOUT, |_, _, values| {
            let _ = VolumeMinute::read(&LAYOUT, values);
        });
    }
}
