//! The default VPC with a subnet for each zone and one security group: stand-ins, which tools look up before they start an
//! instance. Their ids are the same at each start, in every Region and account. Nothing can be changed of them.

use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::filter::{Filters, Tagged, Tags, Values, flag, one};
use super::page::{Page, Paging};
use super::places::{self, Zone};
use super::{DEFAULT_VPC as VPC, Ec2, access, refuse};
use crate::{ApiError, partition};

/// The VPC's security group.
pub(super) const GROUP: &str = "sg-00000000000000001";
pub(super) const GROUP_NAME: &str = "default";

/// AWS's range of a default VPC; each subnet has 4,096 addresses of it, of which AWS takes five.
const VPC_RANGE: &str = "172.31.0.0/16";
const SUBNET_ADDRESSES: u64 = 4_096 - 5;

const DHCP_OPTIONS: &str = "dopt-00000000000000001";

const PAGING_OF_VPCS: Paging = Paging::usual("vpcIdsSet");
const PAGING_OF_SUBNETS: Paging = Paging::usual("subnetIdsSet");
const PAGING_OF_GROUPS: Paging = Paging::usual("groupIdsSet");

const VPC_FILTERS: [&str; 11] = [
    "cidr",
    "cidr-block-association.association-id",
    "cidr-block-association.cidr-block",
    "cidr-block-association.state",
    "dhcp-options-id",
    "ipv6-cidr-block-association.ipv6-cidr-block",
    "is-default",
    "isDefault",
    "owner-id",
    "state",
    "vpc-id",
];

const SUBNET_FILTERS: [&str; 19] = [
    "availability-zone",
    "availabilityZone",
    "availability-zone-id",
    "availabilityZoneId",
    "available-ip-address-count",
    "cidr",
    "cidr-block",
    "cidrBlock",
    "default-for-az",
    "defaultForAz",
    "ipv6-native",
    "map-public-ip-on-launch",
    "outpost-arn",
    "owner-id",
    "state",
    "subnet-arn",
    "subnet-id",
    "vpc-id",
    "ipv6-cidr-block-association.ipv6-cidr-block",
];

const GROUP_FILTERS: [&str; 12] = [
    "description",
    "egress.ip-permission.cidr",
    "egress.ip-permission.protocol",
    "group-id",
    "group-name",
    "ip-permission.cidr",
    "ip-permission.group-id",
    "ip-permission.protocol",
    "ip-permission.from-port",
    "ip-permission.to-port",
    "owner-id",
    "vpc-id",
];

/// The place of a zone in its Region, from 0.
fn place(region: &str, zone: &str) -> usize {
    places::zones(region).iter().position(|own| own.name == zone).unwrap_or_default()
}

/// The subnet of a zone.
pub(super) fn subnet_of(region: &str, zone: &str) -> String {
    subnet_id(place(region, zone))
}

fn subnet_id(place: usize) -> String {
    format!("subnet-{:017}", place + 1)
}

/// The range of a zone's subnet: its third number, which is a multiple of 16.
pub(super) fn third_number(region: &str, zone: &str) -> usize {
    place(region, zone).min(15) * 16
}

/// The error of ids that are not those of the stand-ins; AWS names the first.
fn not_found(kind: &str, code: &'static str, id: &str) -> ApiError {
    ApiError::client(code, format!("The {kind} '{id}' does not exist"))
}

fn vpc(ask: &Ask<'_>) -> Value {
    json!({
        "VpcId": VPC,
        "OwnerId": ask.account(),
        "CidrBlock": VPC_RANGE,
        "CidrBlockAssociationSet": [{
            "AssociationId": "vpc-cidr-assoc-00000000000000001",
            "CidrBlock": VPC_RANGE,
            "CidrBlockState": {"State": "associated"},
        }],
        "DhcpOptionsId": DHCP_OPTIONS,
        "InstanceTenancy": "default",
        "IsDefault": true,
        "State": "available",
    })
}

fn vpc_values<'a>(ask: &'a Ask<'_>, name: &str) -> Values<'a> {
    match name {
        "cidr" | "cidr-block-association.cidr-block" => one(VPC_RANGE),
        "cidr-block-association.association-id" => one("vpc-cidr-assoc-00000000000000001"),
        "cidr-block-association.state" => one("associated"),
        "dhcp-options-id" => one(DHCP_OPTIONS),
        "is-default" | "isDefault" => one("true"),
        "owner-id" => one(ask.account()),
        "state" => one("available"),
        "vpc-id" => one(VPC),
        _ => Vec::new(),
    }
}

/// A subnet of the VPC.
struct Subnet {
    id: String,
    zone: Zone,
    range: String,
    arn: String,
}

fn subnets(ask: &Ask<'_>) -> Vec<Subnet> {
    let (region, account) = (ask.region(), ask.account());
    let start = format!("arn:{}:ec2:{region}:{account}:subnet", partition::of_region(region));
    let subnet = |(place, zone): (usize, Zone)| {
        let id = subnet_id(place);
        let range = format!("172.31.{}.0/20", third_number(region, &zone.name));
        Subnet { arn: format!("{start}/{id}"), id, zone, range }
    };
    places::zones(region).into_iter().enumerate().map(subnet).collect()
}

impl Subnet {
    fn row(&self, ask: &Ask<'_>) -> Value {
        json!({
            "SubnetId": self.id,
            "SubnetArn": self.arn,
            "OwnerId": ask.account(),
            "VpcId": VPC,
            "AvailabilityZone": self.zone.name,
            "AvailabilityZoneId": self.zone.id,
            "AvailableIpAddressCount": SUBNET_ADDRESSES,
            "CidrBlock": self.range,
            "DefaultForAz": true,
            "MapPublicIpOnLaunch": true,
            "MapCustomerOwnedIpOnLaunch": false,
            "AssignIpv6AddressOnCreation": false,
            "Ipv6CidrBlockAssociationSet": [],
            "Ipv6Native": false,
            "EnableDns64": false,
            "State": "available",
            "PrivateDnsNameOptionsOnLaunch": {
                "HostnameType": "ip-name",
                "EnableResourceNameDnsARecord": false,
                "EnableResourceNameDnsAAAARecord": false,
            },
        })
    }

    fn values<'a>(&'a self, ask: &'a Ask<'_>, name: &str) -> Values<'a> {
        match name {
            "availability-zone" | "availabilityZone" => one(self.zone.name.as_str()),
            "availability-zone-id" | "availabilityZoneId" => one(self.zone.id.as_str()),
            "available-ip-address-count" => one(SUBNET_ADDRESSES.to_string()),
            "cidr" | "cidr-block" | "cidrBlock" => one(self.range.as_str()),
            "default-for-az" | "defaultForAz" | "map-public-ip-on-launch" => one(flag(true)),
            "ipv6-native" => one(flag(false)),
            "owner-id" => one(ask.account()),
            "state" => one("available"),
            "subnet-arn" => one(self.arn.as_str()),
            "subnet-id" => one(self.id.as_str()),
            "vpc-id" => one(VPC),
            _ => Vec::new(),
        }
    }
}

fn group(ask: &Ask<'_>) -> Value {
    let (region, account) = (ask.region(), ask.account());
    json!({
        "GroupId": GROUP,
        "GroupName": GROUP_NAME,
        "SecurityGroupArn":
            format!("arn:{}:ec2:{region}:{account}:security-group/{GROUP}", partition::of_region(region)),
        "Description": "default VPC security group",
        "OwnerId": account,
        "VpcId": VPC,
        "IpPermissions": [{
            "IpProtocol": "-1",
            "IpRanges": [],
            "Ipv6Ranges": [],
            "PrefixListIds": [],
            "UserIdGroupPairs": [{"GroupId": GROUP, "UserId": account}],
        }],
        "IpPermissionsEgress": [{
            "IpProtocol": "-1",
            "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
            "Ipv6Ranges": [],
            "PrefixListIds": [],
            "UserIdGroupPairs": [],
        }],
    })
}

fn group_values<'a>(ask: &'a Ask<'_>, name: &str) -> Values<'a> {
    match name {
        "description" => one("default VPC security group"),
        "egress.ip-permission.cidr" => one("0.0.0.0/0"),
        "egress.ip-permission.protocol" | "ip-permission.protocol" => one("-1"),
        "group-id" | "ip-permission.group-id" => one(GROUP),
        "group-name" => one(GROUP_NAME),
        "owner-id" => one(ask.account()),
        "vpc-id" => one(VPC),
        _ => Vec::new(),
    }
}

/// The group of an instance, as answers have it.
pub(super) fn groups() -> Value {
    json!([{"GroupId": GROUP, "GroupName": GROUP_NAME}])
}

impl Ec2 {
    pub(super) fn describe_vpcs(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("VpcIds");
        let filters = Filters::read(ask.input, &VPC_FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &PAGING_OF_VPCS)?;
        if let Some(id) = ids.iter().find(|id| **id != VPC) {
            return Err(not_found("vpc ID", "InvalidVpcID.NotFound", id));
        }
        let none = Tags::new();
        let shown = filters.pass(&none, |name| vpc_values(ask, name));
        let (rows, next) = page.fill(ask.call.action, shown.then(|| (VPC, vpc(ask))).into_iter());
        Ok(Members::default().put("Vpcs", rows).put_some("NextToken", next).end())
    }

    pub(super) fn describe_vpc_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let id = ask.input.required("VpcId", "vpcId")?;
        let attribute = ask.input.required("Attribute", "attribute")?;
        if id != VPC {
            return Err(not_found("vpc ID", "InvalidVpcID.NotFound", id));
        }
        let (member, value) = match attribute {
            "enableDnsHostnames" => ("EnableDnsHostnames", true),
            "enableDnsSupport" => ("EnableDnsSupport", true),
            "enableNetworkAddressUsageMetrics" => ("EnableNetworkAddressUsageMetrics", false),
            other => return Err(refuse::unknown_value(other, "attribute")),
        };
        Ok(Members::default().put("VpcId", VPC).put(member, json!({"Value": value})).end())
    }

    pub(super) fn describe_subnets(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("SubnetIds");
        let filters = Filters::read(ask.input, &SUBNET_FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &PAGING_OF_SUBNETS)?;
        let all = subnets(ask);
        if let Some(id) = ids.iter().find(|id| !all.iter().any(|subnet| subnet.id == **id)) {
            return Err(not_found("subnet ID", "InvalidSubnetID.NotFound", id));
        }
        let none = Tags::new();
        let shown = all.iter().filter(|subnet| {
            (ids.is_empty() || ids.contains(&subnet.id.as_str()))
                && page.after.as_deref().is_none_or(|after| subnet.id.as_str() > after)
                && filters.pass(&none, |name| subnet.values(ask, name))
        });
        let rows = shown.map(|subnet| (subnet.id.as_str(), subnet.row(ask)));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Subnets", rows).put_some("NextToken", next).end())
    }

    pub(super) fn describe_security_groups(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let (ids, names) = (ask.input.texts("GroupIds"), ask.input.texts("GroupNames"));
        let filters = Filters::read(ask.input, &GROUP_FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &PAGING_OF_GROUPS)?;
        let unknown = ids.iter().find(|id| **id != GROUP).or(names.iter().find(|name| **name != GROUP_NAME));
        if let Some(unknown) = unknown {
            return Err(not_found("security group", "InvalidGroup.NotFound", unknown));
        }
        let none = Tags::new();
        let shown = filters.pass(&none, |name| group_values(ask, name));
        let (rows, next) = page.fill(ask.call.action, shown.then(|| (GROUP, group(ask))).into_iter());
        Ok(Members::default().put("SecurityGroups", rows).put_some("NextToken", next).end())
    }
}
