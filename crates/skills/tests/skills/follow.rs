//! Programs that are followed in a world in which commands add up.

use clustering::Points;
use skills::{ActionLayout, AlphabetConfig, Episode, Position, REACHED, SkillAlphabet, SkillCall};

/// What a command moves a coordinate in a step.
const REACH: f64 = 0.0125;

/// An episode: to the right, close the gripper, upwards, open the gripper.
fn demonstration(layout: &ActionLayout) -> (SkillAlphabet, Vec<SkillCall>, Position) {
    let parts: [(usize, [f32; 7]); 4] = [
        (30, [0.8, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]),
        (12, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
        (25, [0.0, 0.1, 0.7, 0.0, 0.0, 0.0, 1.0]),
        (10, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]),
    ];
    let (mut rows, mut states, mut state, mut segments) = (Vec::new(), Vec::new(), [0.0_f32; 6], Vec::new());
    for (steps, command) in parts {
        let first = rows.len() / 7;
        for _ in 0..steps {
            rows.extend(command);
            states.extend(state);
            state.iter_mut().zip(command).for_each(|(state, command)| *state += REACH as f32 * command);
        }
        segments.push(first..first + steps);
    }
    let episode = Episode::new(layout, Points::new(&rows, 7).unwrap(), Some(Points::new(&states, 6).unwrap())).unwrap();
    let labels = [0, 1, 2, 1];
    let motions: Vec<_> = segments.iter().map(|part| episode.motion(part).unwrap()).collect();
    let alphabet = SkillAlphabet::fit(&motions, &labels, layout.clone(), &AlphabetConfig::default()).unwrap();
    let calls = alphabet.without_grid().encode(&episode, &segments, &labels).unwrap();
    (alphabet, calls, episode.position(0))
}

/// Follows calls with a request every 8 steps, and gives for each step the position before it and the action.
fn followed(
    alphabet: &SkillAlphabet,
    calls: &[SkillCall],
    start: &Position,
    steps: usize,
) -> Vec<(Position, Vec<f64>)> {
    let mut position = start.clone();
    let mut under_way = alphabet.begun(None, &calls[0], &position);
    let (mut at, mut seen) = (0, Vec::new());
    while seen.len() < steps {
        let found = alphabet.follow(&calls[at..], &position, under_way, 16, 8).unwrap();
        assert_eq!(found.rows.len(), 16 * alphabet.layout.width);
        for action in found.rows.chunks_exact(alphabet.layout.width).take(8) {
            seen.push((position.clone(), action.to_vec()));
            for (dim, now) in position[0].iter_mut().enumerate() {
                *now += REACH * action[dim];
            }
        }
        (at, under_way) = (at + found.over, found.under_way);
    }
    seen
}

#[test]
fn every_call_ends_at_its_target_and_grippers_have_their_time() {
    let (alphabet, calls, start) = demonstration(&ActionLayout::libero());
    assert!(alphabet.can_follow());
    // The robot begins somewhere else than the demonstration did.
    let mut elsewhere = start.clone();
    elsewhere[0].iter_mut().take(3).zip([0.05, -0.03, 0.04]).for_each(|(place, by)| *place += by);
    let seen = followed(&alphabet, &calls, &elsewhere, 200);
    let first = |from: usize, command: f64| (from..seen.len()).find(|at| seen[*at].1[6] == command).unwrap();
    let closes = first(0, 1.0);
    assert!(alphabet.left(&calls[0], &seen[closes].0).unwrap() <= REACHED, "{:?}", seen[closes]);
    let opens = first(closes, -1.0);
    assert!(alphabet.left(&calls[2], &seen[opens].0).unwrap() <= REACHED, "{:?}", seen[opens]);
    // While the gripper closes, the robot stays.
    let stays = (closes..opens).take_while(|at| alphabet.left(&calls[0], &seen[*at].0).unwrap() <= 1.0).count();
    assert!((12..20).contains(&stays), "{stays}");
    assert!(alphabet.left(&calls[2], &seen.last().unwrap().0).unwrap() <= REACHED);
    let most = seen.iter().flat_map(|(_, action)| action).fold(0.0_f64, |most, value| most.max(value.abs()));
    assert!(most <= 1.0, "{most}");
}

#[test]
fn a_robot_that_is_pushed_away_returns() {
    let (alphabet, calls, start) = demonstration(&ActionLayout::libero());
    let mut position = start;
    let mut under_way = alphabet.begun(None, &calls[0], &position);
    for request in 0..20 {
        let found = alphabet.follow(&calls[..1], &position, under_way, 8, 8).unwrap();
        for action in found.rows.chunks_exact(7) {
            position[0].iter_mut().zip(action).for_each(|(now, command)| *now += REACH * command);
        }
        under_way = found.under_way;
        if request == 5 {
            position[0][1] += 0.1;
            assert!(alphabet.left(&calls[0], &position).unwrap() > 5.0);
        }
    }
    assert!(alphabet.near(&calls[0], &position));
}

#[test]
fn parts_whose_position_nobody_sees_cannot_be_followed() {
    let mut layout = ActionLayout::libero();
    layout.groups[0].states.clear();
    assert!(!demonstration(&layout).0.can_follow());
}
