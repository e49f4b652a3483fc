//! Damaged and hostile videos: errors, and nothing worse. `cargo run --release -p fuzz -- --target video` damages them for as
//! long as wanted.

use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::goldens::folder;
use super::*;

const CLIPS: [&str; 5] = ["av1.mp4", "av1_long_group.mp4", "h264_baseline.mp4", "h264_reordered.mp4", "h264_late.mp4"];

/// No clip takes a hundredth of this.
const TOO_LONG: Duration = Duration::from_secs(20);

/// Opens and decodes all; gives how many pictures came out.
fn decode_all(decoder: &mut Decoder, content: Vec<u8>) -> Result<usize, Error> {
    let video = VideoFile::open(Blob::Memory(Bytes::from(content)), "clip.mp4")?;
    let wanted: Vec<usize> = (0..video.frames()).collect();
    let mut count = 0;
    let sink = &mut |_, _| {
        count += 1;
        Ok(())
    };
    decoder.decode(&video, &wanted, sink)?;
    Ok(count)
}

/// Where the coded pictures are: behind the head of `mdat`.
fn data_range(content: &[u8]) -> std::ops::Range<usize> {
    let name = content.windows(4).position(|name| name == b"mdat").unwrap();
    let length = u32::from_be_bytes(*content[name - 4..].first_chunk().unwrap()) as usize;
    name + 4..name - 4 + length
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    let mut decoder = Decoder::new();
    for clip in CLIPS {
        let whole = std::fs::read(folder().join(clip)).unwrap();
        for length in (0..whole.len()).step_by(101) {
            assert!(decode_all(&mut decoder, whole[..length].to_vec()).is_err(), "{clip} {length}");
        }
    }
}

/// Changes a few bytes at a time, by turns of the tables, of coded pictures, of the first picture's start, or a stretch
/// moved elsewhere; gives how many files were decoded nevertheless, and how many were not.
fn change_bytes(clips: &[&str], seed: u64, rounds: usize) -> (usize, usize) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut decoder = Decoder::new();
    let (mut good, mut bad) = (0, 0);
    for clip in clips {
        let whole = std::fs::read(folder().join(clip)).unwrap();
        let data = data_range(&whole);
        for round in 0..rounds {
            let mut content = whole.clone();
            for _ in 0..random.random_range(1..6) {
                let inside = random.random_range(data.clone());
                let outside = (data.end + random.random_range(0..content.len() - data.len())) % content.len();
                match round % 4 {
                    0 => content[outside] = random.random(),
                    1 => content[inside] ^= 1 << random.random_range(0..8),
                    2 => content[data.start + random.random_range(0..40)] = random.random(),
                    _ => {
                        let from = random.random_range(data.start..data.end - 64);
                        let to = random.random_range(data.start..data.end - 64);
                        content.copy_within(from..from + 64, to);
                    }
                }
            }
            let started = Instant::now();
            match decode_all(&mut decoder, content) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
            assert!(started.elapsed() < TOO_LONG, "{clip} {seed} {round}");
        }
    }
    (good, bad)
}

#[test]
fn changed_bytes_of_h264_are_errors_and_nothing_worse() {
    let (good, bad) = change_bytes(&CLIPS[2..], 1, 400);
    assert!(good > 0 && bad > 0);
}

#[test]
fn changed_bytes_of_av1_are_errors_and_nothing_worse() {
    let (good, bad) = change_bytes(&CLIPS[..2], 1, 400);
    assert!(good > 0 && bad > 0);
}

#[test]
fn tables_that_lie_about_their_length_allocate_nothing() {
    let mut decoder = Decoder::new();
    for clip in CLIPS {
        let whole = std::fs::read(folder().join(clip)).unwrap();
        for table in [b"stts", b"ctts", b"stsc", b"stco", b"stss", b"stsz", b"stsd", b"elst"] {
            let Some(at) = whole.windows(4).position(|name| name == table) else { continue };
            for lie in [u32::MAX, 0x7fff_ffff, 1 << 24] {
                let mut content = whole.clone();
                let count = if table == b"stsz" { at + 12 } else { at + 8 };
                content[count..count + 4].copy_from_slice(&lie.to_be_bytes());
                let error = decode_all(&mut decoder, content).unwrap_err();
                assert!(matches!(error.faults(), [Fault::Malformed { format: "mp4", .. }]), "{clip} {error}");
            }
        }
    }
}

#[test]
fn a_picture_larger_than_the_file_says_is_refused() {
    let mut decoder = Decoder::new();
    for (clip, entry) in [("av1.mp4", b"av01"), ("h264_baseline.mp4", b"avc1")] {
        let whole = std::fs::read(folder().join(clip)).unwrap();
        // The brand of the file may have the name too; the entry lies in `stsd`. Width and height are behind 24 bytes.
        let table = whole.windows(4).position(|name| name == b"stsd").unwrap();
        let at = table + whole[table..].windows(4).position(|name| name == entry).unwrap() + 4 + 24;
        assert_eq!(whole[at..at + 4], [0, 64, 0, 48]);
        for size in [[0, 32, 0, 32], [31, 255, 31, 255], [0, 64, 0, 46]] {
            let mut content = whole.clone();
            content[at..at + 4].copy_from_slice(&size);
            let error = decode_all(&mut decoder, content).unwrap_err();
            assert!(matches!(error.faults(), [Fault::BadPicture { .. }]), "{clip} {error}");
        }
        let mut content = whole;
        content[at..at + 4].copy_from_slice(&[255, 255, 255, 255]);
        let error = decode_all(&mut decoder, content).unwrap_err();
        assert!(error.to_string().contains("65535×65535"), "{error}");
    }
}

#[test]
fn what_is_no_video_is_told_apart() {
    let mut decoder = Decoder::new();
    let mut reason = |content: &[u8]| decode_all(&mut decoder, content.to_vec()).unwrap_err().to_string();
    assert!(reason(b"").contains("neither an `ftyp` nor a `moov` box"));
    assert!(reason(b"#!/bin/sh\necho not a video\n").contains("the box at byte 0 is cut off"));
    assert!(reason(b"\0\0\0\x10ftypisom\0\0\0\0").contains("no `moov` box"));
    assert!(reason(b"\0\0\0\x08ftyp\0\0\0\x08moof").contains("fragmented"));
    assert!(reason(b"\0\0\0\x08ftyp\0\0\0\x08moov").contains("no video track"));
}
