//! A kept cut that was judged again, as a document: what is lost, by client and row, and what its server wrote.

use ebbtide_report::{Block, Cell, Listing, Note, Report, Section, Table, Tone};
use ebbtide_text::{latency, list, seed, whole};

use super::replay;
use crate::harm::{evidence, gone, of_verdict, told};
use crate::record::{Loss, VerdictKind};
use crate::replay::Replayed;
use crate::summary::kind_name;

/// Clients in the table that text shows without details.
const FIRST_CLIENTS: usize = 4;
/// Lines of the server's log on the screen, and characters of each.
const LOG_LINES: usize = 3;
const LOG_LINE: usize = 150;
/// Lines of evidence on the screen.
const EVIDENCE: usize = 2;

/// The document. `look_in` is the home of the image, for the command that leaves the recovered server up; empty: the default;
/// None where that is asked for already.
#[must_use]
pub fn replayed(replayed: &Replayed, look_in: Option<&str>) -> Report {
    let now = &replayed.now;
    let mut blocks = vec![Block::Findings(vec![answer(replayed)])];
    blocks.extend(now.loss.as_ref().map(|loss| Block::Table(lost(loss))));
    // The loss has its table, and is in the first sentence; so is the cut.
    let other = now.verdicts.iter().filter(|verdict| verdict.kind() != VerdictKind::LostCommits);
    let shown = other.flat_map(of_verdict).chain(evidence(now)).take(EVIDENCE);
    let notes: Vec<Note> = shown.map(|line| Note::plain(line.trim())).collect();
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let telling = telling(&replayed.log);
    if !telling.is_empty() {
        blocks.push(Block::Heading(format!("{} while it recovered", replayed.server.name())));
        blocks.extend(telling.into_iter().map(Block::Text));
    }
    // Without a recovery no server came up.
    if let Some(home) = look_in.filter(|_| now.recovery.is_some()) {
        let look = format!("{} --keep-running", replay(home, now.seed));
        blocks.push(Block::Listing(Listing {
            label: "Next, a look at the recovered server".into(),
            text: look,
        }));
    }
    let sections = vec![
        Section::new("", blocks),
        details("All evidence", told(now, |loss| vec![gone(loss)]).iter().map(|line| line.trim().to_owned())),
        details("The server's log", replayed.log.iter().map(|line| line.trim().to_owned())),
    ];
    Report { title: format!("Cut {} of {}", now.number + 1, now.arm), sections, ..Report::default() }
}

fn details(heading: &str, lines: impl Iterator<Item = String>) -> Section {
    Section::new(heading, lines.map(Block::Text).collect()).details()
}

/// The first sentence: what is found now, and whether that is what was found then.
fn answer(replayed: &Replayed) -> String {
    let Replayed { then, now, .. } = replayed;
    let (was, is) = (found(&then.kinds()), found(&now.kinds()));
    let compared = match replayed.same {
        Some(true) => "the same as in its run".to_owned(),
        Some(false) => format!("NOT the same as in its run: then {was}"),
        None => format!("no recovery ran, so that nothing can be compared; then {was}"),
    };
    let rows = replayed.history.as_ref().map_or_else(String::new, |table| format!(", each a row of {table}"));
    let loss = now.loss.as_ref().map_or_else(String::new, |loss| {
        let seconds = if loss.seconds > 0.0 {
            format!(", of the last {} before the cut", latency(loss.seconds * 1e6))
        } else {
            String::new()
        };
        format!(" {} acknowledged transactions are gone{rows}{seconds}.", whole(loss.transactions as f64))
    });
    let (number, seed) = (now.number + 1, seed::hex(now.seed));
    format!("Cut {number} of {} (seed {seed}): {is}, {compared}.{loss}", now.arm)
}

/// The transactions that are gone, client by client.
fn lost(loss: &Loss) -> Table {
    let row = |&(client, acknowledged, recovered): &(u32, u64, u64)| {
        let gone = acknowledged.saturating_sub(recovered);
        let rows = match gone {
            0 => "-".to_owned(),
            1 => acknowledged.to_string(),
            _ => format!("{} to {acknowledged}", recovered + 1),
        };
        let tone = if gone > 0 { Tone::Bad } else { Tone::Plain };
        vec![
            Cell::from(client.to_string()),
            acknowledged.to_string().into(),
            recovered.to_string().into(),
            Cell { tone, ..Cell::from(gone.to_string()) },
            rows.into(),
        ]
    };
    Table {
        columns: ["Client", "Acknowledged", "Recovered", "Lost", "Rows gone, by seq"]
            .map(str::to_owned)
            .to_vec(),
        rows: loss.clients.iter().map(row).collect(),
        first_rows: Some(FIRST_CLIENTS),
        ..Table::default()
    }
}

/// The lines of a log that tell of the recovery: errors first, then what was recovered; cut where they are long.
fn telling(log: &[String]) -> Vec<String> {
    let is_error = |line: &&String| line.contains("[ERROR]") || line.contains("got signal");
    let recovers = |line: &&String| {
        let words = ["ecover", "olled back", "Last binlog", "doublewrite", "to be applied"];
        // The server has no tables of other engines that it changes.
        let is_telling = line.contains("InnoDB") || line.contains("binlog");
        !is_error(line) && is_telling && words.iter().any(|word| line.contains(word))
    };
    let mut lines: Vec<&String> = log.iter().filter(is_error).take(LOG_LINES).collect();
    lines.extend(log.iter().filter(recovers).take(LOG_LINES - lines.len()));
    if lines.is_empty() {
        lines = log.iter().rev().take(LOG_LINES).rev().collect();
    }
    let cut = |line: &String| {
        let line = line.trim();
        if line.chars().count() <= LOG_LINE {
            return line.to_owned();
        }
        format!("{}...", line.chars().take(LOG_LINE - 3).collect::<String>())
    };
    lines.into_iter().map(cut).collect()
}

/// Kinds of verdict in a few words.
#[must_use]
pub fn found(kinds: &[VerdictKind]) -> String {
    let mut words: Vec<String> = Vec::new();
    for kind in kinds {
        let name = kind_name(*kind).to_lowercase();
        if !words.contains(&name) {
            words.push(name);
        }
    }
    if words.is_empty() { "clean".to_owned() } else { list(&words) }
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Binary, Flavour, Version};
    use ebbtide_report::TextOptions;

    use super::*;
    use crate::fixture;
    use crate::record::{Cut, Verdict};

    fn again(then: Cut, now: Cut, recovered: bool) -> Replayed {
        let version = Version { major: 11, minor: 8, patch: 3 };
        let (path, text) = ("/x/mariadbd".into(), "mariadbd  Ver 11.8.3-MariaDB".to_owned());
        Replayed {
            same: recovered.then(|| then.kinds() == now.kinds()),
            then,
            now,
            recovered,
            server: Binary { path, flavour: Flavour::MariaDb, version, text },
            log: [
                "2026-11-28 17:07:41 0 [Note] mariadbd: Aria engine: starting recovery",
                "2026-11-28 17:07:42 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=5711884",
                "2026-11-28 17:07:42 0 [Note] InnoDB: Last binlog file 'binlog.000003', position 77824",
                "2026-11-28 17:07:42 0 [Note] InnoDB: Rolled back recovered transaction 4711",
                "2026-11-28 17:07:43 0 [Note] /x/mariadbd: ready for connections.",
            ]
            .map(str::to_owned)
            .to_vec(),
            history: Some("sbtest.ebbtide_history".to_owned()),
        }
    }

    /// A cut that lost transactions of many clients.
    fn lossy() -> Cut {
        let clients = (0..16).map(|client| (client, 881 + u64::from(client), 880)).collect();
        let loss = Loss { transactions: 136, seconds: 0.38, clients };
        Cut { loss: Some(loss), verdicts: vec![Verdict::LostCommits], ..fixture::clean("flush-2 / xfs", 0) }
    }

    #[test]
    fn the_loss_is_on_one_screen_by_client_and_row_with_the_servers_own_lines() {
        let replay = again(lossy(), lossy(), true);
        for columns in [60, 80, 120] {
            let text = replayed(&replay, Some("/srv/lab"))
                .to_text(TextOptions { columns, ..TextOptions::default() });
            assert!(text.starts_with("Cut 1 of flush-2 / xfs (seed "), "{text}");
            assert!(columns < 80 || text.lines().count() <= 24, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            assert!(!text.contains("Aria"), "{text}");
            for words in ["Starting crash recovery", "881 to 883", "and 12 more", "--keep-running"] {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
        let wide = TextOptions { columns: 400, details: true, ..TextOptions::default() };
        let text = replayed(&replay, None).to_text(wide);
        let first = "lost commits, the same as in its run. 136 acknowledged transactions are gone, each a row of \
                     sbtest.ebbtide_history, of the last 380 ms before the cut.\n";
        assert!(text.contains(first) && text.contains("ready for connections."), "{text}");
        assert!(
            !text.contains("Next") && !text.contains("--keep-running"),
            "it is asked for already: {text}"
        );
    }

    #[test]
    fn another_result_and_a_recovery_that_did_not_run_are_in_the_first_sentence() {
        let corrupt = Cut { verdicts: vec![fixture::corrupt()], ..fixture::clean("a", 3) };
        let text = |replay: &Replayed| {
            replayed(replay, Some("")).to_text(TextOptions { columns: 400, ..TextOptions::default() })
        };
        let clean = text(&again(corrupt.clone(), fixture::clean("a", 3), true));
        assert!(clean.contains(": clean, NOT the same as in its run: then corrupt.\n"), "{clean}");
        let unjudged = Verdict::Unverified { why: "no room".into(), log: Vec::new() };
        let unjudged = Cut { verdicts: vec![unjudged], recovery: None, ..fixture::clean("a", 3) };
        let text = text(&again(corrupt, unjudged, false));
        assert!(
            text.contains(": unverified, no recovery ran") && text.contains("unverified: no room"),
            "{text}"
        );
    }
}
