//! How long it takes to size for two weeks of minutes over the whole catalogue: volumes of every type, arrays and instances.
//! Run with `cargo bench -p ebbtide-advisor`, or `./dev bench size`.
//!
//! A tiny run (`BENCH_TINY=1`, or under `cargo test`) sizes for an hour and judges nothing.

use ebbtide_advisor::sizing::{Asked, Demand, InstanceNeeds, Objective, PricedInstance, size};
use ebbtide_catalog::{Catalog, Spec};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_volume::{GIB, Nanos};

use ebbtide_testing::Time;

/// Seconds of one core that an answer may take.
const LIMIT_S: f64 = 5.0;

/// Minutes of an office day: a sine of 24 hours with a peak each hour, a batch at night, and noise.
fn minutes(number: usize, peak: f64, bytes: f64) -> VolumeLoad {
    let mut noise = 0x9E37_79B9_7F4A_7C15_u64;
    let interval = |minute: usize| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        let of_day = (minute % 1_440) as f64 / 1_440.0;
        let day = 0.55 - 0.45 * (of_day * std::f64::consts::TAU).cos();
        let hour = if minute % 60 < 4 { 1.3 } else { 1.0 };
        let night = if (120..150).contains(&(minute % 1_440)) { 0.9 } else { 0.0 };
        let random = 0.8 + 0.4 * (noise % 1_000) as f64 / 1_000.0;
        let ios = peak * (day * hour * random / 1.5 + night);
        LoadInterval {
            start_s: minute as f64 * 60.0,
            seconds: 60.0,
            reads: ios * 0.6,
            writes: ios * 0.4,
            read_bytes: ios * 0.6 * bytes,
            written_bytes: ios * 0.4 * bytes,
            ..LoadInterval::default()
        }
    };
    VolumeLoad { intervals: (0..number).map(interval).collect() }
}

fn main() {
    let whole = !ebbtide_testing::tiny();
    let catalog = Catalog::builtin();
    let prices = catalog.prices(None).expect("the default region has prices");
    let today = catalog.instance("r5.2xlarge").expect("it is in the catalogue");
    let needs = InstanceNeeds { arm: None, ..InstanceNeeds::of(&today) };
    let priced = |instance| Some(PricedInstance { instance, price: prices.instance(&instance.name)? });
    let instances: Vec<PricedInstance<'_>> =
        catalog.instances().iter().filter(|one| needs.met_by(one)).filter_map(priced).collect();
    let volume = Spec::parse("gp2:size=1000GiB").expect("a spec");
    let volume = catalog.resolve(&volume).expect("a volume");
    let number = if whole { 14 * 1_440 } else { 60 };
    let mut worst = 0.0_f64;
    for (name, peak, bytes, p99) in [
        ("4,000 IOPS of 16 KiB at the peak", 4_000.0, 16_384.0, None),
        ("12,000 IOPS of 16 KiB, p99 of 5 ms", 12_000.0, 16_384.0, Some(Nanos::from_ms(5))),
        ("9,000 IOPS of 64 KiB: throughput", 9_000.0, 65_536.0, None),
        ("900 IOPS: burst credits", 900.0, 16_384.0, None),
        ("100,000 IOPS", 100_000.0, 16_384.0, None),
    ] {
        let now = Demand::of(&minutes(number, peak, bytes), 1.0);
        let planned = now.times(1.2);
        let asked = Asked {
            catalog: &catalog,
            prices,
            now: &now,
            planned: &planned,
            implied: None,
            objective: Objective { size_bytes: 1_000 * GIB, carried: 0.999, p99 },
            most_members: 4,
            arrays_asked: false,
            today: Some(&volume),
            past: None,
            instance: Some(&today),
            instances: &instances,
        };
        let began = Time::now();
        let sizing = size(&asked);
        let took = began.seconds();
        worst = worst.max(took);
        let best = sizing.choices.first().map(|best| best.volumes.spec.to_string());
        let on = sizing.instance.map_or("no instance", |one| one.name.as_str());
        println!("{name:36} {took:6.2} s  {} on {on}", best.unwrap_or_else(|| "nothing meets it".into()));
    }
    println!("an answer took {worst:.2} s at most, of {LIMIT_S} s");
    assert!(!whole || worst < LIMIT_S, "an answer over the whole catalogue must take less than {LIMIT_S} s");
}
