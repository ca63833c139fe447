//! What is kept of a replica's status: of several channels the one that is worst off, without the names of accounts and hosts.

use crate::Variables;

/// Columns of replication that are kept: none names an account or a host, or quotes a statement.
fn is_kept(column: &str) -> bool {
    column.ends_with("_running")
        || column.ends_with("_errno")
        || column.starts_with("seconds_behind_")
        || matches!(column, "using_gtid" | "auto_position" | "sql_delay")
}

/// Channels of group replication have no source, and run only while a member joins.
const OF_A_GROUP: &str = "group_replication_";

/// The threads of a channel, by the names of both makers and of all versions.
const THREADS: [&str; 4] =
    ["slave_io_running", "slave_sql_running", "replica_io_running", "replica_sql_running"];

/// The columns that are kept of the channel that is worst off: one that does not run, else the one that is behind most. Empty
/// where the server has no source. `any_channel_running` says that another one runs.
#[must_use]
pub fn worst_channel(channels: impl IntoIterator<Item = Variables>) -> Variables {
    let of_source =
        |channel: &Variables| channel.get("channel_name").is_none_or(|name| !name.starts_with(OF_A_GROUP));
    let trouble = |channel: &Variables| {
        let stopped =
            THREADS.iter().filter(|name| channel.get(name).is_some_and(|word| word != "Yes")).count();
        let behind = ["seconds_behind_source", "seconds_behind_master"]
            .iter()
            .find_map(|name| channel.get(name)?.parse::<u64>().ok());
        (stopped, behind.unwrap_or(0))
    };
    let channels: Vec<Variables> = channels.into_iter().filter(of_source).collect();
    let runs =
        |channel: &Variables| THREADS.iter().any(|name| channel.get(name).is_some_and(|word| word != "No"));
    let others = channels.len() > 1 && channels.iter().any(runs);
    // Of equals the first, as the server lists them.
    let worst =
        channels.into_iter().reduce(|worst, one| if trouble(&one) > trouble(&worst) { one } else { worst });
    let kept = |channel: Variables| {
        let others = others.then_some(("any_channel_running", "Yes"));
        channel.iter().filter(|(name, _)| is_kept(name)).chain(others).collect()
    };
    worst.map(kept).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(name: &str, threads: [&str; 2], behind: Option<&str>) -> Variables {
        let mut columns = vec![
            ("Channel_Name", name),
            ("Replica_IO_Running", threads[0]),
            ("Replica_SQL_Running", threads[1]),
            ("Source_Host", "db1"),
        ];
        columns.extend(behind.map(|behind| ("Seconds_Behind_Source", behind)));
        Variables::from_iter(columns)
    }

    #[test]
    fn of_several_sources_the_one_that_is_worst_off_is_kept_and_groups_have_none() {
        let fine = || channel("a", ["Yes", "Yes"], Some("3"));
        let behind = || channel("b", ["Yes", "Yes"], Some("40"));
        let stopped = || channel("c", ["Yes", "No"], None);
        let sql = |channels: Vec<Variables>| {
            let worst = worst_channel(channels);
            assert_eq!((worst.get("source_host"), worst.get("channel_name")), (None, None));
            [worst.get("replica_sql_running"), worst.get("seconds_behind_source")]
                .map(|one| one.map(str::to_owned))
        };
        let is = |words: [Option<&str>; 2]| words.map(|word| word.map(str::to_owned));
        assert_eq!(sql(vec![fine(), behind()]), is([Some("Yes"), Some("40")]));
        assert_eq!(sql(vec![behind(), stopped(), fine()]), is([Some("No"), None]));
        assert_eq!(sql(vec![]), is([None, None]));
        let runs = |channels: Vec<Variables>| worst_channel(channels).get("any_channel_running").is_some();
        let dead = || channel("d", ["No", "No"], None);
        assert_eq!(
            [runs(vec![dead(), fine()]), runs(vec![dead(), dead()]), runs(vec![dead()])],
            [true, false, false]
        );
        let member = channel("group_replication_recovery", ["No", "No"], None);
        assert!(worst_channel([member.clone()]).is_empty(), "a member of a group has no source");
        assert_eq!(sql(vec![member, fine()]), is([Some("Yes"), Some("3")]));
    }
}
