//! How good skills are: against the true phases of frames, and against the actions they stand for.

use std::ops::Range;

use clustering::{Contingency, Points, boundary_f1};
use serde::{Deserialize, Serialize};

use crate::alphabet::{SkillAlphabet, SkillCall};
use crate::error::SkillError;
use crate::profile::resampled;

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

/// How close replayed actions are to those that were recorded. The gripper is left out: it is a command, replayed as it
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayScores {
    /// ‖replayed − recorded‖ / ‖recorded‖ over all rows and axes, each segment on the recorded clock.
    pub action_error: f64,
    /// The distance between both paths of the first three axes, integrated from the start of the episode, as a share of
    /// the path's length: mean over frames and episodes.
    pub path_error: f64,
    /// The distance between their ends, in units of action times steps (LIBERO: 0.05 m): mean over episodes.
    pub end_error: f64,
    /// The largest of those.
    pub end_error_max: f64,
    /// Σ of twist that no command within the limits could give.
    pub lost: f64,
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
    episodes: &[Points<'_>],
    segments: &[Vec<Range<usize>>],
    calls: &[Vec<SkillCall>],
) -> Result<ReplayScores, SkillError> {
    let (mut squared, mut recorded_squared, mut path_error, mut end_error, mut lost) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut frames, mut end_error_max, mut counted) = (0, 0.0f64, 0usize);
    let columns = alphabet.layout.axes();
    if segments.len() != episodes.len() || calls.len() != episodes.len() {
        let (episodes, segments, calls) = (episodes.len(), segments.len(), calls.len());
        return Err(SkillError::OtherEpisodes { episodes, segments, calls });
    }
    for ((&episode, segments), calls) in episodes.iter().zip(segments).zip(calls) {
        if segments.len() != calls.len() {
            return Err(SkillError::OtherLabels { found: calls.len(), wanted: segments.len() });
        }
        alphabet.layout.check(episode)?;
        let covered = frame_labels(segments, &vec![0; segments.len()])?.len();
        if covered != episode.len() {
            return Err(SkillError::NotCovered { found: covered, wanted: episode.len() });
        }
        let expansion = alphabet.expand_calls(calls)?;
        lost += expansion.lost;
        let mut gap = vec![[0.0; 3]; episode.len()];
        let mut moved = vec![[0.0; 3]; episode.len()];
        for (axis, &column) in columns.iter().enumerate() {
            let (mut here, mut there) = (0.0, 0.0);
            for (segment, replayed) in segments.iter().zip(&expansion.calls) {
                let values: Vec<f64> =
                    replayed.clone().map(|row| expansion.rows[row * expansion.width + column]).collect();
                // On the recorded clock, with the same displacement.
                let stretch = values.len() as f64 / segment.len().max(1) as f64;
                for (row, value) in segment.clone().zip(resampled(&values, segment.len())) {
                    let (value, recorded) = (value * stretch, f64::from(episode.row(row)[column]));
                    squared += (value - recorded).powi(2);
                    recorded_squared += recorded * recorded;
                    here += recorded;
                    there += value;
                    if axis < 3 {
                        gap[row][axis] = there - here;
                        moved[row][axis] = recorded;
                    }
                }
            }
        }
        let norm = |vector: &[f64; 3]| vector.iter().map(|value| value * value).sum::<f64>().sqrt();
        let length: f64 = moved.iter().map(norm).sum();
        if let Some(last) = gap.last().filter(|_| length > 0.0) {
            path_error += gap.iter().map(norm).sum::<f64>() / gap.len() as f64 / length;
            end_error += norm(last);
            end_error_max = end_error_max.max(norm(last));
            counted += 1;
        }
        frames += episode.len();
    }
    let mean = |sum: f64| sum / counted.max(1) as f64;
    let action_error = if recorded_squared > 0.0 { (squared / recorded_squared).sqrt() } else { 0.0 };
    let (path_error, end_error) = (mean(path_error), mean(end_error));
    Ok(ReplayScores { action_error, path_error, end_error, end_error_max, lost, frames })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alphabet::{AlphabetConfig, SkillId};
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
        let episode = Points::new(&rows, 7).unwrap();
        let alphabet =
            SkillAlphabet::fit(&[episode], &[0], ActionLayout::default(), &AlphabetConfig::default()).unwrap();
        let call = alphabet.call(SkillId(0), episode).unwrap();
        let all = vec![std::iter::once(0..16).collect::<Vec<_>>()];
        let scores = score_replay(&alphabet, &[episode], &all, &[vec![call]]).unwrap();
        assert!(scores.action_error < 1e-9 && scores.path_error < 1e-9 && scores.end_error < 1e-9, "{scores:?}");
        let far = SkillCall { twist: [12.0, 0.0, -4.0, 0.0, 0.0, 0.0], ..call };
        let scores = score_replay(&alphabet, &[episode], &all, &[vec![far]]).unwrap();
        assert!((scores.end_error - 4.0).abs() < 1e-9 && scores.lost == 0.0);
        assert!(score_replay(&alphabet, &[episode], &all, &[vec![]]).is_err());
    }
}
