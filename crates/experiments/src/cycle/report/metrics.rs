//! The tables of held-out figures: policies against each other, and skills against their baselines.
//!
//! Rows are functions of the scores, columns are arms. Another policy is one more element of [`policies`].

use report::{Arm, Better, Estimate, Metric, SKILL_GROUP};

use crate::cycle::summary::RunSummary;
use crate::cycle::wake::WakeScores;

const WITH_LIBRARY: &str = "with library";
const WITHOUT_LIBRARY: &str = "without library";
const CLASSES: &str = "our classes";
const AMORTIZER: &str = "k_χ";

/// Groups of rows about the policy.
const EMITTER: &str = "emitter (TPE)";
const DECODER: &str = "decoder (LCAD)";
const POLICY: &str = "policy (TPE, then LCAD)";

/// All arms, in the order of their columns.
const ARMS: [(&str, &str); 4] = [
    (WITH_LIBRARY, "The policy that was trained on programs written with the last library."),
    (
        WITHOUT_LIBRARY,
        "The policy of t = 1: trained from the same start for as many steps, on programs without a library.",
    ),
    (CLASSES, "Segments clustered under the kernel, with the gripper command."),
    (AMORTIZER, "KMeans on the amortizer’s embeddings of held-out fragments, with as many clusters as tasks."),
];

/// The arms that occur in some rows.
pub(super) fn arms(metrics: &[Metric]) -> Vec<Arm> {
    let occurs = |name: &str| metrics.iter().any(|metric| metric.value(name).is_some());
    let listed = ARMS.into_iter().filter(|(name, _)| occurs(name));
    listed.map(|(name, description)| Arm { name: name.to_owned(), description: description.to_owned() }).collect()
}

/// All rows, by group.
pub(super) fn metrics(summary: &RunSummary) -> Vec<Metric> {
    let mut rows = skill_rows(summary);
    rows.extend(policy_rows(&policies(summary)));
    rows.extend(amortizer_rows(summary));
    rows
}

/// The policies that are compared.
fn policies(summary: &RunSummary) -> Vec<(&'static str, &WakeScores)> {
    vec![(WITH_LIBRARY, &summary.with_library.scores), (WITHOUT_LIBRARY, &summary.without_library.scores)]
}

fn policy_rows(policies: &[(&str, &WakeScores)]) -> Vec<Metric> {
    let row = |group: &str, name: &str, better, of: fn(&WakeScores) -> f64, note: &str| {
        let value = |(arm, scores): &(&str, &WakeScores)| ((*arm).to_owned(), Estimate::exact(of(scores)));
        row(group, name, better, policies.iter().map(value).collect(), note)
    };
    let oracle = "programs of the episode itself; mean squared error in standardised units";
    let emitted = "programs that the policy emits; mean squared error in standardised units";
    vec![
        Metric {
            paper: Some("0.812–0.904".to_owned()),
            ..row(
                EMITTER,
                "token accuracy",
                Better::Higher,
                |scores| scores.token_accuracy,
                "task and motion; the paper’s programs are not public",
            )
        },
        row(EMITTER, "token accuracy of tasks", Better::Higher, |scores| scores.task_accuracy, ""),
        row(
            EMITTER,
            "token accuracy of skills and entries",
            Better::Higher,
            |scores| scores.structure_accuracy,
            "names and syntax in motions",
        ),
        row(
            EMITTER,
            "token accuracy of numbers",
            Better::Higher,
            |scores| scores.number_accuracy,
            "durations and single numbers of twists in motions",
        ),
        headline(row(EMITTER, "exact match", Better::Higher, |scores| scores.exact, "task and motion, by beam search")),
        row(EMITTER, "exact match of tasks", Better::Higher, |scores| scores.task_exact, "by beam search"),
        row(EMITTER, "unknown tokens", Better::Lower, |scores| scores.unknown, "share of tokens; they count as errors"),
        Metric {
            oracle: true,
            paper: Some("0.090–0.113".to_owned()),
            ..row(
                DECODER,
                "velocity error",
                Better::Lower,
                |scores| scores.velocity,
                &format!("{oracle}; the paper does not define its error"),
            )
        },
        Metric {
            oracle: true,
            ..row(
                DECODER,
                "chunk error",
                Better::Lower,
                |scores| scores.chunk,
                &format!("{oracle}, after all Euler steps"),
            )
        },
        headline(row(POLICY, "chunk error", Better::Lower, |scores| scores.own_chunk, emitted)),
    ]
}

/// Skills of held-out frames against phases, tasks and recorded actions.
fn skill_rows(summary: &RunSummary) -> Vec<Metric> {
    let ours = |name: &str, better, value: f64, note: &str| {
        row(SKILL_GROUP, name, better, vec![(CLASSES.to_owned(), Estimate::exact(value))], note)
    };
    let mut rows = Vec::new();
    if let Some(phases) = &summary.skill_phases {
        let tolerance = format!("tolerance of {} frames", phases.tolerance);
        rows.push(headline(ours("NMI with phases", Better::Higher, phases.nmi, "held-out frames")));
        rows.push(ours("ARI with phases", Better::Higher, phases.ari, "held-out frames"));
        rows.push(ours("purity", Better::Higher, phases.purity, "share of frames with the main phase of their skill"));
        rows.push(ours("boundary F1", Better::Higher, phases.boundary_f1, &tolerance));
    }
    let note = "held-out frames; skills that serve several tasks lower it";
    rows.push(ours("NMI with tasks", Better::Neither, summary.skill_tasks.nmi, note));
    let replay = summary.replay.action_error;
    rows.push(ours("replay error of actions", Better::Lower, replay, "share of the norm of the recorded actions"));
    rows
}

/// The amortizer of the last iteration against tasks and phases.
fn amortizer_rows(summary: &RunSummary) -> Vec<Metric> {
    let Some(sleep) = summary.sleep.last() else { return Vec::new() };
    let agreement = [("NMI with tasks", Some(sleep.task)), ("NMI with phases", sleep.phase)].into_iter();
    let found = agreement.filter_map(|(name, agreement)| Some((name, agreement?.nmi)));
    let value = |nmi: f64| vec![(AMORTIZER.to_owned(), Estimate::exact(nmi))];
    let note = "held-out fragments, last iteration";
    found.map(|(name, nmi)| row("amortizer (k_χ)", name, Better::Higher, value(nmi), note)).collect()
}

fn row(group: &str, name: &str, better: Better, values: Vec<(String, Estimate)>, note: &str) -> Metric {
    Metric {
        group: group.to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        better,
        oracle: false,
        headline: false,
        values,
        paper: None,
        note: note.to_owned(),
    }
}

/// A row that the head of the page shows, too.
fn headline(metric: Metric) -> Metric {
    Metric { headline: true, ..metric }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    fn find<'a>(rows: &'a [Metric], group: &str, name: &str) -> &'a Metric {
        rows.iter().find(|row| row.group == group && row.name == name).unwrap()
    }

    #[test]
    fn policies_are_those_with_the_last_library_and_without_any() {
        let summary = fixture::summary();
        let rows = metrics(&summary);
        let exact = find(&rows, EMITTER, "exact match");
        // The final policy, and not that of the last iteration, which has the library before.
        assert_eq!(exact.value(WITH_LIBRARY), Some(Estimate::exact(summary.with_library.scores.exact)));
        assert_eq!(exact.value(WITHOUT_LIBRARY), Some(Estimate::exact(summary.wake[0].scores.exact)));
        assert!(exact.values.iter().all(|(_, value)| value.mean != summary.wake[1].scores.exact));
    }

    #[test]
    fn figures_with_programs_of_the_episode_itself_are_marked_as_oracles() {
        let rows = metrics(&fixture::summary());
        let oracles: Vec<_> =
            rows.iter().filter(|row| row.oracle).map(|row| (row.group.as_str(), row.name.as_str())).collect();
        assert_eq!(oracles, [(DECODER, "velocity error"), (DECODER, "chunk error")]);
        assert!(
            rows.iter().filter(|row| row.headline).all(|row| !row.oracle),
            "the head shows what the policy achieves"
        );
    }

    #[test]
    fn rows_of_a_group_follow_each_other_and_every_value_has_an_arm() {
        let rows = metrics(&fixture::summary());
        let mut groups: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
        groups.dedup();
        assert_eq!(groups, [SKILL_GROUP, EMITTER, DECODER, POLICY, "amortizer (k_χ)"]);
        let arms: Vec<String> = arms(&rows).into_iter().map(|arm| arm.name).collect();
        assert_eq!(arms, [WITH_LIBRARY, WITHOUT_LIBRARY, CLASSES, AMORTIZER]);
        assert!(rows.iter().flat_map(|row| &row.values).all(|(arm, _)| arms.contains(arm)));
    }

    #[test]
    fn another_policy_is_another_column_of_every_row() {
        let summary = fixture::summary();
        let scores = &summary.wake[1].scores;
        for row in policy_rows(&[(WITH_LIBRARY, scores), ("no programs", scores)]) {
            assert_eq!(
                row.values.iter().map(|(arm, _)| arm.as_str()).collect::<Vec<_>>(),
                [WITH_LIBRARY, "no programs"]
            );
        }
    }

    #[test]
    fn without_phases_there_are_no_rows_about_them() {
        let mut summary = fixture::summary();
        summary.skill_phases = None;
        summary.sleep.clear();
        let rows = metrics(&summary);
        assert!(rows.iter().all(|row| !row.name.contains("phases") && row.group != "amortizer (k_χ)"));
        assert!(arms(&rows).iter().all(|arm| arm.name != AMORTIZER));
    }
}
