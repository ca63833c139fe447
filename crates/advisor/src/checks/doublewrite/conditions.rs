//! What has to be true before the doublewrite buffer may be turned off.

use ebbtide_text::size;
use serde::Serialize;

use super::figures::{PageWriteSettings, Release, Storage};

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
    /// Nothing here shows it.
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
pub(super) fn conditions(settings: &PageWriteSettings, storage: Option<&Storage>) -> Vec<Condition> {
    vec![
        keeps_whole(settings, storage),
        is_in_one_piece(settings),
        goes_direct(settings),
        is_listed(settings),
    ]
}

/// How many are not known to be met.
pub(super) fn open(conditions: &[Condition]) -> usize {
    conditions.iter().filter(|one| one.standing != Standing::Met).count()
}

/// The largest page that storage is known to keep whole (EC2's torn-write prevention).
const LARGEST_WHOLE: u64 = 16 << 10;

fn keeps_whole(settings: &PageWriteSettings, storage: Option<&Storage>) -> Condition {
    let page = size(settings.page_bytes);
    let (standing, how) = match storage {
        _ if settings.page_bytes > LARGEST_WHOLE => {
            (Standing::Broken, format!("pages have {page}; torn-write prevention keeps up to 16 KiB whole"))
        }
        Some(storage) if storage.whole_bytes < settings.page_bytes => {
            let whole = size(storage.whole_bytes);
            (Standing::Broken, format!("pages have {page}; {} keeps {whole} whole", storage.spec))
        }
        Some(storage) if storage.whole_is_said => {
            let whole = size(storage.whole_bytes);
            (Standing::Met, format!("{} keeps {whole} whole, as twp=on says", storage.spec))
        }
        Some(storage) => {
            let how = format!(
                "{} does on Nitro instances; where it is attached to one, say so with twp=on",
                storage.spec
            );
            (Standing::Unknown, how)
        }
        None => (
            Standing::Unknown,
            format!(
                "pages have {page}; EBS on Nitro instances keeps 16 KiB whole; name it with --volume TYPE:...,twp=on"
            ),
        ),
    };
    Condition { what: "The storage keeps a page whole in a power cut", standing, how }
}

fn is_in_one_piece(settings: &PageWriteSettings) -> Condition {
    let (standing, how) = match &settings.files {
        Some(files) if files.aligned_bytes >= settings.page_bytes => {
            let whole = size(files.aligned_bytes);
            (Standing::Met, format!("{} allocates aligned clusters of {whole}", files.name))
        }
        Some(files) => {
            let page = size(settings.page_bytes);
            (Standing::Broken, format!("{} does not keep pages of {page} aligned", files.name))
        }
        None => {
            let how = format!(
                "name the file system with --fs; ext4 made with -O bigalloc -C {} does, plain ext4 and XFS do not; \
                 partitions, LVM and RAID have to start at multiples of it",
                settings.page_bytes
            );
            (Standing::Unknown, how)
        }
    };
    Condition { what: "A page is in one piece, aligned, on the device", standing, how }
}

fn goes_direct(settings: &PageWriteSettings) -> Condition {
    let (standing, how) = match settings.direct {
        Some(true) => (Standing::Met, "data files are open with O_DIRECT"),
        Some(false) => (Standing::ToDo, "data files go through it; set innodb_flush_method = O_DIRECT"),
        None => (Standing::Unknown, "innodb_flush_method must be O_DIRECT; the server does not say"),
    };
    Condition { what: "A page is written past the page cache", standing, how: how.to_owned() }
}

fn is_listed(settings: &PageWriteSettings) -> Condition {
    let (standing, how) = match &settings.release {
        Some(Release { name, listed: true }) => {
            (Standing::Met, format!("{name}; AWS runs its like without the buffer"))
        }
        Some(Release { name, listed: false }) => (
            Standing::Unknown,
            format!(
                "{name} is not listed by AWS; listed are MySQL from 8.0.30 on, and MariaDB from 10.6.10, 10.11.4, \
                 11.4.3 and 11.8 on"
            ),
        ),
        None => (Standing::Unknown, "the server does not say which release it is".to_owned()),
    };
    Condition { what: "The server's release is known to write whole pages", standing, how }
}
