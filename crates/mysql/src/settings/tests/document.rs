//! The document lists the table.

use std::fmt::Write as _;
use std::path::Path;

use super::super::{KnownSpan, known};

const FROM: &str = "<!-- from here on written by `UPDATE_DOCS=1 cargo test -p ebbtide-mysql document` -->\n";

fn spans(spans: &[KnownSpan]) -> String {
    let cell = |span: &KnownSpan| {
        let versions = if span.versions.is_empty() { String::new() } else { format!("{}: ", span.versions) };
        match &span.own_name {
            Some(own) => format!("{versions}`{own}` = {}", span.default),
            None => format!("{versions}none, {}", span.default),
        }
    };
    spans.iter().map(cell).collect::<Vec<_>>().join("<br>")
}

fn listing() -> String {
    let mut text =
        String::from("\n| setting | what it is | takes | MariaDB | MySQL |\n|---|---|---|---|---|\n");
    for known in known() {
        let (mariadb, mysql) = (spans(&known.mariadb), spans(&known.mysql));
        writeln!(text, "| `{}` | {} | {} | {mariadb} | {mysql} |", known.name, known.what, known.takes)
            .unwrap();
    }
    text
}

#[test]
fn the_document_lists_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/settings.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (above, below) = text.split_once(FROM).expect("the document says where its listing begins");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{above}{FROM}{}", listing())).unwrap();
        return;
    }
    assert!(
        below == listing(),
        "docs/generated/settings.md is behind data/settings.toml: run it with UPDATE_DOCS=1"
    );
}
