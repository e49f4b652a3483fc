//! Settings: the differences of a preset from the paper's run, then those of the user.
//!
//! A preset is a TOML file with the sections `[world_model]`, `[amortizer]`, `[wake]`, `[cycle]` and `[paper]`. In each, `preset` names
//! the preset of the model's shape that it starts from, and everything else is applied to it, then `--set train.steps=100`. A
//! name that is not a setting is refused together with the closest one that is.

use candle_core::Device;
use dataset::PositiveWindow;
use models::amortizer::{AmortizerConfig, Supervision};
use models::training::TrainConfig;
use models::{Precision, WorldModelConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::presets;

/// Names and texts of the presets, from small to large.
pub const PRESETS: [(&str, &str); 11] = [
    ("smoke", include_str!("../presets/smoke.toml")),
    ("demo", include_str!("../presets/demo.toml")),
    ("tiny", include_str!("../presets/tiny.toml")),
    ("pour", include_str!("../presets/pour.toml")),
    ("small", include_str!("../presets/small.toml")),
    ("laptop", include_str!("../presets/laptop.toml")),
    ("eye", include_str!("../presets/eye.toml")),
    ("gpu", include_str!("../presets/gpu.toml")),
    ("robot", include_str!("../presets/robot.toml")),
    ("m188", include_str!("../presets/m188.toml")),
    ("m430", include_str!("../presets/m430.toml")),
];

/// How phase A is run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldModelSettings {
    /// The model.
    pub model: WorldModelConfig,
    /// The trainer.
    pub train: TrainConfig,
    /// Fragments in a step, over all processes (paper: 256).
    pub batch: Batch,
    /// The precision of products.
    pub precision: PrecisionChoice,
    /// Whether there is a return head.
    pub returns: Returns,
    /// Which fragments a batch holds.
    pub batches: BatchOrder,
}

/// How phase C is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AmortizerSettings {
    /// The model.
    pub model: AmortizerConfig,
    /// The trainer.
    pub train: TrainConfig,
    /// Fragments in a step, over all processes (paper: 256).
    pub batch: Batch,
    /// The precision of products; `auto` is f32 with `kernel`, whose distances are differences of nearly equal numbers.
    pub precision: PrecisionChoice,
    /// What teaches it. The default is `kernel`, because the loop uses its distances (paper: `distillation`).
    pub supervision: Supervision,
    /// Which part of an episode pairs come from, with `episode_contrast`.
    pub positive_window: PositiveWindow,
    /// Training fragments whose distances are imagined for it, with `kernel`; all of them if there are fewer. The segments of
    /// the training demonstrations come in addition.
    pub lessons: usize,
}

impl Default for AmortizerSettings {
    fn default() -> Self {
        AmortizerSettings {
            model: AmortizerConfig::default(),
            train: TrainConfig::default(),
            batch: Batch::default(),
            precision: PrecisionChoice::default(),
            supervision: Supervision::Kernel,
            positive_window: PositiveWindow::default(),
            lessons: 4096,
        }
    }
}

impl AmortizerSettings {
    /// The precision of products on a device.
    pub fn precision_on(&self, device: &Device) -> Precision {
        match (self.supervision, self.precision) {
            (Supervision::Kernel, PrecisionChoice::Auto) => Precision::F32,
            (_, choice) => choice.on(device),
        }
    }
}

/// Fragments in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Batch(pub usize);

impl Default for Batch {
    fn default() -> Self {
        Batch(256)
    }
}

/// The precision of products, perhaps by the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrecisionChoice {
    /// bf16 on a GPU, f32 on a CPU.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
    /// bfloat16.
    Bf16,
}

impl PrecisionChoice {
    /// What it is on a device.
    pub fn on(self, device: &Device) -> Precision {
        match self {
            PrecisionChoice::Auto if device.is_cuda() => Precision::Bf16,
            PrecisionChoice::Auto | PrecisionChoice::F32 => Precision::F32,
            PrecisionChoice::Bf16 => Precision::Bf16,
        }
    }
}

/// Whether the world model learns rewards and returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Returns {
    /// If the dataset has rewards.
    #[default]
    Auto,
    /// As `model.returns` says.
    Model,
}

/// Which fragments a batch of phase A holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchOrder {
    /// As the contrastive term needs them; without one, all fragments once an epoch.
    #[default]
    Auto,
    /// Tasks equally often in every batch, however many fragments each has. A task of RecursivePour is a depth.
    ByTask,
}

/// What a preset has a section for.
pub trait Settings: Serialize + DeserializeOwned {
    /// The name of the section.
    const SECTION: &'static str;

    /// The shape to start from where a preset does not name one; without it a preset has to.
    const SHAPE: Option<&'static str> = None;

    /// The paper's run with a model of a preset's shape.
    fn with_model(preset: &str) -> Result<Self>;

    /// Every setting that cannot be, or nothing.
    fn validate(&self) -> Result<()>;
}

impl Settings for WorldModelSettings {
    const SECTION: &'static str = "world_model";

    fn with_model(preset: &str) -> Result<Self> {
        Ok(WorldModelSettings { model: WorldModelConfig::preset(preset)?, ..Default::default() })
    }

    fn validate(&self) -> Result<()> {
        self.model.validate()?;
        checked(&self.train, self.batch)
    }
}

impl Settings for AmortizerSettings {
    const SECTION: &'static str = "amortizer";

    fn with_model(preset: &str) -> Result<Self> {
        Ok(AmortizerSettings { model: AmortizerConfig::preset(preset)?, ..Default::default() })
    }

    fn validate(&self) -> Result<()> {
        self.model.validate()?;
        if self.lessons < 2 {
            return Err(Error::Settings(vec![format!("`lessons` is {}, wanted 2 or more", self.lessons)]));
        }
        checked(&self.train, self.batch)
    }
}

pub(crate) fn checked(train: &TrainConfig, batch: Batch) -> Result<()> {
    train.validate()?;
    match batch.0 {
        0 | 1 => Err(Error::Settings(vec![format!("`batch` is {}, wanted 2 or more", batch.0)])),
        _ => Ok(()),
    }
}

/// A preset (see [`presets`]), with `key=value` laid over it from left to right. A key may begin with the section's name.
pub fn resolve<S: Settings>(preset: &str, sets: &[String]) -> Result<S> {
    let damaged = |error: &dyn std::fmt::Display| Error::Settings(vec![format!("preset `{preset}`: {error}")]);
    let mut file = presets::merged(preset)?;
    let mut section = match file.remove(S::SECTION) {
        None => toml::Table::new(),
        Some(toml::Value::Table(section)) => section,
        Some(other) => return Err(damaged(&format!("`{}` is {}, wanted a section", S::SECTION, other.type_str()))),
    };
    let base = match (section.remove("preset"), S::SHAPE) {
        (Some(name), _) => S::with_model(name.as_str().unwrap_or_default())?,
        (None, Some(shape)) => S::with_model(shape)?,
        (None, None) => {
            let hint = format!("to lay it over another preset, write `small{}{preset}`", presets::AND);
            return Err(damaged(&format!("`{}.preset` is missing: the shape to start from; {hint}", S::SECTION)));
        }
    };
    let mut tree = serde_json::to_value(&base).map_err(|error| damaged(&error))?;
    let first = tree.clone();
    let known = leaves(&tree);
    let mut wrong = Vec::new();
    let mut lay = |written: &str, value: Value, wrong: &mut Vec<String>| {
        let key = written.strip_prefix(S::SECTION).and_then(|rest| rest.strip_prefix('.')).unwrap_or(written);
        let nested = key.rsplit('.').fold(value.clone(), |value, part| serde_json::json!({ part: value }));
        let mut alone = first.clone();
        lay_over(&mut alone, nested.clone(), String::new(), &known, &mut Vec::new());
        // Alone, so that a wrong value is told with its name, and all of them are.
        if let Err(error) = serde_json::from_value::<S>(alone) {
            return wrong.push(format!("`{written}` is {value}: {error}"));
        }
        lay_over(&mut tree, nested, String::new(), &known, wrong);
    };
    let over = serde_json::to_value(section).map_err(|error| damaged(&error))?;
    values(&over, String::new(), &mut |key, value| lay(key, value.clone(), &mut wrong));
    for set in sets {
        match set.split_once('=') {
            None => wrong.push(format!("`{set}` sets nothing; wanted `key=value`, such as `train.steps=100`")),
            Some((key, value)) => lay(key.trim(), parsed(value), &mut wrong),
        }
    }
    if !wrong.is_empty() {
        return Err(Error::Settings(wrong));
    }
    let settings: S = serde_json::from_value(tree).map_err(|error| Error::Settings(vec![error.to_string()]))?;
    settings.validate()?;
    Ok(settings)
}

/// Settings `section.key=value` by section, each without the section's name, in the order of `sections`.
///
/// # Errors
/// Names every setting that is in none of the sections.
pub fn by_section(sets: &[String], sections: &[&str]) -> Result<Vec<Vec<String>>> {
    let mut of = vec![Vec::new(); sections.len()];
    let mut stray = Vec::new();
    for set in sets {
        let within = |section: &&str| set.trim().strip_prefix(*section).and_then(|rest| rest.strip_prefix('.'));
        match sections.iter().enumerate().find_map(|(at, section)| within(section).map(|rest| (at, rest))) {
            Some((at, rest)) => of[at].push(rest.to_owned()),
            None => stray.push(format!(
                "`{set}` is in none of the sections {}; write `section.key=value`, such as `{}.train.steps=100`",
                sections.join(", "),
                sections.first().unwrap_or(&"section"),
            )),
        }
    }
    if stray.is_empty() { Ok(of) } else { Err(Error::Settings(stray)) }
}

/// A TOML value, or else the text itself: quotes around names would have to be quoted for a shell again.
fn parsed(text: &str) -> Value {
    let text = text.trim();
    let table = toml::from_str::<toml::Table>(&format!("value = {text}"));
    match table.ok().and_then(|mut table| table.remove("value")) {
        None => Value::String(text.to_owned()),
        Some(value) => serde_json::to_value(value).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

fn lay_over(tree: &mut Value, over: Value, path: String, known: &[String], wrong: &mut Vec<String>) {
    let (Value::Object(fields), Value::Object(news)) = (&mut *tree, &over) else {
        match (tree.is_object(), over.is_object()) {
            (true, false) => wrong.push(format!("`{path}` is a group of settings; set one of them")),
            // A number that need not be there; elsewhere `none` is a name like any other.
            _ if over == "none" && !tree.is_string() => *tree = Value::Null,
            _ => *tree = over,
        }
        return;
    };
    for (key, value) in news {
        // A group that need not be there has no fields until the first of them is set; their names were checked by then.
        let is_optional = known.contains(&path);
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match fields.get_mut(key) {
            Some(field) => lay_over(field, value.clone(), path, known, wrong),
            None if is_optional => {
                fields.insert(key.clone(), value.clone());
            }
            None => {
                let full = leaves(value).first().map_or(path.clone(), |rest| match rest.is_empty() {
                    true => path.clone(),
                    false => format!("{path}.{rest}"),
                });
                let closest = known.iter().min_by_key(|name| distance(name, &full));
                let meant = closest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                wrong.push(format!("there is no setting `{full}`{meant}"));
            }
        }
    }
}

/// The dotted names of all settings.
fn leaves(tree: &Value) -> Vec<String> {
    match tree {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| {
                leaves(value).into_iter().map(move |rest| match rest.is_empty() {
                    true => key.clone(),
                    false => format!("{key}.{rest}"),
                })
            })
            .collect(),
        _ => vec![String::new()],
    }
}

/// Calls with the dotted name and the value of each setting.
fn values(tree: &Value, name: String, call: &mut dyn FnMut(&str, &Value)) {
    match tree {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            values(value, if name.is_empty() { key.clone() } else { format!("{name}.{key}") }, call);
        }),
        _ => call(&name, tree),
    }
}

/// Levenshtein's.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (place, target) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *target);
            corner = row[place + 1];
            row[place + 1] = changed.min(corner + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::RunSettings;

    #[test]
    fn presets_are_valid() {
        for (name, _) in PRESETS {
            resolve::<WorldModelSettings>(name, &[]).unwrap();
            resolve::<AmortizerSettings>(name, &[]).unwrap();
        }
        let m188: WorldModelSettings = resolve("m188", &[]).unwrap();
        assert_eq!(m188.model, WorldModelConfig::default());
        assert_eq!((m188.train.steps, m188.batch.0, m188.train.rate), (4000, 256, 3e-4));
        assert_eq!(resolve::<WorldModelSettings>("m430", &[]).unwrap().train.rate, 1e-4);
    }

    #[test]
    fn several_settings_of_a_group_that_need_not_be_there() {
        let sets = ["wake.decoder.model.eye.side=32", "wake.decoder.model.eye.width=8"].map(str::to_owned);
        let eye = RunSettings::resolve("tiny", &sets).unwrap().wake.decoder.model.eye.unwrap();
        assert_eq!((eye.side, eye.width), (32, 8));
        let wrong = RunSettings::resolve("tiny", &["wake.decoder.model.eye.sides=32".to_owned()]).unwrap_err();
        assert!(wrong.to_string().contains("unknown field `sides`"), "{wrong}");
    }

    #[test]
    fn settings_are_laid_over_presets() {
        let sets = ["train.steps=7", "train.warmup=1", "model.contrast=none", "train.ema=0.9", "model.heads=2"];
        let settings: WorldModelSettings = resolve("tiny", &sets.map(str::to_owned)).unwrap();
        assert_eq!((settings.train.steps, settings.train.ema, settings.model.heads), (7, Some(0.9), 2));
        assert_eq!(settings.model.contrast, models::world_model::ContrastMode::None);
        let back: WorldModelSettings = resolve("tiny", &["train.ema=none".to_owned()]).unwrap();
        assert_eq!(back.train.ema, None);
    }

    #[test]
    fn unknown_settings_are_refused_all_at_once_with_the_closest() {
        let sets = ["train.step=7", "modell.layers=2", "train=3", "batch"].map(str::to_owned);
        let error = resolve::<WorldModelSettings>("tiny", &sets).unwrap_err().to_string();
        for part in [
            "there is no setting `train.step`; did you mean `train.steps`?",
            "there is no setting `modell.layers`; did you mean `model.layers`?",
            "`train` is a group of settings",
            "`batch` sets nothing",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let sets = ["train.steps=abc", "model.heads=-1", "precision=f16", "batch=8"].map(str::to_owned);
        let error = resolve::<WorldModelSettings>("tiny", &sets).unwrap_err().to_string();
        for part in
            ["`train.steps` is \"abc\": invalid type", "`model.heads` is -1: ", "`precision` is \"f16\": unknown"]
        {
            assert!(error.contains(part), "{error}");
        }
        let error = resolve::<WorldModelSettings>("large", &[]).unwrap_err().to_string();
        assert!(error.contains("there is no preset `large`; there are `smoke`, `demo`"), "{error}");
    }
}
