//! The server that looks at an image: started, asked and ended in a hurry.

use crate::binary::Version;
use crate::{Layout, ServerPlan, WorkPaths};

/// Settings that make a start cheaper and change nothing of a recovery: no measuring, no memory that is
/// filled before it is needed, nothing remembered of the last run.
const QUICK: [(&str, &str); 7] = [
    ("performance_schema", "OFF"),
    ("buffer_pool_dump_at_shutdown", "OFF"),
    ("buffer_pool_load_at_startup", "OFF"),
    ("adaptive_hash_index", "OFF"),
    ("key_buffer_size", "64KiB"),
    ("max_connections", "16"),
    // Asked to stop, it ends like one that is killed, but with no write of its own half done.
    ("raw.innodb_fast_shutdown", "2"),
];
/// The temporary tablespace, which is written full at each start. MySQL takes none of less than 12 MiB.
const TEMPORARY: &str = "ibtmp1:5M:autoextend";
/// From this version on MariaDB makes itself a certificate at each start.
const OWN_CERTIFICATE: Version = Version::new(11, 3, 0);
/// From this version on MySQL can leave out a look at every tablespace file.
const VALIDATE_PATHS: Version = Version::new(8, 0, 21);

impl ServerPlan {
    /// A plan for the server that recovers an image of this plan's server: the same program and the same
    /// settings, redo and binary log included, without what makes a start slow. It listens on its socket
    /// alone, and its memory is not bounded.
    ///
    /// Stop it with [`Server::stop`](crate::Server::stop) where its files are looked at afterwards: it
    /// writes nothing more than one that is killed, but a kill can cut a page in half that goes through
    /// the page cache.
    #[must_use]
    pub fn for_recovery(&self, layout: Layout, work: WorkPaths) -> Self {
        let mut settings = self.settings.clone();
        let mut set = |name: &str, value: &str| {
            settings.set(name, value).expect("a setting of the table, and a value that it takes");
        };
        for (name, value) in QUICK {
            set(name, value);
        }
        if self.binary.is_mariadb() {
            if layout.tmp.is_none() {
                set("raw.innodb_temp_data_file_path", TEMPORARY);
            }
            set("raw.aria_pagecache_buffer_size", "131072");
            if self.binary.version >= OWN_CERTIFICATE {
                set("raw.skip_ssl", "1");
            }
        } else if self.binary.version >= VALIDATE_PATHS {
            set("raw.innodb_validate_tablespace_paths", "OFF");
        }
        Self { settings, memory_bytes: None, tcp: false, ..Self { layout, work, ..self.clone() } }
    }
}
