//! A directory that is written beside its place and renamed when it is whole.
//!
//! Whoever looks at the place sees no dataset or a whole one. What is not finished is removed: by the run itself where
//! it ends with an error, and by the next run for the same place where it was killed. The latter is done on Linux only,
//! which tells whether the process of a number is alive; elsewhere leftovers are stepped over.
//!
//! A directory that is there can be replaced too: the old one is renamed to a backup, `NAME.backup-1` and on, then the new
//! one takes its place. At every moment there is the old directory or the new one, and between the two renames both
//! are there, under other names. A write-protected directory is not replaced, and the new one has the modes of the old one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::modes;
use crate::fault::{Error, Fault};
use crate::files::Root;

/// A directory in the making.
#[derive(Debug)]
pub(crate) struct Beside {
    temporary: PathBuf,
    target: PathBuf,
    /// Whether it takes the place of a directory.
    replaces: bool,
    finished: bool,
}

impl Beside {
    /// Starts one. The target must not exist, or be an empty directory.
    pub(crate) fn create(target: &Path) -> Result<Beside, Error> {
        let shown = target.display().to_string();
        let refuse = |reason: &str| Fault::Unwritable { file: shown.clone(), reason: reason.to_string() };
        // `..` and `/` have no name to write beside.
        let name = target.file_name().ok_or_else(|| refuse("it names no directory"))?;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Without a slash at its end, which would follow a link.
        let target = parent.join(name);
        match fs::symlink_metadata(&target) {
            // A directory cannot be renamed over a link, wherever it leads.
            Ok(found) if found.is_symlink() => return Err(refuse("it exists and is a symbolic link").into()),
            Ok(found) if !found.is_dir() => return Err(refuse("it exists and is no directory").into()),
            Ok(_) => {
                let mut entries = fs::read_dir(&target).map_err(|error| unwritable(&shown, &error))?;
                if entries.next().is_some() {
                    return Err(refuse("it exists and is not empty").into());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&shown, &error)),
        }
        fs::create_dir_all(parent).map_err(|error| unwritable(&parent.display().to_string(), &error))?;
        Beside::begin(parent, target.clone(), false)
    }

    /// Starts one that takes the place of a directory, which becomes a backup.
    pub(crate) fn over(target: &Path) -> Result<Beside, Error> {
        let shown = target.display().to_string();
        // A link stays, and what it leads to is replaced.
        let target = fs::canonicalize(target).map_err(|error| unwritable(&shown, &error))?;
        let Some(parent) = target.parent().map(Path::to_path_buf) else {
            let reason = "there is no directory to write beside it".to_string();
            return Err(Fault::Unwritable { file: shown, reason }.into());
        };
        modes::check_writable(&target)?;
        Beside::begin(&parent, target, true)
    }

    fn begin(parent: &Path, target: PathBuf, replaces: bool) -> Result<Beside, Error> {
        let shown = target.display().to_string();
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        remove_leftovers(parent, &name);
        for attempt in 0..MAX_ATTEMPTS {
            let temporary = parent.join(format!(".{name}.partial-{}-{attempt}", std::process::id()));
            match fs::create_dir(&temporary) {
                Ok(()) => return Ok(Beside { temporary, target, replaces, finished: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(&shown, &error)),
            }
        }
        let reason = "there are too many unfinished directories beside it".to_string();
        Err(Fault::Unwritable { file: shown, reason }.into())
    }

    /// Where a file of the dataset is now. Its folder is made.
    pub(crate) fn place(&self, file: &str) -> Result<PathBuf, Error> {
        let path = self.temporary.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| unwritable(file, &error))?;
        }
        Ok(path)
    }

    /// What is written so far, to be read.
    pub(crate) fn root(&self) -> Root {
        Root::Directory(self.temporary.clone())
    }

    /// A new file.
    pub(crate) fn file(&self, file: &str) -> Result<File, Error> {
        File::create_new(self.place(file)?).map_err(|error| unwritable(file, &error))
    }

    /// Writes a whole file.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> Result<(), Error> {
        let mut opened = self.file(file)?;
        opened.write_all(content).and_then(|()| opened.sync_all()).map_err(|error| unwritable(file, &error))
    }

    /// Writes a JSON file, indented by four spaces as lerobot has them.
    pub(crate) fn write_json(&self, file: &str, value: &Value) -> Result<(), Error> {
        let mut content = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut content, formatter);
        serde::Serialize::serialize(value, &mut serializer)
            .map_err(|error| Fault::Unwritable { file: file.to_string(), reason: error.to_string() })?;
        self.write(file, &content)
    }

    /// Puts it in its place.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.put().map(|_| ())
    }

    /// Puts it in its place, and says where the directory is now whose place it took.
    pub(crate) fn put(mut self) -> Result<Option<PathBuf>, Error> {
        let shown = self.target.display().to_string();
        let fault = |error: io::Error| unwritable(&shown, &error);
        if self.replaces {
            modes::keep(&self.target, &self.temporary).map_err(fault)?;
        }
        sync_folders(&self.temporary).map_err(fault)?;
        let backup = match self.replaces {
            true => Some(self.swap().map_err(fault)?),
            false => {
                if self.target.is_dir() {
                    // An empty one; where something was put into it meanwhile, this fails.
                    fs::remove_dir(&self.target).map_err(fault)?;
                }
                fs::rename(&self.temporary, &self.target).map_err(fault)?;
                None
            }
        };
        self.finished = true;
        if let Some(parent) = self.target.parent() {
            // The rename has happened; a file system that cannot sync folders takes nothing away from it.
            let _ = sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        }
        Ok(backup)
    }

    /// Renames the old directory to a backup and the new one to its place. Hidden files and folders of the old one, such as
    /// those of version control, go over to the new one.
    fn swap(&self) -> io::Result<PathBuf> {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        let backups = (1..=MAX_ATTEMPTS).map(|number| self.target.with_file_name(format!("{name}.backup-{number}")));
        let Some(backup) = backups.into_iter().find(|backup| fs::symlink_metadata(backup).is_err()) else {
            return Err(io::Error::other("there are too many backups beside it"));
        };
        fs::rename(&self.target, &backup)?;
        if let Err(error) = fs::rename(&self.temporary, &self.target) {
            // The old one goes back to where it was.
            fs::rename(&backup, &self.target)?;
            return Err(error);
        }
        for entry in fs::read_dir(&backup)?.flatten() {
            let place = self.target.join(entry.file_name());
            if entry.file_name().to_string_lossy().starts_with('.') && fs::symlink_metadata(&place).is_err() {
                fs::rename(entry.path(), place)?;
            }
        }
        Ok(backup)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody is left to hear that it failed.
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Unfinished directories that are stepped over.
const MAX_ATTEMPTS: u32 = 1000;

/// Removes what killed runs left beside a place. What cannot be removed is stepped over.
fn remove_leftovers(parent: &Path, name: &str) {
    let prefix = format!(".{name}.partial-");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let numbers = found.to_str().and_then(|found| found.strip_prefix(&prefix)?.split_once('-'));
        if let Some((process, attempt)) = numbers
            && let (Ok(process), Ok(_)) = (process.parse::<u32>(), attempt.parse::<u32>())
            && is_dead(process)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether there is surely no process of this number any more.
fn is_dead(process: u32) -> bool {
    cfg!(target_os = "linux") && Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

pub(crate) fn unwritable(file: &str, error: &io::Error) -> Error {
    Fault::Unwritable { file: file.to_string(), reason: crate::files::reason(error) }.into()
}

fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_as_target_is_refused_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir(place("empty")).unwrap();
        symlink(place("empty"), place("link")).unwrap();
        symlink(place("nowhere"), place("dangling")).unwrap();
        for target in ["link", "link/", "dangling", "dangling/"] {
            let error = Beside::create(&place(target)).unwrap_err().to_string();
            assert!(error.ends_with("it exists and is a symbolic link"), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        Beside::create(&place("empty/")).unwrap().finish().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_killed_run_left_is_removed_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        // A process that has ended, and whose number is not given away again at once.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let alive = std::process::id();
        let kept =
            [format!(".set.partial-{alive}-7"), format!(".other.partial-{dead}-0"), ".set.partial-mine-0".into()];
        let left = [format!(".set.partial-{dead}-0"), format!(".set.partial-{dead}-1")];
        for name in kept.iter().chain(&left) {
            fs::create_dir_all(folder.path().join(name).join("meta")).unwrap();
        }
        Beside::create(&folder.path().join("set")).unwrap().finish().unwrap();
        assert!(kept.iter().all(|name| folder.path().join(name).exists()));
        assert!(!left.iter().any(|name| folder.path().join(name).exists()));
    }
}
