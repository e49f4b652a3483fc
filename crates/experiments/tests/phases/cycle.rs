//! The whole loop, small, on the embedded dataset.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compression::Library;
use dataset::EpisodeId;
use experiments::cycle::annotation::RunSkills;
use experiments::cycle::phases::{self, Given};
use experiments::cycle::run_cutter::{LIBRARY, RunCutter};
use experiments::cycle::{Event, Extensions, RunOptions, RunSettings, RunSummary, run};
use experiments::{Device, Error, Prepared};
use language::{Signature, TermStore};
use models::training::distributed::Alone;
use models::training::metrics;
use serde_json::Value;
use subtasks::annotate::Cutter as _;

use crate::prepared;

pub(crate) fn settings() -> RunSettings {
    let mut sets: Vec<String> = Vec::new();
    for section in ["world_model", "amortizer", "wake.emitter", "wake.decoder"] {
        for few in ["train.steps=4", "train.warmup=1", "train.log_every=2", "train.evaluate_every=4", "batch=8"] {
            sets.push(format!("{section}.{few}"));
        }
        sets.push(format!("{section}.train.checkpoint_every=2"));
    }
    // Less than any program needs, so that the models' room for programs changes with the library.
    sets.extend(["wake.emitter.model.tokens=8", "wake.decoder.model.tokens=8"].map(str::to_owned));
    sets.extend(
        ["wake.judged=16", "wake.emitted=4", "wake.beam.width=2", "cycle.refactor.max_judged=4"].map(str::to_owned),
    );
    RunSettings::resolve("tiny", &sets).unwrap()
}

fn go(prepared: &Prepared, out: &Path, resume: bool, stop_after: Option<usize>) -> Result<Option<RunSummary>, Error> {
    let (stop, mut heard) = (AtomicBool::new(false), 0);
    run(
        prepared,
        &settings(),
        RunOptions {
            out,
            resume,
            preset: "tiny",
            seed: 5,
            device: &Device::Cpu,
            transport: Arc::new(Alone::default()),
            stop: Some(&stop),
            observer: &mut |_: Event<'_>| {
                heard += 1;
                stop.store(stop_after.is_some_and(|after| heard >= after), Ordering::Relaxed);
            },
            runs_on: "cpu".to_owned(),
            command: "refactor-vla run".to_owned(),
            extensions: Extensions::default(),
        },
    )
}

/// All that a run leaves but what clocks say: weights, figures, library.
pub(crate) fn contents(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![out.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(out).unwrap().display().to_string();
            if path.is_dir() {
                if !name.ends_with("checkpoints") && !name.ends_with("events") {
                    waiting.push(path);
                }
            } else if path.ends_with(metrics::FILE) {
                found.insert(name, untimed(&fs::read_to_string(&path).unwrap()).into_bytes());
            } else if !["time.json", "report.json", "report.html"].contains(&name.as_str()) {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn untimed(lines: &str) -> String {
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let fields = line.as_object_mut().unwrap();
        fields.retain(|key, _| key != "seconds" && key != "per_second");
        line.to_string()
    };
    lines.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_that_was_stopped_anywhere_ends_as_one_that_was_not() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let summary = go(&prepared, &whole, false, None).unwrap().unwrap();
    assert_eq!(summary.demonstrations, (27, 9));
    assert_eq!((summary.policies.len(), summary.refactor.len()), (2, 2));
    assert_eq!(summary.labels, None);
    // The data is standardised and uploaded once, however many phases there are.
    assert_eq!(prepared.tables_laid_out(), 1);
    let names: Vec<&str> = summary.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["with library", "without library", "no programs"]);
    let [with, _, none] = &summary.arms[..] else { panic!() };
    assert!(with.measures.iter().any(|one| one.name == "chunk error, oracle programs"));
    assert!(none.measures.iter().all(|one| one.group == "decoder (LCAD)" && !one.name.contains("oracle")));
    assert!(summary.skill_phases.is_some_and(|phases| phases.purity > 0.3));

    // Stopped again and again, a few events further each time, at first while it wrote how it is made.
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("config.json.partial"), "{").unwrap();
    let mut tries = 0;
    while go(&prepared, &broken, tries > 0, Some(3 + tries)).unwrap().is_none() {
        tries += 1;
        assert!(tries < 60, "it never ends");
    }
    assert!(tries > 3, "{tries}");
    let (wanted, found) = (contents(&whole), contents(&broken));
    assert_eq!(wanted.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (name, bytes) in &wanted {
        assert!(found[name] == *bytes, "{name} differs");
    }
    // A world model, an amortizer that learned its kernel, and an emitter and a decoder three times.
    assert!(wanted.keys().filter(|name| name.ends_with(".safetensors")).count() >= 8);

    // What it wrote can be read again.
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(page.contains("skill_0") && page.contains("</html>"));
    let report = report::Report::from_json(&fs::read_to_string(whole.join("report.json")).unwrap()).unwrap();
    assert_eq!(report.problems(), Vec::<String>::new());
    let text = fs::read_to_string(whole.join("library.json")).unwrap();
    let library: Library = serde_json::from_str(&text).unwrap();
    let mut store = TermStore::new();
    let mut base = Signature::standard(&mut store);
    let alphabet: skills::SkillAlphabet =
        serde_json::from_str(&fs::read_to_string(whole.join("skills.json")).unwrap()).unwrap();
    alphabet.declare(&mut store, &mut base).unwrap();
    library.check(&store, &base).unwrap();

    a_wake_phase_alone_is_that_of_the_run(&prepared, &whole, &folder.path().join("alone"));
    macros_name_the_segments_that_they_stand_for(&prepared, &whole, &folder.path().join("macros"));

    // The same directory for another run is refused, and says what differs.
    assert!(matches!(go(&prepared, &whole, false, None), Err(Error::RunExists { .. })));
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes.txt"), "mine").unwrap();
    assert!(matches!(go(&prepared, &other, false, None), Err(Error::RunExists { .. })));
}

/// `annotate --run` has library entries over several skills as names; `subtasks` tests that such names get into datasets.
fn macros_name_the_segments_that_they_stand_for(prepared: &Prepared, run: &Path, folder: &Path) {
    let (skills, dataset) = (RunSkills::load(run).unwrap(), &prepared.source.dataset);
    fs::create_dir(folder).unwrap();
    let without = RunCutter::new(&skills, folder, dataset).unwrap();
    let motions = subtasks::robot::episode(dataset, &dataset.spans()[0].frames, without.layout()).unwrap();
    let segments = without.cut(dataset, EpisodeId(0), &motions).unwrap();
    assert_eq!(without.episodes(), (1, 0), "the run knows its own episodes");
    let classes: Vec<Option<usize>> = segments.into_iter().map(|(_, class)| class).collect();
    assert!(classes.len() > 2 && without.phrases(&classes).is_empty());

    let name = |at: usize| skills.alphabet.skills[classes[at].unwrap()].name.as_str();
    let body = format!(r"\x0. \x1. seq[{} x0, {}, x1]", name(1), name(2));
    let library = serde_json::json!({ "abstractions": [{ "name": "fn_7", "body": body }] });
    fs::write(folder.join(LIBRARY), library.to_string()).unwrap();
    let phrases = RunCutter::new(&skills, folder, dataset).unwrap().phrases(&classes);
    let is_named = |(range, name): &(Range<usize>, String)| *range == (1..3) && name.starts_with("fn_7 · ");
    assert!(phrases.iter().any(is_named), "{phrases:?} of {classes:?}");
}

/// The world model and the library of a finished run give its policy again, and are refused where skills are others.
fn a_wake_phase_alone_is_that_of_the_run(prepared: &Prepared, whole: &Path, out: &Path) {
    let library: Library = serde_json::from_str(&fs::read_to_string(whole.join("library.json")).unwrap()).unwrap();
    assert!(!library.is_empty());
    let given = Given { library, skills: Some(fs::read(whole.join("skills.json")).unwrap()), without_programs: false };
    let wake = |out: &Path, resume: bool, seed: u64, stop_after: usize, given: &Given| {
        let (stop, mut heard) = (AtomicBool::new(false), 0);
        let options = RunOptions {
            out,
            resume,
            preset: "tiny",
            seed,
            device: &Device::Cpu,
            transport: Arc::new(Alone::default()),
            stop: Some(&stop),
            observer: &mut |_: Event<'_>| {
                heard += 1;
                stop.store(heard >= stop_after, Ordering::Relaxed);
            },
            runs_on: String::new(),
            command: String::new(),
            extensions: Extensions::default(),
        };
        phases::wake(prepared, &settings(), whole, given, options)
    };
    assert_eq!(wake(out, false, 5, 4, &given).unwrap(), None, "stopped");
    assert!(matches!(wake(out, false, 5, usize::MAX, &given), Err(Error::RunExists { .. })));
    let result = wake(out, true, 5, usize::MAX, &given).unwrap().unwrap();
    assert_eq!(result.rewriting.map(|one| one.entries), Some(given.library.len()));
    let (wanted, found) = (contents(&whole.join("with")), contents(&out.join("with")));
    assert!(wanted.len() > 4);
    for (name, bytes) in &wanted {
        assert!(found[name] == *bytes, "{name} differs");
    }

    let other = out.with_file_name("other-seed");
    // A start that failed does not block the directory.
    for _ in 0..2 {
        let refused = wake(&other, false, 6, usize::MAX, &given).unwrap_err();
        assert!(matches!(refused, Error::Mismatch(_) | Error::Library(_)), "{refused}");
    }
}

#[test]
fn settings_outside_all_sections_are_refused() {
    let error = RunSettings::resolve("tiny", &["train.steps=3".to_owned()]).unwrap_err().to_string();
    assert!(
        error.contains("`train.steps=3` is in none of the sections world_model, amortizer, wake, cycle"),
        "{error}"
    );
    let error = RunSettings::resolve("tiny", &["cycle.gates.level=0.7".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("`gates.level` is 0.7"), "{error}");
    let error = RunSettings::resolve_wake("tiny", &["world_model.batch=8".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("`world_model.batch=8` is in none of the sections amortizer, wake, cycle"), "{error}");
}
