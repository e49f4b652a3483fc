//! A library in which entries call each other, and candidates that failed at each gate.

use report::{Candidate, Entry, Expansion, Gate, Hole, Posterior, Verdict};

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
                expansions: vec![],
            }
        };
    let (item, place) = (("x0", "Lang"), ("x1", "Pose"));
    let mut library = vec![
        entry(
            "fn_0",
            "Lang -> Motion",
            &[item],
            "\\x0. seq[skill_1 (at x0 top), skill_3, skill_4, skill_5 0.15]",
            (131, 1211.4, 0.31),
            &[],
            1,
        ),
        entry(
            "fn_1",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[\n  fn_0 x0,\n  skill_7 x1,\n  skill_8 x1,\n  fn_3\n]",
            (92, 803.0, 0.22),
            &["fn_0", "fn_3"],
            1,
        ),
        entry(
            "fn_2",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[fn_1 x0 x1, skill_13]",
            (51, 164.2, 0.13),
            &["fn_1"],
            2,
        ),
        entry("fn_3", "Motion", &[], "seq[skill_9, skill_13]", (97, 88.1, 0.18), &[], 1),
        entry(
            "fn_4",
            "Lang -> Motion",
            &[item],
            "\\x0. seq[skill_14 (handle x0), skill_4, skill_10 (handle x0), fn_3]",
            (18, 71.9, 0.06),
            &["fn_3"],
            2,
        ),
        entry(
            "fn_5",
            "Lang -> Pose -> Motion",
            &[item, place],
            "\\x0. \\x1. seq[skill_1 (behind x0), skill_3, skill_11 x1, skill_13]",
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
            meaning: "skill_1 (at \"bowl\" top)\nskill_3\nskill_4\nskill_5 0.15".into(),
        },
        Expansion {
            call: "fn_0 \"wine bottle\"".into(),
            meaning: "skill_1 (at \"wine bottle\" top)\nskill_3\nskill_4\nskill_5 0.15".into(),
        },
    ];
    library[1].expansions = vec![Expansion {
        call: "fn_1 \"cream cheese\" (in \"bowl\")".into(),
        meaning:
            "skill_1 (at \"cream cheese\" top)\nskill_3\nskill_4\nskill_5 0.15\nskill_7 (in \"bowl\")\nskill_8 (in \
                  \"bowl\")\nskill_9\nskill_13"
                .into(),
    }];
    library[4].expansions = vec![Expansion {
        call: "fn_4 (part (at \"drawer\" top) \"cabinet\")".into(),
        meaning:
            "skill_14 (handle (part (at \"drawer\" top) \"cabinet\"))\nskill_4\nskill_10 (handle (part (at \"drawer\" \
                  top) \"cabinet\"))\nskill_9\nskill_13"
                .into(),
    }];
    library
}

pub(super) fn candidates() -> Vec<Candidate> {
    let gate = |verdict, value: Option<f64>, half: Option<f64>, limit| Gate {
        verdict,
        value,
        low: value.zip(half).map(|(value, half)| value - half),
        high: value.zip(half).map(|(value, half)| value + half),
        limit: Some(limit),
    };
    let judge = |passed| if passed { Verdict::Passed } else { Verdict::Failed };
    let mut all = Vec::new();
    for entry in library() {
        let k = all.len() as f64;
        all.push(Candidate {
            iteration: entry.iteration,
            name: Some(entry.name),
            body: entry.body,
            holes: entry.holes,
            ty: entry.ty,
            uses: entry.uses,
            soundness: gate(Verdict::Passed, Some(0.08 + 0.02 * k), None, 0.25),
            returns: gate(Verdict::Passed, Some(0.004 * k - 0.01), Some(0.018), 0.05),
            gain: gate(Verdict::Passed, Some(entry.gain_nats), None, 4.0),
            admitted: true,
            reason: String::new(),
        });
    }
    let refused = [
        (
            1,
            "seq[skill_1 left, skill_3]",
            0.41,
            None,
            52.0,
            "it merges motions that differ: D_φ 0.410 is above ε_t 0.250",
        ),
        (
            1,
            "\\x0. seq[x0, skill_4]",
            0.19,
            Some((0.071, 0.03)),
            33.1,
            "returns change by 0.071 on average, at most 0.101; wanted less than 0.050",
        ),
        (
            2,
            "seq[skill_5 0.15, skill_6]",
            0.12,
            Some((0.01, 0.02)),
            3.2,
            "it saves 3.20 nats, which is not more than 4",
        ),
        (
            3,
            "\\x0. seq[skill_12 x0, skill_9]",
            0.33,
            None,
            9.0,
            "it merges motions that differ: D_φ 0.330 is above ε_t 0.250",
        ),
        (3, "seq[skill_4, skill_4]", 0.05, Some((0.0, 0.01)), -1.4, "it makes everything longer by 1.40 nats"),
    ];
    for (iteration, body, soundness, returns, gain, reason) in refused {
        let returns = match returns {
            Some((value, half)) => gate(judge(value + half < 0.05), Some(value), Some(half), 0.05),
            None => gate(Verdict::NotReached, None, None, 0.05),
        };
        all.push(Candidate {
            iteration,
            name: None,
            body: body.into(),
            holes: body
                .starts_with('\\')
                .then(|| Hole { name: "x0".into(), ty: "Motion".into() })
                .into_iter()
                .collect(),
            ty: "Motion".into(),
            uses: 9,
            soundness: gate(judge(soundness < 0.25), Some(soundness), None, 0.25),
            returns,
            gain: gate(judge(gain > 4.0), Some(gain), None, 4.0),
            admitted: false,
            reason: reason.into(),
        });
    }
    all.sort_by_key(|candidate| candidate.iteration);
    all
}
