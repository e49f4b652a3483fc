//! What M_φ learns from.
//!
//! An imagination reads observations that M_φ itself decoded, but a fragment of a dataset has true ones. With
//! `imagined_share` above 0 that share of the fragments is read as an imagination would read it: the first observation is
//! true, and those after it are imagined from it and the actions. All targets stay the true ones, so reward and state are
//! learned from the inputs that an imagination has (Venkatraman, Hebert & Bagnell 2015, "Data as Demonstrator"; a departure
//! from the paper, off by default).

use std::collections::BTreeSet;

use candle_core::Tensor;

use super::config::ContrastMode;
use super::imagine::Start;
use super::model::WorldModel;
use crate::contrast::{nt_xent, supcon};
use crate::error::{Error, Result};
use crate::fragments::FragmentBatch;
use crate::ops::square::mean_square;
use crate::ops::without_gradients;

/// A loss and what it is made of.
#[derive(Clone, Debug)]
pub struct Losses {
    /// The weighted sum, a scalar.
    pub total: Tensor,
    /// The terms by name, scalars, before they are weighted.
    pub terms: Vec<(&'static str, Tensor)>,
}

impl WorldModel {
    /// w_recon‖x̂−x‖² + w_state‖ŝ−s‖² + β_KL·KL + w_ret((r̂−r)²/σ_r² + (Ĝ−G)²/σ_G²) + w_infonce·L_NCE, the squares as means over all
    /// numbers, the KL divergence summed over the latent and averaged over steps.
    ///
    /// KL = 0.8·max(1, KL(sg q ‖ p)) + 0.2·max(1, KL(q ‖ sg p)): what is below a nat is free, and the prior is pulled to the
    /// posterior more than the posterior to the prior (DreamerV3's form, DreamerV2's share).
    ///
    /// # Shapes
    /// `noise`: `[B, T, d_z]`, standard normal, f32. `labels`: B, with `supcon`; with `episode_contrast` rows 2i and 2i + 1 are
    /// of one episode.
    pub fn loss(&self, batch: &FragmentBatch, noise: &Tensor, labels: &[i64]) -> Result<Losses> {
        let config = &self.config;
        let seen = match self.partly_imagined(batch, noise)? {
            None => self.forward(batch, noise)?,
            Some(read) => self.forward(&read, noise)?,
        };
        let mut terms: Vec<(&'static str, f64, Tensor)> = Vec::new();

        if self.widths.features > 0 {
            terms.push(("recon", config.recon_weight, mean_square(&seen.features, &batch.features, config.form)?));
        }
        terms.push(("state", self.state_weight(), mean_square(&seen.states, &batch.states, config.form)?));

        let (q, p) = (&seen.posterior, &seen.prior);
        let costly = |nats: Tensor| (nats - config.free_nats)?.relu()? + config.free_nats;
        let (of_prior, of_posterior) = (costly(q.detach().kl(p)?)?, costly(q.kl(&p.detach())?)?);
        let kl = ((of_prior * config.balance)? + (of_posterior * (1.0 - config.balance))?)?;
        terms.push(("kl", config.kl_weight, kl.mean_all()?));

        if let Some((rewards, returns)) = &seen.returns {
            let (Some(true_rewards), Some(true_returns)) = (&batch.rewards, &batch.returns) else {
                return Err(Error::Config("the return head needs rewards, and these fragments have none".into()));
            };
            let reward = (mean_square(rewards, true_rewards, config.form)? / config.reward_scale.powi(2))?;
            let after = (mean_square(returns, true_returns, config.form)? / config.return_scale.powi(2))?;
            let error = (reward + after)?;
            terms.push(("return", config.return_weight, error));
        }

        match config.contrast {
            ContrastMode::None => {}
            ContrastMode::Supcon => {
                let term = supcon(&self.embed(q)?, labels, config.temperature)?;
                terms.push(("infonce", config.contrast_weight, term));
            }
            ContrastMode::EpisodeContrast => {
                let term = nt_xent(&self.embed(q)?, config.temperature)?;
                terms.push(("infonce", config.contrast_weight, term));
            }
        }

        if config.spectral_weight > 0.0 {
            let largest = largest_singular_value(&self.prior.weight.tracked_f32())?;
            terms.push(("spectral", config.spectral_weight, (largest.sqr()? / 2.0)?));
        }

        let weighted: Result<Vec<Tensor>> = terms.iter().map(|(_, weight, term)| Ok((term * *weight)?)).collect();
        let total = Tensor::stack(&weighted?, 0)?.sum_all()?;
        Ok(Losses { total, terms: terms.into_iter().map(|(name, _, term)| (name, term.detach())).collect() })
    }

    /// The weight of the states' term. For a dataset without cameras, states are all that is observed, and their term has the
    /// weights of both, so that the divergence is held against as much as it is with cameras.
    fn state_weight(&self) -> f64 {
        let blind = if self.widths.features == 0 { self.config.recon_weight } else { 0.0 };
        self.config.state_weight + blind
    }

    /// The names of the weights that the loss does not train: those of terms that are absent or have a weight of zero.
    pub fn frozen(&self) -> BTreeSet<String> {
        let config = &self.config;
        let without_contrast = config.contrast == ContrastMode::None || config.contrast_weight == 0.0;
        let without_prior = config.kl_weight == 0.0 || config.balance == 0.0;
        let without_features = self.decoder_features.is_none() || config.recon_weight == 0.0;
        let without_states = self.state_weight() == 0.0;
        let returns = self.returns.iter().flat_map(|(hidden, out)| [hidden, out]);
        let linears = [
            (&self.decoder_states, without_states),
            (&self.decoder_hidden, without_features && without_states),
            (&self.prior, without_prior),
        ];
        let linears = linears.into_iter().chain(self.decoder_features.iter().map(|linear| (linear, without_features)));
        let linears = linears.chain(self.projection.iter().map(|linear| (linear, without_contrast)));
        let linears = linears.chain(returns.map(|linear| (linear, config.return_weight == 0.0)));
        let linears = linears.filter(|(_, frozen)| *frozen);
        let weights = linears.flat_map(|(linear, _)| [&linear.weight, &linear.bias]);
        let start = without_prior.then_some(&self.start);
        weights.chain(start).map(|weight| weight.name().to_owned()).collect()
    }

    /// The batch as it is read, with imagined observations in the fragments that the noise chooses; `None` for as it is.
    ///
    /// A fragment's own noise decides, so that the choice does not depend on how a batch is divided between processes.
    pub(super) fn partly_imagined(&self, batch: &FragmentBatch, noise: &Tensor) -> Result<Option<FragmentBatch>> {
        let (fragments, steps, _) = batch.states.dims3()?;
        let share = self.config.imagined_share;
        if share == 0.0 || steps < 2 {
            return Ok(None);
        }
        let first = |rows: &Tensor| -> Result<Tensor> { Ok(rows.narrow(1, 0, 1)?.contiguous()?) };
        let (features, states) = (first(&batch.features)?, first(&batch.states)?);
        let start = Start { features: features.squeeze(1)?, states: states.squeeze(1)? };
        let actions = batch.actions.narrow(1, 0, steps - 1)?.contiguous()?;
        let imagined = without_gradients(|| self.imagine(&start, &actions, None))?;

        // The later digits of a normal number are uniform and say nothing of its size. Without noise, as in evaluations, they
        // are zeros, which choose nothing.
        let digits = (noise.narrow(1, 0, 1)?.narrow(2, 0, 1)?.contiguous()? * 1009.0)?;
        let chosen = (&digits - digits.floor()?)?.ge(1.0 - share)?; // [B, 1, 1]
        let mixed = |first: &Tensor, imagined: &Tensor, truth: &Tensor| -> Result<Tensor> {
            let (_, _, width) = truth.dims3()?;
            if width == 0 {
                return Ok(truth.clone());
            }
            let imagined = Tensor::cat(&[first, &imagined.to_dtype(truth.dtype())?], 1)?;
            Ok(chosen.broadcast_as((fragments, steps, width))?.where_cond(&imagined, truth)?.detach())
        };
        Ok(Some(FragmentBatch {
            features: mixed(&features, &imagined.features, &batch.features)?,
            states: mixed(&states, &imagined.states, &batch.states)?,
            ..batch.clone()
        }))
    }
}

/// The largest singular value of a matrix, by power iteration. Gradients flow through the last product alone, as those of
/// a singular value do: ∂σ/∂W = u vᵀ.
///
/// # Shapes
/// `matrix`: `[outputs, inputs]`; gives a scalar.
fn largest_singular_value(matrix: &Tensor) -> Result<Tensor> {
    /// Rounds from the same start in every step; the largest two singular values rarely lie close together.
    const ROUNDS: usize = 8;
    let fixed = matrix.detach();
    let unit = |vector: Tensor| -> Result<Tensor> {
        let length = (vector.sqr()?.sum_all()? + 1e-12)?.sqrt()?;
        Ok(vector.broadcast_div(&length)?)
    };
    let (outputs, _) = fixed.dims2()?;
    let start: Vec<f32> = (0..outputs).map(|at| 1.0 + (at % 7) as f32 / 7.0).collect();
    let mut left = unit(Tensor::from_vec(start, (outputs, 1), fixed.device())?)?;
    let mut right = unit(fixed.t()?.matmul(&left)?)?;
    for _ in 0..ROUNDS {
        left = unit(fixed.matmul(&right)?)?;
        right = unit(fixed.t()?.matmul(&left)?)?;
    }
    Ok((left * matrix.matmul(&right)?)?.sum_all()?)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn the_largest_singular_value_and_its_gradient_are_those_of_a_diagonal_matrix() {
        let matrix = Var::from_vec(vec![3.0_f32, 0.0, 0.0, 0.0, -5.0, 0.0], (2, 3), &Device::Cpu).unwrap();
        let value = largest_singular_value(matrix.as_tensor()).unwrap();
        assert!((value.to_scalar::<f32>().unwrap() - 5.0).abs() < 1e-4, "{value:?}");
        let gradient = value.backward().unwrap().get(&matrix).unwrap().to_vec2::<f32>().unwrap();
        let wanted = [[0.0, 0.0, 0.0], [0.0, -1.0, 0.0]];
        for (found, wanted) in gradient.iter().flatten().zip(wanted.iter().flatten()) {
            assert!((found - wanted).abs() < 1e-2, "{gradient:?}");
        }
    }
}
