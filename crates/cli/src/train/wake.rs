//! `train wake`: phase B alone.

use std::path::{Path, PathBuf};

use compression::Library;
use experiments::amortizer_phase::Teacher;
use experiments::cycle::RunOptions;
use experiments::cycle::driver::{LIBRARY, SKILLS, WAKE, WORLD_MODEL};
use experiments::cycle::summary::WakeResult;
use experiments::cycle::wake_phase::{Given, train_wake, wake_settings};
use serde_json::json;

use super::args::WakeArgs;
use super::{Stages, prepared, stop_flag, watch};
use crate::failure::{Failure, Problem};
use crate::files;
use crate::run::{policies, stopped};
use crate::run_directory::{file_of, unfinished};
use crate::vocabulary::MAX_LIBRARY_BYTES;

/// Trains emitter and decoder, and prints their held-out figures.
pub(super) fn run(options: &WakeArgs) -> Result<(), Failure> {
    let phase = &options.phase;
    let settings = wake_settings(&phase.preset, &phase.how.sets)?;
    let given = options.library.as_deref().map(given).transpose()?.unwrap_or_default();
    let (device, stop) = (phase.how.compute.device.open()?, stop_flag()?);
    let teacher = Teacher::load(&world_model(&options.world_model), &device)?;
    let prepared = prepared(&phase.data, &phase.keys, teacher.loaded.record.model.horizon)?;
    let mut stages = Stages::new();
    let wanted = RunOptions {
        out: &phase.out,
        resume: phase.how.resume,
        preset: &phase.preset,
        seed: phase.how.seed,
        device: &device,
        stop: Some(stop),
        tell: &mut |told| stages.told(&told),
        // There is no report to say it in.
        runs_on: String::new(),
        command: String::new(),
    };
    let made = train_wake(&prepared, &settings, teacher, &given, wanted);
    stages.finish();
    let result = made?.ok_or_else(|| stopped(&phase.out))?;
    match phase.how.compute.json {
        true => {
            let value = json!({ "run": phase.out, "library": options.library, "result": result });
            files::print(&files::json_bytes(&value)?)
        }
        false => files::print(text(options, &result).as_bytes()),
    }
}

/// The directory of a world model, which a run of the loop has in its own.
pub(crate) fn world_model(run: &Path) -> PathBuf {
    let inner = run.join(WORLD_MODEL);
    if inner.is_dir() { inner } else { run.to_owned() }
}

/// The library of a file, or of a run by its directory, with the skills that lie beside it.
fn given(path: &Path) -> Result<Given, Failure> {
    let file = match path.is_dir() {
        true => file_of(path, LIBRARY)?.ok_or_else(|| unfinished(path, LIBRARY))?,
        false => path.to_owned(),
    };
    let text = files::read_text(&file, MAX_LIBRARY_BYTES)?;
    let library: Library = serde_json::from_str(&text).map_err(|error| {
        Problem::new(format!("{} is no library of a run: {error}", files::shown(&file)))
            .fact("expected", "`library.json` as `run` and `demo` write it")
    })?;
    let skills = match file == Path::new("-") {
        true => None,
        false => files::read_if_there(&file.with_file_name(SKILLS), MAX_LIBRARY_BYTES)?,
    };
    if skills.is_none() && !library.is_empty() {
        watch::warn(&[format!(
            "it cannot be checked whether the skills of {} are those of this world model: there is no `{SKILLS}` beside it; the \
             directory of a run has both",
            files::shown(&file)
        )]);
    }
    Ok(Given { library, skills })
}

fn text(options: &WakeArgs, result: &WakeResult) -> String {
    let name = if options.library.is_some() { "with the library" } else { "without a library" };
    let figures = options.phase.out.join(WAKE);
    format!("{}\nfigures: {}\n", policies(&[(name, result)]), figures.display())
}
