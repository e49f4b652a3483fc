use clustering::Points;
use proptest::prelude::*;

use super::*;
use crate::layout::{Control, Gripper, Group, Space};

/// One axis of commands at 20 frames per second, and a gripper where `gripper` says so.
fn layout(control: Control, gripper: bool, fps: f64) -> ActionLayout {
    let group = Group {
        name: "axis".to_owned(),
        space: Space::Joints,
        control,
        columns: vec![0],
        names: Vec::new(),
        states: Vec::new(),
        limits: vec![[-1e3, 1e3]],
        fast: vec![1.0],
    };
    let grippers = match gripper {
        true => vec![Gripper {
            name: "gripper".to_owned(),
            column: 1,
            threshold: 0.0,
            closes_above: true,
            limits: [-1.0, 1.0],
        }],
        false => Vec::new(),
    };
    ActionLayout { width: 1 + grippers.len(), fps, groups: vec![group], grippers }
}

fn cut(values: &[f32], layout: &ActionLayout, config: &SegmentConfig) -> Vec<Range<usize>> {
    let episode = Episode::new(layout, Points::new(values, layout.width).unwrap(), None).unwrap();
    segment(&episode, layout, config).unwrap()
}

fn one_axis(values: &[f32], config: &SegmentConfig) -> Vec<Range<usize>> {
    cut(values, &layout(Control::Relative, false, 20.0), config)
}

/// A position that goes to each of some places in a bell of `rows` rows.
fn moves(places: &[f64], rows: usize) -> Vec<f32> {
    let mut at = 0.0;
    let mut path = Vec::new();
    for place in places {
        for row in 1..=rows {
            let share = row as f64 / rows as f64;
            let done = share.powi(3) * (10.0 - 15.0 * share + 6.0 * share * share);
            path.push((at + (place - at) * done) as f32);
        }
        at = *place;
    }
    path
}

#[test]
fn a_step_is_found_where_it_is() {
    let step = [vec![0.0; 13], vec![0.9; 20]].concat();
    for model in [Model::Constant, Model::ConstantOrBell] {
        assert_eq!(one_axis(&step, &SegmentConfig { model, ..Default::default() }), [0..13, 13..33]);
    }
}

#[test]
fn a_smooth_motion_is_one_segment_at_any_frame_rate() {
    for fps in [20.0, 30.0, 50.0, 100.0] {
        let rows = (1.5 * fps) as usize;
        // Speeds are per second, so that the fastest is 1.875 · 0.8 / 1.5 = 1.
        let path = moves(&[0.8, 0.0, 0.8, -0.2], rows);
        let layout = layout(Control::Absolute, false, fps);
        let found = cut(&path, &layout, &SegmentConfig::default());
        assert_eq!(found.len(), 4, "{fps}: {found:?}");
        for (at, part) in found.iter().enumerate() {
            assert!(part.start.abs_diff(at * rows) as f64 <= 0.11 * fps, "{fps}: {found:?}");
        }
        // Constants cut the same motions into pieces.
        let constants = SegmentConfig { model: Model::Constant, penalty: 0.03, ..SegmentConfig::default() };
        assert!(cut(&path, &layout, &constants).len() > 4);
    }
}

#[test]
fn a_tremor_is_no_motion() {
    let mut seed = 1u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed >> 8) / f64::from(1u32 << 24) - 0.5
    };
    let mut shaken = |velocity: f64| -> Vec<f32> { (0..300).map(|_| (velocity + random()) as f32).collect() };
    let ignorant = SegmentConfig { noise: 0.0, penalty: 0.02, ..SegmentConfig::default() };
    // A motion that is larger than its noise: the penalty grows with the noise.
    let moving = shaken(0.4);
    assert_eq!(one_axis(&moving, &SegmentConfig::default()).len(), 1);
    assert!(one_axis(&moving, &ignorant).len() > 3);
    // A column that is mostly noise is left out, whatever the penalty.
    let resting = shaken(0.2);
    assert_eq!((one_axis(&resting, &SegmentConfig::default()).len(), one_axis(&resting, &ignorant).len()), (1, 1));
}

#[test]
fn a_penalty_beyond_the_residual_leaves_one_segment() {
    let step = [vec![0.0; 13], vec![0.9; 20]].concat();
    let dear = SegmentConfig { penalty: 1e6, ..SegmentConfig::default() };
    assert_eq!(one_axis(&step, &dear).as_slice(), std::slice::from_ref(&(0..33)));
    assert!(one_axis(&[], &SegmentConfig::default()).is_empty());
    assert_eq!(one_axis(&[1.0], &SegmentConfig::default()).as_slice(), std::slice::from_ref(&(0..1)));
}

#[test]
fn the_gripper_cuts_unless_it_is_switched_off() {
    let layout = layout(Control::Relative, true, 20.0);
    let rows: Vec<f32> = (0..20).flat_map(|row| [0.2, if row < 3 { -1.0 } else { 1.0 }]).collect();
    let config = SegmentConfig::default();
    assert_eq!(cut(&rows, &layout, &config), [0..3, 3..20]);
    let off = SegmentConfig { gripper_cuts: false, ..config };
    assert_eq!(cut(&rows, &layout, &off).as_slice(), std::slice::from_ref(&(0..20)));
}

#[test]
fn settings_that_are_no_magnitudes_are_refused() {
    let layout = layout(Control::Relative, false, 20.0);
    let episode = Episode::new(&layout, Points::new(&[0.0; 12], 1).unwrap(), None).unwrap();
    let bad = [
        SegmentConfig { penalty: f64::NAN, ..SegmentConfig::default() },
        SegmentConfig { least: -1.0, ..SegmentConfig::default() },
        SegmentConfig { longest_bell: f64::INFINITY, ..SegmentConfig::default() },
    ];
    for config in bad {
        assert!(matches!(segment(&episode, &layout, &config), Err(SkillError::BadSetting { .. })));
    }
}

#[test]
fn a_motion_with_a_ramp_at_either_end_is_one_segment() {
    // A second to speed up, two at one velocity, a second to slow down; then a rest.
    let profile = |row: usize| (row as f32 / 20.0).min(1.0).min((80.0 - row as f32) / 20.0).max(0.0) * 0.8;
    let path: Vec<f32> = (0..110).map(profile).collect();
    let found = one_axis(&path, &SegmentConfig::default());
    assert!(found.len() == 2 && found[1].start.abs_diff(80) <= 4, "{found:?}");
}

#[test]
fn a_motion_that_speeds_up_on_the_way_is_one_segment() {
    let mut path = moves(&[0.8], 30);
    // The second half takes twice as long.
    let late = path.split_off(15);
    let middle = path[14];
    path.extend(late.iter().enumerate().flat_map(|(at, place)| {
        let before = if at == 0 { middle } else { late[at - 1] };
        [(before + place) / 2.0, *place]
    }));
    let layout = layout(Control::Absolute, false, 20.0);
    assert_eq!(cut(&path, &layout, &SegmentConfig::default()).len(), 1);
    let symmetric = SegmentConfig { skew: 1e3, penalty: 0.02, ..SegmentConfig::default() };
    assert!(cut(&path, &layout, &symmetric).len() > 1);
}

#[test]
fn a_hesitation_is_no_boundary_but_a_rest_before_another_motion_is_one() {
    let go = vec![0.8_f32; 20];
    for rest in [8, 14] {
        let hesitates = [go.clone(), vec![0.0; rest], go.clone()].concat();
        assert_eq!(one_axis(&hesitates, &SegmentConfig::default()).len(), 1, "{rest}");
        let off = SegmentConfig { hesitation: 0.0, ..SegmentConfig::default() };
        assert!(one_axis(&hesitates, &off).len() > 1, "{rest}");
        let returns = [go.clone(), vec![0.0; rest], vec![-0.8; 20]].concat();
        assert!(one_axis(&returns, &SegmentConfig::default()).len() > 1, "{rest}");
    }
    // A rest of two seconds is not a hesitation.
    let waits = [go.clone(), vec![0.0; 40], go].concat();
    assert_eq!(one_axis(&waits, &SegmentConfig::default()), [0..20, 20..60, 60..80]);
}

#[test]
fn a_gripper_is_surer_than_a_change_of_velocity_and_noise_is_less_sure() {
    let layout = layout(Control::Relative, true, 20.0);
    let scored = |shaken: f32| {
        let rows: Vec<f32> = (0..90)
            .flat_map(|row| {
                let velocity = if (30..60).contains(&row) { -0.7 } else { 0.7 };
                let tremor = shaken * [0.0, 1.0, -0.4, -1.0, 0.7][row % 5];
                [velocity + tremor, if row < 60 { -1.0 } else { 1.0 }]
            })
            .collect();
        let episode = Episode::new(&layout, Points::new(&rows, 2).unwrap(), None).unwrap();
        segment_scored(&episode, &layout, &SegmentConfig::default()).unwrap()
    };
    let (clean, shaken) = (scored(0.0), scored(0.15));
    let starts = |segments: &[ScoredSegment]| segments.iter().map(|one| one.rows.start).collect::<Vec<_>>();
    assert_eq!((starts(&clean), starts(&shaken)), (vec![0, 30, 60], vec![0, 30, 60]));
    assert_eq!((clean[0].confidence, clean[2].confidence), (1.0, confidence::OF_A_GRIPPER));
    assert!(clean[1].confidence > shaken[1].confidence && shaken[1].confidence > 0.2, "{clean:?} {shaken:?}");
}

/// Commands of two axes that change at random rows, with a tremor, and a gripper.
fn commands() -> impl Strategy<Value = Vec<f32>> {
    let part = (1usize..40, -64i32..64, -64i32..64, any::<bool>());
    prop::collection::vec(part, 1..12).prop_map(|parts| {
        let mut rows = Vec::new();
        for (length, first, second, closed) in parts {
            for at in 0..length {
                // Multiples of a power of two, so that sums are exact.
                let tremor = ((at * 7) % 5) as f32 / 128.0;
                rows.extend([first as f32 / 64.0 + tremor, second as f32 / 64.0, if closed { 1.0 } else { -1.0 }]);
            }
        }
        rows
    })
}

fn two_axes(control: Control, fast: f64) -> ActionLayout {
    let mut layout = layout(control, true, 20.0);
    layout.width = 3;
    layout.grippers[0].column = 2;
    layout.groups[0] =
        Group { columns: vec![0, 1], limits: vec![[-1e6, 1e6]; 2], fast: vec![fast; 2], ..layout.groups[0].clone() };
    layout
}

fn scored(rows: &[f32], layout: &ActionLayout, config: &SegmentConfig) -> Vec<ScoredSegment> {
    let episode = Episode::new(layout, Points::new(rows, layout.width).unwrap(), None).unwrap();
    segment_scored(&episode, layout, config).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_cover_an_episode_and_confidences_are_probabilities(rows in commands(), reach in any::<bool>()) {
        let layout = two_axes(Control::Relative, 1.0);
        let config = SegmentConfig { whole_reach: reach, ..SegmentConfig::default() };
        let found = scored(&rows, &layout, &config);
        let mut next = 0;
        for one in &found {
            prop_assert!(one.rows.start == next && one.rows.end > next);
            prop_assert!((0.0..=1.0).contains(&one.confidence), "{}", one.confidence);
            next = one.rows.end;
        }
        prop_assert_eq!(next, rows.len() / 3);
        prop_assert_eq!(found[0].confidence, 1.0);
        let ranges: Vec<Range<usize>> = found.into_iter().map(|one| one.rows).collect();
        prop_assert_eq!(ranges, cut(&rows, &layout, &config));
    }

    #[test]
    fn pruning_changes_nothing_but_time(rows in commands(), longest_bell in 0.0..3.0, constant in any::<bool>()) {
        let layout = two_axes(Control::Relative, 1.0);
        let model = if constant { Model::Constant } else { Model::ConstantOrBell };
        let config = SegmentConfig { longest_bell, model, ..SegmentConfig::default() };
        let whole = SegmentConfig { prune: false, ..config.clone() };
        prop_assert_eq!(scored(&rows, &layout, &config), scored(&rows, &layout, &whole));
    }

    #[test]
    fn units_and_origins_do_not_matter(rows in commands(), power in -3i32..6, origin in -8i32..8) {
        let scale = 2f32.powi(power);
        for control in [Control::Relative, Control::Absolute] {
            let plain = scored(&rows, &two_axes(control, 1.0), &SegmentConfig::default());
            let changed: Vec<f32> = rows
                .chunks(3)
                .flat_map(|row| {
                    // Only positions have an origin.
                    let shift = if control == Control::Absolute { origin as f32 } else { 0.0 };
                    [(row[0] + shift) * scale, (row[1] - shift) * scale, row[2]]
                })
                .collect();
            prop_assert_eq!(plain, scored(&changed, &two_axes(control, f64::from(scale)), &SegmentConfig::default()));
        }
    }
}
