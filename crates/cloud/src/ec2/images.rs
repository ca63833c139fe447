//! DescribeImages: stand-ins, so that what describes an instance finds its image, and what looks for one finds it by owner and
//! name.
//!
//! Images with the names that tools look for are a list ([`known`]). Another name, or another owner's, is answered with an
//! image of that name: it is a stand-in like the others. Each well-formed id is one, too.

use ebbtide_text::seed::fnv1a;
use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::devices::ROOT_DEVICE;
use super::filter::{Filters, Tagged, Tags, Values, flag, one, some};
use super::page::{Page, Paging};
use super::{Ec2, access, refuse};
use crate::ApiError;

/// The image of an instance whose call names none: a stand-in has no image.
pub(super) const DEFAULT_IMAGE: &str = "ami-00000000000000001";

/// The image without a root volume: what starts from it has no volume that was not asked for.
const WITHOUT_ROOT: &str = "ami-ffffffff";

/// The root volume of all other images.
pub(super) const ROOT_GIB: u64 = 8;
pub(super) const ROOT_TYPE: &str = "gp3";

const NAME: &str = "ebbtide-stand-in";

/// The owner of the stand-in: AWS's account of images of Amazon Linux.
const OWNER: &str = "137112412989";
const CANONICAL: &str = "099720109477";
const DEBIAN: &str = "136693071363";
const RED_HAT: &str = "309956199498";
const ROCKY: &str = "792107900819";
const WINDOWS: &str = "801119661308";
const MARKETPLACE: &str = "679593333241";

/// When the stand-in was made, and what the names of its images have for that day.
const CREATED: &str = "2026-01-01T00:00:00.000Z";
const DAY: &str = "20260101";

/// Names that tools look for, by owner, as these owners name their images; `{day}` and `{arch}` stand for themselves, the latter
/// as `x86_64` and `arm64`, or where it is `{deb}` as `amd64` and `arm64`.
const KNOWN: [(&str, &str); 15] = [
    (OWNER, "al2023-ami-2023.10.{day}.0-kernel-6.1-{arch}"),
    (OWNER, "al2023-ami-minimal-2023.10.{day}.0-kernel-6.1-{arch}"),
    (OWNER, "amzn2-ami-hvm-2.0.{day}.0-{arch}-gp2"),
    (OWNER, "amzn2-ami-kernel-5.10-hvm-2.0.{day}.0-{arch}-gp2"),
    (OWNER, "amzn2-ami-minimal-hvm-2.0.{day}.0-{arch}-ebs"),
    (CANONICAL, "ubuntu/images/hvm-ssd/ubuntu-focal-20.04-{deb}-server-{day}"),
    (CANONICAL, "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-{deb}-server-{day}"),
    (CANONICAL, "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{deb}-server-{day}"),
    (DEBIAN, "debian-12-{deb}-{day}-1000"),
    (DEBIAN, "debian-13-{deb}-{day}-1000"),
    (RED_HAT, "RHEL-9.6.0_HVM-{day}-{arch}-0-Hourly2-GP3"),
    (RED_HAT, "RHEL-10.0.0_HVM-{day}-{arch}-0-Hourly2-GP3"),
    (ROCKY, "Rocky-9-EC2-Base-9.6-{day}.0.{arch}"),
    (WINDOWS, "Windows_Server-2022-English-Full-Base-2026.01.01"),
    (WINDOWS, "Windows_Server-2025-English-Full-Base-2026.01.01"),
];

const FILTERS: [&str; 33] = [
    "architecture",
    "block-device-mapping.delete-on-termination",
    "block-device-mapping.device-name",
    "block-device-mapping.encrypted",
    "block-device-mapping.snapshot-id",
    "block-device-mapping.volume-size",
    "block-device-mapping.volume-type",
    "creation-date",
    "description",
    "ena-support",
    "free-tier-eligible",
    "hypervisor",
    "image-allowed",
    "image-id",
    "image-type",
    "is-public",
    "kernel-id",
    "manifest-location",
    "name",
    "owner-alias",
    "owner-id",
    "platform",
    "product-code",
    "product-code.type",
    "ramdisk-id",
    "root-device-name",
    "root-device-type",
    "source-image-id",
    "source-instance-id",
    "state",
    "state-reason-code",
    "sriov-net-support",
    "virtualization-type",
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

/// Whether an instance of an image has a root volume that nobody asked for.
pub(super) fn has_root(id: &str) -> bool {
    id != WITHOUT_ROOT
}

/// Where the root of an image's instances is, as AWS names it: an image without a root volume has it on the instance's disks.
pub(super) fn root_type(id: &str) -> &'static str {
    if has_root(id) { "ebs" } else { "instance-store" }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Image {
    id: String,
    name: String,
    owner: String,
    architecture: &'static str,
}

impl Image {
    /// With an id that follows from the owner and the name.
    fn named(owner: &str, name: String, architecture: &'static str) -> Self {
        // It only has to be the same at each start.
        let hash = fnv1a(owner.bytes().chain([b'/']).chain(name.bytes()));
        Self { id: format!("ami-0{hash:016x}"), name, owner: owner.to_owned(), architecture }
    }

    /// The image that an id names.
    fn of_id(id: &str) -> Self {
        let known = known().into_iter().find(|image| image.id == id);
        known.unwrap_or_else(|| Self {
            id: id.to_owned(),
            name: NAME.to_owned(),
            owner: OWNER.to_owned(),
            architecture: "x86_64",
        })
    }

    fn is_of_windows(&self) -> bool {
        self.owner == WINDOWS || self.name.starts_with("Windows")
    }

    /// The name by which AWS lists an owner.
    fn alias(&self) -> Option<&'static str> {
        match self.owner.as_str() {
            OWNER | CANONICAL | DEBIAN | RED_HAT | WINDOWS => Some("amazon"),
            MARKETPLACE => Some("aws-marketplace"),
            _ => None,
        }
    }

    /// Whether it is among those of the owners of a call.
    fn is_of(&self, owners: &[&str], account: &str) -> bool {
        let is_own = |owner: &&str| {
            *owner == self.owner
                || Some(*owner) == self.alias()
                || (*owner == "self" && self.owner == account)
        };
        owners.is_empty() || owners.iter().any(is_own)
    }

    fn mappings(&self) -> Value {
        if !has_root(&self.id) {
            return json!([]);
        }
        json!([{
            "DeviceName": ROOT_DEVICE,
            "Ebs": {
                "DeleteOnTermination": true,
                "Encrypted": false,
                "VolumeSize": ROOT_GIB,
                "VolumeType": ROOT_TYPE,
            },
        }])
    }

    fn row(&self, account: &str) -> Value {
        let mut members = Members::default();
        members
            .put("ImageId", self.id.as_str())
            .put("ImageLocation", format!("{}/{}", self.alias().unwrap_or(&self.owner), self.name))
            .put("ImageType", "machine")
            .put("Name", self.name.as_str())
            .put("Description", "A stand-in: an instance of it is this host.")
            .put("OwnerId", self.owner.as_str())
            .put_some("ImageOwnerAlias", self.alias())
            .put("Public", self.owner != account)
            .put("State", "available")
            .put("Architecture", self.architecture)
            .put("CreationDate", CREATED)
            .put("RootDeviceName", ROOT_DEVICE)
            .put("RootDeviceType", root_type(&self.id))
            .put("VirtualizationType", "hvm")
            .put("Hypervisor", "xen")
            .put("EnaSupport", true)
            .put("PlatformDetails", if self.is_of_windows() { "Windows" } else { "Linux/UNIX" })
            .put_some("Platform", self.is_of_windows().then_some("windows"))
            .put("UsageOperation", if self.is_of_windows() { "RunInstances:0002" } else { "RunInstances" })
            .put("BlockDeviceMappings", self.mappings());
        Value::Object(members.end())
    }

    fn values<'a>(&'a self, account: &str, name: &str) -> Values<'a> {
        let of_root = |value: String| some(has_root(&self.id).then_some(value));
        match name {
            "architecture" => one(self.architecture),
            "block-device-mapping.delete-on-termination" => of_root("true".to_owned()),
            "block-device-mapping.device-name" => of_root(ROOT_DEVICE.to_owned()),
            "block-device-mapping.encrypted" => of_root("false".to_owned()),
            "block-device-mapping.volume-size" => of_root(ROOT_GIB.to_string()),
            "block-device-mapping.volume-type" => of_root(ROOT_TYPE.to_owned()),
            "creation-date" => one(CREATED),
            "description" => one("A stand-in: an instance of it is this host."),
            "ena-support" | "image-allowed" => one("true"),
            "is-public" => one(flag(self.owner != account)),
            "hypervisor" => one("xen"),
            "image-id" => one(self.id.as_str()),
            "image-type" => one("machine"),
            "manifest-location" => one(format!("{}/{}", self.alias().unwrap_or(&self.owner), self.name)),
            "name" => one(self.name.as_str()),
            "owner-alias" => some(self.alias()),
            "owner-id" => one(self.owner.as_str()),
            "platform" => some(self.is_of_windows().then_some("windows")),
            "root-device-name" => one(ROOT_DEVICE),
            "root-device-type" => one(root_type(&self.id)),
            "state" => one("available"),
            "virtualization-type" => one("hvm"),
            _ => Vec::new(),
        }
    }
}

/// The images with known names, for both kinds of processors.
fn known() -> Vec<Image> {
    let mut images = Vec::new();
    for (owner, pattern) in KNOWN {
        let name = pattern.replace("{day}", DAY);
        if !name.contains('{') {
            images.push(Image::named(owner, name, "x86_64"));
            continue;
        }
        for (architecture, of_debian) in [("x86_64", "amd64"), ("arm64", "arm64")] {
            let name = name.replace("{arch}", architecture).replace("{deb}", of_debian);
            images.push(Image::named(owner, name, architecture));
        }
    }
    images
}

/// An image of a name that nothing known has, or of an owner without known images; None where the call asks for neither.
fn made_up(ask: &Ask<'_>, filters: &Filters<'_>, owners: &[&str]) -> Option<Image> {
    let name = filters.example("name", DAY);
    let own = |owner: &str| owner == "self" || owner == ask.account();
    let owner = owners.first().copied().map(str::to_owned);
    let owner =
        owner.or_else(|| filters.example("owner-id", "")).or_else(|| filters.example("owner-alias", ""));
    // An account has no images of its own that it does not name.
    if name.is_none() && owner.as_deref().is_none_or(own) {
        return None;
    }
    let owner = match owner.as_deref() {
        None | Some("" | "amazon") => OWNER,
        Some("self") => ask.account(),
        Some("aws-marketplace") => MARKETPLACE,
        Some(account) => account,
    };
    let name = name.unwrap_or_else(|| NAME.to_owned());
    let is_arm = |text: &str| text.contains("arm64") || text.contains("aarch64");
    let wanted = filters.example("architecture", "");
    let arm = is_arm(&name) || wanted.as_deref().is_some_and(is_arm);
    Some(Image::named(owner, name, if arm { "arm64" } else { "x86_64" }))
}

impl Ec2 {
    pub(super) fn describe_images(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("ImageIds");
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
        let none = Tags::new();
        let account = ask.account();
        let passes = |image: &Image| {
            image.is_of(&owners, account) && filters.pass(&none, |name| image.values(account, name))
        };
        let mut images: Vec<Image> = if ids.is_empty() {
            known().into_iter().chain([Image::of_id(DEFAULT_IMAGE)]).filter(passes).collect()
        } else {
            ids.iter().map(|id| Image::of_id(id)).filter(passes).collect()
        };
        if images.is_empty() && ids.is_empty() {
            images.extend(made_up(ask, &filters, &owners).filter(passes));
        }
        images.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        images.dedup();
        let shown =
            images.iter().filter(|image| page.after.as_deref().is_none_or(|after| image.id.as_str() > after));
        let rows = shown.map(|image| (image.id.as_str(), image.row(account)));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Images", rows).put_some("NextToken", next).end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_images_have_ids_of_their_own_that_name_them() {
        let images = known();
        assert_eq!(images.len(), 28);
        for image in &images {
            check(&image.id).unwrap();
            assert_eq!(Image::of_id(&image.id), *image);
        }
        let mut ids: Vec<_> = images.iter().map(|image| &image.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), images.len());
    }
}
