//! What a rule is.

use std::fmt;

use serde::Serialize;

/// A rule: what it watches, when it alarms, and the same as a query of Prometheus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Which.
    pub id: RuleId,
    /// Its name, the same for ever: in events, labels and rule files.
    pub name: &'static str,
    /// What its subjects are.
    pub subject: SubjectKind,
    /// What it watches, without a full stop.
    pub watches: &'static str,
    /// What its value counts.
    pub unit: ValueUnit,
    /// When the value alarms.
    pub threshold: Threshold,
    /// What else has to be, in a sentence; empty where nothing has.
    pub condition: &'static str,
    /// Why the threshold is what it is.
    pub reason: &'static str,
    /// Where the facts come from; an address, or a file of a server's source.
    pub source: &'static str,
    /// How long the value has to be beyond the threshold before the state is ALARM, s.
    pub alarm_after_s: u32,
    /// How long it has to be back before the state is OK, s.
    pub ok_after_s: u32,
    /// How bad it is.
    pub severity: AlarmSeverity,
    /// The doctor's check of the same trouble, which has a fix; None: there is none.
    pub check: Option<&'static str>,
    /// What to do where the doctor has not looked, in a sentence.
    pub advice: &'static str,
    /// The rule as queries.
    pub query: Query,
}

/// A rule as queries of Prometheus, by the names of mysqld_exporter, node_exporter and our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// The value: what the panel draws and the threshold is compared with.
    pub value: &'static str,
    /// What has to be true besides, beginning with `and` or `unless`; empty where nothing has.
    pub besides: &'static str,
    /// The labels that name the subject: the first that a result has.
    pub labels: &'static [&'static str],
}

/// Credits that have ended are no forecast any more: they alarm after this time, s. It outlasts a look or two at an empty bucket that
/// earns a little.
const ENDED_AFTER_S: u32 = 10;

impl Rule {
    /// How long a value has to be beyond the threshold before the state is ALARM, s: shorter for a volume whose credits have ended.
    #[must_use]
    pub fn seconds_to_alarm(&self, value: Option<f64>) -> u32 {
        let has_ended = self.id == RuleId::CreditsEnd && value == Some(0.0);
        if has_ended { ENDED_AFTER_S } else { self.alarm_after_s }
    }

    /// The expression of a rule file: it has a result where the rule alarms.
    #[must_use]
    pub fn expression(&self) -> String {
        let Threshold { raise, side, .. } = self.threshold;
        let Query { value, besides, .. } = self.query;
        let space = if besides.is_empty() { "" } else { " " };
        format!("({value}) {} {raise}{space}{besides}", side.operator())
    }
}

/// Values that raise an alarm and that end it. Between them nothing changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The value from which on it is true.
    pub raise: f64,
    /// The value from which on it is no longer true.
    pub clear: f64,
    /// On which side of `raise` it is true.
    pub side: Side,
}

impl Threshold {
    /// A value at or above `raise` alarms, and one below `clear` does not.
    #[must_use]
    pub const fn above(raise: f64, clear: f64) -> Self {
        Self { raise, clear, side: Side::Above }
    }

    /// A value at or below `raise` alarms, and one above `clear` does not.
    #[must_use]
    pub const fn below(raise: f64, clear: f64) -> Self {
        Self { raise, clear, side: Side::Below }
    }

    /// What a value says. A value that is no number is unknown.
    #[must_use]
    pub fn verdict(&self, value: f64) -> Verdict {
        let (raises, clears) = match self.side {
            Side::Above => (value >= self.raise, value < self.clear),
            Side::Below => (value <= self.raise, value > self.clear),
        };
        match (raises, clears) {
            _ if value.is_nan() => Verdict::Unknown,
            (true, _) => Verdict::Raise,
            (false, true) => Verdict::Clear,
            (false, false) => Verdict::Between,
        }
    }
}

/// A side of a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At it and above.
    Above,
    /// At it and below.
    Below,
}

impl Side {
    /// The operator of Prometheus.
    #[must_use]
    pub const fn operator(self) -> &'static str {
        match self {
            Self::Above => ">=",
            Self::Below => "<=",
        }
    }
}

/// What one look says of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is true.
    Raise,
    /// It is neither true enough to alarm nor false enough to end an alarm.
    Between,
    /// It is false.
    Clear,
    /// Nothing is known.
    Unknown,
}

/// What the value of a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueUnit {
    /// Seconds until something.
    Seconds,
    /// A share, 0 to 1.
    Share,
    /// A multiple of what is usual.
    Times,
    /// Events a second.
    PerSecond,
    /// 1 where it is so, else 0.
    Truth,
}

/// What alarms are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// A volume, or a device of the kernel.
    Volume,
    /// An instance.
    Instance,
    /// A server.
    Server,
    /// A channel of replication of a server.
    Replica,
    /// A file system.
    FileSystem,
    /// A check of the doctor for a server.
    Check,
}

/// How bad an alarm is. The words are those of Alertmanager's examples and of the public rule sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlarmSeverity {
    /// The service is slower than it could be, or will be: in working hours.
    Warning,
    /// The service is down or stands still, or will within the hour: now.
    Critical,
}

impl AlarmSeverity {
    /// Its name, as in JSON and in labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// The state of an alarm, with the names of CloudWatch (API reference, `MetricAlarm`, `StateValue`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum AlarmState {
    /// The rule is false.
    #[serde(rename = "OK")]
    Ok,
    /// The rule has been true for long enough.
    #[serde(rename = "ALARM")]
    Alarm,
    /// Too little is known; each alarm begins so.
    #[serde(rename = "INSUFFICIENT_DATA")]
    InsufficientData,
}

impl AlarmState {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Alarm => "ALARM",
            Self::InsufficientData => "INSUFFICIENT_DATA",
        }
    }
}

impl fmt::Display for AlarmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rules, in the order of [`RULES`](crate::alarm::RULES).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleId {
    /// Burst credits of a volume end soon.
    CreditsEnd,
    /// They end within hours at the load of yesterday.
    CreditsEndYesterday,
    /// Burst credits of an instance end soon.
    InstanceCreditsEnd,
    /// More requests wait than the IOPS need.
    QueueLength,
    /// The volume's IOPS hold requests back.
    ThrottledVolumeIops,
    /// The volume's throughput does.
    ThrottledVolumeThroughput,
    /// The instance's IOPS do.
    ThrottledInstanceIops,
    /// The instance's throughput does.
    ThrottledInstanceThroughput,
    /// Operations take several times as long as on an idle volume.
    Latency,
    /// Requests wait, and none completes.
    IoStalled,
    /// There is no connection to the server.
    ServerDown,
    /// The server does not answer.
    ServerHangs,
    /// The server refuses the login.
    LoginRefused,
    /// The server was started again.
    ServerRestarted,
    /// The checkpoint is far behind.
    RedoNearlyFull,
    /// The sync flush is near, or goes on.
    RedoSyncFlush,
    /// Pages are waited for.
    FreePageWaits,
    /// The log buffer is waited for.
    LogWaits,
    /// A thread of replication does not run, or the lag is NULL.
    ReplicaStopped,
    /// A replica is behind.
    ReplicaLag,
    /// A file system is full within hours.
    DiskFull,
    /// A file system is full within a day.
    DiskFills,
    /// A check of the doctor has become true.
    DoctorCheck,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_true_at_itself_and_has_a_gap_before_it_is_false() {
        let above = Threshold::above(4.0, 2.0);
        assert_eq!(
            [5.0, 4.0, 3.0, 2.0, 1.9, f64::NAN].map(|value| above.verdict(value)),
            [
                Verdict::Raise,
                Verdict::Raise,
                Verdict::Between,
                Verdict::Between,
                Verdict::Clear,
                Verdict::Unknown
            ]
        );
        let below = Threshold::below(60.0, 120.0);
        assert_eq!(
            [0.0, 60.0, 100.0, 121.0, f64::INFINITY].map(|value| below.verdict(value)),
            [Verdict::Raise, Verdict::Raise, Verdict::Between, Verdict::Clear, Verdict::Clear]
        );
    }
}
