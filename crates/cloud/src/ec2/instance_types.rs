//! DescribeInstanceTypes, of the catalogue's types.

use ebbtide_catalog::InstanceType;
use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::describe_instances::architecture;
use super::filter::{Filters, Tagged, Tags, Values, flag, one, some};
use super::page::{Page, Paging};
use super::{Ec2, access};
use crate::ApiError;

const FILTERS: [&str; 23] = [
    "bare-metal",
    "current-generation",
    "ebs-info.attachment-limit-type",
    "ebs-info.ebs-optimized-info.baseline-bandwidth-in-mbps",
    "ebs-info.ebs-optimized-info.baseline-iops",
    "ebs-info.ebs-optimized-info.baseline-throughput-in-mbps",
    "ebs-info.ebs-optimized-info.maximum-bandwidth-in-mbps",
    "ebs-info.ebs-optimized-info.maximum-iops",
    "ebs-info.ebs-optimized-info.maximum-throughput-in-mbps",
    "ebs-info.ebs-optimized-support",
    "ebs-info.encryption-support",
    "ebs-info.maximum-ebs-attachments",
    "ebs-info.nvme-support",
    "hypervisor",
    "instance-storage-info.total-size-in-gb",
    "instance-storage-supported",
    "instance-type",
    "memory-info.size-in-mib",
    "processor-info.supported-architecture",
    "supported-root-device-type",
    "supported-usage-class",
    "supported-virtualization-type",
    "vcpu-info.default-vcpus",
];

const PAGING: Paging = Paging { bounds: 5..=100, name: "maxResults", ids: Some("instanceTypesSet") };

/// i3 is the only family of the catalogue that is not built on Nitro.
fn is_nitro(kind: &str) -> bool {
    !kind.starts_with("i3.")
}

/// MB/s, as AWS has them: with two decimals.
fn mb_s(mbps: u64) -> f64 {
    (mbps as f64 / 8.0 * 100.0).round() / 100.0
}

fn memory_mib(kind: &InstanceType) -> String {
    format!("{:.0}", kind.memory_gib * 1_024.0)
}

fn members(kind: &InstanceType) -> Value {
    let nitro = is_nitro(&kind.name);
    let mut members = Members::default();
    members
        .put("InstanceType", kind.name.as_str())
        .put("CurrentGeneration", nitro)
        .put("SupportedUsageClasses", json!(["on-demand"]))
        .put("SupportedRootDeviceTypes", json!(["ebs"]))
        .put("SupportedVirtualizationTypes", json!(["hvm"]))
        .put("BareMetal", kind.name.contains("metal"))
        .put("Hypervisor", if nitro { "nitro" } else { "xen" })
        .put("ProcessorInfo", json!({"SupportedArchitectures": [architecture(&kind.name)]}))
        .put("VCpuInfo", json!({"DefaultVCpus": kind.vcpus}))
        .put("MemoryInfo", json!({"SizeInMiB": memory_mib(kind).parse::<u64>().unwrap_or_default()}))
        .put("InstanceStorageSupported", kind.store_disks > 0)
        .put("EbsInfo", ebs(kind, nitro));
    if kind.store_disks > 0 {
        let storage = json!({
            "TotalSizeInGB": u64::from(kind.store_disks) * kind.store_disk_gb,
            "Disks": [{"SizeInGB": kind.store_disk_gb, "Count": kind.store_disks, "Type": "ssd"}],
            "NvmeSupport": "required",
            "EncryptionSupport": "required",
        });
        members.put("InstanceStorageInfo", storage);
    }
    Value::Object(members.end())
}

fn ebs(kind: &InstanceType, nitro: bool) -> Value {
    json!({
        "EbsOptimizedSupport": "default",
        "EncryptionSupport": "supported",
        "EbsOptimizedInfo": {
            "BaselineBandwidthInMbps": kind.baseline_mbps,
            "BaselineThroughputInMBps": mb_s(kind.baseline_mbps),
            "BaselineIops": kind.baseline_iops,
            "MaximumBandwidthInMbps": kind.maximum_mbps,
            "MaximumThroughputInMBps": mb_s(kind.maximum_mbps),
            "MaximumIops": kind.maximum_iops,
        },
        "NvmeSupport": nvme(nitro),
        "MaximumEbsAttachments": kind.ebs_slots,
        "AttachmentLimitType": limit_type(kind),
        "MaximumEbsCards": 1,
    })
}

const fn nvme(nitro: bool) -> &'static str {
    if nitro { "required" } else { "unsupported" }
}

const fn limit_type(kind: &InstanceType) -> &'static str {
    if kind.slots_shared { "shared" } else { "dedicated" }
}

impl Ec2 {
    pub(super) fn describe_instance_types(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let named = ask.input.texts("InstanceTypes");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !named.is_empty(), &PAGING)?;
        let mut all: Vec<&InstanceType> = self.options.catalog.instances().iter().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let unknown: Vec<&str> =
            named.iter().copied().filter(|name| !all.iter().any(|kind| kind.name == *name)).collect();
        if !unknown.is_empty() {
            let message =
                format!("The following supplied instance types do not exist: [{}]", unknown.join(", "));
            return Err(ApiError::client("InvalidInstanceType", message));
        }
        let none = Tags::new();
        let shown = all.into_iter().filter(|kind| {
            page.after.as_deref().is_none_or(|after| kind.name.as_str() > after)
                && (named.is_empty() || named.contains(&kind.name.as_str()))
                && filters.pass(&none, |name| values(kind, name))
        });
        let (kinds, next) = page.fill(ask.call.action, shown.map(|kind| (kind.name.as_str(), members(kind))));
        Ok(Members::default().put("InstanceTypes", kinds).put_some("NextToken", next).end())
    }
}

/// What a type has for a filter.
fn values<'a>(kind: &'a InstanceType, name: &str) -> Values<'a> {
    let nitro = is_nitro(&kind.name);
    match name {
        "bare-metal" => one(flag(kind.name.contains("metal"))),
        "current-generation" => one(flag(nitro)),
        "ebs-info.attachment-limit-type" => one(limit_type(kind)),
        "ebs-info.ebs-optimized-info.baseline-bandwidth-in-mbps" => one(kind.baseline_mbps.to_string()),
        "ebs-info.ebs-optimized-info.baseline-iops" => one(kind.baseline_iops.to_string()),
        "ebs-info.ebs-optimized-info.baseline-throughput-in-mbps" => {
            one(mb_s(kind.baseline_mbps).to_string())
        }
        "ebs-info.ebs-optimized-info.maximum-bandwidth-in-mbps" => one(kind.maximum_mbps.to_string()),
        "ebs-info.ebs-optimized-info.maximum-iops" => one(kind.maximum_iops.to_string()),
        "ebs-info.ebs-optimized-info.maximum-throughput-in-mbps" => one(mb_s(kind.maximum_mbps).to_string()),
        "ebs-info.ebs-optimized-support" => one("default"),
        "ebs-info.encryption-support" => one("supported"),
        "ebs-info.maximum-ebs-attachments" => one(kind.ebs_slots.to_string()),
        "ebs-info.nvme-support" => one(nvme(nitro)),
        "hypervisor" => one(if nitro { "nitro" } else { "xen" }),
        "instance-storage-info.total-size-in-gb" => {
            let size = u64::from(kind.store_disks) * kind.store_disk_gb;
            some((kind.store_disks > 0).then(|| size.to_string()))
        }
        "instance-storage-supported" => one(flag(kind.store_disks > 0)),
        "instance-type" => one(kind.name.as_str()),
        "memory-info.size-in-mib" => one(memory_mib(kind)),
        "processor-info.supported-architecture" => one(architecture(&kind.name)),
        "supported-root-device-type" => one("ebs"),
        "supported-usage-class" => one("on-demand"),
        "supported-virtualization-type" => one("hvm"),
        "vcpu-info.default-vcpus" => one(kind.vcpus.to_string()),
        _ => Vec::new(),
    }
}
