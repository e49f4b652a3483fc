//! Runs a target on many inputs: workers that catch panics, and a watchdog over time and memory.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory;
use crate::random::Random;
use crate::shrink::shrink;
use crate::targets::{Outcome, Target, Verdict};

/// How many failures of one worker end a run.
const MAX_FAILURES: usize = 5;
/// The stack of a worker: that of threads by default, since users of the libraries will call them from such threads.
const STACK: usize = 2 << 20;
/// How many inputs a worker takes at a time.
const BATCH: u64 = 64;
/// What one worker writes into the journal: number of the target and index of the input.
pub(crate) const JOURNAL_ENTRY: usize = 16;

/// How a target is run.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The seed of all inputs.
    pub(crate) seed: u64,
    /// The inputs by index: first and one past the last.
    pub(crate) inputs: (u64, u64),
    /// The number of workers.
    pub(crate) threads: usize,
    /// How long one input may take.
    pub(crate) patience: Duration,
    /// How many bytes may be allocated at once.
    pub(crate) memory: usize,
    /// Where workers note what they are about to try, in case the process does not survive it.
    pub(crate) journal: Option<Arc<File>>,
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Inputs tried.
    pub(crate) inputs: u64,
    /// Those that were accepted.
    pub(crate) accepted: u64,
    /// Wall time.
    pub(crate) elapsed: Duration,
    /// The most bytes allocated at once, by all workers together.
    pub(crate) peak: usize,
    /// The most bytes that a single input needed, and its index.
    pub(crate) largest: (usize, u64),
    /// The longest that a single input took, and its index.
    pub(crate) slowest: (Duration, u64),
    /// What went wrong, by index.
    pub(crate) failures: Vec<Failure>,
}

/// An input that did what no input may.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Its index.
    pub(crate) index: u64,
    /// What happened.
    pub(crate) message: String,
    /// The input, made smaller where that was possible.
    pub(crate) input: String,
}

/// Runs one target to the end, or until failures abound, or to the first input that takes too long or too much.
///
/// `progress` is called about once a second.
pub(crate) fn run(
    target: &Arc<Target>,
    number: u64,
    settings: &Settings,
    progress: impl Fn(&Summary),
) -> io::Result<Summary> {
    catch_messages();
    memory::forget_peak();
    let shared = Arc::new(Shared {
        next: AtomicU64::new(settings.inputs.0),
        stop: AtomicBool::new(false),
        start: Instant::now(),
        slots: (0..settings.threads).map(|_| Slot::default()).collect(),
        found: Mutex::default(),
    });
    let mut workers = Vec::new();
    for worker in 0..settings.threads {
        let (shared, target, settings) = (Arc::clone(&shared), Arc::clone(target), settings.clone());
        let work = move || work(&shared, &target, number, worker, &settings);
        workers.push(thread::Builder::new().stack_size(STACK).spawn(work)?);
    }
    let mut reported = Instant::now();
    loop {
        let running = workers.iter().any(|worker| !worker.is_finished());
        let mut summary = shared.summary();
        if let Some(failure) = running.then(|| shared.overdue(target, settings)).flatten() {
            // The worker cannot be stopped; it is left behind, and ends with the process.
            shared.stop.store(true, Relaxed);
            summary.failures.push(failure);
            return Ok(summary);
        }
        if !running {
            summary.failures.sort_by_key(|failure| failure.index);
            return Ok(summary);
        }
        if reported.elapsed() > Duration::from_secs(1) {
            reported = Instant::now();
            progress(&summary);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The input of an index.
pub(crate) fn input_of(target: &Target, seed: u64, index: u64) -> String {
    target.source.input(&mut Random::new(seed, target.name, index))
}

struct Shared {
    next: AtomicU64,
    stop: AtomicBool,
    start: Instant,
    slots: Vec<Slot>,
    found: Mutex<Summary>,
}

/// What a worker is doing.
#[derive(Default)]
struct Slot {
    index: AtomicU64,
    /// When it began, in milliseconds since the start, plus one; zero when it does nothing.
    since: AtomicU64,
}

impl Shared {
    fn summary(&self) -> Summary {
        let mut summary = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        summary.elapsed = self.start.elapsed();
        summary.peak = memory::peak();
        summary
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64 + 1
    }

    /// The input that takes too long or holds too much, if there is one now.
    fn overdue(&self, target: &Target, settings: &Settings) -> Option<Failure> {
        let now = self.now();
        let busy: Vec<(u64, u64)> = self
            .slots
            .iter()
            .map(|slot| (slot.since.load(Relaxed), slot.index.load(Relaxed)))
            .filter(|&(since, _)| since > 0)
            .collect();
        let &(since, index) = busy.iter().min()?;
        let message = if now.saturating_sub(since) as u128 > settings.patience.as_millis() {
            format!("still running after {} s", settings.patience.as_secs_f64())
        } else if memory::live() > settings.memory {
            let others: Vec<String> = busy.iter().map(|(_, index)| index.to_string()).collect();
            format!("{} MiB are allocated; one of the inputs {} does it", memory::live() >> 20, others.join(", "))
        } else {
            return None;
        };
        Some(Failure { index, message, input: input_of(target, settings.seed, index) })
    }
}

fn work(shared: &Shared, target: &Target, number: u64, worker: usize, settings: &Settings) {
    let slot = &shared.slots[worker];
    while !shared.stop.load(Relaxed) {
        let first = shared.next.fetch_add(BATCH, Relaxed);
        let last = first.saturating_add(BATCH).min(settings.inputs.1);
        if first >= last {
            break;
        }
        let mut batch = Summary::default();
        for index in first..last {
            if let Some(journal) = &settings.journal {
                let mut entry = [0; JOURNAL_ENTRY];
                entry[..8].copy_from_slice(&(number + 1).to_le_bytes());
                entry[8..].copy_from_slice(&index.to_le_bytes());
                // The journal only helps to explain a crash; without it the fuzzing is as good.
                let _ = journal.write_all_at(&entry, (worker * JOURNAL_ENTRY) as u64);
            }
            slot.index.store(index, Relaxed);
            slot.since.store(shared.now(), Relaxed);
            try_one(target, settings, index, &mut batch);
            slot.since.store(0, Relaxed);
            if batch.failures.len() >= MAX_FAILURES {
                break;
            }
        }
        let mut found = shared.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.inputs += batch.inputs;
        found.accepted += batch.accepted;
        found.largest = found.largest.max(batch.largest);
        found.slowest = found.slowest.max(batch.slowest);
        found.failures.append(&mut batch.failures);
        if found.failures.len() >= MAX_FAILURES {
            shared.stop.store(true, Relaxed);
        }
    }
}

fn try_one(target: &Target, settings: &Settings, index: u64, batch: &mut Summary) {
    let input = input_of(target, settings.seed, index);
    let start = Instant::now();
    let (verdict, bytes) = memory::peak_of(|| guarded(target, &input));
    batch.inputs += 1;
    batch.largest = batch.largest.max((bytes, index));
    batch.slowest = batch.slowest.max((start.elapsed(), index));
    let message = match verdict {
        Ok(outcome) => {
            batch.accepted += u64::from(outcome == Outcome::Accepted);
            if bytes <= settings.memory {
                return;
            }
            format!("needs {} MiB", bytes >> 20)
        }
        Err(message) => message,
    };
    // Smaller inputs that fail as well are as good to look at, whatever their message.
    let input = shrink(&input, settings.patience / 4, |smaller| guarded(target, smaller).is_err());
    let message = guarded(target, &input).err().unwrap_or(message);
    batch.failures.push(Failure { index, message, input });
}

/// The verdict on an input; a panic is a failure.
fn guarded(target: &Target, input: &str) -> Verdict {
    PANIC.set(Some(String::new()));
    let verdict = panic::catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let message = PANIC.take().unwrap_or_default();
    verdict.unwrap_or_else(|_| Err(format!("panic: {message}")))
}

thread_local! {
    /// The message of the last panic while inputs are tried; nothing on other threads.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of guarded code are kept for the report; others are printed as ever.
fn catch_messages() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let default = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let guarded = PANIC.with_borrow_mut(|message| message.as_mut().map(|message| *message = info.to_string()));
            if guarded.is_none() {
                default(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Source;

    fn target(check: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> Arc<Target> {
        Arc::new(Target {
            name: "test",
            cost: 1,
            source: Source {
                words: "abcdefgh".chars().map(String::from).collect(),
                seeds: Vec::new(),
                nests: &[("(", "a", ")")],
                grammar: Box::new(|random| "xyz".repeat(random.below(20))),
            },
            check: Box::new(check),
        })
    }

    fn settings() -> Settings {
        Settings {
            seed: 0,
            inputs: (0, 3000),
            threads: 2,
            patience: Duration::from_millis(300),
            memory: 64 << 20,
            journal: None,
        }
    }

    #[test]
    fn a_panic_is_reported_with_the_smallest_input() {
        let target = target(|input| {
            assert!(!input.contains("zx"), "zx is bad");
            Ok(Outcome::Accepted)
        });
        let summary = run(&target, 0, &settings(), |_| ()).unwrap();
        assert!(!summary.failures.is_empty());
        for failure in summary.failures {
            assert_eq!(failure.input, "zx");
            assert!(failure.message.contains("zx is bad"), "{}", failure.message);
        }
    }

    #[test]
    fn an_input_that_never_ends_is_reported() {
        let target = target(|input| {
            while input.len() == 12 {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(Outcome::Refused)
        });
        let summary = run(&target, 0, &settings(), |_| ()).unwrap();
        assert_eq!(summary.failures.len(), 1);
        assert_eq!(summary.failures[0].input.len(), 12);
    }

    #[test]
    fn an_input_that_needs_much_memory_is_reported() {
        let target = target(|input| {
            let bytes = if input.len() == 9 { 100 << 20 } else { 0 };
            ensure_used(&vec![0_u8; bytes]);
            Ok(Outcome::Refused)
        });
        let summary = run(&target, 0, &settings(), |_| ()).unwrap();
        assert!(!summary.failures.is_empty());
        assert!(summary.failures.iter().all(|failure| failure.message.contains("MiB")));
    }

    fn ensure_used(bytes: &[u8]) {
        assert!(std::hint::black_box(bytes).iter().all(|&byte| byte == 0));
    }
}
