//! The loop (SPEC §9): the world model once, then T times wake and refactoring, then the policies that are compared.
//!
//! ```text
//! RUN/config.json              settings, seed, data and split
//!     world_model/             phase A
//!     amortizer/, separable/   phase C, for the form of D_φ that the loop uses
//!     t1/emitter, decoder/     phase B on programs written with F₀    t1/policy.json
//!     t1/refactor.json         candidates, gates, F₁
//!     t2/ …
//!     with/                    the policy with F_T, from the same start as that of t1, which has no library
//!     no_programs/             the policy without programs
//!     kernel.json              how well that form agrees with Monte Carlo
//!     skills.json, annotation.json, policy.json, programs.json, library.json, library.txt, summary.json, then report.json,
//!     report.html
//! ```
//! Every stage is a function of the stages before it and appears whole ([`crate::run_dir`]), so a run that was killed
//! anywhere is resumed by computing what is missing, and ends with the same result.
//!
//! Departure: the paper trains k_χ in every iteration. Its teacher M_φ does not change between iterations, so neither would
//! k_χ: it is trained once, before the loop.

use std::sync::atomic::Ordering;

use compression::{Library, Programs};
use language::{TermId, print};
use models::FragmentTable;
use models::emitter::WordVocabulary;
use models::vocabulary::{Growth, Vocabulary};
use serde::Serialize;
use serde_json::json;

use super::annotation::{ANNOTATION, RunAnnotation};
use super::class_scores::{kernel_agreement, matched_scores};
use super::classes::Classes;
use super::corpus::{Corpus, Written};
use super::demonstrations::Demonstrations;
use super::gates::{Gates, RecordedCalls};
use super::programs::{PROGRAMS, demonstration_programs};
use super::refactoring::{Grown, grown, read};
use super::report::{ReportContext, report};
use super::segment_kernel::SegmentKernel;
use super::session::{Event, RunOptions, Session};
use super::settings::{CycleSettings, RunSettings};
use super::skill_scores::{replay, skill_phases, skill_tasks};
use super::summary::{PolicyResult, Refactored, Rewriting, RunSummary};
use super::wake::{Before, Samples, TrainedHead, WakeData, WakeSettings, heads};
use crate::amortizer_phase::Teacher;
use crate::error::{Error, Result, unless_interrupted};
use crate::landmarks::Landmarks;
use crate::policy::{POLICY, PolicyRecord};
use crate::prepared::Prepared;
use crate::run_dir::{write_json, write_text};

/// The summary of a finished run.
pub const SUMMARY: &str = "summary.json";

/// The last library of a finished run.
pub const LIBRARY: &str = "library.json";

/// The skills of a finished run, which its library calls.
pub const SKILLS: &str = "skills.json";

/// The names of the policies that are compared at the end.
pub mod arms {
    /// Programs written with the last library.
    pub const WITH: &str = "with library";
    /// Programs written with primitives and skills alone.
    pub const WITHOUT: &str = "without library";
    /// The instruction as one token instead of programs.
    pub const NO_PROGRAMS: &str = "no programs";
}

/// Makes a run, or resumes one. `None` if the user interrupted it.
pub fn run(prepared: &Prepared, settings: &RunSettings, options: RunOptions<'_>) -> Result<Option<RunSummary>> {
    // What cannot be cut into segments is refused before anything is trained.
    Demonstrations::new(prepared, &settings.cycle.segments)?;
    unless_interrupted(
        Session::open(prepared, options, &json!(settings)).and_then(|mut session| go(&mut session, settings)),
    )
}

/// What all stages after the world model work on.
pub(super) struct World {
    pub(super) teacher: Teacher,
    table: FragmentTable,
    pub(super) demonstrations: Demonstrations,
    pub(super) classes: Classes,
    pub(super) corpus: Corpus,
    /// The training demonstrations, by their place among all.
    training: Vec<usize>,
    words: WordVocabulary,
    /// A hash of the skills, of the motions that are written with them, of instructions and of rewards: what the stages below
    /// depend on besides their settings.
    skills: String,
}

impl World {
    /// Segments, classes and programs by a world model. They are computed anew in every start: that costs less than storing
    /// them would.
    pub(super) fn new(
        prepared: &Prepared,
        options: &RunOptions<'_>,
        cycle: &CycleSettings,
        teacher: Teacher,
        kernel: &SegmentKernel,
    ) -> Result<World> {
        let (loaded, device) = (&teacher.loaded, options.device);
        let discount = loaded.record.model.discount;
        let table = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), discount)?;
        let demonstrations = Demonstrations::new(prepared, &cycle.segments)?;
        let seed = options.seed_for(b"classes");
        let classes = Classes::new(prepared, &demonstrations, &teacher, &table, &cycle.classes, kernel, seed)?;
        let corpus = Corpus::new(&demonstrations, &classes, &cycle.alphabet)?;
        let (training, words) = (demonstrations.which(false), Samples::words(&demonstrations));
        let instructions: Vec<&str> = demonstrations.all.iter().map(|one| one.instruction.as_str()).collect();
        let rewards = models::fragments::rewards_of(&prepared.source.dataset);
        let skills = hash(&(&corpus.alphabet, &corpus.calls, &classes.labels, instructions, rewards))?;
        // Processes that trained on different programs would sum gradients of different things.
        if options.transport.broadcast_bytes(skills.clone().into_bytes())? != skills.as_bytes() {
            return Err(Error::Mismatch(
                "this process finds other skills than the first one; start all processes with the same program and settings \
                 on devices of the same kind"
                    .to_owned(),
            ));
        }
        Ok(World { teacher, table, demonstrations, classes, corpus, training, words, skills })
    }
}

fn go(session: &mut Session<'_, '_>, settings: &RunSettings) -> Result<RunSummary> {
    let teacher = session.world_model(&settings.world_model)?.with_distances(&settings.cycle);
    let kernel = session.kernel(settings, &teacher)?;
    session.announce("segments, classes, programs", false)?;
    let world = World::new(session.prepared, &session.options, &settings.cycle, teacher, &kernel)?;
    let mut library = Library::new();
    let (mut policies, mut refactored) = (Vec::new(), Vec::<Refactored>::new());
    let mut vocabulary = Vocabulary::new();
    let mut programs = None;
    for t in 1..=settings.cycle.iterations {
        let arm = Arm::of_library(&world, &library, settings)?;
        let folder = format!("t{t}");
        let before = if t > 1 { Some(format!("t{}", t - 1)) } else { None };
        policies.push(policy(session, &world, arm, &settings.wake, &folder, &mut vocabulary, before.as_deref())?);
        let found = refactor(session, &world, programs.as_ref(), &settings.cycle, t)?;
        library = found.summary.library.clone();
        programs = Some(found.programs);
        refactored.push(found.summary);
    }
    // F₀ is empty, so the first policy is the one without a library: same seed, same start, same number of steps.
    let without = PolicyResult { name: arms::WITHOUT.to_owned(), ..policies[0].clone() };
    let with = Arm::of_library(&world, &library, settings)?.named(arms::WITH);
    let with = policy(session, &world, with, &settings.wake, "with", &mut Vocabulary::new(), None)?;
    let none = Arm::without_programs(&world)?;
    let none = policy(session, &world, none, &settings.wake, "no_programs", &mut Vocabulary::new(), None)?;
    let prepared = session.prepared;
    session.announce("scores of classes and skills", false)?;
    let World { demonstrations, classes, table, .. } = &world;
    let agreement =
        session.run.stage("kernel", &json!({ "classes": settings.cycle.classes, "skills": world.skills }), || {
            kernel_agreement(classes, prepared, demonstrations, &world.teacher, table, &settings.cycle.classes)
        })?;
    let summary = RunSummary {
        dataset: prepared.source.name.clone(),
        labels: settings.labels(),
        demonstrations: (world.training.len(), world.demonstrations.all.len() - world.training.len()),
        segments: world.demonstrations.segments_of(&world.training).len(),
        skills: world.corpus.alphabet.skills.len(),
        skill_tasks: skill_tasks(prepared, &world.demonstrations, &world.corpus)?,
        skill_phases: skill_phases(prepared, &world.demonstrations, &world.corpus)?,
        classes: matched_scores(
            classes,
            prepared,
            demonstrations,
            &settings.cycle.classes,
            session.options.seed_for(b"classes"),
        )?,
        kernel: agreement,
        replay: replay(&world.demonstrations, &world.corpus)?,
        unknown_instructions: world.corpus.unknown.clone(),
        policies,
        refactor: refactored,
        arms: vec![with, without, none],
    };
    session.announce("report", false)?;
    if session.run.is_first() {
        publish(session, &world, &summary, &library, settings)?;
    }
    session.run.wait()?;
    Ok(summary)
}

/// Writes the results of a finished run: whoever finds a library finds its skills, and whoever finds the summary finds both.
fn publish(
    session: &mut Session<'_, '_>,
    world: &World,
    summary: &RunSummary,
    library: &Library,
    settings: &RunSettings,
) -> Result<()> {
    let path = |name: &str| session.run.path(name);
    write_language(session, world, library)?;
    write_text(&path("library.txt"), library.to_text().as_bytes())?;
    write_json(&path(SUMMARY), summary)?;
    let report = report(&ReportContext {
        prepared: session.prepared,
        settings,
        world,
        summary,
        library,
        out: session.run.root(),
        preset: session.options.preset,
        seed: session.options.seed,
        device: &session.options.runs_on,
        seconds: session.seconds(),
        command: &session.options.command,
    })?;
    write_text(&session.run.path("report.json"), report.to_json()?.as_bytes())?;
    write_text(&session.run.path("report.html"), report::render(&report).as_bytes())
}

/// Writes the skills, the demonstrations as programs, and what a policy needs to be served; the library last.
pub(super) fn write_language(session: &Session<'_, '_>, world: &World, library: &Library) -> Result<()> {
    let World { demonstrations, corpus, .. } = world;
    let path = |name: &str| session.run.path(name);
    write_json(&path(SKILLS), &corpus.alphabet)?;
    write_json(&path(ANNOTATION), &RunAnnotation::of(session.prepared, demonstrations, corpus))?;
    write_json(&path(POLICY), &PolicyRecord::of(session.prepared, demonstrations, corpus))?;
    write_json(&path(PROGRAMS), &demonstration_programs(demonstrations, corpus)?)?;
    write_json(&path(LIBRARY), library)
}

/// One way to write the programs that a policy is trained on.
pub(super) struct Arm {
    name: String,
    written: Written,
    rewriting: Option<Rewriting>,
    /// The entries of the library.
    library: Library,
}

impl Arm {
    /// Programs written with a library.
    pub(super) fn of_library(world: &World, library: &Library, settings: &RunSettings) -> Result<Arm> {
        let strategy = settings.cycle.refactor.strategy;
        let compiled = world.corpus.compiled(library, strategy)?;
        let written = world.corpus.written(&compiled, strategy, settings.cycle.horizon_segments)?;
        let count = world.demonstrations.all.len();
        let rewritten = (0..count).filter(|at| compiled.rewritten[*at] || compiled.rewritten[count + at]).count();
        let rewriting = Rewriting {
            demonstrations: count,
            rewritten,
            entries_used: compiled.entries_used(),
            entries: library.len(),
        };
        let name = if library.is_empty() { arms::WITHOUT } else { arms::WITH }.to_owned();
        Ok(Arm { name, written, rewriting: Some(rewriting), library: library.clone() })
    }

    /// The instruction as one token, and nothing about motions.
    pub(super) fn without_programs(world: &World) -> Result<Arm> {
        let written = world.corpus.instructions_alone(&world.demonstrations)?;
        Ok(Arm { name: arms::NO_PROGRAMS.to_owned(), written, rewriting: None, library: Library::new() })
    }

    fn named(self, name: &str) -> Arm {
        Arm { name: name.to_owned(), ..self }
    }

    /// All terms that training frames have as targets.
    fn training_programs(&self, world: &World) -> Vec<TermId> {
        let of = |at: &usize| {
            let plans = self.written.plans[*at].iter().map(|plan| plan.exact);
            std::iter::once(self.written.tasks[*at]).chain(self.written.now[*at].iter().copied()).chain(plans)
        };
        world.training.iter().flat_map(of).collect()
    }
}

/// Phase B: trains the heads of a policy and measures them. The vocabulary grows by what the programs have.
pub(super) fn policy(
    session: &mut Session<'_, '_>,
    world: &World,
    mut arm: Arm,
    settings: &WakeSettings,
    folder: &str,
    vocabulary: &mut Vocabulary,
    before: Option<&str>,
) -> Result<PolicyResult> {
    let old = vocabulary.clone();
    vocabulary.extend_with_signature(&arm.written.store, &arm.written.signature);
    let programs = arm.training_programs(world);
    vocabulary.extend_with_terms(&mut arm.written.store, &programs);
    let stage = format!("{folder}/policy");
    let done = session.run.is_done(&stage)?;
    let extensions = session.options.extensions.heads.clone();
    let names: Vec<&str> = heads(settings).iter().chain(&extensions).map(|head| head.name()).collect();
    let inputs = json!({
        "settings": settings,
        "heads": names,
        "world_model": world.teacher.hash,
        "skills": world.skills,
        "library": hash(&arm.library)?,
        "programs": hash(&programs.iter().map(|term| print(&arm.written.store, *term)).collect::<Vec<_>>())?,
        "seed": session.options.seed,
    });
    // Heads that were trained on other programs must not be found in this folder, even before there is a result.
    session.run.stage(&format!("{folder}/inputs"), &inputs, || Ok(()))?;
    let name = arm.name.clone();
    if done {
        session.announce(&format!("{folder} policy"), true)?;
        return session.run.stage(&stage, &inputs, || Err(Error::Mismatch(format!("{stage} has vanished"))));
    }
    let prepared = session.prepared;
    let bound = vocabulary.bind(&mut arm.written.store)?;
    let samples = Samples::new(
        prepared,
        settings.train_on_all,
        &world.demonstrations,
        &mut arm.written,
        &world.corpus.alphabet,
        vocabulary,
        &world.words,
    )?;
    let growth = Growth::between(&old, vocabulary, &mut arm.written.store, &arm.written.signature)?;
    let Arm { written, rewriting, .. } = arm;
    if settings.landmarks && rewriting.is_some() {
        session.announce(&format!("{folder} landmarks"), false)?;
        if session.run.is_first() {
            let World { demonstrations, corpus, .. } = world;
            let landmarks = Landmarks::of(prepared, demonstrations, corpus, &written, settings.train_on_all)?;
            landmarks.map(|landmarks| landmarks.write(&session.run.path(folder))).transpose()?;
        }
    }
    let (table, words) = (&world.table, &world.words);
    let pictures =
        settings.image_side()?.map(|side| prepared.pictures(side, session.options.device)).transpose()?.flatten();
    let data = WakeData {
        prepared,
        table,
        samples: &samples,
        written: &written,
        vocabulary,
        bound: &bound,
        words,
        alphabet: &world.corpus.alphabet,
        demonstrations: &world.demonstrations,
        pictures: pictures.as_deref(),
        has_programs: rewriting.is_some(),
        settings,
    };
    let mut policy: Vec<Box<dyn TrainedHead>> = Vec::new();
    for head in heads(settings).into_iter().chain(extensions) {
        if head.writes_programs() && rewriting.is_none() {
            continue;
        }
        let place = format!("{folder}/{}", head.name());
        session.announce(&format!("{folder} {}", head.name()), false)?;
        let start = before.map(|before| session.run.path(&format!("{before}/{}", head.name())));
        let before = start.as_deref().map(|run| Before { run, growth: growth.clone() });
        let purpose = head.name().as_bytes();
        policy.push(session.training(&place, purpose, |launch| head.train(&data, launch, before.as_ref()))?);
    }
    session.announce(&format!("{folder} held-out figures"), false)?;
    session.run.stage(&stage, &inputs, || {
        let measures = data.measures(&policy)?;
        Ok(PolicyResult { name, measures, rewriting, vocabulary: vocabulary.len() })
    })
}

/// F_t from F_{t−1} and the programs as that left them: candidates through the gates, then pruning.
fn refactor(
    session: &mut Session<'_, '_>,
    world: &World,
    last: Option<&Programs>,
    cycle: &CycleSettings,
    t: u32,
) -> Result<Grown> {
    let stage = format!("t{t}/refactor");
    let done = session.run.is_done(&stage)?;
    session.announce(&format!("t{t} refactor"), done)?;
    let inputs = json!({
        "settings": { "refactor": cycle.refactor, "gates": cycle.gates },
        "world_model": world.teacher.hash,
        "skills": world.skills,
        "before": last.map(|last| hash(&(last.library(), last.texts()))).transpose()?,
        "seed": session.options.seed,
    });
    let World { demonstrations, corpus, classes, training, .. } = world;
    let seed = session.options.seed_for(b"verifier");
    let (prepared, stop, observer) = (session.prepared, session.options.stop, &mut session.options.observer);
    let mut programs = None;
    let summary = session.run.stage(&stage, &inputs, || {
        let subjects = Corpus::subjects(training);
        let calls = RecordedCalls { prepared, demonstrations, training, subjects: &subjects, classes, corpus };
        let scene = calls.scene(&world.table, &world.teacher.loaded.model, &cycle.gates);
        let gates = Gates::new(scene, &cycle.gates, cycle.refactor.max_judged, seed);
        let mut judged = |candidate: &_, judgement: &_| observer(Event::Judged { candidate, judgement });
        let found = grown(&calls, &gates, last, cycle, t, stop, &mut judged)?;
        match found {
            Some(found) if !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) => {
                programs = Some(found.programs);
                Ok(found.summary)
            }
            _ => Err(Error::Interrupted),
        }
    })?;
    let programs = programs.map_or_else(|| read(corpus, &summary), Ok)?;
    Ok(Grown { summary, programs })
}

/// A hash that identifies a value among the inputs of a stage.
fn hash(value: &impl Serialize) -> Result<String> {
    const DIGITS: usize = 16;
    let bytes = serde_json::to_vec(value).map_err(|error| Error::Mismatch(error.to_string()))?;
    Ok(blake3::hash(&bytes).to_hex()[..DIGITS].to_owned())
}

/// What the heads of a finished run's policy with the library were trained on, for tests that compare with the evaluation.
#[cfg(test)]
pub(crate) fn with_wake_data<T>(
    prepared: &Prepared,
    settings: &RunSettings,
    options: &RunOptions<'_>,
    look: impl FnOnce(&WakeData<'_>) -> T,
) -> Result<T> {
    use crate::amortizer_phase::Teacher;
    use crate::run_dir::read_json;
    let teacher = Teacher::load(options.out, options.device)?.with_distances(&settings.cycle);
    let form = settings.cycle.classes.kernel;
    let folder = SegmentKernel::folder(form).map(|folder| options.out.join(folder));
    let kernel = match folder {
        Some(folder) => SegmentKernel::load(form, &folder, options.device)?,
        None => return Err(Error::Mismatch("the kernel has no folder".to_owned())),
    };
    let world = World::new(prepared, options, &settings.cycle, teacher, &kernel)?;
    let library: Library = read_json(&options.out.join(LIBRARY))?;
    let mut arm = Arm::of_library(&world, &library, settings)?;
    let vocabulary = crate::trained::load_decoder(&options.out.join("with"), options.device)?.record.model.vocabulary;
    let bound = vocabulary.bind(&mut arm.written.store)?;
    let samples = Samples::new(
        prepared,
        settings.wake.train_on_all,
        &world.demonstrations,
        &mut arm.written,
        &world.corpus.alphabet,
        &vocabulary,
        &world.words,
    )?;
    let pictures =
        settings.wake.image_side()?.map(|side| prepared.pictures(side, options.device)).transpose()?.flatten();
    Ok(look(&WakeData {
        prepared,
        table: &world.table,
        samples: &samples,
        written: &arm.written,
        vocabulary: &vocabulary,
        bound: &bound,
        words: &world.words,
        alphabet: &world.corpus.alphabet,
        demonstrations: &world.demonstrations,
        pictures: pictures.as_deref(),
        has_programs: true,
        settings: &settings.wake,
    }))
}
