//! D_φ itself on fragments of the probe: what the ablations of the kernel cluster, and what the theorems speak of.

use dataset::FragmentId;
use models::kernel::{KernelConfig, Signatures};
use models::noise::mix;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::super::Bench;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::prepared::{Prepared, starts};
use crate::reference::Reference;
use crate::windows::Windows;

/// Which actions are imagined for a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actions {
    /// Its own.
    Own,
    /// Those of a training fragment that was drawn at random: the null of ablation A6.
    Random,
}

/// Places in the probe, evenly chosen, of the fragments that are imagined.
pub(super) fn imagined_places(bench: &Bench<'_>, prepared: &Prepared) -> Vec<usize> {
    let count = prepared.held_out.probe.len();
    (0..count).step_by(count.div_ceil(bench.settings.paper.imagined).max(1)).collect()
}

/// D_φ of the settings at a horizon, no longer than fragments and world model are.
pub(super) fn kernel(bench: &Bench<'_>, prepared: &Prepared, horizon: usize, seed: u64) -> KernelConfig {
    let run = &bench.settings.run;
    let longest = prepared.training.length().min(run.world_model.model.horizon);
    let kernel = run.cycle.classes.kernel_config(run.world_model.model.discount, seed);
    KernelConfig { horizon: horizon.min(longest), ..kernel }
}

/// What a world model expects of the fragments at these places of the probe.
pub(super) fn signatures(
    bench: &Bench<'_>,
    prepared: &Prepared,
    world_model: &std::path::Path,
    (kernel, actions): (KernelConfig, Actions),
    places: &[usize],
) -> Result<Signatures> {
    let (loaded, table) = bench.loaded(prepared, world_model)?;
    let held_out = &prepared.held_out;
    let fragments: Vec<FragmentId> = places.iter().map(|at| held_out.probe[*at]).collect();
    let first = match actions {
        Actions::Own => starts(&held_out.index, &fragments),
        Actions::Random => {
            let mut random = ChaCha8Rng::seed_from_u64(mix(kernel.seed, b"random actions"));
            let drawn = fragments.iter().map(|_| FragmentId(random.random_range(0..prepared.training.len())));
            starts(&prepared.training, &drawn.collect::<Vec<_>>())
        }
    };
    let reference = Reference::new(prepared, &loaded, &table, kernel)?;
    reference.signatures(&Windows::of_fragments(&table, &first, kernel.horizon)?)
}

/// Vectors whose distances follow D_φ.
pub(super) fn coordinates(signatures: &Signatures, w_r: f64, w_e: f64) -> Result<Embeddings> {
    let (values, width) = signatures.coordinates(w_r, w_e)?;
    Ok(Embeddings { values, width })
}
