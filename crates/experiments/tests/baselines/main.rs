//! Equivalence operators on a synthetic robot whose skills are known, and on the embedded dataset.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clustering::{Contingency, boundary_f1};
use dataset::synthetic::{Options, Synthetic, write};
use dataset::{FRAGMENT_LENGTH, Overrides};
use experiments::baselines::{
    Budget, Comparison, Found, Fragments, Operator, Settings, Trainings, compare, operators, operators_named,
};
use experiments::cycle::settings::CycleSettings;
use experiments::run_dir::RunDir;
use experiments::{Device, Error, FeatureChoice, Prepared, Source, resolve};
use models::training::distributed::Alone;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A small arm with one gripper, without pictures.
fn arm(folder: &Path) -> Source {
    let place = folder.join("so101");
    if !place.exists() {
        write(&place, Synthetic::So101, &Options { per_task: 4, ..Options::default() }).unwrap();
    }
    let blind = Overrides { cameras: Some(Vec::new()), ..Overrides::default() };
    Source::open(place.to_str().unwrap(), &blind, &FeatureChoice::default(), &mut |_| {}).unwrap()
}

fn embedded(cache: &Path) -> Source {
    let choice =
        FeatureChoice { encoder: Some("pixels:4".to_owned()), cache: Some(cache.to_owned()), ..Default::default() };
    Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap()
}

fn budget(steps: u64) -> Budget {
    Budget { name: "test".to_owned(), fragments: 1024, steps }
}

fn trainings<'a>(folder: &Path, stop: Option<&'a AtomicBool>) -> Trainings<'a> {
    let cycle: CycleSettings = resolve("tiny", &[]).unwrap();
    Trainings {
        world_model: resolve("tiny", &[]).unwrap(),
        amortizer: resolve("tiny", &[]).unwrap(),
        cycle,
        preset: "tiny".to_owned(),
        folder: folder.to_owned(),
        stop,
    }
}

fn operator(name: &str) -> Box<dyn Operator> {
    operators_named(&[name.to_owned()]).unwrap().remove(0)
}

/// AMI with phases and with tasks, and the F1 of boundaries.
fn scores(data: &Fragments<'_>, found: &Found) -> (f64, f64, f64) {
    let held_out = &data.prepared.held_out;
    let ami = |truth: &[i64]| Contingency::new(truth, &found.probe).unwrap().ami();
    let labels = |cuts: &Vec<usize>, frames: usize| -> Vec<i64> {
        (0..frames).map(|at| cuts.partition_point(|cut| *cut <= at) as i64).collect()
    };
    let phases = held_out.episodes.as_ref().unwrap();
    let cuts = found.cuts.as_ref().unwrap();
    let found: Vec<Vec<i64>> = cuts.iter().zip(phases).map(|(cuts, phases)| labels(cuts, phases.len())).collect();
    let f1 = boundary_f1(phases, &found, held_out.tolerance).unwrap().f1;
    (ami(held_out.phases.as_ref().unwrap()), ami(&held_out.tasks), f1)
}

/// What each operator is designed to see is there: the phases of a scripted arm are stretches with their own motions,
/// gripper states and conditions. The bounds are far above 0, what classes without any relation to phases score.
#[test]
fn operators_find_the_skills_of_a_scripted_arm() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = Prepared::new(arm(folder.path()), None, FRAGMENT_LENGTH).unwrap();
    let data = Fragments::new(&prepared, budget(150), trainings(folder.path(), None), &Device::Cpu).unwrap();
    assert!(data.training.len() <= 1024 && !data.held_out.is_empty());
    assert!(data.learned.iter().all(|episode| episode.closed.contains(&1)), "grippers are read");
    let mut missed = Vec::new();
    for (name, least_ami, least_f1) in [
        ("atomic_vla", 0.2, 0.1),
        ("atom_skill", 0.2, 0.2),
        ("blade", 0.2, 0.2),
        ("lrll", 0.2, 0.2),
        ("buds", 0.2, 0.2),
        ("prise", 0.2, 0.2),
        ("raw_windows", 0.2, 0.2),
        ("segment_actions", 0.2, 0.5),
    ] {
        let operator = operator(name);
        let choice = &operator.choices(&data.budget)[0];
        let found = operator.labels(&data, choice, 0, &Device::Cpu).unwrap();
        let again = operator.labels(&data, choice, 0, &Device::Cpu).unwrap();
        assert_eq!(found, again, "{name} gives the same for the same seed");
        let (phase, task, f1) = scores(&data, &found);
        println!("{name}: phase {phase:.3}, task {task:.3}, F1 {f1:.3}");
        if phase < least_ami || f1 < least_f1 {
            missed.push(format!("{name}: {phase:.3} {f1:.3}"));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn ours_and_features_run_on_pictures_and_ours_shares_its_models() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = Prepared::new(embedded(folder.path()), None, FRAGMENT_LENGTH).unwrap();
    let trainings = trainings(&folder.path().join("models"), None);
    let data = Fragments::new(&prepared, budget(60), trainings, &Device::Cpu).unwrap();
    for (name, least) in [("frozen_features", 0.1), ("ours_fragments", 0.1), ("ours_segments", 0.1)] {
        let operator = operator(name);
        let found = operator.labels(&data, &operator.choices(&data.budget)[1], 0, &Device::Cpu).unwrap();
        let (phase, task, f1) = scores(&data, &found);
        println!("{name}: phase {phase:.3}, task {task:.3}, F1 {f1:.3}");
        assert!(if name == "frozen_features" { task } else { phase } > least, "{name}: {phase} {task}");
    }
    let models: BTreeSet<String> = std::fs::read_dir(folder.path().join("models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(models.len(), 2, "one world model and one amortizer for both: {models:?}");
}

#[test]
fn operators_have_names_sources_and_as_many_choices_each() {
    let all = operators();
    let names: BTreeSet<&str> = all.iter().map(|operator| operator.name()).collect();
    assert_eq!((names.len(), all.len()), (11, 11));
    for operator in &all {
        assert_eq!(operator.choices(&Budget::paper()).len(), 4, "{}", operator.name());
        assert!(operator.source().len() > 20);
    }
    let error = operators_named(&["blade".to_owned(), "blede".to_owned()]).err().unwrap().to_string();
    assert!(error.contains("there is no operator `blede`; there are `ours_fragments`"), "{error}");
    assert!(Budget::named("paper").is_ok() && Budget::named("long").is_err());
}

#[test]
fn what_is_no_choice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = Prepared::new(arm(folder.path()), None, FRAGMENT_LENGTH).unwrap();
    let data = Fragments::new(&prepared, budget(2), trainings(folder.path(), None), &Device::Cpu).unwrap();
    for operator in operators() {
        let refused = |choice: &Value| {
            let found = operator.labels(&data, choice, 0, &Device::Cpu);
            assert!(matches!(found, Err(Error::Settings(_))), "{} took {choice}", operator.name());
        };
        refused(&json!({}));
        refused(&json!({ "no such setting": 1 }));
    }
    for (name, choice) in [
        ("atomic_vla", json!({ "experts": 1, "gate": "window" })),
        ("atom_skill", json!({ "hold": -1.0, "words": 0.0 })),
        ("blade", json!({ "vertical": true, "least": 0.0 })),
        ("lrll", json!({ "vertical": true, "instance": 0.0 })),
        ("buds", json!({ "seconds": 0.0, "neighbours": 10 })),
        ("prise", json!({ "codes": 1, "merges": 4 })),
        ("segment_actions", json!({ "steps": 0, "penalty": 1.0 })),
    ] {
        let error = operator(name).labels(&data, &choice, 0, &Device::Cpu).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("wanted"), "{error}");
    }
    assert!(operator("frozen_features").missing(&data).is_some(), "there are no pictures");
    assert!(operator("ours_segments").missing(&data).is_some());
}

/// Few operators, few seeds; what matters is what is stored.
fn compared(folder: &TempDir, seeds: u64, names: &[&str], stop: Option<&AtomicBool>) -> Result<Comparison, Error> {
    let prepared = Prepared::new(arm(folder.path()), None, FRAGMENT_LENGTH).unwrap();
    let tuning = Prepared::for_tuning(arm(folder.path()), None, FRAGMENT_LENGTH).unwrap();
    let of = |prepared| Fragments::new(prepared, budget(4), trainings(folder.path(), stop), &Device::Cpu).unwrap();
    let (judged, tuning) = (of(&prepared), of(&tuning));
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let run = RunDir::open(&folder.path().join("out"), true, &json!({}), Arc::new(Alone::default())).unwrap();
    let settings = Settings { seeds, resamples: 200 };
    compare(&judged, &tuning, &operators_named(&names)?, &settings, &run, &Device::Cpu, &mut |_| {})
}

#[test]
fn a_comparison_can_be_stopped_and_resumed_and_extended() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    assert!(matches!(compared(&folder, 1, &["blade"], Some(&stop)), Err(Error::Interrupted)));
    let first = compared(&folder, 1, &["blade", "frozen_features"], None).unwrap();
    assert_eq!(first.entries.len(), 1);
    assert!(first.notes[0].contains("`frozen_features` was left out"), "{:?}", first.notes);
    let more = compared(&folder, 2, &["blade", "raw_windows"], None).unwrap();
    assert_eq!(
        more.entries[0].cells[0], first.entries[0].cells[0],
        "finished cells are not computed again, not even timed"
    );
    assert_eq!(more.entries[1].cells.len(), 2);
    assert_eq!(more, compared(&folder, 2, &["blade", "raw_windows"], None).unwrap());

    let entry = &more.entries[1];
    assert_eq!(entry.tried.len(), 4);
    let value = |tried: &experiments::baselines::Tried| 0.5 * (tried.task + tried.phase.unwrap());
    let best = entry.tried.iter().map(value).fold(0.0, f64::max);
    assert!(entry.tried.iter().any(|tried| tried.choice == entry.choice && value(tried) == best));
    let figure = entry.figures["phase.nmi"];
    let (low, high) = figure.interval.unwrap();
    assert!(low <= figure.mean && figure.mean <= high && low < high, "{figure:?}");
    let text = more.markdown();
    for part in ["| `blade` |", "NMI phase", "boundary F1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = serde_json::to_string(&more).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), more);
    assert!(compared(&folder, 0, &["blade"], None).is_err());
}
