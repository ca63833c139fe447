//! What is refused before anything is made.

use std::sync::Mutex;

use ebbtide_lab::run::{Event, RunError};
use ebbtide_load::Cancel;

use crate::support::{Bench, TWO_ARMS, left_of, needs, server};

/// Runs what is to be refused, and sees that nothing was made before.
fn refused(bench: &Bench, text: &str) -> RunError {
    let mut on_event = |event: Event| {
        if let Event::Preparing { what, .. } = event {
            assert!(!what.contains("making the data") && !what.contains("calibrating"), "{what}");
        }
    };
    let error = bench.run(text, false, &Cancel::default(), &mut on_event).unwrap_err();
    assert!(!bench.out().exists(), "nothing has begun");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    error
}

fn with_setting(line: &str) -> String {
    TWO_ARMS.replace("redo_capacity = \"64MiB\"", &format!("redo_capacity = \"64MiB\"\n{line}"))
}

#[test]
fn a_setting_that_the_server_itself_rejects_is_refused_in_its_words_before_data_are_made() {
    needs!();
    let bench = Bench::apart();
    let error = refused(&bench, &with_setting("\"raw.event_scheduler\" = \"nonsense\""));
    assert!(matches!(&error, RunError::Unfit { arm, others: 0, .. } if arm == "two"), "{error}");
    assert!(error.to_string().contains("nonsense"), "{error}");
    assert!(!error.is_environment());
    assert!(error.hint().unwrap().contains("--set"), "{:?}", error.hint());
}

#[test]
fn a_value_with_which_the_server_does_not_start_is_the_settings_fault_and_its_lines_are_shown() {
    needs!();
    let bench = Bench::apart();
    let error = refused(&bench, &with_setting("\"raw.innodb_data_file_path\" = \"ibdata1:nonsense\""));
    assert!(matches!(&error, RunError::Unfit { arm, .. } if arm == "two"), "{error}");
    assert!(error.to_string().contains("[ERROR]"), "{error}");
    assert!(!error.is_environment(), "it starts without the setting");
    assert!(error.hint().is_some());
}

#[test]
fn an_undo_volume_on_a_server_without_undo_tablespaces_is_refused() {
    needs!();
    let server = server().unwrap();
    if !server.is_mariadb() || server.version.major >= 11 {
        println!("SKIPPED: a MariaDB before 11.0, which makes no undo tablespaces by itself");
        return;
    }
    let bench = Bench::apart();
    let text =
        TWO_ARMS.replace("data = \"gp3:size=2GiB\"", "data = \"gp3:size=2GiB\"\nundo = \"gp3:size=1GiB\"");
    let error = refused(&bench, &text);
    assert!(error.to_string().contains("made without undo tablespaces"), "{error}");
    assert!(
        !error.is_environment() && error.hint().unwrap().contains("undo_tablespaces"),
        "{:?}",
        error.hint()
    );
}

#[test]
fn an_optional_arm_that_the_server_rejects_is_left_out_and_reported() {
    needs!();
    let bench = Bench::apart();
    let text = with_setting("\"raw.innodb_nonsense\" = 1")
        .replace("[arms.two.settings]", "[arms.two]\noptional = true\n[arms.two.settings]");
    let cancel = Cancel::default();
    let events = Mutex::new(Vec::new());
    let mut on_event = |event: Event| match event {
        Event::Noted { text } => events.lock().unwrap().push(text),
        Event::Planned { of, .. } => {
            events.lock().unwrap().push(format!("{of} trials"));
            cancel.cancel();
        }
        _ => {}
    };
    bench.run(&text, false, &cancel, &mut on_event).unwrap_err();
    let events = events.into_inner().unwrap();
    assert!(events.len() == 2 && events[1] == "1 trials", "{events:?}");
    assert!(
        events[0].contains("arm 'two' is left out") && events[0].contains("innodb_nonsense"),
        "{events:?}"
    );
}

#[test]
fn an_arm_that_the_server_cannot_have_is_a_hole_with_the_reason_and_the_others_go_on() {
    needs!();
    let bench = Bench::apart();
    let text = with_setting("\"raw.innodb_nonsense\" = 1") + "[arms.three.settings]\nio_capacity = 300\n";
    let cancel = Cancel::default();
    let events = Mutex::new(Vec::new());
    let mut on_event = |event: Event| match event {
        Event::Noted { text } => events.lock().unwrap().push(text),
        Event::Planned { of, .. } => {
            events.lock().unwrap().push(format!("{of} trials"));
            cancel.cancel();
        }
        _ => {}
    };
    bench.run(&text, false, &cancel, &mut on_event).unwrap_err();
    let events = events.into_inner().unwrap();
    assert!(events.len() == 2 && events[1] == "2 trials", "{events:?}");
    assert!(
        events[0].contains("arm 'two' is left out")
            && events[0].contains("raw.innodb_nonsense")
            && events[0].contains("lists no option of this whole name"),
        "{events:?}"
    );
}
