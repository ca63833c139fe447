//! Pooled, bounded buffers: the memory of a volume's requests in flight.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    ops::{Deref, DerefMut},
    slice,
    sync::{Arc, Weak},
};

use parking_lot::{Condvar, Mutex};

const PAGE: usize = 4096;
/// The smallest buffer that is allocated; anything shorter shares this size.
const SMALLEST: usize = PAGE;

/// Memory for data begins at a page. FUSE takes a reply page by page: of one that begins within a page, it pins two pages and
/// copies two pieces for each page of the guest.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

const _: () = assert!(size_of::<Page>() == PAGE && align_of::<Page>() == PAGE);

/// Whole pages for `len` bytes, which are zero.
fn new_pages(len: usize) -> Box<[Page]> {
    vec![Page([0; PAGE]); len.div_ceil(PAGE)].into_boxed_slice()
}

fn bytes_of(pages: &[Page]) -> &[u8] {
    // SAFETY: pages are initialized bytes without padding, one after the other, and borrowed for as long as the result.
    unsafe { slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages)) }
}

fn bytes_of_mut(pages: &mut [Page]) -> &mut [u8] {
    let len = size_of_val(pages);
    // SAFETY: as above; nobody else has them borrowed, and any bytes are a page.
    unsafe { slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), len) }
}

/// Bytes that [`with_own_bytes`] has at most: the largest request that the kernel sends.
pub(crate) const OWN_BYTES: usize = 1 << 20;

thread_local! {
    static OWN_PAGES: RefCell<Box<[Page]>> = RefCell::default();
}

/// Calls `action` with `len` bytes of arbitrary content, at most [`OWN_BYTES`], that belong to the calling thread: no lock, and
/// memory that no other thread has touched. Nothing that `action` calls may call this.
pub(crate) fn with_own_bytes<T>(len: usize, action: impl FnOnce(&mut [u8]) -> T) -> T {
    assert!(len <= OWN_BYTES, "{len} bytes: a thread keeps {OWN_BYTES} at most");
    OWN_PAGES.with_borrow_mut(|pages| {
        if size_of_val(&**pages) < len {
            *pages = new_pages(len.next_power_of_two());
        }
        action(&mut bytes_of_mut(pages)[..len])
    })
}

/// Buffers of one volume, bounded in bytes.
///
/// A buffer returns to its pool when it is dropped and is handed out again without being cleared or
/// allocated. Where the bound is reached, [`BufferPool::take`] waits for one to come back: that is
/// the back-pressure on submitters.
#[derive(Debug)]
pub struct BufferPool {
    bound: usize,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    /// Idle buffers by size. A size's list never grows beyond the buffers that exist.
    idle: BTreeMap<usize, Vec<Box<[Page]>>>,
    /// Bytes in use and idle.
    allocated: usize,
    idle_bytes: usize,
    waiting: usize,
}

impl BufferPool {
    /// A pool of at most `bound` bytes, idle ones included.
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self { bound, state: Mutex::default(), returned: Condvar::new() })
    }

    /// A buffer of `len` bytes with arbitrary content. Waits while the pool is exhausted; a buffer
    /// beyond the bound is given once no other is in use.
    #[must_use]
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let size = len.next_power_of_two().max(SMALLEST);
        let mut state = self.state.lock();
        loop {
            if let Some(pages) = state.take(size, self.bound) {
                drop(state);
                let pages = pages.unwrap_or_else(|| new_pages(size));
                return Buffer { pages, len, pool: Arc::downgrade(self) };
            }
            state.waiting += 1;
            self.returned.wait(&mut state);
            state.waiting -= 1;
        }
    }

    /// Bytes of the buffers in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let state = self.state.lock();
        state.allocated - state.idle_bytes
    }

    fn put_back(&self, pages: Box<[Page]>) {
        let mut state = self.state.lock();
        let size = size_of_val(&*pages);
        if size > self.bound {
            state.allocated -= size;
        } else {
            state.idle_bytes += size;
            state.idle.entry(size).or_default().push(pages);
        }
        if state.waiting > 0 {
            self.returned.notify_all();
        }
    }
}

impl PoolState {
    /// An idle buffer, or the right to allocate one, or neither while the pool is exhausted.
    #[expect(clippy::option_option, reason = "the three answers above")]
    fn take(&mut self, size: usize, bound: usize) -> Option<Option<Box<[Page]>>> {
        if let Some(pages) = self.idle.get_mut(&size).and_then(Vec::pop) {
            self.idle_bytes -= size;
            return Some(Some(pages));
        }
        while self.allocated + size > bound {
            let Some(mut entry) = self.idle.last_entry() else { break };
            match entry.get_mut().pop() {
                Some(other) => {
                    self.allocated -= size_of_val(&*other);
                    self.idle_bytes -= size_of_val(&*other);
                }
                None => drop(entry.remove()),
            }
        }
        (self.allocated == 0 || self.allocated + size <= bound).then(|| {
            self.allocated += size;
            None
        })
    }
}

/// Bytes from a [`BufferPool`], from the beginning of a page on; they go back to it on drop.
pub struct Buffer {
    pages: Box<[Page]>,
    len: usize,
    pool: Weak<BufferPool>,
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &bytes_of(&self.pages)[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytes_of_mut(&mut self.pages)[..self.len]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.put_back(std::mem::take(&mut self.pages));
        }
    }
}
