//! Videos, pictures in data files, and `meta/stats.json`.

use std::fs;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array};
use dataset::ValidateOptions;
use dataset::features::{FeatureCache, PixelEncoder, find};
use serde_json::json;

use crate::set::{DATA, EPISODES, INFO, STATS, Set, VIDEO, clip, place};
use crate::{told, told_with};

const DECODE: ValidateOptions = ValidateOptions { decode: true, stats: true };

/// A sound set with a column of numbers of its episodes changed.
fn with_times(column: &str, change: impl FnOnce(&mut Vec<f64>)) -> Set {
    let set = Set::sound();
    set.table(EPISODES, |columns| {
        let place = place(columns, column);
        let mut values = place.as_any().downcast_ref::<Float64Array>().unwrap().values().to_vec();
        change(&mut values);
        *place = Arc::new(Float64Array::from(values));
    });
    set
}

/// A sound set with other pictures in its second data file.
fn with_pictures(pictures: Vec<Option<&[u8]>>) -> Set {
    let set = Set::sound();
    let pictures: ArrayRef = Arc::new(BinaryArray::from(pictures));
    set.table(DATA[1], |columns| *place(columns, "wrist") = pictures);
    set
}

#[test]
fn a_video_is_missing() {
    let set = Set::sound();
    set.remove(VIDEO);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_video_breaks_off() {
    let set = Set::sound();
    set.bytes(VIDEO, |bytes| bytes.truncate(bytes.len() / 2));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_video_that_was_never_fetched() {
    let set = Set::sound();
    set.bytes(VIDEO, |bytes| {
        *bytes = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 14862\n".to_vec()
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_codec_that_nobody_decodes() {
    let set = Set::sound();
    set.bytes(VIDEO, |bytes| {
        for (old, new) in [(b"av01", b"hvc1"), (b"av1C", b"hvcC")] {
            let at = bytes.windows(4).rposition(|name| name == old).unwrap();
            bytes[at..at + 4].copy_from_slice(new);
        }
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_video_shorter_than_its_episodes() {
    let set = with_times("videos/front/from_timestamp", |from| from[2] += 0.2);
    set.table(EPISODES, |columns| {
        *place(columns, "videos/front/to_timestamp") = Arc::new(Float64Array::from(vec![0.4, 0.65, 1.2]));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn spans_that_are_not_the_length() {
    insta::assert_snapshot!(told(&with_times("videos/front/to_timestamp", |to| to[0] += 0.3)));
}

/// Some writers give the time of the last frame, others that of its end; all pictures are there either way.
#[test]
fn finding_7_a_span_that_is_one_frame_short_is_sound() {
    for frames in [-1.0, 1.0] {
        let set = with_times("videos/front/to_timestamp", |to| to.iter_mut().for_each(|to| *to += frames / 20.0));
        assert_eq!(dataset::validate(set.root(), &Default::default(), &ValidateOptions::default(), &|_| {}).faults, []);
    }
    let set = with_times("videos/front/to_timestamp", |to| to[1] -= 2.0 / 20.0);
    assert!(told(&set).contains("episode 1 runs from 0.4 s to 0.55 s"), "two frames are not rounding");
}

/// A copy of a dataset with other actions has the same pictures, and so the same features.
#[test]
fn finding_7_variants_of_a_dataset_share_cached_features() {
    let sets = [Set::sound(), Set::sound()];
    let actions = [[0.3, -0.3]; 7];
    sets[1].table(DATA[1], |columns| *place(columns, "action") = crate::data_files::vectors(&actions));
    let open = |set: &Set| dataset::Dataset::open(set.root(), &Default::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cache = dataset::Root::Directory(folder.path().to_owned());
    let camera = dataset::CameraId(open(&sets[0]).roles().cameras.iter().position(|key| key == "front").unwrap());
    let encoded = [0, 1, 0].map(|at| {
        let mut encoder = PixelEncoder::new(2);
        let options = dataset::FrameOptions::default();
        FeatureCache::fill(&open(&sets[at]), camera, &mut encoder, folder.path(), options, &mut |_| {})
            .unwrap()
            .encoded()
    });
    assert_eq!(encoded, [20, 0, 0], "pictures are encoded once");
    let found = |set: &Set| find(&open(set), camera, &cache).len();
    assert_eq!(sets.each_ref().map(found), [1, 1]);
    // Without pictures, numbers say whose features these are.
    sets.iter().for_each(|set| set.remove(VIDEO));
    assert_eq!(sets.each_ref().map(found), [1, 1]);
    sets[1].table(DATA[1], |columns| *place(columns, "action") = crate::data_files::vectors(&[[0.4, 0.4]; 7]));
    assert_eq!(sets.each_ref().map(found), [1, 0]);
}

/// What a run asks before it trains: the pictures of its report.
#[test]
fn finding_6_missing_videos_are_noticed_without_decoding_them() {
    let set = Set::sound();
    let missing = || {
        let opened = dataset::Dataset::open(set.root(), &Default::default()).unwrap();
        let front = opened.roles().cameras.iter().position(|key| key == "front").unwrap();
        dataset::FrameReader::new(&opened, Default::default())
            .missing(dataset::CameraId(front))
            .map(|it| it.to_string())
    };
    assert_eq!(missing(), None);
    set.bytes(VIDEO, |bytes| *bytes = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n".to_vec());
    assert_eq!(missing().unwrap(), format!("`{VIDEO}` is a pointer of Git LFS, not the file itself"));
    set.remove(VIDEO);
    assert_eq!(missing().unwrap(), format!("`{VIDEO}` is missing"));
}

#[test]
fn pictures_between_the_times() {
    let set = with_times("videos/front/from_timestamp", |from| from.iter_mut().for_each(|from| *from += 0.02));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_that_share_pictures() {
    let set = with_times("videos/front/from_timestamp", |from| from[1] -= 0.1);
    set.table(EPISODES, |columns| {
        *place(columns, "videos/front/to_timestamp") = Arc::new(Float64Array::from(vec![0.4, 0.55, 1.0]));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_time_that_is_no_number() {
    insta::assert_snapshot!(told(&with_times("videos/front/from_timestamp", |from| from[1] = f64::NAN)));
}

#[test]
fn a_video_of_another_size() {
    let set = Set::sound();
    fs::copy(clip("av1_odd.mp4"), set.path().join(VIDEO)).unwrap();
    insta::assert_snapshot!(told(&set));
}

/// Only who decodes can know.
#[test]
fn a_video_with_damaged_pictures() {
    let set = Set::sound();
    set.bytes(VIDEO, |bytes| {
        let at = bytes.windows(4).position(|name| name == b"mdat").unwrap();
        bytes[at + 2000..at + 4000].iter_mut().for_each(|byte| *byte = 0xff);
    });
    assert_eq!(dataset::validate(set.root(), &Default::default(), &ValidateOptions::default(), &|_| {}).faults, []);
    insta::assert_snapshot!(told_with(&set, &DECODE));
}

#[test]
fn a_picture_that_is_none() {
    let good = fs::read(clip("colours.png")).unwrap();
    let mut pictures = vec![Some(&good[..]); 7];
    pictures[3] = Some(b"GIF89a");
    let set = with_pictures(pictures);
    set.json(INFO, |info| info["features"]["wrist"]["shape"] = json!([30, 40, 3]));
    // The first file still has the old size.
    insta::assert_snapshot!(told(&set));
}

/// Only who decodes can know.
#[test]
fn a_picture_that_breaks_off() {
    let set = Set::sound();
    let good = fs::read(clip("colours.png")).unwrap();
    let cut = &good[..good.len() / 2];
    let set_of = |pictures: Vec<Option<&[u8]>>| -> ArrayRef { Arc::new(BinaryArray::from(pictures)) };
    set.json(INFO, |info| info["features"]["wrist"]["shape"] = json!([30, 40, 3]));
    set.table(DATA[0], |columns| *place(columns, "wrist") = set_of(vec![Some(&good); 13]));
    set.table(DATA[1], |columns| *place(columns, "wrist") = set_of(vec![Some(cut); 7]));
    assert_eq!(dataset::validate(set.root(), &Default::default(), &ValidateOptions::default(), &|_| {}).faults, []);
    insta::assert_snapshot!(told_with(&set, &DECODE));
}

#[test]
fn pictures_of_another_size() {
    let set = Set::sound();
    set.json(INFO, |info| info["features"]["wrist"]["shape"] = json!([6, 4, 3]));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_picture_is_missing() {
    let good = Set::sound();
    good.table(DATA[1], |columns| {
        let pictures = place(columns, "wrist").clone();
        let some = pictures.as_any().downcast_ref::<arrow_array::StructArray>().unwrap();
        let bytes = some.column_by_name("bytes").unwrap().as_any().downcast_ref::<BinaryArray>().unwrap();
        let with_gap: Vec<Option<&[u8]>> = bytes.iter().enumerate().map(|(at, it)| it.filter(|_| at != 2)).collect();
        *place(columns, "wrist") = Arc::new(BinaryArray::from(with_gap));
    });
    insta::assert_snapshot!(told(&good));
}

#[test]
fn pictures_that_are_numbers() {
    let set = Set::sound();
    set.table(DATA[1], |columns| *place(columns, "wrist") = Arc::new(Int64Array::from(vec![3; 7])));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn no_statistics() {
    let set = Set::sound();
    set.remove(STATS);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn statistics_that_break_off() {
    let set = Set::sound();
    set.bytes(STATS, |bytes| bytes.truncate(200));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn statistics_of_other_data() {
    let set = Set::sound();
    set.json(STATS, |stats| {
        stats["action"]["max"][1] = 12.5.into();
        stats["observation.state"]["count"] = json!([19]);
        stats["next.reward"]["mean"] = json!([0.75]);
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn statistics_of_another_shape() {
    let set = Set::sound();
    set.json(STATS, |stats| {
        for name in ["min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"] {
            stats["action"][name] = json!([0.0, 0.0, 0.0]);
        }
        stats.as_object_mut().unwrap().shift_remove("next.reward");
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn statistics_that_are_no_numbers() {
    let set = Set::sound();
    set.json(STATS, |stats| {
        stats["phase"]["std"] = "wide".into();
        stats["action"].as_object_mut().unwrap().shift_remove("mean");
    });
    insta::assert_snapshot!(told(&set));
}

/// Both were walked frame by frame, until memory was full.
#[test]
fn a_start_long_before_the_video() {
    let set = with_times("videos/front/from_timestamp", |from| from[2] = -1e11);
    insta::assert_snapshot!(told(&set));
    set.integers(EPISODES, "length", |lengths| lengths[2] += 1_000_000_000_000);
    set.integers(EPISODES, "dataset_to_index", |to| to[2] += 1_000_000_000_000);
    insta::assert_snapshot!("a_start_long_before_the_video_and_a_length_to_match", told(&set));
}

#[test]
fn a_start_a_little_before_the_video() {
    insta::assert_snapshot!(told(&with_times("videos/front/from_timestamp", |from| from[0] = -0.1)));
}
