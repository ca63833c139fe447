//! The shape of the data files. What the fields mean is described in `docs/catalog.md`.

use std::collections::BTreeMap;

use ebbtide_volume::{Accounting, Merge};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::{CatalogError, DataError, error::data};

/// `data/volume-types.toml`. Types stay tables here, so that overrides can be applied to them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypesFile {
    pub(crate) accounting: BTreeMap<String, AccountingEntry>,
    pub(crate) torn_write_prevention: TornWritePrevention,
    pub(crate) instance: InstanceRules,
    pub(crate) instance_store: StoreRules,
    pub(crate) array: ArrayRules,
    pub(crate) modification: ModificationRules,
    pub(crate) initialization: InitializationRules,
    pub(crate) r#type: Vec<toml::Table>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountingEntry {
    unit_kib: u32,
    merge: Merge,
    whole_units: bool,
    #[serde(default)]
    free_writes: bool,
    pub(crate) source: String,
    pub(crate) date: Date,
}

impl AccountingEntry {
    pub(crate) const fn rules(&self) -> Accounting {
        Accounting {
            unit_bytes: self.unit_kib << 10,
            merge: self.merge,
            whole_units: self.whole_units,
            free_writes: self.free_writes,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TornWritePrevention {
    pub(crate) since: Date,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceRules {
    /// Seconds that an instance's maximum holds on full credits.
    pub(crate) burst_s: u64,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreRules {
    /// Size of the I/Os that IOPS are published for.
    pub(crate) io_kib: u64,
    pub(crate) throughput_per_read: f64,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrayRules {
    pub(crate) default_chunk_kib: u64,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModificationRules {
    /// From this day on `per_day`, before it `wait_before_h`.
    pub(crate) since: Date,
    pub(crate) per_day: usize,
    pub(crate) wait_before_h: i64,
    pub(crate) optimizing_h_per_tib: f64,
    pub(crate) iops_on_type_change: u64,
    pub(crate) keeps_performance: TypeChange,
    pub(crate) modifying_s: u64,
    pub(crate) optimizing_min_s: u64,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypeChange {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// How a volume from a snapshot gets its blocks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InitializationRules {
    pub(crate) block_kib: u64,
    /// Smallest and largest provisioned rate.
    pub(crate) min_mib_s: u64,
    pub(crate) max_mib_s: u64,
    /// Time of a block that an I/O touches first: (percent, microseconds) points.
    pub(crate) first_touch: Vec<(f64, f64)>,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// An EBS volume: whole GiB, a size that must be given, torn-write prevention on by default.
    Ebs,
    /// All disks of an instance together.
    InstanceStore,
    /// A disk of one's own, or none at all (`ideal`).
    Device,
    /// A part of Aurora's storage: no limits of its own, billed by what is used of it.
    Aurora,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypeEntry {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) class: Class,
    pub(crate) accounting: String,
    /// Service times of periods that name none of their own.
    pub(crate) service: String,
    /// First day of an EBS type; a device has none.
    pub(crate) launched: Option<Date>,
    /// Whether an instance can boot from it, and whether several can attach it at once.
    #[serde(default)]
    pub(crate) boot: bool,
    #[serde(default)]
    pub(crate) multi_attach: bool,
    pub(crate) annual_failure_percent: Option<String>,
    pub(crate) period: Vec<Period>,
    /// The type whose prices it has, where an override made it from that one.
    pub(crate) priced_as: Option<String>,
    /// Why an override replaced or added it.
    pub(crate) overridden: Option<String>,
}

impl TypeEntry {
    /// Whether a user provisions its IOPS, and its throughput, in its newest period.
    pub(crate) fn provisioned(&self) -> (bool, bool) {
        let newest = self.period.last();
        let iops = newest.and_then(|period| period.iops);
        let throughput = newest.and_then(|period| period.throughput);
        (
            matches!(iops, Some(IopsRule::Provisioned { .. })),
            matches!(throughput, Some(ThroughputRule::Provisioned { .. })),
        )
    }
}

/// What a type may do from `from` until the next period.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Period {
    pub(crate) from: Date,
    /// Smallest and largest size; devices have none.
    pub(crate) size_gib: Option<[u64; 2]>,
    /// Size where the spec gives none; EBS types have none.
    pub(crate) default_size_gib: Option<u64>,
    /// Size where the spec gives none, for disks that are no whole GiB.
    pub(crate) default_size_bytes: Option<u64>,
    pub(crate) iops: Option<IopsRule>,
    pub(crate) throughput: Option<ThroughputRule>,
    pub(crate) service: Option<String>,
    #[serde(default)]
    pub(crate) volatile_cache_mib: u64,
    /// Largest aligned write that power loss may leave whole; EBS has it by date instead.
    pub(crate) max_atomic_kib: Option<u64>,
    /// Whether writes of `max_atomic_kib` are kept whole unless the spec sets it.
    #[serde(default)]
    pub(crate) atomic_by_default: bool,
    /// AWS's sentence where it names all limits of a type in one.
    pub(crate) together: Option<String>,
    /// Published IOPS that the service times give, where no limit does.
    pub(crate) nominal_iops: Option<u64>,
    pub(crate) source: String,
    pub(crate) date: Date,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum IopsRule {
    /// gp2: so many per GiB between `min` and `max`, and `burst` while credits last.
    BySize { per_gib: u64, min: u64, max: u64, burst: u64, credits: u64 },
    /// The user gives them. `any_size` are exempt from `per_gib`; no default means required.
    Provisioned {
        min: u64,
        max: u64,
        default: Option<u64>,
        per_gib: u64,
        #[serde(default)]
        any_size: u64,
        allowance_s: f64,
    },
    /// A device's own.
    Fixed { iops: u64 },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ThroughputRule {
    /// gp2 until 2018: rises with the size from `mib_s` to `max_mib_s`.
    BySize { mib_s: u64, rising_mib_s_per_gib: f64, max_mib_s: u64 },
    /// gp2: up to `small_gib`, and above.
    Step { small_gib: u64, small_mib_s: u64, large_mib_s: u64 },
    /// gp3: the user gives it.
    Provisioned { min: u64, max: u64, default: u64, per_iops: f64, allowance_s: f64 },
    /// io1 and io2: so much per provisioned IOPS; other figures above `above_iops`.
    PerIops {
        kib_per_iops: f64,
        max_mib_s: u64,
        above_iops: Option<u64>,
        above_kib_per_iops: Option<f64>,
        above_max_mib_s: Option<u64>,
    },
    /// st1 and sc1: base and burst by size, with 1 TiB of credits per TiB.
    PerTib { base_mib_s: u64, base_max_mib_s: u64, burst_mib_s: u64, burst_max_mib_s: u64 },
    /// A device's own.
    Fixed { mib_s: u64 },
}

/// One entry of `data/service-times.toml`: (percent, microseconds) points.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceEntry {
    pub(crate) read: Vec<(f64, f64)>,
    /// Empty where `write_quorum` gives it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) write: Vec<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_quorum: Option<Quorum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequential: Option<Vec<(f64, f64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flush: Option<Vec<(f64, f64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfer_mib_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallelism: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_parallelism: Option<u16>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) flush_alone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mechanics: Option<MechanicsEntry>,
    pub(crate) source: String,
    pub(crate) date: Date,
}

/// Copies of which some must answer a write.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quorum {
    /// How long a copy of each zone takes.
    pub(crate) zones: Vec<Vec<(f64, f64)>>,
    pub(crate) copies_per_zone: u16,
    /// How many copies must have answered.
    pub(crate) needed: u16,
    /// Whether only what it takes longer than another such write counts, which is sent at the same time.
    #[serde(default)]
    pub(crate) beyond_another: bool,
}

/// The arm and platters of a disk, in a data sheet's terms.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MechanicsEntry {
    pub(crate) rpm: u32,
    /// Seek between random places of the whole disk, for a read.
    pub(crate) average_seek_us: f64,
    pub(crate) track_to_track_us: f64,
    /// Requests among which the drive chooses.
    pub(crate) queue: u16,
}

/// The figures of an instance type, as overrides name them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceRow {
    pub(crate) name: String,
    pub(crate) vcpus: u32,
    pub(crate) memory_gib: f64,
    #[serde(default = "x86")]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) manufacturer: String,
    #[serde(default)]
    pub(crate) ebs_optimized: EbsOptimized,
    pub(crate) baseline_mbps: u64,
    pub(crate) maximum_mbps: u64,
    pub(crate) baseline_mb_s: f64,
    pub(crate) maximum_mb_s: f64,
    pub(crate) baseline_iops: u64,
    pub(crate) maximum_iops: u64,
    pub(crate) bursts: YesNo,
    pub(crate) ebs_slots: u32,
    pub(crate) slots: Slots,
    pub(crate) store_disks: u32,
    pub(crate) store_disk_gb: u64,
    #[serde(default = "yes")]
    pub(crate) current: YesNo,
}

fn x86() -> String {
    "x86_64".to_owned()
}

const fn yes() -> YesNo {
    YesNo::Yes
}

/// Whether an instance type has bandwidth for EBS of its own (DescribeInstanceTypes, `EbsOptimizedSupport`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EbsOptimized {
    /// Always.
    #[default]
    Default,
    /// Where it is asked for, for a fee: older types.
    Supported,
    /// Never: volumes share the network. AWS publishes no EBS limits of such a type.
    Unsupported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Slots {
    Shared,
    Dedicated,
}

/// One row of `data/instance-store.csv`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreRow {
    pub(crate) name: String,
    pub(crate) read_iops: u64,
    pub(crate) write_iops: u64,
    pub(crate) disks: u64,
    pub(crate) disk_gb: u64,
    pub(crate) max_atomic_kib: u64,
}

/// An overrides file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverridesFile {
    /// The region whose prices hold where nobody names another.
    pub(crate) default_region: Option<String>,
    #[serde(default)]
    pub(crate) r#override: Vec<OverrideEntry>,
}

/// One override: of a volume type, of an instance type, or of the price of a volume type in a region.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideEntry {
    pub(crate) r#type: Option<String>,
    pub(crate) instance: Option<String>,
    /// The region whose prices are meant; with a type, that type's alone.
    pub(crate) region: Option<String>,
    /// The type, instance or region that a new one begins as a copy of.
    pub(crate) like: Option<String>,
    pub(crate) reason: String,
    pub(crate) source: String,
    pub(crate) date: Date,
    /// Fields to replace: of the newest period, of the instance, or of the price.
    #[serde(default)]
    pub(crate) set: toml::Table,
    /// Service times to replace.
    #[serde(default)]
    pub(crate) service: toml::Table,
}

/// The source and date that the comments at the head of a table give for all its rows.
pub(crate) fn table_source(place: &str, text: &str) -> Result<(String, Date), CatalogError> {
    let date = header_line(place, text, "date:")?;
    let date = date.parse().map_err(|error: jiff::Error| data(place, error))?;
    Ok((header_line(place, text, "source:")?, date))
}

/// What a comment at the head of a table says behind a key.
pub(crate) fn header_line(place: &str, text: &str, key: &'static str) -> Result<String, CatalogError> {
    let line = text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key));
    line.map(|line| line.trim().to_owned()).ok_or_else(|| data(place, DataError::NoLine(key)))
}
