//! `annotate`: named subtasks for a dataset.

mod args;
mod given;
mod outcome;

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Instant;

use dataset::info::INFO;
use dataset::write::{Form, Place, Subtasks, check_writable, is_within, write_subtasks};
use dataset::{Overrides, Root, Stream};
use experiments::cycle::annotation::RunSkills;
use experiments::cycle::driver::SKILLS;
use experiments::cycle::run_cutter::RunCutter;
use indicatif::{ProgressBar, ProgressStyle};
use subtasks::annotate::{Annotated, Cutter, Fast, Progress, Stage, annotate};
use subtasks::classes::ClassesConfig;
use subtasks::names_file::{NAMES, Names, names_file};
use subtasks::segments_file::{self, CORRECTIONS, Corrections};

use args::FormArg;
pub(crate) use args::{AnnotateArgs, EXAMPLES};
use outcome::Outcome;

use crate::call;
use crate::data::{EMBEDDED, overrides, root};
use crate::failure::{Failure, Problem};
use crate::files::{self, Destination};
use crate::run_directory::{file_of, unfinished};
use crate::train::warn;

/// Frames that a run's skills are named on.
const RUN_SAMPLE: usize = 20_000;

/// Annotates a dataset.
pub(crate) fn run(options: &AnnotateArgs) -> Result<(), Failure> {
    let began = Instant::now();
    let place = place(options)?;
    let root = root(&options.dataset)?;
    check_place(options, &root)?;
    let table = options.segments.as_deref().map(|path| destination(path, "subtasks.csv")).transpose()?;
    let vocabulary = options.write_names.as_deref().map(|path| destination(path, "names.toml")).transpose()?;
    let stream = open(options, &root)?;
    given::check_subtasks(options, &root, &stream)?;
    let vocabularies = given::names(options, &root)?;
    let names = &vocabularies.all;
    let given = given::corrections(options, &root, &stream)?;
    let corrections = &given.all;
    let outcome = watched(|progress| -> Result<Outcome, Failure> {
        let (annotated, notes) = match &options.run {
            None => by_motion(&stream, names, corrections, progress)?,
            Some(run) => by_run(run, &stream, names, corrections, progress)?,
        };
        warn(&notes);
        warn(&unused(&vocabularies.file, &annotated));
        let corrected = |episode: usize| annotated.episodes.get(episode).is_some_and(|found| found.corrected);
        warn(&given.check_seconds(options, corrected)?.into_iter().collect::<Vec<String>>());
        let file = names_file(&annotated, names).into_bytes();
        // Only for who asks for it: the table has more bytes than all that is known of the subtasks.
        let rows = if table.is_some() { table_of(options, &annotated)? } else { Vec::new() };
        for (path, bytes, option) in
            [(&options.segments, &rows, "--segments-from"), (&options.write_names, &file, "--names")]
        {
            given::check_file(path.as_deref(), bytes, option)?;
        }
        let kept = (!annotated.corrections.is_empty())
            .then(|| segments_file::corrections_csv(&annotated.corrections).into_bytes());
        let (total, done) = (stream.frames() as u64, std::sync::atomic::AtomicU64::new(0));
        let subtasks = Subtasks {
            names: &annotated.names,
            values: &annotated.subtask_runs(),
            class_names: &annotated.class_names,
            classes: &annotated.class_runs(),
            form: match options.format {
                FormArg::Subtasks => Form::Subtasks,
                FormArg::Language => Form::Language,
            },
            link_videos: options.link_videos,
            files: vec![(NAMES.to_owned(), Some(file.clone())), (CORRECTIONS.to_owned(), kept)],
        };
        let written = |rows: u64| {
            let so_far = done.fetch_add(rows, std::sync::atomic::Ordering::Relaxed) + rows;
            progress(Stage::Write, so_far, total);
        };
        let backup = write_subtasks(&root, place, &subtasks, &written)?;
        if let Some(table) = &table {
            table.write(&rows)?;
        }
        if let Some(vocabulary) = &vocabulary {
            vocabulary.write(&file)?;
        }
        Ok(Outcome::new(options, &stream, &annotated, given.kept, backup, began.elapsed()))
    })?;
    files::print(&if options.json { files::json_bytes(&outcome)? } else { outcome.in_words().into_bytes() })
}

/// Where the result goes; the order of `data annotate`, which has the run first, is recognised.
fn place(options: &AnnotateArgs) -> Result<Place<'_>, Failure> {
    if let (Some(dataset), Some(out)) = (&options.out, &options.extra) {
        let (run, dataset) = (&options.dataset, dataset.display());
        return Err(Problem::new("three places were given")
            .fact("found", format!("`annotate {run} {dataset} {out}`"))
            .fact("expected", "`annotate DATASET OUT`")
            .hint(format!("with a run, type `refactor-vla annotate {dataset} {out} --run {run}`"))
            .into());
    }
    match &options.out {
        Some(out) => Ok(Place::New(out)),
        None if options.in_place => Ok(Place::InPlace),
        None => {
            let dataset = options.dataset.trim_end_matches('/');
            let name = dataset.strip_prefix(EMBEDDED).unwrap_or(dataset);
            Err(Problem::new("there is no place for the annotated dataset")
                .fact("found", format!("`annotate {dataset}`"))
                .fact("expected", "`annotate DATASET OUT`, where `OUT` is a directory that does not exist yet")
                .hint(format!(
                    "type `refactor-vla annotate {dataset} {name}_subtasks`, or add `--in-place` to replace the dataset and keep a backup"
                ))
                .into())
        }
    }
}

fn check_place(options: &AnnotateArgs, root: &Root) -> Result<(), Failure> {
    match (&options.out, root.directory()) {
        (Some(out), Some(directory)) if !directory.exists() && out.join(INFO).is_file() => {
            let (dataset, out) = (directory.display(), out.display());
            Err(Problem::new(format!("there is no dataset in `{dataset}`"))
                .fact("found", format!("a dataset in `{out}`, which was given as the directory to create"))
                .fact("expected", "`annotate DATASET OUT`")
                .hint(format!("if they are swapped, type `refactor-vla annotate {out} {dataset}`"))
                .into())
        }
        (Some(out), _) if is_within(root, out) => {
            Err(Problem::new(format!("{} is in the dataset `{}`", files::shown(out), options.dataset))
                .fact("expected", "a new directory outside of the dataset")
                .hint("give another `OUT`, or `--in-place` to replace the dataset and keep a backup")
                .into())
        }
        (Some(out), _) if out.join(INFO).is_file() => Err(Problem::new(format!(
            "there is a dataset in {} already",
            files::shown(out)
        ))
        .fact("expected", "a directory that does not exist or is empty")
        .hint(format!(
            "to apply corrections to it, type `refactor-vla annotate {} --in-place`, which keeps a backup; or choose \
                     another `OUT`",
            out.display()
        ))
        .into()),
        (None, None) => Err(Problem::new(format!("`{}` cannot be replaced", options.dataset))
            .fact("found", "a dataset that is part of the program")
            .hint("give a directory as `OUT`")
            .into()),
        (None, Some(directory)) if !directory.exists() => Err(lost(directory)),
        // Before the work, which may take a while.
        (None, Some(directory)) => Ok(check_writable(directory)?),
        _ => Ok(()),
    }
}

/// A dataset that is not there: perhaps it was being replaced when the program was killed.
fn lost(directory: &Path) -> Failure {
    let problem = Problem::new(format!("there is no dataset in {}", files::shown(directory)));
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let backups = (1..=1000).map(|number| directory.with_file_name(format!("{name}.backup-{number}")));
    match backups.take_while(|backup| backup.exists()).last() {
        Some(backup) => problem
            .fact("found", format!("its backup {}: replacing it was interrupted", files::shown(&backup)))
            .hint(format!("restore it with `mv {} {}`", backup.display(), directory.display()))
            .into(),
        None => problem.hint("check the path, and the directory that you are in").into(),
    }
}

fn destination(path: &Path, example: &str) -> Result<Destination, Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if example.ends_with(".csv") && !["csv", "json"].contains(&ending) {
        return Err(Problem::new(format!("{} is neither CSV nor JSON by its name", files::shown(path)))
            .fact("expected", "a name that ends with `.csv` or `.json`")
            .into());
    }
    Destination::new(path, example)
}

/// The metadata of the dataset; its pictures are not needed.
fn open(options: &AnnotateArgs, root: &Root) -> Result<Stream, Failure> {
    let wanted = Overrides { cameras: Some(Vec::new()), labels: Some(Vec::new()), ..overrides(&options.keys) };
    Ok(Stream::open(root.clone(), &wanted)?)
}

/// Names of the vocabulary that were never generated.
fn unused(names: &Names, annotated: &Annotated) -> Vec<String> {
    names
        .unused(annotated)
        .into_iter()
        .map(|name| format!("no subtask is called `{name}`, which the names rename"))
        .collect()
}

type Found = (Annotated, Vec<String>);

fn by_motion(
    stream: &Stream,
    names: &Names,
    corrections: &Corrections,
    progress: Progress<'_>,
) -> Result<Found, Failure> {
    let fast = Fast::measure(stream, &ClassesConfig::default(), progress)?;
    let annotated = annotate(stream, &fast, names, corrections, progress)?;
    Ok((annotated, fast.notes))
}

fn by_run(
    run: &Path,
    stream: &Stream,
    names: &Names,
    corrections: &Corrections,
    progress: Progress<'_>,
) -> Result<Found, Failure> {
    if file_of(run, SKILLS)?.is_none() {
        return Err(unfinished(run, SKILLS).into());
    }
    progress(Stage::Measure, 0, 0);
    let skills = RunSkills::load(run)?;
    let cutter = RunCutter::new(&skills, run, &stream.sample(RUN_SAMPLE)?)?;
    let annotated = annotate(stream, &cutter as &dyn Cutter, names, corrections, progress)?;
    let mut notes = cutter.notes.clone();
    let (seen, labelled) = cutter.episodes();
    if seen > 0 && labelled > 0 {
        notes.push(format!("{seen} episodes have the skills that the run gave them, {labelled} were labelled anew"));
    }
    Ok((annotated, notes))
}

fn table_of(options: &AnnotateArgs, annotated: &Annotated) -> Result<Vec<u8>, Failure> {
    let json = options.segments.as_ref().is_some_and(|path| path.extension().is_some_and(|ending| ending == "json"));
    let text = if json { segments_file::to_json(annotated)? } else { segments_file::to_csv(annotated) };
    Ok(text.into_bytes())
}

/// Runs the work, with its progress on stderr if somebody is there to see it.
fn watched<T>(work: impl FnOnce(Progress<'_>) -> T) -> T {
    let stop = call::stop_flag();
    let check = || stop.as_deref().into_iter().for_each(call::unwind_if_set);
    if stop.is_some() || !io::stderr().is_terminal() {
        return work(&|_, _, _| check());
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:40} {percent}% {msg}, {eta} left") {
        bar.set_style(style);
    }
    let done = work(&|stage, done, total| {
        bar.set_length(total.max(1));
        bar.set_position(done);
        bar.set_message(match stage {
            Stage::Measure => "measuring the robot",
            Stage::Name => "naming subtasks",
            Stage::Write => "writing the dataset",
        });
    });
    bar.finish_and_clear();
    done
}
