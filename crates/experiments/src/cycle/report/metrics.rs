//! The tables of held-out figures: policies against each other, and classes of segments against their baseline.
//!
//! Rows of policies are the figures that their heads measured, columns are arms, so neither a new head nor a new arm changes
//! this module.

use report::{Arm, Better, Estimate, Metric, SKILL_GROUP};
use skills::PhaseScores;

use crate::cycle::driver::arms;
use crate::cycle::summary::{PolicyResult, RunSummary};

const CLASSES: &str = "our classes";
const ACTIONS: &str = "classes by actions";
const SKILLS: &str = "our skills";

/// Descriptions of the arms that this module knows, in the order of their columns.
const ARMS: [(&str, &str); 6] = [
    (arms::WITH, "The policy that was trained on programs written with the last library."),
    (
        arms::WITHOUT,
        "The policy of t = 1: the same data, sizes, start, number of steps and horizon in segments, on programs without a \
         library.",
    ),
    (
        arms::NO_PROGRAMS,
        "The decoder alone: the same data, sizes, start and number of steps, with the instruction as one token instead of a \
         program.",
    ),
    (CLASSES, "Classes of held-out segments under the kernel."),
    (ACTIONS, "As many classes of the same segments by KMeans on their actions: the matched baseline."),
    (SKILLS, "Classes together with the gripper command."),
];

/// The rows that the head of the page shows, by group and name.
const HEADLINES: [(&str, &str); 3] =
    [("emitter (TPE)", "exact tasks"), ("decoder (LCAD)", "chunk error"), (SKILL_GROUP, "NMI with phases")];

/// The arms that occur in some rows.
pub(super) fn arms_of(metrics: &[Metric]) -> Vec<Arm> {
    let occurs = |name: &str| metrics.iter().any(|metric| metric.value(name).is_some());
    let listed = ARMS.into_iter().filter(|(name, _)| occurs(name));
    listed.map(|(name, description)| Arm { name: name.to_owned(), description: description.to_owned() }).collect()
}

/// All rows, by group.
pub(super) fn metrics(summary: &RunSummary) -> Vec<Metric> {
    let mut rows = skill_rows(summary);
    rows.extend(policy_rows(&summary.arms));
    rows
}

/// The figures of all heads: a row for each, a value for each policy that has it.
fn policy_rows(policies: &[PolicyResult]) -> Vec<Metric> {
    let mut rows: Vec<Metric> = Vec::new();
    for policy in policies {
        for measure in &policy.measures {
            let value = (policy.name.clone(), Estimate::exact(measure.value));
            let same = |row: &&mut Metric| row.group == measure.group && row.name == measure.name;
            match rows.iter_mut().find(same) {
                Some(row) => row.values.push(value),
                None => rows.push(Metric {
                    oracle: measure.name.contains("oracle"),
                    paper: measure.paper.clone(),
                    ..row(&measure.group, &measure.name, measure.better, vec![value], &measure.note)
                }),
            }
        }
    }
    rows
}

/// Classes and skills of held-out frames against phases, tasks and recorded actions.
fn skill_rows(summary: &RunSummary) -> Vec<Metric> {
    let mut rows = Vec::new();
    if let Some(matched) = &summary.classes {
        let scores: Vec<(&str, &PhaseScores)> = vec![(CLASSES, &matched.kernel), (ACTIONS, &matched.actions)];
        let compared = |name: &str, of: fn(&PhaseScores) -> f64, note: &str| {
            let value = |(arm, scores): &(&str, &PhaseScores)| ((*arm).to_owned(), Estimate::exact(of(scores)));
            row(SKILL_GROUP, name, Better::Higher, scores.iter().map(value).collect(), note)
        };
        rows.push(compared("NMI with phases", |scores| scores.nmi, "held-out frames"));
        rows.push(compared("ARI with phases", |scores| scores.ari, "held-out frames"));
        rows.push(compared("purity", |scores| scores.purity, "share of frames with the main phase of their class"));
    }
    let ours = |name: &str, better, value: f64, note: &str| {
        row(SKILL_GROUP, name, better, vec![(SKILLS.to_owned(), Estimate::exact(value))], note)
    };
    // Skills are classes together with the gripper command, which the baseline lacks: they get separate rows.
    if let Some(phases) = &summary.skill_phases {
        rows.push(ours("NMI of skills with phases", Better::Higher, phases.nmi, "with the gripper command"));
        rows.push(ours("purity of skills", Better::Higher, phases.purity, "with the gripper command"));
        let tolerance = format!("cuts of the segmentation, tolerance of {} frames", phases.tolerance);
        rows.push(ours("boundary F1", Better::Higher, phases.boundary_f1, &tolerance));
    }
    let note = "held-out frames; skills that serve several tasks lower it";
    rows.push(ours("NMI with tasks", Better::Neither, summary.skill_tasks.nmi, note));
    let replay = summary.replay.action_error;
    rows.push(ours("replay error of actions", Better::Lower, replay, "share of the norm of the recorded actions"));
    rows
}

fn row(group: &str, name: &str, better: Better, values: Vec<(String, Estimate)>, note: &str) -> Metric {
    Metric {
        group: group.to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        better,
        oracle: false,
        headline: HEADLINES.contains(&(group, name)),
        values,
        paper: None,
        note: note.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    fn find<'a>(rows: &'a [Metric], group: &str, name: &str) -> &'a Metric {
        rows.iter().find(|row| row.group == group && row.name == name).unwrap()
    }

    #[test]
    fn policies_are_the_arms_and_not_those_of_iterations() {
        let summary = fixture::summary();
        let rows = metrics(&summary);
        let exact = find(&rows, "emitter (TPE)", "exact programs");
        assert_eq!(exact.value(arms::WITH), Some(Estimate::exact(0.60)));
        assert_eq!(exact.value(arms::WITHOUT), Some(Estimate::exact(0.50)));
        assert_eq!(exact.value(arms::NO_PROGRAMS), None, "it writes no programs");
        let chunk = find(&rows, "decoder (LCAD)", "chunk error");
        assert_eq!(chunk.values.len(), 3);
    }

    #[test]
    fn figures_with_programs_of_the_episode_itself_are_marked_as_oracles() {
        let rows = metrics(&fixture::summary());
        let oracles: Vec<&str> = rows.iter().filter(|row| row.oracle).map(|row| row.name.as_str()).collect();
        assert_eq!(oracles, ["velocity error, oracle programs"]);
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
        assert_eq!(groups, [SKILL_GROUP, "emitter (TPE)", "decoder (LCAD)"]);
        let named: Vec<String> = arms_of(&rows).into_iter().map(|arm| arm.name).collect();
        assert_eq!(named, [arms::WITH, arms::WITHOUT, arms::NO_PROGRAMS, CLASSES, ACTIONS, SKILLS]);
        assert!(rows.iter().flat_map(|row| &row.values).all(|(arm, _)| named.contains(arm)));
    }

    #[test]
    fn without_phases_there_are_no_rows_about_them() {
        let mut summary = fixture::summary();
        (summary.skill_phases, summary.classes) = (None, None);
        let rows = metrics(&summary);
        assert!(rows.iter().all(|row| !row.name.contains("phases")));
        assert!(arms_of(&rows).iter().all(|arm| arm.name != ACTIONS));
    }
}
