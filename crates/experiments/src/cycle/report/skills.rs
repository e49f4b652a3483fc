//! Skills with their most common phase, mean motion and pictures of typical segments.

use std::collections::BTreeMap;
use std::ops::Range;

use dataset::{CameraId, FrameIndex, FrameOptions, FrameReader};
use report::{Example, Picture, Skill};

use super::overview::origin;
use crate::cycle::annotation::named_skills;
use crate::cycle::driver::World;
use crate::error::Result;
use crate::prepared::Prepared;

/// Examples of a skill, and pictures of an example.
const EXAMPLES: usize = 3;
const PICTURES: usize = 5;

/// The quality of pictures, of 100.
const QUALITY: u8 = 80;

/// A segment of a demonstration: the place of the demonstration, and frames of the dataset.
type Member = (usize, Range<usize>);

/// All skills of the alphabet, in its order, and why pictures are missing, if they are. A run does not fail for want of them.
pub(super) fn skills(prepared: &Prepared, world: &World) -> Result<(Vec<Skill>, Option<String>)> {
    let dataset = &prepared.source.dataset;
    let phases = dataset.columns().labels.get("phase");
    let robot = prepared.robot();
    let names = named_skills(prepared, &world.demonstrations, &world.corpus);
    let reader = FrameReader::new(dataset, FrameOptions::default());
    let mut no_pictures = prepared.source.missing_pictures();
    let mut found = Vec::new();
    for (skill, members) in world.corpus.alphabet.skills.iter().zip(members(world)) {
        let ranges: Vec<Range<usize>> = members.iter().map(|(_, frames)| frames.clone()).collect();
        let frames: usize = ranges.iter().map(Range::len).sum();
        let phase = phases.and_then(|phases| most_common(ranges.iter().flat_map(|one| &phases[one.clone()]).copied()));
        let examples = typical(&members).into_iter();
        found.push(Skill {
            name: skill.name.clone(),
            readable: names.get(found.len()).and_then(|one| one.motion.words()),
            size: members.len() as u64,
            mean_length: frames as f64 / members.len().max(1) as f64,
            purity: phase.map(|(_, share)| share),
            main_phase: phase.map(|(phase, _)| phase),
            displacement: {
                let moved: Option<Vec<[f64; 3]>> = ranges.iter().map(|one| robot.displacement(dataset, one)).collect();
                let moved = moved.filter(|moved| !moved.is_empty());
                moved.map(|moved| [0, 1, 2].map(|at| moved.iter().map(|by| by[at]).sum::<f64>() / moved.len() as f64))
            },
            gripper: names.get(found.len()).and_then(|one| one.motion.opening_share),
            examples: examples
                .map(|(at, frames)| example(prepared, world, &reader, at, &frames, &mut no_pictures))
                .collect(),
        });
    }
    Ok((found, no_pictures))
}

/// Segments of each skill, in the order of the demonstrations.
fn members(world: &World) -> Vec<Vec<Member>> {
    let mut members = vec![Vec::new(); world.corpus.alphabet.skills.len()];
    for (at, (demonstration, calls)) in world.demonstrations.all.iter().zip(&world.corpus.calls).enumerate() {
        for (segment, call) in demonstration.segments.iter().zip(calls) {
            members[call.skill.0].push((at, segment.clone()));
        }
    }
    members
}

/// The most common label, the lowest of equally common ones, and its share.
fn most_common(labels: impl Iterator<Item = i64>) -> Option<(i64, f64)> {
    let mut counts = BTreeMap::<i64, usize>::new();
    labels.for_each(|label| *counts.entry(label).or_default() += 1);
    let all: usize = counts.values().sum();
    let (label, most) = counts.iter().max_by_key(|(label, most)| (**most, -**label))?;
    Some((*label, *most as f64 / all as f64))
}

/// Segments of a length near the median, from different demonstrations.
fn typical(members: &[Member]) -> Vec<Member> {
    let mut by_length: Vec<&Member> = members.iter().collect();
    by_length.sort_by_key(|(at, frames)| (frames.len(), *at, frames.start));
    let middle = by_length.len() / 2;
    let mut nearest: Vec<&Member> = Vec::new();
    for distance in 0..by_length.len() {
        for place in [middle.checked_sub(distance + 1), Some(middle + distance)].into_iter().flatten() {
            if let Some(one) = by_length.get(place).filter(|one| nearest.iter().all(|taken| taken.0 != one.0)) {
                nearest.push(one);
            }
        }
        if nearest.len() >= EXAMPLES {
            break;
        }
    }
    nearest.into_iter().take(EXAMPLES).cloned().collect()
}

/// Frames of a range that are shown, the first and the last among them.
fn shown_frames(frames: &Range<usize>) -> Vec<usize> {
    let last = frames.len().saturating_sub(1);
    (0..PICTURES).map(|place| frames.start + place * last / (PICTURES - 1)).collect()
}

fn example(
    prepared: &Prepared,
    world: &World,
    reader: &FrameReader<'_>,
    at: usize,
    frames: &Range<usize>,
    no_pictures: &mut Option<String>,
) -> Example {
    let demonstration = &world.demonstrations.all[at];
    let first = demonstration.frames.start;
    let (dataset, episode) = origin(prepared, demonstration.episode);
    let keys: Vec<(CameraId, FrameIndex)> =
        shown_frames(frames).into_iter().map(|frame| (CameraId(0), FrameIndex(frame))).collect();
    let mut found = Vec::new();
    if no_pictures.is_none() {
        match reader.read(&keys) {
            Ok(frames) => found = frames,
            Err(error) => *no_pictures = Some(error.to_string()),
        }
    }
    Example {
        dataset,
        episode,
        first_frame: (frames.start - first) as u64,
        end_frame: (frames.end - first) as u64,
        pictures: found.iter().filter_map(|frame| frame.jpeg(QUALITY)).map(Picture).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_equally_common_labels_counts() {
        assert_eq!(most_common([3, 1, 1, 3, 2].into_iter()), Some((1, 0.4)));
        assert_eq!(most_common(std::iter::empty()), None);
    }

    #[test]
    fn typical_segments_are_of_median_length_and_different_demonstrations() {
        let members = [(0, 0..2), (0, 10..15), (1, 20..25), (1, 30..35), (2, 40..46), (3, 50..90)];
        assert_eq!(typical(&members), [(1, 20..25), (0, 10..15), (2, 40..46)]);
        assert_eq!(typical(&members[..2]).len(), 1, "one demonstration");
        assert!(typical(&[]).is_empty());
    }

    #[test]
    fn pictures_span_the_segment() {
        assert_eq!(shown_frames(&(10..19)), [10, 12, 14, 16, 18]);
        assert_eq!(shown_frames(&(7..8)), [7; 5]);
    }
}
