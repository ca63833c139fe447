//! Scripts against libnbd: what each command and flag does.

use std::{process::Command, time::Duration};

use ebbtide_device::faults::{Affected, Errors, Faults};
use serde_json::Value;

use crate::{Served, run};

/// A Python that has libnbd; nbdsh is that Python with a prompt.
fn python() -> Option<&'static str> {
    let has_libnbd = |python: &&str| {
        Command::new(python).args(["-c", "import nbd"]).output().is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_libnbd);
    if found.is_none() {
        println!("SKIPPED: no python3 with libnbd (Debian: python3-libnbd)");
    }
    found
}

fn script(name: &str, arguments: &[&str]) {
    let Some(python) = python() else { return };
    let path = format!("{}/tests/nbd/scripts/{name}.py", env!("CARGO_MANIFEST_DIR"));
    run(python, &[&[path.as_str()], arguments].concat());
}

#[test]
fn each_command_and_flag_does_what_the_protocol_defines() {
    for service_us in [0, 200] {
        let served = Served::new(64, service_us);
        script("commands", &[&served.uri()]);
    }
}

#[test]
fn block_status_distinguishes_holes_data_and_changes() {
    let served = Served::new(64, 0);
    script("status", &[&served.uri(), "prepare"]);
    served.store.snapshot("vol", "monday", Value::Null).unwrap();
    script("status", &[&served.uri(), "check"]);
}

#[test]
fn a_write_answered_on_one_connection_is_read_on_another() {
    let served = Served::new(64, 200);
    script("connections", &[&served.uri()]);
}

#[test]
fn requests_out_of_bounds_get_errors_and_the_connection_lives_on() {
    let served = Served::new(64, 0);
    script("refusals", &[&served.uri()]);
}

#[test]
fn a_failed_read_names_the_offset_and_keeps_the_rest() {
    for service_us in [0, 200] {
        let served = Served::new(64, service_us);
        let range = Some(5 << 20..(5 << 20) + 4096);
        let errors = vec![Errors { affected: Affected::All, per_million: 1_000_000, range }];
        served.volume.set_faults(Faults { errors, ..Faults::default() }).unwrap();
        script("failures", &[&served.uri()]);
    }
}

#[test]
fn a_client_without_structured_replies_is_served_as_in_the_old_days() {
    for service_us in [0, 200] {
        let served = Served::new(64, service_us);
        script("simple", &[&served.uri()]);
    }
}

#[test]
fn a_stalled_volume_keeps_requests_in_flight_until_it_goes_on() {
    let Some(python) = python() else { return };
    let served = Served::new(64, 0);
    served.volume.set_faults(Faults { stalled: true, ..Faults::default() }).unwrap();
    let path = format!("{}/tests/nbd/scripts/stall.py", env!("CARGO_MANIFEST_DIR"));
    let mut client = Command::new(python).args([&path, &served.uri()]).spawn().unwrap();
    while served.volume.in_flight() < 64 {
        assert!(client.try_wait().unwrap().is_none(), "the client ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    served.volume.set_faults(Faults::default()).unwrap();
    assert!(client.wait().unwrap().success());
}
