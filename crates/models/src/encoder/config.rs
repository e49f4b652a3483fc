//! What `config.json` of a DINOv2 says.

use serde_json::{Map, Value};

/// No side, width or count in a configuration is larger; DINOv2's own stay far below.
const MAX: u64 = 1 << 14;

/// The shape of a DINOv2, from the keys of Hugging Face's `config.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct DinoV2Config {
    /// D, the width of a token (`hidden_size`): 384 small, 768 base, 1024 large.
    pub hidden_size: usize,
    /// Layers of the Transformer (`num_hidden_layers`).
    pub layers: usize,
    /// Heads of attention (`num_attention_heads`), which divide D.
    pub heads: usize,
    /// The width between the two products of the MLP: `mlp_ratio` · D.
    pub mlp_width: usize,
    /// The side of a patch in pixels (`patch_size`).
    pub patch_size: usize,
    /// The side in pixels of the pictures that the position embeddings are for (`image_size`).
    pub image_size: usize,
    /// ε of all LayerNorms (`layer_norm_eps`).
    pub layer_norm_eps: f64,
    /// Whether queries, keys and values have biases (`qkv_bias`).
    pub qkv_bias: bool,
}

impl DinoV2Config {
    /// Reads a configuration, or lists all that is wrong with it. Keys that change nothing here, such as rates of dropout,
    /// are passed over; keys that would change the features and are not supported are refused.
    pub fn parse(text: &[u8]) -> Result<DinoV2Config, Vec<String>> {
        let keys = match serde_json::from_slice::<Value>(text) {
            Ok(Value::Object(keys)) => keys,
            Ok(_) => return Err(vec!["it is no JSON object".to_string()]),
            Err(error) => return Err(vec![format!("it is no JSON: {error}")]),
        };
        let mut keys = Keys { keys, problems: Vec::new() };
        keys.must_be("model_type", &Value::from("dinov2"), None);
        keys.must_be("hidden_act", &Value::from("gelu"), Some("gelu"));
        keys.must_be("num_channels", &Value::from(3), Some("3"));
        keys.must_be("use_swiglu_ffn", &Value::from(false), Some("false"));
        keys.must_be("num_register_tokens", &Value::from(0), Some("0"));
        let hidden_size = keys.size("hidden_size");
        let ratio = keys.number("mlp_ratio", 4.0);
        let config = DinoV2Config {
            hidden_size,
            layers: keys.size("num_hidden_layers"),
            heads: keys.size("num_attention_heads"),
            mlp_width: (hidden_size as f64 * ratio) as usize,
            patch_size: keys.size("patch_size"),
            image_size: keys.size("image_size"),
            layer_norm_eps: keys.number("layer_norm_eps", 1e-6),
            qkv_bias: keys.flag("qkv_bias", true),
        };
        let mut problems = keys.problems;
        if problems.is_empty() {
            problems = config.impossible();
        }
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// What people call it, such as `dinov2-small`.
    pub fn name(&self) -> String {
        match (self.hidden_size, self.layers) {
            (384, 12) => "dinov2-small".to_string(),
            (768, 12) => "dinov2-base".to_string(),
            (1024, 24) => "dinov2-large".to_string(),
            (width, layers) => format!("dinov2-{width}x{layers}"),
        }
    }

    /// The side of the grid of position embeddings, in patches.
    pub fn grid(&self) -> usize {
        self.image_size / self.patch_size
    }

    fn impossible(&self) -> Vec<String> {
        let DinoV2Config { hidden_size, heads, patch_size, image_size, mlp_width, layer_norm_eps, .. } = *self;
        let mut problems = Vec::new();
        if hidden_size % heads != 0 {
            problems.push(format!("`hidden_size` {hidden_size} is no multiple of `num_attention_heads` {heads}"));
        }
        if image_size < patch_size {
            problems.push(format!("`image_size` {image_size} is less than `patch_size` {patch_size}"));
        }
        if mlp_width == 0 || mlp_width > MAX as usize * 4 {
            problems.push(format!("`mlp_ratio` makes an MLP of width {mlp_width}"));
        }
        if !(0.0..1.0).contains(&layer_norm_eps) {
            problems.push(format!("`layer_norm_eps` is {layer_norm_eps}, not in [0, 1)"));
        }
        problems
    }
}

/// The keys of a file, and what is wrong with those that were asked for.
struct Keys {
    keys: Map<String, Value>,
    problems: Vec<String>,
}

impl Keys {
    /// A key whose other values are not supported. `absent` is what its absence means, if it may be absent.
    fn must_be(&mut self, key: &str, wanted: &Value, absent: Option<&str>) {
        let problem = match self.keys.get(key) {
            None if absent.is_some() => return,
            None => format!("`{key}` is missing, and must be {wanted}"),
            Some(found) if found == wanted => return,
            Some(found) => format!("`{key}` is {found}, and only {wanted} is supported"),
        };
        self.problems.push(problem);
    }

    /// A positive size; of a list of two equal ones, that one. Zero has no reader: there is a problem then.
    fn size(&mut self, key: &str) -> usize {
        let found = match self.keys.get(key) {
            Some(Value::Array(sides)) if sides.len() == 2 && sides[0] == sides[1] => sides.first(),
            found => found,
        };
        match found.map(Value::as_u64) {
            Some(Some(size)) if (1..=MAX).contains(&size) => size as usize,
            _ => {
                let found = self.keys.get(key).map_or("missing".to_string(), Value::to_string);
                self.problems.push(format!("`{key}` is {found}, not a number from 1 to {MAX}"));
                0
            }
        }
    }

    fn number(&mut self, key: &str, absent: f64) -> f64 {
        match self.keys.get(key).map(Value::as_f64) {
            None => absent,
            Some(Some(number)) => number,
            Some(None) => {
                self.problems.push(format!("`{key}` is {}, not a number", self.keys[key]));
                absent
            }
        }
    }

    fn flag(&mut self, key: &str, absent: bool) -> bool {
        match self.keys.get(key).map(Value::as_bool) {
            None => absent,
            Some(Some(flag)) => flag,
            Some(None) => {
                self.problems.push(format!("`{key}` is {}, not true or false", self.keys[key]));
                absent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"model_type": "dinov2", "hidden_size": 384, "num_hidden_layers": 12,
        "num_attention_heads": 6, "mlp_ratio": 4, "patch_size": 14, "image_size": [518, 518], "torch_dtype": "float16"}"#;

    #[test]
    fn keys_that_may_be_absent_are_as_in_transformers() {
        let config = DinoV2Config::parse(SMALL.as_bytes()).unwrap();
        assert_eq!(config.name(), "dinov2-small");
        assert_eq!((config.mlp_width, config.grid(), config.qkv_bias, config.layer_norm_eps), (1536, 37, true, 1e-6));
    }

    #[test]
    fn everything_that_is_not_supported_is_named() {
        let giant = SMALL.replace("\"mlp_ratio\": 4", "\"use_swiglu_ffn\": true, \"num_register_tokens\": 4");
        let giant = giant.replace("\"dinov2\"", "\"dinov2_with_registers\"").replace("384", "0");
        let problems = DinoV2Config::parse(giant.as_bytes()).unwrap_err();
        let keys = ["`model_type`", "`use_swiglu_ffn`", "`num_register_tokens`", "`hidden_size`"];
        assert_eq!(problems.len(), keys.len(), "{problems:?}");
        assert!(problems.iter().zip(keys).all(|(problem, key)| problem.starts_with(key)), "{problems:?}");
        let odd = SMALL.replace("\"num_attention_heads\": 6", "\"num_attention_heads\": 7");
        assert_eq!(DinoV2Config::parse(odd.as_bytes()).unwrap_err().len(), 1);
        assert!(DinoV2Config::parse(b"[]").is_err() && DinoV2Config::parse(b"{").is_err());
    }
}
