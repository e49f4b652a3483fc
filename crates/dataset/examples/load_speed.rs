//! How fast a dataset opens and gives windows: our side of `benches/compare_lerobot.py`.
//!
//! ```text
//! cargo run --release -p dataset --example load_speed -- <dataset> open|windows|pictures|check|largest [seconds] [cache MiB]
//! ```
//! `check` is the check of all numbers before a training, `largest` finds the largest number, which reads the same memory; for
//! both a window is a pass over the dataset. Prints one line of JSON. Each measure has a process of its own, so that peaks of memory do not add up.
#![expect(clippy::print_stdout, reason = "a command of its own")]

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dataset::{
    CameraId, Dataset, EpisodeId, FRAGMENT_LENGTH, FragmentIndex, FrameIndex, FrameKey, FrameOptions, FrameReader,
    Overrides, Root, Shuffled,
};
use rayon::prelude::*;
use serde_json::json;

/// Windows that are asked for together.
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, measure, rest @ ..] = arguments.as_slice() else {
        return Err("wanted a dataset and one of `open`, `windows`, `pictures`, `check`, `largest`".into());
    };
    let patience = Duration::from_secs_f64(rest.first().map_or(Ok(3.0), |text| text.parse())?);
    let cache = rest.get(1).map_or(Ok(0), |text| text.parse::<usize>())? << 20;
    let started = Instant::now();
    let dataset = Dataset::open(Root::Directory(PathBuf::from(directory)), &Overrides::default())?;
    let open_seconds = started.elapsed().as_secs_f64();
    let all: Vec<EpisodeId> = (0..dataset.episodes().len() as u32).map(EpisodeId).collect();
    let index = FragmentIndex::new(dataset.spans(), &all, FRAGMENT_LENGTH, 1)?;
    let indexed_seconds = started.elapsed().as_secs_f64();
    let (windows, seconds) = match measure.as_str() {
        "open" => (0, 0.0),
        "windows" => numbers(&dataset, &index, patience)?,
        "pictures" => pictures(&dataset, &index, patience, cache)?,
        "check" => passes(patience, || Ok(dataset.check_numbers()?))?,
        "largest" => passes(patience, || {
            largest(&dataset);
            Ok(())
        })?,
        other => return Err(format!("`{other}` is none of `open`, `windows`, `pictures`, `check`, `largest`").into()),
    };
    let report = json!({
        "open_seconds": open_seconds,
        "index_seconds": indexed_seconds - open_seconds,
        "frames": dataset.frames(),
        "column_bytes": dataset.columns().bytes(),
        "windows": windows,
        "seconds": seconds,
        "windows_per_second": windows as f64 / f64::max(seconds, 1e-9),
        "number_bytes": number_bytes(&dataset),
        "peak_bytes": peak_bytes(),
    });
    println!("{report}");
    Ok(())
}

/// Bytes of states, actions and rewards, which a pass reads.
fn number_bytes(dataset: &Dataset) -> usize {
    let columns = dataset.columns();
    let rewards = columns.rewards.as_ref().map_or(0, Vec::len);
    4 * (columns.states.values.len() + columns.actions.values.len() + rewards)
}

/// How often something is done within the time, at least once.
fn passes(patience: Duration, pass: impl Fn() -> Result<(), Box<dyn Error>>) -> Result<(usize, f64), Box<dyn Error>> {
    let (started, mut count) = (Instant::now(), 0);
    while count == 0 || started.elapsed() < patience {
        pass()?;
        count += 1;
    }
    Ok((count, started.elapsed().as_secs_f64()))
}

/// Finds the largest of all numbers, on all threads.
fn largest(dataset: &Dataset) {
    let columns = dataset.columns();
    let rewards = columns.rewards.as_deref().unwrap_or_default();
    for values in [columns.states.values.as_slice(), columns.actions.values.as_slice(), rewards] {
        let most = |part: &[f32]| part.iter().fold(f32::NEG_INFINITY, |most, value| most.max(*value));
        black_box(values.par_chunks(1 << 16).map(most).reduce(|| f32::NEG_INFINITY, f32::max));
    }
}

/// Random windows of state and action, gathered into the contiguous batches that a model takes.
fn numbers(dataset: &Dataset, index: &FragmentIndex, patience: Duration) -> Result<(usize, f64), Box<dyn Error>> {
    let sampler = Shuffled::new(index, BATCH, 0)?;
    let columns = dataset.columns();
    let mut states = vec![0.0; BATCH * FRAGMENT_LENGTH * columns.states.width];
    let mut actions = vec![0.0; BATCH * FRAGMENT_LENGTH * columns.actions.width];
    let started = Instant::now();
    let mut step = 0;
    while started.elapsed() < patience {
        for (at, fragment) in sampler.batch(step).into_iter().enumerate() {
            let window = dataset.window(index.get(fragment).frames);
            let (size, place) = (window.states.len(), at * window.states.len());
            states[place..place + size].copy_from_slice(window.states);
            let (size, place) = (window.actions.len(), at * window.actions.len());
            actions[place..place + size].copy_from_slice(window.actions);
        }
        black_box((&states, &actions));
        step += 1;
    }
    Ok((step as usize * BATCH, started.elapsed().as_secs_f64()))
}

/// Random windows with all cameras decoded.
fn pictures(
    dataset: &Dataset,
    index: &FragmentIndex,
    patience: Duration,
    cache: usize,
) -> Result<(usize, f64), Box<dyn Error>> {
    let sampler = Shuffled::new(index, BATCH, 0)?;
    let reader = FrameReader::new(dataset, FrameOptions { cache_bytes: cache, ..FrameOptions::default() });
    let cameras = dataset.roles().cameras.len();
    let started = Instant::now();
    let mut step = 0;
    while started.elapsed() < patience {
        let mut wanted: Vec<FrameKey> = Vec::with_capacity(BATCH * FRAGMENT_LENGTH * cameras);
        for fragment in sampler.batch(step) {
            let frames = index.get(fragment).frames;
            black_box(dataset.window(frames.clone()));
            wanted.extend(
                (0..cameras).flat_map(|camera| frames.clone().map(move |at| (CameraId(camera), FrameIndex(at)))),
            );
        }
        black_box(reader.read(&wanted)?);
        step += 1;
    }
    Ok((step as usize * BATCH, started.elapsed().as_secs_f64()))
}

/// The most memory that this process ever held, where the system tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
