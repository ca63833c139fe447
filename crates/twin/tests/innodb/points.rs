//! A point that calibrates is met by predictions of any length, and costs that the model was made of are found again.

use ebbtide_twin::innodb::{Costs, ModelLoad, PointSpan};
use ebbtide_volume::Nanos;

use crate::generated::Generated;

/// How far a prediction may be from the point that calibrated it.
const MET: f64 = 0.03;
/// Lengths of predictions.
const LENGTHS: [Nanos; 2] = [Nanos::from_secs(120), Nanos::from_secs(1_800)];

fn off(value: f64, expected: f64) -> f64 {
    (value / expected - 1.0).abs()
}

#[test]
fn runs_of_minutes_and_of_half_an_hour_have_one_throughput() {
    for seed in 1..=5 {
        println!("seed {seed}");
        let server = Generated::of(seed);
        let [short, long] = LENGTHS.map(|length| server.run(server.planned.costs, length).tps());
        assert!(off(short, long) < MET, "{short} in 2 minutes, {long} in 30\n{}", server.text);
    }
}

#[test]
fn a_point_of_the_model_with_its_pages_and_processors_is_met_again() {
    for seed in 1..=5 {
        println!("seed {seed}");
        let server = Generated::of(seed);
        let truth = server.run(server.planned.costs, Nanos::from_secs(600));
        let costs = server.calibrated(&[server.counted(&truth)], None).costs;
        let tps = server.run(costs, LENGTHS[0]).tps();
        assert!(off(tps, truth.tps()) < MET, "{tps}, not {}: {costs:?}\n{}", truth.tps(), server.text);
    }
}

/// The profile of a workload whose page writes once took half an hour to come to their balance.
fn update() -> Generated {
    let text = "[server]\nflavour = \"mysql-8.4\"\nbuffer_pool_size = \"4GiB\"\nredo_log_capacity = \"1GiB\"\nflush_method = \
                \"O_DIRECT\"\nflush_neighbors = 0\nio_capacity = 2000\nio_capacity_max = 4000\n[machine]\nvcpus = 4\n[workload]\nkind \
                = \"oltp_update_non_index\"\ntables = 8\ntable_size = 20000000\nrand_type = \"uniform\"\ncpu_us = 800\n";
    Generated::read(text.into(), "gp2:size=600GiB,credits=0%", ModelLoad { clients: 64, rate: None })
}

#[test]
fn a_factor_that_is_searched_meets_its_point_in_predictions_of_every_length() {
    println!("seed 1");
    let server = update();
    for length in LENGTHS {
        let calibration = server.calibrated(&[server.point(646.62)], Some(length));
        let tps = server.run(calibration.costs, length).tps();
        assert!(off(tps, 646.62) < MET, "{tps}: {calibration:?}");
        assert_eq!(calibration.residuals, [tps / 646.62], "what is said of the point");
        assert_eq!(calibration.spans, [PointSpan { time: length, shorter: None }]);
        assert!(calibration.costs.reads > 1.1, "{calibration:?}");
    }
}

#[test]
fn processor_time_is_that_whose_run_keeps_so_many_processors_busy() {
    let base = "[server]\nflavour = \"mysql-8.0\"\nbuffer_pool_size = \"4GiB\"\nredo_log_capacity = \"8GiB\"\nflush_method = \
                \"O_DIRECT\"\n[workload]\nkind = \"tpcc\"\nwarehouses = 100\ncpu_us = 2000\n";
    let closed = |clients| ModelLoad { clients, rate: None };
    let open = ModelLoad { clients: 256, rate: Some(600.0) };
    for (vcpus, threads, load) in
        [(2, 2, closed(4)), (4, 2, closed(4)), (8, 2, closed(16)), (8, 1, closed(16)), (4, 2, open)]
    {
        println!("seed 1: {vcpus} processors, {threads} threads a core, {load:?}");
        let text = format!("{base}[machine]\nvcpus = {vcpus}\nthreads_per_core = {threads}\n");
        let server = Generated::read(text, "gp3:size=500GiB,iops=8000,throughput=400", load);
        let truth = server.run(server.planned.costs, Nanos::from_secs(60));
        let mut point = server.point(truth.tps());
        point.cpu_pct = Some(truth.processors_busy * 100.0);
        let costs = server.calibrated(&[point], None).costs;
        assert!(off(costs.cpu_us, 2_000.0) < MET, "{costs:?}");
        assert_eq!((costs.reads, costs.writes), (1.0, 1.0), "nothing is left to search for");
    }
}

#[test]
fn pages_stay_where_the_throughput_does_not_determine_them_and_that_is_said() {
    println!("seed 1");
    let text = "[server]\nflavour = \"mysql-8.0\"\nbuffer_pool_size = \"4GiB\"\nredo_log_capacity = \"8GiB\"\nflush_method = \
                \"O_DIRECT\"\n[machine]\nvcpus = 8\n[workload]\nkind = \"tpcc\"\nwarehouses = 100\ncpu_us = 2000\n";
    let load = ModelLoad { clients: 4, rate: None };
    let server = Generated::read(text.into(), "io2:size=500GiB,iops=30000", load);
    let truth = server.run(server.planned.costs, Nanos::from_secs(60));
    // A throughput that is off, as measurements are.
    let mut point = server.point(truth.tps() * 0.95);
    point.cpu_pct = Some(truth.processors_busy * 95.0);
    let calibration = server.calibrated(&[point], None);
    let Costs { reads, writes, .. } = calibration.costs;
    assert_eq!((reads, writes), (1.0, 1.0), "{calibration:?}");
    assert!(calibration.notes.iter().any(|note| note.contains("not determine")), "{calibration:?}");
}
