//! Claims of documents in experiment files: what is read, and what is refused with its line.

use ebbtide_lab::experiment::{Overrides, parse};

const ARMS: &str = "[arms.a]\n[arms.b.settings]\nio_capacity = 300\n";

fn file(claim: &str) -> String {
    format!(
        "{ARMS}[[claim]]\nid = \"x\"\ndocument = \"whitepaper\"\nplace = \"table 1\"\nsays = \"It is.\"\n{claim}"
    )
}

fn refused(text: &str) -> String {
    parse("t", "t.toml", text, &Overrides::default()).expect_err("it must be refused").to_string()
}

#[test]
fn a_claim_is_read_with_its_figures_and_its_range() {
    let text = file(
        "metric = \"tps\"\narm = \"b\"\nover = \"a\"\nfigures = { a = 100, b = 150.5 }\nat_least = 1.2\n",
    );
    let experiment = parse("t", "t.toml", &text, &Overrides::default()).unwrap();
    let [claim] = experiment.claims.as_slice() else { panic!("{:?}", experiment.claims) };
    let test = claim.test.as_ref().unwrap();
    assert_eq!(test.theirs(&claim.figures), Some(1.505));
    assert!(test.allows(1.2) && !test.allows(1.19));
    let json = serde_json::to_string(&experiment).unwrap();
    assert_eq!(serde_json::from_str::<ebbtide_lab::experiment::Experiment>(&json).unwrap(), experiment);
}

#[test]
fn a_claim_about_an_arm_that_the_command_line_leaves_out_stays() {
    let text = file("metric = \"tps\"\narm = \"b\"\nat_most = 9\n");
    let overrides = Overrides { arms: vec!["a".to_owned()], ..Overrides::default() };
    let experiment = parse("t", "t.toml", &text, &overrides).unwrap();
    assert_eq!((experiment.arms.len(), experiment.claims.len()), (1, 1));
}

#[test]
fn what_is_wrong_with_a_claim_is_refused_with_its_line_and_the_nearest_name() {
    let test = "metric = \"tps\"\narm = \"b\"\n";
    let cases: [(String, &[&str]); 17] = [
        (file(&format!("{test}at_leats = 1\n")), &["line 11", "at_leats", "did you mean 'at_least'"]),
        (
            file("metric = \"tsp\"\narm = \"b\"\nat_least = 1\n"),
            &["line 9", "no metric 'tsp'", "did you mean 'tps'"],
        ),
        (file("metric = \"tps\"\narm = \"c\"\nat_least = 1\n"), &["line 10", "no arm 'c'", "there is a, b"]),
        (file(&format!("{test}over = \"d\"\nat_least = 1\n")), &["no arm 'd'"]),
        (file(&format!("{test}figures = {{ c = 1 }}\nat_least = 1\n")), &["no arm 'c'"]),
        (file(&format!("{test}figures = {{ a = \"x\" }}\nat_least = 1\n")), &["a figure is a number"]),
        (file(test), &["needs a bound", "at_least, at_most or both"]),
        (file(&format!("{test}at_least = 2\nat_most = 1\n")), &["at_most = 1", "less than at_least"]),
        (file(&format!("{test}at_least = -1\n")), &["bounds are numbers from 0 on"]),
        (file(&format!("{test}over = \"b\"\nat_least = 1\n")), &["the same arm in the same phase"]),
        (file(""), &["has a condition", "'untestable' or 'contradicted'"]),
        (file(&format!("{test}at_least = 1\nuntestable = \"no\"\n")), &["leave out one of them"]),
        (
            file(&format!("{test}over = \"a\"\nfigures = {{ a = 100, b = 150 }}\nat_least = 2\n")),
            &["own figures give 1.50", "'contradicted'"],
        ),
        (file("metric = \"lost_pct\"\narm = \"b\"\nat_most = 1\n"), &["only 'ebbtide crash' measures it"]),
        (file(&format!("{test}during = [\"batch\"]\nat_least = 1\n")), &["'batch': no arm has a batch job"]),
        (
            file(&format!("{test}during = [\"during-bakcup\"]\nat_least = 1\n")),
            &["no phase", "'during-backup'"],
        ),
        (
            file("untestable = \"no\"\n").replace("\"whitepaper\"", "\"white-paper\""),
            &["no document", "'whitepaper'"],
        ),
    ];
    for (text, words) in cases {
        let message = refused(&text);
        for word in words {
            assert!(message.contains(word), "{word}: {message}");
        }
    }
    let twice =
        format!("{}{}", file("untestable = \"no\"\n"), file("untestable = \"no\"\n").replace(ARMS, ""));
    assert!(refused(&twice).contains("two claims have the id 'x'"));
    assert!(refused("claim = 3\n").contains("write [[claim]]"));
}
