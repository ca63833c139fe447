//! The arguments of `ebbtide volume`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ebbtide_catalog::Initialization;
use ebbtide_cloud::ec2;
use ebbtide_control::protocol::{
    AttachRequest, CreateRequest, ExportRequest, ModifyRequest, MountPoint, Request,
};
use ebbtide_control::{
    DetachVolume, FaultSetting, FsType, Optimizing, OwnerError, OwnerRequest, SetFaults, TakeCrashImage,
};
use ebbtide_text::parse_duration;

use crate::document::SectionArgs;

/// Live volumes: create, attach, change, break, look at, delete.
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Create a volume; it is empty, or holds a snapshot's content
    #[command(
        after_help = "Examples:\n  ebbtide volume create db gp3:size=500GiB,iops=6000,throughput=250\n  \
        ebbtide volume create copy gp3:size=500GiB --snapshot monday\n  \
        ebbtide volume create copy gp3:size=500GiB --snapshot monday --initialization rate=200MiB/s\n  \
        ebbtide volume create db gp3:size=500GiB --owner 000000000000/eu-west-1a"
    )]
    Create(CreateArgs),
    /// Attach a volume as a block device, or through NBD, and print where
    #[command(after_help = "Examples:\n  ebbtide volume attach db\n  \
        ebbtide volume attach db --mount /mnt/db --fs xfs\n  \
        ebbtide volume attach db --nbd unix:/tmp/db.sock        # needs no root\n  \
        ebbtide volume attach db --instance r5.large/web1\n  \
        ebbtide volume attach db --shadow gp3:iops=6000 --shadow io2:iops=6000")]
    Attach(AttachArgs),
    /// Detach a volume: unmount it, drain it, keep its credits
    #[command(after_help = "Example: ebbtide volume detach db")]
    Detach(DetachArgs),
    /// Record the requests of an attached volume to a file, for `ebbtide simulate --trace`, until Ctrl-C
    #[command(after_help = "Examples:\n  ebbtide volume record db db.blkparse.zst --for 10m\n  \
        ebbtide volume record db --stop     # ends one whose command was killed")]
    Record(RecordArgs),
    /// Change type, size, IOPS, throughput or owner, attached or not
    #[command(
        after_help = "Examples:\n  ebbtide volume modify db gp3:size=1TiB,iops=12000 --optimizing 10m\n  \
        ebbtide volume modify db --owner 000000000000/eu-west-1a"
    )]
    Modify(ModifyArgs),
    /// List the volumes
    #[command(after_help = "Example: ebbtide volume list --json")]
    List(ListArgs),
    /// Show one volume: limits, cost, credits, counters, pacing, faults, attachment
    #[command(after_help = "Example: ebbtide volume show db --region eu-west-1")]
    Show(ShowArgs),
    /// Delete a detached volume and its data
    #[command(after_help = "Example: ebbtide volume delete db")]
    Delete(NameArgs),
    /// Check the store's metadata: manifest, journals, sizes of data files. Data carry no checksums
    /// and are not read. Exit code 1 where something is damaged
    #[command(after_help = "Example: ebbtide volume check db")]
    Check(CheckArgs),
    /// Break an attached volume on command, and mend it
    #[command(after_help = FAULT_HELP)]
    Fault(FaultArgs),
    /// Create a volume with what a power cut of another one would leave now
    #[command(after_help = "Example: ebbtide volume crash-image db db-after-cut --seed 7")]
    CrashImage(CrashImageArgs),
    /// Measure what this host can carry, or fit service times from a real volume's fio result
    #[command(after_help = "Examples:\n  ebbtide volume calibrate\n  \
        ebbtide volume calibrate --fio result.json --type gp3")]
    Calibrate(CalibrateArgs),
}

const FAULT_HELP: &str = "Settings, any number at once:
  latency=2ms            add 2 ms to every I/O; read:2ms or write:2ms to one kind; 0ms ends it
  errors=100ppm          fail that share of the I/O, drawn from the volume's seed; 0ppm ends it
  error-range=1GiB+4KiB  fail every I/O that touches this range (OFFSET+LENGTH); off ends it
  stall=on|off           stop completing I/O, as AWS FIS does; off lets it go on
  power-cut[=SEED]       stop answering for good; the content is what the power cut left
  answer-early=on|off    answer writes before they are stored (to see a crash test catch it)
  ignore-flush=on|off    answer flushes without flushing
  clear                  end every fault above except a power cut, which a detach ends
Without settings, prints the faults in force.

Examples:
  ebbtide volume fault db latency=write:5ms errors=100ppm
  ebbtide volume fault db clear";

/// One volume by its name.
#[derive(Debug, Clone, Args)]
pub(crate) struct NameArgs {
    /// The volume, by its name or its id
    pub(crate) name: String,
}

/// `volume list`
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// AWS region whose prices are shown [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
}

/// `volume show`
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The volume
    pub(crate) name: String,
    /// AWS region whose prices are shown [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Print its spec, seed, blocks, counters and pacing too
    #[arg(long)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) sections: SectionArgs,
}

/// `volume create`
#[derive(Debug, Clone, Args)]
pub(crate) struct CreateArgs {
    /// Name of the new volume: a-z, 0-9, '.', '_' and '-', at most 63, the first a letter or digit
    pub(crate) name: String,
    /// What it is: gp3:size=500GiB,iops=6000,throughput=250 | gp2:size=100GiB,credits=2% |
    /// raid0(2x gp3:size=250GiB) | ideal:size=10GiB | ...
    pub(crate) spec: String,
    /// Start with the content of this snapshot
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) snapshot: Option<String>,
    /// How the snapshot's blocks come to the volume: lazy (each when it is touched first, slowly, as on EBS),
    /// rate=100MiB/s to rate=300MiB/s (besides, all in their order at that provisioned rate), or none (all are there)
    /// [default: lazy for EBS types, none for others]
    #[arg(long, value_name = "HOW", requires = "snapshot")]
    pub(crate) initialization: Option<Initialization>,
    /// Logical block size in bytes: 512 or 4096
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    pub(crate) block_size: u32,
    /// Seed of its service times, errors and power cuts [default: drawn]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// AWS region whose prices are shown [default: us-east-1, or that of the home's catalog.toml]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Account of 12 digits, and availability zone, that have the volume in the AWS endpoint [default: 000000000000, the account
    /// of the endpoint's users, and us-east-1a or the first zone of 'serve --region']
    #[arg(long, value_name = "ACCOUNT[/ZONE]", value_parser = owner)]
    pub(crate) owner: Option<OwnerRequest>,
}

/// File systems that attach can make and mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fs {
    /// XFS
    Xfs,
    /// ext4
    Ext4,
    /// ext4 with clusters of 16 KiB, for torn-write prevention
    Ext4Bigalloc,
}

/// `volume attach`
#[derive(Debug, Clone, Args)]
pub(crate) struct AttachArgs {
    /// The volume
    pub(crate) name: String,
    /// Mount it here; a blank volume gets a file system first
    #[arg(long, value_name = "DIR", requires = "fs")]
    pub(crate) mount: Option<PathBuf>,
    /// File system for --mount; one of this type that is already there is kept
    #[arg(long, value_name = "FS", requires = "mount")]
    pub(crate) fs: Option<Fs>,
    /// Export through NBD instead of a block device: unix:PATH or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "mount")]
    pub(crate) nbd: Option<String>,
    /// EC2 instance whose own limits hold too; volumes with the same TYPE/ID share them
    #[arg(long, value_name = "TYPE[/ID]")]
    pub(crate) instance: Option<String>,
    /// Let mkfs destroy what is on the volume
    #[arg(long, requires = "mount")]
    pub(crate) execute: bool,
    /// Attach even where the volume is faster than this host can carry; it is marked as such
    #[arg(long)]
    pub(crate) over_limit: bool,
    /// A volume that gets the same requests and answers nobody: `volume show` prints what it would have done.
    /// May be repeated; without a size it has the volume's
    #[arg(long, value_name = "SPEC")]
    pub(crate) shadow: Vec<String>,
}

/// `volume record`
#[derive(Debug, Clone, Args)]
pub(crate) struct RecordArgs {
    /// The attached volume
    pub(crate) name: String,
    /// New file for the requests, in the text of blkparse; packed with zstd if its name ends in .zst
    #[arg(required_unless_present = "stop")]
    pub(crate) file: Option<PathBuf>,
    /// End after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "stop")]
    pub(crate) duration: Option<Duration>,
    /// End the recording of the volume
    #[arg(long, conflicts_with = "file")]
    pub(crate) stop: bool,
}

/// `volume detach`
#[derive(Debug, Clone, Args)]
pub(crate) struct DetachArgs {
    /// The volume
    pub(crate) name: String,
    /// Detach although a process uses the volume or I/O is stalled: what was written before is flushed to the
    /// volume, I/O after that fails; stalled I/O fails too
    #[arg(long)]
    pub(crate) force: bool,
}

/// `volume modify`
#[derive(Debug, Clone, Args)]
pub(crate) struct ModifyArgs {
    /// The volume
    pub(crate) name: String,
    /// What it becomes; a setting that is left out keeps its value
    #[arg(required_unless_present = "owner")]
    pub(crate) spec: Option<String>,
    /// Give it to another account of 12 digits, or availability zone, of the AWS endpoint; without a zone it stays in its own.
    /// Refused while an instance has it
    #[arg(long, value_name = "ACCOUNT[/ZONE]", value_parser = owner)]
    pub(crate) owner: Option<OwnerRequest>,
    /// How long it performs between old and new: a duration, or 'aws' for as long as AWS takes
    /// [default: no time at all]
    #[arg(long, value_name = "DURATION", value_parser = optimizing, requires = "spec")]
    pub(crate) optimizing: Option<Optimizing>,
    /// Modify an attached volume even where it is then faster than this host can carry; it is
    /// marked as such
    #[arg(long, requires = "spec")]
    pub(crate) over_limit: bool,
}

fn owner(text: &str) -> Result<OwnerRequest, String> {
    let owner: OwnerRequest = text.parse().map_err(|error: OwnerError| error.to_string())?;
    match owner.zone.as_deref().filter(|zone| !ec2::is_zone(zone)) {
        Some(zone) => Err(format!(
            "'{zone}' is no availability zone: give a region and the letter of one of its zones, such as us-east-1a"
        )),
        None => Ok(owner),
    }
}

fn optimizing(text: &str) -> Result<Optimizing, String> {
    match text {
        "aws" => Ok(Optimizing::Aws),
        other => parse_duration(other).map(Optimizing::For).map_err(|error| error.to_string()),
    }
}

/// `volume check`
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// The volume [default: everything that is stored]
    pub(crate) name: Option<String>,
}

/// `volume fault`
#[derive(Debug, Clone, Args)]
pub(crate) struct FaultArgs {
    /// The volume
    pub(crate) name: String,
    /// What to break or mend
    #[arg(value_name = "SETTING")]
    pub(crate) settings: Vec<FaultSetting>,
}

/// `volume crash-image`
#[derive(Debug, Clone, Args)]
pub(crate) struct CrashImageArgs {
    /// The attached volume
    pub(crate) name: String,
    /// Name of the new volume: a-z, 0-9, '.', '_' and '-', at most 63, the first a letter or digit
    pub(crate) image: String,
    /// Decides which writes in flight survive [default: drawn, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// `volume calibrate`
#[derive(Debug, Clone, Args)]
pub(crate) struct CalibrateArgs {
    /// Fit service times from this fio result (JSON) of a real volume instead
    #[arg(long, value_name = "RESULT.json", requires = "kind")]
    pub(crate) fio: Option<PathBuf>,
    /// The volume type that the fio result was measured on
    #[arg(long = "type", value_name = "TYPE", requires = "fio")]
    pub(crate) kind: Option<String>,
    /// Measure for about 3 seconds instead of 20
    #[arg(long, conflicts_with = "fio")]
    pub(crate) quick: bool,
}

// What each command asks the server for.

impl From<CreateArgs> for Request {
    fn from(args: CreateArgs) -> Self {
        let CreateArgs { name, spec, snapshot, initialization, block_size, seed, region, owner } = args;
        Self::VolumeCreate(CreateRequest {
            name,
            spec,
            snapshot,
            initialization,
            block_size,
            seed,
            region,
            owner,
        })
    }
}

impl From<AttachArgs> for Request {
    fn from(args: AttachArgs) -> Self {
        let AttachArgs { name, mount, fs, nbd, instance, execute, over_limit, shadow } = args;
        let mount = mount.zip(fs).map(|(dir, fs)| MountPoint { dir, fs: fs.into(), destroy: execute });
        let export = match nbd {
            Some(address) => ExportRequest::Nbd { address },
            None => ExportRequest::Block { mount },
        };
        Self::VolumeAttach(AttachRequest { name, export, instance, over_limit, shadows: shadow })
    }
}

impl From<Fs> for FsType {
    fn from(fs: Fs) -> Self {
        match fs {
            Fs::Xfs => Self::Xfs,
            Fs::Ext4 => Self::Ext4,
            Fs::Ext4Bigalloc => Self::Ext4Bigalloc,
        }
    }
}

impl From<DetachArgs> for Request {
    fn from(DetachArgs { name, force }: DetachArgs) -> Self {
        Self::VolumeDetach(DetachVolume { name, force })
    }
}

impl From<ModifyArgs> for Request {
    fn from(args: ModifyArgs) -> Self {
        let ModifyArgs { name, spec, owner, optimizing, over_limit } = args;
        Self::VolumeModify(ModifyRequest { name, spec, owner, optimizing, over_limit })
    }
}

impl From<ListArgs> for Request {
    fn from(ListArgs { region }: ListArgs) -> Self {
        Self::VolumeList { region }
    }
}

impl From<ShowArgs> for Request {
    fn from(ShowArgs { name, region, .. }: ShowArgs) -> Self {
        Self::VolumeShow { name, region }
    }
}

impl From<FaultArgs> for Request {
    fn from(FaultArgs { name, settings }: FaultArgs) -> Self {
        Self::VolumeFault(SetFaults { name, settings })
    }
}

impl From<CrashImageArgs> for Request {
    fn from(CrashImageArgs { name, image, seed }: CrashImageArgs) -> Self {
        Self::VolumeCrashImage(TakeCrashImage { name, image, seed })
    }
}
