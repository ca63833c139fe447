//! Loading the tables.

use ebbtide_workload::invariant::{Invariants, Schema, check_clients};

use crate::error::LoadError;
use crate::load::{Loading, Prepared, load};
use crate::options::Target;
use crate::run::Cancel;

/// Creates the tables (and the database, where it is missing) and loads them for up to `clients` clients. The
/// rows depend on the seed alone. What was loaded is durable afterwards, whatever the server's settings.
///
/// # Errors
/// Sizes out of range, and the server's errors, such as 1050 where a table is there already.
pub fn prepare(
    target: &Target,
    schema: &Schema,
    seed: u64,
    clients: u32,
    cancel: &Cancel,
) -> Result<Prepared, LoadError> {
    schema.check()?;
    check_clients(clients)?;
    let description = Invariants { schema: schema.clone(), clients, abort_every: 0 }.describe();
    // One connection: the index that makes the rest durable is then created last.
    load(target, &description, Loading { seed, connections: 1 }, cancel, &mut |_| ())
}
