//! Scripts: what is on the table, and the steps in which a robot does something with it.

use super::kinematics::Point;
use super::robot::Colour;

/// A task with its instruction, its things and its steps.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The instruction, as a person would give it.
    pub(super) instruction: &'static str,
    /// What there is, by the numbers that steps use. Earlier things are drawn below later ones.
    pub(super) things: Vec<Thing>,
    /// What is done, one true segment each.
    pub(super) steps: Vec<Step>,
}

/// A thing in the room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thing {
    /// Its centre, in metres.
    pub(super) at: Point,
    /// How far it may be from there at the start of an episode, either way.
    pub(super) spread: Point,
    /// Half of its length, width and height.
    pub(super) half: Point,
    /// How far open a hand is that holds it: 0 is closed, 1 is open.
    pub(super) girth: f64,
    /// Its colour.
    pub(super) colour: Colour,
}

/// A segment: some acts at the same time.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The class of the segment.
    pub(super) phase: &'static str,
    /// How long it takes on average.
    pub(super) seconds: f64,
    /// What is done.
    pub(super) acts: Vec<Act>,
}

/// Something that a part of the robot does during a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// The tip of an arm goes somewhere.
    Tip(usize, Place),
    /// An arm goes back to where it started.
    Home(usize),
    /// A hand closes around a thing, which follows it from then on.
    Take(usize, usize),
    /// A hand opens, and what it holds stays where it is.
    Open(usize),
    /// A column goes to a value.
    Joint(usize, f64),
    /// A column goes back to where it started.
    JointHome(usize),
    /// The base drives until a thing is at this place in the base's frame; the angle stays.
    DriveTo(usize, [f64; 2]),
    /// The base turns, in joint units; positive is to the left.
    Turn(f64),
}

/// Where a tip goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// To a thing, or so far from its centre.
    At(usize, Point),
    /// So far from where it is.
    By(Point),
    /// To a point in the frame of the base.
    Point(Point),
}

/// A step by its parts.
pub(super) fn step(phase: &'static str, seconds: f64, acts: impl Into<Vec<Act>>) -> Step {
    Step { phase, seconds, acts: acts.into() }
}

/// Moves the tip of an arm to a thing.
pub(super) fn to(arm: usize, thing: usize) -> Act {
    Act::Tip(arm, Place::At(thing, [0.0; 3]))
}

/// Moves the tip of an arm to a place above a thing.
pub(super) fn above(arm: usize, thing: usize, height: f64) -> Act {
    Act::Tip(arm, Place::At(thing, [0.0, 0.0, height]))
}

/// Moves the tip of an arm to a place next to a thing.
pub(super) fn near(arm: usize, thing: usize, offset: Point) -> Act {
    Act::Tip(arm, Place::At(thing, offset))
}

/// Moves the tip of an arm by a vector.
pub(super) fn by(arm: usize, vector: Point) -> Act {
    Act::Tip(arm, Place::By(vector))
}

/// Moves the tip of an arm to a point in the frame of the base.
pub(super) fn at_point(arm: usize, point: Point) -> Act {
    Act::Tip(arm, Place::Point(point))
}

/// A hand that picks things up and puts them down, with the names of its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    arm: usize,
    /// The time that it takes, as a multiple of the usual time.
    pace: f64,
    reach: &'static str,
    grasp: &'static str,
    lift: &'static str,
    transport: &'static str,
    place: &'static str,
    release: &'static str,
    retreat: &'static str,
}

impl Hand {
    /// The only hand of a robot.
    pub(super) const fn single(pace: f64) -> Hand {
        Hand {
            arm: 0,
            pace,
            reach: "reach",
            grasp: "grasp",
            lift: "lift",
            transport: "transport",
            place: "place",
            release: "release",
            retreat: "retreat",
        }
    }

    /// The left hand of a robot with two.
    pub(super) const fn left(arm: usize, pace: f64) -> Hand {
        Hand {
            arm,
            pace,
            reach: "left_reach",
            grasp: "left_grasp",
            lift: "left_lift",
            transport: "left_transport",
            place: "left_place",
            release: "left_release",
            retreat: "left_retreat",
        }
    }

    /// The right hand of a robot with two.
    pub(super) const fn right(arm: usize, pace: f64) -> Hand {
        Hand {
            arm,
            pace,
            reach: "right_reach",
            grasp: "right_grasp",
            lift: "right_lift",
            transport: "right_transport",
            place: "right_place",
            release: "right_release",
            retreat: "right_retreat",
        }
    }

    /// Reaches for a thing with an opening hand, grasps it and lifts it.
    pub(super) fn pick(&self, thing: usize) -> Vec<Step> {
        vec![
            step(self.reach, 2.6 * self.pace, [to(self.arm, thing), Act::Open(self.arm)]),
            step(self.grasp, self.pace, [Act::Take(self.arm, thing)]),
            step(self.lift, 1.5 * self.pace, [by(self.arm, [0.0, 0.0, 0.1])]),
        ]
    }

    /// Carries what it holds to a place above a thing, lowers it to a height above the thing's centre, and lets go.
    pub(super) fn put(&self, onto: usize, height: f64) -> Vec<Step> {
        self.put_near(onto, [0.0, 0.0, height])
    }

    /// The same, to a place next to the centre of a thing.
    pub(super) fn put_near(&self, onto: usize, offset: Point) -> Vec<Step> {
        let [x, y, z] = offset;
        vec![
            step(self.transport, 2.6 * self.pace, [near(self.arm, onto, [x, y, z + 0.09])]),
            step(self.place, 1.5 * self.pace, [near(self.arm, onto, offset)]),
            step(self.release, 0.9 * self.pace, [Act::Open(self.arm)]),
        ]
    }

    /// Goes back to where the arm started.
    pub(super) fn retreat(&self) -> Vec<Step> {
        vec![step(self.retreat, 2.3 * self.pace, [Act::Home(self.arm)])]
    }
}

/// A cube that stands on the table, or on what is `at[2]` minus half of its side high.
pub(super) fn cube(at: Point, spread: f64, side: f64, colour: Colour) -> Thing {
    Thing { at, spread: [spread, spread, 0.0], half: [side / 2.0; 3], girth: 0.35, colour }
}

/// A thing that stands still, such as a plate or a box.
pub(super) fn fixed(at: Point, half: Point, colour: Colour) -> Thing {
    Thing { at, spread: [0.0; 3], half, girth: 0.3, colour }
}

/// Colours of things.
pub(super) mod colours {
    use super::Colour;

    pub(in super::super) const RED: Colour = [214, 48, 49];
    pub(in super::super) const BLUE: Colour = [41, 98, 224];
    pub(in super::super) const GREEN: Colour = [46, 160, 67];
    pub(in super::super) const YELLOW: Colour = [240, 190, 30];
    pub(in super::super) const ORANGE: Colour = [230, 120, 30];
    pub(in super::super) const PURPLE: Colour = [140, 70, 180];
    pub(in super::super) const WHITE: Colour = [238, 238, 238];
    pub(in super::super) const BROWN: Colour = [133, 94, 66];
    pub(in super::super) const GREY: Colour = [120, 124, 130];
    pub(in super::super) const DARK: Colour = [45, 48, 54];
    pub(in super::super) const TABLE: Colour = [205, 196, 180];
    pub(in super::super) const FLOOR: Colour = [188, 196, 200];
}
