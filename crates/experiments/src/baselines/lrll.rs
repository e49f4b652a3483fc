//! LRLL (Tziafas and Kasaei 2024): a library of skills that grows with each demonstration.
//!
//! LRLL asks a language model whether a trajectory is an instance of a skill of the library, a refinement of it, or a new
//! skill. Here the answer is a rule. Among the skills with the same conditions before and after ([`super::symbols`]), the one
//! with the nearest path is compared: up to `instance` it is an instance, up to twice that a refinement, which moves the
//! skill's path to the mean of all its instances, and beyond that a new skill. Training episodes come in their order.
//! Held-out stretches are looked up and change nothing.

use std::ops::Range;

use candle_core::Device;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blade::{Cutting, Signature, differing, missing};
use super::fragments::Demonstrated;
use super::symbols::Oracle;
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::error::Result;

/// Points of a path.
const POINTS: usize = 8;

/// The least seconds of a stretch.
const LEAST: f64 = 0.15;

/// A library that grows.
pub struct Lrll;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Whether a change of direction cuts too.
    vertical: bool,
    /// How far a path may be from that of a skill to be an instance of it, in root mean squares of all training paths.
    instance: f64,
}

/// A skill of the library.
struct Skill {
    signature: Signature,
    path: Vec<f64>,
    count: usize,
}

impl Operator for Lrll {
    fn name(&self) -> &'static str {
        "lrll"
    }

    fn source(&self) -> &'static str {
        "LRLL: a library that grows by instance, refinement or new skill; the language model that decides is replaced by a \
         deterministic oracle: the same conditions, and the distance of paths"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        let all = [(false, 0.5), (false, 1.0), (true, 0.5), (true, 1.0)];
        all.map(|(vertical, instance)| json!({ "vertical": vertical, "instance": instance })).to_vec()
    }

    fn missing(&self, data: &Fragments<'_>) -> Option<String> {
        missing(data)
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, _seed: u64, _device: &Device) -> Result<Found> {
        let Setting { vertical, instance } = setting(self.name(), choice)?;
        if !(instance > 0.0 && instance.is_finite()) {
            return Err(refused(self.name(), "instance", instance, "a positive distance"));
        }
        let (cutting, fps) = (Cutting { vertical, least: LEAST }, data.prepared.source.dataset.info().fps);
        let oracle = Oracle::of(&data.learned, fps);
        let cut = |episode: &Demonstrated| -> Vec<(Range<usize>, Signature, Vec<f64>)> {
            let found = cutting.cut(&oracle, episode, fps).into_iter();
            found.map(|(rows, signature)| (rows.clone(), signature, path(episode, &rows))).collect()
        };
        let training: Vec<(Range<usize>, Signature, Vec<f64>)> = data.learned.iter().flat_map(cut).collect();
        let size = root_mean_square(training.iter().map(|(_, _, path)| path));
        let mut library = Vec::new();
        for (_, signature, path) in training {
            grow(&mut library, signature, path, instance * size);
        }
        let stretches: Vec<Vec<(Range<usize>, i64)>> = data
            .held_out
            .iter()
            .map(|episode| {
                let first = episode.frames.start;
                let classified = cut(episode).into_iter().map(|(rows, signature, path)| {
                    let class = nearest(&library, &signature, &path, true).map_or(-1, |(at, _)| at as i64);
                    (first + rows.start..first + rows.end, class)
                });
                classified.collect()
            })
            .collect();
        Ok(data.found_of_stretches(&stretches))
    }
}

/// Adds a trajectory to the library.
fn grow(library: &mut Vec<Skill>, signature: Signature, path: Vec<f64>, instance: f64) {
    match nearest(library, &signature, &path, false) {
        Some((at, distance)) if distance <= 2.0 * instance => {
            let skill = &mut library[at];
            skill.count += 1;
            if distance > instance {
                let share = 1.0 / skill.count as f64;
                skill.path.iter_mut().zip(&path).for_each(|(mean, value)| *mean += share * (value - *mean));
            }
        }
        _ => library.push(Skill { signature, path, count: 1 }),
    }
}

/// The nearest skill with these conditions; with `any`, of those whose conditions differ least. The first of equals.
fn nearest(library: &[Skill], signature: &Signature, path: &[f64], any: bool) -> Option<(usize, f64)> {
    let key = |at: &usize| (differing(&library[*at].signature, signature), distance(&library[*at].path, path));
    let best = (0..library.len()).min_by(|one, other| {
        let ((one, near), (other, far)) = (key(one), key(other));
        one.cmp(&other).then(near.total_cmp(&far))
    })?;
    let (apart, distance) = key(&best);
    (any || apart == 0).then_some((best, distance))
}

/// Places relative to the first one and openings at even times of a stretch; zeros where the states do not say.
fn path(episode: &Demonstrated, rows: &Range<usize>) -> Vec<f64> {
    let row = |at: usize| rows.start + at * (rows.len() - 1) / (POINTS - 1);
    let from = episode.place.get(rows.start).copied().unwrap_or_default();
    (0..POINTS)
        .map(row)
        .flat_map(|row| {
            let place = episode.place.get(row).copied().unwrap_or_default();
            // A tenth of a metre counts as much as a gripper that opens: both are a skill's worth.
            let moved = std::array::from_fn::<f64, 3, _>(|axis| 10.0 * (place[axis] - from[axis]));
            let open = episode.opening.get(row).copied().unwrap_or_default();
            [moved[0], moved[1], moved[2], open]
        })
        .collect()
}

fn distance(one: &[f64], other: &[f64]) -> f64 {
    let square: f64 = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
    (square / one.len().max(1) as f64).sqrt()
}

fn root_mean_square<'a>(paths: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let (sum, count) = paths.flatten().fold((0.0, 0_usize), |(sum, count), value| (sum + value * value, count + 1));
    (sum / count.max(1) as f64).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baselines::symbols::Conditions;

    #[test]
    fn a_library_has_instances_refinements_and_new_skills() {
        let open = (Conditions::default(), Conditions::default(), None);
        let closed = (Conditions { closed: 1, ..Conditions::default() }, Conditions::default(), None);
        let mut library = Vec::new();
        grow(&mut library, open, vec![0.0], 1.0);
        grow(&mut library, open, vec![0.5], 1.0);
        assert_eq!((library.len(), library[0].path[0]), (1, 0.0), "an instance changes nothing");
        grow(&mut library, open, vec![1.5], 1.0);
        assert_eq!((library.len(), library[0].path[0]), (1, 0.5), "a refinement moves the path");
        grow(&mut library, open, vec![9.0], 1.0);
        grow(&mut library, closed, vec![0.5], 1.0);
        assert_eq!(library.len(), 3, "a far path and other conditions are new skills");
        assert_eq!(nearest(&library, &closed, &[9.0], true).unwrap().0, 2, "conditions come before paths");
    }
}
