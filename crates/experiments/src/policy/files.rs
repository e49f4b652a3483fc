//! Where the policies of a run are, and the world model that estimates returns for them.

use std::path::{Path, PathBuf};

use candle_core::Device;
use models::training::checkpoint::MODEL;
use models::{Scales, WorldModel};

use crate::error::{Error, Result};
use crate::trained::{Phase, load_world_model};

/// The folder of the policy with the library, which is served if it is there.
pub(super) const WITH: &str = "with";

/// The folder of the policy to serve: the one that was asked for, with the library, or the last one of the loop.
pub(super) fn folder(run: &Path, arm: Option<&str>) -> Result<PathBuf> {
    let has = |folder: &Path, phase: Phase| folder.join(phase.name()).join(MODEL).is_file();
    let is_there = |folder: &PathBuf| has(folder, Phase::Emitter) && has(folder, Phase::Decoder);
    if let Some(arm) = arm {
        let names = run.read_dir().into_iter().flatten().flatten();
        let mut names: Vec<String> = names
            .filter(|entry| has(&entry.path(), Phase::Decoder))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        return match names.iter().any(|name| name == arm) {
            true => Ok(run.join(arm)),
            false => Err(Error::Format {
                path: run.to_owned(),
                reason: format!("has no trained policy `{arm}`; it has `{}`", names.join("`, `")),
            }),
        };
    }
    let last = (1..).map(|t| run.join(format!("t{t}"))).take_while(|folder| folder.is_dir()).filter(is_there).last();
    Some(run.join(WITH)).filter(is_there).or(last).ok_or_else(|| Error::Format {
        path: run.to_owned(),
        reason: "has no trained policy; finish the run with `--resume`".to_owned(),
    })
}

/// The world model of a run, if it estimates returns in the policy's scales.
pub(super) fn world(run: &Path, device: &Device, scales: &Scales) -> Option<(WorldModel, f64)> {
    let loaded = load_world_model(run, device).ok()?;
    let config = &loaded.record.model;
    (config.returns && loaded.record.scales == *scales).then_some((loaded.model, config.discount))
}
