//! A dataset, opened: its description, its tasks, its episodes, and its numbers in memory. Pictures stay on disk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::columns::{self, Columns, Counters, Matrix};
use crate::episodes::{self, DataFile, Episode};
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::ids::{EpisodeId, EpisodeSpan, TaskId};
use crate::info::{Dtype, INFO, Info};
use crate::join::Pieces;
use crate::normalize::{Normalization, NormalizationKind};
use crate::robot::choices::unknown_groups;
use crate::roles::{Overrides, Roles, roles};
use crate::stats::{STATS, Stats};
use crate::tasks;

/// No `info.json` that we know is longer, in bytes.
const MAX_INFO: u64 = 16 << 20;

/// No `stats.json` that we know is longer, in bytes.
const MAX_STATS: u64 = 64 << 20;

/// A LeRobot v3 dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub(crate) root: Root,
    pub(crate) info: Info,
    pub(crate) roles: Roles,
    pub(crate) tasks: Vec<String>,
    pub(crate) episodes: Vec<Episode>,
    pub(crate) files: Vec<DataFile>,
    pub(crate) spans: Vec<EpisodeSpan>,
    pub(crate) columns: Columns,
    /// The datasets that a [joined](Dataset::join) one was made of.
    pub(crate) pieces: Option<Arc<Pieces>>,
    /// What the user said about columns.
    pub(crate) overrides: Overrides,
}

/// A stretch of a dataset's rows, without a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Window<'a> {
    /// `[T, S]`, row by row.
    pub states: &'a [f32],
    /// `[T, A]`, row by row.
    pub actions: &'a [f32],
    /// `[T]`, where there are any.
    pub rewards: Option<&'a [f32]>,
}

impl Dataset {
    /// Opens a dataset: reads its metadata and all its numbers. Every fault that is found on the way is reported.
    pub fn open(root: Root, overrides: &Overrides) -> Result<Dataset, Error> {
        Dataset::open_known(root.clone(), overrides).map_err(|error| {
            let faults = recognised(&root, error.faults().to_vec());
            Error::of(faults).unwrap_or(error)
        })
    }

    fn open_known(root: Root, overrides: &Overrides) -> Result<Dataset, Error> {
        let info = read_info(&root)?;
        let roles = roles(&info, overrides)?;
        let mut faults = Vec::new();
        let tasks = tasks::read(&root, &mut faults)?;
        let videos = video_keys(&info, &roles);
        let table = episodes::read(&root, &info, &videos, &mut faults)?;
        if let Some(error) = Error::of(faults) {
            return Err(error);
        }
        if table.episodes.is_empty() {
            return Err(Fault::NoFrames.into());
        }
        let check = |counters: &Counters<'_>| misplaced(counters, &table.episodes, tasks.len());
        let columns = columns::read(&root, &info, &roles, &table.files, &check)?;
        let task = |frames: &Range<usize>| TaskId(u32::try_from(columns.tasks[frames.start]).unwrap_or_default());
        let span = |episode: &Episode| EpisodeSpan { frames: episode.frames.clone(), task: task(&episode.frames) };
        let spans = table.episodes.iter().map(span).collect();
        let dataset = Dataset {
            root,
            info,
            roles,
            tasks,
            episodes: table.episodes,
            files: table.files,
            spans,
            columns,
            pieces: None,
            overrides: overrides.clone(),
        };
        Error::of(unknown_groups(&dataset)).map_or(Ok(dataset), Err)
    }

    /// Where it is. A [joined](Dataset::join) dataset has no files itself.
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

    /// What the user said about columns when opening it; for a [joined](Dataset::join) dataset, about those of the first.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// The tasks in words, by [`TaskId`].
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// The episodes, by [`EpisodeId`](crate::EpisodeId).
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// What sampling needs to know of the episodes.
    pub fn spans(&self) -> &[EpisodeSpan] {
        &self.spans
    }

    /// The numbers.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The names of a label's values, such as those of phases, where a file of `meta` gives them.
    pub fn label_names(&self, key: &str) -> Option<Vec<String>> {
        match &self.pieces {
            Some(pieces) => pieces.names_of(key),
            None => crate::inspect::names_of(&self.root, key),
        }
    }

    /// The number of frames.
    pub fn frames(&self) -> usize {
        self.columns.len()
    }

    /// Some rows, which the caller keeps within an episode.
    pub fn window(&self, frames: Range<usize>) -> Window<'_> {
        Window {
            states: self.columns.states.rows(frames.clone()),
            actions: self.columns.actions.rows(frames.clone()),
            rewards: self.columns.rewards.as_ref().map(|rewards| &rewards[frames]),
        }
    }

    /// The scales of states and actions: those of `meta/stats.json` where it has them, else computed from the data.
    pub fn normalizations(&self, kind: NormalizationKind) -> Result<(Normalization, Normalization), Error> {
        let stats = match self.root.has(STATS) {
            true => Some(Stats::parse(&self.root.read(STATS, MAX_STATS)?)?),
            false => None,
        };
        let scale = |key: &str, matrix: &Matrix| {
            let known = stats.as_ref().and_then(|stats| stats.get(key)).filter(|stats| stats.width() == matrix.width);
            // Files of older versions have no quantiles.
            let known = known.and_then(|stats| Normalization::from_stats(kind, key, stats).ok());
            let computed = || Normalization::from_rows(kind, matrix.width, [matrix.values.as_slice()]);
            known.or_else(computed).ok_or(Fault::NoFrames)
        };
        Ok((scale(&self.roles.state, &self.columns.states)?, scale(&self.roles.action, &self.columns.actions)?))
    }

    /// The scales of states and actions over some episodes, such as those that a model is trained on.
    pub fn normalizations_over(
        &self,
        episodes: &[EpisodeId],
        kind: NormalizationKind,
    ) -> Result<(Normalization, Normalization), Error> {
        let scale = |matrix: &Matrix| {
            let rows = episodes.iter().filter_map(|id| self.episodes.get(id.at()));
            let rows = rows.map(|episode| matrix.rows(episode.frames.clone()));
            Normalization::from_rows(kind, matrix.width, rows).ok_or(Fault::NoFrames)
        };
        Ok((scale(&self.columns.states)?, scale(&self.columns.actions)?))
    }

    /// The data files and their rows.
    pub(crate) fn files(&self) -> &[DataFile] {
        &self.files
    }
}

/// Reads `meta/info.json`, or says what the directory is instead.
pub(crate) fn read_info(root: &Root) -> Result<Info, Error> {
    let (info, faults) = read_info_loosely(root)?;
    Error::of(faults).map_or(Ok(info), Err)
}

/// As [`read_info`], with as much as can be read and what is wrong with the rest.
pub(crate) fn read_info_loosely(root: &Root) -> Result<(Info, Vec<Fault>), Error> {
    if let Root::Directory(path) = root
        && !path.join(INFO).is_file()
    {
        let found = match (path.exists(), path.is_dir()) {
            (false, _) => "there is no such directory".to_string(),
            (_, false) => "it is a file".to_string(),
            _ => format!("it has no `{INFO}`"),
        };
        return Err(Fault::NoDataset { directory: path.display().to_string(), found, near: near(path) }.into());
    }
    Info::parse_loosely(&root.read(INFO, MAX_INFO)?).map_err(|error| placed(error, root))
}

/// The datasets above and below a directory that is none.
fn near(path: &Path) -> Vec<String> {
    let is_set = |path: &Path| path.join(INFO).is_file();
    let above = path.ancestors().skip(1).find(|above| *above != Path::new("") && is_set(above)).map(Path::to_path_buf);
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_set(path)).collect();
    below.sort();
    above.into_iter().chain(below).map(|path| path.display().to_string()).collect()
}

/// Names files that are no such file because Git LFS left a pointer in their place, as a clone without it does.
pub(crate) fn recognised(root: &Root, faults: Vec<Fault>) -> Vec<Fault> {
    const MARK: &[u8] = b"version https://git-lfs";
    let is_pointer = |file: &str| {
        root.open(file).is_ok_and(|blob| blob.read_at(0, MARK.len()).is_ok_and(|start| &start[..] == MARK))
    };
    let name = |fault| match fault {
        Fault::Malformed { file, .. } if is_pointer(&file) => Fault::LfsPointer { file },
        other => other,
    };
    faults.into_iter().map(name).collect()
}

/// Tells an older dataset's fault where the dataset is, for the command that converts it.
fn placed(error: Error, root: &Root) -> Error {
    match (error.faults(), root) {
        ([Fault::OldVersion { file, found, .. }], Root::Directory(path)) => {
            let directory = Some(path.display().to_string());
            Fault::OldVersion { file: file.clone(), found: found.clone(), directory }.into()
        }
        _ => error,
    }
}

/// The cameras that are videos.
pub(crate) fn video_keys(info: &Info, roles: &Roles) -> Vec<String> {
    let is_video = |key: &&String| info.feature(key).is_some_and(|feature| feature.dtype == Dtype::Video);
    roles.cameras.iter().filter(is_video).cloned().collect()
}

/// Rows whose counters are not what their place says. Only what would make windows wrong stops the reading: `index` and
/// `frame_index` out of step are told by `validate`.
pub(crate) fn misplaced(counters: &Counters<'_>, episodes: &[Episode], tasks: usize) -> Vec<Fault> {
    let mut wrong: BTreeMap<&'static str, Fault> = BTreeMap::new();
    let mut report = |column, at: usize, found, expected| {
        let file = counters.file.to_string();
        let fault = Fault::WrongIndex { file, column, row: counters.row + at, found, expected, count: 0 };
        if let Fault::WrongIndex { count, .. } = wrong.entry(column).or_insert(fault) {
            *count += 1;
        }
    };
    let mut unknown = BTreeMap::new();
    let mut episode = episodes.partition_point(|episode| episode.frames.end <= counters.index);
    for at in 0..counters.task_index.len() {
        while episodes.get(episode).is_some_and(|it| it.frames.end <= counters.index + at) {
            episode += 1;
        }
        let found = counters.episode_index[at];
        if found != episode as i64 {
            report("episode_index", at, found, episode as i64);
        }
        let task = counters.task_index[at];
        if usize::try_from(task).map_or(true, |task| task >= tasks) {
            *unknown.entry(task).or_insert(0_usize) += 1;
        }
    }
    let unknown = unknown.into_iter().map(|(task, count)| Fault::UnknownTask {
        file: tasks::TASKS.to_string(),
        task,
        users: format!("{count} rows of `{}`", counters.file),
    });
    wrong.into_values().chain(unknown).collect()
}
