//! Whether actions are positions, changes or velocities: measured, and by name where nothing can be measured.

use super::measure::{Fit, Samples};
use super::names::{Hint, Tag};
use super::{Control, ControlChoice, GroupKind, Rotation};

/// Actions are positions if they explain this share of the state that follows, and no less than of its change.
const ABSOLUTE: f64 = 0.5;

/// Actions are changes if they explain this share of the state's change, and more than of the state. It is less than
/// [`ABSOLUTE`] because changes of measured positions are noisy.
const RELATIVE: f64 = 0.25;

/// Actions may leave the range of the state by this share of it and still be positions.
const MARGIN: f64 = 0.2;

/// How well a group's actions explain its states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// For each column how well the action explains the state that follows.
    pub(super) level: Vec<Option<Fit>>,
    /// The same for the state's change.
    pub(super) change: Vec<Option<Fit>>,
}

/// What was found for a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) control: Control,
    pub(super) evidence: String,
    /// Why this is not certain, if it is not.
    pub(super) doubt: Option<String>,
    /// Whether nothing moves, so that nothing could be measured.
    pub(super) at_rest: bool,
}

impl Measured {
    /// Measures pairs of an action column and a state column.
    pub(super) fn of(samples: &Samples<'_>, pairs: &[(usize, Option<usize>)]) -> Measured {
        let fit = |measure: &dyn Fn(usize, usize) -> Option<Fit>| {
            pairs.iter().map(|(action, state)| measure(*action, (*state)?)).collect()
        };
        Measured {
            level: fit(&|action, state| samples.level(action, |frame| samples.state(frame, state))),
            change: fit(&|action, state| samples.change(action, |frame| samples.state(frame, state))),
        }
    }

    /// The mean share of the states and of their changes that actions explain, over columns that move.
    pub(super) fn shares(&self, columns: usize) -> Option<(f64, f64)> {
        let both = self.level.iter().zip(&self.change).take(columns);
        let moving: Vec<(f64, f64)> = both
            .filter(|(level, change)| level.is_some() || change.is_some())
            .map(|(level, change)| shares(level, change))
            .collect();
        let mean = |of: fn(&(f64, f64)) -> f64| moving.iter().map(of).sum::<f64>() / moving.len() as f64;
        (!moving.is_empty()).then(|| (mean(|both| both.0), mean(|both| both.1)))
    }

    /// What a single column is, if its numbers are clear.
    pub(super) fn clear(&self, place: usize) -> Option<Control> {
        let (level, change) = shares(self.level.get(place)?, self.change.get(place)?);
        decisive(level, change)
    }

    fn lag(&self, of: &[Option<Fit>]) -> Option<usize> {
        let mut lags: Vec<usize> = of.iter().flatten().map(|fit| fit.lag).collect();
        lags.sort_unstable();
        lags.get(lags.len() / 2).copied()
    }
}

/// The share of the state and that of its change that an action explains.
fn shares(level: &Option<Fit>, change: &Option<Fit>) -> (f64, f64) {
    (level.map_or(0.0, |fit| fit.as_position().max(0.0)), change.map_or(0.0, |fit| fit.explained.max(0.0)))
}

fn decisive(level: f64, change: f64) -> Option<Control> {
    match () {
        () if level >= ABSOLUTE && level >= change => Some(Control::Absolute),
        () if change >= RELATIVE && change > level => Some(Control::Relative),
        () => None,
    }
}

/// What a group's actions mean. `name` is that of the group, `columns` how many of its columns are measured by.
pub(super) fn decided(
    (name, kind): (&str, GroupKind),
    tags: &[&Tag],
    state_tags: &[&Tag],
    (measured, columns): (&Measured, usize),
    (samples, pairs): (&Samples<'_>, &[(usize, Option<usize>)]),
    fps: f64,
) -> Decision {
    if kind == GroupKind::Other {
        return Decision {
            control: Control::Absolute,
            evidence: "It is not a motion.".to_owned(),
            doubt: None,
            at_rest: false,
        };
    }
    let hint = hint(kind, tags);
    let velocities = !state_tags.is_empty() && state_tags.iter().all(|tag| tag.hint == Some(Hint::Velocity));
    let shares = measured.shares(columns);
    let found = shares.and_then(|(level, change)| decisive(level, change));
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let seconds = |of: &[Option<Fit>]| match measured.lag(of) {
        Some(lag) if lag > 0 && fps > 0.0 => format!(" after {:.2} s", lag as f64 / fps),
        _ => String::new(),
    };
    let flag = |other: &str| format!("`--control '{name}={other}'`");
    let (level, change) = shares.unwrap_or_default();
    let follows = format!(
        "Actions explain {} of the states{}",
        percent(level),
        seconds(&measured.level[..columns.min(measured.level.len())])
    );
    let moves = format!("{} of their changes", percent(change));
    match (found, hint) {
        (Some(Control::Absolute), Some(Hint::Velocity)) => Decision {
            control: Control::Velocity,
            evidence: format!("{follows}, which are velocities as the actions' names say, and {moves}."),
            doubt: None,
            at_rest: false,
        },
        (Some(Control::Absolute), hint) if kind == GroupKind::Base && hint.is_none() => Decision {
            control: Control::Velocity,
            evidence: format!("{follows}, which are taken to be velocities of a base, and {moves}."),
            doubt: Some(format!(
                "The actions of the {name} may be velocities or positions: states follow them, and no name says which. \
                 They are taken to be velocities; {} says that they are positions.",
                flag("absolute")
            )),
            at_rest: false,
        },
        (Some(Control::Absolute), hint) => Decision {
            control: Control::Absolute,
            evidence: format!("{follows} and {moves}: they are positions to go to."),
            doubt: (hint == Some(Hint::Change)).then(|| {
                format!(
                    "The actions of the {name} are named as changes, but the states follow them as positions. They are \
                     taken to be positions; {} says otherwise.",
                    flag("relative")
                )
            }),
            at_rest: false,
        },
        (Some(_), hint) => Decision {
            control: Control::Relative,
            evidence: format!(
                "Actions explain {} of the states' changes and {} of the states: they are changes of position.",
                percent(change),
                percent(level)
            ),
            doubt: (hint == Some(Hint::Position)).then(|| {
                format!(
                    "The actions of the {name} are named as positions, but they explain how the states change, not where \
                     they are. They are taken to be changes; {} says otherwise.",
                    flag("absolute")
                )
            }),
            at_rest: false,
        },
        (None, Some(Hint::Change)) => by_name(Control::Relative, "changes"),
        (None, Some(Hint::Velocity)) if pairs.iter().all(|(_, state)| state.is_none()) || velocities => {
            by_name(Control::Velocity, "velocities")
        }
        (None, Some(Hint::Velocity)) => by_name(Control::Relative, "velocities"),
        (None, Some(Hint::Position)) => by_name(Control::Absolute, "positions"),
        (None, None) => default((name, kind), shares.is_some(), (samples, pairs)),
    }
}

/// What the user says that a group's actions mean. Measurements that clearly say otherwise are a doubt.
pub(super) fn chosen(
    (name, kind): (&str, GroupKind),
    choice: &ControlChoice,
    (measured, columns): (&Measured, usize),
) -> Decision {
    let (level, change) = measured.shares(columns).unwrap_or_default();
    let found = decisive(level, change).filter(|_| kind != GroupKind::Other);
    // States that follow velocities are velocities themselves, which numbers alone do not tell from positions.
    let agrees =
        |found: Control| found == choice.control || (found, choice.control) == (Control::Absolute, Control::Velocity);
    let doubt = found.filter(|found| !agrees(*found)).map(|found| {
        format!(
            "`--control '{choice}'` says that the actions of the {name} are {}, but they explain {:.0} % of the states \
             and {:.0} % of their changes, as {} do. The flag stands; check it.",
            choice.control.means(),
            100.0 * level,
            100.0 * change,
            found.means()
        )
    });
    let evidence = format!("`--control '{choice}'` says that its actions are {}.", choice.control.means());
    Decision { control: choice.control, evidence, doubt, at_rest: false }
}

fn by_name(control: Control, what: &str) -> Decision {
    let evidence =
        format!("The names of the actions say that they are {what}; the numbers are not clear enough to check it.");
    Decision { control, evidence, doubt: None, at_rest: false }
}

/// A guess where neither names nor numbers say anything.
fn default(
    (name, kind): (&str, GroupKind),
    moves: bool,
    (samples, pairs): (&Samples<'_>, &[(usize, Option<usize>)]),
) -> Decision {
    let has_states = pairs.iter().any(|(_, state)| state.is_some());
    let why = match (has_states, moves) {
        (false, _) => "no state is known to follow them",
        (true, false) => "they or their states hardly move",
        (true, true) => "they explain neither where the states are nor how these change",
    };
    let (control, taken, other) = match kind {
        GroupKind::Base => (Control::Velocity, "velocities, as is usual for a base", "absolute"),
        _ if within(samples, pairs) => {
            (Control::Absolute, "positions, since they lie in the range of positions", "relative")
        }
        _ => (Control::Relative, "changes, since they do not lie in the range of positions", "absolute"),
    };
    Decision {
        control,
        evidence: format!("What actions mean is not known, because {why}."),
        doubt: Some(format!(
            "It is not known what the actions of the {name} mean, because {why}. They are taken to be {taken}; \
             `--control '{name}={other}'` says otherwise."
        )),
        at_rest: has_states && !moves,
    }
}

/// Whether the actions lie in the range of their states; without states, whether they are unlike changes, which lie
/// about zero.
fn within(samples: &Samples<'_>, pairs: &[(usize, Option<usize>)]) -> bool {
    let known: Vec<bool> = pairs
        .iter()
        .filter_map(|(action, state)| {
            let [low, high] = samples.action_quantiles(*action, [0.01, 0.99])?;
            let [least, most] = match state {
                Some(state) => samples.state_quantiles(*state, [0.01, 0.99])?,
                None => {
                    return Some(low * high > 0.0 && (low.abs().max(high.abs())) < 10.0 * (low.abs().min(high.abs())));
                }
            };
            let margin = MARGIN * (most - least).max(1e-6);
            Some(low >= least - margin && high <= most + margin)
        })
        .collect();
    2 * known.iter().filter(|within| **within).count() > known.len()
}

/// What the names of a group's actions say, if they agree. A `position` of an end effector may also be a change.
fn hint(kind: GroupKind, tags: &[&Tag]) -> Option<Hint> {
    let of = |hint: Hint| tags.iter().filter(|tag| tag.hint == Some(hint)).count();
    match () {
        () if of(Hint::Change) > 0 => Some(Hint::Change),
        () if 2 * of(Hint::Velocity) > tags.len() => Some(Hint::Velocity),
        () if of(Hint::Position) == tags.len()
            && matches!(kind, GroupKind::Joints | GroupKind::Gripper | GroupKind::Base) =>
        {
            Some(Hint::Position)
        }
        () => None,
    }
}

/// The mean share of the turns that actions explain, over axes that turn.
pub(super) fn share_of_turns(turns: &[Option<Fit>]) -> Option<f64> {
    let shares: Vec<f64> = turns.iter().flatten().map(|fit| fit.explained.max(0.0)).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// How the three rotation actions explain the rotation of the state, which turns in the frame of the base.
pub(super) fn turns(
    samples: &Samples<'_>,
    pairs: &[(usize, Option<usize>)],
    written: Rotation,
    columns: &[usize],
) -> Vec<Option<Fit>> {
    let numbers = |frame: usize| -> Vec<f64> { columns.iter().map(|column| samples.state(frame, *column)).collect() };
    let one = |(axis, (action, _)): (usize, &(usize, Option<usize>))| {
        samples.motion(*action, |from, to| written.between(&numbers(from), &numbers(to))[axis])
    };
    match pairs.get(3..6) {
        Some(rotation) if pairs.len() == 6 => rotation.iter().enumerate().map(one).collect(),
        _ => Vec::new(),
    }
}
