//! What a volume carried over time, as a tool recorded it.

use serde::{Deserialize, Serialize};

/// What a volume carried, interval by interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeLoad {
    /// The intervals, in the order of time. What lies between two of them was not recorded.
    pub intervals: Vec<LoadInterval>,
}

/// What a volume carried in an interval. Figures that the source does not have are None.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadInterval {
    /// Its start, s since 1970, or since the start of the recording where the source has no date.
    pub start_s: f64,
    /// Its length, s; above zero.
    pub seconds: f64,
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// Bytes read a second.
    pub read_bytes: f64,
    /// Bytes written a second.
    pub written_bytes: f64,
    /// Mean number of requests in flight.
    pub queue: Option<f64>,
    /// Mean time of a read, s; None without a read too.
    pub read_s: Option<f64>,
    /// Mean time of a write, s; None without a write too.
    pub write_s: Option<f64>,
    /// Burst credits left at its end, share of 0 to 1.
    pub credits: Option<f64>,
    /// Whether I/O waited for a limit in it, as the source reports it.
    pub limited: Option<Limited>,
}

/// The limits that I/O waited for in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limited {
    /// The volume's IOPS (`VolumeIOPSExceededCheck`).
    pub volume_iops: bool,
    /// The volume's throughput (`VolumeThroughputExceededCheck`).
    pub volume_throughput: bool,
    /// The instance's IOPS (`InstanceEBSIOPSExceededCheck`).
    pub instance_iops: bool,
    /// The instance's throughput (`InstanceEBSThroughputExceededCheck`).
    pub instance_throughput: bool,
}

impl Limited {
    /// Whether it waited for any.
    #[must_use]
    pub const fn any(self) -> bool {
        self.volume_iops || self.volume_throughput || self.instance_iops || self.instance_throughput
    }
}

impl LoadInterval {
    /// Operations a second.
    #[must_use]
    pub fn ios(&self) -> f64 {
        self.reads + self.writes
    }

    /// Bytes a second.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// Mean time of an operation, s; None where it is not known of a kind that there was.
    #[must_use]
    pub fn latency_s(&self) -> Option<f64> {
        let time =
            |number: f64, mean: Option<f64>| if number > 0.0 { mean.map(|s| number * s) } else { Some(0.0) };
        let all = time(self.reads, self.read_s)? + time(self.writes, self.write_s)?;
        (self.ios() > 0.0).then(|| all / self.ios())
    }

    /// Its end, on the clock of its start.
    #[must_use]
    pub fn end_s(&self) -> f64 {
        self.start_s + self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_operation_is_that_of_reads_and_writes_by_their_number() {
        let interval = LoadInterval {
            reads: 300.0,
            writes: 100.0,
            read_s: Some(0.001),
            write_s: Some(0.005),
            ..LoadInterval::default()
        };
        assert_eq!(interval.latency_s(), Some(0.002));
        assert_eq!(LoadInterval { write_s: None, ..interval }.latency_s(), None, "there were writes");
        assert_eq!(LoadInterval { writes: 0.0, write_s: None, ..interval }.latency_s(), Some(0.001));
        assert_eq!(LoadInterval { reads: 0.0, writes: 0.0, ..interval }.latency_s(), None);
    }
}
