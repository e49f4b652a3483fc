//! Rotations as they are written in states, and the rotation that leads from one to another.

use glam::{DQuat, DVec3, EulerRot};

use super::Rotation;

/// The rotation from one orientation to another as a rotation vector in the frame of the base, the shorter way round.
pub(super) fn between(written: Rotation, from: &[f64], to: &[f64]) -> [f64; 3] {
    let turn = quaternion(written, to) * quaternion(written, from).inverse();
    let shorter = if turn.w < 0.0 { -turn } else { turn };
    shorter.to_scaled_axis().to_array()
}

/// An orientation as a unit quaternion. Numbers that are none give no rotation.
fn quaternion(written: Rotation, numbers: &[f64]) -> DQuat {
    let raw = match (written, numbers) {
        (Rotation::Quaternion, &[x, y, z, w, ..]) => DQuat::from_xyzw(x, y, z, w),
        (Rotation::AxisAngle, &[x, y, z, ..]) => DQuat::from_scaled_axis(DVec3::new(x, y, z)),
        (Rotation::Euler, &[roll, pitch, yaw, ..]) => DQuat::from_euler(EulerRot::XYZEx, roll, pitch, yaw),
        _ => DQuat::IDENTITY,
    };
    let length = raw.length();
    if length > 1e-9 && length.is_finite() { raw / length } else { DQuat::IDENTITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_turn_is_found_however_it_is_written() {
        let turn = [0.0, 0.0, 0.3];
        let flipped = [std::f64::consts::PI - 0.01, 0.0, 0.0];
        let to = quaternion(Rotation::AxisAngle, &turn) * quaternion(Rotation::AxisAngle, &flipped);
        let to = to.to_scaled_axis().to_array();
        let close = |found: [f64; 3]| found.iter().zip(turn).all(|(one, other)| (one - other).abs() < 1e-9);
        assert!(close(between(Rotation::AxisAngle, &flipped, &to)));
        // The vector jumps to the other side of the sphere, the rotation does not.
        let (from, to) = ([0.0, 0.0, 3.0], [0.0, 0.0, 3.3 - 2.0 * std::f64::consts::PI]);
        assert!(close(between(Rotation::AxisAngle, &from, &to)));
        assert!(close(between(Rotation::Euler, &[0.1, 0.2, 0.3], &[0.1, 0.2, 0.6])));
        let turned = (-quaternion(Rotation::AxisAngle, &turn)).to_array();
        assert!(close(between(Rotation::Quaternion, &[0.0, 0.0, 0.0, 1.0], &turned)));
        assert_eq!(between(Rotation::Quaternion, &[0.0; 4], &[0.0; 4]), [0.0; 3]);
    }
}
