//! The server's own check of its tables.

use ebbtide_load::{LoadError, Session};
use serde::{Deserialize, Serialize};

/// What CHECK TABLE reports of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCheck {
    /// The table, with its database.
    pub table: String,
    /// Whether the server calls it whole, without an error or a warning.
    pub ok: bool,
    /// The server's words, one line per message.
    pub messages: Vec<String>,
}

/// Runs CHECK TABLE on every table of a database: it reads every row of every index and counts them
/// against each other.
///
/// # Errors
/// A server that refuses, or that ends itself over what it reads: [`LoadError::Broken`] then.
pub fn check_tables(session: &mut Session, database: &str) -> Result<Vec<TableCheck>, LoadError> {
    let listed = format!("SHOW FULL TABLES FROM {} WHERE Table_type = 'BASE TABLE'", quoted(database));
    let names: Vec<String> =
        session.rows(&listed)?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let tables: Vec<_> = names.iter().map(|name| format!("{}.{}", quoted(database), quoted(name))).collect();
    let rows = session.rows(&format!("CHECK TABLE {}", tables.join(", ")))?;
    let expected = names.iter().map(|name| format!("{database}.{name}"));
    Ok(expected.map(|table| judge(table, &rows)).collect())
}

/// What the rows (table, operation, kind of message, message) report of a table.
fn judge(table: String, rows: &[Vec<Option<String>>]) -> TableCheck {
    let text = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    let about = rows.iter().filter(|row| text(row, 0) == table);
    let messages: Vec<(String, String)> =
        about.map(|row| (text(row, 2).to_ascii_lowercase(), text(row, 3))).collect();
    let whole = |(kind, message): &(String, String)| kind == "status" && message == "OK";
    let bad = |(kind, _): &(String, String)| kind == "error" || kind == "warning";
    // A table without messages is not known to be whole.
    let ok = messages.iter().any(whole) && !messages.iter().any(bad);
    let messages = messages.into_iter().map(|(kind, message)| format!("{kind}: {message}")).collect();
    TableCheck { table, ok, messages }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &str, kind: &str, message: &str) -> Vec<Option<String>> {
        [table, "check", kind, message].map(|text| Some(text.to_owned())).to_vec()
    }

    #[test]
    fn only_a_table_that_the_server_calls_whole_is() {
        let rows = [
            row("d.a", "status", "OK"),
            row("d.b", "Warning", "InnoDB: The B-tree of index k is corrupted."),
            row("d.b", "error", "Corrupt"),
            row("d.c", "note", "The storage engine for the table doesn't support check"),
            row("d.d", "Warning", "InnoDB: Index k is marked as corrupted"),
            row("d.d", "status", "OK"),
        ];
        let ok = |table: &str| judge(table.to_owned(), &rows).ok;
        assert!(ok("d.a"));
        for table in ["d.b", "d.c", "d.d", "d.e"] {
            assert!(!ok(table), "{table}");
        }
        let expected = ["warning: InnoDB: The B-tree of index k is corrupted.", "error: Corrupt"];
        assert_eq!(judge("d.b".into(), &rows).messages, expected);
    }
}
