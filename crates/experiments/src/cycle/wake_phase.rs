//! Phase B alone: emitter and decoder on programs that are written with a library, or with primitives and skills alone.
//!
//! ```text
//! RUN/config.json            how it was made
//!     skills.json            what the skills are, by the world model
//!     library.json           the library, empty without one
//!     emitter/, decoder/     the models
//!     wake.json              held-out figures
//! ```
//! With the world model, the library, the settings and the seed of a run of the loop, this is that run's `with/`.

use std::path::Path;
use std::sync::Arc;

use compression::Library;
use models::emitter::Vocabulary;
use models::noise::mix;
use models::training::Outcome;
use models::training::distributed::Alone;
use serde_json::json;
use skills::Skill;

use super::driver::{Driver, KERNEL, LIBRARY, RunOptions, SKILLS, Told, World, begin, refuse_others, unless_stopped};
use super::segment_kernel::SegmentKernel;
use super::settings::RunSettings;
use super::summary::WakeResult;
use crate::amortizer_phase::Teacher;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run::{Launch, json_bytes, write_json};

/// The sections of a preset that phase B reads.
const SECTIONS: [&str; 3] = ["amortizer", "wake", "cycle"];

/// A library to write programs with; without entries, programs are written with primitives and skills alone.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The library.
    pub library: Library,
    /// The content of the file of skills that lies beside it, if there is one.
    pub skills: Option<Vec<u8>>,
}

impl Given {
    /// Refuses a library that calls other skills: `skill_3` is another motion with another world model, seed or setting.
    fn check(&self, world: &World) -> Result<()> {
        let corpus = &world.corpus;
        self.library.check(&corpus.store, &corpus.base)?;
        let Some(theirs) = &self.skills else { return Ok(()) };
        let calls = |skill: &Skill| self.library.entries().iter().any(|entry| entry.body.contains(&skill.name));
        let is_other = *theirs != json_bytes(Path::new(SKILLS), &corpus.alphabet)?;
        if is_other && corpus.alphabet.skills.iter().any(calls) {
            return Err(Error::Mismatch(
                "the library was learned over other skills than those that this world model gives; use the world model, the \
                 dataset, the seed and the settings of `cycle` that it was learned with"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// A preset with `wake.key=value` and `cycle.key=value` laid over it.
pub fn wake_settings(preset: &str, sets: &[String]) -> Result<RunSettings> {
    let is_known = |set: &&String| {
        let section = set.trim().split('.').next().unwrap_or_default();
        SECTIONS.contains(&section)
    };
    let stray: Vec<String> = sets
        .iter()
        .filter(|set| !is_known(set))
        .map(|set| format!("`{set}` is in none of the sections {}; write `section.key=value`", SECTIONS.join(", ")))
        .collect();
    if stray.is_empty() { RunSettings::resolve(preset, sets) } else { Err(Error::Settings(stray)) }
}

/// Trains emitter and decoder, or goes on with that. `None` if it was told to stop.
///
/// # Errors
/// On a world model of other features, or one that has learned from what is held out; on a library of other skills.
pub fn train_wake(
    prepared: &Prepared,
    settings: &RunSettings,
    teacher: Teacher,
    given: &Given,
    options: RunOptions<'_>,
) -> Result<Option<WakeResult>> {
    teacher.loaded.check(prepared)?;
    let config = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "phase": "wake",
        "preset": options.preset,
        "seed": options.seed,
        "source": prepared.source.record(),
        "split": prepared.split,
        "world_model": teacher.hash,
        "library": given.library,
        "settings": { "amortizer": settings.amortizer, "wake": settings.wake, "cycle": settings.cycle },
    });
    let (out, resume) = (options.out, options.resume);
    refuse_others(out, resume, &config)?;
    (options.tell)(Told::Stage { name: "segments, classes, programs", done: false });
    // Nothing is begun before the library is checked, so what the classes need is trained elsewhere, as the run trained it.
    let teacher = teacher.with_distances(&settings.cycle);
    let Some(kernel) = kernel(prepared, settings, &teacher, &options)? else { return Ok(None) };
    let world = World::new(prepared, &settings.cycle, teacher, &kernel, &options)?;
    given.check(&world)?;
    begin(out, resume, &config)?;
    write_json(&out.join(SKILLS), &world.corpus.alphabet)?;
    write_json(&out.join(LIBRARY), &given.library)?;
    let name = if given.library.is_empty() { "without" } else { "with" };
    let mut driver = Driver::new(prepared, settings, options);
    let names = (name.to_owned(), out.to_owned());
    unless_stopped(driver.wake(&world, &given.library, &mut Vocabulary::new(), names, None))
}

/// The form of D_φ that segments are compared by, trained in a temporary directory. `None` if the run was interrupted.
fn kernel(
    prepared: &Prepared,
    settings: &RunSettings,
    teacher: &Teacher,
    options: &RunOptions<'_>,
) -> Result<Option<SegmentKernel>> {
    let form = settings.cycle.classes.kernel;
    let folder = tempfile::tempdir().map_err(Error::file(Path::new("a temporary directory")))?;
    let launch = Launch {
        run: folder.path(),
        resume: false,
        preset: options.preset,
        seed: mix(options.seed, KERNEL),
        device: options.device,
        transport: Arc::new(Alone::default()),
        progress: &mut |_| {},
        stop: options.stop,
    };
    match SegmentKernel::train(prepared, form, &settings.amortizer, teacher, launch)? {
        Some(Outcome::Stopped(_)) => Ok(None),
        Some(Outcome::Finished(_)) | None => SegmentKernel::load(form, folder.path(), options.device).map(Some),
    }
}
