//! Pictures of a camera in an mp4 file: which there are, and those that are wanted.
//!
//! A [`VideoFile`] is the table of a file and is shared; a [`Decoder`] belongs to a thread. Decoding starts at the last
//! keyframe before a wanted picture and stops at the last wanted picture before the next keyframe, so pictures that nobody
//! wants are decoded only where a wanted one is built on them. The lerobot package writes a keyframe every second picture.

mod av1;
mod color;
mod mp4;

use std::fmt;
use std::ops::Range;

pub use color::{Chroma, Matrix, Planes, to_rgb};

use crate::fault::{Error, Fault};
use crate::files::{Blob, unreadable};
use crate::frame::Frame;
use av1::Av1;
use mp4::{Movie, Sample};

/// How a video is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// AV1, what the lerobot package writes.
    Av1,
    /// H.264.
    H264,
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codec::Av1 => "AV1",
            Codec::H264 => "H.264",
        })
    }
}

/// A video: where its pictures are and when they are shown. Its data are read when they are decoded.
pub struct VideoFile {
    blob: Blob,
    name: String,
    movie: Movie,
}

impl VideoFile {
    /// Reads the tables of an mp4 file; the name is its path in the dataset, for messages.
    pub fn open(blob: Blob, name: &str) -> Result<VideoFile, Error> {
        let movie = mp4::read(&blob, name)?;
        Ok(VideoFile { blob, name: name.to_string(), movie })
    }

    /// The path in the dataset.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the pictures are encoded.
    pub fn codec(&self) -> Codec {
        self.movie.codec
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.movie.width, self.movie.height)
    }

    /// When each picture is shown, in seconds, ascending.
    pub fn times(&self) -> &[f64] {
        &self.movie.times
    }

    /// How many pictures there are, at least one.
    pub fn frames(&self) -> usize {
        self.movie.times.len()
    }

    /// The picture whose time is nearest, the earlier one of two.
    pub fn nearest(&self, time: f64) -> usize {
        let times = self.times();
        let after = times.partition_point(|&at| at < time);
        match after {
            0 => 0,
            after if after == times.len() || time - times[after - 1] <= times[after] - time => after - 1,
            after => after,
        }
    }

    /// When the last picture ends, in seconds.
    pub fn end(&self) -> f64 {
        self.movie.end
    }

    /// Pictures per second on average; not finite if all are shown at once.
    pub fn rate(&self) -> f64 {
        self.frames() as f64 / (self.end() - self.times()[0])
    }

    fn bad(&self, picture: usize, reason: impl Into<String>) -> Error {
        Fault::BadPicture { file: self.name.clone(), picture: picture.to_string(), reason: reason.into() }.into()
    }
}

impl fmt::Debug for VideoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size();
        write!(f, "VideoFile({}, {}, {width}×{height}, {} pictures)", self.name, self.codec(), self.frames())
    }
}

/// What a thread needs to decode, kept from one video to the next.
#[derive(Default)]
pub struct Decoder {
    av1: Option<Av1>,
}

/// What takes the planes of a wanted picture.
pub type PlaneSink<'a> = dyn FnMut(usize, &Planes<'_>) -> Result<(), Error> + 'a;

impl Decoder {
    /// A decoder that has not started yet.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Decodes the wanted pictures, given in ascending order of presentation without repeats, each once, and gives them
    /// to the sink in that order.
    pub fn decode(
        &mut self,
        video: &VideoFile,
        wanted: &[usize],
        sink: &mut dyn FnMut(usize, Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.decode_planes(video, wanted, &mut |index, planes| sink(index, to_rgb(planes)))
    }

    /// As [`decode`](Decoder::decode), with the planes as the codec gives them.
    pub fn decode_planes(
        &mut self,
        video: &VideoFile,
        wanted: &[usize],
        sink: &mut PlaneSink<'_>,
    ) -> Result<(), Error> {
        let runs = plan(video, wanted)?;
        match video.codec() {
            Codec::Av1 => self.decode_av1(video, &runs, wanted, sink),
            Codec::H264 => Err(Fault::UnknownCodec { file: video.name.clone(), codec: "H.264".to_string() }.into()),
        }
    }

    fn decode_av1(
        &mut self,
        video: &VideoFile,
        runs: &[Run],
        wanted: &[usize],
        sink: &mut PlaneSink<'_>,
    ) -> Result<(), Error> {
        let (width, height) = video.size();
        // A decoder that met an error is not used again, so it is taken out and put back.
        let mut av1 = match self.av1.take().filter(|av1| av1.limit() == width * height) {
            Some(av1) => av1,
            None => Av1::open(width * height).map_err(|reason| video.bad(wanted[0], reason))?,
        };
        let mut data = SampleData::new(video, runs);
        let mut before = None;
        for run in runs {
            if before != Some(run.samples.start) {
                av1.flush();
            }
            let mut left = wanted[run.wanted.clone()].iter().copied().peekable();
            for sample in run.samples.clone() {
                let Some(&next) = left.peek() else { break };
                let bytes = data.read(sample)?;
                let config = if before != Some(sample) && !av1::has_sequence_header(bytes) {
                    &video.movie.config
                } else {
                    &[][..]
                };
                let picture = av1.decode([config, bytes]).map_err(|reason| video.bad(next, reason))?;
                before = Some(sample + 1);
                if video.movie.shown[next] as usize == sample {
                    let planes = picture.planes().map_err(|reason| video.bad(next, reason))?;
                    check_size(video, next, &planes)?;
                    sink(next, &planes)?;
                    left.next();
                }
            }
        }
        self.av1 = Some(av1);
        Ok(())
    }
}

fn check_size(video: &VideoFile, picture: usize, planes: &Planes<'_>) -> Result<(), Error> {
    let (width, height) = video.size();
    if (planes.width, planes.height) == (width, height) {
        return Ok(());
    }
    Err(video.bad(picture, format!("it is {}×{}, the file says {width}×{height}", planes.width, planes.height)))
}

/// A keyframe, what is decoded after it, and which of the wanted pictures come out.
struct Run {
    samples: Range<usize>,
    /// Places in the list of wanted pictures.
    wanted: Range<usize>,
}

/// From which keyframe to which sample to decode.
fn plan(video: &VideoFile, wanted: &[usize]) -> Result<Vec<Run>, Error> {
    let Movie { samples, shown, .. } = &video.movie;
    let mut runs: Vec<Run> = Vec::new();
    for (place, &picture) in wanted.iter().enumerate() {
        let sample = match shown.get(picture) {
            Some(&sample) if place == 0 || wanted[place - 1] < picture => sample as usize,
            Some(_) => return Err(video.bad(picture, "it was asked for out of order")),
            None => return Err(video.bad(picture, format!("there are only {} pictures", shown.len()))),
        };
        let start =
            keyframe_before(samples, sample).ok_or_else(|| video.bad(picture, "there is no keyframe before it"))?;
        match runs.last_mut() {
            Some(run) if run.samples.start == start => {
                run.samples.end = run.samples.end.max(sample + 1);
                run.wanted.end = place + 1;
            }
            _ => runs.push(Run { samples: start..sample + 1, wanted: place..place + 1 }),
        }
    }
    Ok(runs)
}

/// The last keyframe from which a sample can be decoded: not after it in time either.
fn keyframe_before(samples: &[Sample], sample: usize) -> Option<usize> {
    let time = samples[sample].time;
    samples[..=sample].iter().rposition(|key| key.key && key.time <= time)
}

/// Reads samples that follow each other in the file together.
struct SampleData<'a> {
    video: &'a VideoFile,
    /// The samples that will be read, in order.
    ahead: Vec<Range<usize>>,
    start: u64,
    content: bytes::Bytes,
}

/// A read takes in samples ahead up to this many bytes.
const READ_AHEAD: u64 = 1 << 20;

impl<'a> SampleData<'a> {
    fn new(video: &'a VideoFile, runs: &[Run]) -> SampleData<'a> {
        // Runs that touch are one range; a gap of a sample or so is cheaper to read than to leave out, but simply ends it.
        let mut ahead: Vec<Range<usize>> = Vec::new();
        for run in runs {
            match ahead.last_mut() {
                Some(last) if last.end == run.samples.start => last.end = run.samples.end,
                _ => ahead.push(run.samples.clone()),
            }
        }
        ahead.reverse();
        SampleData { video, ahead, start: 0, content: bytes::Bytes::new() }
    }

    fn read(&mut self, sample: usize) -> Result<&[u8], Error> {
        let samples = &self.video.movie.samples;
        let Sample { offset, size, .. } = samples[sample];
        let has = |start: u64, content: &bytes::Bytes| {
            offset >= start && offset + u64::from(size) <= start + content.len() as u64
        };
        if !has(self.start, &self.content) {
            while self.ahead.last().is_some_and(|range| range.end <= sample) {
                self.ahead.pop();
            }
            let last = self.ahead.last().map_or(sample + 1, |range| range.end);
            let mut end = offset + u64::from(size);
            for next in &samples[sample + 1..last.max(sample + 1)] {
                if next.offset != end || end + u64::from(next.size) > offset + READ_AHEAD {
                    break;
                }
                end += u64::from(next.size);
            }
            let read = self.video.blob.read_at(offset, (end - offset) as usize);
            self.content = read.map_err(|error| Error::from(unreadable(&self.video.name, &error)))?;
            self.start = offset;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.content[at..at + size as usize])
    }
}

#[cfg(test)]
mod goldens;
