//! `ebbtide snapshot`: point-in-time copies of volumes.

use clap::{Args, Subcommand};
use ebbtide_control::protocol::Request;
use ebbtide_control::{CreateSnapshot, SnapshotView};
use ebbtide_device::host::Home;
use ebbtide_report::{Block, Cell, Report, Section, Table, Tone};

use crate::control;
use crate::document::{ColorWhen, print, text_options};
use crate::exit::Exit;
use crate::text::{self, count, size};
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
pub(crate) fn run(
    command: &SnapshotCommand,
    home: &Home,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
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
        let document = list(&serde_json::from_value::<Vec<SnapshotView>>(answer.value)?);
        print(&document, text_options(color, false), "")?;
    } else {
        text::line(&done);
    }
    Ok(answer.exit)
}

fn list(snapshots: &[SnapshotView]) -> Report {
    let mut blocks = Vec::new();
    if snapshots.is_empty() {
        blocks.push(Block::Findings(vec!["no snapshots".to_owned()]));
    } else {
        let bytes = snapshots.iter().map(|snapshot| snapshot.allocated_bytes).fold(0, u64::saturating_add);
        let sentence = format!("{}; {} on the host.", count(snapshots.len(), "snapshot"), size(bytes));
        blocks.push(Block::Findings(vec![sentence]));
        blocks.push(Block::Table(table(snapshots)));
    }
    Report { sections: vec![Section::new("", blocks)], ..Report::default() }
}

fn table(snapshots: &[SnapshotView]) -> Table {
    let row = |snapshot: &SnapshotView| {
        let created = match &snapshot.damage {
            Some(damage) => Cell { tone: Tone::Bad, ..Cell::from(damage.as_str()) },
            None => snapshot.created.to_string().into(),
        };
        vec![
            snapshot.name.as_str().into(),
            snapshot.from_volume.as_str().into(),
            size(snapshot.size_bytes).into(),
            size(snapshot.data_bytes).into(),
            created,
        ]
    };
    Table {
        columns: ["Name", "Volume", "Size", "Written", "Created"].map(str::to_owned).to_vec(),
        rows: snapshots.iter().map(row).collect(),
        ..Table::default()
    }
}
