//! The table by itself.

use super::super::table::{Here, table};
use crate::Flavour;

const FLAVOURS: [Flavour; 3] = [Flavour::MariaDb, Flavour::MySql, Flavour::Percona];

#[test]
fn each_row_has_its_source_and_what_it_does() {
    for row in table().rows.values() {
        assert!(!row.source.is_empty() && !row.what.is_empty(), "{}", row.name);
    }
}

#[test]
fn spans_follow_each_other_without_a_gap() {
    for row in table().rows.values() {
        for flavour in FLAVOURS {
            let spans = row.spans(flavour);
            assert!(!spans.is_empty(), "{} on {flavour:?}", row.name);
            for pair in spans.windows(2) {
                assert_eq!(pair[0].until, pair[1].since, "{} on {flavour:?}", row.name);
                assert!(pair[0].until.is_some(), "{} on {flavour:?}", row.name);
            }
            assert_eq!(spans[spans.len() - 1].until, None, "{} on {flavour:?}", row.name);
        }
    }
}

#[test]
fn each_span_has_a_default_that_it_allows_or_how_it_is_chosen_or_why_it_is_gone() {
    for row in table().rows.values() {
        for span in FLAVOURS.into_iter().flat_map(|flavour| row.spans(flavour)) {
            let here = Here { row, span };
            let default = here.default();
            let given = [default.is_some(), span.chosen.is_some(), span.is_gone()];
            assert_eq!(given.into_iter().filter(|given| *given).count(), 1, "{}: {span:?}", row.name);
            if let Some(default) = default {
                assert!(here.takes(&default), "{}: {span:?}", row.name);
            }
            assert!(span.chosen.is_none() || span.help.is_some(), "{}: what does its help print?", row.name);
        }
    }
}

#[test]
fn each_name_of_a_server_leads_to_one_setting() {
    let mut owners = std::collections::BTreeMap::new();
    for row in table().rows.values() {
        for span in FLAVOURS.into_iter().flat_map(|flavour| row.spans(flavour)) {
            let own = Here { row, span }.own();
            let owner = owners.insert(own.to_owned(), row.name.clone()).unwrap_or_else(|| row.name.clone());
            assert_eq!(owner, row.name, "{own}");
            assert!(table().rows.get(own).is_none_or(|other| other.name == row.name), "{own}");
        }
    }
}
