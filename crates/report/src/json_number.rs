//! Numbers that JSON cannot hold. `serde_json` writes a number that is not finite as `null`; a training that diverged
//! must still be readable, so `null` comes back as NaN.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Reads a number, or NaN for `null`.
pub(crate) fn one<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(input)?.unwrap_or(f64::NAN))
}

/// Reads a place that may be missing, with NaN for each `null` in it.
pub(crate) fn place<'de, D: Deserializer<'de>>(input: D) -> Result<Option<[f64; 3]>, D::Error> {
    let place = Option::<[Option<f64>; 3]>::deserialize(input)?;
    Ok(place.map(|numbers| numbers.map(|number| number.unwrap_or(f64::NAN))))
}

/// Reads numbers, with NaN for each `null`.
pub(crate) fn many<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(input)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// Reads numbers by name, with NaN for each `null`.
pub(crate) fn named<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let numbers = BTreeMap::<String, Option<f64>>::deserialize(input)?;
    Ok(numbers.into_iter().map(|(name, number)| (name, number.unwrap_or(f64::NAN))).collect())
}
