//! Gates in a linear world in which everything is known: each gate rejects what it is for, and a good candidate passes.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod added_gate;
mod linear_world;
mod returns;
mod tiny;

use experiments::cycle::gates::{GateSettings, Gates, Judgement};
use experiments::cycle::verifier::Trial;
use report::Verdict;

use self::linear_world::{LinearEvidence, LinearWorld, Recording, STEPS, candidate};

/// Classes of the pairs of segments that the recording repeats.
const PAIRS: [[usize; 2]; 3] = [[0, 1], [2, 1], [2, 3]];

/// How many candidates a step may judge.
const JUDGED: usize = 8;

fn recording(seed: u64) -> Recording {
    Recording::new(seed, (0..72).flat_map(|at| PAIRS[at % PAIRS.len()]).collect()).unwrap()
}

/// The first segments of all pairs of some kinds.
fn calls(kinds: &[usize]) -> Vec<usize> {
    (0..72).filter(|at| kinds.contains(&(at % PAIRS.len()))).map(|at| 2 * at).collect()
}

/// A replacement by the call's own motion, without its jitter: what a faithful abstraction does.
fn faithful(recording: &Recording) -> Box<dyn Fn(usize, usize) -> Vec<f32> + '_> {
    Box::new(|_, first| recording.motion(&recording.classes[first..first + 2]))
}

fn judged(
    recording: &Recording,
    first_segments: &[usize],
    instead: Box<dyn Fn(usize, usize) -> Vec<f32> + '_>,
    settings: &GateSettings,
) -> Judgement {
    let evidence = LinearEvidence { recording, instead };
    let gates = Gates::new(evidence.scene(), settings, JUDGED, 5);
    gates.judge(&candidate(first_segments, 40.0)).unwrap()
}

#[test]
fn a_good_candidate_passes_all_gates() {
    for seed in 0..5 {
        let recording = recording(seed);
        let found = judged(&recording, &calls(&[0]), faithful(&recording), &GateSettings::default());
        assert!(found.admitted, "{found:?}");
        let names: Vec<&str> = found.figures.iter().map(|figure| figure.gate.as_str()).collect();
        assert_eq!(names, ["length", "soundness", "returns"]);
        assert!(found.figures.iter().all(|figure| figure.verdict == Verdict::Passed && figure.reason.is_empty()));
        let returns = found.figure("returns").unwrap();
        assert_eq!((returns.details["calls"], returns.details["rollouts"]), (24.0, 32.0));
        assert_eq!(returns.details["level"], 0.05 / JUDGED as f64);
        assert!(returns.low <= returns.value && returns.value <= returns.high && returns.high < returns.limit);
        assert_eq!((found.task_calls, found.motion_calls), (0, 24));
    }
}

#[test]
fn merging_motions_with_different_outcomes_is_rejected_by_soundness_alone() {
    for seed in 0..5 {
        let recording = recording(seed);
        // Half of the calls begin with a motion of class 0, the others with one of class 2; each is replayed faithfully.
        let judged = |settings: &GateSettings| judged(&recording, &calls(&[0, 1]), faithful(&recording), settings);
        let found = judged(&GateSettings::default());
        let rejecting: Vec<&str> =
            found.figures.iter().filter(|figure| figure.rejects()).map(|figure| figure.gate.as_str()).collect();
        assert_eq!(rejecting, ["soundness"], "{found:?}");
        assert!(!found.admitted && found.reasons()[0].contains("apart on average"), "{found:?}");
        // Nothing else would have noticed.
        let off = judged(&GateSettings { soundness: false, ..GateSettings::default() });
        assert!(off.admitted && off.figure("soundness").unwrap().verdict == Verdict::Inactive, "{off:?}");
    }
}

#[test]
fn a_replacement_with_another_return_is_rejected_by_the_return_gate_alone() {
    for seed in 0..5 {
        let recording = recording(seed);
        // All calls are alike, but the abstraction executes a motion of class 3 in the place of the one of class 0.
        let instead = || Box::new(|_, _| recording.motion(&[3, 1]));
        let found = judged(&recording, &calls(&[0]), instead(), &GateSettings::default());
        let rejecting: Vec<&str> =
            found.figures.iter().filter(|figure| figure.rejects()).map(|figure| figure.gate.as_str()).collect();
        assert_eq!(rejecting, ["returns"], "{found:?}");
        assert!(!found.admitted && found.reasons()[0].contains("returns change by"), "{found:?}");
        let off = judged(&recording, &calls(&[0]), instead(), &GateSettings { returns: false, ..Default::default() });
        assert!(off.admitted, "{off:?}");
    }
}

#[test]
fn a_small_gain_is_rejected_by_the_length_gate_alone() {
    let recording = recording(0);
    let evidence = LinearEvidence { recording: &recording, instead: faithful(&recording) };
    let judge = |settings: &GateSettings| {
        Gates::new(evidence.scene(), settings, JUDGED, 5).judge(&candidate(&calls(&[0]), 3.0)).unwrap()
    };
    let found = judge(&GateSettings::default());
    assert!(!found.admitted && found.figures.iter().filter(|figure| figure.rejects()).count() == 1, "{found:?}");
    assert!(found.figure("length").unwrap().rejects());
    assert!(judge(&GateSettings { length: false, ..GateSettings::default() }).admitted);
}

#[test]
fn too_few_calls_are_not_judged_as_preserving_returns() {
    let recording = recording(1);
    for count in [1, 2] {
        let found = judged(&recording, &calls(&[0])[..count], faithful(&recording), &GateSettings::default());
        let returns = found.figure("returns").unwrap();
        assert!(!found.admitted && returns.rejects() && returns.high.is_none(), "{found:?}");
        assert!(returns.reason.contains("too few to judge returns"), "{returns:?}");
        // Rollouts were made, and are not mistaken for calls.
        assert_eq!((returns.details["calls"], returns.details["rollouts"]), (count as f64, 32.0));
    }
}

#[test]
fn a_world_model_that_ignores_actions_admits_nothing() {
    let mut recording = recording(2);
    recording.world = LinearWorld::new(2).without_effects();
    let found = judged(&recording, &calls(&[0]), faithful(&recording), &GateSettings::default());
    let returns = found.figure("returns").unwrap();
    assert!(returns.rejects() && returns.reason.contains("does not notice standing still"), "{returns:?}");
    assert_eq!((returns.value, returns.details["control"]), (Some(0.0), 0.0));
    // Without the control it would be admitted.
    let off = GateSettings { control_share: 0.0, ..GateSettings::default() };
    assert!(!judged(&recording, &calls(&[0]), faithful(&recording), &off).figure("returns").unwrap().rejects());
}

/// Rollouts of a call are longer than the horizon, so they are chained; noise is the same on both sides and cancels.
#[test]
fn differences_of_values_are_those_of_the_closed_form() {
    let recording = recording(3);
    let evidence = LinearEvidence { recording: &recording, instead: faithful(&recording) };
    let verifier = evidence.scene().verifier;
    let firsts = calls(&[0, 1, 2]);
    let trials = |actions: &dyn Fn(usize) -> Vec<f32>| -> Vec<Trial> {
        firsts.iter().map(|first| Trial { frame: first * STEPS, actions: actions(*first) }).collect()
    };
    let recorded = trials(&|first| recording.rows(first..first + 2).to_vec());
    let other = trials(&|_| recording.motion(&[1, 3]));
    let values = |trials: &[Trial], steps: usize| verifier.values(trials, steps, 9).unwrap();
    for (at, (one, another)) in values(&recorded, 64).into_iter().zip(values(&other, 64)).enumerate() {
        let z = recording.latent(recorded[at].frame);
        let exact = recording.world.value(z, &other[at].actions) - recording.world.value(z, &recorded[at].actions);
        assert!((another - one - exact).abs() < 1e-3 * exact.abs().max(1.0), "{another} − {one} against {exact}");
    }
    // The same offset of all actions changes V by the same amount from every start.
    let offset = trials(&|first| recording.rows(first..first + 2).iter().map(|one| one + 0.5).collect());
    let exact = 0.5 * recording.world.sensitivity().iter().sum::<f64>();
    for (one, another) in values(&recorded, 64).into_iter().zip(values(&offset, 64)) {
        assert!((another - one - exact).abs() < 1e-3 * exact.abs().max(1.0), "{another} − {one} against {exact}");
    }
    // A trial that is cut is as long as the limit; and its value does not depend on the other trials.
    let cut: Vec<Trial> = recorded
        .iter()
        .cloned()
        .map(|mut trial| {
            trial.actions.truncate(9);
            trial
        })
        .collect();
    assert_eq!(values(&recorded, 3), values(&cut, 64));
    assert_eq!(values(&recorded[..2], 64), values(&recorded, 64)[..2]);
}
