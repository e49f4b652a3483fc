//! Every candidate with the figures of all gates.

use report::{Candidate, Hole};

use crate::cycle::summary::{JudgedCandidate, RunSummary};

/// The candidates of all iterations, in the order in which they were judged.
pub(super) fn candidates(summary: &RunSummary) -> Vec<Candidate> {
    let rounds = summary.refactor.iter().zip(1..);
    rounds.flat_map(|(round, t)| round.candidates.iter().map(move |one| candidate(one, t))).collect()
}

fn candidate(judged: &JudgedCandidate, iteration: u32) -> Candidate {
    let admitted = judged.judgement.admitted;
    let holes = judged.parameters.iter().map(|one| Hole { name: one.name.clone(), ty: one.ty.clone() });
    Candidate {
        iteration,
        name: if admitted { Some(judged.name.clone()) } else { None },
        body: judged.body.clone(),
        holes: holes.collect(),
        ty: judged.principal_type.clone(),
        uses: judged.uses,
        figures: judged.judgement.figures.clone(),
        admitted,
    }
}

#[cfg(test)]
mod tests {
    use compression::Parameter;
    use report::{Figure, Verdict};

    use super::*;
    use crate::cycle::gates::Judgement;
    use crate::cycle::report::fixture;

    fn judged(rejected_by: Option<&str>) -> JudgedCandidate {
        let figure = |gate: &str| match rejected_by == Some(gate) {
            true => Figure { verdict: Verdict::Failed, ..Figure::inactive(gate, "too large") },
            false => Figure { verdict: Verdict::Passed, ..Figure::inactive(gate, "") },
        };
        let figures = ["length", "soundness", "a gate of the future"].map(figure).to_vec();
        JudgedCandidate {
            name: "fn_0".to_owned(),
            principal_type: "Lang -> Motion".to_owned(),
            body: "\\x0. seq[pick x0, lift x0]".to_owned(),
            parameters: vec![Parameter { name: "x0".to_owned(), ty: "Lang".to_owned() }],
            uses: 9,
            judgement: Judgement { figures, task_calls: 0, motion_calls: 9, admitted: rejected_by.is_none() },
        }
    }

    #[test]
    fn admitted_candidates_have_a_name_and_rejected_ones_a_reason() {
        let mut summary = fixture::summary();
        summary.refactor[0].candidates = vec![judged(None)];
        summary.refactor[1].candidates = vec![judged(Some("length")), judged(Some("a gate of the future"))];
        let all = candidates(&summary);
        assert_eq!(all.iter().map(|one| one.iteration).collect::<Vec<_>>(), [1, 2, 2]);
        assert_eq!(all[0].name.as_deref(), Some("fn_0"));
        assert!(all[0].admitted && all[0].rejections().is_empty());
        assert_eq!((all[0].holes[0].name.as_str(), all[0].holes[0].ty.as_str()), ("x0", "Lang"));
        for (candidate, gate) in all[1..].iter().zip(["length", "a gate of the future"]) {
            let reasons = candidate.rejections();
            assert!(!candidate.admitted && candidate.name.is_none());
            assert!(reasons.len() == 1 && reasons[0].starts_with(gate), "{reasons:?}");
        }
    }
}
