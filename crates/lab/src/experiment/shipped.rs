//! The experiments that come with the program.

use std::sync::LazyLock;

use super::file::File;

/// An experiment that comes with the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, as the command line takes it.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// Whether it is for the crash lab.
    pub crash: bool,
    /// The file.
    pub text: &'static str,
}

/// The files, in the order in which they are listed.
const FILES: [(&str, &str); 21] = [
    ("tuned-vs-default", include_str!("../../experiments/tuned-vs-default.toml")),
    ("volume-types", include_str!("../../experiments/volume-types.toml")),
    ("gp2-burst", include_str!("../../experiments/gp2-burst.toml")),
    ("flush-settings", include_str!("../../experiments/flush-settings.toml")),
    ("instance-cap", include_str!("../../experiments/instance-cap.toml")),
    ("optimized-writes-gain", include_str!("../../experiments/optimized-writes-gain.toml")),
    ("ssd-tiers", include_str!("../../experiments/ssd-tiers.toml")),
    ("ssd-configs", include_str!("../../experiments/ssd-configs.toml")),
    ("binlog", include_str!("../../experiments/binlog.toml")),
    ("binlog-locks", include_str!("../../experiments/binlog-locks.toml")),
    ("aurora-binlog", include_str!("../../experiments/aurora-binlog.toml")),
    ("replicas", include_str!("../../experiments/replicas.toml")),
    ("backup-load", include_str!("../../experiments/backup-load.toml")),
    ("same-twice", include_str!("../../experiments/same-twice.toml")),
    ("durability-matrix", include_str!("../../experiments/durability-matrix.toml")),
    ("tpcc-crash", include_str!("../../experiments/tpcc-crash.toml")),
    ("binlog-recovery", include_str!("../../experiments/binlog-recovery.toml")),
    ("optimized-writes", include_str!("../../experiments/optimized-writes.toml")),
    ("file-systems", include_str!("../../experiments/file-systems.toml")),
    ("ssd-cache", include_str!("../../experiments/ssd-cache.toml")),
    ("migration", include_str!("../../experiments/migration.toml")),
];

static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
    let read = |(name, text): (&'static str, &'static str)| {
        let file = File::parse(name, text).expect("shipped experiments are read by the tests of this crate");
        Shipped {
            name,
            crash: file.base.get("crash").is_some(),
            title: file.title,
            question: file.question,
            text,
        }
    };
    FILES.map(read).to_vec()
});

/// All shipped experiments, in the order in which they are listed.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    &SHIPPED
}
