//! The machine that servers run on: its block devices, file systems and pressure, and what EBS volumes report of themselves.
//!
//! # Where to begin reading
//!
//! - [`HostReading`] in `reading` is what was read at one moment, as plain data. [`HostReader`] in `reader` reads it; `space` asks file
//!   systems with a time limit, and [`PageReader`] in `pages` EBS volumes, on a thread that its caller gives it. All else is pure.
//! - [`host_text`] writes it under the names of node_exporter and of the EBS CSI driver: `disk`, `file_system`, `pressure` and `ebs` know
//!   which value is which family. `exclusion` has what node_exporter leaves out by default.
//! - [`EbsPage`] in `ebs_page` decodes the statistics page of an EBS volume.
//! - [`HostSampler`] in `sampler` makes what the history records of two readings: growth, and a gap where counters began again.
//! - [`placements`] in `placement` says on which devices which files of a server lie.

mod disk;
mod ebs;
mod ebs_page;
mod exclusion;
mod file_system;
mod foreign;
mod pages;
mod placement;
mod pressure;
mod reader;
mod reading;
mod sampler;
mod space;
mod text;
mod udev;

pub use ebs_page::{EbsPage, EbsPageError};
pub use pages::{AskPage, EbsDevice, PageReader};
pub use placement::{NamedDevices, Placement, PlacementError, placements};
pub use reader::{HostOptions, HostReader};
pub use reading::{EbsPages, EbsReads, EbsVolume, HostDisk, HostFileSystem, HostReading, Space};
pub use sampler::HostSampler;
pub use space::SpaceReader;
pub use text::{host_families, host_text};
pub use udev::UdevProperties;
