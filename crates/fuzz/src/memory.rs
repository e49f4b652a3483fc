//! Live memory of the whole process, counted where it is allocated.
//!
//! Resident memory would show only what the operating system has not yet taken back, and of all targets together. Threads
//! count for themselves and report in steps of [`STEP`], so that counting costs no contention; the total is exact to that
//! step per thread.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one only counts and leaves the work to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// How many bytes a thread allocates or frees before it tells the others.
const STEP: isize = 1 << 16;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static UNREPORTED: Cell<isize> = const { Cell::new(0) };
    static OWN: Cell<isize> = const { Cell::new(0) };
    static OWN_PEAK: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that are allocated now.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed).max(0) as usize
}

/// The most bytes that were allocated at once since [`forget_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Relaxed).max(0) as usize
}

/// Starts a new measurement of the peak.
pub(crate) fn forget_peak() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

/// The most bytes that `work` held at once beyond what this thread held before.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = OWN.get();
    OWN_PEAK.set(before);
    let result = work();
    (result, (OWN_PEAK.get() - before).max(0) as usize)
}

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting neither
// allocates (the thread-locals are constants without destructors) nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; `pointer` came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(bytes: isize) {
    // A thread that is ending has no thread-locals any more; what it frees then is not worth counting.
    let _ = OWN.try_with(|own| {
        own.set(own.get() + bytes);
        let _ = OWN_PEAK.try_with(|peak| peak.set(peak.get().max(own.get())));
    });
    let _ = UNREPORTED.try_with(|unreported| {
        let sum = unreported.get() + bytes;
        if sum.abs() < STEP {
            unreported.set(sum);
            return;
        }
        unreported.set(0);
        let live = LIVE.fetch_add(sum, Relaxed) + sum;
        PEAK.fetch_max(live, Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_and_what_is_freed_is_not() {
        let (_, bytes) = peak_of(|| {
            for _ in 0..100 {
                drop(Vec::<u8>::with_capacity(1 << 20));
            }
        });
        assert!((1 << 20..1 << 21).contains(&bytes), "{bytes}");
    }
}
