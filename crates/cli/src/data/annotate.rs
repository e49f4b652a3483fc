//! `data annotate`: labels from a file, written into a copy of a dataset. The skills of a run are handed to `annotate --run`.

use dataset::write::{Annotation, Outline, SUBTASK_INDEX, SUBTASKS, has_subtasks, is_within};
use dataset::{Info, Root};
use serde_json::json;

use super::{counted, root, skills_file};
use crate::annotate;
use crate::args::AnnotateArgs;
use crate::failure::{Failure, Problem};
use crate::files;

/// Skills for each frame of a dataset.
struct Skills {
    key: String,
    names: Vec<String>,
    values: Vec<i64>,
    /// Episodes that have skills.
    episodes: usize,
}

/// Writes the skills into a copy.
pub(crate) fn run(options: &AnnotateArgs) -> Result<(), Failure> {
    if options.run.is_dir() {
        return of_run(options);
    }
    let root = root(&options.dataset)?;
    if is_within(&root, &options.out) {
        return Err(Problem::new(format!("{} is in the dataset `{}`", files::shown(&options.out), options.dataset))
            .fact("expected", "a new directory outside of the dataset, which stays as it is")
            .hint("give another `OUT`, such as one next to the dataset")
            .into());
    }
    let outline = read_outline(options, &root)?;
    let skills_file::Read { key, names, values, annotated } =
        skills_file::read(&options.run, &options.dataset, &root, &outline)?;
    let skills = Skills { key, names, values, episodes: annotated };
    if !options.no_subtasks && has_subtasks(&root, &outline.info) {
        return Err(has_subtasks_already(options, &outline.info));
    }
    let report =
        if options.json { in_json(options, &skills)? } else { in_words(options, &outline, &skills).into_bytes() };
    let Skills { key, names, values, .. } = skills;
    dataset::write::annotate(&root, &options.out, &Annotation { key, names, values, subtasks: !options.no_subtasks })?;
    files::print(&report)
}

/// `data annotate RUN DATASET OUT` is `annotate DATASET OUT --run RUN`.
fn of_run(options: &AnnotateArgs) -> Result<(), Failure> {
    let AnnotateArgs { run, dataset, out, no_subtasks, json } = options;
    if *no_subtasks {
        return Err(Problem::new("`--no-subtasks` is for labels from a JSON file")
            .fact("found", format!("{}, which is a directory", files::shown(run)))
            .fact(
                "expected",
                "a JSON file of labels, or no `--no-subtasks`: the skills of a run are written with subtasks",
            )
            .into());
    }
    annotate::run(&annotate::AnnotateArgs::of_run(run, dataset, out, *json))
}

/// Metadata of the dataset; a path of skills that is not there is said first.
fn read_outline(options: &AnnotateArgs, root: &Root) -> Result<Outline, Failure> {
    let is_stdin = options.run.as_os_str() == "-";
    if !is_stdin && !options.run.exists() {
        return Err(Problem::new(format!("there is no file {}", files::shown(&options.run)))
            .fact("expected", "a JSON file of labels, or the directory of a run")
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
    format!(
        "wrote {} with `{}`: {} over {} of {}, {} of {}\n",
        files::shown(&options.out),
        skills.key,
        counted(skills.names.len() as u64, "skill", "skills"),
        skills.episodes,
        counted(outline.episodes.len() as u64, "episode", "episodes"),
        frames_of(skills).iter().sum::<usize>(),
        counted(skills.values.len() as u64, "frame", "frames"),
    )
}

fn in_json(options: &AnnotateArgs, skills: &Skills) -> Result<Vec<u8>, Failure> {
    let frames = frames_of(skills);
    let one = |(name, frames): (&String, usize)| json!({ "name": name, "frames": frames });
    let all: Vec<_> = skills.names.iter().zip(frames).map(one).collect();
    files::json_bytes(&json!({
        "dataset": options.out,
        "feature": skills.key,
        "episodes": skills.episodes,
        "frames": skills.values.len(),
        "skills": all,
    }))
}
