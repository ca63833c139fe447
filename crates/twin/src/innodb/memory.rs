//! The memory of the machine: what the buffer pool and all else leave to the page cache.

use ebbtide_volume::MIB;

/// The memory that a server and the page cache of its files share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All of it, bytes.
    pub bytes: u64,
    /// What neither the buffer pool nor the page cache has of it, bytes: the server's other memory, and the operating system's.
    pub other_bytes: u64,
}

impl Memory {
    /// Other memory where nobody says: MySQL's manual has a server with the default buffer pool of 128 MiB start on a machine of
    /// 512 MiB ("How MySQL Uses Memory").
    pub const OTHER_BYTES: u64 = 384 * MIB;

    /// What it leaves to the page cache, bytes.
    #[must_use]
    pub fn page_cache_bytes(&self, buffer_pool_bytes: u64) -> f64 {
        (self.bytes as f64 - Self::of_pool(buffer_pool_bytes) - self.other_bytes as f64).max(0.0)
    }

    /// Memory of a buffer pool with its control structures, bytes.
    #[must_use]
    pub const fn of_pool(buffer_pool_bytes: u64) -> f64 {
        buffer_pool_bytes as f64 * POOL_WITH_CONTROL
    }
}

/// Memory of a buffer pool by its size: control structures are about a tenth on top (MySQL's manual, "Configuring InnoDB Buffer
/// Pool Size").
const POOL_WITH_CONTROL: f64 = 1.1;

#[cfg(test)]
mod tests {
    use ebbtide_volume::GIB;

    use super::*;

    #[test]
    fn the_page_cache_has_what_the_pool_and_the_rest_leave() {
        let memory = Memory { bytes: 4 * GIB, other_bytes: GIB };
        assert!((memory.page_cache_bytes(2 * GIB) / GIB as f64 - 0.8).abs() < 1e-9);
        assert_eq!(memory.page_cache_bytes(3 * GIB), 0.0);
    }
}
