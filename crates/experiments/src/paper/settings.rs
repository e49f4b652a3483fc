//! The settings of the paper's experiments: those of a run, and a section `[paper]` for what no run has.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cycle::RunSettings;
use crate::error::{Error, Result};
use crate::settings::{Settings, WorldModelSettings, resolve};

/// What the experiments need besides the settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PaperSettings {
    /// Resamples of episodes for an interval (paper: 10 000).
    pub resamples: usize,
    /// Fragments of the probe whose rollouts are imagined, where D_φ itself is clustered; all of them if there are fewer.
    pub imagined: usize,
    /// The preset of the larger world model of `capacity`, of which shape and rate are taken (paper: 430 M).
    pub large: String,
    /// Steps of the bottlenecks of `mechanisms` (ours; the paper gives none).
    pub bottleneck_steps: u64,
    /// Steps of the amortizers of `cross-provider` (paper: 2000); those of the preset if it has fewer.
    pub provider_steps: u64,
    /// Demonstrations of each depth of RecursivePour (paper: 50).
    pub pour_demos: usize,
    /// Crossed pairs of each depth of RecursivePour.
    pub pour_pairs: usize,
    /// Steps of the world model of RecursivePour; those of the preset `pour` if none.
    pub pour_steps: Option<u64>,
}

impl Default for PaperSettings {
    fn default() -> Self {
        PaperSettings {
            resamples: 10_000,
            imagined: 1024,
            large: "m430".to_owned(),
            bottleneck_steps: 4000,
            provider_steps: 2000,
            pour_demos: 50,
            pour_pairs: 4096,
            pour_steps: None,
        }
    }
}

impl Settings for PaperSettings {
    const SECTION: &'static str = "paper";
    const SHAPE: Option<&'static str> = Some("");

    fn with_model(_: &str) -> Result<Self> {
        Ok(PaperSettings::default())
    }

    fn validate(&self) -> Result<()> {
        let counts = [
            ("resamples", self.resamples),
            ("imagined", self.imagined),
            ("pour_demos", self.pour_demos),
            ("pour_pairs", self.pour_pairs),
            ("bottleneck_steps", self.bottleneck_steps as usize),
            ("provider_steps", self.provider_steps as usize),
        ];
        let wrong: Vec<String> = counts
            .into_iter()
            .filter(|(_, count)| *count == 0)
            .map(|(name, _)| format!("`{name}` is 0, wanted 1 or more"))
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(Error::Settings(wrong)) }
    }
}

/// All that a preset says about the experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRun {
    /// Phases and loop.
    pub run: RunSettings,
    /// The larger world model.
    pub large: WorldModelSettings,
    /// The rest.
    pub paper: PaperSettings,
}

impl PaperRun {
    /// A preset with `section.key=value` applied to it.
    pub fn resolve(preset: &str, sets: &[String]) -> Result<PaperRun> {
        let prefix = format!("{}.", PaperSettings::SECTION);
        let (own, rest): (Vec<String>, Vec<String>) =
            sets.iter().cloned().partition(|set| set.trim().starts_with(&prefix));
        let own: Vec<String> = own.iter().map(|set| set.trim()[prefix.len()..].to_owned()).collect();
        let run = RunSettings::resolve(preset, &rest)?;
        let paper: PaperSettings = resolve(preset, &own)?;
        let named: WorldModelSettings = resolve(&paper.large, &[])?;
        // The larger model has the data, steps and batches of the other one: shape and rate alone differ.
        let mut large = run.world_model.clone();
        large.model = named.model;
        large.train.rate = large.train.rate.min(named.train.rate);
        Ok(PaperRun { run, large, paper })
    }

    /// What the results of cells depend on: all but how they are summarised.
    pub(super) fn of_cells(&self) -> Value {
        let mut value = json!(self);
        if let Some(paper) = value.pointer_mut("/paper").and_then(Value::as_object_mut) {
            paper.remove("resamples");
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::PRESETS;

    #[test]
    fn every_preset_has_settings_of_the_experiments() {
        for (name, _) in PRESETS {
            let found = PaperRun::resolve(name, &[]).unwrap();
            assert!(found.large.train.rate <= found.run.world_model.train.rate, "{name}");
            assert_eq!(found.large.train.steps, found.run.world_model.train.steps);
        }
        let m188 = PaperRun::resolve("m188", &["paper.resamples=7".to_owned()]).unwrap();
        assert_eq!((m188.paper.resamples, m188.large.train.rate), (7, 1e-4));
        assert_eq!(m188.of_cells(), PaperRun::resolve("m188", &[]).unwrap().of_cells(), "resamples change no cell");
        assert!(m188.large.model.width > m188.run.world_model.model.width);
    }

    #[test]
    fn settings_of_no_section_and_counts_of_zero_are_refused() {
        let sets = |text: &str| PaperRun::resolve("tiny", &[text.to_owned()]).unwrap_err().to_string();
        assert!(sets("paper.imagined=0").contains("`imagined` is 0"));
        assert!(sets("paper.resample=3").contains("did you mean `resamples`"));
        assert!(sets("papers.x=1").contains("in none of the sections"));
    }
}
