use super::*;

const FPS: f64 = 20.0;

/// Four motions of a second along two axes, each from rest to rest, as commands of some control, with a gripper that closes
/// half-way and the places as states.
fn recorded(control: Control) -> (Recording, Vec<Part>) {
    let places = [[0.0, 0.0], [1.0, 0.0], [1.0, -0.5], [0.2, -0.5], [0.2, 0.4]];
    let mut path = vec![places[0]];
    for two in places.windows(2) {
        for row in 1..=20 {
            let share = f64::from(row) / 20.0;
            let done = share.powi(3) * (10.0 - 15.0 * share + 6.0 * share * share);
            path.push([0, 1].map(|axis| two[0][axis] + (two[1][axis] - two[0][axis]) * done));
        }
    }
    let rows = path.len() - 1;
    let command = |row: usize, axis: usize| match control {
        Control::Absolute => path[row + 1][axis],
        Control::Relative => path[row + 1][axis] - path[row][axis],
        Control::Velocity => (path[row + 1][axis] - path[row][axis]) * FPS,
    };
    let gripper = |row: usize| if row < 40 { -1.0 } else { 1.0 };
    let actions = (0..rows).flat_map(|row| [command(row, 0) as f32, command(row, 1) as f32, gripper(row)]).collect();
    let states = (0..rows).flat_map(|row| path[row].map(|value| value as f32)).collect();
    let labels = (0..rows).map(|row| (row / 20) as i64).collect();
    let recording = Recording {
        fps: FPS,
        actions: Matrix { width: 3, values: actions },
        states: Matrix { width: 2, values: states },
        labels,
    };
    (recording, vec![Part { control, actions: vec![0, 1], states: vec![0, 1] }])
}

const CONTROLS: [Control; 3] = [Control::Absolute, Control::Relative, Control::Velocity];

/// Where commands lead from the first state.
fn end(recording: &Recording, control: Control, axis: usize) -> f64 {
    let mut commands = recording.actions.values.iter().skip(axis).step_by(3).map(|value| f64::from(*value));
    match control {
        Control::Absolute => commands.next_back().unwrap(),
        Control::Relative => commands.sum(),
        Control::Velocity => commands.sum::<f64>() / FPS,
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_others_differ() {
    let (recording, parts) = recorded(Control::Relative);
    for level in Level::ALL {
        let one = disturb(&recording, &parts, level, 7, 3).unwrap();
        assert_eq!(one, disturb(&recording, &parts, level, 7, 3).unwrap());
        assert_ne!(one, disturb(&recording, &parts, level, 8, 3).unwrap());
        assert_ne!(one, disturb(&recording, &parts, level, 7, 4).unwrap());
    }
}

#[test]
fn labels_keep_their_order_and_their_number() {
    for control in CONTROLS {
        let (recording, parts) = recorded(control);
        for (level, seed) in Level::ALL.into_iter().flat_map(|level| (0..20).map(move |seed| (level, seed))) {
            let Disturbed { recording: found, source } = disturb(&recording, &parts, level, seed, 0).unwrap();
            let rows = found.labels.len();
            assert_eq!(
                (found.actions.values.len(), found.states.values.len(), source.len()),
                (3 * rows, 2 * rows, rows)
            );
            assert!(source.is_sorted());
            assert!(source.iter().zip(&found.labels).all(|(row, label)| recording.labels[*row] == *label));
            let mut order = found.labels.clone();
            order.dedup();
            assert_eq!(order, [0, 1, 2, 3], "{level:?} {seed}");
            // The gripper is where it was in the recorded time, and never between its commands.
            let gripper = found.actions.values.iter().skip(2).step_by(3);
            assert!(gripper.zip(&found.labels).all(|(command, label)| *command == if *label < 2 { -1.0 } else { 1.0 }));
            assert!(found.actions.values.iter().chain(&found.states.values).all(|value| value.is_finite()));
        }
    }
}

#[test]
fn the_same_places_are_reached_by_any_control() {
    for control in CONTROLS {
        let (recording, parts) = recorded(control);
        for (level, seed) in Level::ALL.into_iter().flat_map(|level| (0..20).map(move |seed| (level, seed))) {
            let found = disturb(&recording, &parts, level, seed, 1).unwrap().recording;
            for axis in 0..2 {
                let apart = (end(&found, control, axis) - end(&recording, control, axis)).abs();
                assert!(apart < 0.06, "{control:?} {level:?} {seed}: {apart}");
            }
            let most = recording.actions.values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let within = |value: &f32| value.abs() <= most + 1e-6;
            assert!(control == Control::Absolute || found.actions.values.iter().all(within));
        }
    }
}

#[test]
fn an_operator_without_faults_records_the_same() {
    let none = Operator {
        speed: 0.0,
        hesitations: 0.0,
        pause: [0.0; 2],
        corrections: 0.0,
        overshoot: 0.0,
        tremor: 0.0,
        latency: 0.0,
    };
    for control in CONTROLS {
        let (recording, parts) = recorded(control);
        let found = by_operator(&recording, &parts, &none, 0, 0).recording;
        assert_eq!((&found.labels, &found.states), (&recording.labels, &recording.states));
        let apart = |(one, other): (&f32, &f32)| (one - other).abs() < 1e-5;
        assert!(found.actions.values.iter().zip(&recording.actions.values).all(apart), "{control:?}");
        // A pause of half a second at each end of a motion is time in which nothing is commanded.
        let halting = Operator { corrections: 1.0, ..none };
        let found = by_operator(&recording, &parts, &halting, 0, 0).recording;
        assert!((80 + 3 * 6..=80 + 5 * 10).contains(&found.labels.len()), "{}", found.labels.len());
    }
}

#[test]
fn states_are_later_by_the_latency() {
    let (recording, parts) = recorded(Control::Absolute);
    let late = Operator {
        speed: 0.0,
        hesitations: 0.0,
        pause: [0.0; 2],
        corrections: 0.0,
        overshoot: 0.0,
        tremor: 0.0,
        latency: 0.1,
    };
    let found = by_operator(&recording, &parts, &late, 0, 0).recording;
    let apart = |row: usize| (found.states.values[2 * row] - recording.states.values[2 * (row - 2)]).abs();
    assert!((2..80).all(|row| apart(row) < 1e-6));
    assert_eq!(found.actions, recording.actions);
}

#[test]
fn a_tremor_has_the_stated_speed_and_band() {
    let rows = 2000;
    for fps in [20.0, 30.0, 100.0] {
        // A ramp whose speed is 1 a second: a tremor of 5 % has a velocity of 0.05.
        let values: Vec<f32> = (0..rows).map(|row| (f64::from(row) / fps) as f32).collect();
        let recording = Recording {
            fps,
            actions: Matrix { width: 1, values },
            states: Matrix { width: 0, values: Vec::new() },
            labels: vec![0; rows as usize],
        };
        let shaky = Operator {
            speed: 0.0,
            hesitations: 0.0,
            pause: [0.0; 2],
            corrections: 0.0,
            overshoot: 0.0,
            tremor: 0.05,
            latency: 0.0,
        };
        let parts = [Part { control: Control::Absolute, actions: vec![0], states: Vec::new() }];
        let found = by_operator(&recording, &parts, &shaky, 1, 0).recording;
        let shaken: Vec<f64> =
            (0..rows as usize).map(|row| f64::from(found.actions.values[row]) - row as f64 / fps).collect();
        let crossings = shaken.windows(2).filter(|two| two[0] * two[1] < 0.0).count();
        let hertz = crossings as f64 / 2.0 / (f64::from(rows) / fps);
        assert!((3.5..12.5).contains(&hertz), "{fps}: {hertz}");
        let root =
            |values: &[f64]| (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
        let velocity = root(&shaken) * std::f64::consts::TAU * hertz;
        assert!((0.03..0.07).contains(&velocity), "{fps}: {velocity}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (recording, parts) = recorded(Control::Absolute);
    let mut short = recording.clone();
    short.labels.pop();
    assert!(matches!(disturb(&short, &parts, Level::Ordinary, 0, 0), Err(DisturbError::OtherRows { .. })));
    let wide = [Part { control: Control::Absolute, actions: vec![5], states: Vec::new() }];
    assert!(matches!(disturb(&recording, &wide, Level::Ordinary, 0, 0), Err(DisturbError::NoColumn { column: 5, .. })));
    let still = Recording { fps: 0.0, ..recording };
    assert!(matches!(disturb(&still, &parts, Level::Ordinary, 0, 0), Err(DisturbError::BadRate(_))));
}
