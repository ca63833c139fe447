//! The check of docs/extending.md, made as that page describes and run over observations.

use ebbtide_catalog::Catalog;
use ebbtide_observe::{Observation, Origin, Rates, Span};

use super::sources::{MYSQL_INNODB, says};
use super::{EVERY, whole};
use crate::check::Check;
use crate::finding::{Assessment, Confidence, FINE, Finding, Found, Judged, Seen, Severity};
use crate::fix::Fix;
use crate::view::View;

pub(super) const CHECKS: &[Check] = &[Check {
    code: "X01",
    title: "Purge keeps up with the transactions",
    condition: "over 100,000 transactions wait to be purged",
    reason: "a read walks over the old versions of a row; at this length they show in its time",
    servers: EVERY,
    severity: Severity::Medium,
    gain: "reads that do not walk over old versions of rows",
    risk: "purge competes with statements for the volume",
    cost: "page writes",
    sources: &[says(MYSQL_INNODB, "innodb_purge_threads is how many threads purge")],
    judge: purge,
}];

fn purge(v: &View<'_>) -> Judged {
    let waiting = v.metric("history_length")?;
    if waiting <= 100_000.0 {
        return FINE;
    }
    Found::because(format!("{} transactions wait to be purged.", whole(waiting)))
        .fix(Fix::by_hand("End the oldest transaction, then look again."))
        .answer()
}

fn found(history_length: Option<f64>) -> Finding {
    let observation = Observation {
        span: Some(Span { began_unix_s: None, seconds: 900.0, restarted: false }),
        rates: Some(Rates { history_length, ..Rates::default() }),
        ..Observation::of(Origin::Capture { path: "/captures/db1".into() })
    };
    crate::check("x01").unwrap().run(&observation, &Catalog::builtin())
}

#[test]
fn the_check_of_the_page_judges_an_observation_and_names_its_evidence() {
    let long = found(Some(250_000.0));
    assert_eq!((long.verdict, long.severity), (Assessment::Found, Some(Severity::Medium)));
    assert_eq!(long.confidence, Confidence::High);
    assert_eq!(long.why, "250,000 transactions wait to be purged.");
    let evidence: Vec<_> = long.evidence.iter().map(|one| (one.name, one.value.clone())).collect();
    assert_eq!(evidence, [("history_length", Seen::Number(250_000.0))]);
    assert!(long.fix.unwrap().text.contains("oldest transaction"));
    assert_eq!(found(Some(100_000.0)).verdict, Assessment::Fine);
}

#[test]
fn what_the_check_of_the_page_did_not_see_is_unknown_and_never_fine() {
    let unseen = found(None);
    assert_eq!((unseen.verdict, unseen.confidence), (Assessment::Unknown, Confidence::Low));
    assert_eq!(unseen.missing.len(), 1);
}
