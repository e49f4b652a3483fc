//! Statistics of a dataset's columns, in the shape of lerobot's `meta/stats.json`.
//!
//! For each feature: `min`, `max`, `mean`, `std` (over the number of rows, not one less), `count` and the quantiles
//! `q01`, `q10`, `q50`, `q90`, `q99`, one number for each place of a vector. Pictures have one number for each of red,
//! green and blue, between 0 and 1, with shape `(3, 1, 1)`, taken from sampled frames (see [`pictures`]). A feature of
//! several axes has one number for each place of its last axis. Text has none.
//!
//! Departures from lerobot 0.4.4, which also writes these files:
//! - Its quantiles of an episode come from a histogram of 5000 bins, and those of a dataset are the mean of the
//!   episodes' quantiles (so that `q01` of a column `index` comes out near its middle). Ours are the quantiles
//!   themselves, with linear interpolation between neighbours as numpy has it (see [`running`] for where they stop
//!   being exact).
//! - It squares the bytes of pictures as bytes, so that 16² is 0: the `std` of pictures in its files is close to 0, and
//!   useless. Ours is that of the pixels.
//! - Where it encodes videos while recording, it writes the number of sampled pixels as the `count` of a camera,
//!   otherwise that of sampled pictures. Ours is that of pictures.
//! - Its `std` of numbers is the root of a difference of two means, which loses digits where the mean is large; ours
//!   adds up squared distances from the mean. Both are the same number otherwise.

pub mod pictures;
pub mod running;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fault::{Error, Fault};
use crate::info::{Dtype, Feature};

pub use running::Running;

/// Where they are in a dataset.
pub const STATS: &str = "meta/stats.json";

/// The quantiles that lerobot writes: their names, and which part of the values lies below.
pub const QUANTILES: [(&str, f64); 5] = [("q01", 0.01), ("q10", 0.10), ("q50", 0.50), ("q90", 0.90), ("q99", 0.99)];

/// How `min` and `max` are written: as the column's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// `0.5`
    Float,
    /// `3`
    Integer,
    /// `true`
    Bool,
}

/// The statistics of one feature. All lists have one number for each place.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureStats {
    /// What `min` and `max` are written as.
    pub numbers: Numbers,
    /// `[8]` for vectors of eight numbers, `[3, 1, 1]` for pictures.
    pub shape: Vec<usize>,
    /// The number of rows, or of sampled pictures; some older files do not say.
    pub count: Option<u64>,
    /// The least values.
    pub min: Vec<f64>,
    /// The greatest values.
    pub max: Vec<f64>,
    /// The means.
    pub mean: Vec<f64>,
    /// The standard deviations.
    pub std: Vec<f64>,
    /// In the order of [`QUANTILES`]; older files have none.
    pub quantiles: [Option<Vec<f64>>; 5],
}

/// All statistics of a dataset, by feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// By the feature's key.
    pub features: BTreeMap<String, FeatureStats>,
}

impl Numbers {
    /// How the values of a type are written.
    pub fn of(dtype: &Dtype) -> Numbers {
        match dtype {
            Dtype::Bool => Numbers::Bool,
            dtype if dtype.is_integer() => Numbers::Integer,
            _ => Numbers::Float,
        }
    }
}

/// The shape of a feature's statistics; none for text.
pub fn stats_shape(feature: &Feature) -> Option<Vec<usize>> {
    match &feature.dtype {
        Dtype::Text | Dtype::Other(_) => None,
        dtype if dtype.is_camera() => Some(vec![3, 1, 1]),
        _ => Some(vec![feature.shape.last().copied().unwrap_or(1)]),
    }
}

impl FeatureStats {
    /// The numbers in one place of each list.
    pub fn width(&self) -> usize {
        self.shape.iter().product()
    }

    /// The values by name, in the order in which lerobot writes them, without `count`.
    pub fn lists(&self) -> Vec<(&'static str, &[f64])> {
        let mut lists: Vec<(&'static str, &[f64])> =
            vec![("min", &self.min), ("max", &self.max), ("mean", &self.mean), ("std", &self.std)];
        for ((name, _), values) in QUANTILES.iter().zip(&self.quantiles) {
            lists.extend(values.as_ref().map(|values| (*name, &values[..])));
        }
        lists
    }

    /// As an entry of the file.
    pub fn to_json(&self) -> Value {
        let mut entry = Map::new();
        for (name, values) in self.lists() {
            let numbers = if matches!(name, "min" | "max") { self.numbers } else { Numbers::Float };
            entry.insert(name.to_string(), nested(values, &self.shape, numbers));
            if let ("std", Some(count)) = (name, self.count) {
                entry.insert("count".to_string(), json!([count]));
            }
        }
        Value::Object(entry)
    }

    /// Reads an entry; `key` is for messages.
    fn parse(key: &str, value: &Value) -> Result<FeatureStats, Vec<Fault>> {
        let Value::Object(entry) = value else {
            return Err(vec![bad(key, format!("{}, no object", kind(value)), "an object with `mean` and `std`")]);
        };
        let mut faults = Vec::new();
        let mut shape: Option<(&str, Vec<usize>)> = None;
        let mut list = |name: &'static str, required: bool| -> Option<Vec<f64>> {
            let place = format!("{key}.{name}");
            let Some(value) = entry.get(name) else {
                if required {
                    faults.push(bad(key, format!("no `{name}`"), "`min`, `max`, `mean` and `std`"));
                }
                return None;
            };
            match flat(value) {
                Err(found) => faults.push(bad(&place, found, "numbers in lists of equal length")),
                Ok((found, values)) => match &shape {
                    Some((first, expected)) if *expected != found => {
                        faults.push(bad(&place, shown(&found), format!("{}, as in `{first}`", shown(expected))));
                    }
                    _ => {
                        shape.get_or_insert((name, found));
                        return Some(values);
                    }
                },
            }
            None
        };
        let [min, max, mean, std] = ["min", "max", "mean", "std"].map(|name| list(name, true));
        let quantiles = QUANTILES.map(|(name, _)| list(name, false));
        let count = match entry.get("count").map(flat) {
            None => None,
            Some(Ok((_, values))) if values.len() == 1 && values[0] >= 0.0 && values[0].fract() == 0.0 => {
                Some(values[0] as u64)
            }
            Some(_) => {
                faults.push(bad(&format!("{key}.count"), "something else", "one whole number, such as `[6661]`"));
                None
            }
        };
        match (min, max, mean, std, shape) {
            (Some(min), Some(max), Some(mean), Some(std), Some((_, shape))) if faults.is_empty() => {
                let numbers = entry.get("min").map_or(Numbers::Float, written_numbers);
                Ok(FeatureStats { numbers, shape, count, min, max, mean, std, quantiles })
            }
            _ => Err(faults),
        }
    }
}

impl Stats {
    /// Reads the file's content. Statistics that lerobot does not know are left out.
    pub fn parse(content: &[u8]) -> Result<Stats, Error> {
        let malformed = |reason: String| Fault::Malformed { file: STATS.to_string(), format: "JSON", reason };
        let value: Value = serde_json::from_slice(content).map_err(|error| malformed(error.to_string()))?;
        let Value::Object(map) = value else {
            return Err(malformed(format!("it holds {}, not an object", kind(&value))).into());
        };
        let mut features = BTreeMap::new();
        let mut faults = Vec::new();
        for (key, value) in &map {
            match FeatureStats::parse(key, value) {
                Ok(stats) => drop(features.insert(key.clone(), stats)),
                Err(found) => faults.extend(found),
            }
        }
        Error::of(faults).map_or(Ok(Stats { features }), Err)
    }

    /// As the file has it.
    pub fn to_json(&self) -> Value {
        Value::Object(self.features.iter().map(|(key, stats)| (key.clone(), stats.to_json())).collect())
    }

    /// The statistics of a feature.
    pub fn get(&self, key: &str) -> Option<&FeatureStats> {
        self.features.get(key)
    }

    /// What does not fit the features: lists of another length than their vectors.
    pub fn misfits(&self, features: &[(String, Feature)]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, feature) in features {
            let (Some(stats), Some(shape)) = (self.get(key), stats_shape(feature)) else { continue };
            // Files converted from older versions have one number for each value of a row, however it is nested.
            if stats.width() != shape.iter().product::<usize>() && stats.width() != feature.width() {
                faults.push(bad(
                    key,
                    shown(&stats.shape),
                    format!("{}, since it is {}", shown(&shape), feature.shown()),
                ));
            }
        }
        faults
    }
}

fn bad(key: &str, found: impl Into<String>, expected: impl Into<String>) -> Fault {
    Fault::BadStats { file: STATS.to_string(), key: key.to_string(), found: found.into(), expected: expected.into() }
}

fn shown(shape: &[usize]) -> String {
    match shape {
        [] | [1] => "1 value".to_string(),
        [width] => format!("{width} values"),
        sides => format!("shape {}", sides.iter().map(usize::to_string).collect::<Vec<_>>().join("×")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Lists in lists, row by row.
fn nested(values: &[f64], shape: &[usize], numbers: Numbers) -> Value {
    match shape {
        [] => values.first().map_or(Value::Null, |value| number(*value, numbers)),
        [_] => values.iter().map(|value| number(*value, numbers)).collect(),
        [_, inner @ ..] => {
            values.chunks(inner.iter().product::<usize>().max(1)).map(|part| nested(part, inner, numbers)).collect()
        }
    }
}

fn number(value: f64, numbers: Numbers) -> Value {
    match numbers {
        Numbers::Float => json!(value),
        Numbers::Integer => json!(value as i64),
        Numbers::Bool => json!(value != 0.0),
    }
}

/// The shape and the numbers of lists in lists; an error says what was found instead.
fn flat(value: &Value) -> Result<(Vec<usize>, Vec<f64>), String> {
    match value {
        Value::Number(number) => Ok((vec![], vec![number.as_f64().ok_or("a number out of range")?])),
        Value::Bool(value) => Ok((vec![], vec![f64::from(u8::from(*value))])),
        Value::Array(list) => {
            let mut values = Vec::new();
            let mut inner: Option<Vec<usize>> = None;
            for element in list {
                let (shape, mut numbers) = flat(element)?;
                if inner.as_ref().is_some_and(|first| *first != shape) {
                    return Err("lists of different lengths".to_string());
                }
                inner.get_or_insert(shape);
                values.append(&mut numbers);
            }
            let mut shape = vec![list.len()];
            shape.extend(inner.unwrap_or_default());
            Ok((shape, values))
        }
        other => Err(kind(other).to_string()),
    }
}

fn written_numbers(value: &Value) -> Numbers {
    match value {
        Value::Array(list) => list.first().map_or(Numbers::Float, written_numbers),
        Value::Bool(_) => Numbers::Bool,
        Value::Number(number) if !number.is_f64() => Numbers::Integer,
        _ => Numbers::Float,
    }
}

#[cfg(test)]
mod tests;
