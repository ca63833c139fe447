//! The judgement as two checks of an observation: the buffer is off, or it is on.

use ebbtide_catalog::Catalog;
use ebbtide_observe::{NotSeen, Observation, Role, Version};

use super::advice::{Action, advise};
use super::conditions::{Standing, conditions, open};
use super::error::NotJudged;
use super::figures::{Doublewrite, PageWriteSettings, Storage, Workload};
use super::judge::{Candidate, judge};
use super::verdict::Verdict;
use crate::finding::{Benefit, Confidence, Evidence, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply};

/// Metrics that the answer rests on.
const METRICS: [&str; 10] = [
    "page_reads",
    "page_writes",
    "wait_free",
    "redo_bytes",
    "doublewrite_pages",
    "doublewrite_batches",
    "doublewrite_wait",
    "doublewrite_mutex_wait",
    "binlog_bytes",
    "write_statements",
];

/// MariaDB turns it on and off while it runs from 11.0.6 on; MySQL never turns it off or on.
const OF_MARIADB: Dynamic = Dynamic { mariadb: Some(Version::new(11, 0, 6)), mysql: None };

/// Facts that the answer rests on.
const FACTS: [&str; 5] = ["version", "doublewrite", "page_bytes", "direct", "flush_neighbors"];

/// An observation in the terms of this check, and the judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// PageWriteSettings that decide whether it is safe.
    pub settings: PageWriteSettings,
    /// What the server did.
    pub workload: Workload,
    /// The volume; None where none was named.
    pub storage: Option<Storage>,
    /// The judgement.
    pub candidate: Candidate,
}

fn storage(observation: &Observation, catalog: &Catalog) -> Result<Option<Storage>, NotJudged> {
    observation.spec(Role::Data).map(|spec| Storage::named(spec, catalog)).transpose()
}

/// Judges an observation, with all that the judgement rests on.
///
/// # Errors
/// What the judgement needs was not observed.
pub fn examine(observation: &Observation, catalog: &Catalog) -> Result<Examined, NotJudged> {
    let storage = storage(observation, catalog)?;
    let settings = PageWriteSettings::of(observation)?;
    let workload = Workload::of(observation)?;
    let candidate = judge(&workload, &settings, storage.as_ref());
    Ok(Examined { settings, workload, storage, candidate })
}

/// The buffer is off: is that safe?
pub(crate) fn off(v: &View<'_>) -> Judged {
    let seen = v.observation();
    let settings = match PageWriteSettings::of(seen) {
        // The buffer being off is seen all the same, and that no condition is known to hold.
        Err(NotJudged::NoPageSize) if !is_on(v)? => return off_and_nothing_known(v),
        settings => settings.map_err(|error| gap_of(v, error))?,
    };
    if settings.doublewrite == Doublewrite::On {
        v.text("innodb_doublewrite")?;
        return FINE;
    }
    let storage = storage(seen, v.catalog()).map_err(gap)?;
    let conditions = conditions(&settings, storage.as_ref());
    if open(&conditions) == 0 {
        return FINE;
    }
    let fails = conditions.iter().find(|one| one.standing.fails());
    let (severity, why) = match fails {
        Some(one) => (Severity::Critical, format!("That is not safe: {}.", one.how)),
        None => (
            Severity::High,
            format!("{} of {} safety conditions are not known to hold.", open(&conditions), conditions.len()),
        ),
    };
    let (_, text) = advise(Verdict::AlreadyOff, &conditions);
    found_off(v, severity, &why, text)
}

/// The buffer is off, and too little was seen to judge any condition.
fn off_and_nothing_known(v: &View<'_>) -> Judged {
    let why = "Without innodb_page_size no safety condition can be judged.";
    let text = "Turn the doublewrite buffer on, or have the running server judged: a setting alone does not show that its \
                storage keeps pages whole.";
    found_off(v, Severity::High, why, text.to_owned())
}

fn found_off(v: &View<'_>, severity: Severity, why: &str, fix: String) -> Judged {
    // MySQL changes DETECT_ONLY and ON into each other while it runs from 8.0.30 on; from OFF it needs a restart (error 1210).
    let detects = v.observation().facts.as_ref().and_then(|facts| Doublewrite::of(facts).ok());
    let mysql = (detects == Some(Doublewrite::DetectOnly)).then_some(Version::new(8, 0, 30));
    let online = Dynamic { mysql, ..OF_MARIADB };
    Found::because(format!("A page is written once, so that a torn one cannot be repaired. {why}"))
        .severity(severity)
        .evidence(Evidence::of_facts(v.observation(), &FACTS))
        .fix(v.fix(fix, &[("innodb_doublewrite", "ON", online)])?)
        .answer()
}

/// Whether the buffer is on, where nothing else may be known.
fn is_on(v: &View<'_>) -> Result<bool, Gap> {
    let facts = v.observation().facts.as_ref().ok_or(NotJudged::NoFacts).map_err(gap)?;
    Ok(Doublewrite::of(facts).map_err(|error| gap_of(v, error))? == Doublewrite::On)
}

/// The buffer is on: would the server gain from running without it?
pub(crate) fn on(v: &View<'_>) -> Judged {
    let seen = v.observation();
    if !is_on(v)? {
        return does_not_apply("the doublewrite buffer is off: see D04");
    }
    // What an interval shows is as sure as the interval is long.
    v.metric("page_writes")?;
    let Examined { candidate, .. } = examine(seen, v.catalog()).map_err(|error| gap_of(v, error))?;
    match candidate.verdict {
        Verdict::Yes => found(v, candidate),
        Verdict::No | Verdict::AlreadyOff => FINE,
        Verdict::Perhaps | Verdict::NotKnown => Err(Gap::Undecided(candidate.why)),
    }
}

fn found(v: &View<'_>, candidate: Candidate) -> Judged {
    let seen = v.observation();
    let mut evidence = Evidence::of_facts(seen, &FACTS);
    evidence.extend(Evidence::of_metrics(seen, &METRICS));
    let gain = candidate.gain.map(|gain| Benefit {
        at_most: gain.on_volume.map_or(gain.if_throughput.max(gain.if_iops), |volume| volume.ceiling),
        of: "the same work on the same volume",
    });
    let safe = candidate.action == Action::TurnOff;
    let fix = if safe {
        v.fix(candidate.advice.clone(), &[("innodb_doublewrite", "OFF", OF_MARIADB)])?
    } else {
        Fix::by_hand(candidate.advice.clone())
    };
    let unknown = candidate.conditions.iter().any(|one| one.standing == Standing::Unknown);
    Found::because(candidate.why)
        .severity(if safe { Severity::Medium } else { Severity::Low })
        .confidence(if unknown { Confidence::Medium } else { Confidence::High })
        .evidence(evidence)
        .at_most(gain)
        .fix(fix)
        .answer()
}

/// Why there is no answer. A part of the variables does not show that the server lacks the others.
fn gap_of(v: &View<'_>, error: NotJudged) -> Gap {
    let name = match error {
        NotJudged::NoDoublewrite => "innodb_doublewrite",
        NotJudged::NoPageSize => "innodb_page_size",
        error => return gap(error),
    };
    v.text(name).err().unwrap_or_else(|| gap(error))
}

fn gap(error: NotJudged) -> Gap {
    let missing = |what: &str, why: &str| Gap::Missing(NotSeen { what: what.into(), why: why.into() });
    match error {
        NotJudged::Aurora { .. } => Gap::DoesNotApply(format!("{error}.")),
        NotJudged::NoFacts => missing("SHOW GLOBAL VARIABLES", "connect to the server, or capture it"),
        NotJudged::NoRates => {
            missing("SHOW GLOBAL STATUS, twice", "connect to the server, or capture it twice")
        }
        error => Gap::Undecided(format!("{error}.")),
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::{Facts, FileSystem, Flavour, Origin, Rates, Span, Variables, Volumes};

    use super::super::figures::{Release, runs_without_doublewrite};
    use super::*;
    use crate::finding::{Assessment, Finding, Seen};

    fn facts(doublewrite: Option<&str>) -> Facts {
        Facts {
            flavour: Flavour::MySql,
            version: "8.4.0".into(),
            aurora: None,
            doublewrite: doublewrite.map(str::to_owned),
            page_bytes: Some(16_384),
            direct: None,
            flush_neighbors: None,
        }
    }

    fn seen(facts: Facts) -> Observation {
        Observation { facts: Some(facts), ..Observation::of(Origin::Server { at: "/s".into() }) }
    }

    fn settings(facts: Facts) -> Result<PageWriteSettings, NotJudged> {
        PageWriteSettings::of(&seen(facts))
    }

    /// All that was seen of a server for a quarter of an hour.
    fn whole(doublewrite: &str, volume: &str, pages: f64) -> Observation {
        Observation {
            span: Some(Span { began_unix_s: None, seconds: 900.0, restarted: false }),
            variables: Some(Variables::from_iter([("innodb_doublewrite", doublewrite)])),
            rates: Some(Rates {
                page_writes: Some(pages),
                doublewrite_pages: Some(pages),
                doublewrite_batches: Some(pages / 100.0),
                page_reads: Some(0.0),
                redo_bytes: Some(1e6),
                write_statements: Some(pages),
                read_statements: Some(0.0),
                ..Rates::default()
            }),
            volumes: Volumes::new(Some(volume.to_owned())),
            file_system: Some(FileSystem { name: "ext4-bigalloc".into(), aligned_bytes: 16 << 10 }),
            ..seen(Facts { direct: Some(true), flush_neighbors: Some(false), ..facts(Some(doublewrite)) })
        }
    }

    fn found(code: &str, observation: &Observation) -> Finding {
        crate::check(code).unwrap().run(observation, &Catalog::builtin())
    }

    #[test]
    fn every_word_of_the_setting_means_on_off_or_only_detecting() {
        let of = |word| settings(facts(Some(word))).unwrap().doublewrite;
        assert_eq!(["ON", "fast", "DETECT_AND_RECOVER"].map(of), [Doublewrite::On; 3]);
        assert_eq!((of("OFF"), of("DETECT_ONLY")), (Doublewrite::Off, Doublewrite::DetectOnly));
        assert!(settings(facts(Some("PERHAPS"))).unwrap_err().to_string().contains("PERHAPS"));
        assert!(settings(facts(None)).unwrap_err().to_string().contains("InnoDB"));
        let aurora = Facts { aurora: Some("3.04".into()), ..facts(Some("ON")) };
        assert!(settings(aurora).unwrap_err().to_string().contains("no pages"));
    }

    #[test]
    fn counters_that_are_missing_are_named_and_never_taken_for_zero() {
        let of = |restarted| {
            let span = Some(Span { began_unix_s: None, seconds: 1.0, restarted });
            let rates = Some(Rates { page_writes: Some(1.0), ..Rates::default() });
            Workload::of(&Observation { span, rates, ..seen(facts(Some("ON"))) }).unwrap_err()
        };
        let NotJudged::NotCounted { names } = of(false) else { panic!("counters are missing") };
        assert!(names.contains(&"Innodb_dblwr_writes") && !names.contains(&"Innodb_pages_written"));
        assert!(of(false).to_string().contains("Innodb_dblwr_writes"));
        assert!(of(true).to_string().contains("started again"));
        assert_eq!(Workload::of(&seen(facts(Some("ON")))), Err(NotJudged::NoRates));
    }

    #[test]
    fn the_release_is_known_only_where_it_is_given() {
        let of = |facts| settings(facts).unwrap().release;
        assert_eq!(of(facts(Some("ON"))), Some(Release { name: "MySQL 8.4.0".into(), listed: true }));
        assert_eq!(of(Facts { version: "own build".into(), ..facts(Some("ON")) }), None);
    }

    #[test]
    fn releases_that_run_without_the_doublewrite_buffer_are_those_that_the_vendor_lists() {
        let listed =
            |flavour: Flavour, text| runs_without_doublewrite(flavour, Version::parse(text).unwrap());
        for text in ["10.6.10", "10.11.19", "11.4.3", "11.8.2", "12.0.2"] {
            assert!(listed(Flavour::MariaDb, text), "{text}");
        }
        for text in ["10.6.9", "10.11.3", "10.7.8", "11.4.2", "11.5.9"] {
            assert!(!listed(Flavour::MariaDb, text), "{text}");
        }
        for text in ["8.0.30", "8.4.0", "9.7.4"] {
            assert!(listed(Flavour::MySql, text) && listed(Flavour::Percona, text), "{text}");
        }
        assert!(!listed(Flavour::MySql, "8.0.29") && !listed(Flavour::MySql, "5.7.44"));
    }

    #[test]
    fn a_finding_has_its_evidence_and_what_to_set() {
        let found = found("W01", &whole("ON", "gp3:size=500GiB,iops=16000,throughput=125,twp=on", 4100.0));
        assert_eq!((found.verdict, found.confidence), (Assessment::Found, Confidence::High));
        assert_eq!(found.fix.unwrap().my_cnf, ["innodb_doublewrite = OFF"]);
        assert!(found.at_most.unwrap().at_most > 1.5);
        let value = |name| found.evidence.iter().find(|one| one.name == name).map(|one| one.value.clone());
        assert_eq!(value("innodb_doublewrite"), Some(Seen::Text("ON".into())));
        assert_eq!(value("page_writes"), Some(Seen::Number(4100.0)));
        assert_eq!(value("wait_free"), None, "what was not seen is no evidence");
    }

    #[test]
    fn a_buffer_that_is_off_where_pages_tear_is_critical_and_elsewhere_fine() {
        let of = |spec| {
            let found = found("D04", &whole("OFF", spec, 500.0));
            (found.verdict, found.severity)
        };
        assert_eq!(of("gp3:size=500GiB,twp=off"), (Assessment::Found, Some(Severity::Critical)));
        assert_eq!(of("gp3:size=500GiB,twp=on"), (Assessment::Fine, None));
        let unknown = Observation { volumes: Volumes::new(None), ..whole("DETECT_ONLY", "", 500.0) };
        assert_eq!(found("D04", &unknown).severity, Some(Severity::High));
        assert_eq!(found("W01", &unknown).verdict, Assessment::DoesNotApply);
        assert_eq!(found("D04", &whole("ON", "gp3:size=500GiB", 1.0)).verdict, Assessment::Fine);
    }

    #[test]
    fn what_was_not_observed_is_unknown_and_never_fine() {
        let nothing = found("W01", &Observation::of(Origin::Capture { path: "/c".into() }));
        assert_eq!(nothing.verdict, Assessment::Unknown);
        assert_eq!(nothing.missing[0].what, "SHOW GLOBAL VARIABLES");
    }
}
