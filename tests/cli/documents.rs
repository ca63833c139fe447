//! `ebbtide run --documents` where no trial is needed: what it plans and refuses, and that it goes on when experiments
//! fail. Trials themselves are the lab's own tests.

use ebbtide_lab::documents::{DocumentResults, ExperimentState};
use ebbtide_lab::run::event::EventSink;
use ebbtide_lab::run::home::Lab;
use ebbtide_load::Cancel;

use crate::harness::{Home, Need, can};
use ebbtide_testing::schema::assert_documented;

#[test]
fn the_documents_are_planned_with_their_time_and_nothing_else_can_be_changed() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let plan = home.run(&["run", "--documents", "--quick", "--check", "--json"]).planned().json();
    let experiments = plan["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 16);
    assert!(plan["estimate_s"].as_u64().unwrap() <= 3600, "{}", plan["estimate_s"]);
    let text = home.run(&["run", "--documents", "--quick", "--check"]).planned().stdout;
    for words in ["tuned-vs-default", "ssd-tiers", "16 experiments: about "] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    for other in [&["tuned-vs-default"][..], &["--set", "trial.repeats=9"], &["--arms", "gp2"], &["--list"]] {
        home.run(&[&["run", "--documents"], other].concat())
            .refused(2, &["--documents", "cannot be used with"]);
    }
    home.run(&["run", "--check"]).refused(2, &["required"]);
    assert!(!home.root().join("lab").exists(), "a plan leaves nothing");
}

#[test]
fn experiments_that_fail_are_holes_of_the_report_and_are_tried_again() {
    if !can(&[Need::BlockDevices, Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let out = home.sibling("documents");
    let dir = out.to_str().unwrap();
    // No experiment can run while another process has the lab.
    let busy = Lab::open(&home.root(), &Cancel::default(), EventSink::new(&|_| ())).unwrap();
    let ran = home.run(&["run", "--documents", "--quick", "--out", dir]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let read = || -> DocumentResults {
        serde_json::from_str(&std::fs::read_to_string(out.join("documents.json")).unwrap()).unwrap()
    };
    let results = read();
    for one in &results.experiments {
        assert_eq!(one.state, ExperimentState::Failed, "{}", one.name);
        assert!(one.failed.as_ref().unwrap().contains("another run is under way"), "{:?}", one.failed);
        assert!(!one.claims.is_empty());
    }
    assert!(ran.stdout.contains("experiment 16 of 16, ssd-tiers"), "{}", ran.stdout);
    assert!(ran.stderr.contains("go on with what is missing: ebbtide run --resume"), "{}", ran.stderr);
    let page = std::fs::read_to_string(out.join("whitepaper.html")).unwrap();
    for words in [
        "not measured",
        "another run is under way",
        "contradicted by its own tables",
        "not testable here",
        "not in the short form",
        "run ebbtide run volume-types --arms io1,gp3",
    ] {
        assert!(page.contains(words), "the page has no {words}");
    }
    let front = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(front.contains("whitepaper.html") && front.contains("aurora-binlog.html"));

    home.run(&["run", "--documents", "--out", dir])
        .refused(2, &["holds results of the documents already", "--resume"]);
    home.run(&["run", "--resume", "--out", dir, "--quick"]).refused(2, &["cannot be changed"]);
    let again = home.run(&["run", "--resume", "--out", dir, "--json"]).with(&["run", "--documents"]);
    assert_eq!((again.code, again.json()["documents"]["seed"].as_u64()), (1, Some(results.seed)));
    let kept = std::fs::read_to_string(out.join("documents.json")).unwrap();
    assert_documented(&["<documents.json of run --documents>"], &serde_json::from_str(&kept).unwrap());
    assert_eq!(read().seed, results.seed, "it goes on as it was begun");
    drop(busy);
}
