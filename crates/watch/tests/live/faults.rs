//! What goes wrong is said once and counted, and the rest goes on.

use ebbtide_volume::Nanos;
use ebbtide_watch::live::{ServerState, Unanswered};
use ebbtide_watch::view::ViewSource as _;

use crate::world::{OPERATIONS, STATEMENTS, World, assert_even};

fn unanswered(kind: Unanswered) -> ServerState {
    ServerState::Unanswered { kind, error: "no".to_owned(), waited: Nanos::from_secs(5) }
}

#[test]
fn an_even_world_is_shown_as_it_is_and_alarms_nobody() {
    let mut world = World::new();
    let views = world.run(120);
    assert_even(&views);
    let view = views.last().unwrap();
    let server = &view.servers[0];
    assert_eq!(server.statements, Some(STATEMENTS as f64));
    assert_eq!((server.version.as_str(), server.connections), ("MariaDB 11.8.9", Some((7.0, 151.0))));
    assert_eq!(server.files, [("data".to_owned(), "shop-data".to_owned())]);
    let volume = &view.storage[0];
    assert_eq!((volume.name.as_str(), volume.exact), ("shop-data", true));
    assert_eq!((volume.writes, volume.write_s), (Some(OPERATIONS as f64), Some(0.0005)));
    assert_eq!(
        (volume.iops_limit, volume.roles.as_slice()),
        (Some(3_000.0), &["data of shop".to_owned()][..])
    );
    assert!(volume.credits.is_some_and(|credits| credits.share == 0.5), "{volume:?}");
    assert_eq!(view.storage[1].name, "nvme1n1");
    assert!(!world.events().iter().any(|event| event.starts_with("ALARM")), "{:?}", world.events());
    assert_eq!(world.notices(), Vec::<&str>::new());
}

#[test]
fn a_server_that_is_started_again_leaves_a_gap_and_raises_its_alarm() {
    let mut world = World::new();
    world.run(30);
    (world.run, world.uptime_s, world.statements) = (1, 1, 500);
    let views = world.run(30);
    assert_even(&views);
    assert_eq!(views[0].servers[0].statements, None, "the first look at the new run");
    assert_eq!(views[2].servers[0].statements, Some(STATEMENTS as f64));
    assert!(world.events().contains(&"ALARM server_restarted shop".to_owned()), "{:?}", world.events());
}

#[test]
fn counters_that_are_reset_leave_a_gap() {
    let mut world = World::new();
    world.run(10);
    world.statements = 0;
    (world.device_ops, world.epoch, world.volume_ops) = (10, 2, 10);
    let views = world.run(20);
    assert_even(&views);
    assert_eq!(views[0].servers[0].statements, None);
    assert!(views[0].storage.iter().all(|storage| storage.reads.is_none() && storage.writes.is_none()));
    assert!(views[1].storage.iter().all(|storage| storage.reads.is_some()));
}

#[test]
fn a_server_that_does_not_answer_is_said_once_and_delays_nobody() {
    for (kind, rule) in [
        (Unanswered::Down, "server_down"),
        (Unanswered::LoginRefused, "login_refused"),
        (Unanswered::Hangs, "server_hangs"),
    ] {
        let mut world = World::new();
        world.run(10);
        world.state = unanswered(kind);
        let views = world.run(90);
        assert_even(&views);
        let last = views.last().unwrap();
        assert_eq!(last.servers[0].down.as_deref(), Some("no"));
        assert_eq!(last.servers[0].statements, None, "what it did before is not what it does");
        assert_eq!(last.storage[0].writes, Some(OPERATIONS as f64));
        assert!(world.events().contains(&format!("ALARM {rule} shop")), "{:?}", world.events());
        assert_eq!(last.alarms[0].rule, rule);
        world.state = ServerState::Answers;
        let views = world.run(200);
        assert_even(&views);
        assert_eq!(views.last().unwrap().servers[0].down, None);
        assert!(world.events().contains(&format!("OK {rule} shop")), "{:?}", world.events());
        assert_eq!(world.notices().len(), 2, "{:?}", world.notices());
    }
}

#[test]
fn a_server_that_rests_is_no_fault() {
    let mut world = World::new();
    world.run(10);
    world.state = ServerState::Rests;
    let views = world.run(12);
    assert_even(&views);
    assert_eq!(views.last().unwrap().servers[0].down, None);
    let raised = |event: &String| event.starts_with("ALARM");
    assert!(!world.events().iter().any(raised), "{:?}", world.events());
}

#[test]
fn a_device_that_goes_and_comes_back_is_said_and_has_a_gap() {
    let mut world = World::new();
    world.run(10);
    world.has_device = false;
    let views = world.run(20);
    assert!(views.iter().all(|view| view.storage.iter().all(|storage| storage.name != "nvme1n1")));
    (world.has_device, world.device_ops, world.serial) = (true, 17, "vol0fedcba9876543210".to_owned());
    let views = world.run(20);
    assert_even(&views);
    assert_eq!(world.notices(), ["nvme1n1 is no longer there", "nvme1n1 is there now"]);
}

#[test]
fn a_machine_that_is_not_read_any_more_is_neither_shown_nor_scraped_and_nothing_of_it_has_gone() {
    let mut world = World::new();
    world.run(30);
    let reads = "node_disk_reads_completed_total{";
    assert!(world.watcher.source().metrics().contains(reads));
    world.host_read = Some(world.second);
    let view = world.run(40).pop().unwrap();
    assert!(view.storage.iter().all(|storage| storage.name != "nvme1n1"), "{:?}", view.storage);
    assert!(view.not_seen.iter().any(|row| row.subject == "this machine"), "{:?}", view.not_seen);
    assert!(!world.watcher.source().metrics().contains(reads));
    assert_eq!(world.notices(), ["this machine: the thread that reads it waits for the kernel"]);
    world.host_read = None;
    assert_even(&world.run(20));
    assert_eq!(world.notices().len(), 2, "and that it works again: {:?}", world.notices());
}

#[test]
fn a_server_that_rests_keeps_its_series_for_a_while_and_is_up_without_them_afterwards() {
    let mut world = World::new();
    world.run(10);
    world.state = ServerState::Rests;
    for (seconds, has_figures) in [(10, true), (10, false)] {
        world.run(seconds);
        let text = world.watcher.source().metrics();
        assert!(text.contains("mysql_up 1"), "it is no fault: {text}");
        assert_eq!(text.contains("mysql_global_status_questions "), has_figures, "{text}");
    }
}

#[test]
fn a_volume_that_is_detached_takes_nothing_with_it() {
    let mut world = World::new();
    world.run(10);
    world.has_volume = false;
    let views = world.run(70);
    assert_even(&views);
    assert_eq!(views.last().unwrap().storage.len(), 1);
    assert_eq!(views.last().unwrap().servers[0].files[0].1, "loop3", "its device is still below the files");
}

#[test]
fn a_clock_that_is_set_is_said_once_and_changes_no_rate() {
    for step_s in [3_600, -3_600] {
        let mut world = World::new();
        world.run(30);
        world.wall_s += step_s;
        let views = world.run(30);
        assert_even(&views);
        assert!(views.iter().all(|view| view.servers[0].statements.is_some()), "no gap either");
        assert_eq!((world.watcher.clock_steps(), world.notices().len()), (1, 1), "{:?}", world.notices());
        assert!(world.notices()[0].contains(if step_s > 0 { "ahead by 1 h" } else { "back by 1 h" }));
        assert!(!world.events().iter().any(|event| event.starts_with("ALARM")), "{:?}", world.events());
    }
}

#[test]
fn a_tick_that_is_not_later_is_counted_and_changes_nothing() {
    let mut world = World::new();
    let before = world.run(5).pop().unwrap();
    let (moment, looks) = (world.moment(), world.looks());
    let tick = world.watcher.tick(moment, looks);
    assert!(tick.events.is_empty() && tick.samples.is_empty() && tick.notices.is_empty());
    assert_eq!(world.watcher.source().view().servers, before.servers);
    assert_eq!(world.run(1)[0].own.skipped, 1);
}

#[test]
fn a_hostile_name_is_one_value_of_a_label_and_one_line() {
    let mut world = World::named("a\"} 1\nmysql_up 7\u{1b}[2J");
    world.run(5);
    world.state = unanswered(Unanswered::Down);
    world.run(60);
    let text = world.watcher.source().metrics();
    assert!(!text.lines().any(|line| line.starts_with("mysql_up 7")), "{text}");
    for event in world.ticks.iter().flat_map(|tick| &tick.events) {
        let line = event.line();
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
    }
}
