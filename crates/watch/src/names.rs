//! The table of metric families of volumes and of this process. A name that has been released keeps its meaning.
//!
//! Names and units follow Prometheus's rules: base units, `_total` for counters. Those of I/O are the names of node_exporter's disk
//! collector where the two count the same (`node_disk_reads_completed_total`); those of the process are what its client libraries have.

use crate::family::{Family, FamilyKind};

macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal, $unit:literal, $labels:expr, $help:literal, $source:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Family = Family {
                name: $name,
                kind: FamilyKind::$kind,
                unit: $unit,
                labels: &$labels,
                help: $help,
                source: $source,
            };
        )*

        /// All families, in the order of the text.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD_INFO: Gauge "ebbtide_build_info", "1", ["version", "commit"],
        "The program that answers; its value is always 1.",
        "the build";
    VOLUME_INFO: Gauge "ebbtide_volume_info", "1", ["volume", "type", "transport", "device", "mount", "fs", "instance"],
        "What a volume is and where it is attached; its value is always 1, and labels are empty where there is nothing.",
        "the volume's record and its attachment";
    VOLUME_STATE: Gauge "ebbtide_volume_state", "0 or 1", ["volume", "state"],
        "What a volume is doing: 1 for its state (available, busy, in-use, damaged), and 0 for the others.",
        "`state` of `volume show`";
    VOLUME_SIZE: Gauge "ebbtide_volume_size_bytes", "bytes", ["volume"],
        "Size that a guest sees.",
        "`size_bytes` of `volume show`";
    VOLUME_ATTACHED: Gauge "ebbtide_volume_attached_timestamp_seconds", "seconds since 1970", ["volume"],
        "When the present attachment began.",
        "`attachment.since` of `volume show`";
    VOLUME_LIMIT_IOPS: Gauge "ebbtide_volume_limit_iops", "operations a second", ["volume", "scope", "level"],
        "Operations a second that a limit permits: of the volume or of its instance, sustained or while burst credits last.",
        "the limits in force, a modification included";
    VOLUME_LIMIT_BYTES: Gauge "ebbtide_volume_limit_throughput_bytes_per_second", "bytes a second", ["volume", "scope", "level"],
        "Bytes a second that a limit permits: of the volume or of its instance, sustained or while burst credits last.",
        "the limits in force, a modification included";
    VOLUME_READS: Counter "ebbtide_volume_reads_completed_total", "reads", ["volume"],
        "Reads completed, as the guest submitted them.",
        "`live.stats.read.ops` of `volume show`";
    VOLUME_WRITES: Counter "ebbtide_volume_writes_completed_total", "writes", ["volume"],
        "Writes completed, as the guest submitted them.",
        "`live.stats.write.ops` of `volume show`";
    VOLUME_FLUSHES: Counter "ebbtide_volume_flushes_completed_total", "flushes", ["volume"],
        "Flushes completed.",
        "`live.stats.flush_ops` of `volume show`";
    VOLUME_DISCARDS: Counter "ebbtide_volume_discards_completed_total", "discards", ["volume"],
        "Discards completed.",
        "`live.stats.discard_ops` of `volume show`";
    VOLUME_CONSUMED: Counter "ebbtide_volume_consumed_operations_total", "operations", ["volume"],
        "Operations as the IOPS limit counts them, after splitting and merging.",
        "`live.stats.consumed_ops` of `volume show`";
    VOLUME_READ_BYTES: Counter "ebbtide_volume_read_bytes_total", "bytes", ["volume"],
        "Bytes read.",
        "`live.stats.read.bytes` of `volume show`";
    VOLUME_WRITTEN_BYTES: Counter "ebbtide_volume_written_bytes_total", "bytes", ["volume"],
        "Bytes written.",
        "`live.stats.write.bytes` of `volume show`";
    VOLUME_READ_TIME: Counter "ebbtide_volume_read_time_seconds_total", "seconds", ["volume"],
        "Sum of the latencies of all reads.",
        "`live.stats.read.time` of `volume show`";
    VOLUME_WRITE_TIME: Counter "ebbtide_volume_write_time_seconds_total", "seconds", ["volume"],
        "Sum of the latencies of all writes.",
        "`live.stats.write.time` of `volume show`";
    VOLUME_IDLE_TIME: Counter "ebbtide_volume_idle_time_seconds_total", "seconds", ["volume"],
        "Time without any read or write in flight, while attached.",
        "`live.stats.idle_time` of `volume show`";
    VOLUME_QUEUE: Gauge "ebbtide_volume_queue_length", "reads and writes", ["volume"],
        "Reads and writes in flight now.",
        "`live.stats.queue` of `volume show`";
    VOLUME_QUEUE_TIME: Counter "ebbtide_volume_queue_time_seconds_total", "seconds", ["volume"],
        "Queue length integrated over time: its rate is the mean queue length.",
        "`live.stats.queue_time` of `volume show`, and what a stall added";
    VOLUME_THROTTLED: Counter "ebbtide_volume_throttled_seconds_total", "seconds", ["volume", "cause"],
        "Time in which I/O waited for a limit: volume-iops, volume-throughput, instance-iops or instance-throughput; a limit without credits left is that of its cause.",
        "`live.stats.*_exceeded` of `volume show`";
    VOLUME_CREDIT_RATIO: Gauge "ebbtide_volume_credit_ratio", "0 to 1", ["volume"],
        "Share of the burst credits that is left, of the emptiest member of an array.",
        "`credits.left_pct` of `volume show`";
    VOLUME_CREDIT_OPERATIONS: Gauge "ebbtide_volume_credit_operations", "operations", ["volume"],
        "Burst credits left, of types whose credits pay for operations (gp2).",
        "the volume's bucket";
    VOLUME_CREDIT_CAPACITY_OPERATIONS: Gauge "ebbtide_volume_credit_capacity_operations", "operations", ["volume"],
        "Burst credits when all are there, of types whose credits pay for operations (gp2).",
        "the volume's bucket";
    VOLUME_CREDIT_BYTES: Gauge "ebbtide_volume_credit_bytes", "bytes", ["volume"],
        "Burst credits left, of types whose credits pay for bytes (st1, sc1).",
        "the volume's bucket";
    VOLUME_CREDIT_CAPACITY_BYTES: Gauge "ebbtide_volume_credit_capacity_bytes", "bytes", ["volume"],
        "Burst credits when all are there, of types whose credits pay for bytes (st1, sc1).",
        "the volume's bucket";
    VOLUME_CREDITS_END: Gauge "ebbtide_volume_credits_end_seconds", "seconds", ["volume"],
        "Time until the burst credits end at the rate of the last minute; absent while they are not being spent.",
        "`credits.ends_in_s` of `volume show`";
    VOLUME_CREDITS_FULL: Gauge "ebbtide_volume_credits_full_seconds", "seconds", ["volume"],
        "Time until the burst credits are full if the volume is idle.",
        "`credits.full_in_s` of `volume show`";
    VOLUME_INSTANCE_CREDIT_RATIO: Gauge "ebbtide_volume_instance_credit_ratio", "0 to 1", ["volume", "credits"],
        "Share of the burst credits that the volume's instance has left: of operations and of bytes.",
        "CloudWatch's `EBSIOBalance%` and `EBSByteBalance%`";
    VOLUME_READ_LATENCY: Histogram "ebbtide_volume_read_latency_seconds", "seconds", ["volume"],
        "Latencies of completed reads by the model, in the bins of the EBS NVMe statistics page.",
        "`live.stats.read_latency` of `volume show`";
    VOLUME_WRITE_LATENCY: Histogram "ebbtide_volume_write_latency_seconds", "seconds", ["volume"],
        "Latencies of completed writes by the model, in the bins of the EBS NVMe statistics page.",
        "`live.stats.write_latency` of `volume show`";
    VOLUME_LATENESS: Histogram "ebbtide_volume_answer_lateness_seconds", "seconds", ["volume"],
        "How late answers were given against the time of the model: what the emulation adds.",
        "the pacer, as `live.pacing` of `volume show`";
    VOLUME_FAULT: Gauge "ebbtide_volume_fault_active", "0 or 1", ["volume", "fault"],
        "Whether a fault is in force: latency, errors, stall, answer-early or ignore-flush.",
        "`live.faults` of `volume show`";
    VOLUME_INJECTED: Counter "ebbtide_volume_faults_injected_total", "requests", ["volume", "fault"],
        "Requests that a fault has changed: to which latency was added, or which were made to fail (errors).",
        "the engine";
    VOLUME_POWER_LOST: Gauge "ebbtide_volume_power_lost", "0 or 1", ["volume"],
        "Whether a power cut has ended the volume: it answers nothing until it is detached and attached.",
        "`live.power_lost` of `volume show`";
    VOLUME_HOST_ERRORS: Counter "ebbtide_volume_host_errors_total", "requests", ["volume"],
        "Requests that failed because the host failed: its disk is full or broken.",
        "`live.host_errors` of `volume show`";
    VOLUME_HOST_TOO_SLOW: Gauge "ebbtide_volume_host_too_slow", "0 or 1", ["volume"],
        "Whether the volume is faster than this host can carry.",
        "`host_too_slow` of `volume show`";
    VOLUME_SNAPSHOT_BYTES: Gauge "ebbtide_volume_initialization_bytes", "bytes", ["volume"],
        "Bytes that the volume's snapshot has; absent where all was there from the beginning.",
        "`initialization.total_bytes` of `volume show`";
    VOLUME_SNAPSHOT_LOADED: Gauge "ebbtide_volume_initialization_loaded_bytes", "bytes", ["volume"],
        "Bytes of the volume's snapshot that are loaded, or were overwritten or discarded before.",
        "`initialization.loaded_bytes` of `volume show`";
    PROCESS_CPU: Counter "process_cpu_seconds_total", "seconds", [],
        "Processor time that the server has used.",
        "`/proc/self/stat`";
    PROCESS_RESIDENT: Gauge "process_resident_memory_bytes", "bytes", [],
        "Resident memory of the server.",
        "`/proc/self/status`";
    PROCESS_START: Gauge "process_start_time_seconds", "seconds since 1970", [],
        "When the server started.",
        "`/proc/self/stat` and `/proc/stat`";
    PROCESS_FDS: Gauge "process_open_fds", "file descriptors", [],
        "File descriptors that the server has open.",
        "`/proc/self/fd`";
    SCRAPE_DURATION: Gauge "ebbtide_scrape_duration_seconds", "seconds", [],
        "How long it took to read the volumes and to write the lines above this one.",
        "the server";
}
