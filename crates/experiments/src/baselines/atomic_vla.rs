//! AtomicVLA: a gate sends a fragment to one of K experts that predict its actions, and the expert is the class.
//!
//! With x what the gate sees, o the observation in the first frame, and Gumbel noise g:
//!
//! ```text
//! ℓ = gate(x)                       [B, K]     p = softmax((ℓ + g)/τ),  τ from 1 to 0.1 over the training
//! â = Σ_k p_k (W_k [h(o), 1])       [B, T·A]   one linear expert each, on a shared hidden layer h
//! L = mean (â − a)² + 0.01 · K Σ_k p̄_k²        p̄ the mean of softmax(ℓ) over the batch, which balances the experts
//! ```
//!
//! The class of a fragment is the argmax of ℓ without noise. The gate sees the whole window, which has the actions that are
//! predicted, or with `observation` the first frame alone, as at execution. The original's vision-language backbone is replaced
//! by the frozen features; the balance is the usual one of mixtures of experts (Fedus, Zoph and Shazeer 2022).

use std::sync::Arc;

use candle_core::{D, DType, Device, Tensor};
use dataset::{FragmentId, Shuffled};
use models::layers::Linear;
use models::noise::{mix, uniform};
use models::ops::{Form, without_gradients};
use models::parameters::Init;
use models::training::{Loss, Objective, Part};
use models::{FragmentBatch, FragmentTable, Parameters, Precision};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::training::train_briefly;
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::error::Result;
use crate::separable_phase::rows;

/// Fragments of a step.
const BATCH: usize = 256;

/// Fragments that are classified at once.
const CHUNK: usize = 256;

/// Numbers of the gate's hidden layer, and of the one that experts share.
const GATE: usize = 128;
const SHARED: usize = 31;

/// The weight of the balance, and where τ ends.
const BALANCE: f64 = 0.01;
const COLD: f64 = 0.1;

/// The highest rate.
const RATE: f64 = 1e-3;

/// Experts behind a Gumbel-softmax gate.
pub struct AtomicVla;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    experts: usize,
    gate: Gate,
}

/// What the gate sees.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Gate {
    Window,
    Observation,
}

/// The mixture with what it learns from.
struct Mixture {
    hidden: Linear,
    gate: Linear,
    shared: Linear,
    experts: Linear,
    setting: Setting,
    parameters: Parameters,
    table: FragmentTable,
    starts: Vec<usize>,
    length: usize,
    order: Arc<Shuffled>,
    batch: usize,
    steps: u64,
    seed: u64,
}

/// A batch: first frames, Gumbel noise `[rows, K]`, and τ.
struct Drawn {
    starts: Vec<usize>,
    noise: Vec<f32>,
    temperature: f64,
}

impl Mixture {
    fn new(data: &Fragments<'_>, setting: Setting, seed: u64, device: &Device) -> Result<Mixture> {
        let widths = data.table.widths();
        let (observed, moved) = (widths.states + widths.features, data.length * (widths.states + widths.actions));
        let seen = if setting.gate == Gate::Window { moved + widths.features } else { observed };
        let mut parameters = Parameters::new(device, Precision::F32, seed);
        let mut linear = |name: &str, inputs: usize, outputs: usize, fan: usize| {
            let mut root = parameters.root();
            Linear::with_init(&mut root.enter(name), inputs, outputs, Init::FanIn(fan), Form::default())
        };
        let experts = setting.experts * (SHARED + 1);
        let batch = BATCH.min(data.training.len());
        Ok(Mixture {
            hidden: linear("hidden", seen, GATE, seen)?,
            gate: linear("gate", GATE, setting.experts, GATE)?,
            shared: linear("shared", observed, SHARED, observed)?,
            // One expert counts at a time, so each starts as a layer of its own would.
            experts: linear("experts", experts, data.length * widths.actions, SHARED + 1)?,
            setting,
            parameters,
            table: data.table.clone(),
            starts: data.training.clone(),
            length: data.length,
            order: Arc::new(Shuffled::new(&rows(data.training.len())?, batch, seed)?),
            batch,
            steps: data.budget.steps,
            seed,
        })
    }

    /// ℓ of fragments.
    ///
    /// # Shapes
    /// Gives `[B, K]`.
    fn logits(&self, batch: &FragmentBatch, observation: &Tensor) -> models::Result<Tensor> {
        let seen = match self.setting.gate {
            Gate::Observation => observation.clone(),
            Gate::Window => {
                let moved = Tensor::cat(&[&batch.states, &batch.actions], 2)?.flatten_from(1)?;
                with_features(&moved, &batch.features, |features| Ok(features.mean(1)?))?
            }
        };
        self.gate.forward(&self.hidden.forward_gelu(&seen.contiguous()?)?)
    }

    /// The states and features of the first frame.
    fn observation(&self, batch: &FragmentBatch) -> models::Result<Tensor> {
        let first = |table: &Tensor| -> models::Result<Tensor> { Ok(table.narrow(1, 0, 1)?.squeeze(1)?) };
        Ok(with_features(&first(&batch.states)?, &batch.features, first)?.contiguous()?)
    }

    /// The expert of each fragment.
    fn classes(&self, starts: &[usize]) -> Result<Vec<i64>> {
        let mut classes = Vec::with_capacity(starts.len());
        for chunk in starts.chunks(CHUNK) {
            let batch = self.table.gather(chunk, self.length)?;
            let logits = without_gradients(|| self.logits(&batch, &self.observation(&batch)?))?;
            let chosen: Vec<u32> = logits.argmax(D::Minus1)?.to_vec1()?;
            classes.extend(chosen.into_iter().map(i64::from));
        }
        Ok(classes)
    }
}

/// Rows with features beside them, where there are any.
fn with_features(
    rows: &Tensor,
    features: &Tensor,
    pool: impl Fn(&Tensor) -> models::Result<Tensor>,
) -> models::Result<Tensor> {
    let (_, _, width) = features.dims3()?;
    match width {
        0 => Ok(rows.clone()),
        _ => Ok(Tensor::cat(&[rows, &pool(features)?.to_dtype(DType::F32)?], 1)?),
    }
}

impl Objective for Mixture {
    type Batch = Drawn;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Drawn> {
        let whole: Vec<FragmentId> = self.order.batch(step);
        let experts = self.setting.experts;
        let mut text = b"gumbel".to_vec();
        text.extend(step.to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(mix(self.seed, &text));
        let gumbel = |drawn: f32| -(-(drawn.clamp(1e-6, 1.0 - 1e-6)).ln()).ln();
        let noise: Vec<f32> = uniform(&mut generator, whole.len() * experts).into_iter().map(gumbel).collect();
        let range = part.range(whole.len());
        Ok(Drawn {
            starts: whole[range.clone()].iter().map(|at| self.starts[at.0]).collect(),
            noise: noise[range.start * experts..range.end * experts].to_vec(),
            temperature: COLD.powf(step as f64 / self.steps as f64),
        })
    }

    fn loss(&self, Drawn { starts, noise, temperature }: Drawn) -> models::Result<Loss> {
        let batch = self.table.gather(&starts, self.length)?;
        let (rows, experts) = (starts.len(), self.setting.experts);
        let observation = self.observation(&batch)?;
        let logits = self.logits(&batch, &observation)?;
        let noise = Tensor::from_vec(noise, (rows, experts), &Device::Cpu)?.to_device(logits.device())?;
        let shares = softmax(&((&logits + noise)? / temperature)?)?; // [B, K]
        let hidden = self.shared.forward_gelu(&observation)?;
        let ones = Tensor::ones((rows, 1), DType::F32, hidden.device())?;
        let hidden = Tensor::cat(&[&hidden, &ones], 1)?; // [B, H]
        // The sum over experts is one product: of the outer product of shares and hidden numbers with all weights.
        let outer = shares.unsqueeze(2)?.broadcast_mul(&hidden.unsqueeze(1)?)?.flatten_from(1)?; // [B, K·H]
        let predicted = self.experts.forward(&outer.contiguous()?)?;
        let error = (predicted - batch.actions.flatten_from(1)?)?.sqr()?.mean_all()?;
        let usual = softmax(&logits)?.mean(0)?; // [K]
        let balance = (usual.sqr()?.sum_all()? * experts as f64)?;
        let terms = vec![("error", error.detach()), ("balance", balance.detach())];
        Ok(Loss { total: (error + (balance * BALANCE)?)?, terms })
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.batch as f64, "fragments")
    }
}

fn softmax(logits: &Tensor) -> models::Result<Tensor> {
    let shifted = logits.broadcast_sub(&logits.detach().max_keepdim(D::Minus1)?)?.exp()?;
    Ok(shifted.broadcast_div(&shifted.sum_keepdim(D::Minus1)?)?)
}

impl Operator for AtomicVla {
    fn name(&self) -> &'static str {
        "atomic_vla"
    }

    fn source(&self) -> &'static str {
        "AtomicVLA: the expert that a Gumbel-softmax gate chooses; its vision-language backbone is replaced by the frozen features \
         at hand"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        [(64, "window"), (128, "window"), (256, "window"), (64, "observation")]
            .map(|(experts, gate)| json!({ "experts": experts, "gate": gate }))
            .to_vec()
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, device: &Device) -> Result<Found> {
        let setting: Setting = setting(self.name(), choice)?;
        if !(2..=4096).contains(&setting.experts) {
            return Err(refused(self.name(), "experts", setting.experts, "2 to 4096"));
        }
        let mixture = Mixture::new(data, setting, seed, device)?;
        train_briefly(&mixture, data, RATE)?;
        Ok(data.found_of_windows(&mixture.classes(&data.all_starts())?))
    }
}
