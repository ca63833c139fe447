//! The data that runs share, for people.

use ebbtide_lab::run::Prepared;
use ebbtide_mysql::short_name;
use ebbtide_report::{Block, Cell, Report, Section, Table, TextOptions};

use crate::document;
use crate::text::{count, line, size};

/// Prints the data that runs share.
pub(super) fn prepared(all: &[Prepared], options: TextOptions) -> anyhow::Result<()> {
    if all.is_empty() {
        line("no prepared data");
        return Ok(());
    }
    document::print(&listed(all), options, "")
}

/// The data as a table.
fn listed(all: &[Prepared]) -> Report {
    let row = |data: &Prepared| {
        let rows = data
            .warehouses
            .map_or_else(|| data.rows.to_string(), |warehouses| count(warehouses, "warehouse"));
        let server = data.damage.clone().unwrap_or_else(|| short_name(&data.server));
        let disk = size(data.allocated_bytes);
        let cells = [data.name.clone(), data.tables.to_string(), rows, data.fs.clone(), disk, server];
        cells.map(Cell::from).to_vec()
    };
    let table = Table {
        columns: ["Name", "Tables", "Rows", "FS", "Disk", "Server"].map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
        ..Table::default()
    };
    Report { sections: vec![Section::new("", vec![Block::Table(table)])], ..Report::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_data_fit_a_terminal_with_the_server_by_its_version() {
        let data = Prepared {
            name: "prep-3f9c51d2a4b7e386".into(),
            key: String::new(),
            server: "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"
                .into(),
            tables: 8,
            rows: 1_000_000,
            warehouses: None,
            fs: "xfs".into(),
            size_bytes: 10 << 30,
            allocated_bytes: 1_300 << 20,
            created_unix_s: 1_795_917_446,
            took_s: 12.0,
            damage: None,
        };
        let damaged = Prepared { damage: Some("its file system is not clean".into()), ..data.clone() };
        let text = listed(&[data, damaged]).to_text(TextOptions::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("MariaDB 10.11.19\n") && text.contains("its file system is"), "{text}");
    }
}
