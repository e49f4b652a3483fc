//! Demonstrations as sequences of skills and phases, with their programs written with the last library.

use std::ops::Range;

use compression::Library;
use report::{Episode, Span};

use super::overview::origin;
use crate::cycle::driver::World;
use crate::cycle::settings::RunSettings;
use crate::error::Result;
use crate::prepared::Prepared;

/// All demonstrations, in the order of the episodes.
pub(super) fn episodes(
    prepared: &Prepared,
    world: &World,
    library: &Library,
    settings: &RunSettings,
) -> Result<Vec<Episode>> {
    let columns = prepared.source.dataset.columns();
    let phases = columns.labels.get("phase");
    let compiled = world.corpus.compiled(library, settings.cycle.refactor.strategy)?;
    let programs = compiled.programs.texts();
    let count = world.demonstrations.all.len();
    let episode = |at: usize| {
        let demonstration = &world.demonstrations.all[at];
        let first = demonstration.frames.start;
        let (dataset, index) = origin(prepared, demonstration.episode);
        let skills = demonstration.segments.iter().zip(&world.corpus.calls[at]);
        Episode {
            index,
            dataset,
            task: columns.tasks[first],
            instruction: demonstration.instruction.clone(),
            frames: demonstration.frames.len() as u64,
            held_out: demonstration.held_out,
            skills: skills.map(|(frames, call)| span(frames, first, call.skill.0 as i64)).collect(),
            phases: phases.map(|phases| runs(&phases[demonstration.frames.clone()])).unwrap_or_default(),
            program: Some(format!("{}\n{}", programs[at], programs[count + at])),
        }
    };
    Ok((0..count).map(episode).collect())
}

/// Frames of a dataset within their episode, which starts at frame `first`.
fn span(frames: &Range<usize>, first: usize, label: i64) -> Span {
    Span { first: (frames.start - first) as u64, end: (frames.end - first) as u64, label }
}

/// Runs of equal labels.
fn runs(labels: &[i64]) -> Vec<Span> {
    let mut first = 0;
    let mut found = Vec::new();
    for run in labels.chunk_by(|one, next| one == next) {
        let end = first + run.len() as u64;
        found.push(Span { first, end, label: run[0] });
        first = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_labels_cover_the_episode() {
        let found = runs(&[2, 2, 0, 2]);
        let span = |first, end, label| Span { first, end, label };
        assert_eq!(found, [span(0, 2, 2), span(2, 3, 0), span(3, 4, 2)]);
        assert!(runs(&[]).is_empty());
    }

    #[test]
    fn spans_are_relative_to_the_episode() {
        assert_eq!(span(&(105..112), 100, 3), Span { first: 5, end: 12, label: 3 });
    }
}
