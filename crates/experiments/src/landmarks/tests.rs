//! Synthetic scenes: two coloured things on a table, seen by a camera that looks at it straight.

use dataset::Frame;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use skills::SkillId;

use super::fit::{Fitted, Shown, fit};
use super::windows::Picture;
use super::windows::tests::scene;
use super::*;

/// How far a place moves with a pixel to the right and with one down.
const CAMERA: [[f64; 2]; 3] = [[0.0, 0.016], [-0.008, 0.0], [0.0, 0.0]];

/// Where the things of each task are in the middle, in pixels.
const SCENES: [[[f32; 2]; 2]; 4] = [
    [[40.0, 40.0], [80.0, 90.0]],
    [[44.0, 80.0], [90.0, 44.0]],
    [[60.0, 30.0], [66.0, 84.0]],
    [[30.0, 64.0], [96.0, 70.0]],
];

fn place(pixel: [f32; 2]) -> Place {
    std::array::from_fn(|at| {
        CAMERA[at][0] * f64::from(pixel[0] - 64.0)
            + CAMERA[at][1] * f64::from(pixel[1] - 64.0)
            + if at == 2 { 1.0 } else { 0.0 }
    })
}

/// A scene of a task in which both things are somewhere else, and its targets: on one thing, on the other, and one that depends on
/// nothing that is seen.
fn shown(task: usize, generator: &mut ChaCha8Rng) -> (Frame, Vec<Place>) {
    let mut off = |range: f32| (generator.random::<f32>() * 2.0 - 1.0) * range;
    let pixels = SCENES[task].map(|middle| [middle[0] + off(2.5), middle[1] + off(2.5)]);
    let colours = [[230.0, 40.0, 40.0], [40.0, 60.0, 240.0]];
    let image = scene(&[(pixels[0], colours[0]), (pixels[1], colours[1])]);
    let other = [0.5 + 0.02 * f64::from(off(1.0)), 0.5 + 0.02 * f64::from(off(1.0)), 1.3];
    (image, vec![place(pixels[0]), place(pixels[1]), other])
}

fn fitted(generator: &mut ChaCha8Rng) -> Fitted {
    let mut all = Vec::new();
    for task in 0..SCENES.len() {
        for _ in 0..6 {
            let (image, targets) = shown(task, generator);
            all.push(demonstration(&format!("task {task}"), &image, &targets));
        }
    }
    fit(&all).unwrap()
}

fn demonstration(instruction: &str, image: &Frame, places: &[Place]) -> Shown {
    let to = |place: &Place| Argument::To([place.as_slice(), &[0.1, 0.2, 0.3]].concat());
    let calls = places.iter().map(|place| SkillCall { skill: SkillId(0), arguments: vec![to(place)] });
    let targets = places.iter().enumerate().map(|(call, place)| Target { call, argument: 0, place: *place });
    Shown {
        instruction: instruction.to_owned(),
        program: format!("program of {instruction}"),
        motion: format!("motion of {instruction}"),
        image: Picture::of(image),
        calls: calls.collect(),
        targets: targets.collect(),
    }
}

fn landmarks(generator: &mut ChaCha8Rng) -> Landmarks {
    let Fitted { jacobian, spread, tasks, images, .. } = fitted(generator);
    Landmarks::new(Record { camera: 0, group: 0, jacobian, spread, tasks }, images).unwrap()
}

#[test]
fn the_camera_is_found_and_targets_move_with_what_is_seen() {
    let mut generator = ChaCha8Rng::seed_from_u64(1);
    let landmarks = landmarks(&mut generator);
    for (found, wanted) in landmarks.record.jacobian.iter().flatten().zip(CAMERA.iter().flatten()) {
        assert!((found - wanted).abs() < 0.004, "{:?}", landmarks.record.jacobian);
    }
    let (mut before, mut after, mut count) = (0.0, 0.0, 0.0);
    for (task, middles) in SCENES.iter().enumerate() {
        for _ in 0..5 {
            let (image, targets) = shown(task, &mut generator);
            let plan = landmarks.plan(&format!("task {task}"), &[image]).unwrap();
            assert_eq!(
                (plan.task, plan.motion),
                (&*format!("program of task {task}"), &*format!("motion of task {task}"))
            );
            for (at, middle) in middles.map(place).iter().enumerate() {
                let Argument::To(found) = &plan.calls[at].arguments[0] else { panic!("a target is a place") };
                // What is known without looking is where things are on average.
                before += distance(middle, &targets[at]);
                after += distance(&[found[0], found[1], found[2]], &targets[at]);
                count += 1.0;
                assert_eq!(found[3..], [0.1, 0.2, 0.3], "rotations are those of the demonstration");
            }
        }
    }
    assert!(after < 0.3 * before, "{} instead of {}", after / count, before / count);
}

#[test]
fn a_new_instruction_and_a_scene_without_anything_known_have_no_plan() {
    let mut generator = ChaCha8Rng::seed_from_u64(2);
    let landmarks = landmarks(&mut generator);
    let image = shown(0, &mut generator).0;
    assert!(landmarks.plan("task 0", std::slice::from_ref(&image)).is_some());
    assert!(landmarks.plan("Task 0.", std::slice::from_ref(&image)).is_some(), "case and punctuation do not matter");
    assert!(landmarks.plan("another task", std::slice::from_ref(&image)).is_none());
    assert!(landmarks.plan("task 0", &[]).is_none());
    assert!(landmarks.plan("task 0", &[scene(&[])]).is_none());
}

#[test]
fn images_that_say_nothing_give_no_landmarks() {
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    let mut alike = |count: usize| -> Vec<Shown> {
        let of = |_| {
            let (_, targets) = shown(0, &mut generator);
            demonstration("pick", &scene(&[([40.0, 40.0], [230.0, 40.0, 40.0])]), &targets)
        };
        (0..count).map(of).collect()
    };
    assert!(fit(&alike(6)).is_none());
    assert!(fit(&alike(1)).is_none());
    assert!(fit(&[]).is_none());
}

#[test]
fn landmarks_are_read_as_they_were_written_and_damaged_ones_are_refused() {
    let landmarks = landmarks(&mut ChaCha8Rng::seed_from_u64(4));
    let folder = tempfile::tempdir().unwrap();
    assert!(Landmarks::load(folder.path()).unwrap().is_none());
    landmarks.write(folder.path()).unwrap();
    let read = Landmarks::load(folder.path()).unwrap().unwrap();
    assert_eq!((&read.record, &read.images), (&landmarks.record, &landmarks.images));

    let refused = |landmarks: &Landmarks, change: &dyn Fn(&mut Record, &mut Vec<Vec<u8>>)| {
        let (mut record, mut images) = (landmarks.record.clone(), landmarks.images.clone());
        change(&mut record, &mut images);
        Landmarks::new(record, images).err().unwrap().to_string()
    };
    let error = refused(&landmarks, &|_, images| images[1].truncate(5));
    assert!(error.contains("an image has another size") && error.contains("train it again"), "{error}");
    let error = refused(&landmarks, &|_, images| drop(images.pop()));
    assert!(error.contains("not one image for each demonstration"), "{error}");
    let error = refused(&landmarks, &|record, _| record.tasks[0].demonstrations[0].followed[0].push(1_000_000));
    assert!(error.contains("a target or a window of a demonstration is not valid"), "{error}");
    let error = refused(&landmarks, &|record, _| record.tasks[0].demonstrations[0].targets[0].call = 99);
    assert!(error.contains("a target or a window of a demonstration is not valid"), "{error}");
    std::fs::remove_file(folder.path().join(IMAGES)).unwrap();
    assert!(Landmarks::load(folder.path()).is_err());
}
