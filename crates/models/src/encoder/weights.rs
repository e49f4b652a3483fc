//! The tensors of a safetensors file, under whichever of their names.
//!
//! Files on the Hugging Face Hub name attention `attention.attention.query` and `attention.output.dense`; modules of newer
//! transformers releases are `attention.q_proj` and `attention.o_proj`. Models with a head on top put `dinov2.` before all.

use std::path::Path;

use candle_core::{Device, Tensor};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use super::config::DinoV2Config;
use super::error::EncoderError;

/// What a name on the Hub has become in newer releases.
const RENAMED: [(&str, &str); 4] = [
    (".attention.attention.query.", ".attention.q_proj."),
    (".attention.attention.key.", ".attention.k_proj."),
    (".attention.attention.value.", ".attention.v_proj."),
    (".attention.output.dense.", ".attention.o_proj."),
];

/// What may stand before all names.
const PREFIX: &str = "dinov2.";

/// The tensors of a file that has all that a configuration wants, in the shapes that it wants.
pub(super) struct Weights<'a> {
    file: &'a Path,
    tensors: SafeTensors<'a>,
}

impl<'a> Weights<'a> {
    /// Finds every tensor that the configuration wants, or lists all that are missing or different.
    pub(super) fn new(file: &'a Path, content: &'a [u8], config: &DinoV2Config) -> Result<Weights<'a>, EncoderError> {
        let damaged = |reason: String| EncoderError::Damaged { file: file.to_path_buf(), reason };
        let tensors = SafeTensors::deserialize(content).map_err(|error| damaged(error.to_string()))?;
        let weights = Weights { file, tensors };
        let problems: Vec<String> =
            wanted(config).into_iter().filter_map(|(name, shape)| weights.problem(&name, &shape)).collect();
        match problems.is_empty() {
            true => Ok(weights),
            false => Err(EncoderError::Tensors { file: file.to_path_buf(), problems }),
        }
    }

    /// A tensor in f32 on the CPU, by its name on the Hub.
    pub(super) fn get(&self, name: &str) -> Result<Tensor, EncoderError> {
        let missing = || EncoderError::Tensors {
            file: self.file.to_path_buf(),
            problems: vec![format!("`{name}` is not there in f16, bf16 or f32")],
        };
        let view = self.find(name).ok_or_else(missing)?;
        let data = view.data();
        let values: Vec<f32> = match view.dtype() {
            Dtype::F16 => data.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
            Dtype::BF16 => data.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect(),
            Dtype::F32 => data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            _ => return Err(missing()),
        };
        Ok(Tensor::from_vec(values, view.shape(), &Device::Cpu)?)
    }

    fn find(&self, name: &str) -> Option<safetensors::tensor::TensorView<'_>> {
        let renamed = RENAMED.iter().find(|(old, _)| name.contains(old)).map(|(old, new)| name.replace(old, new));
        let names = [Some(name.to_string()), renamed];
        names.iter().flatten().find_map(|name| {
            self.tensors.tensor(name).or_else(|_| self.tensors.tensor(&format!("{PREFIX}{name}"))).ok()
        })
    }

    fn problem(&self, name: &str, shape: &[usize]) -> Option<String> {
        let Some(view) = self.find(name) else { return Some(format!("`{name}` is missing")) };
        if view.shape() != shape {
            return Some(format!("`{name}` has shape {:?}, not {shape:?}", view.shape()));
        }
        match view.dtype() {
            Dtype::F16 | Dtype::BF16 | Dtype::F32 => None,
            other => Some(format!("`{name}` is {other:?}, not F16, BF16 or F32")),
        }
    }
}

/// Names and shapes of the tensors of a model. `mask_token` is for training and not among them.
fn wanted(config: &DinoV2Config) -> Vec<(String, Vec<usize>)> {
    let (width, hidden) = (config.hidden_size, config.mlp_width);
    let mut wanted = vec![
        ("embeddings.cls_token".to_string(), vec![1, 1, width]),
        ("embeddings.position_embeddings".to_string(), vec![1, 1 + config.grid().pow(2), width]),
        (
            "embeddings.patch_embeddings.projection.weight".to_string(),
            vec![width, 3, config.patch_size, config.patch_size],
        ),
        ("embeddings.patch_embeddings.projection.bias".to_string(), vec![width]),
        ("layernorm.weight".to_string(), vec![width]),
        ("layernorm.bias".to_string(), vec![width]),
    ];
    for layer in 0..config.layers {
        let mut want = |name: &str, shape: &[usize]| {
            wanted.push((format!("encoder.layer.{layer}.{name}"), shape.to_vec()));
        };
        for part in ["query", "key", "value"] {
            want(&format!("attention.attention.{part}.weight"), &[width, width]);
            if config.qkv_bias {
                want(&format!("attention.attention.{part}.bias"), &[width]);
            }
        }
        want("attention.output.dense.weight", &[width, width]);
        want("mlp.fc1.weight", &[hidden, width]);
        want("mlp.fc1.bias", &[hidden]);
        want("mlp.fc2.weight", &[width, hidden]);
        for vector in ["attention.output.dense.bias", "mlp.fc2.bias", "layer_scale1.lambda1", "layer_scale2.lambda1"] {
            want(vector, &[width]);
        }
        for norm in ["norm1", "norm2"] {
            want(&format!("{norm}.weight"), &[width]);
            want(&format!("{norm}.bias"), &[width]);
        }
    }
    wanted
}
