//! Several datasets read as one.

use std::path::Path;
use std::sync::Arc;

use dataset::features::{FeatureCache, PixelEncoder};
use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{
    CameraId, Dataset, Dtype, EpisodeId, Feature, Frame, FrameIndex, FrameOptions, FrameReader, Joined, Overrides,
    Part, Root, TaskId, explain,
};

const STEPS: usize = 5;

/// What a small dataset is made of.
struct Made<'a> {
    name: &'a str,
    /// Where its numbers start, so that datasets differ.
    first: f32,
    tasks: &'a [&'a str],
    phases: &'a [&'a str],
    cameras: [&'a str; 2],
    state: &'a [&'a str],
    fps: u32,
    reward: bool,
}

impl Default for Made<'_> {
    fn default() -> Self {
        Made {
            name: "one",
            first: 0.0,
            tasks: &["open the drawer", "lift the cup"],
            phases: &["reach", "grasp"],
            cameras: ["front", "wrist"],
            state: &["x", "y"],
            fps: 10,
            reward: true,
        }
    }
}

/// A picture in which every camera, dataset and frame differs.
fn picture(camera: &str, first: f32, frame: usize) -> Frame {
    let tone = if camera == "wrist" { 100 } else { 0 };
    let pixels: Vec<u8> = (0..48).map(|at| tone + first as u8 + (frame * 3 + at) as u8).collect();
    Frame { width: 4, height: 4, pixels: Arc::from(pixels) }
}

impl Made<'_> {
    fn open(&self, folder: &Path) -> Dataset {
        let target = folder.join(self.name);
        let mut features = vec![
            ("observation.state".to_owned(), Feature::new(Dtype::Float32, &[self.state.len()]).named(self.state)),
            ("action".to_owned(), Feature::new(Dtype::Float32, &[2])),
            ("phase".to_owned(), Feature::new(Dtype::Int(64), &[1])),
        ];
        if self.reward {
            features.push(("next.reward".to_owned(), Feature::new(Dtype::Float32, &[1])));
        }
        features.extend(self.cameras.map(|key| (key.to_owned(), Feature::new(Dtype::Image, &[4, 4, 3]))));
        let mut writer = Writer::create(&target, WriteOptions::new(self.fps, features)).unwrap();
        for (at, task) in self.tasks.iter().enumerate() {
            let number = |step: usize| self.first + (at * STEPS + step) as f32;
            let states: Vec<f32> = (0..STEPS * self.state.len()).map(|place| number(place) / 7.0).collect();
            let actions: Vec<f32> = (0..STEPS * 2).map(|place| -number(place) / 3.0).collect();
            let phases: Vec<i64> = (0..STEPS).map(|step| (step % self.phases.len()) as i64).collect();
            let rewards: Vec<f32> = (0..STEPS).map(number).collect();
            let pictures = self
                .cameras
                .map(|key| (0..STEPS).map(|step| picture(key, self.first, at * STEPS + step)).collect::<Vec<Frame>>());
            let mut columns = vec![
                ("observation.state", ColumnData::F32(&states)),
                ("action", ColumnData::F32(&actions)),
                ("phase", ColumnData::I64(&phases)),
                (self.cameras[0], ColumnData::Images(&pictures[0])),
                (self.cameras[1], ColumnData::Images(&pictures[1])),
            ];
            if self.reward {
                columns.push(("next.reward", ColumnData::F32(&rewards)));
            }
            writer.add_episode(&EpisodeData { task, columns: &columns }).unwrap();
        }
        writer.name_values("phase", &self.phases.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        writer.finish().unwrap();
        Dataset::open(Root::Directory(target), &Overrides::default()).unwrap()
    }
}

fn join(folder: &Path, made: &[Made<'_>]) -> Result<Joined, dataset::Error> {
    Dataset::join(made.iter().map(|one| (one.name.to_owned(), one.open(folder))).collect())
}

#[test]
fn tasks_labels_and_pictures_keep_their_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let other = Made {
        name: "two",
        first: 40.0,
        tasks: &["lift the cup", "push the plate", "open the drawer"],
        phases: &["grasp", "lift"],
        cameras: ["wrist", "front"],
        ..Made::default()
    };
    let Joined { dataset, parts, repeated, notes } = join(folder.path(), &[Made::default(), other]).unwrap();
    assert_eq!((repeated, notes), (0, Vec::new()));
    let part = |name: &str, episodes, frames| Part { name: name.to_owned(), episodes, frames };
    assert_eq!(parts, [part("one", 0..2, 0..10), part("two", 2..5, 10..25)]);

    // Equal instructions are one task, equal names of phases one label.
    assert_eq!(dataset.tasks(), ["open the drawer", "lift the cup", "push the plate"]);
    let spans: Vec<_> = dataset.spans().iter().map(|span| (span.frames.clone(), span.task)).collect();
    let wanted = [(0..5, 0), (5..10, 1), (10..15, 1), (15..20, 2), (20..25, 0)];
    assert_eq!(spans, wanted.map(|(frames, task)| (frames, TaskId(task))));
    assert_eq!(dataset.columns().tasks[8..12], [1, 1, 1, 1]);
    assert_eq!(dataset.label_names("phase").unwrap(), ["reach", "grasp", "lift"]);
    assert_eq!(dataset.columns().labels["phase"][..5], [0, 1, 0, 1, 0]);
    assert_eq!(dataset.columns().labels["phase"][10..15], [1, 2, 1, 2, 1]);
    assert_eq!(dataset.columns().rewards.as_ref().unwrap()[9..11], [9.0, 40.0]);
    assert_eq!((dataset.frames(), dataset.info().total_episodes), (25, 5));

    // Pictures come from the dataset that has the frame, whatever the order of its cameras.
    let reader = FrameReader::new(&dataset, FrameOptions::default());
    let keys = [(1, 12), (0, 12), (0, 3), (1, 3), (0, 24)].map(|(camera, at)| (CameraId(camera), FrameIndex(at)));
    let wanted = [
        picture("wrist", 40.0, 2),
        picture("front", 40.0, 2),
        picture("front", 0.0, 3),
        picture("wrist", 0.0, 3),
        picture("front", 40.0, 14),
    ];
    assert!(reader.read(&keys).unwrap() == wanted);
    let mut streamed = Vec::new();
    reader
        .stream(CameraId(1), 7..13, &mut |index, frame| {
            streamed.push((index.0, frame));
            Ok(())
        })
        .unwrap();
    let wanted =
        (7..13).map(|at| (at, if at < 10 { picture("wrist", 0.0, at) } else { picture("wrist", 40.0, at - 10) }));
    assert!(streamed == wanted.collect::<Vec<_>>());
    assert!(reader.read(&[(CameraId(0), FrameIndex(25))]).is_err());
    assert!(reader.read(&[(CameraId(2), FrameIndex(0))]).is_err());
}

#[test]
fn features_of_a_camera_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let one = Made::default().open(folder.path());
    let two = Made { name: "two", first: 9.0, ..Made::default() }.open(folder.path());
    let fill = |dataset: &Dataset, side: usize| {
        let (mut encoder, options) = (PixelEncoder::new(side), FrameOptions::default());
        FeatureCache::fill(dataset, CameraId(0), &mut encoder, &folder.path().join("cache"), options, &mut |_| {})
            .unwrap()
    };
    let caches = [fill(&one, 2), fill(&two, 2)];
    let joined = FeatureCache::join(&caches).unwrap();
    assert_eq!((joined.frames(), joined.width()), (20, 12));
    let read = |cache: &FeatureCache, frames: std::ops::Range<usize>| {
        let mut values = vec![0.0; frames.len() * cache.width()];
        cache.read(frames, &mut values).unwrap();
        values
    };
    assert_eq!(read(&joined, 8..13), [read(&caches[0], 8..10), read(&caches[1], 0..3)].concat());
    assert!(FeatureCache::join(&[fill(&one, 2), fill(&two, 1)]).is_none());
    assert!(FeatureCache::join(&[]).is_none());
}

#[test]
fn what_is_left_out_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let other = Made { name: "two", reward: false, ..Made::default() };
    let joined = join(folder.path(), &[Made::default(), other]).unwrap();
    assert_eq!(joined.notes, ["rewards are not used: `two` has none"]);
    assert!(joined.dataset.columns().rewards.is_none() && joined.dataset.roles().reward.is_none());
    // The numbers are the same, so the episodes are.
    assert_eq!(joined.repeated, 2);
    assert_eq!(joined.dataset.contents(EpisodeId(1)), joined.dataset.contents(EpisodeId(3)));
    assert_ne!(joined.dataset.contents(EpisodeId(0)), joined.dataset.contents(EpisodeId(1)));
}

#[test]
fn datasets_that_differ_are_refused_with_all_differences() {
    let folder = tempfile::tempdir().unwrap();
    let made = [
        Made::default(),
        Made { name: "wide", state: &["x", "y", "z"], fps: 20, ..Made::default() },
        Made { name: "other", state: &["x", "z"], cameras: ["left", "right"], ..Made::default() },
    ];
    insta::assert_snapshot!(explain(join(folder.path(), &made).unwrap_err().faults()));
}
