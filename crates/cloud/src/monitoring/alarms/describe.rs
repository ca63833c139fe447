//! DescribeAlarms, DescribeAlarmsForMetric, DescribeAlarmHistory.

use serde_json::{Map, Value, json};

use super::Alarm;
use crate::ApiError;
use crate::monitoring::input::{self, Input};
use crate::monitoring::{Ask, Monitoring, access, read, refuse};

/// Rows of a page: AWS's defaults.
const PAGE: u64 = 50;
const HISTORY_PAGE: u64 = 100;

fn most(input: Input<'_>, default: u64) -> usize {
    usize::try_from(input.number("MaxRecords").unwrap_or(default)).unwrap_or(usize::MAX)
}

/// Whether alarms of metrics are wanted, which are the only ones here.
fn wants_metric_alarms(input: Input<'_>) -> bool {
    let kinds = input.texts("AlarmTypes");
    kinds.is_empty() || kinds.contains(&"MetricAlarm")
}

impl Monitoring {
    pub(in crate::monitoring) fn describe_alarms(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_alarm(ask, "*")?;
        let input = ask.input;
        for name in ["ChildrenOfAlarmName", "ParentsOfAlarmName"] {
            if input.text(name).is_some() {
                return Err(refuse::unsupported(format!("The parameter {name}")));
            }
        }
        let names = input.texts("AlarmNames");
        let prefix = input.text("AlarmNamePrefix");
        if !names.is_empty() && prefix.is_some() {
            let message = "The parameters AlarmNames and AlarmNamePrefix cannot be used together.";
            return Err(refuse::invalid_combination(message));
        }
        let (state, action) = (input.text("StateValue"), input.text("ActionPrefix"));
        let is_wanted = |alarm: &&Alarm| {
            (names.is_empty() || names.contains(&alarm.name.as_str()))
                && prefix.is_none_or(|prefix| alarm.name.starts_with(prefix))
                && state.is_none_or(|state| alarm.state.name() == state)
                && action.is_none_or(|prefix| has_action(alarm, prefix))
        };
        let rows: Vec<Value> = {
            let alarms = self.alarms.lock();
            let all = alarms.of_account(ask.account()).filter(|_| wants_metric_alarms(input));
            all.filter(is_wanted).map(Alarm::shown).collect()
        };
        let token = input.text("NextToken");
        let (rows, token) = input::page("DescribeAlarms", token, most(input, PAGE), rows)?;
        Ok(read::answer("MetricAlarms", rows, token))
    }

    pub(in crate::monitoring) fn describe_alarms_for_metric(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        let wanted = sorted(ask.input);
        let same = |alarm: &Alarm, name: &str| {
            ask.input.0.get(name).is_none_or(|value| alarm.config.get(name) == Some(value))
        };
        let alarms = self.alarms.lock();
        let rows = alarms.of_account(ask.account()).filter(|alarm| {
            let own = Input(&alarm.config);
            let must = ["MetricName", "Namespace"];
            must.iter().all(|name| own.text(name).is_some() && own.text(name) == ask.input.text(name))
                && sorted(own) == wanted
                && ["Statistic", "ExtendedStatistic", "Period", "Unit"].iter().all(|name| same(alarm, name))
        });
        let rows = rows.map(Alarm::shown).collect();
        Ok(read::answer("MetricAlarms", rows, None))
    }

    pub(in crate::monitoring) fn describe_alarm_history(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_alarm(ask, "*")?;
        let input = ask.input;
        if input.text("AlarmContributorId").is_some() {
            return Err(refuse::unsupported("The parameter AlarmContributorId"));
        }
        let history = self.db.lock().history(ask.account(), input.text("AlarmName"));
        let mut history = history.map_err(|error| refuse::internal(&error))?;
        let (from, to) = (input.second("StartDate"), input.second("EndDate"));
        let kind = input.text("HistoryItemType");
        history.retain(|item| {
            wants_metric_alarms(input)
                && kind.is_none_or(|kind| item.kind == kind)
                && from.is_none_or(|from| item.at_ms / 1_000 >= from)
                && to.is_none_or(|to| item.at_ms / 1_000 <= to)
        });
        if input.text("ScanBy") != Some("TimestampAscending") {
            history.reverse();
        }
        let token = input.text("NextToken");
        let (rows, token) = input::page("DescribeAlarmHistory", token, most(input, HISTORY_PAGE), history)?;
        let row = |item: &super::HistoryItem| {
            json!({
                "AlarmName": item.name,
                "AlarmType": "MetricAlarm",
                "Timestamp": input::seconds(item.at_ms),
                "HistoryItemType": item.kind,
                "HistorySummary": item.summary,
                "HistoryData": item.data,
            })
        };
        Ok(read::answer("AlarmHistoryItems", rows.iter().map(row).collect(), token))
    }
}

fn has_action(alarm: &Alarm, prefix: &str) -> bool {
    let lists = ["AlarmActions", "InsufficientDataActions", "OKActions"];
    lists.iter().any(|list| Input(&alarm.config).texts(list).iter().any(|action| action.starts_with(prefix)))
}

fn sorted(input: Input<'_>) -> Vec<(&str, Option<&str>)> {
    let mut dimensions = input.dimensions();
    dimensions.sort_unstable();
    dimensions
}
