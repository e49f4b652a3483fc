//! Videos: whether they are there, what they are, and whether every frame of an episode has its picture.
//!
//! Without decoding, the tables of the file say all of this but whether the pictures are whole.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value;

use super::notes::Notes;
use super::rows::TOLERANCE;
use super::{Meter, Report, Stage, Validation};
use crate::episodes::EpisodeTable;
use crate::fault::Fault;
use crate::info::{Feature, Info};
use crate::video::{Decoder, VideoFile};

/// The rate of a video may be this far from the dataset's, as a share of it.
const RATE_TOLERANCE: f64 = 0.01;

/// A stretch of a video may be this much longer or shorter than its frames, in frames. Writers disagree on whether
/// `to_timestamp` is the time of the last frame or the end of it, and nothing reads it; half a frame is rounding.
const SPAN_TOLERANCE: f64 = 1.5;

/// The fewest pictures that are decoded in one go.
const PIECE: usize = 64;

/// A stretch of a video that belongs to an episode.
struct Stretch {
    episode: usize,
    frames: usize,
    from: f64,
    to: f64,
    /// Whether the data file has as many rows as its episodes, so that `frames` can be believed.
    sure: bool,
}

/// Checks all videos of some cameras, in parallel. Frames of data files whose rows were found wrong are not counted
/// again here.
pub(super) fn check(validation: &Validation<'_>, table: &EpisodeTable, cameras: &[String], report: &mut Report) {
    let mut files: BTreeMap<(usize, u32, u32), Vec<Stretch>> = BTreeMap::new();
    let mut total = 0_u64;
    let wrong: BTreeSet<&str> = report
        .faults
        .iter()
        .filter_map(|fault| match fault {
            Fault::WrongRows { file, .. } => Some(file.as_str()),
            _ => None,
        })
        .collect();
    for (episode, number) in table.episodes.iter().zip(&table.numbers) {
        let sure = !wrong.contains(table.files[episode.file as usize].path.as_str());
        for (camera, span) in episode.videos.iter().enumerate() {
            let stretch =
                Stretch { episode: *number, frames: episode.frames.len(), from: span.from, to: span.to, sure };
            files.entry((camera, span.chunk, span.file)).or_default().push(stretch);
            total = total.saturating_add(episode.frames.len() as u64);
        }
    }
    let meter = validation.meter(Stage::Pictures, total);
    let files: Vec<_> = files.into_iter().collect();
    let looked: Vec<_> = files
        .par_iter()
        .map(|((camera, chunk, file), stretches)| {
            let file = validation.info.video_file(&cameras[*camera], (*chunk).into(), (*file).into());
            let mut notes = Notes::default();
            let pictures = check_file(validation, &cameras[*camera], &file, stretches, &meter, &mut notes);
            (pictures, notes)
        })
        .collect();
    for (pictures, notes) in looked {
        report.checked.files += u64::from(pictures.is_some());
        report.checked.pictures += pictures.unwrap_or(0) as u64;
        report.faults.extend(notes.into_faults());
    }
}

/// The number of pictures that frames need, unless the file cannot be opened.
fn check_file(
    validation: &Validation<'_>,
    camera: &str,
    file: &str,
    stretches: &[Stretch],
    meter: &Meter<'_>,
    notes: &mut Notes,
) -> Option<usize> {
    let opened = validation.root.open(file).and_then(|blob| VideoFile::open(blob, file));
    let video = match opened {
        Ok(video) => video,
        Err(error) => {
            notes.extend(error.into_faults());
            return None;
        }
    };
    describe(validation.info, camera, &video, notes);
    let wanted = wanted(validation.info.fps, &video, stretches, notes);
    match validation.options.decode {
        true => decode(&video, &wanted, meter, notes),
        false => meter.add(wanted.len()),
    }
    Some(wanted.len())
}

/// Size and rate against the description.
fn describe(info: &Info, camera: &str, video: &VideoFile, notes: &mut Notes) {
    let file = video.name().to_string();
    let (found, wanted) = (video.size(), info.feature(camera).map(size_of));
    if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
        notes.extend([Fault::WrongSize {
            file: file.clone(),
            camera: camera.to_string(),
            found: format!("{}×{}", found.0, found.1),
            expected: format!("{}×{}, width × height, as `{}` says", wanted.0, wanted.1, crate::info::INFO),
        }]);
    }
    let rate = video.rate();
    let off = (rate - info.fps).abs();
    if info.fps > 0.0 && (off.is_nan() || off > RATE_TOLERANCE * info.fps) {
        notes.extend([Fault::WrongRate { file, found: rate, expected: info.fps }]);
    }
}

/// The pictures that frames need, in order, each once.
fn wanted(fps: f64, video: &VideoFile, stretches: &[Stretch], notes: &mut Notes) -> Vec<usize> {
    if fps <= 0.0 {
        return Vec::new();
    }
    let file = || video.name().to_string();
    let times = video.times();
    let mut needed = vec![false; times.len()];
    let mut before: Option<f64> = None;
    for &Stretch { episode, frames, from, to, sure } in stretches {
        if let Some(before) = before.filter(|before| from < before - TOLERANCE) {
            notes.add("shared", Fault::SharedPictures { file: file(), episode, from, before });
        }
        let expected = frames as f64 / fps;
        let off = (to - from - expected).abs();
        let wrong = off.is_nan() || off > SPAN_TOLERANCE / fps;
        // Where both agree up to a frame, the pictures of an episode are those of its frames.
        before = Some(if sure && !wrong { from + expected } else { to });
        if !sure {
            needed.iter_mut().zip(times).for_each(|(needed, time)| *needed |= (from..to).contains(time));
            continue;
        }
        if wrong {
            notes.add("span", Fault::WrongSpan { file: file(), episode, from, to, expected, count: 1 });
        }
        if !from.is_finite() || frames == 0 {
            continue;
        }
        let time_of = |frame: usize| from + frame as f64 / fps;
        // Hostile starts and lengths are not walked: before the first picture and after the last is nothing to find.
        let early = ((times[0] - TOLERANCE - from) * fps).ceil().max(0.0) as usize;
        let early = early.min(frames);
        if early > 0 {
            let (wanted, nearest) = (from, times[0]);
            notes.add("time", Fault::OffTime { file: file(), episode, wanted, nearest, count: early });
        }
        for time in
            (early..frames).take(times.len() + 1).map(time_of).take_while(|time| *time < video.end() - TOLERANCE)
        {
            let picture = video.nearest(time);
            if (times[picture] - time).abs() > TOLERANCE + f64::EPSILON * time.abs() {
                let (wanted, nearest) = (time, times[picture]);
                notes.add("time", Fault::OffTime { file: file(), episode, wanted, nearest, count: 1 });
            }
            needed[picture] = true;
        }
        let (wanted, end) = (time_of(frames - 1), video.end());
        if wanted >= end - TOLERANCE {
            notes.add("end", Fault::EndsEarly { file: file(), episode, wanted, end, count: 1 });
        }
    }
    (0..needed.len()).filter(|picture| needed[*picture]).collect()
}

/// Decodes the pictures, in parallel from keyframe to keyframe; notes the first that is bad.
fn decode(video: &VideoFile, wanted: &[usize], meter: &Meter<'_>, notes: &mut Notes) {
    let mut pieces: Vec<&[usize]> = Vec::new();
    let mut start = 0;
    for at in 1..=wanted.len() {
        let ends = at == wanted.len() || video.start_of(wanted[at]) != video.start_of(wanted[at - 1]);
        if ends && (at - start >= PIECE || at == wanted.len()) {
            pieces.push(&wanted[start..at]);
            start = at;
        }
    }
    let decoded: Vec<Option<Fault>> = pieces
        .par_iter()
        .map_init(Decoder::new, |decoder, piece| {
            let done = decoder.decode_planes(video, piece, &mut |_, _| Ok(()));
            meter.add(piece.len());
            done.err().and_then(|error| error.into_faults().into_iter().next())
        })
        .collect();
    for fault in decoded.into_iter().flatten() {
        notes.add("decoding", fault);
    }
}

/// Width and height of a camera's pictures. Shapes are `[height, width, channels]`, unless the names of their sides say
/// that channels come first.
pub(super) fn size_of(feature: &Feature) -> (usize, usize) {
    let names = feature.names.as_ref().and_then(Value::as_array);
    let first = names.and_then(|names| names.first()).and_then(Value::as_str);
    match (&feature.shape[..], first) {
        ([_, height, width], Some("channel" | "channels")) => (*width, *height),
        ([height, width, _], _) => (*width, *height),
        _ => (0, 0),
    }
}
