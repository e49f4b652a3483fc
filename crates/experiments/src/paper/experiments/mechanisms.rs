//! Alternatives to the contrastive term: a linear and a variational bottleneck on what the world model already knows, another
//! target of reconstruction, and an information bottleneck with smooth transitions.
//!
//! | row | phase A | vectors |
//! |---|---|---|
//! | `contrast` | with `supcon` | k_χ distilled from it |
//! | `PCA-64` | without contrast | the first 64 principal components of its activations |
//! | `VAE-64` | without contrast | the mean of a variational autoencoder's latent on its activations |
//! | `state reconstruction` | reconstructs states instead of features | k_χ distilled from it; `z_T` beside it |
//! | `VIB + spectral norm` | σ(W)² of its transition layer is part of the loss | the mean of a bottleneck that predicts z_T |
//!
//! Activations are those from which the posterior of the last step is read: a Transformer's width of numbers.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use models::bottleneck::{Bottleneck, BottleneckConfig};
use models::noise::{mix, normal};
use models::ops::Form;
use models::training::distributed::Alone;
use models::training::{Loss, Objective, Options, Outcome, Part, TrainConfig, train};
use models::world_model::ContrastMode;
use models::{Parameters, Precision};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::super::{Bench, Cell, Clusterer, Experiment, Measured, NMI_TASK, Quoted, Suite};
use crate::batches::{Batches, Order};
use crate::cycle::Event;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::separable_phase::rows;
use crate::settings::WorldModelSettings;

/// `mechanisms`.
pub(super) struct Mechanisms;

/// Numbers that a bottleneck keeps (paper: 64).
const KEPT: usize = 64;

/// The most training fragments whose activations are looked at; they are chosen evenly.
const LESSONS: usize = 4096;

/// Rows in a step of a bottleneck's training.
const BATCH: usize = 256;

/// The weight of σ(W)²/2 (ours; the paper gives none).
const SPECTRAL_WEIGHT: f64 = 0.1;

/// The rate of a bottleneck's training.
const RATE: f64 = 1e-3;

impl Experiment for Mechanisms {
    fn name(&self) -> &'static str {
        "mechanisms"
    }

    fn question(&self) -> &'static str {
        "Can a bottleneck, another target or smooth transitions replace the contrastive term"
    }

    fn source(&self) -> &'static str {
        "supplement I, table `supp_mechanism_alternatives`, on `libero_object` at 430 M"
    }

    fn departures(&self) -> &'static str {
        "`contrast` trains on task labels, the other rows use none. The paper runs these at 430 M, we run them at the size of \
         the preset (`--preset m430` has the paper's). It does not say what its bottlenecks read, how large they are, what \
         its VIB predicts or how heavy its spectral norm is: ours read the activations before the posterior, the VIB predicts \
         z_T, and the penalty is 0.1 σ(W)²/2 of the layer that predicts the next latent. Without contrast in phase A no step \
         after it has one, also for the states' reconstruction, where the paper is not clear."
    }

    fn units(&self) -> &'static [&'static str] {
        &["contrast", "pca", "vae", "state", "vib"]
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        if suite != Some(Suite::Object) || column != NMI_TASK {
            return None;
        }
        match row {
            "contrast" => Quoted::spread(0.9207, 0.016),
            "PCA-64" => Quoted::value(0.193),
            "VAE-64" => Quoted::value(0.218),
            "state reconstruction" => Quoted::spread(0.152, 0.009),
            "VIB + spectral norm" => Quoted::value(0.124),
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("PCA-64", "contrast"),
            ("VAE-64", "contrast"),
            ("state reconstruction", "contrast"),
            ("VIB + spectral norm", "contrast"),
        ]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let (prepared, seed) = (bench.dataset(&cell.dataset)?, cell.seed);
        let plain = bench.world_settings(ContrastMode::None);
        let judged = |row: &str, found: &Embeddings| bench.judged(prepared, row, found, Clusterer::KMeans, seed);
        Ok(match cell.unit.as_str() {
            "pca" => {
                let (lessons, held_out) = activations(bench, prepared, &plain, seed)?;
                vec![judged("PCA-64", &principal_components(&lessons, &held_out, KEPT)?)?]
            }
            "vae" => {
                let (lessons, held_out) = activations(bench, prepared, &plain, seed)?;
                let targets = lessons.clone();
                vec![judged("VAE-64", &bottlenecked(bench, &lessons, &targets, &held_out, seed)?)?]
            }
            "vib" => {
                let mut smooth = plain;
                smooth.model.spectral_weight = SPECTRAL_WEIGHT;
                let (lessons, held_out) = activations(bench, prepared, &smooth, seed)?;
                let run = bench.world_model(prepared, &smooth, seed)?;
                let targets = bench.latents(prepared, &run, &lesson_starts(prepared))?;
                vec![judged("VIB + spectral norm", &bottlenecked(bench, &lessons, &targets, &held_out, seed)?)?]
            }
            "state" => {
                let mut of_states = plain;
                (of_states.model.recon_weight, of_states.model.state_weight) = (0.0, 1.0);
                let teacher = bench.world_model(prepared, &of_states, seed)?;
                let student = bench.distilled(prepared, &of_states, seed)?;
                let latents = bench.latents(prepared, &teacher, &prepared.held_out.all_starts())?;
                vec![
                    judged("state reconstruction", &bench.embedded(prepared, &student)?)?,
                    judged("state reconstruction, z_T", &latents)?,
                ]
            }
            _ => {
                let run = bench.distilled(prepared, &bench.world_settings(ContrastMode::Supcon), seed)?;
                vec![judged("contrast", &bench.embedded(prepared, &run)?)?]
            }
        })
    }
}

/// The first frames of the training fragments that bottlenecks learn from.
fn lesson_starts(prepared: &Prepared) -> Vec<usize> {
    let every = prepared.training.len().div_ceil(LESSONS).max(1);
    prepared.training.iter().step_by(every).map(|(_, fragment)| fragment.frames.start).collect()
}

/// The activations of training fragments and of all held-out ones, standardised by the former.
fn activations(
    bench: &Bench<'_>,
    prepared: &Prepared,
    settings: &WorldModelSettings,
    seed: u64,
) -> Result<(Embeddings, Embeddings)> {
    let run = bench.world_model(prepared, settings, seed)?;
    let mut lessons = bench.activations(prepared, &run, &lesson_starts(prepared))?;
    let mut held_out = bench.activations(prepared, &run, &prepared.held_out.all_starts())?;
    let (width, count) = (lessons.width, (lessons.values.len() / lessons.width.max(1)).max(1) as f64);
    for column in 0..width {
        let of =
            |values: &[f32]| values.iter().skip(column).step_by(width).copied().map(f64::from).collect::<Vec<f64>>();
        let own = of(&lessons.values);
        let mean = own.iter().sum::<f64>() / count;
        let deviation = (own.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-6);
        for values in [&mut lessons.values, &mut held_out.values] {
            let own = values.iter_mut().skip(column).step_by(width);
            own.for_each(|value| *value = ((f64::from(*value) - mean) / deviation) as f32);
        }
    }
    Ok((lessons, held_out))
}

/// Vectors in the subspace of the first principal components of the lessons. Its basis is orthonormal but not turned to the
/// single components: distances, which are all that KMeans sees, do not depend on that.
///
/// The subspace is found by orthogonal iteration with a few vectors to spare (Halko, Martinsson & Tropp 2011).
fn principal_components(lessons: &Embeddings, held_out: &Embeddings, count: usize) -> Result<Embeddings> {
    const ROUNDS: usize = 20;
    const SPARE: usize = 8;
    let width = lessons.width;
    let (kept, tried) = (count.min(width), (count + SPARE).min(width));
    let tensor = |values: &[f32], columns: usize| -> Result<Tensor> {
        Ok(Tensor::from_vec(values.to_vec(), (values.len() / columns.max(1), columns), &Device::Cpu)?)
    };
    let points = tensor(&lessons.values, width)?;
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut basis = orthonormal(normal(&mut random, width * tried), tried);
    for _ in 0..ROUNDS {
        let image = points.t()?.matmul(&points.matmul(&tensor(&basis, tried)?)?)?;
        basis = orthonormal(image.flatten_all()?.to_vec1()?, tried);
    }
    // Iteration orders the vectors of an orthonormal basis by their eigenvalues.
    let basis = tensor(&basis, tried)?.narrow(1, 0, kept)?.contiguous()?;
    let values = tensor(&held_out.values, width)?.matmul(&basis)?.flatten_all()?.to_vec1()?;
    Ok(Embeddings { values, width: kept })
}

/// The columns of a row-major matrix, orthonormalised in order (Gram–Schmidt, twice). One that depends on those before it
/// becomes zero.
fn orthonormal(values: Vec<f32>, columns: usize) -> Vec<f32> {
    let rows = values.len() / columns.max(1);
    let mut all: Vec<Vec<f64>> =
        (0..columns).map(|column| (0..rows).map(|row| f64::from(values[row * columns + column])).collect()).collect();
    for at in 0..columns {
        let (before, rest) = all.split_at_mut(at);
        let Some(own) = rest.first_mut() else { continue };
        let square = |vector: &[f64]| vector.iter().map(|value| value * value).sum::<f64>();
        let first = square(own);
        for other in before.iter().chain(before.iter()) {
            let along: f64 = own.iter().zip(other).map(|(one, other)| one * other).sum();
            own.iter_mut().zip(other).for_each(|(one, other)| *one -= along * other);
        }
        let left = square(own);
        let scale = if left > first * 1e-12 && left > 0.0 { left.sqrt().recip() } else { 0.0 };
        own.iter_mut().for_each(|value| *value *= scale);
    }
    (0..rows * columns).map(|at| all[at % columns][at / columns] as f32).collect()
}

/// Vectors by the mean of a bottleneck that was trained to say the targets from the lessons.
fn bottlenecked(
    bench: &Bench<'_>,
    lessons: &Embeddings,
    targets: &Embeddings,
    held_out: &Embeddings,
    seed: u64,
) -> Result<Embeddings> {
    let device = bench.device;
    let tensor = |of: &Embeddings| -> Result<Tensor> {
        let shape = (of.values.len() / of.width.max(1), of.width);
        Ok(Tensor::from_vec(of.values.clone(), shape, &Device::Cpu)?.to_device(device)?)
    };
    let (inputs, targets) = (tensor(lessons)?, tensor(targets)?);
    let (count, _) = inputs.dims2()?;
    let config = BottleneckConfig { latent: KEPT, ..BottleneckConfig::default() };
    let mut parameters = Parameters::new(device, Precision::F32, seed);
    let (_, outputs) = targets.dims2()?;
    let model = Bottleneck::new(&mut parameters.root(), config, lessons.width, outputs, Form::default())?;
    let batch = BATCH.min(count);
    let batches = Batches::new(&rows(count)?, Order::Shuffled, batch, seed)?;
    let objective = BottleneckObjective { model, parameters, inputs, targets, batches, batch, seed };
    let steps = bench.settings.paper.bottleneck_steps;
    let settings = TrainConfig {
        steps,
        rate: RATE,
        warmup: steps / 10,
        evaluate_every: 0,
        checkpoint_every: 0,
        ..TrainConfig::default()
    };
    let folder = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
    let options = Options {
        resume: false,
        transport: Arc::new(Alone::default()),
        progress: &mut |progress| bench.tell(Event::Training(progress)),
        stop: bench.stop,
        metadata: serde_json::Value::Null,
    };
    if matches!(train(&objective, &settings, folder.path(), options)?, Outcome::Stopped(_)) {
        return Err(Error::Interrupted);
    }
    let values = objective.model.encode(&tensor(held_out)?)?.flatten_all()?.to_vec1()?;
    Ok(Embeddings { values, width: KEPT })
}

/// A bottleneck as the trainer sees it.
struct BottleneckObjective {
    model: Bottleneck,
    parameters: Parameters,
    /// `[lessons, inputs]`
    inputs: Tensor,
    /// `[lessons, outputs]`
    targets: Tensor,
    batches: Batches,
    batch: usize,
    seed: u64,
}

impl Objective for BottleneckObjective {
    type Batch = (Vec<u32>, Vec<f32>);

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<(Vec<u32>, Vec<f32>)> {
        let drawn = self.batches.part(step, part)?;
        // The noise of a row is a function of seed, step and place, as in all phases.
        let noise = drawn.iter().flat_map(|(place, _)| {
            let own = mix(self.seed, &[step.to_le_bytes(), (*place as u64).to_le_bytes()].concat());
            normal(&mut ChaCha8Rng::seed_from_u64(own), KEPT)
        });
        Ok((drawn.iter().map(|(_, row)| row.0 as u32).collect(), noise.collect()))
    }

    fn loss(&self, (rows, noise): (Vec<u32>, Vec<f32>)) -> models::Result<Loss> {
        let device = self.inputs.device();
        let noise = Tensor::from_vec(noise, (rows.len(), KEPT), &Device::Cpu)?.to_device(device)?;
        let rows = Tensor::new(rows, device)?;
        let (inputs, targets) = (self.inputs.index_select(&rows, 0)?, self.targets.index_select(&rows, 0)?);
        let losses = self.model.loss(&inputs, &targets, &noise)?;
        let terms = vec![("error", losses.error.detach()), ("kl", losses.kl.detach())];
        Ok(Loss { total: losses.total, terms })
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.batch as f64, "fragments")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_components_keep_the_distances_of_points_in_a_plane_and_drop_small_variance() {
        // Points of five numbers that vary in two directions, and a hundredth of that in the others.
        let value = |at: usize, column: usize| -> f32 {
            let (one, other) = ((at % 13) as f32 - 6.0, (at % 7) as f32 - 3.0);
            let small = 0.01 * ((at * (column + 3)) % 5) as f32 - 0.02;
            [3.0 * one, one + 2.0 * other, -other, 0.0, 0.0][column] + small
        };
        let points = Embeddings { values: (0..91 * 5).map(|at| value(at / 5, at % 5)).collect(), width: 5 };
        let found = principal_components(&points, &points, 2).unwrap();
        assert_eq!((found.width, found.values.len()), (2, 91 * 2));
        let apart = |of: &Embeddings, one: usize, other: usize| {
            let squares = of.row(one).iter().zip(of.row(other)).map(|(one, other)| (one - other).powi(2));
            squares.sum::<f32>().sqrt()
        };
        for (one, other) in [(0, 1), (3, 90), (17, 60)] {
            let (wanted, found) = (apart(&points, one, other), apart(&found, one, other));
            assert!((wanted - found).abs() < 0.05 * wanted + 0.06, "{wanted} {found}");
        }
        let whole = principal_components(&points, &points, 64).unwrap();
        assert_eq!(whole.width, 5, "no more than there are");
        assert!((apart(&whole, 2, 44) - apart(&points, 2, 44)).abs() < 1e-3);
    }
}
