//! `meta/episodes/**.parquet`: which rows and which stretches of video belong to which episode.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::Info;
use crate::table::Table;

/// Where they are in a dataset.
pub(crate) const EPISODES: &str = "meta/episodes";

/// One demonstration.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Its rows in the whole dataset.
    pub frames: Range<usize>,
    /// Its tasks in words; usually one.
    pub tasks: Vec<String>,
    /// The data file that holds it, in [`EpisodeTable::files`].
    pub file: u32,
    /// For each camera that is a video, in the order of the dataset's cameras: where it is.
    pub videos: Vec<VideoSpan>,
}

/// A stretch of a video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoSpan {
    /// Which chunk of files.
    pub chunk: u32,
    /// Which file of the chunk.
    pub file: u32,
    /// When the episode starts in it, in seconds.
    pub from: f64,
    /// When it ends, in seconds.
    pub to: f64,
}

/// All episodes and the data files that they are in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EpisodeTable {
    /// In order of `episode_index`.
    pub(crate) episodes: Vec<Episode>,
    /// The `episode_index` of each: its place, unless a fault was reported.
    pub(crate) numbers: Vec<usize>,
    /// Paths of the data files, in order of their rows.
    pub(crate) files: Vec<DataFile>,
}

/// A data file and the rows of the dataset that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    pub(crate) path: String,
    pub(crate) rows: Range<usize>,
}

/// The raw rows of the files, column by column.
#[derive(Default)]
struct Raw {
    episode: Vec<i64>,
    tasks: Vec<Vec<String>>,
    length: Vec<i64>,
    from: Vec<i64>,
    to: Vec<i64>,
    chunk: Vec<i64>,
    file: Vec<i64>,
    videos: Vec<Vec<VideoSpan>>,
    /// The file that each row came from, for messages.
    origin: Vec<u32>,
}

/// Reads all files. What is wrong but lets the others be read goes to `faults`.
pub(crate) fn read(
    root: &Root,
    info: &Info,
    cameras: &[String],
    faults: &mut Vec<Fault>,
) -> Result<EpisodeTable, Error> {
    let files: Vec<String> = root.list(EPISODES).into_iter().filter(|file| file.ends_with(".parquet")).collect();
    if files.is_empty() {
        return Err(Fault::MissingFile { file: format!("{EPISODES}/chunk-000/file-000.parquet") }.into());
    }
    let mut raw = Raw::default();
    for (origin, file) in files.iter().enumerate() {
        // A file that cannot be read does not hide what is wrong with the others.
        match Table::open(root, file).and_then(|table| Raw::of(&table, cameras, origin as u32, faults)) {
            Ok(part) => raw.extend(part),
            Err(error) => faults.extend(error.into_faults()),
        }
    }
    Ok(raw.table(info, &files, faults))
}

impl Raw {
    /// The rows of one file, or all that keeps it from being read.
    fn of(table: &Table, cameras: &[String], origin: u32, faults: &mut Vec<Fault>) -> Result<Raw, Error> {
        let mut broken = Vec::new();
        let mut integers = |column: &str| kept(table.integers(column), &mut broken);
        let [episode, length, from, to, chunk, file] = [
            "episode_index",
            "length",
            "dataset_from_index",
            "dataset_to_index",
            "data/chunk_index",
            "data/file_index",
        ]
        .map(&mut integers);
        // Tasks in words are a convenience; the rows have the index.
        let tasks = match table.column("tasks") {
            Some(_) => kept(table.text_lists("tasks"), &mut broken),
            None => vec![Vec::new(); table.rows()],
        };
        let mut videos = vec![Vec::with_capacity(cameras.len()); table.rows()];
        for camera in cameras {
            let column = |name: &str| format!("videos/{camera}/{name}");
            let chunks = kept(table.integers(&column("chunk_index")), &mut broken);
            let numbers = kept(table.integers(&column("file_index")), &mut broken);
            let starts = kept(table.floats(&column("from_timestamp")), &mut broken);
            let ends = kept(table.floats(&column("to_timestamp")), &mut broken);
            let spans = chunks.into_iter().zip(numbers).zip(starts).zip(ends);
            for (spans_of_row, (((chunk, file), from), to)) in videos.iter_mut().zip(spans) {
                for (name, value) in [("chunk_index", chunk), ("file_index", file)] {
                    if u32::try_from(value).is_err() {
                        add(faults, wrong_number(table.file(), &column(name), value));
                    }
                }
                let number = |value: i64| u32::try_from(value).unwrap_or_default();
                spans_of_row.push(VideoSpan { chunk: number(chunk), file: number(file), from, to });
            }
        }
        let origin = vec![origin; table.rows()];
        Error::of(broken).map_or(Ok(Raw { episode, tasks, length, from, to, chunk, file, videos, origin }), Err)
    }

    fn extend(&mut self, part: Raw) {
        self.episode.extend(part.episode);
        self.tasks.extend(part.tasks);
        self.length.extend(part.length);
        self.from.extend(part.from);
        self.to.extend(part.to);
        self.chunk.extend(part.chunk);
        self.file.extend(part.file);
        self.videos.extend(part.videos);
        self.origin.extend(part.origin);
    }

    /// Puts the rows in order and checks that they follow each other. Each is held against the one before it as that
    /// one is written, so that what is wrong with one episode is not told of all that follow.
    fn table(mut self, info: &Info, origins: &[String], faults: &mut Vec<Fault>) -> EpisodeTable {
        let mut order: Vec<usize> = (0..self.episode.len()).collect();
        order.sort_by_key(|&row| self.episode[row]);
        let mut table = EpisodeTable::default();
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        // The next episode, the rows that it may start at, and the rows of the dataset that are taken.
        let (mut expected, mut starts, mut taken) = (0_usize, [0; 2], 0_u64);
        for (at, &row) in order.iter().enumerate() {
            let file = origins[self.origin[row] as usize].clone();
            let episode = match usize::try_from(self.episode[row]) {
                Ok(episode) if episode < expected => {
                    add(faults, Fault::RepeatedEpisode { file, episode, count: 1 });
                    continue;
                }
                Ok(episode) => episode,
                Err(_) => {
                    add(faults, wrong_number(&file, "episode_index", self.episode[row]));
                    continue;
                }
            };
            let (from, to, length) = (self.from[row], self.to[row], self.length[row]);
            let (Ok(from), Ok(to), Ok(length)) = (u64::try_from(from), u64::try_from(to), u64::try_from(length)) else {
                add(faults, wrong_number(&file, "length", length.min(from).min(to)));
                continue;
            };
            if episode > expected {
                let count = episode - expected;
                faults.push(Fault::MissingEpisode { file: file.clone(), episode: expected, count });
                (starts, taken) = ([from; 2], from);
            }
            expected = episode.saturating_add(1);
            // Where one episode alone was out of place, the next is back in step.
            if !starts.contains(&from) && from != taken {
                add(
                    faults,
                    Fault::EpisodeGap { file: file.clone(), episode, found: from, expected: starts[0], count: 1 },
                );
            }
            starts = [to, to];
            let mut frames = to.saturating_sub(from);
            if to.checked_sub(from) != Some(length) {
                add(faults, Fault::WrongLength { file: file.clone(), episode, length, from, to, count: 1 });
                // The episode that follows knows which of the two is right.
                starts = [to, from.saturating_add(length)];
                let next = order.get(at + 1).and_then(|next| u64::try_from(self.from[*next]).ok());
                if to < from || (next == Some(starts[1]) && next != Some(to)) {
                    frames = length;
                }
            }
            if length == 0 {
                faults.push(Fault::EmptyEpisode { file: file.clone(), episode });
            }
            let (Ok(chunk), Ok(number)) = (u64::try_from(self.chunk[row]), u64::try_from(self.file[row])) else {
                add(faults, wrong_number(&file, "data/file_index", self.chunk[row].min(self.file[row])));
                continue;
            };
            let frames = taken as usize..taken.saturating_add(frames) as usize;
            taken = frames.end as u64;
            let path = info.data_file(chunk, number);
            let before = table.episodes.last().map(|episode| episode.file);
            let again = known.contains_key(&path);
            let place = *known.entry(path.clone()).or_insert(table.files.len() as u32);
            match table.files.get_mut(place as usize) {
                Some(file) => file.rows.end = frames.end,
                None => table.files.push(DataFile { path: path.clone(), rows: frames.clone() }),
            }
            if again && before != Some(place) {
                add(faults, Fault::ScatteredFile { file: path, episode, count: 1 });
            }
            table.numbers.push(episode);
            table.episodes.push(Episode {
                frames,
                tasks: std::mem::take(&mut self.tasks[row]),
                file: place,
                videos: std::mem::take(&mut self.videos[row]),
            });
        }
        table
    }
}

/// Adds a fault; where its file has one of its kind already, that one counts it.
fn add(faults: &mut Vec<Fault>, mut fault: Fault) {
    let column = |fault: &Fault| match fault {
        Fault::WrongType { column, .. } => Some(column.clone()),
        _ => None,
    };
    let same = |known: &&mut Fault| {
        known.kind() == fault.kind() && known.file() == fault.file() && column(known) == column(&fault)
    };
    match faults.iter_mut().find(same) {
        Some(known) => {
            if let (Some(known), Some(more)) = (known.count_mut(), fault.count_mut()) {
                *known = known.saturating_add(*more);
            }
        }
        None => faults.push(fault),
    }
}

/// The values, or none and the faults.
fn kept<T>(read: Result<Vec<T>, Error>, broken: &mut Vec<Fault>) -> Vec<T> {
    read.unwrap_or_else(|error| {
        broken.extend(error.into_faults());
        Vec::new()
    })
}

fn wrong_number(file: &str, column: &str, found: i64) -> Fault {
    Fault::WrongType {
        file: file.to_string(),
        column: column.to_string(),
        found: found.to_string(),
        expected: "a number of 0 or more".to_string(),
    }
}
