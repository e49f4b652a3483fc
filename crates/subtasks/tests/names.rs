//! Names of subtasks against what is known of recorded, synthetic and invented episodes.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use clustering::Points;
use dataset::synthetic::{Options, Synthetic, write};
use dataset::{Dataset, Overrides, RobotLayout, Root, embedded};
use proptest::prelude::*;
use skills::{ActionLayout, Episode, ScoredSegment, SegmentConfig, segment_scored};
use subtasks::robot::{action_layout, episode};
use subtasks::{NameSource, Named, Namer};

/// An episode of an arm with LIBERO's actions: rows, velocity and gripper command of each motion.
fn moved(motions: &[(usize, [f32; 3], f32)]) -> (Episode, ActionLayout) {
    let layout = ActionLayout::libero();
    let (mut actions, mut states) = (Vec::new(), Vec::new());
    let mut place = [0.0, 0.0, 1.0_f32];
    for (rows, velocity, grip) in motions {
        for _ in 0..*rows {
            states.extend(place.into_iter().chain([0.0; 5]));
            actions.extend(velocity.iter().copied().chain([0.0, 0.0, 0.0, *grip]));
            place.iter_mut().zip(velocity).for_each(|(place, velocity)| *place += 0.01 * velocity);
        }
    }
    let [actions, states] = [Points::new(&actions, 7), Points::new(&states, 8)].map(Result::unwrap);
    (Episode::new(&layout, actions, Some(states)).unwrap(), layout)
}

fn cut(episode: &Episode, layout: &ActionLayout) -> Vec<ScoredSegment> {
    segment_scored(episode, layout, &SegmentConfig::subtasks()).unwrap()
}

fn named(instruction: &str, motions: &[(usize, [f32; 3], f32)]) -> Named {
    let (episode, layout) = moved(motions);
    Namer::default().name(instruction, &episode, &layout, &cut(&episode, &layout))
}

fn texts(named: &Named) -> Vec<&str> {
    named.subtasks.iter().map(|one| one.name.as_str()).collect()
}

const DOWN: [f32; 3] = [0.3, 0.2, -0.8];
const UP: [f32; 3] = [0.0, 0.0, 0.8];
const ALONG: [f32; 3] = [0.2, 0.8, 0.0];
const LOWER: [f32; 3] = [0.0, 0.0, -0.5];
const STAND: [f32; 3] = [0.0; 3];

/// Reaches, grasps, lifts, carries, lowers, lets go, goes up.
const PUT: [(usize, [f32; 3], f32); 7] = [
    (30, DOWN, -1.0),
    (12, STAND, 1.0),
    (16, UP, 1.0),
    (30, ALONG, 1.0),
    (20, LOWER, 1.0),
    (8, STAND, -1.0),
    (9, UP, -1.0),
];

#[test]
fn putting_something_somewhere_has_the_steps_that_a_person_names() {
    let found = named("put the bowl on the plate", &PUT);
    assert_eq!(
        texts(&found),
        [
            "reach for the bowl",
            "grasp the bowl",
            "lift the bowl",
            "move the bowl to the plate",
            "place the bowl on the plate",
            "release the bowl",
            "move away"
        ]
    );
    let starts: Vec<usize> = found.subtasks.iter().map(|one| one.rows.start).collect();
    for (start, wanted) in starts.iter().zip([0, 30, 42, 58, 88, 108, 116]) {
        assert!(start.abs_diff(wanted) <= 2, "{starts:?}");
    }
    assert!(found.score > 0.9, "{}", found.score);
    assert!(found.subtasks.iter().all(|one| one.named_by == NameSource::Instruction));
    assert_eq!(found.steps[1].as_ref().unwrap().phase, "grasp");
    assert_eq!(found.steps[1].as_ref().unwrap().object.as_deref(), Some("bowl"));
}

#[test]
fn segments_of_one_step_are_merged_and_a_segment_of_two_steps_is_split() {
    let (episode, layout) = moved(&PUT);
    // The reach is cut where nothing happens, and lifting and carrying are one segment.
    let cuts = [0, 10, 20, 30, 42, 88, 108, 116, 125];
    let segments: Vec<ScoredSegment> =
        cuts.windows(2).map(|two| ScoredSegment { rows: two[0]..two[1], confidence: 0.9 }).collect();
    let found = Namer::default().name("put the bowl on the plate", &episode, &layout, &segments);
    assert_eq!(found.subtasks.len(), 7, "{:?}", texts(&found));
    assert_eq!(found.subtasks[0].rows, 0..30);
    assert!(found.subtasks[3].rows.start.abs_diff(58) <= 2, "{:?}", found.subtasks[3]);
    // Nobody cut there, so the boundary is less sure.
    assert!(found.subtasks[3].boundary_confidence < found.subtasks[4].boundary_confidence);
}

#[test]
fn what_slips_out_of_the_hand_is_reached_for_again() {
    let slips = [(30, DOWN, -1.0), (12, STAND, 1.0), (16, UP, 1.0), (8, STAND, -1.0)];
    let motions: Vec<_> = slips.into_iter().chain(PUT).collect();
    let found = named("put the bowl on the plate", &motions);
    let reaches = texts(&found).iter().filter(|name| **name == "reach for the bowl").count();
    assert_eq!(reaches, 2, "{:?}", texts(&found));
    assert_eq!(texts(&found).last(), Some(&"move away"));
}

#[test]
fn what_is_put_down_after_it_was_picked_up_is_neither_carried_nor_reached_for_again() {
    for instruction in ["pick up the red cube", "take the red cube off the plate"] {
        let found = named(instruction, &PUT);
        let names = texts(&found);
        assert_eq!(
            names[names.len() - 3..],
            ["put down the red cube", "release the red cube", "move away"],
            "{instruction}: {names:?}"
        );
        assert_eq!(names.iter().filter(|name| name.starts_with("reach for")).count(), 1, "{names:?}");
        assert!(found.score > 0.8, "{}", found.score);
    }
    // What stays in the hand is carried.
    assert_eq!(texts(&named("pick up the red cube", &PUT[..4])).last(), Some(&"carry the red cube"));
    // A hand that closes again at the end holds nothing.
    let closes: Vec<_> = PUT.into_iter().chain([(12, DOWN, -1.0), (15, STAND, 1.0)]).collect();
    let found = named("pick up the red cube", &closes);
    let reaches = texts(&found).iter().filter(|name| name.starts_with("reach for")).count();
    assert!(reaches <= 1, "{:?}", texts(&found));
}

#[test]
fn objects_come_in_the_order_of_the_instruction() {
    let motions: Vec<_> = PUT.into_iter().chain(PUT).collect();
    let found = named("put the soup in the basket and put the butter on the plate", &motions);
    let names = texts(&found);
    assert_eq!(names.len(), 14, "{names:?}");
    assert_eq!((names[4], names[11]), ("place the soup in the basket", "place the butter on the plate"));
    let twice = named("put both moka pots on the stove", &motions);
    assert_eq!(texts(&twice)[7], "reach for the second moka pot");
}

#[test]
fn every_one_of_several_objects_is_grasped_and_released() {
    let motions: Vec<_> = PUT.into_iter().chain(PUT).collect();
    for instruction in ["put all the cubes in the box", "put the cubes in the box"] {
        let found = named(instruction, &motions);
        let names = texts(&found);
        assert_eq!(names.len(), 14, "{names:?}");
        assert_eq!((names[1], names[5]), ("grasp the first cube", "release the first cube"));
        assert_eq!((names[8], names[12]), ("grasp the second cube", "release the second cube"));
        assert!(found.score > 0.9, "{}", found.score);
        // A single one is not counted.
        let once = named(instruction, &PUT);
        assert_eq!(texts(&once)[1], if instruction.contains("all") { "grasp the cube" } else { "grasp the cubes" });
        // A third time, somebody only closes the gripper on the way home.
        let more: Vec<_> = motions.iter().copied().chain([(12, ALONG, -1.0), (12, STAND, 1.0)]).collect();
        let names = named(instruction, &more);
        assert!(texts(&names).iter().all(|name| !name.contains("place the third")), "{:?}", texts(&names));
    }
    let picked = named("pick up the cubes and place them in the box", &motions);
    assert_eq!(texts(&picked)[11], "place the second cube in the box");
}

#[test]
fn what_tidying_handles_is_named_after_the_motion() {
    let twice: Vec<_> = PUT.into_iter().chain(PUT).collect();
    for (instruction, motions, fits) in [
        ("tidy up the table", &twice[..], false),
        ("clean up the table", &twice, false),
        ("tidy up the table", &PUT, false),
        // Somebody wipes with a cloth that the instruction does not name, and puts it back.
        ("wipe the table", &PUT, true),
        ("wipe the table", &twice, false),
    ] {
        let found = named(instruction, motions);
        let by_motion = found.subtasks.iter().all(|one| one.named_by == NameSource::Motion);
        assert_eq!(by_motion, !fits, "{instruction}: {} {:?}", found.score, texts(&found));
    }
}

#[test]
fn nothing_is_released_that_was_not_grasped() {
    // The hand closes before the episode begins, or not at all.
    let pushed = [(30, DOWN, -1.0), (40, ALONG, -1.0), (12, STAND, -1.0), (20, UP, -1.0)];
    for instruction in
        ["push the plate to the front of the stove", "open the middle drawer of the cabinet", "press the button"]
    {
        let found = named(instruction, &pushed);
        let names = texts(&found);
        let grasped = names.iter().any(|name| name.starts_with("grasp"));
        assert!(grasped || names.iter().all(|name| !name.starts_with("release")), "{instruction}: {names:?}");
    }
}

#[test]
fn motions_name_what_the_instruction_does_not() {
    for instruction in ["", "la vida es sueño", "press the button", "put it there"] {
        let found = named(instruction, &PUT);
        assert!(found.score < 0.5, "{instruction}: {}", found.score);
        assert!(found.subtasks.iter().all(|one| one.named_by == NameSource::Motion), "{instruction}");
        assert!(found.steps.iter().all(Option::is_none));
        assert_eq!(found.subtasks.len(), found.steps.len());
        let names = texts(&found);
        assert!(names.contains(&"close gripper"), "{names:?}");
        assert!(names.contains(&"lift about 10 cm"), "{names:?}");
        assert!(names.iter().any(|name| name.ends_with("left, gripper closed")), "{names:?}");
    }
}

#[test]
fn an_instruction_of_another_task_falls_back_to_the_motion() {
    let twice: Vec<_> = PUT.into_iter().chain(PUT).collect();
    let pulled = [(30, DOWN, -1.0), (12, STAND, 1.0), (40, ALONG, 1.0), (8, STAND, -1.0), (9, UP, -1.0)];
    for (instruction, motions, fits) in [
        ("put the bowl on the plate", &PUT[..], true),
        ("open the middle drawer of the cabinet", &PUT, false),
        ("turn on the stove", &PUT, false),
        ("put both the soup and the sauce in the basket", &PUT, false),
        ("put both the soup and the sauce in the basket", &twice, true),
        ("open the middle drawer of the cabinet", &twice, false),
        ("open the middle drawer of the cabinet", &pulled, true),
        ("put both the soup and the sauce in the basket", &pulled, false),
    ] {
        let found = named(instruction, motions);
        let wanted = if fits { NameSource::Instruction } else { NameSource::Motion };
        assert!(
            found.subtasks.iter().all(|one| one.named_by == wanted),
            "{instruction}: {} {:?}",
            found.score,
            texts(&found)
        );
    }
}

#[test]
fn episodes_without_rows_have_no_subtasks() {
    assert_eq!(named("put the bowl on the plate", &[]).subtasks, []);
    assert_eq!(named("put the bowl on the plate", &[(1, UP, 1.0)]).subtasks.len(), 1);
}

/// The share of rows with the true phase and arm, and the names of each episode.
fn accuracy(dataset: &Dataset) -> (f64, Vec<Vec<String>>) {
    let layout = action_layout(dataset, &RobotLayout::of(dataset)).unwrap();
    let phases = dataset.label_names("phase").unwrap();
    let truth = &dataset.columns().labels["phase"];
    let (mut right, mut names) = (0, Vec::new());
    for span in dataset.spans() {
        let own = episode(dataset, &span.frames, &layout).unwrap();
        let found = Namer::default().name(&dataset.tasks()[span.task.at()], &own, &layout, &cut(&own, &layout));
        for (subtask, step) in found.subtasks.iter().zip(&found.steps) {
            let Some(step) = step else { continue };
            let fits = |row: usize| {
                let phase = &phases[truth[span.frames.start + row] as usize];
                let side = ["left_", "right_", "both_"].into_iter().find(|side| phase.starts_with(side)).unwrap_or("");
                let arm = step.arm.as_deref().unwrap_or_default().split(' ').next().unwrap_or_default();
                let phase = phase[side.len()..].split('_').next().unwrap_or_default();
                phase == step.phase && (side.is_empty() || side.trim_end_matches('_') == arm)
            };
            right += subtask.rows.clone().filter(|row| fits(*row)).count();
        }
        names.push(found.subtasks.into_iter().map(|one| one.name).collect());
    }
    (right as f64 / dataset.frames() as f64, names)
}

fn open(root: Root) -> Dataset {
    let blind = Overrides { cameras: Some(Vec::new()), ..Overrides::default() };
    Dataset::open(root, &blind).unwrap()
}

#[test]
fn phases_of_recorded_episodes_are_found() {
    let (right, names) = accuracy(&open(embedded("libero_goal_mini").unwrap()));
    assert!(right > 0.9, "{right}: {names:#?}");
}

fn synthetic(robot: Synthetic) -> (f64, Vec<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(robot.name());
    write(&place, robot, &Options { per_task: 1, ..Options::default() }).unwrap();
    accuracy(&open(Root::Directory(place)))
}

#[test]
fn robots_with_joints_are_named_by_grippers_and_motion() {
    let (right, names) = synthetic(Synthetic::So101);
    assert!(right > 0.8, "{right}: {names:#?}");
    assert!(names[3].contains(&"open the drawer".to_owned()), "{:?}", names[3]);
}

#[test]
fn motions_of_joints_say_which_joints_turn() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("so101");
    write(&place, Synthetic::So101, &Options { per_task: 1, ..Options::default() }).unwrap();
    let dataset = open(Root::Directory(place));
    let layout = action_layout(&dataset, &RobotLayout::of(&dataset)).unwrap();
    let mut nameless = layout.clone();
    nameless.groups.iter_mut().for_each(|group| group.names.clear());
    let mut names = std::collections::BTreeSet::new();
    let (mut repeated, mut repeated_without) = (0, 0);
    let thrice = |names: &[&str]| names.windows(3).filter(|three| three[0] == three[1] && three[1] == three[2]).count();
    for span in dataset.spans() {
        let own = episode(&dataset, &span.frames, &layout).unwrap();
        let segments = cut(&own, &layout);
        let found = Namer::default().name("", &own, &layout, &segments);
        let without = Namer::default().name("", &own, &nameless, &segments);
        let own = texts(&found);
        repeated += thrice(&own);
        repeated_without += thrice(&texts(&without));
        names.extend(own.into_iter().map(str::to_owned));
    }
    assert!(names.iter().any(|name| name.starts_with("turn shoulder") || name.contains("elbow flex")), "{names:?}");
    assert!(names.iter().all(|name| !name.contains("move arm") && !name.contains(" cm ")), "{names:?}");
    // Names of joints tell neighbours apart that the name of the arm does not.
    assert!(repeated < repeated_without, "{repeated} and {repeated_without} without names of joints: {names:?}");
}

#[test]
fn of_two_arms_the_one_that_acts_is_named() {
    let (right, names) = synthetic(Synthetic::Aloha);
    assert!(right > 0.88, "{right}: {names:#?}");
    assert_eq!(names[0][0], "right arm: reach for the red cube");
    assert_eq!(names[2][0], "both arms: reach for the tray");
    let over = &names[1];
    let at =
        |name: &str| over.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name} is not in {over:?}"));
    assert!(at("right arm: grasp the blue block") < at("left arm: release the blue block"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any motion has subtasks that cover it in order, whatever the instruction says.
    #[test]
    fn subtasks_cover_any_episode(
        motions in prop::collection::vec(
            (0..25usize, prop::array::uniform3(-1.0..1.0f32), prop::sample::select(vec![-1.0f32, 1.0])),
            0..9,
        ),
        instruction in prop::sample::select(vec![
            "put the bowl on the plate",
            "open the drawer and put the cup inside",
            "press the button three times",
            "wave",
            "nothing of this",
        ]),
    ) {
        let (episode, layout) = moved(&motions);
        let found = Namer::default().name(instruction, &episode, &layout, &cut(&episode, &layout));
        let mut row = 0;
        for one in &found.subtasks {
            prop_assert_eq!(one.rows.start, row);
            prop_assert!(one.rows.end > row && !one.name.is_empty());
            prop_assert!((0.0..=1.0).contains(&one.name_confidence) && (0.0..=1.0).contains(&one.boundary_confidence));
            row = one.rows.end;
        }
        prop_assert_eq!(row, episode.len());
        prop_assert_eq!(found.subtasks.len(), found.steps.len());
        prop_assert!((0.0..=1.0).contains(&found.score));
    }
}
