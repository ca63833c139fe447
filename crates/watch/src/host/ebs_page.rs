//! The statistics page of an EBS volume on a Nitro instance: log page 0xD0 of its NVMe controller, 4,096 bytes.
//!
//! "Amazon EBS detailed performance statistics" in the user guide of EBS has the fields; `ebsnvme` of `amazon-ec2-utils` and the EBS CSI
//! driver have their places. All numbers are little-endian, all times microseconds since the attachment.

use ebbtide_volume::{LatencyHistogram, Nanos, OpStats};

use crate::reading::ExceededTimes;

/// Length of the page.
const PAGE_BYTES: usize = 4_096;
/// The first four bytes of the page of an EBS volume.
const MAGIC: u32 = 0x3C23_B510;
/// Places of the two histograms.
const READ_LATENCY: usize = 512;
const WRITE_LATENCY: usize = 2_056;
/// Bins that a histogram has room for, and the bytes of one.
const MOST_BINS: u64 = 64;
const BIN_BYTES: usize = 24;

/// What an EBS volume counts since its attachment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EbsPage {
    /// Completed reads.
    pub read: OpStats,
    /// Completed writes.
    pub write: OpStats,
    /// Time in which more IOPS were asked for than the volume gives.
    pub volume_iops_exceeded: Nanos,
    /// Time in which more throughput was asked for than the volume gives.
    pub volume_throughput_exceeded: Nanos,
    /// Time in which more IOPS were asked for than the instance gives.
    pub instance_iops_exceeded: Nanos,
    /// Time in which more throughput was asked for than the instance gives.
    pub instance_throughput_exceeded: Nanos,
    /// Reads and writes that wait to complete.
    pub queue_length: u64,
    /// Latencies of reads that completed without an error. Their sum is [`OpStats::time`] of the reads.
    pub read_latency: LatencyHistogram,
    /// Latencies of writes that completed without an error.
    pub write_latency: LatencyHistogram,
}

/// A page that is not that of an EBS volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EbsPageError {
    /// Too few bytes.
    #[error("the statistics page has {found} bytes; it must have {PAGE_BYTES}")]
    Short {
        /// Bytes that there are.
        found: usize,
    },
    /// The page of another device, such as an instance store (0xEC2C0D7E).
    #[error("the statistics page begins with {found:#010x}; that of an EBS volume begins with {MAGIC:#010x}")]
    OtherDevice {
        /// Its first four bytes.
        found: u32,
    },
    /// A histogram with more bins than there is room for.
    #[error("a histogram of the statistics page has {found} bins; at most {MOST_BINS} have room")]
    Bins {
        /// Bins that it claims to have.
        found: u64,
    },
}

impl EbsPage {
    /// Reads a page.
    ///
    /// # Errors
    /// A page that is too short, of another device, or with a histogram that cannot be.
    pub fn parse(page: &[u8]) -> Result<Self, EbsPageError> {
        let page: &[u8; PAGE_BYTES] = page.first_chunk().ok_or(EbsPageError::Short { found: page.len() })?;
        let found = narrow(page, 0);
        if found != MAGIC {
            return Err(EbsPageError::OtherDevice { found });
        }
        let number = |place: usize| wide(page, 8 + 8 * place);
        let time = |place: usize| micros(number(place));
        let ops = |ops: usize, bytes: usize, spent: usize| OpStats {
            ops: number(ops),
            bytes: number(bytes),
            time: time(spent),
        };
        Ok(Self {
            read: ops(0, 2, 4),
            write: ops(1, 3, 5),
            volume_iops_exceeded: time(6),
            volume_throughput_exceeded: time(7),
            instance_iops_exceeded: time(8),
            instance_throughput_exceeded: time(9),
            queue_length: number(10),
            read_latency: histogram(page, READ_LATENCY)?,
            write_latency: histogram(page, WRITE_LATENCY)?,
        })
    }

    /// The times over limits.
    pub(crate) const fn exceeded(&self) -> ExceededTimes {
        ExceededTimes {
            volume_iops: self.volume_iops_exceeded,
            volume_throughput: self.volume_throughput_exceeded,
            instance_iops: self.instance_iops_exceeded,
            instance_throughput: self.instance_throughput_exceeded,
        }
    }

    /// Whether this page can be a later one of the same attachment: no counter fell.
    #[must_use]
    pub fn follows(&self, earlier: &Self) -> bool {
        let counters = |page: &Self| {
            let Self { read, write, .. } = page;
            [
                read.ops,
                read.bytes,
                read.time.0,
                write.ops,
                write.bytes,
                write.time.0,
                page.volume_iops_exceeded.0,
                page.volume_throughput_exceeded.0,
                page.instance_iops_exceeded.0,
                page.instance_throughput_exceeded.0,
            ]
        };
        counters(earlier).iter().zip(counters(self)).all(|(earlier, later)| *earlier <= later)
    }
}

const fn micros(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1_000))
}

fn narrow(page: &[u8; PAGE_BYTES], place: usize) -> u32 {
    let bytes = page[place..].first_chunk().expect("the places of the page are within it");
    u32::from_le_bytes(*bytes)
}

fn wide(page: &[u8; PAGE_BYTES], place: usize) -> u64 {
    let bytes = page[place..].first_chunk().expect("the places of the page are within it");
    u64::from_le_bytes(*bytes)
}

/// The histogram at a place: how many bins, then of each its bounds and its count.
///
/// The pages that are known have the 28 bins of [`LatencyHistogram`]. A bin with another upper bound is counted in the bin that has room
/// for all of it, so that no latency seems less than it was.
fn histogram(page: &[u8; PAGE_BYTES], place: usize) -> Result<LatencyHistogram, EbsPageError> {
    let found = wide(page, place);
    let bins = usize::try_from(found).ok().filter(|_| found <= MOST_BINS);
    let mut histogram = LatencyHistogram::default();
    for bin in 0..bins.ok_or(EbsPageError::Bins { found })? {
        let begin = place + 8 + bin * BIN_BYTES;
        let (upper, count) = (wide(page, begin + 8), narrow(page, begin + 16));
        let has_room = |bin: &usize| LatencyHistogram::bounds_us(*bin).1.is_none_or(|bound| upper <= bound);
        let bin = (0..LatencyHistogram::BINS).find(has_room).expect("the last bin has no bound");
        histogram.bins[bin] += u64::from(count);
    }
    Ok(histogram)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page with the numbers behind the magic, and these bins in both histograms.
    pub(in crate::host) fn page(numbers: [u64; 11], bins: &[(u64, u64, u32)]) -> Vec<u8> {
        let mut page = MAGIC.to_le_bytes().to_vec();
        page.extend([0; 4]);
        page.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        for place in [READ_LATENCY, WRITE_LATENCY] {
            page.resize(place, 0);
            page.extend((bins.len() as u64).to_le_bytes());
            for (lower, upper, count) in bins {
                page.extend(lower.to_le_bytes().into_iter().chain(upper.to_le_bytes()));
                page.extend(count.to_le_bytes().into_iter().chain([0; 4]));
            }
        }
        page.resize(PAGE_BYTES, 0);
        page
    }

    pub(in crate::host) const NUMBERS: [u64; 11] =
        [900_000, 800_000, 4_096, 8_192, 50_000, 60_000, 31_000_000, 2, 300_000, 4, 12];

    /// The bins that pages have: powers of two, the last one without an end.
    fn known_bins() -> Vec<(u64, u64, u32)> {
        let bin = |bin: usize| {
            let (lower, upper) = LatencyHistogram::bounds_us(bin);
            (lower, upper.unwrap_or(u64::MAX), u32::try_from(bin).unwrap() + 1)
        };
        (0..LatencyHistogram::BINS).map(bin).collect()
    }

    #[test]
    fn every_field_of_a_page_is_read_at_its_place() {
        let read = EbsPage::parse(&page(NUMBERS, &known_bins())).unwrap();
        assert_eq!(read.read, OpStats { ops: 900_000, bytes: 4_096, time: Nanos::from_ms(50) });
        assert_eq!(read.write, OpStats { ops: 800_000, bytes: 8_192, time: Nanos::from_ms(60) });
        let exceeded = [
            read.volume_iops_exceeded,
            read.volume_throughput_exceeded,
            read.instance_iops_exceeded,
            read.instance_throughput_exceeded,
        ];
        assert_eq!(exceeded, [31_000_000, 2, 300_000, 4].map(Nanos::from_us));
        assert_eq!(read.queue_length, 12);
        assert_eq!(read.read_latency.bins, std::array::from_fn(|bin| bin as u64 + 1));
        assert_eq!(read.write_latency, read.read_latency);
    }

    #[test]
    fn bins_of_other_bounds_are_counted_where_they_have_room() {
        let bins = [(0, 10, 1), (10, 100, 2), (100, 1_000_000_000, 4)];
        let read = EbsPage::parse(&page(NUMBERS, &bins)).unwrap().read_latency;
        // 10 us are in the bin up to 16, 100 us in that up to 128.
        assert_eq!((read.bins[4], read.bins[7], read.bins[27]), (1, 2, 4));
        assert_eq!(read.bins.iter().sum::<u64>(), 7);
    }

    #[test]
    fn what_is_no_page_of_a_volume_is_refused_with_what_it_is() {
        let whole = page(NUMBERS, &known_bins());
        assert_eq!(EbsPage::parse(&whole[..4_095]), Err(EbsPageError::Short { found: 4_095 }));
        let mut store = whole.clone();
        store[..4].copy_from_slice(&0xEC2C_0D7E_u32.to_le_bytes());
        assert_eq!(
            EbsPage::parse(&store).unwrap_err().to_string(),
            "the statistics page begins with 0xec2c0d7e; that of an EBS volume begins with 0x3c23b510"
        );
        let mut bins = whole;
        bins[WRITE_LATENCY] = 65;
        assert_eq!(EbsPage::parse(&bins), Err(EbsPageError::Bins { found: 65 }));
    }

    #[test]
    fn a_page_of_a_new_attachment_does_not_follow_the_one_before() {
        let read = |reads: u64, exceeded: u64| {
            let mut numbers = NUMBERS;
            (numbers[0], numbers[9]) = (reads, exceeded);
            EbsPage::parse(&page(numbers, &[])).unwrap()
        };
        let first = read(10, 10);
        assert!(read(10, 10).follows(&first) && read(11, 12).follows(&first));
        assert!(!read(9, 12).follows(&first) && !read(11, 9).follows(&first));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_behind_the_magic_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..5_000)) {
            let mut page = MAGIC.to_le_bytes().to_vec();
            page.extend(bytes);
            if let Ok(read) = EbsPage::parse(&page) {
                prop_assert!(read.follows(&read));
            }
        }
    }
}
