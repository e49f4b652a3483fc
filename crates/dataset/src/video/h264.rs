//! H.264 pictures, decoded by openh264, which is compiled from its sources with this crate.
//!
//! An mp4 file has the parameter sets in its head and units behind their lengths; the decoder wants one stream of units
//! behind start codes, parameter sets first. Pictures come out in the order of presentation, but late: how late depends on
//! the stream, so a run of pictures ends with a flush, and pictures are told apart by counting.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder, DecoderConfig, Flush};
use openh264::formats::YUVSource;

use crate::video::color::{Chroma, Planes};
use crate::video::sps::{self, Sequence};

const SEQUENCE_UNIT: u8 = 7;
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// The parameter sets of a file.
pub(crate) struct Parameters {
    /// How many bytes the length of a unit has.
    length_bytes: usize,
    /// Behind start codes.
    units: Vec<u8>,
    sequence: Sequence,
    size: (usize, usize),
}

impl Parameters {
    /// Reads the content of the `avcC` box of a file with pictures of this size.
    pub(crate) fn read(config: &[u8], size: (usize, usize)) -> Result<Parameters, String> {
        let (length_bytes, sets) = sets(config).ok_or("its `avcC` box is cut off")?;
        let mut units = Vec::new();
        let mut sequence = None;
        for set in sets {
            append(&mut units, set, size, &mut sequence)?;
        }
        let sequence = sequence.ok_or("its `avcC` box has no parameter set")?;
        Ok(Parameters { length_bytes, units, sequence, size })
    }

    /// Writes a sample as units behind start codes. The first of a run has the parameter sets before it.
    fn convert(&self, sample: &[u8], first: bool, stream: &mut Vec<u8>) -> Result<Option<Sequence>, String> {
        stream.clear();
        if first {
            stream.extend_from_slice(&self.units);
        }
        let (mut rest, mut sequence) = (sample, None);
        while !rest.is_empty() {
            let unit = rest.split_at_checked(self.length_bytes).and_then(|(length, rest)| {
                let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
                rest.split_at_checked(length)
            });
            let (unit, after) = unit.ok_or("its H.264 data are cut off")?;
            append(stream, unit, self.size, &mut sequence)?;
            rest = after;
        }
        Ok(sequence)
    }
}

/// The bytes of a length, and the parameter sets of an `avcC` box.
fn sets(config: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    let (head, mut rest) = config.split_at_checked(5)?;
    let mut sets = Vec::new();
    for mask in [31, 255] {
        let (&count, after) = rest.split_first()?;
        rest = after;
        for _ in 0..count & mask {
            let (length, after) = rest.split_first_chunk()?;
            let (set, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            sets.push(set);
            rest = after;
        }
    }
    Some((usize::from(head[4] & 3) + 1, sets))
}

fn append(
    stream: &mut Vec<u8>,
    unit: &[u8],
    size: (usize, usize),
    sequence: &mut Option<Sequence>,
) -> Result<(), String> {
    if unit.first().is_some_and(|head| head & 31 == SEQUENCE_UNIT) {
        let read = sps::read(unit)?;
        if (read.width, read.height) != size {
            let (width, height) = size;
            return Err(format!("it is {}×{}, the file says {width}×{height}", read.width, read.height));
        }
        *sequence = Some(read);
    }
    stream.extend_from_slice(&START_CODE);
    stream.extend_from_slice(unit);
    Ok(())
}

/// A decoder with what it remembers of the pictures before.
pub(crate) struct H264 {
    decoder: Decoder,
    stream: Vec<u8>,
    sequence: Option<Sequence>,
}

/// What takes the pictures.
type Sink<'a> = dyn FnMut(&Planes<'_>) -> Result<(), crate::Error> + 'a;

/// Why a sample could not be decoded: its data, or whoever took its picture.
pub(crate) enum Stopped {
    Bad(String),
    Sink(crate::Error),
}

impl From<String> for Stopped {
    fn from(reason: String) -> Stopped {
        Stopped::Bad(reason)
    }
}

impl H264 {
    pub(crate) fn open() -> Result<H264, String> {
        let config = DecoderConfig::new().flush_after_decode(Flush::NoFlush);
        let decoder = Decoder::with_api_config(OpenH264API::from_source(), config)
            .map_err(|error| format!("the decoder does not start ({error})"))?;
        Ok(H264 { decoder, stream: Vec::new(), sequence: None })
    }

    /// Decodes one sample; the sink gets the picture that is ready now, if any.
    pub(crate) fn decode(
        &mut self,
        parameters: &Parameters,
        sample: &[u8],
        first: bool,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let sequence = parameters.convert(sample, first, &mut self.stream)?;
        if first {
            self.sequence = Some(parameters.sequence);
        }
        self.sequence = sequence.or(self.sequence);
        let sequence = self.sequence.unwrap_or(parameters.sequence);
        match self.decoder.decode(&self.stream) {
            Ok(Some(picture)) => sink(&planes(&picture, sequence)?).map_err(Stopped::Sink),
            Ok(None) => Ok(()),
            Err(error) => Err(Stopped::Bad(damaged(&error))),
        }
    }

    /// Gives the pictures that are left. Says whether the decoder can be used again: openh264 does not take back the
    /// memory of pictures that it gave late, and runs out of it.
    pub(crate) fn flush(&mut self, sink: &mut Sink<'_>) -> Result<bool, Stopped> {
        let Some(sequence) = self.sequence else { return Ok(true) };
        let late = self.decoder.flush_remaining().map_err(|error| damaged(&error))?;
        for picture in &late {
            sink(&planes(picture, sequence)?).map_err(Stopped::Sink)?;
        }
        Ok(late.is_empty())
    }
}

fn damaged(error: &openh264::Error) -> String {
    format!("its H.264 data are damaged ({error})")
}

fn planes<'a>(picture: &'a DecodedYUV<'_>, sequence: Sequence) -> Result<Planes<'a>, String> {
    let (width, height) = picture.dimensions();
    let (luma, chroma, _) = picture.strides();
    let planes = Planes {
        width,
        height,
        chroma: Chroma::Quarter,
        planes: [picture.y(), picture.u(), picture.v()],
        strides: [luma, chroma],
        matrix: sequence.matrix,
        full_range: sequence.full_range,
    };
    if planes.whole() { Ok(planes) } else { Err("its planes are incomplete".to_string()) }
}
