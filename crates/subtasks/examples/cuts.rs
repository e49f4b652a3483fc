//! How well episodes are cut, and how fast: boundaries against the true phases, which kinds are missed or spurious, how well
//! confidences are calibrated, and hours of demonstrations per minute.
//!
//! ```text
//! cargo run --release -p subtasks --example cuts -- DATASET… [--held-out] [--details] [--noise ordinary] [--seed 1] [--set penalty=0.2]
//! ```
//! Judged are the episodes that are not held out, so that settings can be chosen; `--held-out` judges the others.
//! `--noise` replaces them by what an operator of that level would have recorded.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clustering::{Points, boundary_f1};
use dataset::synthetic::human::{Level, Recording, disturb};
use dataset::{Dataset, Matrix, Overrides, RobotLayout, Root, Split};
use skills::{Episode, ScoredSegment, SegmentConfig, segment_scored};
use subtasks::robot::{action_layout, moved_parts};

/// Seconds that a cut may be apart from a true boundary.
const TOLERANCE: f64 = 0.2;

/// Times that each episode is cut to measure the speed.
const REPEATS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut datasets, mut held_out, mut details, mut noise, mut seed) = (Vec::new(), false, false, None, 0);
    let mut config = serde_json::to_value(SegmentConfig::subtasks())?;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--held-out" => held_out = true,
            "--details" => details = true,
            "--noise" => {
                let name = arguments.next().unwrap_or_default();
                let found = Level::ALL.into_iter().find(|level| level.name() == name);
                noise = Some(found.ok_or("give practised, ordinary or beginner")?);
            }
            "--seed" => seed = arguments.next().unwrap_or_default().parse()?,
            "--set" => {
                let set = arguments.next().unwrap_or_default();
                let (key, value) = set.split_once('=').ok_or("give key=value")?;
                let place = config.get_mut(key).ok_or_else(|| format!("there is no setting `{key}`"))?;
                *place = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            }
            _ => datasets.push(argument),
        }
    }
    let config: SegmentConfig = serde_json::from_value(config)?;
    println!("| dataset | segments, true | F1 | precision | recall | confidence: stated, right | hours a minute |");
    println!("|---|---|---|---|---|---|---|");
    for name in datasets {
        measure(&name, [held_out, details], noise.map(|level| (level, seed)), &config)?;
    }
    Ok(())
}

fn measure(
    name: &str,
    [held_out, details]: [bool; 2],
    noise: Option<(Level, u64)>,
    config: &SegmentConfig,
) -> Result<(), Box<dyn Error>> {
    let blind = Overrides { cameras: Some(Vec::new()), ..Overrides::default() };
    let dataset = Dataset::open(Root::Directory(PathBuf::from(name)), &blind)?;
    let robot = RobotLayout::of(&dataset);
    let layout = action_layout(&dataset, &robot)?;
    let parts = moved_parts(&robot);
    let mut counts = BTreeMap::new();
    dataset.spans().iter().for_each(|span| *counts.entry(span.task).or_insert(0) += 1);
    let split = Split::last_per_task(dataset.spans(), if counts.values().all(|count| *count >= 6) { 2 } else { 1 })?;
    let judged = if held_out { &split.held_out } else { &split.train };
    let phases = dataset.columns().labels.get("phase").ok_or("there are no labels `phase`")?;
    let names = dataset.label_names("phase").unwrap_or_default();
    let (mut truth, mut found, mut seconds, mut frames) = (Vec::new(), Vec::new(), 0.0, 0);
    for id in judged {
        let span = dataset.spans()[id.0 as usize].frames.clone();
        let columns = dataset.columns();
        let rows = |matrix: &Matrix| Matrix { width: matrix.width, values: matrix.rows(span.clone()).to_vec() };
        let mut recording = Recording {
            fps: layout.fps,
            actions: rows(&columns.actions),
            states: rows(&columns.states),
            labels: phases[span.clone()].to_vec(),
        };
        if let Some((level, seed)) = noise {
            recording = disturb(&recording, &parts, level, seed, u64::from(id.0))?.recording;
        }
        let actions = Points::new(&recording.actions.values, recording.actions.width)?;
        let states = Points::new(&recording.states.values, recording.states.width)?;
        let motions = Episode::new(&layout, actions, Some(states))?;
        // The fastest of some runs: other processes use the processor too.
        let mut fastest = f64::INFINITY;
        for _ in 0..REPEATS {
            let start = Instant::now();
            segment_scored(&motions, &layout, config)?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        seconds += fastest;
        found.push(segment_scored(&motions, &layout, config)?);
        frames += motions.len();
        truth.push(recording.labels);
    }
    let tolerance = (TOLERANCE * layout.fps).round() as usize;
    let of = |segments: &Vec<ScoredSegment>| -> Vec<i64> {
        segments.iter().enumerate().flat_map(|(at, one)| one.rows.clone().map(move |_| at as i64)).collect()
    };
    let labels: Vec<Vec<i64>> = found.iter().map(of).collect();
    let scores = boundary_f1(&truth, &labels, tolerance)?;
    let mean = |count: usize| count as f64 / judged.len() as f64;
    let wanted: usize = truth.iter().map(|phases| 1 + phases.windows(2).filter(|two| two[0] != two[1]).count()).sum();
    let mut kinds: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut bins = [[0.0; 3]; 5];
    for (phases, segments) in truth.iter().zip(&found) {
        let name = |row: usize| names.get(phases[row] as usize).map_or("?", |name| name.as_str());
        let true_cuts: Vec<usize> = (1..phases.len()).filter(|row| phases[row - 1] != phases[*row]).collect();
        for cut in &true_cuts {
            let hit = segments.iter().skip(1).any(|one| one.rows.start.abs_diff(*cut) <= tolerance);
            let kind = kinds.entry(format!("{} → {}", name(cut - 1), name(*cut))).or_default();
            kind[0] += 1;
            kind[1] += usize::from(!hit);
        }
        for one in segments.iter().skip(1) {
            let right = true_cuts.iter().any(|cut| one.rows.start.abs_diff(*cut) <= tolerance);
            let bin = &mut bins[((one.confidence * 5.0) as usize).min(4)];
            *bin = [bin[0] + 1.0, bin[1] + one.confidence, bin[2] + f64::from(u8::from(right))];
            if !right {
                kinds.entry(format!("spurious in {}", name(one.rows.start))).or_default()[1] += 1;
            }
        }
    }
    let bins: Vec<String> = (bins.iter().filter(|bin| bin[0] > 0.0))
        .map(|[count, stated, right]| format!("{:.2} {:.2} ({count})", stated / count, right / count))
        .collect();
    println!(
        "| {name} | {:.1}, {:.1} | {:.3} | {:.3} | {:.3} | {} | {:.0} |",
        mean(found.iter().map(Vec::len).sum()),
        mean(wanted),
        scores.f1,
        scores.precision,
        scores.recall,
        bins.join(", "),
        frames as f64 / layout.fps / 60.0 / seconds,
    );
    if details {
        for (kind, [all, missed]) in kinds.iter().filter(|(_, count)| count[1] > 0) {
            println!("    {kind}: {missed} of {all}");
        }
    }
    Ok(())
}
