//! Single phases: `train world-model`, `train amortizer` and `train wake`.
//!
//! Each is a stage of a whole run in the same place of the same directory layout, so a run that is made with `--resume` in
//! the directory of a single phase, with the same settings, seed and data, finds that phase finished.

use std::path::{Path, PathBuf};

use compression::Library;
use models::Vocabulary;
use models::training::checkpoint::MODEL;
use serde_json::json;
use skills::Skill;

use super::driver::{Arm, LIBRARY, SKILLS, World, policy, write_language};
use super::segment_kernel::SegmentKernel;
use super::session::{RunOptions, Session};
use super::settings::RunSettings;
use super::summary::PolicyResult;
use crate::amortizer_phase::Teacher;
use crate::error::{Error, Result, unless_interrupted};
use crate::prepared::Prepared;
use crate::run_dir::json_bytes;
use crate::settings::{AmortizerSettings, WorldModelSettings};
use crate::trained::Phase;

/// A library to write programs with. Without entries, programs are written with primitives and skills alone.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The library.
    pub library: Library,
    /// The content of the file of skills next to it, if there is one.
    pub skills: Option<Vec<u8>>,
    /// Whether the decoder reads the instruction instead of programs; there is no emitter then.
    pub without_programs: bool,
}

impl Given {
    /// Rejects a library that calls other skills: `skill_3` is another motion with another world model, seed or setting.
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

/// Trains a world model in a run directory, or resumes that. Returns the directory of the model; `None` if the user
/// interrupted the training.
pub fn world_model(
    prepared: &Prepared,
    settings: &WorldModelSettings,
    options: RunOptions<'_>,
) -> Result<Option<PathBuf>> {
    let sections = json!({ "world_model": settings });
    let trained = Session::open(prepared, options, &sections).and_then(|mut session| {
        session.world_model(settings)?;
        Ok(session.run.path(Phase::WorldModel.name()))
    });
    unless_interrupted(trained)
}

/// Trains an amortizer in a run directory, or resumes that. Returns the directory of the model; `None` if the user
/// interrupted the training.
///
/// # Errors
/// If the supervision needs a teacher and there is none, or the other way round.
pub fn amortizer(
    prepared: &Prepared,
    settings: &AmortizerSettings,
    teacher: Option<&Teacher>,
    options: RunOptions<'_>,
) -> Result<Option<PathBuf>> {
    let sections = json!({ "amortizer": settings });
    let trained = Session::open(prepared, options, &sections).and_then(|mut session| {
        session.amortizer(settings, teacher)?;
        Ok(session.run.path(Phase::Amortizer.name()))
    });
    unless_interrupted(trained)
}

/// Trains the heads of a policy in a run directory, or resumes that: `with/` with a library, `t1/` without one,
/// `no_programs/` without programs. `None` if
/// the user interrupted the training.
///
/// # Errors
/// On a world model of other features, or one that has learned from held-out episodes; on a library of other skills.
pub fn wake(
    prepared: &Prepared,
    settings: &RunSettings,
    world_model: &Path,
    given: &Given,
    options: RunOptions<'_>,
) -> Result<Option<PolicyResult>> {
    let teacher = Teacher::load(world_model, options.device)?.with_distances(&settings.cycle);
    teacher.loaded.check(prepared)?;
    let sections = json!({ "amortizer": settings.amortizer, "wake": settings.wake, "cycle": settings.cycle });
    let trained = Session::open(prepared, options, &sections).and_then(|mut session| {
        // A run of the loop has trained its kernel already.
        let form = settings.cycle.classes.kernel;
        let theirs = SegmentKernel::folder(form).map(|folder| world_model.join(folder));
        let kernel = match theirs.filter(|folder| folder.join(MODEL).is_file()) {
            Some(folder) => SegmentKernel::load(form, &folder, session.options.device)?,
            None => session.kernel(settings, &teacher)?,
        };
        session.announce("segments, classes, programs", false)?;
        let world = World::new(prepared, &session.options, &settings.cycle, teacher, &kernel)?;
        given.check(&world)?;
        // A run of the loop in the same directory has written its own, which stay.
        if session.run.is_first() && !session.run.path(LIBRARY).is_file() {
            write_language(&session, &world, &given.library)?;
        }
        let (arm, folder) = match given.without_programs {
            true => (Arm::without_programs(&world)?, "no_programs"),
            false => {
                let folder = if given.library.is_empty() { "t1" } else { "with" };
                (Arm::of_library(&world, &given.library, settings)?, folder)
            }
        };
        policy(&mut session, &world, arm, &settings.wake, folder, &mut Vocabulary::new(), None)
    });
    unless_interrupted(trained)
}
