//! Demonstrations as a LeRobot v3.0 dataset.

use std::path::Path;

use super::demos::{Demo, FPS, LABELS, demos, label_name};
use super::{ACTION_NAMES, ACTION_WIDTH, Role, STATE_WIDTH, state_names};
use crate::fault::Error;
use crate::info::{Dtype, Feature};
use crate::write::{ColumnData, EpisodeData, Summary, WriteOptions, Writer};

/// Writes so many demonstrations of each depth. The directory must not exist, or be empty.
pub fn write(directory: &Path, per_depth: usize, seed: u64) -> Result<Summary, Error> {
    write_demos(directory, &demos(per_depth, seed))
}

/// Writes these demonstrations, one episode each. The directory must not exist, or be empty.
pub fn write_demos(directory: &Path, demos: &[Demo]) -> Result<Summary, Error> {
    let states = state_names();
    let states: Vec<&str> = states.iter().map(String::as_str).collect();
    let vector = |width: usize, names: &[&str]| Feature::new(Dtype::Float32, &[width]).named(names);
    let single = |dtype| Feature::new(dtype, &[1]);
    let features = [
        ("observation.state", vector(STATE_WIDTH, &states)),
        ("action", vector(ACTION_WIDTH, &ACTION_NAMES)),
        ("next.reward", single(Dtype::Float32)),
        ("next.done", single(Dtype::Bool)),
        ("role", single(Dtype::Int(64))),
        ("level", single(Dtype::Int(64))),
        ("label", single(Dtype::Int(64))),
    ];
    let features = features.into_iter().map(|(key, feature)| (key.to_string(), feature)).collect();
    let mut writer = Writer::create(directory, WriteOptions::new(FPS, features))?;
    for demo in demos {
        let rows = demo.rows();
        let columns = [
            ("observation.state", ColumnData::F32(rows.state)),
            ("action", ColumnData::F32(rows.action)),
            ("next.reward", ColumnData::F32(rows.reward)),
            ("next.done", ColumnData::Bool(&rows.done)),
            ("role", ColumnData::I64(&rows.role)),
            ("level", ColumnData::I64(&rows.level)),
            ("label", ColumnData::I64(&rows.label)),
        ];
        writer.add_episode(&EpisodeData { task: rows.task, columns: &columns })?;
    }
    writer.name_values("role", &Role::ALL.map(|role| role.name().to_string()))?;
    writer.name_values("label", &(0..LABELS).filter_map(label_name).collect::<Vec<_>>())?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Overrides, Root, ValidateOptions, validate};

    #[test]
    fn what_is_written_is_sound_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pour");
        let summary = write(&path, 3, 11).unwrap();
        assert_eq!((summary.episodes, summary.frames, summary.tasks), (12, 3 * (4 + 8 + 12 + 16), 4));
        let root = Root::Directory(path);
        let report = validate(root.clone(), &Overrides::default(), &ValidateOptions::default(), &|_| {});
        assert_eq!(report.faults, []);
        let dataset = Dataset::open(root, &Overrides::default()).unwrap();
        let written = demos(3, 11);
        let states: Vec<f32> = written.iter().flat_map(|demo| demo.rows().state.to_vec()).collect();
        assert_eq!(dataset.columns().states.values, states);
        // The order of these columns in the file is another than that of their names.
        for (key, of) in [("role", 0), ("level", 1), ("label", 2)] {
            let column =
                |demo: &super::super::Demo| [demo.rows().role, demo.rows().level, demo.rows().label][of].clone();
            assert_eq!(dataset.columns().labels[key], written.iter().flat_map(column).collect::<Vec<i64>>(), "{key}");
        }
    }
}
