//! What a robot's own signals say in symbols: the deterministic oracle in the place of a language model.
//!
//! | predicate | holds if |
//! |---|---|
//! | closed | a gripper is told to close |
//! | holding | the first gripper is told to close, its fingers rest, and they do not touch each other |
//! | raised | the end effector is above the median height of the training episodes |
//!
//! A frame also has the direction in which the end effector moves: up, down, level, or not at all.

use std::ops::Range;

use super::fragments::Demonstrated;

/// Speeds below this share of the 95th percentile of the training episodes are rest.
const REST: f64 = 0.1;

/// A direction is up or down if at least this share of the speed is vertical.
const VERTICAL: f64 = 0.6;

/// Fingers that are open by less than this share of their range touch each other.
const TOUCHING: f64 = 0.05;

/// Fingers that move by less than this share of their range within [`SPAN`] seconds rest.
const STEADY: f64 = 0.02;

/// Seconds over which speeds are measured.
const SPAN: f64 = 0.2;

/// The predicates of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Conditions {
    /// One bit for each gripper.
    pub(super) closed: u8,
    pub(super) holding: bool,
    pub(super) raised: bool,
}

impl Conditions {
    /// In how many predicates two frames differ.
    pub(super) fn differing(self, other: Conditions) -> u32 {
        (self.closed ^ other.closed).count_ones()
            + u32::from(self.holding != other.holding)
            + u32::from(self.raised != other.raised)
    }
}

/// Which way an end effector moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Rest,
    Up,
    Down,
    Level,
}

/// The symbols of an episode, one of each for each frame.
pub(super) struct Symbols {
    pub(super) conditions: Vec<Conditions>,
    pub(super) directions: Vec<Direction>,
}

/// What the training episodes say about heights and speeds.
pub(super) struct Oracle {
    height: f64,
    fast: f64,
    /// Frames of half a [`SPAN`].
    reach: usize,
}

impl Oracle {
    /// Measures the training episodes.
    pub(super) fn of(episodes: &[Demonstrated], fps: f64) -> Oracle {
        let reach = ((SPAN / 2.0 * fps).round() as usize).max(1);
        let places = || episodes.iter().filter(|episode| !episode.place.is_empty());
        let heights: Vec<f64> = places().flat_map(|episode| episode.place.iter().map(|place| place[2])).collect();
        let speeds: Vec<f64> = places()
            .flat_map(|episode| (0..episode.place.len()).map(|at| length(moved(&episode.place, at, reach))))
            .collect();
        Oracle { height: quantile(heights, 0.5), fast: quantile(speeds, 0.95), reach }
    }

    /// The symbols of an episode.
    pub(super) fn read(&self, episode: &Demonstrated) -> Symbols {
        let frames = 0..episode.frames.len();
        let condition = |at: usize| {
            let closed = episode.closed[at];
            let holding = closed & 1 == 1 && episode.opening.get(at).is_some_and(|open| *open > TOUCHING) && {
                let (first, last) = around(at, self.reach, episode.opening.len());
                (episode.opening[last] - episode.opening[first]).abs() < STEADY
            };
            Conditions { closed, holding, raised: episode.place.get(at).is_some_and(|place| place[2] > self.height) }
        };
        let direction = |at: usize| {
            if episode.place.is_empty() {
                return Direction::Rest;
            }
            let step = moved(&episode.place, at, self.reach);
            let speed = length(step);
            match step[2] / speed.max(f64::MIN_POSITIVE) {
                _ if speed < REST * self.fast => Direction::Rest,
                rise if rise > VERTICAL => Direction::Up,
                rise if rise < -VERTICAL => Direction::Down,
                _ => Direction::Level,
            }
        };
        Symbols { conditions: frames.clone().map(condition).collect(), directions: frames.map(direction).collect() }
    }
}

impl Symbols {
    /// Rows between which the contact changes (closed, holding) and, with `vertical`, the direction. A stretch of fewer than
    /// `least` rows belongs to the one before it.
    pub(super) fn stretches(&self, vertical: bool, least: usize) -> Vec<Range<usize>> {
        let key = |at: usize| {
            let Conditions { closed, holding, .. } = self.conditions[at];
            (closed, holding, vertical.then(|| self.directions[at]))
        };
        let mut found: Vec<Range<usize>> = Vec::new();
        for at in 0..self.conditions.len() {
            match found.last_mut() {
                Some(last) if key(last.start) == key(at) => last.end = at + 1,
                // Too short to stand alone: what begins here is part of it.
                Some(last) if last.len() < least => last.end = at + 1,
                _ => found.push(at..at + 1),
            }
        }
        let short = found.last().is_some_and(|last| last.len() < least);
        if let (true, Some(last)) = (short && found.len() > 1, found.last().cloned()) {
            found.pop();
            found.iter_mut().next_back().into_iter().for_each(|before| before.end = last.end);
        }
        found
    }

    /// The predicates before a stretch and after it.
    pub(super) fn around(&self, rows: &Range<usize>) -> (Conditions, Conditions) {
        let last = self.conditions.len().saturating_sub(1);
        (self.conditions[rows.start.min(last)], self.conditions[rows.end.min(last)])
    }

    /// The commonest direction of a stretch.
    pub(super) fn direction(&self, rows: &Range<usize>) -> Direction {
        let all = [Direction::Rest, Direction::Up, Direction::Down, Direction::Level];
        let count = |which: &Direction| self.directions[rows.clone()].iter().filter(|one| *one == which).count();
        all.into_iter().rev().max_by_key(count).unwrap_or(Direction::Rest)
    }
}

/// How far a place moves around a row.
fn moved(places: &[[f64; 3]], at: usize, reach: usize) -> [f64; 3] {
    let (first, last) = around(at, reach, places.len());
    let time = (last - first).max(1) as f64;
    std::array::from_fn(|axis| (places[last][axis] - places[first][axis]) / time)
}

fn around(at: usize, reach: usize, count: usize) -> (usize, usize) {
    (at.saturating_sub(reach), (at + reach).min(count.saturating_sub(1)))
}

fn length(vector: [f64; 3]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let found = clustering::quantile(&values, share);
    if found.is_finite() { found } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode() -> Demonstrated {
        // Down for ten frames, closing for ten, up for ten with an object in the hand.
        let height = |at: usize| match at {
            0..10 => 0.3 - 0.02 * at as f64,
            10..20 => 0.1,
            _ => 0.1 + 0.02 * (at - 20) as f64,
        };
        let opening = |at: usize| match at {
            0..10 => 1.0,
            10..15 => 1.0 - 0.1 * (at - 9) as f64,
            _ => 0.5,
        };
        Demonstrated {
            episode: dataset::EpisodeId(0),
            frames: 100..130,
            verbs: vec![],
            closed: (0..30).map(|at| u8::from(at >= 10)).collect(),
            opening: (0..30).map(opening).collect(),
            place: (0..30).map(|at| [0.0, 0.0, height(at)]).collect(),
        }
    }

    #[test]
    fn a_grasp_is_read_from_the_signals() {
        let episode = episode();
        let oracle = Oracle::of(std::slice::from_ref(&episode), 20.0);
        let symbols = oracle.read(&episode);
        let contacts = symbols.stretches(false, 3);
        assert_eq!(contacts.len(), 3, "{contacts:?}");
        assert_eq!(contacts[0], 0..10);
        assert!((14..19).contains(&contacts[2].start), "held once the fingers rest: {contacts:?}");
        let (before, after) = symbols.around(&contacts[1]);
        assert!(before.closed == 1 && !before.holding && after.holding);
        assert_eq!(symbols.direction(&contacts[0]), Direction::Down);
        let with_direction = symbols.stretches(true, 3);
        assert!(with_direction.iter().any(|rows| symbols.direction(rows) == Direction::Up), "{with_direction:?}");
        assert_eq!(with_direction.iter().map(Range::len).sum::<usize>(), 30, "they cover the episode");
    }

    #[test]
    fn short_stretches_join_the_one_before() {
        let closed = [0, 0, 0, 0, 1, 0, 0, 0, 1];
        let conditions = closed.map(|closed| Conditions { closed, ..Conditions::default() }).to_vec();
        let symbols = Symbols { directions: vec![Direction::Rest; conditions.len()], conditions };
        assert_eq!(symbols.stretches(false, 1), [0..4, 4..5, 5..8, 8..9]);
        assert_eq!(symbols.stretches(false, 2), [0..4, 4..9]);
    }
}
