//! The settings of a whole run: one section for each phase, and one for the loop around them.

use compression::Strategy;
use models::decoder::DecoderConfig;
use models::emitter::EmitterConfig;
use models::world_model::ContrastMode;
use serde::{Deserialize, Serialize};
use skills::{AlphabetConfig, SegmentConfig};

use super::classes::ClassSettings;
use super::gates::GateSettings;
use super::segment_kernel::check_supervision;
use super::wake::{DecoderSettings, EmitterSettings, WakeSettings};
use crate::error::{Error, Result};
use crate::settings::{AmortizerSettings, BatchOrder, Settings, WorldModelSettings, by_section, checked, resolve};

/// The loop around the phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CycleSettings {
    /// T, outer iterations.
    pub iterations: u32,
    /// How episodes are cut.
    pub segments: SegmentConfig,
    /// How segments become classes.
    pub classes: ClassSettings,
    /// How classes become skills.
    pub alphabet: AlphabetConfig,
    /// How many segments the program at a frame covers, the one under way included.
    pub horizon_segments: usize,
    /// How a library grows.
    pub refactor: RefactorSettings,
    /// What a candidate must pass.
    pub gates: GateSettings,
}

/// How a library grows and shrinks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefactorSettings {
    /// K_max, the most entries that one iteration admits (paper: 8).
    pub max_admitted: usize,
    /// The most candidates that one iteration judges.
    pub max_judged: usize,
    /// The most parameters of an entry: three skills have two each, and what comes after them is one more.
    pub max_arity: usize,
    /// The most steps of one search.
    pub max_steps: u64,
    /// An entry is pruned if the posterior probability that its share of all calls pays for its description is below this;
    /// 0 prunes none by share. Entries without which programs and library are shorter are pruned in any case.
    pub min_probability: f64,
    /// Which matches of an entry become calls.
    pub strategy: Strategy,
}

impl Default for RefactorSettings {
    fn default() -> Self {
        RefactorSettings {
            max_admitted: 8,
            max_judged: 32,
            max_arity: 7,
            max_steps: 200_000,
            min_probability: 0.75,
            strategy: Strategy::default(),
        }
    }
}

impl Default for CycleSettings {
    fn default() -> Self {
        CycleSettings {
            iterations: 3,
            segments: SegmentConfig::default(),
            classes: ClassSettings::default(),
            alphabet: AlphabetConfig::default(),
            horizon_segments: 3,
            refactor: RefactorSettings::default(),
            gates: GateSettings::default(),
        }
    }
}

/// All sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// Phase A.
    pub world_model: WorldModelSettings,
    /// Phase C.
    pub amortizer: AmortizerSettings,
    /// Phase B.
    pub wake: WakeSettings,
    /// The loop.
    pub cycle: CycleSettings,
}

impl Settings for WakeSettings {
    const SECTION: &'static str = "wake";
    const SHAPE: Option<&'static str> = Some("paper");

    fn with_model(preset: &str) -> Result<Self> {
        Ok(WakeSettings {
            emitter: EmitterSettings { model: EmitterConfig::preset(preset)?, ..Default::default() },
            decoder: DecoderSettings { model: DecoderConfig::preset(preset)?, ..Default::default() },
            ..Default::default()
        })
    }

    fn validate(&self) -> Result<()> {
        checked(&self.emitter.train, self.emitter.batch)?;
        checked(&self.decoder.train, self.decoder.batch)?;
        let mut wrong = Vec::new();
        if self.judged == 0 || self.emitted == 0 || self.beam.width == 0 {
            wrong.push(
                "`judged`, `emitted` and `beam.width` are how much is looked at; none of them can be 0".to_owned(),
            );
        }
        if self.beam.terms != 2 {
            wrong.push(format!("`beam.terms` is {}, wanted 2: a task and a motion", self.beam.terms));
        }
        if wrong.is_empty() { Ok(()) } else { Err(Error::Settings(wrong)) }
    }
}

impl Settings for CycleSettings {
    const SECTION: &'static str = "cycle";
    const SHAPE: Option<&'static str> = Some("");

    fn with_model(_: &str) -> Result<Self> {
        Ok(CycleSettings::default())
    }

    fn validate(&self) -> Result<()> {
        let wrong: Vec<String> = [
            (self.iterations == 0, "`iterations` is 0, wanted 1 or more".to_owned()),
            (self.classes.classes == 0, "`classes.classes` is 0, wanted 1 or more".to_owned()),
            (self.horizon_segments == 0, "`horizon_segments` is 0, wanted 1 or more".to_owned()),
            (
                !(0.0..=1.0).contains(&self.refactor.min_probability),
                format!("`refactor.min_probability` is {}, wanted 0 to 1", self.refactor.min_probability),
            ),
            (
                self.classes.horizon == 0 || self.classes.starts == 0 || self.classes.samples == 0,
                "`classes.horizon`, `classes.starts` and `classes.samples` are how much is imagined; none can be 0"
                    .to_owned(),
            ),
            (
                !(self.classes.w_r >= 0.0 && self.classes.w_e >= 0.0),
                "`classes.w_r` and `classes.w_e` are weights of a distance, wanted 0 or more".to_owned(),
            ),
        ]
        .into_iter()
        .filter_map(|(is_wrong, reason)| is_wrong.then_some(reason))
        .chain(self.gates.problems())
        .collect();
        if wrong.is_empty() { Ok(()) } else { Err(Error::Settings(wrong)) }
    }
}

/// The sections of a preset, in the order of [`RunSettings`].
const SECTIONS: [&str; 4] =
    [WorldModelSettings::SECTION, AmortizerSettings::SECTION, WakeSettings::SECTION, CycleSettings::SECTION];

impl RunSettings {
    /// A preset with `section.key=value` applied to it.
    pub fn resolve(preset: &str, sets: &[String]) -> Result<RunSettings> {
        RunSettings::resolve_some(preset, sets, &SECTIONS)
    }

    /// The same where only the sections of phase B may be changed.
    pub fn resolve_wake(preset: &str, sets: &[String]) -> Result<RunSettings> {
        RunSettings::resolve_some(
            preset,
            sets,
            &[AmortizerSettings::SECTION, WakeSettings::SECTION, CycleSettings::SECTION],
        )
    }

    fn resolve_some(preset: &str, sets: &[String], allowed: &[&str]) -> Result<RunSettings> {
        by_section(sets, allowed)?;
        let of = by_section(sets, &SECTIONS)?;
        let settings = RunSettings {
            world_model: resolve(preset, &of[0])?,
            amortizer: resolve(preset, &of[1])?,
            wake: resolve(preset, &of[2])?,
            cycle: resolve(preset, &of[3])?,
        };
        check_supervision(settings.cycle.classes.kernel, &settings.amortizer)?;
        Ok(settings)
    }

    /// The labels that training uses, in words; `None` if it uses none.
    pub fn labels(&self) -> Option<String> {
        let mut used = Vec::new();
        if self.world_model.model.contrast == ContrastMode::Supcon {
            used.push("the world model's contrast uses `task_index` (supcon)");
        }
        if self.world_model.batches == BatchOrder::ByTask {
            used.push("the world model's batches are balanced by `task_index`");
        }
        if used.is_empty() { None } else { Some(used.join("; ")) }
    }
}
