//! Database servers: what was read of one, under the names that the ecosystem has. Pure.
//!
//! # Where to begin reading
//!
//! - [`add_server`] adds everything of one server to [`Families`], whose [`text`](Families::text) is what a scrape answers with. The
//!   names of mysqld_exporter's collectors are in `status`, `variables`, `replica`, `tables` and `exporter`; they are made of the
//!   server's own names, so that a counter of a new version needs no change here.
//! - [`ServerTrend`] keeps two looks: rates, and how fast the redo log fills.
//! - [`lags`] is how far a replica is behind, and by which evidence.
//! - [`SERVER_FAMILIES`] are the families that nobody else has. A new one is a row of `names` and a line of `own`:
//!   docs/extending.md.

mod exporter;
mod families;
mod lag;
pub mod names;
mod own;
mod replica;
mod status;
mod tables;
#[cfg(test)]
mod tests;
mod trend;
mod value;
mod variables;

use ebbtide_mysql::sampling::Reading;

pub use families::{Families, Histogram, Kind, Labels, ServerFamily};
pub use lag::{LagEvidence, ReplicaLag, lags};
pub use names::SERVER_FAMILIES;
pub use trend::{RedoUse, ServerTrend};

/// Labels that every sample of a server has. PMM's dashboards need both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLabels {
    /// `service_name`; None: the label is left out, as mysqld_exporter does.
    pub service_name: Option<String>,
    /// `node_name`, alike.
    pub node_name: Option<String>,
}

impl ServerLabels {
    fn constant(&self) -> Labels {
        let names = [("service_name", &self.service_name), ("node_name", &self.node_name)];
        names.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}

/// Adds of a server whose figures are not of this moment whether it is up, and what the sampling has cost.
pub fn add_silent_server(families: &mut Families, reading: &Reading, is_up: bool, labels: &ServerLabels) {
    families.begin_server(labels.constant());
    exporter::add_up(families, is_up);
    own::add_cost(families, reading);
}

/// Adds everything that is known of a server: the families of mysqld_exporter's default collectors with its names, labels and values, those
/// of its collectors `info_schema.innodb_metrics` and `binlog_size`, and `ebbtide_server_*`. Of a server that does not answer, only that,
/// and what the sampling has cost.
pub fn add_server(families: &mut Families, reading: &Reading, trend: &ServerTrend, labels: &ServerLabels) {
    add_silent_server(families, reading, reading.up, labels);
    if !reading.up {
        return;
    }
    exporter::add_collectors(families, reading);
    if let Some(found) = &reading.status {
        status::add(families, &found.value);
    }
    if let Some(found) = &reading.variables {
        variables::add(families, &found.value);
    }
    if let Some(found) = &reading.replica {
        replica::add(families, &found.value);
    }
    if let Some(found) = &reading.page_compression {
        tables::add_page_compression(families, &found.value);
    }
    if let Some(found) = &reading.compressed_pool {
        tables::add_compressed_pool(families, &found.value);
    }
    if let Some(found) = &reading.response_times {
        tables::add_response_times(families, &found.value);
    }
    if let Some(found) = &reading.innodb_metrics {
        tables::add_innodb_metrics(families, &found.value);
    }
    if let Some(found) = &reading.binary_logs {
        tables::add_binary_logs(families, &found.value);
    }
    own::add_server(families, reading, trend);
}
