//! The LIBERO demonstrations, as lerobot wrote them.

use dataset::{Dataset, Overrides, Root};

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
