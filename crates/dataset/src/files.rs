//! Where the files of a dataset are: in a directory, or in memory.
//!
//! Everything above this module reads through [`Root`] and [`Blob`], so that a dataset in the program itself and one on disk
//! are read by the same code. Paths are relative to the dataset, with `/` between their parts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};

use crate::fault::{Error, Fault};

/// Where a dataset is.
#[derive(Clone, Debug)]
pub enum Root {
    /// A directory on disk.
    Directory(PathBuf),
    /// Files in memory, such as those of a dataset that is part of the program.
    Memory {
        /// How a user addresses it.
        name: String,
        /// Content by path.
        files: Arc<BTreeMap<String, Bytes>>,
    },
}

impl Root {
    /// The dataset's place as a user would write it.
    pub fn shown(&self) -> String {
        match self {
            Root::Directory(path) => path.display().to_string(),
            Root::Memory { name, .. } => name.clone(),
        }
    }

    /// The directory, if there is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Root::Directory(path) => Some(path),
            Root::Memory { .. } => None,
        }
    }

    /// Whether there is such a file.
    pub fn has(&self, file: &str) -> bool {
        match self {
            Root::Directory(path) => path.join(file).is_file(),
            Root::Memory { files, .. } => files.contains_key(file),
        }
    }

    /// Opens a file.
    pub fn open(&self, file: &str) -> Result<Blob, Error> {
        if !stays_inside(file) {
            return Err(Fault::EscapingPath { file: file.to_string(), template: file.to_string() }.into());
        }
        match self {
            Root::Directory(path) => {
                let opened = File::open(path.join(file)).map_err(|error| unreadable(file, &error))?;
                let metadata = opened.metadata().map_err(|error| unreadable(file, &error))?;
                if !metadata.is_file() {
                    return Err(
                        Fault::Unreadable { file: file.to_string(), reason: "it is no file".to_string() }.into()
                    );
                }
                Ok(Blob::File { file: Arc::new(opened), length: metadata.len() })
            }
            Root::Memory { files, .. } => match files.get(file) {
                Some(content) => Ok(Blob::Memory(content.clone())),
                None => Err(Fault::MissingFile { file: file.to_string() }.into()),
            },
        }
    }

    /// The whole content of a small file.
    pub fn read(&self, file: &str, limit: u64) -> Result<Bytes, Error> {
        let blob = self.open(file)?;
        if blob.length() > limit {
            return Err(Fault::TooLarge { file: file.to_string(), bytes: blob.length(), limit }.into());
        }
        blob.read_at(0, blob.length() as usize).map_err(|error| unreadable(file, &error).into())
    }

    /// All files whose path starts with a folder, in order of path.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self {
            Root::Directory(path) => walk(&path.join(folder), folder, MAX_FOLDERS_DEEP, &mut found),
            Root::Memory { files, .. } => {
                let inside = |name: &String| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
                found.extend(files.keys().filter(|name| inside(name)).cloned());
            }
        }
        found.sort();
        found
    }
}

/// Datasets nest their files no deeper.
const MAX_FOLDERS_DEEP: usize = 8;

fn walk(folder: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let own = entry.file_name().to_string_lossy().into_owned();
        // Hidden files are other programs' notes, such as `._file-000.parquet`.
        if own.starts_with('.') {
            continue;
        }
        let inner = format!("{name}/{own}");
        if path.is_dir() && depth > 0 {
            walk(&path, &inner, depth - 1, found);
        } else if path.is_file() {
            found.push(inner);
        }
    }
}

/// Whether a relative path stays below where it starts.
pub(crate) fn stays_inside(file: &str) -> bool {
    Path::new(file).components().all(|part| matches!(part, Component::Normal(_)))
}

/// A fault for a file that the system would not give us.
pub(crate) fn unreadable(file: &str, error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => Fault::MissingFile { file: file.to_string() },
        _ => Fault::Unreadable { file: file.to_string(), reason: reason(error) },
    }
}

/// Why the system would not read or write a file, in the style of our messages: without the number of the error, which says
/// nothing to most people.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".to_string(),
        io::ErrorKind::PermissionDenied => "you have no permission".to_string(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_string(),
        io::ErrorKind::StorageFull => "the disk is full".to_string(),
        io::ErrorKind::QuotaExceeded => "your disk quota is used up".to_string(),
        io::ErrorKind::IsADirectory => "it is a directory".to_string(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a directory".to_string(),
        io::ErrorKind::AlreadyExists => "it exists already".to_string(),
        io::ErrorKind::UnexpectedEof => "it ends too early".to_string(),
        io::ErrorKind::InvalidFilename => "the name is not allowed or too long".to_string(),
        _ => {
            let text = error.to_string();
            match text.split_once(" (os error") {
                Some((words, _)) => words.to_lowercase(),
                None => text,
            }
        }
    }
}

/// An opened file that any thread can read from at any place.
#[derive(Clone, Debug)]
pub enum Blob {
    /// On disk.
    File {
        /// The open file.
        file: Arc<File>,
        /// Its length when it was opened, in bytes.
        length: u64,
    },
    /// In memory.
    Memory(Bytes),
}

impl Blob {
    /// The length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Blob::File { length, .. } => *length,
            Blob::Memory(content) => content.len() as u64,
        }
    }

    /// The bytes at a place; an error if there are fewer. Allocates no more than the file has.
    pub fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.length()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            Blob::File { file, .. } => {
                let mut content = vec![0; length];
                read_exact_at(file, &mut content, offset)?;
                Ok(content.into())
            }
            Blob::Memory(content) => Ok(content.slice(offset as usize..offset as usize + length)),
        }
    }

    /// A reader from a place to the end.
    pub fn reader(&self, offset: u64) -> BlobReader {
        BlobReader { blob: self.clone(), offset }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

/// Reads a [`Blob`] from front to back. Small reads are its user's to buffer.
#[derive(Clone, Debug)]
pub struct BlobReader {
    blob: Blob,
    offset: u64,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.blob.length().saturating_sub(self.offset);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match &self.blob {
            Blob::File { file, .. } => read_exact_at(file, &mut buffer[..count], self.offset)?,
            Blob::Memory(content) => {
                buffer[..count].copy_from_slice(&content[self.offset as usize..self.offset as usize + count]);
            }
        }
        self.offset += count as u64;
        Ok(count)
    }
}

impl Length for Blob {
    fn len(&self) -> u64 {
        self.length()
    }
}

impl ChunkReader for Blob {
    type T = io::BufReader<BlobReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(io::BufReader::new(self.reader(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.read_at(start, length).map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &[u8]); 2] = [("meta/info.json", b"{}"), ("metadata", b"0123456789")];

    #[test]
    fn a_directory_and_files_in_memory_read_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("meta")).unwrap();
        for (name, content) in FILES {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let files = FILES.map(|(name, content)| (name.to_string(), Bytes::from_static(content)));
        let memory = Root::Memory { name: "test".to_string(), files: Arc::new(files.into()) };
        for root in [Root::Directory(folder.path().to_path_buf()), memory] {
            assert_eq!(root.list("meta"), ["meta/info.json"]);
            assert_eq!(&root.read("metadata", 10).unwrap()[..], b"0123456789");
            assert!(matches!(root.read("metadata", 9).unwrap_err().faults(), [Fault::TooLarge { bytes: 10, .. }]));
            assert!(matches!(root.open("meta/none").unwrap_err().faults(), [Fault::MissingFile { .. }]));
            assert!(matches!(root.open("../secret").unwrap_err().faults(), [Fault::EscapingPath { .. }]));
            assert!(matches!(root.open("/etc/passwd").unwrap_err().faults(), [Fault::EscapingPath { .. }]));
            let blob = root.open("metadata").unwrap();
            assert_eq!(&blob.read_at(4, 3).unwrap()[..], b"456");
            assert!(blob.read_at(8, 3).is_err() && blob.read_at(u64::MAX, 3).is_err());
            let mut rest = String::new();
            blob.reader(7).read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "789");
        }
    }
}
