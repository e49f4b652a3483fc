//! Rotations as they are written in states, and the rotation that leads from one to another.

use super::Rotation;

/// The rotation from one orientation to another as a rotation vector in the frame of the base.
pub(super) fn between(written: Rotation, from: &[f64], to: &[f64]) -> [f64; 3] {
    let (from, to) = (quaternion(written, from), quaternion(written, to));
    let [x, y, z, w] = from;
    vector(product(to, [-x, -y, -z, w]))
}

/// An orientation as a unit quaternion x, y, z, w. Numbers that are none give no rotation.
fn quaternion(written: Rotation, numbers: &[f64]) -> [f64; 4] {
    let raw = match (written, numbers) {
        (Rotation::Quaternion, &[x, y, z, w, ..]) => [x, y, z, w],
        (Rotation::AxisAngle, &[x, y, z, ..]) => {
            let angle = (x * x + y * y + z * z).sqrt();
            let scale = if angle > 1e-12 { (angle / 2.0).sin() / angle } else { 0.5 };
            [x * scale, y * scale, z * scale, (angle / 2.0).cos()]
        }
        (Rotation::Euler, &[roll, pitch, yaw, ..]) => {
            let about = |axis: usize, angle: f64| {
                let mut turn = [0.0, 0.0, 0.0, (angle / 2.0).cos()];
                turn[axis] = (angle / 2.0).sin();
                turn
            };
            product(product(about(2, yaw), about(1, pitch)), about(0, roll))
        }
        _ => [0.0, 0.0, 0.0, 1.0],
    };
    let norm = raw.iter().map(|part| part * part).sum::<f64>().sqrt();
    if norm > 1e-9 && norm.is_finite() { raw.map(|part| part / norm) } else { [0.0, 0.0, 0.0, 1.0] }
}

fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let ([ax, ay, az, aw], [bx, by, bz, bw]) = (a, b);
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// The axis times the angle, the shorter way round.
fn vector(quaternion: [f64; 4]) -> [f64; 3] {
    let [x, y, z, w] = if quaternion[3] < 0.0 { quaternion.map(|part| -part) } else { quaternion };
    let sine = (x * x + y * y + z * z).sqrt();
    let scale = if sine > 1e-12 { 2.0 * sine.atan2(w) / sine } else { 2.0 };
    [x * scale, y * scale, z * scale]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_turn_is_found_however_it_is_written() {
        let turn = [0.0, 0.0, 0.3];
        let flipped = [std::f64::consts::PI - 0.01, 0.0, 0.0];
        let to = vector(product(quaternion(Rotation::AxisAngle, &turn), quaternion(Rotation::AxisAngle, &flipped)));
        let close = |found: [f64; 3]| found.iter().zip(turn).all(|(one, other)| (one - other).abs() < 1e-9);
        assert!(close(between(Rotation::AxisAngle, &flipped, &to)));
        // The vector jumps to the other side of the sphere, the rotation does not.
        let (from, to) = ([0.0, 0.0, 3.0], [0.0, 0.0, 3.3 - 2.0 * std::f64::consts::PI]);
        assert!(close(between(Rotation::AxisAngle, &from, &to)));
        assert!(close(between(Rotation::Euler, &[0.1, 0.2, 0.3], &[0.1, 0.2, 0.6])));
        let quaternions = [[0.0, 0.0, 0.0, 1.0], quaternion(Rotation::AxisAngle, &turn)];
        assert!(close(between(Rotation::Quaternion, &quaternions[0], &quaternions[1].map(|part| -part))));
        assert_eq!(between(Rotation::Quaternion, &[0.0; 4], &[0.0; 4]), [0.0; 3]);
    }
}
