//! What volumes cost, against worked examples of others.

use ebbtide_catalog::{Catalog, CatalogError, Charged, MonthlyCost, Usd};

use crate::support::{resolve, spec};

fn cost_in(region: &str, text: &str) -> MonthlyCost {
    let catalog = Catalog::builtin();
    let cost = catalog.prices(Some(region)).unwrap().monthly_cost(&resolve(text));
    cost.unwrap_or_else(|| panic!("{text} has no price"))
}

fn usd(region: &str, text: &str) -> String {
    cost_in(region, text).usd.to_string()
}

/// infracost, `ebs_volume_test.golden`: sizes, IOPS and throughputs of its `ebs_volume_test.tf` with its sums. Its
/// io1 and io2 have 300 IOPS on 30 GiB; its gp3 is in us-west-2. Where it has sizes that the type does not allow any
/// more (st1 of 40 GiB, sc1 of 50 GiB), the size here is the smallest, and the sum its price times that.
#[test]
fn a_month_costs_what_infracost_calculates() {
    for (region, text, sum) in [
        ("us-east-1", "gp2:size=10GiB", "$1.00"),
        ("us-east-1", "standard:size=20GiB", "$1.00"),
        ("us-east-1", "io1:size=30GiB,iops=300", "$23.25"), // 3.75 + 19.50
        ("us-east-1", "io2:size=30GiB,iops=300", "$23.25"), // 3.75 + 19.50
        ("us-west-2", "gp3:size=40GiB,iops=4000,throughput=130", "$8.40"), // 3.20 + 5.00 + 0.20
        ("us-east-1", "st1:size=125GiB", "$5.63"),          // 125 x 0.045 = 5.625
        ("us-east-1", "sc1:size=125GiB", "$1.88"),          // 125 x 0.015 = 1.875
    ] {
        assert_eq!(usd(region, text), sum, "{text} in {region}");
    }
    let standard = cost_in("us-east-1", "standard:size=20GiB");
    assert_eq!(standard.usd_per_million_io, Some("0.05".parse().unwrap()), "on top of it");
}

#[test]
fn the_parts_of_a_cost_are_reported_and_add_up() {
    let cost = cost_in("us-west-2", "gp3:size=40GiB,iops=4000,throughput=130");
    let parts: Vec<_> = cost
        .charges
        .iter()
        .map(|part| (part.what, part.provisioned, part.charged, part.usd.to_string()))
        .collect();
    let part = |what, provisioned, charged, usd: &str| (what, provisioned, charged, usd.to_owned());
    assert_eq!(
        parts,
        [
            part(Charged::Storage, 40, 40, "$3.20"),
            part(Charged::Iops, 4000, 1000, "$5.00"),
            part(Charged::Throughput, 130, 5, "$0.20"),
        ]
    );
    assert_eq!((cost.region.as_str(), cost.as_of.as_str()), ("us-west-2", "2026-10-06"));
    assert!(cost.source.contains("AWS Price List"), "{}", cost.source);
    assert_eq!(cost.usd_per_million_io, None);
}

/// The first example of aws.eu/ebs/pricing (read 2026-11): 2,000 GB of gp3 with 10,000 IOPS for 12 hours of a month of
/// 30 days come to EUR 3.13133 of storage, which is a sixtieth of the month here. Its prices are in euros, so that an
/// override brings them.
#[test]
fn a_month_is_sixty_times_the_half_day_of_awss_own_example() {
    let text = "[[override]]\nregion = \"example\"\ntype = \"gp3\"\nreason = \"r\"\nsource = \"s\"\ndate = \"2026-11-22\"\n\
                set = { gb_month = \"0.09394\", iops_month = [{ above = 3000, usd = \"0.00592\" }],\n\
                gibps_month = [{ above_mib_s = 125, usd = \"48.128\" }] }\n";
    let catalog = Catalog::with_overrides_text("user.toml", text).unwrap();
    let resolved = catalog.resolve(&spec("gp3:size=2000GiB,iops=10000,throughput=500")).unwrap();
    let cost = catalog.prices(Some("example")).unwrap().monthly_cost(&resolved).unwrap();
    let [storage, iops, _] = cost.charges.as_slice() else { panic!("{cost:?}") };
    let half_day = |usd: Usd| usd.micros() as f64 / 1e6 * 43_200.0 / (86_400.0 * 30.0);
    assert_eq!(format!("{:.5}", half_day(storage.usd)), "3.13133");
    assert_eq!((iops.charged, iops.usd), (7_000, "41.44".parse().unwrap()));
}

#[test]
fn io2_gets_cheaper_at_32_000_and_64_000_iops() {
    let iops = |count: u64| {
        let cost = cost_in("us-east-1", &format!("io2:size=1000GiB,iops={count}"));
        cost.charges[1].usd.micros()
    };
    assert_eq!(iops(32_000), 2_080_000_000, "32,000 x 0.065");
    assert_eq!(iops(32_001), 2_080_045_500, "and 0.0455");
    assert_eq!(iops(64_000), 3_536_000_000, "and 32,000 x 0.0455");
    assert_eq!(iops(64_001), 3_536_031_850, "and 0.03185");
    assert_eq!(iops(256_000), 9_651_200_000, "and 192,000 x 0.03185");
    assert_eq!(usd("us-east-1", "io1:size=1280GiB,iops=64000"), "$4,320.00", "io1 does not");
}

#[test]
fn what_the_storage_includes_costs_nothing() {
    assert_eq!(usd("us-east-1", "gp3:size=100GiB"), "$8.00");
    assert_eq!(usd("us-east-1", "gp3:size=100GiB,iops=3000,throughput=125"), "$8.00");
    assert_eq!(usd("us-east-1", "gp3:size=100GiB,iops=3001,throughput=126"), "$8.05", "8.045, half up");
    assert_eq!(cost_in("us-east-1", "gp3:size=100GiB").charges.len(), 1);
}

#[test]
fn an_array_costs_what_its_volumes_cost_together_and_is_rounded_once() {
    assert_eq!(usd("us-east-1", "sc1:size=125GiB"), "$1.88", "1.875");
    assert_eq!(usd("us-east-1", "raid0(4x sc1:size=125GiB)"), "$7.50", "4 x 1.875, not 4 x 1.88");
    let array = cost_in("us-east-1", "raid0(2x gp3:size=250GiB,iops=6000,throughput=250)");
    assert_eq!(array.usd.to_string(), "$80.00", "2 x (20 + 15 + 5)");
    assert_eq!(array.charges[1].charged, 6_000, "of both");
    assert_eq!(usd("us-east-1", "raid0(128x io2:size=64TiB,iops=256000)"), "$2,283,929.60");
}

#[test]
fn a_cost_is_reported_in_a_cell_and_in_a_line() {
    let gp3 = cost_in("eu-west-1", "gp3:size=500GiB,iops=6000,throughput=250");
    assert_eq!(
        gp3.line(),
        "$66.00 a month: 500 GiB $44.00, 3000 of 6000 IOPS $16.50, 125 of 250 MiB/s $5.50 (eu-west-1, prices of \
         2026-10-06)"
    );
    assert_eq!(gp3.short(), "$66.00");
    let standard = cost_in("us-east-1", "standard:size=20GiB");
    assert_eq!(standard.short(), "$1.00 + I/O");
    assert_eq!(
        standard.line(),
        "$1.00 a month: 20 GiB $1.00, and $0.05 per million I/O requests (us-east-1, prices of 2026-10-06)"
    );
}

#[test]
fn the_json_of_a_cost_is_a_stable_shape_and_reads_back() {
    let cost = cost_in("us-east-1", "io2:size=100GiB,iops=3000");
    let json = serde_json::to_value(&cost).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "usd": 207.5, "region": "us-east-1", "as_of": "2026-10-06", "source": cost.source, "overridden": null,
            "charges": [
                { "what": "storage", "provisioned": 100, "charged": 100, "usd": 12.5 },
                { "what": "iops", "provisioned": 3000, "charged": 3000, "usd": 195.0 },
            ],
            "usd_per_million_io": null,
        })
    );
    assert_eq!(serde_json::from_value::<MonthlyCost>(json).unwrap(), cost);
}

#[test]
fn a_region_has_its_own_prices() {
    let text = "gp3:size=500GiB,iops=6000,throughput=250";
    let sums = ["us-east-1", "us-west-2", "eu-west-1", "ap-northeast-1"].map(|region| usd(region, text));
    // 500 x 0.088 + 3000 x 0.0055 + 125 x 0.044; 500 x 0.096 + 3000 x 0.006 + 125 x 0.048
    assert_eq!(sums, ["$60.00", "$60.00", "$66.00", "$72.00"]);
    let catalog = Catalog::builtin();
    assert_eq!(catalog.prices(None).unwrap().region(), "us-east-1");
    assert_eq!(catalog.prices(None).unwrap().monthly_cost(&resolve(text)).unwrap().region, "us-east-1");
}

#[test]
fn a_region_without_prices_is_refused_and_those_with_some_are_named() {
    let catalog = Catalog::builtin();
    let error = catalog.prices(Some("eu-west-9")).unwrap_err();
    assert!(matches!(error, CatalogError::UnknownRegion { .. }));
    assert_eq!(
        error.to_string(),
        "there are no prices for region 'eu-west-9' (did you mean 'eu-west-1'?); there are some for \
         ap-northeast-1, eu-west-1, us-east-1, us-west-2"
    );
    assert!(error.hint().unwrap().contains("overrides file"));
}

#[test]
fn only_what_aws_rents_out_as_a_volume_has_a_price() {
    let catalog = Catalog::builtin();
    let prices = catalog.prices(None).unwrap();
    let priced = |text: &str| prices.monthly_cost(&resolve(text)).is_some();
    for text in
        ["ideal", "nvme", "sas-ssd", "sata-ssd", "sas-hdd-15k", "instance-store:i3en.large", "raid0(2x nvme)"]
    {
        assert!(!priced(text), "{text}");
    }
    let elsewhere = catalog.prices(Some("eu-west-1")).unwrap();
    assert!(elsewhere.monthly_cost(&resolve("standard:size=10GiB")).is_none(), "no source for its I/O there");
    assert_eq!(usd("us-east-1", "gp2@2016:size=100GiB"), "$10.00", "old limits at today's price");
}

/// Price list of 2026-07-28: Standard 0.10 a GB and 0.20 a million I/Os, I/O-Optimized 0.225 and no I/O.
#[test]
fn aurora_costs_its_storage_once_and_its_ios_where_they_are_billed() {
    let costs = [
        ("aurora-pages", "$10.00", Some("0.20")),
        ("aurora-log", "$0.00", Some("0.20")),
        ("aurora-enhanced-binlog", "$10.00", Some("0.20")),
        ("aurora-pages-io-optimized", "$22.50", None),
        ("aurora-log-io-optimized", "$0.00", None),
        ("aurora-enhanced-binlog-io-optimized", "$22.50", None),
    ];
    for (kind, sum, million) in costs {
        let cost = cost_in("us-east-1", &format!("{kind}:size=100GiB"));
        assert_eq!(cost.usd.to_string(), sum, "{kind}");
        assert_eq!(cost.usd_per_million_io, million.map(|usd| usd.parse().unwrap()), "{kind}");
    }
}

#[test]
fn every_price_has_its_source_and_every_ebs_type_its_price() {
    let catalog = Catalog::builtin();
    for region in catalog.regions() {
        let prices = catalog.prices(Some(region)).unwrap();
        for (kind, provenance) in prices.provenance() {
            assert!(provenance.source.len() >= 40 && provenance.date.len() == 10, "{kind} in {region}");
            assert!(provenance.date.as_str() > "2026-06-30", "{kind} in {region} is of {}", provenance.date);
        }
    }
    let prices = catalog.prices(None).unwrap();
    let priced: Vec<_> = prices.provenance().map(|(kind, _)| kind.to_owned()).collect();
    let ebs: Vec<_> = priced.iter().filter(|kind| !kind.starts_with("aurora")).collect();
    assert_eq!(ebs, ["gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"]);
    assert_eq!(priced.len() - ebs.len(), 6, "pages, log and enhanced binary log, in two forms of billing");
}

const OWN: &str = r#"
default_region = "us-east-1-contract"

[[override]]
region = "us-east-1-contract"
like = "us-east-1"
reason = "our contract"
source = "private pricing addendum 7"
date = "2026-11-01"

[[override]]
region = "us-east-1-contract"
type = "gp3"
reason = "our contract, gp3"
source = "private pricing addendum 8"
date = "2026-11-02"
set = { gb_month = "0.06" }

[[override]]
type = "my-gp3"
like = "gp3"
reason = "measured on vol-1"
source = "fio"
date = "2026-11-02"
set = { size_gib = [1, 100] }
"#;

#[test]
fn a_user_brings_prices_of_their_own() {
    let catalog = Catalog::with_overrides_text("user.toml", OWN).unwrap();
    let prices = catalog.prices(None).unwrap();
    let cost = |text: &str| prices.monthly_cost(&catalog.resolve(&spec(text)).unwrap()).unwrap();
    let gp3 = cost("gp3:size=100GiB,iops=4000");
    assert_eq!(gp3.usd.to_string(), "$11.00", "100 x 0.06, and 1,000 x 0.005 as before");
    assert_eq!((gp3.as_of.as_str(), gp3.source.as_str()), ("2026-11-02", "private pricing addendum 8"));
    assert_eq!(gp3.overridden.as_deref(), Some("our contract, gp3"));
    assert_eq!(cost("gp2:size=100GiB").source, "private pricing addendum 7");
    assert_eq!(
        cost("my-gp3:size=100GiB").usd.to_string(),
        "$6.00",
        "a type made from gp3 costs what gp3 does"
    );
    let builtin = catalog.prices(Some("us-east-1")).unwrap();
    let gp3 = builtin.monthly_cost(&resolve("gp3:size=100GiB")).unwrap();
    assert_eq!((gp3.usd.to_string().as_str(), gp3.overridden), ("$8.00", None), "the built-in one stays");
}

#[test]
fn prices_that_make_no_sense_are_refused() {
    let entry =
        |body: &str| format!("[[override]]\nreason = \"r\"\nsource = \"s\"\ndate = \"2026-11-20\"\n{body}\n");
    let gp3 = "region = \"us-east-1\"\ntype = \"gp3\"\n";
    let new = "region = \"mars-1\"\n";
    for (body, part) in [
        (format!("{gp3}set = {{ gb_month = 0.08 }}"), "expected a string"),
        (format!("{gp3}set = {{ gb_month = \"8 cents\" }}"), "'8 cents' is not a price"),
        (format!("{gp3}set = {{ gb_month = \"0\" }}"), "a price of zero"),
        (format!("{gp3}set = {{ gb_week = \"1\" }}"), "unknown field `gb_week`"),
        (
            format!(
                "{gp3}set = {{ iops_month = [{{ above = 9, usd = \"1\" }}, {{ above = 9, usd = \"1\" }}] }}"
            ),
            "tiers of IOPS do not rise: [9, 9]",
        ),
        (
            format!("{gp3}set = {{ iops_month = [] }}"),
            "IOPS has no price, but the type lets one provision IOPS",
        ),
        (
            "region = \"us-east-1\"\ntype = \"gp2\"\nset = { iops_month = [{ above = 0, usd = \"1\" }] }"
                .into(),
            "the type does not let one provision IOPS",
        ),
        (
            "region = \"us-east-1\"\ntype = \"nvme\"\nset = { gb_month = \"1\" }".into(),
            "no EBS type of this name",
        ),
        (format!("{new}type = \"gp2\""), "has no price of storage"),
        (new.to_owned(), "give type"),
        (format!("{new}like = \"venus-1\""), "there are no prices for 'venus-1'"),
        (format!("{new}like = \"venus-1\"\ntype = \"gp2\""), "gp2 has no price in 'venus-1'"),
        ("region = \"us-east-1\"\nlike = \"us-west-2\"".into(), "has prices already"),
        (format!("{new}instance = \"r5.large\""), "give either"),
        (format!("{gp3}service = {{ read = [[0, 1]] }}"), "no service times"),
    ] {
        let error = Catalog::with_overrides_text("user.toml", &entry(&body)).unwrap_err().to_string();
        assert!(error.contains(part), "{body}\n{error}");
    }
    let error = Catalog::with_overrides_text("user.toml", "default_region = \"mars-1\"").unwrap_err();
    assert!(
        error.to_string().contains("default region 'mars-1': there are prices for ap-northeast-1"),
        "{error}"
    );
}

#[test]
fn an_instance_class_is_a_known_instance_and_costs_more_than_it_in_proportion_to_its_size() {
    let catalog = Catalog::builtin();
    let prices = catalog.prices(Some("us-east-1")).unwrap();
    let managed = prices.managed().unwrap();
    let rds = managed.rds.instances.iter().map(|(class, price)| (class, price.single_hour.unwrap()));
    let aurora = managed.aurora.instances.iter().map(|(class, price)| (class, price.standard_hour.unwrap()));
    for (class, hour) in rds.chain(aurora) {
        let instance = catalog.instance(class).unwrap_or_else(|error| panic!("{class}: {error}"));
        let alone = prices.instance(class).unwrap_or_else(|| panic!("{class} has no price on EC2"));
        let ratio = hour.micros() as f64 / alone.usd_hour.micros() as f64;
        assert!((1.4..2.7).contains(&ratio), "{class}: {ratio} of {}", instance.name);
    }
    for family in ["r5", "r6g", "r6i", "r7g", "m5", "m6i"] {
        let class = |size: &str| managed.rds.instances[&format!("db.{family}.{size}")];
        let micros = |size: &str| class(size).single_hour.unwrap().micros() as f64;
        let ratio = micros("2xlarge") / micros("large");
        assert!((ratio / 4.0 - 1.0).abs() < 0.005, "{family}: {ratio}");
    }
    assert_eq!(managed.rds.instances["db.r5.2xlarge"].single_hour.map(Usd::micros), Some(960_000));
    assert_eq!(managed.aurora.instances["db.r5.2xlarge"].standard_hour.map(Usd::micros), Some(1_160_000));
}
