//! What mysqld_exporter reports of its own work: whether the server is there, and how each collector did.

use ebbtide_mysql::sampling::{Collector, Reading};

use super::families::{Families, Kind, Labels};

/// Collectors that mysqld_exporter runs by default.
const DEFAULT: [Collector; 6] = [
    Collector::Status,
    Collector::Variables,
    Collector::Replica,
    Collector::PageCompression,
    Collector::CompressedPool,
    Collector::ResponseTimes,
];

/// Adds whether the server answers. Nothing else is added of one that does not.
pub(super) fn add_up(families: &mut Families, is_up: bool) {
    let up = f64::from(u8::from(is_up));
    families.add("mysql_up", Kind::Gauge, "Whether the MySQL server is up.", Labels::new(), up);
}

/// Adds how long each collector took, and whether it had an answer. One that a server has nothing for succeeds, as it does in
/// mysqld_exporter. The last three families are those of its versions before 0.15.
pub(super) fn add_collectors(families: &mut Families, reading: &Reading) {
    let label = |name: &str| vec![("collector", name.to_owned())];
    add_duration(families, label("connection"), reading.connect_time.as_secs_f64());
    let mut any_failed = false;
    for collector in Collector::ALL {
        let run = reading.collectors.get(&collector);
        if run.is_none() && !DEFAULT.contains(&collector) {
            continue;
        }
        let name = format!("collect.{}", collector.name());
        add_duration(families, label(&name), run.map_or(0.0, |run| run.took.as_secs_f64()));
        let success = run.is_none_or(|run| run.success);
        any_failed |= !success;
        families.add(
            "mysql_exporter_collector_success",
            Kind::Gauge,
            "mysqld_exporter: Whether a collector succeeded.",
            label(&name),
            f64::from(u8::from(success)),
        );
        if let Some(run) = run.filter(|run| run.refusals > 0) {
            families.add(
                "mysql_exporter_scrape_errors_total",
                Kind::Counter,
                "Total number of times an error occurred scraping a MySQL.",
                label(&name),
                run.refusals as f64,
            );
        }
    }
    families.add(
        "mysql_exporter_scrapes_total",
        Kind::Counter,
        "Total number of times MySQL was scraped for metrics.",
        Labels::new(),
        reading.cost.samples as f64,
    );
    families.add(
        "mysql_exporter_last_scrape_error",
        Kind::Gauge,
        "Whether the last scrape of metrics from MySQL resulted in an error (1 for error, 0 for success).",
        Labels::new(),
        f64::from(u8::from(any_failed)),
    );
}

fn add_duration(families: &mut Families, labels: Labels, seconds: f64) {
    families.add(
        "mysql_exporter_collector_duration_seconds",
        Kind::Gauge,
        "Collector time duration.",
        labels,
        seconds,
    );
}
