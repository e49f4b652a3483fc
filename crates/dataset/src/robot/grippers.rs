//! Grippers by their numbers: commands with two levels, and fingers that follow them.

use super::Gripper;
use super::measure::quantiles;
use crate::columns::Matrix;
use crate::ids::EpisodeSpan;

/// Seconds after which a gripper has followed its command.
const FOLLOWED: f64 = 0.25;

/// Mean openings differ by this share of their range or more, if the command is what makes the difference.
const LEAST_SHARE: f64 = 0.1;

/// A level reaches so far into the range of the values, and both together have this share of the frames.
const LEVEL: f64 = 0.05;
const SHARE_OF_LEVELS: f64 = 0.8;

/// The least share of the frames that each level has: of two values, and of levels that values are only near to.
const LEAST_OF_VALUES: f64 = 0.01;
const LEAST_OF_LEVELS: f64 = 0.05;

/// The longest that a command takes from one level to the other, in seconds. Joints take longer.
const LONGEST_CHANGE: f64 = 0.2;

/// How a state that stops short of its command is known, all as shares of the command's range: what is at rest, how far
/// a free state is from its command at most, how far a held one is at least, and how near the end its commands are.
const AT_REST: f64 = 0.02;
const FREE: f64 = 0.05;
const STOPPED: f64 = 0.1;
const NEAR_END: f64 = 0.25;

/// Seconds for which a command and its state have to rest.
const RESTED: f64 = 0.2;

/// The least share of the frames at rest in which the state is stopped, and in which it is free.
const LEAST_STOPPED: f64 = 0.03;

/// Commands of the fingers of one hand have this squared correlation at least.
const TOGETHER: f64 = 0.8;

/// Values that are looked at for their range, at most.
const VALUES: usize = 20_000;

/// Why a column's numbers are those of a gripper's command, in words that follow the column's name.
pub(super) fn levels(actions: &Matrix, column: usize, spans: &[EpisodeSpan], fps: f64) -> Option<String> {
    let values = || sampled(actions, column);
    let count = values().count().max(1) as f64;
    if let Some([low, high]) = two_values(actions, column) {
        let share = values().filter(|value| *value == f64::from(high)).count() as f64 / count;
        let both = (LEAST_OF_VALUES..=1.0 - LEAST_OF_VALUES).contains(&share);
        return both.then(|| format!("takes only the values {low} and {high}"));
    }
    let [low, high] = bounds(actions, column)?;
    let near = LEVEL * (high - low);
    if near <= 0.0 {
        return None;
    }
    let level = |value: f64| match () {
        () if value <= low + near => Some(false),
        () if value >= high - near => Some(true),
        () => None,
    };
    let shares = [false, true].map(|one| values().filter(|value| level(*value) == Some(one)).count() as f64);
    let [below, above] = shares.map(|frames| frames / count);
    if below < LEAST_OF_LEVELS || above < LEAST_OF_LEVELS || below + above < SHARE_OF_LEVELS {
        return None;
    }
    // How many frames lie between two levels, for each change from one to the other.
    let mut changes = Vec::new();
    for span in spans {
        let mut last: Option<(usize, bool)> = None;
        for frame in span.frames.clone() {
            if let Some(now) = level(super::value(actions, frame, column)) {
                if let Some((before, level)) = last
                    && level != now
                {
                    changes.push((frame - before - 1) as f64);
                }
                last = Some((frame, now));
            }
        }
    }
    let [_, longest] = quantiles(changes.iter().copied(), [0.5, 0.75])?;
    let quick = changes.len() >= 2 && longest <= (LONGEST_CHANGE * fps).max(1.0);
    let percent = (100.0 * (below + above)).round();
    quick
        .then(|| format!("is near {low:.4} or {high:.4} in {percent} % of the frames and changes quickly between them"))
}

/// A state that stops at something before it is where its command wants it, as fingers on an object do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stopped {
    /// Whether that happens at high commands.
    pub(super) above: bool,
    /// The share of the frames at rest in which it does.
    pub(super) share: f64,
}

/// Looks for a state that is where its command wants it at one end of its range, and stops before it at the other.
pub(super) fn stopped(
    (actions, column): (&Matrix, usize),
    (states, state): (&Matrix, usize),
    (spans, fps): (&[EpisodeSpan], f64),
) -> Option<Stopped> {
    let [low, high] = bounds(actions, column)?;
    let range = high - low;
    if range <= 0.0 {
        return None;
    }
    let rested = (RESTED * fps).round().max(1.0) as usize;
    // Command, and how far the state is from it, both as shares of the range.
    let mut rests: Vec<(f64, f64)> = Vec::new();
    for span in spans {
        for frame in span.frames.clone().skip(rested) {
            let command = super::value(actions, frame, column);
            let found = super::value(states, frame, state);
            let moved = (command - super::value(actions, frame - rested, column)).abs();
            let followed = (found - super::value(states, frame - rested, state)).abs();
            if moved.max(followed) <= AT_REST * range {
                rests.push(((command - low) / range, (found - command) / range));
            }
        }
    }
    let [least, most] = quantiles(rests.iter().map(|(_, apart)| *apart), [0.02, 0.98])?;
    let (free, far) = if least.abs() < most.abs() { (least, most) } else { (most, least) };
    if free.abs() > FREE || (far - free).abs() < STOPPED {
        return None;
    }
    let is_stopped = |apart: f64| (apart - free).abs() > (apart - far).abs();
    let count = |test: &dyn Fn(f64, f64) -> bool| rests.iter().filter(|(at, apart)| test(*at, *apart)).count() as f64;
    // The state is above a command that is too low, and below one that is too high.
    let above = far < free;
    let near_end = |at: f64| if above { at >= 1.0 - NEAR_END } else { at <= NEAR_END };
    let all = rests.len() as f64;
    let halted = count(&|_, apart| is_stopped(apart));
    let at_end = count(&|at, apart| is_stopped(apart) && near_end(at));
    let free = count(&|at, apart| !is_stopped(apart) && !near_end(at));
    let sound = halted >= LEAST_STOPPED * all && free >= LEAST_STOPPED * all && at_end >= 0.9 * halted;
    sound.then_some(Stopped { above, share: halted / all })
}

/// Whether two columns are commanded alike.
pub(super) fn together(actions: &Matrix, one: usize, other: usize) -> bool {
    let pairs: Vec<(f64, f64)> = sampled(actions, one).zip(sampled(actions, other)).collect();
    let count = pairs.len().max(1) as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / count, y + pair.1 / count));
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    xx > 0.0 && yy > 0.0 && xy * xy >= TOGETHER * xx * yy
}

/// Whether a column takes exactly two values, each of them in some frames.
pub(super) fn is_switch(actions: &Matrix, column: usize) -> bool {
    two_values(actions, column).is_some()
}

/// Whether a line of evidence says which commands close a gripper.
pub(super) fn is_about_polarity(line: &str) -> bool {
    line.starts_with("After commands ")
        || line.starts_with("Which command closes it")
        || line.starts_with("Its state stops short of ")
        || line.starts_with("Its state is taken to be the opening")
        || line.starts_with("The name of the action says that high commands")
}

/// What is known of a gripper by its fingers: threshold, signs, and which commands close it, and whether that is a
/// guess. Says how in `evidence`.
pub(super) fn described(
    (actions, column): (&Matrix, usize),
    (states, fingers, names): (&Matrix, &[usize], &[&str]),
    (spans, fps): (&[EpisodeSpan], f64),
    evidence: &mut Vec<String>,
) -> (Gripper, bool) {
    let threshold = threshold(actions, column);
    if let &[finger] = fingers
        && let Some(Stopped { above, share }) = stopped((actions, column), (states, finger), (spans, fps))
    {
        let (high, percent) = (if above { "high" } else { "low" }, (100.0 * share).round());
        evidence.push(format!(
            "Its state stops short of {high} commands in {percent} % of the frames at rest, as fingers on an object do: \
             {high} commands close it."
        ));
        let signs = vec![if above { -1.0 } else { 1.0 }];
        return (Gripper { threshold, closes_above: Some(above), signs }, false);
    }
    let closing = names.iter().any(|name| super::names::words(name).iter().any(|word| word.starts_with("clos")));
    let downwards = |column: &usize| bounds(states, *column).is_some_and(|[least, most]| least + most < 0.0);
    let signs: Vec<f64> = fingers.iter().map(|column| if downwards(column) != closing { -1.0 } else { 1.0 }).collect();
    let opening = |frame: usize| -> f64 {
        fingers.iter().zip(&signs).map(|(column, sign)| sign * super::value(states, frame, *column)).sum()
    };
    let followed = (FOLLOWED * fps).round().max(1.0) as usize;
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for span in spans {
        for frame in span.frames.clone() {
            let opening = opening((frame + followed).min(span.frames.end - 1));
            let command = super::value(actions, frame, column);
            if opening.is_finite() && command.is_finite() {
                let high = usize::from(command > f64::from(threshold));
                sums[high] += opening;
                counts[high] += 1.0;
                (least, most) = (least.min(opening), most.max(opening));
            }
        }
    }
    let [low, high] = [sums[0] / counts[0], sums[1] / counts[1]];
    // Without commands on one side the mean is not a number, and nothing is seen.
    let seen = !fingers.is_empty() && (high - low).abs() > LEAST_SHARE * (most - least);
    let closes_above = seen.then_some(high < low);
    let fingers_are = if fingers.len() == 2 { "the fingers are closer together" } else { "its state is more closed" };
    match closes_above {
        Some(true) => evidence.push(format!("After commands above {threshold} {fingers_are}.")),
        Some(false) => evidence.push(format!("After commands below {threshold} {fingers_are}.")),
        None => evidence.push("Which command closes it is not known: no state shows how far it is open.".to_owned()),
    }
    let is_guess = fingers.len() == 1 && !closing;
    if is_guess {
        let grows = if signs[0] > 0.0 { "grows" } else { "falls" };
        evidence.push(format!("Its state is taken to be the opening, which {grows} as the gripper opens."));
    }
    (Gripper { threshold, closes_above, signs }, is_guess)
}

/// Half-way between the lowest and the highest value; zero if there is one value only.
fn threshold(matrix: &Matrix, column: usize) -> f32 {
    let bounds = two_values(matrix, column).map(|values| values.map(f64::from)).or_else(|| bounds(matrix, column));
    bounds.filter(|[least, most]| most > least).map_or(0.0, |[least, most]| ((least + most) / 2.0) as f32)
}

/// The range of a column but for its outermost values, which may be wrong.
fn bounds(matrix: &Matrix, column: usize) -> Option<[f64; 2]> {
    quantiles(sampled(matrix, column), [0.002, 0.998])
}

/// Values of a column from evenly spaced rows.
fn sampled(matrix: &Matrix, column: usize) -> impl Iterator<Item = f64> {
    let rows = matrix.values.len() / matrix.width.max(1);
    (0..rows).step_by(rows.div_ceil(VALUES).max(1)).map(move |row| super::value(matrix, row, column))
}

fn column_values(matrix: &Matrix, column: usize) -> impl Iterator<Item = f32> {
    matrix.values.chunks_exact(matrix.width.max(1)).map(move |row| row[column])
}

/// The two values of a column that has exactly two, in ascending order.
fn two_values(matrix: &Matrix, column: usize) -> Option<[f32; 2]> {
    let mut known: Option<[f32; 2]> = None;
    let first = column_values(matrix, column).next()?;
    for value in column_values(matrix, column) {
        match known {
            None if value == first => {}
            None if value.is_finite() => known = Some([first.min(value), first.max(value)]),
            Some(known) if known.contains(&value) => {}
            _ => return None,
        }
    }
    known.filter(|values| values[0].is_finite())
}
