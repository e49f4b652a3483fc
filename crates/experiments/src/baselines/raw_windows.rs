//! KMeans on standardised windows: what no learning at all reaches.

use candle_core::{Device, Tensor};
use models::FragmentBatch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Budget, Found, Fragments, Operator, setting};
use crate::embeddings::{Embeddings, gathered};
use crate::error::Result;

/// KMeans on windows of states and actions.
pub struct RawWindows;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    window: Window,
}

/// What of a window is looked at.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Window {
    StatesAndActions,
    States,
    Actions,
    /// States relative to the first one, and actions.
    ChangesAndActions,
}

impl Operator for RawWindows {
    fn name(&self) -> &'static str {
        "raw_windows"
    }

    fn source(&self) -> &'static str {
        "KMeans on the standardised numbers of a fragment, all steps side by side: no learning at all"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        ["states_and_actions", "states", "actions", "changes_and_actions"]
            .map(|window| json!({ "window": window }))
            .to_vec()
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, _device: &Device) -> Result<Found> {
        let Setting { window } = setting(self.name(), choice)?;
        let vectors = vectors(data, &data.all_starts(), window)?;
        data.found_by_clustering(&vectors, seed)
    }
}

fn vectors(data: &Fragments<'_>, starts: &[usize], window: Window) -> Result<Embeddings> {
    let read = |batch: &FragmentBatch| -> models::Result<Tensor> {
        let changes = || batch.states.broadcast_sub(&batch.states.narrow(1, 0, 1)?);
        let chosen = match window {
            Window::StatesAndActions => vec![batch.states.clone(), batch.actions.clone()],
            Window::States => vec![batch.states.clone()],
            Window::Actions => vec![batch.actions.clone()],
            Window::ChangesAndActions => vec![changes()?, batch.actions.clone()],
        };
        Ok(Tensor::cat(&chosen, 2)?.flatten_from(1)?)
    };
    gathered(&data.table, starts, data.length, read)
}
