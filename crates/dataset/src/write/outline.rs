//! What a copy has to know of a dataset: its description, its episodes, and which of its files are what.
//!
//! Only metadata are read, and no column needs a role: a dataset without states can be annotated too.

use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use crate::episodes::{self, DataFile, Episode};
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::{Info, VIDEO_PATH};
use crate::open::{read_info, recognised};

/// A dataset without its numbers.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Its own description.
    pub info: Info,
    /// The episodes, at least one, in order. Where their videos are is not read.
    pub episodes: Vec<Episode>,
    files: Vec<DataFile>,
}

impl Outline {
    /// Reads `meta/info.json` and the episodes' metadata.
    pub fn read(root: &Root) -> Result<Outline, Error> {
        Outline::read_known(root).map_err(|error| {
            let faults = recognised(root, error.faults().to_vec());
            Error::of(faults).unwrap_or(error)
        })
    }

    fn read_known(root: &Root) -> Result<Outline, Error> {
        let info = read_info(root)?;
        let mut faults = Vec::new();
        let table = episodes::read(root, &info, &[], &mut faults)?;
        match Error::of(faults) {
            Some(error) => Err(error),
            None if table.episodes.is_empty() => Err(Fault::NoFrames.into()),
            None => Ok(Outline { info, episodes: table.episodes, files: table.files }),
        }
    }

    /// The number of frames of all episodes.
    pub fn frames(&self) -> usize {
        self.episodes.last().map_or(0, |episode| episode.frames.end)
    }

    /// The data files, each once, with the frames of the dataset that the episodes have in it.
    pub(super) fn data_files(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.files.iter().map(|file| (file.path.as_str(), file.rows.clone()))
    }

    /// Whether a file has a name as `video_path` gives them.
    pub(super) fn may_be_video(&self, file: &str) -> bool {
        fits_template(file, self.info.video_path.as_deref().unwrap_or(VIDEO_PATH))
    }
}

/// Whether a directory is a dataset's own or inside it, whichever links lead there. It need not exist.
pub fn is_within(source: &Root, directory: &Path) -> bool {
    let Some(Ok(source)) = source.directory().map(fs::canonicalize) else { return false };
    resolved(directory).is_some_and(|directory| directory.starts_with(source))
}

/// A path without links, as far as it exists; the rest of it as it is written.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    // One part after the other: `..` may lead out of what does not exist yet, and then through a link.
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
        found = fs::canonicalize(&found).unwrap_or(found);
    }
    Some(found)
}

/// Whether a path has the parts between a template's `{fields}`, in their order.
fn fits_template(path: &str, template: &str) -> bool {
    let mut literals = template.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or(part, |(_, literal)| literal),
    });
    let Some(mut rest) = literals.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut last = "";
    for literal in literals {
        let Some((_, after)) = rest.split_once(literal) else { return false };
        (rest, last) = (after, literal);
    }
    path.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn videos_are_known_by_the_template_not_by_a_folder() {
        let fits = |path| fits_template(path, VIDEO_PATH);
        assert!(fits("videos/front/chunk-000/file-000.mp4"));
        assert!(fits("videos/front.chunk-/chunk-000/file-012.mp4"));
        assert!(!fits("videos/front/chunk-000/file-000.json"));
        assert!(!fits("data/chunk-000/file-000.mp4"));
        let own = "{video_key}/c{chunk_index:03d}_f{file_index}.mkv";
        assert!(fits_template("front/c000_f7.mkv", own));
        assert!(!fits_template("videos/front/chunk-000/file-000.mp4", own));
    }
}
