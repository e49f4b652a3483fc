//! The cache of visual features: filled once, found again.

use std::fs;
use std::path::PathBuf;

use crate::run;

#[test]
fn features_are_encoded_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    for encoded in [2226, 0] {
        let filled = run(&["features", "--encoder", "pixels:2", "--cache", cache, "--memory", "8", "--json"]).json();
        for (at, camera) in ["observation.images.image", "observation.images.wrist_image"].into_iter().enumerate() {
            assert_eq!(filled[at]["camera"], camera);
            assert_eq!((&filled[at]["frames"], &filled[at]["width"]), (&2226.into(), &12.into()));
            assert_eq!(filled[at]["encoded"], encoded, "{camera}");
        }
    }
    let table = run(&["features", "--encoder", "pixels:2", "--cache", cache]).out.replace(cache, "CACHE");
    insta::assert_snapshot!("features_table", table.trim_end());
}

#[test]
fn features_that_cannot_be_had() {
    let folder = tempfile::tempdir().unwrap();
    let pour = folder.path().join("pour").display().to_string();
    assert_eq!(run(&["data", "synth", "recursive-pour", &pour, "--demos", "1"]).code, 0);
    let mut shown = String::new();
    for args in [
        &["--encoder", "weights/dinov2-small"][..],
        &["--encoder", "pixels:0"],
        &["--encoder", "pixels", "--kind", "mean"],
        &[],
        &[&pour, "--cache", &pour],
    ] {
        let ran = run(&[&["features"], args].concat()).shown();
        shown.push_str(&format!("{}\n\n", ran.replace(&pour, "POUR")));
    }
    insta::assert_snapshot!("features_errors", shown.trim_end());
}

/// A DINOv2 with random weights and tokens of 16 values.
fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../models/fixtures/golden/dinov2_tiny")
}

#[test]
fn features_of_an_encoder_with_weights() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, weights) = (folder.path().to_str().unwrap(), tiny().display().to_string());
    let args = ["features", "--encoder", &weights, "--kind", "mean", "--device", "cpu", "--cache", cache, "--json"];
    let camera = ["--camera-key", "observation.images.wrist_image"];
    let filled = run(&[&args[..], &camera].concat()).json();
    assert_eq!(filled.as_array().unwrap().len(), 1);
    assert_eq!((&filled[0]["encoder"], &filled[0]["width"]), (&"dinov2-16x2 mean".into(), &16.into()));
    assert_eq!((&filled[0]["frames"], &filled[0]["encoded"]), (&2226.into(), &2226.into()));
}

#[test]
fn folders_of_weights_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().display().to_string();
    let mut shown = String::new();
    let mut look = || {
        let ran = run(&["features", "--encoder", &weights, "--device", "cpu", "--cache", &weights]).shown();
        shown.push_str(&format!("{}\n\n", ran.replace(&weights, "WEIGHTS")));
    };
    look();
    let config = fs::read_to_string(tiny().join("config.json")).unwrap();
    let other = config
        .replace("\"dinov2\"", "\"dinov2_with_registers\"")
        .replace("\"use_swiglu_ffn\": false", "\"use_swiglu_ffn\": true");
    fs::write(folder.path().join("config.json"), other).unwrap();
    look();
    fs::write(folder.path().join("config.json"), &config).unwrap();
    look();
    let whole = fs::read(tiny().join("model.safetensors")).unwrap();
    fs::write(folder.path().join("model.safetensors"), &whole[..whole.len() / 2]).unwrap();
    look();
    fs::write(folder.path().join("model.safetensors"), &whole).unwrap();
    fs::write(
        folder.path().join("config.json"),
        config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
    )
    .unwrap();
    look();
    insta::assert_snapshot!("weights_errors", shown.trim_end());
    let ran = run(&["features", "--encoder", &weights, "--device", "cuda:99", "--cache", &weights]);
    assert!(ran.code == 2 && ran.err.contains("cuda:99") && ran.err.contains("hint: "), "{}", ran.shown());
}
