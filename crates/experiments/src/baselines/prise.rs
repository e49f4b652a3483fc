//! PRISE (Zheng et al. 2024): skills as tokens of byte-pair encoding over quantised steps.
//!
//! Each frame becomes a code; frequent pairs of neighbouring codes are merged again and again; the tokens are the skills. PRISE
//! learns its codes with a model of the dynamics; here they are KMeans centres of standardised actions and changes of state.

use candle_core::{Device, Tensor};
use clustering::{KMeansConfig, Points, byte_pairs, kmeans, nearest_centres};
use models::FragmentBatch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fragments::Demonstrated;
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::embeddings::{Embeddings, gathered};
use crate::error::Result;

/// What a change of state in one frame is multiplied by: states are standardised over episodes, and change little in a frame.
const CHANGE: f64 = 10.0;

/// Tokens of quantised steps.
pub struct Prise;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Codes of single frames.
    codes: usize,
    /// Merges of pairs; there are as many tokens as codes and merges.
    merges: usize,
}

impl Operator for Prise {
    fn name(&self) -> &'static str {
        "prise"
    }

    fn source(&self) -> &'static str {
        "PRISE: byte-pair encoding of quantised steps; its learned codes are replaced by KMeans on actions and changes of state"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        [(10, 20), (10, 60), (20, 40), (20, 120)]
            .map(|(codes, merges)| json!({ "codes": codes, "merges": merges }))
            .to_vec()
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, _device: &Device) -> Result<Found> {
        let Setting { codes, merges } = setting(self.name(), choice)?;
        if codes < 2 {
            return Err(refused(self.name(), "codes", codes, "2 or more"));
        }
        let steps = gathered(&data.table, &data.training, 2, step)?;
        let points = Points::new(&steps.values, steps.width)?;
        let config = KMeansConfig { clusters: codes.min(points.len()), seed, ..KMeansConfig::default() };
        let found = kmeans(points, &config)?;
        let centres = Points::new(&found.centres, steps.width)?;
        let code = |episode: &Demonstrated| -> Result<Vec<u32>> {
            let steps = episode_steps(data, episode)?;
            let labels = nearest_centres(Points::new(&steps.values, steps.width)?, centres)?;
            Ok(labels.into_iter().map(|label| label as u32).collect())
        };
        let sequences = data.learned.iter().map(code).collect::<Result<Vec<_>>>()?;
        let pairs = byte_pairs(&sequences, codes as u32, merges)?;
        let stretches = data.held_out.iter().map(|episode| -> Result<Vec<_>> {
            let first = episode.frames.start;
            let tokens = pairs.encode(&code(episode)?)?.into_iter();
            Ok(tokens.map(|(token, rows)| (first + rows.start..first + rows.end, i64::from(token))).collect())
        });
        Ok(data.found_of_stretches(&stretches.collect::<Result<Vec<_>>>()?))
    }
}

/// The action of the first of two frames and the change of state after it.
fn step(batch: &FragmentBatch) -> models::Result<Tensor> {
    let row = |table: &Tensor, at: usize| table.narrow(1, at, 1)?.squeeze(1);
    let change = (row(&batch.states, 1)? - row(&batch.states, 0)?)?;
    Ok(Tensor::cat(&[row(&batch.actions, 0)?, (change * CHANGE)?], 1)?)
}

/// One step for each frame of an episode; the last one is that before it again.
fn episode_steps(data: &Fragments<'_>, episode: &Demonstrated) -> Result<Embeddings> {
    let last = episode.frames.end.saturating_sub(2).max(episode.frames.start);
    let starts: Vec<usize> = episode.frames.clone().map(|frame| frame.min(last)).collect();
    gathered(&data.table, &starts, 2, step)
}
