//! What a terminal shows.

use proptest::prelude::*;
use textwrap::core::display_width;

use super::{TextOptions, continued, shell_words};
use crate::{Block, Cell, Fact, Fold, Listing, Medium, Note, Report, Section, Table, Tone, Verdict};

fn text(blocks: Vec<Block>, options: TextOptions) -> String {
    Report { title: "title".into(), sections: vec![Section::new("", blocks)], ..Report::default() }
        .to_text(options)
}

fn columns(columns: usize) -> TextOptions {
    TextOptions { columns, ..TextOptions::default() }
}

fn table() -> Table {
    let row = |name: &str, tps: &str, iops: &str, limiter: &str| {
        vec![
            Cell::from(name),
            Cell { detail: "430 to 863".into(), ..Cell::from(tps) },
            iops.into(),
            limiter.into(),
        ]
    };
    Table {
        columns: ["Volume", "tps", "IOPS", "Limited by"].map(str::to_owned).to_vec(),
        rows: vec![
            row("gp3:size=600GiB", "598", "3,000", "the volume's IOPS"),
            row(
                "io2:size=600GiB,iops=5000",
                "1,601",
                "5,000",
                "the processors, and a little by the volume's latency",
            ),
        ],
        spare: vec![2],
        ..Table::default()
    }
}

#[test]
fn a_table_that_fits_has_its_numbers_on_the_right() {
    assert_eq!(
        text(vec![Block::Table(table())], columns(140)),
        "Volume                                       tps   IOPS  Limited by\n\
         gp3:size=600GiB              598 (430 to 863)  3,000  the volume's IOPS\n\
         io2:size=600GiB,iops=5000  1,601 (430 to 863)  5,000  the processors, and a little by the volume's latency\n"
            .replace("                                       tps", "                                    tps")
    );
}

#[test]
fn a_table_that_is_too_wide_wraps_words_then_leaves_out_its_spare_column_and_says_so() {
    let wrapped = text(vec![Block::Table(table())], columns(80));
    assert_eq!(
        wrapped,
        "Volume                                    tps   IOPS  Limited by\n\
         gp3:size=600GiB              598 (430 to 863)  3,000  the volume's IOPS\n\
         io2:size=600GiB,iops=5000  1,601 (430 to 863)  5,000  the processors, and a\n\
         \u{20}                                                     little by the volume's\n\
         \u{20}                                                     latency\n"
    );
    let narrow = text(vec![Block::Table(table())], columns(60));
    assert!(narrow.starts_with("Volume                              tps  Limited by\n"), "{narrow}");
    assert!(narrow.ends_with("left out for want of columns: IOPS\n"), "{narrow}");
}

#[test]
fn a_number_stays_in_the_line_of_its_unit() {
    let sentence = "an I/O took (12 ms) of 3,000 IOPS, 4 h 53 min. Of 12 arms 3 s";
    for width in 40..62 {
        for begin in 0..40 {
            let text = text(vec![Block::Text(format!("{}{sentence}", "x ".repeat(begin)))], columns(width));
            for whole in ["(12 ms)", "3,000 IOPS,", "4 h", "53 min.", "3 s"] {
                assert!(text.contains(whole), "{width}, {begin}: {whole} is parted in\n{text}");
            }
        }
    }
    let parted = |begin: usize| text(vec![Block::Text(format!("{}12 arms", "x".repeat(begin)))], columns(40));
    assert!(parted(36).contains("12\narms"), "what is no unit is parted");
}

#[test]
fn a_long_volume_spec_goes_on_behind_a_comma_and_a_number_stays_whole() {
    let spec = "data=gp3:size=600GiB,iops=16000,throughput=1000,redo=io1:size=40GiB,iops=100";
    let table = Table {
        columns: vec!["Volume".into(), "tps".into()],
        rows: vec![vec![spec.into(), "1,234,567".into()]],
        ..Table::default()
    };
    let shown =
        text(vec![Block::Table(table), Block::Text(format!("It does 1,234,567 on {spec}."))], columns(45));
    assert_eq!(
        shown,
        "Volume                                    tps\n\
         data=gp3:size=600GiB,iops=16000,    1,234,567\n\
         throughput=1000,redo=io1:size=\n"
            .replace("throughput=1000,redo=io1:size=\n", "throughput=1000,\nredo=io1:size=40GiB,iops=100\n")
            + "\nIt does 1,234,567 on data=gp3:size=600GiB,\niops=16000,throughput=1000,\nredo=io1:size=40GiB,iops=100.\n"
    );
}

#[test]
fn a_table_of_details_that_is_too_wide_is_a_list_for_each_row() {
    let section = Section::new("Intervals", vec![Block::Table(table())]).details();
    let report = Report { sections: vec![section], ..Report::default() };
    let shown = report.to_text(TextOptions { columns: 60, details: true, color: false });
    assert_eq!(
        shown.split_once("\n\nio2").expect("two lists").0,
        "Intervals\n\ngp3:size=600GiB\ntps         598 (430 to 863)\nIOPS        3,000\nLimited by  the volume's IOPS"
    );
}

#[test]
fn a_long_table_shows_its_first_rows_and_counts_the_others_until_details_are_asked_for() {
    let rows = (1..=9).map(|number| vec![Cell::from(format!("D{number:02}"))]).collect();
    let table = Table { columns: vec!["Code".into()], rows, first_rows: Some(7), ..Table::default() };
    let block = || vec![Block::Table(table.clone())];
    assert!(text(block(), TextOptions::default()).ends_with("D07\nand 2 more\n"));
    let all = text(block(), TextOptions { details: true, ..TextOptions::default() });
    assert!(all.ends_with("D09\n") && !all.contains("more"), "{all}");
}

/// A value comes from a server or a file. It must not move the cursor, hide what is behind it, or pass for a colour.
#[test]
fn no_value_controls_the_terminal() {
    let hostile = "a\u{1b}[2Jb\u{202e}c";
    let row = vec![Cell { detail: hostile.into(), ..Cell::from(hostile) }];
    let table =
        Table { caption: hostile.into(), columns: vec![hostile.into()], rows: vec![row], ..Table::default() };
    let blocks = vec![
        Block::Findings(vec![hostile.into()]),
        Block::Facts(vec![Fact::new(hostile, hostile)]),
        Block::Table(table),
        Block::Listing(Listing { label: hostile.into(), text: hostile.into() }),
        Block::Notes(vec![Note::plain(hostile)]),
    ];
    let shown = text(blocks, TextOptions::default());
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    assert_eq!(shown.matches("a\\u{1b}[2Jb\\u{202e}c").count(), 10, "{shown}");
}

#[test]
fn a_label_that_is_too_long_has_lines_of_its_own() {
    let codes = "R01 R02 R03 R04 R05 R06 R07 R08 R09 R10";
    let facts = vec![Fact::new("F01", "short"), Fact::new(codes, "the status was not read twice")];
    assert_eq!(
        text(vec![Block::Facts(facts)], columns(40)),
        "F01            short\n\
         R01 R02 R03 R04 R05 R06 R07 R08 R09 R10\n\
         \u{20}              the status was not read\n\
         \u{20}              twice\n"
    );
}

#[test]
fn details_are_left_out_until_they_are_asked_for() {
    let fold = Block::Fold(Fold { summary: "More".into(), blocks: vec![Block::Text("inside".into())] });
    let report = Report {
        sections: vec![
            Section::new("", vec![Block::Findings(vec!["It holds.".into()]), fold]),
            Section::new("Intervals", vec![Block::Text("wide".into())]).details(),
        ],
        ..Report::default()
    };
    assert_eq!(report.to_text(TextOptions::default()), "It holds.\n");
    let all = report.to_text(TextOptions { details: true, ..TextOptions::default() });
    assert_eq!(all, "It holds.\n\nMore\ninside\n\nIntervals\nwide\n");
}

#[test]
fn colours_stand_around_the_text_and_change_nothing_else() {
    let verdict = Verdict {
        figure: "2.1x".into(),
        context: String::new(),
        headline: "faster".into(),
        details: vec!["3 trials".into()],
        tone: Tone::Good,
    };
    let row = vec![Cell::from("a"), Cell { tone: Tone::Bad, ..Cell::from("1") }];
    let table = Table { columns: vec!["A".into(), "B".into()], rows: vec![row], ..Table::default() };
    let blocks =
        vec![Block::Verdicts(vec![verdict]), Block::Table(table), Block::Notes(vec![Note::caution("c")])];
    let plain = text(blocks.clone(), TextOptions::default());
    let colored = text(blocks, TextOptions { color: true, ..TextOptions::default() });
    assert_eq!(plain, "2.1x: faster\n  3 trials\n\nA  B\na  1\n\ncaution: c\n");
    assert!(colored.contains("\u{1b}[1m\u{1b}[32m2.1x: faster\u{1b}[0m\n"), "{colored:?}");
    assert!(colored.contains("\u{1b}[31m1\u{1b}[0m"), "{colored:?}");
    let mut rest = colored.as_str();
    let mut without = String::new();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        without.push_str(before);
        rest = after.split_once('m').expect("an escape ends").1;
    }
    assert_eq!(without + rest, plain);
}

#[test]
fn a_line_of_values_is_drawn_in_eight_heights() {
    let spark =
        Cell { spark: vec![Some(0.0), None, Some(3.5), Some(7.0), Some(f64::NAN)], ..Cell::default() };
    let table = Table { columns: vec!["IOPS".into()], rows: vec![vec![spark]], ..Table::default() };
    assert_eq!(text(vec![Block::Table(table)], TextOptions::default()), "IOPS\n▁ ▅█\n");
}

#[test]
fn a_long_command_goes_on_as_a_shell_takes_it() {
    let command = "ebbtide predict shop.toml --volume 'gp3:size=600GiB, iops=6000' --volume io2:size=600GiB,iops=5000 --details";
    let lines = continued(command, 60);
    assert_eq!(
        lines,
        "ebbtide predict shop.toml --volume \\\n    'gp3:size=600GiB, iops=6000' --volume \\\n    \
         io2:size=600GiB,iops=5000 --details"
    );
    // A shell puts the lines together again.
    let joined = lines.replace("\\\n", " ");
    assert_eq!(shell_words(&joined), shell_words(command));
    let listing = Listing { label: "Next".into(), text: command.into() };
    assert!(
        text(vec![Block::Listing(listing)], columns(60))
            .starts_with("Next:\nebbtide predict shop.toml --volume \\\n")
    );
}

proptest! {
    /// No line is wider than the terminal, unless it is one word.
    #[test]
    fn no_line_is_wider_than_the_terminal(
        words in prop::collection::vec("[a-zäß0-9]{1,12}", 1..40),
        cells in prop::collection::vec(prop::collection::vec("[a-z0-9]{1,9}( [a-z-]{1,25}){0,6}", 5), 1..5),
        width in 40_usize..120,
        details in any::<bool>(),
    ) {
        let words = words.join(" ");
        let table = Table {
            columns: (0..5).map(|number| format!("c{number}")).collect(),
            rows: cells.iter().map(|row| row.iter().map(|text| Cell::from(text.as_str())).collect()).collect(),
            ..Table::default()
        };
        let blocks = vec![
            Block::Findings(vec![words.clone()]),
            Block::Facts(vec![Fact::new("a label", words.clone()), Fact::new(words.clone(), "y")]),
            Block::Table(table),
            Block::Notes(vec![Note::plain(words.clone())]),
            Block::Listing(Listing { label: String::new(), text: words }),
        ];
        let shown = text(blocks, TextOptions { columns: width, details, ..TextOptions::default() });
        for line in shown.lines() {
            prop_assert!(display_width(line) <= width, "{} columns: {line}", display_width(line));
            prop_assert_eq!(line, line.trim_end());
        }
    }
}

#[test]
fn a_section_of_one_medium_is_in_that_one_alone() {
    let section = |word: &str| Section::new("", vec![Block::Text(word.to_owned())]);
    let sections = vec![
        section("short").only(Medium::Text),
        section("drawn").only(Medium::Page),
        section("both").details(),
    ];
    let report = Report { sections, ..Report::default() };
    let shown = |text: &str| ["short", "drawn", "both"].map(|word| text.contains(word));
    let details = TextOptions { details: true, ..TextOptions::default() };
    assert_eq!(shown(&report.to_text(TextOptions::default())), [true, false, false]);
    assert_eq!(shown(&report.to_text(details)), [true, false, true]);
    assert_eq!(shown(&report.to_markdown()), [true, false, true]);
    // Of the page the whole data count, too.
    let data = serde_json::to_string(&report).unwrap();
    assert_eq!(shown(&data), [false, true, true]);
    assert_eq!(shown(&crate::plain::markup(&report)), [false, true, true]);
}
