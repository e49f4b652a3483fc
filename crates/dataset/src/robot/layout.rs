//! All that is known of a robot, put together: names, matches and measurements.

use std::collections::BTreeSet;

use super::control::Measured;
use super::measure::Samples;
use super::names::{Hint, Part, Tag, forget_only_number, tags};
use super::parts::{Draft, drafts, unique_names, without_rotation};
use super::states::{Matched, by_name, by_numbers};
use super::{Control, ControlChoice, Group, GroupKind, RobotLayout, choices};
use crate::open::Dataset;

/// Matches by names are given up for matches by numbers if they explain less than this, and those more than twice it.
const POOR: f64 = 0.25;

/// Finds out what can be known of a dataset's columns.
pub(super) fn layout(dataset: &Dataset) -> RobotLayout {
    let look = Look::new(dataset);
    let mut undecided = Vec::new();
    let mut found = look.gripper_columns(&mut undecided);
    let drafts = look.set_apart(drafts(&look.actions, &found.grippers), &found);
    let (drafts, matches): (Vec<Draft>, Vec<Matched>) = look.matched(&drafts, &mut found).into_iter().unzip();
    undecided.append(&mut found.undecided);
    let mut groups: Vec<(Group, Doubt)> = Vec::new();
    for ((draft, matched), name) in drafts.iter().zip(matches).zip(unique_names(&drafts)) {
        let (mut group, doubt) = look.group(draft, matched, name);
        if let Some((_, why)) = found.why.iter().find(|(column, _)| draft.actions == [*column]) {
            group.evidence.insert(0, why.clone());
        }
        if found.hands.contains(&draft.actions) {
            group
                .evidence
                .insert(0, "Its actions move together, and their states stop short of them, as fingers do.".to_owned());
        }
        groups.push((group, doubt));
    }
    like_the_others(&mut groups);
    undecided.extend(groups.iter_mut().filter_map(|(_, doubt)| doubt.sentence.take()));
    let contradicted = groups.iter_mut().filter_map(|(_, doubt)| doubt.contradicted.take()).collect();
    let groups = groups.into_iter().map(|(group, _)| group).collect();
    let mut layout = RobotLayout { groups, undecided, contradicted };
    if let Some(chosen) = &dataset.overrides.grippers {
        choices::apply_polarity(&mut layout, chosen, &look.names());
    }
    layout
}

/// Whether each action that moves steers the state of the same place.
fn alike(samples: &Samples<'_>) -> bool {
    let pairs: Vec<(usize, Option<usize>)> = (0..samples.actions.width).map(|at| (at, Some(at))).collect();
    let measured = Measured::of(samples, &pairs);
    let moving = |place: usize| measured.level[place].is_some() || measured.change[place].is_some();
    let mut moving = (0..pairs.len()).filter(|&place| moving(place)).peekable();
    moving.peek().is_some() && moving.all(|place| measured.clear(place).is_some())
}

/// What is not certain of a group.
#[derive(Default)]
pub(super) struct Doubt {
    pub(super) sentence: Option<String>,
    /// Whether nothing moves, so that nothing could be measured.
    pub(super) at_rest: bool,
    /// Why a flag of the user is probably wrong.
    pub(super) contradicted: Option<String>,
}

/// Parts that were found by numbers, or by what the user says.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The columns of grippers.
    pub(super) grippers: Vec<usize>,
    /// How each of them is known, where that is not its name.
    pub(super) why: Vec<(usize, String)>,
    /// The columns of each hand without names.
    pub(super) hands: Vec<Vec<usize>>,
    /// Columns with two values that are neither named as grippers nor as joints.
    pub(super) switches: Vec<usize>,
    /// What is not certain of them.
    pub(super) undecided: Vec<String>,
}

impl Found {
    /// Adds a gripper.
    pub(super) fn add(&mut self, column: usize, why: String) {
        self.grippers.push(column);
        self.why.push((column, why));
    }
}

/// Joints that never move are taken to be controlled as all others are, if those agree.
fn like_the_others(groups: &mut [(Group, Doubt)]) {
    let certain = |(group, doubt): &&(Group, Doubt)| group.kind == GroupKind::Joints && doubt.sentence.is_none();
    let controls: Vec<Control> = groups.iter().filter(certain).map(|(group, _)| group.control).collect();
    let Some(first) = controls.first().copied().filter(|first| controls.iter().all(|control| control == first)) else {
        return;
    };
    for (group, doubt) in groups {
        if group.kind == GroupKind::Joints && doubt.at_rest {
            group.control = first;
            group.evidence.push("It hardly moves, and is taken to be controlled as the other joints are.".to_owned());
            doubt.sentence = None;
        }
    }
}

/// What a layout is made from.
pub(super) struct Look<'a> {
    pub(super) samples: Samples<'a>,
    pub(super) coarse: Samples<'a>,
    pub(super) actions: Vec<Tag>,
    pub(super) states: Vec<Tag>,
    pub(super) dataset: &'a Dataset,
    /// Whether actions have the names of states because they have none themselves.
    pub(super) borrowed: bool,
}

impl<'a> Look<'a> {
    fn new(dataset: &'a Dataset) -> Look<'a> {
        let named = |key: &str, width: usize| {
            let names = dataset.info().feature(key).and_then(|feature| feature.dimension_names());
            names.filter(|names| names.len() == width)
        };
        let (actions, states) = (&dataset.columns().actions, &dataset.columns().states);
        let (spans, fps) = (dataset.spans(), dataset.info().fps);
        let coarse = Samples::coarse(actions, states, spans, fps);
        let state_names = named(&dataset.roles().state, states.width);
        let action_names = named(&dataset.roles().action, actions.width);
        // Actions without names that steer as many states are the same joints.
        let is_same = |names: &Vec<String>| names.len() == actions.width && alike(&coarse);
        let same = if action_names.is_none() { state_names.clone().filter(is_same) } else { None };
        let borrowed = same.is_some();
        let tags_of =
            |names: Option<Vec<String>>, width: usize| tags(&names.unwrap_or_else(|| vec![String::new(); width]));
        let mut action_tags = tags_of(action_names.or(same), actions.width);
        let mut state_tags = tags_of(state_names, states.width);
        forget_only_number(&mut action_tags, &mut state_tags);
        if borrowed {
            // What the names of states say about their meaning says nothing about actions.
            action_tags.iter_mut().for_each(|tag| _ = tag.hint.take_if(|hint| *hint != Hint::Velocity));
        }
        let samples = Samples::new(actions, states, spans, fps);
        Look { samples, coarse, actions: action_tags, states: state_tags, dataset, borrowed }
    }

    /// Groups with their states, in the order of their first action column.
    fn matched(&self, drafts: &[Draft], known: &mut Found) -> Vec<(Draft, Matched)> {
        let mut found: Vec<(Draft, Matched)> = Vec::new();
        let mut taken = BTreeSet::new();
        let only_one = |kind: GroupKind| drafts.iter().filter(|draft| draft.kind == kind).count() == 1;
        let has_names = self.states.iter().any(|tag| !tag.name.is_empty());
        for draft in drafts {
            let matched = match has_names {
                true => by_name(draft, &self.actions, &self.states, only_one(draft.kind)),
                false => Matched::default(),
            };
            taken.extend(matched.columns.iter().copied());
            match matched.rotation_missing {
                true => found.extend(without_rotation(draft.clone()).into_iter().zip([matched, Matched::default()])),
                false => found.push((draft.clone(), matched)),
            }
        }
        let checked = found.into_iter().flat_map(|(draft, matched)| self.checked(draft, matched, &mut taken, known));
        let mut checked: Vec<(Draft, Matched)> = checked.collect();
        checked.sort_by_key(|(draft, _)| draft.actions.iter().min().copied());
        checked
    }

    /// A group with its states verified by numbers or found by them. Columns without names that are controlled
    /// differently become groups of their own.
    fn checked(
        &self,
        draft: Draft,
        by_name: Matched,
        taken: &mut BTreeSet<usize>,
        known: &mut Found,
    ) -> Vec<(Draft, Matched)> {
        // The finger of a gripper without a name is the state that follows it.
        if draft.kind == GroupKind::Gripper && by_name.columns.is_empty() && self.actions[draft.actions[0]].generic {
            let free = |state: &usize| !taken.contains(state);
            let finger = self.follower(draft.actions[0]).filter(free);
            taken.extend(finger);
            let evidence = finger.map(|state| format!("State {state} follows it."));
            let columns = finger.into_iter().collect();
            return vec![(draft, Matched { columns, of: vec![finger], evidence, ..Matched::default() })];
        }
        if !matches!(draft.kind, GroupKind::Joints | GroupKind::Base) {
            return vec![(draft, by_name)];
        }
        let best = |matched: &Matched| {
            let measured = Measured::of(&self.coarse, &pairs(&draft, matched));
            measured.shares(draft.actions.len()).map(|(level, change)| level.max(change))
        };
        let mut matched = by_name;
        if matched.columns.is_empty() || best(&matched).is_some_and(|share| share < POOR) {
            let own: BTreeSet<usize> = matched.columns.iter().copied().collect();
            let others: BTreeSet<usize> = taken.difference(&own).copied().collect();
            let mut measured = by_numbers(&draft, &self.coarse, &others);
            let better = best(&measured).is_some_and(|share| share > 2.0 * POOR);
            if matched.columns.is_empty() || better {
                if !matched.columns.is_empty()
                    && let Some(evidence) = &mut measured.evidence
                {
                    evidence.push_str(" The states of the same names do not follow the actions.");
                }
                matched = measured;
            }
        }
        taken.extend(matched.of.iter().flatten());
        match draft.actions.iter().all(|column| self.actions[*column].generic) {
            true => self.without_velocities(draft, matched, known),
            false => vec![(draft, matched)],
        }
    }

    /// Columns without names that are velocities, apart from the others, which [`Look::split`] cuts.
    fn without_velocities(&self, draft: Draft, matched: Matched, known: &mut Found) -> Vec<(Draft, Matched)> {
        let part = |columns: &[usize]| {
            let place = |column: &usize| draft.actions.iter().position(|action| action == column);
            let state = |column: &usize| place(column).and_then(|place| matched.of.get(place).copied().flatten());
            let of: Vec<Option<usize>> = columns.iter().map(state).collect();
            let states = of.iter().copied().collect::<Option<Vec<usize>>>().unwrap_or_default();
            (Draft { actions: columns.to_vec(), ..draft.clone() }, Matched { columns: states, of, ..matched.clone() })
        };
        let measured = Measured::of(&self.coarse, &pairs(&draft, &matched));
        let unchosen =
            choices::chosen(&self.dataset.overrides.control, (&draft.label, draft.kind, &draft.actions), &self.names())
                .is_none();
        let level = |place: usize| unchosen && !matches!(measured.clear(place), Some(Control::Relative));
        let candidates: Vec<usize> =
            (0..draft.actions.len()).filter(|&at| level(at)).map(|at| draft.actions[at]).collect();
        let mut rest = draft.actions.clone();
        let mut found = Vec::new();
        for (run, sure) in self.velocities(&candidates).into_iter().filter(|_| draft.kind == GroupKind::Joints) {
            if sure {
                rest.retain(|column| !run.contains(column));
                let (base, matched) = part(&run);
                let base = Draft { kind: GroupKind::Base, part: Part::Base, label: "base".to_owned(), ..base };
                found.push((base, matched));
                continue;
            }
            let (subject, verbs, key) = match &run[..] {
                [first, .., last] => (format!("Actions {first} to {last}"), "are", format!("{first}-{last}")),
                _ => (self.capital(run[0]), "is", self.key(run[0])),
            };
            let taken = if run.len() > 1 { "They are taken to be positions" } else { "It is taken to be a position" };
            known.undecided.push(format!(
                "{subject} {verbs} often near zero, as velocities are. {taken}; `--control '{key}=velocity'` says otherwise."
            ));
        }
        if found.is_empty() {
            return self.split(draft, matched);
        }
        if !rest.is_empty() {
            let (draft, matched) = part(&rest);
            found.extend(self.split(draft, matched));
        }
        found
    }

    /// Columns with clearly different controls, apart, if each control has one run of columns. Columns that are not clear
    /// stay with those before them.
    fn split(&self, draft: Draft, matched: Matched) -> Vec<(Draft, Matched)> {
        let measured = Measured::of(&self.coarse, &pairs(&draft, &matched));
        let clear: Vec<Option<Control>> = (0..draft.actions.len()).map(|place| measured.clear(place)).collect();
        let first = clear.iter().flatten().next().copied();
        let mut parts: Vec<(Option<Control>, Vec<usize>)> = Vec::new();
        let mut before = first;
        for (place, control) in clear.into_iter().enumerate() {
            before = control.or(before);
            match parts.iter_mut().find(|(known, _)| *known == before) {
                Some((_, places)) => places.push(place),
                None => parts.push((before, vec![place])),
            }
        }
        let is_run = |places: &[usize]| places.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if parts.len() < 2 || !parts.iter().all(|(_, places)| is_run(places)) {
            return vec![(draft, matched)];
        }
        let one = |(_, places): (Option<Control>, Vec<usize>)| {
            let of: Vec<Option<usize>> = places.iter().map(|&place| matched.of.get(place).copied().flatten()).collect();
            let columns = of.iter().copied().collect::<Option<Vec<usize>>>().unwrap_or_default();
            let actions = places.iter().map(|&place| draft.actions[place]).collect();
            (Draft { actions, ..draft.clone() }, Matched { columns, of, ..matched.clone() })
        };
        parts.into_iter().map(one).collect()
    }

    /// The names of the action columns; those without one are empty.
    pub(super) fn names(&self) -> Vec<String> {
        self.actions.iter().map(|tag| tag.name.clone()).collect()
    }

    /// How a column is named in a flag.
    pub(super) fn key(&self, column: usize) -> String {
        choices::key_of(column, &self.names())
    }

    /// What the user says about the control of a group.
    pub(super) fn chosen(&self, name: &str, draft: &Draft) -> Option<&ControlChoice> {
        let control = &self.dataset.overrides.control;
        choices::chosen(control, (name, draft.kind, &draft.actions), &self.names())
    }

    pub(super) fn capital(&self, column: usize) -> String {
        match self.actions[column].name.as_str() {
            "" => format!("Action {column}"),
            name => format!("Action {column}, `{name}`,"),
        }
    }
}

/// Each action column of a group with its state column.
pub(super) fn pairs(draft: &Draft, matched: &Matched) -> Vec<(usize, Option<usize>)> {
    let state = |place: usize| matched.of.get(place).copied().flatten();
    draft.actions.iter().enumerate().map(|(place, action)| (*action, state(place))).collect()
}
