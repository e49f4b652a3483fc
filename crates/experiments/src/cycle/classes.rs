//! Classes of segments under D_φ: stretches of motion that turn out alike wherever they are done.
//!
//! A segment is imagined from the same starts as every other one, by its k middle actions; one that is shorter is done and
//! then held still. What follows is its signature, KMeans on signatures gives the classes, and a segment that was not
//! learned from belongs to the nearest one.

use candle_core::{DType, Device, Tensor};
use clustering::{KMeansConfig, Points, kmeans, nearest_centres};
use models::kernel::{KernelConfig, KernelMode, MonteCarlo, Signatures, visited};
use models::{FragmentBatch, FragmentTable, WorldModel, WorldModelConfig};
use serde::{Deserialize, Serialize};

use super::demonstrations::{Demonstrations, SegmentId, rows};
use crate::error::Result;
use crate::prepared::Prepared;
use crate::run::Loaded;

/// Segments that are imagined at once.
const CHUNK: usize = 64;

/// Pairs that ε_t is estimated from.
const PAIRS: usize = 20_000;

/// How segments become classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassSettings {
    /// How many classes; fewer if there are fewer segments.
    pub classes: usize,
    /// w_R of D_φ, of the difference of returns.
    pub w_r: f64,
    /// w_E of D_φ, of the distance of rollouts.
    pub w_e: f64,
    /// k of D_φ: how many steps of a segment are imagined.
    pub horizon: usize,
    /// From how many visited states.
    pub starts: usize,
    /// How often from each; one follows the means, more draw noise.
    pub samples: usize,
}

impl Default for ClassSettings {
    fn default() -> Self {
        let KernelConfig { w_r, w_e, horizon, starts, samples, .. } = KernelConfig::default();
        ClassSettings { classes: 10, w_r, w_e, horizon, starts, samples }
    }
}

/// What each segment turned out as, and its class.
pub struct Classes {
    /// Segments of all demonstrations.
    pub ids: Vec<SegmentId>,
    /// The class of each.
    pub labels: Vec<i64>,
    /// What follows from each.
    signatures: Signatures,
    kernel: KernelConfig,
}

impl Classes {
    /// Imagines all segments, and clusters those of the training demonstrations.
    pub fn new(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        world_model: &Loaded<WorldModel, WorldModelConfig>,
        table: &FragmentTable,
        settings: &ClassSettings,
        seed: u64,
    ) -> Result<Classes> {
        let record = &world_model.record;
        let &ClassSettings { w_r, w_e, horizon, starts, samples, .. } = settings;
        let mode = KernelMode::Mc;
        let discount = record.model.discount;
        let kernel = KernelConfig { mode, w_r, w_e, horizon, starts, samples, discount, seed, ..Default::default() };
        let visits = visits(prepared, table, kernel)?;
        let reference = MonteCarlo::new(&world_model.model, &visits, kernel)?;
        let ids = demonstrations.segments_of(&(0..demonstrations.all.len()).collect::<Vec<_>>());
        let batches = ids.chunks(CHUNK).map(|chunk| {
            windows(prepared, demonstrations, chunk, kernel.horizon)
                .and_then(|values| batch(values, chunk.len(), kernel.horizon, table))
                .map_err(crate::Error::for_trainer)
        });
        let signatures = reference.signatures(batches)?;
        let (values, width) = signatures.coordinates(kernel.w_r, kernel.w_e)?;
        let mut classes = Classes { ids, labels: Vec::new(), signatures, kernel };
        classes.labels = classes.clustered(demonstrations, Points::new(&values, width)?, settings.classes, seed)?;
        Ok(classes)
    }

    /// The same segments at the same distances, but their classes by KMeans on the actions that were imagined, as they are:
    /// what can be had without a world model.
    pub fn by_actions(
        mut self,
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        settings: &ClassSettings,
        seed: u64,
    ) -> Result<Classes> {
        let values = windows(prepared, demonstrations, &self.ids, self.kernel.horizon)?;
        let width = self.kernel.horizon * demonstrations.layout.width;
        self.labels = self.clustered(demonstrations, Points::new(&values, width)?, settings.classes, seed)?;
        Ok(self)
    }

    /// Clusters the training segments, and gives each segment the nearest cluster.
    fn clustered(
        &self,
        demonstrations: &Demonstrations,
        points: Points<'_>,
        classes: usize,
        seed: u64,
    ) -> Result<Vec<i64>> {
        let (learned, width) = (self.places_of(&demonstrations.which(false)), points.width());
        let of_learned: Vec<f32> =
            learned.iter().flat_map(|at| &points.values()[at * width..(at + 1) * width]).copied().collect();
        let config = KMeansConfig { clusters: classes.clamp(1, learned.len().max(1)), seed, ..Default::default() };
        let found = kmeans(Points::new(&of_learned, width)?, &config)?;
        Ok(nearest_centres(points, Points::new(&found.centres, width)?)?)
    }

    /// The places of all segments of some demonstrations, which are in order.
    fn places_of(&self, demonstrations: &[usize]) -> Vec<usize> {
        let of = |at: &usize| demonstrations.binary_search(&self.ids[*at].demonstration).is_ok();
        (0..self.ids.len()).filter(of).collect()
    }

    /// Coordinates of all segments, whose Euclidean distance stands for D_φ: `[segments, width]` and the width.
    pub fn coordinates(&self) -> Result<(Vec<f32>, usize)> {
        Ok(self.signatures.coordinates(self.kernel.w_r, self.kernel.w_e)?)
    }

    /// The place of a segment.
    pub fn place(&self, id: SegmentId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// The classes of a demonstration's segments, in order.
    pub fn labels_of(&self, demonstration: usize) -> Vec<i64> {
        let of = self.ids.iter().zip(&self.labels).filter(|(id, _)| id.demonstration == demonstration);
        of.map(|(_, label)| *label).collect()
    }

    /// D_φ of two segments, by their places.
    pub fn distance(&self, one: usize, other: usize) -> f64 {
        let parts = self.signatures.parts(one, other);
        self.kernel.w_r * parts.value + self.kernel.w_e * parts.rollout
    }

    /// ε_t: the `quantile` of D_φ over pairs of different segments of these demonstrations, all of them or evenly chosen ones.
    /// At 0 as many pairs are nearer as are of one class: where classes are tight and far from each other, that
    /// is between the two kinds of pairs.
    pub fn epsilon(&self, demonstrations: &[usize], quantile: f64) -> f64 {
        let places = self.places_of(demonstrations);
        let chosen: Vec<(usize, usize)> = pairs(&places, PAIRS).collect();
        let alike = chosen.iter().filter(|(one, other)| self.labels[*one] == self.labels[*other]).count();
        let mut found: Vec<f64> = chosen.iter().map(|(one, other)| self.distance(*one, *other)).collect();
        found.sort_by(f64::total_cmp);
        if quantile > 0.0 {
            let last = found.len().saturating_sub(1);
            return found.get((quantile * last as f64).round() as usize).copied().unwrap_or(0.0);
        }
        super::gates::epsilon_between(&found, alike)
    }
}

/// Pairs of different things, all of them or about `most`, evenly chosen from the row of all pairs.
pub(super) fn pairs(things: &[usize], most: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let count = things.len() * things.len().saturating_sub(1) / 2;
    let step = count.div_ceil(most.max(1)).max(1);
    let all = (0..things.len()).flat_map(move |one| (one + 1..things.len()).map(move |other| (one, other)));
    all.step_by(step).map(|(one, other)| (things[one], things[other]))
}

/// States that the training demonstrations visit.
fn visits(prepared: &Prepared, table: &FragmentTable, kernel: KernelConfig) -> Result<models::world_model::Start> {
    let index = &prepared.training;
    let step = (index.len() / kernel.starts.max(1)).max(1);
    let chosen: Vec<usize> = index.iter().step_by(step).map(|(_, fragment)| fragment.frames.start).collect();
    Ok(visited(&table.gather(&chosen, 1)?, kernel.starts, kernel.seed)?)
}

/// [`window`]s of segments, one after the other.
fn windows(prepared: &Prepared, demonstrations: &Demonstrations, ids: &[SegmentId], steps: usize) -> Result<Vec<f32>> {
    let all: Result<Vec<Vec<f32>>> = ids.iter().map(|id| window(prepared, demonstrations, *id, steps)).collect();
    Ok(all?.concat())
}

/// k rows of a segment's actions, standardised: the middle ones, or all and then stillness.
fn window(prepared: &Prepared, demonstrations: &Demonstrations, id: SegmentId, steps: usize) -> Result<Vec<f32>> {
    let frames = demonstrations.frames(id);
    let first = frames.start + frames.len().saturating_sub(steps) / 2;
    let seen = first..frames.end.min(first + steps);
    let actions = rows(&prepared.source.dataset, &seen)?;
    let mut values = actions.values().to_vec();
    let held = stillness(&demonstrations.layout, actions.rows().last().unwrap_or_default());
    (seen.len()..steps).for_each(|_| values.extend_from_slice(&held));
    prepared.scales.actions.apply(&mut values);
    Ok(values)
}

/// No motion, the gripper as it was.
pub(crate) fn stillness(layout: &skills::ActionLayout, last: &[f32]) -> Vec<f32> {
    (0..layout.width)
        .map(|column| if Some(column) == layout.gripper { last.get(column).copied().unwrap_or(0.0) } else { 0.0 })
        .collect()
}

/// Actions alone, which is all that a kernel takes from a fragment.
fn batch(values: Vec<f32>, count: usize, steps: usize, table: &FragmentTable) -> Result<FragmentBatch> {
    let widths = table.widths();
    let actions = Tensor::from_vec(values, (count, steps, widths.actions), &Device::Cpu)?.to_device(table.device())?;
    let nothing = Tensor::zeros((count, steps, 0), DType::F32, &Device::Cpu)?;
    Ok(FragmentBatch { features: nothing.clone(), states: nothing, actions, rewards: None, returns: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_all_or_evenly_chosen() {
        let things = [3, 5, 7, 9];
        assert_eq!(pairs(&things, 100).collect::<Vec<_>>(), [(3, 5), (3, 7), (3, 9), (5, 7), (5, 9), (7, 9)]);
        assert_eq!(pairs(&things, 3).collect::<Vec<_>>(), [(3, 5), (3, 9), (5, 9)]);
        assert_eq!(pairs(&[1], 3).count(), 0);
    }

    #[test]
    fn stillness_holds_the_gripper() {
        assert_eq!(stillness(&skills::ActionLayout::default(), &[1.0; 7]), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
