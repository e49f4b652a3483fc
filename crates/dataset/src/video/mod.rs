//! Pictures of a camera in an mp4 file: which there are, and those that are wanted.
//!
//! A [`VideoFile`] is the table of a file and is shared; a [`Decoder`] belongs to a thread. Decoding starts at the last
//! keyframe before a wanted picture and stops at the last wanted picture before the next keyframe, so pictures that nobody
//! wants are decoded only where a wanted one is built on them. The lerobot package writes a keyframe every second picture.

mod av1;
mod color;
mod h264;
mod mp4;
mod run;
mod sps;

use std::fmt;

pub use color::{Chroma, Matrix, Planes, to_rgb};

use crate::fault::{Error, Fault};
use crate::files::Blob;
use crate::frame::Frame;
use av1::Av1;
use h264::{H264, Parameters, Stopped};
use mp4::Movie;
use run::{Run, SampleData};

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

    /// Where decoding starts for a picture: pictures with the same answer are best decoded together.
    pub fn start_of(&self, picture: usize) -> usize {
        let sample = self.movie.shown.get(picture).map_or(0, |&sample| sample as usize);
        run::keyframe_before(&self.movie.samples, sample).unwrap_or(0)
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
    h264: Option<H264>,
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
        let runs = run::plan(video, wanted)?;
        match (video.codec(), wanted.first()) {
            (_, None) => Ok(()),
            (Codec::Av1, Some(&first)) => self.decode_av1(video, &runs, first, wanted, sink),
            (Codec::H264, Some(&first)) => self.decode_h264(video, &runs, first, wanted, sink),
        }
    }

    fn decode_av1(
        &mut self,
        video: &VideoFile,
        runs: &[Run],
        first: usize,
        wanted: &[usize],
        sink: &mut PlaneSink<'_>,
    ) -> Result<(), Error> {
        let (width, height) = video.size();
        // A decoder that met an error is not used again, so it is taken out and put back.
        let mut av1 = match self.av1.take().filter(|av1| av1.limit() == width * height) {
            Some(av1) => av1,
            None => Av1::open(width * height).map_err(|reason| video.bad(first, reason))?,
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

    fn decode_h264(
        &mut self,
        video: &VideoFile,
        runs: &[Run],
        first: usize,
        wanted: &[usize],
        sink: &mut PlaneSink<'_>,
    ) -> Result<(), Error> {
        let bad = |picture| {
            move |stopped| match stopped {
                Stopped::Bad(reason) => video.bad(picture, reason),
                Stopped::Sink(error) => error,
            }
        };
        let parameters =
            Parameters::read(&video.movie.config, video.size()).map_err(|reason| video.bad(first, reason))?;
        let mut data = SampleData::new(video, runs);
        // Groups that follow each other go in as one stream: only its end needs a flush.
        for stretch in runs.chunk_by(|run, next| run.samples.end == next.samples.start) {
            let mut h264 = match self.h264.take() {
                Some(h264) => h264,
                None => H264::open().map_err(|reason| video.bad(first, reason))?,
            };
            // The samples in the order in which their pictures come out.
            let mut order = stretch.iter().flat_map(|run| in_order(video, run));
            let mut left = stretch.iter().flat_map(|run| &wanted[run.wanted.clone()]).copied().peekable();
            let mut take = |planes: &Planes<'_>| {
                let sample = order.next().ok_or_else(|| video.bad(first, "there are more pictures than samples"))?;
                let Some(picture) = left.next_if(|&picture| video.movie.shown[picture] as usize == sample) else {
                    return Ok(());
                };
                check_size(video, picture, planes)?;
                sink(picture, planes)
            };
            let mut about = first;
            for run in stretch {
                about = wanted[run.wanted.start];
                for sample in run.samples.clone() {
                    let starts = sample == run.samples.start;
                    h264.decode(&parameters, data.read(sample)?, starts, &mut take).map_err(bad(about))?;
                }
            }
            let reusable = h264.flush(&mut take).map_err(bad(about))?;
            // The count is all that says which picture is which.
            if order.next().is_some() {
                return Err(video.bad(about, "a picture of its group is missing"));
            }
            self.h264 = reusable.then_some(h264);
        }
        Ok(())
    }
}

/// The samples of a run in the order of presentation.
fn in_order(video: &VideoFile, run: &Run) -> Vec<usize> {
    let mut samples: Vec<usize> = run.samples.clone().collect();
    samples.sort_by_key(|&sample| video.movie.samples[sample].time);
    samples
}

fn check_size(video: &VideoFile, picture: usize, planes: &Planes<'_>) -> Result<(), Error> {
    let (width, height) = video.size();
    if (planes.width, planes.height) == (width, height) {
        return Ok(());
    }
    Err(video.bad(picture, format!("it is {}×{}, the file says {width}×{height}", planes.width, planes.height)))
}

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod hostile;
