//! AtomSkill: stretches between gripper keyframes, embedded by temporal contrast and seeded with words, and clustered.
//!
//! An episode is cut where a gripper is told to open or close, and with `hold` again so many seconds later, when the hand has
//! done so. Two windows of one stretch are positives of each other (NT-Xent), all other windows of a batch are negatives. With
//! `words` stretches with the same word are positives as well (SupCon). KMeans on the mean embedding of the training
//! stretches gives the classes.
//!
//! In AtomSkill a vision-language model nominates keyframes and describes stretches. Here the word of a stretch is the verb
//! phrase of its part of the instruction, without its objects, which would name the task: the verb phrases of the instruction,
//! spread in order over the stretches of the episode, with whether the gripper is closed.

use std::collections::BTreeMap;
use std::ops::Range;

use candle_core::Device;
use clustering::{Points, kmeans, nearest_centres};
use models::amortizer::{Amortizer, AmortizerConfig};
use models::contrast::{TEMPERATURE, nt_xent, supcon};
use models::noise::mix;
use models::training::{Loss, Objective, Part};
use models::{FragmentTable, Parameters, Precision};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blade::missing;
use super::fragments::{Demonstrated, stretches_between};
use super::training::train_briefly;
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::embeddings::{Embeddings, amortized};
use crate::error::{Error, Result};

/// Pairs of windows in a step.
const PAIRS: usize = 64;

/// Frames between the windows that a stretch is embedded by.
const STRIDE: usize = 4;

/// The highest rate.
const RATE: f64 = 1e-3;

/// Contrastive embeddings of stretches between gripper keyframes.
pub struct AtomSkill;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Seconds after a gripper event at which there is a second keyframe; 0 is none.
    hold: f64,
    /// The weight of the contrast by words.
    words: f64,
}

/// A stretch with the first frames of its windows, and its word by number.
struct Stretch {
    frames: Range<usize>,
    windows: Vec<usize>,
    word: i64,
}

/// The embedding as the trainer sees it.
struct Contrast {
    model: Amortizer,
    parameters: Parameters,
    table: FragmentTable,
    stretches: Vec<Stretch>,
    words: f64,
    length: usize,
    seed: u64,
}

impl Objective for Contrast {
    type Batch = (Vec<usize>, Vec<i64>);

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// First frames, two of each stretch side by side, and their words.
    fn prepare(&self, step: u64, part: Part) -> models::Result<(Vec<usize>, Vec<i64>)> {
        let mut text = b"pairs of windows".to_vec();
        text.extend(step.to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(mix(self.seed, &text));
        let (mut starts, mut words) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let stretch = &self.stretches[generator.random_range(0..self.stretches.len())];
            for _ in 0..2 {
                starts.push(stretch.windows[generator.random_range(0..stretch.windows.len())]);
                words.push(stretch.word);
            }
        }
        let pairs = part.range(PAIRS);
        let rows = 2 * pairs.start..2 * pairs.end;
        Ok((starts[rows.clone()].to_vec(), words[rows].to_vec()))
    }

    fn loss(&self, (starts, words): (Vec<usize>, Vec<i64>)) -> models::Result<Loss> {
        let embeddings = self.model.embed(&self.table.gather(&starts, self.length)?)?;
        let time = nt_xent(&embeddings, TEMPERATURE)?;
        let mut terms = vec![("time", time.detach())];
        if self.words == 0.0 {
            return Ok(Loss { total: time, terms });
        }
        let by_word = supcon(&embeddings, &words, TEMPERATURE)?;
        terms.push(("words", by_word.detach()));
        Ok(Loss { total: (time + (by_word * self.words)?)?, terms })
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        ((2 * PAIRS) as f64, "fragments")
    }
}

impl Contrast {
    /// The mean embedding of each stretch.
    fn embedded(&self, stretches: &[Stretch]) -> Result<Embeddings> {
        let width = self.model.config().embedding;
        let mut values = Vec::with_capacity(stretches.len() * width);
        for stretch in stretches {
            let windows: Vec<usize> = stretch.windows.iter().step_by(STRIDE).copied().collect();
            let found = amortized(&self.model, &self.table, &windows, self.length)?;
            let sum = |at: usize| (0..windows.len()).map(|row| found.row(row)[at]).sum::<f32>();
            values.extend((0..width).map(|at| sum(at) / windows.len() as f32));
        }
        Ok(Embeddings { values, width })
    }
}

impl Operator for AtomSkill {
    fn name(&self) -> &'static str {
        "atom_skill"
    }

    fn source(&self) -> &'static str {
        "AtomSkill: gripper keyframes and contrastive embeddings; the words of the vision-language model are replaced by the verb \
         phrases of the instruction"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (0.5, 0.5)]
            .map(|(hold, words)| json!({ "hold": hold, "words": words }))
            .to_vec()
    }

    fn missing(&self, data: &Fragments<'_>) -> Option<String> {
        missing(data)
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, device: &Device) -> Result<Found> {
        let Setting { hold, words } = setting(self.name(), choice)?;
        let positive = |value: f64| value >= 0.0 && value.is_finite();
        if !(positive(hold) && positive(words)) {
            return Err(refused(self.name(), "choice", format!("hold {hold}, words {words}"), "0 or more of both"));
        }
        let fps = data.prepared.source.dataset.info().fps;
        let hold = (hold * fps).round() as usize;
        let mut known = BTreeMap::new();
        let mut cut = |episode: &Demonstrated, allowed: Option<&[usize]>| -> Vec<Stretch> {
            let found = stretches_between(&keyframes(episode, hold), &episode.frames);
            let count = found.len();
            let number = |(at, frames): (usize, Range<usize>)| {
                let verb = episode.verbs.get(at * episode.verbs.len() / count).cloned().unwrap_or_default();
                let word = (verb, episode.closed[frames.start - episode.frames.start]);
                let next = known.len() as i64;
                let word = *known.entry(word).or_insert(next);
                Stretch { windows: windows(&frames, &episode.frames, data.length, allowed), word, frames }
            };
            found.into_iter().enumerate().map(number).collect()
        };
        let training: Vec<Stretch> =
            data.learned.iter().flat_map(|episode| cut(episode, Some(&data.training))).collect();
        let held_out: Vec<Vec<Stretch>> = data.held_out.iter().map(|episode| cut(episode, None)).collect();
        if training.is_empty() {
            return Err(Error::Mismatch("there is no training stretch to learn from".to_owned()));
        }
        let widths = data.table.widths();
        let config = AmortizerConfig {
            width: 64,
            layers: 2,
            heads: 4,
            embedding: 32,
            horizon: data.length,
            vision: widths.features > 0,
            ..AmortizerConfig::default()
        };
        let mut parameters = Parameters::new(device, Precision::F32, seed);
        let model = Amortizer::new(&mut parameters.root(), config, widths)?;
        let (table, length) = (data.table.clone(), data.length);
        let contrast = Contrast { model, parameters, table, stretches: training, words, length, seed };
        train_briefly(&contrast, data, RATE)?;
        let learned = contrast.embedded(&contrast.stretches)?;
        let points = Points::new(&learned.values, learned.width)?;
        let clusters = data.clusters.min(points.len());
        let found = kmeans(points, &clustering::KMeansConfig { clusters, ..data.kmeans(seed) })?;
        let centres = Points::new(&found.centres, learned.width)?;
        let classified = held_out.iter().map(|stretches| -> Result<Vec<(Range<usize>, i64)>> {
            let vectors = contrast.embedded(stretches)?;
            let labels = nearest_centres(Points::new(&vectors.values, vectors.width)?, centres)?;
            Ok(stretches.iter().map(|stretch| stretch.frames.clone()).zip(labels).collect())
        });
        Ok(data.found_of_stretches(&classified.collect::<Result<Vec<_>>>()?))
    }
}

/// Rows at which a gripper is told something else, and `hold` rows later if that is not 0.
fn keyframes(episode: &Demonstrated, hold: usize) -> Vec<usize> {
    let events = episode.closed.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]).map(|(at, _)| at + 1);
    let mut found: Vec<usize> = events.flat_map(|event| [event, event + hold]).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// First frames of the windows whose middle is in a stretch, of those that may be learned from; if there is none, the one
/// whose middle is nearest to that of the stretch.
fn windows(stretch: &Range<usize>, episode: &Range<usize>, length: usize, allowed: Option<&[usize]>) -> Vec<usize> {
    let last = episode.end.saturating_sub(length).max(episode.start);
    let first = |middle: usize| middle.saturating_sub(length / 2).clamp(episode.start, last);
    let (from, to) = (first(stretch.start), first(stretch.end - 1));
    let is_allowed = |start: &usize| allowed.is_none_or(|allowed| allowed.binary_search(start).is_ok());
    let found: Vec<usize> = (from..=to).filter(is_allowed).collect();
    if found.is_empty() { vec![first((stretch.start + stretch.end) / 2)] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_in_the_episode_and_around_the_stretch() {
        assert_eq!(windows(&(10..30), &(0..100), 8, None), (6..26).collect::<Vec<_>>());
        assert_eq!(windows(&(0..3), &(0..100), 8, None), [0]);
        assert_eq!(windows(&(97..100), &(0..100), 8, None), [92]);
        assert_eq!(windows(&(10..30), &(0..100), 8, Some(&[3, 12, 40])), [12]);
        assert_eq!(windows(&(10..12), &(0..100), 8, Some(&[3])), [7], "never without a window");
    }

    #[test]
    fn keyframes_are_gripper_events_and_what_follows_them() {
        let episode = Demonstrated {
            episode: dataset::EpisodeId(0),
            frames: 0..6,
            verbs: vec![],
            closed: vec![0, 0, 1, 1, 0, 0],
            opening: vec![],
            place: vec![],
        };
        assert_eq!(keyframes(&episode, 0), [2, 4]);
        assert_eq!(keyframes(&episode, 1), [2, 3, 4, 5]);
    }
}
