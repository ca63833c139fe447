//! What mysqld_exporter reads of tables of the information schema and of the binary log: its collectors `info_schema.innodb_cmp`,
//! `info_schema.innodb_cmpmem` and `info_schema.query_response_time`, which are on by default, and `info_schema.innodb_metrics` and
//! `binlog_size`, which cost little here.

use ebbtide_mysql::sampling::{BinaryLogs, CompressedPool, InnodbMetric, PageCompression, ResponseTimes};

use super::families::{Families, Histogram, Kind, Labels};

/// Adds the families of compression by size of page.
pub(super) fn add_page_compression(families: &mut Families, rows: &[PageCompression]) {
    for row in rows {
        let values = [
            (
                "mysql_info_schema_innodb_cmp_compress_ops_total",
                "Number of times a B-tree page of the size PAGE_SIZE has been compressed.",
                row.compress_ops,
            ),
            (
                "mysql_info_schema_innodb_cmp_compress_ops_ok_total",
                "Number of times a B-tree page of the size PAGE_SIZE has been successfully compressed.",
                row.compress_ops_ok,
            ),
            (
                "mysql_info_schema_innodb_cmp_compress_time_seconds_total",
                "Total time in seconds spent in attempts to compress B-tree pages.",
                row.compress_seconds,
            ),
            (
                "mysql_info_schema_innodb_cmp_uncompress_ops_total",
                "Number of times a B-tree page of the size PAGE_SIZE has been uncompressed.",
                row.uncompress_ops,
            ),
            (
                "mysql_info_schema_innodb_cmp_uncompress_time_seconds_total",
                "Total time in seconds spent in uncompressing B-tree pages.",
                row.uncompress_seconds,
            ),
        ];
        for (name, help, value) in values {
            let labels = vec![("page_size", row.page_size.clone())];
            families.add(name, Kind::Counter, help, labels, value as f64);
        }
    }
}

/// Adds the families of compressed pages in the buffer pool. All have the type and the ending of mysqld_exporter's counters, though two
/// go up and down.
pub(super) fn add_compressed_pool(families: &mut Families, rows: &[CompressedPool]) {
    for row in rows {
        let values = [
            (
                "mysql_info_schema_innodb_cmpmem_pages_used_total",
                "Number of blocks of the size PAGE_SIZE that are currently in use.",
                row.pages_used as f64,
            ),
            (
                "mysql_info_schema_innodb_cmpmem_pages_free_total",
                "Number of blocks of the size PAGE_SIZE that are currently available for allocation.",
                row.pages_free as f64,
            ),
            (
                "mysql_info_schema_innodb_cmpmem_relocation_ops_total",
                "Number of times a block of the size PAGE_SIZE has been relocated.",
                row.relocation_ops as f64,
            ),
            (
                "mysql_info_schema_innodb_cmpmem_relocation_time_seconds_total",
                "Total time in seconds spent in relocating blocks.",
                // mysqld_exporter takes the server's seconds for milliseconds. The same name has the same value.
                row.relocation_s as f64 / 1_000.0,
            ),
        ];
        for (name, help, value) in values {
            let labels = vec![("page_size", row.page_size.clone()), ("buffer_pool", row.instance.clone())];
            families.add(name, Kind::Counter, help, labels, value);
        }
    }
}

/// Adds the histograms of the times of statements.
pub(super) fn add_response_times(families: &mut Families, times: &[ResponseTimes]) {
    for table in times {
        let (name, help) = match table.table.as_str() {
            "QUERY_RESPONSE_TIME_READ" => (
                "mysql_info_schema_read_query_response_time_seconds",
                "The number of read queries by duration they took to execute.",
            ),
            "QUERY_RESPONSE_TIME_WRITE" => (
                "mysql_info_schema_write_query_response_time_seconds",
                "The number of write queries by duration they took to execute.",
            ),
            _ => (
                "mysql_info_schema_query_response_time_seconds",
                "The number of all queries by duration they took to execute.",
            ),
        };
        let mut histogram = Histogram { buckets: Vec::new(), count: 0, sum: 0.0 };
        for class in &table.classes {
            histogram.count += class.count;
            histogram.sum += class.total_s;
            if let Some(bound) = class.up_to_s {
                histogram.buckets.push((bound, histogram.count));
            }
        }
        families.add_histogram(name, help, histogram);
    }
}

/// Adds the families of InnoDB's counters that are on.
pub(super) fn add_innodb_metrics(families: &mut Families, metrics: &[InnodbMetric]) {
    for metric in metrics {
        add_innodb_metric(families, metric);
    }
}

fn add_innodb_metric(families: &mut Families, metric: &InnodbMetric) {
    let value = metric.count as f64;
    let InnodbMetric { name, subsystem, kind, .. } = metric;
    if subsystem == "buffer_page_io" {
        for (prefix, family, help) in [
            (
                "buffer_page_read_",
                "mysql_info_schema_innodb_metrics_buffer_page_read_total",
                "Total number of buffer pages read total.",
            ),
            (
                "buffer_page_written_",
                "mysql_info_schema_innodb_metrics_buffer_page_written_total",
                "Total number of buffer pages written total.",
            ),
        ] {
            if let Some(page) = name.strip_prefix(prefix) {
                families.add(family, Kind::Counter, help, vec![("type", page.to_owned())], value);
            }
        }
        return;
    }
    let state = name.strip_prefix("buffer_pool_pages_").filter(|_| subsystem == "buffer");
    match state {
        // The sum of the others.
        Some("total") => {}
        Some("dirty") => families.add(
            "mysql_info_schema_innodb_metrics_buffer_pool_dirty_pages",
            Kind::Gauge,
            "Total number of dirty pages in the buffer pool.",
            Labels::new(),
            value,
        ),
        Some(state) => families.add(
            "mysql_info_schema_innodb_metrics_buffer_pool_pages",
            Kind::Gauge,
            "Total number of buffer pool pages by state.",
            vec![("state", state.to_owned())],
            value,
        ),
        None => {
            // Some counters are below 0 by a defect of the server (MySQL bug 75966), and then no counters.
            let counts = matches!(kind.as_str(), "counter" | "status_counter") && value >= 0.0;
            let (kind, ending) = if counts { (Kind::Counter, "_total") } else { (Kind::Gauge, "") };
            let valid = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name: String = format!("{subsystem}_{name}").chars().map(valid).collect();
            families.add(
                &format!("mysql_info_schema_innodb_metrics_{name}{ending}"),
                kind,
                "A counter of InnoDB, from INFORMATION_SCHEMA.INNODB_METRICS.",
                Labels::new(),
                value,
            );
        }
    }
}

/// Adds the families of the binary log.
pub(super) fn add_binary_logs(families: &mut Families, logs: &BinaryLogs) {
    let mut add = |name: &str, help: &'static str, value: u64| {
        families.add(name, Kind::Gauge, help, Labels::new(), value as f64);
    };
    add("mysql_binlog_size_bytes", "Combined size of all registered binlog files.", logs.bytes);
    add("mysql_binlog_files", "Number of registered binlog files.", logs.files);
    if let Some(newest) = logs.newest {
        add("mysql_binlog_file_number", "The last binlog file number.", newest);
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::sampling::ResponseClass;

    use super::*;

    /// The rows and the values of mysqld_exporter's own test.
    #[test]
    fn innodbs_counters_have_the_names_of_mysqld_exporter() {
        let rows = [
            ("lock_timeouts", "lock", "counter", 0),
            ("buffer_pool_reads", "buffer", "status_counter", 1),
            ("buffer_pool_size", "server", "value", 2),
            ("buffer_page_read_system_page", "buffer_page_io", "counter", 3),
            ("buffer_page_written_undo_log", "buffer_page_io", "counter", 4),
            ("buffer_pool_pages_dirty", "buffer", "gauge", 5),
            ("buffer_pool_pages_data", "buffer", "gauge", 6),
            ("buffer_pool_pages_total", "buffer", "gauge", 7),
            ("NOPE", "buffer_page_io", "counter", 999),
            ("trx_active", "transaction", "counter", -3),
            ("buffer_LRU_batch_flush_total_pages", "buffer", "set_owner", 9),
        ];
        let metric = |(name, subsystem, kind, count): (&str, &str, &str, i128)| InnodbMetric {
            name: name.into(),
            subsystem: subsystem.into(),
            kind: kind.into(),
            count,
        };
        let mut families = Families::default();
        add_innodb_metrics(&mut families, &rows.map(metric));
        let found: Vec<(String, f64)> = families
            .iter()
            .flat_map(|(name, family)| family.samples.values().map(move |value| (name.to_owned(), *value)))
            .collect();
        let expected = [
            ("buffer_buffer_LRU_batch_flush_total_pages", 9.0),
            ("buffer_buffer_pool_reads_total", 1.0),
            ("buffer_page_read_total", 3.0),
            ("buffer_page_written_total", 4.0),
            ("buffer_pool_dirty_pages", 5.0),
            ("buffer_pool_pages", 6.0),
            ("lock_lock_timeouts_total", 0.0),
            ("server_buffer_pool_size", 2.0),
            ("transaction_trx_active", -3.0),
        ];
        let expected =
            expected.map(|(name, value)| (format!("mysql_info_schema_innodb_metrics_{name}"), value));
        assert_eq!(found, expected);
    }

    #[test]
    fn times_of_statements_are_counted_up_to_each_bound() {
        let class = |up_to_s, count, total_s| ResponseClass { up_to_s, count, total_s };
        let classes = vec![class(Some(0.001), 3, 0.002), class(Some(0.01), 0, 0.0), class(None, 2, 0.0)];
        let mut families = Families::default();
        add_response_times(&mut families, &[ResponseTimes { table: "QUERY_RESPONSE_TIME".into(), classes }]);
        let text = families.text();
        for line in [
            "mysql_info_schema_query_response_time_seconds_bucket{le=\"0.001\"} 3",
            "mysql_info_schema_query_response_time_seconds_bucket{le=\"0.01\"} 3",
            "mysql_info_schema_query_response_time_seconds_bucket{le=\"+Inf\"} 5",
            "mysql_info_schema_query_response_time_seconds_sum 0.002",
            "mysql_info_schema_query_response_time_seconds_count 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn compression_has_its_sizes_of_pages_as_labels() {
        let mut families = Families::default();
        let pages = PageCompression {
            page_size: "8192".into(),
            compress_ops: 10,
            compress_ops_ok: 9,
            compress_seconds: 1,
            uncompress_ops: 4,
            uncompress_seconds: 0,
        };
        add_page_compression(&mut families, &[pages]);
        let pool = CompressedPool {
            page_size: "1024".into(),
            instance: "0".into(),
            pages_used: 1,
            pages_free: 2,
            relocation_ops: 3,
            relocation_s: 4_000,
        };
        add_compressed_pool(&mut families, &[pool]);
        let of_page = [("page_size", "8192")];
        let ok = "mysql_info_schema_innodb_cmp_compress_ops_ok_total";
        assert_eq!(families.value(ok, &of_page), Some(9.0));
        let time = "mysql_info_schema_innodb_cmpmem_relocation_time_seconds_total";
        assert_eq!(families.value(time, &[("page_size", "1024"), ("buffer_pool", "0")]), Some(4.0));
        assert_eq!(families.iter().count(), 9);
    }

    #[test]
    fn a_binary_log_without_a_number_has_no_number() {
        let mut families = Families::default();
        add_binary_logs(&mut families, &BinaryLogs { files: 2, bytes: 150, newest: None });
        assert_eq!(families.value("mysql_binlog_size_bytes", &[]), Some(150.0));
        assert_eq!(families.value("mysql_binlog_file_number", &[]), None);
    }
}
