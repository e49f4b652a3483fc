//! `train wake`: phase B alone.

use std::path::Path;

use compression::Library;
use experiments::cycle::driver::{LIBRARY, SKILLS};
use experiments::cycle::phases::Given;
use experiments::cycle::{RunSettings, phases};
use experiments::trained::load_world_model;
use serde_json::json;

use super::args::WakeArgs;
use super::{Place, briefed, interrupted, watch, watched};
use crate::failure::{Failure, Problem};
use crate::files;
use crate::run::policies;
use crate::run_directory::{file_of, unfinished};
use crate::vocabulary::MAX_LIBRARY_BYTES;

/// Trains the heads of a policy, and prints their held-out figures.
pub(super) fn run(options: &WakeArgs) -> Result<(), Failure> {
    let phase = &options.phase;
    let preset = &phase.presets.joined();
    let settings = RunSettings::resolve_wake(preset, &phase.how.sets)?;
    let mut given = options.library.as_deref().map(given).transpose()?.unwrap_or_default();
    given.without_programs = options.no_programs;
    let place = Place::open(&phase.how.compute)?;
    let horizon = load_world_model(&options.world_model, &place.device)?.record.model.horizon;
    let prepared = briefed(&phase.data(), &phase.keys, horizon, &place)?;
    let trained = watched(|observer| {
        let wanted = place.options(&phase.out, preset, &phase.how, String::new(), observer);
        phases::wake(&prepared, &settings, &options.world_model, &given, wanted)
    });
    let result = trained?.ok_or_else(|| interrupted(&phase.out))?;
    match phase.how.compute.json {
        _ if !place.is_first() => Ok(()),
        true => {
            let value = json!({ "run": phase.out, "library": options.library, "result": result });
            files::print(&files::json_bytes(&value)?)
        }
        false => files::print(policies(std::slice::from_ref(&result)).as_bytes()),
    }
}

/// The library of a file, or of a run by its directory, with the skills that lie beside it.
fn given(path: &Path) -> Result<Given, Failure> {
    let file = match path.is_dir() {
        true => file_of(path, LIBRARY)?.ok_or_else(|| unfinished(path, LIBRARY))?,
        false => path.to_owned(),
    };
    let text = files::read_text(&file, MAX_LIBRARY_BYTES)?;
    let library: Library = serde_json::from_str(&text).map_err(|error| {
        Problem::new(format!("{} is not the library of a run: {error}", files::shown(&file)))
            .fact("expected", "`library.json` as `run` and `demo` write it")
    })?;
    let skills = match file == Path::new("-") {
        true => None,
        false => files::read_if_there(&file.with_file_name(SKILLS), MAX_LIBRARY_BYTES)?,
    };
    if skills.is_none() && !library.is_empty() {
        watch::warn(&[format!(
            "cannot check whether the skills of {} are those of this world model: there is no `{SKILLS}` next to it; the \
             directory of a run contains both",
            files::shown(&file)
        )]);
    }
    Ok(Given { library, skills, ..Given::default() })
}
