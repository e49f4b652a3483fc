//! Robots made of a few columns, each with its rule.

mod measured;
mod named;
mod unnamed;
mod whole;

use serde_json::{Value, json};

use super::*;
use crate::columns::Matrix;
use crate::ids::{EpisodeSpan, TaskId};
use crate::info::{Dtype, Feature};
use crate::roles::Overrides;

/// The libraries' own small dataset.
fn embedded() -> Dataset {
    Dataset::open(crate::embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap()
}

/// Episodes of rows of states and actions.
#[derive(Default)]
struct Rows {
    states: Vec<Vec<f32>>,
    actions: Vec<Vec<f32>>,
    ends: Vec<usize>,
}

impl Rows {
    /// A dataset of them.
    fn dataset(self, fps: f64, states: Value, actions: Value) -> Dataset {
        let mut dataset = embedded();
        dataset.info.fps = fps;
        let matrix = |rows: &[Vec<f32>]| Matrix { width: rows.first().map_or(0, Vec::len), values: rows.concat() };
        (dataset.columns.states, dataset.columns.actions) = (matrix(&self.states), matrix(&self.actions));
        let sides = [(&dataset.roles.state, &self.states, states), (&dataset.roles.action, &self.actions, actions)];
        for (key, rows, names) in sides {
            let feature = dataset.info.features.iter_mut().find(|(known, _)| known == key).unwrap();
            feature.1 = Feature::new(Dtype::Float32, &[rows.first().map_or(0, Vec::len)]);
            feature.1.names = Some(names).filter(|names| !names.is_null());
        }
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends).map(|(start, end)| EpisodeSpan { frames: start..*end, task: TaskId(0) });
        dataset.spans = spans.collect();
        dataset
    }
}

/// A signal of one episode as a function of the frame.
type Signal = Vec<f32>;

/// Numbers between −1 and 1 that look random, always the same ones.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32 / (1 << 23) as f32) - 1.0
    }

    /// Moves between places with rests, as a joint's target has them: smooth, `seconds` long, within ±`reach`.
    fn target(&mut self, fps: f32, seconds: f32, reach: f32) -> Signal {
        let frames = (fps * seconds) as usize;
        let mut signal = vec![self.next() * reach];
        while signal.len() < frames {
            let (from, to) = (signal[signal.len() - 1], self.next() * reach);
            let steps = (fps * (1.2 + 0.6 * self.next())) as usize;
            let eased = |at: usize| {
                let part = at as f32 / steps as f32;
                from + (to - from) * part * part * (3.0 - 2.0 * part)
            };
            signal.extend((1..=steps).map(eased));
            signal.extend(vec![to; (fps * (0.3 + 0.2 * self.next())) as usize]);
        }
        signal.truncate(frames);
        signal
    }

    /// The same, `lag` frames later and with noise.
    fn followed(&mut self, signal: &[f32], lag: usize, noise: f32) -> Signal {
        (0..signal.len()).map(|at| signal[at.saturating_sub(lag)] + noise * self.next()).collect()
    }
}

/// Two levels that change a few times.
fn switched(frames: usize, low: f32, high: f32, changes: &[f32]) -> Signal {
    let level = |at: usize| changes.iter().filter(|change| at as f32 >= **change * frames as f32).count() % 2;
    (0..frames).map(|at| if level(at) == 1 { high } else { low }).collect()
}

/// The sums of a signal from a start, as positions are of velocities.
fn integrated(signal: &[f32], gain: f32, start: f32) -> Signal {
    let mut now = start;
    let step = |by: &f32| {
        let before = now;
        now += gain * by;
        before
    };
    signal.iter().map(step).collect()
}

/// The differences of a signal from frame to frame.
fn steps(signal: &[f32]) -> Signal {
    let next = |at: usize| signal[(at + 1).min(signal.len() - 1)] - signal[at];
    (0..signal.len()).map(next).collect()
}

/// Adds an episode of columns.
fn add(rows: &mut Rows, states: &[Signal], actions: &[Signal]) {
    let frames = actions[0].len();
    let row = |columns: &[Signal], at: usize| columns.iter().map(|column| column[at]).collect();
    rows.states.extend((0..frames).map(|at| row(states, at)));
    rows.actions.extend((0..frames).map(|at| row(actions, at)));
    rows.ends.push(rows.states.len());
}

/// Arms of joints that follow absolute targets.
fn joints(count: usize, fps: f32, episodes: usize, seed: u64) -> Rows {
    let (mut rows, mut noise) = (Rows::default(), Noise(seed));
    for _ in 0..episodes {
        let targets: Vec<Signal> = (0..count).map(|_| noise.target(fps, 8.0, 60.0)).collect();
        let lag = (fps * 0.1) as usize;
        let states: Vec<Signal> = targets.iter().map(|target| noise.followed(target, lag, 0.5)).collect();
        add(&mut rows, &states, &targets);
    }
    rows
}

/// `joint_0`, `joint_1`, …
fn numbered(word: &str, count: usize) -> Value {
    json!((0..count).map(|at| format!("{word}_{at}")).collect::<Vec<_>>())
}

/// Name, kind, control, actions and states of a group.
type Shown<'a> = (&'a str, GroupKind, Control, Vec<usize>, Vec<usize>);

/// What the groups are.
fn shown(layout: &RobotLayout) -> Vec<Shown<'_>> {
    let of = |group: &'_ Group| (group.kind, group.control, group.actions.clone(), group.states.clone());
    let row = |group| {
        let (kind, control, actions, states) = of(group);
        (group.name.as_str(), kind, control, actions, states)
    };
    layout.groups.iter().map(row).collect()
}
