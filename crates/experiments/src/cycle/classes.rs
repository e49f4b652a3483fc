//! Classes of segments under D_φ: stretches of motion with the same outcome wherever they are done.
//!
//! Each segment is a window of k actions ([`crate::windows`]). The chosen form of D_φ ([`super::segment_kernel`]) gives
//! coordinates and distances; KMeans on the coordinates of the training segments gives the classes, and every segment
//! belongs to the nearest one. Classes, ε_t, the gates and the map of the report all use the same form. How far it agrees
//! with the Monte-Carlo reference is in [`super::class_scores`].

use clustering::{KMeansConfig, Points, kmeans, nearest_centres};
use models::FragmentTable;
use models::kernel::{KernelConfig, KernelForm};
use serde::{Deserialize, Serialize};

use super::demonstrations::{Demonstrations, SegmentId};
use super::segment_kernel::{SegmentDistances, SegmentKernel};
use crate::amortizer_phase::Teacher;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::prepared::Prepared;
use crate::reference::Reference;
use crate::windows::Windows;

/// Pairs that ε_t is estimated from.
const PAIRS: usize = 20_000;

/// How segments become classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassSettings {
    /// How many classes; fewer if there are fewer segments.
    pub classes: usize,
    /// The form of D_φ: `amortized`, `separable` or `monte_carlo`.
    pub kernel: KernelForm,
    /// w_R of D_φ, of the difference of returns.
    pub w_r: f64,
    /// w_E of D_φ, of the distance of rollouts.
    pub w_e: f64,
    /// k of D_φ: how many steps of a segment are imagined. The default is 16, the length of a fragment (paper: 4 or 8).
    pub horizon: usize,
    /// Number of visited states from which segments are imagined.
    pub starts: usize,
    /// Rollouts from each start; two or more draw noise, one follows the means. A window costs
    /// `starts · samples · horizon` steps of the world model.
    pub samples: usize,
    /// Held-out segments on which the form is compared with the Monte-Carlo reference, in all pairs.
    pub compared: usize,
}

impl Default for ClassSettings {
    fn default() -> Self {
        let KernelConfig { w_r, w_e, horizon, starts, samples, .. } = KernelConfig::default();
        let kernel = KernelForm::default();
        ClassSettings { classes: 10, kernel, w_r, w_e, horizon, starts, samples, compared: 256 }
    }
}

impl ClassSettings {
    /// D_φ with these settings under a world model of this discount. The seed draws the starts and the noise.
    pub fn kernel_config(&self, discount: f64, seed: u64) -> KernelConfig {
        let &ClassSettings { w_r, w_e, horizon, starts, samples, .. } = self;
        KernelConfig { w_r, w_e, horizon, starts, samples, discount, seed, ..KernelConfig::default() }
    }
}

/// The segments of all demonstrations with their classes and distances.
#[derive(Clone)]
pub struct Classes {
    /// Segments of all demonstrations.
    pub ids: Vec<SegmentId>,
    /// The class of each.
    pub labels: Vec<i64>,
    pub(super) form: KernelForm,
    pub(super) kernel: KernelConfig,
    pub(super) windows: Windows,
    pub(super) distances: SegmentDistances,
}

impl Classes {
    /// Compares all segments, and clusters those of the training demonstrations.
    ///
    /// # Errors
    /// On a kernel that was trained under another world model or on another D_φ.
    pub fn new(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        teacher: &Teacher,
        table: &FragmentTable,
        settings: &ClassSettings,
        kernel: &SegmentKernel,
        seed: u64,
    ) -> Result<Classes> {
        let config = kernel.kernel(teacher, settings, seed)?;
        let reference = Reference::new(prepared, &teacher.loaded, table, config)?;
        let ids = demonstrations.segments_of(&(0..demonstrations.all.len()).collect::<Vec<_>>());
        let windows = Windows::of_segments(prepared, demonstrations, &ids, config.horizon, table)?;
        let distances = kernel.distances(&reference, teacher, &windows, table)?;
        let coordinates = distances.coordinates()?;
        let mut classes = Classes { ids, labels: Vec::new(), form: kernel.form(), kernel: config, windows, distances };
        classes.labels = classes.clustered(demonstrations, &coordinates, settings.classes, seed)?;
        Ok(classes)
    }

    /// The same segments at the same distances, but their classes by KMeans on the standardised actions of the same windows:
    /// the matched baseline, which needs no world model.
    pub fn by_actions(&self, demonstrations: &Demonstrations, settings: &ClassSettings, seed: u64) -> Result<Classes> {
        let labels = self.clustered(demonstrations, &self.windows.rows()?, settings.classes, seed)?;
        Ok(Classes { labels, ..self.clone() })
    }

    /// Clusters the training segments, and gives each segment the nearest cluster.
    fn clustered(
        &self,
        demonstrations: &Demonstrations,
        coordinates: &Embeddings,
        classes: usize,
        seed: u64,
    ) -> Result<Vec<i64>> {
        let (learned, width) = (self.places_of(&demonstrations.which(false)), coordinates.width);
        let config = KMeansConfig { clusters: classes.clamp(1, learned.len().max(1)), seed, ..Default::default() };
        let of_learned = coordinates.rows(learned.iter().copied());
        let found = kmeans(Points::new(&of_learned, width)?, &config)?;
        Ok(nearest_centres(Points::new(&coordinates.values, width)?, Points::new(&found.centres, width)?)?)
    }

    /// The places of all segments of some demonstrations, which are in order.
    pub(super) fn places_of(&self, demonstrations: &[usize]) -> Vec<usize> {
        let of = |at: &usize| demonstrations.binary_search(&self.ids[*at].demonstration).is_ok();
        (0..self.ids.len()).filter(of).collect()
    }

    /// Coordinates of all segments, whose Euclidean distance stands for D_φ: `[segments, width]` and the width.
    pub fn coordinates(&self) -> Result<(Vec<f32>, usize)> {
        let Embeddings { values, width } = self.distances.coordinates()?;
        Ok((values, width))
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
        self.distances.between(one, other)
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
}
