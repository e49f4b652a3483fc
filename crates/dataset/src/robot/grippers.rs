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

/// What is known of a gripper by its fingers: threshold, signs, and which commands close it. Says how in `evidence`.
pub(super) fn described(
    (actions, column): (&Matrix, usize),
    (states, fingers, names): (&Matrix, &[usize], &[&str]),
    (spans, fps): (&[EpisodeSpan], f64),
    evidence: &mut Vec<String>,
) -> Gripper {
    let threshold = threshold(actions, column);
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
    if fingers.len() == 1 && !closing {
        let grows = if signs[0] > 0.0 { "grows" } else { "falls" };
        evidence.push(format!("Its state is taken to be the opening, which {grows} as the gripper opens."));
    }
    Gripper { threshold, closes_above, signs }
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
