//! What the names of dimensions say: the side and the part that a column belongs to, and what of it the column is.
//!
//! Names are cut into words, at signs, digits and changes of case, so that `left_shoulder_pan.pos`, `kLeftShoulderPitch`
//! and `L_shoulder_pitch` have words in common. Words decide; there is no list of robots.

use serde_json::Value;

use super::context;

/// The part of a robot that a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Joints of an arm, and columns whose names say nothing.
    Arm,
    /// Position and rotation of an end effector.
    Pose,
    Gripper,
    /// A finger: of a gripper if there are at most two, else of a hand.
    Finger,
    Hand,
    Head,
    Torso,
    Leg,
    Base,
    Other,
}

/// Which coordinate of an end effector a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Axis {
    /// x, y or z.
    Position(usize),
    /// Roll, pitch or yaw.
    Euler(usize),
    /// A component of the axis times the angle.
    RotationVector(usize),
    /// x, y, z or w.
    Quaternion(usize),
    /// A number of a pose: how many there are says what they are.
    Numbered,
    /// A number of a rotation.
    NumberedRotation,
}

/// What a name says about the meaning of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    Position,
    Change,
    Velocity,
}

/// What a name says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tag {
    pub(super) name: String,
    /// `left`, `right`, or the number of a robot or arm.
    pub(super) side: Option<String>,
    pub(super) part: Part,
    pub(super) axis: Option<Axis>,
    pub(super) hint: Option<Hint>,
    /// Whether the name says nothing but a number, as `motor_3` does.
    pub(super) generic: bool,
    /// Whether it is a force or torque, which is neither a position nor a velocity.
    pub(super) effort: bool,
    /// The words that tell the column from others of its part, so that actions and states can be matched.
    pub(super) key: Vec<String>,
}

const ARM_JOINTS: [&str; 10] =
    ["shoulder", "elbow", "wrist", "forearm", "upperarm", "joint", "joints", "motor", "servo", "dof"];
const ARMS: [&str; 5] = ["arm", "panda", "franka", "ur", "xarm"];
const GRIPPERS: [&str; 8] = ["gripper", "grippers", "grip", "jaw", "jaws", "claw", "grasp", "pincer"];
const FINGERS: [&str; 2] = ["finger", "fingers"];
const DIGITS: [&str; 12] =
    ["thumb", "index", "middle", "mid", "ring", "pinky", "little", "mcp", "cmc", "pip", "dip", "palm"];
const HANDS: [&str; 3] = ["hand", "hands", "dexhand"];
const HEADS: [&str; 3] = ["head", "neck", "eye"];
const LEGS: [&str; 7] = ["leg", "hip", "knee", "ankle", "foot", "thigh", "calf"];
const TORSOS: [&str; 8] = ["torso", "waist", "spine", "trunk", "body", "lift", "pelvis", "chest"];
pub(super) const BASES: [&str; 11] =
    ["base", "wheel", "wheels", "chassis", "mobile", "drive", "loco", "locomotion", "odom", "platform", "pivot"];
const OTHERS: [&str; 8] = ["mode", "terminate", "pad", "padding", "done", "button", "trigger", "switch"];
const EFFORTS: [&str; 7] = ["torque", "effort", "eff", "force", "nm", "current", "tau"];
const CHANGES: [&str; 4] = ["delta", "diff", "increment", "d"];
const VELOCITIES: [&str; 8] = ["vel", "velocity", "velocities", "speed", "twist", "qvel", "v", "motion"];
const POSITIONS: [&str; 6] = ["pos", "position", "qpos", "angle", "target", "goal"];
const EFFECTORS: [&str; 6] = ["ee", "eef", "tcp", "effector", "cartesian", "pose"];
const ROTATIONS: [&str; 7] = ["rot", "rotation", "ori", "orientation", "rotvec", "angular", "axisangle"];
/// Words that say nothing about which column of a part it is.
const NOISE: [&str; 27] = [
    "k",
    "main",
    "follower",
    "leader",
    "joint",
    "joints",
    "motor",
    "servo",
    "action",
    "actions",
    "state",
    "states",
    "cmd",
    "command",
    "target",
    "goal",
    "desired",
    "observation",
    "robot",
    "end",
    "rad",
    "deg",
    "m",
    "mm",
    "s",
    "pct",
    "degree",
];
const GENERIC: [&str; 18] = [
    "joint",
    "joints",
    "motor",
    "motors",
    "j",
    "q",
    "qpos",
    "action",
    "actions",
    "state",
    "states",
    "s",
    "a",
    "dim",
    "dof",
    "pos",
    "position",
    "positions",
];

/// Reads the names of all actions or of all states.
pub(super) fn tags(names: &[String]) -> Vec<Tag> {
    let mut tags: Vec<Tag> = names.iter().map(|name| tag(name)).collect();
    context::read(&mut tags);
    tags
}

/// Whether a name is that of a joint of an arm, such as `wrist_roll`, and not only that of an arm.
pub(super) fn says_joint(name: &str) -> bool {
    words(name).iter().any(|word| ARM_JOINTS[..5].contains(&word.as_str()))
}

/// Whether a name says that a column is a joint of whatever part, as `joint_7` does.
pub(super) fn is_joint(name: &str) -> bool {
    words(name).iter().any(|word| ARM_JOINTS.contains(&word.as_str()))
}

/// Clears the numbers of robots if all names have the same.
pub(super) fn forget_only_number(actions: &mut [Tag], states: &mut [Tag]) {
    let is_number = |side: &str| side.bytes().all(|letter| letter.is_ascii_digit());
    let all =
        || actions.iter().chain(states.iter()).filter_map(|tag| tag.side.as_deref()).filter(|side| is_number(side));
    let Some(first) = all().next().map(String::from) else { return };
    if all().all(|side| side == first) {
        for tag in actions.iter_mut().chain(states) {
            tag.side.take_if(|side| *side == first);
        }
    }
}

/// The names of dimensions in whatever shape a writer chose, if there is one for each of them: a list, a list of lists, a
/// list below a key, a list for each part below the part's name, or places by name.
pub(crate) fn flattened(names: &Value, width: usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    collect(names, "", &mut found)?;
    if found.len() != width {
        return None;
    }
    // Places are given for all of them or for none.
    if found.iter().all(|(_, place)| place.is_some()) {
        found.sort_by_key(|(_, place)| *place);
    }
    Some(found.into_iter().map(|(name, _)| name).collect())
}

fn collect(value: &Value, above: &str, found: &mut Vec<(String, Option<u64>)>) -> Option<()> {
    let below = |name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}_{name}") };
    match value {
        Value::String(name) => found.push((below(name), None)),
        Value::Array(list) => list.iter().try_for_each(|one| collect(one, above, found))?,
        Value::Object(map) => {
            // The only key of a list is what its elements are, such as `motors` or `axes`, not a part of their names.
            let is_heading = map.len() == 1;
            for (key, one) in map {
                match one {
                    Value::Number(place) => found.push((below(key), Some(place.as_u64()?))),
                    _ if is_heading => collect(one, above, found)?,
                    _ => collect(one, &below(key), found)?,
                }
            }
        }
        _ => return None,
    }
    Some(())
}

/// Cuts a name at signs, digits and changes of case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    for letter in name.chars() {
        if letter.is_alphanumeric() {
            let starts = match before {
                Some(before) => {
                    (letter.is_uppercase() && !before.is_uppercase()) || letter.is_numeric() != before.is_numeric()
                }
                None => true,
            };
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
            before = Some(letter);
        } else {
            before = None;
        }
    }
    words
}

fn tag(name: &str) -> Tag {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let letters: Vec<&str> = words.iter().map(String::as_str).filter(|word| !is_number(word)).collect();
    let (side, side_words) = side(&words);
    let generic = letters.iter().all(|word| GENERIC.contains(word));
    let effort = has(&EFFORTS);
    let (axis, written) = axis(&words);
    let hint = match () {
        () if written == Some(Hint::Change) || has(&CHANGES[..3]) => Some(Hint::Change),
        () if words.len() > 1 && words[0] == "d" => Some(Hint::Change),
        () if written == Some(Hint::Velocity) || has(&VELOCITIES) => Some(Hint::Velocity),
        () if has(&POSITIONS) => Some(Hint::Position),
        () => None,
    };
    let known = [&ARM_JOINTS[..], &ARMS, &HEADS, &LEGS, &TORSOS, &BASES, &HANDS, &DIGITS].concat();
    let is_pose = axis.is_some() && !has(&ARM_JOINTS) && !has(&[&HEADS[..], &LEGS, &TORSOS, &HANDS, &DIGITS].concat());
    let turns = has(&["roll", "pitch", "yaw"]);
    let part = match () {
        () if has(&OTHERS) => Part::Other,
        () if is_pose && has(&BASES) => Part::Base,
        () if is_pose && hint == Some(Hint::Velocity) && plane(axis) && !has(&EFFECTORS) => Part::Base,
        () if is_pose => Part::Pose,
        () if has(&GRIPPERS) => Part::Gripper,
        () if has(&DIGITS) => Part::Hand,
        () if has(&FINGERS) => Part::Finger,
        () if has(&HANDS) && !turns => Part::Hand,
        () if has(&HEADS) => Part::Head,
        () if has(&LEGS) => Part::Leg,
        () if has(&ARM_JOINTS[..5]) || has(&ARMS) || has(&HANDS) => Part::Arm,
        () if has(&TORSOS) => Part::Torso,
        () if has(&BASES) => Part::Base,
        () if has(&["theta", "omega", "linear", "angular"]) && hint == Some(Hint::Velocity) => Part::Base,
        () => Part::Arm,
    };
    let generic = generic || (part == Part::Arm && axis.is_none() && !letters.iter().any(|word| known.contains(word)));
    let is_key = |(at, word): &(usize, &String)| {
        let said = [&NOISE[..], &POSITIONS, &VELOCITIES, &CHANGES[..3], &EFFECTORS, &ARMS].concat();
        !side_words.contains(at) && !said.contains(&word.as_str())
    };
    let key = words.iter().enumerate().filter(is_key).map(|(_, word)| word.clone()).collect();
    Tag { name: name.to_owned(), side, part, axis, hint, generic, effort, key }
}

fn is_number(word: &str) -> bool {
    word.chars().all(char::is_numeric)
}

/// The side, and the places of the words that say it.
fn side(words: &[String]) -> (Option<String>, Vec<usize>) {
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(String::as_str);
        let named = match word.as_str() {
            "left" => Some("left"),
            "right" => Some("right"),
            // A single letter is a side only before the name of something: `r_elbow`, but not `r` or `r_x`.
            "l" | "r" if at == 0 && next.is_some_and(|next| next.len() > 1 && !is_number(next)) => {
                Some(if word == "l" { "left" } else { "right" })
            }
            _ => None,
        };
        if let Some(side) = named {
            return (Some(side.to_owned()), vec![at]);
        }
        if (word == "robot" || word == "arm")
            && let (Some(number), Some(after)) = (next.filter(|next| is_number(next)), words.get(at + 2))
            && !is_number(after)
        {
            return (Some(number.to_owned()), vec![at, at + 1]);
        }
    }
    (None, Vec::new())
}

/// The coordinate that words name, and whether they say that it is a change or a velocity.
fn axis(words: &[String]) -> (Option<Axis>, Option<Hint>) {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let letter = |of: &[&str]| words.iter().find_map(|word| of.iter().position(|known| known == word));
    let numbered = words.iter().any(|word| is_number(word));
    let prefixed = |prefix: &str| {
        letter(&["x", "y", "z", "w"].map(|axis| format!("{prefix}{axis}")).each_ref().map(String::as_str))
    };
    let quaternion = has(&["quat", "quaternion"]);
    let euler = has(&["euler", "rpy"]);
    let turned = has(&ROTATIONS) || (has(&["axis"]) && has(&["angle"]));
    let found = match letter(&["x", "y", "z", "w"]) {
        Some(at) if quaternion => Some(Axis::Quaternion(at)),
        Some(at) if euler && at < 3 => Some(Axis::Euler(at)),
        Some(at) if turned && at < 3 => Some(Axis::RotationVector(at)),
        Some(at) if at < 3 => Some(Axis::Position(at)),
        _ => None,
    };
    let found = found
        .or_else(|| letter(&["roll", "pitch", "yaw"]).map(Axis::Euler))
        .or_else(|| prefixed("q").map(Axis::Quaternion))
        .or_else(|| prefixed("p").filter(|at| *at < 3).map(Axis::Position))
        .or_else(|| prefixed("r").map(|at| if at < 3 { Axis::RotationVector(at) } else { Axis::Quaternion(3) }))
        .or_else(|| prefixed("a").filter(|at| *at < 3).map(Axis::RotationVector))
        .or_else(|| (numbered && (quaternion || euler || turned)).then_some(Axis::NumberedRotation))
        .or_else(|| (numbered && has(&EFFECTORS)).then_some(Axis::Numbered));
    if found.is_some() {
        return (found, None);
    }
    let change = prefixed("d").filter(|at| *at < 3).map(Axis::Position);
    let change = change.or_else(|| letter(&["droll", "dpitch", "dyaw"]).map(Axis::Euler));
    if change.is_some() {
        return (change, Some(Hint::Change));
    }
    let velocity = prefixed("v").filter(|at| *at < 3).map(Axis::Position);
    let velocity = velocity.or_else(|| letter(&["vroll", "vpitch", "vyaw"]).map(Axis::Euler));
    let velocity = velocity.or_else(|| prefixed("w").filter(|at| *at < 3).map(Axis::RotationVector));
    (velocity, velocity.map(|_| Hint::Velocity))
}

/// Whether a base can have a velocity of this coordinate.
fn plane(axis: Option<Axis>) -> bool {
    matches!(axis, Some(Axis::Position(0 | 1) | Axis::Euler(2) | Axis::RotationVector(2)))
}
