//! Partitions of AWS: groups of regions whose ARNs and domains begin and end differently (botocore 1.44.5,
//! `data/partitions.json`).

/// What the names of a partition's regions begin with, its name in ARNs, and the end of its domains.
const PARTITIONS: [(&str, &str, &str); 7] = [
    ("cn-", "aws-cn", "amazonaws.com.cn"),
    ("us-gov-", "aws-us-gov", "amazonaws.com"),
    ("us-iso-", "aws-iso", "c2s.ic.gov"),
    ("us-isob-", "aws-iso-b", "sc2s.sgov.gov"),
    ("us-isof-", "aws-iso-f", "csp.hci.ic.gov"),
    ("eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"),
    ("eusc-", "aws-eusc", "amazonaws.eu"),
];

fn found(region: &str) -> (&'static str, &'static str) {
    let known = PARTITIONS.iter().find(|(start, ..)| region.starts_with(start));
    known.map_or(("aws", "amazonaws.com"), |(_, name, domain)| (name, domain))
}

/// The partition of a region, as its ARNs have it.
pub(crate) fn of_region(region: &str) -> &'static str {
    found(region).0
}

/// The end of the domains of a region's partition.
pub(crate) fn domain(region: &str) -> &'static str {
    found(region).1
}

/// What is behind `arn:PARTITION:SERVICE::` in an ARN without a region, of whichever partition.
pub(crate) fn global_arn<'a>(arn: &'a str, service: &str) -> Option<&'a str> {
    let (partition, rest) = arn.strip_prefix("arn:")?.split_once(':')?;
    let is_known = partition == "aws" || PARTITIONS.iter().any(|(_, name, _)| *name == partition);
    rest.strip_prefix(service)?.strip_prefix("::").filter(|_| is_known)
}

/// Whether two ARNs name the same, the partition apart.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let behind = |arn| str::split_once(str::strip_prefix(arn, "arn:")?, ':').map(|(_, rest)| rest);
    one == other || behind(one).is_some_and(|rest| behind(other) == Some(rest))
}

/// An ARN of the partition `aws`, in that of a region.
pub(crate) fn moved(arn: &str, region: &str) -> String {
    match arn.strip_prefix("arn:aws:") {
        Some(rest) => format!("arn:{}:{rest}", of_region(region)),
        None => arn.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_of_the_partition_that_their_names_begin_with() {
        for (region, partition, end) in [
            ("us-east-1", "aws", "amazonaws.com"),
            ("eu-central-2", "aws", "amazonaws.com"),
            ("cn-north-1", "aws-cn", "amazonaws.com.cn"),
            ("cn-northwest-1", "aws-cn", "amazonaws.com.cn"),
            ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
            ("us-iso-east-1", "aws-iso", "c2s.ic.gov"),
            ("us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"),
            ("eusc-de-east-1", "aws-eusc", "amazonaws.eu"),
        ] {
            assert_eq!((of_region(region), domain(region)), (partition, end), "{region}");
        }
    }

    #[test]
    fn arns_without_a_region_are_read_in_every_partition_and_moved_to_one() {
        assert_eq!(global_arn("arn:aws:iam::1:user/a", "iam"), Some("1:user/a"));
        assert_eq!(global_arn("arn:aws-cn:iam::1:root", "iam"), Some("1:root"));
        assert_eq!(global_arn("arn:aws-no:iam::1:root", "iam"), None);
        assert_eq!(global_arn("arn:aws:sts::1:x", "iam"), None);
        assert_eq!(moved("arn:aws:iam::1:user/a", "cn-north-1"), "arn:aws-cn:iam::1:user/a");
        assert!(is_same("arn:aws:iam::1:user/a", "arn:aws-cn:iam::1:user/a"));
        assert!(!is_same("arn:aws:iam::1:user/a", "arn:aws:iam::1:user/b") && !is_same("a", "b"));
        assert_eq!(moved("arn:aws:iam::1:user/a", "us-east-1"), "arn:aws:iam::1:user/a");
    }
}
