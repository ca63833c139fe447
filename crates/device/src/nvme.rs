//! What an EBS volume on a Nitro instance reports of itself: the log page 0xD0 of its NVMe controller.
//!
//! "Amazon EBS detailed performance statistics" in AWS's user guide has the fields; `ebsnvme` of `amazon-ec2-utils` their
//! places. Reading it changes nothing of the device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// How long an EBS volume was asked for more than it or its instance gives, us since it was attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EbsStatistics {
    /// More IOPS than the volume has.
    pub volume_iops_exceeded_us: u64,
    /// More throughput than the volume has.
    pub volume_throughput_exceeded_us: u64,
    /// More IOPS than the instance has for its volumes.
    pub instance_iops_exceeded_us: u64,
    /// More throughput than the instance has for its volumes.
    pub instance_throughput_exceeded_us: u64,
}

/// Length of the log page.
const PAGE_BYTES: usize = 4096;
/// The first four bytes of the page of an EBS volume.
const MAGIC: u32 = 0x3C23_B510;
/// Place of the first of the four counters, which follow each other.
const EXCEEDED_AT: usize = 56;

impl EbsStatistics {
    /// Reads the page; None where it is not that of an EBS volume.
    #[must_use]
    pub fn parse(page: &[u8]) -> Option<Self> {
        let magic = u32::from_le_bytes(page.get(..4)?.try_into().ok()?);
        if magic != MAGIC {
            return None;
        }
        let counter = |place: usize| {
            let at = EXCEEDED_AT + 8 * place;
            Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?))
        };
        Some(Self {
            volume_iops_exceeded_us: counter(0)?,
            volume_throughput_exceeded_us: counter(1)?,
            instance_iops_exceeded_us: counter(2)?,
            instance_throughput_exceeded_us: counter(3)?,
        })
    }
}

/// The kernel's `nvme_admin_cmd` (`linux/nvme_ioctl.h`).
#[derive(Debug, Default)]
#[repr(C)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: u32 = 0xC048_4E41;
/// Get Log Page of the NVMe specification.
const GET_LOG_PAGE: u8 = 0x02;
/// The page of EBS.
const EBS_PAGE: u32 = 0xD0;
/// Double words of the page less one, as the command counts them.
const DWORDS_LESS_ONE: u32 = 1023;

/// Asks a device such as `/dev/nvme1n1`; None where it is no EBS volume. It needs CAP_SYS_ADMIN.
///
/// # Errors
/// As [`ebs_log_page`].
pub fn ebs_statistics(device: &Path) -> io::Result<Option<EbsStatistics>> {
    Ok(EbsStatistics::parse(&ebs_log_page(device)?))
}

/// The log page 0xD0 of a device such as `/dev/nvme1n1`, 4,096 bytes as the device gave them. It needs CAP_SYS_ADMIN. A device that
/// is no EBS volume refuses it, or gives a page of its own: the first four bytes tell. AWS's devices answer once a second, and
/// let an earlier request wait.
///
/// # Errors
/// The device cannot be opened, or refuses the command.
pub fn ebs_log_page(device: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(device)?;
    let mut page = vec![0_u8; PAGE_BYTES];
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: 1,
        address: page.as_mut_ptr() as u64,
        data_length: u32::try_from(PAGE_BYTES).expect("a page is small"),
        cdw10: EBS_PAGE | DWORDS_LESS_ONE << 16,
        // No time limit of our own: the kernel resets a controller whose command takes longer, with all I/O of its volume.
        ..AdminCommand::default()
    };
    #[allow(clippy::cast_lossless, clippy::cast_possible_wrap, reason = "c_ulong in glibc, c_int in musl")]
    let request = NVME_IOCTL_ADMIN_CMD as _;
    // SAFETY: the kernel reads and writes one nvme_admin_cmd, and writes at most `data_length` bytes at `address`. Both
    // outlive the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut command) };
    match done {
        0 => Ok(page),
        status if status > 0 => {
            Err(io::Error::other(format!("the device refuses the log page: status {status:#x}")))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page as ebsnvme unpacks it: magic, four bytes, operations, bytes and times, then the four counters.
    fn page(magic: u32) -> Vec<u8> {
        let mut page = magic.to_le_bytes().to_vec();
        page.extend([0; 4]);
        let six = [900_000_u64, 800_000, 4096, 8192, 50, 60];
        let four = [31_000_000_u64, 2, 300_000, 4];
        page.extend(six.into_iter().chain(four).chain([12]).flat_map(u64::to_le_bytes));
        page.resize(PAGE_BYTES, 0);
        page
    }

    #[test]
    fn the_page_of_an_ebs_volume_has_the_time_over_each_limit() {
        let read = EbsStatistics::parse(&page(MAGIC)).unwrap();
        let expect = EbsStatistics {
            volume_iops_exceeded_us: 31_000_000,
            volume_throughput_exceeded_us: 2,
            instance_iops_exceeded_us: 300_000,
            instance_throughput_exceeded_us: 4,
        };
        assert_eq!(read, expect);
    }

    #[test]
    fn another_page_and_a_short_one_are_no_statistics() {
        assert_eq!(EbsStatistics::parse(&page(0xEC2C_0D7E)), None, "an instance store");
        let whole = page(MAGIC);
        assert!([0, 3, 4, 55, 87].iter().all(|end| EbsStatistics::parse(&whole[..*end]).is_none()));
        assert!(EbsStatistics::parse(&whole[..88]).is_some());
    }

    #[test]
    fn a_file_that_is_no_nvme_device_refuses_the_command() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = ebs_log_page(file.path()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{error}");
        assert_eq!(size_of::<AdminCommand>(), 72, "the size in the number of the ioctl");
    }
}
