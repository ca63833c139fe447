//! The history and the scrape of what was watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use ebbtide_history::{SampleOptions, Samples};
use ebbtide_watch::live::{LiveSource, ReplaySource, SUBJECTS, WatchOptions, Watcher};
use ebbtide_watch::view::{Graph, Range, Subject, ViewSource as _};

use crate::world::{OPERATIONS, STATEMENTS, World};

/// A world whose samples are recorded, and the directory of the history.
fn recorded() -> (tempfile::TempDir, Arc<Samples>, World) {
    let dir = tempfile::tempdir().unwrap();
    let samples = Arc::new(Samples::open(dir.path(), SampleOptions::new(SUBJECTS)).unwrap());
    let options = WatchOptions { machine: "db1".to_owned(), build: ["0.0.0", ""], ..WatchOptions::default() };
    let watcher = Watcher::new(options, Some(Arc::clone(&samples)));
    (dir, samples, World { watcher, ..World::new() })
}

fn record(world: &mut World, samples: &Samples, seconds: u64) {
    for _ in 0..seconds {
        world.step();
        let now_ms = u64::try_from(world.moment().unix_s).unwrap() * 1_000;
        let tick = world.ticks.last().unwrap();
        samples.record(now_ms, tick.samples.clone()).unwrap();
    }
}

fn graph<'a>(graphs: &'a [Graph], key: &str) -> &'a Graph {
    graphs.iter().find(|graph| graph.key == key).unwrap_or_else(|| panic!("no graph {key}"))
}

fn last_minute(world: &World, source: &LiveSource, subject: Subject) -> Vec<Graph> {
    let to_s = world.moment().unix_s;
    source.graphs(&subject, Range { from_s: to_s - 60, to_s, most_points: 60 })
}

#[test]
fn graphs_have_what_was_recorded_and_a_gap_where_the_server_was_started_again() {
    let (_dir, samples, mut world) = recorded();
    record(&mut world, &samples, 30);
    (world.run, world.uptime_s, world.statements) = (1, 1, 500);
    record(&mut world, &samples, 40);
    samples.flush().unwrap();
    let source = world.watcher.source();
    let graphs = last_minute(&world, &source, Subject::Server("shop".to_owned()));
    let keys: Vec<&str> = graphs.iter().map(|graph| graph.key).collect();
    assert_eq!(keys[..4], ["iops", "latency", "log-time", "main-thread"], "the first row");
    let statements = &graph(&graphs, "statements").lines[0].values;
    assert_eq!(statements.len(), 60);
    let known: Vec<f64> = statements.iter().flatten().copied().collect();
    assert!(known.iter().all(|value| (value - STATEMENTS as f64).abs() < 1.0), "{known:?}");
    assert!((55..60).contains(&known.len()), "a gap, and no zero: {statements:?}");
    let writes = &graph(&graphs, "iops").lines[1];
    assert!(
        writes.values.iter().flatten().all(|value| (value - OPERATIONS as f64).abs() < 1.0),
        "{writes:?}"
    );
    assert!(graph(&graphs, "latency").logarithmic);
    for storage in ["shop-data", "nvme1n1"] {
        let graphs = last_minute(&world, &source, Subject::Storage(storage.to_owned()));
        assert!(graph(&graphs, "iops").lines.iter().flat_map(|line| &line.values).flatten().count() > 50);
    }
    assert!(last_minute(&world, &source, Subject::Server("none".to_owned())).is_empty());
}

#[test]
fn time_over_limits_is_even_between_pages_on_screens_and_in_graphs() {
    let (_dir, samples, mut world) = recorded();
    world.has_page = true;
    record(&mut world, &samples, 60);
    samples.flush().unwrap();
    let source = world.watcher.source();
    let view = source.view();
    let device = view.storage.iter().find(|storage| storage.name == "nvme1n1").unwrap();
    assert!(device.throttled.is_some_and(|share| (share - 0.02).abs() < 1e-9), "{device:?}");
    let graphs = last_minute(&world, &source, Subject::Storage("nvme1n1".to_owned()));
    let lines = &graph(&graphs, "throttled").lines;
    let shares: Vec<f64> = lines[0].values.iter().flatten().copied().collect();
    assert!((48..=51).contains(&shares.len()), "from the second page on: {shares:?}");
    assert!(shares.iter().all(|share| (share - 0.02).abs() < 1e-6), "{shares:?}");
}

#[test]
fn a_server_and_a_volume_that_have_gone_keep_their_graphs() {
    let (_dir, samples, mut world) = recorded();
    record(&mut world, &samples, 70);
    samples.flush().unwrap();
    let options = WatchOptions { machine: "db1".to_owned(), build: ["0.0.0", ""], ..WatchOptions::default() };
    let watcher = Watcher::new(options, Some(Arc::clone(&samples)));
    let (second, has_volume) = (world.second, false);
    let mut later = World { watcher, second, has_volume, ..World::named("another") };
    later.run(2);
    let source = later.watcher.source();
    let graphs = last_minute(&later, &source, Subject::Server("shop".to_owned()));
    assert!(graph(&graphs, "statements").lines[0].values.iter().flatten().count() > 50);
    let graphs = last_minute(&later, &source, Subject::Storage("shop-data".to_owned()));
    assert!(graph(&graphs, "iops").lines[1].values.iter().flatten().count() > 50);
    for unknown in [Subject::Server("shop-data".to_owned()), Subject::Storage("shop".to_owned())] {
        assert!(last_minute(&later, &source, unknown).is_empty());
    }
}

#[test]
fn a_replay_shows_what_was_shown() {
    let (_dir, samples, mut world) = recorded();
    record(&mut world, &samples, 30);
    samples.flush().unwrap();
    let end_ms = u64::try_from(world.moment().unix_s).unwrap() * 1_000;
    let replay = ReplaySource::new(samples, "db1".to_owned(), &(end_ms - 10_000..end_ms), end_ms).unwrap();
    let mut shown = 0;
    loop {
        let view = replay.view();
        let server = view.servers.iter().find(|server| server.name == "shop").unwrap();
        assert_eq!((server.statements, server.connections), (Some(STATEMENTS as f64), Some((7.0, 151.0))));
        let volume = view.storage.iter().find(|storage| storage.name == "shop-data").unwrap();
        assert_eq!(volume.writes, Some(OPERATIONS as f64));
        assert!(view.storage.iter().any(|storage| storage.name == "nvme1n1"));
        shown += 1;
        if !replay.advance().unwrap() {
            break;
        }
    }
    assert_eq!(shown, 10);
}

#[test]
fn the_last_moment_of_a_replay_is_shown_without_those_before_it_and_the_file_is_only_read() {
    let (dir, samples, mut world) = recorded();
    record(&mut world, &samples, 30);
    samples.flush().unwrap();
    let reader = Arc::new(Samples::open_read_only(dir.path()).unwrap());
    let end_ms = u64::try_from(world.moment().unix_s).unwrap() * 1_000;
    let replay = ReplaySource::new(reader, "db1".to_owned(), &(end_ms - 10_000..end_ms), end_ms).unwrap();
    replay.seek_end().unwrap();
    let view = replay.view();
    assert_eq!(view.unix_s, world.moment().unix_s - 1);
    assert_eq!(view.servers[0].statements, Some(STATEMENTS as f64));
    assert!(!replay.advance().unwrap(), "it is the end");
}

#[test]
fn a_scrape_has_each_family_once_under_the_names_of_the_exporters() {
    let mut world = World::new();
    world.run(90);
    let text = world.watcher.source().metrics();
    for part in [
        "ebbtide_build_info{",
        "mysql_up 1",
        "mysql_global_status_questions ",
        "node_disk_reads_completed_total{device=\"nvme1n1\"}",
        "ebbtide_alarm_state{rule=\"server_down\",subject=\"shop\"",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let mut families = BTreeSet::new();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        assert!(families.insert(family.to_owned()), "{family} is there twice");
    }
}
