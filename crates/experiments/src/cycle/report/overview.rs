//! The head of the page: what was run, on which data, and with which labels.

use dataset::EpisodeId;
use models::WorldModelConfig;
use models::world_model::ContrastMode;
use report::{DatasetInfo, Run};

use super::ReportContext;
use crate::cycle::summary::RunSummary;
use crate::prepared::Prepared;
use crate::settings::Mode;

/// What was run, and how to run it again.
pub(super) fn run(context: &ReportContext<'_>) -> Run {
    let ReportContext { prepared, settings, summary, .. } = context;
    let config = toml::to_string(settings).ok();
    let hash = models::noise::mix(0, config.as_deref().unwrap_or_default().as_bytes());
    Run {
        title: title(&summary.dataset, settings.cycle.iterations),
        datasets: datasets(prepared, summary),
        presets: vec![context.preset.to_owned()],
        seed: context.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: context.device.to_owned(),
        labels: labels_used(&settings.world_model.model, settings.amortizer.supervision),
        seconds: context.seconds,
        command: context.command.to_owned(),
        config_hash: format!("{hash:016x}"),
        config,
    }
}

/// The datasets of the run, in the order in which they were given.
fn datasets(prepared: &Prepared, summary: &RunSummary) -> Vec<DatasetInfo> {
    let dataset = &prepared.source.dataset;
    let (training, held_out) = summary.demonstrations;
    vec![DatasetInfo {
        name: summary.dataset.clone(),
        episodes: training as u64,
        held_out_episodes: held_out as u64,
        frames: dataset.frames() as u64,
        tasks: dataset.tasks().len() as u64,
        fps: dataset.info().fps,
        reward: prepared.has_rewards(),
        pictures: !dataset.roles().cameras.is_empty(),
    }]
}

/// Where an episode is from: the index of its dataset among [`datasets`], and its number there. The sections about episodes,
/// skills and the map all ask here.
pub(super) fn origin(episode: EpisodeId) -> (u64, u64) {
    (0, u64::from(episode.0))
}

/// Names of phases, by label; numbers where there are no names.
pub(super) fn phase_names(prepared: &Prepared) -> Vec<String> {
    let dataset = &prepared.source.dataset;
    let Some(phases) = dataset.columns().labels.get("phase") else { return Vec::new() };
    let most = phases.iter().copied().max().unwrap_or(-1);
    let names = dataset.label_names("phase").unwrap_or_default();
    (0..=most).map(|at| names.get(at as usize).cloned().unwrap_or_else(|| format!("phase {at}"))).collect()
}

fn title(dataset: &str, iterations: u32) -> String {
    let noun = if iterations == 1 { "outer iteration" } else { "outer iterations" };
    format!("{dataset}: {iterations} {noun}")
}

/// Which models were trained with labels. Phases and tasks that only evaluate do not count.
fn labels_used(world_model: &WorldModelConfig, amortizer: Mode) -> String {
    let mut used = Vec::new();
    if world_model.contrast == ContrastMode::Supcon && world_model.contrast_weight > 0.0 {
        used.push("the world model (supcon)");
    }
    if amortizer == Mode::TaskIndex {
        used.push("the amortizer");
    }
    match used.is_empty() {
        true => "no labels were used".to_owned(),
        false => format!("trained with task_index labels: {}", used.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_named_with_the_models_that_use_them() {
        let free = WorldModelConfig { contrast: ContrastMode::EpisodeContrast, ..WorldModelConfig::default() };
        let supervised = WorldModelConfig { contrast: ContrastMode::Supcon, ..free };
        let unweighted = WorldModelConfig { contrast_weight: 0.0, ..supervised };
        assert_eq!(labels_used(&free, Mode::Distillation), "no labels were used");
        assert_eq!(labels_used(&unweighted, Mode::EpisodeContrast), "no labels were used");
        let world_model = "trained with task_index labels: the world model (supcon)";
        assert_eq!(labels_used(&supervised, Mode::Distillation), world_model);
        assert_eq!(labels_used(&free, Mode::TaskIndex), "trained with task_index labels: the amortizer");
        assert_eq!(labels_used(&supervised, Mode::TaskIndex), format!("{world_model} and the amortizer"));
    }

    #[test]
    fn titles_count() {
        assert_eq!(title("libero_goal", 1), "libero_goal: 1 outer iteration");
        assert_eq!(title("libero_goal", 3), "libero_goal: 3 outer iterations");
    }
}
