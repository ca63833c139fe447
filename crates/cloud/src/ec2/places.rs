//! Regions, zones, and what an account is told of itself.

use serde_json::{Map, Value, json};

use super::Ec2;
use super::access;
use super::ask::{Ask, Members};
use super::filter::{Filters, Tagged, Tags, one};
use super::refuse;
use crate::{ApiError, sigv4};

/// Regions that are enabled without being asked for, with the first part of their zones' ids and the letters of their
/// zones. In AWS, which letter has which id differs by account; here the first has `az1`.
const REGIONS: [(&str, &str, &str); 17] = [
    ("ap-northeast-1", "apne1", "acd"),
    ("ap-northeast-2", "apne2", "abcd"),
    ("ap-northeast-3", "apne3", "abc"),
    ("ap-south-1", "aps1", "abc"),
    ("ap-southeast-1", "apse1", "abc"),
    ("ap-southeast-2", "apse2", "abc"),
    ("ca-central-1", "cac1", "abd"),
    ("eu-central-1", "euc1", "abc"),
    ("eu-north-1", "eun1", "abc"),
    ("eu-west-1", "euw1", "abc"),
    ("eu-west-2", "euw2", "abc"),
    ("eu-west-3", "euw3", "abc"),
    ("sa-east-1", "sae1", "abc"),
    ("us-east-1", "use1", "abcdef"),
    ("us-east-2", "use2", "abc"),
    ("us-west-1", "usw1", "ac"),
    ("us-west-2", "usw2", "abcd"),
];

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    /// `us-east-1a`.
    pub(super) name: String,
    /// `use1-az1`.
    pub(super) id: String,
}

/// The zones of a region. A region that AWS does not have has three.
pub(super) fn zones(region: &str) -> Vec<Zone> {
    let (start, letters) = match REGIONS.iter().find(|(name, ..)| *name == region) {
        Some((_, start, letters)) => (*start, *letters),
        None => (region, "abc"),
    };
    let zone =
        |(number, letter)| Zone { name: format!("{region}{letter}"), id: format!("{start}-az{number}") };
    (1..).zip(letters.chars()).map(zone).collect()
}

/// Whether a region is one of those that AWS enables without being asked.
pub(crate) fn is_region(name: &str) -> bool {
    REGIONS.iter().any(|(region, ..)| *region == name)
}

/// The region of a zone by the zone's name.
pub(super) fn region_of(zone: &str) -> &str {
    zone.strip_suffix(|letter: char| letter.is_ascii_lowercase()).unwrap_or(zone)
}

/// Whether a text is the name of a zone of a region that the service answers for: `us-east-1a`.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    let region = region_of(name);
    sigv4::is_region(region) && zones(region).iter().any(|zone| zone.name == name)
}

/// The name of the first zone of a region.
#[must_use]
pub fn first_zone(region: &str) -> String {
    zones(region).into_iter().next().map(|zone| zone.name).unwrap_or_default()
}

/// The zone that a call names by name or by id; `required` refuses one without either.
pub(super) fn zone_of(ask: &Ask<'_>) -> Result<Option<Zone>, ApiError> {
    let named = |member| ask.input.text(member).filter(|text| !text.is_empty());
    let all = || zones(ask.region()).into_iter();
    match (named("AvailabilityZone"), named("AvailabilityZoneId")) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(refuse::invalid_combination(
            "AvailabilityZone and AvailabilityZoneId can't be used together. Specify only one of these parameters.",
        )),
        (Some(name), None) => {
            all().find(|zone| zone.name == name).map(Some).ok_or_else(|| refuse::zone_not_found(name))
        }
        (None, Some(id)) => {
            all().find(|zone| zone.id == id).map(Some).ok_or_else(|| refuse::zone_not_found(id))
        }
    }
}

/// The id of a zone by its name.
pub(super) fn zone_id(region: &str, name: &str) -> String {
    zones(region).into_iter().find(|zone| zone.name == name).map(|zone| zone.id).unwrap_or_default()
}

impl Ec2 {
    pub(super) fn describe_regions(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let filters = Filters::read(ask.input, &["endpoint", "opt-in-status", "region-name"], Tagged::No)?;
        let named = ask.input.texts("RegionNames");
        let known = |name: &str| is_region(name) || name == ask.region();
        if let Some(unknown) = named.iter().find(|name| !known(name)) {
            let message = format!("Invalid region parameter value: '[{unknown}]'");
            return Err(refuse::invalid_value(message));
        }
        let mut regions: Vec<&str> = REGIONS.iter().map(|(name, ..)| *name).collect();
        if !is_region(ask.region()) {
            regions.push(ask.region());
        }
        let none = Tags::new();
        let regions = regions.into_iter().filter(|name| named.is_empty() || named.contains(name));
        let regions = regions.filter(|name| {
            filters.pass(&none, |filter| match filter {
                "endpoint" => one(endpoint(name)),
                "opt-in-status" => one(OPT_IN),
                _ => one((*name).to_owned()),
            })
        });
        let regions: Value = regions
            .map(|name| json!({"RegionName": name, "Endpoint": endpoint(name), "OptInStatus": OPT_IN}))
            .collect();
        Ok(Members::default().put("Regions", regions).end())
    }

    pub(super) fn describe_availability_zones(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        const KNOWN: [&str; 11] = [
            "group-long-name",
            "group-name",
            "message",
            "opt-in-status",
            "parent-zone-id",
            "parent-zone-name",
            "region-name",
            "state",
            "zone-id",
            "zone-name",
            "zone-type",
        ];
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let filters = Filters::read(ask.input, &KNOWN, Tagged::No)?;
        let region = ask.region();
        let (names, ids) = (ask.input.texts("ZoneNames"), ask.input.texts("ZoneIds"));
        let all = zones(region);
        let unknown = |name: &&&str| !all.iter().any(|zone| zone.name == **name || zone.id == **name);
        if let Some(unknown) = names.iter().chain(&ids).find(unknown) {
            return Err(refuse::invalid_value(format!("Invalid availability zone: [{unknown}]")));
        }
        let none = Tags::new();
        let zones = all.iter().filter(|zone| names.is_empty() || names.contains(&zone.name.as_str()));
        let zones = zones.filter(|zone| ids.is_empty() || ids.contains(&zone.id.as_str()));
        let zones = zones.filter(|zone| {
            filters.pass(&none, |filter| match filter {
                "group-name" | "region-name" => one(region),
                "opt-in-status" => one(OPT_IN),
                "state" => one("available"),
                "zone-id" => one(zone.id.as_str()),
                "zone-name" => one(zone.name.as_str()),
                "zone-type" => one("availability-zone"),
                _ => Vec::new(),
            })
        });
        let zones: Value = zones
            .map(|zone| {
                json!({
                    "ZoneName": zone.name,
                    "ZoneId": zone.id,
                    "State": "available",
                    "RegionName": region,
                    "ZoneType": "availability-zone",
                    "GroupName": region,
                    "NetworkBorderGroup": region,
                    "OptInStatus": OPT_IN,
                    "Messages": [],
                })
            })
            .collect();
        Ok(Members::default().put("AvailabilityZones", zones).end())
    }

    pub(super) fn describe_account_attributes(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let instances = self.options.quotas.instances.to_string();
        let attributes = [
            ("default-vpc", super::DEFAULT_VPC),
            ("max-elastic-ips", "5"),
            ("max-instances", &instances),
            ("supported-platforms", "VPC"),
            ("vpc-max-elastic-ips", "5"),
            ("vpc-max-security-groups-per-interface", "5"),
        ];
        let named = ask.input.texts("AttributeNames");
        let known = |name: &str| attributes.iter().any(|(attribute, _)| *attribute == name);
        if let Some(unknown) = named.iter().find(|name| !known(name)) {
            return Err(refuse::unknown_value(unknown, "attributeName"));
        }
        let attributes = attributes.iter().filter(|(name, _)| named.is_empty() || named.contains(name));
        let attributes: Value = attributes
            .map(|(name, value)| {
                json!({"AttributeName": name, "AttributeValues": [{"AttributeValue": value}]})
            })
            .collect();
        Ok(Members::default().put("AccountAttributes", attributes).end())
    }
}

const OPT_IN: &str = "opt-in-not-required";

fn endpoint(region: &str) -> String {
    format!("ec2.{region}.{}", crate::partition::domain(region))
}

#[cfg(test)]
mod tests {
    use ebbtide_control::Owner;

    use super::*;

    #[test]
    fn a_zone_is_one_of_the_letters_of_its_region() {
        for zone in ["us-east-1a", "us-east-1f", "ap-northeast-1d", "us-gov-east-1c"] {
            assert!(is_zone(zone), "{zone}");
            assert_eq!(format!("{}{}", region_of(zone), &zone[zone.len() - 1..]), zone);
        }
        for other in ["", "a", "us-east-1", "us-east-1g", "ap-northeast-1b", "US-EAST-1a", "us-east-1-a"] {
            assert!(!is_zone(other), "{other}");
        }
    }

    #[test]
    fn the_owner_of_volumes_without_one_is_the_account_of_the_users_in_a_zone_that_exists() {
        let owner = Owner::default();
        assert_eq!(owner.account, crate::users::ACCOUNT);
        assert_eq!(owner.zone, first_zone("us-east-1"));
    }
}
