//! Diagonal Gaussians, in f32 whatever the precision of products.

use candle_core::{D, DType, Tensor};

use crate::error::Result;

/// Means and deviations of one Gaussian for each place of their last dimension.
#[derive(Clone, Debug)]
pub struct Gaussian {
    /// μ, `[…, d_z]`
    pub mean: Tensor,
    /// σ, `[…, d_z]`, in (0.1, 1.9)
    pub deviation: Tensor,
}

impl Gaussian {
    /// From what a head gives: means as they are, deviations σ = 0.1 + 1.8 · sigmoid(raw). Bounded on both sides, the KL
    /// divergence of two of them cannot explode, and neither can hide in a deviation of zero.
    ///
    /// # Shapes
    /// `raw`: `[…, 2 · d_z]`, of any float type.
    pub fn from_raw(raw: &Tensor) -> Result<Gaussian> {
        let latent = raw.dim(D::Minus1)? / 2;
        let raw = raw.to_dtype(DType::F32)?;
        let mean = raw.narrow(D::Minus1, 0, latent)?;
        // 0.1 + 1.8 · sigmoid(r) = 1 + 0.9 · tanh(r/2), which no r overflows.
        let deviation = (raw.narrow(D::Minus1, latent, latent)? * 0.5)?.tanh()?.affine(0.9, 1.0)?;
        Ok(Gaussian { mean, deviation })
    }

    /// z = μ + σ·ε.
    ///
    /// # Shapes
    /// `noise`: as the mean, standard normal, and so is the result.
    pub fn sample(&self, noise: &Tensor) -> Result<Tensor> {
        Ok((&self.mean + (&self.deviation * noise)?)?)
    }

    /// KL(self ‖ other) = Σ_d ln(σ'/σ) + (σ² + (μ − μ')²)/(2σ'²) − ½, in nats.
    ///
    /// # Shapes
    /// `[…, d_z]` each; gives `[…]`.
    pub fn kl(&self, other: &Gaussian) -> Result<Tensor> {
        let ratio = (&self.deviation / &other.deviation)?;
        let shift = ((&self.mean - &other.mean)? / &other.deviation)?;
        let twice = ((ratio.sqr()? + shift.sqr()?)? - (ratio.log()? * 2.0)?)?;
        Ok((twice - 1.0)?.sum(D::Minus1)?.affine(0.5, 0.0)?)
    }

    /// The same, as a constant for gradients.
    pub fn detach(&self) -> Gaussian {
        Gaussian { mean: self.mean.detach(), deviation: self.deviation.detach() }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::noise;

    #[test]
    fn deviations_are_the_sigmoid_that_is_promised() {
        let raw: [f32; 5] = [-40.0, -1.5, 0.0, 0.7, 300.0];
        let tensor = Tensor::new(&[[0.0; 5], raw].concat()[..], &Device::Cpu).unwrap();
        let found: Vec<f32> = Gaussian::from_raw(&tensor).unwrap().deviation.to_vec1().unwrap();
        for (found, raw) in found.iter().zip(raw) {
            assert!((found - (0.1 + 1.8 / (1.0 + (-raw).exp()))).abs() < 1e-6, "{raw}: {found}");
        }
    }

    #[test]
    fn the_closed_form_agrees_with_monte_carlo() {
        let gaussian = |mean: [f32; 3], deviation: [f32; 3]| Gaussian {
            mean: Tensor::new(&mean, &Device::Cpu).unwrap(),
            deviation: Tensor::new(&deviation, &Device::Cpu).unwrap(),
        };
        let (q, p) = (gaussian([0.3, -0.8, 0.0], [0.4, 1.2, 0.9]), gaussian([-0.2, 0.5, 0.1], [0.8, 0.7, 1.5]));
        let closed = f64::from(q.kl(&p).unwrap().to_scalar::<f32>().unwrap());
        // E_q[ln q(z) − ln p(z)] over many draws; the terms in 2π cancel.
        let draws = 200_000;
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        let numbers = |gaussian: &Gaussian| -> Vec<(f64, f64)> {
            let means = gaussian.mean.to_vec1::<f32>().unwrap();
            let deviations = gaussian.deviation.to_vec1::<f32>().unwrap();
            means.iter().zip(&deviations).map(|(mean, deviation)| ((*mean).into(), (*deviation).into())).collect()
        };
        let (q, p) = (numbers(&q), numbers(&p));
        let log = |z: f64, (mean, deviation): (f64, f64)| -((z - mean) / deviation).powi(2) / 2.0 - deviation.ln();
        let (mut sum, mut squares) = (0.0, 0.0);
        for noise in noise::normal(&mut generator, 3 * draws).chunks_exact(3) {
            let one: f64 = (0..3)
                .map(|at| {
                    let z = q[at].0 + q[at].1 * f64::from(noise[at]);
                    log(z, q[at]) - log(z, p[at])
                })
                .sum();
            sum += one;
            squares += one * one;
        }
        let mean = sum / draws as f64;
        let error = ((squares / draws as f64 - mean * mean) / draws as f64).sqrt();
        assert!((mean - closed).abs() < 4.0 * error, "{mean} ± {error}, closed form {closed}");
        assert!(error < 0.01 * closed, "the draws could not tell: {error} of {closed}");
    }
}
