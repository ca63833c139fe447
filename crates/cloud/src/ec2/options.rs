//! How the service runs: how long things take, how much there may be, and how volumes are attached.

use std::path::PathBuf;

use ebbtide_catalog::Catalog;

/// Where Linux on a Nitro instance has the links to its EBS volumes.
pub const DEVICE_LINKS: &str = "/dev/disk/by-id";

/// How the service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long states take.
    pub timing: Timing,
    /// How much an account may have in a region.
    pub quotas: Quotas,
    /// What an attachment is on this host.
    pub attach_as: AttachAs,
    /// Directory of the sockets of volumes whose instance is another host, where an attachment is else a block device; none:
    /// such an instance has no sockets.
    pub nbd_sockets: Option<PathBuf>,
    /// Whether the tag of an instance can have its volumes exported over TCP, where every user of this host reaches them.
    pub tcp_exports: bool,
    /// Directory of the links `nvme-Amazon_Elastic_Block_Store_vol...` to attached block devices, such as
    /// [`DEVICE_LINKS`]; none: no links are made.
    pub device_links: Option<PathBuf>,
    /// Decides the ids of new resources; none: drawn when the service is opened.
    pub seed: Option<u64>,
    /// Volume types, instance types and their limits.
    pub catalog: Catalog,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timing: Timing::AWS,
            quotas: Quotas::AWS,
            attach_as: AttachAs::BlockDevice,
            nbd_sockets: None,
            tcp_exports: false,
            device_links: None,
            seed: None,
            catalog: Catalog::builtin(),
        }
    }
}

impl Options {
    /// The same, where every state is reached at once.
    #[must_use]
    pub fn instant(self) -> Self {
        Self { timing: Timing::INSTANT, ..self }
    }
}

/// What an attachment is on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachAs {
    /// A block device.
    BlockDevice,
    /// A socket `vol-....sock` of the NBD protocol in a directory; needs no root.
    NbdSocket(PathBuf),
}

/// How long states take, in milliseconds of the calls' time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A volume is `creating`.
    pub creating_ms: u64,
    /// A volume is `deleting`.
    pub deleting_ms: u64,
    /// A volume is `attaching`.
    pub attaching_ms: u64,
    /// A volume is `detaching`.
    pub detaching_ms: u64,
    /// Whether a modification takes as long as the catalogue has it of AWS; else it completes at once.
    pub modifications: bool,
    /// Whether a copy of a volume is initialized as long as AWS documents; else at once.
    pub volume_copies: bool,
    /// A snapshot without data is `pending`.
    pub snapshot_ms: u64,
    /// Bytes of data a second by which a snapshot is `pending` longer; none: however much data, no longer.
    pub snapshot_bytes_per_s: Option<u64>,
    /// From one snapshot of a volume until the next is accepted.
    pub snapshot_spacing_ms: u64,
    /// A snapshot is archived.
    pub archiving_ms: u64,
    /// A snapshot is restored from the archive.
    pub restoring_ms: u64,
    /// Fast snapshot restore is `enabling`.
    pub restore_enabling_ms: u64,
    /// Fast snapshot restore is `optimizing` so long for each TiB of the snapshot's size.
    pub restore_tib_ms: u64,
    /// Fast snapshot restore is `disabling`.
    pub restore_disabling_ms: u64,
    /// Whether all credits of fast snapshot restore are there as soon as it is enabled; else it begins with none.
    pub restore_credits_at_once: bool,
    /// An instance is `pending`.
    pub pending_ms: u64,
    /// An instance is `stopping` or `shutting-down`.
    pub stopping_ms: u64,
    /// The checks of a running instance are `initializing`.
    pub checking_ms: u64,
    /// A terminated instance is described.
    pub terminated_ms: u64,
}

impl Timing {
    /// About as long as on AWS. Documented are the spacing of snapshots (`errors-overview`) and the optimizing of fast
    /// snapshot restore (`view-fsr-enabled-snapshots`, whose example has 36 s of enabling), the rest is not.
    pub const AWS: Self = Self {
        creating_ms: 1_500,
        deleting_ms: 1_500,
        attaching_ms: 1_500,
        detaching_ms: 2_000,
        modifications: true,
        volume_copies: true,
        snapshot_ms: 4_000,
        snapshot_bytes_per_s: Some(256 << 20),
        snapshot_spacing_ms: 15_000,
        archiving_ms: 15 * 60_000,
        restoring_ms: 60 * 60_000,
        restore_enabling_ms: 36_000,
        restore_tib_ms: 3_600_000,
        restore_disabling_ms: 36_000,
        restore_credits_at_once: false,
        pending_ms: 4_000,
        stopping_ms: 8_000,
        checking_ms: 30_000,
        terminated_ms: 3_600_000,
    };

    /// Every state is reached at once, and snapshots may follow each other at once.
    pub const INSTANT: Self = Self {
        creating_ms: 0,
        deleting_ms: 0,
        attaching_ms: 0,
        detaching_ms: 0,
        modifications: false,
        volume_copies: false,
        snapshot_ms: 0,
        snapshot_bytes_per_s: None,
        snapshot_spacing_ms: 0,
        archiving_ms: 0,
        restoring_ms: 0,
        restore_enabling_ms: 0,
        restore_tib_ms: 0,
        restore_disabling_ms: 0,
        restore_credits_at_once: true,
        pending_ms: 0,
        stopping_ms: 0,
        checking_ms: 0,
        terminated_ms: 3_600_000,
    };
}

/// How much an account may have in a region (EBS user guide, `ebs-resource-quotas`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Volumes of all types; AWS has no such quota.
    pub volumes: Option<usize>,
    /// GiB of each type but io2.
    pub type_gib: u64,
    /// GiB of io2.
    pub io2_gib: u64,
    /// Provisioned IOPS of io1.
    pub io1_iops: u64,
    /// Provisioned IOPS of io2.
    pub io2_iops: u64,
    /// GiB in modifications that are not completed, of each type but io2.
    pub modifying_gib: u64,
    /// The same of io2.
    pub modifying_io2_gib: u64,
    /// Snapshots.
    pub snapshots: usize,
    /// Pending snapshots of a volume of an SSD type or `standard`.
    pub pending_of_volume: usize,
    /// Pending snapshots of a st1 or sc1 volume.
    pub pending_of_hdd: usize,
    /// Pending copies of snapshots.
    pub pending_copies: usize,
    /// Copies of volumes that are not initialized.
    pub volume_copies: usize,
    /// Snapshots with fast snapshot restore, in however many zones.
    pub fast_restores: usize,
    /// Pending snapshots that are put together from blocks.
    pub pending_direct: usize,
    /// Archived snapshots of a volume.
    pub archived_of_volume: usize,
    /// Snapshots that are being archived.
    pub archiving: usize,
    /// Snapshots that are being restored from the archive.
    pub restoring: usize,
    /// Running instances.
    pub instances: usize,
}

impl Quotas {
    /// AWS's defaults.
    pub const AWS: Self = Self {
        volumes: None,
        type_gib: 50 << 10,
        io2_gib: 20 << 10,
        io1_iops: 300_000,
        io2_iops: 100_000,
        modifying_gib: 500 << 10,
        modifying_io2_gib: 20 << 10,
        snapshots: 100_000,
        pending_of_volume: 5,
        pending_of_hdd: 1,
        pending_copies: 20,
        volume_copies: 5,
        fast_restores: 5,
        pending_direct: 100,
        archived_of_volume: 25,
        archiving: 25,
        restoring: 5,
        instances: 20,
    };
}
