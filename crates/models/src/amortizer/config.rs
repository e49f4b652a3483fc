//! The amortizer's settings and its presets.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernel::KernelConfig;
use crate::ops::Form;

/// The shape of k_χ. `Default` is the paper's run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AmortizerConfig {
    /// Numbers in a token.
    pub width: usize,
    /// Transformer blocks.
    pub layers: usize,
    /// Attention heads in a block; they divide the width.
    pub heads: usize,
    /// Numbers in an embedding; distillation wants the world model's d_z (paper: 64).
    pub embedding: usize,
    /// The most steps of a fragment (paper: T = 16).
    pub horizon: usize,
    /// Whether tokens carry the visual features; the paper's amortizer sees no image.
    pub vision: bool,
    /// With a metric: whether a linear function of all actions is added to the embedding. The Transformer normalises its
    /// tokens, so on its own it sees sizes of actions poorly, and sizes are what distances are made of.
    pub linear: bool,
    /// Fused or composed operations.
    pub form: Form,
    /// The distances that embeddings reproduce. None for the paper's modes, whose embeddings are unit vectors of states and
    /// actions. Filled in by the phase that trains on D_φ, and stored with the weights; not a setting.
    pub metric: Option<Metric>,
}

/// What the embedded distances of [`super::Supervision::Kernel`] stand for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// D_φ: its weights, horizon, starts, samples and seed. Under the same world model the same distances can be imagined
    /// again.
    pub kernel: KernelConfig,
    /// The mean of D_φ over pairs of training windows. The head's outputs are multiplied by it, so that embedded distances
    /// have the unit of D_φ while the weights start at the size that they need.
    pub scale: f64,
}

/// Files of differences from `Default`, by name.
pub const PRESETS: [(&str, &str); 2] = [
    ("small", include_str!("../../presets/amortizer/small.toml")),
    ("tiny", include_str!("../../presets/amortizer/tiny.toml")),
];

impl Default for AmortizerConfig {
    fn default() -> Self {
        AmortizerConfig {
            width: 256,
            layers: 3,
            heads: 8,
            embedding: 64,
            horizon: dataset::FRAGMENT_LENGTH,
            vision: false,
            linear: true,
            form: Form::default(),
            metric: None,
        }
    }
}

impl AmortizerConfig {
    /// One of [`PRESETS`], or `default`.
    pub fn preset(name: &str) -> Result<AmortizerConfig> {
        if name == "default" {
            return Ok(AmortizerConfig::default());
        }
        let (_, text) = PRESETS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
            Error::Config(format!("`{name}` is no preset of the amortizer; `default`, `{}` are", known.join("`, `")))
        })?;
        toml::from_str(text).map_err(|error| Error::Config(format!("preset `{name}` of the amortizer: {error}")))
    }

    /// Everything that is wrong with it.
    pub fn validate(&self) -> Result<()> {
        let AmortizerConfig { width, layers, heads, embedding, horizon, .. } = *self;
        let mut wrong = Vec::new();
        let counts =
            [("width", width), ("layers", layers), ("heads", heads), ("embedding", embedding), ("horizon", horizon)];
        wrong.extend(counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")));
        if heads != 0 && width % heads != 0 {
            wrong.push(format!("{heads} heads do not divide a width of {width}"));
        }
        if let Some(Metric { kernel, scale }) = self.metric {
            kernel.validate()?;
            if !(scale > 0.0 && scale.is_finite()) {
                wrong.push(format!("`metric.scale` is {scale}, expected a positive number"));
            }
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Error::Config(format!("the amortizer's settings: {}", wrong.join("; "))))
        }
    }
}
