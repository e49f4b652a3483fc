//! Against lerobot and numpy (`fixtures/golden/stats`), and against what a naive computation gives.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::files::Root;
use crate::frame::Frame;
use crate::info::{INFO, Info};
use crate::table::{Table, rows_of};

const GOLDEN: &str = include_str!("../../fixtures/golden/stats/golden.json");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn list(value: &Value) -> Vec<f64> {
    flat(value).unwrap().1
}

fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{what}: {found}, wanted {wanted}");
    }
}

/// Mean, std, min, max and count of lerobot; quantiles of numpy.
fn assert_golden(found: &FeatureStats, case: &Value, what: &str) {
    let lerobot = &case["lerobot"];
    // The parser of JSON may be off by one in the last bit.
    assert_close(&found.min, &list(&lerobot["min"]), 1e-15, what);
    assert_close(&found.max, &list(&lerobot["max"]), 1e-15, what);
    assert_close(&found.mean, &list(&lerobot["mean"]), 1e-12, what);
    // lerobot takes the root of a difference that cancels.
    assert_close(&found.std, &list(&lerobot["std"]), 1e-7, what);
    assert_eq!(found.count.map(|count| count as f64), Some(list(&lerobot["count"])[0]), "{what}");
    for ((name, _), values) in QUANTILES.iter().zip(&found.quantiles) {
        assert_close(values.as_ref().unwrap(), &list(&case["numpy"][name]), 1e-12, &format!("{what} {name}"));
    }
}

#[test]
fn numbers_are_those_of_lerobot_and_numpy() {
    for case in golden()["numbers"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (values, rows) = (list(&case["values"]), case["rows"].as_u64().unwrap());
        let shape: Vec<usize> = list(&case["shape"]).iter().map(|side| *side as usize).collect();
        let width = *shape.last().unwrap();
        let mut running = Running::new(width);
        running.add(rows, values.len() / width, |row, place| values[row * width + place]);
        let found = running.stats(Numbers::Float, &[width]).unwrap();
        if name == "two axes" {
            assert_eq!(stats_shape(&Feature::new(Dtype::Float32, &shape)), Some(vec![3]));
        }
        assert_golden(&found, case, name);
        if name == "smooth" {
            for ((quantile, _), values) in QUANTILES.iter().zip(&found.quantiles) {
                // Its histogram has 5000 bins, but puts a quantile into the bin of the value above it.
                let estimate = list(&case["lerobot"][quantile]);
                assert_close(values.as_ref().unwrap(), &estimate, 0.01, &format!("{quantile} beside the histogram"));
            }
        }
    }
}

#[test]
fn episodes_join_to_a_dataset() {
    let case = &golden()["joined"];
    let mut together = Running::new(2);
    for episode in case["episodes"].as_array().unwrap() {
        let mut own = Running::new(2);
        own.add_f32(&list(episode).iter().map(|value| *value as f32).collect::<Vec<_>>());
        together.merge(&own);
    }
    assert_golden(&together.stats(Numbers::Float, &[2]).unwrap(), case, "two episodes");
}

#[test]
fn pictures_are_sampled_and_scaled_as_in_lerobot() {
    for case in golden()["pictures"].as_array().unwrap() {
        let [frames, height, width] = ["frames", "height", "width"].map(|key| case[key].as_u64().unwrap() as usize);
        let value = |frame: usize, at: usize| {
            let (row, column, colour) = (at / 3 / width, at / 3 % width, at % 3);
            ((column * 7 + row * 13 + frame * 31 + colour * 85) % 251) as u8
        };
        let episode: Vec<Frame> = (0..frames)
            .map(|frame| Frame { width, height, pixels: (0..height * width * 3).map(|at| value(frame, at)).collect() })
            .collect();
        let mut running = Running::new(3);
        pictures::add_pictures(&mut running, &episode);
        let found = running.stats(Numbers::Float, &[3, 1, 1]).unwrap();
        assert_golden(&found, case, &format!("{frames} pictures of {width}×{height}"));
        let written = found.to_json();
        for name in ["min", "mean", "q50"] {
            assert_eq!(flat(&written[name]).unwrap().0, flat(&case["lerobot"][name]).unwrap().0);
        }
    }
    for (length, frames) in golden()["sampled"].as_object().unwrap() {
        let found = pictures::sampled_frames(length.parse().unwrap());
        assert_eq!(found.iter().map(|frame| *frame as f64).collect::<Vec<_>>(), list(frames), "of {length} frames");
    }
    assert!(pictures::sampled_frames(0).is_empty());
}

#[test]
fn a_large_mean_costs_no_digits() {
    let mut running = Running::new(1);
    for part in 0..10 {
        running.add(100, 100, |row, _| 1e9 + f64::from((row + part) as u32 % 2));
    }
    let found = running.stats(Numbers::Float, &[1]).unwrap();
    assert_eq!((found.mean[0], found.std[0]), (1e9 + 0.5, 0.5));
}

#[test]
fn more_values_than_are_kept_give_quantiles_that_are_nearly_exact() {
    let count = running::MAX_DISTINCT * 5;
    let mut running = Running::new(1);
    // In an order that is neither rising nor falling; the multiplier has no factor in common with the count.
    running.add(count as u64, count, |row, _| ((row * 7919) % count) as f64 / count as f64 * 4.0 - 2.0);
    let found = running.stats(Numbers::Float, &[1]).unwrap();
    for ((name, part), values) in QUANTILES.iter().zip(&found.quantiles) {
        let wanted = part * (count - 1) as f64 / count as f64 * 4.0 - 2.0;
        assert_close(values.as_ref().unwrap(), &[wanted], 1e-4, name);
    }
    // As exact when it comes in parts, and nothing is lost on the way.
    let mut together = Running::new(1);
    together.merge(&running);
    together.merge(&running);
    assert_eq!(together.stats(Numbers::Float, &[1]).unwrap().count, Some(2 * count as u64));
}

#[test]
fn old_files_without_quantiles_and_counts_are_read() {
    let stats =
        Stats::parse(br#"{"action": {"min": [0, 1], "max": [2, 3], "mean": [1.5, 2], "std": [0.5, 1], "x": "y"}}"#);
    let stats = stats.unwrap();
    let action = stats.get("action").unwrap();
    assert_eq!((action.count, action.width(), action.numbers), (None, 2, Numbers::Integer));
    assert_eq!(action.quantiles, [const { None }; 5]);
    assert!(stats.misfits(&[("action".to_string(), Feature::new(Dtype::Float32, &[2]))]).is_empty());
    let misfits = stats.misfits(&[("action".to_string(), Feature::new(Dtype::Float32, &[7]))]);
    assert_eq!(misfits[0].to_string(), "`action` in `meta/stats.json` has 2 values");
}

#[test]
fn all_that_is_wrong_with_a_file_is_said() {
    let wrong = br#"{
        "a": {"min": [0], "max": [1], "mean": [0, 1], "std": [1]},
        "b": {"min": [0], "max": [1], "mean": ["x"]},
        "c": 3,
        "d": {"min": [[0], [1, 2]], "max": [1], "mean": [1], "std": [1], "count": [1, 2]}
    }"#;
    let faults = Stats::parse(wrong).unwrap_err().to_string();
    let wanted = [
        "`a.mean` in `meta/stats.json` has 2 values",
        "`b.mean` in `meta/stats.json` has text",
        "`b` in `meta/stats.json` has no `std`",
        "`c` in `meta/stats.json` has a number, no object",
        "`d.min` in `meta/stats.json` has lists of different lengths",
        "`d.count` in `meta/stats.json` has something else",
    ];
    assert_eq!(faults, wanted.join("; "));
    assert!(Stats::parse(b"[]").unwrap_err().to_string().contains("is no JSON file: it holds a list, not an object"));
    assert!(Stats::parse(b"{\"a\"").is_err());
}

/// The sets that lerobot wrote: their numbers and ours, but for quantiles, which it estimates.
#[test]
fn statistics_of_real_datasets_are_those_in_their_files() {
    let shared = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !shared.is_dir() {
        println!("skipped: there is no `{}`", shared.display());
        return;
    }
    for set in ["libero_goal", "libero_object_image_tiny"] {
        let root = Root::Directory(shared.join(set));
        let info = Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap();
        let stats = Stats::parse(&root.read(STATS, 1 << 20).unwrap()).unwrap();
        assert!(stats.misfits(&info.features).is_empty());
        assert_eq!(stats.features.len(), info.features.len());
        for (key, feature) in info.features.iter().filter(|(_, feature)| !feature.dtype.is_camera()) {
            let mut running = Running::new(feature.width());
            for file in root.list("data") {
                let mut rows = Vec::new();
                let sink = |_: usize, arrays: &[arrow_array::ArrayRef]| {
                    rows.resize(arrays[0].len() * feature.width(), 0.0);
                    rows_of(&arrays[0], feature.width(), &mut rows).unwrap();
                    running.add_f32(&rows);
                    Ok(())
                };
                Table::open(&root, &file).unwrap().scan(&[key], sink).unwrap();
            }
            let found = running.stats(Numbers::of(&feature.dtype), &[feature.width()]).unwrap();
            let wanted = stats.get(key).unwrap();
            assert_eq!(
                (found.numbers, &found.shape, found.count),
                (wanted.numbers, &wanted.shape, wanted.count),
                "{key}"
            );
            for (found, wanted) in found.lists().into_iter().zip(wanted.lists()).take(4) {
                // lerobot adds columns up in single precision, and its std is the root of a difference: of an angle
                // near π that hardly changes, 0.0222 is left where it is 0.0223.
                let tolerance = if found.0 == "std" { 1e-3 } else { 1e-5 };
                assert_close(found.1, wanted.1, tolerance, &format!("{set} {key} {}", found.0));
            }
        }
    }
}

proptest! {
    #[test]
    fn parts_of_a_column_give_the_statistics_of_the_whole(
        values in prop::collection::vec(-1e4f64..1e4, 1..300),
        cuts in prop::collection::vec(0usize..300, 0..5),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(values.len())).chain([0, values.len()]).collect();
        cuts.sort_unstable();
        let mut together = Running::new(1);
        for part in cuts.windows(2).map(|cut| &values[cut[0]..cut[1]]) {
            let mut own = Running::new(1);
            own.add(part.len() as u64, part.len(), |row, _| part[row]);
            together.merge(&own);
        }
        let found = together.stats(Numbers::Float, &[1]).unwrap();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let std = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        prop_assert!((found.mean[0] - mean).abs() < 1e-8 && (found.std[0] - std).abs() < 1e-8);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!((found.min[0], found.max[0]), (sorted[0], sorted[sorted.len() - 1]));
        for ((_, part), quantile) in QUANTILES.iter().zip(&found.quantiles) {
            let place = part * (count - 1.0);
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            let wanted = low + (high - low) * place.fract();
            prop_assert!((quantile.as_ref().unwrap()[0] - wanted).abs() < 1e-9);
        }
        let stats = Stats { features: BTreeMap::from([("x".to_string(), found)]) };
        let read = Stats::parse(stats.to_json().to_string().as_bytes()).unwrap();
        let (found, read) = (stats.get("x").unwrap(), read.get("x").unwrap());
        prop_assert_eq!((found.count, &found.shape, found.numbers), (read.count, &read.shape, read.numbers));
        for ((name, found), (read_name, read)) in found.lists().iter().zip(read.lists()) {
            prop_assert_eq!(*name, read_name);
            assert_close(found, read, 1e-15, name);
        }
    }
}
