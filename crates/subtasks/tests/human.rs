//! Segments of demonstrations that a person teleoperates, on a dataset of the program itself.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use clustering::{Points, boundary_f1};
use dataset::synthetic::human::{Level, Recording, disturb};
use dataset::{Control, Dataset, Matrix, Overrides, RobotLayout, embedded};
use skills::{Episode, SegmentConfig, frame_labels, segment};
use subtasks::robot::{action_layout, moved_parts};

/// Boundary F1 within 0.2 s over all episodes, as operators of some level would have recorded them.
fn score(dataset: &Dataset, level: Option<Level>) -> f64 {
    let robot = RobotLayout::of(dataset);
    let layout = action_layout(dataset, &robot).unwrap();
    let parts = moved_parts(&robot);
    let columns = dataset.columns();
    let (mut truth, mut found) = (Vec::new(), Vec::new());
    for (at, span) in dataset.spans().iter().enumerate() {
        let rows = |matrix: &Matrix| Matrix { width: matrix.width, values: matrix.rows(span.frames.clone()).to_vec() };
        let mut recording = Recording {
            fps: layout.fps,
            actions: rows(&columns.actions),
            states: rows(&columns.states),
            labels: columns.labels["phase"][span.frames.clone()].to_vec(),
        };
        if let Some(level) = level {
            recording = disturb(&recording, &parts, level, 0, at as u64).unwrap().recording;
        }
        let actions = Points::new(&recording.actions.values, recording.actions.width).unwrap();
        let states = Points::new(&recording.states.values, recording.states.width).unwrap();
        let episode = Episode::new(&layout, actions, Some(states)).unwrap();
        let segments = segment(&episode, &layout, &SegmentConfig::default()).unwrap();
        found.push(frame_labels(&segments, &(0..segments.len() as i64).collect::<Vec<_>>()).unwrap());
        truth.push(recording.labels);
    }
    boundary_f1(&truth, &found, (0.2 * layout.fps).round() as usize).unwrap().f1
}

#[test]
fn an_operator_moves_the_place_and_the_rotation_of_a_hand() {
    let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
    let parts = moved_parts(&RobotLayout::of(&dataset));
    let columns: Vec<(&[usize], &[usize])> = parts.iter().map(|part| (&part.actions[..], &part.states[..])).collect();
    assert_eq!(columns, [(&[0, 1, 2][..], &[0, 1, 2][..]), (&[3, 4, 5][..], &[3, 4, 5][..])]);
    assert!(parts.iter().all(|part| part.control == Control::Relative));
}

#[test]
fn boundaries_are_found_with_the_noise_of_people() {
    let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
    let clean = score(&dataset, None);
    let noisy = Level::ALL.map(|level| score(&dataset, Some(level)));
    assert!(clean > 0.8, "{clean} {noisy:?}");
    assert!(noisy[1] > 0.7, "{clean} {noisy:?}");
    assert!(clean > noisy[2], "{clean} {noisy:?}");
}
