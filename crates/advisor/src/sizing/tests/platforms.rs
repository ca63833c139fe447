//! RDS and Aurora beside EC2, and the orders that change volumes.

use ebbtide_catalog::Catalog;
use ebbtide_catalog::price_list::PriceList;
use ebbtide_volume::GIB;

use super::{load, of_sides, volume};
use crate::sizing::managed::{AuroraIo, Platform, platforms};
use crate::sizing::{Demand, Objective, Space, change};

/// All platforms for an hour of so many operations a second on 500 GiB, with a volume on EC2 and an r6g.large.
fn beside_ec2(catalog: &Catalog, per_second: f64, spec: &str) -> Vec<Platform> {
    beside(catalog, per_second, spec, 500)
}

/// The same on so many GiB.
fn beside(catalog: &Catalog, per_second: f64, spec: &str, gib: u64) -> Vec<Platform> {
    let instance = catalog.instance("r6g.large").unwrap();
    let demand = Demand::of(&load(&[(per_second, 3_600.0)]), 1.0);
    let space = Space {
        catalog,
        prices: catalog.prices(None).unwrap(),
        demand: &demand,
        objective: Objective { size_bytes: gib * GIB, carried: 1.0, p99: None },
        most_members: 1,
        instance: Some(&instance),
        counts_allowance: false,
        too_little: None,
    };
    platforms(&space, &volume(spec), AuroraIo::of(&demand, None))
}

#[test]
fn the_platforms_cost_what_their_prices_add_up_to() {
    let catalog = Catalog::builtin();
    let all = beside_ec2(&catalog, 3_400.0, "gp3:size=500GiB,iops=3400");
    let find = |name: &str| all.iter().find(|one| one.name == name).unwrap();
    let usd = |amount: Option<ebbtide_catalog::Usd>| amount.map(|usd| usd.to_string()).unwrap_or_default();
    let ec2 = find("EC2 with EBS");
    // 0.08 x 500 + 0.005 x 400, and 0.1008 x 730.
    assert_eq!((usd(ec2.storage_usd), usd(ec2.instance_usd)), ("$42.00".into(), "$73.58".into()));
    assert_eq!(ec2.total_usd.map(|usd| usd[0].to_string()), Some("$115.58".into()));
    let rds = find("RDS, gp3");
    // 0.115 x 500, and 0.215 x 730.
    assert_eq!((usd(rds.storage_usd), usd(rds.instance_usd)), ("$57.50".into(), "$156.95".into()));
    assert_eq!(rds.total_usd.map(|usd| usd[0].to_string()), Some("$214.45".into()));
    assert!(
        rds.what.contains("12000 IOPS")
            && rds.with_standby_usd.is_none()
            && rds.missing.iter().any(|one| one.what == "an instance of db.r6g.large on RDS with a standby")
            && rds
                .notes
                .iter()
                .any(|note| note.starts_with("the instance's price is that of AWS's list of ")),
        "{rds:?}"
    );
    // 1,700 reads a second are 4,467.6 million a month; 27.85 MB/s written are at most 6,800 units of 4 KiB a second.
    let standard = find("Aurora Standard");
    assert_eq!(
        standard.io_usd.map(|usd| usd.map(|usd| usd.to_string())),
        Some(["$893.52".into(), "$4,467.60".into()])
    );
    assert_eq!((usd(standard.storage_usd), usd(standard.instance_usd)), ("$50.00".into(), "$189.80".into()));
    let optimized = find("Aurora I/O-Optimized");
    assert_eq!(optimized.io_usd, None);
    assert_eq!(optimized.total_usd.map(|usd| usd[1].to_string()), Some("$359.24".into()));
    let serverless = find("Aurora Serverless v2, I/O-Optimized");
    // 8 ACU x 0.16 x 730.
    assert_eq!(usd(serverless.instance_usd), "$934.40");
}

#[test]
fn a_sum_lacks_what_has_no_price_and_names_it() {
    let mut catalog = Catalog::builtin();
    // A list of AmazonRDS that prices the storage of Aurora and nothing else.
    let list = r#""FormatVersion","v1.0"
"Disclaimer","x"
"Publication Date","2026-09-30T12:00:00Z"
"Version","1"
"OfferCode","AmazonRDS"
"SKU","TermType","Unit","PricePerUnit","Currency","Product Family","Region Code","usageType"
"A","OnDemand","GB-Mo","0.1000000000","USD","Database Storage","us-east-1","Aurora:StorageUsage"
"#;
    catalog.take_prices(&PriceList::read("list", list.as_bytes()).unwrap()).unwrap();
    let all = beside_ec2(&catalog, 2_000.0, "gp3:size=500GiB");
    let lacks = |name: &str| {
        let one = all.iter().find(|one| one.name == name).unwrap();
        assert_eq!(one.total_usd, None, "{one:?}");
        one.missing.iter().map(|one| one.what.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        lacks("Aurora Standard"),
        ["I/O requests of Aurora Standard", "an instance of db.r6g.large on Aurora Standard"]
    );
    assert_eq!(
        lacks("Aurora Serverless v2"),
        ["I/O requests of Aurora Serverless v2", "an ACU of Aurora Serverless v2"]
    );
    assert_eq!(lacks("RDS, io2"), ["storage of RDS io2", "an instance of db.r6g.large on RDS"]);
    assert!(all[0].missing.is_empty() && all[0].total_usd.is_some(), "{:?}", all[0]);
}

#[test]
fn known_redo_makes_the_bill_of_aurora_exact() {
    let demand = Demand::of(&load(&[(2_000.0, 60.0)]), 1.0);
    let io = AuroraIo::of(&demand, Some(409_600.0)).unwrap();
    assert_eq!((io.least_writes, io.most_writes), (100.0 * 2_628_000.0, 100.0 * 2_628_000.0));
    assert_eq!(io.reads, 1_000.0 * 2_628_000.0);
}

#[test]
fn aurora_charges_each_direction_by_its_own_bytes() {
    let kib = 1_024.0;
    let month = 2_628_000.0;
    let io = |reads, writes| AuroraIo::of(&Demand::of(&of_sides(reads, writes, 300.0), 1.0), None).unwrap();
    // 1,000 pages, and 200 x 32 units of 4 KiB at most.
    let small_reads = io((1_000.0, 16.0 * kib), (200.0, 128.0 * kib));
    assert_eq!((small_reads.reads, small_reads.most_writes), (1_000.0 * month, 6_400.0 * month));
    // Reads of a MiB are 64 pages each; a direction may be alone.
    let large_reads = io((50.0, 1_024.0 * kib), (1_000.0, 4.0 * kib));
    assert_eq!((large_reads.reads, large_reads.most_writes), (3_200.0 * month, 1_000.0 * month));
    let alone = io((0.0, 0.0), (100.0, 16.0 * kib));
    assert_eq!((alone.reads, alone.least_writes, alone.most_writes), (0.0, 0.0, 400.0 * month));
}

#[test]
fn a_change_is_made_in_place_where_aws_allows_it_and_by_a_copy_where_not() {
    let plan = |today: Option<&str>, target: &str, instance| {
        change::plan("", today.map(volume).as_ref(), &volume(target), instance, &Catalog::builtin())
    };
    let in_place =
        plan(Some("gp2:size=500GiB"), "gp3:size=500GiB,iops=6000,throughput=250", Some("r6i.large"));
    assert_eq!(
        in_place.cli[0],
        "aws ec2 modify-volume --volume-id VOLUME_ID --volume-type gp3 --size 500 --iops 6000 --throughput 250"
    );
    assert!(in_place.cli.iter().any(|line| line.contains("--instance-type Value=r6i.large")), "{in_place:?}");
    for line in ["type              = \"gp3\"", "iops              = 6000", "throughput        = 250"] {
        assert!(in_place.terraform.iter().any(|own| own.trim() == line), "{in_place:?}");
    }
    let smaller = plan(Some("gp3:size=500GiB"), "gp3:size=200GiB", None);
    assert!(
        smaller.cli[0].starts_with("aws ec2 create-volume")
            && smaller.notes[0].contains("cannot be made smaller")
    );
    let array = plan(Some("gp3:size=500GiB"), "raid0(2x gp3:size=250GiB)", None);
    assert_eq!(array.cli.iter().filter(|line| line.contains("create-volume")).count(), 2);
    assert!(
        array
            .cli
            .iter()
            .any(|line| line.starts_with("mdadm --create /dev/md0 --level=0 --chunk=512K --raid-devices=2"))
    );
    let same = plan(Some("gp3:size=500GiB"), "gp3:size=500GiB,iops=3000", None);
    assert!(same.cli.is_empty() && same.notes[0].contains("nothing to change"), "{same:?}");
    let new = plan(None, "io2:size=100GiB,iops=2000", None);
    assert!(new.cli[0].contains("--volume-type io2 --size 100 --iops 2000"), "{new:?}");
}

#[test]
fn a_resource_of_terraform_has_the_name_of_the_volume_as_far_as_it_may() {
    let first_line = |name: &str| {
        let plan = change::plan(name, None, &volume("gp3:size=500GiB"), None, &Catalog::builtin());
        plan.terraform[0].clone()
    };
    for (name, resource) in [
        ("", "data"),
        ("vol-0123456789abcdef0", "vol-0123456789abcdef0"),
        ("fleet/db 1.eu", "fleet_db_1_eu_cfe557fd"),
        ("fleet/db_1.eu", "fleet_db_1_eu_d0880e92"),
        ("1st", "_1st_44990518"),
        ("-", "_-_af63a04c"),
    ] {
        assert_eq!(first_line(name), format!("resource \"aws_ebs_volume\" \"{resource}\" {{"));
    }
}

#[test]
fn rds_has_the_least_size_that_aws_sells_and_says_that_it_is_more_than_needed() {
    let catalog = Catalog::builtin();
    let rds = |gib: u64| {
        let all = beside(&catalog, 500.0, &format!("gp3:size={gib}GiB"), gib);
        ["RDS, gp3", "RDS, io2"].map(|name| {
            let one = all.iter().find(|one| one.name == name).unwrap().clone();
            (one.what, one.storage_usd.unwrap().to_string(), one.notes.join("; "))
        })
    };
    let [gp3, io2] = rds(10);
    // 0.115 x 20, and 0.125 x 100 + 0.10 x 1,000.
    assert_eq!((gp3.0.as_str(), gp3.1.as_str()), ("20 GiB, 3000 IOPS, 125 MiB/s", "$2.30"));
    assert!(gp3.2.contains("RDS sells gp3 from 20 GiB on, and 10 GiB are needed"), "{}", gp3.2);
    assert_eq!((io2.0.as_str(), io2.1.as_str()), ("100 GiB, 1000 IOPS", "$112.50"));
    assert!(io2.2.contains("RDS sells io2 from 100 GiB on"), "{}", io2.2);
    let [gp3, io2] = rds(100);
    assert!(gp3.0.starts_with("100 GiB") && io2.0.starts_with("100 GiB"), "{gp3:?} {io2:?}");
    assert!(!gp3.2.contains("RDS sells") && !io2.2.contains("RDS sells"), "{gp3:?} {io2:?}");
}
