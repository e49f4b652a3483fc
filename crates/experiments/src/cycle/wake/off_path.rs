//! What a decoder learns beside the path of a demonstration.
//!
//! Demonstrations are always on their own path, so a decoder that learns from nothing else does not know how to return to it: it
//! ends a reach one or two centimetres beside the object and closes the gripper there. A lesson moves the robot by a random
//! offset and changes the demonstrated actions so that they remove it:
//!
//! ```text
//! a'(k) = a(k) − λ (1 − λ)ᵏ · offset / reach        for the k-th action of the chunk, within the limits of commands
//! ```
//! `reach` is how far a command moves the robot in one step, as measured in the demonstrations. If the offset is not removed when
//! the segment ends, the robot waits there until it is, with its grippers as they are: **a call ends at its target.** The same
//! idea as in DART (Laskey et al. 2017), without a second recording. Only groups that are commanded by changes of a position
//! that the state has are moved; a position as a command says by itself where to go.

use dataset::Matrix;
use models::Scales;
use models::noise::{normal, uniform};
use rand_chacha::ChaCha8Rng;
use skills::{Position, SkillAlphabet};

use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::plan::is_measured;

/// λ, the share of an offset that is removed in a step.
const REMOVED: f64 = 0.2;

/// An offset counts as removed below this many steps of the grid.
const NEAR: f64 = 0.3;

/// Makes lessons from demonstrations.
pub(super) struct OffPath<'a> {
    demonstrations: &'a Demonstrations,
    alphabet: &'a SkillAlphabet,
    /// All actions of the dataset, as they were recorded.
    actions: &'a Matrix,
    scales: &'a Scales,
    /// How far the robot is moved at most, as a deviation in steps of the grid.
    far: f64,
}

/// Where the robot is, and what it does from there.
pub(super) struct Lesson {
    /// Where it is.
    pub(super) position: Position,
    /// `[chunk, A]`, standardised.
    pub(super) actions: Vec<f32>,
    /// One for each action that there is, zero beyond the end of the episode.
    pub(super) counted: Vec<f32>,
}

impl<'a> OffPath<'a> {
    pub(super) fn new(
        demonstrations: &'a Demonstrations,
        alphabet: &'a SkillAlphabet,
        actions: &'a Matrix,
        scales: &'a Scales,
        far: f64,
    ) -> OffPath<'a> {
        OffPath { demonstrations, alphabet, actions, scales, far }
    }

    /// The lesson at a frame; `None` outside the demonstrations.
    pub(super) fn lesson(&self, frame: usize, chunk: usize, generator: &mut ChaCha8Rng) -> Option<Lesson> {
        let at = self.demonstrations.all.partition_point(|one| one.frames.end <= frame);
        let demonstration = self.demonstrations.all.get(at).filter(|one| one.frames.contains(&frame))?;
        let mut position = self.demonstrations.episodes[at].position(frame - demonstration.frames.start);
        let segment = &demonstration.segments[self.demonstrations.segment_at(at, frame)];
        let offset = self.offset(generator);
        for (place, by) in position.iter_mut().zip(&offset) {
            place.iter_mut().zip(by).for_each(|(place, by)| *place += by);
        }
        let pause = self.steps_to_remove(&offset).saturating_sub(segment.end - frame);
        let width = self.actions.width;
        let (mut actions, mut counted) = (Vec::with_capacity(chunk * width), Vec::with_capacity(chunk));
        for step in 0..chunk {
            let recorded = frame + step;
            let row = match recorded {
                now if now < segment.end => now,
                now => now - pause.min(now + 1 - segment.end),
            };
            let is_waiting = recorded >= segment.end && recorded - segment.end < pause;
            let last = demonstration.frames.end - 1;
            let mut action = self.actions.rows(row.min(last)..row.min(last) + 1).to_vec();
            self.correct(&mut action, &offset, step, is_waiting);
            actions.extend(action);
            counted.push(f32::from(u8::from(row <= last)));
        }
        self.scales.actions.apply(&mut actions);
        Some(Lesson { position, actions, counted })
    }

    /// How far each group is moved.
    fn offset(&self, generator: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let amount = f64::from(uniform(generator, 1)[0]) * self.far;
        let groups = self.alphabet.layout.groups.iter().zip(&self.alphabet.grids);
        let of = |(group, grid): (&skills::Group, &Vec<f64>)| {
            let drawn = normal(generator, grid.len());
            let is_moved = if is_measured(group) { 1.0 } else { 0.0 };
            grid.iter().zip(drawn).map(|(grid, off)| is_moved * amount * grid * f64::from(off)).collect()
        };
        groups.map(of).collect()
    }

    /// After how many steps an offset is removed.
    fn steps_to_remove(&self, offset: &[Vec<f64>]) -> usize {
        let places = offset.iter().flatten().zip(self.alphabet.grids.iter().flatten());
        let most = places.filter(|(_, grid)| **grid > 0.0).map(|(off, grid)| off.abs() / grid).fold(0.0, f64::max);
        if most <= NEAR { 0 } else { ((NEAR / most).ln() / (1.0 - REMOVED).ln()).ceil() as usize }
    }

    /// Adds what removes the offset to an action; a robot that waits does nothing else.
    fn correct(&self, action: &mut [f32], offset: &[Vec<f64>], step: usize, is_waiting: bool) {
        let share = REMOVED * (1.0 - REMOVED).powi(step as i32);
        let groups = self.alphabet.layout.groups.iter().zip(&self.alphabet.paces).zip(&self.alphabet.sizes);
        for (((group, paces), size), off) in groups.zip(offset) {
            if !is_measured(group) {
                continue;
            }
            for (((column, limits), pace), off) in group.columns.iter().zip(&group.limits).zip(paces).zip(off) {
                let reach = pace / size;
                let base = if is_waiting { 0.0 } else { f64::from(action[*column]) };
                if reach > 0.0 {
                    action[*column] = (base - share * off / reach).clamp(limits[0], limits[1]) as f32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dataset::{FRAGMENT_LENGTH, Overrides};
    use rand::SeedableRng as _;
    use skills::{AlphabetConfig, SegmentConfig};

    use super::*;
    use crate::cycle::corpus::Corpus;
    use crate::prepared::Prepared;
    use crate::source::{FeatureChoice, Source};

    /// The embedded demonstrations, of which every segment is of one class.
    fn with_lessons(far: f64, check: impl FnOnce(&OffPath<'_>, &Demonstrations, &Prepared)) {
        let folder = tempfile::tempdir().unwrap();
        let choice = FeatureChoice {
            encoder: Some("pixels:2".to_owned()),
            cache: Some(folder.path().join("features")),
            ..FeatureChoice::default()
        };
        let source = Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap();
        let prepared = Prepared::new(source, None, FRAGMENT_LENGTH).unwrap();
        let demonstrations = Demonstrations::new(&prepared, &SegmentConfig::default()).unwrap();
        let labels: Vec<Vec<i64>> = demonstrations.all.iter().map(|one| vec![0; one.segments.len()]).collect();
        let corpus = Corpus::with_labels(&demonstrations, &labels, &AlphabetConfig::default()).unwrap();
        let actions = &prepared.source.dataset.columns().actions;
        let path = OffPath::new(&demonstrations, &corpus.alphabet, actions, &prepared.scales, far);
        check(&path, &demonstrations, &prepared);
    }

    #[test]
    fn on_the_path_a_lesson_is_the_demonstration() {
        with_lessons(0.0, |path, demonstrations, prepared| {
            let mut generator = ChaCha8Rng::seed_from_u64(1);
            let one = &demonstrations.all[3];
            for frame in [one.frames.start, one.segments[1].end - 1, one.frames.end - 3] {
                let lesson = path.lesson(frame, 8, &mut generator).unwrap();
                assert_eq!(lesson.position, demonstrations.position(frame).unwrap());
                let there = (one.frames.end - frame).min(8);
                let mut wanted = prepared.source.dataset.columns().actions.rows(frame..frame + there).to_vec();
                prepared.scales.actions.apply(&mut wanted);
                assert_eq!(lesson.actions[..wanted.len()], wanted);
                assert_eq!(lesson.counted.iter().sum::<f32>(), there as f32);
            }
            assert!(path.lesson(usize::MAX - 1, 8, &mut generator).is_none());
        });
    }

    #[test]
    fn actions_remove_the_offset_and_a_call_does_not_end_before() {
        with_lessons(4.0, |path, demonstrations, prepared| {
            let (layout, width) = (&demonstrations.layout, demonstrations.layout.width);
            let gripper = layout.grippers[0].column;
            let actions = &prepared.source.dataset.columns().actions;
            let (mut left, mut moved, mut waited) = (0.0, 0.0, 0);
            for (at, one) in demonstrations.all.iter().enumerate() {
                // The last row before the gripper is told something else.
                let told = |frame: usize| layout.closed(actions.rows(frame..frame + 1));
                let Some(end) = one.segments[..one.segments.len() - 1]
                    .iter()
                    .map(|part| part.end)
                    .find(|end| told(*end) != told(end - 1) && end + 40 < one.frames.end)
                else {
                    continue;
                };
                let frame = end - 1;
                let lesson = path.lesson(frame, 40, &mut ChaCha8Rng::seed_from_u64(at as u64)).unwrap();
                let mut chunk = lesson.actions.clone();
                prepared.scales.actions.invert(&mut chunk);
                let here = demonstrations.position(frame).unwrap();
                let offset: Vec<f64> =
                    lesson.position[0].iter().zip(&here[0]).map(|(moved, here)| moved - here).collect();
                // What waits is followed by what the demonstration does after the segment.
                let before = f64::from(actions.rows(frame..end)[gripper]);
                let commands = chunk.chunks_exact(width).map(|action| f64::from(action[gripper]));
                let pause = commands.take_while(|command| (command - before).abs() < 1e-3).count() - 1;
                assert_eq!(pause, path.steps_to_remove(std::slice::from_ref(&offset)).saturating_sub(1));
                waited += pause;
                for (dim, off) in offset.iter().enumerate() {
                    let reach = path.alphabet.paces[0][dim] / path.alphabet.sizes[0];
                    let column = layout.groups[0].columns[dim];
                    let removed: f64 =
                        (0..pause).map(|step| f64::from(chunk[(step + 1) * width + column]) * reach).sum();
                    let first = f64::from(chunk[column] - actions.rows(frame..end)[column]) * reach;
                    left += (off + removed + first).abs() / path.alphabet.grids[0][dim];
                    moved += off.abs() / path.alphabet.grids[0][dim];
                }
            }
            assert!(waited > 50, "{waited}");
            // What is left is below the distance that counts as none, but where a command is at its limit.
            assert!(left < 0.15 * moved, "{left} of {moved}");
        });
    }
}
