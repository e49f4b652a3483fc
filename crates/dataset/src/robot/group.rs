//! One group with everything that is known of it.

use super::control::{self, Measured};
use super::layout::{Doubt, Look, pairs};
use super::measure::Fit;
use super::names::{Hint, Tag};
use super::parts::Draft;
use super::states::Matched;
use super::{Control, Group, GroupKind, Rotation, grippers};

/// Euler angles explain rotations better than an axis and angle, or the reverse, by at least this.
const CLEARLY: f64 = 0.1;

impl Look<'_> {
    /// Measures what the actions of a group mean, and describes it.
    pub(super) fn group(&self, draft: &Draft, matched: Matched, name: String) -> (Group, Doubt) {
        let mut evidence: Vec<String> = self.naming(draft).into_iter().collect();
        evidence.extend(matched.evidence.clone());
        let pairs = pairs(draft, &matched);
        let (actions, states) = (self.samples.actions, self.samples.states);
        let (spans, fps) = (self.dataset.spans(), self.dataset.info().fps);
        if draft.kind == GroupKind::Gripper {
            let names: Vec<&str> = matched.columns.iter().map(|column| self.states[*column].name.as_str()).collect();
            let fingers = (states, &matched.columns[..], &names[..]);
            let (mut gripper, is_guess) =
                grippers::described((actions, draft.actions[0]), fingers, (spans, fps), &mut evidence);
            let command = self.actions[draft.actions[0]].name.to_ascii_lowercase();
            if gripper.closes_above.is_none() && (command.contains("open") || command.contains("clos")) {
                gripper.closes_above = Some(!command.contains("open"));
                let does = if command.contains("open") { "open" } else { "close" };
                evidence.push(format!("The name of the action says that high commands {does} it."));
            }
            let column = self.key(draft.actions[0]);
            let sentence = match gripper.closes_above {
                None => Some(format!(
                    "Whether high commands of the {name} close it is not known, and they are taken to; `--gripper \
                     '{column}=opens'` says otherwise."
                )),
                Some(closes) if is_guess => {
                    let (does, other) = if closes { ("close", "opens") } else { ("open", "closes") };
                    Some(format!(
                        "High commands of the {name} are taken to {does} it, which is a guess: its state follows them, and \
                         states usually grow as a gripper opens; `--gripper '{column}={other}'` says otherwise."
                    ))
                }
                Some(_) => None,
            };
            let control = match self.chosen(&name, draft) {
                Some(choice) => {
                    evidence
                        .push(format!("`--control '{choice}'` says that its commands are {}.", choice.control.means()));
                    choice.control
                }
                None => self.gripper_control(draft.actions[0], &matched.columns, &gripper.signs, &mut evidence),
            };
            let group = Group {
                name,
                kind: draft.kind,
                actions: draft.actions.clone(),
                states: matched.columns,
                control,
                rotation: None,
                in_metres: false,
                gripper: Some(gripper),
                evidence,
            };
            return (group, Doubt { sentence, ..Doubt::default() });
        }
        let measured = Measured::of(&self.samples, &pairs);
        // Rotations go round; positions do not.
        let columns = if draft.kind == GroupKind::EndEffector { 3 } else { pairs.len() };
        let tags: Vec<&Tag> = draft.actions.iter().map(|column| &self.actions[*column]).collect();
        let state_tags: Vec<&Tag> = matched.of.iter().flatten().map(|column| &self.states[*column]).collect();
        let chosen = self.chosen(&name, draft);
        let decision = match chosen {
            Some(choice) => control::chosen((&name, draft.kind), choice, (&measured, columns)),
            None => control::decided(
                (&name, draft.kind),
                &tags,
                &state_tags,
                (&measured, columns),
                (&self.samples, &pairs),
                fps,
            ),
        };
        evidence.push(decision.evidence);
        let doubt = match chosen {
            Some(_) => Doubt { contradicted: decision.doubt, ..Doubt::default() },
            None => Doubt { sentence: decision.doubt, at_rest: decision.at_rest, contradicted: None },
        };
        let turned = matched.columns.get(3..).unwrap_or_default();
        let rotation = draft
            .rotation
            .map(|written| self.rotation(matched.rotation.unwrap_or(written), &pairs, turned, &mut evidence));
        let state_rotation = if turned.len() == 4 { Some(Rotation::Quaternion) } else { rotation };
        if decision.control == Control::Relative && chosen.is_none() && turned.len() >= 3 {
            let turns = state_rotation.map(|written| control::turns(&self.samples, &pairs, written, turned));
            if let Some(share) = control::share_of_turns(&turns.unwrap_or_default()) {
                evidence.push(format!("Actions explain {:.0} % of the turns.", 100.0 * share));
            }
        }
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
}
