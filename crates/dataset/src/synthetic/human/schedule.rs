//! When an operator is where: the recorded time at each new frame, and the corrections on the way.

use super::signals::Paths;
use super::{Operator, Part, Recording};
use crate::draw::{Purpose, bell, generator, unit};

/// Seconds in which a hand comes to rest before a hesitation, and starts again.
const EASE: f64 = 0.1;

/// The least and the most seconds of a correction.
const CORRECTION: [f64; 2] = [0.3, 0.5];

/// The slowest and the fastest that a person works, as shares of the recorded speed.
const SPEEDS: [f64; 2] = [0.4, 1.6];

/// A motion is fast from this share of the fast speed on, and ends where its speed falls below this share of its largest.
const MOVES: f64 = 0.3;
const ENDS: f64 = 0.3;

/// The operator's time.
pub(super) struct Schedule {
    /// For each new frame the recorded frame that it is at, with fractions; ascending.
    pub(super) times: Vec<f64>,
    /// Where an operator overshoots and returns.
    pub(super) corrections: Vec<Correction>,
}

/// An overshoot and the return from it.
pub(super) struct Correction {
    /// Its first new frame, and how many it lasts.
    pub(super) start: usize,
    pub(super) frames: usize,
    /// The recorded frame at which the motion ends.
    pub(super) at: f64,
}

/// Time that is inserted at a recorded frame.
struct Pause {
    at: f64,
    frames: usize,
    correction: bool,
}

impl Schedule {
    pub(super) fn draw(recorded: &Recording, parts: &[Part], operator: &Operator, seed: u64, episode: u64) -> Schedule {
        let (rows, fps) = (recorded.labels.len(), recorded.fps);
        let pauses = pauses(recorded, parts, operator, seed, episode);
        let mut speeds = Speeds::new(operator.speed, fps, seed, episode);
        let (mut times, mut corrections) = (Vec::with_capacity(rows), Vec::new());
        let mut waiting = pauses.into_iter().peekable();
        let mut now = 0.0;
        while (now as usize) < rows {
            if let Some(pause) = waiting.next_if(|pause| pause.at <= now) {
                if pause.correction {
                    corrections.push(Correction { start: times.len(), frames: pause.frames, at: now });
                }
                let ease = EASE * fps;
                for frame in 0..pause.frames {
                    times.push(now);
                    let (since, until) = (frame as f64, (pause.frames - frame) as f64);
                    let moving = (1.0 - since / ease).max(1.0 - until / ease).max(0.0);
                    now = (now + moving * speeds.next(times.len())).min((rows - 1) as f64);
                }
                continue;
            }
            times.push(now);
            now += speeds.next(times.len());
        }
        Schedule { times, corrections }
    }

    /// The recorded frame at a new frame that may have fractions.
    pub(super) fn time(&self, frame: f64) -> f64 {
        let frame = frame.max(0.0);
        let first = (frame as usize).min(self.times.len().saturating_sub(1));
        let second = (first + 1).min(self.times.len().saturating_sub(1));
        let share = (frame - first as f64).clamp(0.0, 1.0);
        self.times[first] + share * (self.times[second] - self.times[first])
    }
}

/// The speed of an operator as a share of the recorded one: linear between random knots, a second apart.
struct Speeds {
    random: rand_chacha::ChaCha8Rng,
    deviation: f64,
    fps: f64,
    knots: [f64; 2],
    passed: usize,
}

impl Speeds {
    fn new(deviation: f64, fps: f64, seed: u64, episode: u64) -> Speeds {
        let mut random = generator(seed, Purpose::Operator, [episode, 0]);
        let knots = [f64::from(bell(&mut random)), f64::from(bell(&mut random))];
        Speeds { random, deviation, fps, knots, passed: 0 }
    }

    fn next(&mut self, frame: usize) -> f64 {
        let second = frame as f64 / self.fps;
        while self.passed < second as usize {
            self.knots = [self.knots[1], f64::from(bell(&mut self.random))];
            self.passed += 1;
        }
        let share = second - self.passed as f64;
        let drawn = self.knots[0] + share * (self.knots[1] - self.knots[0]);
        (1.0 + self.deviation * drawn).clamp(SPEEDS[0], SPEEDS[1])
    }
}

/// Hesitations anywhere and corrections at the ends of motions, in the order of recorded frames.
fn pauses(recorded: &Recording, parts: &[Part], operator: &Operator, seed: u64, episode: u64) -> Vec<Pause> {
    let (rows, fps) = (recorded.labels.len(), recorded.fps);
    let mut random = generator(seed, Purpose::Operator, [episode, 1]);
    let mut between =
        |[least, most]: [f64; 2]| ((least + (most - least) * f64::from(unit(&mut random))) * fps).round() as usize;
    let mut drawn = generator(seed, Purpose::Operator, [episode, 2]);
    let mut found = Vec::new();
    for row in 0..rows {
        if f64::from(unit(&mut drawn)) * fps < operator.hesitations {
            found.push(Pause { at: row as f64, frames: between(operator.pause), correction: false });
        }
    }
    let mut drawn = generator(seed, Purpose::Operator, [episode, 3]);
    for row in ends(recorded, parts) {
        if f64::from(unit(&mut drawn)) < operator.corrections {
            found.push(Pause { at: row as f64, frames: between(CORRECTION), correction: true });
        }
    }
    found.retain(|pause| pause.frames > 0);
    found.sort_by(|one, other| one.at.total_cmp(&other.at).then(other.correction.cmp(&one.correction)));
    found
}

/// Recorded rows at which a motion comes to its end: its speed has fallen to a share of its largest.
fn ends(recorded: &Recording, parts: &[Part]) -> Vec<usize> {
    let paths = Paths::of_actions(recorded, parts);
    let rows = recorded.labels.len();
    let window = ((0.1 * recorded.fps).round() as usize).max(1);
    let speed = |row: usize| -> f64 {
        let own = row.saturating_sub(window)..(row + window).min(rows);
        paths.speed(own.start, own.end)
    };
    let (mut found, mut largest) = (Vec::new(), 0.0_f64);
    for row in 0..rows {
        let now = speed(row);
        largest = largest.max(now);
        if largest > MOVES && now < ENDS * largest {
            found.push(row);
            largest = 0.0;
        }
    }
    found
}
