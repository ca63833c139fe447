//! AWS's bulk price lists: what is taken of them, and what is refused. The rows have the form of AWS's own.

use ebbtide_catalog::Catalog;
use ebbtide_catalog::price_list::{Offer, PriceList, PriceListError};

use crate::support::resolve;

/// A product with one price on demand: (family, attributes, unit, dollars).
type Product<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

fn json(offer: &str, products: &[Product<'_>]) -> String {
    let quoted = |(key, value): &(&str, &str)| format!("\"{key}\":\"{value}\"");
    let product = |(n, (family, attributes, _, _)): (usize, &Product<'_>)| {
        let attributes: Vec<String> = attributes.iter().map(quoted).collect();
        format!(
            "\"SKU{n}\":{{\"sku\":\"SKU{n}\",\"productFamily\":\"{family}\",\"attributes\":{{{}}}}}",
            attributes.join(",")
        )
    };
    let term = |(n, (_, _, unit, usd)): (usize, &Product<'_>)| {
        format!(
            "\"SKU{n}\":{{\"SKU{n}.JRTCKXETXF\":{{\"offerTermCode\":\"JRTCKXETXF\",\"sku\":\"SKU{n}\",\"effectiveDate\":\"2026-09-01T00:00:00Z\",\
             \"priceDimensions\":{{\"SKU{n}.JRTCKXETXF.6YS6EN2CT7\":{{\"unit\":\"{unit}\",\"endRange\":\"Inf\",\"description\":\"x\",\
             \"appliesTo\":[],\"rateCode\":\"r\",\"beginRange\":\"0\",\"pricePerUnit\":{{\"USD\":\"{usd}\"}}}}}},\"termAttributes\":{{}}}}}}"
        )
    };
    let all = |of: &dyn Fn((usize, &Product<'_>)) -> String| {
        products.iter().enumerate().map(of).collect::<Vec<_>>().join(",")
    };
    format!(
        "{{\"formatVersion\":\"v1.0\",\"disclaimer\":\"x\",\"offerCode\":\"{offer}\",\"version\":\"1\",\"publicationDate\":\"2026-09-30T12:00:00Z\",\
         \"products\":{{{}}},\"terms\":{{\"OnDemand\":{{{}}},\"Reserved\":{{\"SKU0\":{{\"x\":[1,2]}}}}}},\"attributesList\":{{}}}}",
        all(&product),
        all(&term)
    )
}

const FRANKFURT: (&str, &str) = ("regionCode", "eu-central-1");

fn ec2() -> String {
    let volume = |usage: &'static str| [FRANKFURT, ("usagetype", usage)];
    let gp3 = volume("EUC1-EBS:VolumeUsage.gp3");
    let iops = volume("EUC1-EBS:VolumeP-IOPS.gp3");
    let throughput = volume("EUC1-EBS:VolumeP-Throughput.gp3");
    let io2 = volume("EUC1-EBS:VolumeUsage.io2");
    let tiers =
        ["EUC1-EBS:VolumeP-IOPS.io2", "EUC1-EBS:VolumeP-IOPS.io2.tier2", "EUC1-EBS:VolumeP-IOPS.io2.tier3"]
            .map(volume);
    let gp2 = volume("EUC1-EBS:VolumeUsage.gp2");
    let instance = |system: &'static str, operation: &'static str| {
        [
            FRANKFURT,
            ("instanceType", "r5.large"),
            ("operatingSystem", system),
            ("tenancy", "Shared"),
            ("preInstalledSw", "NA"),
            ("capacitystatus", "Used"),
            ("operation", operation),
            ("usagetype", "EUC1-BoxUsage:r5.large"),
        ]
    };
    let (linux, windows) = (instance("Linux", "RunInstances"), instance("Windows", "RunInstances:0002"));
    json(
        "AmazonEC2",
        &[
            ("Storage", &gp3, "GB-Mo", "0.0952000000"),
            ("System Operation", &iops, "IOPS-Mo", "0.0060000000"),
            ("Provisioned Throughput", &throughput, "GiBps-mo", "48.7424000000"),
            ("Storage", &io2, "GB-Mo", "0.1490000000"),
            ("System Operation", &tiers[0], "IOPS-Mo", "0.0780000000"),
            ("System Operation", &tiers[1], "IOPS-Mo", "0.0546000000"),
            ("System Operation", &tiers[2], "IOPS-Mo", "0.0382200000"),
            ("Storage", &gp2, "GB-Mo", "0.1190000000"),
            ("Compute Instance", &linux, "Hrs", "0.1520000000"),
            ("Compute Instance", &windows, "Hrs", "0.2440000000"),
            ("Data Transfer", &[FRANKFURT], "GB", "0.0900000000"),
        ],
    )
}

fn read(text: &str) -> Result<PriceList, PriceListError> {
    PriceList::read("list.json", text.as_bytes())
}

#[test]
fn a_list_of_another_region_prices_its_volumes_and_instances() {
    let list = read(&ec2()).unwrap();
    assert_eq!(
        (list.offer(), list.region(), list.as_of().as_str(), list.prices()),
        (Offer::Ec2, "eu-central-1", "2026-09-30", 9)
    );
    let mut catalog = Catalog::builtin();
    catalog.take_prices(&list).unwrap();
    let prices = catalog.prices(Some("eu-central-1")).unwrap();
    let usd = |spec: &str| prices.monthly_cost(&resolve(spec)).map(|cost| cost.usd.to_string());
    // 47.60 + 3,000 x 0.006 + 125 x 48.7424 / 1,024.
    assert_eq!(usd("gp3:size=500GiB,iops=6000,throughput=250").as_deref(), Some("$71.55"));
    // 149 + 32,000 x 0.078 + 8,000 x 0.0546.
    assert_eq!(usd("io2:size=1000GiB,iops=40000").as_deref(), Some("$3,081.80"));
    assert_eq!(usd("gp2:size=100GiB").as_deref(), Some("$11.90"));
    assert_eq!(usd("io1:size=100GiB,iops=100"), None, "the list has no price of it");
    let instance = prices.instance("r5.large").unwrap();
    assert_eq!((instance.month().to_string(), instance.as_of.as_str()), ("$110.96".into(), "2026-09-30"));
    assert!(instance.source.contains("list.json"), "{}", instance.source);
    assert!(
        catalog.prices(None).unwrap().instance("r5.large").unwrap().source.contains("karpenter"),
        "other regions keep theirs"
    );
}

#[test]
fn a_list_of_rds_prices_databases() {
    let of = |usage: &'static str, engine: &'static str| {
        [FRANKFURT, ("usagetype", usage), ("databaseEngine", engine)]
    };
    let class = |usage: &'static str, engine: &'static str, deployment: &'static str| {
        [
            FRANKFURT,
            ("usagetype", usage),
            ("databaseEngine", engine),
            ("deploymentOption", deployment),
            ("instanceType", "db.r6g.large"),
        ]
    };
    let rows = [
        of("EUC1-RDS:GP3-Storage", "MySQL"),
        of("EUC1-RDS:Multi-AZ-GP3-Storage", "MySQL"),
        of("EUC1-RDS:GP3-Throughput", "Any"),
        of("EUC1-RDS:GP3-Storage", "SQL Server"),
        of("EUC1-Aurora:StorageIOUsage", "Any"),
        of("EUC1-Aurora:ServerlessV2IOOptimizedUsage", "Aurora MySQL"),
    ];
    let instances = [
        class("EUC1-InstanceUsage:db.r6g.large", "MySQL", "Single-AZ"),
        class("EUC1-Multi-AZUsage:db.r6g.large", "MySQL", "Multi-AZ"),
        class("EUC1-InstanceUsageIOOptimized:db.r6g.large", "Aurora MySQL", "Single-AZ"),
    ];
    let text = json(
        "AmazonRDS",
        &[
            ("Database Storage", &rows[0], "GB-Mo", "0.1370000000"),
            ("Database Storage", &rows[1], "GB-Mo", "0.2740000000"),
            ("Provisioned Throughput", &rows[2], "MBPS-Mo", "0.0950000000"),
            ("Database Storage", &rows[3], "GB-Mo", "0.9990000000"),
            ("System Operation", &rows[4], "IOs", "0.0000002200"),
            ("ServerlessV2", &rows[5], "ACU-Hr", "0.1900000000"),
            ("Database Instance", &instances[0], "Hrs", "0.2580000000"),
            ("Database Instance", &instances[1], "Hrs", "0.5160000000"),
            ("Database Instance", &instances[2], "Hrs", "0.4070000000"),
        ],
    );
    let list = read(&text).unwrap();
    let mut catalog = Catalog::builtin();
    catalog.take_prices(&read(&ec2()).unwrap()).unwrap();
    catalog.take_prices(&list).unwrap();
    let prices = catalog.prices(Some("eu-central-1")).unwrap();
    let managed = prices.managed().unwrap();
    let usd = |price: Option<ebbtide_catalog::Usd>| price.map(ebbtide_catalog::Usd::micros);
    assert_eq!(managed.as_of(), "2026-09-30");
    assert_eq!(
        (usd(managed.rds.gp3.gb_month), usd(managed.rds.gp3.multi_gb_month)),
        (Some(137_000), Some(274_000))
    );
    assert_eq!(usd(managed.rds.gp3.mib_s_month), Some(95_000));
    assert_eq!(usd(managed.aurora.standard.million_io), Some(220_000));
    assert_eq!(usd(managed.aurora.io_optimized.acu_hour), Some(190_000));
    let class = managed.rds.instances["db.r6g.large"];
    assert_eq!((usd(class.single_hour), usd(class.multi_hour)), (Some(258_000), Some(516_000)));
    assert_eq!(usd(managed.aurora.instances["db.r6g.large"].io_optimized_hour), Some(407_000));
}

const CSV: &str = "\"FormatVersion\",\"v1.0\"\n\"Disclaimer\",\"x\"\n\"Publication Date\",\"2026-09-30T12:00:00Z\"\n\"Version\",\"1\"\n\"OfferCode\",\"AmazonEC2\"\n\
\"SKU\",\"TermType\",\"Unit\",\"PricePerUnit\",\"Currency\",\"Product Family\",\"Region Code\",\"usageType\",\"Instance Type\"\n\
\"A\",\"OnDemand\",\"GB-Mo\",\"0.1190000000\",\"USD\",\"Storage\",\"eu-central-1\",\"EUC1-EBS:VolumeUsage.gp2\",\"\"\n\
\"B\",\"Reserved\",\"GB-Mo\",\"9.0000000000\",\"USD\",\"Storage\",\"eu-central-1\",\"EUC1-EBS:VolumeUsage.gp2\",\"\"\n";

#[test]
fn a_list_as_csv_is_read_too() {
    let list = read(CSV).unwrap();
    assert_eq!((list.region(), list.prices()), ("eu-central-1", 1));
    let mut catalog = Catalog::builtin();
    catalog.take_prices(&list).unwrap();
    let cost = catalog.prices(Some("eu-central-1")).unwrap().monthly_cost(&resolve("gp2:size=100GiB"));
    assert_eq!(cost.map(|cost| cost.usd.to_string()).as_deref(), Some("$11.90"));
}

#[test]
fn what_is_no_list_is_damaged_or_has_several_regions_is_refused() {
    for text in ["", "hello", "{\"a\": 1}", "[1]", "\"x\",\"y\"\n"] {
        assert!(matches!(read(text), Err(PriceListError::Unknown { .. })), "{text}");
    }
    let whole = ec2();
    let cut = &whole[..whole.len() - 900];
    let error = read(cut).unwrap_err().to_string();
    assert!(
        error.contains("list.json is damaged")
            && error.contains("line 1 column")
            && error.contains("read before it: "),
        "{error}"
    );
    let two = whole.replacen("eu-central-1", "eu-west-3", 1);
    let error = read(&two).unwrap_err().to_string();
    assert!(
        error.contains("has prices of eu-central-1, eu-west-3; expected the list of one region"),
        "{error}"
    );
    let nothing = json("AmazonEC2", &[("Data Transfer", &[FRANKFURT], "GB", "0.09")]);
    assert!(matches!(read(&nothing), Err(PriceListError::Nothing { .. })));
    let mut catalog = Catalog::builtin();
    let iops = json(
        "AmazonEC2",
        &[("System Operation", &[FRANKFURT, ("usagetype", "EUC1-EBS:VolumeP-IOPS.gp3")], "IOPS-Mo", "0.006")],
    );
    let error = catalog.take_prices(&read(&iops).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no price of storage"), "{error}");
}
