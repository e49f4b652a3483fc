//! Properties of segmentation, programs and expansion, over generated episodes.

use std::ops::Range;

use clustering::Points;
use language::{Signature, TermStore, TypeId, check, parse, print};
use proptest::prelude::*;
use skills::{
    ActionLayout, AlphabetConfig, Argument, Control, Episode, Model, SegmentConfig, SkillAlphabet, SkillCall, Space,
    Written, segment,
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

/// The same columns under every kind of control: with positions in the state, with commanded positions, with none.
fn layout() -> impl Strategy<Value = ActionLayout> {
    (0..4).prop_map(|kind| {
        let mut layout = ActionLayout::libero();
        let group = &mut layout.groups[0];
        match kind {
            0 => group.control = Control::Relative,
            1 => group.control = Control::Velocity,
            2 => (group.control, group.space) = (Control::Absolute, Space::Joints),
            _ => group.control = Control::Absolute,
        }
        if kind != 0 {
            group.states.clear();
        }
        layout
    })
}

/// States that follow the commands.
fn states(rows: &[f32]) -> Vec<f32> {
    let mut state = [0.0f32; 6];
    let mut states = Vec::new();
    for row in rows.chunks(WIDTH) {
        states.extend(state);
        state.iter_mut().zip(row).for_each(|(state, command)| *state += 0.0125 * command);
    }
    states
}

fn read(rows: &[f32], layout: &ActionLayout) -> Episode {
    let states = states(rows);
    let states = Points::new(&states, 6).unwrap();
    Episode::new(layout, Points::new(rows, WIDTH).unwrap(), Some(states)).unwrap()
}

fn config() -> impl Strategy<Value = SegmentConfig> {
    (any::<bool>(), 0.0f64..0.3, 0.0f64..0.45, 0.0f64..2.0, any::<bool>()).prop_map(
        |(bells, penalty, least, speed_weight, gripper_cuts)| SegmentConfig {
            model: if bells { Model::ConstantOrBell } else { Model::Constant },
            penalty,
            least,
            speed_weight,
            gripper_cuts,
            ..SegmentConfig::default()
        },
    )
}

fn cut(rows: &[f32], config: &SegmentConfig) -> Vec<Range<usize>> {
    let layout = ActionLayout::libero();
    segment(&read(rows, &layout), &layout, config).unwrap()
}

fn gripper_changes(rows: &[f32]) -> Vec<usize> {
    let commands: Vec<f32> = rows.chunks(WIDTH).map(|row| row[6]).collect();
    (1..commands.len()).filter(|&row| commands[row] != commands[row - 1]).collect()
}

/// An alphabet of an episode's segments, in as many classes, and its calls.
fn alphabet(
    rows: &[f32],
    classes: i64,
    layout: &ActionLayout,
) -> (SkillAlphabet, Episode, Vec<Range<usize>>, Vec<SkillCall>) {
    let episode = read(rows, layout);
    let segments = cut(rows, &SegmentConfig::default());
    let labels: Vec<i64> = (0..segments.len() as i64).map(|at| at % classes).collect();
    let parts: Vec<_> = segments.iter().map(|part| episode.motion(part).unwrap()).collect();
    let alphabet = SkillAlphabet::fit(&parts, &labels, layout.clone(), &AlphabetConfig::default()).unwrap();
    let calls = alphabet.encode(&episode, &segments, &labels).unwrap();
    (alphabet, episode, segments, calls)
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
            if part.len() < (config.least * 20.0).round() as usize {
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
        // Of the optimum: what is joined afterwards depends on where it cuts, and a skew costs a share of the penalty.
        let config = SegmentConfig { hesitation: 0.0, whole_reach: false, skew: 0.0, ..config };
        let higher = SegmentConfig { penalty: config.penalty + 0.05, ..config.clone() };
        prop_assert!(cut(&rows, &higher).len() <= cut(&rows, &config).len());
    }

    #[test]
    fn programs_are_typed_and_give_their_calls_back(rows in episode(), classes in 1i64..5, layout in layout()) {
        prop_assume!(!rows.is_empty());
        let (alphabet, _, _, calls) = alphabet(&rows, classes, &layout);
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

    /// A target is where the segment ends, up to half a step of the grid, however many calls came before it.
    #[test]
    fn targets_are_the_ends_of_segments(rows in episode(), classes in 1i64..5, layout in layout()) {
        prop_assume!(!rows.is_empty());
        let (alphabet, episode, segments, calls) = alphabet(&rows, classes, &layout);
        let mut position = alphabet.start(&episode);
        for (segment, call) in segments.iter().zip(&calls) {
            alphabet.advance(&mut position, call).unwrap();
            let end = episode.position(segment.end);
            if !alphabet.skills[call.skill.0].arguments.is_empty() {
                for ((found, exact), grid) in position[0].iter().zip(&end[0]).zip(&alphabet.grids[0]) {
                    prop_assert!((found - exact).abs() <= 0.5 * grid + 1e-6, "{} for {}, grid {}", found, exact, grid);
                }
            }
        }
    }

    /// The form of a target changes how a program is written, not what it means.
    #[test]
    fn shorter_forms_mean_the_same(rows in episode(), classes in 1i64..5, layout in layout()) {
        prop_assume!(!rows.is_empty());
        let (alphabet, episode, _, calls) = alphabet(&rows, classes, &layout);
        let start = alphabet.start(&episode);
        let before = alphabet.expand_calls(&calls, &start).unwrap();
        let mut written = vec![Written { start: start.clone(), calls: calls.clone() }; 3];
        alphabet.shorten(&mut written, &[0, 1]).unwrap();
        prop_assert_eq!(&written[0], &written[2]);
        let after = alphabet.expand_calls(&written[0].calls, &start).unwrap();
        prop_assert_eq!(&before.calls, &after.calls);
        prop_assert!(before.rows.iter().zip(&after.rows).all(|(one, other)| (one - other).abs() < 1e-6));
        // As positions they are what they were.
        let mut position = start;
        for (short, call) in written[0].calls.iter().zip(&calls) {
            prop_assert_eq!(&alphabet.anchored(short, &position).unwrap(), call);
            alphabet.advance(&mut position, short).unwrap();
        }
    }

    #[test]
    fn expansions_stay_within_limits_and_absolute_ones_end_at_their_targets(
        rows in episode(),
        classes in 1i64..5,
        layout in layout(),
    ) {
        prop_assume!(!rows.is_empty());
        let (alphabet, episode, _, calls) = alphabet(&rows, classes, &layout);
        let expansion = alphabet.expand_calls(&calls, &alphabet.start(&episode)).unwrap();
        for row in expansion.rows.chunks(WIDTH) {
            prop_assert!(row[..6].iter().all(|value| value.abs() <= 1.0 + 1e-12));
        }
        let group = &alphabet.layout.groups[0];
        if group.control == Control::Absolute && group.space == Space::Joints && !expansion.rows.is_empty() {
            let last = &expansion.rows[expansion.rows.len() - WIDTH..];
            for (found, exact) in last.iter().zip(&expansion.end[0]) {
                prop_assert!((found - exact.clamp(-1.0, 1.0)).abs() < 1e-9, "{} for {}", found, exact);
            }
        }
    }

    /// In the middle of a segment a target is the same, and a distance is what is left of it.
    #[test]
    fn what_is_left_of_a_call_leads_to_its_end(rows in episode(), classes in 1i64..5, layout in layout()) {
        prop_assume!(!rows.is_empty());
        let (alphabet, episode, segments, calls) = alphabet(&rows, classes, &layout);
        for (segment, call) in segments.iter().zip(&calls) {
            let middle = (segment.start + segment.end) / 2;
            let rest = alphabet.rest(call, &episode, segment, middle).unwrap();
            match (rest.arguments.first(), call.arguments.first()) {
                (Some(Argument::To(rest)), Some(Argument::To(whole))) => prop_assert_eq!(rest, whole),
                (Some(Argument::By(rest)), Some(Argument::By(whole))) => {
                    let (now, start) = (episode.position(middle), episode.position(segment.start));
                    for dim in 0..6 {
                        let left = whole[dim] - (now[0][dim] - start[0][dim]);
                        prop_assert!((rest[dim] - left).abs() <= 0.5 * alphabet.grids[0][dim] + 1e-9);
                    }
                }
                (rest, whole) => prop_assert!(rest.is_none() && whole.is_none()),
            }
        }
    }
}

#[test]
fn any_width_is_segmented_and_written() {
    for width in [1, 2, 4, 8, 34] {
        let rows: Vec<f32> = (0..40 * width).map(|at| if at / width < 17 { 0.1 } else { 0.9 }).collect();
        let mut layout = ActionLayout::libero();
        let group = skills::Group { space: Space::Joints, states: Vec::new(), ..layout.groups[0].clone() };
        let part = |first: usize| {
            let columns: Vec<usize> = (first..(first + 8).min(width)).collect();
            let (limits, fast) = (vec![[-1.0, 1.0]; columns.len()], vec![1.0; columns.len()]);
            skills::Group { name: format!("joints {first}"), columns, limits, fast, ..group.clone() }
        };
        layout.groups = (0..width).step_by(8).map(part).collect();
        (layout.width, layout.grippers) = (width, Vec::new());
        let episode = Episode::new(&layout, Points::new(&rows, width).unwrap(), None).unwrap();
        let cuts = segment(&episode, &layout, &SegmentConfig::default()).unwrap();
        assert_eq!(cuts, [0..17, 17..40], "{width}");
        let parts: Vec<_> = cuts.iter().map(|part| episode.motion(part).unwrap()).collect();
        let alphabet = SkillAlphabet::fit(&parts, &[0, 1], layout, &AlphabetConfig::default()).unwrap();
        let calls = alphabet.encode(&episode, &cuts, &[0, 1]).unwrap();
        assert_eq!(calls[0].arguments.len(), width.div_ceil(8));
    }
}

/// Commands of grippers that no training segment had are written as the nearest skill, and a gripper that never moves cuts
/// nothing.
#[test]
fn unseen_and_unused_grippers_are_no_obstacle() {
    let layout = ActionLayout::libero();
    let rows = |gripper: f32| -> Vec<f32> {
        (0..30).flat_map(|row| [if row < 15 { 0.5 } else { -0.5 }, 0.0, 0.0, 0.0, 0.0, 0.0, gripper]).collect()
    };
    let (open, closed) = (read(&rows(-1.0), &layout), read(&rows(1.0), &layout));
    let cuts = segment(&open, &layout, &SegmentConfig::default()).unwrap();
    assert_eq!(cuts, [0..15, 15..30]);
    let parts: Vec<_> = cuts.iter().map(|part| open.motion(part).unwrap()).collect();
    let alphabet = SkillAlphabet::fit(&parts, &[0, 1], layout.clone(), &AlphabetConfig::default()).unwrap();
    let calls = alphabet.encode(&closed, &cuts, &[0, 1]).unwrap();
    assert_eq!(calls.iter().map(|call| call.skill.0).collect::<Vec<_>>(), [0, 1]);
    let mut unused = layout;
    unused.grippers[0].limits = [1.0, 1.0];
    assert_eq!(segment(&closed, &unused, &SegmentConfig::default()).unwrap(), cuts);
}

/// Both ways of writing a target win where they should: the place that never moves, and the lift that is always the same.
#[test]
fn what_repeats_decides_how_a_target_is_written() {
    let mut layout = ActionLayout::libero();
    let group = &mut layout.groups[0];
    (group.space, group.control, group.columns) = (Space::Joints, Control::Absolute, vec![0, 1]);
    (group.limits, group.fast) = (vec![[-10.0, 10.0]; 2], vec![20.0; 2]);
    group.states.clear();
    (layout.width, layout.grippers) = (2, Vec::new());
    // Reach for an object that is somewhere else every time, lift it by 2, and go to the same place.
    let demonstration = |at: usize| {
        let object = 0.5 * at as f32;
        let parts = [[object, 0.0], [object, 2.0], [8.0, 8.0]];
        let rows = parts.iter().flat_map(|place| std::iter::repeat_n(*place, 10));
        std::iter::once([-1.0, -1.0]).chain(rows).flatten().collect::<Vec<f32>>()
    };
    let rows: Vec<Vec<f32>> = (0..6).map(demonstration).collect();
    let episodes: Vec<Episode> =
        rows.iter().map(|rows| Episode::new(&layout, Points::new(rows, 2).unwrap(), None).unwrap()).collect();
    let cuts = [0..11, 11..21, 21..31];
    let parts: Vec<_> = episodes.iter().flat_map(|one| cuts.iter().map(|part| one.motion(part).unwrap())).collect();
    let labels: Vec<i64> = (0..parts.len() as i64).map(|at| at % 3).collect();
    let config = AlphabetConfig { grid: 0.05, ..AlphabetConfig::default() };
    let alphabet = SkillAlphabet::fit(&parts, &labels, layout, &config).unwrap();
    let mut written: Vec<Written> = episodes
        .iter()
        .map(|one| Written { start: alphabet.start(one), calls: alphabet.encode(one, &cuts, &[0, 1, 2]).unwrap() })
        .collect();
    alphabet.shorten(&mut written, &[0, 1, 2, 3, 4, 5]).unwrap();
    for one in &written {
        assert!(matches!(&one.calls[0].arguments[0], Argument::To(_)), "the first one has a position");
        assert_eq!(one.calls[1].arguments[0], Argument::By(vec![0.0, 2.0]));
        assert_eq!(one.calls[2].arguments[0], Argument::To(vec![8.0, 8.0]));
    }
}
