//! Recordings as a LeRobot v3.0 dataset.

use std::path::Path;

use super::Synthetic;
use super::noise::Noise;
use super::picture::SIDE;
use super::record::{Recording, record};
use super::robot::Robot;
use crate::draw::{Purpose, generator};
use crate::fault::Error;
use crate::info::{Dtype, Feature};
use crate::write::{ColumnData, EpisodeData, Summary, WriteOptions, Writer};

/// What a synthetic dataset is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of episodes of each task.
    pub per_task: usize,
    /// The same seed gives the same files.
    pub seed: u64,
    /// How unsteady the demonstrations are.
    pub noise: Noise,
}

impl Default for Options {
    fn default() -> Options {
        Options { per_task: 5, seed: 11, noise: Noise::default() }
    }
}

/// What was written, with what is true of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The dataset as a whole.
    pub summary: Summary,
    /// Frames per second.
    pub fps: u32,
    /// The number of columns of states and of actions.
    pub columns: usize,
    /// The number of cameras.
    pub cameras: usize,
    /// Whether there are rewards.
    pub rewards: bool,
    /// The classes of segments, in the order of their numbers.
    pub phases: Vec<&'static str>,
    /// For each task its true segments.
    pub tasks: Vec<TaskSegments>,
}

/// The true segments of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSegments {
    /// The instruction.
    pub instruction: &'static str,
    /// The number of segments of each of its episodes.
    pub segments: usize,
    /// The mean length of its episodes in seconds.
    pub seconds: f64,
}

/// Writes a dataset in rounds of one episode of each task, so that any prefix of whole rounds is balanced. The directory
/// must not exist, or be empty.
pub fn write(directory: &Path, synthetic: Synthetic, options: &Options) -> Result<Written, Error> {
    let robot = synthetic.robot();
    let phases = phases(&robot);
    let mut writer = Writer::create(
        directory,
        WriteOptions {
            robot_type: Some(robot.robot_type.to_string()),
            ..WriteOptions::new(robot.fps, features(&robot))
        },
    )?;
    let mut tasks: Vec<TaskSegments> = robot
        .tasks
        .iter()
        .map(|task| TaskSegments { instruction: task.instruction, segments: task.steps.len(), seconds: 0.0 })
        .collect();
    for episode in 0..options.per_task * robot.tasks.len() {
        let at = episode % robot.tasks.len();
        let mut random = generator(options.seed, Purpose::SyntheticRobot, [synthetic as u64, episode as u64]);
        let recording = record(&robot, &robot.tasks[at], options.noise, &mut random);
        add(&mut writer, &robot, &phases, robot.tasks[at].instruction, &recording)?;
        let seconds = recording.phases.len() as f64 / f64::from(robot.fps);
        tasks[at].seconds += seconds / options.per_task as f64;
        tasks[at].segments = recording.segments;
    }
    writer.name_values("phase", &phases.iter().map(|phase| phase.to_string()).collect::<Vec<_>>())?;
    Ok(Written {
        summary: writer.finish()?,
        fps: robot.fps,
        columns: robot.columns.len(),
        cameras: robot.cameras.len(),
        rewards: robot.rewards,
        phases,
        tasks,
    })
}

/// The classes of segments of all tasks, each once, in the order in which scripts name them.
fn phases(robot: &Robot) -> Vec<&'static str> {
    let mut phases = Vec::new();
    for step in robot.tasks.iter().flat_map(|task| &task.steps) {
        if !phases.contains(&step.phase) {
            phases.push(step.phase);
        }
    }
    phases
}

fn features(robot: &Robot) -> Vec<(String, Feature)> {
    let names: Vec<&str> = robot.columns.iter().map(|column| column.name.as_str()).collect();
    let vector = || Feature::new(Dtype::Float32, &[names.len()]).named(&names);
    let single = |key: &str, dtype| (key.to_string(), Feature::new(dtype, &[1]));
    let mut features = vec![("action".to_string(), vector()), ("observation.state".to_string(), vector())];
    features.extend(camera_keys(robot).map(|key| (key, Feature::new(Dtype::Image, &[SIDE, SIDE, 3]))));
    if robot.rewards {
        features.extend([single("next.reward", Dtype::Float32), single("next.done", Dtype::Bool)]);
    }
    features.push(single("phase", Dtype::Int(64)));
    features
}

fn camera_keys(robot: &Robot) -> impl Iterator<Item = String> + '_ {
    robot.cameras.iter().map(|camera| format!("observation.images.{}", camera.name))
}

fn add(
    writer: &mut Writer,
    robot: &Robot,
    phases: &[&'static str],
    task: &str,
    recording: &Recording,
) -> Result<(), Error> {
    let rows = recording.phases.len();
    let last = |row: usize| row + 1 == rows;
    let rewards: Vec<f32> = (0..rows).map(|row| f32::from(u8::from(last(row)))).collect();
    let done: Vec<bool> = (0..rows).map(last).collect();
    let number = |phase: &&str| phases.iter().position(|known| known == phase).map_or(-1, |at| at as i64);
    let labels: Vec<i64> = recording.phases.iter().map(number).collect();
    let keys: Vec<String> = camera_keys(robot).collect();
    let mut columns = vec![
        ("action", ColumnData::F32(&recording.actions)),
        ("observation.state", ColumnData::F32(&recording.states)),
        ("phase", ColumnData::I64(&labels)),
    ];
    columns.extend(keys.iter().zip(&recording.pictures).map(|(key, seen)| (key.as_str(), ColumnData::Images(seen))));
    if robot.rewards {
        columns.extend([("next.reward", ColumnData::F32(&rewards)), ("next.done", ColumnData::Bool(&done))]);
    }
    writer.add_episode(&EpisodeData { task, columns: &columns })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::{Dataset, Overrides, Root, ValidateOptions, validate};

    const ONE_EACH: Options = Options { per_task: 1, seed: 7, noise: Noise::Mild };

    fn opened(path: PathBuf) -> Dataset {
        let root = Root::Directory(path);
        let wanted = ValidateOptions { decode: true, ..ValidateOptions::default() };
        let report = validate(root.clone(), &Overrides::default(), &wanted, &|_| {});
        assert_eq!(report.faults, []);
        Dataset::open(root, &Overrides::default()).unwrap()
    }

    #[test]
    fn every_robot_is_written_as_a_sound_dataset() {
        let folder = tempfile::tempdir().unwrap();
        let expected = [(6, 30, 2, false), (14, 50, 3, true), (34, 30, 1, true), (9, 30, 2, true), (8, 30, 0, true)];
        for (synthetic, (width, fps, cameras, rewards)) in Synthetic::ALL.into_iter().zip(expected) {
            let path = folder.path().join(synthetic.name());
            let written = write(&path, synthetic, &ONE_EACH).unwrap();
            let dataset = opened(path);
            let columns = dataset.columns();
            let name = synthetic.name();
            assert_eq!((columns.states.width, columns.actions.width), (width, width), "{name}");
            assert_eq!((dataset.info().fps, dataset.roles().cameras.len()), (f64::from(fps), cameras), "{name}");
            assert_eq!(dataset.roles().reward.is_some(), rewards, "{name}");
            assert_eq!(dataset.label_names("phase").unwrap(), written.phases, "{name}");
            // A change of the phase is the start of a segment, and there is no other.
            for (span, task) in dataset.spans().iter().zip(&written.tasks) {
                let phases = &columns.labels["phase"][span.frames.clone()];
                let changes = phases.windows(2).filter(|pair| pair[0] != pair[1]).count();
                assert_eq!(changes + 1, task.segments, "{name}: {}", task.instruction);
                let seconds = phases.len() as f64 / f64::from(fps);
                assert!((6.0..40.0).contains(&seconds), "{name}: {}: {seconds} s", task.instruction);
            }
        }
    }

    /// The bytes of all files by their names.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path).into_iter().map(|(name, bytes)| (path.join(name), bytes)));
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path, bytes);
            }
        }
        found.into_iter().map(|(path, bytes)| (path.strip_prefix(folder).unwrap_or(&path).into(), bytes)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, options: &Options| {
            let path = folder.path().join(name);
            write(&path, Synthetic::StateOnly, options).unwrap();
            files(&path)
        };
        let first = written("first", &ONE_EACH);
        assert!(first.len() >= 5 && first == written("again", &ONE_EACH));
        let data = |files: &BTreeMap<PathBuf, Vec<u8>>| {
            files.iter().find(|(path, _)| path.starts_with("data")).map(|(_, bytes)| bytes.clone()).unwrap()
        };
        assert_ne!(data(&first), data(&written("other_seed", &Options { seed: 8, ..ONE_EACH })));
        assert_ne!(data(&first), data(&written("other_noise", &Options { noise: Noise::None, ..ONE_EACH })));
    }

    #[test]
    fn rewards_are_1_at_the_end_of_an_episode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm");
        write(&path, Synthetic::StateOnly, &ONE_EACH).unwrap();
        let dataset = opened(path);
        let rewards = dataset.columns().rewards.as_ref().unwrap();
        for span in dataset.spans() {
            let (last, before) = rewards[span.frames.clone()].split_last().unwrap();
            assert!(*last == 1.0 && before.iter().all(|reward| *reward == 0.0));
        }
    }
}
