//! Names for the segments of an episode, from its instruction and its motion.
//!
//! ```text
//! instruction ─steps─► expected steps ┐
//! episode ─signals─► rows             ├─ evidence ─► costs ─align─► stretches with names and a score
//! segments ─► cheap boundaries        ┘
//! ```
//! An alignment with a poor score is not used: then the names say what the motion is, and that they come from it.

use std::collections::BTreeSet;

use skills::{ActionLayout, Episode, ScoredSegment, Space};

use crate::align::{Alignment, Problem, align};
use crate::evidence::{Hand, agreement};
use crate::explained::{closings, explained};
use crate::motion::motion_name;
use crate::reading::expected;
use crate::signals::{Signals, drives};
use crate::steps::{ArmChoice, Kind, Step, USUAL};
use crate::subtask::{NameSource, Subtask};

/// How segments and steps are aligned. The defaults were chosen on the first four rounds of the LIBERO sets and on the synthetic
/// robots; those of the least scores by `eval annotate --shuffled --noise` on training episodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NamerConfig {
    /// Alignments with a score below this are not used.
    pub least_score: f64,
    /// The same for a robot that is moved by its joints: where its hands go is not known, so scores are lower.
    pub least_score_joints: f64,
    /// The price of a boundary between steps where the segments have none, in seconds of motion that does not fit.
    pub split: f64,
    /// The price of a boundary where the segments have one of confidence 0; one of confidence 1 is free.
    pub doubt: f64,
    /// The price of starting again with an object that was already grasped.
    pub retry: f64,
    /// The least seconds of a step.
    pub least: f64,
    /// How much of a row's velocity is taken to be that of its segment, from 0 to 1.
    pub blend: f64,
}

impl Default for NamerConfig {
    fn default() -> NamerConfig {
        NamerConfig {
            least_score: 0.63,
            least_score_joints: 0.38,
            split: 0.15,
            doubt: 0.05,
            retry: 1.0,
            least: 0.15,
            blend: 0.3,
        }
    }
}

impl NamerConfig {
    /// The least score of an alignment that is used for a robot.
    pub fn threshold(&self, layout: &ActionLayout) -> f64 {
        if knows_directions(layout) { self.least_score } else { self.least_score_joints }
    }
}

/// Whether it is known where the hands of a robot go: it is moved by its end effectors.
pub fn knows_directions(layout: &ActionLayout) -> bool {
    layout.groups.iter().any(|group| matches!(group.space, Space::Pose(_)))
}

/// Names subtasks; one for a dataset.
#[derive(Clone, Debug, Default)]
pub struct Namer {
    config: NamerConfig,
}

/// An episode with its subtasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The subtasks in order; they cover the episode.
    pub subtasks: Vec<Subtask>,
    /// How well the instruction's steps fit the motion, from 0 to 1; 0 if the instruction is not understood.
    pub score: f64,
    /// For each subtask its step; `None` where it is named by its motion.
    pub steps: Vec<Option<StepLabel>>,
}

/// A step of an instruction as a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepLabel {
    /// The phase in one word: `reach`, `grasp`, `open`, `pour`.
    pub phase: String,
    /// The object without article: `black bowl`; of repetitions with its number, `second moka pot`.
    pub object: Option<String>,
    /// The arm, of a robot with two: `left arm`, `both arms`.
    pub arm: Option<String>,
}

impl Namer {
    /// A namer with other settings than the default.
    pub fn new(config: NamerConfig) -> Namer {
        Namer { config }
    }

    /// Names the subtasks of an episode. Segments must cover it in order, as [`skills::segment_scored`] gives them.
    pub fn name(
        &self,
        instruction: &str,
        episode: &Episode,
        layout: &ActionLayout,
        segments: &[ScoredSegment],
    ) -> Named {
        let signals = Signals::new(episode, layout, segments, self.config.blend);
        let steps = expected(instruction, drives(layout), closings(&signals));
        let states = states(&steps, &signals);
        let mut problem = self.problem(&steps, &states, &signals, layout, segments, episode.len());
        let found = self.align_held(&mut problem, &steps, &states, &signals);
        let score = found.as_ref().map_or(0.0, |found| {
            score(found, &problem, &steps, &states, layout.fps)
                * explained(found, &steps, &states, &signals, layout.fps)
        });
        match found {
            Some(found) if score >= self.config.threshold(layout) => {
                named(&found, &problem, &steps, &states, &signals, segments, layout.fps, score)
            }
            _ => by_motion(episode, layout, segments, score),
        }
    }

    /// The cheapest walk in which whatever is reached for again is held afterwards: a hand that lets go at the end has put
    /// the object down and not lost it. Nor does a hand let go of what it has not grasped.
    fn align_held(
        &self,
        problem: &mut Problem,
        steps: &[Step],
        states: &[(usize, Hand)],
        signals: &Signals,
    ) -> Option<Alignment> {
        let mut barred: BTreeSet<usize> = BTreeSet::new();
        let mut held: BTreeSet<(usize, usize)> = BTreeSet::new();
        loop {
            let found = align(problem)?;
            let lost = in_vain(&found, steps, states);
            let unheld = released_unheld(&found, steps, states, signals);
            if lost.is_subset(&barred) && unheld.is_subset(&held) {
                return Some(found);
            }
            barred.extend(lost);
            for pair in unheld.difference(&held) {
                grasp_before(problem, steps, states, *pair);
            }
            held.extend(unheld);
            for (to, before) in problem.edges.iter_mut().enumerate() {
                let (to, _) = states[to];
                before.retain(|(from, _)| states[*from].0 < to || !barred.contains(&steps[to].handling));
            }
        }
    }

    fn problem(
        &self,
        steps: &[Step],
        states: &[(usize, Hand)],
        signals: &Signals,
        layout: &ActionLayout,
        segments: &[ScoredSegment],
        rows: usize,
    ) -> Problem {
        let seconds = 1.0 / layout.fps;
        let cost = states.iter().flat_map(|(step, hand)| {
            (0..rows).map(|row| (1.0 - agreement(steps[*step].kind, *hand, signals, row)) * seconds)
        });
        let cost = cost.collect();
        let skips = Skips::new(steps);
        let mut switch = vec![self.config.split; rows];
        for segment in segments.iter().filter(|segment| segment.rows.start < rows) {
            switch[segment.rows.start] = self.config.doubt * (1.0 - segment.confidence);
        }
        Problem {
            rows,
            states: states.len(),
            cost,
            edges: self.edges(steps, states, &skips),
            start: states.iter().map(|(step, _)| skips.between(None, Some(*step)).unwrap_or(f64::INFINITY)).collect(),
            end: states.iter().map(|(step, _)| skips.between(Some(*step), None).unwrap_or(f64::INFINITY)).collect(),
            switch,
            least: (self.config.least * layout.fps).round() as usize,
        }
    }

    /// For each state those that may come before it.
    fn edges(&self, steps: &[Step], states: &[(usize, Hand)], skips: &Skips<'_>) -> Vec<Vec<(usize, f64)>> {
        let price = |(from, hand): (usize, Hand), (to, next): (usize, Hand)| {
            let (before, after) = (&steps[from], &steps[to]);
            if before.handling == after.handling && hand != next && hand != Hand::Body && next != Hand::Body {
                return None;
            }
            if to > from {
                return skips.between(Some(from), Some(to));
            }
            // What slipped out of the hand is reached for again.
            let holds = matches!(before.kind, Kind::Grasp | Kind::Lift | Kind::Transport | Kind::Place);
            let again = after.kind == Kind::Reach && before.handling == after.handling && holds && from > to;
            again.then_some(self.config.retry)
        };
        let into = |to: &(usize, Hand)| {
            let from = states.iter().enumerate().filter_map(|(at, from)| Some((at, price(*from, *to)?)));
            from.filter(|(_, price)| *price <= 4.0 * crate::steps::NEEDED).collect()
        };
        states.iter().map(into).collect()
    }
}

/// What skipping steps costs.
struct Skips<'a> {
    steps: &'a [Step],
    /// The price of skipping all steps before each one.
    before: Vec<f64>,
    /// Whether any step is repeated an open number of times.
    open: bool,
}

impl<'a> Skips<'a> {
    fn new(steps: &'a [Step]) -> Skips<'a> {
        let mut before = vec![0.0];
        steps.iter().for_each(|step| before.push(before[before.len() - 1] + step.skip));
        Skips { steps, before, open: steps.iter().any(|step| step.round.is_some()) }
    }

    /// The price of going on from one step to a later one, where none is the start or the end. Rounds of an open repetition
    /// follow each other, and all but the first may be left out whole. `None` if it cannot be.
    fn between(&self, from: Option<usize>, to: Option<usize>) -> Option<f64> {
        let (first, end) = (from.map_or(0, |from| from + 1), to.unwrap_or(self.steps.len()));
        let whole = self.before[end] - self.before[first];
        if !self.open {
            return Some(whole);
        }
        let round = |step: Option<usize>| step.and_then(|step| self.steps[step].round);
        let (own, next) = (round(from), round(to));
        let follows = match (own, next) {
            (Some(own), Some(next)) if own.repetition == next.repetition => next.at <= own.at + 1,
            (_, Some(next)) => next.at == 0,
            (_, None) => true,
        };
        let free = self.steps[first..end]
            .iter()
            .filter(|step| step.round.is_some_and(|round| round.at > 0) && step.round != own && step.round != next);
        let free: f64 = free.map(|step| step.skip).sum();
        follows.then(|| (whole - free).max(0.0))
    }
}

/// Bars walks with a release but without the grasp before it: the hand grasps, or it need not let go, whichever is cheaper.
fn grasp_before(problem: &mut Problem, steps: &[Step], states: &[(usize, Hand)], (grasp, release): (usize, usize)) {
    let (mut grasping, mut empty) = (problem.clone(), problem.clone());
    for (state, (step, _)) in states.iter().enumerate() {
        if *step > grasp && steps[*step].handling == steps[grasp].handling {
            grasping.edges[state].retain(|(from, _)| states[*from].0 >= grasp);
            grasping.start[state] = f64::INFINITY;
        }
        if *step == release {
            empty.edges[state].clear();
            empty.start[state] = f64::INFINITY;
        }
    }
    let cost = |problem: &Problem| align(problem).map_or(f64::INFINITY, |found| found.cost);
    *problem = if cost(&grasping) <= cost(&empty) { grasping } else { empty };
}

/// The releases of a walk by hands that hold nothing, each with the grasp of its handling, which the walk left out.
fn released_unheld(
    found: &Alignment,
    steps: &[Step],
    states: &[(usize, Hand)],
    signals: &Signals,
) -> BTreeSet<(usize, usize)> {
    // A hand that is closed when the episode begins may hold something.
    let holds_at_first = |hand: Hand| match hand {
        Hand::Arm(at) => signals.arms[at].grip.first().is_some_and(|grip| grip.closed >= 0.5),
        Hand::Both => signals.arms.iter().any(|arm| arm.grip.first().is_some_and(|grip| grip.closed >= 0.5)),
        Hand::Body => false,
    };
    let mut grasped = BTreeSet::new();
    let mut unheld = BTreeSet::new();
    for (state, _) in &found.stretches {
        let (at, hand) = states[*state];
        let step = &steps[at];
        match step.kind {
            Kind::Grasp => {
                grasped.insert(step.handling);
            }
            Kind::Release if !grasped.contains(&step.handling) && !holds_at_first(hand) => {
                let grasps = |one: &Step| one.handling == step.handling && one.kind == Kind::Grasp;
                unheld.extend(steps[..at].iter().position(grasps).map(|grasp| (grasp, at)));
            }
            _ => {}
        }
    }
    unheld
}

/// The handlings that a walk goes back to without holding anything in the end.
fn in_vain(found: &Alignment, steps: &[Step], states: &[(usize, Hand)]) -> BTreeSet<usize> {
    let walk: Vec<usize> = found.stretches.iter().map(|(state, _)| states[*state].0).collect();
    let empty = |step: &Step| matches!(step.kind, Kind::Reach | Kind::Grasp | Kind::Release | Kind::Retreat);
    let back = (1..walk.len()).filter(|at| walk[*at] < walk[at - 1]);
    let vain = back.filter(|at| {
        let own = steps[walk[*at]].handling;
        !walk[*at..].iter().any(|step| steps[*step].handling == own && !empty(&steps[*step]))
    });
    vain.map(|at| steps[walk[at]].handling).collect()
}

/// Every step with every arm that may take it.
fn states(steps: &[Step], signals: &Signals) -> Vec<(usize, Hand)> {
    let arms = &signals.arms;
    let mut states = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let named = |word: &str| (0..arms.len()).filter(|arm| arms[*arm].name.contains(word)).collect::<Vec<_>>();
        let hands: Vec<Hand> = match &step.arm {
            _ if step.object.is_none() && step.kind != Kind::Retreat => vec![Hand::Body],
            _ if step.kind == Kind::Go => vec![Hand::Body],
            _ if arms.len() == 1 => vec![Hand::Arm(0)],
            ArmChoice::Both => vec![Hand::Both],
            ArmChoice::Named(word) if !named(word).is_empty() => named(word).into_iter().map(Hand::Arm).collect(),
            _ => (0..arms.len()).map(Hand::Arm).chain([Hand::Both]).collect(),
        };
        states.extend(hands.into_iter().map(|hand| (at, hand)));
    }
    states
}

/// The mean agreement of the rows, times the mean agreement of the steps that are needed or usual, skipped ones included.
fn score(found: &Alignment, problem: &Problem, steps: &[Step], states: &[(usize, Hand)], fps: f64) -> f64 {
    let mut best = vec![0.0_f64; steps.len()];
    let mut sum = 0.0;
    let rounds: Vec<_> = found.stretches.iter().filter_map(|(state, _)| steps[states[*state].0].round).collect();
    let left_out = |step: &Step| step.round.is_some_and(|round| round.at > 0 && !rounds.contains(&round));
    for (state, rows) in &found.stretches {
        let own = fit(problem, *state, rows, fps);
        let step = states[*state].0;
        best[step] = best[step].max(own);
        sum += own * rows.len() as f64;
    }
    let expected =
        steps.iter().zip(best).filter(|(step, _)| step.skip >= USUAL && !left_out(step)).map(|(_, best)| best);
    let (count, taken) = expected.fold((0, 0.0), |(count, sum), best| (count + 1, sum + best));
    (sum / problem.rows.max(1) as f64) * (taken / f64::from(count.max(1)))
}

/// The mean agreement of some rows with a state.
fn fit(problem: &Problem, state: usize, rows: &std::ops::Range<usize>, fps: f64) -> f64 {
    let cost: f64 = problem.cost[state * problem.rows..][rows.clone()].iter().sum();
    (1.0 - cost * fps / rows.len().max(1) as f64).clamp(0.0, 1.0)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one alignment")]
fn named(
    found: &Alignment,
    problem: &Problem,
    steps: &[Step],
    states: &[(usize, Hand)],
    signals: &Signals,
    segments: &[ScoredSegment],
    fps: f64,
    score: f64,
) -> Named {
    let mut named = Named { subtasks: Vec::new(), score, steps: Vec::new() };
    for (state, rows) in &found.stretches {
        let (step, hand) = states[*state];
        let step = &steps[step];
        let arm = match hand {
            Hand::Arm(at) if signals.arms.len() > 1 => Some(signals.arms[at].name.clone()),
            Hand::Both => Some("both arms".to_owned()),
            Hand::Arm(_) | Hand::Body => None,
        };
        let name = match &arm {
            Some(arm) => format!("{arm}: {}", step.name),
            None => step.name.clone(),
        };
        let boundary = segments.iter().find(|segment| segment.rows.start == rows.start);
        named.subtasks.push(Subtask {
            rows: rows.clone(),
            name,
            named_by: NameSource::Instruction,
            class: None,
            boundary_confidence: boundary.map_or(0.5, |segment| segment.confidence),
            name_confidence: fit(problem, *state, rows, fps),
        });
        named.steps.push(Some(StepLabel { phase: step.phase.clone(), object: step.object.clone(), arm }));
    }
    named
}

/// Every segment with the name of its motion.
fn by_motion(episode: &Episode, layout: &ActionLayout, segments: &[ScoredSegment], score: f64) -> Named {
    let subtasks = segments.iter().map(|segment| Subtask {
        rows: segment.rows.clone(),
        name: motion_name(episode, layout, &segment.rows),
        named_by: NameSource::Motion,
        class: None,
        boundary_confidence: segment.confidence,
        name_confidence: 1.0,
    });
    Named { subtasks: subtasks.collect(), score, steps: vec![None; segments.len()] }
}
