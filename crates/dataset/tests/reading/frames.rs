//! Pictures on demand: the same whichever way they are asked for.

use dataset::{CameraId, Dataset, Fault, FrameIndex, FrameKey, FrameOptions, FrameReader, Overrides, Root, embedded};

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
