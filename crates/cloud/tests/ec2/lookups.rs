//! What tools look up before they start an instance: types and where they are offered, images, networks; and ARNs of other
//! partitions.

use ebbtide_catalog::Catalog;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{ACCOUNT, Rig, column, text};

fn by(filters: &[(&str, &str)]) -> Value {
    let filter = |(name, value): &(&str, &str)| json!({"Name": name, "Values": [value]});
    json!(filters.iter().map(filter).collect::<Vec<_>>())
}

#[test]
fn all_types_of_aws_are_described_in_pages_and_can_be_started() {
    let rig = Rig::new();
    let (mut names, mut token) = (Vec::new(), Value::Null);
    loop {
        let mut input = json!({"MaxResults": 100});
        if !token.is_null() {
            input["NextToken"] = token;
        }
        let page = rig.call("DescribeInstanceTypes", input);
        names.extend(column(&page["InstanceTypes"], "InstanceType"));
        token = page.get("NextToken").cloned().unwrap_or(Value::Null);
        if token.is_null() {
            break;
        }
    }
    let catalog = Catalog::builtin();
    assert!(names.iter().eq(catalog.instances().iter().map(|kind| &kind.name)));
    assert_eq!(names.len(), 1_373);
    for name in ["c5.9xlarge", "t2.micro", "m1.small", "mac2.metal", "u7in-32tb.224xlarge"] {
        let run = json!({"MinCount": 1, "MaxCount": 1, "InstanceType": name});
        let id = text(&rig.call("RunInstances", run)["Instances"][0]["InstanceId"]);
        rig.attach(&rig.volume(), &id, "/dev/sdf");
        rig.call("TerminateInstances", json!({"InstanceIds": [id]}));
    }
}

#[test]
fn types_are_found_by_what_tools_filter_by() {
    let rig = Rig::new();
    let found = |filters: &[(&str, &str)]| {
        column(
            &rig.call("DescribeInstanceTypes", json!({"Filters": by(filters)}))["InstanceTypes"],
            "InstanceType",
        )
    };
    let all = found(&[("network-info.efa-supported", "true"), ("instance-type", "c5n.*")]);
    assert_eq!(all, ["c5n.18xlarge", "c5n.9xlarge", "c5n.metal"]);
    let small = [
        ("vcpu-info.default-vcpus", "2"),
        ("memory-info.size-in-mib", "8192"),
        ("processor-info.supported-architecture", "arm64"),
        ("instance-storage-supported", "false"),
        ("instance-type", "m7g*"),
    ];
    assert_eq!(found(&small), ["m7g.large"]);
    assert_eq!(found(&[("ebs-info.ebs-optimized-support", "unsupported")]).len(), 19);
    let shown = rig.call("DescribeInstanceTypes", json!({"InstanceTypes": ["c5.9xlarge"]}))["InstanceTypes"]
        [0]
    .clone();
    assert_eq!(shown["NetworkInfo"]["MaximumNetworkInterfaces"], 8);
    assert_eq!(shown["PlacementGroupInfo"]["SupportedStrategies"], json!(["cluster", "partition", "spread"]));
    assert_eq!(shown["EbsInfo"]["EbsOptimizedInfo"]["BaselineIops"], 40_000);
    let micro =
        rig.call("DescribeInstanceTypes", json!({"InstanceTypes": ["t2.micro"]}))["InstanceTypes"][0].clone();
    assert_eq!(micro["EbsInfo"].get("EbsOptimizedInfo"), None, "AWS publishes none");
}

#[test]
fn each_type_is_offered_in_the_region_and_in_each_zone() {
    let rig = Rig::new();
    let offered =
        |input: Value| rig.call("DescribeInstanceTypeOfferings", input)["InstanceTypeOfferings"].clone();
    assert_eq!(offered(json!({})).as_array().unwrap().len(), 1_373);
    let m5 = |by_type: &str, more: &[(&str, &str)]| {
        let filters = [&[("instance-type", "m5.large")], more].concat();
        column(&offered(json!({"LocationType": by_type, "Filters": by(&filters)})), "Location")
    };
    assert_eq!(m5("availability-zone", &[]).len(), 6);
    assert_eq!(m5("availability-zone", &[("location", "us-east-1a")]), ["us-east-1a"]);
    assert_eq!(m5("availability-zone-id", &[("location", "use1-az2")]), ["use1-az2"]);
    assert_eq!(m5("region", &[]), ["us-east-1"]);
    assert!(m5("outpost", &[]).is_empty());
    let first = rig.call("DescribeInstanceTypeOfferings", json!({"MaxResults": 5}));
    let second =
        rig.call("DescribeInstanceTypeOfferings", json!({"MaxResults": 5, "NextToken": first["NextToken"]}));
    let names = [&first, &second].map(|page| column(&page["InstanceTypeOfferings"], "InstanceType")).concat();
    let known: Vec<_> = Catalog::builtin().instances()[..10].iter().map(|kind| kind.name.clone()).collect();
    assert_eq!(names, known);
}

#[test]
fn an_account_has_a_default_vpc_with_a_subnet_for_each_zone_and_a_group() {
    let rig = Rig::new();
    let vpc = rig.call("DescribeVpcs", json!({"Filters": by(&[("is-default", "true")])}))["Vpcs"][0].clone();
    assert_eq!((&vpc["IsDefault"], &vpc["OwnerId"]), (&json!(true), &json!(ACCOUNT)));
    assert_eq!(
        rig.call("DescribeVpcs", json!({"Filters": by(&[("is-default", "false")])}))["Vpcs"],
        json!([])
    );
    for attribute in ["enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics"] {
        rig.call("DescribeVpcAttribute", json!({"VpcId": vpc["VpcId"], "Attribute": attribute}));
    }
    let of_vpc = by(&[("vpc-id", vpc["VpcId"].as_str().unwrap())]);
    let subnets = rig.call("DescribeSubnets", json!({"Filters": of_vpc}))["Subnets"].clone();
    let zones = column(&subnets, "AvailabilityZone");
    assert_eq!(zones, ["a", "b", "c", "d", "e", "f"].map(|letter| format!("us-east-1{letter}")));
    let groups =
        rig.call("DescribeSecurityGroups", json!({"GroupNames": ["default"]}))["SecurityGroups"].clone();
    assert_eq!(column(&groups, "VpcId"), column(&json!([vpc]), "VpcId"));
    let run = json!({"MinCount": 1, "MaxCount": 1, "Placement": {"AvailabilityZone": "us-east-1c"}});
    let instance = rig.call("RunInstances", run)["Instances"][0].clone();
    assert_eq!(instance["SubnetId"], subnets[2]["SubnetId"]);
    assert!(instance["PrivateIpAddress"].as_str().unwrap().starts_with("172.31.3"), "{instance}");
    assert_eq!(instance["SecurityGroups"][0]["GroupId"], groups[0]["GroupId"]);
    assert_eq!(rig.code("DescribeVpcs", json!({"VpcIds": ["vpc-12345678"]})), "InvalidVpcID.NotFound");
    assert_eq!(
        rig.code("DescribeSubnets", json!({"SubnetIds": ["subnet-12345678"]})),
        "InvalidSubnetID.NotFound"
    );
    assert_eq!(rig.code("DescribeSecurityGroups", json!({"GroupNames": ["web"]})), "InvalidGroup.NotFound");
    let rig = rig.reopened();
    assert_eq!(rig.call("DescribeSubnets", json!({}))["Subnets"], subnets, "the same at each start");
}

fn images(rig: &Rig, owners: &[&str], filters: &[(&str, &str)]) -> Value {
    rig.call("DescribeImages", json!({"Owners": owners, "Filters": by(filters)}))["Images"].clone()
}

#[test]
fn images_are_found_by_owner_and_name_and_by_the_id_that_was_found() {
    let rig = Rig::new();
    for (owner, filters, architecture) in [
        ("amazon", &[("name", "al2023-ami-2023*-x86_64")][..], "x86_64"),
        ("amazon", &[("name", "amzn2-ami-minimal-hvm-*"), ("architecture", "arm64")], "arm64"),
        ("099720109477", &[("virtualization-type", "hvm"), ("architecture", "x86_64")], "x86_64"),
        ("099720109477", &[("name", "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-*")], "x86_64"),
        ("136693071363", &[("name", "debian-12-arm64-*")], "arm64"),
        ("amazon", &[("name", "amazon-eks-node-1.31-v*"), ("root-device-type", "ebs")], "x86_64"),
        ("602401143452", &[("name", "bottlerocket-aws-k8s-1.31-aarch64-*")], "arm64"),
        ("self", &[("name", "my-golden-image-v?")], "x86_64"),
        ("111122223333", &[("state", "available")], "x86_64"),
    ] {
        let found = images(&rig, &[owner], filters);
        let first = &found[0];
        assert_eq!(first["Architecture"], architecture, "{owner} {filters:?}: {found}");
        assert_eq!(first["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"], 8);
        let id = text(&first["ImageId"]);
        let again = rig.call("DescribeImages", json!({"ImageIds": [id]}))["Images"][0].clone();
        assert_eq!(
            (&again["ImageId"], &again["RootDeviceName"]),
            (&first["ImageId"], &first["RootDeviceName"])
        );
        assert_eq!(images(&rig, &[owner], filters), found, "the same in each call");
        rig.call("RunInstances", json!({"MinCount": 1, "MaxCount": 1, "ImageId": id}));
    }
    assert_eq!(images(&rig, &["self"], &[]), json!([]), "an account has no images that it does not name");
    assert_eq!(images(&rig, &["amazon"], &[("name", "x*"), ("tag:team", "a")]), json!([]));
    assert_eq!(images(&rig, &["amazon"], &[("name", "x*"), ("state", "failed")]), json!([]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_image_of_any_name_is_found_under_a_name_that_fits(pattern in "[a-z][a-z0-9*?/_.-]{0,30}") {
        let rig = rig();
        let found = images(rig, &["amazon"], &[("name", &pattern)]);
        prop_assert!(!found.as_array().unwrap().is_empty(), "{}", pattern);
        // The same filter finds it among others, so its name fits.
        let again = images(rig, &["amazon"], &[("name", &pattern), ("image-id", found[0]["ImageId"].as_str().unwrap())]);
        prop_assert_eq!(&again[0]["Name"], &found[0]["Name"]);
    }
}

fn rig() -> &'static Rig {
    static RIG: std::sync::OnceLock<Rig> = std::sync::OnceLock::new();
    RIG.get_or_init(Rig::new)
}

#[test]
fn arns_have_the_partition_of_their_region() {
    let rig = Rig::new();
    for (region, partition) in
        [("us-east-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
    {
        let call = |action: &str, input: Value| rig.try_as(ACCOUNT, region, action, &input).unwrap();
        let volume = call("CreateVolume", json!({"AvailabilityZone": format!("{region}a"), "Size": 1}));
        call("CreateSnapshot", json!({"VolumeId": volume["VolumeId"]}));
        let start = format!("arn:{partition}:ec2:{region}:");
        let asked = std::mem::take(&mut *rig.rights.asked.lock().unwrap());
        let named = || asked.iter().filter(|access| access.resource != "*");
        assert!(
            named().count() >= 3 && named().all(|access| access.resource.starts_with(&start)),
            "{asked:?}"
        );
        let subnet = call("DescribeSubnets", json!({}))["Subnets"][0]["SubnetArn"].clone();
        assert!(subnet.as_str().unwrap().starts_with(&start), "{subnet}");
    }
}

#[test]
fn values_that_an_enumeration_does_not_have_are_refused_by_their_parameter() {
    let rig = Rig::new();
    let run = |more: Value| {
        let mut input = json!({"MinCount": 1, "MaxCount": 1, "DryRun": true});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    for (action, input, parameter) in [
        ("DescribeInstanceTypeOfferings", json!({"LocationType": "zone"}), "locationType"),
        ("DescribeVpcAttribute", json!({"VpcId": "vpc-00000000000000001", "Attribute": "dns"}), "attribute"),
        ("RunInstances", run(json!({"Placement": {"Tenancy": "shared"}})), "tenancy"),
        (
            "RunInstances",
            run(json!({"InstanceInitiatedShutdownBehavior": "reboot"})),
            "instanceInitiatedShutdownBehavior",
        ),
        ("RunInstances", run(json!({"MetadataOptions": {"HttpTokens": "maybe"}})), "httpTokens"),
        ("CreateSnapshot", json!({"VolumeId": rig.volume(), "Location": "moon"}), "location"),
    ] {
        let refused = rig.refused(action, input.clone());
        assert_eq!(refused.code, "InvalidParameterValue", "{action} {input}");
        assert!(
            refused.message.ends_with(&format!("for parameter {parameter} is invalid.")),
            "{}",
            refused.message
        );
    }
    // The values that it has are accepted.
    let fine =
        run(json!({"Placement": {"Tenancy": "default"}, "MetadataOptions": {"HttpTokens": "required"}}));
    assert_eq!(rig.code("RunInstances", fine), "DryRunOperation");
}
