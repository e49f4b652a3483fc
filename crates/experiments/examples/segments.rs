//! How well episodes are cut and written, without training anything: boundaries against the true phases, programs replayed, and
//! the nats of programs with a library and without.
//!
//! ```text
//! cargo run --release -p experiments --example segments -- DATASET… [--tuning] [--control velocity] [--set grid=0.05]
//! ```
//! Classes are KMeans on the actions of segments, the baseline that needs no world model. With `--tuning` the held-out
//! episodes are set aside and the last training episode of each task is judged, so that settings can be chosen.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use candle_core::Device;
use clustering::{KMeansConfig, Points, boundary_f1, kmeans, nearest_centres};
use compression::{Library, Programs, Strategy, admit_all, held_out_length, refactor};
use dataset::{ControlChoice, Overrides};
use experiments::cycle::corpus::{Corpus, Subject};
use experiments::cycle::demonstrations::Demonstrations;
use experiments::cycle::skill_scores::{replay, skill_phases};
use experiments::scores::tolerance;
use experiments::windows::Windows;
use experiments::{FeatureChoice, Prepared, Source};
use models::{FragmentTable, Precision};
use skills::{AlphabetConfig, SegmentConfig, frame_labels, motor_refactor_config};

/// Actions of a window, and classes.
const STEPS: usize = 16;
const CLASSES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut datasets, mut tuning, mut control) = (Vec::new(), false, Vec::new());
    let mut cut = serde_json::to_value(SegmentConfig::default())?;
    let mut alphabet = serde_json::to_value(AlphabetConfig::default())?;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--tuning" => tuning = true,
            "--control" => control.push(arguments.next().unwrap_or_default().parse::<ControlChoice>()?),
            "--set" => {
                let set = arguments.next().unwrap_or_default();
                let (key, value) = set.split_once('=').ok_or("give key=value")?;
                let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                match (cut.get_mut(key), alphabet.get_mut(key)) {
                    (Some(place), _) | (None, Some(place)) => *place = value,
                    (None, None) => return Err(format!("there is no setting `{key}`").into()),
                }
            }
            _ => datasets.push(argument),
        }
    }
    let (cut, alphabet): (SegmentConfig, AlphabetConfig) =
        (serde_json::from_value(cut)?, serde_json::from_value(alphabet)?);
    println!(
        "| dataset | segments, true | F1 | precision | recall | NMI | replay | duration | nats, train | with library | held-out | with library |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for name in datasets {
        println!("{}", measured(&name, &control, tuning, &cut, &alphabet)?);
    }
    Ok(())
}

fn measured(
    name: &str,
    control: &[ControlChoice],
    tuning: bool,
    cut: &SegmentConfig,
    config: &AlphabetConfig,
) -> Result<String, Box<dyn Error>> {
    let blind = Overrides { cameras: Some(Vec::new()), control: control.to_vec(), ..Overrides::default() };
    let source = Source::open(name, &blind, &FeatureChoice::default(), &mut |_| {})?;
    let prepared = match tuning {
        true => Prepared::for_tuning(source, None, STEPS)?,
        false => Prepared::new(source, None, STEPS)?,
    };
    let demonstrations = Demonstrations::new(&prepared, cut)?;
    let table = prepared.table(prepared.scales.clone(), &Device::Cpu, Precision::F32, 0.99)?;
    let labels = classes(&prepared, &demonstrations, &table)?;
    let corpus = Corpus::with_labels(&demonstrations, &labels, config)?;
    let boundaries = boundaries(&prepared, &demonstrations)?;
    let phases = skill_phases(&prepared, &demonstrations, &corpus)?;
    let replayed = replay(&demonstrations, &corpus)?;
    let motions =
        |held_out: bool| -> Vec<Subject> { demonstrations.which(held_out).into_iter().map(Subject::Motion).collect() };
    let training: Programs = corpus.bound(&Library::new(), &motions(false))?;
    let refactored = refactor(&training, &motor_refactor_config(), admit_all)?;
    let held_out = corpus.programs(&motions(true));
    let (plain, with) = held_out_length(&refactored.programs, &held_out, Strategy::default())?.totals();
    let [found, truth, f1, precision, recall] = boundaries;
    Ok(format!(
        "| {name} | {found:.1}, {truth:.1} | {f1:.3} | {precision:.3} | {recall:.3} | {:.3} | {:.3} | {:.2} | {:.0} | {:.0} ({} entries) | {plain:.0} | {with:.0} |",
        phases.map_or(f64::NAN, |phases| phases.nmi),
        replayed.action_error,
        replayed.duration_error,
        refactored.before.total(),
        refactored.after.total(),
        refactored.programs.library().entries().len(),
    ))
}

/// KMeans on the standardised actions of the training segments' windows; every segment has the nearest centre.
fn classes(
    prepared: &Prepared,
    demonstrations: &Demonstrations,
    table: &FragmentTable,
) -> Result<Vec<Vec<i64>>, Box<dyn Error>> {
    let all: Vec<usize> = (0..demonstrations.all.len()).collect();
    let ids = demonstrations.segments_of(&all);
    let rows = Windows::of_segments(prepared, demonstrations, &ids, STEPS, table)?.rows()?;
    let learned = (0..ids.len()).filter(|at| !demonstrations.all[ids[*at].demonstration].held_out);
    let of_learned = rows.rows(learned);
    let config = KMeansConfig { clusters: CLASSES, seed: 0, ..KMeansConfig::default() };
    let centres = kmeans(Points::new(&of_learned, rows.width)?, &config)?.centres;
    let labels = nearest_centres(Points::new(&rows.values, rows.width)?, Points::new(&centres, rows.width)?)?;
    let of = |demonstration: usize| {
        let own = ids.iter().zip(&labels).filter(move |(id, _)| id.demonstration == demonstration);
        own.map(|(_, label)| *label).collect()
    };
    Ok(all.into_iter().map(of).collect())
}

/// Segments of a held-out episode as found and as labelled, and F1, precision and recall of their boundaries.
fn boundaries(prepared: &Prepared, demonstrations: &Demonstrations) -> Result<[f64; 5], Box<dyn Error>> {
    let Some(phases) = prepared.source.dataset.columns().labels.get("phase") else { return Ok([f64::NAN; 5]) };
    let held_out = demonstrations.which(true);
    let (mut truth, mut found, mut counts) = (Vec::new(), Vec::new(), [0.0; 2]);
    for at in &held_out {
        let own = &phases[demonstrations.all[*at].frames.clone()];
        let rows = demonstrations.rows_of(*at);
        counts[0] += rows.len() as f64 / held_out.len() as f64;
        counts[1] += (1 + own.windows(2).filter(|two| two[0] != two[1]).count()) as f64 / held_out.len() as f64;
        found.push(frame_labels(&rows, &(0..rows.len() as i64).collect::<Vec<_>>())?);
        truth.push(own);
    }
    let scores = boundary_f1(&truth, &found, tolerance(demonstrations.layout.fps))?;
    Ok([counts[0], counts[1], scores.f1, scores.precision, scores.recall])
}
