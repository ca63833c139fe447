//! DescribeImages: every image is one stand-in, so that what describes an instance finds its image.

use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::devices::ROOT_DEVICE;
use super::filter::{Filters, Tagged, Tags, Values, one};
use super::page::{Page, Paging};
use super::{Ec2, access, refuse};
use crate::ApiError;

/// The image of an instance whose call names none: a stand-in has no image.
pub(super) const DEFAULT_IMAGE: &str = "ami-00000000000000001";

const NAME: &str = "ebbtide-stand-in";

/// The owner of the stand-in: AWS's account of images of Amazon Linux.
const OWNER: &str = "137112412989";

/// When the stand-in was made.
const CREATED: &str = "2026-01-01T00:00:00.000Z";

const FILTERS: [&str; 17] = [
    "architecture",
    "creation-date",
    "description",
    "ena-support",
    "hypervisor",
    "image-id",
    "image-type",
    "is-public",
    "name",
    "owner-alias",
    "owner-id",
    "platform",
    "root-device-name",
    "root-device-type",
    "state",
    "virtualization-type",
    "product-code",
];

/// Refuses what has not the form of an image's id.
pub(super) fn check(id: &str) -> Result<(), ApiError> {
    let digits = id.strip_prefix("ami-").unwrap_or_default();
    let is_id = matches!(digits.len(), 8 | 17)
        && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_id {
        return Ok(());
    }
    let message = format!("Invalid id: \"{id}\" (expecting \"ami-...\")");
    Err(ApiError::client("InvalidAMIID.Malformed", message))
}

fn row(id: &str) -> Value {
    json!({
        "ImageId": id,
        "ImageLocation": format!("amazon/{NAME}"),
        "ImageType": "machine",
        "Name": NAME,
        "Description": "A stand-in: an instance of it is this host.",
        "OwnerId": OWNER,
        "ImageOwnerAlias": "amazon",
        "Public": true,
        "State": "available",
        "Architecture": "x86_64",
        "CreationDate": CREATED,
        "RootDeviceName": ROOT_DEVICE,
        "RootDeviceType": "ebs",
        "VirtualizationType": "hvm",
        "Hypervisor": "xen",
        "EnaSupport": true,
        "PlatformDetails": "Linux/UNIX",
        "UsageOperation": "RunInstances",
        "BlockDeviceMappings": [],
    })
}

fn values<'a>(id: &'a str, name: &str) -> Values<'a> {
    match name {
        "architecture" => one("x86_64"),
        "creation-date" => one(CREATED),
        "ena-support" | "is-public" => one("true"),
        "hypervisor" => one("xen"),
        "image-id" => one(id),
        "image-type" => one("machine"),
        "name" => one(NAME),
        "owner-alias" => one("amazon"),
        "owner-id" => one(OWNER),
        "root-device-name" => one(ROOT_DEVICE),
        "root-device-type" => one("ebs"),
        "state" => one("available"),
        "virtualization-type" => one("hvm"),
        _ => Vec::new(),
    }
}

impl Ec2 {
    pub(super) fn describe_images(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let mut ids = ask.input.texts("ImageIds");
        ids.iter().try_for_each(|id| check(id))?;
        let filters = Filters::read(ask.input, &FILTERS, Tagged::Yes)?;
        let paging = Paging::usual("imageIdsSet");
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &paging)?;
        let owners = ask.input.texts("Owners");
        let bad = |owner: &&&str| {
            let is_account = owner.len() == 12 && owner.bytes().all(|byte| byte.is_ascii_digit());
            !is_account && !matches!(**owner, "self" | "amazon" | "aws-marketplace" | "aws-backup-vault")
        };
        if let Some(owner) = owners.iter().find(bad) {
            return Err(refuse::invalid_value(format!("Value ({owner}) for parameter owner is invalid.")));
        }
        if ids.is_empty() {
            ids.push(DEFAULT_IMAGE);
        }
        ids.sort_unstable();
        ids.dedup();
        let is_owned = owners.is_empty() || owners.contains(&"amazon") || owners.contains(&OWNER);
        let none = Tags::new();
        let shown = ids.into_iter().filter(|id| {
            is_owned
                && page.after.as_deref().is_none_or(|after| *id > after)
                && filters.pass(&none, |name| values(id, name))
        });
        let (rows, next) = page.fill(ask.call.action, shown.map(|id| (id, row(id))));
        Ok(Members::default().put("Images", rows).put_some("NextToken", next).end())
    }
}
