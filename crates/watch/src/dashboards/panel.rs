//! The panels, as a table.

use crate::alarm::RuleId;

/// Panels beside each other, below a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelRow {
    /// Its title.
    pub title: &'static str,
    /// Its panels, from left to right.
    pub panels: &'static [Panel],
}

/// A panel: lines over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// Its title.
    pub title: &'static str,
    /// What it shows and how to read it, in a sentence or two.
    pub help: &'static str,
    /// What its values count.
    pub unit: PanelUnit,
    /// Whether its axis is logarithmic.
    pub is_logarithmic: bool,
    /// Rules whose values it draws too. The threshold of the first is a line.
    pub rules: &'static [RuleId],
    /// Its queries.
    pub queries: &'static [PanelQuery],
}

/// A query of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelQuery {
    /// The name of its lines, with labels in two braces.
    pub legend: &'static str,
    /// The query. `$__rate_interval`, `$instance`, `$device` and `$volume` are filled in by Grafana.
    pub expression: &'static str,
}

/// What the values of a panel count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelUnit {
    /// Seconds.
    Seconds,
    /// Operations a second.
    Iops,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// A share, 0 to 1.
    Share,
    /// Anything else.
    Number,
}

impl PanelUnit {
    /// Its name in Grafana.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Iops => "iops",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "binBps",
            Self::Share => "percentunit",
            Self::Number => "short",
        }
    }
}

const fn query(legend: &'static str, expression: &'static str) -> PanelQuery {
    PanelQuery { legend, expression }
}

/// A panel without a rule and with an even axis.
const PLAIN: Panel =
    Panel { title: "", help: "", unit: PanelUnit::Number, is_logarithmic: false, rules: &[], queries: &[] };

/// All rows. The first are the four graphs of the article on gp2 bursts: operations, latency on a logarithmic axis, time in the logs,
/// and what the main thread does.
pub const ROWS: &[PanelRow] = &[
    PanelRow {
        title: "The four graphs: operations, latency, logs, main thread",
        panels: &[
            Panel {
                title: "IOPS",
                help: "A flat top is a limit. With gp2 it is 3,000 until the credits end, and the baseline afterwards.",
                unit: PanelUnit::Iops,
                queries: &[
                    query(
                        "{{device}} reads",
                        "rate(node_disk_reads_completed_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval])",
                    ),
                    query(
                        "{{device}} writes",
                        "rate(node_disk_writes_completed_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval])",
                    ),
                ],
                ..PLAIN
            },
            Panel {
                title: "Latency",
                help: "Mean time of an operation. The axis is logarithmic: from 1 ms to 100 ms is the step of credits that end.",
                unit: PanelUnit::Seconds,
                is_logarithmic: true,
                queries: &[
                    query(
                        "{{device}} read",
                        "rate(node_disk_read_time_seconds_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval]) / rate(node_disk_reads_completed_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval])",
                    ),
                    query(
                        "{{device}} write",
                        "rate(node_disk_write_time_seconds_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval]) / rate(node_disk_writes_completed_total{instance=~\"$instance\",device=~\"$device\"}[$__rate_interval])",
                    ),
                ],
                ..PLAIN
            },
            Panel {
                title: "Time in the logs",
                help: "Threads in the I/O of the redo log and the binary log (mysqld_exporter with collect.perf_schema.file_events), and waits for room in the log buffer.",
                rules: &[RuleId::LogWaits],
                queries: &[query(
                    "{{event_name}}",
                    "sum by (event_name) (rate(mysql_perf_schema_file_events_seconds_total{instance=~\"$instance\",event_name=~\"wait/io/file/(innodb/innodb_log_file|sql/binlog)\"}[$__rate_interval]))",
                )],
                ..PLAIN
            },
            Panel {
                title: "Main thread",
                help: "What InnoDB's main thread spends its time with (MySQL, with collect.info_schema.innodb_metrics), and the share of its loops in which it had work (MariaDB).",
                unit: PanelUnit::Share,
                queries: &[
                    query(
                        "log flush",
                        "rate(mysql_info_schema_innodb_metrics_server_innodb_log_flush_usec_total{instance=~\"$instance\"}[$__rate_interval]) / 1e6",
                    ),
                    query(
                        "change buffer",
                        "rate(mysql_info_schema_innodb_metrics_server_innodb_ibuf_merge_usec_total{instance=~\"$instance\"}[$__rate_interval]) / 1e6",
                    ),
                    query(
                        "checkpoint",
                        "rate(mysql_info_schema_innodb_metrics_server_innodb_checkpoint_usec_total{instance=~\"$instance\"}[$__rate_interval]) / 1e6",
                    ),
                    query(
                        "active loops",
                        "rate(mysql_global_status_innodb_master_thread_active_loops{instance=~\"$instance\"}[$__rate_interval]) / (rate(mysql_global_status_innodb_master_thread_active_loops{instance=~\"$instance\"}[$__rate_interval]) + rate(mysql_global_status_innodb_master_thread_idle_loops{instance=~\"$instance\"}[$__rate_interval]))",
                    ),
                ],
                ..PLAIN
            },
        ],
    },
    PanelRow {
        title: "Limits and credits of the storage",
        panels: &[
            Panel {
                title: "Operations against the limit",
                help: "As the limit counts them, and what it permits: sustained, and while credits last.",
                unit: PanelUnit::Iops,
                queries: &[
                    query(
                        "{{volume}}",
                        "rate(ebbtide_volume_consumed_operations_total{volume=~\"$volume\"}[$__rate_interval])",
                    ),
                    query("{{volume}} {{scope}} {{level}}", "ebbtide_volume_limit_iops{volume=~\"$volume\"}"),
                ],
                ..PLAIN
            },
            Panel {
                title: "Throughput against the limit",
                help: "Bytes read and written, and what the limit permits.",
                unit: PanelUnit::BytesPerSecond,
                queries: &[
                    query(
                        "{{volume}}",
                        "rate(ebbtide_volume_read_bytes_total{volume=~\"$volume\"}[$__rate_interval]) + rate(ebbtide_volume_written_bytes_total{volume=~\"$volume\"}[$__rate_interval])",
                    ),
                    query(
                        "{{volume}} {{scope}} {{level}}",
                        "ebbtide_volume_limit_throughput_bytes_per_second{volume=~\"$volume\"}",
                    ),
                ],
                ..PLAIN
            },
            Panel {
                title: "Burst credits",
                help: "Share that is left.",
                unit: PanelUnit::Share,
                queries: &[
                    query("{{volume}}", "ebbtide_volume_credit_ratio{volume=~\"$volume\"}"),
                    query(
                        "instance of {{volume}}: {{credits}}",
                        "ebbtide_volume_instance_credit_ratio{volume=~\"$volume\"}",
                    ),
                ],
                ..PLAIN
            },
            Panel {
                title: "Credits end in",
                help: "At the present load, and if it goes on as yesterday from this hour on. No line: they are not being spent.",
                unit: PanelUnit::Seconds,
                is_logarithmic: true,
                rules: &[RuleId::CreditsEnd, RuleId::CreditsEndYesterday, RuleId::InstanceCreditsEnd],
                ..PLAIN
            },
        ],
    },
    PanelRow {
        title: "What holds requests back",
        panels: &[
            Panel {
                title: "Throttled time by cause",
                help: "Share of the time in which requests waited for a limit of the volume or of the instance.",
                unit: PanelUnit::Share,
                rules: &[
                    RuleId::ThrottledVolumeIops,
                    RuleId::ThrottledVolumeThroughput,
                    RuleId::ThrottledInstanceIops,
                    RuleId::ThrottledInstanceThroughput,
                ],
                ..PLAIN
            },
            Panel {
                title: "Queue over what the IOPS need",
                help: "1 is as many requests as the provisioned IOPS need by Little's law. More give no more IOPS, only latency.",
                is_logarithmic: true,
                rules: &[RuleId::QueueLength],
                ..PLAIN
            },
            Panel {
                title: "Latency over the floor",
                help: "1 is the time of an operation that nothing holds back.",
                is_logarithmic: true,
                rules: &[RuleId::Latency],
                ..PLAIN
            },
            Panel {
                title: "Stalls and pressure",
                help: "1 while requests wait and none completes; and the share of the time in which processes waited for I/O.",
                unit: PanelUnit::Share,
                rules: &[RuleId::IoStalled],
                queries: &[
                    query(
                        "{{instance}}: some wait",
                        "rate(node_pressure_io_waiting_seconds_total{instance=~\"$instance\"}[$__rate_interval])",
                    ),
                    query(
                        "{{instance}}: all wait",
                        "rate(node_pressure_io_stalled_seconds_total{instance=~\"$instance\"}[$__rate_interval])",
                    ),
                ],
                ..PLAIN
            },
        ],
    },
    PanelRow {
        title: "Redo log and buffer pool",
        panels: &[
            Panel {
                title: "Redo log",
                help: "Checkpoint age over the age at which the server flushes before all else. MariaDB from 10.5 on stays near 0.8 under load.",
                unit: PanelUnit::Share,
                rules: &[RuleId::RedoNearlyFull],
                ..PLAIN
            },
            Panel {
                title: "Sync flush in",
                help: "At the growth of the last minute; 0 while writers wait for it.",
                unit: PanelUnit::Seconds,
                rules: &[RuleId::RedoSyncFlush],
                ..PLAIN
            },
            Panel {
                title: "Redo written",
                help: "Bytes of redo a second.",
                unit: PanelUnit::BytesPerSecond,
                queries: &[query(
                    "{{instance}}",
                    "rate(mysql_global_status_innodb_os_log_written{instance=~\"$instance\"}[$__rate_interval])",
                )],
                ..PLAIN
            },
            Panel {
                title: "Waits for a free page",
                help: "Statements a second that wait for a page of the buffer pool to be written.",
                rules: &[RuleId::FreePageWaits],
                ..PLAIN
            },
        ],
    },
    PanelRow {
        title: "Replication",
        panels: &[
            Panel {
                title: "Lag",
                help: "Seconds behind the source, more than they are to be. No line: the server says NULL, which the panel beside shows.",
                unit: PanelUnit::Seconds,
                rules: &[RuleId::ReplicaLag],
                ..PLAIN
            },
            Panel {
                title: "Stopped",
                help: "1 where a thread does not run, or the lag is NULL.",
                rules: &[RuleId::ReplicaStopped],
                ..PLAIN
            },
            Panel {
                title: "Relay log",
                help: "Bytes that were received and not applied yet.",
                unit: PanelUnit::Bytes,
                queries: &[query(
                    "{{instance}} {{channel_name}}",
                    "mysql_slave_status_relay_log_space{instance=~\"$instance\"}",
                )],
                ..PLAIN
            },
        ],
    },
    PanelRow {
        title: "Server and space",
        panels: &[
            Panel {
                title: "Down",
                help: "1 where no connection is possible.",
                rules: &[RuleId::ServerDown],
                ..PLAIN
            },
            Panel {
                title: "Uptime",
                help: "Seconds since the server was started.",
                unit: PanelUnit::Seconds,
                is_logarithmic: true,
                rules: &[RuleId::ServerRestarted],
                ..PLAIN
            },
            Panel {
                title: "Free space",
                help: "Share of each file system that is free.",
                unit: PanelUnit::Share,
                queries: &[query(
                    "{{mountpoint}}",
                    "node_filesystem_avail_bytes{instance=~\"$instance\"} / node_filesystem_size_bytes{instance=~\"$instance\"}",
                )],
                ..PLAIN
            },
            Panel {
                title: "Full in",
                help: "Purges of binary logs taken out. No line: it does not grow.",
                unit: PanelUnit::Seconds,
                is_logarithmic: true,
                rules: &[RuleId::DiskFull, RuleId::DiskFills],
                ..PLAIN
            },
        ],
    },
];
