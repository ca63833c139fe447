//! Asks a running server for its variables.

use ebbtide_load::Session;
use ebbtide_observe::Variables;

use super::StatusError;

/// All global variables; any account may ask.
///
/// # Errors
/// The server's refusal, or a broken connection.
pub(super) fn variables(session: &mut Session) -> Result<Variables, StatusError> {
    Ok(pairs(session.rows("SHOW GLOBAL VARIABLES")?))
}

/// All status variables; any account may ask.
///
/// # Errors
/// The server's refusal, or a broken connection.
pub(super) fn status(session: &mut Session) -> Result<Variables, StatusError> {
    Ok(pairs(session.rows("SHOW GLOBAL STATUS")?))
}

/// Rows of name and value; rows without either are left out.
pub(crate) fn pairs(rows: Vec<Vec<Option<String>>>) -> Variables {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()??))
    };
    rows.into_iter().filter_map(pair).collect()
}
