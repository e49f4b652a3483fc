//! `meta/episodes/**.parquet`: which rows and which stretches of video belong to which episode.

use std::ops::Range;

use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::Info;
use crate::table::Table;

/// Where they are in a dataset.
pub const EPISODES: &str = "meta/episodes";

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
pub(crate) fn read(root: &Root, info: &Info, cameras: &[String], faults: &mut Vec<Fault>) -> Result<EpisodeTable, Error> {
    let files: Vec<String> = root.list(EPISODES).into_iter().filter(|file| file.ends_with(".parquet")).collect();
    if files.is_empty() {
        return Err(Fault::MissingFile { file: format!("{EPISODES}/chunk-000/file-000.parquet") }.into());
    }
    let mut raw = Raw::default();
    for (origin, file) in files.iter().enumerate() {
        raw.append(&Table::open(root, file)?, cameras, origin as u32, faults)?;
    }
    Ok(raw.table(info, &files, faults))
}

impl Raw {
    fn append(&mut self, table: &Table, cameras: &[String], origin: u32, faults: &mut Vec<Fault>) -> Result<(), Error> {
        self.episode.extend(table.integers("episode_index")?);
        self.length.extend(table.integers("length")?);
        self.from.extend(table.integers("dataset_from_index")?);
        self.to.extend(table.integers("dataset_to_index")?);
        self.chunk.extend(table.integers("data/chunk_index")?);
        self.file.extend(table.integers("data/file_index")?);
        // Tasks in words are a convenience; the rows have the index.
        match table.column("tasks") {
            Some(_) => self.tasks.extend(table.text_lists("tasks")?),
            None => self.tasks.resize(self.episode.len(), Vec::new()),
        }
        self.origin.resize(self.episode.len(), origin);
        let first = self.videos.len();
        self.videos.resize(self.episode.len(), Vec::with_capacity(cameras.len()));
        for camera in cameras {
            let column = |name: &str| format!("videos/{camera}/{name}");
            let chunks = table.integers(&column("chunk_index"))?;
            let numbers = table.integers(&column("file_index"))?;
            let starts = table.floats(&column("from_timestamp"))?;
            let ends = table.floats(&column("to_timestamp"))?;
            for (row, (((chunk, file), from), to)) in chunks.into_iter().zip(numbers).zip(starts).zip(ends).enumerate() {
                for (name, value) in [("chunk_index", chunk), ("file_index", file)] {
                    if u32::try_from(value).is_err() {
                        faults.push(wrong_number(table.file(), &column(name), value));
                    }
                }
                let number = |value: i64| u32::try_from(value).unwrap_or_default();
                self.videos[first + row].push(VideoSpan { chunk: number(chunk), file: number(file), from, to });
            }
        }
        Ok(())
    }

    /// Puts the rows in order and checks that they follow each other.
    fn table(mut self, info: &Info, origins: &[String], faults: &mut Vec<Fault>) -> EpisodeTable {
        let mut order: Vec<usize> = (0..self.episode.len()).collect();
        order.sort_by_key(|&row| self.episode[row]);
        let mut table = EpisodeTable::default();
        let mut expected_from = 0;
        for row in order {
            let file = origins[self.origin[row] as usize].clone();
            let expected = table.episodes.len();
            let episode = match usize::try_from(self.episode[row]) {
                Ok(episode) if episode == expected => episode,
                Ok(episode) if episode < expected => {
                    faults.push(Fault::RepeatedEpisode { file, episode });
                    continue;
                }
                Ok(_) => {
                    faults.push(Fault::MissingEpisode { file, episode: expected });
                    // Everything after it would be reported too.
                    break;
                }
                Err(_) => {
                    faults.push(wrong_number(&file, "episode_index", self.episode[row]));
                    continue;
                }
            };
            let (from, to, length) = (self.from[row], self.to[row], self.length[row]);
            let (Ok(from), Ok(to), Ok(length)) = (u64::try_from(from), u64::try_from(to), u64::try_from(length)) else {
                faults.push(wrong_number(&file, "length", length.min(from).min(to)));
                break;
            };
            if from != expected_from {
                faults.push(Fault::EpisodeGap { file: file.clone(), episode, found: from, expected: expected_from });
            }
            if to.checked_sub(from) != Some(length) {
                faults.push(Fault::WrongLength { file: file.clone(), episode, length, from, to });
            }
            if length == 0 {
                faults.push(Fault::EmptyEpisode { file: file.clone(), episode });
            }
            let (Ok(chunk), Ok(number)) = (u64::try_from(self.chunk[row]), u64::try_from(self.file[row])) else {
                faults.push(wrong_number(&file, "data/file_index", self.chunk[row].min(self.file[row])));
                break;
            };
            // With a wrong length, the rows between this start and the next are what the episode can be.
            let frames = expected_from as usize..expected_from.saturating_add(length) as usize;
            expected_from = expected_from.saturating_add(length);
            let path = info.data_file(chunk, number);
            match table.files.last_mut() {
                Some(last) if last.path == path => last.rows.end = frames.end,
                _ => table.files.push(DataFile { path, rows: frames.clone() }),
            }
            table.episodes.push(Episode {
                frames,
                tasks: std::mem::take(&mut self.tasks[row]),
                file: table.files.len() as u32 - 1,
                videos: std::mem::take(&mut self.videos[row]),
            });
        }
        table
    }
}

fn wrong_number(file: &str, column: &str, found: i64) -> Fault {
    Fault::WrongType {
        file: file.to_string(),
        column: column.to_string(),
        found: found.to_string(),
        expected: "a number of 0 or more".to_string(),
    }
}
