//! Block devices: all that `/proc/diskstats` counts (Documentation/admin-guide/iostats.rst of the kernel).

use std::io;

use procfs::DiskStat;

/// What the kernel counts for a block device, or a partition, since it appeared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockStatistics {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Its name, such as `nvme1n1p1`.
    pub name: String,
    /// Reads that have ended.
    pub reads: u64,
    /// Reads that were merged into others before they were sent.
    pub reads_merged: u64,
    /// Sectors read, of 512 bytes whatever the device's.
    pub read_sectors: u64,
    /// Time of the reads that have ended together, ms.
    pub read_ms: u64,
    /// Writes that have ended.
    pub writes: u64,
    /// Writes that were merged into others before they were sent.
    pub writes_merged: u64,
    /// Sectors written, of 512 bytes.
    pub written_sectors: u64,
    /// Time of the writes that have ended together, ms.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time with at least one request in flight, ms.
    pub busy_ms: u64,
    /// Time of all I/O together, each from its start to its end, ms.
    pub queue_ms: u64,
    /// Discards; None before Linux 4.18.
    pub discards: Option<Discards>,
    /// Flushes; None before Linux 5.5.
    pub flushes: Option<Flushes>,
}

/// Discards of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Discards {
    /// Discards that have ended.
    pub count: u64,
    /// Discards that were merged into others.
    pub merged: u64,
    /// Sectors discarded, of 512 bytes.
    pub sectors: u64,
    /// Time of the discards together, ms.
    pub ms: u64,
}

/// Flushes of a device. The kernel counts none for partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flushes {
    /// Flushes that have ended.
    pub count: u64,
    /// Time of the flushes together, ms.
    pub ms: u64,
}

/// What the kernel counts for every block device and partition, in its order.
///
/// # Errors
/// `/proc` cannot be read.
pub fn block_statistics() -> io::Result<Vec<BlockStatistics>> {
    Ok(parse_block_statistics(&std::fs::read("/proc/diskstats")?))
}

/// Reads the lines of a text like `/proc/diskstats`. Driver names are any bytes: a line that is no text, or cannot be read, is left
/// out.
#[must_use]
pub fn parse_block_statistics(text: &[u8]) -> Vec<BlockStatistics> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    lines.filter_map(|line| statistics(DiskStat::from_line(line).ok()?)).collect()
}

fn statistics(line: DiskStat) -> Option<BlockStatistics> {
    let discards = || {
        Some(Discards {
            count: line.discards?,
            merged: line.discards_merged?,
            sectors: line.sectors_discarded?,
            ms: line.time_discarding?,
        })
    };
    let flushes = || Some(Flushes { count: line.flushes?, ms: line.time_flushing? });
    Some(BlockStatistics {
        major: u32::try_from(line.major).ok()?,
        minor: u32::try_from(line.minor).ok()?,
        reads: line.reads,
        reads_merged: line.merged,
        read_sectors: line.sectors_read,
        read_ms: line.time_reading,
        writes: line.writes,
        writes_merged: line.writes_merged,
        written_sectors: line.sectors_written,
        write_ms: line.time_writing,
        in_flight: line.in_progress,
        busy_ms: line.time_in_progress,
        queue_ms: line.weighted_time_in_progress,
        discards: discards(),
        flushes: flushes(),
        name: line.name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.1 on an instance, with a partition.
    const RECORDED: &str = " 259       0 nvme0n1 90210 15 4120833 31872 1208331 402113 61230112 902331 2 512044 941220 12 1 8192 4 33211 7016
 259       1 nvme0n1p1 89901 15 4101001 31700 1208330 402113 61230112 902330 0 511900 934030 12 1 8192 4 0 0
";

    #[test]
    fn every_column_of_a_line_is_read() {
        let found = parse_block_statistics(RECORDED.as_bytes());
        let expected = BlockStatistics {
            major: 259,
            minor: 0,
            name: "nvme0n1".to_owned(),
            reads: 90_210,
            reads_merged: 15,
            read_sectors: 4_120_833,
            read_ms: 31_872,
            writes: 1_208_331,
            writes_merged: 402_113,
            written_sectors: 61_230_112,
            write_ms: 902_331,
            in_flight: 2,
            busy_ms: 512_044,
            queue_ms: 941_220,
            discards: Some(Discards { count: 12, merged: 1, sectors: 8_192, ms: 4 }),
            flushes: Some(Flushes { count: 33_211, ms: 7_016 }),
        };
        assert_eq!(found[0], expected);
        assert_eq!((found.len(), found[1].name.as_str()), (2, "nvme0n1p1"));
    }

    #[test]
    fn an_older_kernel_counts_neither_discards_nor_flushes_and_a_bad_line_costs_itself_alone() {
        let text = b"   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n   8  1 sda1 1 2\n 8 16 \xff 1\n   8      16 sdb 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n";
        let found = parse_block_statistics(text);
        let names: Vec<_> = found.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["sda", "sdb"]);
        assert_eq!((found[0].discards, found[0].flushes), (None, None));
        assert_eq!((found[1].discards.map(|discards| discards.ms), found[1].flushes), (Some(15), None));
    }

    #[test]
    fn this_machine_counts_what_it_has() {
        // A machine without any block device is possible, one without the file is not.
        assert!(block_statistics().unwrap().iter().all(|device| !device.name.is_empty()));
    }
}
