//! Small pictures of a scene: limbs as lines, things as rectangles, hands as two fingers.
//!
//! Edges are blended by the share of a pixel that they cover, so that a motion of less than a pixel is seen as well.

use super::kinematics::{Axis, Point, Posture, about, add, apply, dot, subtract};
use super::robot::{Camera, Colour, Mount, Robot};
use super::script::Task;
use crate::frame::Frame;

/// The width and height of pictures in pixels.
pub(super) const SIDE: usize = 64;

/// Where everything is in one frame.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// Of each arm.
    pub(super) postures: Vec<Posture>,
    /// How far the hand of each arm is open, 0 to 1.
    pub(super) openings: Vec<f64>,
    /// The centres of things.
    pub(super) things: Vec<Point>,
    /// x, y and the angle of the base.
    pub(super) base: Point,
}

/// What a camera sees of a scene.
pub(super) fn picture(robot: &Robot, task: &Task, scene: &Scene, camera: &Camera) -> Frame {
    let view = View::new(scene, camera);
    let mut canvas = Canvas::new(camera.background);
    for (thing, centre) in task.things.iter().zip(&scene.things) {
        canvas.rectangle(view.project(*centre), view.extent(thing.half), thing.colour);
    }
    if let Some(base) = &robot.base {
        let centre = [scene.base[0], scene.base[1], base.half[2]];
        canvas.rectangle(view.project(centre), view.extent(base.half), base.colour);
    }
    for (number, (arm, posture)) in robot.arms.iter().zip(&scene.postures).enumerate() {
        let length = posture.points.len();
        if camera.mount != Mount::Hand(number) {
            for (at, pair) in posture.points.windows(2).enumerate() {
                let shade = if at % 2 == 0 { arm.colour } else { lighter(arm.colour) };
                let radius = if at + 2 == length { 1.0 } else { 1.5 };
                canvas.line(view.project(pair[0]), view.project(pair[1]), radius, shade);
            }
        }
        for side in [-1.0, 1.0] {
            let gap = side * (0.006 + 0.03 * scene.openings[number]);
            let finger = |along: f64| add(posture.tip(), apply(&posture.hand, [along, gap, 0.0]));
            canvas.line(view.project(finger(-0.025)), view.project(finger(0.01)), 0.8, DARK);
        }
    }
    canvas.frame()
}

const DARK: Colour = [20, 20, 24];

/// A point of a picture: pixels to the right and down.
type Spot = [f64; 2];

/// A camera at its place in a scene.
struct View {
    origin: Point,
    right: Point,
    up: Point,
    scale: f64,
}

impl View {
    fn new(scene: &Scene, camera: &Camera) -> View {
        let (mount, turned) = match camera.mount {
            Mount::Room => ([0.0; 3], about(Axis::Z, 0.0)),
            Mount::Base => ([scene.base[0], scene.base[1], 0.0], about(Axis::Z, scene.base[2])),
            Mount::Hand(arm) => (scene.postures[arm].tip(), scene.postures[arm].hand),
        };
        View {
            origin: add(mount, apply(&turned, camera.centre)),
            right: apply(&turned, camera.right),
            up: apply(&turned, camera.up),
            scale: SIDE as f64 / camera.width,
        }
    }

    fn project(&self, point: Point) -> Spot {
        let from = subtract(point, self.origin);
        let middle = SIDE as f64 / 2.0;
        [middle + self.scale * dot(from, self.right), middle - self.scale * dot(from, self.up)]
    }

    /// Half of the width and height in pixels of a box with these half sides.
    fn extent(&self, half: Point) -> Spot {
        let along = |axis: Point| self.scale * (0..3).map(|at| axis[at].abs() * half[at]).sum::<f64>();
        [along(self.right), along(self.up)]
    }
}

/// Pixels that are painted on.
struct Canvas {
    pixels: Vec<[f64; 3]>,
}

impl Canvas {
    fn new(background: Colour) -> Canvas {
        Canvas { pixels: vec![background.map(f64::from); SIDE * SIDE] }
    }

    fn blend(&mut self, column: usize, row: usize, colour: Colour, share: f64) {
        for (value, wanted) in self.pixels[row * SIDE + column].iter_mut().zip(colour) {
            *value += share * (f64::from(wanted) - *value);
        }
    }

    /// A rectangle around a spot.
    fn rectangle(&mut self, centre: Spot, half: Spot, colour: Colour) {
        let (left, right) = (centre[0] - half[0], centre[0] + half[0]);
        let (top, bottom) = (centre[1] - half[1], centre[1] + half[1]);
        let covered = |pixel: usize, from: f64, to: f64| ((pixel + 1) as f64).min(to) - (pixel as f64).max(from);
        for row in pixels(top, bottom) {
            for column in pixels(left, right) {
                let share = covered(column, left, right).max(0.0) * covered(row, top, bottom).max(0.0);
                self.blend(column, row, colour, share);
            }
        }
    }

    /// A line with round ends.
    fn line(&mut self, from: Spot, to: Spot, radius: f64, colour: Colour) {
        let way = [to[0] - from[0], to[1] - from[1]];
        let squared = way[0] * way[0] + way[1] * way[1];
        let reach = radius + 1.0;
        for row in pixels(from[1].min(to[1]) - reach, from[1].max(to[1]) + reach) {
            for column in pixels(from[0].min(to[0]) - reach, from[0].max(to[0]) + reach) {
                let here = [column as f64 + 0.5 - from[0], row as f64 + 0.5 - from[1]];
                let along = (here[0] * way[0] + here[1] * way[1]) / squared.max(1e-12);
                let along = along.clamp(0.0, 1.0);
                let apart = [here[0] - along * way[0], here[1] - along * way[1]];
                let distance = (apart[0] * apart[0] + apart[1] * apart[1]).sqrt();
                self.blend(column, row, colour, (radius + 0.5 - distance).clamp(0.0, 1.0));
            }
        }
    }

    fn frame(&self) -> Frame {
        let bytes = self.pixels.iter().flat_map(|pixel| pixel.map(|value| value.round().clamp(0.0, 255.0) as u8));
        Frame { width: SIDE, height: SIDE, pixels: bytes.collect() }
    }
}

/// The pixels between two coordinates, inside the picture.
fn pixels(from: f64, to: f64) -> std::ops::Range<usize> {
    let inside = |value: f64| value.clamp(0.0, SIDE as f64) as usize;
    inside(from.floor())..inside(to.ceil())
}

fn lighter(colour: Colour) -> Colour {
    colour.map(|value| value.saturating_add(36))
}

#[cfg(test)]
mod tests {
    use super::super::Synthetic;
    use super::super::kinematics::forward;
    use super::*;

    fn scene(robot: &Robot, values: &[f64]) -> Scene {
        Scene {
            postures: robot.arms.iter().map(|arm| forward(robot, arm, values, [0.0; 3])).collect(),
            openings: vec![0.0; robot.arms.len()],
            things: robot.tasks[0].things.iter().map(|thing| thing.at).collect(),
            base: [0.0; 3],
        }
    }

    #[test]
    fn a_rectangle_covers_its_area() {
        let mut canvas = Canvas::new([0; 3]);
        canvas.rectangle([10.25, 20.5], [2.0, 1.25], [100, 0, 0]);
        let sum: f64 = canvas.pixels.iter().map(|pixel| pixel[0] / 100.0).sum();
        assert!((sum - 10.0).abs() < 1e-9, "{sum}");
        canvas.rectangle([-50.0, 500.0], [2.0, 2.0], [100, 0, 0]);
        canvas.line([-1e9, 3.0], [1e9, f64::NAN], 1.0, [1, 2, 3]);
    }

    /// Every joint of an arm, and every hand, can be seen by a camera.
    #[test]
    fn pictures_show_the_state() {
        for synthetic in Synthetic::ALL {
            let robot = synthetic.robot();
            let seen = |values: &[f64], opening: f64| -> Vec<Frame> {
                let mut scene = scene(&robot, values);
                scene.openings.fill(opening);
                robot.cameras.iter().map(|camera| picture(&robot, &robot.tasks[0], &scene, camera)).collect()
            };
            if robot.cameras.is_empty() {
                continue;
            }
            let home = seen(&robot.home(), 0.0);
            assert_ne!(home, seen(&robot.home(), 1.0), "{}: hands", synthetic.name());
            for arm in &robot.arms {
                for joint in &arm.joints {
                    let mut values = robot.home();
                    values[joint.column] += 0.1 / robot.unit;
                    let name = &robot.columns[joint.column].name;
                    assert_ne!(home, seen(&values, 0.0), "{}: {name}", synthetic.name());
                }
            }
        }
    }
}
