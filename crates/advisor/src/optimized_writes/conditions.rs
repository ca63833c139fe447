//! What has to be true before the doublewrite buffer may be turned off.

use ebbtide_volume::format_size;
use serde::Serialize;

use super::figures::{Settings, Storage};

/// A thing that has to be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// What, as a sentence without its full stop.
    pub what: &'static str,
    /// Whether it is.
    pub standing: Standing,
    /// How that is known, or how to find out.
    pub how: String,
}

/// Whether a condition is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is.
    Met,
    /// It is not, and a setting changes it.
    ToDo,
    /// It is not, and cannot be made so.
    Broken,
    /// Nothing here tells.
    Unknown,
}

impl Standing {
    /// Whether it is known not to be met.
    #[must_use]
    pub const fn fails(self) -> bool {
        matches!(self, Self::ToDo | Self::Broken)
    }
}

/// All of them, the storage's first.
pub(super) fn conditions(settings: &Settings, storage: Option<&Storage>) -> Vec<Condition> {
    vec![keeps_whole(settings, storage), lies_whole(settings), goes_direct(settings)]
}

/// The largest page that storage is known to keep whole (EC2's torn-write prevention).
const LARGEST_WHOLE: u64 = 16 << 10;

fn keeps_whole(settings: &Settings, storage: Option<&Storage>) -> Condition {
    let page = format_size(settings.page_bytes);
    let (standing, how) = match storage {
        _ if settings.page_bytes > LARGEST_WHOLE => {
            (Standing::Broken, format!("pages have {page}; torn-write prevention keeps up to 16KiB whole"))
        }
        Some(storage) if storage.whole_bytes < settings.page_bytes => {
            let whole = format_size(storage.whole_bytes);
            (Standing::Broken, format!("pages have {page}; {} keeps {whole} whole", storage.spec))
        }
        Some(storage) => {
            let whole = format_size(storage.whole_bytes);
            let how = format!(
                "{} keeps {whole} whole, if that is the volume; EBS does on Nitro instances",
                storage.spec
            );
            (if storage.whole_is_said { Standing::Met } else { Standing::Unknown }, how)
        }
        None => (
            Standing::Unknown,
            format!("pages have {page}; EBS on Nitro instances and some instance stores keep 16KiB whole"),
        ),
    };
    Condition { what: "The storage keeps a page whole in a power cut", standing, how }
}

fn lies_whole(settings: &Settings) -> Condition {
    let page = format_size(settings.page_bytes);
    let how = format!(
        "no layer may split or move it (mkfs.ext4 -O bigalloc -C {}; partitions, LVM and RAID at multiples of {page}; \
         XFS and plain ext4 do not make sure of it)",
        settings.page_bytes
    );
    Condition { what: "A page lies in one piece, aligned, on the device", standing: Standing::Unknown, how }
}

fn goes_direct(settings: &Settings) -> Condition {
    let (standing, how) = match settings.direct {
        Some(true) => (Standing::Met, "data files are open with O_DIRECT"),
        Some(false) => (Standing::ToDo, "data files go through it; innodb_flush_method = O_DIRECT"),
        None => (Standing::Unknown, "innodb_flush_method must be O_DIRECT"),
    };
    Condition { what: "A page is written past the page cache", standing, how: how.to_owned() }
}
