//! `ebbtide simulate`: a volume alone, in virtual time.

use crate::exit::Exit;

/// What to simulate.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The volume, as text: gp3:size=500GiB,iops=6000
    #[arg(long, value_name = "SPEC")]
    pub(crate) volume: String,
}

/// Runs the simulation and prints its table, or one JSON object where `json` is set.
///
/// # Errors
/// A wrong volume or job: a [`crate::exit::Refusal`] with [`Exit::Usage`].
pub(crate) fn run(args: &Args, json: bool) -> anyhow::Result<Exit> {
    let _ = (&args.volume, json);
    Err(crate::exit::Refusal::invariant("simulate is not built yet").into())
}
