//! Which column is the state, which the action, which are cameras, rewards and labels.
//!
//! LeRobot fixes names for none of them, so they are detected from names and types; whoever knows better says so with
//! [`Overrides`]. Detection never guesses between two: it asks, with the candidates.

use serde::Serialize;

use crate::fault::{Error, Fault};
use crate::info::{Dtype, Feature, Info};
use crate::robot::ControlChoice;
use crate::robot::choices::{contradictions, names_or_numbers, unknown_columns};

/// Columns that lerobot adds to every dataset.
pub(crate) const AUTOMATIC: [&str; 5] = ["timestamp", "frame_index", "episode_index", "index", "task_index"];

/// What the user says about columns; `None` leaves it to detection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The column of states.
    pub state: Option<String>,
    /// The column of actions.
    pub action: Option<String>,
    /// The cameras, in order; an empty list is a dataset without pictures.
    pub cameras: Option<Vec<String>>,
    /// The column of rewards.
    pub reward: Option<String>,
    /// Integer columns to keep as labels.
    pub labels: Option<Vec<String>>,
    /// What the actions of groups or columns mean; a choice for a group stands against one for all.
    pub control: Vec<ControlChoice>,
    /// The gripper commands among the action's dimensions, by name or number; an empty list is a robot without grippers.
    /// `=opens` or `=closes` may follow, which says what a high command does.
    pub grippers: Option<Vec<String>>,
}

/// Which column has which role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Roles {
    /// The robot's state, a vector in each row.
    pub state: String,
    /// The action taken in that state.
    pub action: String,
    /// Cameras, as videos or as pictures in the data files.
    pub cameras: Vec<String>,
    /// The reward after the action.
    pub reward: Option<String>,
    /// Whether the episode ends after the action.
    pub done: Option<String>,
    /// Whether the task is solved after the action.
    pub success: Option<String>,
    /// Integer columns of one value each, such as `phase`.
    pub labels: Vec<String>,
}

/// Decides the roles; reports all that cannot be decided.
pub(crate) fn roles(info: &Info, overrides: &Overrides) -> Result<Roles, Error> {
    let mut faults = Vec::new();
    let state = vector(info, "state", &overrides.state, &["observation.state", "state", "observation"]);
    let action = vector(info, "action", &overrides.action, &["action", "actions"]);
    let state_left = || left(info, &action, |key| !key.contains("action"));
    let action_left = || left(info, &state, |key| !key.contains("state") && !key.starts_with("observation"));
    let (chosen_state, chosen_action) = (chosen(&state, state_left), chosen(&action, action_left));
    let [state, action] = [chosen_state, chosen_action].map(|found| {
        found.unwrap_or_else(|fault| {
            faults.push(fault);
            String::new()
        })
    });
    let cameras = each(info, "camera", &overrides.cameras, &mut faults, "video or image", |it| it.dtype.is_camera());
    let labels = each(info, "label", &overrides.labels, &mut faults, "an integer", is_label);
    let labels = labels.into_iter().filter(|key| overrides.labels.is_some() || !is_other_index(key)).collect();
    let reward = match &overrides.reward {
        None => single(info, &["next.reward", "reward"], |it| it.dtype.is_float() || it.dtype.is_integer()),
        Some(key) => {
            faults.extend(misfit(info, "reward", key, "one number", |it| it.width() == 1 && !it.dtype.is_camera()));
            Some(key.clone())
        }
    };
    let truth = |it: &Feature| it.dtype == Dtype::Bool || it.dtype.is_integer() || it.dtype.is_float();
    let done = single(info, &["next.done", "done"], truth);
    let success = single(info, &["next.success", "success"], truth);
    if let Some(feature) = info.feature(&action) {
        let names = names_or_numbers(feature.dimension_names(), feature.width());
        let grippers = overrides.grippers.as_deref().unwrap_or_default();
        faults.extend(unknown_columns(grippers, &names));
        faults.extend(contradictions(&overrides.control, grippers, &names));
    }
    let roles = Roles { state, action, cameras, reward, done, success, labels };
    Error::of(faults).map_or(Ok(roles), Err)
}

/// The one that the user names, of whatever shape; else the usual name if it is there, else the only vector with the
/// role in its name.
fn vector(info: &Info, role: &'static str, chosen: &Option<String>, usual: &[&str]) -> Result<String, Fault> {
    if let Some(key) = chosen {
        return match misfit(info, role, key, "numbers, at least one in a row", has_numbers) {
            None => Ok(key.clone()),
            Some(fault) => Err(fault),
        };
    }
    let vectors = vectors(info);
    if let Some(key) = usual.iter().find(|key| vectors.contains(key)) {
        return Ok(key.to_string());
    }
    let named: Vec<&str> = vectors.iter().filter(|key| key.contains(role)).copied().collect();
    match named.as_slice() {
        [key] => Ok(key.to_string()),
        [] => Err(Fault::NoRole { role, reason: NONE_NAMED.to_string(), candidates: owned(&vectors) }),
        _ => Err(Fault::NoRole { role, reason: "several could be".to_string(), candidates: owned(&named) }),
    }
}

/// What was found; if nothing has the name, the only vector that is left.
fn chosen(found: &Result<String, Fault>, left: impl Fn() -> Option<String>) -> Result<String, Fault> {
    match found {
        Err(Fault::NoRole { reason, .. }) if reason == NONE_NAMED => left().ok_or(()).or_else(|()| found.clone()),
        _ => found.clone(),
    }
}

/// The only vector of two numbers or more beside the one with the other role, unless its name speaks against it. Single
/// numbers are labels and measures, and if neither role is known, nothing is left over.
fn left(info: &Info, other: &Result<String, Fault>, fits: impl Fn(&str) -> bool) -> Option<String> {
    let other = other.as_ref().ok()?;
    let wide = |key: &&str| info.feature(key).is_some_and(|feature| feature.width() > 1);
    match vectors(info).into_iter().filter(|key| key != other).filter(wide).collect::<Vec<_>>()[..] {
        [key] if fits(key) => Some(key.to_string()),
        _ => None,
    }
}

/// The columns that may be state or action.
fn vectors(info: &Info) -> Vec<&str> {
    keys(info, |key, it| is_vector(it) && !AUTOMATIC.contains(&key) && !key.starts_with("next."))
}

const NONE_NAMED: &str = "none has its name";

/// All features of a kind, or those that the user names.
fn each(
    info: &Info,
    role: &'static str,
    chosen: &Option<Vec<String>>,
    faults: &mut Vec<Fault>,
    expected: &str,
    fits: impl Fn(&Feature) -> bool,
) -> Vec<String> {
    let Some(chosen) = chosen else {
        return owned(&keys(info, |key, feature| fits(feature) && !AUTOMATIC.contains(&key)));
    };
    faults.extend(chosen.iter().filter_map(|key| misfit(info, role, key, expected, &fits)));
    chosen.clone()
}

/// The first of the usual names that is there and fits.
fn single(info: &Info, usual: &[&str], fits: impl Fn(&Feature) -> bool) -> Option<String> {
    let found = |key: &&&str| info.feature(key).is_some_and(|feature| feature.width() == 1 && fits(feature));
    usual.iter().find(found).map(|key| key.to_string())
}

/// Why a column that the user named cannot have its role.
fn misfit(
    info: &Info,
    role: &'static str,
    key: &str,
    expected: &str,
    fits: impl Fn(&Feature) -> bool,
) -> Option<Fault> {
    match info.feature(key) {
        None => Some(Fault::UnknownKey { key: key.to_string(), candidates: owned(&keys(info, |_, it| fits(it))) }),
        Some(feature) if fits(feature) => None,
        Some(feature) => Some(Fault::WrongRole {
            role,
            key: key.to_string(),
            found: feature.shown(),
            expected: expected.to_string(),
        }),
    }
}

fn is_vector(feature: &Feature) -> bool {
    has_numbers(feature) && feature.shape.len() == 1
}

fn has_numbers(feature: &Feature) -> bool {
    (feature.dtype.is_float() || feature.dtype.is_integer()) && feature.width() >= 1
}

fn is_label(feature: &Feature) -> bool {
    feature.dtype.is_integer() && feature.width() == 1
}

/// Whether an integer is a counter or a flag rather than a label.
fn is_other_index(key: &str) -> bool {
    key.starts_with("next.")
}

fn keys(info: &Info, fits: impl Fn(&str, &Feature) -> bool) -> Vec<&str> {
    info.features.iter().filter(|(key, feature)| fits(key, feature)).map(|(key, _)| key.as_str()).collect()
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| key.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(features: &[(&str, Dtype, &[usize])]) -> Info {
        let features =
            features.iter().map(|(key, dtype, shape)| (key.to_string(), Feature::new(dtype.clone(), shape))).collect();
        Info {
            version: "v3.0".to_string(),
            robot_type: None,
            total_episodes: 0,
            total_frames: 0,
            total_tasks: 0,
            chunks_size: 1000,
            fps: 20.0,
            splits: Vec::new(),
            data_path: crate::info::DATA_PATH.to_string(),
            video_path: None,
            features,
        }
    }

    #[test]
    fn the_usual_names_are_found() {
        let info = info(&[
            ("observation.images.top", Dtype::Video, &[4, 4, 3]),
            ("observation.state", Dtype::Float32, &[8]),
            ("observation.velocity", Dtype::Float32, &[8]),
            ("action", Dtype::Float32, &[7]),
            ("next.reward", Dtype::Float32, &[1]),
            ("next.done", Dtype::Bool, &[1]),
            ("phase", Dtype::Int(64), &[1]),
            ("index", Dtype::Int(64), &[1]),
        ]);
        let roles = roles(&info, &Overrides::default()).unwrap();
        assert_eq!((roles.state.as_str(), roles.action.as_str()), ("observation.state", "action"));
        assert_eq!(roles.cameras, ["observation.images.top"]);
        assert_eq!(roles.labels, ["phase"]);
        assert_eq!((roles.reward.as_deref(), roles.success), (Some("next.reward"), None));
    }

    #[test]
    fn unusual_names_are_found_if_there_is_one_only() {
        let info = info(&[("arm.state", Dtype::Float64, &[3]), ("robot_action", Dtype::Float32, &[2])]);
        let roles = roles(&info, &Overrides::default()).unwrap();
        assert_eq!((roles.state.as_str(), roles.action.as_str()), ("arm.state", "robot_action"));
    }

    #[test]
    fn two_candidates_are_asked_about_and_overrides_answer() {
        let info = info(&[
            ("left.state", Dtype::Float32, &[3]),
            ("right.state", Dtype::Float32, &[3]),
            ("motors", Dtype::Float32, &[2]),
        ]);
        let error = roles(&info, &Overrides::default()).unwrap_err();
        let [Fault::NoRole { role: "state", candidates, .. }, Fault::NoRole { role: "action", .. }] = error.faults()
        else {
            panic!("both roles are open: {error}");
        };
        assert_eq!(candidates, &["left.state", "right.state"]);
        let (state, action) = (Some("left.state".to_string()), Some("motors".to_string()));
        let chosen = Overrides { state, action, ..Overrides::default() };
        assert_eq!(roles(&info, &chosen).unwrap().action, "motors");
        let wrong = Overrides { cameras: Some(vec!["motors".to_string(), "none".to_string()]), ..chosen };
        let error = roles(&info, &wrong).unwrap_err();
        assert!(matches!(error.faults(), [Fault::WrongRole { .. }, Fault::UnknownKey { .. }]), "{error}");
    }

    #[test]
    fn the_only_vector_left_has_the_open_role() {
        let found = |features: &[(&str, Dtype, &[usize])]| {
            roles(&info(features), &Overrides::default()).map(|roles| (roles.state, roles.action)).ok()
        };
        let pair = |state: &str, action: &str| Some((state.to_string(), action.to_string()));
        let (action, qpos) = (("action", Dtype::Float32, &[2][..]), ("qpos", Dtype::Float32, &[3][..]));
        let (phase, force) = (("phase", Dtype::Int(64), &[1][..]), ("force", Dtype::Float32, &[1][..]));
        assert_eq!(found(&[action.clone(), qpos.clone(), phase, force]), pair("qpos", "action"));
        let state = ("observation.state", Dtype::Float32, &[3][..]);
        assert_eq!(found(&[state.clone(), ("motors", Dtype::Float32, &[3])]), pair("observation.state", "motors"));
        // A dataset without actions has none, whatever else was observed.
        assert_eq!(found(&[state, ("observation.velocity", Dtype::Float32, &[3])]), None);
        assert_eq!(found(&[action.clone(), ("action.delta", Dtype::Float32, &[2])]), None);
        assert_eq!(found(&[action, qpos.clone(), ("qvel", Dtype::Float32, &[3])]), None);
        assert_eq!(found(&[qpos]), None);
    }

    #[test]
    fn a_matrix_may_be_the_state_if_the_user_says_so() {
        let info = info(&[("poses", Dtype::Float32, &[2, 4]), ("action", Dtype::Float32, &[2])]);
        assert!(roles(&info, &Overrides::default()).is_err());
        let chosen = Overrides { state: Some("poses".to_string()), ..Overrides::default() };
        assert_eq!(roles(&info, &chosen).unwrap().state, "poses");
    }
}
