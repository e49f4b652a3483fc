//! Files that appear whole or not at all: written beside their place, synced and renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The ending of files that are being written.
pub const PARTIAL: &str = ".partial";

/// A file that is being written beside its place. [`finish`](WholeFile::finish) puts it there; a file that is dropped before
/// that is removed. What a killed process leaves has the ending [`PARTIAL`].
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<File>,
    is_finished: bool,
    beside: PathBuf,
    place: PathBuf,
}

impl WholeFile {
    /// Begins a file of a directory in which one process writes at a time: what a killed process left of the same file is
    /// replaced.
    pub fn create(place: &Path) -> io::Result<WholeFile> {
        let mut beside = place.as_os_str().to_owned();
        beside.push(PARTIAL);
        WholeFile::at(place, PathBuf::from(beside))
    }

    /// Begins a file that other processes may write at the same time; the last to finish wins. Until then it is hidden.
    pub fn create_shared(place: &Path) -> io::Result<WholeFile> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let beside = place.with_file_name(format!(".{name}.{}{PARTIAL}", std::process::id()));
        WholeFile::at(place, beside)
    }

    fn at(place: &Path, beside: PathBuf) -> io::Result<WholeFile> {
        let file = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        Ok(WholeFile { file, is_finished: false, beside, place: place.to_owned() })
    }

    /// Puts the file into its place, once it is on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        self.is_finished = true;
        // The new name is on the disk only once its folder is. Windows cannot open folders, and does not need it.
        match self.place.parent() {
            Some(folder) if cfg!(unix) && folder != Path::new("") => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("numbers.json");
        let names = || -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        for create in [WholeFile::create, WholeFile::create_shared] {
            fs::write(&place, "before").unwrap();
            let mut file = create(&place).unwrap();
            file.write_all(b"half").unwrap();
            assert!(names().len() == 2 && names().iter().any(|name| name.ends_with(PARTIAL)), "{:?}", names());
            assert_eq!(fs::read(&place).unwrap(), b"before");
            drop(file);
            assert_eq!((names(), fs::read(&place).unwrap()), (vec!["numbers.json".to_owned()], b"before".to_vec()));
            let mut file = create(&place).unwrap();
            file.write_all(b"after").unwrap();
            file.finish().unwrap();
            assert_eq!((names(), fs::read(&place).unwrap()), (vec!["numbers.json".to_owned()], b"after".to_vec()));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("numbers.json");
        fs::write(folder.path().join("numbers.json.partial"), "a long half of another file").unwrap();
        let mut file = WholeFile::create(&place).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
