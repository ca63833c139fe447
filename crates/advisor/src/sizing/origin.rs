//! Where the figures of a load come from: it decides what they count.

/// Where the figures of a load come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadOrigin {
    /// CloudWatch's metrics of a volume: operations are counted as its limits count them.
    EbsMetrics,
    /// A tool on the host, or a run: operations are counted as they were submitted, and reads and writes have a mean size each.
    Host,
    /// A tool on the host that counts reads and writes together (`sar`): they have one mean size.
    HostTogether,
    /// A trace: each request was counted by its own size.
    Trace,
    /// A model of a server on a volume without limits: nothing was recorded, and no volume of today had a part in it.
    Model,
}
