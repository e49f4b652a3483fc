//! Properties of segmentation, programs and expansion, over generated episodes.

use std::ops::Range;

use clustering::Points;
use language::{Signature, TermStore, TypeId, check, parse, print};
use proptest::prelude::*;
use skills::{
    ActionLayout, AlphabetConfig, Model, Scaling, SegmentConfig, SkillAlphabet, SkillCall, SkillId, rows_of, segment,
};

const WIDTH: usize = 7;

/// Stretches of one velocity and one gripper command, with a little noise.
fn episode() -> impl Strategy<Value = Vec<f32>> {
    let stretch = (1usize..25, prop::array::uniform6(-1.0f32..1.0), any::<bool>(), 0.0f32..0.1);
    prop::collection::vec(stretch, 0..8).prop_map(|stretches| {
        let mut rows = Vec::new();
        let mut noise = 1u32;
        for (length, velocity, closed, spread) in stretches {
            for _ in 0..length {
                for axis in velocity {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let value: f32 = axis + spread * ((noise >> 8) as f32 / (1 << 24) as f32 - 0.5);
                    rows.push(value.clamp(-1.0, 1.0));
                }
                rows.push(if closed { 1.0 } else { -1.0 });
            }
        }
        rows
    })
}

fn config() -> impl Strategy<Value = SegmentConfig> {
    (any::<bool>(), any::<bool>(), 0.0f64..6.0, 1usize..9, 0usize..3, 0.0f64..2.0, any::<bool>()).prop_map(
        |(linear, spread, penalty, min_length, smoothing, speed_weight, gripper_cuts)| SegmentConfig {
            model: if linear { Model::Linear } else { Model::Constant },
            scaling: if spread { Scaling::Spread } else { Scaling::Commanded },
            penalty,
            min_length,
            smoothing,
            speed_weight,
            gripper_cuts,
            ..SegmentConfig::default()
        },
    )
}

fn cut(rows: &[f32], config: &SegmentConfig) -> Vec<Range<usize>> {
    segment(Points::new(rows, WIDTH).unwrap(), None, &ActionLayout::default(), config).unwrap()
}

fn gripper_changes(rows: &[f32]) -> Vec<usize> {
    let commands: Vec<f32> = rows.chunks(WIDTH).map(|row| row[6]).collect();
    (1..commands.len()).filter(|&row| commands[row] != commands[row - 1]).collect()
}

/// An alphabet of an episode's segments, in as many classes, and its calls.
fn alphabet(rows: &[f32], classes: i64, config: &AlphabetConfig) -> (SkillAlphabet, Vec<Range<usize>>, Vec<SkillCall>) {
    let episode = Points::new(rows, WIDTH).unwrap();
    let segments = cut(rows, &SegmentConfig::default());
    let labels: Vec<i64> = (0..segments.len() as i64).map(|at| at % classes).collect();
    let parts: Vec<Points<'_>> = segments.iter().map(|part| rows_of(episode, part).unwrap()).collect();
    let alphabet = SkillAlphabet::fit(&parts, &labels, ActionLayout::default(), config).unwrap();
    let calls = alphabet.encode(episode, &segments, &labels).unwrap();
    (alphabet, segments, calls)
}

proptest! {
    #[test]
    fn segments_cover_the_episode_and_keep_to_length_and_gripper(rows in episode(), config in config()) {
        let segments = cut(&rows, &config);
        let mut covered = 0;
        for part in &segments {
            prop_assert_eq!(part.start, covered);
            prop_assert!(part.end > part.start);
            covered = part.end;
        }
        prop_assert_eq!(covered, rows.len() / WIDTH);
        let mut forced = if config.gripper_cuts { gripper_changes(&rows) } else { Vec::new() };
        forced.extend([0, covered]);
        for part in &segments {
            // Shorter than allowed only where the gripper or the ends leave no choice.
            if part.len() < config.min_length {
                prop_assert!(forced.contains(&part.start) && forced.contains(&part.end), "{:?} {:?}", part, forced);
            }
        }
        prop_assert!(forced.iter().all(|&at| at == covered || segments.iter().any(|part| part.start == at)));
    }

    #[test]
    fn pruning_changes_nothing(rows in episode(), config in config()) {
        let plain = SegmentConfig { prune: false, ..config.clone() };
        prop_assert_eq!(cut(&rows, &config), cut(&rows, &plain));
    }

    #[test]
    fn a_higher_penalty_never_cuts_more(rows in episode(), config in config()) {
        let higher = SegmentConfig { penalty: config.penalty + 1.0, ..config.clone() };
        prop_assert!(cut(&rows, &higher).len() <= cut(&rows, &config).len());
    }

    #[test]
    fn programs_are_typed_and_give_their_calls_back(rows in episode(), classes in 1i64..5) {
        prop_assume!(!rows.is_empty());
        let (alphabet, _, calls) = alphabet(&rows, classes, &AlphabetConfig::default());
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        alphabet.declare(&mut store, &mut signature).unwrap();
        let program = alphabet.program(&mut store, &calls).unwrap();
        prop_assert!(check(&mut store, &signature, program, TypeId::MOTION).is_ok());
        prop_assert_eq!(&alphabet.calls(&store, program).unwrap(), &calls);
        prop_assert_eq!(&alphabet.calls_of_term(&mut store, &signature, program).unwrap(), &calls);
        // Through text as well, and equal calls are equal terms.
        let text = print(&store, program);
        prop_assert_eq!(parse(&mut store, &signature, &text).unwrap().term, program);
    }

    #[test]
    fn expansions_sum_to_their_twists_within_limits(
        rows in episode(),
        classes in 1i64..5,
        twist in prop::array::uniform6(-9.0f64..9.0),
        steps in 9u64..60,
    ) {
        prop_assume!(!rows.is_empty());
        let (alphabet, _, mut calls) = alphabet(&rows, classes, &AlphabetConfig::default());
        // A call that was never seen, too: within reach, so nothing may be lost.
        calls.push(SkillCall { skill: SkillId(0), twist, steps });
        let expansion = alphabet.expand_calls(&calls).unwrap();
        prop_assert!(expansion.lost < 1e-9);
        for (call, part) in calls.iter().zip(&expansion.calls) {
            prop_assert_eq!(part.len() as u64, call.steps);
            for axis in 0..6 {
                let sum: f64 = part.clone().map(|row| expansion.rows[row * WIDTH + axis]).sum();
                prop_assert!((sum - call.twist[axis]).abs() < 1e-9, "axis {}: {} for {}", axis, sum, call.twist[axis]);
            }
        }
        prop_assert!(expansion.rows.iter().all(|value| value.abs() <= 1.0 + 1e-12));
    }

    #[test]
    fn paths_stay_within_half_a_grid_at_every_cut(rows in episode(), classes in 1i64..5, step_grid in 1u64..4) {
        prop_assume!(!rows.is_empty());
        let config = AlphabetConfig { step_grid, ..AlphabetConfig::default() };
        let (alphabet, segments, calls) = alphabet(&rows, classes, &config);
        let episode = Points::new(&rows, WIDTH).unwrap();
        let expansion = alphabet.expand_calls(&calls).unwrap();
        for (part, replayed) in segments.iter().zip(&expansion.calls) {
            let recorded = alphabet.net_twist(rows_of(episode, &(0..part.end)).unwrap());
            for (axis, recorded) in recorded.iter().enumerate() {
                let sum: f64 = (0..replayed.end).map(|row| expansion.rows[row * WIDTH + axis]).sum();
                let grid = if axis < 3 { config.translation_grid } else { config.rotation_grid };
                // Also where commands are at their limit all the time: these grids divide a step of it.
                prop_assert!((sum - recorded).abs() <= grid / 2.0 + 1e-9);
            }
        }
    }
}

#[test]
fn any_width_is_segmented() {
    for width in [1, 2, 4, 14, 20] {
        let rows: Vec<f32> = (0..40 * width).map(|at| if at / width < 17 { 0.1 } else { 0.9 }).collect();
        let layout = ActionLayout { width, gripper: None, ..ActionLayout::default() };
        let cuts = segment(Points::new(&rows, width).unwrap(), None, &layout, &SegmentConfig::default());
        assert_eq!(cuts, Ok(vec![0..17, 17..40]), "{width}");
    }
}

#[test]
fn a_segments_own_parameters_give_its_own_twist_within_the_grid() {
    let rows: Vec<f32> = (0..18)
        .flat_map(|row| {
            let speed = (row as f32 * 0.17).sin().abs();
            [speed, 0.3 - speed / 2.0, 0.0, 0.0, 0.02, -0.1, 1.0]
        })
        .collect();
    let segment = Points::new(&rows, WIDTH).unwrap();
    let config = AlphabetConfig::default();
    let alphabet = SkillAlphabet::fit(&[segment], &[4], ActionLayout::default(), &config).unwrap();
    let call = alphabet.call(SkillId(0), segment).unwrap();
    let expansion = alphabet.expand_calls(&[call]).unwrap();
    let exact = alphabet.net_twist(segment);
    for (axis, exact) in exact.iter().enumerate() {
        let sum: f64 = expansion.rows.chunks(WIDTH).map(|row| row[axis]).sum();
        let grid = if axis < 3 { config.translation_grid } else { config.rotation_grid };
        assert!((sum - exact).abs() <= grid / 2.0 + 1e-9, "axis {axis}");
    }
    assert!(expansion.rows.chunks(WIDTH).all(|row| row[6] == 1.0));
}
