//! The kept images of bad cuts, for people.

use ebbtide_crash::KeptCut;
use ebbtide_crash::page::found;
use ebbtide_mysql::short_name;
use ebbtide_report::{Block, Cell, Report, Section, Table, TextOptions};
use ebbtide_text::seed;

use crate::document;
use crate::text::{line, size, timestamp};

/// Prints the kept images of bad cuts.
pub(super) fn kept(all: &[KeptCut], options: TextOptions) -> anyhow::Result<()> {
    if all.is_empty() {
        line("no images are kept");
        return Ok(());
    }
    document::print(&images(all), options, "")
}

/// The images as a table. What is the same of all of them is below it, once.
fn images(all: &[KeptCut]) -> Report {
    let row = |cut: &KeptCut| {
        let cells = [
            seed::hex(cut.seed),
            cut.arm.clone(),
            found(&cut.verdicts),
            size(cut.allocated_bytes),
            minute(cut.created_unix_s),
            short_name(&cut.server),
            cut.experiment.clone(),
        ];
        cells.map(Cell::from).to_vec()
    };
    let columns = ["Seed", "Arm", "Found", "Disk", "Kept (UTC)", "Server", "Experiment"];
    let mut table = Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
        spare: vec![6, 5],
        ..Table::default()
    };
    let mut shared = Vec::new();
    for heading in ["Server", "Experiment"] {
        let Some(column) = table.columns.iter().position(|other| other == heading) else { continue };
        let first = table.rows[0][column].text.clone();
        if table.rows.iter().all(|row| row[column].text == first) {
            table = table.without(heading);
            shared.push(Block::Text(format!("{}: {first}", heading.to_lowercase())));
        }
    }
    let blocks = [Block::Table(table)].into_iter().chain(shared).collect();
    Report { sections: vec![Section::new("", blocks)], ..Report::default() }
}

/// A time of the year to the minute, such as `11-29 01:57`: images are soon looked at, and 80 columns hold no more.
fn minute(unix_s: u64) -> String {
    let whole = timestamp(i64::try_from(unix_s).unwrap_or(i64::MAX));
    whole.get(5..16).unwrap_or(&whole).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use ebbtide_crash::record::VerdictKind;

    use super::*;

    fn cut(seed: u64, verdicts: &[VerdictKind], server: &str) -> KeptCut {
        KeptCut {
            seed,
            experiment: "optimized-writes".into(),
            arm: "canary answers-early / xfs".into(),
            verdicts: verdicts.to_vec(),
            server: server.into(),
            program: None,
            allocated_bytes: 1_300 << 20,
            created_unix_s: 1_795_917_446,
        }
    }

    #[test]
    fn kept_images_fit_a_terminal_with_each_kind_once_and_the_server_by_its_version() {
        let server =
            "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n";
        let both = [VerdictKind::Corrupt, VerdictKind::Corrupt, VerdictKind::LostCommits];
        let mut all = vec![cut(0x9f0c_51d2_a4b7_e386, &both, server), cut(7, &both[..1], server)];
        let text = images(&all).to_text(TextOptions::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("Seed ") && text.contains("9f0c51d2a4b7e386  canary "), "{text}");
        assert!(text.contains("  11-29 01:57\n") && !text.contains("corrupt and corrupt"), "{text}");
        assert!(text.ends_with("\nserver: MariaDB 10.11.19\nexperiment: optimized-writes\n"), "{text}");
        all.push(cut(8, &both, "mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)"));
        let wide = images(&all).to_text(TextOptions { columns: 120, ..TextOptions::default() });
        assert!(wide.contains("MariaDB 10.11.19\n") && wide.contains("MySQL 9.7.4\n"), "{wide}");
    }
}
