//! What names mean together: a `waist` is a torso's or an arm's, fingers are those of a hand or of a gripper, and numbers
//! of a pose are what their count says.

use super::names::{Axis, BASES, Hint, Part, Tag, words};

/// Corrects what single names seem to say.
pub(super) fn read(tags: &mut [Tag]) {
    rolls_after_positions(tags);
    twists(tags);
    quaternions_with_w(tags);
    waists_and_bases_of_arms(tags);
    angles_of_joints(tags);
    small_hands(tags);
    numbered_poses(tags);
}

/// Reads the last three of `x, y, z, r, p, y` as roll, pitch and yaw.
fn rolls_after_positions(tags: &mut [Tag]) {
    for at in 3..tags.len().saturating_sub(2) {
        let is = |at: usize, name: &str| tags[at].name.eq_ignore_ascii_case(name);
        if tags[at - 1].axis == Some(Axis::Position(2)) && is(at, "r") && is(at + 1, "p") && is(at + 2, "y") {
            for (place, tag) in tags[at..at + 3].iter_mut().enumerate() {
                *tag = Tag { axis: Some(Axis::Euler(place)), part: Part::Pose, generic: false, ..tag.clone() };
            }
        }
    }
}

/// A velocity along z, or about x or y, makes those along x and y an end effector's, too.
fn twists(tags: &mut [Tag]) {
    let sides: Vec<Option<String>> = tags
        .iter()
        .filter(|tag| tag.part == Part::Pose && tag.hint == Some(Hint::Velocity))
        .map(|tag| tag.side.clone())
        .collect();
    let bases = |word: &str| BASES.contains(&word);
    for tag in tags {
        let by_axis = tag.part == Part::Base && tag.axis.is_some() && !words(&tag.name).iter().any(|word| bases(word));
        if by_axis && sides.contains(&tag.side) {
            tag.part = Part::Pose;
        }
    }
}

/// With a `w`, `rx`, `ry` and `rz` of the same side are a quaternion's.
fn quaternions_with_w(tags: &mut [Tag]) {
    let sides: Vec<Option<String>> =
        tags.iter().filter(|tag| tag.axis == Some(Axis::Quaternion(3))).map(|tag| tag.side.clone()).collect();
    for tag in tags {
        if let Some(Axis::RotationVector(at)) = tag.axis
            && sides.contains(&tag.side)
        {
            tag.axis = Some(Axis::Quaternion(at));
        }
    }
}

/// An arm may have a `waist` or `base` as its first joint; a torso has no side, and a base has more than one column.
fn waists_and_bases_of_arms(tags: &mut [Tag]) {
    let arm_without_side = tags.iter().any(|tag| tag.part == Part::Arm && tag.side.is_none() && !tag.generic);
    let bases = tags.iter().filter(|tag| tag.part == Part::Base).count();
    for tag in tags {
        let waist = tag.part == Part::Torso && words(&tag.name).iter().any(|word| word == "waist");
        let turning_base =
            tag.part == Part::Base && bases == 1 && tag.axis.is_none() && tag.hint != Some(Hint::Velocity);
        if (waist && (tag.side.is_some() || arm_without_side)) || (turning_base && arm_without_side) {
            tag.part = Part::Arm;
        }
    }
}

/// A single angle next to joints of an arm is one of them, as in `rotation, pitch, elbow, wrist_pitch, …`: an end effector
/// has a position or all its angles.
fn angles_of_joints(tags: &mut [Tag]) {
    let before = tags.to_vec();
    for tag in tags {
        let is_angle = tag.part == Part::Pose && matches!(tag.axis, Some(Axis::Euler(_)));
        let poses = before.iter().filter(|other| other.part == Part::Pose && other.side == tag.side).count();
        let joints = before.iter().any(|other| other.part == Part::Arm && other.side == tag.side && !other.generic);
        if is_angle && poses == 1 && joints {
            tag.part = Part::Arm;
            tag.axis = None;
        }
    }
}

/// At most two fingers are those of a gripper, and a hand with one column is one.
fn small_hands(tags: &mut [Tag]) {
    let count = |part: Part, side: &Option<String>, tags: &[Tag]| {
        tags.iter().filter(|tag| tag.part == part && tag.side == *side).count()
    };
    let before = tags.to_vec();
    for tag in tags {
        let (fingers, hands) = (count(Part::Finger, &tag.side, &before), count(Part::Hand, &tag.side, &before));
        tag.part = match tag.part {
            Part::Finger if fingers <= 2 && hands == 0 => Part::Gripper,
            Part::Finger => Part::Hand,
            Part::Hand if hands == 1 && fingers == 0 => Part::Gripper,
            part => part,
        };
    }
}

/// Gives the numbers of a pose their meaning by how many there are: three are a position or a rotation, four a
/// quaternion, six a position and Euler angles, seven a position and a quaternion.
fn numbered_poses(tags: &mut [Tag]) {
    let sides: Vec<Option<String>> = tags.iter().map(|tag| tag.side.clone()).collect();
    for kind in [Axis::Numbered, Axis::NumberedRotation] {
        for side in &sides {
            let places: Vec<usize> =
                (0..tags.len()).filter(|&at| tags[at].axis == Some(kind) && tags[at].side == *side).collect();
            let euler =
                places.iter().any(|&at| words(&tags[at].name).iter().any(|word| word == "euler" || word == "rpy"));
            for (rank, &at) in places.iter().enumerate() {
                let axis = match (kind, places.len()) {
                    (Axis::Numbered, 3 | 6 | 7) if rank < 3 => Some(Axis::Position(rank)),
                    (Axis::Numbered, 6) => Some(Axis::Euler(rank - 3)),
                    (Axis::Numbered, 7) => Some(Axis::Quaternion(rank - 3)),
                    (Axis::NumberedRotation, 3) if euler => Some(Axis::Euler(rank)),
                    (Axis::NumberedRotation, 3) => Some(Axis::RotationVector(rank)),
                    (Axis::NumberedRotation, 4) => Some(Axis::Quaternion(rank)),
                    _ => None,
                };
                tags[at].axis = axis;
                if axis.is_none() && tags[at].part == Part::Pose {
                    tags[at].part = Part::Other;
                }
            }
        }
    }
}
