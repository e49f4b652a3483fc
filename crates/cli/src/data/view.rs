//! `data view`: episodes as film strips with their subtasks.

use std::collections::BTreeMap;

use dataset::write::{FrameValues as _, Runs};
use dataset::{CameraId, Dataset, FrameIndex, FrameKey, FrameOptions, FrameReader, FrameSubtasks, Overrides, Stream};
use report::{Part, Picture, Strip, Strips, render_strips};
use serde_json::json;
use subtasks::annotate::{Annotated, Fast, annotate};
use subtasks::classes::ClassesConfig;
use subtasks::names_file::{NAMES, Names};
use subtasks::segments_file::word;

use super::{counted, overrides, root};
use crate::args::ViewArgs;
use crate::failure::{Failure, Problem};
use crate::files::{self, Destination};

/// The longer side of a picture, in pixels, and the quality of its JPEG.
const SIDE: usize = 96;
const QUALITY: u8 = 70;

/// The longest vocabulary, in bytes.
const MAX_NAMES: u64 = 64 << 20;

/// Subtasks to show.
struct Shown {
    names: Vec<String>,
    values: Runs,
    /// For each name whether it says what the motion is.
    by_motion: Vec<bool>,
    /// What `annotate` would write, where the dataset has no subtasks.
    preview: Option<Annotated>,
}

/// Writes the page.
pub(crate) fn run(options: &ViewArgs) -> Result<(), Failure> {
    // A page in the place of a table that somebody corrected would be a loss.
    let is_page = |ending: &std::ffi::OsStr| ["html", "htm"].iter().any(|page| ending.eq_ignore_ascii_case(page));
    if !options.out.extension().is_some_and(is_page) {
        return Err(Problem::new(format!("{} is not the name of a page", files::shown(&options.out)))
            .fact("expected", "a file that ends in `.html`")
            .hint("to apply a corrected table, type `refactor-vla annotate DATASET OUT --segments-from FILE`")
            .into());
    }
    let destination = Destination::new(&options.out, "subtasks.html")?;
    let dataset = Dataset::open(root(&options.dataset)?, &overrides(&options.keys))?;
    let shown = subtasks(options, &dataset)?;
    let all = dataset.episodes().len();
    let tasks: Vec<usize> = dataset.spans().iter().map(|span| span.task.at()).collect();
    let chosen = chosen(&tasks, options.episodes as usize);
    let count = chosen.len();
    let pictures = pictures(options, &dataset, &chosen)?;
    let episodes = chosen.iter().zip(pictures).map(|(&at, pictures)| strip(&dataset, &shown, at, pictures)).collect();
    let strips = Strips {
        title: dataset.root().shown(),
        lead: lead(&dataset, &shown),
        fps: dataset.info().fps,
        names: shown.names,
        episodes,
        left_out: (all - count) as u64,
    };
    destination.write(render_strips(&strips).as_bytes())?;
    match options.json {
        true => files::print(&files::json_bytes(&json!({"page": options.out, "episodes": count}))?),
        false => {
            let episodes = counted(count as u64, "episode", "episodes");
            files::print(format!("page: {} with {episodes}\n", options.out.display()).as_bytes())
        }
    }
}

/// At most `most` episodes, given by their tasks: as many of each task as of the others where it has them, and those of a
/// task evenly spread.
fn chosen(tasks: &[usize], most: usize) -> Vec<usize> {
    let mut of_task: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (episode, task) in tasks.iter().enumerate() {
        of_task.entry(*task).or_default().push(episode);
    }
    let mut shares: Vec<(usize, &Vec<usize>)> = of_task.values().map(|episodes| (0, episodes)).collect();
    let mut left = most.min(tasks.len());
    while left > 0 {
        for (share, episodes) in &mut shares {
            if left > 0 && *share < episodes.len() {
                *share += 1;
                left -= 1;
            }
        }
    }
    let spread = |(share, episodes): (usize, &Vec<usize>)| {
        (0..share).map(|at| episodes[at * episodes.len() / share]).collect::<Vec<usize>>()
    };
    let mut chosen: Vec<usize> = shares.into_iter().flat_map(spread).collect();
    chosen.sort_unstable();
    chosen
}

/// The subtasks of the dataset, or those that `annotate` would write.
fn subtasks(options: &ViewArgs, dataset: &Dataset) -> Result<Shown, Failure> {
    if let Some(FrameSubtasks { names, values }) = FrameSubtasks::of(dataset)? {
        // A vocabulary that cannot be read is reported by `annotate`; here it only says less.
        let vocabulary = match dataset.root().has(NAMES) {
            true => dataset.root().read(NAMES, MAX_NAMES).ok(),
            false => None,
        };
        let vocabulary = vocabulary.and_then(|bytes| Names::parse(&String::from_utf8_lossy(&bytes)).ok());
        let by_motion =
            names.iter().map(|name| vocabulary.as_ref().is_some_and(|known| known.is_by_motion(name))).collect();
        return Ok(Shown { names, values, by_motion, preview: None });
    }
    let wanted = Overrides { cameras: Some(Vec::new()), labels: Some(Vec::new()), ..overrides(&options.keys) };
    let stream = Stream::open(dataset.root().clone(), &wanted)?;
    let fast = Fast::measure(&stream, &ClassesConfig::default(), &|_, _, _| {})?;
    let found = annotate(&stream, &fast, &Default::default(), &Default::default(), &|_, _, _| {})?;
    let mut by_motion = vec![false; found.names.len()];
    found.vocabulary.values().filter(|used| used.by_motion).for_each(|used| by_motion[used.name] = true);
    Ok(Shown { names: found.names.clone(), values: found.subtask_runs(), by_motion, preview: Some(found) })
}

fn lead(dataset: &Dataset, shown: &Shown) -> Vec<String> {
    let episodes = counted(dataset.episodes().len() as u64, "episode", "episodes");
    let names = counted(shown.names.len() as u64, "name", "names");
    let mut lead = vec![format!(
        "{episodes}, {names} of subtasks. Time runs to the right; frames count from 0 in each episode, and the second number is the \
         first frame after the subtask, as in the table of `annotate --segments`."
    )];
    let by_motion = shown.by_motion.iter().filter(|by_motion| **by_motion).count();
    if by_motion > 0 {
        let names = counted(by_motion as u64, "name says", "names say");
        lead.push(format!(
            "{names} what the motion is, as the instruction does not fit it there or is not understood: \"by motion\"."
        ));
    }
    if shown.preview.is_some() {
        lead.push(
            "The dataset has no subtasks: these are the ones that `refactor-vla annotate` would write.".to_owned(),
        );
    }
    lead
}

/// Pictures of the first camera at equal distances, for each of some episodes.
fn pictures(options: &ViewArgs, dataset: &Dataset, chosen: &[usize]) -> Result<Vec<Vec<Picture>>, Failure> {
    let count = options.pictures as usize;
    if dataset.roles().cameras.is_empty() || count == 0 {
        return Ok(vec![Vec::new(); chosen.len()]);
    }
    let reader = FrameReader::new(dataset, FrameOptions::default());
    let mut found = Vec::with_capacity(chosen.len());
    for &at in chosen {
        let frames = &dataset.episodes()[at].frames;
        // The middle of each of as many equal parts.
        let place = |which: usize| frames.start + (2 * which + 1) * frames.len() / (2 * count);
        let wanted: Vec<FrameKey> = (0..count).map(|which| (CameraId(0), FrameIndex(place(which)))).collect();
        let pictures = reader.read(&wanted)?;
        found.push(pictures.iter().filter_map(|frame| frame.shrunk(SIDE).jpeg(QUALITY)).map(Picture).collect());
    }
    Ok(found)
}

fn strip(dataset: &Dataset, shown: &Shown, at: usize, pictures: Vec<Picture>) -> Strip {
    let (frames, span) = (&dataset.episodes()[at].frames, &dataset.spans()[at]);
    let mut parts = Vec::new();
    match &shown.preview {
        Some(found) => parts.extend(found.episodes[at].subtasks.iter().map(|one| Part {
            first: one.rows.start as u64,
            end: one.rows.end as u64,
            name: one.name,
            note: Some(format!("by {}, boundary {:.0} %", word(one.named_by), 100.0 * one.boundary_confidence)),
        })),
        None => shown.values.runs(frames.clone(), &mut |run, value| {
            let place = |frame: usize| (frame - frames.start) as u64;
            let name = usize::try_from(value).unwrap_or(usize::MAX);
            let note = shown.by_motion.get(name).is_some_and(|by_motion| *by_motion).then(|| "by motion".to_owned());
            parts.push(Part { first: place(run.start), end: place(run.end), name, note });
        }),
    }
    Strip {
        episode: at as u64,
        instruction: dataset.tasks().get(span.task.at()).cloned().unwrap_or_default(),
        frames: frames.len() as u64,
        pictures,
        parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_shown_where_there_is_room() {
        // Ten tasks in turn, six times: equal steps would meet a few of them only.
        let tasks: Vec<usize> = (0..60).map(|episode| episode % 10).collect();
        let found = chosen(&tasks, 24);
        let count = |task: usize| found.iter().filter(|episode| tasks[**episode] == task).count();
        assert_eq!((0..10).map(count).collect::<Vec<_>>(), [3, 3, 3, 3, 2, 2, 2, 2, 2, 2]);
        assert!(found.is_sorted() && found[0] == 0);
        assert_eq!(chosen(&tasks, 100), (0..60).collect::<Vec<_>>());
        // A rare task is there, and the common one fills the rest.
        assert_eq!(chosen(&[0, 0, 0, 0, 1, 0, 0], 3), [0, 3, 4]);
        assert_eq!(chosen(&[], 3), [] as [usize; 0]);
    }
}
