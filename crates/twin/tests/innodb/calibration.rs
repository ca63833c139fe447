//! Calibration finds the costs that a server was made of, and refuses points that no costs explain.

use ebbtide_twin::innodb::{
    CalibrateError, Calibrating, Calibration, Costs, FileKind, Machine, MeasuredPoint, ModelLoad, ModelSetup,
    PageKind, Trials, calibrate, contradicting, run,
};
use ebbtide_volume::{Array, Nanos};

use crate::support::{settings, setup, shape, volume};

const MACHINE: Machine = Machine { vcpus: 8, threads_per_core: 1, memory: None };

/// What is measured of a server with these costs.
fn measured(costs: Costs, volume: Array, clients: u32) -> MeasuredPoint {
    let base = setup(shape(4.0, 2.0, 800.0), volume.clone(), clients, 0.0, MACHINE.vcpus);
    let outcome = run(ModelSetup { costs, ..base });
    MeasuredPoint {
        settings: settings(ebbtide_twin::innodb::Flavour::MySql80),
        shape: shape(4.0, 2.0, 800.0),
        volumes: volume.into(),
        instance: None,
        load: ModelLoad { clients, rate: None },
        tps: outcome.tps(),
        reads: None,
        writes: None,
        cpu_pct: Some(outcome.processors_busy * 100.0),
        cold: false,
        time: None,
    }
}

const TRIALS: Trials = Trials { machine: MACHINE, seed: 1, settle: Nanos::from_secs(10), asked: None };

fn found(points: &[MeasuredPoint]) -> Result<Calibration, CalibrateError> {
    println!("seed 1");
    let by = Calibrating { trials: TRIALS, given: Costs::default(), cpu_given: false, interval: (0.9, 1.1) };
    calibrate(points, &by)
}

fn slow() -> Array {
    volume(Nanos::from_ms(1), Some(2_000), None)
}

#[test]
fn processor_time_and_pages_of_a_server_are_found_again() {
    let truth = Costs { cpu_us: 2_500.0, reads: 1.6, writes: 0.7, ..Costs::default() };
    let point = MeasuredPoint { reads: Some(6.4), writes: Some(1.4), ..measured(truth, slow(), 16) };
    let costs = found(&[point]).unwrap().costs;
    assert!((costs.cpu_us / truth.cpu_us - 1.0).abs() < 0.05, "{costs:?}");
    assert!((costs.reads / truth.reads - 1.0).abs() < 0.02, "{costs:?}");
    assert!((costs.writes / truth.writes - 1.0).abs() < 0.02, "{costs:?}");
}

#[test]
fn one_factor_is_searched_where_no_pages_were_counted() {
    let truth = Costs { cpu_us: 500.0, reads: 2.0, writes: 2.0, ..Costs::default() };
    let calibration = found(&[measured(truth, slow(), 16)]).unwrap();
    assert!((calibration.costs.reads / 2.0 - 1.0).abs() < 0.1, "{:?}", calibration.costs);
    assert!((calibration.residuals[0] - 1.0).abs() < 0.05, "{:?}", calibration.residuals);
}

#[test]
fn points_that_no_costs_explain_are_refused() {
    let point = measured(Costs { cpu_us: 500.0, ..Costs::default() }, slow(), 16);
    let with = |reads, cpu_pct| MeasuredPoint { reads, cpu_pct, ..point.clone() };
    assert_eq!(found(&[with(Some(4.0), None)]).unwrap_err(), CalibrateError::NoProcessorTime);
    let far = found(&[with(Some(80.0), Some(5.0))]).unwrap_err();
    assert!(matches!(far, CalibrateError::OutOfBounds { factor, .. } if factor > 19.0), "{far}");
    let two = found(&[with(Some(2.0), Some(5.0)), with(Some(8.0), Some(5.0))]).unwrap_err();
    assert!(matches!(two, CalibrateError::Contradiction { first: 1, second: 2, .. }), "{two}");
}

#[test]
fn a_throughput_that_no_pages_give_is_named_with_the_nearest_one() {
    let truth = Costs { cpu_us: 500.0, ..Costs::default() };
    // The processor time is stated, so that pages are searched, or nothing.
    let refused = |point: &MeasuredPoint| {
        let given = Costs { cpu_us: 500.0, ..Costs::default() };
        let by = Calibrating { trials: TRIALS, given, cpu_given: true, interval: (0.9, 1.1) };
        calibrate(std::slice::from_ref(point), &by).unwrap_err()
    };
    let bound_by_volume = measured(truth, slow(), 16);
    for (times, side) in [(20.0, "at most"), (0.05, "at least")] {
        let point =
            MeasuredPoint { tps: bound_by_volume.tps * times, cpu_pct: None, ..bound_by_volume.clone() };
        let error = refused(&point);
        let CalibrateError::Unreached { point: 1, tps, reached, .. } = error else { panic!("{error}") };
        assert_eq!(tps, point.tps);
        assert!((reached < tps) == (times > 1.0), "{error}");
        let words = error.to_string();
        assert!(
            words.contains(side) && words.contains("tps = ") && words.contains("out of range"),
            "{words}"
        );
    }
}

#[test]
fn pages_that_the_redo_log_has_written_are_no_factor_on_the_workload() {
    println!("seed 1");
    // All data fit the pool: nothing is evicted, and a redo log of 64 MiB has pages written.
    let mut hot = shape(0.0, 0.0, 10_000.0);
    hot.classes.clear();
    hot.types[0].touches.clear();
    hot.class("hot", PageKind::Reused { pages: 50_000.0, revisits: None }, &[(0, 10.0, 1.0)]);
    let costs = Costs { cpu_us: 1_000.0, ..Costs::default() };
    let base = setup(hot.clone(), volume(Nanos::from_ms(1), Some(20_000), None), 16, 0.0, MACHINE.vcpus);
    let settings = ebbtide_twin::innodb::Settings {
        redo_capacity_bytes: 64 * ebbtide_volume::MIB,
        ..settings(ebbtide_twin::innodb::Flavour::MySql80)
    };
    let (duration, settle) = (Nanos::from_secs(240), Nanos::from_secs(120));
    let outcome = run(ModelSetup { settings: settings.clone(), costs, duration, settle, ..base });
    let writes = outcome.file(FileKind::DataWrite).ios as f64 / outcome.transactions as f64;
    assert!(writes > 1.0, "{writes}");
    let point = MeasuredPoint {
        settings,
        shape: hot,
        writes: Some(writes),
        reads: Some(0.001),
        tps: outcome.tps(),
        cpu_pct: Some(outcome.processors_busy * 100.0),
        ..measured(costs, volume(Nanos::from_ms(1), Some(20_000), None), 16)
    };
    let costs = found(std::slice::from_ref(&point)).unwrap().costs;
    assert!((costs.writes - 1.0).abs() < 0.15, "{costs:?}");
    assert_eq!(costs.reads, 1.0, "too few pages to say anything");
    // A server whose page cleaner had nothing to do yet: pages were counted, so that none are searched for.
    let costs = found(&[MeasuredPoint { reads: Some(0.0), writes: Some(0.0), ..point }]).unwrap().costs;
    assert_eq!((costs.reads, costs.writes), (1.0, 1.0));
}

#[test]
fn the_point_that_is_far_from_the_others_is_the_one_that_contradicts() {
    println!("seed 1");
    let point = measured(Costs { cpu_us: 500.0, ..Costs::default() }, slow(), 16);
    let with = |reads| MeasuredPoint { reads: Some(reads), cpu_pct: Some(5.0), ..point.clone() };
    let of = |points: &[MeasuredPoint]| {
        let all = contradicting(points, &TRIALS, Costs::default());
        all.iter().map(|one| (one.point, one.what)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[with(4.0), with(4.4), with(5.0)]), []);
    assert_eq!(of(&[with(20.0), with(4.4), with(5.0)]), [(0, "pages read")]);
    assert_eq!(of(&[with(4.0), with(20.0)]), [(1, "pages read")], "the first is taken for right");
    let times = contradicting(&[with(4.0), with(20.0)], &TRIALS, Costs::default())[0].times;
    assert!((times - 5.0).abs() < 1e-9, "{times}");
}

#[test]
fn points_of_the_same_volume_and_load_with_other_throughputs_are_refused_and_named() {
    println!("seed 1");
    let point = measured(Costs { cpu_us: 500.0, ..Costs::default() }, slow(), 16);
    let with = |tps| MeasuredPoint { tps, cpu_pct: Some(5.0), ..point.clone() };
    let points = [with(100.0), with(1_000.0)];
    let error = found(&points).unwrap_err().to_string();
    for part in ["points 1 and 2 contradict each other", "100 and 1000 transactions a second"] {
        assert!(error.contains(part), "no '{part}' in {error}");
    }
    let of = |points: &[MeasuredPoint]| {
        let all = contradicting(points, &TRIALS, Costs::default());
        all.into_iter()
            .filter(|one| one.what == "transactions a second")
            .map(|one| one.point)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&points), [1], "the first is taken for right");
    assert_eq!(of(&[with(1_000.0), with(100.0), with(110.0)]), [0]);
    // Another volume, or another load, may have another throughput.
    let quick =
        MeasuredPoint { volumes: volume(Nanos::from_us(100), Some(20_000), None).into(), ..with(1_000.0) };
    assert_eq!(of(&[with(100.0), quick]), [0_usize; 0]);
    let load = ModelLoad { clients: 64, rate: None };
    assert_eq!(of(&[with(100.0), MeasuredPoint { load, ..with(1_000.0) }]), [0_usize; 0]);
}
