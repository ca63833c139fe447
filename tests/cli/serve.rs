//! The server itself: one for each home, started, detached, stopped.

use std::process::Command;

use crate::harness::{Home, kill_9};

#[test]
fn a_home_has_one_server_at_a_time() {
    let home = Home::served();
    home.say("serve").refused(3, &["already served by process", "serve --stop"]);
    home.say("serve --detach").refused(3, &["already served by process"]);
    let other = Home::served();
    other.say("volume create db gp3:size=1GiB").ok();
    assert_eq!(home.say("volume list").ok().line(), "no volumes", "homes are apart");
}

#[test]
fn a_signal_stops_the_server_in_order_and_its_volumes_are_there_again() {
    for signal in ["-TERM", "-INT"] {
        let home = Home::new();
        let pid = home.serve();
        home.say("volume create db gp3:size=1GiB").ok();
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
        while home.root().join("control.sock").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!home.log().contains("ERROR"), "{}", home.log());
        home.say("serve --stop").refused(3, &["is not running"]);
        home.serve();
        assert_eq!(home.show("db")["state"], "available");
    }
}

#[test]
fn a_killed_server_is_replaced_at_once() {
    let home = Home::new();
    let first = home.serve();
    home.say("volume create db gp3:size=1GiB").ok();
    kill_9(first);
    home.say("volume list").refused(3, &["is not running"]);
    let second = home.serve();
    assert_ne!(first, second);
    assert_eq!(home.show("db")["state"], "available");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let home = Home::new();
    std::fs::create_dir_all(home.root()).unwrap();
    std::fs::write(home.root().join("store"), "not a directory").unwrap();
    home.say("serve --detach").refused(3, &["the server ended at once", "serve.log"]);
}

#[test]
fn credits_refill_by_the_clock_and_survive_a_kill() {
    let home = Home::served();
    home.run(&["volume", "create", "slow", "gp2:size=100GiB,credits=2%"]).ok();
    let share = |home: &Home| home.show("slow")["credit_pct"].as_f64().unwrap();
    let first = share(&home);
    assert!((2.0..2.1).contains(&first), "{first}");
    home.run(&["volume", "attach", "slow", "--nbd", &format!("unix:{}", home.beside("s").display())]).ok();
    let attached = share(&home);
    assert!((first..2.2).contains(&attached), "{attached}");
    let pid: u32 = std::fs::read_to_string(home.root().join("serve.lock")).unwrap().trim().parse().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(6));
    kill_9(pid);
    home.serve();
    let after = share(&home);
    // 300 credits a second into 5.4 million: 0.0056 % a second.
    assert!((attached + 0.03..2.3).contains(&after), "{attached} {after}");
}
