//! `cargo xtask instances MOTO PRICES`: packs AWS's table of instance types. MOTO is a folder with an unpacked wheel of moto,
//! PRICES the file `pkg/providers/pricing/zz_generated.pricing_aws.go` of karpenter-provider-aws.
//!
//! Two files are written: the figures and prices of all types, for `crates/catalog`, and what DescribeInstanceTypes has
//! besides, for `crates/cloud`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::{Compression, GzBuilder, read::GzDecoder};
use serde_json::{Map, Value};

const FIGURES: &str = "crates/catalog/data/instances.csv.gz";
const DETAILS: &str = "crates/cloud/data/instance-types.gz";

/// What the program says about it.
pub(crate) const USAGE: &str = "cargo xtask instances DIR_WITH_MOTO PRICES.go";

/// Fewer types or prices mean that a source was cut short.
const LEAST: usize = 1_300;

const COLUMNS: &str = "name,vcpus,memory_gib,architecture,manufacturer,ebs_optimized,baseline_mbps,maximum_mbps,baseline_iops,maximum_iops,\
                       ebs_slots,slots,store_disks,store_disk_gb,current,usd_hour";

/// Members of DescribeInstanceTypes that the catalogue has, that the answer is made with, or that AWS's models do not have.
const OF_CATALOGUE: [&str; 4] = ["CurrentGeneration", "InstanceType", "MemoryInfo", "SupportedInRegion"];
const OF_EBS: [&str; 4] =
    ["AttachmentLimitType", "EbsOptimizedInfo", "EbsOptimizedSupport", "MaximumEbsAttachments"];
const OF_STORE: [&str; 1] = ["TotalSizeInGB"];

/// Writes both files.
pub(crate) fn run(moto: &str, prices: &str) -> Result<ExitCode> {
    let root = Path::new(moto);
    let types = types(root)?;
    let prices = Prices::read(&fs::read_to_string(prices).with_context(|| format!("cannot read {prices}"))?)?;
    ensure!(types.len() >= LEAST, "only {} types: the table is cut short", types.len());
    ensure!(prices.hourly.len() >= LEAST, "only {} prices: the list is cut short", prices.hourly.len());
    let (version, date) = version(root)?;
    let mut figures = format!(
        "# EC2 instance types, their EBS limits and prices. `cargo xtask instances` makes this file.\n\
         # source: AWS DescribeInstanceTypes, as kept in getmoto/moto {version}, moto/ec2/resources/instance_types.json\n\
         # date: {date}\n\
         # prices: AWS Price List, AmazonEC2 on demand, as kept in aws/karpenter-provider-aws, \
         pkg/providers/pricing/zz_generated.pricing_aws.go (generated {} for {})\n\
         # priced: {}\n\
         # region: {}\n{COLUMNS}\n",
        prices.generated,
        prices.region,
        prices.generated.split('T').next().unwrap_or_default(),
        prices.region,
    );
    let mut details = String::new();
    for (name, facts) in &types {
        let row = row(name, facts, prices.hourly.get(name)).with_context(|| format!("the type {name}"))?;
        figures.push_str(&row);
        writeln!(details, "{name} {}", rest(facts))?;
    }
    pack(FIGURES, &figures)?;
    pack(DETAILS, &details)?;
    println!("{} types, {} prices of {}", types.len(), prices.hourly.len(), prices.region);
    Ok(ExitCode::SUCCESS)
}

/// Packs a text without the time, so that the same text is the same file.
fn pack(path: &str, text: &str) -> Result<()> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes())?;
    let packed = packed.finish()?;
    println!("{path}: {} bytes of {}", packed.len(), text.len());
    fs::write(path, packed).with_context(|| format!("cannot write {path}"))
}

fn types(root: &Path) -> Result<BTreeMap<String, Value>> {
    let path = root.join("moto/ec2/resources/instance_types.json.gz");
    let file = fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// moto's version, and the day of its wheel.
fn version(root: &Path) -> Result<(String, String)> {
    let mut folders = fs::read_dir(root)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let version = folders
        .find_map(|name| Some(name.strip_prefix("moto-")?.strip_suffix(".dist-info")?.to_owned()))
        .context("the folder has no moto-VERSION.dist-info")?;
    let modified = fs::metadata(root.join("moto/ec2/resources/instance_types.json.gz"))?.modified()?;
    let modified = jiff::Timestamp::try_from(modified)?;
    Ok((version, day(modified)))
}

/// The day of a time in UTC, as `2026-08-22`.
fn day(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// The figures of a type, as a row.
fn row(name: &str, facts: &Value, usd_hour: Option<&String>) -> Result<String> {
    let ebs = &facts["EbsInfo"];
    let number = |value: &Value| value.as_u64().map(|number| number.to_string()).unwrap_or_default();
    let optimized = &ebs["EbsOptimizedInfo"];
    let disks = facts["InstanceStorageInfo"]["Disks"].as_array().map_or(&[][..], Vec::as_slice);
    ensure!(disks.len() <= 1, "disks of different sizes");
    let disk = disks.first().unwrap_or(&Value::Null);
    let architectures = facts["ProcessorInfo"]["SupportedArchitectures"].as_array();
    // The older types run 32-bit systems too.
    let architecture =
        architectures.into_iter().flatten().filter_map(Value::as_str).find(|name| *name != "i386");
    let mib = facts["MemoryInfo"]["SizeInMiB"].as_f64().context("no memory")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let columns = [
        name.to_owned(),
        number(&facts["VCpuInfo"]["DefaultVCpus"]),
        (mib / 1_024.0).to_string(),
        architecture.context("no architecture")?.to_owned(),
        text(&facts["ProcessorInfo"]["Manufacturer"]).context("no Manufacturer")?,
        text(&ebs["EbsOptimizedSupport"]).context("no EbsOptimizedSupport")?,
        number(&optimized["BaselineBandwidthInMbps"]),
        number(&optimized["MaximumBandwidthInMbps"]),
        number(&optimized["BaselineIops"]),
        number(&optimized["MaximumIops"]),
        number(&ebs["MaximumEbsAttachments"]),
        text(&ebs["AttachmentLimitType"]).context("no AttachmentLimitType")?,
        number(&disk["Count"]),
        number(&disk["SizeInGB"]),
        if facts["CurrentGeneration"] == true { "yes" } else { "no" }.to_owned(),
        usd_hour.cloned().unwrap_or_default(),
    ];
    Ok(columns.join(",") + "\n")
}

/// What is left of a type without the figures of the catalogue.
fn rest(facts: &Value) -> Value {
    let without = |value: &Value, names: &[&str]| -> Map<String, Value> {
        let members = value.as_object().into_iter().flatten();
        members
            .filter(|(name, _)| !names.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut left = without(facts, &OF_CATALOGUE);
    for (part, names) in
        [("EbsInfo", &OF_EBS[..]), ("InstanceStorageInfo", &OF_STORE), ("VCpuInfo", &["DefaultVCpus"])]
    {
        if facts[part].is_object() {
            left.insert(part.to_owned(), without(&facts[part], names).into());
        }
    }
    left.into()
}

/// Hourly prices of karpenter's list.
struct Prices {
    generated: String,
    region: String,
    hourly: BTreeMap<String, String>,
}

impl Prices {
    /// Reads `// generated at TIME for REGION` and `"TYPE": PRICE,`.
    fn read(text: &str) -> Result<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("// generated at "));
        let (generated, region) =
            line.and_then(|line| line.split_once(" for ")).context("no line 'generated at'")?;
        let begin = text.find(&format!("\"{region}\": {{")).context("no prices of the region")?;
        let list = text.get(begin..).and_then(|rest| rest.split("\n\t},").next()).unwrap_or_default();
        let mut hourly = BTreeMap::new();
        for pair in list
            .lines()
            .skip(1)
            .filter(|line| !line.trim().starts_with("//"))
            .flat_map(|line| line.split(','))
        {
            let pair = pair.trim();
            if pair.is_empty() {
                continue;
            }
            let Some((name, usd)) = pair.split_once(':') else { bail!("'{pair}' is no price") };
            let usd = usd.trim();
            ensure!(usd.parse::<f64>().is_ok_and(|usd| usd > 0.0), "'{pair}' is no price");
            let (dollars, cents) = usd.split_once('.').unwrap_or((usd, ""));
            let cents = cents.trim_end_matches('0');
            hourly.insert(name.trim().trim_matches('"').to_owned(), format!("{dollars}.{cents:0<2}"));
        }
        Ok(Self { generated: generated.trim().to_owned(), region: region.trim().to_owned(), hourly })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts() -> Value {
        json!({
            "InstanceType": "x1.large", "CurrentGeneration": true, "SupportedInRegion": true, "BareMetal": false,
            "MemoryInfo": {"SizeInMiB": 15_616},
            "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"], "Manufacturer": "Intel"},
            "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1},
            "EbsInfo": {"EbsOptimizedSupport": "default", "AttachmentLimitType": "shared", "MaximumEbsAttachments": 27,
                "NvmeSupport": "required", "EbsOptimizedInfo": {"BaselineBandwidthInMbps": 425,
                "MaximumBandwidthInMbps": 850, "BaselineIops": 3_000, "MaximumIops": 6_000}},
            "InstanceStorageInfo": {"Disks": [{"Count": 1, "SizeInGB": 475, "Type": "ssd"}], "TotalSizeInGB": 475,
                "NvmeSupport": "required"},
        })
    }

    #[test]
    fn a_type_is_a_row_of_figures_and_what_is_left() {
        let row = row("x1.large", &facts(), Some(&"0.10".to_owned())).unwrap();
        assert_eq!(row, "x1.large,2,15.25,x86_64,Intel,default,425,850,3000,6000,27,shared,1,475,yes,0.10\n");
        assert_eq!(row.split(',').count(), COLUMNS.split(',').count());
        assert_eq!(
            rest(&facts()),
            json!({"BareMetal": false, "EbsInfo": {"NvmeSupport": "required"},
                "InstanceStorageInfo": {"Disks": [{"Count": 1, "SizeInGB": 475, "Type": "ssd"}], "NvmeSupport": "required"},
                "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"], "Manufacturer": "Intel"}, "VCpuInfo": {"DefaultCores": 1}})
        );
    }

    #[test]
    fn prices_are_those_of_the_region_that_the_list_was_generated_for() {
        let text = "// generated at 2026-07-20T13:44:30Z for us-east-1\nvar x = {\n\t// us-east-1\n\t\"us-east-1\": {\n\
                    \t\t// a1 family\n\t\t\"a1.large\": 0.051000, \"a1.metal\": 1.000000,\n\t},\n}\n";
        let prices = Prices::read(text).unwrap();
        assert_eq!(
            (prices.generated.as_str(), prices.region.as_str()),
            ("2026-07-20T13:44:30Z", "us-east-1")
        );
        let hourly: Vec<_> = prices.hourly.iter().map(|(name, usd)| (name.as_str(), usd.as_str())).collect();
        assert_eq!(hourly, [("a1.large", "0.051"), ("a1.metal", "1.00")]);
        assert!(Prices::read(&text.replace("1.000000", "free")).is_err());
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let of = |second| day(jiff::Timestamp::from_second(second).unwrap());
        assert_eq!(
            [of(0), of(20_687 * 86_400), of(11_017 * 86_400 - 1)],
            ["1970-01-01", "2026-08-22", "2000-02-29"]
        );
    }
}
