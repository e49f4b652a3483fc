//! `meta/stats.json` against the data.
//!
//! Models read their scales from these numbers, so numbers of other data make them worse without a word. Only what every
//! writer agrees about is compared: count, least, greatest and mean. Quantiles of lerobot are means of episodes'
//! quantiles, and statistics of pictures come from samples.

use std::collections::BTreeMap;

use super::Validation;
use crate::fault::Fault;
use crate::roles::AUTOMATIC;
use crate::stats::{FeatureStats, STATS, Stats};

/// How far a number may be off, as a share of the range of its values.
const TOLERANCE: f64 = 1e-3;

/// No file of statistics that we know is longer, in bytes.
const MAX_STATS: u64 = 64 << 20;

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    count: u64,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    min: f64,
    max: f64,
    sum: f64,
}

impl Moments {
    pub(super) fn new(width: usize) -> Moments {
        Moments { count: 0, places: vec![Place { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0 }; width] }
    }

    /// Adds rows that follow each other.
    pub(super) fn add(&mut self, rows: &[f64]) {
        for row in rows.chunks_exact(self.places.len().max(1)) {
            self.count += 1;
            for (place, value) in self.places.iter_mut().zip(row) {
                place.min = place.min.min(*value);
                place.max = place.max.max(*value);
                place.sum += value;
            }
        }
    }

    /// Adds those of more rows; false if they do not go together.
    pub(super) fn merge(&mut self, more: &Moments) -> bool {
        self.count += more.count;
        for (place, more) in self.places.iter_mut().zip(&more.places) {
            place.min = place.min.min(more.min);
            place.max = place.max.max(more.max);
            place.sum += more.sum;
        }
        self.places.len() == more.places.len()
    }
}

/// Checks the file; against the data only if all of them could be read.
pub(super) fn check(validation: &Validation<'_>, moments: Option<&BTreeMap<String, Moments>>, faults: &mut Vec<Fault>) {
    let stats = match validation.root.read(STATS, MAX_STATS).and_then(|content| Stats::parse(&content)) {
        Ok(stats) => stats,
        Err(error) => return faults.extend(error.into_faults()),
    };
    let misfits = stats.misfits(&validation.info.features);
    let is_misfit =
        |key: &str| misfits.iter().any(|fault| matches!(fault, Fault::BadStats { key: bad, .. } if bad == key));
    if let Some(moments) = moments {
        // Columns that hold something which is not finite have no statistics worth comparing.
        // Counters are nobody's scale.
        let finite = |it: &Moments| it.places.iter().all(|place| place.sum.is_finite());
        let compared = moments.iter().filter(|(key, it)| finite(it) && !AUTOMATIC.contains(&key.as_str()));
        for (key, counted) in compared.filter(|(key, _)| !key.starts_with("next.") || *key == "next.reward") {
            match stats.get(key) {
                None => faults.push(Fault::NoStats { file: STATS.to_string(), key: key.clone() }),
                Some(_) if is_misfit(key) => {}
                Some(found) => faults.extend(stale(key, found, counted)),
            }
        }
    }
    faults.extend(misfits);
}

/// The first number that the data contradict.
fn stale(key: &str, found: &FeatureStats, counted: &Moments) -> Option<Fault> {
    let fault = |name: &str, found: String, counted: String| {
        Some(Fault::StaleStats { file: STATS.to_string(), key: format!("{key}.{name}"), found, counted })
    };
    if let Some(count) = found.count.filter(|count| *count != counted.count) {
        return fault("count", count.to_string(), counted.count.to_string());
    }
    for (at, place) in counted.places.iter().enumerate() {
        let range = (place.max - place.min).max(place.max.abs().max(place.min.abs()) * 1e-3).max(1e-6);
        let mean = place.sum / counted.count.max(1) as f64;
        for (name, list, counted) in
            [("min", &found.min, place.min), ("max", &found.max, place.max), ("mean", &found.mean, mean)]
        {
            let Some(value) = list.get(at) else { continue };
            let off = (value - counted).abs();
            if off.is_nan() || off > TOLERANCE * range {
                let name = if list.len() > 1 { format!("{name}[{at}]") } else { name.to_string() };
                return fault(&name, shown(*value), shown(counted));
            }
        }
    }
    None
}

fn shown(value: f64) -> String {
    if value.abs() >= 1e9 { format!("{value:e}") } else { format!("{}", (value * 1e6).round() / 1e6) }
}
