//! Decoded pictures against PyAV's, from what `fixtures/golden/frames/export.py` writes: planes and colours are equal.

use serde_json::Value;

use super::*;
use crate::files::Root;

fn golden() -> Value {
    serde_json::from_slice(&std::fs::read(folder().join("golden.json")).unwrap()).unwrap()
}

pub(super) fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/frames")
}

fn open(folder: std::path::PathBuf, name: &str) -> VideoFile {
    VideoFile::open(Root::Directory(folder).open(name).unwrap(), name).unwrap()
}

/// What the exporter says of a picture.
fn hashes(planes: &Planes<'_>) -> ([String; 3], String) {
    let digest = |content: &[u8]| blake3::hash(content).to_hex()[..32].to_string();
    let rows = [planes.height, planes.chroma_size().1, planes.chroma_size().1];
    let plane =
        |plane: usize| digest(&(0..rows[plane]).flat_map(|row| planes.row(plane, row).to_vec()).collect::<Vec<_>>());
    ([plane(0), plane(1), plane(2)], digest(&to_rgb(planes).pixels))
}

fn check(video: &VideoFile, pictures: &[Value]) {
    let wanted: Vec<usize> = pictures.iter().map(|picture| picture["index"].as_u64().unwrap() as usize).collect();
    let mut expected = pictures.iter();
    let mut decoder = Decoder::new();
    let mut wrong = Vec::new();
    decoder
        .decode_planes(video, &wanted, &mut |index, planes| {
            let picture = expected.next().unwrap();
            assert_eq!(index as u64, picture["index"].as_u64().unwrap());
            let (planes, rgb) = hashes(planes);
            if serde_json::json!(planes) != picture["planes"] {
                wrong.push(format!("{index}: planes"));
            } else if rgb != picture["rgb"] {
                wrong.push(format!("{index}: colours"));
            }
            Ok(())
        })
        .unwrap();
    assert!(expected.next().is_none());
    assert_eq!(wrong, Vec::<String>::new(), "{video:?}");
}

#[test]
fn clips_are_those_of_pyav() {
    for (name, wanted) in golden()["clips"].as_object().unwrap() {
        let video = open(folder(), name);
        assert_eq!(serde_json::json!([video.size().0, video.size().1]), wanted["size"], "{name}");
        assert_eq!(serde_json::json!(video.times()), wanted["times"], "{name}");
        assert!((video.rate() - 20.0).abs() < 1e-9 && (video.end() - video.times()[19] - 0.05).abs() < 1e-9, "{name}");
        check(&video, wanted["pictures"].as_array().unwrap());
    }
}

#[test]
fn any_choice_of_pictures_is_the_same_as_all() {
    let mut decoder = Decoder::new();
    for name in golden()["clips"].as_object().unwrap().keys() {
        let video = open(folder(), name);
        let mut all = Vec::new();
        let every: Vec<usize> = (0..video.frames()).collect();
        let sink = &mut |_, frame| {
            all.push(frame);
            Ok(())
        };
        decoder.decode(&video, &every, sink).unwrap();
        assert_eq!(all.len(), 20);
        for wanted in [&[3][..], &[19], &[0, 1], &[5, 6, 7, 8], &[2, 9, 11, 18], &[], &[17], &[0, 19]] {
            let mut some = Vec::new();
            let sink = &mut |index, frame| {
                some.push((index, frame));
                Ok(())
            };
            decoder.decode(&video, wanted, sink).unwrap();
            let expected: Vec<_> = wanted.iter().map(|&index| (index, all[index].clone())).collect();
            assert_eq!(some, expected, "{name} {wanted:?}");
        }
        for wrong in [&[20][..], &[3, 3], &[4, 2]] {
            assert!(decoder.decode(&video, wrong, &mut |_, _| Ok(())).is_err());
        }
    }
}

#[test]
fn an_error_of_the_sink_stops_and_the_decoder_goes_on_after_it() {
    let mut decoder = Decoder::new();
    for name in ["av1.mp4", "h264_reordered.mp4"] {
        let video = open(folder(), name);
        let stop = || Error::from(Fault::NoFrames);
        assert_eq!(decoder.decode(&video, &[1, 2, 3], &mut |_, _| Err(stop())), Err(stop()));
        let mut count = 0;
        let sink = &mut |_, _| {
            count += 1;
            Ok(())
        };
        decoder.decode(&video, &[1, 2, 3], sink).unwrap();
        assert_eq!(count, 3);
    }
}

#[test]
fn the_nearest_picture_is_found() {
    let video = open(folder(), "h264_late.mp4");
    assert_eq!(video.times()[..2], [0.35, 0.4]);
    let nearest = |time| video.nearest(time);
    assert_eq!([nearest(-1.0), nearest(0.35), nearest(0.374), nearest(0.376), nearest(99.0)], [0, 0, 0, 1, 19]);
    assert_eq!(video.nearest(f64::NAN), 0);
}

#[test]
fn the_libero_sets_are_those_of_pyav() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !data.is_dir() {
        eprintln!("skipped: there is no {}", data.display());
        return;
    }
    for (path, wanted) in golden()["sets"].as_object().unwrap() {
        let video = open(data.clone(), path);
        assert_eq!(video.frames() as u64, wanted["frames"].as_u64().unwrap(), "{path}");
        assert_eq!((video.codec(), video.size()), (Codec::Av1, (128, 128)));
        check(&video, wanted["pictures"].as_array().unwrap());
    }
}
