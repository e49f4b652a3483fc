//! What the user says about a robot, which stands against names and numbers.

use std::fmt;
use std::str::FromStr;

use super::{Control, RobotLayout};
use crate::fault::Fault;

/// What a user says about the control of one group, or of all but grippers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlChoice {
    /// The name of the group; `None` is all groups that move, grippers excepted.
    pub group: Option<String>,
    /// What its actions mean.
    pub control: Control,
}

impl FromStr for Control {
    type Err = String;

    fn from_str(written: &str) -> Result<Control, String> {
        match written.trim().to_ascii_lowercase().as_str() {
            "absolute" => Ok(Control::Absolute),
            "relative" => Ok(Control::Relative),
            "velocity" => Ok(Control::Velocity),
            _ => Err(format!("`{written}` is not a control; expected `absolute`, `relative` or `velocity`")),
        }
    }
}

impl FromStr for ControlChoice {
    type Err = String;

    /// Reads `absolute` or `left arm=absolute`.
    fn from_str(written: &str) -> Result<ControlChoice, String> {
        let (group, control) = match written.rsplit_once('=') {
            Some((group, control)) => (Some(group.trim().to_owned()), control),
            None => (None, written),
        };
        Ok(ControlChoice { group, control: control.parse()? })
    }
}

impl fmt::Display for ControlChoice {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{group}={}", self.control.name()),
            None => f.write_str(self.control.name()),
        }
    }
}

impl Control {
    /// The word for it: `absolute`, `relative` or `velocity`.
    pub fn name(self) -> &'static str {
        match self {
            Control::Absolute => "absolute",
            Control::Relative => "relative",
            Control::Velocity => "velocity",
        }
    }
}

/// Sets the controls that the user has chosen, and takes back the doubts that this settles.
pub(super) fn apply(layout: &mut RobotLayout, choices: &[ControlChoice]) {
    for choice in choices {
        for group in &mut layout.groups {
            let meant = match &choice.group {
                Some(name) => group.name == *name,
                None => !matches!(group.kind, super::GroupKind::Gripper | super::GroupKind::Other),
            };
            if meant {
                group.control = choice.control;
                if choice.control != Control::Relative {
                    group.gains.fill(1.0);
                }
                group.evidence.push(format!(
                    "`--control` says that it is {}, which overrides any measurement.",
                    choice.control.name()
                ));
                let settled = format!("`--control '{}=", group.name);
                layout.undecided.retain(|doubt| !doubt.contains(&settled));
            }
        }
    }
}

/// Choices of groups that there are not.
pub(crate) fn unknown_groups(layout: &RobotLayout, choices: &[ControlChoice]) -> Vec<Fault> {
    let names: Vec<String> = layout.groups.iter().map(|group| group.name.clone()).collect();
    let unknown = choices.iter().filter_map(|choice| choice.group.clone()).filter(|group| !names.contains(group));
    unknown.map(|key| Fault::UnknownPart { what: "group", key, candidates: names.clone() }).collect()
}

/// Choices of gripper columns that there are not, given the names of the action's dimensions.
pub(crate) fn unknown_columns(chosen: &[String], names: Option<Vec<String>>, width: usize) -> Vec<Fault> {
    let names = names.unwrap_or_else(|| (0..width).map(|column| column.to_string()).collect());
    let unknown = chosen.iter().filter(|key| column(key, &names).is_none());
    unknown
        .map(|key| Fault::UnknownPart { what: "action column", key: key.clone(), candidates: names.clone() })
        .collect()
}

/// The column that a user means: by name, else by number from 0. What its high commands do may follow, as in
/// `6=opens`.
pub(super) fn column(key: &str, names: &[String]) -> Option<usize> {
    let whole = names.iter().position(|name| name == key);
    let (key, _) = polarity(key);
    let named = whole.or_else(|| names.iter().position(|name| name == key));
    named.or_else(|| key.parse().ok().filter(|column| *column < names.len()))
}

/// A gripper's column as the user writes it, and whether its high commands close it, where that is said.
fn polarity(key: &str) -> (&str, Option<bool>) {
    match key.rsplit_once('=') {
        Some((column, "opens")) => (column.trim(), Some(false)),
        Some((column, "closes")) => (column.trim(), Some(true)),
        _ => (key, None),
    }
}

/// Sets which commands close a gripper, where the user says so, and takes back the doubt that this settles.
pub(super) fn apply_polarity(layout: &mut RobotLayout, chosen: &[String], names: &[String]) {
    for key in chosen.iter().filter(|key| !names.contains(key)) {
        let Some((column, closes)) = column(key, names).zip(polarity(key).1) else { continue };
        let group = layout.groups.iter_mut().find(|group| group.actions == [column]);
        let Some((gripper, evidence)) = group.and_then(|group| Some((group.gripper.as_mut()?, &mut group.evidence)))
        else {
            continue;
        };
        gripper.closes_above = Some(closes);
        let does = if closes { "close" } else { "open" };
        evidence.push(format!("`--gripper` says that high commands {does} it, which overrides any measurement."));
        let settled = format!("`--gripper '{}=", names[column]);
        layout.undecided.retain(|doubt| !doubt.contains(&settled));
    }
}
