//! KMeans on the actions of our own segments: the matched baseline of D_φ's classes, without a world model.

use candle_core::Device;
use clustering::{Points, kmeans, nearest_centres};
use serde::Deserialize;
use serde_json::{Value, json};
use skills::SegmentConfig;

use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::cycle::demonstrations::Demonstrations;
use crate::error::Result;
use crate::windows::Windows;

/// KMeans on windows of actions of segments.
pub struct SegmentActions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Actions of a window: the middle ones of a longer segment, and stillness after a shorter one.
    steps: usize,
    /// The penalty of a cut, in units of the default.
    penalty: f64,
}

impl Operator for SegmentActions {
    fn name(&self) -> &'static str {
        "segment_actions"
    }

    fn source(&self) -> &'static str {
        "KMeans on the standardised actions of the segments that our own change points cut, without a world model"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        [(16, 1.0), (8, 1.0), (16, 2.0), (8, 2.0)]
            .map(|(steps, penalty)| json!({ "steps": steps, "penalty": penalty }))
            .to_vec()
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, _device: &Device) -> Result<Found> {
        let Setting { steps, penalty } = setting(self.name(), choice)?;
        if steps == 0 || !(penalty > 0.0 && penalty.is_finite()) {
            let found = format!("{steps} steps and a penalty of {penalty}");
            return Err(refused(self.name(), "choice", found, "1 step or more and a positive penalty"));
        }
        let mut config = SegmentConfig::default();
        config.penalty *= penalty;
        let demonstrations = Demonstrations::new(data.prepared, &config)?;
        let all = demonstrations.segments_of(&(0..demonstrations.all.len()).collect::<Vec<_>>());
        let vectors = Windows::of_segments(data.prepared, &demonstrations, &all, steps, &data.table)?.rows()?;
        let learned: Vec<usize> =
            (0..all.len()).filter(|at| !demonstrations.all[all[*at].demonstration].held_out).collect();
        let training = vectors.rows(learned);
        let found = kmeans(Points::new(&training, vectors.width)?, &data.kmeans(seed))?;
        let centres = Points::new(&found.centres, vectors.width)?;
        let labels = nearest_centres(Points::new(&vectors.values, vectors.width)?, centres)?;
        Ok(of_demonstrations(data, &demonstrations, &labels))
    }
}

/// What classes of all segments of all demonstrations, in order, say of the held-out episodes.
pub(super) fn of_demonstrations(data: &Fragments<'_>, demonstrations: &Demonstrations, labels: &[i64]) -> Found {
    let mut labels = labels.iter();
    let mut stretches = vec![Vec::new(); data.held_out.len()];
    for one in &demonstrations.all {
        let classes: Vec<i64> = labels.by_ref().take(one.segments.len()).copied().collect();
        if let Some(at) = data.held_out.iter().position(|episode| episode.episode == one.episode) {
            stretches[at] = one.segments.iter().cloned().zip(classes).collect();
        }
    }
    data.found_of_stretches(&stretches)
}
