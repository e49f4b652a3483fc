//! The hot operations, each in two forms that compute the same function.
//!
//! [`Form::Composed`] is plain Candle: the reference and the off-switch. [`Form::Fused`] is ours: one pass over memory, on the
//! CPU (rayon, SIMD chosen at run time) and on CUDA (source compiled by NVRTC at start), with a hand-written backward pass.
//! Candle's backward pass adds every gradient to a tensor of zeros, four passes over memory that no operation needs. A
//! fused layer therefore hands over the gradients of its weights itself, and a whole Transformer is one node of Candle's
//! graph.
//!
//! The functions of this module know tensors but not weights. The layers give them gradients to hand over, and the frozen
//! encoder uses them forward only. Where there is no fused form (half precision on the CPU, other backends), the composed one
//! runs, whatever was asked for.

pub mod attention;
pub mod bias_activation;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod graft;
pub mod layer_norm;
pub(crate) mod see;
mod small_product;
pub mod square;
pub(crate) mod unfold;
pub(crate) mod update;

use candle_core::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

pub use graft::{gradients_wanted, graft, without_gradients};

/// Which implementation of the hot operations runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Ours: one pass over memory each, with a hand-written backward pass.
    #[default]
    Fused,
    /// Plain Candle operations.
    Composed,
}

impl Form {
    /// Whether the fused form runs for tensors like this one.
    pub fn is_fused_for(self, x: &Tensor) -> bool {
        self == Form::Fused
            && match x.device() {
                Device::Cpu => x.dtype() == DType::F32,
                Device::Cuda(_) => cfg!(feature = "cuda") && matches!(x.dtype(), DType::F32 | DType::BF16),
                Device::Metal(_) => false,
            }
    }
}

/// The error for devices and types that [`Form::is_fused_for`] rules out.
fn not_fused(operation: &'static str, x: &Tensor) -> candle_core::Error {
    candle_core::Error::Msg(format!("{operation} is not fused for {:?} on {:?}", x.dtype(), x.device().location()))
}

#[cfg(test)]
pub(crate) mod testing {
    //! Random tensors and comparisons for the tests of operations.

    use candle_core::{DType, Device, Tensor};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    /// Standard normal numbers.
    pub(crate) fn random(shape: &[usize], seed: u64) -> Tensor {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let values = crate::noise::normal(&mut generator, shape.iter().product());
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    /// ‖a − b‖ / ‖b‖, never NaN.
    pub(crate) fn distance(a: &Tensor, b: &Tensor) -> f64 {
        let flat = |x: &Tensor| x.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
        let (a, b) = (flat(a), flat(b));
        assert_eq!(a.len(), b.len());
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let apart = norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied()).max(1e-30);
        if apart.is_nan() { f64::INFINITY } else { apart }
    }
}
