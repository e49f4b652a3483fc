//! Bytes that nobody wrote: parquet and JSON files cut off anywhere, or with bits flipped. Whatever is found, it is an
//! answer: no panic, and no allocation that the file does not justify.
#![expect(unsafe_code, reason = "the trait of allocators is unsafe, and only this way can they be watched")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset::{Dataset, Overrides, ValidateOptions, validate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::set::{DATA, EPISODES, INFO, STATS, Set, TASKS};

/// The files of the small set have a few kilobytes. Decoders work in batches and pages, which take no more than this.
const LARGEST: usize = 16 << 20;

/// Remembers the largest single allocation of the whole test binary; no test needs a large one.
struct Watched;

static LARGEST_SEEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST_SEEN.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST_SEEN.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST_SEEN.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

/// Reads a broken dataset in both ways.
fn read(set: &Set, what: &str) {
    let report = validate(set.root(), &Overrides::default(), &ValidateOptions::default(), &|_| {});
    let opened = Dataset::open(set.root(), &Overrides::default());
    if let Err(error) = opened {
        assert!(report.errors() > 0, "{what}: only opening it finds {error}");
    }
    let largest = LARGEST_SEEN.load(Ordering::Relaxed);
    assert!(largest <= LARGEST, "{what}: {largest} bytes in one piece");
}

#[test]
fn files_cut_off_anywhere() {
    let set = Set::sound();
    for file in [DATA[0], EPISODES, TASKS, INFO, STATS] {
        let whole = fs::read(set.path().join(file)).unwrap();
        for length in (0..whole.len()).step_by(whole.len().div_ceil(40)) {
            set.bytes(file, |bytes| bytes.truncate(length));
            read(&set, &format!("{file} cut off at {length}"));
            set.bytes(file, |bytes| bytes.clone_from(&whole));
        }
    }
}

#[test]
fn flipped_bits() {
    mutations(1, 1200, |random, bytes| {
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
        }
    });
}

/// Footers are where sizes, places and counts are.
#[test]
fn rubbish_in_footers() {
    mutations(2, 1000, |random, bytes| {
        let length = bytes.len();
        let footer = length.saturating_sub(2000).max(4);
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(footer..length);
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
        }
    });
}

/// Pages begin with sizes too.
#[test]
fn rubbish_runs() {
    mutations(3, 600, |random, bytes| {
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..40)).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|byte| *byte = random.random());
    });
}

fn mutations(seed: u64, count: usize, mutate: impl Fn(&mut ChaCha8Rng, &mut Vec<u8>)) {
    let set = Set::sound();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for round in 0..count {
        let file = [DATA[0], DATA[1], EPISODES, TASKS][round % 4];
        let whole = fs::read(set.path().join(file)).unwrap();
        set.bytes(file, |bytes| mutate(&mut random, bytes));
        read(&set, &format!("{file}, seed {seed}, round {round}"));
        fs::write(set.path().join(file), whole).unwrap();
    }
}
