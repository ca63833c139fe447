//! The same load on EC2 with EBS, on RDS and on Aurora: what each costs a month, and what has to be true.

use ebbtide_catalog::{
    AuroraStoragePrice, HOURS_A_MONTH, InstanceType, ManagedPrices, Raid0, RdsInstancePrice, RdsStoragePrice,
    Resolved, Spec, Usd, VolumeSpec,
};
use ebbtide_volume::GIB;
use serde::Serialize;

use super::demand::{Demand, whole};
use super::search::{IOPS_STEP, Space, THROUGHPUT_STEP, first};

/// Size from which RDS stripes over four volumes (MySQL, MariaDB), GiB.
const STRIPED_FROM_GIB: u64 = 400;
/// Volumes that it stripes over.
const STRIPES: u16 = 4;
/// What RDS gp3 includes from there on: IOPS and MiB/s.
const RDS_GP3_BASE: (u64, u64) = (12_000, 500);
/// The most that it takes: IOPS and MiB/s.
const RDS_GP3_MOST: (u64, u64) = (64_000, 4_000);
/// The most of RDS io2, IOPS.
const RDS_IO2_MOST: u64 = 256_000;
/// The least storage of MySQL and MariaDB on RDS, GiB: of gp2 and gp3, and of io1 and io2 (`AllocatedStorage` of
/// <https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBInstance.html>).
const RDS_LEAST_GIB: (u64, u64) = (20, 100);
/// Memory of a capacity unit of Serverless v2, GiB.
const ACU_GIB: f64 = 2.0;
/// The most capacity units of an instance.
const MOST_ACU: f64 = 256.0;
/// Aurora charges a page read as one request of so many bytes (Aurora FAQ).
const AURORA_PAGE: f64 = 16_384.0;
/// It charges log in units of so many bytes.
const AURORA_LOG: f64 = 4_096.0;
/// Seconds of a month of [`HOURS_A_MONTH`].
const MONTH_S: f64 = HOURS_A_MONTH as f64 * 3600.0;

/// A way to run the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub what: String,
    /// Storage a month, US dollars; null where it has no price.
    pub storage_usd: Option<Usd>,
    /// I/O requests a month, from the least to the most that they may come to; null where they are not charged.
    pub io_usd: Option<[Usd; 2]>,
    /// The instance, or the capacity, a month; null where it has no price.
    pub instance_usd: Option<Usd>,
    /// All of it a month; null where a part has no price.
    pub total_usd: Option<[Usd; 2]>,
    /// The same with a standby or replica in a second zone; null where a part has no price.
    pub with_standby_usd: Option<[Usd; 2]>,
    /// What its sums lack a price of.
    pub missing: Vec<MissingPrice>,
    /// What else has to be known of the figures.
    pub notes: Vec<String>,
}

/// Something that the prices in use have no price of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingPrice {
    /// What it is: `an instance of db.r5.2xlarge`.
    pub what: String,
    /// AWS's price list that has it: `AmazonRDS`.
    pub list: &'static str,
}

impl MissingPrice {
    fn ec2(what: impl Into<String>) -> Self {
        Self { what: what.into(), list: "AmazonEC2" }
    }

    fn rds(what: impl Into<String>) -> Self {
        Self { what: what.into(), list: "AmazonRDS" }
    }
}

/// Where AWS publishes one of its price lists for a region, as CSV.
#[must_use]
pub fn list_url(list: &str, region: &str) -> String {
    format!("https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/{list}/current/{region}/index.csv")
}

/// What I/O a month Aurora would charge for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AuroraIo {
    /// Pages read, requests a month.
    pub reads: f64,
    /// Log written, requests of 4 KiB a month: the least it may be.
    pub least_writes: f64,
    /// The most it may be.
    pub most_writes: f64,
}

impl AuroraIo {
    /// What a load comes to, by its mean: reads by their own number and bytes, log by the bytes that were written. `log_bytes` are the bytes of redo log a second where they are known; else they are
    /// between none and all that is written.
    #[must_use]
    pub fn of(demand: &Demand, log_bytes: Option<f64>) -> Option<Self> {
        let seconds = demand.seconds();
        let reads: f64 =
            demand.steps.iter().map(|step| step.reads.ios.max(step.reads.bytes / AURORA_PAGE)).sum();
        let written: f64 = demand.steps.iter().map(|step| step.writes.bytes).sum();
        let a_month = |amount: f64| amount / seconds * MONTH_S;
        (seconds > 0.0).then(|| Self {
            reads: a_month(reads),
            least_writes: log_bytes.map_or(0.0, |bytes| bytes / AURORA_LOG * MONTH_S),
            most_writes: log_bytes
                .map_or(a_month(written / AURORA_LOG), |bytes| bytes / AURORA_LOG * MONTH_S),
        })
    }

    fn usd(&self, million: Usd) -> [Usd; 2] {
        [self.least_writes, self.most_writes].map(|writes| million.for_amount((self.reads + writes) / 1e6))
    }
}

/// The platforms, EC2 first. `chosen` are the volumes of the answer, `io` what Aurora would charge for.
#[must_use]
pub fn platforms(space: &Space<'_>, chosen: &Resolved, io: Option<AuroraIo>) -> Vec<Platform> {
    let mut all = vec![ec2(space, chosen)];
    let Some(prices) = space.prices.managed() else { return all };
    all.push(rds_gp3(space, prices));
    all.push(rds_io2(space, prices));
    all.extend(aurora(space, prices, io));
    all
}

/// Said of a platform where no instance is known.
const NO_INSTANCE: &str = "no instance was named: give --instance to price one";

/// The parts of a platform, before they are added up.
struct Parts {
    storage: Option<Usd>,
    standby_storage: Option<Usd>,
    /// None where requests are not charged, or have no price.
    io: Option<[Usd; 2]>,
    instance: Option<Usd>,
    standby_instance: Option<Usd>,
    missing: Vec<MissingPrice>,
    /// Whether requests are charged and have no price: no sum can be made.
    io_unpriced: bool,
}

impl Parts {
    fn platform(self, name: &str, what: String, notes: Vec<String>) -> Platform {
        let io = self.io.unwrap_or_default();
        let sum = |storage: Option<Usd>, instance: Option<Usd>| {
            let fixed = storage? + instance?;
            (!self.io_unpriced).then(|| io.map(|io| fixed + io))
        };
        Platform {
            name: name.into(),
            what,
            total_usd: sum(self.storage, self.instance),
            with_standby_usd: sum(self.standby_storage, self.standby_instance),
            storage_usd: self.storage,
            io_usd: self.io,
            instance_usd: self.instance,
            missing: self.missing,
            notes,
        }
    }
}

fn ec2(space: &Space<'_>, chosen: &Resolved) -> Platform {
    let storage = space.prices.monthly_cost(chosen).map(|cost| cost.usd);
    let price = space.instance.map(|one| (one, space.prices.instance(&one.name)));
    let mut missing = Vec::new();
    if storage.is_none() {
        missing.push(MissingPrice::ec2(format!("EBS {}", chosen.spec.volume.kind)));
    }
    if let Some((one, None)) = price {
        missing.push(MissingPrice::ec2(format!("an instance of {}", one.name)));
    }
    let notes = price.map_or_else(|| vec![NO_INSTANCE.to_owned()], |_| Vec::new());
    let instance = price.and_then(|(_, price)| price).map(ebbtide_catalog::InstancePrice::month);
    let parts = Parts {
        storage,
        standby_storage: storage.map(|usd| usd.times(2)),
        io: None,
        instance,
        standby_instance: instance.map(|usd| usd.times(2)),
        missing,
        io_unpriced: false,
    };
    let on = space.instance.map_or_else(String::new, |one| format!(" on {}", one.name));
    parts.platform("EC2 with EBS", format!("{}{on}", super::change::short(&chosen.spec)), notes)
}

/// The size that RDS sells for the one that is needed, GiB, and a note where it is more.
fn rds_size(space: &Space<'_>, kind: &str, least: u64) -> (u64, Option<String>) {
    let needed = space.objective.size_bytes.div_ceil(GIB);
    let note = || format!("RDS sells {kind} from {least} GiB on, and {needed} GiB are needed");
    (needed.max(least), (needed < least).then(note))
}

/// Volumes of RDS: four striped from 400 GiB on.
fn rds_volumes(
    space: &Space<'_>,
    kind: &str,
    gib: u64,
    iops: Option<u64>,
    mib_s: Option<u64>,
) -> Option<Resolved> {
    let members = if gib >= STRIPED_FROM_GIB { STRIPES } else { 1 };
    let share = |all: u64| all.div_ceil(u64::from(members));
    let volume = VolumeSpec {
        kind: kind.to_owned(),
        size_bytes: Some(share(gib) * GIB),
        iops: iops.map(share),
        throughput_mib_s: mib_s.map(share),
        ..VolumeSpec::default()
    };
    let raid0 = (members > 1).then_some(Raid0 { members, chunk_bytes: None });
    space.catalog.resolve(&Spec { volume, raid0 }).ok()
}

fn rds_gp3(space: &Space<'_>, prices: &ManagedPrices) -> Platform {
    let (gib, raised) = rds_size(space, "gp3", RDS_LEAST_GIB.0);
    let meets = |gib: u64, iops: u64, mib_s: u64| {
        rds_volumes(space, "gp3", gib, Some(iops), Some(mib_s)).is_some_and(|volumes| space.meets(&volumes))
    };
    let found = if gib < STRIPED_FROM_GIB && meets(gib, 3_000, 125) {
        Some((gib, 3_000, 125))
    } else {
        gp3_striped(gib.max(STRIPED_FROM_GIB), meets)
    };
    let Some((gib, iops, mib_s)) = found else {
        return not_met(
            "RDS, gp3",
            format!("{} IOPS and {} MiB/s are the most", RDS_GP3_MOST.0, RDS_GP3_MOST.1),
        );
    };
    let base = if gib >= STRIPED_FROM_GIB { RDS_GP3_BASE } else { (3_000, 125) };
    let of = prices.rds.gp3;
    let mut notes =
        vec!["RDS stripes over four volumes from 400 GiB on, with 12,000 IOPS and 500 MiB/s included".into()];
    notes.extend(raised.filter(|_| gib < STRIPED_FROM_GIB));
    notes.extend(instance_of(rds_hours(space, prices).single_hour, prices.rds.instances_of.as_ref()));
    let (more_iops, more_mib_s) = (iops - base.0, mib_s - base.1);
    let sum = |gb: Option<Usd>, iops: Option<Usd>, mib_s: Option<Usd>| {
        let part = |price: Option<Usd>, amount: u64| {
            if amount == 0 { Some(Usd::default()) } else { Some(price?.times(amount)) }
        };
        Some(gb?.times(gib) + part(iops, more_iops)? + part(mib_s, more_mib_s)?)
    };
    let unpriced = if more_mib_s > 0 && of.mib_s_month.is_none() {
        format!("throughput of RDS gp3 above {} MiB/s", base.1)
    } else {
        "storage of RDS gp3".to_owned()
    };
    let parts = rds_parts(
        space,
        prices,
        sum(of.gb_month, of.iops_month, of.mib_s_month),
        sum(of.multi_gb_month, of.multi_iops_month, of.multi_mib_s_month),
        &unpriced,
    );
    parts.platform("RDS, gp3", format!("{gib} GiB, {iops} IOPS, {mib_s} MiB/s"), notes)
}

/// The least IOPS, then the least throughput, of RDS gp3 on four volumes.
fn gp3_striped(gib: u64, meets: impl Fn(u64, u64, u64) -> bool) -> Option<(u64, u64, u64)> {
    let stripes = u64::from(STRIPES);
    let most_mib_s = |iops: u64| (iops / 4).min(RDS_GP3_MOST.1);
    let iops = first(RDS_GP3_BASE.0, RDS_GP3_MOST.0, IOPS_STEP * stripes, |iops| {
        meets(gib, iops, most_mib_s(iops))
    })?;
    let mib_s =
        first(RDS_GP3_BASE.1, most_mib_s(iops), THROUGHPUT_STEP * stripes, |mib_s| meets(gib, iops, mib_s))?;
    Some((gib, iops, mib_s))
}

fn rds_io2(space: &Space<'_>, prices: &ManagedPrices) -> Platform {
    let (gib, raised) = rds_size(space, "io2", RDS_LEAST_GIB.1);
    // As many IOPS as a GiB of io2 takes; 1,000 is what RDS starts at.
    let most = RDS_IO2_MOST.min(gib.saturating_mul(1_000));
    let meets = |iops: u64| {
        rds_volumes(space, "io2", gib, Some(iops), None).is_some_and(|volumes| space.meets(&volumes))
    };
    let found = first(1_000, most, IOPS_STEP * u64::from(STRIPES), meets);
    let Some(iops) = found else {
        return not_met("RDS, io2", format!("{most} IOPS are the most at {gib} GiB"));
    };
    let of = prices.rds.io2;
    let sum = |of: RdsStoragePrice, multi: bool| {
        let (gb, per) =
            if multi { (of.multi_gb_month, of.multi_iops_month) } else { (of.gb_month, of.iops_month) };
        Some(gb?.times(gib) + per?.times(iops))
    };
    let parts = rds_parts(space, prices, sum(of, false), sum(of, true), "storage of RDS io2");
    let known = instance_of(rds_hours(space, prices).single_hour, prices.rds.instances_of.as_ref());
    parts.platform("RDS, io2", format!("{gib} GiB, {iops} IOPS"), raised.into_iter().chain(known).collect())
}

/// What an hour of the instance costs on RDS.
fn rds_hours(space: &Space<'_>, prices: &ManagedPrices) -> RdsInstancePrice {
    space.instance.and_then(|one| prices.rds.instances.get(&class(one)).copied()).unwrap_or_default()
}

/// The parts of RDS. `unpriced` says what of the storage has no price, where it has none.
fn rds_parts(
    space: &Space<'_>,
    prices: &ManagedPrices,
    storage: Option<Usd>,
    standby_storage: Option<Usd>,
    unpriced: &str,
) -> Parts {
    let hours = rds_hours(space, prices);
    let mut missing = Vec::new();
    match (storage, standby_storage) {
        (None, _) => missing.push(MissingPrice::rds(unpriced)),
        (Some(_), None) => missing.push(MissingPrice::rds(format!("{unpriced} with a standby"))),
        (Some(_), Some(_)) => {}
    }
    if let Some(one) = space.instance {
        let on = format!("an instance of {} on RDS", class(one));
        match (hours.single_hour, hours.multi_hour) {
            (None, _) => missing.push(MissingPrice::rds(on)),
            (Some(_), None) => missing.push(MissingPrice::rds(format!("{on} with a standby"))),
            (Some(_), Some(_)) => {}
        }
    }
    Parts {
        storage,
        standby_storage,
        io: None,
        instance: hours.single_hour.map(a_month),
        standby_instance: hours.multi_hour.map(a_month),
        missing,
        io_unpriced: false,
    }
}

fn a_month(hour: Usd) -> Usd {
    hour.times(HOURS_A_MONTH)
}

fn class(instance: &InstanceType) -> String {
    format!("db.{}", instance.name)
}

/// What the price of an instance is of, where it has one and that has to be said.
fn instance_of(hour: Option<Usd>, of: Option<&String>) -> Option<String> {
    let of = of.filter(|_| hour.is_some())?;
    Some(format!("the instance's price is that of {of}"))
}

fn not_met(name: &str, why: String) -> Platform {
    Platform {
        name: name.into(),
        what: "does not meet the objective".into(),
        storage_usd: None,
        io_usd: None,
        instance_usd: None,
        total_usd: None,
        with_standby_usd: None,
        missing: Vec::new(),
        notes: vec![why],
    }
}

fn aurora(space: &Space<'_>, prices: &ManagedPrices, io: Option<AuroraIo>) -> Vec<Platform> {
    let gib = space.objective.size_bytes.div_ceil(GIB);
    let of = &prices.aurora;
    let hours = space.instance.and_then(|one| of.instances.get(&class(one)).copied()).unwrap_or_default();
    let of_class = space.instance.map_or_else(|| "an instance".to_owned(), class);
    let mut all = Vec::new();
    for (name, price, hour, hour_of, optimized) in [
        ("Aurora Standard", of.standard, hours.standard_hour, &of.standard_instances_of, false),
        (
            "Aurora I/O-Optimized",
            of.io_optimized,
            hours.io_optimized_hour,
            &of.io_optimized_instances_of,
            true,
        ),
    ] {
        let mut notes = vec![format!("charged for the data that there are, of which {gib} GiB are the most")];
        notes.extend(instance_of(hour, hour_of.as_ref()));
        let mut parts = aurora_parts(name, price, io.filter(|_| !optimized), gib, hour.map(a_month));
        if space.instance.is_some() && hour.is_none() {
            parts.missing.push(MissingPrice::rds(format!("an instance of {of_class} on {name}")));
        }
        all.push(parts.platform(name, format!("{gib} GiB, {of_class}"), notes));
    }
    let acus = space.instance.map(|one| (one.memory_gib / ACU_GIB).clamp(0.5, MOST_ACU));
    for (name, price, optimized) in [
        ("Aurora Serverless v2", of.standard, false),
        ("Aurora Serverless v2, I/O-Optimized", of.io_optimized, true),
    ] {
        let capacity = acus.zip(price.acu_hour).map(|(acus, hour)| a_month(hour).for_amount(acus));
        let each = price.acu_hour.map(|hour| format!("; {} a month for each", a_month(hour)));
        let notes = match acus {
            Some(acus) => vec![format!(
                "{acus} ACU at all times: the memory of the instance at 2 GiB each. Less at night costs less{}",
                each.unwrap_or_default()
            )],
            None => vec!["no instance was named, whose memory would say how many ACU".into()],
        };
        let mut parts = aurora_parts(name, price, io.filter(|_| !optimized), gib, capacity);
        if acus.is_some() && capacity.is_none() {
            parts.missing.push(MissingPrice::rds(format!("an ACU of {name}")));
        }
        let what = acus.map_or_else(|| format!("{gib} GiB"), |acus| format!("{gib} GiB, {acus} ACU"));
        all.push(parts.platform(name, what, notes));
    }
    all
}

/// The parts of Aurora, whose storage is the same with a standby. `io` is None where requests are not charged.
fn aurora_parts(
    name: &str,
    price: AuroraStoragePrice,
    io: Option<AuroraIo>,
    gib: u64,
    instance: Option<Usd>,
) -> Parts {
    let storage = price.gb_month.map(|usd| usd.times(gib));
    let mut missing = Vec::new();
    if storage.is_none() {
        missing.push(MissingPrice::rds(format!("storage of {name}")));
    }
    let io_unpriced = io.is_some() && price.million_io.is_none();
    if io_unpriced {
        missing.push(MissingPrice::rds(format!("I/O requests of {name}")));
    }
    Parts {
        storage,
        standby_storage: storage,
        io: price.million_io.zip(io).map(|(million, io)| io.usd(million)),
        instance,
        standby_instance: instance.map(|usd| usd.times(2)),
        missing,
        io_unpriced,
    }
}

/// Storage of so many GiB as a whole number, for an amount that was measured.
#[must_use]
pub fn gib(bytes: f64) -> u64 {
    whole((bytes / GIB as f64).ceil())
}

/// What has to be true for a platform to do what its price is for.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PlatformCondition {
    /// What it is about.
    pub topic: &'static str,
    /// What has to be true, or known.
    pub says: &'static str,
    /// Who says so.
    pub url: &'static str,
}

const fn condition(topic: &'static str, says: &'static str, url: &'static str) -> PlatformCondition {
    PlatformCondition { topic, says, url }
}

/// The conditions of the platforms.
pub const CONDITIONS: [PlatformCondition; 8] = [
    condition(
        "Torn-write prevention, EC2",
        "Every EBS volume on a Nitro instance keeps aligned writes of 16 KiB whole, at no cost. The doublewrite buffer may then be off: innodb_doublewrite=OFF, O_DIRECT, and ext4 with bigalloc clusters of 16 KiB. With RAID 0, offsets and chunks at multiples of 16 KiB. ebbtide crash --candidate judges a server",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/storage-twp.html",
    ),
    condition(
        "Optimized Writes, RDS",
        "MySQL from 8.0.30 and MariaDB from 10.6.10 on, on the classes that AWS lists, in an instance that was created from 2022-11-27 on; an older one needs a blue/green upgrade of its storage. rds.optimized_writes=AUTO; it works if innodb_doublewrite is OFF",
        "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-optimized-writes.html",
    ),
    condition(
        "Page writes, Aurora",
        "The database sends log and no pages: no doublewrite, no checkpoints. Standard charges a page read as one I/O of 16 KiB, and log in units of 4 KiB; I/O-Optimized charges neither. It costs less if I/O is over a quarter of the whole bill. A cluster may change to it once in 30 days, and back at any time",
        "https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/Aurora.Overview.StorageReliability.html",
    ),
    condition(
        "Binary log",
        "On EC2 and RDS its writes are in the measured load if it was on. RDS with automated backups has it on. On Aurora it is off; on, it is written to the cluster volume and charged. AWS says up to 50% for a load of writes, and 13% for the enhanced one (Aurora MySQL from 3.03.1 on); a small published test has 3%",
        "https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/AuroraMySQL.Enhanced.binlog.html",
    ),
    condition(
        "Replicas",
        "A replica on EC2 or RDS has an instance and volumes of its own, and writes what the source writes. Replicas of Aurora read the same storage and pay for their instance",
        "https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/Aurora.Replication.html",
    ),
    condition(
        "Backups",
        "Not in these figures. EBS snapshots cost $0.05 a GiB and month in us-east-1, changed blocks only. RDS includes backups up to the size of the databases, then $0.095; Aurora $0.021. EBS snapshots of RAID 0 have to be of all volumes at once (create-snapshots)",
        "https://aws.amazon.com/blogs/database/demystifying-amazon-rds-backup-storage-costs/",
    ),
    condition(
        "RAID 0",
        "A lost volume loses the array: with n volumes at n times the rate of failures (0.1% to 0.2% a year for gp3, 0.001% for io2). A volume cannot be added later without a copy",
        "https://docs.aws.amazon.com/ebs/latest/userguide/raid-config.html",
    ),
    condition(
        "Prices",
        "List prices on demand without tax, for 730 hours a month. Savings plans, reservations, support and data transfer are not in them",
        "https://aws.amazon.com/ebs/pricing/",
    ),
];
