//! Pictures on demand: the same whichever way they are asked for.

use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{
    CameraId, Dataset, Dtype, Fault, Feature, Frame, FrameIndex, FrameKey, FrameOptions, FrameReader, Overrides, Root,
    embedded,
};

use crate::shared_set;

fn mini() -> Dataset {
    Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap()
}

fn key(camera: usize, frame: usize) -> FrameKey {
    (CameraId(camera), FrameIndex(frame))
}

#[test]
fn any_order_repeats_and_cache_give_the_same_pictures_as_the_stream() {
    let dataset = mini();
    // Over the border of an episode, and from the middle between two keyframes.
    let border = dataset.episodes()[3].frames.end;
    let frames = border - 7..border + 9;
    for cache_bytes in [0, 300_000, 256 << 20] {
        let reader = FrameReader::new(&dataset, FrameOptions { cache_bytes, stream_bytes: 1 << 20 });
        let mut streamed = Vec::new();
        for camera in 0..2 {
            let sink = &mut |index, frame| {
                streamed.push(((CameraId(camera), index), frame));
                Ok(())
            };
            reader.stream(CameraId(camera), frames.clone(), sink).unwrap();
        }
        let keys: Vec<FrameKey> = streamed.iter().map(|(key, _)| *key).collect();
        let expected: Vec<FrameKey> = (0..2).flat_map(|camera| frames.clone().map(move |at| key(camera, at))).collect();
        assert_eq!(keys, expected);
        let wanted: Vec<FrameKey> = keys.iter().rev().chain(&keys).copied().collect();
        for _ in 0..2 {
            let read = reader.read(&wanted).unwrap();
            for (key, frame) in wanted.iter().zip(read) {
                let (_, same) = streamed.iter().find(|(other, _)| other == key).unwrap();
                assert!(frame == *same, "{key:?} with a cache of {cache_bytes} bytes");
            }
        }
    }
}

#[test]
fn a_picture_read_alone_is_the_picture_of_its_time() {
    let dataset = mini();
    let reader = FrameReader::new(&dataset, FrameOptions { cache_bytes: 0, ..FrameOptions::default() });
    let (first, last) = (key(0, 0), key(1, dataset.frames() - 1));
    let together = reader.read(&[last, first]).unwrap();
    assert!(reader.read(&[first]).unwrap()[0] == together[1]);
    assert!(reader.read(&[last]).unwrap()[0] == together[0]);
    assert_eq!((together[0].width, together[0].height, together[0].pixels.len()), (128, 128, 128 * 128 * 3));
    assert!(together[0] != together[1]);
}

#[test]
fn frames_and_cameras_that_are_not_there_are_named() {
    let dataset = mini();
    let reader = FrameReader::new(&dataset, FrameOptions::default());
    let error = reader.read(&[key(0, dataset.frames())]).unwrap_err();
    assert!(matches!(error.faults(), [Fault::NoFrame { frame: 2226, frames: 2226 }]), "{error}");
    let error = reader.read(&[key(2, 0)]).unwrap_err();
    assert!(matches!(error.faults(), [Fault::UnknownKey { .. }]), "{error}");
    assert!(reader.read(&[]).unwrap().is_empty());
}

#[test]
fn pictures_in_data_files_are_read_like_videos() {
    let Some(path) = shared_set("libero_object_image_tiny") else { return };
    let dataset = Dataset::open(Root::Directory(path), &Overrides::default()).unwrap();
    let reader = FrameReader::new(&dataset, FrameOptions { cache_bytes: 0, ..FrameOptions::default() });
    let mut streamed = Vec::new();
    let sink = &mut |_, frame| {
        streamed.push(frame);
        Ok(())
    };
    reader.stream(CameraId(1), 0..dataset.frames(), sink).unwrap();
    assert_eq!(streamed.len(), 277);
    for frame in [276, 0, 134, 135, 136] {
        let read = reader.read(&[key(1, frame), key(0, frame)]).unwrap();
        assert!(read[0] == streamed[frame] && read[1] != read[0]);
    }
}

/// A dataset with pictures in its data files: two cameras, three episodes.
fn with_pictures(folder: &std::path::Path) -> (Dataset, Vec<[Frame; 2]>) {
    let picture = |camera: usize, frame: usize| {
        let pixels: Vec<u8> = (0..6 * 4 * 3).map(|at| (at * 7 + frame * 31 + camera * 101) as u8).collect();
        Frame { width: 6, height: 4, pixels: pixels.into() }
    };
    let features = [
        ("observation.state", Feature::new(Dtype::Float32, &[2])),
        ("left", Feature::new(Dtype::Image, &[4, 6, 3])),
        ("action", Feature::new(Dtype::Float32, &[1])),
        ("right", Feature::new(Dtype::Image, &[4, 6, 3])),
    ];
    let features = features.map(|(key, feature)| (key.to_string(), feature)).to_vec();
    let path = folder.join("set");
    let mut writer = Writer::create(&path, WriteOptions::new(5, features)).unwrap();
    let mut all = Vec::new();
    for length in [70, 3, 140] {
        let frames: Vec<[Frame; 2]> =
            (0..length).map(|at| [0, 1].map(|camera| picture(camera, all.len() + at))).collect();
        let of = |camera: usize| frames.iter().map(|pair| pair[camera].clone()).collect::<Vec<_>>();
        let (states, actions, left, right) = (vec![0.5; 2 * length], vec![0.25; length], of(0), of(1));
        let columns = [
            ("observation.state", ColumnData::F32(&states)),
            ("action", ColumnData::F32(&actions)),
            ("left", ColumnData::Images(&left)),
            ("right", ColumnData::Images(&right)),
        ];
        writer.add_episode(&EpisodeData { task: "look", columns: &columns }).unwrap();
        all.extend(frames);
    }
    writer.finish().unwrap();
    (Dataset::open(Root::Directory(path), &Overrides::default()).unwrap(), all)
}

#[test]
fn pictures_in_data_files_come_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, written) = with_pictures(folder.path());
    assert_eq!(dataset.roles().cameras, ["left", "right"]);
    let reader = FrameReader::new(&dataset, FrameOptions { cache_bytes: 0, stream_bytes: 1 });
    for camera in [0, 1] {
        let mut at = 0;
        let sink = &mut |index: FrameIndex, frame| {
            assert!(index.0 == at && frame == written[at][camera], "frame {at} of camera {camera}");
            at += 1;
            Ok(())
        };
        reader.stream(CameraId(camera), 0..dataset.frames(), sink).unwrap();
        assert_eq!(at, 213);
    }
    let wanted: Vec<FrameKey> = [212, 5, 72, 73, 71, 5].iter().flat_map(|at| [key(1, *at), key(0, *at)]).collect();
    for (frame, (camera, at)) in reader.read(&wanted).unwrap().iter().zip(&wanted) {
        assert!(*frame == written[at.0][camera.0]);
    }
}

#[test]
fn pictures_of_another_size_than_the_description_says_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_pictures(folder.path()));
    let info = folder.path().join("set/meta/info.json");
    let text = std::fs::read_to_string(&info).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["features"]["left"]["shape"] = serde_json::json!([1, 1, 3]);
    std::fs::write(&info, value.to_string()).unwrap();
    let root = Root::Directory(folder.path().join("set"));
    let dataset = Dataset::open(root, &Overrides::default()).unwrap();
    let reader = FrameReader::new(&dataset, FrameOptions::default());
    assert!(reader.read(&[key(1, 0)]).is_ok());
    let error = reader.read(&[key(0, 0)]).unwrap_err();
    assert!(matches!(error.faults(), [Fault::WrongSize { .. }]), "{error}");
}

#[test]
fn cameras_that_are_named_are_the_ones_that_are_read() {
    let all = mini();
    let cameras = vec![all.roles().cameras[1].clone(), all.roles().cameras[0].clone()];
    let chosen = Overrides { cameras: Some(cameras), ..Overrides::default() };
    let turned = Dataset::open(embedded("libero_goal_mini").unwrap(), &chosen).unwrap();
    let options = FrameOptions { cache_bytes: 0, ..FrameOptions::default() };
    let (before, after) = (FrameReader::new(&all, options), FrameReader::new(&turned, options));
    assert!(before.read(&[key(0, 99), key(1, 99)]).unwrap() == after.read(&[key(1, 99), key(0, 99)]).unwrap());
}
