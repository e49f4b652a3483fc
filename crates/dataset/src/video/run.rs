//! What to decode for the pictures that are wanted, and reading it.

use std::ops::Range;

use super::VideoFile;
use super::mp4::{Movie, Sample};
use crate::fault::Error;
use crate::files::unreadable;

/// A keyframe, what is decoded after it, and which of the wanted pictures come out.
pub(super) struct Run {
    pub(super) samples: Range<usize>,
    /// Places in the list of wanted pictures.
    pub(super) wanted: Range<usize>,
}

/// From which keyframe to which sample to decode.
pub(super) fn plan(video: &VideoFile, wanted: &[usize]) -> Result<Vec<Run>, Error> {
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
pub(super) fn keyframe_before(samples: &[Sample], sample: usize) -> Option<usize> {
    let time = samples[sample].time;
    samples[..=sample].iter().rposition(|key| key.key && key.time <= time)
}

/// Reads samples that follow each other in the file together.
pub(super) struct SampleData<'a> {
    video: &'a VideoFile,
    /// The samples that will be read, in order.
    ahead: Vec<Range<usize>>,
    start: u64,
    content: bytes::Bytes,
}

/// A read takes in samples ahead up to this many bytes.
const READ_AHEAD: u64 = 1 << 20;

impl<'a> SampleData<'a> {
    pub(super) fn new(video: &'a VideoFile, runs: &[Run]) -> SampleData<'a> {
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

    pub(super) fn read(&mut self, sample: usize) -> Result<&[u8], Error> {
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
