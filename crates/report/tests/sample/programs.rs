//! A library in which entries call each other, and candidates that each gate rejects.

use std::collections::BTreeMap;

use report::{Candidate, Entry, Expansion, Figure, Hole, Posterior, Verdict};

pub(super) fn of_task(task: usize) -> &'static str {
    match task {
        0 => "fn_4 (part (at \"drawer\" middle) \"cabinet\")",
        3 => {
            "seq[\n  fn_4 (part (at \"drawer\" top) \"cabinet\"),\n  fn_1 \"bowl\" (in (part (at \"drawer\" top) \"cabinet\"))\n]"
        }
        5 => "fn_5 \"plate\" (front \"stove\")",
        _ => "fn_2 \"bowl\" (on \"plate\")",
    }
}

pub(super) fn library() -> Vec<Entry> {
    let entry =
        |name: &str, ty: &str, holes: &[(&str, &str)], body: &str, figures: (u64, f64, f64), calls: &[&str], t| {
            let (uses, gain_nats, share) = figures;
            Entry {
                name: name.into(),
                ty: ty.into(),
                body: body.into(),
                holes: holes.iter().map(|(name, ty)| Hole { name: (*name).into(), ty: (*ty).into() }).collect(),
                uses,
                gain_nats,
                posterior: Some(Posterior { mean: share, low: share * 0.72, high: share * 1.31 }),
                calls: calls.iter().map(|call| (*call).into()).collect(),
                iteration: t,
                kind: Some(kind_of(body).to_owned()),
                expansions: vec![],
            }
        };
    let (item, place) = (("x0", "Lang"), ("x1", "Pose"));
    let mut library = vec![
        entry(
            "fn_0",
            "Lang -> Motion",
            &[item],
            "\\x0. seq[skill_0 (at x0 top), skill_2, skill_3, skill_4 0.15]",
            (131, 1211.4, 0.31),
            &[],
            1,
        ),
        entry(
            "fn_1",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[\n  fn_0 x0,\n  skill_6 x1,\n  skill_7 x1,\n  fn_3\n]",
            (92, 803.0, 0.22),
            &["fn_0", "fn_3"],
            1,
        ),
        entry(
            "fn_2",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[fn_1 x0 x1, skill_12]",
            (51, 164.2, 0.13),
            &["fn_1"],
            2,
        ),
        entry("fn_3", "Motion", &[], "seq[skill_8, skill_12]", (97, 88.1, 0.18), &[], 1),
        entry(
            "fn_4",
            "Lang -> Motion",
            &[item],
            "\\x0. seq[skill_13 (handle x0), skill_3, skill_9 (handle x0), fn_3]",
            (18, 71.9, 0.06),
            &["fn_3"],
            2,
        ),
        entry(
            "fn_5",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[skill_0 (behind x0), skill_2, skill_10 x1, skill_12]",
            (6, 11.3, 0.03),
            &[],
            2,
        ),
        entry(
            "fn_6",
            "(Pose -> Motion) -> Nat -> Motion",
            &[("x0", "Pose -> Motion"), ("x1", "Nat")],
            "\\x0. \\x1. repeat(seq[x0 left, x0 right], x1)",
            (5, 6.2, 0.02),
            &[],
            3,
        ),
    ];
    library[0].expansions = vec![
        Expansion {
            call: "fn_0 \"bowl\"".into(),
            meaning: "skill_0 (at \"bowl\" top)\nskill_2\nskill_3\nskill_4 0.15".into(),
        },
        Expansion {
            call: "fn_0 \"wine bottle\"".into(),
            meaning: "skill_0 (at \"wine bottle\" top)\nskill_2\nskill_3\nskill_4 0.15".into(),
        },
    ];
    library[1].expansions = vec![Expansion {
        call: "fn_1 \"cream cheese\" (in \"bowl\")".into(),
        meaning:
            "skill_0 (at \"cream cheese\" top)\nskill_2\nskill_3\nskill_4 0.15\nskill_6 (in \"bowl\")\nskill_7 (in \
                  \"bowl\")\nskill_8\nskill_12"
                .into(),
    }];
    library[4].expansions = vec![Expansion {
        call: "fn_4 (part (at \"drawer\" top) \"cabinet\")".into(),
        meaning:
            "skill_13 (handle (part (at \"drawer\" top) \"cabinet\"))\nskill_3\nskill_9 (handle (part (at \"drawer\" \
                  top) \"cabinet\"))\nskill_8\nskill_12"
                .into(),
    }];
    library
}

fn kind_of(body: &str) -> &'static str {
    match (body.starts_with('\\'), body.contains("repeat")) {
        (false, _) => "constant",
        (_, true) => "partial application",
        _ => "several skills",
    }
}

pub(super) fn candidates() -> Vec<Candidate> {
    let mut all = Vec::new();
    for entry in library() {
        let k = all.len() as f64;
        let figures = vec![length(entry.gain_nats), soundness(0.08 + 0.02 * k), returns(0.004 * k + 0.001, 0.012)];
        let Entry { iteration, body, holes, ty, uses, .. } = entry;
        all.push(Candidate { iteration, name: Some(entry.name), body, holes, ty, uses, figures, admitted: true });
    }
    let inactive = Figure::inactive("returns", "no call can be replaced by another motion");
    let rejected = [
        (1, "seq[skill_0 left, skill_2]", vec![length(52.0), soundness(0.41), inactive.clone()]),
        (1, "\\x0. seq[x0, skill_3]", vec![length(33.1), soundness(0.19), returns(0.071, 0.03)]),
        (2, "seq[skill_4 0.15, skill_5]", vec![length(3.2), soundness(0.12), returns(0.01, 0.02)]),
        (3, "\\x0. seq[skill_11 x0, skill_8]", vec![length(9.0), soundness(0.33), returns(0.06, 0.04)]),
        (3, "seq[skill_3, skill_3]", vec![length(-1.4), soundness(0.05), inactive]),
    ];
    for (iteration, body, figures) in rejected {
        let hole = Hole { name: "x0".into(), ty: "Motion".into() };
        all.push(Candidate {
            iteration,
            name: None,
            body: body.into(),
            holes: body.starts_with('\\').then_some(hole).into_iter().collect(),
            ty: "Motion".into(),
            uses: 9,
            figures,
            admitted: false,
        });
    }
    all.sort_by_key(|candidate| candidate.iteration);
    all
}

fn soundness(value: f64) -> Figure {
    let reason = format!("the merged motions are {value:.3} apart on average; at most 0.250 is allowed");
    let figure = judged("soundness", value <= 0.25, value, 0.25, reason);
    let details = BTreeMap::from([("pairs".into(), 200.0), ("worst".into(), 2.3 * value)]);
    Figure { low: Some(value * 0.9), high: Some(value * 1.1), details, ..figure }
}

fn returns(value: f64, half: f64) -> Figure {
    let bound = value + half;
    let reason = format!("the return changes by {value:.3} on average, at most {bound:.3}; less than 0.050 is allowed");
    let figure = judged("returns", bound < 0.05, value, 0.05, reason);
    Figure { high: Some(bound), details: BTreeMap::from([("rollouts".into(), 32.0)]), ..figure }
}

fn length(value: f64) -> Figure {
    let reason = format!("the candidate saves {value:.2} nats; more than 4 are needed");
    Figure { unit: "nats".into(), ..judged("length", value > 4.0, value, 4.0, reason) }
}

fn judged(gate: &str, passed: bool, value: f64, limit: f64, reason: String) -> Figure {
    Figure {
        verdict: if passed { Verdict::Passed } else { Verdict::Failed },
        value: Some(value),
        limit: Some(limit),
        ..Figure::inactive(gate, if passed { String::new() } else { reason })
    }
}
