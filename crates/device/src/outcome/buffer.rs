//! Pooled, bounded buffers: the memory of a volume's requests in flight.

use std::{
    collections::BTreeMap,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Weak},
};

use parking_lot::{Condvar, Mutex};

/// The smallest buffer that is allocated; anything shorter shares this size.
const SMALLEST: usize = 4 << 10;

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
    idle: BTreeMap<usize, Vec<Box<[u8]>>>,
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
            if let Some(bytes) = state.take(size, self.bound) {
                drop(state);
                let bytes = bytes.unwrap_or_else(|| vec![0; size].into_boxed_slice());
                return Buffer { bytes, len, pool: Arc::downgrade(self) };
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

    fn put_back(&self, bytes: Box<[u8]>) {
        let mut state = self.state.lock();
        let size = bytes.len();
        if size > self.bound {
            state.allocated -= size;
        } else {
            state.idle_bytes += size;
            state.idle.entry(size).or_default().push(bytes);
        }
        if state.waiting > 0 {
            self.returned.notify_all();
        }
    }
}

impl PoolState {
    /// An idle buffer, or the right to allocate one, or neither while the pool is exhausted.
    #[expect(clippy::option_option, reason = "the three answers above")]
    fn take(&mut self, size: usize, bound: usize) -> Option<Option<Box<[u8]>>> {
        if let Some(bytes) = self.idle.get_mut(&size).and_then(Vec::pop) {
            self.idle_bytes -= size;
            return Some(Some(bytes));
        }
        while self.allocated + size > bound {
            let Some(mut entry) = self.idle.last_entry() else { break };
            match entry.get_mut().pop() {
                Some(other) => {
                    self.allocated -= other.len();
                    self.idle_bytes -= other.len();
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

/// Bytes from a [`BufferPool`]; they go back to it on drop.
pub struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
    pool: Weak<BufferPool>,
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
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
            pool.put_back(std::mem::take(&mut self.bytes));
        }
    }
}
