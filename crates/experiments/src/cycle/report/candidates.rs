//! Every candidate with the figures of all gates.

use std::collections::BTreeMap;

use report::{Candidate, Figure, Verdict};

use super::parameters::parameters;
use crate::cycle::gates::{Figures, GateSettings};
use crate::cycle::summary::{JudgedCandidate, RunSummary};

/// The candidates of all iterations, in the order in which they were judged.
pub(super) fn candidates(summary: &RunSummary, gates: &GateSettings) -> Vec<Candidate> {
    let rounds = summary.refactor.iter().zip(1..);
    rounds.flat_map(|(round, t)| round.candidates.iter().map(move |one| candidate(one, t, gates))).collect()
}

fn candidate(judged: &JudgedCandidate, iteration: u32, gates: &GateSettings) -> Candidate {
    let admitted = judged.figures.admitted;
    Candidate {
        iteration,
        name: if admitted { Some(judged.name.clone()) } else { None },
        body: judged.body.clone(),
        holes: parameters(&judged.body, &judged.principal_type, usize::MAX),
        ty: judged.principal_type.clone(),
        uses: judged.uses,
        figures: figures(&judged.figures, gates),
        admitted,
    }
}

/// The summary's figures of three fixed gates as a list. A summary that stores the list itself does not need this function.
fn figures(found: &Figures, gates: &GateSettings) -> Vec<Figure> {
    vec![length(found, gates), soundness(found, gates), returns(found, gates)]
}

fn length(found: &Figures, gates: &GateSettings) -> Figure {
    let off = Figure::inactive("length", "switched off by the settings");
    let figure = Figure { value: Some(found.gain), unit: "nats".to_owned(), ..off };
    if !gates.length {
        return figure;
    }
    let reason = format!("saves {:.2} nats; more than {} are needed", found.gain, gates.min_gain);
    decided(Figure { limit: Some(gates.min_gain), ..figure }, found.gain > gates.min_gain, reason)
}

fn soundness(found: &Figures, gates: &GateSettings) -> Figure {
    if !gates.soundness {
        return Figure::inactive("soundness", "switched off by the settings");
    }
    let Some(found) = found.soundness else {
        return Figure::inactive("soundness", "the candidate merges no motions that could be compared");
    };
    let reason = format!("merges motions {:.3} apart on average; at most {:.3} is allowed", found.mean, found.epsilon);
    let figure = Figure {
        value: Some(found.mean),
        limit: Some(found.epsilon),
        details: details(&[("pairs", found.pairs as f64), ("worst", found.worst)]),
        ..Figure::inactive("soundness", "")
    };
    decided(figure, found.mean <= found.epsilon, reason)
}

fn returns(figures: &Figures, gates: &GateSettings) -> Figure {
    if !gates.returns {
        return Figure::inactive("returns", "switched off by the settings");
    }
    let Some(found) = figures.returns else {
        let reason = figures.reasons.iter().find_map(|reason| reason.strip_prefix("the return gate is inactive: "));
        return Figure::inactive("returns", reason.unwrap_or("no returns could be compared"));
    };
    let reason = match figures.control {
        Some(0.0) => "the world model predicts no change even for standing still, so it cannot judge".to_owned(),
        _ => format!(
            "changes returns by {:.3} on average, at most {:.3}; less than {:.3} is allowed",
            found.size, found.bound, found.margin
        ),
    };
    let mut all = vec![("rollouts", found.rollouts as f64), ("signed mean", found.mean)];
    all.extend(figures.control.map(|control| ("standing still", control)));
    let figure = Figure {
        value: Some(found.size),
        low: None,
        high: Some(found.bound),
        limit: Some(found.margin),
        details: details(&all),
        ..Figure::inactive("returns", "")
    };
    decided(figure, found.equivalent, reason)
}

/// A figure with its verdict; the reason stays only if the gate rejects.
fn decided(figure: Figure, passed: bool, reason: String) -> Figure {
    match passed {
        true => Figure { verdict: Verdict::Passed, reason: String::new(), ..figure },
        false => Figure { verdict: Verdict::Failed, reason, ..figure },
    }
}

fn details(numbers: &[(&str, f64)]) -> BTreeMap<String, f64> {
    numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::equivalence::Equivalence;
    use crate::cycle::gates::Soundness;
    use crate::cycle::report::fixture;

    fn found(gain: f64, mean: f64, bound: f64) -> Figures {
        let soundness = Soundness { mean, worst: 2.0 * mean, epsilon: 0.25, pairs: 30 };
        let (size, equivalent) = (bound / 2.0, bound < 0.05);
        let returns =
            Equivalence { mean: 0.0, low: -bound, high: bound, size, bound, margin: 0.05, rollouts: 32, equivalent };
        Figures {
            soundness: Some(soundness),
            returns: Some(returns),
            control: Some(0.2),
            gain,
            task_calls: 0,
            motion_calls: 9,
            admitted: gain > 4.0 && mean <= 0.25 && equivalent,
            reasons: Vec::new(),
        }
    }

    fn judged(figures: Figures) -> JudgedCandidate {
        JudgedCandidate {
            name: "fn_0".to_owned(),
            principal_type: "Lang -> Motion".to_owned(),
            body: "\\x0. seq[pick x0, lift x0]".to_owned(),
            uses: 9,
            figures,
        }
    }

    #[test]
    fn what_is_admitted_has_a_name_and_what_is_rejected_a_reason() {
        let mut summary = fixture::summary();
        summary.refactor[0].candidates = vec![judged(found(9.0, 0.1, 0.02))];
        summary.refactor[1].candidates =
            vec![judged(found(3.0, 0.1, 0.02)), judged(found(9.0, 0.3, 0.02)), judged(found(9.0, 0.1, 0.07))];
        let all = candidates(&summary, &GateSettings::default());
        assert_eq!(all.iter().map(|one| one.iteration).collect::<Vec<_>>(), [1, 2, 2, 2]);
        assert_eq!(all[0].name.as_deref(), Some("fn_0"));
        assert!(all[0].admitted && all[0].rejections().is_empty());
        assert_eq!((all[0].holes[0].name.as_str(), all[0].holes[0].ty.as_str()), ("x0", "Lang"));
        for (candidate, gate) in all[1..].iter().zip(["length", "soundness", "returns"]) {
            let reasons = candidate.rejections();
            assert!(!candidate.admitted && candidate.name.is_none());
            assert!(reasons.len() == 1 && reasons[0].starts_with(gate), "{reasons:?}");
        }
    }

    #[test]
    fn gates_that_are_off_or_cannot_judge_are_inactive_with_a_reason() {
        let off = GateSettings { length: false, soundness: false, returns: false, ..GateSettings::default() };
        for figure in figures(&found(1.0, 0.9, 0.9), &off) {
            assert_eq!((figure.verdict, figure.reason.as_str()), (Verdict::Inactive, "switched off by the settings"));
        }
        let reasons = vec!["the return gate is inactive: the dataset has no reward".to_owned()];
        let silent = Figures { soundness: None, returns: None, reasons, ..found(9.0, 0.1, 0.01) };
        let list = figures(&silent, &GateSettings::default());
        assert_eq!(list[1].verdict, Verdict::Inactive);
        assert_eq!(list[2], Figure::inactive("returns", "the dataset has no reward"));
    }
}
