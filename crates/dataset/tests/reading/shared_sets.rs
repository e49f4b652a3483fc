//! The LIBERO demonstrations, as lerobot wrote them.

use dataset::{Control, Dataset, GroupKind, Overrides, RobotLayout, Root, Rotation};

use crate::shared_set;

#[test]
fn all_sets_open_with_their_counts() {
    let sets = [
        ("libero_object", 10, 60, 9514),
        ("libero_spatial", 10, 60, 8994),
        ("libero_goal", 9, 54, 6661),
        ("libero_10", 7, 42, 11609),
        ("libero_object_image_tiny", 2, 2, 277),
    ];
    for (name, tasks, episodes, frames) in sets {
        let Some(path) = shared_set(name) else { continue };
        let dataset = Dataset::open(Root::Directory(path), &Overrides::default()).unwrap();
        assert_eq!((dataset.tasks().len(), dataset.episodes().len(), dataset.frames()), (tasks, episodes, frames));
        assert_eq!((dataset.columns().states.width, dataset.columns().actions.width), (8, 7));
        assert_eq!(dataset.roles().cameras, ["observation.images.image", "observation.images.wrist_image"]);
        assert_eq!(dataset.roles().labels, ["phase"]);
        let last = dataset.episodes().last().unwrap().frames.end - 1;
        assert_eq!(dataset.columns().rewards.as_ref().unwrap()[last], 1.0);
        assert!(dataset.columns().done.as_ref().unwrap()[last]);
    }
}

#[test]
fn the_robot_of_all_sets_is_known() {
    for name in ["libero_object", "libero_spatial", "libero_goal", "libero_10"] {
        let Some(path) = shared_set(name) else { continue };
        let dataset = Dataset::open(Root::Directory(path), &Overrides::default()).unwrap();
        let layout = RobotLayout::of(&dataset);
        let [arm, gripper] = &layout.groups[..] else { panic!("{name}: {layout:?}") };
        assert_eq!(
            (arm.kind, arm.control, arm.rotation),
            (GroupKind::EndEffector, Control::Relative, Some(Rotation::AxisAngle))
        );
        assert_eq!((&arm.actions[..], &arm.states[..]), (&[0, 1, 2, 3, 4, 5][..], &[0, 1, 2, 3, 4, 5][..]));
        assert!(arm.in_metres && layout.undecided.is_empty(), "{name}: {layout:?}");
        // The controller moves by at most 5 cm and half a radian at once, of which the arm does a part.
        let details = gripper.gripper.as_ref().unwrap();
        assert_eq!((details.threshold, details.closes_above), (0.0, Some(true)));
        assert_eq!(
            (&gripper.actions[..], &gripper.states[..], &details.signs[..]),
            (&[6][..], &[6, 7][..], &[1.0, -1.0][..])
        );
    }
}
