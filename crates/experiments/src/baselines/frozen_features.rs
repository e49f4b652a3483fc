//! KMeans on the cached features of a frozen visual encoder.

use candle_core::{Device, Tensor};
use models::FragmentBatch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Budget, Found, Fragments, Operator, setting};
use crate::embeddings::gathered;
use crate::error::Result;

/// KMeans on visual features.
pub struct FrozenFeatures;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    pooling: Pooling,
}

/// How the frames of a fragment become one vector.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pooling {
    Mean,
    Middle,
    /// The first and the last frame side by side.
    Ends,
    /// The last frame less the first one.
    Change,
}

impl Operator for FrozenFeatures {
    fn name(&self) -> &'static str {
        "frozen_features"
    }

    fn source(&self) -> &'static str {
        "KMeans on the features of a frozen visual encoder; the paper's is OpenVLA-7B, whose weights are not available here, so \
         it is the encoder at hand"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        ["mean", "middle", "ends", "change"].map(|pooling| json!({ "pooling": pooling })).to_vec()
    }

    fn missing(&self, data: &Fragments<'_>) -> Option<String> {
        (data.table.widths().features == 0).then(|| "visual features".to_owned())
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, _device: &Device) -> Result<Found> {
        let Setting { pooling } = setting(self.name(), choice)?;
        let last = data.length - 1;
        let read = |batch: &FragmentBatch| -> models::Result<Tensor> {
            let features = &batch.features;
            let frame = |at: usize| features.narrow(1, at, 1)?.squeeze(1);
            Ok(match pooling {
                Pooling::Mean => features.mean(1)?,
                Pooling::Middle => frame(last / 2)?,
                Pooling::Ends => Tensor::cat(&[frame(0)?, frame(last)?], 1)?,
                Pooling::Change => (frame(last)? - frame(0)?)?,
            })
        };
        let vectors = gathered(&data.table, &data.all_starts(), data.length, read)?;
        data.found_by_clustering(&vectors, seed)
    }
}
