//! DINOv2 (Oquab et al., 2023): a Vision Transformer whose features need no training of ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Result, Tensor};

use super::config::DinoV2Config;
use super::error::EncoderError;
use super::layer::{Layer, Norm, Place, Stream};
use super::weights::Weights;
use super::{Kind, picture, positions};

/// The file that says how large the model is.
const CONFIG: &str = "config.json";

/// The file with its weights.
const WEIGHTS: &str = "model.safetensors";

/// A DINOv2 with its weights, for inference.
pub struct DinoV2 {
    config: DinoV2Config,
    fingerprint: String,
    place: Place,
    /// `[3 · patch², D]`.
    projection: Tensor,
    /// The class token with its position, `[1, 1, D]`.
    class: Tensor,
    /// Position embeddings of patches as they were trained, `[grid², D]`, each with the bias of the projection.
    table: Vec<f32>,
    /// The same for the grids of patches that were seen, `[1, P, D]`.
    positions: BTreeMap<(usize, usize), Tensor>,
    layers: Vec<Layer>,
    norm: Norm,
}

impl DinoV2 {
    /// Loads `config.json` and `model.safetensors` of a folder, as Hugging Face has them. The precision is that of products:
    /// f32 on CPUs; f16, bf16 or f32 on GPUs. See [`default_precision`](DinoV2::default_precision).
    pub fn load(folder: &Path, device: &Device, precision: DType) -> std::result::Result<DinoV2, EncoderError> {
        match (device, precision) {
            (Device::Cpu, DType::F32) | (Device::Cuda(_), DType::F16 | DType::BF16 | DType::F32) => {}
            _ => return Err(EncoderError::Precision { precision, device: format!("{:?}", device.location()) }),
        }
        DinoV2::load_in(folder, Place { device: device.clone(), precision })
    }

    /// f32 on CPUs, f16 on GPUs.
    pub fn default_precision(device: &Device) -> DType {
        if device.is_cpu() { DType::F32 } else { DType::F16 }
    }

    pub(super) fn load_in(folder: &Path, place: Place) -> std::result::Result<DinoV2, EncoderError> {
        let (file, text) = read(folder, CONFIG)?;
        let config = DinoV2Config::parse(&text).map_err(|problems| EncoderError::Config { file, problems })?;
        let (file, content) = read(folder, WEIGHTS)?;
        let weights = Weights::new(&file, &content, &config)?;
        let width = config.hidden_size;
        let projection = weights.get("embeddings.patch_embeddings.projection.weight")?.flatten_from(1)?.t()?;
        let bias = weights.get("embeddings.patch_embeddings.projection.bias")?;
        let places = weights.get("embeddings.position_embeddings")?; // [1, 1 + grid², D]
        let class = (weights.get("embeddings.cls_token")? + places.narrow(1, 0, 1)?)?;
        // The weights of an interpolation add up to one, so that a constant can be added before it.
        let table = places.narrow(1, 1, config.grid().pow(2))?.broadcast_add(&bias)?;
        let layers = (0..config.layers).map(|number| Layer::new(&weights, &config, number, &place));
        Ok(DinoV2 {
            fingerprint: fingerprint(&config, &content),
            projection: projection.contiguous()?.to_dtype(place.precision)?.to_device(&place.device)?,
            class: class.reshape((1, 1, width))?.to_device(&place.device)?,
            table: table.flatten_all()?.to_vec1()?,
            positions: BTreeMap::new(),
            layers: layers.collect::<std::result::Result<_, _>>()?,
            norm: Norm::new(&weights, "layernorm", config.layer_norm_eps, &place)?,
            config,
            place,
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &DinoV2Config {
        &self.config
    }

    /// A hash of shape and weights, in hexadecimal. Device, precision and the order of sums are not part of it: the last
    /// bits that they change are below what the cache keeps of a feature.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        &self.place.device
    }

    /// The tokens of some pictures after the last LayerNorm: the class token, then the patches line by line.
    ///
    /// # Shapes
    /// `pixels`: `[pictures, height, width, 3]`, 0 to 255, height and width multiples of the patch; the result:
    /// `[pictures, 1 + P, D]` in f32.
    pub fn tokens(
        &mut self,
        pixels: &[u8],
        (pictures, height, width): (usize, usize, usize),
    ) -> std::result::Result<Tensor, EncoderError> {
        let patch = self.config.patch_size;
        let cut = height > 0 && width > 0 && height % patch == 0 && width % patch == 0;
        if !cut || pictures == 0 || pixels.len() != pictures * height * width * 3 {
            return Err(EncoderError::Pictures { bytes: pixels.len(), pictures, height, width, patch });
        }
        let (rows, columns) = (height / patch, width / patch);
        let patches = picture::patches(pixels, width, patch);
        let patches = Tensor::from_vec(patches, (pictures * rows * columns, 3 * patch * patch), &Device::Cpu)?;
        let patches = patches.to_device(&self.place.device)?.to_dtype(self.place.precision)?;
        let content = patches.matmul(&self.projection)?.to_dtype(DType::F32)?;
        let content = content.reshape((pictures, rows * columns, self.config.hidden_size))?;
        let content = content.broadcast_add(&self.positions((rows, columns))?)?;
        let class = self.class.broadcast_as((pictures, 1, self.config.hidden_size))?;
        let mut stream = Stream::new(&Tensor::cat(&[&class, &content], 1)?)?; // [B, 1 + P, D]
        for layer in &self.layers {
            stream = layer.forward(stream, &self.place)?;
        }
        Ok(self.norm.last(stream)?)
    }

    /// Features of some pictures.
    ///
    /// # Shapes
    /// `pixels`: as for [`tokens`](DinoV2::tokens); the result: `[pictures, kind.width(D)]` in f32.
    pub fn features(
        &mut self,
        pixels: &[u8],
        (pictures, height, width): (usize, usize, usize),
        kind: Kind,
    ) -> std::result::Result<Tensor, EncoderError> {
        let tokens = self.tokens(pixels, (pictures, height, width))?;
        let grid = (height / self.config.patch_size, width / self.config.patch_size);
        Ok(kind.pool(&tokens, grid)?)
    }

    fn positions(&mut self, grid: (usize, usize)) -> Result<Tensor> {
        if let Some(known) = self.positions.get(&grid) {
            return Ok(known.clone());
        }
        let width = self.config.hidden_size;
        let values = positions::interpolate(&self.table, self.config.grid(), width, grid);
        let made =
            Tensor::from_vec(values, (1, grid.0 * grid.1, width), &Device::Cpu)?.to_device(&self.place.device)?;
        self.positions.insert(grid, made.clone());
        Ok(made)
    }
}

fn read(folder: &Path, name: &str) -> std::result::Result<(PathBuf, Vec<u8>), EncoderError> {
    let file = folder.join(name);
    match fs::read(&file) {
        Ok(content) => Ok((file, content)),
        Err(source) => Err(EncoderError::File { file, source }),
    }
}

/// Of the configuration only what the model is made of: a key that changes nothing makes no other encoder.
fn fingerprint(config: &DinoV2Config, weights: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    let DinoV2Config { hidden_size, layers, heads, mlp_width, patch_size, image_size, layer_norm_eps, qkv_bias } =
        config;
    let shape = [hidden_size, layers, heads, mlp_width, patch_size, image_size];
    hasher.update(format!("dinov2 1 {shape:?} {layer_norm_eps:e} {qkv_bias}").as_bytes());
    hasher.update(weights);
    hasher.finalize().to_hex().to_string()
}
