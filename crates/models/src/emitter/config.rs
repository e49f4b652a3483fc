//! The emitter's settings and its presets.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::eye::{EyeConfig, visual_tokens};
use crate::ops::Form;
use crate::widths::Widths;

/// The shape of the TPE. `Default` is preset `paper`; the paper gives no size, so all numbers are ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmitterConfig {
    /// Numbers in a token.
    pub width: usize,
    /// Transformer blocks.
    pub layers: usize,
    /// Attention heads in a block; they divide the width.
    pub heads: usize,
    /// Words of an instruction that are read; shorter ones are filled up, so that a batch's padding has no influence.
    /// LIBERO's longest instruction has 18.
    pub words: usize,
    /// The most tokens of a target, separators and end counted. With 24 words, state and two views, 96 keep a sequence
    /// within the 128 tokens that fused attention holds on a GPU.
    pub tokens: usize,
    /// How many tokens the visual features are cut into, such as one for each camera; it divides their width.
    pub feature_tokens: usize,
    /// A trainable eye, which sees images in the place of cached features.
    pub eye: Option<EyeConfig>,
    /// Whether scores are products with the rows that tokens are read by.
    pub tied: bool,
    /// What the nats of numbers count in the loss, where those of names and syntax count one. A vector of six numbers has many
    /// more nats than the name before it, and would leave the choice of the name to chance.
    pub number_weight: f64,
    /// Whether targets are written as distances from where the robot is; off, as positions, which coarse images suffice for.
    pub distances: bool,
    /// Fused or composed operations.
    pub form: Form,
}

/// How many symbols a model is made for; they are no settings but grow with the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symbols {
    /// Of the [`WordVocabulary`](super::WordVocabulary).
    pub words: usize,
    /// Of the [`Vocabulary`](crate::vocabulary::Vocabulary).
    pub tokens: usize,
}

/// Names and texts of the presets, from small to large.
pub const PRESETS: [(&str, &str); 3] = [
    ("tiny", include_str!("../../presets/emitter/tiny.toml")),
    ("small", include_str!("../../presets/emitter/small.toml")),
    ("paper", include_str!("../../presets/emitter/paper.toml")),
];

impl Default for EmitterConfig {
    fn default() -> Self {
        let (words, tokens, feature_tokens, tied, form) = (24, 96, 1, false, Form::default());
        let number_weight = 0.25;
        EmitterConfig {
            width: 384,
            layers: 6,
            heads: 6,
            words,
            tokens,
            feature_tokens,
            eye: None,
            tied,
            number_weight,
            distances: false,
            form,
        }
    }
}

impl EmitterConfig {
    /// The default with the differences of a preset.
    pub fn preset(name: &str) -> Result<EmitterConfig> {
        let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let names: Vec<String> = PRESETS.iter().map(|(known, _)| format!("`{known}`")).collect();
            return Err(Error::Config(format!("there is no preset `{name}`; there are {}", names.join(", "))));
        };
        toml::from_str(text).map_err(|error| Error::Config(format!("preset `{name}`: {error}")))
    }

    /// Every setting that cannot be, or nothing.
    pub fn validate(&self, widths: Widths) -> Result<()> {
        let EmitterConfig { width, layers, heads, words, tokens, feature_tokens, .. } = *self;
        let mut wrong = Vec::new();
        let counts = [
            ("width", width),
            ("layers", layers),
            ("heads", heads),
            ("words", words),
            ("tokens", tokens),
            ("feature_tokens", feature_tokens),
        ];
        wrong.extend(counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")));
        if heads != 0 && !width.is_multiple_of(heads) {
            wrong.push(format!("{heads} heads do not divide a width of {width}"));
        }
        if !(self.number_weight > 0.0 && self.number_weight.is_finite()) {
            wrong.push(format!("`number_weight` is {}, wanted more than 0", self.number_weight));
        }
        wrong.extend(self.eye.iter().flat_map(EyeConfig::violations));
        let features = if self.eye.is_none() { widths.features } else { 0 };
        if feature_tokens != 0 && !features.is_multiple_of(feature_tokens) {
            wrong.push(format!("{features} features cannot be cut into {feature_tokens} equal tokens"));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Error::Config(format!("the emitter cannot be made: {}", wrong.join("; "))))
    }

    /// Tokens before the first of the target: words, features, state.
    pub fn prefix(&self, widths: Widths) -> usize {
        self.words + self.visual(widths).0 + usize::from(widths.states > 0)
    }

    /// Visual tokens, and the numbers in each.
    pub(super) fn visual(&self, widths: Widths) -> (usize, usize) {
        visual_tokens(self.eye, self.feature_tokens, widths)
    }

    /// How many numbers a model with these settings learns, without making it.
    pub fn parameters(&self, widths: Widths, symbols: Symbols) -> usize {
        let width = self.width;
        let linear = |inputs: usize| if inputs > 0 { inputs * width + width } else { 0 };
        let tables = symbols.words + symbols.tokens * if self.tied { 1 } else { 2 };
        let inputs =
            linear(self.visual(widths).1) + linear(widths.states) + self.eye.map_or(0, |eye| eye.parameters(width));
        // Kinds of tokens, and places.
        let learned = 4 + self.prefix(widths) + self.tokens;
        let block = 12 * width * width + 13 * width;
        (tables + learned) * width + inputs + self.layers * block + 2 * width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_have_the_sizes_that_they_say() {
        let libero = Widths { features: 768, states: 8, actions: 7 };
        let symbols = Symbols { words: 100, tokens: 500 };
        for ((name, _), size) in PRESETS.iter().zip([0.23e6, 2.19e6, 11.5e6]) {
            let config = EmitterConfig::preset(name).unwrap();
            config.validate(libero).unwrap();
            let count = config.parameters(libero, symbols) as f64;
            assert!((count / size - 1.0).abs() < 0.02, "{name}: {count}");
        }
        assert_eq!(EmitterConfig::preset("paper").unwrap(), EmitterConfig::default());
        let error = EmitterConfig::preset("large").unwrap_err().to_string();
        assert_eq!(error, "there is no preset `large`; there are `tiny`, `small`, `paper`");
    }

    #[test]
    fn all_violations_are_told_at_once() {
        let wrong = EmitterConfig { layers: 0, heads: 7, feature_tokens: 5, ..EmitterConfig::default() };
        let error = wrong.validate(Widths { features: 12, states: 1, actions: 1 }).unwrap_err().to_string();
        for part in ["`layers` is 0", "7 heads", "12 features cannot be cut into 5"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(toml::from_str::<EmitterConfig>("wdith = 3").is_err());
    }
}
