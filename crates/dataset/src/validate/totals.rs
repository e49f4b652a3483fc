//! What the parts of the metadata say about each other, and files that none of them names.

use std::collections::{BTreeMap, BTreeSet};

use super::{Validation, frames_of};
use crate::episodes::{EPISODES, EpisodeTable};
use crate::fault::Fault;
use crate::info::INFO;

/// The totals and splits of `info.json` against what there is, and the words of episodes against the list of tasks. What
/// could not be read is not held against anything.
pub(super) fn check(
    validation: &Validation<'_>,
    known: bool,
    table: Option<&EpisodeTable>,
    tasks: Option<&BTreeMap<i64, String>>,
    faults: &mut Vec<Fault>,
) {
    let info = validation.info;
    let mut total = |what, found: u64, counted: u64| {
        if known && found != counted {
            faults.push(Fault::WrongTotal { file: INFO.to_string(), what, found, counted });
        }
    };
    if let Some(table) = table {
        total("episodes", info.total_episodes, table.episodes.len() as u64);
        total("frames", info.total_frames, frames_of(table));
    }
    if let Some(tasks) = tasks {
        total("tasks", info.total_tasks, tasks.len() as u64);
    }
    if let Some(table) = table {
        for (name, range) in &info.splits {
            faults.extend(bad_split(name, range, table.episodes.len()));
        }
    }
    if let (Some(table), Some(tasks)) = (table, tasks) {
        faults.extend(unknown_words(table, tasks));
    }
}

/// A split is a range of episodes, such as `0:54`; other writers put other things there, which are left alone.
fn bad_split(name: &str, range: &str, episodes: usize) -> Option<Fault> {
    let (from, to) = range.split_once(':')?;
    let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from > to || to > episodes).then(|| Fault::BadInfo {
        file: INFO.to_string(),
        key: format!("splits.{name}"),
        found: format!("`{range}`"),
        expected: format!("a range within `0:{episodes}`"),
    })
}

fn unknown_words(table: &EpisodeTable, tasks: &BTreeMap<i64, String>) -> Option<Fault> {
    let known: BTreeSet<&str> = tasks.values().map(String::as_str).collect();
    let unknown = |words: &&String| !known.contains(words.as_str());
    let with = |at: usize| Some((table.numbers[at], table.episodes[at].tasks.iter().find(unknown)?));
    let mut wrong = (0..table.episodes.len()).filter_map(with);
    let (episode, task) = wrong.next()?;
    Some(Fault::UnknownWords { file: EPISODES.to_string(), episode, task: task.clone(), count: 1 + wrong.count() })
}

/// Data files and videos that belong to no episode, counted for each kind.
pub(super) fn leftovers(validation: &Validation<'_>, table: &EpisodeTable, videos: &[String], faults: &mut Vec<Fault>) {
    let info = validation.info;
    let data: BTreeSet<String> = table.files.iter().map(|file| file.path.clone()).collect();
    let mut used = BTreeSet::new();
    for episode in &table.episodes {
        for (camera, span) in videos.iter().zip(&episode.videos) {
            used.insert(info.video_file(camera, span.chunk.into(), span.file.into()));
        }
    }
    // Videos of cameras that nobody asked about are not left over.
    let all =
        info.features.iter().filter(|(_, feature)| feature.dtype == crate::info::Dtype::Video).count() == videos.len();
    let folders = [
        (Some(info.data_path.as_str()), ".parquet", &data),
        (info.video_path.as_deref().filter(|_| all), ".mp4", &used),
    ];
    for (template, ending, used) in folders {
        let Some((folder, _)) =
            template.and_then(|template| template.split_once('/')).filter(|(it, _)| !it.contains('{'))
        else {
            continue;
        };
        let files = validation.root.list(folder);
        let mut extra = files.into_iter().filter(|file| file.ends_with(ending) && !used.contains(file));
        if let Some(file) = extra.next() {
            faults.push(Fault::ExtraFile { file, count: 1 + extra.count() });
        }
    }
}
