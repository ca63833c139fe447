//! What a product of a price list is, and the price in the unit of the catalogue.

use crate::Usd;

/// A price that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) region: String,
    pub(super) of: Of,
    pub(super) usd: Usd,
}

/// What is priced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Of {
    /// A usage type of EBS, without `EBS:` and region: `VolumeP-IOPS.io2.tier2`.
    Volume(String),
    /// An hour of an instance type.
    Instance(String),
    /// RDS or Aurora.
    Managed(Managed),
}

/// A price of RDS or Aurora.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Managed {
    Storage { kind: String, multi: bool },
    Iops { kind: String, multi: bool },
    Throughput { kind: String, multi: bool },
    Backup,
    Instance { class: String, multi: bool },
    AuroraStorage { optimized: bool },
    AuroraIo,
    AuroraAcu { optimized: bool },
    AuroraBackup,
    AuroraInstance { class: String, optimized: bool },
}

/// The fields of a product that decide what it is. Fields that it lacks are empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Product {
    pub(super) family: String,
    pub(super) region: String,
    pub(super) usage: String,
    pub(super) instance: String,
    pub(super) system: String,
    pub(super) tenancy: String,
    pub(super) software: String,
    pub(super) capacity: String,
    pub(super) operation: String,
    pub(super) engine: String,
    pub(super) deployment: String,
}

impl Product {
    /// What it is; None of what is not used.
    pub(super) fn what(&self) -> Option<Of> {
        match self.family.as_str() {
            "Compute Instance" => self.instance(),
            _ => self.volume().or_else(|| self.managed().map(Of::Managed)),
        }
    }

    fn instance(&self) -> Option<Of> {
        let plain = self.system == "Linux"
            && self.tenancy == "Shared"
            && self.software == "NA"
            && self.capacity == "Used"
            && self.operation == "RunInstances"
            && self.usage.contains("BoxUsage");
        (plain && !self.instance.is_empty()).then(|| Of::Instance(self.instance.clone()))
    }

    fn volume(&self) -> Option<Of> {
        // `EBS:` or, in other regions, `EU-EBS:`.
        let (_, usage) = self.usage.split_once("EBS:")?;
        usage.starts_with("Volume").then(|| Of::Volume(usage.to_owned()))
    }

    fn managed(&self) -> Option<Managed> {
        if self.family == "Database Instance" {
            return self.database_instance();
        }
        if let Some((_, usage)) = self.usage.split_once("Aurora:") {
            return Some(match usage {
                "StorageUsage" => Managed::AuroraStorage { optimized: false },
                "IO-OptimizedStorageUsage" => Managed::AuroraStorage { optimized: true },
                "StorageIOUsage" => Managed::AuroraIo,
                "ServerlessV2Usage" => Managed::AuroraAcu { optimized: false },
                "ServerlessV2IOOptimizedUsage" => Managed::AuroraAcu { optimized: true },
                "BackupUsage" => Managed::AuroraBackup,
                _ => return None,
            });
        }
        let (_, usage) = self.usage.split_once("RDS:")?;
        if !matches!(self.engine.as_str(), "" | "Any" | "MySQL") {
            return None;
        }
        let (usage, multi) = match usage.strip_prefix("Multi-AZ-") {
            Some(usage) => (usage, true),
            None => (usage, false),
        };
        let kind = |name: &str| name.to_owned();
        Some(match usage {
            "GP3-Storage" => Managed::Storage { kind: kind("gp3"), multi },
            "PIOPS-Storage" => Managed::Storage { kind: kind("io1"), multi },
            "IO2-PIOPS-Storage" | "PIOPS-Storage-IO2" => Managed::Storage { kind: kind("io2"), multi },
            "GP3-PIOPS" => Managed::Iops { kind: kind("gp3"), multi },
            "PIOPS" => Managed::Iops { kind: kind("io1"), multi },
            "IO2-PIOPS" | "PIOPS-IO2" => Managed::Iops { kind: kind("io2"), multi },
            "GP3-Throughput" => Managed::Throughput { kind: kind("gp3"), multi },
            "ChargedBackupUsage" if !multi => Managed::Backup,
            _ => return None,
        })
    }

    fn database_instance(&self) -> Option<Managed> {
        let class = self.instance.clone();
        if self.engine == "Aurora MySQL" {
            let optimized = self.usage.contains("InstanceUsageIOOptimized:");
            let known = optimized || self.usage.contains("InstanceUsage:");
            return known.then_some(Managed::AuroraInstance { class, optimized });
        }
        match (self.engine.as_str(), self.deployment.as_str()) {
            ("MySQL", "Single-AZ") => Some(Managed::Instance { class, multi: false }),
            ("MySQL", "Multi-AZ") => Some(Managed::Instance { class, multi: true }),
            _ => None,
        }
    }
}

impl Of {
    /// A price of the list in the catalogue's unit: of a GiB/s where the list has one of a MiB/s, of a million requests where
    /// it has one of a request. None of what is no amount of dollars.
    pub(super) fn usd(&self, amount: &str, unit: &str) -> Option<Usd> {
        let dollars: f64 = amount.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0)?;
        let unit = unit.to_ascii_lowercase();
        let factor = match self {
            Self::Volume(usage) if usage.starts_with("VolumeP-Throughput") && !unit.starts_with("gibps") => {
                1024.0
            }
            Self::Volume(usage) if usage == "VolumeIOUsage" => 1e6,
            Self::Managed(Managed::AuroraIo) => 1e6,
            Self::Managed(Managed::Throughput { .. }) if unit.starts_with("gibps") => 1.0 / 1024.0,
            _ => 1.0,
        };
        Some(Usd::from_micros(crate::numbers::whole(dollars * factor * 1e6)))
    }
}
