//! The cache of visual features: filled once, found again.

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
    for args in
        [&["--encoder", "weights/dinov2-small"][..], &["--encoder", "pixels:0"], &[], &[&pour, "--cache", &pour]]
    {
        let ran = run(&[&["features"], args].concat()).shown();
        shown.push_str(&format!("{}\n\n", ran.replace(&pour, "POUR")));
    }
    insta::assert_snapshot!("features_errors", shown.trim_end());
}
