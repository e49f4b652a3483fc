//! The head of the page: what was run, on which data, and with which labels.

use std::collections::BTreeSet;

use dataset::EpisodeId;
use report::{DatasetInfo, Run};

use super::ReportContext;
use crate::prepared::Prepared;
use crate::source::SourcePart;

/// What was run, and how to run it again.
pub(super) fn run(context: &ReportContext<'_>) -> Run {
    let ReportContext { prepared, settings, summary, .. } = context;
    let config = toml::to_string(settings).ok();
    let hash = models::noise::mix(0, config.as_deref().unwrap_or_default().as_bytes());
    Run {
        title: title(&summary.dataset, settings.cycle.iterations),
        datasets: datasets(prepared),
        presets: vec![context.preset.to_owned()],
        seed: context.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: context.device.to_owned(),
        labels: labels(summary.labels.as_deref()),
        seconds: context.seconds,
        command: context.command.to_owned(),
        config_hash: format!("{hash:016x}"),
        config,
    }
}

/// The datasets of the run, in the order in which they were given.
fn datasets(prepared: &Prepared) -> Vec<DatasetInfo> {
    let dataset = &prepared.source.dataset;
    let info = |part: &SourcePart| {
        let spans = &dataset.spans()[part.episodes.clone()];
        let count = |of: &[EpisodeId]| of.iter().filter(|episode| part.episodes.contains(&episode.at())).count() as u64;
        let tasks: BTreeSet<_> = spans.iter().map(|span| span.task).collect();
        DatasetInfo {
            name: part.name.clone(),
            episodes: count(&prepared.split.train),
            held_out_episodes: count(&prepared.split.held_out),
            frames: spans.iter().map(|span| span.frames.len() as u64).sum(),
            tasks: tasks.len() as u64,
            fps: dataset.info().fps,
            reward: prepared.has_rewards(),
            pictures: !dataset.roles().cameras.is_empty(),
        }
    };
    prepared.source.parts.iter().map(info).collect()
}

/// Where an episode is from: the index of its dataset among [`datasets`], and its number there. The sections about episodes,
/// skills and the map all ask here.
pub(super) fn origin(prepared: &Prepared, episode: EpisodeId) -> (u64, u64) {
    let origin = prepared.source.origin(episode);
    (origin.dataset as u64, u64::from(origin.episode.0))
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

/// Whether training used labels. Phases and tasks that only evaluate do not count.
fn labels(used: Option<&str>) -> String {
    used.map_or_else(|| "no labels were used".to_owned(), |used| format!("trained with labels: {used}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_named_where_they_are_used() {
        assert_eq!(labels(None), "no labels were used");
        assert_eq!(labels(Some("`task_index` (supcon)")), "trained with labels: `task_index` (supcon)");
    }

    #[test]
    fn titles_count() {
        assert_eq!(title("libero_goal", 1), "libero_goal: 1 outer iteration");
        assert_eq!(title("libero_goal", 3), "libero_goal: 3 outer iterations");
    }
}
