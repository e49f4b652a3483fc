//! The state of an episode: the program that is being executed, and the position in it.
//!
//! The emitter writes what is done over the next segments: a plan, whose calls are executed one after the other. [`Emission`] says
//! when it is asked again: when the plan is at its end, when a call has ended, or at every request. A call has ended when every
//! group that the skill moves is at its target; if it begins there, or tells a gripper to open or to close, its usual time must
//! also have passed. Something that holds the robot, or twice the usual time, ends it as well. A task is over when the plan of a
//! demonstration's last calls is at its end; then the next step of a client's program begins. If there is none, and the client
//! goes on asking, the task was not done: the robot returns to where the episode began and tries again.
//!
//! With [`Emission::Aim`] a plan is a commitment to an order of skills, and its targets are estimates: when a call has ended, the
//! emitter looks again, and where it writes the same skills, their targets become what it sees now ([`Execution::aim`]).

use clustering::Points;
use serde::{Deserialize, Serialize};
use skills::{
    ActionLayout, Argument, Control, Episode, Position, REACHED, Skill, SkillAlphabet, SkillCall, SkillId, UnderWay,
};

use models::vocabulary::Piece;

use super::tongue::{Step, Written};
use crate::cycle::plan::Plan as Executed;

/// A call takes at most so many times its usual steps.
const PATIENCE: f64 = 2.0;

/// A call whose usual time is over has ended if the robot comes nearer to the target by less than this between two requests, in
/// steps of the grid: something holds it.
const STALLED: f64 = 0.3;

/// A program is kept for so many requests if it has no calls of skills, or was written again without a change and there is nothing
/// after it: the emitter has just seen this position and would write the same program again.
const KEPT: usize = 4;

/// The emitter contradicts a plan if it writes a target that is so many steps of the grid away from that of the plan; then the plan
/// is kept.
const AGREES: f64 = 8.0;

/// Targets that are farther away, in steps of the grid, are estimated again on the way.
const AIMED: f64 = 2.0;

/// A robot that is farther from where its last actions lead, in steps of the grid, was moved by somebody: an episode begins. Clients
/// of simulators run many episodes of one task over one connection and say nothing in between.
const ASTRAY: f64 = 6.0;

/// What an episode consists of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// An instruction.
    Prompt(String),
    /// A program of a client.
    Program(Vec<Step>),
}

/// The state of an episode.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) plan: Plan,
    /// The step of a program that is under way.
    pub(super) step: usize,
    /// What the decoder is to execute.
    pub(super) executed: Executed,
    /// The program of the motion.
    pub(super) motion: Written,
    /// The program of the task.
    pub(super) task: Written,
    /// The active call of the motion.
    pub(super) active: usize,
    /// Whether a program was written; false until the first one.
    written: bool,
    /// The active call with targets as positions.
    call: Option<SkillCall>,
    /// How far the active call was from its target when it began.
    distance: Option<f64>,
    /// The same at the last request.
    left: Option<f64>,
    /// The last call that has ended.
    finished: Option<SkillCall>,
    /// Whether the robot is on its way back to where the episode began.
    returning: bool,
    /// Whether a call has ended since the instruction began to be executed.
    has_begun: bool,
    /// Whether a call has ended since the emitter last looked.
    is_unseen: bool,
    /// How far the active call is.
    under_way: UnderWay,
    /// Steps during which the call does not count as ended.
    kept: f64,
    /// Where the last actions lead, from where the robot was; empty before the first ones.
    path: Vec<Position>,
    /// Where the robot was first seen.
    start: Option<Position>,
}

/// When the emitter writes the program of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Emission {
    /// At every request.
    Request,
    /// When the active call has ended.
    Call,
    /// When all calls of the program have ended; targets of the remaining calls are estimated again when a call has ended.
    Aim,
    /// When all calls of the program have ended.
    #[default]
    Plan,
}

/// What turns the calls of a program into actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// The controller where it can follow programs, otherwise the decoder.
    #[default]
    Auto,
    /// The decoder (LCAD).
    Decoder,
    /// A controller without learned weights, which drives every group of the robot to its target.
    Controller,
}

/// What must be done before actions are decoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// The emitter must write a program, with these words and after this beginning.
    Emission {
        /// The instruction.
        words: String,
        /// Pieces to begin with; none if the emitter is free.
        beginning: Vec<Piece>,
        /// Whether the instruction begins to be executed.
        begins: bool,
        /// Whether the program only serves to estimate the targets of the plan again.
        aims: bool,
    },
    /// The calls of the client's program, from the active one on, are what the decoder reads.
    Motion(Vec<SkillCall>),
}

/// Where the robot is, as far as its state tells.
pub(super) struct Body<'a> {
    pub(super) alphabet: &'a SkillAlphabet,
    pub(super) rhythm: Rhythm,
}

/// How often what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// Actions that clients execute of each reply.
    pub(super) replan: usize,
    /// Segments that a program covers.
    pub(super) horizon: usize,
    /// When the emitter writes.
    pub(super) emission: Emission,
    /// Whether the robot returns to where the episode began before the next step of a client's program.
    pub(super) returns: bool,
}

impl Rhythm {
    /// Whether plans are executed to their end.
    fn follows_plans(self) -> bool {
        matches!(self.emission, Emission::Plan | Emission::Aim)
    }

    /// Whether landmarks say what to do when an episode begins. The emitter would write other targets before the plan is at its end
    /// in all other cases.
    pub(super) fn follows_landmarks(self) -> bool {
        self.emission == Emission::Plan
    }

    /// A robot with these skills.
    pub(super) fn body(self, alphabet: &SkillAlphabet) -> Body<'_> {
        Body { alphabet, rhythm: self }
    }
}

impl Execution {
    pub(super) fn new(plan: Plan) -> Execution {
        Execution {
            plan,
            step: 0,
            executed: Executed::default(),
            motion: Written::default(),
            task: Written::default(),
            active: 0,
            written: false,
            call: None,
            distance: None,
            left: None,
            finished: None,
            returning: false,
            has_begun: false,
            is_unseen: false,
            under_way: UnderWay { steps: 0.0, timed: false },
            kept: 0.0,
            path: Vec::new(),
            start: None,
        }
    }

    /// Whether the robot is where its last actions cannot have led it.
    pub(super) fn has_jumped(&self, body: &Body<'_>, position: &Position) -> bool {
        body.off_path(position, &self.path) > ASTRAY
    }

    /// Actions are sent, in the units of the dataset.
    pub(super) fn sends(&mut self, body: &Body<'_>, position: &Position, actions: &[f32]) {
        self.path = body.alphabet.led(position, actions);
    }

    /// Looks at where the robot is, and says what must be done.
    pub(super) fn observe(&mut self, body: &Body<'_>, position: &Position) -> Need {
        self.start.get_or_insert_with(|| position.clone());
        if self.written {
            self.under_way.steps += body.rhythm.replan.max(1) as f64;
            let has_ended = self.under_way.steps > self.kept && self.has_ended(body, position);
            self.left = self.call.as_ref().and_then(|call| body.alphabet.left(call, position));
            let aims = body.rhythm.emission == Emission::Aim && !self.returning && !self.is_given_motion();
            if has_ended {
                self.finished = self.call.take();
                self.has_begun = true;
                self.is_unseen = true;
                if self.returning {
                    (self.returning, self.finished, self.has_begun) = (false, None, false);
                } else if body.rhythm.follows_plans() && !self.is_given_motion() && self.executed.calls.len() > 1 {
                    self.active += 1;
                    return Need::Motion(self.executed.calls[1..].to_vec());
                } else {
                    let (step, is_over) = (self.step, self.is_task_over(body));
                    self.finish_call(is_over);
                    let has_moved = !self.motion.calls.is_empty() && !self.is_given_motion();
                    let is_again = is_over && has_moved && self.step == step;
                    if let Some(home) = self.home(body).filter(|_| self.step != step || is_again) {
                        self.returning = true;
                        return Need::Motion(vec![home]);
                    }
                }
            } else if aims && (self.is_unseen || self.is_far()) {
                return self.emission(true);
            } else if self.returning || body.rhythm.emission != Emission::Request || self.is_given_motion() {
                return Need::Nothing;
            }
        }
        match &self.plan {
            Plan::Program(steps) if self.is_given_motion() => {
                let Some(Step::Motion { written }) = steps.get(self.step) else { return Need::Nothing };
                let end = (self.active + body.rhythm.horizon.max(1)).min(written.calls.len());
                Need::Motion(written.calls[self.active.min(end)..end].to_vec())
            }
            _ => self.emission(false),
        }
    }

    /// Whether the target of the active call is far enough away to be estimated again on the way. Demonstrations are at their
    /// targets when a call ends, so that from nearby every place looks like the right one.
    fn is_far(&self) -> bool {
        !self.under_way.timed && self.left.is_some_and(|left| left > AIMED)
    }

    /// The emitter must look: to write a program, or only to aim again.
    fn emission(&mut self, aims: bool) -> Need {
        self.is_unseen = false;
        let begins = !self.has_begun;
        let (words, beginning) = match &self.plan {
            Plan::Prompt(instruction) => (instruction.clone(), Vec::new()),
            Plan::Program(steps) => match steps.get(self.step) {
                Some(Step::Known { instruction, .. }) => (instruction.clone(), Vec::new()),
                Some(Step::New { text, beginning }) => (text.clone(), beginning.clone()),
                Some(Step::Motion { .. }) | None => return Need::Nothing,
            },
        };
        Need::Emission { words, beginning, begins, aims }
    }

    /// Whether the plan that is at its end is the last one of the task: it covers fewer segments than it could.
    fn is_task_over(&self, body: &Body<'_>) -> bool {
        match body.rhythm.follows_plans() {
            true => self.motion.calls.len() < body.rhythm.horizon.max(2),
            false => self.motion.calls.len() == 1,
        }
    }

    /// The calls that remain, with targets that the emitter has estimated again; `None` if it contradicts the plan. It may begin
    /// with the call that has just ended: where one call ends and the next one begins, a robot looks the same.
    pub(super) fn aim(&self, body: &Body<'_>, seen: &[SkillCall]) -> Option<Vec<SkillCall>> {
        let plan = &self.executed.calls;
        let same = |skip: usize| {
            let pairs = plan.iter().zip(seen.iter().skip(skip));
            pairs.take_while(|(one, other)| body.is_near(one, other, AGREES)).count()
        };
        let (one, other) = (same(0), same(1));
        let (skip, common) = if other > one { (1, other) } else { (0, one) };
        let aimed = seen.iter().skip(skip).take(common).chain(&plan[common..]);
        (common > 0).then(|| aimed.cloned().collect())
    }

    /// The targets of the plan were estimated again.
    pub(super) fn aimed(&mut self, executed: Executed) {
        self.executed = executed;
        self.call = self.executed.calls.first().cloned();
    }

    /// The call that leads back to where the episode began, with open grippers. Demonstrations of a task begin there, and a program
    /// of several tasks begins each of them there.
    fn home(&self, body: &Body<'_>) -> Option<SkillCall> {
        let (start, layout) = (self.start.as_ref().filter(|_| body.rhythm.returns)?, &body.alphabet.layout);
        let fits = |skill: &&Skill| !skill.closed.contains(&true) && skill.arguments.len() == layout.groups.len();
        let skill = body.alphabet.skills.iter().filter(fits).max_by_key(|skill| skill.members)?;
        let at = body.alphabet.skills.iter().position(|one| one.name == skill.name)?;
        let arguments = skill.arguments.iter().map(|group| Argument::To(start[*group].clone())).collect();
        Some(SkillCall { skill: SkillId(at), arguments })
    }

    /// How many calls at the beginning of a program, written for this request, are over: where one call ends and the next one
    /// begins, a robot looks the same, and the emitter may write the call again that has just ended.
    pub(super) fn over(&self, body: &Body<'_>, motion: &Written) -> usize {
        let is_again = self.finished.is_some() && body.is_same(self.finished.as_ref(), motion.calls.first());
        usize::from(body.rhythm.emission != Emission::Request && is_again && motion.calls.len() > 1)
    }

    /// A program was written for this request, and its first calls are over.
    pub(super) fn begin(
        &mut self,
        body: &Body<'_>,
        position: &Position,
        executed: Executed,
        task: Written,
        motion: Written,
        over: usize,
    ) {
        let (before, now) = (self.motion.calls.get(self.active), motion.calls.first());
        let is_same = self.written && body.is_same(before, now);
        let goes_on = self.written && before.map(|call| call.skill) == now.map(|call| call.skill);
        let (under_way, distance) = (self.under_way, self.distance);
        (self.executed, self.task, self.motion, self.active) = (executed, task, motion, over);
        self.begin_call(body, position);
        if body.rhythm.emission == Emission::Request {
            // The same skill with a corrected target is the call that is under way; the emitter is asked again in any case.
            if goes_on {
                (self.under_way, self.distance) = (under_way, distance);
            }
            self.kept = 0.0;
            return;
        }
        let is_stuck = (is_same && over == 0) || self.motion.calls.is_empty();
        self.kept = if is_stuck { (KEPT * body.rhythm.replan.max(1)) as f64 } else { 0.0 };
    }

    /// The next calls of the client's program are what the decoder reads.
    pub(super) fn begin_motion(&mut self, body: &Body<'_>, position: &Position, executed: Executed) {
        if let Plan::Program(steps) = &self.plan
            && let Some(Step::Motion { written }) = steps.get(self.step)
        {
            (self.motion, self.task) = (written.clone(), written.clone());
        }
        if self.returning {
            (self.motion, self.task, self.written) = (Written::default(), Written::default(), true);
        }
        self.executed = executed;
        self.begin_call(body, position);
        self.kept = 0.0;
    }

    /// How far the active call is.
    pub(super) fn under_way(&self) -> UnderWay {
        self.under_way
    }

    /// The controller has planned the next actions, which carry out some calls and begin another one.
    pub(super) fn followed(&mut self, body: &Body<'_>, position: &Position, over: usize, under_way: UnderWay) {
        if over > 0 {
            (self.has_begun, self.is_unseen) = (true, true);
            self.active += over;
            self.finished = self.executed.calls.get(over - 1).cloned();
            self.executed.calls.drain(..over.min(self.executed.calls.len()));
            self.call = self.executed.calls.first().cloned();
            self.distance = self.call.as_ref().and_then(|call| body.alphabet.left(call, position));
            self.left = self.distance;
        }
        // The next request adds the steps that will have been executed.
        let executed = body.rhythm.replan.max(1) as f64;
        self.under_way = UnderWay { steps: under_way.steps - executed, ..under_way };
    }

    /// How much of the active call is done.
    pub(super) fn progress(&self, body: &Body<'_>, position: &Position) -> Option<f64> {
        let (whole, left) = (self.distance?, body.alphabet.left(self.call.as_ref()?, position)?);
        Some(if whole <= REACHED { 1.0 } else { (1.0 - left / whole).clamp(0.0, 1.0) })
    }

    /// Whether the active step of a client's program says by itself how to move.
    fn is_given_motion(&self) -> bool {
        let Plan::Program(steps) = &self.plan else { return false };
        matches!(steps.get(self.step), Some(Step::Motion { .. }))
    }

    fn begin_call(&mut self, body: &Body<'_>, position: &Position) {
        self.written = true;
        self.call = self.executed.calls.first().cloned();
        let begun = self.call.as_ref().map(|call| body.alphabet.begun(self.finished.as_ref(), call, position));
        self.under_way = begun.unwrap_or(UnderWay { steps: 0.0, timed: true });
        self.distance = self.call.as_ref().and_then(|call| body.alphabet.left(call, position));
        self.left = self.distance;
    }

    fn has_ended(&self, body: &Body<'_>, position: &Position) -> bool {
        let Some(call) = &self.call else { return true };
        let taken = self.under_way.steps;
        let usual = body.alphabet.skills.get(call.skill.0).map_or(0.0, |skill| skill.duration.steps);
        // Without a target that can be seen time alone tells.
        let Some(left) = body.alphabet.left(call, position) else { return taken >= usual };
        if self.under_way.timed && taken < usual {
            return false;
        }
        let is_stalled = self.left.is_some_and(|before| left > before - STALLED);
        left <= REACHED || (taken >= usual && is_stalled) || taken >= usual * PATIENCE
    }

    /// The active call has ended: on to the next call or the next step.
    fn finish_call(&mut self, is_over: bool) {
        let Plan::Program(steps) = &self.plan else { return };
        let last = match &steps[self.step.min(steps.len() - 1)] {
            Step::Motion { written } => {
                self.active += 1;
                self.active >= written.calls.len()
            }
            Step::Known { .. } | Step::New { .. } => is_over,
        };
        if last && self.step + 1 < steps.len() {
            self.step += 1;
            self.active = 0;
            // What comes next is another call, even if it is of the same skill.
            (self.written, self.has_begun) = (false, false);
        } else if matches!(steps[self.step], Step::Motion { .. }) && last {
            // The program is over: its last call stays active.
            self.active = self.active.saturating_sub(1);
        }
    }
}

impl Body<'_> {
    /// Where the robot is, from its state.
    pub(super) fn position(&self, state: &[f32]) -> Position {
        let layout = &self.alphabet.layout;
        let still = vec![0.0; layout.width];
        let read = || {
            let (actions, states) = (Points::new(&still, layout.width).ok()?, Points::new(state, state.len()).ok()?);
            Some(Episode::new(layout, actions, Some(states)).ok()?.position(0))
        };
        read().unwrap_or_else(|| unknown(layout))
    }

    /// How far a position is from a path as far as groups are seen, in steps of the grid; 0 for a path without points.
    fn off_path(&self, position: &Position, path: &[Position]) -> f64 {
        let flat = |position: &Position| -> Vec<f64> {
            let groups = position.iter().zip(&self.alphabet.grids).zip(&self.alphabet.layout.groups);
            let seen = groups.filter(|(_, group)| is_seen(group)).map(|(parts, _)| parts);
            let in_steps = |(place, grid): (&f64, &f64)| if *grid > 0.0 { place / grid } else { 0.0 };
            seen.flat_map(|(places, grids)| places.iter().zip(grids).map(in_steps)).collect()
        };
        let (position, path): (Vec<f64>, Vec<Vec<f64>>) = (flat(position), path.iter().map(flat).collect());
        let distances = path.windows(2).map(|ends| from_line(&position, &ends[0], &ends[1]));
        distances.reduce(f64::min).unwrap_or(0.0)
    }

    /// Whether two calls are the same up to a step of the grid: the emitter never writes exactly the same numbers twice.
    fn is_same(&self, one: Option<&SkillCall>, other: Option<&SkillCall>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
        self.is_near(one, other, 1.0)
    }

    /// Whether two calls are of one skill and their targets at most so many steps of the grid apart.
    fn is_near(&self, one: &SkillCall, other: &SkillCall, steps: f64) -> bool {
        let near = |(one, other): (&Argument, &Argument), grids: &[f64]| match (one, other) {
            (Argument::To(one), Argument::To(other)) | (Argument::By(one), Argument::By(other)) => one
                .iter()
                .zip(other)
                .zip(grids)
                .all(|((one, other), grid)| (one - other).abs() <= steps * grid.max(1e-9)),
            _ => false,
        };
        let Some(skill) = self.alphabet.skills.get(one.skill.0).filter(|_| one.skill == other.skill) else {
            return false;
        };
        let pairs = one.arguments.iter().zip(&other.arguments).zip(&skill.arguments);
        pairs.into_iter().all(|(pair, group)| near(pair, &self.alphabet.grids[*group]))
    }
}

/// How far a point is from the line between two others.
fn from_line(point: &[f64], start: &[f64], end: &[f64]) -> f64 {
    let between = |from: &[f64], to: &[f64]| -> Vec<f64> { from.iter().zip(to).map(|(from, to)| to - from).collect() };
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let (way, own) = (between(start, end), between(start, point));
    let share = (dot(&way, &own) / dot(&way, &way).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    own.iter().zip(&way).map(|(own, way)| (own - share * way).powi(2)).sum::<f64>().sqrt()
}

/// Whether the state tells where a group is.
fn is_seen(group: &skills::Group) -> bool {
    !group.states.is_empty() && group.control != Control::Velocity
}

fn unknown(layout: &ActionLayout) -> Position {
    layout.groups.iter().map(|group| vec![0.0; group.dims()]).collect()
}
