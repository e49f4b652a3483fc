//! The motor library on the embedded dataset.

use experiments::Device;
use experiments::amortizer_phase::Teacher;
use experiments::cycle::Event;
use experiments::cycle::gates::Judgement;
use experiments::cycle::settings::CycleSettings;
use experiments::motor_library::{MotorOptions, MotorReport, Tokens, motor_library};
use experiments::world_model_phase::train_world_model;
use experiments::{Prepared, resolve};

use super::{launch, prepared, settings};

/// Enough for one candidate or two.
const FEW: [&str; 6] = [
    "refactor.max_steps=3000",
    "refactor.max_judged=3",
    "refactor.max_arity=3",
    "classes.classes=4",
    "classes.starts=2",
    "gates.rollouts=4",
];

fn report(prepared: &Prepared, teacher: &Teacher, sets: &[&str]) -> (MotorReport, usize) {
    let sets: Vec<String> = FEW.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    let cycle: CycleSettings = resolve("tiny", &sets).unwrap();
    let mut judged = 0;
    let options = MotorOptions {
        cycle: &cycle,
        seed: 5,
        device: &Device::Cpu,
        stop: None,
        observer: &mut |event| judged += usize::from(matches!(event, Event::Judged { .. })),
    };
    let report = motor_library(prepared, teacher, options).unwrap().unwrap();
    (report, judged)
}

#[test]
fn skills_make_a_library_where_strict_tokens_make_none() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("a");
    train_world_model(&prepared, &settings(&[]), launch(&run, false, &mut |_| {}, None)).unwrap();
    let teacher = Teacher::load(&run, &Device::Cpu).unwrap();

    // Few steps teach no returns, so the gate of returns could say anything; the others are those of a real run.
    let (found, judged) = report(&prepared, &teacher, &["gates.returns=false", "gates.soundness_quantile=1"]);
    assert_eq!(found.strict.runs.iter().map(|run| run.aligned).collect::<Vec<_>>(), [false, true]);
    let cells: Vec<_> = found.strict.runs.iter().flat_map(|run| &run.cells).collect();
    assert_eq!(cells.len(), 14);
    // The paper's reading and its result: nothing, at every threshold.
    assert!(cells.iter().all(|cell| cell.per_emitted_token == 0), "{cells:?}");

    assert_eq!(
        found.skills.iter().map(|library| library.tokens).collect::<Vec<_>>(),
        [Tokens::Behaviour, Tokens::Actions]
    );
    assert_eq!(judged, found.skills.iter().map(|library| library.refactored.candidates.len()).sum::<usize>());
    for library in &found.skills {
        assert!(!library.entries.is_empty(), "{library:?}");
        assert!(library.refactored.after.total() < library.refactored.before.total());
        assert!(library.rewritten.0 > 0 && library.rewritten.0 <= found.demonstrations.0);
        let several = library.entries.iter().filter(|entry| entry.motions > 1).count();
        assert_eq!(library.of_several_motions, several);
        // Only motions are refactored, and what is in the library has passed the gates.
        let judgements = library.entries.iter().map(|entry| entry.judgement.as_ref().unwrap());
        let gain = |judgement: &Judgement| judgement.figure("length").unwrap().value.unwrap();
        assert!(judgements.clone().all(|one| one.admitted && one.task_calls == 0 && gain(one) > 4.0));
        assert!(library.phases.is_some() && library.replay.action_error < 0.8, "{library:?}");
    }
    // Written, it is the same again; and so it is when it is run again.
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<MotorReport>(&text).unwrap()).unwrap(), text);

    let (nothing, _) = report(&prepared, &teacher, &["gates.min_gain=1e9"]);
    for candidate in nothing.skills.iter().flat_map(|library| &library.refactored.candidates) {
        let returns = candidate.judgement.figure("returns").unwrap();
        assert!(returns.details["rollouts"] == 4.0 && returns.details["control"] > 0.0);
        assert!(returns.limit.unwrap() <= 0.5 * returns.details["control"]);
    }
    assert!(nothing.skills.iter().all(|library| library.entries.is_empty() && library.rewritten == (0, 0)));
    assert_eq!(nothing.strict, found.strict);
    let phases = |report: &MotorReport| report.skills.iter().map(|library| library.phases).collect::<Vec<_>>();
    assert_eq!(phases(&nothing), phases(&found));
}
