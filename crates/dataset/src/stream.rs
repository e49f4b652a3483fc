//! A dataset that is read one data file at a time, so that memory is bounded by a file and not by the dataset.
//!
//! A [`Stream`] holds the metadata. [`Stream::read`] gives the episodes of one file as a [`Dataset`] that counts episodes
//! and frames from 0, so everything that takes a dataset works on it; [`Stream::sample`] gives some episodes of the whole
//! dataset, for measurements that need not see all of it.
//!
//! Only states, actions, tasks and timestamps are read: rewards and labels are left out.

use std::ops::Range;

use crate::columns::{self, Columns, Counters, Matrix};
use crate::episodes::{DataFile, Episode};
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::ids::{EpisodeSpan, TaskId};
use crate::info::Info;
use crate::open::{Dataset, misplaced, read_info, recognised, video_keys};
use crate::robot::choices::unknown_groups;
use crate::roles::{Overrides, Roles, roles};
use crate::{episodes, tasks};

/// Files that a sample is taken from.
const SAMPLED_FILES: usize = 8;

/// A dataset without its numbers, which are read file by file.
#[derive(Clone, Debug)]
pub struct Stream {
    root: Root,
    info: Info,
    roles: Roles,
    tasks: Vec<String>,
    episodes: Vec<Episode>,
    files: Vec<DataFile>,
    overrides: Overrides,
}

impl Stream {
    /// Reads the metadata of a dataset.
    ///
    /// # Errors
    /// As [`Dataset::open`], but for faults of the data files.
    pub fn open(root: Root, overrides: &Overrides) -> Result<Stream, Error> {
        Stream::open_known(root.clone(), overrides).map_err(|error| {
            let faults = recognised(&root, error.faults().to_vec());
            Error::of(faults).unwrap_or(error)
        })
    }

    fn open_known(root: Root, overrides: &Overrides) -> Result<Stream, Error> {
        let info = read_info(&root)?;
        let found = roles(&info, overrides)?;
        let roles = Roles { reward: None, done: None, success: None, labels: Vec::new(), ..found };
        let mut faults = Vec::new();
        let tasks = tasks::read(&root, &mut faults)?;
        let table = episodes::read(&root, &info, &video_keys(&info, &roles), &mut faults)?;
        match Error::of(faults) {
            Some(error) => Err(error),
            None if table.episodes.is_empty() => Err(Fault::NoFrames.into()),
            None => {
                let (episodes, files) = (table.episodes, table.files);
                Ok(Stream { root, info, roles, tasks, episodes, files, overrides: overrides.clone() })
            }
        }
    }

    /// Where it is.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Its own description.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Which column is what.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The tasks in words.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// The episodes of the whole dataset.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// The number of data files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The number of frames of all episodes.
    pub fn frames(&self) -> usize {
        self.episodes.last().map_or(0, |episode| episode.frames.end)
    }

    /// The path of a data file inside the dataset.
    pub fn path(&self, file: usize) -> &str {
        self.files.get(file).map_or("", |file| &file.path)
    }

    /// The episodes that a data file holds.
    pub fn episodes_of(&self, file: usize) -> Range<usize> {
        let start = self.episodes.partition_point(|episode| (episode.file as usize) < file);
        let end = self.episodes.partition_point(|episode| (episode.file as usize) <= file);
        start..end
    }

    /// The episodes of one data file, counted from 0. Pictures cannot be read from it.
    ///
    /// # Errors
    /// On every fault of the file.
    pub fn read(&self, file: usize) -> Result<Dataset, Error> {
        self.read_known(file).map_err(|error| {
            let faults = recognised(&self.root, error.faults().to_vec());
            Error::of(faults).unwrap_or(error)
        })
    }

    fn read_known(&self, file: usize) -> Result<Dataset, Error> {
        let Some(known) = self.files.get(file) else { return Err(Fault::NoFrames.into()) };
        let first = known.rows.start;
        let own = DataFile { path: known.path.clone(), rows: 0..known.rows.len() };
        let check = |counters: &Counters<'_>| {
            let placed = Counters { index: first + counters.index, ..*counters };
            misplaced(&placed, &self.episodes, self.tasks.len())
        };
        let columns = columns::read(&self.root, &self.info, &self.roles, std::slice::from_ref(&own), &check)?;
        let rebased = |episode: &Episode| Episode {
            frames: episode.frames.start - first..episode.frames.end - first,
            file: 0,
            ..episode.clone()
        };
        let episodes = self.episodes[self.episodes_of(file)].iter().map(rebased).collect();
        Ok(self.dataset(episodes, columns, vec![own]))
    }

    /// Whole episodes of at most so many frames, but at least one, spread over the dataset; all of it, if it is no larger.
    /// They are counted from 0. Pictures cannot be read from it.
    ///
    /// # Errors
    /// On every fault of the files that are read, and on groups that `--control` names and the robot does not have.
    pub fn sample(&self, frames: usize) -> Result<Dataset, Error> {
        let all = self.files.len();
        let count = if self.frames() <= frames { all } else { all.min(SAMPLED_FILES) };
        let files: Vec<usize> = (0..count).map(|at| at * all / count).collect();
        let available: usize = files.iter().map(|&file| self.files[file].rows.len()).sum();
        // Every so-manieth episode, such that about the wanted number of frames is kept.
        let every = available.div_ceil(frames.max(1)).max(1);
        let (mut episodes, mut columns): (Vec<Episode>, Option<Columns>) = (Vec::new(), None);
        let (mut seen, mut kept) = (0_usize, 0_usize);
        for file in files {
            let part = self.read(file)?;
            for episode in &part.episodes {
                let wanted = seen.is_multiple_of(every) && (kept == 0 || kept + episode.frames.len() <= frames);
                seen += 1;
                if !wanted {
                    continue;
                }
                let rows = kept..kept + episode.frames.len();
                kept = rows.end;
                append(&mut columns, &part.columns, &episode.frames);
                episodes.push(Episode { frames: rows, ..episode.clone() });
            }
        }
        let sample = self.dataset(episodes, columns.ok_or(Fault::NoFrames)?, Vec::new());
        Error::of(unknown_groups(&sample)).map_or(Ok(sample), Err)
    }

    fn dataset(&self, episodes: Vec<Episode>, columns: Columns, files: Vec<DataFile>) -> Dataset {
        let task = |frames: &Range<usize>| TaskId(u32::try_from(columns.tasks[frames.start]).unwrap_or_default());
        let span = |episode: &Episode| EpisodeSpan { frames: episode.frames.clone(), task: task(&episode.frames) };
        Dataset {
            root: self.root.clone(),
            info: self.info.clone(),
            roles: self.roles.clone(),
            tasks: self.tasks.clone(),
            spans: episodes.iter().map(span).collect(),
            episodes,
            files,
            columns,
            pieces: None,
            overrides: self.overrides.clone(),
        }
    }
}

/// Copies some rows of a file's columns to the end of others.
fn append(to: &mut Option<Columns>, from: &Columns, frames: &Range<usize>) {
    let empty = |matrix: &Matrix| Matrix { width: matrix.width, values: Vec::new() };
    let to = to.get_or_insert_with(|| Columns {
        states: empty(&from.states),
        actions: empty(&from.actions),
        rewards: None,
        done: None,
        success: None,
        tasks: Vec::new(),
        timestamps: Vec::new(),
        labels: Default::default(),
    });
    to.states.values.extend_from_slice(from.states.rows(frames.clone()));
    to.actions.values.extend_from_slice(from.actions.rows(frames.clone()));
    to.tasks.extend_from_slice(&from.tasks[frames.clone()]);
    to.timestamps.extend_from_slice(&from.timestamps[frames.clone()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{ColumnData, EpisodeData, WriteOptions, Writer};
    use crate::{Dtype, Feature};

    /// A dataset of several data files; the first state of a frame is its `index`.
    fn written(folder: &std::path::Path, episodes: usize) -> Root {
        let target = folder.join("set");
        let features = vec![
            ("observation.state".to_string(), Feature::new(Dtype::Float32, &[300])),
            ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
        ];
        let options = WriteOptions { data_file_mb: 1, ..WriteOptions::new(10, features) };
        let mut writer = Writer::create(&target, options).unwrap();
        let mut index = 0;
        let mut noise = 7_u32;
        for episode in 0..episodes {
            let rows = 100 + episode % 3;
            let states: Vec<f32> = (0..rows * 300)
                .map(|at| match at % 300 {
                    0 => (index + at / 300) as f32,
                    _ => {
                        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        noise as f32
                    }
                })
                .collect();
            index += rows;
            let actions = vec![episode as f32; rows * 2];
            let columns = [("observation.state", ColumnData::F32(&states)), ("action", ColumnData::F32(&actions))];
            let task = format!("task {}", episode % 2);
            writer.add_episode(&EpisodeData { task: &task, columns: &columns }).unwrap();
        }
        assert!(writer.finish().unwrap().data_files > 2);
        Root::Directory(target)
    }

    #[test]
    fn files_together_are_the_dataset_and_a_sample_is_spread_over_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = written(folder.path(), 40);
        let whole = Dataset::open(root.clone(), &Overrides::default()).unwrap();
        let stream = Stream::open(root, &Overrides::default()).unwrap();
        assert_eq!((stream.frames(), stream.episodes().len()), (whole.frames(), 40));
        let mut next = 0;
        for file in 0..stream.files() {
            let (part, episodes) = (stream.read(file).unwrap(), stream.episodes_of(file));
            assert_eq!((episodes.start, part.episodes().len()), (next, episodes.len()));
            next = episodes.end;
            for (own, of_all) in part.spans().iter().zip(&whole.spans()[episodes]) {
                assert_eq!(part.window(own.frames.clone()), whole.window(of_all.frames.clone()));
                assert_eq!(own.task, of_all.task);
            }
        }
        assert_eq!(next, 40);
        let all = stream.sample(1 << 20).unwrap();
        assert_eq!((all.columns(), all.spans()), (whole.columns(), whole.spans()));
        let some = stream.sample(1000).unwrap();
        assert!((700..=1000).contains(&some.frames()), "{}", some.frames());
        let starts: Vec<f32> =
            some.spans().iter().map(|span| some.columns().states.rows(span.frames.clone())[0]).collect();
        assert!(starts[0] == 0.0 && starts.windows(2).all(|two| two[0] < two[1]), "{starts:?}");
        assert!(starts.last().is_some_and(|last| *last > 0.6 * whole.frames() as f32), "{starts:?}");
        // The least is one episode.
        assert_eq!(stream.sample(1).unwrap().spans().len(), 1);
    }

    #[test]
    fn a_row_of_another_episode_is_told_with_its_place_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = written(folder.path(), 40);
        let mut stream = Stream::open(root, &Overrides::default()).unwrap();
        let file = stream.files() - 1;
        stream.episodes.remove(0);
        let faults = stream.read(file).unwrap_err().into_faults();
        assert!(matches!(&faults[0], Fault::WrongIndex { column: "episode_index", row: 0, .. }), "{faults:?}");
    }
}
