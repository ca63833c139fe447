//! States over time: silences, missing subjects, the doctor's fix, and that the same readings give the same events.

use ebbtide_volume::Nanos;
use ebbtide_watch::alarm::{AlarmState, EventCause, Silence};
use ebbtide_watch::reading::{Answer, CheckReading, CheckVerdict, ReadingSet};

use crate::support::{Pace, ServerPace, Watched};

fn down() -> Answer {
    Answer::Down("Connection refused".to_owned())
}

#[test]
fn a_silenced_alarm_is_no_news_until_the_silence_ends() {
    let mut watched = Watched::new();
    watched.server(100, ServerPace::USUAL);
    let until = Nanos::from_secs(watched.second + 120);
    let silence = Silence {
        rule: Some("server_down".to_owned()),
        subject: Some("shop".to_owned()),
        until,
        comment: "The disk is being changed.".to_owned(),
    };
    watched.alarms.silence(silence);
    watched.answer(100, &down());
    let silenced: Vec<bool> = watched
        .events
        .iter()
        .filter(|event| event.to == AlarmState::Alarm)
        .map(|event| event.silenced)
        .collect();
    assert_eq!(silenced, [true], "it is in ALARM, and silenced");
    assert!(watched.events.iter().all(|event| !event.is_news()));
    assert!(watched.alarms.all().any(|alarm| alarm.rule == "server_down" && alarm.silenced));
    watched.events.clear();
    watched.answer(60, &down());
    let news: Vec<_> = watched.events.iter().filter(|event| event.is_news()).collect();
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(
        (news[0].cause, news[0].from, news[0].to),
        (EventCause::SilenceEnded, AlarmState::Alarm, AlarmState::Alarm)
    );
    assert!(watched.alarms.silences().is_empty());
}

#[test]
fn a_silence_of_another_subject_or_of_the_past_hides_nothing() {
    let mut watched = Watched::new();
    watched.server(10, ServerPace::USUAL);
    let later = Nanos::from_secs(watched.second + 10_000);
    let silence = |subject: &str, until: Nanos| Silence {
        rule: None,
        subject: Some(subject.to_owned()),
        until,
        comment: String::new(),
    };
    watched.alarms.silence(silence("another", later));
    watched.alarms.silence(silence("shop", Nanos::from_secs(watched.second - 5)));
    watched.answer(60, &down());
    assert!(watched.events.iter().any(|event| event.rule == "server_down" && event.is_news()));
}

#[test]
fn an_alarm_ends_with_a_reason_and_a_time() {
    let mut watched = Watched::new();
    watched.server(100, ServerPace::USUAL);
    watched.answer(60, &down());
    watched.server(100, ServerPace::USUAL);
    let of_rule = watched.events.iter().filter(|event| event.rule == "server_down");
    let states: Vec<_> = of_rule.map(|event| (event.from, event.to, event.is_news())).collect();
    assert_eq!(
        states,
        [
            (AlarmState::InsufficientData, AlarmState::Ok, false),
            (AlarmState::Ok, AlarmState::Alarm, true),
            (AlarmState::Alarm, AlarmState::Ok, true),
        ]
    );
    let line = watched.events.iter().find(|event| event.to == AlarmState::Alarm).unwrap().line();
    assert_eq!(
        line,
        "2026-11-28T00:02:10Z ALARM server_down shop: no connection to shop: Connection refused"
    );
}

#[test]
fn a_subject_that_disappears_has_insufficient_data_after_a_minute_and_is_forgotten_after_a_day() {
    let mut watched = Watched::new();
    watched.storage(400, Pace { write_s: 0.1, writes: 30.0, queue: Some(3.3), ..Pace::USUAL });
    assert_eq!(watched.state("latency"), Some(AlarmState::Alarm));
    watched.server(59, ServerPace::USUAL);
    assert_eq!(watched.state("latency"), Some(AlarmState::Alarm), "a minute is not over");
    watched.server(2, ServerPace::USUAL);
    assert_eq!(watched.state("latency"), Some(AlarmState::InsufficientData));
    let event = watched.events.last().unwrap();
    assert!(event.reason.starts_with("no data for a minute; before: "), "{}", event.reason);
    watched.step = 60;
    watched.server(2 * 86_400, ServerPace::USUAL);
    assert_eq!(watched.state("latency"), None);
}

#[test]
fn the_doctors_fix_is_taken_where_it_has_looked() {
    let check = |server: &str, verdict: CheckVerdict| CheckReading {
        server: server.to_owned(),
        code: "R03".to_owned(),
        verdict,
    };
    let found = |fix: &str| CheckVerdict::Found { why: "It waits.".to_owned(), fix: fix.to_owned() };
    let mut watched = Watched::new();
    watched.second += 1;
    let checks =
        vec![check("shop", found("Set innodb_log_buffer_size = 64M.")), check("other", found("Another."))];
    watched.look(ReadingSet { checks, ..ReadingSet::default() });
    watched.server(120, ServerPace { log_waits: 9.0, ..ServerPace::USUAL });
    let event =
        watched.events.iter().find(|event| event.rule == "log_waits" && event.to == AlarmState::Alarm);
    assert_eq!(event.unwrap().fix, "Set innodb_log_buffer_size = 64M.");
}

#[test]
fn the_same_readings_give_the_same_events_and_late_ones_are_counted() {
    let play = || {
        let mut watched = Watched::new();
        watched.storage(200, Pace { over: [0.5, 0.0, 0.0, 0.0], ..Pace::USUAL });
        watched.server(100, ServerPace { free_page_waits: 3.0, ..ServerPace::USUAL });
        watched.second -= 50;
        watched.answer(50, &down());
        watched.disk(120, |minute| 80.0 + minute / 10.0);
        watched
    };
    let (first, second) = (play(), play());
    assert_eq!(first.events, second.events);
    assert!(!first.raised().is_empty());
    assert_eq!(first.alarms.late_readings(), 50);
}
