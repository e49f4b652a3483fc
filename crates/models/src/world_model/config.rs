//! The settings of the world model: the paper's run by default, presets as files of differences.

use dataset::PositiveWindow;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ops::Form;
use crate::widths::Widths;

/// The settings of M_φ. `Default` is the paper's run, preset `m188`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldModelConfig {
    /// Numbers in a token (paper §3.1: d_model = 1024).
    pub width: usize,
    /// Blocks of the Transformer (paper §3.1: 8).
    pub layers: usize,
    /// Attention heads in a block; they divide the width (the paper is silent; 64 numbers to a head, as is usual).
    pub heads: usize,
    /// The most steps of a fragment or of an imagination (paper §4: T = 16).
    pub horizon: usize,
    /// d_z, numbers in a latent (paper, supplement B: 64).
    pub latent: usize,
    /// n, by which states and actions are read as x, sin 2x, cos 2x, … sin 2ⁿx, cos 2ⁿx (ours: 0, as in the paper). A
    /// network learns slowly what depends on small differences of its inputs, and waves make them large (Tancik et al. 2020,
    /// "Fourier features let networks learn high frequency functions").
    pub frequencies: usize,
    /// Units in the decoder's hidden layer (ours; what the paper's number of parameters leaves room for).
    pub decoder_hidden: usize,
    /// Whether there is a return head; it needs a dataset with rewards (paper: off on LIBERO, which has none).
    pub returns: bool,
    /// γ, by which a return counts for less with each step (ours; 0.99 is usual for a hundred steps or so).
    pub discount: f64,
    /// Which fragments the contrastive term pulls together (paper §4.4: `task_index`). The default uses no labels.
    pub contrast: ContrastMode,
    /// Which part of an episode pairs come from, with `episode_contrast` (paper §4.4 (c)).
    pub positive_window: PositiveWindow,
    /// Numbers after a linear map before the contrastive term; without it, the term sees z_T itself, as in the paper.
    pub projection: Option<usize>,
    /// w_recon, of the squared error of features, standardised (paper: 1).
    pub recon_weight: f64,
    /// w_state, of the squared error of states, standardised (ours, from the residues of the paper's table of losses).
    pub state_weight: f64,
    /// β_KL, for each nat (from the paper's table of losses, which is consistent with 0.1 only).
    pub kl_weight: f64,
    /// Nats of a step that cost nothing (DreamerV3: 1).
    pub free_nats: f64,
    /// The part of the KL term that trains the prior; the rest trains the posterior (DreamerV2: 0.8).
    pub balance: f64,
    /// w_ret, of the squared errors of reward and return; counts only with a return head.
    pub return_weight: f64,
    /// The deviation of rewards, by which their error is measured and the head's output multiplied; 1 leaves both alone.
    /// Rewards are rare and small in one dataset and large in another, and a weight says nothing without it.
    pub reward_scale: f64,
    /// The same of returns.
    pub return_scale: f64,
    /// The share of fragments that are read with imagined observations after their first step, in training (ours: 0, as in
    /// the paper). An imagination reads its own observations, whose errors a model never sees in training otherwise.
    pub imagined_share: f64,
    /// w_infonce (paper: 0.5).
    pub contrast_weight: f64,
    /// Temperature of the contrastive term (paper: 0.1).
    pub temperature: f64,
    /// The weight of σ(W)²/2 of the layer that predicts the next latent, the prior's, where σ is its largest singular value
    /// (Yoshida & Miyato 2017, "Spectral norm regularization"). Only the experiment on mechanisms uses it (paper: 0).
    pub spectral_weight: f64,
    /// Fused or composed operations.
    pub form: Form,
}

/// L_NCE: which fragments belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContrastMode {
    /// No contrastive term.
    None,
    /// Those with the same label, such as `task_index`.
    #[default]
    Supcon,
    /// Two of one episode, without labels; a batch has them in rows 2i and 2i + 1.
    EpisodeContrast,
}

/// Names and texts of the presets, from small to large.
pub const PRESETS: [(&str, &str); 4] = [
    ("tiny", include_str!("../../presets/world_model/tiny.toml")),
    ("small", include_str!("../../presets/world_model/small.toml")),
    ("m188", include_str!("../../presets/world_model/m188.toml")),
    ("m430", include_str!("../../presets/world_model/m430.toml")),
];

/// The most octaves of waves: beyond them neighbouring numbers of single precision are a period apart.
const MAX_FREQUENCIES: usize = 16;

/// Units in the hidden layer of the return head.
pub const RETURN_HIDDEN: usize = 128;

impl Default for WorldModelConfig {
    fn default() -> Self {
        WorldModelConfig {
            width: 1024,
            layers: 8,
            heads: 16,
            horizon: dataset::FRAGMENT_LENGTH,
            latent: 64,
            frequencies: 0,
            decoder_hidden: 512,
            returns: false,
            discount: 0.99,
            contrast: ContrastMode::None,
            positive_window: PositiveWindow::Whole,
            projection: None,
            recon_weight: 1.0,
            state_weight: 0.1,
            kl_weight: 0.1,
            free_nats: 1.0,
            balance: 0.8,
            return_weight: 1.0,
            reward_scale: 1.0,
            return_scale: 1.0,
            imagined_share: 0.0,
            contrast_weight: 0.5,
            temperature: 0.1,
            spectral_weight: 0.0,
            form: Form::default(),
        }
    }
}

impl WorldModelConfig {
    /// The default with the differences of a preset.
    pub fn preset(name: &str) -> Result<WorldModelConfig> {
        let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let names: Vec<String> = PRESETS.iter().map(|(known, _)| format!("`{known}`")).collect();
            return Err(Error::Config(format!("there is no preset `{name}`; there are {}", names.join(", "))));
        };
        toml::from_str(text).map_err(|error| Error::Config(format!("preset `{name}`: {error}")))
    }

    /// Every setting that cannot be, or nothing.
    pub fn validate(&self) -> Result<()> {
        let mut wrong = Vec::new();
        let counts = [
            ("width", self.width),
            ("layers", self.layers),
            ("heads", self.heads),
            ("horizon", self.horizon),
            ("latent", self.latent),
            ("decoder_hidden", self.decoder_hidden),
            ("projection", self.projection.unwrap_or(1)),
        ];
        wrong.extend(counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")));
        if self.heads != 0 && !self.width.is_multiple_of(self.heads) {
            wrong.push(format!("`heads` is {}, which does not divide the `width` of {}", self.heads, self.width));
        }
        let weights = [
            ("recon_weight", self.recon_weight),
            ("state_weight", self.state_weight),
            ("kl_weight", self.kl_weight),
            ("free_nats", self.free_nats),
            ("return_weight", self.return_weight),
            ("contrast_weight", self.contrast_weight),
            ("spectral_weight", self.spectral_weight),
        ];
        let negative = weights.iter().filter(|(_, weight)| !(weight.is_finite() && *weight >= 0.0));
        wrong.extend(negative.map(|(name, weight)| format!("`{name}` is {weight}, wanted 0 or more")));
        for (name, scale) in [("reward_scale", self.reward_scale), ("return_scale", self.return_scale)] {
            if !(scale.is_finite() && scale > 0.0) {
                wrong.push(format!("`{name}` is {scale}, wanted more than 0"));
            }
        }
        if self.frequencies > MAX_FREQUENCIES {
            wrong.push(format!("`frequencies` is {}, wanted {MAX_FREQUENCIES} or fewer", self.frequencies));
        }
        for (name, share) in
            [("balance", self.balance), ("discount", self.discount), ("imagined_share", self.imagined_share)]
        {
            if !(0.0..=1.0).contains(&share) {
                wrong.push(format!("`{name}` is {share}, wanted 0 to 1"));
            }
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            wrong.push(format!("`temperature` is {}, wanted more than 0", self.temperature));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Error::Config(format!("the world model cannot be made: {}", wrong.join("; "))))
    }

    /// As how many numbers a state or an action of so many numbers is read.
    pub(super) fn waves_width(&self, count: usize) -> usize {
        count * (1 + 2 * self.frequencies)
    }

    /// How many numbers a model with these settings learns, without making it.
    pub fn parameters(&self, widths: Widths) -> usize {
        let linear = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let (width, latent) = (self.width, self.latent);
        let block = linear(width, 3 * width) + linear(width, width) + 2 * linear(width, 4 * width) - 3 * width;
        let block = block + 4 * width;
        let waves = |count: usize| linear(self.waves_width(count), width);
        let sees = widths.features > 0;
        let image = if sees { linear(widths.features, width) } else { 0 };
        let inputs = image + waves(widths.states) + waves(widths.actions);
        // Modalities, steps, and h₋₁.
        let learned = (2 + usize::from(sees) + self.horizon + 1) * width;
        let heads = 2 * linear(width, 2 * latent);
        let hidden = self.decoder_hidden;
        let decoded_image = if sees { linear(hidden, widths.features) } else { 0 };
        let decoder = linear(latent, hidden) + decoded_image + linear(hidden, widths.states);
        let returns = if self.returns { linear(width, RETURN_HIDDEN) + linear(RETURN_HIDDEN, 2) } else { 0 };
        let projection = self.projection.map_or(0, |outputs| linear(latent, outputs));
        inputs + learned + self.layers * block + 2 * width + heads + decoder + returns + projection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DINOv2-base of one view, and LIBERO's states and actions.
    const LIBERO: Widths = Widths { features: 768, states: 8, actions: 7 };

    #[test]
    fn m188_is_the_default_and_has_the_papers_size() {
        let m188 = WorldModelConfig::preset("m188").unwrap();
        assert_eq!(m188, WorldModelConfig::default());
        for returns in [false, true] {
            let count = WorldModelConfig { returns, ..m188.clone() }.parameters(LIBERO) as f64;
            assert!((count / 101.58e6 - 1.0).abs() < 0.01, "{count}");
        }
        let count = WorldModelConfig::preset("m430").unwrap().parameters(LIBERO) as f64;
        assert!((count / 343e6 - 1.0).abs() < 0.01, "{count}");
    }

    #[test]
    fn presets_are_valid_and_an_unknown_one_is_told_their_names() {
        for (name, _) in PRESETS {
            WorldModelConfig::preset(name).unwrap().validate().unwrap();
        }
        let error = WorldModelConfig::preset("large").unwrap_err().to_string();
        assert_eq!(error, "there is no preset `large`; there are `tiny`, `small`, `m188`, `m430`");
    }

    #[test]
    fn all_violations_are_told_at_once() {
        let wrong = WorldModelConfig { heads: 3, layers: 0, balance: 1.5, temperature: 0.0, ..Default::default() };
        let error = wrong.validate().unwrap_err().to_string();
        for part in ["`layers` is 0", "`heads` is 3", "`balance` is 1.5", "`temperature` is 0"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn unknown_settings_are_refused() {
        let error = toml::from_str::<WorldModelConfig>("wdith = 3").unwrap_err().to_string();
        assert!(error.contains("wdith"), "{error}");
    }
}
