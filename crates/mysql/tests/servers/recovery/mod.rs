//! Evidence about real servers that were killed, cut, and damaged.

mod binlog;
mod log;
mod pages;
mod quick;
mod tables;

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_mysql::recovery::page::{Form, PageFacts, inspect};
use ebbtide_mysql::{Layout, Server};

use crate::support::PATIENCE;

/// InnoDB's page, bytes.
const PAGE: usize = 16384;

/// A tablespace's pages, in memory.
struct Pages {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Pages {
    fn read(path: PathBuf) -> Self {
        Self { bytes: std::fs::read(&path).unwrap(), path }
    }

    /// The table `test.t`.
    fn of_table(layout: &Layout) -> Self {
        Self::read(layout.data.join("test/t.ibd"))
    }

    fn system(layout: &Layout) -> Self {
        Self::read(layout.data.join("ibdata1"))
    }

    fn count(&self) -> u32 {
        u32::try_from(self.bytes.len() / PAGE).unwrap()
    }

    fn page(&self, page: u32) -> &[u8] {
        let at = page as usize * PAGE;
        &self.bytes[at..at + PAGE]
    }

    fn facts(&self, page: u32) -> PageFacts {
        inspect(self.page(page)).unwrap()
    }

    /// The numbers of the leaves of its indexes, with their index's id.
    fn leaves(&self) -> Vec<(u32, u64)> {
        let index = |page: u32| {
            let bytes = self.page(page);
            let is_leaf = self.facts(page).kind_name() == "index" && bytes[64..66] == [0, 0];
            is_leaf.then(|| (page, u64::from_be_bytes(bytes[66..74].try_into().unwrap())))
        };
        (0..self.count()).filter_map(index).collect()
    }

    /// Changes a byte of a page and leaves its checksum as it is.
    fn damage(&self, page: u32, at: usize) {
        let byte = self.page(page)[at] ^ 0x5A;
        self.write(u64::from(page) * PAGE as u64 + at as u64, &[byte]);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let file = std::fs::File::options().write(true).open(&self.path).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    /// Writes a page with the checksum that its content needs.
    fn write_sealed(&self, page: u32, mut bytes: Vec<u8>) {
        match inspect(self.page(page)).unwrap().form {
            Form::FullCrc32 => {
                let sum = crc32c::crc32c(&bytes[..PAGE - 4]);
                bytes[PAGE - 4..].copy_from_slice(&sum.to_be_bytes());
            }
            Form::Crc32 => {
                let sum = crc32c::crc32c(&bytes[4..26]) ^ crc32c::crc32c(&bytes[38..PAGE - 8]);
                bytes[..4].copy_from_slice(&sum.to_be_bytes());
                bytes[PAGE - 8..PAGE - 4].copy_from_slice(&sum.to_be_bytes());
            }
        }
        assert!(inspect(&bytes).unwrap().is_sound());
        self.write(u64::from(page) * PAGE as u64, &bytes);
    }
}

fn value(server: &Server, sql: &str) -> String {
    server.session().unwrap().value(sql).unwrap().unwrap()
}

fn execute(server: &Server, statements: &[&str]) {
    let mut session = server.session().unwrap();
    for statement in statements {
        session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Has the server write every page that is changed in its memory, through its doublewrite buffer.
fn write_dirty_pages(server: &Server) {
    execute(
        server,
        &["SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0", "SET GLOBAL innodb_max_dirty_pages_pct = 0"],
    );
    let deadline = Instant::now() + PATIENCE;
    let dirty = || {
        let row = server.session().unwrap().rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'");
        row.unwrap()[0][1].clone().unwrap()
    };
    while dirty() != "0" {
        assert!(Instant::now() < deadline, "pages stay dirty");
        std::thread::sleep(Duration::from_millis(20));
    }
    execute(server, &["SET GLOBAL innodb_max_dirty_pages_pct = 90"]);
}

/// Every file below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}
