//! How good skills are: against the true phases of frames, and against the actions they stand for.

use std::ops::Range;

use clustering::{Contingency, Points, boundary_f1};
use serde::{Deserialize, Serialize};

use crate::alphabet::SkillAlphabet;
use crate::encode::SkillCall;
use crate::episode::Episode;
use crate::error::SkillError;

/// How segments and their classes agree with true phases, frame by frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseScores {
    /// The share of frames whose class is mostly of their phase.
    pub purity: f64,
    /// Normalised mutual information of classes and phases.
    pub nmi: f64,
    /// The same, adjusted for chance.
    pub ami: f64,
    /// The adjusted Rand index.
    pub ari: f64,
    /// The share of cuts that are changes of phase.
    pub boundary_precision: f64,
    /// The share of changes of phase that are cuts.
    pub boundary_recall: f64,
    /// The harmonic mean of both.
    pub boundary_f1: f64,
    /// The same where only changes of class count as cuts.
    pub class_boundary_f1: f64,
    /// How far apart a cut and a change may be, in frames.
    pub tolerance: usize,
    /// Segments in all.
    pub segments: usize,
    /// Frames in all.
    pub frames: usize,
}

/// How close replayed actions are to those that were recorded. Grippers are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayScores {
    /// ‖replayed − recorded‖ / ‖recorded‖ over all rows and coordinates, with every segment as long as it was recorded: of commands, or
    /// with absolute control of positions relative to the episode's first one. Mean over groups.
    pub action_error: f64,
    /// Mean over segments of |steps of the skill − recorded steps| / recorded steps.
    pub duration_error: f64,
    /// Commands that were beyond what was commanded in the data.
    pub clamped: usize,
    /// Frames in all.
    pub frames: usize,
}

/// Scores segments and their classes against the true phase of each frame, for episodes.
///
/// # Errors
/// On different numbers of episodes, segments that do not cover one, and classes that are not one for each segment.
pub fn score_phases<P: AsRef<[i64]>>(
    phases: &[P],
    segments: &[Vec<Range<usize>>],
    classes: &[Vec<i64>],
    tolerance: usize,
) -> Result<PhaseScores, SkillError> {
    let (mut by_segment, mut by_class) = (Vec::new(), Vec::new());
    for (segments, classes) in segments.iter().zip(classes) {
        let numbers: Vec<i64> = (0..segments.len() as i64).collect();
        by_segment.push(frame_labels(segments, &numbers)?);
        by_class.push(frame_labels(segments, classes)?);
    }
    let cuts = boundary_f1(phases, &by_segment, tolerance)?;
    let changes = boundary_f1(phases, &by_class, tolerance)?;
    let truth: Vec<i64> = phases.iter().flat_map(|phases| phases.as_ref().iter().copied()).collect();
    let table = Contingency::new(&truth, &by_class.concat())?;
    Ok(PhaseScores {
        purity: table.purity(),
        nmi: table.nmi(),
        ami: table.ami(),
        ari: table.ari(),
        boundary_precision: cuts.precision,
        boundary_recall: cuts.recall,
        boundary_f1: cuts.f1,
        class_boundary_f1: changes.f1,
        tolerance,
        segments: segments.iter().map(Vec::len).sum(),
        frames: truth.len(),
    })
}

/// The label of each frame, from the labels of segments.
///
/// # Errors
/// On segments that leave a gap or overlap, and on too few or too many labels.
pub fn frame_labels(segments: &[Range<usize>], labels: &[i64]) -> Result<Vec<i64>, SkillError> {
    if segments.len() != labels.len() {
        return Err(SkillError::OtherLabels { found: labels.len(), wanted: segments.len() });
    }
    let mut frames = Vec::new();
    for (segment, &label) in segments.iter().zip(labels) {
        if segment.start != frames.len() || segment.end < segment.start {
            return Err(SkillError::NotCovered { found: segment.start, wanted: frames.len() });
        }
        frames.resize(segment.end, label);
    }
    Ok(frames)
}

/// Replays calls, one for each segment, and compares with what was recorded.
///
/// # Errors
/// On segments that do not cover their episode, and calls that are not one for each segment.
pub fn score_replay(
    alphabet: &SkillAlphabet,
    episodes: &[Episode],
    segments: &[Vec<Range<usize>>],
    calls: &[Vec<SkillCall>],
) -> Result<ReplayScores, SkillError> {
    if segments.len() != episodes.len() || calls.len() != episodes.len() {
        let (episodes, segments, calls) = (episodes.len(), segments.len(), calls.len());
        return Err(SkillError::OtherEpisodes { episodes, segments, calls });
    }
    let layout = &alphabet.layout;
    let mut errors = vec![[0.0_f64; 2]; layout.groups.len()];
    let (mut frames, mut counted, mut late, mut clamped) = (0, 0usize, 0.0, 0);
    for ((episode, segments), calls) in episodes.iter().zip(segments).zip(calls) {
        if segments.len() != calls.len() {
            return Err(SkillError::OtherLabels { found: calls.len(), wanted: segments.len() });
        }
        let covered = frame_labels(segments, &vec![0; segments.len()])?.len();
        if covered != episode.len() {
            return Err(SkillError::NotCovered { found: covered, wanted: episode.len() });
        }
        let start = alphabet.start(episode);
        let untimed = alphabet.expand_calls(calls, &start)?;
        for (segment, steps) in segments.iter().zip(&untimed.calls) {
            late += segment.len().abs_diff(steps.len()) as f64 / segment.len().max(1) as f64;
            counted += 1;
        }
        let expansion = alphabet.expand_timed(calls, &start, |at, _| segments[at].len())?;
        clamped += expansion.clamped;
        let rows: Vec<f32> = expansion.rows.iter().map(|one| *one as f32).collect();
        let replayed = Episode::replayed(layout, Points::new(&rows, expansion.width)?, episode)?;
        for (at, group) in layout.groups.iter().enumerate() {
            for dim in 0..group.dims() {
                let (recorded, found) = (episode.signal(group, at, dim), replayed.signal(group, at, dim));
                for (recorded, found) in recorded.iter().zip(found) {
                    errors[at][0] += (found - recorded).powi(2);
                    errors[at][1] += recorded.powi(2);
                }
            }
        }
        frames += episode.len();
    }
    let moved: Vec<f64> =
        errors.iter().filter(|error| error[1] > 0.0).map(|error| (error[0] / error[1]).sqrt()).collect();
    Ok(ReplayScores {
        action_error: moved.iter().sum::<f64>() / moved.len().max(1) as f64,
        duration_error: late / counted.max(1) as f64,
        clamped,
        frames,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alphabet::AlphabetConfig;
    use crate::encode::Argument;
    use crate::layout::ActionLayout;

    #[test]
    fn segments_that_are_the_phases_score_one() {
        let phases = [vec![0, 0, 0, 1, 1], vec![1, 1, 0, 0]];
        let segments = [vec![0..3, 3..5], vec![0..2, 2..4]];
        let classes = [vec![7, 4], vec![4, 7]];
        let scores = score_phases(&phases, &segments, &classes, 0).unwrap();
        assert_eq!((scores.purity, scores.nmi, scores.ari, scores.boundary_f1), (1.0, 1.0, 1.0, 1.0));
        let one = score_phases(&phases, &segments, &[vec![4, 4], vec![4, 4]], 0).unwrap();
        assert_eq!((one.boundary_f1, one.class_boundary_f1, one.segments, one.frames), (1.0, 0.0, 4, 9));
    }

    #[test]
    fn gaps_and_missing_labels_are_refused() {
        assert_eq!(frame_labels(&[0..2, 3..4], &[0, 1]), Err(SkillError::NotCovered { found: 3, wanted: 2 }));
        assert_eq!(frame_labels(&[0..2, 2..4], &[0]), Err(SkillError::OtherLabels { found: 1, wanted: 2 }));
    }

    #[test]
    fn a_constant_motion_replays_without_error() {
        let rows: Vec<f32> = std::iter::repeat_n([0.5, 0.0, -0.25, 0.0, 0.0, 0.0, -1.0], 16).flatten().collect();
        let mut layout = ActionLayout::libero();
        // Without states the position is the sum of the commands.
        layout.groups[0].states.clear();
        let episode = Episode::new(&layout, Points::new(&rows, 7).unwrap(), None).unwrap();
        let all = vec![std::iter::once(0..16).collect::<Vec<_>>()];
        let motion = episode.motion(&(0..16)).unwrap();
        let alphabet = SkillAlphabet::fit(&[motion], &[0], layout, &AlphabetConfig::default()).unwrap();
        let calls = alphabet.encode(&episode, &all[0], &[0]).unwrap();
        let episodes = [episode];
        let scores = score_replay(&alphabet, &episodes, &all, std::slice::from_ref(&calls)).unwrap();
        assert!(scores.action_error < 1e-6 && scores.duration_error == 0.0, "{scores:?}");
        let far =
            vec![SkillCall { arguments: vec![Argument::By(vec![12.0, 0.0, -4.0, 0.0, 0.0, 0.0])], ..calls[0].clone() }];
        let scores = score_replay(&alphabet, &episodes, &all, &[far]).unwrap();
        assert!((scores.action_error - 0.447).abs() < 1e-2 && scores.duration_error > 0.3, "{scores:?}");
        assert!(score_replay(&alphabet, &episodes, &all, &[vec![]]).is_err());
    }
}
