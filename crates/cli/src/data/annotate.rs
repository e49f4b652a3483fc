//! `data annotate`: a run's skills, or those of a file, written into a copy of a dataset.

use std::fmt::Write as _;

use dataset::write::{
    Annotation, Outline, SUBTASK_INDEX, SUBTASKS, annotate, has_subtasks, is_within, vocabulary_file,
};
use dataset::{Dataset, Info, Root};
use experiments::cycle::annotation::{NearestSkill, RunSkills, SegmentLabeller as _};
use experiments::cycle::driver::SKILLS;
use serde_json::json;

use super::{counted, overrides, root, skills_file};
use crate::args::AnnotateArgs;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::run_directory::{file_of, unfinished};
use crate::table::{Align, table};
use crate::train::warn;

/// The column with a run's skills.
const SKILL_INDEX: &str = "skill_index";

/// Skills for each frame of a dataset, and how they came about.
struct Skills {
    key: String,
    names: Vec<String>,
    values: Vec<i64>,
    /// Episodes that have skills.
    episodes: usize,
    /// Segments of each skill, and how episodes were labelled; of a run only.
    run: Option<(Vec<usize>, String)>,
}

/// Writes the skills into a copy.
pub(crate) fn run(options: &AnnotateArgs) -> Result<(), Failure> {
    let root = root(&options.dataset)?;
    if is_within(&root, &options.out) {
        return Err(Problem::new(format!("{} is in the dataset `{}`", files::shown(&options.out), options.dataset))
            .fact("expected", "a new directory outside of the dataset, which stays as it is")
            .hint("give another `OUT`, such as one next to the dataset")
            .into());
    }
    let (outline, skills) = match options.run.is_dir() {
        true => of_run(options, &root)?,
        false => {
            let outline = read_outline(options, &root)?;
            let skills_file::Read { key, names, values, annotated } =
                skills_file::read(&options.run, &options.dataset, &root, &outline)?;
            (outline, Skills { key, names, values, episodes: annotated, run: None })
        }
    };
    if !options.no_subtasks && has_subtasks(&root, &outline.info) {
        return Err(has_subtasks_already(options, &outline.info));
    }
    let told =
        if options.json { in_json(options, &skills)? } else { in_words(options, &outline, &skills).into_bytes() };
    let Skills { key, names, values, .. } = skills;
    annotate(&root, &options.out, &Annotation { key, names, values, subtasks: !options.no_subtasks })?;
    files::print(&told)
}

/// The skills of a run.
fn of_run(options: &AnnotateArgs, root: &Root) -> Result<(Outline, Skills), Failure> {
    if file_of(&options.run, SKILLS)?.is_none() {
        return Err(unfinished(&options.run, SKILLS).into());
    }
    let run = RunSkills::load(&options.run)?;
    let outline = Outline::read(root)?;
    let vocabulary = vocabulary_file(SKILL_INDEX);
    let found = match outline.info.feature(SKILL_INDEX) {
        Some(_) => Some(format!("a column `{SKILL_INDEX}`")),
        None => root.has(&vocabulary).then(|| format!("a file `{vocabulary}`")),
    };
    if let Some(found) = found {
        return Err(Problem::new(format!("`{}` has skills already", options.dataset))
            .fact("found", found)
            .hint("annotate the dataset that it is a copy of")
            .into());
    }
    let dataset = Dataset::open(root.clone(), &overrides(&options.keys))?;
    let labeller = NearestSkill(&run.alphabet);
    let found = run.annotate(&dataset, &labeller)?;
    warn(&found.notes);
    let mut how = match found.seen {
        0 => String::new(),
        count => format!("{} with the skills that the run gave them", counted(count as u64, "episode", "episodes")),
    };
    if found.labelled > 0 {
        let gap = if how.is_empty() { "" } else { ", " };
        let new = counted(found.labelled as u64, "new episode", "new episodes");
        let _ = write!(how, "{gap}{new}, each segment labelled by {}", labeller.method());
    }
    let episodes = dataset.spans().iter().filter(|span| found.values[span.frames.clone()].iter().any(|&it| it >= 0));
    let (key, episodes) = (SKILL_INDEX.to_owned(), episodes.count());
    let skills = Skills { key, names: found.names, values: found.values, episodes, run: Some((found.segments, how)) };
    Ok((outline, skills))
}

/// Metadata of the dataset; a path of skills that is not there is said first.
fn read_outline(options: &AnnotateArgs, root: &Root) -> Result<Outline, Failure> {
    let is_stdin = options.run.as_os_str() == "-";
    if !is_stdin && !options.run.exists() {
        return Err(Problem::new(format!("there is no run or file {}", files::shown(&options.run)))
            .fact("expected", "a directory that `run` or `demo` made, or a JSON file of skills")
            .hint("check the path, and the directory that you are in")
            .into());
    }
    Ok(Outline::read(root)?)
}

fn has_subtasks_already(options: &AnnotateArgs, info: &Info) -> Failure {
    let found = match info.feature(SUBTASK_INDEX) {
        Some(_) => format!("a column `{SUBTASK_INDEX}`"),
        None => format!("a file `{SUBTASKS}`"),
    };
    Problem::new(format!("`{}` has subtasks already", options.dataset))
        .fact("found", found)
        .hint("add `--no-subtasks`, which keeps them and writes the skills as a column")
        .into()
}

/// Frames of each skill.
fn frames_of(skills: &Skills) -> Vec<usize> {
    let mut frames = vec![0; skills.names.len()];
    for skill in skills.values.iter().filter_map(|value| usize::try_from(*value).ok()) {
        frames[skill] += 1;
    }
    frames
}

fn in_words(options: &AnnotateArgs, outline: &Outline, skills: &Skills) -> String {
    let frames = frames_of(skills);
    let mut text = format!(
        "wrote {} with `{}`: {} over {} of {}, {} of {}\n",
        files::shown(&options.out),
        skills.key,
        counted(skills.names.len() as u64, "skill", "skills"),
        skills.episodes,
        counted(outline.episodes.len() as u64, "episode", "episodes"),
        frames.iter().sum::<usize>(),
        counted(skills.values.len() as u64, "frame", "frames"),
    );
    let Some((segments, how)) = &skills.run else { return text };
    let columns =
        [("skill", Align::Left), ("segments", Align::Right), ("frames", Align::Right), ("share", Align::Right)];
    let rows: Vec<Vec<String>> = (skills.names.iter().zip(segments).zip(&frames))
        .map(|((name, segments), frames)| {
            let share = 100.0 * *frames as f64 / skills.values.len().max(1) as f64;
            vec![name.clone(), segments.to_string(), frames.to_string(), format!("{share:.1} %")]
        })
        .collect();
    let _ = write!(text, "{how}\n\n{}", table(&columns, &rows));
    text
}

fn in_json(options: &AnnotateArgs, skills: &Skills) -> Result<Vec<u8>, Failure> {
    let frames = frames_of(skills);
    let one = |(at, name): (usize, &String)| {
        let segments = skills.run.as_ref().and_then(|(segments, _)| segments.get(at));
        json!({ "name": name, "segments": segments, "frames": frames[at] })
    };
    let all: Vec<_> = skills.names.iter().enumerate().map(one).collect();
    files::json_bytes(&json!({
        "dataset": options.out,
        "feature": skills.key,
        "episodes": skills.episodes,
        "frames": skills.values.len(),
        "labels": skills.run.as_ref().map(|(_, how)| how),
        "skills": all,
    }))
}
