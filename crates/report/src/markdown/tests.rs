//! The Markdown as a parser reads it.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::{Block, Cell, Fact, Listing, Note, Report, Section, Table};

/// The texts between the tags, blanks apart.
fn texts(markdown: &str) -> String {
    let text = |event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.into_string()),
        Event::SoftBreak | Event::HardBreak => Some(" ".to_owned()),
        _ => None,
    };
    let all: Vec<String> = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(text).collect();
    all.concat()
}

fn report(blocks: Vec<Block>) -> Report {
    Report { title: "T".into(), sections: vec![Section::new("", blocks)], ..Report::default() }
}

proptest! {
    /// Whatever a value holds, a reader sees it, and no part of it becomes markup.
    #[test]
    fn every_text_comes_back_as_it_was(text in "[ -~äß\u{2013}]{1,40}") {
        let text = text.trim();
        prop_assume!(!text.is_empty());
        let table = Table { columns: vec!["h".into()], rows: vec![vec![Cell::from(text)]], ..Table::default() };
        for block in [
            Block::Text(text.into()),
            Block::Findings(vec![text.into()]),
            Block::Notes(vec![Note::plain(text)]),
            Block::Facts(vec![Fact::new("f", text)]),
            Block::Table(table),
        ] {
            let markdown = report(vec![block]).to_markdown();
            prop_assert!(texts(&markdown).contains(text), "{text:?} is not in {markdown:?}");
        }
    }
}

#[test]
fn a_table_is_a_table_and_a_listing_stays_as_it_is() {
    let table = Table {
        columns: vec!["Volume".into(), "IOPS".into()],
        rows: vec![vec!["a|b".into(), Cell { detail: "1 to 2".into(), ..Cell::from("3") }]],
        ..Table::default()
    };
    let listing = Listing { label: "Next".into(), text: "echo '```' \\\n  *".into() };
    let markdown = report(vec![Block::Table(table), Block::Listing(listing)]).to_markdown();
    let rows = Parser::new_ext(&markdown, Options::ENABLE_TABLES)
        .filter(|event| matches!(event, Event::Start(Tag::TableCell)))
        .count();
    assert_eq!(rows, 4, "{markdown}");
    assert!(texts(&markdown).contains("a|b3 (1 to 2)"), "{markdown}");
    assert!(texts(&markdown).contains("echo '```' \\\n  *"), "{markdown}");
}
