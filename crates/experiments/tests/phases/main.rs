//! The phases on the embedded dataset, from its pictures to a table.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod added_head;
mod cycle;
mod joined;
mod kernel;
mod motor;
mod paper;
mod programs;
mod robots;
mod several_processes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use dataset::{FRAGMENT_LENGTH, Overrides};
use experiments::amortizer_phase::{Teacher, train_amortizer};
use experiments::cycle::demonstrations::Demonstrations;
use experiments::kernel_agreement::{KernelOptions, kernel_agreement};
use experiments::matrix::{Mode, Plan, matrix};
use experiments::settings::Settings;
use experiments::summary::{amortizer_rows, amortizer_scores, raw_windows, untrained_amortizer_scores};
use experiments::trained::{Launch, Weights, load_amortizer, load_amortizer_with, load_world_model};
use experiments::world_model_phase::train_world_model;
use experiments::{AmortizerSettings, Device, Error, FeatureChoice, Prepared, Source, WorldModelSettings, resolve};
use models::Parameters;
use models::amortizer::Supervision;
use models::kernel::KernelConfig;
use models::training::distributed::Alone;
use models::training::{Outcome, Progress};
use tempfile::TempDir;

/// Features are made once for all tests.
static CACHE: OnceLock<TempDir> = OnceLock::new();

fn prepared() -> Prepared {
    Prepared::new(source(), None, FRAGMENT_LENGTH).unwrap()
}

fn source() -> Source {
    let cache = CACHE.get_or_init(|| tempfile::tempdir().unwrap());
    let choice = FeatureChoice {
        encoder: Some("pixels:2".to_owned()),
        cache: Some(cache.path().to_owned()),
        ..Default::default()
    };
    Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap()
}

#[test]
fn tuning_looks_at_training_episodes_alone() {
    let (whole, tuning) = (prepared(), Prepared::for_tuning(source(), None, FRAGMENT_LENGTH).unwrap());
    assert_eq!((whole.split.train.len(), whole.split.held_out.len()), (27, 9));
    assert_eq!((tuning.split.train.len(), tuning.split.held_out.len()), (18, 9));
    let all: Vec<_> = tuning.split.train.iter().chain(&tuning.split.held_out).collect();
    assert!(all.iter().all(|episode| whole.split.train.contains(episode)));
    let demonstrations = Demonstrations::new(&tuning, &Default::default()).unwrap();
    assert_eq!(demonstrations.all.len(), 27, "episodes that are set aside are not demonstrations either");
}

fn settings<S: Settings>(sets: &[&str]) -> S {
    let few = ["train.steps=6", "train.warmup=1", "train.log_every=2", "train.evaluate_every=6", "batch=8"];
    let sets: Vec<String> = few.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    resolve("tiny", &sets).unwrap()
}

fn launch<'a>(
    run: &'a Path,
    resume: bool,
    progress: &'a mut dyn FnMut(&Progress),
    stop: Option<&'a AtomicBool>,
) -> Launch<'a> {
    let transport = Arc::new(Alone::default());
    Launch { run, resume, preset: "tiny", seed: 3, device: &Device::Cpu, transport, progress, stop }
}

#[test]
fn a_stopped_phase_goes_on_to_the_weights_of_an_unbroken_one() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    for contrast in ["none", "supcon", "episode_contrast"] {
        let settings: WorldModelSettings = settings(&[&format!("model.contrast={contrast}")]);
        let place = |name: &str| folder.path().join(contrast).join(name);
        let (whole, broken) = (place("whole"), place("broken"));
        let outcome = train_world_model(&prepared, &settings, launch(&whole, false, &mut |_| {}, None)).unwrap();
        let Outcome::Finished(summary) = outcome else { panic!("{outcome:?}") };
        assert!(summary.evaluation["nmi_task"] > 0.0 && summary.evaluation.contains_key("recon"), "{summary:?}");
        assert!(whole.join("config.json").is_file());

        let stop = AtomicBool::new(false);
        let mut at_four = |told: &Progress| stop.store(told.step == 4, Ordering::Relaxed);
        let launched = launch(&broken, false, &mut at_four, Some(&stop));
        let outcome = train_world_model(&prepared, &settings, launched).unwrap();
        assert!(matches!(&outcome, Outcome::Stopped(summary) if summary.step < 6), "{outcome:?}");
        let error = load_world_model(&broken, &Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("continue it with `--resume`"), "{error}");
        let outcome = train_world_model(&prepared, &settings, launch(&broken, true, &mut |_| {}, None)).unwrap();
        assert!(matches!(&outcome, Outcome::Finished(summary) if summary.resumed_from.is_some()), "{outcome:?}");
        let weights = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
        assert!(weights(&whole) == weights(&broken), "{contrast}");
    }
}

#[test]
fn an_amortizer_learns_from_a_world_model_and_is_loaded_again() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let (a, c) = (folder.path().join("a"), folder.path().join("c"));
    train_world_model(&prepared, &settings(&[]), launch(&a, false, &mut |_| {}, None)).unwrap();
    let student: AmortizerSettings = settings(&["model.vision=true", "supervision=distillation"]);
    let without = train_amortizer(&prepared, &student, None, launch(&c, false, &mut |_| {}, None));
    assert!(matches!(without, Err(Error::Settings(_))));
    let teacher = Teacher::load(&a, &Device::Cpu).unwrap();
    train_amortizer(&prepared, &student, Some(&teacher), launch(&c, false, &mut |_| {}, None)).unwrap();

    let loaded = load_amortizer(&c, &Device::Cpu).unwrap();
    assert!(loaded.record.model.vision && loaded.record.teacher.as_ref() == Some(&teacher.hash));
    assert_eq!(loaded.record.split, prepared.split);
    assert!(load_world_model(&c, &Device::Cpu).err().unwrap().to_string().contains("wanted \"world_model\""));
    let scores = amortizer_scores(&prepared, &c, &Device::Cpu).unwrap();
    assert_eq!(scores.kmeans.clusters, 9);
    assert!(scores.kmeans.phase.is_some() && scores.kmeans.boundary_f1.is_some());

    // Other episodes held out would be episodes that it has seen.
    let cache = CACHE.get().unwrap().path().to_owned();
    let choice = FeatureChoice { encoder: Some("pixels 2×2".to_owned()), cache: Some(cache), ..Default::default() };
    let source = Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap();
    let other = Prepared::new(source, Some(2), FRAGMENT_LENGTH).unwrap();
    let error = amortizer_scores(&other, &c, &Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("use the same `--hold-out`"), "{error}");
    // Nor does a teacher teach for episodes that it has seen itself, under whatever name.
    let mut teacher = teacher;
    teacher.loaded.record.seen.extend(prepared.contents(&prepared.split.held_out[..1]));
    let d = folder.path().join("d");
    let error = train_amortizer(&prepared, &student, Some(&teacher), launch(&d, false, &mut |_| {}, None)).unwrap_err();
    assert!(error.to_string().contains("has learned from 1 of the 9 episodes"), "{error}");
    // A teacher that would be ignored is refused.
    let bound: AmortizerSettings = settings(&["supervision=task_index"]);
    let error = train_amortizer(&prepared, &bound, Some(&teacher), launch(&d, false, &mut |_| {}, None)).unwrap_err();
    assert!(error.to_string().contains("`supervision` says to learn from something else"), "{error}");
}

/// Rounds of RecursivePour, of which the last is held out; fewer rounds are the first of more.
fn pours(place: &Path, rounds: usize) -> Prepared {
    let place = place.join(format!("pour-{rounds}"));
    dataset::recursive_pour::write(&place, rounds, 11).unwrap();
    let choice = FeatureChoice::default();
    let source = Source::open(place.to_str().unwrap(), &Overrides::default(), &choice, &mut |_| {}).unwrap();
    Prepared::new(source, Some(1), 4).unwrap()
}

#[test]
fn episodes_that_a_model_learned_from_do_not_judge_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings: AmortizerSettings = settings(&["supervision=task_index", "model.horizon=4"]);
    let own = pours(folder.path(), 8);
    train_amortizer(&own, &settings, None, launch(&run, false, &mut |_| {}, None)).unwrap();
    amortizer_scores(&own, &run, &Device::Cpu).unwrap();
    // A part of its dataset holds out what it has seen, more of the same holds out what is new.
    let error = amortizer_scores(&pours(folder.path(), 7), &run, &Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("has learned from 4 of the 4 episodes that `pour-7` holds out (24, 25, 26, 27)"), "{error}");
    amortizer_scores(&pours(folder.path(), 9), &run, &Device::Cpu).unwrap();
}

#[test]
fn the_kernel_is_compared_with_its_own_student() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let (a, b, c) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
    let small: WorldModelSettings = settings(&["model.latent=12"]);
    train_world_model(&prepared, &small, launch(&a, false, &mut |_| {}, None)).unwrap();
    train_world_model(&prepared, &settings(&["train.steps=1"]), launch(&b, false, &mut |_| {}, None)).unwrap();
    let (teacher, other) = (Teacher::load(&a, &Device::Cpu).unwrap(), Teacher::load(&b, &Device::Cpu).unwrap());
    let distilled: AmortizerSettings = settings(&["supervision=distillation"]);
    train_amortizer(&prepared, &distilled, Some(&teacher), launch(&c, false, &mut |_| {}, None)).unwrap();
    let student = [load_amortizer(&c, &Device::Cpu).unwrap()];

    let kernel = KernelConfig { horizon: 2, starts: 2, samples: 3, ..KernelConfig::default() };
    let options = KernelOptions { fragments: 16, lessons: 16, steps: 2, kernel };
    let compare = |teacher: &Teacher, options: KernelOptions| {
        kernel_agreement(&prepared, teacher, &student, options, &Device::Cpu, None, &mut |_| {})
    };
    let report = compare(&teacher, options).unwrap().unwrap();
    let forms: Vec<&str> = report.forms.iter().map(|form| form.form.as_str()).collect();
    assert_eq!(forms, ["mc", "separable_vpk", "legacy_cosine", "raw windows"]);
    assert!(report.forms.iter().all(|form| form.spearman.is_some() && form.nmi_phase.is_some()), "{report:?}");
    assert_eq!((report.horizon, report.starts, report.samples), (2, 2, 3), "what was drawn is said");
    let error = compare(&other, options).unwrap_err().to_string();
    assert!(error.contains(&teacher.hash) && error.contains(&other.hash) && error.contains("--teacher"), "{error}");
    let error = compare(&teacher, KernelOptions { fragments: 3, ..options }).unwrap_err().to_string();
    assert!(error.contains("3 fragments are too few, wanted 9 or more"), "{error}");

    // The untrained row is of a model that is alike in all but what was learned: as wide as its teacher's latents, too.
    let twin = load_amortizer_with(Weights::First, &c, &Device::Cpu).unwrap();
    assert_eq!((twin.record.model.embedding, &twin.record), (12, &student[0].record));
    let values = |model: &Parameters| {
        let masters = model.masters().into_values();
        masters.map(|weights| weights.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
    };
    assert_ne!(values(&twin.parameters), values(&student[0].parameters));
    let rows = amortizer_rows(&prepared, &c, &Device::Cpu).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.vectors.as_str()).collect::<Vec<_>>(),
        ["raw windows", "untrained", "trained"]
    );
    assert_ne!(rows[1].scores, rows[2].scores);
}

#[test]
fn labels_teach_more_than_nothing_does() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("bound");
    let sets = ["supervision=task_index", "train.steps=60", "batch=36", "train.rate=0.002"];
    let settings: AmortizerSettings = settings(&sets);
    assert_eq!(settings.supervision, Supervision::TaskIndex);
    train_amortizer(&prepared, &settings, None, launch(&run, false, &mut |_| {}, None)).unwrap();
    let trained = amortizer_scores(&prepared, &run, &Device::Cpu).unwrap().kmeans.task.nmi;
    let untrained = untrained_amortizer_scores(&prepared, &settings, 3, &Device::Cpu).unwrap().kmeans.task.nmi;
    let raw = raw_windows(&prepared).unwrap().kmeans.task.nmi;
    assert!(trained > untrained + 0.1 && trained > raw, "trained {trained}, untrained {untrained}, raw {raw}");
}

#[test]
fn cells_of_the_matrix_are_run_once() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let (world_model, amortizer) = (settings(&[]), settings(&[]));
    let plan = Plan {
        out: folder.path(),
        world_model: &world_model,
        amortizer: &amortizer,
        preset: "tiny",
        device: &Device::Cpu,
        stop: None,
    };
    let mut told = 0;
    let mut run = |mode| plan.run(&prepared, mode, 1, &mut |_, _| told += 1).unwrap().unwrap();
    let modes = [Mode::Untrained, Mode::None, Mode::EpisodeContrastDirect];
    let first: Vec<_> = modes.into_iter().map(&mut run).collect();
    let again: Vec<_> = modes.into_iter().map(&mut run).collect();
    assert_eq!(first, again);
    // Three readings of each phase: A, C and C with vision; then C twice.
    assert_eq!(told, 3 * 5);
    assert!(first[1].world_model.is_some() && first[2].world_model.is_none());
    let raw = [(prepared.source.name.clone(), plan.raw(&prepared).unwrap())];
    let table = matrix(&raw, first).unwrap().markdown();
    assert!(table.contains("| raw windows | windows |") && table.contains("| none | k_χ + vision |"), "{table}");

    // Results of other settings are not taken for these.
    let other: WorldModelSettings = settings(&["train.rate=0.5"]);
    let plan = Plan { world_model: &other, ..plan };
    let error = plan.raw(&prepared).unwrap_err().to_string();
    assert!(error.contains("world_model.train.rate` was ") && error.contains("is 0.5"), "{error}");
    assert!(plan.run(&prepared, Mode::None, 1, &mut |_, _| {}).is_err());
}

#[test]
fn likely_mistakes_are_told_apart() {
    let open = |written: &str, choice: &FeatureChoice| {
        Source::open(written, &Overrides::default(), choice, &mut |_| {}).err().unwrap()
    };
    let error = open("no/such/place", &FeatureChoice::default());
    assert_eq!(error.to_string(), "there is no dataset `no/such/place`");

    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../datasets/libero_goal_mini");
    let empty = tempfile::tempdir().unwrap();
    let choice = FeatureChoice { encoder: None, cache: Some(empty.path().to_owned()), ..Default::default() };
    let Error::NoFeatures { reason, advice } = open(place.to_str().unwrap(), &choice) else { panic!("features?") };
    assert!(reason.contains("has no features of it"), "{reason}");
    assert!(advice.contains("refactor-vla features"), "{advice}");
    // Whoever names neither an encoder nor a directory gets small pictures, and is told.
    let choice = FeatureChoice { or_pixels: true, ..choice };
    let source = Source::open(place.to_str().unwrap(), &Overrides::default(), &choice, &mut |_| {}).unwrap();
    assert_eq!(source.caches[0].width(), 3 * 8 * 8);
    assert!(source.notes[0].contains("as 8×8 pixels (`--encoder pixels:8`)"), "{:?}", source.notes);

    let prepared = prepared();
    let settings: WorldModelSettings = settings(&[]);
    let run = empty.path().join("run");
    train_world_model(&prepared, &settings, launch(&run, false, &mut |_| {}, None)).unwrap();
    let error = train_world_model(&prepared, &settings, launch(&run, false, &mut |_| {}, None)).unwrap_err();
    assert!(matches!(&error, Error::RunExists { .. }), "{error}");
    let others = empty.path().join("others");
    std::fs::create_dir(&others).unwrap();
    std::fs::write(others.join("letter.txt"), "dear").unwrap();
    let error = train_world_model(&prepared, &settings, launch(&others, false, &mut |_| {}, None)).unwrap_err();
    assert!(error.to_string().ends_with("contains other files"), "{error}");
}
