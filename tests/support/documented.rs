//! The pages in docs/json that explain results, held against a database.

#![allow(clippy::unwrap_used, reason = "a test panics where something is missing")]

use std::path::Path;

use rusqlite::Connection;

/// A page of docs/json.
pub(crate) fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The page's queries, each with the number of rows that it gives.
pub(crate) fn queries<'a>(page: &'a str, database: &Connection) -> Vec<(&'a str, usize)> {
    let queries = page.split("```sql").skip(1).map(|rest| rest.split("```").next().unwrap());
    queries
        .map(|query| {
            let mut statement = database.prepare(query).unwrap();
            let rows = statement.query([]).unwrap().mapped(|_| Ok(())).count();
            (query, rows)
        })
        .collect()
}

/// Columns that the page does not name, as `TABLE.COLUMN`.
pub(crate) fn missing_columns(page: &str, database: &Connection) -> Vec<String> {
    let sql =
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut statement = database.prepare(sql).unwrap();
    let columns = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let missing = |(_, column): &(String, String)| !page.contains(&format!("`{column}`"));
    let columns = columns.unwrap().map(Result::unwrap).filter(missing);
    columns.map(|(table, column)| format!("{table}.{column}")).collect()
}
