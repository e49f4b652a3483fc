//! Rotations as datasets write them, and as three coordinates that add up: turns away from a reference orientation.
//!
//! Both `dataset`, which measures how a rotation is written, and `skills`, which computes with it, use this crate; neither
//! depends on the other.
//!
//! Datasets write an orientation as a rotation vector, as roll, pitch and yaw, or as a quaternion. None of these can be
//! averaged, snapped to a grid or subtracted where a robot works: a gripper that points down is half a turn from the origin,
//! where rotation vectors and angles jump. Coordinates here are the rotation vector of `R · R₀⁻¹`, the turn in the frame of the
//! world that leads from a reference R₀ to R. With a reference in the middle of the data they are far from any jump, and a
//! difference of two of them is the turn between them if both are about one axis, which is exact for a wrist that turns.

use std::f64::consts::TAU;

use glam::{DQuat, DVec3, EulerRot};
use serde::{Deserialize, Serialize};

/// How a dataset writes a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotationForm {
    /// Three numbers: the axis, as long as the angle.
    AxisAngle,
    /// Three numbers: roll, pitch and yaw about the fixed axes x, y and z.
    Euler,
    /// Four numbers: x, y, z and w.
    Quaternion,
}

/// The orientation of an end effector: how it is written, and the reference of its coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orientation {
    /// How it is written.
    pub form: RotationForm,
    /// R₀ as a quaternion: x, y, z and w.
    pub reference: [f64; 4],
    /// Radians of one unit of the dataset's angles.
    pub radians: f64,
}

impl RotationForm {
    /// How many numbers it takes.
    pub fn numbers(self) -> usize {
        match self {
            RotationForm::AxisAngle | RotationForm::Euler => 3,
            RotationForm::Quaternion => 4,
        }
    }

    /// The turn from one orientation to another as a rotation vector in the frame of the base, the shorter way round.
    /// Numbers that are not a rotation stand for the origin.
    pub fn between(self, from: &[f64], to: &[f64]) -> [f64; 3] {
        rotation_vector(normalised(self.read(to)) * normalised(self.read(from)).inverse())
    }

    fn read(self, numbers: &[f64]) -> DQuat {
        let at = |place: usize| numbers.get(place).copied().unwrap_or(0.0);
        match self {
            RotationForm::AxisAngle => DQuat::from_scaled_axis(DVec3::new(at(0), at(1), at(2))),
            RotationForm::Euler => DQuat::from_euler(EulerRot::XYZEx, at(0), at(1), at(2)),
            RotationForm::Quaternion => normalised(DQuat::from_xyzw(at(0), at(1), at(2), at(3))),
        }
    }

    /// All numbers that stand for a rotation, in this form, within one turn.
    fn writings(self, rotation: DQuat) -> Vec<Vec<f64>> {
        match self {
            RotationForm::AxisAngle => {
                let shorter = DVec3::from_array(rotation_vector(rotation));
                let angle = shorter.length();
                let longer = if angle > 1e-9 { shorter * (1.0 - TAU / angle) } else { shorter };
                [shorter, longer].map(|one| one.to_array().to_vec()).to_vec()
            }
            RotationForm::Euler => vec![<[f64; 3]>::from(rotation.to_euler(EulerRot::XYZEx)).to_vec()],
            RotationForm::Quaternion => [rotation, -rotation].map(|one| one.to_array().to_vec()).to_vec(),
        }
    }

    /// The numbers of a rotation that are nearest to some others: rotations have several, and data are on one side.
    fn write(self, rotation: DQuat, near: &[f64]) -> Vec<f64> {
        let apart = |numbers: &[f64]| numbers.iter().zip(near).map(|(one, other)| (one - other).powi(2)).sum::<f64>();
        let all = self.writings(rotation).into_iter();
        let mut nearest = all.min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or_default();
        if self == RotationForm::Euler {
            nearest.iter_mut().zip(near).for_each(|(angle, near)| *angle += ((near - *angle) / TAU).round() * TAU);
        }
        nearest
    }
}

impl Orientation {
    /// With the mean of some rotations as the reference; the origin if there are none.
    pub fn around(form: RotationForm, radians: f64, rotations: impl Iterator<Item = Vec<f64>>) -> Orientation {
        let mut sum = [0.0; 4];
        for numbers in rotations {
            let mut one = form.read(&scaled(&numbers, form, radians));
            // A quaternion and its negative are the same rotation; the mean takes the one on its own side.
            if one.dot(DQuat::from_array(sum)) < 0.0 {
                one = -one;
            }
            sum.iter_mut().zip(one.to_array()).for_each(|(sum, part)| *sum += part);
        }
        Orientation { form, reference: normalised(DQuat::from_array(sum)).to_array(), radians }
    }

    /// Rotation vectors around half a turn about x, which is a gripper that points down.
    pub fn about_x() -> Orientation {
        Orientation { form: RotationForm::AxisAngle, reference: [1.0, 0.0, 0.0, 0.0], radians: 1.0 }
    }

    /// The coordinates of a rotation as the dataset writes it.
    pub fn coordinates(&self, numbers: &[f64]) -> [f64; 3] {
        rotation_vector(self.form.read(&scaled(numbers, self.form, self.radians)) * self.origin().inverse())
    }

    /// A rotation as the dataset writes it, from its coordinates: of all numbers that stand for it those nearest to `near`.
    pub fn written(&self, coordinates: &[f64], near: &[f64]) -> Vec<f64> {
        let near = scaled(near, self.form, self.radians);
        let numbers = self.form.write(RotationForm::AxisAngle.read(coordinates) * self.origin(), &near);
        scaled(&numbers, self.form, 1.0 / self.radians)
    }

    fn origin(&self) -> DQuat {
        normalised(DQuat::from_array(self.reference))
    }
}

/// Angles in another unit; the numbers of a quaternion have none.
fn scaled(numbers: &[f64], form: RotationForm, factor: f64) -> Vec<f64> {
    let factor = if form == RotationForm::Quaternion { 1.0 } else { factor };
    numbers.iter().map(|number| number * factor).collect()
}

/// The rotation vector of the shorter turn.
fn rotation_vector(rotation: DQuat) -> [f64; 3] {
    let shorter = if rotation.w < 0.0 { -rotation } else { rotation };
    shorter.to_scaled_axis().to_array()
}

/// As a unit quaternion; numbers that are no rotation are the origin.
fn normalised(rotation: DQuat) -> DQuat {
    let length = rotation.length();
    if length.is_finite() && length > 1e-9 { rotation / length } else { DQuat::IDENTITY }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn coordinates_are_written_back_in_every_form() {
        for form in [RotationForm::AxisAngle, RotationForm::Euler, RotationForm::Quaternion] {
            let rotation = form.write(DQuat::from_euler(EulerRot::XYZEx, 0.4, -0.3, 1.2), &[0.0; 4]);
            let orientation = Orientation::around(form, 1.0, [rotation.clone()].into_iter());
            assert!(orientation.coordinates(&rotation).iter().all(|part| part.abs() < 1e-9), "{form:?}");
            let other = form.write(DQuat::from_euler(EulerRot::XYZEx, 0.6, -0.1, 1.0), &rotation);
            let back = orientation.written(&orientation.coordinates(&other), &rotation);
            assert!(back.iter().zip(&other).all(|(back, other)| (back - other).abs() < 1e-9), "{form:?}: {back:?}");
        }
    }

    #[test]
    fn a_gripper_that_points_down_turns_without_a_jump() {
        // Half a turn about x, then a little about z: the rotation vector flips its sign, the coordinates do not.
        let orientation = Orientation::about_x();
        let turned = |angle: f64| {
            let rotation = DQuat::from_rotation_z(angle) * DQuat::from_rotation_x(PI);
            orientation.coordinates(&RotationForm::AxisAngle.write(rotation, &[PI, 0.0, 0.0]))
        };
        for step in -10..=10 {
            let angle = f64::from(step) * 0.1;
            let [x, y, z] = turned(angle);
            assert!(x.abs() < 1e-6 && y.abs() < 1e-6 && (z - angle).abs() < 1e-6, "{angle}: {x} {y} {z}");
        }
    }

    #[test]
    fn the_same_turn_is_found_however_it_is_written() {
        let turn = [0.0, 0.0, 0.3];
        let close = |found: [f64; 3]| found.iter().zip(turn).all(|(one, other)| (one - other).abs() < 1e-9);
        let flipped = [PI - 0.01, 0.0, 0.0];
        let to = RotationForm::AxisAngle.read(&turn) * RotationForm::AxisAngle.read(&flipped);
        assert!(close(RotationForm::AxisAngle.between(&flipped, &to.to_scaled_axis().to_array())));
        // The vector jumps to the other side of the sphere, the rotation does not.
        assert!(close(RotationForm::AxisAngle.between(&[0.0, 0.0, 3.0], &[0.0, 0.0, 3.3 - TAU])));
        assert!(close(RotationForm::Euler.between(&[0.1, 0.2, 0.3], &[0.1, 0.2, 0.6])));
        let turned = (-RotationForm::AxisAngle.read(&turn)).to_array();
        assert!(close(RotationForm::Quaternion.between(&[0.0, 0.0, 0.0, 1.0], &turned)));
        assert_eq!(RotationForm::Quaternion.between(&[0.0; 4], &[0.0; 4]), [0.0; 3]);
        assert_eq!(RotationForm::AxisAngle.between(&[f64::NAN; 3], &[0.0; 3]), [0.0; 3]);
    }

    #[test]
    fn numbers_that_are_no_rotation_are_the_origin() {
        let zeros = Orientation { form: RotationForm::Quaternion, reference: [0.0; 4], radians: 1.0 };
        assert_eq!(zeros.coordinates(&[0.0; 4]), [0.0; 3]);
        assert_eq!(Orientation::around(RotationForm::Euler, 1.0, std::iter::empty()).reference, [0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_rotation_is_written_on_the_side_of_the_data() {
        // A gripper that points down, a little more than half a turn: the shorter turn would be the other way round.
        let down = [3.4, 0.1, 0.0];
        let orientation = Orientation::around(RotationForm::AxisAngle, 1.0, [down.to_vec()].into_iter());
        let back = orientation.written(&orientation.coordinates(&down), &[3.2, 0.0, 0.0]);
        assert!(back.iter().zip(&down).all(|(back, down)| (back - down).abs() < 1e-9), "{back:?}");
        // The same in degrees, and past a whole turn.
        let degrees = Orientation::around(RotationForm::Euler, PI / 180.0, [vec![190.0, 0.0, 0.0]].into_iter());
        let back = degrees.written(&degrees.coordinates(&[200.0, 5.0, -3.0]), &[185.0, 0.0, 0.0]);
        assert!(back.iter().zip([200.0, 5.0, -3.0]).all(|(back, one)| (back - one).abs() < 1e-6), "{back:?}");
    }
}
