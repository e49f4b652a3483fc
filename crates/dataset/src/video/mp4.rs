//! Where the pictures of an mp4 file are, and when they are shown.
//!
//! The boxes are parsed by `mp4parse`, which was made for hostile files. It gets only what it needs of the `moov` box: the
//! data of the video, however large, are never read here, and tables that promise more than their box holds are refused
//! before anything is allocated for them.

use mp4parse::{CodecType, MediaContext, SampleEntry, TimeOffsetVersion, Track, TrackType, VideoCodecSpecific};

use crate::fault::{Error, Fault};
use crate::files::{Blob, unreadable};
use crate::guard::guarded;
use crate::video::Codec;

/// A file has few boxes outside `moov`; more than this is no video.
const MAX_BOXES: usize = 10_000;
/// An hour at 1000 pictures per second needs a `moov` box of a hundred megabytes; no dataset has as much.
const MAX_MOOV: u64 = 128 << 20;
/// Pictures are no wider and no higher.
pub(crate) const MAX_SIDE: usize = 8192;

/// The tables of the first video track.
pub(crate) struct Movie {
    pub(crate) codec: Codec,
    /// The content of `av1C` without its first four bytes, or of `avcC`.
    pub(crate) config: Vec<u8>,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// In the order in which they are decoded.
    pub(crate) samples: Vec<Sample>,
    /// For each picture in the order of presentation, its sample.
    pub(crate) shown: Vec<u32>,
    /// For each picture in the order of presentation, its time in seconds.
    pub(crate) times: Vec<f64>,
    /// When the last picture ends, in seconds.
    pub(crate) end: f64,
}

/// One coded picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) offset: u64,
    pub(crate) size: u32,
    /// Decoding can start here.
    pub(crate) key: bool,
    /// When it is shown, in ticks of the track; before the edit list.
    pub(crate) time: i64,
    pub(crate) duration: u32,
}

/// Reads the tables.
pub(crate) fn read(blob: &Blob, file: &str) -> Result<Movie, Error> {
    let malformed = |reason: String| Error::from(Fault::Malformed { file: file.to_string(), format: "mp4", reason });
    let moov = find_moov(blob, file)?;
    let mut kept = vec![0, 0, 0, 0, b'm', b'o', b'o', b'v'];
    let mut depth = Vec::new();
    keep(&moov, &mut kept, &mut depth).map_err(malformed)?;
    let length = u32::try_from(kept.len()).map_err(|_| malformed("its moov box is too long".to_string()))?;
    kept[..4].copy_from_slice(&length.to_be_bytes());

    let parsed = guarded(|| mp4parse::read_mp4(&mut kept.as_slice()).map_err(|error| format!("{error:?}")));
    let context = parsed.and_then(|context| context).map_err(malformed)?;
    movie(&context, blob.length(), file)
}

/// The content of the `moov` box.
fn find_moov(blob: &Blob, file: &str) -> Result<bytes::Bytes, Error> {
    let malformed = |reason: String| Error::from(Fault::Malformed { file: file.to_string(), format: "mp4", reason });
    let read = |offset, length| blob.read_at(offset, length).map_err(|error| Error::from(unreadable(file, &error)));
    let end = blob.length();
    let (mut offset, mut moov, mut typed) = (0, None, false);
    for _ in 0..MAX_BOXES {
        if offset >= end {
            break;
        }
        let head = read(offset, usize::try_from(end - offset).unwrap_or(16).min(16))?;
        let (name, start, size) =
            head_of(&head, end - offset).ok_or_else(|| malformed(format!("the box at byte {offset} is cut off")))?;
        match &name {
            b"ftyp" => typed = true,
            b"moof" => return Err(malformed("it is fragmented (it has a `moof` box)".to_string())),
            b"moov" if moov.is_none() => moov = Some((offset + start as u64, size - start as u64)),
            _ => {}
        }
        offset += size;
    }
    match moov {
        Some((_, length)) if length > MAX_MOOV => {
            Err(Fault::TooLarge { file: format!("{file} (moov)"), bytes: length, limit: MAX_MOOV }.into())
        }
        Some((offset, length)) => read(offset, length as usize),
        None if typed => Err(malformed("it has no `moov` box; was its writer stopped?".to_string())),
        None => Err(malformed("it has neither an `ftyp` nor a `moov` box".to_string())),
    }
}

/// The name of a box, the length of its head and its whole length; `None` if it does not fit into what is `left`.
fn head_of(bytes: &[u8], left: u64) -> Option<([u8; 4], usize, u64)> {
    let size = u32::from_be_bytes(*bytes.first_chunk()?);
    let name = *bytes.get(4..)?.first_chunk()?;
    let (start, size) = match size {
        0 => (8, left),
        1 => (16, u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?)),
        size => (8, u64::from(size)),
    };
    (size >= start as u64 && size <= left).then_some((name, start, size))
}

/// Copies the boxes that are of use, after a look at their tables, and renews the lengths of those that hold others.
fn keep(content: &[u8], kept: &mut Vec<u8>, path: &mut Vec<[u8; 4]>) -> Result<(), String> {
    let mut rest = content;
    while !rest.is_empty() {
        let Some((name, start, size)) = head_of(rest, rest.len() as u64) else {
            return Err(format!("a box in `{}` is cut off", shown(path)));
        };
        let (this, after) = rest.split_at(size as usize);
        rest = after;
        let inside = &this[start..];
        match &name {
            // Sound and other tracks are of no use.
            b"trak" if !is_video(inside) => {}
            b"trak" | b"mdia" | b"minf" | b"stbl" | b"edts" if path.len() < 6 => {
                let at = kept.len();
                kept.extend_from_slice(&[0; 4]);
                kept.extend_from_slice(&name);
                path.push(name);
                keep(inside, kept, path)?;
                path.pop();
                let length = u32::try_from(kept.len() - at).map_err(|_| "a box is too long".to_string())?;
                kept[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
            b"mvhd" | b"tkhd" | b"mdhd" | b"hdlr" | b"mvex" => kept.extend_from_slice(this),
            b"stts" | b"ctts" | b"stsc" | b"stco" | b"co64" | b"stss" | b"stsz" | b"stsd" | b"elst" => {
                check_table(&name, inside)?;
                if &name == b"stsd" {
                    check_entries(inside)?;
                }
                kept.extend_from_slice(this);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the handler of a track says that it has pictures.
fn is_video(track: &[u8]) -> bool {
    let handler = child(track, b"mdia").and_then(|media| child(media, b"hdlr"));
    handler.and_then(|handler| handler.get(8..12)) == Some(b"vide")
}

/// The content of the first box of a name.
fn child<'a>(content: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    let mut rest = content;
    while let Some((name, start, size)) = head_of(rest, rest.len() as u64) {
        let (this, after) = rest.split_at(size as usize);
        if name == *wanted {
            return Some(&this[start..]);
        }
        rest = after;
    }
    None
}

/// The fields of a sample entry of video before the boxes in it, in bytes.
const ENTRY_FIELDS: usize = 78;

/// Whether the boxes in the sample entries of `stsd` fit: `mp4parse` reserves what they say.
fn check_entries(content: &[u8]) -> Result<(), String> {
    let cut_off = || "a box in its `stsd` table is cut off".to_string();
    let mut rest = content.get(8..).unwrap_or_default();
    while !rest.is_empty() {
        let (_, start, size) = head_of(rest, rest.len() as u64).ok_or_else(cut_off)?;
        let (entry, after) = rest.split_at(size as usize);
        rest = after;
        let mut inside = entry.get(start + ENTRY_FIELDS..).unwrap_or_default();
        // Some writers end with a few zeros.
        while inside.len() >= 8 {
            let (_, _, size) = head_of(inside, inside.len() as u64).ok_or_else(cut_off)?;
            inside = &inside[size as usize..];
        }
    }
    Ok(())
}

fn shown(path: &[[u8; 4]]) -> String {
    let names: Vec<_> = path.iter().map(|name| String::from_utf8_lossy(name)).collect();
    if names.is_empty() { "moov".to_string() } else { format!("moov/{}", names.join("/")) }
}

/// Whether a table holds as many entries as it says.
fn check_table(name: &[u8; 4], content: &[u8]) -> Result<(), String> {
    let number = |at: usize| content.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let short = || format!("its `{}` table is shorter than it says", String::from_utf8_lossy(name));
    let version = *content.first().ok_or_else(short)?;
    let (count, start, each) = match name {
        b"stsz" => (if number(4) == Some(0) { number(8) } else { Some(0) }, 12, 4),
        b"stts" | b"ctts" | b"co64" | b"stsd" => (number(4), 8, 8),
        b"stsc" => (number(4), 8, 12),
        b"elst" => (number(4), 8, if version == 1 { 20 } else { 12 }),
        _ => (number(4), 8, 4),
    };
    let count = count.ok_or_else(short)?;
    if u64::from(count) * each + start > content.len() as u64 {
        return Err(short());
    }
    // One edit says where the track begins; an empty one before it delays the track. `mp4parse` knows no more.
    if name == b"elst" {
        let delays = if version == 1 { content.get(16..24) } else { content.get(12..16) };
        let delayed = delays.is_some_and(|time| time.iter().all(|&byte| byte == 0xff));
        if count > 1 + u32::from(delayed) {
            return Err(format!("its edit list has {count} parts, one is read"));
        }
    }
    Ok(())
}

fn movie(context: &MediaContext, length: u64, file: &str) -> Result<Movie, Error> {
    let malformed = |reason: &str| {
        Error::from(Fault::Malformed { file: file.to_string(), format: "mp4", reason: reason.to_string() })
    };
    let unknown = |codec: String| Error::from(Fault::UnknownCodec { file: file.to_string(), codec });
    let track = context.tracks.iter().find(|track| track.track_type == TrackType::Video);
    let track = track.ok_or_else(|| malformed("it has no video track"))?;
    let entry = track.stsd.as_ref().and_then(|stsd| stsd.descriptions.first());
    let entry = match entry {
        Some(SampleEntry::Video(entry)) => entry,
        Some(_) => return Err(unknown("something that is neither AV1 nor H.264".to_string())),
        None => return Err(malformed("its video track says no codec")),
    };
    let (codec, config) = match (&entry.codec_specific, entry.codec_type) {
        (VideoCodecSpecific::AV1Config(config), CodecType::AV1) => {
            if config.bit_depth != 8 {
                return Err(unknown(format!("AV1 with {} bits per sample", config.bit_depth)));
            }
            (Codec::Av1, config.raw_config.get(4..).unwrap_or_default().to_vec())
        }
        (VideoCodecSpecific::AVCConfig(config), CodecType::H264) => (Codec::H264, config.to_vec()),
        (_, CodecType::EncryptedVideo) => return Err(unknown("encrypted video".to_string())),
        (_, codec) => return Err(unknown(format!("{codec:?}"))),
    };
    let (width, height) = (usize::from(entry.width), usize::from(entry.height));
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return Err(malformed(&format!("its pictures are {width}×{height}, at most {MAX_SIDE}×{MAX_SIDE} are read")));
    }
    let samples = samples(track, length).map_err(malformed)?;
    if samples.is_empty() && context.mvex.is_some() {
        return Err(malformed("it is fragmented (it has a `mvex` box)"));
    }
    let Timeline { shown, times, end } = timeline(context, track, &samples).map_err(malformed)?;
    if codec == Codec::Av1 && shown.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(malformed("its AV1 pictures are not in the order of their times"));
    }
    Ok(Movie { codec, config, width, height, samples, shown, times, end })
}

/// Lists the samples: places from `stsc`, `stco` and `stsz`, times from `stts` and `ctts`, keyframes from `stss`.
fn samples(track: &Track, length: u64) -> Result<Vec<Sample>, &'static str> {
    let (Some(chunks), Some(places), Some(sizes), Some(steps)) = (&track.stsc, &track.stco, &track.stsz, &track.stts)
    else {
        return Err("its video track has no sample tables");
    };
    let all_keys = track.stss.is_none();
    let mut sizes_left = sizes.sample_sizes.iter();
    let mut durations = steps.samples.iter().flat_map(|run| repeated(run.sample_delta, run.sample_count));
    let shifts = track.ctts.as_ref().map(|ctts| ctts.samples.as_slice()).unwrap_or_default();
    let mut shifts = shifts.iter().flat_map(|run| repeated(shift(run.time_offset), run.sample_count));

    let mut samples = Vec::new();
    let (mut decode_time, mut bytes) = (0i64, 0u64);
    let mut entry = 0;
    for (chunk, &place) in places.offsets.iter().enumerate() {
        // The entry that holds for this chunk: the last one whose `first_chunk`, counted from 1, is not after it.
        while chunks.samples.get(entry + 1).is_some_and(|next| next.first_chunk as usize <= chunk + 1) {
            entry += 1;
        }
        let Some(count) = chunks.samples.get(entry).map(|entry| entry.samples_per_chunk) else {
            return Err("its chunks have no samples");
        };
        let mut offset = place;
        for _ in 0..count {
            let size = match (sizes.sample_size, sizes_left.next()) {
                (0, Some(&size)) => size,
                (0, None) => return Err("its chunks have more samples than sizes"),
                (size, _) => size,
            };
            bytes += u64::from(size);
            let end = offset.checked_add(u64::from(size)).filter(|&end| end <= length && bytes <= length);
            let end = end.ok_or("its pictures are past the end of the file")?;
            let duration = durations.next().ok_or("its samples have no times")?;
            let time = decode_time + shifts.next().unwrap_or(0);
            samples.push(Sample { offset, size, key: all_keys, time, duration });
            decode_time += i64::from(duration);
            offset = end;
        }
    }
    if sizes_left.next().is_some() {
        return Err("its chunks have fewer samples than sizes");
    }
    for &number in track.stss.iter().flat_map(|stss| stss.samples.iter()) {
        let key = (number as usize).checked_sub(1).and_then(|at| samples.get_mut(at));
        key.ok_or("its keyframes are past its last sample")?.key = true;
    }
    Ok(samples)
}

fn repeated<T: Copy>(value: T, count: u32) -> impl Iterator<Item = T> {
    std::iter::repeat_n(value, count as usize)
}

fn shift(offset: TimeOffsetVersion) -> i64 {
    match offset {
        // Writers put signed offsets into version 0 as well; ffmpeg reads both as signed.
        TimeOffsetVersion::Version0(offset) => i64::from(offset as i32),
        TimeOffsetVersion::Version1(offset) => i64::from(offset),
    }
}

struct Timeline {
    shown: Vec<u32>,
    times: Vec<f64>,
    end: f64,
}

/// Orders the pictures by time and applies the edit list: what is outside of it is decoded, but not shown.
fn timeline(context: &MediaContext, track: &Track, samples: &[Sample]) -> Result<Timeline, &'static str> {
    let scale = track.timescale.map(|scale| scale.0).filter(|&scale| scale > 0).ok_or("its track has no time scale")?;
    let movie_scale = context.timescale.map_or(1, |scale| scale.0.max(1));
    // From ticks of the movie to ticks of the track.
    let ticks = |time: u64| {
        let scaled = (u128::from(time) * u128::from(scale) + u128::from(movie_scale) / 2) / u128::from(movie_scale);
        i64::try_from(scaled).ok().filter(|&ticks| ticks < i64::MAX / 4)
    };
    let start = track.media_time.and_then(|time| i64::try_from(time.0).ok()).filter(|&time| time < i64::MAX / 4);
    let delay = track.empty_duration.map_or(Some(0), |time| ticks(time.0)).ok_or("its edit list makes no sense")?;
    let limit = track.edited_duration.filter(|time| time.0 > 0).and_then(|time| ticks(time.0));
    let range = match start {
        Some(start) => start..limit.map_or(i64::MAX, |limit| start.saturating_add(limit)),
        None if track.media_time.is_some() => return Err("its edit list makes no sense"),
        None => i64::MIN..i64::MAX,
    };
    let count = u32::try_from(samples.len()).map_err(|_| "it has too many samples")?;
    let mut shown: Vec<u32> =
        (0..count).filter(|&at| samples.get(at as usize).is_some_and(|sample| range.contains(&sample.time))).collect();
    shown.sort_by_key(|&at| samples[at as usize].time);
    let seconds = |ticks: i64| (ticks - start.unwrap_or(0) + delay) as f64 / scale as f64;
    let times: Vec<f64> = shown.iter().map(|&at| seconds(samples[at as usize].time)).collect();
    let last = shown.last().map(|&at| samples[at as usize]).ok_or("it has no pictures")?;
    Ok(Timeline { shown, times, end: seconds(last.time + i64::from(last.duration)) })
}
