//! Rectified flow: a straight line from noise to a chunk, and how far the learned velocity is from it.

use candle_core::{D, DType, Tensor};

use super::model::{Condition, Decoder};
use crate::error::{Error, Result};
use crate::ops::without_gradients;
use crate::training::Loss;

/// What the decoder learns from.
#[derive(Clone, Debug)]
pub struct DecoderBatch {
    /// What the chunks are for.
    pub condition: Condition,
    /// x₁, standardised: `[B, chunk, A]`. What stands beyond the end of an episode may be anything finite: it is taken for
    /// zeros and counts nowhere.
    pub actions: Tensor,
    /// One for each action that counts, zero beyond the end of the episode: `[B, chunk]` f32.
    pub counted: Tensor,
}

/// What a pass draws at random; handed in, so that a pass is a function of its arguments.
#[derive(Clone, Debug)]
pub struct FlowNoise {
    /// x₀, standard normal: `[B, chunk, A]` f32.
    pub start: Tensor,
    /// u, uniform in [0, 1): `[B]` f32.
    pub times: Tensor,
}

/// Sums of squared errors over held-out chunks, in standardised units; sums of several batches are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowError {
    /// Σ (v̂ − v)².
    pub velocity: f64,
    /// Σ (x̂₁ − x₁)², of chunks after all Euler steps against the demonstration.
    pub chunk: f64,
    /// How many numbers were compared.
    pub numbers: f64,
}

impl FlowError {
    /// Both together.
    #[must_use]
    pub fn merged(self, other: FlowError) -> FlowError {
        FlowError {
            velocity: self.velocity + other.velocity,
            chunk: self.chunk + other.chunk,
            numbers: self.numbers + other.numbers,
        }
    }

    /// The mean of (v̂ − v)²: what we take the paper's v_err to be, which it does not define.
    pub fn velocity_mean_square(&self) -> f64 {
        self.velocity / self.numbers.max(1.0)
    }

    /// Its root.
    pub fn velocity_rms(&self) -> f64 {
        self.velocity_mean_square().sqrt()
    }

    /// The mean of (x̂₁ − x₁)².
    pub fn chunk_mean_square(&self) -> f64 {
        self.chunk / self.numbers.max(1.0)
    }

    /// Its root.
    pub fn chunk_rms(&self) -> f64 {
        self.chunk_mean_square().sqrt()
    }
}

impl Decoder {
    /// With x_u = (1 − u)·x₀ + u·x₁: the mean of (v̂(x_u, u) − (x₁ − x₀))² over the numbers that count.
    pub fn loss(&self, batch: &DecoderBatch, noise: &FlowNoise) -> Result<Loss> {
        let total = self.error(batch, noise)?.0;
        Ok(Loss { terms: vec![("velocity", total.detach())], total })
    }

    /// The errors on a batch, without gradients: of the velocity at the noise's times, and of the chunks that the noise's
    /// starts are integrated to.
    pub fn measure(&self, batch: &DecoderBatch, noise: &FlowNoise) -> Result<FlowError> {
        let (velocity, numbers) = without_gradients(|| self.error(batch, noise))?;
        let chunks = self.sample(&batch.condition, &noise.start)?;
        let (chunk, _) = mean_square(&chunks, &batch.actions.to_dtype(DType::F32)?, &batch.counted)?;
        let read = |x: &Tensor| -> Result<f64> { Ok(f64::from(x.detach().to_scalar::<f32>()?)) };
        let numbers = read(&numbers)?;
        Ok(FlowError { velocity: read(&velocity)? * numbers, chunk: read(&chunk)? * numbers, numbers })
    }

    /// Chunks from noise, in standardised units, by the setting's Euler steps; without gradients.
    ///
    /// # Shapes
    /// `start`: `[B, chunk, A]`, standard normal; gives `[B, chunk, A]`, f32.
    pub fn sample(&self, condition: &Condition, start: &Tensor) -> Result<Tensor> {
        without_gradients(|| {
            let conditioned = self.condition(condition)?.detach();
            let (samples, _, _) = start.dims3()?;
            euler(&start.to_dtype(DType::F32)?, self.config.steps, |x, time| {
                let times = Tensor::full(time as f32, samples, x.device())?;
                Ok(self.velocity(&conditioned, x, &times)?.detach())
            })
        })
    }

    /// The mean squared error of the velocity, and the number of numbers that it is over.
    fn error(&self, batch: &DecoderBatch, noise: &FlowNoise) -> Result<(Tensor, Tensor)> {
        let FlowNoise { start, times } = noise;
        let actions = batch.actions.to_dtype(DType::F32)?;
        if start.dims() != actions.dims() || [times.dims(), &batch.counted.dims()[..1]] != [&actions.dims()[..1]; 2] {
            return Err(Error::Config(format!(
                "noise of {:?} at {:?} times and a mask of {:?} for chunks of {:?}",
                start.dims(),
                times.dims(),
                batch.counted.dims(),
                actions.dims()
            )));
        }
        // A point of the flow has all actions, so those that do not count must be something that is the same for all.
        let actions = actions.broadcast_mul(&batch.counted.to_dtype(DType::F32)?.unsqueeze(2)?)?;
        let target = (actions - start)?;
        let point = (start + target.broadcast_mul(&times.reshape(((), 1, 1))?)?)?;
        let velocity = self.velocity(&self.condition(&batch.condition)?, &point, times)?;
        mean_square(&velocity, &target, &batch.counted)
    }
}

/// x(1) of dx/du = v(x, u) from x(0), in equal steps.
pub fn euler(start: &Tensor, steps: usize, mut velocity: impl FnMut(&Tensor, f64) -> Result<Tensor>) -> Result<Tensor> {
    let mut x = start.clone();
    for step in 0..steps {
        let slope = velocity(&x, step as f64 / steps as f64)?;
        x = (&x + (slope / steps as f64)?)?;
    }
    Ok(x)
}

/// The mean of (a − b)² over the actions that count, and how many numbers that are.
///
/// # Shapes
/// `a`, `b`: `[B, chunk, A]`, `counted`: `[B, chunk]`; gives scalars.
fn mean_square(a: &Tensor, b: &Tensor, counted: &Tensor) -> Result<(Tensor, Tensor)> {
    let (_, _, actions) = a.dims3()?;
    let counted = counted.to_dtype(DType::F32)?;
    let numbers = (counted.sum_all()? * actions as f64)?;
    let share = counted.broadcast_div(&numbers.maximum(1_f32)?)?;
    // Rows first: Candle sums a whole tensor with a single block of threads.
    let squares = (a - b)?.sqr()?.sum(D::Minus1)?;
    Ok(((squares * share)?.sum_all()?, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{distance, random};

    #[test]
    fn euler_integrates_a_constant_velocity_exactly() {
        let (start, end) = (random(&[2, 4, 3], 1), random(&[2, 4, 3], 2));
        let velocity = (&end - &start).unwrap();
        for steps in [1, 7, 10] {
            let found = euler(&start, steps, |_, _| Ok(velocity.clone())).unwrap();
            assert!(distance(&found, &end) < 1e-6, "{steps} steps");
        }
    }

    #[test]
    fn euler_follows_the_straight_line_to_where_it_ends() {
        // (x₁ − x)/(1 − u) is the velocity when the end is known; each step then stays on the line.
        let (start, end) = (random(&[2, 4, 3], 1), random(&[2, 4, 3], 2));
        let mut times = Vec::new();
        let found = euler(&start, 10, |x, time| {
            times.push(time);
            Ok(((&end - x)? / (1.0 - time))?)
        });
        assert!(distance(&found.unwrap(), &end) < 1e-6);
        assert_eq!((times.len(), times[0], times[9]), (10, 0.0, 0.9));
    }

    #[test]
    fn what_does_not_count_has_no_share_in_the_mean() {
        let (a, b) = (random(&[2, 3, 2], 1), random(&[2, 3, 2], 2));
        let counted = Tensor::new(&[[1_f32, 1.0, 0.0], [1.0, 0.0, 0.0]], a.device()).unwrap();
        let (mean, numbers) = mean_square(&a, &b, &counted).unwrap();
        assert_eq!(numbers.to_scalar::<f32>().unwrap(), 6.0);
        let squares = (&a - &b).unwrap().sqr().unwrap().sum(2).unwrap().to_vec2::<f32>().unwrap();
        let wanted = (squares[0][0] + squares[0][1] + squares[1][0]) / 6.0;
        assert!((mean.to_scalar::<f32>().unwrap() - wanted).abs() < 1e-6);
        let (nothing, _) = mean_square(&a, &b, &counted.zeros_like().unwrap()).unwrap();
        assert_eq!(nothing.to_scalar::<f32>().unwrap(), 0.0);
    }
}
