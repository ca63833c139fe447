//! What a profile's server does and the model does not.

use ebbtide_volume::format_size;

use super::plan::Planned;
use crate::innodb::{Memory, PageClass, PageKind};

impl Planned {
    /// What the server does and the model does not, for people; None where it has all. `rotating`: a volume reports that it is a
    /// rotating disk.
    #[must_use]
    pub fn not_modelled(&self, rotating: bool) -> Option<String> {
        let of_settings = self.settings.not_modelled(rotating, self.machine.memory);
        let unknown = (!self.knows_page_cache()).then(|| {
            "what the page cache has of pages that were observed: the model knows it as far as [[workload.pages]] has larger pools, \
             and where all data fit (workload.data_size); beyond, the server may do more than predicted"
                .to_owned()
        });
        let all: Vec<String> = of_settings.into_iter().chain(self.too_large_pool()).chain(unknown).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// What a buffer pool that the memory does not hold would do.
    fn too_large_pool(&self) -> Option<String> {
        let (memory, pool) = (self.machine.memory?.bytes, self.settings.buffer_pool_bytes);
        (Memory::of_pool(pool) > memory as f64).then(|| {
            format!(
                "memory that is full: a buffer pool of {} takes a tenth more, and the machine has {}; the server would swap, or be \
                 killed. Predict with a smaller server.buffer_pool_size, or a larger machine",
                format_size(pool),
                format_size(memory),
            )
        })
    }

    /// Whether the model knows what the page cache has: of observed pages as far as the measured pools reach.
    fn knows_page_cache(&self) -> bool {
        let cache = self.page_cache_bytes().unwrap_or_default();
        let both = self.settings.pool_pages() + cache / f64::from(self.settings.page_bytes);
        let reaches = |class: &PageClass| match &class.kind {
            PageKind::Observed(curve) => curve.points.last().is_some_and(|point| point.pool_pages >= both),
            _ => true,
        };
        let fits = self.data_bytes.is_some_and(|data| data <= cache);
        cache == 0.0 || fits || self.shape.classes.iter().all(reaches)
    }

    /// Bytes of data files that the page cache holds; None where they do not go through it, or its size is not known.
    #[must_use]
    pub fn page_cache_bytes(&self) -> Option<f64> {
        self.settings.page_cache_bytes(self.machine.memory)
    }
}
