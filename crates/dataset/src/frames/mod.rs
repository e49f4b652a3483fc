//! The pictures of a dataset, decoded when they are wanted.
//!
//! Whatever is asked for together is decoded together: requests are sorted by file and time, cut at keyframes into pieces
//! that run in parallel, and each picture is decoded once however often it was asked for. What was decoded is kept in a
//! cache of bounded size; a walk over a whole dataset goes around the cache and holds two stretches at a time, one being
//! decoded and one being used. Pictures must have the size that `info.json` says, which is what those bounds are made of.

mod cache;
mod pieces;
mod source;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use arrow_array::Array;
use lru::LruCache;
use rayon::prelude::*;

use crate::episodes::Episode;
use crate::fault::{Error, Fault};
use crate::frame::Frame;
use crate::ids::{CameraId, FrameIndex};
use crate::open::{Dataset, video_keys};
use crate::picture::decode_picture;
use crate::table::Table;
use crate::video::{Decoder, VideoFile};
use cache::Cache;
use pieces::PieceReader;
use source::{PIECE, Place, Source, cut, pictures_of};

/// A picture may be this far from its time, as a share of the time from one frame to the next. Nearer to another it cannot
/// be then; lerobot itself writes them to within a ten-thousandth of a second.
const TOLERANCE: f64 = 0.25;

/// Rows of encoded pictures that are read at a time.
const ROWS: usize = 64;

/// Files of one kind that are kept open.
const MAX_OPEN: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// How much memory pictures may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameOptions {
    /// Bytes of decoded pictures to keep for the next request.
    pub cache_bytes: usize,
    /// Bytes of decoded pictures on their way, when a whole dataset is walked over.
    pub stream_bytes: usize,
}

impl Default for FrameOptions {
    fn default() -> FrameOptions {
        FrameOptions { cache_bytes: 256 << 20, stream_bytes: 64 << 20 }
    }
}

/// One picture: which camera, which frame.
pub type FrameKey = (CameraId, FrameIndex);

/// Reads pictures of a dataset; shared by threads.
pub struct FrameReader<'d> {
    dataset: &'d Dataset,
    options: FrameOptions,
    cameras: Vec<Camera>,
    cache: Mutex<Cache>,
    videos: Mutex<LruCache<String, Arc<VideoFile>>>,
    tables: Mutex<LruCache<u32, Arc<Table>>>,
    idle: Mutex<Vec<Decoder>>,
    /// Of a joined dataset, readers of the datasets that it was made of, which have the pictures.
    pieces: Vec<PieceReader<'d>>,
}

/// Where a camera's pictures are.
enum Camera {
    /// In videos; its place among the cameras that are videos.
    Video { key: String, place: usize },
    /// In the data files.
    Image { key: String },
}

impl<'d> FrameReader<'d> {
    /// Nothing is opened yet.
    pub fn new(dataset: &'d Dataset, options: FrameOptions) -> FrameReader<'d> {
        let videos = video_keys(dataset.info(), dataset.roles());
        let camera = |key: &String| match videos.iter().position(|video| video == key) {
            Some(place) => Camera::Video { key: key.clone(), place },
            None => Camera::Image { key: key.clone() },
        };
        FrameReader {
            pieces: pieces::readers(dataset, options),
            dataset,
            options,
            cameras: dataset.roles().cameras.iter().map(camera).collect(),
            cache: Mutex::new(Cache::new(options.cache_bytes)),
            videos: Mutex::new(LruCache::new(MAX_OPEN)),
            tables: Mutex::new(LruCache::new(MAX_OPEN)),
            idle: Mutex::default(),
        }
    }

    /// Why pictures of a camera cannot be read; `None` if nothing is known to be in the way. Every file with pictures must be
    /// there, and the first picture of the dataset must decode: that takes a moment, and finds videos that were not copied or
    /// fetched before hours of work that end with pictures.
    pub fn missing(&self, camera: CameraId) -> Option<Error> {
        for piece in &self.pieces {
            if let Some(error) = piece.missing(camera) {
                return Some(error);
            }
        }
        if self.pieces.is_empty()
            && let Some(Camera::Video { key, place }) = self.cameras.get(camera.0)
        {
            let spans = self.dataset.episodes().iter().filter_map(|episode| episode.videos.get(*place));
            let mut files: Vec<String> =
                spans.map(|span| self.dataset.info().video_file(key, span.chunk.into(), span.file.into())).collect();
            files.dedup();
            if let Some(file) = files.into_iter().find(|file| !self.dataset.root().has(file)) {
                return Some(Fault::MissingFile { file }.into());
            }
        }
        self.read(&[(camera, FrameIndex(0))]).err().map(|error| {
            let faults = crate::open::recognised(self.dataset.root(), error.faults().to_vec());
            Error::of(faults).unwrap_or(error)
        })
    }

    /// The wanted pictures, in the order of the request; repeats cost nothing.
    pub fn read(&self, wanted: &[FrameKey]) -> Result<Vec<Frame>, Error> {
        let mut found: HashMap<FrameKey, Frame> = HashMap::with_capacity(wanted.len());
        let mut missing = Vec::new();
        {
            let mut cache = lock(&self.cache);
            for key in wanted {
                match cache.get(key) {
                    Some(frame) => drop(found.insert(*key, frame)),
                    None => missing.push(*key),
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let decoded = self.decode(&missing)?;
        if self.options.cache_bytes > 0 {
            let mut cache = lock(&self.cache);
            decoded.iter().for_each(|(key, frame)| cache.put(*key, frame));
        }
        found.extend(decoded);
        let frame = |key: &FrameKey| found.get(key).cloned().ok_or_else(|| self.lost(key));
        wanted.iter().map(frame).collect()
    }

    /// All pictures of a camera over a range of frames, in order, without the cache. While the sink works on some, the
    /// next are decoded.
    pub fn stream(
        &self,
        camera: CameraId,
        frames: Range<usize>,
        sink: &mut dyn FnMut(FrameIndex, Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let frames = frames.start..frames.end.min(self.dataset.frames());
        let stretch = (self.options.stream_bytes / 2 / self.frame_bytes(camera).max(1)).max(PIECE);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(0);
            scope.spawn(move || {
                let mut start = frames.start;
                while start < frames.end {
                    let decoded = self.stretch(camera, start..(start + stretch).min(frames.end), frames.end);
                    // After an error, nothing more is decoded.
                    start = decoded.as_ref().map_or(frames.end, |decoded| start + decoded.len().max(1));
                    // A sink that gave up has dropped its end.
                    if sender.send(decoded).is_err() {
                        return;
                    }
                }
            });
            for decoded in receiver {
                for ((_, index), frame) in decoded? {
                    sink(index, frame)?;
                }
            }
            Ok(())
        })
    }

    /// Decodes a stretch. One that is not the last may end early, where decoding starts anew.
    fn stretch(&self, camera: CameraId, frames: Range<usize>, end: usize) -> Result<Vec<(FrameKey, Frame)>, Error> {
        if let Some(piece) = self.piece_of(frames.start) {
            return piece.stretch(camera, frames, end);
        }
        let last = frames.end == end;
        let keys: Vec<FrameKey> = frames.map(|frame| (camera, FrameIndex(frame))).collect();
        let count = if last { keys.len() } else { self.last_start(&keys)? };
        self.decode(&keys[..count])
    }

    /// How many of the frames can be decoded without a picture that those after them need too; all of them if only the
    /// first few would be left.
    fn last_start(&self, keys: &[FrameKey]) -> Result<usize, Error> {
        let (sources, places) = self.places(keys)?;
        let anew = |at: &usize| {
            let (before, here) = (&places[at - 1], &places[*at]);
            match &sources[here.source] {
                _ if before.source != here.source => true,
                Source::Video(video) => video.start_of(before.number) != video.start_of(here.number),
                Source::Table { groups, .. } => groups.binary_search(&here.number).is_ok(),
            }
        };
        Ok((keys.len() / 2 + 1..keys.len()).rev().find(anew).unwrap_or(keys.len()))
    }

    /// The bytes of one decoded picture, which has three channels whatever the file has.
    fn frame_bytes(&self, camera: CameraId) -> usize {
        let shape = self.dataset.roles().cameras.get(camera.0).and_then(|key| self.shape(key)).unwrap_or(&[1, 1, 3]);
        let channels = shape.iter().min().copied().unwrap_or(1).max(1);
        shape.iter().product::<usize>() / channels * 3
    }

    /// The shape of a camera's pictures, with the channels last or first.
    fn shape(&self, key: &str) -> Option<&[usize]> {
        self.dataset.info().feature(key).map(|feature| feature.shape.as_slice())
    }

    /// Whether pictures are as large as `info.json` says, with the channels last or first.
    fn check_size(&self, key: &str, file: &str, (width, height): (usize, usize)) -> Result<(), Error> {
        match self.shape(key) {
            Some(&[first, second, third])
                if (height, width) != (first, second) && (height, width) != (second, third) =>
            {
                Err(Fault::WrongSize {
                    file: file.to_string(),
                    camera: key.to_string(),
                    found: format!("{width}×{height}"),
                    expected: format!("{second}×{first}"),
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Decodes pictures, given in ascending order without repeats; gives them back in that order.
    fn decode(&self, keys: &[FrameKey]) -> Result<Vec<(FrameKey, Frame)>, Error> {
        if !self.pieces.is_empty() {
            return self.decode_pieces(keys);
        }
        let (sources, mut places) = self.places(keys)?;
        // Episodes may lie in their file in any order.
        places.sort_by_key(|place| (place.source, place.number));
        let pieces = cut(&places, &sources);
        let decoded: Vec<Vec<(FrameKey, Frame)>> = pieces
            .par_iter()
            .map(|piece| self.decode_piece(&sources[piece[0].source], piece))
            .collect::<Result<_, _>>()?;
        let mut frames: Vec<(FrameKey, Frame)> = decoded.into_iter().flatten().collect();
        frames.sort_unstable_by_key(|(key, _)| *key);
        Ok(frames)
    }

    /// Opens the files with the pictures, and finds each picture in its file.
    fn places(&self, keys: &[FrameKey]) -> Result<(Vec<Source>, Vec<Place>), Error> {
        let mut sources = Vec::new();
        let mut known: HashMap<(CameraId, u32, u32), usize> = HashMap::new();
        let mut places = Vec::with_capacity(keys.len());
        for &key in keys {
            let (camera, frame) = key;
            let episode = self.episode_of(frame)?;
            let Episode { file, videos, .. } = &self.dataset.episodes()[episode];
            let wrong = || Fault::UnknownKey { key: format!("camera {}", camera.0), candidates: self.camera_keys() };
            let here = self.cameras.get(camera.0).ok_or_else(wrong)?;
            let path = match here {
                Camera::Video { place, .. } => (camera, videos[*place].chunk, videos[*place].file),
                Camera::Image { .. } => (camera, 0, *file),
            };
            let source = match known.get(&path) {
                Some(&source) => source,
                None => {
                    sources.push(self.source(here, path.1, path.2)?);
                    *known.entry(path).or_insert(sources.len() - 1)
                }
            };
            let number = match (&sources[source], here) {
                (Source::Video(video), Camera::Video { place, .. }) => {
                    let time = videos[*place].from + f64::from(self.dataset.columns().timestamps[frame.0]);
                    self.picture_at(video, time, episode)?
                }
                _ => frame.0 - self.dataset.files()[*file as usize].rows.start,
            };
            places.push(Place { key, source, number });
        }
        Ok((sources, places))
    }

    /// Opens a file that has pictures of a camera.
    fn source(&self, camera: &Camera, chunk: u32, file: u32) -> Result<Source, Error> {
        match camera {
            Camera::Video { key, .. } => {
                let file = self.dataset.info().video_file(key, chunk.into(), file.into());
                let video = self.video(&file)?;
                self.check_size(key, video.name(), video.size())?;
                Ok(Source::Video(video))
            }
            Camera::Image { key } => {
                let table = self.table(file)?;
                Ok(Source::Table { groups: table.group_starts(), table, column: key.clone() })
            }
        }
    }

    /// The number of the picture that a video shows at a time.
    fn picture_at(&self, video: &VideoFile, time: f64, episode: usize) -> Result<usize, Error> {
        let picture = video.nearest(time);
        let nearest = video.times()[picture];
        if (nearest - time).abs() * self.dataset.info().fps <= TOLERANCE {
            return Ok(picture);
        }
        let file = video.name().to_string();
        Err(match time >= video.end() {
            true => Fault::ShortVideo { file, episode, wanted: time, end: video.end() },
            false => Fault::NoPicture { file, wanted: time, nearest },
        }
        .into())
    }

    fn decode_piece(&self, source: &Source, piece: &[Place]) -> Result<Vec<(FrameKey, Frame)>, Error> {
        let mut frames = Vec::with_capacity(piece.len());
        match source {
            Source::Video(video) => {
                // Two frames may be served by one picture if the video is slower than the data.
                let mut wanted: Vec<usize> = piece.iter().map(|place| place.number).collect();
                wanted.dedup();
                let mut decoder = lock(&self.idle).pop().unwrap_or_default();
                let mut at = 0;
                decoder.decode(video, &wanted, &mut |number, frame| {
                    while piece.get(at).is_some_and(|place| place.number == number) {
                        frames.push((piece[at].key, frame.clone()));
                        at += 1;
                    }
                    Ok(())
                })?;
                lock(&self.idle).push(decoder);
            }
            Source::Table { table, column, .. } => {
                let rows = piece[0].number..piece[piece.len() - 1].number + 1;
                let mut left = piece;
                table.scan_some(&[column], rows, ROWS, |row, arrays| {
                    let pictures = pictures_of(table, column, row, &arrays[0])?;
                    let (here, after) =
                        left.split_at(left.partition_point(|place| place.number < row + pictures.len()));
                    left = after;
                    let decode = |place: &Place| {
                        let bytes = pictures.value(place.number - row);
                        let frame = decode_picture(bytes, table.file(), &place.number.to_string())?;
                        self.check_size(column, table.file(), (frame.width, frame.height))?;
                        Ok((place.key, frame))
                    };
                    frames.extend(here.par_iter().map(decode).collect::<Result<Vec<_>, Error>>()?);
                    Ok(())
                })?;
            }
        }
        Ok(frames)
    }

    fn video(&self, file: &str) -> Result<Arc<VideoFile>, Error> {
        if let Some(video) = lock(&self.videos).get(file) {
            return Ok(Arc::clone(video));
        }
        let video = Arc::new(VideoFile::open(self.dataset.root().open(file)?, file)?);
        lock(&self.videos).put(file.to_string(), Arc::clone(&video));
        Ok(video)
    }

    fn table(&self, file: u32) -> Result<Arc<Table>, Error> {
        if let Some(table) = lock(&self.tables).get(&file) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::open(self.dataset.root(), &self.dataset.files()[file as usize].path)?);
        lock(&self.tables).put(file, Arc::clone(&table));
        Ok(table)
    }

    fn episode_of(&self, frame: FrameIndex) -> Result<usize, Error> {
        let episodes = self.dataset.episodes();
        let episode = episodes.partition_point(|episode| episode.frames.end <= frame.0);
        match episode < episodes.len() {
            true => Ok(episode),
            false => Err(Fault::NoFrame { frame: frame.0, frames: self.dataset.frames() }.into()),
        }
    }

    fn camera_keys(&self) -> Vec<String> {
        self.dataset.roles().cameras.clone()
    }

    fn lost(&self, (camera, frame): &FrameKey) -> Error {
        let picture = format!("{} of camera {}", frame.0, camera.0);
        let reason = "its file does not have it".to_string();
        Fault::BadPicture { file: self.dataset.root().shown(), picture, reason }.into()
    }
}

/// What a thread that panicked left is still good: nothing is half-changed under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
