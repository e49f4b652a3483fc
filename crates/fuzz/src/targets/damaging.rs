//! Datasets, videos, pictures and messages of clients, damaged: a good file is there, and an input says what happens to it.
//!
//! An input is a list of edits, `2:1040=255` for the byte at 1040 of file 2, `2:1040!` for the end of the file there, and
//! `2:1040+5000` for a stretch that is written over with what lies elsewhere. Places wrap around, and what is no edit is
//! passed over, so that every text means something and a failure can be shrunk.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use dataset::video::{Decoder, VideoFile};
use dataset::{Blob, Dataset, Error, Overrides, Root, ValidateOptions, decode_picture, recursive_pour, validate};

use server::Metadata;
use server::client::{Input, request};
use server::message::Limits;
use server::request::{Asked, Expected};

use super::{Outcome, Target, Verdict, ensure};
use crate::inputs::Source;
use crate::random::Random;

/// Bytes that are copied by an edit.
const STRETCH: usize = 16;

/// The metadata and the columns of a small dataset: the reader, and the check, which must find what the reader finds.
pub(super) fn dataset() -> Target {
    // Without a place to write, every input is refused, and a test watches over the share of accepted ones.
    let files = written().unwrap_or_default();
    target("dataset", 200, files.len(), move |input| {
        let (paths, contents): (Vec<&String>, Vec<&Bytes>) = files.iter().unzip();
        let damaged = damaged(&contents, input);
        let files = paths.into_iter().cloned().zip(damaged).collect::<BTreeMap<String, Bytes>>();
        let root = Root::Memory { name: "damaged".to_string(), files: Arc::new(files) };
        let report = validate(root.clone(), &Overrides::default(), &ValidateOptions::default(), &|_| {});
        let opened = Dataset::open(root, &Overrides::default()).map(drop);
        if let Err(error) = &opened {
            ensure(report.errors() > 0, || format!("only opening it finds \"{error}\""))?;
        }
        verdict(opened)
    })
}

/// Small videos of both codecs.
pub(super) fn video() -> Target {
    let clips: [&[u8]; 4] = [
        include_bytes!("../../../dataset/fixtures/golden/frames/av1.mp4"),
        include_bytes!("../../../dataset/fixtures/golden/frames/av1_long_group.mp4"),
        include_bytes!("../../../dataset/fixtures/golden/frames/h264_baseline.mp4"),
        include_bytes!("../../../dataset/fixtures/golden/frames/h264_reordered.mp4"),
    ];
    let clips = clips.map(Bytes::from_static);
    target("video", 400, clips.len(), move |input| {
        let damaged = damaged(&clips.iter().collect::<Vec<_>>(), input);
        // Only the clips that an edit touches are worth decoding.
        for (clip, _) in damaged.into_iter().zip(&clips).filter(|(clip, whole)| clip != *whole) {
            let mut pictures = 0;
            let decoded = VideoFile::open(Blob::Memory(clip), "clip.mp4").and_then(|video| {
                let wanted: Vec<usize> = (0..video.frames()).collect();
                Decoder::new().decode(&video, &wanted, &mut |_, _| {
                    pictures += 1;
                    Ok(())
                })?;
                Ok(wanted.len())
            });
            match decoded {
                Ok(wanted) => ensure(pictures == wanted, || format!("{pictures} of {wanted} pictures came out"))?,
                Err(error) => return verdict(Err(error)),
            }
        }
        Ok(Outcome::Accepted)
    })
}

/// PNG and JPEG.
pub(super) fn picture() -> Target {
    let pictures: [&[u8]; 2] = [
        include_bytes!("../../../dataset/fixtures/golden/frames/colours.png"),
        include_bytes!("../../../dataset/fixtures/golden/frames/colours.jpg"),
    ];
    let pictures = pictures.map(Bytes::from_static);
    target("picture", 10, pictures.len(), move |input| {
        for damaged in damaged(&pictures.iter().collect::<Vec<_>>(), input) {
            let frame = match decode_picture(&damaged, "picture", "0") {
                Ok(frame) => frame,
                Err(error) => return verdict(Err(error)),
            };
            let bytes = frame.width * frame.height * 3;
            ensure(frame.pixels.len() == bytes, || format!("{} bytes instead of {bytes}", frame.pixels.len()))?;
        }
        Ok(Outcome::Accepted)
    })
}

/// Requests to the policy server: what is accepted is what the policy expects.
pub(super) fn message() -> Target {
    let metadata = Metadata {
        cameras: vec!["observation.images.image".to_owned(), "observation.images.wrist_image".to_owned()],
        state_key: "observation.state".to_owned(),
        state_dim: 8,
        ..Metadata::default()
    };
    let expected = Expected::new(&metadata, Limits::default());
    let whole = request(&[
        ("observation/image", Input::Image(4, 3, &[7; 36])),
        ("observation/wrist_image", Input::Image(2, 2, &[9; 12])),
        ("observation/state", Input::Numbers(&[0.5; 8])),
        ("prompt", Input::Text("put the bowl on the plate")),
    ]);
    let program = request(&[
        ("image", Input::Image(1, 1, &[1; 3])),
        ("images/wrist_image", Input::Image(1, 2, &[2; 6])),
        ("state", Input::Numbers(&[-1.0; 8])),
        ("program", Input::Text("seq[pick \"bowl\"]")),
        ("reset", Input::Flag(true)),
        ("episode", Input::Text("open_the_drawer/3")),
    ]);
    let messages = [whole, program];
    target("message", 1, messages.len(), move |input| {
        let mut outcome = Outcome::Accepted;
        for damaged in damaged(&messages.iter().collect::<Vec<_>>(), input) {
            match expected.read(&damaged) {
                Ok(Asked::Reset) => {}
                Ok(Asked::Actions(found)) => {
                    let whole = |one: &server::Picture| one.pixels.len() == one.height * one.width * 3;
                    ensure(found.pictures.len() == 2 && found.pictures.iter().all(whole), || {
                        format!("wrong pictures were accepted: {:?}", found.pictures)
                    })?;
                    let is_state = found.state.len() == 8 && found.state.iter().all(|number| number.is_finite());
                    ensure(is_state, || format!("a wrong state was accepted: {:?}", found.state))?;
                    let is_name = found.episode.as_ref().is_none_or(|name| name.len() <= 256);
                    ensure(is_name, || format!("a wrong name was accepted: {:?}", found.episode))?;
                }
                Err(error) => {
                    let length = error.to_string().len();
                    ensure((1..100_000).contains(&length), || format!("an error of {length} bytes"))?;
                    outcome = Outcome::Refused;
                }
            }
        }
        Ok(outcome)
    })
}

fn verdict(read: Result<(), Error>) -> Verdict {
    let Err(error) = read else { return Ok(Outcome::Accepted) };
    ensure(!error.faults().is_empty() && !error.to_string().is_empty(), || "an error without a message".into())?;
    Ok(Outcome::Refused)
}

fn target(
    name: &'static str,
    cost: u64,
    files: usize,
    check: impl Fn(&str) -> Verdict + Send + Sync + 'static,
) -> Target {
    let edits = move |random: &mut Random| {
        let edits: Vec<String> = (0..random.magnitude(6)).map(|_| edit(random, files)).collect();
        edits.join(" ")
    };
    let words = ["0:", "1:0", "=0", "=255", "!", "+", "4294967296", "18446744073709551615"].map(String::from).to_vec();
    let source = Source {
        words,
        seeds: vec![String::new(), "0:0=0".to_string()],
        nests: &[("", "", "")],
        grammar: Box::new(edits),
    };
    Target { name, cost, source, check: Box::new(check) }
}

/// One edit; heads and tails of files, where their tables are, are met more often than their middles.
fn edit(random: &mut Random, files: usize) -> String {
    let place = match random.below(3) {
        0 => random.below(200),
        1 => usize::MAX - random.below(2000),
        _ => random.below(1 << 20),
    };
    let file = random.below(files.max(1));
    match random.below(8) {
        0 => format!("{file}:{place}!"),
        1 => format!("{file}:{place}+{}", random.below(1 << 20)),
        _ => format!("{file}:{place}={}", random.below(256)),
    }
}

/// The files after the edits of an input.
fn damaged(files: &[&Bytes], input: &str) -> Vec<Bytes> {
    let mut changed: Vec<Option<Vec<u8>>> = vec![None; files.len()];
    for edit in input.split_whitespace() {
        let Some((file, change)) = edit.split_once(':') else { continue };
        let Some(file) = file.parse::<usize>().ok().and_then(|file| file.checked_rem(files.len())) else { continue };
        let content = changed[file].get_or_insert_with(|| files[file].to_vec());
        let end = change.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(change.len());
        let Some(place) = change[..end].parse::<usize>().ok() else { continue };
        // Places near the largest number are near the end of the file.
        let place = match (content.len(), usize::MAX - place) {
            (0, _) => continue,
            (length, behind) if behind < length => length - 1 - behind,
            (length, _) => place % length,
        };
        match (change.as_bytes().get(end), change.get(end + 1..).and_then(|value| value.parse::<usize>().ok())) {
            (Some(b'!'), _) => content.truncate(place),
            (Some(b'='), Some(value)) => content[place] = value as u8,
            (Some(b'+'), Some(from)) => {
                let from = from % content.len();
                let length = STRETCH.min(content.len() - place).min(content.len() - from);
                content.copy_within(from..from + length, place);
            }
            _ => {}
        }
    }
    let whole = |(changed, file): (Option<Vec<u8>>, &&Bytes)| changed.map_or_else(|| (*file).clone(), Bytes::from);
    changed.into_iter().zip(files).map(whole).collect()
}

/// A small dataset, as our own writer makes it.
fn written() -> Option<BTreeMap<String, Bytes>> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("pour");
    recursive_pour::write(&path, 2, 1).ok()?;
    let root = Root::Directory(path);
    let files = ["meta", "data"].iter().flat_map(|part| root.list(part));
    files.map(|file| Some((file.clone(), root.read(&file, u64::MAX).ok()?))).collect()
}
