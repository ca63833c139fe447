//! The table of rules. Alarms, rule files of Prometheus and panels of Grafana are made of it.

use crate::alarm::rule::{
    AlarmSeverity::{Critical, Warning},
    Query, Rule, RuleId, SubjectKind, Threshold, ValueUnit,
};

const EBS_TYPES: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html";
const EBS_IO: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html";
const EBS_METRICS: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/using_cloudwatch_ebs.html";
const EBS_INSTANCE: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-optimized.html";
const MYSQL_INNODB: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html";
const MYSQL_REPLICA: &str = "https://dev.mysql.com/doc/refman/8.4/en/show-replica-status.html";

const HOUR: f64 = 3_600.0;

/// Time over a limit, which four rules watch.
macro_rules! throttled {
    ($id:ident, $name:literal, $watches:literal, $cause:literal, $ebs:literal, $check:literal, $advice:literal, $source:expr) => {
        Rule {
            id: RuleId::$id,
            name: $name,
            subject: SubjectKind::Volume,
            watches: $watches,
            unit: ValueUnit::Share,
            threshold: Threshold::above(0.2, 0.05),
            condition: "",
            reason: "AWS calls a volume over its limit where a second of a minute was (the 0 or 1 of the exceeded checks), which a single \
                     checkpoint reaches. A fifth of each minute is time that statements wait",
            source: $source,
            alarm_after_s: 120,
            ok_after_s: 180,
            severity: Warning,
            check: Some($check),
            advice: $advice,
            query: Query {
                value: concat!(
                    "rate(ebbtide_volume_throttled_seconds_total{cause=\"",
                    $cause,
                    "\"}[1m]) or rate(node_ebs_",
                    $ebs,
                    "_seconds_total[1m])"
                ),
                besides: "",
                labels: &["volume", "device"],
            },
        }
    };
}

/// All rules, in the order of [`RuleId`].
pub const RULES: &[Rule] = &[
    Rule {
        id: RuleId::CreditsEnd,
        name: "credits_end",
        subject: SubjectKind::Volume,
        watches: "when the burst credits of a volume end at the present load",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(HOUR, 2.0 * HOUR),
        condition: "at the mean load of the last 5 minutes and at that of the last 30: a batch of some minutes does not alarm. Where less than \
                    15 minutes were seen, within 15 minutes. Credits that have ended while requests wait alarm after 10 seconds",
        reason: "when the credits have ended, gp2, st1 and sc1 give their baseline, a tenth of the burst or less, and latencies rise a \
                 hundredfold. An hour is enough to modify the volume, which takes effect within minutes",
        source: EBS_TYPES,
        alarm_after_s: 60,
        ok_after_s: 300,
        severity: Critical,
        check: Some("E02"),
        advice: "Modify the volume to gp3 while it is in use, enlarge it, or stop what loads it.",
        query: Query {
            value: "ebbtide_alarm_value{rule=\"credits_end\"}",
            besides: "",
            labels: &["subject"],
        },
    },
    Rule {
        id: RuleId::CreditsEndYesterday,
        name: "credits_end_yesterday",
        subject: SubjectKind::Volume,
        watches: "when the burst credits of a volume end if the load goes on as it did yesterday from this hour on",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(12.0 * HOUR, 18.0 * HOUR),
        condition: "the load of 20 of the last 24 hours is known",
        reason: "a load that rises and falls with the day empties the credits at its peak. Half a day is time to act before it",
        source: EBS_TYPES,
        alarm_after_s: 300,
        ok_after_s: 1_800,
        severity: Warning,
        check: Some("E02"),
        advice: "Modify the volume to gp3 while it is in use, or enlarge it, before the peak.",
        query: Query {
            value: "max by (volume) (ebbtide_volume_credits_end_yesterday_seconds)",
            besides: "",
            labels: &["volume"],
        },
    },
    Rule {
        id: RuleId::InstanceCreditsEnd,
        name: "instance_credits_end",
        subject: SubjectKind::Instance,
        watches: "when the burst credits of an instance for its volumes end at the present load",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(600.0, 1_200.0),
        condition: "as of credits_end; of operations and of bytes the one that ends first",
        reason: "smaller sizes hold their maximum for 30 minutes in a day. All volumes of the instance are held to its baseline afterwards",
        source: EBS_INSTANCE,
        alarm_after_s: 60,
        ok_after_s: 300,
        severity: Critical,
        check: Some("E04"),
        advice: "Use an instance whose baseline carries the load: a larger volume changes nothing.",
        query: Query {
            value: "max by (instance) (max_over_time(ebbtide_instance_credits_end_seconds[5m]))",
            besides: "",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::QueueLength,
        name: "queue_length",
        subject: SubjectKind::Volume,
        watches: "how many requests wait, over as many as the volume's IOPS need",
        unit: ValueUnit::Times,
        threshold: Threshold::above(4.0, 2.0),
        condition: "the need is at least one request; the mean of a minute",
        reason: "by Little's law the provisioned IOPS need a queue of IOPS times the time of one operation: 3 for 3,000 IOPS of 1 ms, as AWS \
                 advises one for each 1,000 IOPS. The older rule, one for each 200 IOPS, takes 5 ms for an operation: it calls a queue of 15 \
                 right where each request waits five times as long as it needs. What is four times over gives no more IOPS, only latency",
        source: EBS_IO,
        alarm_after_s: 120,
        ok_after_s: 120,
        severity: Warning,
        check: Some("E03"),
        advice: "Raise the IOPS or the throughput of the volume, whichever holds it back, or send it fewer requests at a time.",
        query: Query {
            value: "ebbtide_alarm_value{rule=\"queue_length\"}",
            besides: "",
            labels: &["subject"],
        },
    },
    throttled!(
        ThrottledVolumeIops,
        "throttled_volume_iops",
        "which share of the time the volume's IOPS hold requests back",
        "volume-iops",
        "exceeded_iops",
        "E03",
        "Raise the volume's IOPS: more throughput changes nothing.",
        EBS_METRICS
    ),
    throttled!(
        ThrottledVolumeThroughput,
        "throttled_volume_throughput",
        "which share of the time the volume's throughput holds requests back",
        "volume-throughput",
        "exceeded_tp",
        "E03",
        "Raise the volume's throughput: more IOPS change nothing.",
        EBS_METRICS
    ),
    throttled!(
        ThrottledInstanceIops,
        "throttled_instance_iops",
        "which share of the time the instance's IOPS hold requests back",
        "instance-iops",
        "ec2_exceeded_iops",
        "E04",
        "Use an instance with more IOPS: a faster volume changes nothing.",
        EBS_INSTANCE
    ),
    throttled!(
        ThrottledInstanceThroughput,
        "throttled_instance_throughput",
        "which share of the time the instance's throughput holds requests back",
        "instance-throughput",
        "ec2_exceeded_tp",
        "E04",
        "Use an instance with more throughput: a faster volume changes nothing.",
        EBS_INSTANCE
    ),
    Rule {
        id: RuleId::Latency,
        name: "latency",
        subject: SubjectKind::Volume,
        watches: "how long an operation takes, over its time on the same volume when nothing holds it back",
        unit: ValueUnit::Times,
        threshold: Threshold::above(5.0, 3.0),
        condition: "2 ms or more, and 10 operations a second or more; the worse of reads and writes, as the mean of a minute. The floor is the \
                    type's median, and of a device whose type is not known the quietest minute of a day",
        reason: "a fixed threshold of 100 ms is late by a factor of a hundred on EBS, and early on a disk. The published case went from 1 or 2 \
                 ms to more than 100 ms",
        source: EBS_IO,
        alarm_after_s: 60,
        ok_after_s: 120,
        severity: Warning,
        check: Some("E05"),
        advice: "Look at the limits that hold requests back. Below them another type of volume is faster, and more IOPS are not.",
        query: Query { value: "ebbtide_alarm_value{rule=\"latency\"}", besides: "", labels: &["subject"] },
    },
    Rule {
        id: RuleId::IoStalled,
        name: "io_stalled",
        subject: SubjectKind::Volume,
        watches: "whether requests wait while none completes",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "",
        reason: "AWS reports a volume as impaired where no request completes (VolumeStalledIOCheck). The longest operation of a volume that \
                 works takes less than a second",
        source: EBS_METRICS,
        alarm_after_s: 10,
        ok_after_s: 10,
        severity: Critical,
        check: None,
        advice: "Look at the volume's status and its faults. Fail over if it does not come back.",
        query: Query { value: "ebbtide_alarm_value{rule=\"io_stalled\"}", besides: "", labels: &["subject"] },
    },
    Rule {
        id: RuleId::ServerDown,
        name: "server_down",
        subject: SubjectKind::Server,
        watches: "whether a connection to the server is possible",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "",
        reason: "a restart takes seconds where nothing has to be recovered",
        source: "https://github.com/prometheus/mysqld_exporter/tree/main/mysqld-mixin",
        alarm_after_s: 30,
        ok_after_s: 30,
        severity: Critical,
        check: None,
        advice: "Look into the server's error log.",
        query: Query { value: "1 - mysql_up", besides: "", labels: &["instance"] },
    },
    Rule {
        id: RuleId::ServerHangs,
        name: "server_hangs",
        subject: SubjectKind::Server,
        watches: "whether the server takes connections and does not answer",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "",
        reason: "a server whose disk is full, or whose storage does not answer, keeps its connections: a look at the port finds nothing",
        source: "https://dev.mysql.com/doc/refman/8.4/en/full-disk.html",
        alarm_after_s: 30,
        ok_after_s: 30,
        severity: Critical,
        check: None,
        advice: "Look at the free space, at io_stalled of its volumes, and into the server's error log.",
        query: Query {
            value: "max by (subject) (ebbtide_alarm_state{rule=\"server_hangs\"})",
            besides: "",
            labels: &["subject"],
        },
    },
    Rule {
        id: RuleId::LoginRefused,
        name: "login_refused",
        subject: SubjectKind::Server,
        watches: "whether the server refuses our login",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "",
        reason: "nothing else of the server is watched meanwhile",
        source: "https://dev.mysql.com/doc/refman/8.4/en/problems-connecting.html",
        alarm_after_s: 60,
        ok_after_s: 30,
        severity: Warning,
        check: None,
        advice: "Give the account its password and its rights again.",
        query: Query {
            value: "max by (subject) (ebbtide_alarm_state{rule=\"login_refused\"})",
            besides: "",
            labels: &["subject"],
        },
    },
    Rule {
        id: RuleId::ServerRestarted,
        name: "server_restarted",
        subject: SubjectKind::Server,
        watches: "how long ago the server was started again",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(300.0, 300.0),
        condition: "the start was seen: its uptime went back",
        reason: "a server that was killed and started again at once is never down for a minute, and its buffer pool is cold. It is told by the \
                 uptime that goes back, however rarely one looks",
        source: "https://dev.mysql.com/doc/refman/8.4/en/server-status-variables.html",
        alarm_after_s: 0,
        ok_after_s: 0,
        severity: Warning,
        check: None,
        advice: "Look into the server's error log for the reason.",
        query: Query {
            value: "mysql_global_status_uptime",
            besides: "and resets(mysql_global_status_uptime[10m]) > 0",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::RedoNearlyFull,
        name: "redo_nearly_full",
        subject: SubjectKind::Server,
        watches: "how far the checkpoint is behind, over the age at which the server flushes before all else",
        unit: ValueUnit::Share,
        threshold: Threshold::above(0.85, 0.75),
        condition: "on MariaDB from 10.5 on 97% counts as 0.85, and 95% as 0.75",
        reason: "near the maximum writers wait while pages are flushed. MariaDB flushes for the checkpoint from 88% on alone, so that it stays at \
                 88% to 95% under any load",
        source: MYSQL_INNODB,
        alarm_after_s: 20,
        ok_after_s: 120,
        severity: Warning,
        check: Some("R02"),
        advice: "Enlarge the redo log (online from MySQL 8.0.30 and MariaDB 10.9 on), or let pages be flushed earlier.",
        query: Query {
            value: "ebbtide_alarm_value{rule=\"redo_nearly_full\"}",
            besides: "",
            labels: &["subject"],
        },
    },
    Rule {
        id: RuleId::RedoSyncFlush,
        name: "redo_sync_flush",
        subject: SubjectKind::Server,
        watches: "when the server flushes before all else, at the present growth of the checkpoint's age",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(30.0, 60.0),
        condition: "the value of redo_nearly_full is 0.8 or more; 0 while pages are flushed so",
        reason: "writers wait from then on. The age of a log that is far from full grows quickly after each checkpoint, and says nothing",
        source: MYSQL_INNODB,
        alarm_after_s: 5,
        ok_after_s: 60,
        severity: Critical,
        check: Some("R01"),
        advice: "Enlarge the redo log, or slow down what writes.",
        query: Query {
            value: "ebbtide_alarm_value{rule=\"redo_sync_flush\"}",
            besides: "",
            labels: &["subject"],
        },
    },
    Rule {
        id: RuleId::FreePageWaits,
        name: "free_page_waits",
        subject: SubjectKind::Server,
        watches: "how often a statement waits for a free page of the buffer pool",
        unit: ValueUnit::PerSecond,
        threshold: Threshold::above(1.0, 0.1),
        condition: "",
        reason: "each is a statement that waits for a page to be written. Some at the start of a batch are usual",
        source: MYSQL_INNODB,
        alarm_after_s: 30,
        ok_after_s: 120,
        severity: Warning,
        check: Some("B03"),
        advice: "Enlarge the buffer pool first. Then let more pages be kept free.",
        query: Query {
            value: "rate(mysql_global_status_innodb_buffer_pool_wait_free[1m])",
            besides: "",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::LogWaits,
        name: "log_waits",
        subject: SubjectKind::Server,
        watches: "how often a transaction waits for room in the log buffer",
        unit: ValueUnit::PerSecond,
        threshold: Threshold::above(1.0, 0.1),
        condition: "",
        reason: "a public rule alarms at 10 a second for 15 minutes: by then 9,000 transactions have waited",
        source: MYSQL_INNODB,
        alarm_after_s: 30,
        ok_after_s: 120,
        severity: Warning,
        check: Some("R03"),
        advice: "Raise innodb_log_buffer_size, and look at the latency of the volume with the redo log.",
        query: Query {
            value: "rate(mysql_global_status_innodb_log_waits[1m])",
            besides: "",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::ReplicaStopped,
        name: "replica_stopped",
        subject: SubjectKind::Replica,
        watches: "whether both threads of replication run and the lag is known",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "",
        reason: "a replica that stands still reports NULL as its lag, which no rule on the lag sees. Names with slave_ alone are empty from \
                 MySQL 8.4 on",
        source: MYSQL_REPLICA,
        alarm_after_s: 30,
        ok_after_s: 10,
        severity: Critical,
        check: Some("L12"),
        advice: "Look at the last error of the replica's threads.",
        query: Query {
            // A lag of NULL has no sample: then the thread that runs is added.
            value: "(1 - mysql_slave_status_replica_io_running * mysql_slave_status_replica_sql_running + (mysql_slave_status_replica_io_running unless mysql_slave_status_seconds_behind_source)) or (1 - mysql_slave_status_replica_io_running * mysql_slave_status_replica_sql_running) or (1 - mysql_slave_status_slave_io_running * mysql_slave_status_slave_sql_running + (mysql_slave_status_slave_io_running unless mysql_slave_status_seconds_behind_master)) or (1 - mysql_slave_status_slave_io_running * mysql_slave_status_slave_sql_running)",
            besides: "",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::ReplicaLag,
        name: "replica_lag",
        subject: SubjectKind::Replica,
        watches: "how far a replica is behind its source, more than it is to be",
        unit: ValueUnit::Seconds,
        threshold: Threshold::above(60.0, 30.0),
        condition: "",
        reason: "reads of the replica are a minute old, and a switch waits for as long",
        source: MYSQL_REPLICA,
        alarm_after_s: 120,
        ok_after_s: 60,
        severity: Warning,
        check: Some("L09"),
        advice: "Apply in parallel, and look at the latency of the replica's volume.",
        query: Query {
            value: "(mysql_slave_status_seconds_behind_source - mysql_slave_status_sql_delay) or (mysql_slave_status_seconds_behind_master - mysql_slave_status_sql_delay)",
            besides: "",
            labels: &["instance"],
        },
    },
    Rule {
        id: RuleId::DiskFull,
        name: "disk_full",
        subject: SubjectKind::FileSystem,
        watches: "when a file system is full at its present growth",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(4.0 * HOUR, 6.0 * HOUR),
        condition: "at the growth of the last 30 minutes and at that of the last 3 hours. What was purged before, such as binary logs, is taken \
                    to be purged again: growth below the last peak does not count. Below 3% and 32 GiB free it is 0",
        reason: "a straight line through a saw-tooth of purged binary logs says each day that the disk is full by night",
        source: "https://dev.mysql.com/doc/refman/8.4/en/full-disk.html",
        alarm_after_s: 120,
        ok_after_s: 600,
        severity: Critical,
        check: Some("O09"),
        advice: "Enlarge the volume and its file system online, or purge binary logs.",
        query: Query { value: "ebbtide_file_system_full_seconds", besides: "", labels: &["mountpoint"] },
    },
    Rule {
        id: RuleId::DiskFills,
        name: "disk_fills",
        subject: SubjectKind::FileSystem,
        watches: "when a file system is full at its present growth",
        unit: ValueUnit::Seconds,
        threshold: Threshold::below(24.0 * HOUR, 36.0 * HOUR),
        condition: "as of disk_full; and less than 40% is free",
        reason: "a day is enough to enlarge a volume in working hours",
        source: "https://dev.mysql.com/doc/refman/8.4/en/full-disk.html",
        alarm_after_s: 600,
        ok_after_s: 1_800,
        severity: Warning,
        check: Some("O09"),
        advice: "Enlarge the volume and its file system online, or keep binary logs for a shorter time.",
        query: Query {
            value: "ebbtide_file_system_full_seconds",
            besides: "and on (mountpoint) node_filesystem_avail_bytes / node_filesystem_size_bytes < 0.4",
            labels: &["mountpoint"],
        },
    },
    Rule {
        id: RuleId::DoctorCheck,
        name: "doctor_check",
        subject: SubjectKind::Check,
        watches: "whether a check of the doctor has become true",
        unit: ValueUnit::Truth,
        threshold: Threshold::above(1.0, 1.0),
        condition: "it was not true at the first look: what was true before is a matter for the doctor's page",
        reason: "settings and the machine change, and the report of last month does not say so",
        source: "https://dev.mysql.com/doc/refman/8.4/en/optimizing-innodb.html",
        alarm_after_s: 0,
        ok_after_s: 0,
        severity: Warning,
        check: None,
        advice: "Do what the doctor proposes.",
        query: Query {
            value: "max by (subject) (ebbtide_alarm_state{rule=\"doctor_check\"})",
            besides: "",
            labels: &["subject"],
        },
    },
];

/// What `ebbtide watch` feeds a rule with. What is not fed never alarms there.
#[must_use]
pub const fn fed_with(id: RuleId) -> &'static str {
    match id {
        RuleId::CreditsEnd | RuleId::CreditsEndYesterday => {
            "volumes of Ebbtide alone: neither the kernel nor a device reports the credits of a real one"
        }
        RuleId::InstanceCreditsEnd => "not fed yet: nothing of instances is read",
        RuleId::QueueLength => {
            "volumes of Ebbtide, and devices whose volume `--volume` or the file of names has"
        }
        RuleId::ThrottledVolumeIops
        | RuleId::ThrottledVolumeThroughput
        | RuleId::ThrottledInstanceIops
        | RuleId::ThrottledInstanceThroughput => "volumes of Ebbtide, and EBS volumes on Nitro, as root",
        RuleId::Latency | RuleId::IoStalled => "volumes of Ebbtide, and devices",
        RuleId::DiskFull | RuleId::DiskFills => "file systems on block devices",
        RuleId::DoctorCheck => "not fed yet: the doctor is not run by it",
        RuleId::ReplicaStopped | RuleId::ReplicaLag => "replicas",
        RuleId::ServerDown
        | RuleId::ServerHangs
        | RuleId::LoginRefused
        | RuleId::ServerRestarted
        | RuleId::RedoNearlyFull
        | RuleId::RedoSyncFlush
        | RuleId::FreePageWaits
        | RuleId::LogWaits => "servers",
    }
}

/// The row of a rule.
#[must_use]
pub const fn rule(id: RuleId) -> &'static Rule {
    &RULES[id as usize]
}

/// The rule of a name; None: there is none.
#[must_use]
pub fn rule_of_name(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_rule_is_at_the_place_of_its_id_and_has_a_name_of_its_own() {
        for (place, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.id as usize, place, "{}", rule.name);
        }
        assert_eq!(RULES.last().unwrap().id, RuleId::DoctorCheck, "each id has a row");
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        assert_eq!(rule_of_name("log_waits").map(|rule| rule.id), Some(RuleId::LogWaits));
    }

    #[test]
    fn each_rule_says_why_and_does_not_alarm_and_end_at_the_same_value() {
        for rule in RULES {
            for text in [rule.watches, rule.reason, rule.source, rule.advice, rule.query.value] {
                assert!(!text.is_empty(), "{}", rule.name);
            }
            let Threshold { raise, clear, .. } = rule.threshold;
            let holds = rule.threshold.verdict(raise) == crate::alarm::rule::Verdict::Raise;
            assert!(holds, "{}", rule.name);
            let is_a_word = rule.unit == ValueUnit::Truth || rule.id == RuleId::ServerRestarted;
            assert_eq!(raise.total_cmp(&clear).is_eq(), is_a_word, "{}", rule.name);
        }
    }
}
