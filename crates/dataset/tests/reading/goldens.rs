//! Rows and episodes, against what pandas and lerobot read: `fixtures/golden/rows/`, whose README has the format.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dataset::{Dataset, Overrides, Root, embedded};
use serde::Deserialize;
use serde_json::Value;

use crate::shared_set;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    dataset: String,
    fps: f64,
    total_frames: usize,
    total_episodes: usize,
    cameras: Vec<String>,
    tasks: Vec<String>,
    columns: Vec<Column>,
    episodes: Vec<Episode>,
    files: Vec<String>,
    rows: Vec<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    kind: String,
    width: usize,
    blake3: String,
}

/// Length, task, first row, end, data file, and file, start and end of each video.
#[derive(Deserialize)]
struct Episode(usize, u32, usize, usize, usize, Vec<(usize, f64, f64)>);

#[test]
fn the_embedded_set_reads_as_lerobot_reads_it() {
    agrees("libero_goal_mini", embedded("libero_goal_mini").unwrap());
}

#[test]
fn sets_on_disk_read_as_lerobot_reads_them() {
    for name in ["libero_10", "libero_goal", "libero_object", "libero_object_image_tiny", "libero_spatial"] {
        if let Some(path) = shared_set(name) {
            agrees(name, Root::Directory(path));
        }
    }
}

fn agrees(name: &str, root: Root) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/golden/rows/{name}.json"));
    let golden: Golden = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let dataset = Dataset::open(root, &Overrides::default()).unwrap();
    assert_eq!(golden.dataset, name);
    assert_eq!(dataset.info().fps, golden.fps, "{name}");
    assert_eq!((dataset.frames(), dataset.episodes().len()), (golden.total_frames, golden.total_episodes), "{name}");
    assert_eq!(dataset.roles().cameras, golden.cameras, "{name}");
    assert_eq!(dataset.tasks(), golden.tasks, "{name}");
    episodes_agree(&dataset, &golden);
    rows_agree(&dataset, &golden);
    for column in &golden.columns {
        let (kind, width, bytes) = bytes_of(&dataset, &column.name);
        assert_eq!((kind, width), (column.kind.as_str(), column.width), "{name}: `{}`", column.name);
        assert_eq!(blake3::hash(&bytes).to_hex().as_str(), column.blake3, "{name}: all rows of `{}`", column.name);
    }
}

fn episodes_agree(dataset: &Dataset, golden: &Golden) {
    for (number, (episode, expected)) in dataset.episodes().iter().zip(&golden.episodes).enumerate() {
        let at = format!("{}: episode {number}", golden.dataset);
        let Episode(length, task, from, to, data, videos) = expected;
        assert_eq!((episode.frames.len(), &episode.frames), (*length, &(*from..*to)), "{at}");
        assert_eq!(dataset.spans()[number].task.0, *task, "{at}");
        assert_eq!(episode.tasks, [golden.tasks[*task as usize].as_str()], "{at}");
        // All these sets have a single chunk of data files.
        assert_eq!(dataset.info().data_file(0, episode.file.into()), golden.files[*data], "{at}");
        assert_eq!(episode.videos.len(), videos.len(), "{at}");
        for (camera, (span, (file, start, end))) in episode.videos.iter().zip(videos).enumerate() {
            let path = dataset.info().video_file(&golden.cameras[camera], span.chunk.into(), span.file.into());
            assert_eq!(path, golden.files[*file], "{at}");
            assert!(
                (span.from - start).abs() < 1e-9 && (span.to - end).abs() < 1e-9,
                "{at}: {span:?}, not {start}..{end}"
            );
        }
    }
}

/// The sampled rows, where a difference can be seen; the hashes cover the others.
fn rows_agree(dataset: &Dataset, golden: &Golden) {
    let columns = dataset.columns();
    for row in &golden.rows {
        let index = row["index"].as_u64().unwrap() as usize;
        let at = format!("{}: row {index}", golden.dataset);
        assert_eq!(columns.states.rows(index..index + 1), floats(&row["observation.state"]), "{at}");
        assert_eq!(columns.actions.rows(index..index + 1), floats(&row["action"]), "{at}");
        assert_eq!([columns.rewards.as_ref().unwrap()[index]], *floats(&row["next.reward"]), "{at}");
        assert_eq!(i64::from(columns.done.as_ref().unwrap()[index]), row["next.done"], "{at}");
        assert_eq!(columns.labels["phase"][index], row["phase"], "{at}");
        assert_eq!([columns.timestamps[index]], *floats(&row["timestamp"]), "{at}");
        assert_eq!(columns.tasks[index], row["task_index"], "{at}");
        let episode = row["episode_index"].as_u64().unwrap() as usize;
        assert_eq!(
            (dataset.episodes()[episode].frames.start as u64) + row["frame_index"].as_u64().unwrap(),
            index as u64
        );
    }
}

fn floats(value: &Value) -> Vec<f32> {
    let number = |value: &Value| value.as_f64().unwrap() as f32;
    value.as_array().map_or_else(|| vec![number(value)], |values| values.iter().map(number).collect())
}

/// A column as the exporter hashes it. Those that the reader checks but does not keep are made from the episodes.
fn bytes_of(dataset: &Dataset, name: &str) -> (&'static str, usize, Vec<u8>) {
    let columns = dataset.columns();
    let f4 = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let i8 = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let counted = |value: &dyn Fn(usize, usize) -> usize| {
        let numbered = dataset.episodes().iter().enumerate();
        i8(&numbered
            .flat_map(|(at, episode)| (0..episode.frames.len()).map(move |row| value(at, row) as i64))
            .collect::<Vec<_>>())
    };
    match name {
        "observation.state" => ("<f4", columns.states.width, f4(&columns.states.values)),
        "action" => ("<f4", columns.actions.width, f4(&columns.actions.values)),
        "next.reward" => ("<f4", 1, f4(columns.rewards.as_ref().unwrap())),
        "next.done" => ("u1", 1, columns.done.as_ref().unwrap().iter().map(|&done| u8::from(done)).collect()),
        "timestamp" => ("<f4", 1, f4(&columns.timestamps)),
        "task_index" => ("<i8", 1, i8(&columns.tasks)),
        "episode_index" => ("<i8", 1, counted(&|episode, _| episode)),
        "frame_index" => ("<i8", 1, counted(&|_, frame| frame)),
        "index" => ("<i8", 1, i8(&(0..dataset.frames() as i64).collect::<Vec<_>>())),
        label => ("<i8", 1, i8(&columns.labels[label])),
    }
}
