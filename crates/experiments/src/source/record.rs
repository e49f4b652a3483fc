//! What a run records about its data, so that it is resumed with the same data, read in the same way.

use dataset::Overrides;
use dataset::features::numbers_fingerprint;
use serde::{Deserialize, Serialize};

use super::Source;

/// What a run records about its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// The source's name.
    pub name: String,
    /// A hash of its numbers.
    pub fingerprint: String,
    /// How many frames it has.
    pub frames: usize,
    /// Its cameras.
    pub cameras: Vec<String>,
    /// What made the features.
    pub encoder: Option<String>,
    /// What the user said about the control of groups, such as `left arm=absolute`; empty if nothing. Runs of earlier
    /// versions do not say.
    #[serde(default)]
    pub control: String,
    /// The action columns that the user named as grippers, or `none` for a robot without grippers; empty if the user said
    /// nothing. Runs of earlier versions do not say.
    #[serde(default)]
    pub gripper: String,
    /// The datasets that it is made of. Runs of earlier versions have one and do not list it.
    #[serde(default)]
    pub datasets: Vec<DatasetRecord>,
}

/// What a run records about one of its datasets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetRecord {
    /// The dataset's name.
    pub name: String,
    /// A hash of its numbers.
    pub fingerprint: String,
    /// How many episodes it has.
    pub episodes: usize,
    /// How many frames it has.
    pub frames: usize,
}

impl Source {
    /// What a run should record about it.
    pub fn record(&self) -> SourceRecord {
        let fingerprint = match &self.parts[..] {
            [part] => part.fingerprint.clone(),
            _ => numbers_fingerprint(&self.dataset),
        };
        let datasets = self.parts.iter().map(|part| DatasetRecord {
            name: part.name.clone(),
            fingerprint: part.fingerprint.clone(),
            episodes: part.episodes.len(),
            frames: part.frames.len(),
        });
        SourceRecord {
            name: self.name.clone(),
            fingerprint,
            frames: self.dataset.frames(),
            cameras: self.dataset.roles().cameras.clone(),
            encoder: self.encoder.clone(),
            control: control(self.dataset.overrides()),
            gripper: gripper(self.dataset.overrides()),
            datasets: datasets.collect(),
        }
    }
}

/// The choices of `--control` as the user writes them. Their order matters: later ones stand against earlier ones.
fn control(overrides: &Overrides) -> String {
    overrides.control.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The columns of `--gripper` as the user writes them.
fn gripper(overrides: &Overrides) -> String {
    match overrides.grippers.as_deref() {
        None => String::new(),
        Some([]) => "none".to_owned(),
        Some(columns) => columns.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use models::training::distributed::Alone;
    use serde_json::json;

    use super::*;
    use crate::run_dir::RunDir;

    fn record(overrides: &Overrides) -> SourceRecord {
        Source::without_features("embedded:libero_goal_mini", overrides).unwrap().record()
    }

    #[test]
    fn a_run_is_not_resumed_with_another_control_or_gripper() {
        let folder = tempfile::tempdir().unwrap();
        let open = |record: &SourceRecord| {
            let config = json!({ "source": record });
            RunDir::open(&folder.path().join("run"), true, &config, Arc::new(Alone::default()))
        };
        let plain = record(&Overrides::default());
        let run = open(&plain).unwrap();
        assert_eq!(run.stage("numbers", &(), || Ok(1)).unwrap(), 1);
        open(&plain).unwrap();
        let choices = vec!["absolute".parse().unwrap(), "arm=velocity".parse().unwrap()];
        let other = record(&Overrides { control: choices, ..Overrides::default() });
        let error = open(&other).err().unwrap().to_string();
        assert!(error.contains("`source.control` was \"\", is \"absolute, arm=velocity\""), "{error}");
        let other = record(&Overrides { grippers: Some(Vec::new()), ..Overrides::default() });
        let error = open(&other).err().unwrap().to_string();
        assert!(error.contains("`source.gripper` was \"\", is \"none\""), "{error}");
        let other = record(&Overrides { grippers: Some(vec!["6".to_owned()]), ..Overrides::default() });
        assert_eq!(other.gripper, "6");
    }

    #[test]
    fn records_of_earlier_versions_load_without_a_control_and_a_gripper() {
        let plain = record(&Overrides::default());
        let mut old = serde_json::to_value(&plain).unwrap();
        for name in ["control", "gripper"] {
            assert_eq!(old.as_object_mut().unwrap().remove(name), Some(json!("")));
        }
        assert_eq!(serde_json::from_value::<SourceRecord>(old).unwrap(), plain);
    }
}
