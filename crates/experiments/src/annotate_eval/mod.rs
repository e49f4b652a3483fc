//! How well episodes are cut into subtasks and named, against true phases, next to baselines.
//!
//! ```text
//! Prepared ──samples──► episodes with true segments ──► every cutter: settings tried on training episodes,
//!                       │                                the best one scored on held-out episodes ──► AnnotateReport
//!                       └─noise──► the same episodes as operators of three levels would have recorded them
//! ```
//! The setting of a baseline is chosen for each dataset (and each level of noise) by the mean F1 of boundaries at ±0.2 s
//! over training episodes. Ours has the same default settings everywhere; `ours, tuned` is chosen like a baseline. All
//! cutters are named by the same namer, so that label accuracy compares cuts; `ours, names without segments` is the namer alone,
//! which shows what cuts are worth to it.

pub mod baselines;
mod naming;
pub mod noise;
mod ours;
mod plot;
pub mod samples;
pub mod scores;
pub mod shuffled;
pub mod truth;

use std::path::PathBuf;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use naming::Label;
pub use ours::{Named, SEGMENTS, SUBTASKS, TUNED, WITHOUT_SEGMENTS};
pub use plot::noise_plot;

use self::baselines::{Cutter, Peer, baselines};
use self::noise::Level;
use self::ours::{Namers, Ours};
use self::samples::{Sample, Samples};
use self::scores::{
    Counts, Figure, OVERLAPS, TOLERANCES, boundary_counts, figure, label_counts, segment_counts, segments_between,
};
use self::truth::{ObjectOrder, TrueSegment};
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// What to score besides the dataset itself.
#[derive(Clone, Debug, Default)]
pub struct AnnotateOptions {
    /// Files with cuts of other programs.
    pub peers: Vec<PathBuf>,
    /// The order of objects, where it is not that of the instruction.
    pub order: ObjectOrder,
    /// Levels of noise, besides the recorded episodes.
    pub levels: Vec<Level>,
    /// Random seed of clusters, noise and resamples.
    pub seed: u64,
}

/// All that was scored on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnotateReport {
    /// The dataset's name.
    pub dataset: String,
    /// Frames per second.
    pub fps: f64,
    /// Episodes on which settings were chosen.
    pub training_episodes: usize,
    /// Episodes that are scored.
    pub held_out_episodes: usize,
    /// True segments of a held-out episode, on average.
    pub true_segments: f64,
    /// Every cutter on the recorded episodes.
    pub recorded: Vec<CutterReport>,
    /// Every cutter on disturbed episodes, from the least disturbance on.
    pub disturbed: Vec<DisturbedReport>,
    /// The held-out episodes as recorded, with what was found in them.
    pub episodes: Vec<EpisodeReport>,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
}

/// One level of noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisturbedReport {
    /// Its name.
    pub level: String,
    /// Every cutter.
    pub cutters: Vec<CutterReport>,
    /// The held-out episodes at this level.
    pub episodes: Vec<EpisodeScores>,
}

/// What one held-out episode scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeScores {
    /// Its number in the dataset.
    pub episode: u32,
    /// Boundary F1 of our subtasks at ±0.2 s.
    pub subtasks_f1: f64,
    /// Boundary F1 of our segments at ±0.2 s.
    pub boundary_f1: f64,
    /// The share of frames that our subtasks label rightly, phase and object.
    pub phase_object: f64,
    /// How well the steps of the instruction fit the motion.
    pub alignment: f64,
    /// Whether its subtasks are named after the motion, as the instruction does not fit it well enough.
    pub by_motion: bool,
}

/// One way to cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutterReport {
    /// Its name.
    pub name: String,
    /// The chosen setting, if there was anything to choose.
    pub setting: Option<String>,
    /// How many settings were tried.
    pub tried: usize,
    /// Boundary F1 at ±0.2 s on the training episodes, mean over episodes, with the chosen setting.
    pub training: f64,
    /// Segments of a held-out episode, on average.
    pub segments: f64,
    /// Boundary F1 at ±0.2 s.
    pub boundary_02: Figure,
    /// Boundary F1 at ±0.5 s.
    pub boundary_05: Figure,
    /// Segment F1 at an overlap of 0.5.
    pub segment_50: Figure,
    /// Segment F1 at an overlap of 0.75.
    pub segment_75: Figure,
    /// Share of frames with the right phase, once our namer has named the segments.
    pub phase: Figure,
    /// Share of frames with the right phase and object.
    pub phase_object: Figure,
}

/// A held-out episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeReport {
    /// Its number in the dataset.
    pub episode: u32,
    /// The instruction of its task.
    pub instruction: String,
    /// Its rows.
    pub rows: usize,
    /// Its true segments.
    pub truth: Vec<TrueSegment>,
    /// For each cutter, in the order of the report, the rows at which segments begin, but for the first.
    pub cuts: Vec<Vec<usize>>,
    /// Our named subtasks.
    pub subtasks: Vec<Named>,
    /// What it scored.
    pub scores: EpisodeScores,
}

/// Scores ours and all baselines on one dataset.
///
/// # Errors
/// If the dataset has no true phases, cannot be read as motions, or a file of a peer is wrong.
pub fn evaluate_annotation(prepared: &Prepared, options: &AnnotateOptions) -> Result<AnnotateReport> {
    let samples = Samples::new(prepared, &options.order)?;
    // What the source says is about pictures, which play no part here.
    let about_source = |note: &&String| prepared.source.notes.contains(note);
    let mut notes: Vec<String> = prepared.notes.iter().filter(|note| !about_source(note)).cloned().collect();
    let peers = options.peers.iter().map(|path| Peer::read(path, &samples.dataset)).collect::<Result<Vec<_>>>()?;
    let mut known = Vec::new();
    for peer in peers.into_iter().flatten() {
        match samples.which(true).iter().find(|sample| !peer.knows(sample)) {
            None => known.push(Box::new(peer) as Box<dyn Cutter>),
            Some(missing) => notes.push(format!(
                "`{}` has no cuts of episode {} of `{}`, which is held out, so it is not scored there",
                peer.name(),
                missing.episode,
                samples.dataset
            )),
        }
    }
    let (recorded, cuts) = scored(&samples, known, options.seed)?;
    let mut disturbed = Vec::new();
    for level in &options.levels {
        let other = noise::disturbed(prepared, &samples, *level, options.seed)?;
        disturbed.push(DisturbedReport {
            level: level.name().to_owned(),
            cutters: scored(&other, Vec::new(), options.seed)?.0,
            episodes: episode_scores(&other)?,
        });
    }
    let held_out = samples.which(true);
    let namers = Namers::new(&samples);
    let scores = episode_scores(&samples)?;
    let episode = |at: usize| -> Result<EpisodeReport> {
        let sample = held_out[at];
        Ok(EpisodeReport {
            episode: sample.episode.0,
            instruction: sample.instruction.clone(),
            rows: sample.len(),
            truth: sample.truth.clone(),
            cuts: cuts.iter().map(|all| all[at].clone()).collect(),
            subtasks: namers.named(sample)?.subtasks,
            scores: scores[at].clone(),
        })
    };
    let episodes = (0..held_out.len()).map(episode).collect::<Result<Vec<_>>>()?;
    let count = held_out.len();
    Ok(AnnotateReport {
        fps: samples.fps,
        training_episodes: samples.which(false).len(),
        held_out_episodes: count,
        true_segments: held_out.iter().map(|one| one.truth.len()).sum::<usize>() as f64 / count.max(1) as f64,
        recorded,
        disturbed,
        episodes,
        notes,
        dataset: samples.dataset.clone(),
    })
}

/// What each held-out episode scored.
fn episode_scores(samples: &Samples) -> Result<Vec<EpisodeScores>> {
    let namers = Namers::new(samples);
    let segments = Ours::segments(samples);
    let one = |sample: &Sample| -> Result<EpisodeScores> {
        let named = namers.named(sample)?;
        let f1 = |cuts: &[usize]| boundary_counts(sample, cuts, TOLERANCES[0], samples.fps).f1();
        let cuts: Vec<usize> = named.subtasks.iter().skip(1).map(|one| one.start).collect();
        Ok(EpisodeScores {
            episode: sample.episode.0,
            subtasks_f1: f1(&cuts),
            boundary_f1: f1(&segments.cuts(0, sample)?),
            phase_object: label_counts(sample, &named.labels)[1].f1(),
            alignment: named.score,
            by_motion: named.labels.is_empty(),
        })
    };
    samples.which(true).par_iter().map(|sample| one(sample)).collect()
}

/// The cuts of each held-out episode.
type EpisodeCuts = Vec<Vec<usize>>;

/// Every cutter on some episodes, ours first, with its cuts of all held-out episodes.
fn scored(samples: &Samples, peers: Vec<Box<dyn Cutter>>, seed: u64) -> Result<(Vec<CutterReport>, Vec<EpisodeCuts>)> {
    let namers = Namers::new(samples);
    let mut cutters: Vec<Box<dyn Cutter + '_>> = vec![
        Box::new(Ours::subtasks(samples, &namers)),
        Box::new(Ours::segments(samples)),
        Box::new(Ours::tuned(samples)),
        Box::new(Ours::without_segments(samples, &namers)),
    ];
    for one in baselines(samples, seed)?.into_iter().chain(peers) {
        cutters.push(one);
    }
    let (mut reports, mut all) = (Vec::new(), Vec::new());
    for cutter in &cutters {
        let (report, cuts) = score(cutter.as_ref(), samples, &namers, seed)?;
        reports.push(report);
        all.push(cuts);
    }
    Ok((reports, all))
}

/// Chooses the setting of a cutter on training episodes, and scores it on held-out ones.
fn score(cutter: &dyn Cutter, samples: &Samples, namers: &Namers, seed: u64) -> Result<(CutterReport, EpisodeCuts)> {
    let training: Vec<&Sample> = samples.which(false).into_iter().filter(|sample| cutter.knows(sample)).collect();
    let settings = cutter.settings();
    let mean = |setting: usize| -> Result<f64> {
        let one = |sample: &&Sample| -> Result<f64> {
            Ok(boundary_counts(sample, &cutter.cuts(setting, sample)?, TOLERANCES[0], samples.fps).f1())
        };
        let all = training.par_iter().map(one).collect::<Result<Vec<f64>>>()?;
        Ok(all.iter().sum::<f64>() / all.len().max(1) as f64)
    };
    let means = (0..settings.len()).map(mean).collect::<Result<Vec<f64>>>()?;
    // Of equally good settings the first.
    let best = means.iter().enumerate().fold(None, |best: Option<(usize, f64)>, (at, mean)| match best {
        Some((_, most)) if most >= *mean => best,
        _ => Some((at, *mean)),
    });
    let (setting, reached) =
        best.ok_or_else(|| Error::Mismatch(format!("internal error: `{}` has no settings", cutter.name())))?;
    let held_out = samples.which(true);
    let cuts = held_out.par_iter().map(|sample| cutter.cuts(setting, sample)).collect::<Result<Vec<_>>>()?;
    let pairs: Vec<(&Sample, &Vec<usize>)> = held_out.iter().copied().zip(&cuts).collect();
    let over = |of: &(dyn Fn(&Sample, &[usize]) -> Counts + Sync)| {
        let counts: Vec<Counts> = pairs.iter().map(|(sample, cuts)| of(sample, cuts)).collect();
        figure(&counts, seed)
    };
    let boundary = |seconds: f64| over(&|sample, cuts| boundary_counts(sample, cuts, seconds, samples.fps));
    let segment = |least: f64| over(&|sample, cuts| segment_counts(sample, cuts, least));
    let label = |(sample, cuts): &(&Sample, &Vec<usize>)| -> Result<[Counts; 2]> {
        Ok(label_counts(sample, &cutter.labels(setting, sample)?.unwrap_or_else(|| namers.labels(sample, cuts))))
    };
    let labels = pairs.par_iter().map(label).collect::<Result<Vec<[Counts; 2]>>>()?;
    let labelled = |which: usize| figure(&labels.iter().map(|both| both[which]).collect::<Vec<_>>(), seed);
    let segments: usize = pairs.iter().map(|(sample, cuts)| segments_between(cuts, sample.len()).len()).sum();
    let report = CutterReport {
        name: cutter.name(),
        setting: settings.get(setting).filter(|_| settings.len() > 1).cloned(),
        tried: settings.len(),
        training: reached,
        segments: segments as f64 / pairs.len().max(1) as f64,
        boundary_02: boundary(TOLERANCES[0])?,
        boundary_05: boundary(TOLERANCES[1])?,
        segment_50: segment(OVERLAPS[0])?,
        segment_75: segment(OVERLAPS[1])?,
        phase: labelled(0)?,
        phase_object: labelled(1)?,
    };
    Ok((report, cuts))
}

#[cfg(test)]
mod tests {
    use clustering::Points;
    use dataset::EpisodeId;
    use skills::{ActionLayout, Episode};

    use super::samples::Signals;
    use super::truth::objects_of;
    use super::*;

    /// An episode without motion, with true phases of some lengths.
    pub(super) fn sample(instruction: &str, phases: &[(&str, usize)]) -> Sample {
        let mut truth: Vec<TrueSegment> = Vec::new();
        let object = objects_of(instruction).handled.first().cloned();
        for (phase, length) in phases {
            let start = truth.last().map_or(0, |one| one.rows.end);
            let object = object.clone().filter(|_| *phase != "retreat");
            truth.push(TrueSegment { rows: start..start + length, phase: (*phase).to_owned(), object });
        }
        let rows = truth.last().map_or(0, |one| one.rows.end);
        let mut layout = ActionLayout::libero();
        layout.groups[0].states.clear();
        let actions = vec![0.0; rows * layout.width];
        let motions = Episode::new(&layout, Points::new(&actions, layout.width).unwrap(), None).unwrap();
        Sample {
            episode: EpisodeId(0),
            held_out: true,
            instruction: instruction.to_owned(),
            motions,
            states: Vec::new(),
            actions,
            truth,
            signals: Signals::default(),
        }
    }
}
