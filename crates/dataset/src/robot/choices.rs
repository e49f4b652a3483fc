//! What the user says about a robot, which stands against names and numbers.

use std::fmt;
use std::str::FromStr;

use super::{Control, GroupKind, RobotLayout, grippers};
use crate::fault::Fault;
use crate::info::Feature;
use crate::open::Dataset;

/// What a user says about the control of one group, of some columns, or of all groups but grippers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlChoice {
    /// The name of the group, or action columns that form a group: a name, a number from 0, or a range such as `6-8`.
    /// `None` is all groups that move, grippers excepted.
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

    /// Reads `absolute`, `left arm=absolute` or `6-8=velocity`.
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

    /// What such actions are, in words.
    pub(super) fn means(self) -> &'static str {
        match self {
            Control::Absolute => "positions to go to",
            Control::Relative => "changes of position",
            Control::Velocity => "velocities",
        }
    }
}

/// The choice for a group, if there is one: by its name or its columns, else the one for all groups that move.
pub(super) fn chosen<'c>(
    choices: &'c [ControlChoice],
    (group, kind, actions): (&str, GroupKind, &[usize]),
    names: &[String],
) -> Option<&'c ControlChoice> {
    let named = |choice: &&ControlChoice| choice.group.as_deref() == Some(group);
    let of_columns = |choice: &&ControlChoice| {
        choice.group.as_deref().and_then(|key| columns(key, names)).is_some_and(|columns| columns == actions)
    };
    let moves = !matches!(kind, GroupKind::Gripper | GroupKind::Other);
    let all = |choice: &&ControlChoice| choice.group.is_none() && moves;
    choices.iter().find(named).or_else(|| choices.iter().find(of_columns)).or_else(|| choices.iter().find(all))
}

/// Choices of groups and columns that a dataset does not have.
pub(crate) fn unknown_groups(dataset: &Dataset) -> Vec<Fault> {
    let choices = &dataset.overrides.control;
    if choices.is_empty() {
        return Vec::new();
    }
    let names = dataset.info().feature(&dataset.roles().action).and_then(Feature::dimension_names);
    let names = names_or_numbers(names, dataset.columns().actions.width);
    let groups: Vec<String> = RobotLayout::of(dataset).groups.into_iter().map(|group| group.name).collect();
    let known = |key: &String| groups.contains(key) || columns(key, &names).is_some();
    let unknown = choices.iter().filter_map(|choice| choice.group.clone()).filter(|key| !known(key));
    unknown.map(|key| Fault::UnknownPart { what: "group", key, candidates: groups.clone() }).collect()
}

/// Choices of gripper columns that there are not, given the names of the action's dimensions.
pub(crate) fn unknown_columns(chosen: &[String], names: &[String]) -> Vec<Fault> {
    let unknown = chosen.iter().filter(|key| *key != "none" && column(key, names).is_none());
    unknown
        .map(|key| Fault::UnknownPart { what: "action column", key: key.clone(), candidates: names.to_vec() })
        .collect()
}

/// Choices that cannot all be meant: two controls of the same group or column, a gripper that high commands open and
/// close, a gripper among the columns of another group, and a gripper where there is none.
pub(crate) fn contradictions(choices: &[ControlChoice], grippers: &[String], names: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |one: String, other: String| faults.push(Fault::Contradiction { one, other });
    let of = |choice: &ControlChoice| choice.group.as_deref().and_then(|key| columns(key, names)).unwrap_or_default();
    for (at, one) in choices.iter().enumerate() {
        for other in &choices[at + 1..] {
            let overlap = of(one).iter().any(|column| of(other).contains(column));
            if one.control != other.control && (one.group == other.group || overlap) {
                add(format!("--control '{one}'"), format!("--control '{other}'"));
            }
        }
        // A gripper alone may have a control; among other columns it is not a gripper.
        for key in grippers {
            let columns = of(one);
            if columns.len() > 1 && column(key, names).is_some_and(|column| columns.contains(&column)) {
                add(format!("--control '{one}'"), format!("--gripper '{key}'"));
            }
        }
    }
    let is_none = |key: &String| key == "none" && !names.contains(key);
    for (at, one) in grippers.iter().enumerate() {
        for other in &grippers[at + 1..] {
            if is_none(one) != is_none(other) {
                add(format!("--gripper '{one}'"), format!("--gripper '{other}'"));
            }
            let same = column(one, names).is_some() && column(one, names) == column(other, names);
            let says = polarity(one).1.zip(polarity(other).1);
            if same && says.is_some_and(|(one, other)| one != other) {
                add(format!("--gripper '{one}'"), format!("--gripper '{other}'"));
            }
        }
    }
    faults
}

/// The names of an action's dimensions, or their numbers.
pub(crate) fn names_or_numbers(names: Option<Vec<String>>, width: usize) -> Vec<String> {
    names.filter(|names| names.len() == width).unwrap_or_else(|| (0..width).map(|column| column.to_string()).collect())
}

/// The columns that a user means: one by name or number, or a range of numbers such as `6-8`.
pub(super) fn columns(key: &str, names: &[String]) -> Option<Vec<usize>> {
    let named = names.iter().position(|name| name == key);
    if let Some(column) = named.or_else(|| key.parse().ok().filter(|column| *column < names.len())) {
        return Some(vec![column]);
    }
    let (first, last) = key.split_once('-')?;
    let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < names.len()).then(|| (first..=last).collect())
}

/// The column that a user means: by name, else by number from 0. What its high commands do may follow, as in
/// `6=opens`.
pub(super) fn column(key: &str, names: &[String]) -> Option<usize> {
    let whole = names.iter().position(|name| name == key);
    let (key, _) = polarity(key);
    let named = whole.or_else(|| names.iter().position(|name| name == key));
    named.or_else(|| key.parse().ok().filter(|column| *column < names.len()))
}

/// How a column is named in a flag: by its name, or by its number if it has none.
pub(super) fn key_of(column: usize, names: &[String]) -> String {
    names.get(column).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| column.to_string())
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
        // What is known of the state still holds: it follows the commands, whatever these do.
        if gripper.closes_above.is_some_and(|measured| measured != closes) {
            gripper.signs.iter_mut().for_each(|sign| *sign = -*sign);
        }
        gripper.closes_above = Some(closes);
        evidence.retain(|line| !grippers::is_about_polarity(line));
        let does = if closes { "close" } else { "open" };
        evidence.push(format!("`--gripper` says that high commands {does} it, which overrides any measurement."));
        let settled = format!("`--gripper '{}=", key_of(column, names));
        layout.undecided.retain(|doubt| !doubt.contains(&settled));
    }
}
