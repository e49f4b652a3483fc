//! What people gave: names, corrections and files of their own, none of which is overwritten.

use std::fs;
use std::path::Path;

use dataset::write::{FrameValues as _, foreign_subtasks};
use dataset::{Dataset, FrameSubtasks, Overrides, Root, Stream};
use subtasks::names_file::{NAMES, Names};
use subtasks::segments_file::{self, CORRECTIONS, Corrections, Table};

use super::AnnotateArgs;
use crate::data::overrides;
use crate::failure::{Failure, Problem};
use crate::files;

/// The longest vocabulary and the longest table, in bytes.
const MAX_NAMES: u64 = 64 << 20;
const MAX_TABLE: u64 = 1 << 30;

/// Refuses a dataset with annotations that this program did not write, unless they are replaced or given as corrections.
pub(super) fn check_subtasks(options: &AnnotateArgs, root: &Root, stream: &Stream) -> Result<(), Failure> {
    if options.replace {
        return Ok(());
    }
    let same = |path: &Path| {
        let directories = root.directory().map(fs::canonicalize).zip(Some(fs::canonicalize(path)));
        matches!(directories, Some((Ok(one), Ok(other))) if one == other)
    };
    let kept = options.segments_from.as_deref().is_some_and(same);
    let found = foreign_subtasks(root, stream.info())?;
    let Some(found) = found.into_iter().find(|found| found.classes || !kept) else { return Ok(()) };
    let hint = match found.classes {
        true => "add `--replace` to replace them in the result".to_owned(),
        false => format!(
            "add `--segments-from {}` to keep its subtasks as those of a person, or `--replace` to replace them in the result",
            options.dataset
        ),
    };
    Err(Problem::new(format!("`{}` has subtasks that this program did not write", options.dataset))
        .fact("found", found.what)
        .hint(hint)
        .into())
}

/// Vocabularies.
pub(super) struct Vocabularies {
    /// That of the file that was given.
    pub(super) file: Names,
    /// The same, over the one that an earlier annotation left in the dataset.
    pub(super) all: Names,
}

/// Reads the vocabulary that was given and that of the dataset.
pub(super) fn names(options: &AnnotateArgs, root: &Root) -> Result<Vocabularies, Failure> {
    let refused = |shown: String, error: subtasks::Error| match error {
        subtasks::Error::Names(list) => Failure::from(
            Problem::new(format!("{shown} is not a file of names"))
                .list(list)
                .fact("expected", "a table `[names]` with lines such as `\"grasp the bowl\" = \"pick up the bowl\"`")
                .hint("`--write-names FILE` writes one to start from"),
        ),
        other => Failure::from(other),
    };
    let own = match root.has(NAMES) {
        true => {
            let text = String::from_utf8_lossy(&root.read(NAMES, MAX_NAMES)?).into_owned();
            Names::parse(&text).map_err(|error| refused(format!("`{NAMES}` of the dataset"), error))?
        }
        false => Names::default(),
    };
    let file = match &options.names {
        Some(path) => {
            Names::parse(&files::read_text(path, MAX_NAMES)?).map_err(|it| refused(files::shown(path), it))?
        }
        None => Names::default(),
    };
    Ok(Vocabularies { all: file.over(&own), file })
}

/// Corrections by people.
pub(super) struct Given {
    /// Those that were given, and for other episodes those that an earlier annotation left in the dataset.
    pub(super) all: Corrections,
    /// Episodes whose corrections come from the dataset.
    pub(super) kept: usize,
    /// Episodes and places of the table that was given where seconds are not those of the frames.
    other_seconds: Vec<(usize, String)>,
}

/// The most places that a warning lists.
const PLACES: usize = 3;

impl Given {
    /// Refuses a table whose seconds somebody edited and whose frames are as before, as that would change nothing. Where frames
    /// were edited too, it is only said that the seconds are not read.
    pub(super) fn check_seconds(
        &self,
        options: &AnnotateArgs,
        corrected: impl Fn(usize) -> bool,
    ) -> Result<Option<String>, Failure> {
        let Some(path) = options.segments_from.as_deref().filter(|_| !self.other_seconds.is_empty()) else {
            return Ok(None);
        };
        let shown = files::shown(path);
        let without_effect = self.other_seconds.iter().filter(|(episode, _)| !corrected(*episode));
        let without_effect: Vec<String> = without_effect.map(|(_, told)| told.clone()).collect();
        if !without_effect.is_empty() {
            return Err(Problem::new(format!("{shown} has seconds that are not those of its frames"))
                .list(without_effect)
                .hint("edit `start` and `end`, which count frames; `start_s` and `end_s` are not read back")
                .into());
        }
        let places: Vec<&str> = self.other_seconds.iter().take(PLACES).map(|(_, told)| told.as_str()).collect();
        let more = self.other_seconds.len() - places.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Ok(Some(format!(
            "{shown}: only `start` and `end` are read, and some seconds are not theirs: {}{more}",
            places.join("; ")
        )))
    }
}

/// Reads the corrections that were given and those of the dataset.
pub(super) fn corrections(options: &AnnotateArgs, root: &Root, stream: &Stream) -> Result<Given, Failure> {
    let mut all = match root.has(CORRECTIONS) {
        true => {
            let text = String::from_utf8_lossy(&root.read(CORRECTIONS, MAX_TABLE)?).into_owned();
            // The program writes no such file without rows.
            let hint = "correct the file, or remove it if the dataset has other episodes now";
            parsed(&text, &format!("`{CORRECTIONS}` of the dataset"), stream, options, hint)?.corrections
        }
        false => Corrections::new(),
    };
    let given = match &options.segments_from {
        Some(path) if path.is_dir() => {
            Table { corrections: of_dataset(options, path, stream)?, other_seconds: Vec::new() }
        }
        Some(path) => {
            let hint = "frames count from 0 in each episode, `end` is the first frame after the subtask, and subtasks cover the episode";
            parsed(&files::read_text(path, MAX_TABLE)?, &files::shown(path), stream, options, hint)?
        }
        None => Table::default(),
    };
    let Table { corrections: given, other_seconds } = given;
    all.retain(|episode, _| !given.contains_key(episode));
    let kept = all.len();
    all.extend(given);
    Ok(Given { all, kept, other_seconds })
}

fn parsed(text: &str, shown: &str, stream: &Stream, options: &AnnotateArgs, hint: &str) -> Result<Table, Failure> {
    let lengths: Vec<usize> = stream.episodes().iter().map(|episode| episode.frames.len()).collect();
    segments_file::read(text, &lengths, stream.info().fps).map_err(|error| match error {
        subtasks::Error::Segments(list) => {
            Problem::new(format!("{shown} does not fit `{}`", options.dataset)).list(list).hint(hint).into()
        }
        other => other.into(),
    })
}

/// The subtasks that a dataset has, as corrections of all its episodes.
fn of_dataset(options: &AnnotateArgs, path: &Path, stream: &Stream) -> Result<Corrections, Failure> {
    let shown = files::shown(path);
    let refuse = |reason: String| {
        Problem::new(format!("{shown} has no subtasks for `{}`", options.dataset)).fact("found", reason)
    };
    let wanted = Overrides { cameras: Some(Vec::new()), ..overrides(&options.keys) };
    let dataset = Dataset::open(Root::Directory(path.to_path_buf()), &wanted)?;
    let Some(FrameSubtasks { names, values }) = FrameSubtasks::of(&dataset)? else {
        return Err(refuse("a dataset without subtasks".to_owned())
            .hint("give a dataset with subtasks, or a table")
            .into());
    };
    let lengths = |episodes: &[dataset::Episode]| episodes.iter().map(|it| it.frames.len()).collect::<Vec<usize>>();
    if lengths(dataset.episodes()) != lengths(stream.episodes()) {
        return Err(refuse("other episodes".to_owned()).hint("give a copy of the dataset").into());
    }
    let mut found = Corrections::new();
    for (at, episode) in dataset.episodes().iter().enumerate() {
        let (mut rows, first) = (Vec::new(), episode.frames.start);
        let mut nameless = None;
        values.runs(episode.frames.clone(), &mut |run, value| {
            let frames = run.start - first..run.end - first;
            match usize::try_from(value).ok().and_then(|value| names.get(value)) {
                Some(name) => rows.push((frames, name.clone())),
                None => nameless = Some(frames),
            }
        });
        if let Some(frames) = nameless {
            let found = format!("no subtask in frames {} to {} of episode {at}", frames.start, frames.end);
            return Err(refuse(found)
                .hint("give every frame a subtask, or use a table with other episodes only")
                .into());
        }
        found.insert(at, rows);
    }
    Ok(found)
}

/// Refuses to write over a file that is different: a person may have edited it.
pub(super) fn check_file(path: Option<&Path>, bytes: &[u8], option: &str) -> Result<(), Failure> {
    let Some(path) = path.filter(|path| path.is_file()) else { return Ok(()) };
    match files::read_if_there(path, MAX_TABLE)? {
        Some(content) if content != bytes => {
            Err(Problem::new(format!("{} exists and is different from what would be written", files::shown(path)))
                .hint(format!("choose another name, or pass the file back with `{option} {}`", path.display()))
                .into())
        }
        _ => Ok(()),
    }
}
