//! Counts the allocations of a thread, for tests of paths that must not allocate.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: each call goes to the system's allocator as it is; counting touches no memory of the caller's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counter any more.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: what the caller promises is what the callee needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; the memory came from the same allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// How often this thread allocates during `action`.
pub(crate) fn allocations_of(action: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    action();
    COUNT.get() - before
}
