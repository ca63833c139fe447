//! `mysql_global_variables_*`: mysqld_exporter's collector `global_variables` (`global_variables.go`).

use ebbtide_observe::Variables;

use super::families::{Families, Kind, Labels};
use super::value::{number, valid_name};

/// Adds the families of SHOW GLOBAL VARIABLES. A variable that is no number has none.
pub(super) fn add(families: &mut Families, variables: &Variables) {
    for (name, text) in variables.iter() {
        if let Some(value) = number(text) {
            families.add(
                &format!("mysql_global_variables_{}", valid_name(name)),
                Kind::Gauge,
                "Generic gauge metric from SHOW GLOBAL VARIABLES.",
                Labels::new(),
                value,
            );
        }
    }
    // A word that is a number has a family of its own, and is then no label.
    let word = |name: &str| variables.get(name).filter(|text| number(text).is_none()).unwrap_or_default();
    let mut add_info = |name: &str, help: &'static str, labels: Labels| {
        families.add(name, Kind::Gauge, help, labels, 1.0);
    };
    let version = ["innodb_version", "version", "version_comment"];
    add_info(
        "mysql_version_info",
        "MySQL version and distribution.",
        version.map(|name| (name, word(name).to_owned())).to_vec(),
    );
    let cluster = word("wsrep_cluster_name");
    if !cluster.is_empty() {
        add_info(
            "mysql_galera_variables_info",
            "PXC/Galera variables information.",
            vec![("wsrep_cluster_name", cluster.to_owned())],
        );
    }
    let isolation = ["transaction_isolation", "tx_isolation"].map(word);
    if let Some(level) = isolation.into_iter().find(|level| !level.is_empty()) {
        add_info(
            "mysql_transaction_isolation",
            "MySQL transaction isolation.",
            vec![("level", level.to_owned())],
        );
    }
    let options = word("wsrep_provider_options");
    if !options.is_empty() {
        families.add(
            "mysql_galera_gcache_size_bytes",
            Kind::Gauge,
            "PXC/Galera gcache size.",
            Labels::new(),
            gcache_bytes(options).unwrap_or(0.0),
        );
    }
}

/// The size of Galera's cache in the options of its provider, such as `gcache.size = 128M;`. Only M and G are known as units.
fn gcache_bytes(options: &str) -> Option<f64> {
    let read = |text: &str| {
        let text = text.split_once(';')?.0;
        let (digits, unit) = match text.strip_suffix('M') {
            Some(digits) => (digits, 1_048_576.0),
            None => text.strip_suffix('G').map_or((text, 1.0), |digits| (digits, 1_073_741_824.0)),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let bytes: f64 = digits.parse().ok().filter(|_| is_number)?;
        Some(bytes * unit)
    };
    options.split("gcache.size = ").skip(1).find_map(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LABELS: &[(&str, &str)] = &[];

    fn families(rows: &[(&str, &str)]) -> Families {
        let mut families = Families::default();
        add(&mut families, &rows.iter().copied().collect());
        families
    }

    /// Rows and values of mysqld_exporter's own test.
    #[test]
    fn each_variable_has_the_name_of_mysqld_exporter() {
        let families = families(&[
            ("wait_timeout", "28800"),
            ("version_compile_os", "Linux"),
            ("userstat", "OFF"),
            ("tx_isolation", "REPEATABLE-READ"),
            ("tmpdir", "/tmp"),
            ("innodb_version", "5.6.30-76.3"),
            ("version", "5.6.30-76.3-56"),
            ("version_comment", "Percona XtraDB Cluster..."),
            ("wsrep_cluster_name", "supercluster"),
            ("wsrep_provider_options", "gcache.page_size = 128M; gcache.size = 128M; gcomm.thread_prio = ;"),
        ]);
        let version = [
            ("innodb_version", "5.6.30-76.3"),
            ("version", "5.6.30-76.3-56"),
            ("version_comment", "Percona XtraDB Cluster..."),
        ];
        for (name, labels, value) in [
            ("mysql_global_variables_wait_timeout", NO_LABELS, 28_800.0),
            ("mysql_global_variables_userstat", &[], 0.0),
            ("mysql_version_info", &version, 1.0),
            ("mysql_transaction_isolation", &[("level", "REPEATABLE-READ")], 1.0),
            ("mysql_galera_variables_info", &[("wsrep_cluster_name", "supercluster")], 1.0),
            ("mysql_galera_gcache_size_bytes", &[], 134_217_728.0),
        ] {
            assert_eq!(families.value(name, labels), Some(value), "{name}");
        }
        let text = families.text();
        assert!(!text.contains("tmpdir") && !text.contains("compile_os"), "{text}");
    }

    #[test]
    fn the_size_of_galeras_cache_is_read_as_mysqld_exporter_reads_it() {
        for (options, bytes) in [
            ("", None),
            ("gcache.page_size = 128M; gcache.size = 2G; gcomm.thread_prio = ;", Some(2_147_483_648.0)),
            ("gcache.page_size = 128M; gcache.size = 131072; gcomm", Some(131_072.0)),
            ("gcache.size = 4K;", None),
            ("gcache.size = 4", None),
        ] {
            assert_eq!(gcache_bytes(options), bytes, "{options}");
        }
    }

    /// SHOW GLOBAL VARIABLES of a MariaDB 10.11.19 of Debian.
    #[test]
    fn the_variables_of_a_real_server_have_the_names_of_a_table() {
        let recorded = include_str!("../../../captured/tests/fixtures/variables.tsv");
        let rows: Vec<(&str, &str)> =
            recorded.lines().skip(1).filter_map(|line| line.split_once('\t')).collect();
        let families = families(&rows);
        for (name, value) in [("innodb_buffer_pool_size", 67_108_864.0), ("log_bin", 1.0)] {
            assert_eq!(families.value(&format!("mysql_global_variables_{name}"), &[]), Some(value), "{name}");
        }
        // No name of a file is a number.
        assert_eq!(families.value("mysql_global_variables_datadir", &[]), None);
        let numbers = rows.iter().filter(|(_, text)| number(text).is_some()).count();
        let generic = families.iter().filter(|(name, _)| name.starts_with("mysql_global_variables_")).count();
        assert_eq!(generic, numbers);
    }
}
