//! Regions, zones and account attributes.

use serde_json::json;

use crate::support::{ACCOUNT, Rig, column};

#[test]
fn regions_and_zones_are_described_and_filtered() {
    let rig = Rig::new();
    let regions = rig.call("DescribeRegions", json!({}))["Regions"].clone();
    let names = column(&regions, "RegionName");
    assert_eq!(names.len(), 17);
    assert_eq!(regions[0]["Endpoint"], format!("ec2.{}.amazonaws.com", names[0]));
    let eu = json!({"Filters": [{"Name": "region-name", "Values": ["eu-*"]}]});
    assert_eq!(column(&rig.call("DescribeRegions", eu)["Regions"], "RegionName").len(), 5);
    let zones = rig.call("DescribeAvailabilityZones", json!({}))["AvailabilityZones"].clone();
    assert_eq!(column(&zones, "ZoneName").len(), 6);
    assert_eq!(zones[0]["ZoneId"], "use1-az1");
    let one = rig.call("DescribeAvailabilityZones", json!({"ZoneIds": ["use1-az3"]}));
    assert_eq!(column(&one["AvailabilityZones"], "ZoneName"), ["us-east-1c"]);
    let dry = rig.refused("DescribeAvailabilityZones", json!({"DryRun": true}));
    assert_eq!((&*dry.code, dry.status), ("DryRunOperation", 412));
    // A region of one's own has zones, too.
    let own = rig.try_as(ACCOUNT, "local", "DescribeAvailabilityZones", &json!({})).unwrap();
    assert_eq!(column(&own["AvailabilityZones"], "ZoneName"), ["locala", "localb", "localc"]);
}

#[test]
fn account_attributes_can_be_named() {
    let rig = Rig::new();
    let all = rig.call("DescribeAccountAttributes", json!({}))["AccountAttributes"].clone();
    assert_eq!(all.as_array().unwrap().len(), 6);
    let one = rig.call("DescribeAccountAttributes", json!({"AttributeNames": ["max-instances"]}));
    assert_eq!(one["AccountAttributes"][0]["AttributeValues"], json!([{"AttributeValue": "20"}]));
}
