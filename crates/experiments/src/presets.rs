//! Presets as files of differences, and several of them as one.
//!
//! A preset is given by name, by path, or as several joined by `+`, such as `m188+fast-wake`. Files are laid over each other from
//! left to right: what a later one says replaces what an earlier one said, and what it does not mention stays.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::settings::PRESETS;

/// Parts of presets, which go after a preset that names the models' shapes.
pub const PARTS: [(&str, &str); 1] = [("fast-wake", include_str!("../presets/parts/fast-wake.toml"))];

/// Joins the names of several presets.
pub const AND: char = '+';

/// The names in a joined name. A path may hold the character.
pub fn names(preset: &str) -> Vec<&str> {
    match embedded(preset).is_some() || Path::new(preset).is_file() {
        true => vec![preset],
        false => preset.split(AND).collect(),
    }
}

/// The text of one preset, by name or by path.
///
/// # Errors
/// If there is none, or the file cannot be read.
pub fn text(name: &str) -> Result<String> {
    match embedded(name) {
        Some(text) => Ok(text.to_owned()),
        None if Path::new(name).is_file() => fs::read_to_string(name).map_err(Error::file(Path::new(name))),
        None => {
            let known: Vec<String> = PRESETS.iter().chain(&PARTS).map(|(name, _)| format!("`{name}`")).collect();
            let known = format!("there are {}, and paths of TOML files", known.join(", "));
            Err(Error::Settings(vec![format!("there is no preset `{name}`; {known}")]))
        }
    }
}

/// What a preset is for: the comment that its file begins with.
pub fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The sections of a preset, or of several joined by `+`.
///
/// # Errors
/// If a name is none, or a file is not TOML.
pub(crate) fn merged(preset: &str) -> Result<toml::Table> {
    let mut all = toml::Table::new();
    for name in names(preset) {
        let table: toml::Table =
            toml::from_str(&text(name)?).map_err(|error| Error::Settings(vec![format!("preset `{name}`: {error}")]))?;
        lay(&mut all, table);
    }
    Ok(all)
}

fn embedded(name: &str) -> Option<&'static str> {
    PRESETS.iter().chain(&PARTS).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn lay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => lay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldModelSettings;
    use crate::cycle::RunSettings;
    use crate::settings::resolve;

    #[test]
    fn presets_compose_from_left_to_right() {
        let paper = RunSettings::resolve("m188", &[]).unwrap();
        let both = RunSettings::resolve("m188+fast-wake", &[]).unwrap();
        assert_eq!(both.world_model, paper.world_model);
        assert!(both.wake.emitter.train.steps < paper.wake.emitter.train.steps);
        assert_eq!(both.wake.emitter.model, paper.wake.emitter.model);
        let last: WorldModelSettings = resolve("m188+tiny", &[]).unwrap();
        assert_eq!(last.model, resolve::<WorldModelSettings>("tiny", &[]).unwrap().model);
        let set = ["wake.emitter.train.steps=7", "wake.emitter.train.warmup=1"].map(str::to_owned);
        assert_eq!(RunSettings::resolve("m188+fast-wake", &set).unwrap().wake.emitter.train.steps, 7);
    }

    #[test]
    fn a_part_alone_and_names_that_are_none_are_explained() {
        let error = RunSettings::resolve("fast-wake", &[]).unwrap_err().to_string();
        assert!(error.contains("`world_model.preset` is missing") && error.contains("`small+fast-wake`"), "{error}");
        let error = RunSettings::resolve("m188+fast", &[]).unwrap_err().to_string();
        assert!(error.starts_with("there is no preset `fast`; there are `smoke`, `demo`"), "{error}");
    }

    #[test]
    fn files_say_what_they_are_for() {
        for (name, text) in PRESETS.iter().chain(&PARTS) {
            assert!(about(text).len() > 20, "{name}");
        }
        assert_eq!(about("# One\n# two.\n[wake]\n# three"), "One two.");
    }
}
