//! Demonstrations of the expert, their fragments and labels, as plain rows that a dataset writer can take.

use super::env::{Action, EnvState, Observation, PourError, RecursivePourEnv};
use super::expert::{Expert, plan};
use super::{Depth, MAX_DEPTH, Role};
use crate::fragment::FragmentIndex;
use crate::ids::{EpisodeSpan, TaskId};

/// Steps in a second.
pub const FPS: u32 = 2;

/// The steps of a fragment, `fragment_len` of the paper.
pub const FRAGMENT_STEPS: usize = 4;

/// The steps from one fragment to the next.
pub const FRAGMENT_STRIDE: usize = 1;

/// The number of labels, role × depth: the k of the paper's KMeans.
pub const LABELS: usize = Role::ALL.len() * MAX_DEPTH;

/// An episode of the expert, 4d rows. Row t is a state, the action in it, and what came of that action; the state after
/// the last action is not stored, as in robots' datasets.
#[derive(Clone, Debug, PartialEq)]
pub struct Demo {
    /// How many pours are nested.
    pub depth: Depth,
    /// The whole state before each action.
    pub states: Vec<Observation>,
    /// What was done.
    pub actions: Vec<Action>,
    /// What arrived in the bowl by it: the column `next.reward`.
    pub rewards: Vec<f32>,
    /// What it was done for.
    pub roles: Vec<Role>,
    /// To which cup, 0 for the outermost.
    pub levels: Vec<usize>,
}

impl Demo {
    /// The expert's episode of this number.
    pub fn record(depth: Depth, seed: u64, episode: u64) -> Demo {
        let start = EnvState::start(depth, seed, episode);
        let mut env = RecursivePourEnv::new(depth, seed);
        let mut expert = Expert::unsteady(&start, seed, episode);
        let mut demo = Demo { depth, states: vec![], actions: vec![], rewards: vec![], roles: vec![], levels: vec![] };
        let mut observation = env.reset_to(start);
        for phase in plan(depth) {
            let action = expert.action(phase, env.state());
            let step = env.step(&action);
            demo.states.push(observation);
            demo.actions.push(action);
            demo.rewards.push(step.reward);
            demo.roles.push(phase.role);
            demo.levels.push(phase.level);
            observation = step.observation;
        }
        demo
    }

    /// The number of steps, 4d.
    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    /// The demonstration as columns.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            task: task_name(self.depth),
            state: self.states.as_flattened(),
            action: self.actions.as_flattened(),
            reward: &self.rewards,
            done: (1..=self.steps()).map(|step| step == self.steps()).collect(),
            role: self.roles.iter().map(|role| role.at() as i64).collect(),
            level: self.levels.iter().map(|&level| level as i64).collect(),
            label: self.roles.iter().map(|&role| label(self.depth, role) as i64).collect(),
        }
    }

    /// The return of the episode: the sum of its rewards, in their order.
    pub fn total_return(&self) -> f32 {
        self.rewards.iter().fold(0.0, |total, reward| total + reward)
    }

    /// The state before a step, from which [`EnvState::rollout`] gives exact returns of anything.
    pub fn state(&self, step: usize) -> Result<EnvState, PourError> {
        EnvState::from_observation(&self.states[step])
    }
}

/// The columns of one demonstration for a dataset writer, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<'a> {
    /// The instruction.
    pub task: &'static str,
    /// `observation.state`: [`STATE_WIDTH`](super::STATE_WIDTH) numbers a row, named by
    /// [`state_names`](super::state_names).
    pub state: &'a [f32],
    /// `action`: [`ACTION_WIDTH`](super::ACTION_WIDTH) numbers a row, named by [`ACTION_NAMES`](super::ACTION_NAMES).
    pub action: &'a [f32],
    /// `next.reward`.
    pub reward: &'a [f32],
    /// `next.done`: true in the last row.
    pub done: Vec<bool>,
    /// `role`: places in [`Role::ALL`].
    pub role: Vec<i64>,
    /// `level`: the cup, 0 for the outermost.
    pub level: Vec<i64>,
    /// `label`: what a fragment that begins in this row is labelled, see [`label`].
    pub label: Vec<i64>,
}

/// Demonstrations in rounds of one of each depth, depth 1 first, so that any prefix of whole rounds is balanced.
pub fn demos(per_depth: usize, seed: u64) -> Vec<Demo> {
    let round = |episode| Depth::ALL.map(|depth| Demo::record(depth, seed, episode));
    (0..per_depth as u64).flat_map(round).collect()
}

/// The demonstrations as episodes of a dataset, one after the other. The task is the depth, less one.
pub fn spans(demos: &[Demo]) -> Vec<EpisodeSpan> {
    let mut start = 0;
    let span = |demo: &Demo| {
        let frames = start..start + demo.steps();
        start = frames.end;
        EpisodeSpan { frames, task: TaskId(demo.depth.cups() as u32 - 1) }
    };
    demos.iter().map(span).collect()
}

/// The instruction of a depth, which is the task of its episodes.
pub fn task_name(depth: Depth) -> &'static str {
    match depth.cups() {
        1 => "pour the cup into the bowl",
        2 => "pour the cup into the bowl and refill it from the second cup",
        3 => "pour the cup into the bowl and refill it from the second cup and that from the third",
        _ => {
            "pour the cup into the bowl and refill it from the second cup, that from the third and that from the fourth"
        }
    }
}

/// The label of a fragment that begins with `role` in a pour of this depth: below [`LABELS`].
pub fn label(depth: Depth, role: Role) -> usize {
    Role::ALL.len() * (depth.cups() - 1) + role.at()
}

/// A label in words, such as `tilt at depth 3`; `None` past the last.
pub fn label_name(label: usize) -> Option<String> {
    let depth = Depth::ALL.get(label / Role::ALL.len())?;
    Some(format!("{} at depth {}", Role::ALL[label % Role::ALL.len()].name(), depth.cups()))
}

/// The labels of the fragments of an index over [`spans`] of these demonstrations, in order.
pub fn fragment_labels(demos: &[Demo], index: &FragmentIndex) -> Vec<usize> {
    let spans = spans(demos);
    let label_of = |episode: usize, frame: usize| {
        let demo = &demos[episode];
        label(demo.depth, demo.roles[frame - spans[episode].frames.start])
    };
    index.iter().map(|(_, fragment)| label_of(fragment.episode.at(), fragment.frames.start)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::draw::{Purpose, generator, unit};
    use crate::recursive_pour::{ACTION_NAMES, DEMOS_PER_DEPTH, SEED_EVAL, SEED_TRAIN, state_names};
    use crate::split::Split;

    fn index(demos: &[Demo]) -> FragmentIndex {
        FragmentIndex::of_all(&spans(demos), FRAGMENT_STEPS, FRAGMENT_STRIDE).unwrap()
    }

    #[test]
    fn the_paper_counts_1400_fragments() {
        for seed in [SEED_TRAIN, SEED_EVAL] {
            let demos = demos(DEMOS_PER_DEPTH, seed);
            assert_eq!(demos.len(), 200);
            assert!(demos.iter().all(|demo| demo.steps() == 4 * demo.depth.cups()));
            assert_eq!(index(&demos).len(), 1400);
        }
        let per_set =
            demos(1, SEED_TRAIN).iter().map(|demo| index(std::slice::from_ref(demo)).len()).collect::<Vec<_>>();
        assert_eq!(per_set, [1, 5, 9, 13]);
    }

    #[test]
    fn a_fifth_of_each_depth_is_held_out() {
        let demos = demos(DEMOS_PER_DEPTH, SEED_TRAIN);
        let split = Split::fraction(&spans(&demos), 0.2, SEED_TRAIN).unwrap();
        let held_out = FragmentIndex::new(&spans(&demos), &split.held_out, FRAGMENT_STEPS, FRAGMENT_STRIDE).unwrap();
        assert_eq!((split.held_out.len(), held_out.len()), (40, 280));
    }

    #[test]
    fn twelve_labels_occur_and_depth_1_has_one() {
        let demos = demos(3, SEED_EVAL);
        let index = index(&demos);
        let labels = fragment_labels(&demos, &index);
        let names: BTreeSet<usize> = labels.iter().copied().collect();
        let names: Vec<String> = names.into_iter().filter_map(label_name).collect();
        insta::assert_snapshot!(names.join("\n"), @"
        approach at depth 1
        approach at depth 2
        tilt at depth 2
        drain at depth 2
        approach at depth 3
        tilt at depth 3
        drain at depth 3
        return at depth 3
        approach at depth 4
        tilt at depth 4
        drain at depth 4
        return at depth 4
        ");
        assert_eq!(label_name(LABELS), None);
        assert_eq!(labels.len(), index.len());
    }

    #[test]
    fn rows_have_a_value_for_each_step_and_name() {
        for demo in demos(1, SEED_TRAIN) {
            let Rows { task, state, action, reward, done, role, level, label } = demo.rows();
            let steps = demo.steps();
            assert_eq!(state.len(), steps * state_names().len());
            assert_eq!(action.len(), steps * ACTION_NAMES.len());
            assert_eq!([reward.len(), done.len(), role.len(), level.len(), label.len()], [steps; 5]);
            assert_eq!(done.iter().position(|done| *done), Some(steps - 1));
            assert!(role.iter().zip(&label).all(|(role, label)| label - role == 4 * (demo.depth.cups() as i64 - 1)));
            assert!(task.starts_with("pour"));
        }
    }

    #[test]
    fn replay_gives_the_same_bits() {
        for demo in demos(10, SEED_TRAIN) {
            let start = demo.state(0).unwrap();
            let mut env = RecursivePourEnv::new(demo.depth, 0);
            env.reset_to(start);
            for at in 0..demo.steps() {
                assert_eq!(env.state().observation().map(f32::to_bits), demo.states[at].map(f32::to_bits));
                let step = env.step(&demo.actions[at]);
                assert_eq!(step.reward.to_bits(), demo.rewards[at].to_bits());
                assert_eq!(step.done, at + 1 == demo.steps());
            }
            assert_eq!(start.rollout(&demo.actions).to_bits(), demo.total_return().to_bits());
        }
    }

    /// A fragment executed from the state it was recorded in returns what it returned; from others, something else.
    #[test]
    fn returns_of_fragments_are_exact_and_depend_on_the_state() {
        let demos = demos(5, SEED_TRAIN);
        let mut differs = 0;
        for demo in &demos {
            for at in 0..=demo.steps() - FRAGMENT_STEPS {
                let window = at..at + FRAGMENT_STEPS;
                let recorded = demo.rewards[window.clone()].iter().fold(0.0, |total, reward| total + reward);
                let actions = &demo.actions[window];
                assert_eq!(demo.state(at).unwrap().rollout(actions).to_bits(), recorded.to_bits());
                let elsewhere = demos[3].state(8).unwrap().rollout(actions);
                differs += usize::from((elsewhere - recorded).abs() > 0.01);
            }
        }
        assert!(differs > 70, "{differs} of 140");
    }

    #[test]
    fn demonstrations_differ_from_each_other_and_between_seeds() {
        let returns =
            |seed| demos(50, seed).iter().map(|demo| demo.total_return().to_bits()).collect::<BTreeSet<u32>>();
        let (train, eval) = (returns(SEED_TRAIN), returns(SEED_EVAL));
        assert_eq!((train.len(), eval.len()), (200, 200));
        assert!(train.is_disjoint(&eval));
        assert_eq!(demos(2, SEED_TRAIN), demos(2, SEED_TRAIN));
        assert_eq!(demos(5, SEED_TRAIN)[..8], demos(2, SEED_TRAIN), "more demonstrations leave the first as they are");
    }

    #[test]
    fn returns_fall_with_depth() {
        let mut returns = BTreeMap::<Depth, Vec<f32>>::new();
        for demo in demos(DEMOS_PER_DEPTH, SEED_TRAIN) {
            returns.entry(demo.depth).or_default().push(demo.total_return());
        }
        let line = |(depth, returns): (Depth, Vec<f32>)| {
            let mean = returns.iter().sum::<f32>() / returns.len() as f32;
            let (least, most) = returns.iter().fold((1f32, 0f32), |(a, b), &x| (a.min(x), b.max(x)));
            format!("depth {}: mean {mean:.3}, {least:.3} to {most:.3}", depth.cups())
        };
        insta::assert_snapshot!(returns.into_iter().map(line).collect::<Vec<_>>().join("\n"), @"
        depth 1: mean 0.564, 0.413 to 0.770
        depth 2: mean 0.549, 0.271 to 0.718
        depth 3: mean 0.507, 0.274 to 0.691
        depth 4: mean 0.465, 0.271 to 0.633
        ");
    }

    /// A figure about the held-out set means nothing next year if the set is another one.
    #[test]
    fn the_sets_are_the_same_to_the_last_bit_on_every_machine() {
        let digest = |seed| {
            let mut hasher = blake3::Hasher::new();
            for demo in demos(DEMOS_PER_DEPTH, seed) {
                let Rows { state, action, reward, .. } = demo.rows();
                [state, action, reward].into_iter().flatten().for_each(|value| {
                    hasher.update(&value.to_le_bytes());
                });
            }
            hasher.finalize().to_hex()[..16].to_owned()
        };
        assert_eq!([digest(SEED_TRAIN), digest(SEED_EVAL)], ["c68697482a16aab9", "123fd4b5d8406937"]);
    }

    #[test]
    fn the_expert_beats_chance_at_every_depth() {
        for depth in Depth::ALL {
            let mut random = generator(0, Purpose::PourExpert, [u64::MAX, 0]);
            let chance: f32 = (0..200)
                .map(|episode| {
                    let actions: Vec<Action> =
                        (0..depth.steps()).map(|_| [(); 4].map(|()| 2.0 * unit(&mut random) - 1.0)).collect();
                    EnvState::start(depth, SEED_TRAIN, episode).rollout(&actions)
                })
                .fold(0.0, f32::max);
            let worst = (0..50).map(|at| Demo::record(depth, SEED_TRAIN, at).total_return()).fold(1.0, f32::min);
            assert!(worst > chance, "{depth:?}: the worst demonstration {worst}, the best of chance {chance}");
        }
    }
}
