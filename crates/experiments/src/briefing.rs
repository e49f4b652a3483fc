//! What a user should know before anything is trained: how the data is divided, what is known of the robot, and what a run
//! will have to do without.
//!
//! A run takes hours, and whoever looks at its report must not learn there that instructions were not understood or that a gate
//! was inactive from the beginning. [`briefing`] says it all at the start, from the dataset alone.

use std::collections::BTreeSet;

use dataset::{Control, Group, GroupKind, RobotLayout};
use language::{Signature, TermStore, instruction};

use crate::prepared::{Prepared, first_few};

/// Sentences for the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Briefing {
    /// What the run is about: data and robot.
    pub lines: Vec<String>,
    /// What differs from what a user may expect.
    pub notes: Vec<String>,
}

/// What to say at the start of a run on a dataset.
pub fn briefing(prepared: &Prepared) -> Briefing {
    let Briefing { lines, mut notes } = of_data(prepared);
    if !prepared.has_rewards() {
        notes.push(
            "there are no rewards: the return gate is inactive, and candidates are judged by the other gates alone"
                .to_owned(),
        );
    }
    if !prepared.source.dataset.roles().cameras.is_empty()
        && let Some(why) = prepared.source.missing_pictures()
    {
        notes.push(format!(
            "the report will have no pictures, because they cannot be read: {why}; cached features are used"
        ));
    }
    Briefing { lines, notes }
}

/// What to say at the start of a single phase: the same, but for gates and the report, which a phase does not have.
pub fn phase_briefing(prepared: &Prepared) -> Briefing {
    let Briefing { lines, mut notes } = of_data(prepared);
    if !prepared.has_rewards() {
        notes.push("there are no rewards: no returns are learned".to_owned());
    }
    Briefing { lines, notes }
}

/// What is known of data, robot and instructions.
fn of_data(prepared: &Prepared) -> Briefing {
    let mut lines = vec![data_line(prepared)];
    lines.extend(robot_lines(prepared.robot()));
    let mut notes = prepared.notes.clone();
    notes.extend(prepared.robot().notes().cloned());
    notes.extend(instruction_notes(&instructions(prepared)));
    Briefing { lines, notes }
}

fn data_line(prepared: &Prepared) -> String {
    let (split, dataset) = (&prepared.split, &prepared.source.dataset);
    format!(
        "{}: {} training and {} held-out episodes of {} tasks, {} frames per second",
        prepared.source.name,
        split.train.len(),
        split.held_out.len(),
        instructions(prepared).len(),
        dataset.info().fps
    )
}

/// What commands of the robot mean, one line for each group, and where the evidence is.
fn robot_lines(robot: &RobotLayout) -> Vec<String> {
    let line = |group: &Group| {
        let columns = match group.actions.len() {
            1 => "1 action column".to_owned(),
            count => format!("{count} action columns"),
        };
        let meaning = match (group.kind, group.control) {
            (GroupKind::Gripper, _) => "which opens and closes it",
            (GroupKind::Other, _) => "values to set",
            (_, Control::Absolute) => "target positions",
            (_, Control::Relative) => "changes of position",
            (_, Control::Velocity) => "velocities",
        };
        format!("robot, {}: {columns}, {meaning}", group.name)
    };
    let evidence = "robot: `refactor-vla data inspect` shows the evidence for this".to_owned();
    robot.groups.iter().map(line).chain((!robot.groups.is_empty()).then_some(evidence)).collect()
}

/// The instructions of all episodes that are used, each once, in the order of tasks.
fn instructions(prepared: &Prepared) -> Vec<String> {
    let (split, dataset) = (&prepared.split, &prepared.source.dataset);
    let used = split.train.iter().chain(&split.held_out).map(|episode| dataset.spans()[episode.at()].task);
    let tasks: BTreeSet<_> = used.collect();
    tasks.iter().filter_map(|task| dataset.tasks().get(task.at()).cloned()).collect()
}

/// Which instructions the grammar does not understand, and what becomes of them.
fn instruction_notes(instructions: &[String]) -> Vec<String> {
    let mut store = TermStore::new();
    let base = Signature::general(&mut store);
    let (mut unknown, mut partly) = (Vec::new(), Vec::new());
    for text in instructions {
        match instruction::understand(text, &mut store, &base) {
            Ok(found) if found.missing.is_empty() => {}
            Ok(found) => partly.push(format!("{text} (without \"{}\")", found.missing.join("\", \""))),
            Err(_) => unknown.push(text.clone()),
        }
    }
    let note = |those: &[String], what: [&str; 2]| {
        let what = if those.len() == 1 { what[0] } else { what[1] };
        (!those.is_empty())
            .then(|| format!("{} of {} instructions {what}: {}", those.len(), instructions.len(), first_few(those)))
    };
    let lost = [
        "is not understood and becomes one step, `instructed \"…\"`",
        "are not understood and become one step each, `instructed \"…\"`",
    ];
    note(&unknown, lost).into_iter().chain(note(&partly, ["is understood in part", "are understood in part"])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_2_a_run_says_what_commands_mean_without_the_evidence() {
        let source =
            crate::Source::without_features("embedded:libero_goal_mini", &dataset::Overrides::default()).unwrap();
        let expected = [
            "robot, arm: 6 action columns, changes of position",
            "robot, gripper: 1 action column, which opens and closes it",
            "robot: `refactor-vla data inspect` shows the evidence for this",
        ];
        assert_eq!(robot_lines(&RobotLayout::of(&source.dataset)), expected);
        assert!(robot_lines(&RobotLayout::default()).is_empty());
    }

    #[test]
    fn finding_8_instructions_that_are_not_understood_are_counted_and_named() {
        let known = "pick up the milk and place it in the basket".to_owned();
        assert!(instruction_notes(std::slice::from_ref(&known)).is_empty());
        let odd = |word: &str| format!("{word} {word} {word}");
        let mut all = vec![known, odd("qwrtzl")];
        assert_eq!(
            instruction_notes(&all),
            ["1 of 2 instructions is not understood and becomes one step, `instructed \"…\"`: `qwrtzl qwrtzl qwrtzl`"]
        );
        all.extend(["xkcdq", "zzzyx", "brrrm"].map(odd));
        all.push("fry the egg until cooked".to_owned());
        let notes = instruction_notes(&all);
        assert!(notes[0].starts_with("4 of 6 instructions are not understood and become one step each"), "{notes:?}");
        assert!(notes[0].ends_with(" and 1 more"), "{notes:?}");
        let partly = "1 of 6 instructions is understood in part: `fry the egg until cooked (without \"until cooked\")`";
        assert_eq!(notes[1], partly);
    }
}
