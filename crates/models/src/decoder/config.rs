//! The decoder's settings and its presets.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::eye::{EyeConfig, visual_tokens};
use crate::ops::Form;
use crate::widths::Widths;

/// The shape of the LCAD. `Default` is the paper's, preset `paper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderConfig {
    /// Numbers in a token (paper §3.4: d_model = 384).
    pub width: usize,
    /// Transformer blocks over the chunk and its condition (paper §3.4: 4).
    pub layers: usize,
    /// Attention heads in a block; they divide the width.
    pub heads: usize,
    /// Actions in a chunk (paper §3.4: 16).
    pub chunk: usize,
    /// Euler steps from noise to a chunk (paper §3.4: 10).
    pub steps: usize,
    /// Units in the hidden layer through which the flow time goes (ours: four times the width, as in the blocks).
    pub time_hidden: usize,
    /// Numbers in a token of the term (ours, as all that follows: chosen so that the sum is the paper's 10.9 M).
    pub term_width: usize,
    /// Blocks of the Transformer that reads the term.
    pub term_layers: usize,
    /// Its attention heads; they divide its width.
    pub term_heads: usize,
    /// How many vectors a term is read into.
    pub summaries: usize,
    /// The most tokens of a term.
    pub tokens: usize,
    /// How many tokens the visual features are cut into, such as one for each camera; it divides their width.
    pub feature_tokens: usize,
    /// A trainable eye, which sees images in the place of cached features.
    pub eye: Option<EyeConfig>,
    /// Whether it sees nothing, neither images nor cached features.
    pub blind: bool,
    /// Whether it reads the positions in states; if not, the caller sets these columns to zero. A plan says how far every target
    /// is, which holds anywhere.
    pub positions: bool,
    /// Fused or composed operations.
    pub form: Form,
}

/// Names and texts of the presets, from small to large.
pub const PRESETS: [(&str, &str); 3] = [
    ("tiny", include_str!("../../presets/decoder/tiny.toml")),
    ("small", include_str!("../../presets/decoder/small.toml")),
    ("paper", include_str!("../../presets/decoder/paper.toml")),
];

impl Default for DecoderConfig {
    fn default() -> Self {
        DecoderConfig {
            width: 384,
            layers: 4,
            heads: 6,
            chunk: 16,
            steps: 10,
            time_hidden: 1536,
            term_width: 288,
            term_layers: 2,
            term_heads: 6,
            summaries: 8,
            tokens: 96,
            feature_tokens: 1,
            eye: None,
            blind: false,
            positions: true,
            form: Form::default(),
        }
    }
}

impl DecoderConfig {
    /// The default with the differences of a preset.
    pub fn preset(name: &str) -> Result<DecoderConfig> {
        let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let names: Vec<String> = PRESETS.iter().map(|(known, _)| format!("`{known}`")).collect();
            return Err(Error::Config(format!("there is no preset `{name}`; there are {}", names.join(", "))));
        };
        toml::from_str(text).map_err(|error| Error::Config(format!("preset `{name}`: {error}")))
    }

    /// Every setting that cannot be, or nothing.
    pub fn validate(&self, widths: Widths) -> Result<()> {
        let mut wrong = Vec::new();
        let counts = [
            ("width", self.width),
            ("layers", self.layers),
            ("heads", self.heads),
            ("chunk", self.chunk),
            ("steps", self.steps),
            ("time_hidden", self.time_hidden),
            ("term_width", self.term_width),
            ("term_layers", self.term_layers),
            ("term_heads", self.term_heads),
            ("summaries", self.summaries),
            ("tokens", self.tokens),
            ("feature_tokens", self.feature_tokens),
        ];
        wrong.extend(counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")));
        for (width, heads) in [(self.width, self.heads), (self.term_width, self.term_heads)] {
            if heads != 0 && !width.is_multiple_of(heads) {
                wrong.push(format!("{heads} heads do not divide a width of {width}"));
            }
        }
        if !self.width.is_multiple_of(2) {
            wrong.push(format!("`width` is {}, which sines and cosines of the flow time cannot share", self.width));
        }
        wrong.extend(self.eye.iter().flat_map(EyeConfig::violations));
        if self.blind && self.eye.is_some() {
            wrong.push("a decoder with an eye is not `blind`".to_owned());
        }
        let features = if self.eye.is_none() && !self.blind { widths.features } else { 0 };
        if self.feature_tokens != 0 && !features.is_multiple_of(self.feature_tokens) {
            let tokens = self.feature_tokens;
            wrong.push(format!("{features} features cannot be cut into {tokens} equal tokens"));
        }
        if widths.actions == 0 {
            wrong.push("there are no actions to decode to".to_owned());
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Error::Config(format!("the decoder cannot be made: {}", wrong.join("; "))))
    }

    /// Tokens before the first action: summaries, cached features, state.
    pub fn prefix(&self, widths: Widths) -> usize {
        let features = if self.eye.is_none() { self.visual(widths).0 } else { 0 };
        self.summaries + features + usize::from(widths.states > 0)
    }

    /// Tokens that are read before the term: what an eye sees, and the state. Euler steps see summaries of them alone, so that
    /// an image with many tokens is read once for a chunk.
    pub fn read(&self, widths: Widths) -> usize {
        if self.eye.is_none() { 0 } else { self.visual(widths).0 + usize::from(widths.states > 0) }
    }

    /// Visual tokens, and the numbers in each.
    pub(super) fn visual(&self, widths: Widths) -> (usize, usize) {
        if self.blind { (0, 0) } else { visual_tokens(self.eye, self.feature_tokens, widths) }
    }

    /// How many numbers a model with these settings learns, without making it.
    pub fn parameters(&self, widths: Widths, symbols: usize) -> usize {
        let linear = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let input = |inputs: usize| if inputs > 0 { linear(inputs, self.width) } else { 0 };
        let transformer = |width: usize, layers: usize| layers * (12 * width * width + 13 * width) + 2 * width;
        let term = (symbols + self.summaries + self.read(widths) + self.tokens + self.summaries) * self.term_width
            + transformer(self.term_width, self.term_layers)
            + input(self.term_width);
        let inputs = input(self.visual(widths).1) + input(widths.states) + input(widths.actions);
        let seen_state = if widths.states > 0 { linear(widths.states, self.term_width) } else { 0 };
        let inputs = inputs + self.eye.map_or(0, |eye| eye.parameters(self.term_width) + seen_state);
        let time = linear(self.width, self.time_hidden) + linear(self.time_hidden, self.width);
        let places = (self.prefix(widths) + self.chunk) * self.width;
        term + inputs + time + places + transformer(self.width, self.layers) + linear(self.width, widths.actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DINOv2-base of one view, and LIBERO's states and actions.
    const LIBERO: Widths = Widths { features: 768, states: 8, actions: 7 };

    #[test]
    fn the_paper_preset_has_the_papers_size() {
        let paper = DecoderConfig::preset("paper").unwrap();
        assert_eq!(paper, DecoderConfig::default());
        // 4 blocks of 12·384² + 13·384, and a last norm.
        let blocks = 4 * 1_774_464 + 768;
        // 500 rows, 8 summaries, 104 places of width 288; 2 blocks of 12·288² + 13·288, a last norm; 288 → 384.
        let term = (500 + 8 + 104) * 288 + 2 * 999_072 + 576 + 110_976;
        // 768 → 384, 8 → 384, 7 → 384; 26 places.
        let inputs = 295_296 + 3_456 + 3_072 + 26 * 384;
        // 384 → 1536 → 384; 384 → 7.
        let (time, output) = (591_360 + 590_208, 2_695);
        let count = paper.parameters(LIBERO, 500);
        assert_eq!(count, blocks + term + inputs + time + output);
        assert_eq!(count, 10_880_647);
        assert!((count as f64 / 10.9e6 - 1.0).abs() < 0.01, "{count}");
    }

    #[test]
    fn presets_are_valid_and_have_the_sizes_that_they_say() {
        for ((name, _), size) in PRESETS.iter().zip([0.246e6, 2.83e6, 10.88e6]) {
            let config = DecoderConfig::preset(name).unwrap();
            config.validate(LIBERO).unwrap();
            let count = config.parameters(LIBERO, 500) as f64;
            assert!((count / size - 1.0).abs() < 0.02, "{name}: {count}");
        }
        let error = DecoderConfig::preset("large").unwrap_err().to_string();
        assert_eq!(error, "there is no preset `large`; there are `tiny`, `small`, `paper`");
    }

    #[test]
    fn all_violations_are_told_at_once() {
        let wrong = DecoderConfig { layers: 0, term_heads: 7, feature_tokens: 5, ..DecoderConfig::default() };
        let error = wrong.validate(Widths { features: 12, states: 1, actions: 0 }).unwrap_err().to_string();
        for part in ["`layers` is 0", "7 heads", "12 features cannot be cut into 5", "no actions"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(toml::from_str::<DecoderConfig>("wdith = 3").is_err());
    }
}
