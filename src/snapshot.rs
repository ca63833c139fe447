//! `ebbtide snapshot`: point-in-time copies of volumes.

use clap::{Args, Subcommand};
use ebbtide_control::protocol::Request;
use ebbtide_control::{CreateSnapshot, SnapshotView};
use ebbtide_device::host::Home;

use crate::control;
use crate::exit::Exit;
use crate::text::{self, TextTable};
use crate::volume::args::NameArgs;

/// Point-in-time copies of volumes.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Copy a volume as it is now, without stopping its load
    #[command(after_help = "Example: ebbtide snapshot create db-monday --volume db")]
    Create(SnapshotCreate),
    /// List the snapshots
    #[command(after_help = "Example: ebbtide snapshot list --json")]
    List,
    /// Delete a snapshot; volumes made from it keep their content
    #[command(after_help = "Example: ebbtide snapshot delete db-monday")]
    Delete(NameArgs),
}

/// `snapshot create`
#[derive(Debug, Clone, Args)]
pub(crate) struct SnapshotCreate {
    /// Name of the new snapshot: a-z, 0-9, '.', '_' and '-', at most 63, the first a letter or digit
    pub(crate) name: String,
    /// The volume to copy
    #[arg(long, value_name = "VOLUME")]
    pub(crate) volume: String,
}

/// Runs a snapshot command.
///
/// # Errors
/// What the server refuses; no server.
pub(crate) fn run(command: &SnapshotCommand, home: &Home, json: bool) -> anyhow::Result<Exit> {
    let (request, done) = match command {
        SnapshotCommand::Create(args) => {
            let done = format!("created snapshot {} of volume {}", args.name, args.volume);
            let SnapshotCreate { name, volume } = args.clone();
            (Request::SnapshotCreate(CreateSnapshot { name, volume }), done)
        }
        SnapshotCommand::List => (Request::SnapshotList, String::new()),
        SnapshotCommand::Delete(args) => {
            let NameArgs { name } = args.clone();
            (Request::SnapshotDelete { name }, format!("deleted snapshot {}", args.name))
        }
    };
    let answer = control::ask(home, &request)?;
    if json {
        text::print_json(&answer.value);
    } else if matches!(command, SnapshotCommand::List) {
        list(&serde_json::from_value::<Vec<SnapshotView>>(answer.value)?);
    } else {
        text::line(&done);
    }
    Ok(answer.exit)
}

fn list(snapshots: &[SnapshotView]) {
    let mut table = TextTable::new(&["NAME", "VOLUME", "SIZE", "DATA", "CREATED"]);
    for snapshot in snapshots {
        table.row([
            snapshot.name.clone(),
            snapshot.from_volume.clone(),
            text::size(snapshot.size_bytes),
            text::size(snapshot.data_bytes),
            snapshot.damage.clone().unwrap_or_else(|| snapshot.created.to_string()),
        ]);
    }
    table.print("no snapshots");
}
