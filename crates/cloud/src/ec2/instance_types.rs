//! DescribeInstanceTypes and DescribeInstanceTypeOfferings, of the catalogue's types.
//!
//! The catalogue has the figures; what AWS says of a type besides is a packed table, a line for each type. `cargo xtask
//! instances` makes both of one source.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::LazyLock;

use ebbtide_catalog::{EbsOptimized, InstanceType};
use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::filter::{Filters, Tagged, Tags, Values, one};
use super::page::{Page, Paging};
use super::{Ec2, access, places};
use crate::ApiError;

static PACKED: &[u8] = include_bytes!("../../data/instance-types.gz");

/// Lines of a name, a blank, and the members of DescribeInstanceTypes in JSON, in the order of the names.
static DETAILS: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    let mut packed = flate2::read::GzDecoder::new(PACKED);
    packed.read_to_string(&mut text).expect("the embedded table is a gzip file");
    text
});

static LINES: LazyLock<Vec<(&'static str, &'static str)>> =
    LazyLock::new(|| DETAILS.lines().filter_map(|line| line.split_once(' ')).collect());

const FILTERS: [&str; 60] = [
    "auto-recovery-supported",
    "bare-metal",
    "burstable-performance-supported",
    "current-generation",
    "dedicated-hosts-supported",
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
    "ebs-info.maximum-ebs-cards",
    "ebs-info.nvme-support",
    "free-tier-eligible",
    "hibernation-supported",
    "hypervisor",
    "instance-storage-info.disk.count",
    "instance-storage-info.disk.size-in-gb",
    "instance-storage-info.disk.type",
    "instance-storage-info.encryption-support",
    "instance-storage-info.nvme-support",
    "instance-storage-info.total-size-in-gb",
    "instance-storage-supported",
    "instance-type",
    "memory-info.size-in-mib",
    "network-info.bandwidth-weightings",
    "network-info.efa-info.maximum-efa-interfaces",
    "network-info.efa-supported",
    "network-info.ena-support",
    "network-info.encryption-in-transit-supported",
    "network-info.flexible-ena-queues-support",
    "network-info.ipv4-addresses-per-interface",
    "network-info.ipv6-addresses-per-interface",
    "network-info.ipv6-supported",
    "network-info.maximum-network-cards",
    "network-info.maximum-network-interfaces",
    "network-info.network-performance",
    "nitro-enclaves-support",
    "nitro-tpm-info.supported-versions",
    "nitro-tpm-support",
    "phc-support",
    "placement-group-info.supported-strategies",
    "processor-info.manufacturer",
    "processor-info.supported-architecture",
    "processor-info.supported-features",
    "processor-info.sustained-clock-speed-in-ghz",
    "reboot-migration-support",
    "supported-boot-mode",
    "supported-root-device-type",
    "supported-usage-class",
    "supported-virtualization-type",
    "vcpu-info.default-cores",
    "vcpu-info.default-threads-per-core",
    "vcpu-info.default-vcpus",
    "vcpu-info.valid-cores",
    "vcpu-info.valid-threads-per-core",
];

const PAGING: Paging = Paging { bounds: 5..=100, name: "maxResults", ids: Some("instanceTypesSet") };
const PAGING_OF_OFFERINGS: Paging = Paging { bounds: 5..=1_000, name: "maxResults", ids: None };

/// MB/s, as AWS has them: with two decimals.
fn mb_s(mbps: u64) -> f64 {
    (mbps as f64 / 8.0 * 100.0).round() / 100.0
}

fn memory_mib(kind: &InstanceType) -> u64 {
    format!("{:.0}", kind.memory_gib * 1_024.0).parse().unwrap_or_default()
}

/// What AWS says of a type besides the catalogue's figures; what is true of most types for one that an override adds.
fn details(kind: &InstanceType) -> Map<String, Value> {
    let line = LINES.binary_search_by(|(name, _)| (*name).cmp(&kind.name)).ok().and_then(|at| LINES.get(at));
    match line.and_then(|(_, text)| serde_json::from_str(text).ok()) {
        Some(Value::Object(members)) => members,
        _ => added(kind),
    }
}

fn added(kind: &InstanceType) -> Map<String, Value> {
    let storage =
        (kind.store_disks > 0).then(|| json!({"NvmeSupport": "required", "EncryptionSupport": "required"}));
    Members::default()
        .put("BareMetal", kind.name.contains("metal"))
        .put("Hypervisor", "nitro")
        .put("SupportedUsageClasses", json!(["on-demand"]))
        .put("SupportedRootDeviceTypes", json!(["ebs"]))
        .put("SupportedVirtualizationTypes", json!(["hvm"]))
        .put("ProcessorInfo", json!({"SupportedArchitectures": [kind.architecture]}))
        .put("VCpuInfo", json!({}))
        .put("EbsInfo", json!({"EncryptionSupport": "supported", "NvmeSupport": "required"}))
        .put("InstanceStorageSupported", kind.store_disks > 0)
        .put_some("InstanceStorageInfo", storage)
        .end()
}

/// All that DescribeInstanceTypes shows of a type.
fn members(kind: &InstanceType) -> Map<String, Value> {
    let mut members = details(kind);
    let mut put = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    put("InstanceType", kind.name.as_str().into());
    put("CurrentGeneration", kind.current.into());
    put("MemoryInfo", json!({"SizeInMiB": memory_mib(kind)}));
    let mut add = |part: &str, values: Value| {
        let part = members.entry(part).or_insert_with(|| json!({}));
        if let (Value::Object(part), Value::Object(values)) = (part, values) {
            part.extend(values);
        }
    };
    add("VCpuInfo", json!({"DefaultVCpus": kind.vcpus}));
    add("EbsInfo", ebs(kind));
    if kind.store_disks > 0 {
        let total = u64::from(kind.store_disks) * kind.store_disk_gb;
        add("InstanceStorageInfo", json!({"TotalSizeInGB": total}));
    }
    if let Some(Value::Object(storage)) = members.get_mut("InstanceStorageInfo")
        && (kind.provenance.overridden.is_some() || !storage.contains_key("Disks"))
    {
        let disk = json!({"SizeInGB": kind.store_disk_gb, "Count": kind.store_disks, "Type": "ssd"});
        storage.insert("Disks".to_owned(), json!([disk]));
    }
    members
}

fn ebs(kind: &InstanceType) -> Value {
    let support = match kind.ebs_optimized {
        EbsOptimized::Default => "default",
        EbsOptimized::Supported => "supported",
        EbsOptimized::Unsupported => "unsupported",
    };
    let mut members = Members::default();
    members
        .put("EbsOptimizedSupport", support)
        .put("MaximumEbsAttachments", kind.ebs_slots)
        .put("AttachmentLimitType", if kind.slots_shared { "shared" } else { "dedicated" });
    if kind.has_limits() {
        let limits = json!({
            "BaselineBandwidthInMbps": kind.baseline_mbps,
            "BaselineThroughputInMBps": mb_s(kind.baseline_mbps),
            "BaselineIops": kind.baseline_iops,
            "MaximumBandwidthInMbps": kind.maximum_mbps,
            "MaximumThroughputInMBps": mb_s(kind.maximum_mbps),
            "MaximumIops": kind.maximum_iops,
        });
        members.put("EbsOptimizedInfo", limits);
    }
    Value::Object(members.end())
}

impl Ec2 {
    pub(super) fn describe_instance_types(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let named = ask.input.texts("InstanceTypes");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !named.is_empty(), &PAGING)?;
        let catalog = &self.options.catalog;
        let unknown: Vec<&str> =
            named.iter().copied().filter(|name| catalog.instance_named(name).is_none()).collect();
        if !unknown.is_empty() {
            let message =
                format!("The following supplied instance types do not exist: [{}]", unknown.join(", "));
            return Err(ApiError::client("InvalidInstanceType", message));
        }
        let none = Tags::new();
        let shown = catalog.instances().iter().filter(|kind| {
            page.after.as_deref().is_none_or(|after| kind.name.as_str() > after)
                && (named.is_empty() || named.contains(&kind.name.as_str()))
        });
        let rows = shown.filter_map(|kind| {
            let members = members(kind);
            let passes = filters.pass(&none, |name| values(&members, name));
            passes.then_some((kind.name.as_str(), Value::Object(members)))
        });
        let (kinds, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("InstanceTypes", kinds).put_some("NextToken", next).end())
    }

    /// Each type is offered everywhere.
    pub(super) fn describe_instance_type_offerings(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let filters = Filters::read(ask.input, &["instance-type", "location"], Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, false, &PAGING_OF_OFFERINGS)?;
        let by = ask.input.text("LocationType").filter(|by| !by.is_empty()).unwrap_or("region");
        let zones = || places::zones(ask.region()).into_iter();
        let locations: Vec<String> = match by {
            "availability-zone" => zones().map(|zone| zone.name).collect(),
            "availability-zone-id" => zones().map(|zone| zone.id).collect(),
            "region" => vec![ask.region().to_owned()],
            // There are no Outposts.
            _ => Vec::new(),
        };
        let none = Tags::new();
        let kinds = self.options.catalog.instances().iter();
        let kinds =
            kinds.flat_map(|kind| locations.iter().map(move |place| (kind.name.as_str(), place.as_str())));
        let shown = kinds.filter(|(kind, place)| {
            filters.pass(&none, |name| one(if name == "location" { *place } else { *kind }))
        });
        let rows = shown.map(|(kind, place)| {
            // Behind the last letter of a name, so that keys are in the order of the names.
            let key = format!("{kind} {place}");
            (key, json!({"InstanceType": kind, "LocationType": by, "Location": place}))
        });
        let rows = rows.filter(|(key, _)| page.after.as_deref().is_none_or(|after| key.as_str() > after));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("InstanceTypeOfferings", rows).put_some("NextToken", next).end())
    }
}

/// What a type has for a filter: the filter's name is the path of the member, in lower case and in the singular.
fn values(members: &Map<String, Value>, name: &str) -> Values<'static> {
    let mut parts = name.split('.');
    let mut found: Vec<&Value> = parts.next().and_then(|part| member(members, part)).into_iter().collect();
    for part in parts {
        let inside = found.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        });
        found = inside.filter_map(|value| member(value.as_object()?, part)).collect();
    }
    let leaves = found.into_iter().flat_map(|value| match value {
        Value::Array(items) => items.iter().collect(),
        value => vec![value],
    });
    leaves.flat_map(texts).collect()
}

/// The member of a structure that a part of a filter's name means: `disk` is `Disks`, `size-in-gb` is `SizeInGB`.
fn member<'a>(members: &'a Map<String, Value>, part: &str) -> Option<&'a Value> {
    let wanted = part.replace('-', "");
    let means = |name: &str| {
        let rest = name.to_ascii_lowercase();
        matches!(rest.strip_prefix(&wanted), Some("" | "s" | "es"))
    };
    members.iter().find(|(name, _)| means(name)).map(|(_, value)| value)
}

/// The forms in which a filter may name a value.
fn texts(value: &Value) -> Values<'static> {
    match value {
        Value::String(text) => one(text.clone()),
        Value::Bool(flag) => one(super::filter::flag(*flag)),
        Value::Number(number) => {
            let text = number.to_string();
            let whole = text.strip_suffix(".0").map(|whole| Cow::Owned(whole.to_owned()));
            whole.into_iter().chain([text.into()]).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;

    use super::*;

    #[test]
    fn both_tables_have_the_same_types() {
        let catalog = Catalog::builtin();
        assert!(
            catalog.instances().iter().map(|kind| kind.name.as_str()).eq(LINES.iter().map(|(name, _)| *name))
        );
        assert_eq!(LINES.len(), 1_373);
    }

    #[test]
    fn every_filter_finds_its_member_in_some_type() {
        let catalog = Catalog::builtin();
        let types: Vec<_> = catalog.instances().iter().map(members).collect();
        for name in FILTERS {
            assert!(types.iter().any(|members| !values(members, name).is_empty()), "{name} finds nothing");
        }
        let c5 = types.iter().find(|members| members["InstanceType"] == "c5.9xlarge").unwrap();
        for (name, value) in [
            ("instance-type", "c5.9xlarge"),
            ("network-info.network-performance", "12 Gigabit"),
            ("placement-group-info.supported-strategies", "cluster"),
            ("processor-info.supported-architecture", "x86_64"),
            ("ebs-info.ebs-optimized-info.baseline-throughput-in-mbps", "1187.5"),
            ("vcpu-info.valid-cores", "18"),
            ("memory-info.size-in-mib", "73728"),
            ("current-generation", "false"),
        ] {
            assert!(values(c5, name).iter().any(|own| own == value), "{name}: {:?}", values(c5, name));
        }
    }

    #[test]
    fn a_type_of_an_override_has_the_fields_that_all_have() {
        let text = "[[override]]\ninstance = \"r99g.large\"\nlike = \"i4i.large\"\nreason = \"new\"\nsource = \"s\"\n\
                    date = \"2026-11-20\"\n";
        let catalog = Catalog::with_overrides_text("user.toml", text).unwrap();
        let shown = Value::Object(members(catalog.instance_named("r99g.large").unwrap()));
        assert_eq!(shown["EbsInfo"]["NvmeSupport"], "required");
        assert_eq!(shown["InstanceStorageInfo"]["Disks"][0]["SizeInGB"], 468);
        assert_eq!(shown["ProcessorInfo"]["SupportedArchitectures"][0], "x86_64");
    }
}
