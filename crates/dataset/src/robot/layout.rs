//! All that is known of a robot, put together: names, matches and measurements.

use std::collections::BTreeSet;

use super::control::{self, Measured};
use super::measure::{Fit, Samples};
use super::names::{Hint, Part, Tag, forget_only_number, tags};
use super::parts::{Draft, drafts, unique_names, without_rotation};
use super::states::{Matched, by_name, by_numbers};
use super::{Control, Group, GroupKind, RobotLayout, Rotation, choices, grippers};
use crate::open::Dataset;

/// Matches by names are given up for matches by numbers if they explain less than this, and those more than twice it.
const POOR: f64 = 0.25;

/// Euler angles explain rotations better than an axis and angle, or the reverse, by at least this.
const CLEARLY: f64 = 0.1;

pub(super) fn layout(dataset: &Dataset) -> RobotLayout {
    let named = |key: &str| dataset.info().feature(key).and_then(|feature| feature.dimension_names());
    let columns = dataset.columns();
    let (actions, states) = (&columns.actions, &columns.states);
    let state_names = named(&dataset.roles().state).filter(|names| names.len() == states.width);
    let action_names = named(&dataset.roles().action).filter(|names| names.len() == actions.width);
    let mut undecided = Vec::new();
    let without = action_names.is_none();
    // States and actions of the same number are usually the same joints.
    let fps = dataset.info().fps;
    let spans = dataset.spans();
    let coarse = Samples::coarse(actions, states, spans, fps);
    let borrowed = || state_names.clone().filter(|names| names.len() == actions.width && alike(&coarse));
    let action_names = action_names.or_else(borrowed);
    let nothing = |width: usize| vec![String::new(); width];
    let mut action_tags = tags(&action_names.clone().unwrap_or_else(|| nothing(actions.width)));
    let mut state_tags = tags(&state_names.clone().unwrap_or_else(|| nothing(states.width)));
    forget_only_number(&mut action_tags, &mut state_tags);
    let borrowed = without && action_names.is_some();
    if borrowed {
        // What the names of states say about their meaning says nothing about actions.
        action_tags.iter_mut().for_each(|tag| _ = tag.hint.take_if(|hint| *hint != Hint::Velocity));
    }
    let look = Look {
        samples: Samples::new(actions, states, spans, fps),
        coarse,
        actions: action_tags,
        states: state_tags,
        dataset,
        borrowed,
    };
    let (columns, gripper_evidence) = look.gripper_columns(&mut undecided);
    let mut found: Vec<(Draft, Matched)> = Vec::new();
    let mut taken = BTreeSet::new();
    let first = drafts(&look.actions, &columns);
    let only_one = |kind: GroupKind| first.iter().filter(|draft| draft.kind == kind).count() == 1;
    for draft in &first {
        let matched = match state_names.is_some() {
            true => by_name(draft, &look.actions, &look.states, only_one(draft.kind)),
            false => Matched::default(),
        };
        taken.extend(matched.columns.iter().copied());
        match matched.rotation_missing {
            true => {
                let parts = without_rotation(draft.clone());
                found.extend(parts.into_iter().zip([matched, Matched::default()]));
            }
            false => found.push((draft.clone(), matched)),
        }
    }
    let mut found: Vec<(Draft, Matched)> =
        found.into_iter().flat_map(|(draft, matched)| look.checked(draft, matched, &mut taken)).collect();
    found.sort_by_key(|(draft, _)| draft.actions.iter().min().copied());
    let (all, matches): (Vec<Draft>, Vec<Matched>) = found.into_iter().unzip();
    let names = unique_names(&all);
    let mut groups: Vec<(Group, Doubt)> = Vec::new();
    for ((draft, matched), name) in all.iter().zip(matches).zip(names) {
        let (mut group, doubt) = look.group(draft, matched, name);
        if let Some((_, why)) = gripper_evidence.iter().find(|(column, _)| draft.actions == [*column]) {
            group.evidence.insert(0, why.clone());
        }
        groups.push((group, doubt));
    }
    like_the_others(&mut groups);
    undecided.extend(groups.iter_mut().filter_map(|(_, doubt)| doubt.sentence.take()));
    let groups = groups.into_iter().map(|(group, _)| group).collect();
    let mut layout = RobotLayout { groups, undecided };
    choices::apply(&mut layout, &dataset.overrides.control);
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
struct Doubt {
    sentence: Option<String>,
    at_rest: bool,
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
            group.gains.fill(1.0);
            group.evidence.push("It hardly moves, and is taken to be controlled as the other joints are.".to_owned());
            doubt.sentence = None;
        }
    }
}

/// What a layout is made from.
struct Look<'a> {
    samples: Samples<'a>,
    coarse: Samples<'a>,
    actions: Vec<Tag>,
    states: Vec<Tag>,
    dataset: &'a Dataset,
    /// Whether actions have the names of states because they have none themselves.
    borrowed: bool,
}

impl Look<'_> {
    /// The gripper columns, each with how it is known: those that the user names, else by name, else by their numbers.
    fn gripper_columns(&self, undecided: &mut Vec<String>) -> (Vec<usize>, Vec<(usize, String)>) {
        let all = 0..self.actions.len();
        if let Some(chosen) = &self.dataset.overrides.grippers {
            let names: Vec<String> = self.actions.iter().map(|tag| tag.name.clone()).collect();
            let columns: Vec<usize> = chosen.iter().filter_map(|key| choices::column(key, &names)).collect();
            let why = |column: &usize| (*column, "`--gripper` names it.".to_owned());
            return (columns.clone(), columns.iter().map(why).collect());
        }
        let named: Vec<usize> = all.clone().filter(|&column| self.actions[column].part == Part::Gripper).collect();
        let has_hand = self.actions.iter().any(|tag| tag.part == Part::Hand);
        let mut measured = Vec::new();
        for column in all.filter(|column| !named.contains(column)) {
            let tag = &self.actions[column];
            let fits = matches!(tag.part, Part::Arm | Part::Pose | Part::Head | Part::Torso);
            let spans = self.dataset.spans();
            let fps = self.dataset.info().fps;
            let Some(why) = (fits && self.actions.len() > 1)
                .then(|| grippers::levels(self.samples.actions, column, spans, fps))
                .flatten()
            else {
                continue;
            };
            if self.moves_something(column) {
                continue;
            }
            match tag.generic && named.is_empty() && !has_hand {
                true => measured.push((column, format!("{} {why}.", self.capital(column)))),
                // A name that says something else stands, and so does a gripper that is already known.
                false if !tag.generic => undecided.push(format!(
                    "{} {why}, as the command of a gripper does, but is not named as one. `--gripper {}` says that it is.",
                    self.capital(column),
                    if tag.name.is_empty() { column.to_string() } else { format!("'{}'", tag.name) },
                )),
                false => {}
            }
        }
        match named.is_empty() {
            true => (measured.iter().map(|(column, _)| *column).collect(), measured),
            false => (named, Vec::new()),
        }
    }

    /// Whether some state changes as a column commands, which is an axis rather than a gripper.
    fn moves_something(&self, column: usize) -> bool {
        (0..self.coarse.states.width).any(|state| {
            let value = |frame: usize| self.coarse.state(frame, state);
            let share = |fit: Option<Fit>| fit.map(|fit| fit.explained.abs());
            let both = share(self.coarse.change(column, value)).zip(share(self.coarse.level(column, value)));
            both.is_some_and(|(change, level)| change > 0.5 && change > level)
        })
    }

    /// A group with its states verified by numbers or found by them. Columns without names that are controlled
    /// differently become groups of their own.
    fn checked(&self, draft: Draft, by_name: Matched, taken: &mut BTreeSet<usize>) -> Vec<(Draft, Matched)> {
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
            true => self.split(draft, matched),
            false => vec![(draft, matched)],
        }
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

    fn group(&self, draft: &Draft, matched: Matched, name: String) -> (Group, Doubt) {
        let mut evidence: Vec<String> = self.naming(draft).into_iter().collect();
        evidence.extend(matched.evidence.clone());
        let pairs = pairs(draft, &matched);
        let (actions, states) = (self.samples.actions, self.samples.states);
        let (spans, fps) = (self.dataset.spans(), self.dataset.info().fps);
        if draft.kind == GroupKind::Gripper {
            let names: Vec<&str> = matched.columns.iter().map(|column| self.states[*column].name.as_str()).collect();
            let fingers = (states, &matched.columns[..], &names[..]);
            let gripper = grippers::described((actions, draft.actions[0]), fingers, (spans, fps), &mut evidence);
            let control = self.gripper_control(draft.actions[0], &matched.columns, &gripper.signs, &mut evidence);
            let group = Group {
                name,
                kind: draft.kind,
                actions: draft.actions.clone(),
                states: matched.columns,
                control,
                rotation: None,
                in_metres: false,
                gains: vec![1.0],
                gripper: Some(gripper),
                evidence,
            };
            return (group, Doubt::default());
        }
        let measured = Measured::of(&self.samples, &pairs);
        // Rotations go round; positions do not.
        let columns = if draft.kind == GroupKind::EndEffector { 3 } else { pairs.len() };
        let tags: Vec<&Tag> = draft.actions.iter().map(|column| &self.actions[*column]).collect();
        let state_tags: Vec<&Tag> = matched.of.iter().flatten().map(|column| &self.states[*column]).collect();
        let decision = control::decided(
            (&name, draft.kind),
            &tags,
            &state_tags,
            (&measured, columns),
            (&self.samples, &pairs),
            fps,
        );
        evidence.push(decision.evidence);
        let doubt = Doubt { sentence: decision.doubt, at_rest: decision.at_rest };
        let turned = matched.columns.get(3..).unwrap_or_default();
        let rotation = draft
            .rotation
            .map(|written| self.rotation(matched.rotation.unwrap_or(written), &pairs, turned, &mut evidence));
        let state_rotation = if turned.len() == 4 { Some(Rotation::Quaternion) } else { rotation };
        let gains = match decision.control {
            Control::Relative => {
                let turned = state_rotation.filter(|_| turned.len() >= 3).map(|written| (written, turned));
                let turns = turned.map(|(written, turned)| control::turns(&self.samples, &pairs, written, turned));
                let turns = turns.unwrap_or_default();
                if let Some(share) = control::share_of_turns(&turns) {
                    evidence.push(format!("Actions explain {:.0} % of the turns.", 100.0 * share));
                }
                control::gains(pairs.len(), &measured, &turns)
            }
            Control::Absolute | Control::Velocity => vec![1.0; draft.actions.len()],
        };
        let in_metres = draft.kind == GroupKind::EndEffector && super::in_metres(&matched.columns, states);
        if in_metres {
            evidence.push(format!("Its position is within {} of 0, as metres would be.", super::REACH));
        }
        let group = Group {
            name,
            kind: draft.kind,
            actions: draft.actions.clone(),
            states: matched.columns,
            control: decision.control,
            rotation,
            in_metres,
            gains,
            gripper: None,
            evidence,
        };
        (group, doubt)
    }

    /// How a rotation of three numbers is written, by its names unless the numbers say otherwise.
    fn rotation(
        &self,
        named: Rotation,
        pairs: &[(usize, Option<usize>)],
        columns: &[usize],
        evidence: &mut Vec<String>,
    ) -> Rotation {
        if named == Rotation::Quaternion || columns.len() != 3 {
            return named;
        }
        let other = if named == Rotation::Euler { Rotation::AxisAngle } else { Rotation::Euler };
        let share = |written: Rotation| {
            control::share_of_turns(&control::turns(&self.coarse, pairs, written, columns)).unwrap_or(0.0)
        };
        let (as_named, as_other) = (share(named), share(other));
        if as_other < 0.5 || as_other < as_named + CLEARLY {
            return named;
        }
        let [named, found] = [named, other].map(|written| match written {
            Rotation::Euler => "Euler angles",
            _ => "axis and angle",
        });
        evidence.push(format!(
            "Its rotation is named as {named}, but actions explain {:.0} % of the turns if it is read as {found} and {:.0} % \
             otherwise.",
            100.0 * as_other,
            100.0 * as_named
        ));
        other
    }

    /// Whether a command is where the gripper goes or how it changes.
    fn gripper_control(&self, action: usize, fingers: &[usize], signs: &[f64], evidence: &mut Vec<String>) -> Control {
        if self.actions[action].hint == Some(Hint::Change) {
            evidence.push("The name of the action says that it is a change.".to_owned());
            return Control::Relative;
        }
        let opening = |frame: usize| {
            fingers.iter().zip(signs).map(|(at, sign)| sign * self.samples.state(frame, *at)).sum::<f64>()
        };
        let share = |fit: Option<Fit>| fit.map_or(0.0, |fit| fit.explained.abs());
        let level = share(self.samples.level(action, opening));
        let change = share(self.samples.change(action, opening));
        let control = if change > 0.5 && change > level { Control::Relative } else { Control::Absolute };
        if !fingers.is_empty() {
            let [level, change] = [level, change].map(|share| 100.0 * share);
            evidence.push(format!("Commands explain {level:.0} % of the opening and {change:.0} % of its changes."));
        }
        control
    }

    /// How names put the columns of a group together.
    fn naming(&self, draft: &Draft) -> Option<String> {
        let names: Vec<String> = draft.actions.iter().map(|at| format!("`{}`", self.actions[*at].name)).collect();
        if draft.actions.iter().all(|column| self.actions[*column].name.is_empty()) {
            return (draft.kind != GroupKind::Gripper).then(|| "Actions have no names.".to_owned());
        }
        let shown = match &names[..] {
            [first, .., last] if names.len() > 3 => format!("{first} to {last}"),
            _ => names.join(", "),
        };
        let whose = if self.borrowed { " after the states, of which there are as many" } else { "" };
        let verb = if names.len() == 1 { "action is" } else { "actions are" };
        Some(format!("Its {verb} called {shown}{whose}."))
    }

    fn capital(&self, column: usize) -> String {
        match self.actions[column].name.as_str() {
            "" => format!("Action {column}"),
            name => format!("Action {column}, `{name}`,"),
        }
    }
}

/// Each action column of a group with its state column.
fn pairs(draft: &Draft, matched: &Matched) -> Vec<(usize, Option<usize>)> {
    let state = |place: usize| matched.of.get(place).copied().flatten();
    draft.actions.iter().enumerate().map(|(place, action)| (*action, state(place))).collect()
}
