//! Datasets that are part of the program, so that a fresh clone has something to run on.
//!
//! Their files are in `datasets/` of the repository, and the program holds them byte for byte. On the command line they
//! are addressed as `embedded:<name>`.

use std::sync::Arc;

use bytes::Bytes;

use crate::files::Root;

/// Path and content of each file of an embedded dataset.
type EmbeddedFiles = &'static [(&'static str, &'static [u8])];

/// The names that [`embedded`] knows.
pub const NAMES: &[&str] = &["libero_goal_mini"];

/// The dataset of a name.
pub fn embedded(name: &str) -> Option<Root> {
    let files = match name {
        "libero_goal_mini" => LIBERO_GOAL_MINI,
        _ => return None,
    };
    let files = files.iter().map(|(path, content)| (path.to_string(), Bytes::from_static(content))).collect();
    Some(Root::Memory { name: format!("embedded:{name}"), files: Arc::new(files) })
}

/// Features of the pictures of an embedded dataset, in the layout of a cache ([`crate::features`]).
pub fn embedded_features(name: &str) -> Option<Root> {
    let files = match name {
        "libero_goal_mini" => LIBERO_GOAL_MINI_FEATURES,
        _ => return None,
    };
    let files = files.iter().map(|(path, content)| (path.to_string(), Bytes::from_static(content))).collect();
    Some(Root::Memory { name: format!("embedded:{name}_features"), files: Arc::new(files) })
}

/// Paths and contents of the files of a dataset.
macro_rules! files {
    ($set:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/", $set, "/", $file)))),+]
    };
}

/// In order of path.
const LIBERO_GOAL_MINI: EmbeddedFiles = files!("libero_goal_mini":
    "data/chunk-000/file-000.parquet",
    "meta/episodes/chunk-000/file-000.parquet",
    "meta/info.json",
    "meta/phases.json",
    "meta/stats.json",
    "meta/tasks.parquet",
    "videos/observation.images.image/chunk-000/file-000.mp4",
    "videos/observation.images.wrist_image/chunk-000/file-000.mp4",
);

/// In order of path.
const LIBERO_GOAL_MINI_FEATURES: EmbeddedFiles = files!("libero_goal_mini_features":
    "180fec2aafe4af3b-a820e47dae208280/000000000.safetensors",
    "180fec2aafe4af3b-a820e47dae208280/000000512.safetensors",
    "180fec2aafe4af3b-a820e47dae208280/000001024.safetensors",
    "180fec2aafe4af3b-a820e47dae208280/000001536.safetensors",
    "180fec2aafe4af3b-a820e47dae208280/000002048.safetensors",
    "180fec2aafe4af3b-a820e47dae208280/features.json",
    "4a9b6012ec238915-a820e47dae208280/000000000.safetensors",
    "4a9b6012ec238915-a820e47dae208280/000000512.safetensors",
    "4a9b6012ec238915-a820e47dae208280/000001024.safetensors",
    "4a9b6012ec238915-a820e47dae208280/000001536.safetensors",
    "4a9b6012ec238915-a820e47dae208280/000002048.safetensors",
    "4a9b6012ec238915-a820e47dae208280/features.json",
);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What an embedded dataset may add to the repository and to the program, in bytes.
    const MAX_BYTES: usize = 12_000_000;

    #[test]
    fn every_file_of_an_embedded_set_is_in_the_program() {
        for name in NAMES {
            let Some(Root::Memory { files, .. }) = embedded(name) else { panic!("`{name}` is not embedded") };
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../datasets").join(name);
            let on_disk = Root::Directory(folder.clone());
            let parts =
                std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut listed: Vec<String> = Vec::new();
            for part in parts.filter(|part| part != "README.md") {
                assert!(folder.join(&part).is_dir(), "`{name}/{part}` has no place in a dataset");
                listed.extend(on_disk.list(&part));
            }
            listed.sort();
            assert_eq!(files.keys().cloned().collect::<Vec<_>>(), listed);
            for (path, content) in files.iter() {
                assert!(std::fs::read(folder.join(path)).unwrap() == *content, "`{path}` differs");
            }
            let bytes: usize = files.values().map(Bytes::len).sum();
            assert!(bytes <= MAX_BYTES, "{bytes} bytes");
        }
        assert!(embedded("libero").is_none());
    }

    #[test]
    fn embedded_features_are_those_of_the_embedded_pictures() {
        for name in NAMES {
            let dataset = crate::Dataset::open(embedded(name).unwrap(), &crate::Overrides::default()).unwrap();
            let cache = embedded_features(name).unwrap();
            for camera in 0..dataset.roles().cameras.len() {
                let found = crate::features::find(&dataset, crate::CameraId(camera), &cache);
                let [(manifest, features)] = &found[..] else { panic!("camera {camera}: {} features", found.len()) };
                assert_eq!((manifest.encoder.as_str(), features.width()), ("dinov2-small cls", 384));
                let mut row = vec![0.0; 384];
                features.read(100..101, &mut row).unwrap();
                assert!(row.iter().all(|value| value.is_finite()) && row.iter().any(|value| *value != 0.0));
            }
        }
    }
}
