//! A server in a view.

use ebbtide_mysql::sampling::{Reading, ReplicaRow};
use ebbtide_observe::Rates;
use ebbtide_observe::metric::Maker;

use super::looks::{ServerLook, ServerState};
use super::replica_error::without_quotes;
use super::server_track::ServerTrack;
use crate::reading::ThreadState;
use crate::server::{ReplicaLag, lags};
use crate::view::{RedoView, ReplicaView, ServerView};

/// The view of a server. `is_fresh` says whether its newest status is of this moment: without it no figure is shown.
pub(super) fn server_view(
    look: &ServerLook,
    track: &ServerTrack,
    is_fresh: bool,
    files: Vec<(String, String)>,
) -> ServerView {
    let reading = &look.reading;
    let down = match &look.state {
        ServerState::NotAsked => Some("it has not answered yet".to_owned()),
        ServerState::Answers | ServerState::Rests => None,
        ServerState::Unanswered { error, .. } => Some(error.clone()),
    };
    let mut view = ServerView {
        name: look.name.clone(),
        address: look.address.clone(),
        version: version(reading),
        files,
        ..ServerView::default()
    };
    if down.is_none() && is_fresh {
        show_moment(&mut view, reading);
        show_redo(&mut view, track);
        show_growth(&mut view, track);
        view.replicas = replicas(reading);
    }
    ServerView { down, ..view }
}

/// Flavour and version, such as `MariaDB 11.8.9`.
fn version(reading: &Reading) -> String {
    let Some(maker) = reading.maker else { return String::new() };
    let variables = reading.variables.as_ref();
    let comment = variables.and_then(|variables| variables.value.get("version_comment")).unwrap_or_default();
    let flavour = match maker {
        Maker::MariaDb => "MariaDB",
        Maker::MySql if comment.contains("Percona") => "Percona Server",
        Maker::MySql => "MySQL",
    };
    reading.release.map_or_else(|| flavour.to_owned(), |release| format!("{flavour} {release}"))
}

/// A status variable that is a number.
fn status(reading: &Reading, name: &str) -> Option<f64> {
    reading.status.as_ref()?.value.get(name)?.parse().ok()
}

/// Figures of the moment.
fn show_moment(view: &mut ServerView, reading: &Reading) {
    view.uptime_s = status(reading, "uptime");
    let most = reading.variables.as_ref().and_then(|variables| variables.value.get("max_connections"));
    let most = most.and_then(|text| text.parse().ok());
    view.connections = status(reading, "threads_connected").zip(most);
    let pages = status(reading, "innodb_buffer_pool_pages_total").filter(|pages| *pages > 0.0);
    let dirty = status(reading, "innodb_buffer_pool_pages_dirty");
    view.dirty = dirty.zip(pages).map(|(dirty, pages)| dirty / pages);
}

fn show_redo(view: &mut ServerView, track: &ServerTrack) {
    let redo = track.trend().redo();
    view.redo = redo.capacity_bytes.map(|capacity_bytes| RedoView {
        capacity_bytes,
        used_bytes: redo.used_bytes,
        written: redo.written_per_s,
        sync_flush_s: redo.seconds_to_sync_flush(),
    });
}

/// What happened since the reading before.
fn show_growth(view: &mut ServerView, track: &ServerTrack) {
    if let Some(rates) = track.trend().rates() {
        show_rates(view, rates);
    }
    if let Some(grown) = track.grown() {
        view.statements = grown.rate("questions");
        let requests = grown.rate("innodb_buffer_pool_read_requests").filter(|requests| *requests > 0.0);
        let missed = grown.rate("innodb_buffer_pool_reads");
        view.pool_hits = missed.zip(requests).map(|(missed, requests)| (1.0 - missed / requests).max(0.0));
        view.main_thread =
            grown.share("innodb_master_thread_active_loops", "innodb_master_thread_idle_loops");
    }
    if let Some(grown) = track.metrics_grown() {
        let flushing = grown.rate("innodb_log_flush_usec").map(|us| us / 1e6);
        view.log_time = view.log_time.or(flushing);
        let main = grown.share("innodb_master_active_loops", "innodb_master_idle_loops");
        view.main_thread = view.main_thread.or(main);
    }
}

fn show_rates(view: &mut ServerView, rates: &Rates) {
    view.write_statements = rates.write_statements;
    view.commits = committed(rates);
    view.threads_running = rates.threads_running;
    view.page_reads = rates.page_reads;
    view.page_writes = rates.page_writes;
    view.log_waits = rates.log_waits;
    view.free_waits = rates.wait_free;
    view.row_lock_waits = rates.row_lock_waits;
    view.history = rates.history_length;
    view.log_time = rates.redo_wait;
}

/// Commits a second: COMMIT statements, and where there are few of them, statements that write, which commit by themselves
/// ([`Rates::transactions`]). The server's own count, `Handler_commit`, has a transaction once for each engine and for the binary log.
fn committed(rates: &Rates) -> Option<f64> {
    let statements = match rates.transactions() {
        Some((_, true)) => rates.write_statements,
        _ => None,
    };
    rates.commits.map(|commits| commits.max(statements.unwrap_or(0.0)))
}

/// The channels by which a server replicates.
fn replicas(reading: &Reading) -> Vec<ReplicaView> {
    let Some(rows) = &reading.replica else { return Vec::new() };
    rows.value.iter().zip(lags(reading)).map(|(row, lag)| replica(row, lag)).collect()
}

fn replica(row: &ReplicaRow, lag: ReplicaLag) -> ReplicaView {
    let text = |names: [&str; 2]| names.iter().find_map(|name| row.get(*name)).map_or("", String::as_str);
    let source = match (text(["Source_Host", "Master_Host"]), text(["Source_Port", "Master_Port"])) {
        (host, "") => host.to_owned(),
        (host, port) => format!("{host}:{port}"),
    };
    let words = [&lag.receiver_word, &lag.applier_word];
    ReplicaView {
        source,
        threads: words.map(|word| ThreadState::of_word(word).name().to_owned()),
        lag_s: lag.seconds,
        lag_by: lag.evidence.name().replace('_', " "),
        error: lag.error.as_deref().map(without_quotes).unwrap_or_default(),
        channel: lag.channel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_write_are_commits_where_few_others_commit() {
        let commits = |commits, writes, reads| {
            let (write_statements, read_statements) = (Some(writes), Some(reads));
            committed(&Rates { commits, write_statements, read_statements, ..Rates::default() })
        };
        assert_eq!(commits(Some(0.0), 3_486.0, 12.0), Some(3_486.0), "each commits by itself");
        assert_eq!(commits(Some(100.0), 400.0, 900.0), Some(100.0), "four in a transaction");
        assert_eq!(commits(Some(50.0), 0.0, 900.0), Some(50.0), "transactions that read alone");
        assert_eq!(commits(None, 400.0, 900.0), None);
        assert_eq!(committed(&Rates { commits: Some(9.0), ..Rates::default() }), Some(9.0));
    }
}
