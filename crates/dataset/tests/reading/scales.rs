//! Scales of states and actions, from the file or from the data.

use std::sync::Arc;

use dataset::normalize::NormalizationKind;
use dataset::{Dataset, EpisodeId, Overrides, Root, embedded};

#[test]
fn scales_are_those_of_the_file_and_computed_where_there_is_none() {
    let Some(Root::Memory { name, files }) = embedded("libero_goal_mini") else { panic!("it is in memory") };
    let open = |files| {
        let root = Root::Memory { name: name.clone(), files: Arc::new(files) };
        Dataset::open(root, &Overrides::default()).unwrap()
    };
    let with = open((*files).clone());
    let mut bare = (*files).clone();
    bare.remove("meta/stats.json").unwrap();
    let without = open(bare);
    for kind in [NormalizationKind::MeanStd, NormalizationKind::MinMax] {
        let ((state, action), (own_state, own_action)) =
            (with.normalizations(kind).unwrap(), without.normalizations(kind).unwrap());
        assert_eq!((state.width(), action.width()), (8, 7));
        for (file, own) in [(&state, &own_state), (&action, &own_action)] {
            for (a, b) in file.offset.iter().chain(&file.scale).zip(own.offset.iter().chain(&own.scale)) {
                assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{kind:?}: {a} in the file, {b} in the data");
            }
        }
    }
    // Over all episodes, the same as over the data; over one, something else.
    let all: Vec<EpisodeId> = (0..36).map(EpisodeId).collect();
    let kind = NormalizationKind::Quantile;
    assert_eq!(with.normalizations_over(&all, kind).unwrap(), without.normalizations(kind).unwrap());
    assert_ne!(with.normalizations_over(&all[..1], kind).unwrap(), without.normalizations(kind).unwrap());
    assert!(with.normalizations_over(&[], kind).is_err());
}
