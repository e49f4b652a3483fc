//! Several datasets read as one.
//!
//! ```text
//! goal   54 episodes, 6661 frames   ┐    episodes 0..54,  frames 0..6661
//! 10     42 episodes, 11609 frames  ┘ ─► episodes 54..96, frames 6661..18270      one `Dataset`
//! ```
//! Columns follow each other, episodes and frames are counted on, and **tasks are merged by their instruction**: equal
//! instructions of two datasets are one task. Labels are kept where all datasets have them, with equal names or with
//! names that can be merged; rewards, `done` and `success` where all datasets have them. Pictures stay where they are:
//! a [`FrameReader`](crate::FrameReader) asks the dataset that a frame came from.
//!
//! Datasets are joined only if states, actions, cameras and frame rates agree. Cameras are matched by name, never by
//! their place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::columns::{Columns, Matrix};
use crate::episodes::{DataFile, Episode};
use crate::fault::{Error, Fault, seconds};
use crate::files::Root;
use crate::ids::{CameraId, EpisodeId, EpisodeSpan, TaskId};
use crate::info::Info;
use crate::open::Dataset;
use crate::roles::Roles;

/// Digits of an episode's hash: 64 bits tell a million episodes apart, and a record of them stays short.
const CONTENT_DIGITS: usize = 16;

/// Several datasets as one, and what was found on the way.
#[derive(Clone, Debug)]
pub struct Joined {
    /// All of them.
    pub dataset: Dataset,
    /// Where each of them is, in the order in which they were given.
    pub parts: Vec<Part>,
    /// How many episodes have the contents of an episode of an earlier dataset.
    pub repeated: usize,
    /// What was left out or may surprise, in words.
    pub notes: Vec<String>,
}

/// The place of one dataset among several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The dataset's name.
    pub name: String,
    /// Its episodes, in those of all.
    pub episodes: Range<usize>,
    /// Its frames, in those of all.
    pub frames: Range<usize>,
}

/// What a joined dataset keeps of the datasets that it was made of.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) pieces: Vec<Piece>,
    /// Names of labels' values, merged.
    label_names: BTreeMap<String, Vec<String>>,
}

/// One of them: where its pictures are.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Of its columns the timestamps alone; the others are in the joined dataset.
    pub(crate) dataset: Dataset,
    /// Its frames, in those of all.
    pub(crate) frames: Range<usize>,
    /// For each camera of the joined dataset the same camera here.
    pub(crate) cameras: Vec<CameraId>,
}

impl Dataset {
    /// Whether datasets can be joined, given with the names that messages call them by.
    ///
    /// # Errors
    /// As [`Dataset::join`], which asks this first.
    pub fn check_joinable(named: &[(&str, &Dataset)]) -> Result<(), Error> {
        let Some(((first_name, first), others)) = named.split_first() else { return Ok(()) };
        let differences = others.iter().flat_map(|(name, other)| differences(first_name, first, name, other));
        Error::of(differences.collect()).map_or(Ok(()), Err)
    }

    /// Joins datasets, given with the names that messages call them by.
    ///
    /// # Errors
    /// If states, actions, cameras or frame rates differ; all differences are reported.
    pub fn join(named: Vec<(String, Dataset)>) -> Result<Joined, Error> {
        let Some(((_, first), _)) = named.split_first() else { return Err(Fault::NoFrames.into()) };
        let all: Vec<(&str, &Dataset)> = named.iter().map(|(name, dataset)| (name.as_str(), dataset)).collect();
        Dataset::check_joinable(&all)?;
        let mut notes = Vec::new();
        let repeated = repeated(&named);
        let (tasks, task_maps) = merged_tasks(&named);
        let (labels, label_names) = merged_labels(&named, &mut notes);
        noted_robots(&named, &mut notes);
        let mut columns = concatenated(&named, &task_maps, labels);
        let flag = |what: &str, of: &dyn Fn(&Dataset) -> bool, notes: &mut Vec<String>| {
            let without: Vec<String> =
                named.iter().filter(|(_, one)| !of(one)).map(|(name, _)| format!("`{name}`")).collect();
            if !without.is_empty() && without.len() < named.len() {
                notes.push(format!("{what} are not used: {} has none", without.join(", ")));
            }
            without.is_empty()
        };
        let mut roles = first.roles().clone();
        if !flag("rewards", &|one| one.columns().rewards.is_some(), &mut notes) {
            (columns.rewards, roles.reward) = (None, None);
        }
        if !flag("marks of an episode's end", &|one| one.columns().done.is_some(), &mut notes) {
            (columns.done, roles.done) = (None, None);
        }
        if !flag("marks of success", &|one| one.columns().success.is_some(), &mut notes) {
            (columns.success, roles.success) = (None, None);
        }
        roles.labels = columns.labels.keys().cloned().collect();
        let info = described(&named, tasks.len());
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        // Nothing is read from here: files belong to the pieces.
        let root = Root::Memory { name: names.join(" + "), files: Arc::default() };
        let (parts, episodes, files, spans) = laid_out(&named, &task_maps);
        let overrides = first.overrides.clone();
        let pieces = named.into_iter().zip(&parts).map(|((_, dataset), part)| {
            let cameras = cameras_of(&roles, dataset.roles());
            Piece { dataset: dataset.without_numbers(), frames: part.frames.clone(), cameras }
        });
        let pieces = Arc::new(Pieces { pieces: pieces.collect(), label_names });
        let pieces = Some(pieces);
        let dataset = Dataset { root, info, roles, tasks, episodes, files, spans, columns, pieces, overrides };
        Ok(Joined { dataset, parts, repeated, notes })
    }

    /// A hash of an episode by what is in it, states and actions: the same in any dataset that has the episode.
    pub fn contents(&self, episode: EpisodeId) -> String {
        let mut hasher = blake3::Hasher::new();
        let frames = self.spans().get(episode.at()).map_or(0..0, |span| span.frames.clone());
        for table in [&self.columns().states, &self.columns().actions] {
            let values = table.rows(frames.clone());
            hasher.update(&(values.len() as u64).to_le_bytes());
            hasher.update(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        }
        hasher.finalize().to_hex()[..CONTENT_DIGITS].to_owned()
    }

    /// The same with timestamps for its only column: what pictures are found by.
    fn without_numbers(mut self) -> Dataset {
        let nothing = |matrix: &Matrix| Matrix { width: matrix.width, values: Vec::new() };
        self.columns = Columns {
            states: nothing(&self.columns.states),
            actions: nothing(&self.columns.actions),
            rewards: None,
            done: None,
            success: None,
            tasks: Vec::new(),
            timestamps: std::mem::take(&mut self.columns.timestamps),
            labels: BTreeMap::new(),
        };
        self
    }
}

impl Pieces {
    /// The merged names of a label's values.
    pub(crate) fn names_of(&self, key: &str) -> Option<Vec<String>> {
        self.label_names.get(key).cloned()
    }
}

/// All that keeps two datasets from being one.
fn differences(one_name: &str, one: &Dataset, other_name: &str, other: &Dataset) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut differ = |what: String| {
        found.push(Fault::Unjoinable { one: one_name.to_owned(), other: other_name.to_owned(), what });
    };
    let roles = [
        ("states", &one.roles().state, &one.columns().states, &other.roles().state, &other.columns().states),
        ("actions", &one.roles().action, &one.columns().actions, &other.roles().action, &other.columns().actions),
    ];
    for (what, key, matrix, other_key, other_matrix) in roles {
        let names = |dataset: &Dataset, key: &str| dataset.info().feature(key).and_then(|it| it.dimension_names());
        let (names, other_names) = (names(one, key), names(other, other_key));
        let same_width = matrix.width == other_matrix.width;
        // Names are compared where both have them: equal widths of other columns are not the same robot.
        let same_names = names == other_names || names.is_none() || other_names.is_none();
        if same_width && same_names {
            continue;
        }
        let widths = match same_width {
            true => format!("{what} have {} columns in both", matrix.width),
            false => format!(
                "{what} have {} columns in `{one_name}` (`{key}`) and {} in `{other_name}` (`{other_key}`)",
                matrix.width, other_matrix.width
            ),
        };
        let lists = match (&names, &other_names) {
            (Some(names), Some(other_names)) => compared(one_name, names, other_name, other_names),
            (Some(names), None) => format!("`{one_name}` calls them {}, `{other_name}` names none", listed(names)),
            (None, Some(names)) => format!("`{other_name}` calls them {}, `{one_name}` names none", listed(names)),
            (None, None) => "neither names them".to_owned(),
        };
        differ(format!("{widths}; {lists}"));
    }
    let (fps, other_fps) = (one.info().fps, other.info().fps);
    if (fps - other_fps).abs() > 1e-6 * fps.abs() {
        differ(format!("they have {} and {} frames per second", seconds(fps), seconds(other_fps)));
    }
    let sorted = |dataset: &Dataset| dataset.roles().cameras.iter().cloned().collect::<BTreeSet<String>>();
    if sorted(one) != sorted(other) {
        let shown = |dataset: &Dataset| match dataset.roles().cameras.as_slice() {
            [] => "no camera".to_owned(),
            cameras => cameras.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
        };
        let alike = if sizes(one) == sizes(other) && !sizes(one).is_empty() {
            "; their number and sizes agree, but cameras are matched by name only"
        } else {
            ""
        };
        differ(format!("their cameras are {} and {}{alike}", shown(one), shown(other)));
    }
    found
}

/// How the columns of two robots differ: those that only one of them has, or else their order.
fn compared(one_name: &str, one: &[String], other_name: &str, other: &[String]) -> String {
    let without = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| !others.contains(name)).cloned().collect()
    };
    let only = [(one_name, without(one, other)), (other_name, without(other, one))];
    let mut parts: Vec<String> = only
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(dataset, names)| format!("only `{dataset}` has {}", listed(names)))
        .collect();
    if parts.is_empty() {
        let column = one.iter().zip(other).position(|(name, other)| name != other).unwrap_or(0);
        let at = |names: &[String]| names.get(column).map_or_else(|| "missing".to_owned(), |name| format!("`{name}`"));
        parts.push(format!("their order differs: column {column} is {} and {}", at(one), at(other)));
    }
    parts.join(", ")
}

/// The first of several names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = names.iter().take(MOST).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text.push_str(&format!(" and {} more", names.len() - MOST));
    }
    text
}

/// The sizes of all cameras' pictures, in ascending order.
fn sizes(dataset: &Dataset) -> Vec<Vec<usize>> {
    let cameras = dataset.roles().cameras.iter();
    let mut sizes: Vec<Vec<usize>> =
        cameras.filter_map(|key| dataset.info().feature(key)).map(|feature| feature.shape.clone()).collect();
    sizes.sort();
    sizes
}

/// How many episodes have the contents of one in an earlier dataset.
fn repeated(named: &[(String, Dataset)]) -> usize {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut count = 0;
    for (_, dataset) in named {
        let own: Vec<String> = (0..dataset.spans().len()).map(|at| dataset.contents(EpisodeId(at as u32))).collect();
        count += own.iter().filter(|contents| known.contains(*contents)).count();
        known.extend(own);
    }
    count
}

/// All instructions, each once, and for each dataset the places of its tasks among them.
fn merged_tasks(named: &[(String, Dataset)]) -> (Vec<String>, Vec<Vec<u32>>) {
    let mut tasks: Vec<String> = Vec::new();
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    let mut maps = Vec::new();
    for (_, dataset) in named {
        let own = dataset.tasks().iter().map(|task| {
            *places.entry(task.clone()).or_insert_with(|| {
                tasks.push(task.clone());
                (tasks.len() - 1) as u32
            })
        });
        maps.push(own.collect());
    }
    (tasks, maps)
}

type Labels = BTreeMap<String, Vec<i64>>;

/// Labels that all datasets have, with numbers that mean the same in all, and the names of their values.
fn merged_labels(named: &[(String, Dataset)], notes: &mut Vec<String>) -> (Labels, BTreeMap<String, Vec<String>>) {
    let (mut labels, mut label_names) = (Labels::new(), BTreeMap::new());
    let keys: BTreeSet<&String> = named.iter().flat_map(|(_, dataset)| dataset.columns().labels.keys()).collect();
    for key in keys {
        let own: Vec<(&[i64], Option<Vec<String>>)> = named
            .iter()
            .filter_map(|(_, one)| Some((one.columns().labels.get(key)?.as_slice(), one.label_names(key))))
            .collect();
        if own.len() < named.len() {
            notes.push(format!(
                "the label `{key}` is not used: only {} of {} datasets have it",
                own.len(),
                named.len()
            ));
            continue;
        }
        if own.iter().all(|(_, names)| *names == own[0].1) {
            labels.insert(key.clone(), own.iter().flat_map(|(values, _)| values.iter().copied()).collect());
            label_names.extend(own[0].1.clone().map(|names| (key.clone(), names)));
            continue;
        }
        match renamed(&own) {
            Some((values, names)) => {
                labels.insert(key.clone(), values);
                label_names.insert(key.clone(), names);
            }
            None => notes.push(format!("the label `{key}` is not used: its values have no names in some datasets")),
        }
    }
    (labels, label_names)
}

/// Numbers of labels by the union of their names; nothing if a value has no name. −1 is no label anywhere.
fn renamed(own: &[(&[i64], Option<Vec<String>>)]) -> Option<(Vec<i64>, Vec<String>)> {
    let mut all: Vec<String> = Vec::new();
    let mut values = Vec::new();
    for (numbers, names) in own {
        let places: Vec<i64> = names
            .as_ref()?
            .iter()
            .map(|name| match all.iter().position(|known| known == name) {
                Some(place) => place as i64,
                None => {
                    all.push(name.clone());
                    (all.len() - 1) as i64
                }
            })
            .collect();
        for number in *numbers {
            values.push(match number {
                -1 => -1,
                number => *places.get(usize::try_from(*number).ok()?)?,
            });
        }
    }
    Some((values, all))
}

/// Different robots may have the same columns; whoever joins them should know.
fn noted_robots(named: &[(String, Dataset)], notes: &mut Vec<String>) {
    let robots: BTreeSet<&str> = named.iter().filter_map(|(_, one)| one.info().robot_type.as_deref()).collect();
    if robots.len() > 1 {
        let robots: Vec<String> = robots.iter().map(|robot| format!("`{robot}`")).collect();
        notes.push(format!("the datasets are of several robots: {}", robots.join(", ")));
    }
}

/// All columns, one dataset after the other. What some datasets lack is shorter, for the caller to leave out.
fn concatenated(named: &[(String, Dataset)], task_maps: &[Vec<u32>], labels: Labels) -> Columns {
    let all = || named.iter().map(|(_, dataset)| dataset.columns());
    let matrix = |of: fn(&Columns) -> &Matrix| Matrix {
        width: all().next().map_or(0, |columns| of(columns).width),
        values: all().flat_map(|columns| of(columns).values.iter().copied()).collect(),
    };
    let flags = |of: fn(&Columns) -> &Option<Vec<bool>>| {
        Some(all().flat_map(|columns| of(columns).iter().flatten().copied()).collect())
    };
    let tasks = all().zip(task_maps).flat_map(|(columns, map)| {
        let place = |task: &i64| usize::try_from(*task).ok().and_then(|task| map.get(task));
        columns.tasks.iter().map(move |task| place(task).map_or(-1, |task| i64::from(*task)))
    });
    Columns {
        states: matrix(|columns| &columns.states),
        actions: matrix(|columns| &columns.actions),
        rewards: Some(all().flat_map(|columns| columns.rewards.iter().flatten().copied()).collect()),
        done: flags(|columns| &columns.done),
        success: flags(|columns| &columns.success),
        tasks: tasks.collect(),
        timestamps: all().flat_map(|columns| columns.timestamps.iter().copied()).collect(),
        labels,
    }
}

/// The description of the first, with the totals of all.
fn described(named: &[(String, Dataset)], tasks: usize) -> Info {
    let total = |of: fn(&Dataset) -> usize| named.iter().map(|(_, dataset)| of(dataset) as u64).sum();
    Info {
        total_episodes: total(|dataset| dataset.episodes().len()),
        total_frames: total(Dataset::frames),
        total_tasks: tasks as u64,
        splits: Vec::new(),
        ..named[0].1.info().clone()
    }
}

type LaidOut = (Vec<Part>, Vec<Episode>, Vec<DataFile>, Vec<EpisodeSpan>);

/// Episodes, files and spans of all, counted on.
fn laid_out(named: &[(String, Dataset)], task_maps: &[Vec<u32>]) -> LaidOut {
    let (mut parts, mut episodes, mut files, mut spans) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut start = 0;
    for ((name, dataset), map) in named.iter().zip(task_maps) {
        let (first_episode, first_file) = (episodes.len(), files.len() as u32);
        let moved = |frames: &Range<usize>| start + frames.start..start + frames.end;
        episodes.extend(dataset.episodes().iter().map(|episode| Episode {
            frames: moved(&episode.frames),
            file: first_file + episode.file,
            ..episode.clone()
        }));
        files.extend(dataset.files().iter().map(|file| DataFile { path: file.path.clone(), rows: moved(&file.rows) }));
        spans.extend(dataset.spans().iter().map(|span| EpisodeSpan {
            frames: moved(&span.frames),
            task: TaskId(map.get(span.task.at()).copied().unwrap_or_default()),
        }));
        let frames = start..start + dataset.frames();
        start = frames.end;
        parts.push(Part { name: name.clone(), episodes: first_episode..episodes.len(), frames });
    }
    (parts, episodes, files, spans)
}

/// For each camera of all datasets its place in one of them, which has the same ones.
fn cameras_of(all: &Roles, one: &Roles) -> Vec<CameraId> {
    let place = |key: &String| CameraId(one.cameras.iter().position(|own| own == key).unwrap_or_default());
    all.cameras.iter().map(place).collect()
}
