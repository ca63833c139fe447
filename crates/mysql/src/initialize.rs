//! Making a data directory.

use crate::error::ServerError;
use crate::plan::ServerPlan;

/// Makes the system tables in the plan's data directory, with the account `root` without a password. The
/// settings that are built into the data (page size, undo tablespaces) are those of the plan.
///
/// # Errors
/// [`ServerError::NotEmpty`] where a directory holds something; everything that a start can fail with.
pub fn initialize(plan: &ServerPlan, progress: &dyn Fn(&str)) -> Result<(), ServerError> {
    let _ = (plan, progress);
    Err(ServerError::NotFound { looked: "making a data directory comes with the next change".into() })
}
