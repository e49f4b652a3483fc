//! Permissions of a dataset that is replaced.
//!
//! Whoever is root may write anywhere, so the system does not stop a program from replacing what somebody has
//! write-protected. Write permissions are therefore checked here, and the modes of what is replaced are kept.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::path::Path;

use super::beside::unwritable;
use crate::fault::{Error, Fault};
use crate::info::INFO;

/// Checks that nobody has write-protected a dataset, a file or a folder in it, or the folder that it is in. Hidden entries
/// and links are not looked at: the former move as they are, and the latter stay in the backup.
///
/// # Errors
/// If something is write-protected, or cannot be looked at.
pub fn check_writable(directory: &Path) -> Result<(), Error> {
    let shown = directory.display().to_string();
    let fault = |error: io::Error| unwritable(&shown, &error);
    let refuse =
        |file: &Path, reason: String| Err(Fault::Unwritable { file: file.display().to_string(), reason }.into());
    let place = fs::canonicalize(directory).map_err(fault)?;
    if let Some(parent) = place.parent()
        && fs::metadata(parent).map_err(fault)?.permissions().readonly()
    {
        return refuse(parent, "the folder is write-protected, so nothing in it is replaced".to_string());
    }
    if fs::metadata(&place).map_err(fault)?.permissions().readonly() {
        return refuse(directory, "it is write-protected".to_string());
    }
    let mut folders = vec![place.clone()];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(fault)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries.iter().filter(|entry| !is_hidden(entry)) {
            let (path, found) = (entry.path(), entry.metadata().map_err(fault)?);
            if !found.is_symlink() && found.permissions().readonly() {
                let inside = path.strip_prefix(&place).unwrap_or(&path).display();
                return refuse(directory, format!("`{inside}` in it is write-protected"));
            }
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// Gives the files and folders of a new dataset the modes and, where that is allowed, the owners of those that they
/// replace; new ones get those of `info.json` and of the dataset's folder.
pub(super) fn keep(old: &Path, new: &Path) -> io::Result<()> {
    let (folder, file) = (fs::metadata(old)?, fs::metadata(old.join(INFO))?);
    alike(old, new, &folder, &file)
}

/// Lets the owner of a file write to it, so that a copy of a write-protected file can be changed.
pub(super) fn make_writable(file: &Path) -> io::Result<()> {
    let found = fs::metadata(file)?.permissions();
    if found.readonly() { fs::set_permissions(file, writable(found)) } else { Ok(()) }
}

fn is_hidden(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

fn alike(old: &Path, new: &Path, folder: &Metadata, file: &Metadata) -> io::Result<()> {
    let is_folder = fs::symlink_metadata(new)?.is_dir();
    let replaced = fs::metadata(old).ok().filter(|found| found.is_dir() == is_folder);
    let model = replaced.as_ref().unwrap_or(if is_folder { folder } else { file });
    own(new, model);
    fs::set_permissions(new, model.permissions())?;
    if is_folder {
        for entry in fs::read_dir(new)? {
            let entry = entry?;
            alike(&old.join(entry.file_name()), &entry.path(), folder, file)?;
        }
    }
    Ok(())
}

/// Gives a file the owner of another one. Only root may do so; for others the owner is who writes.
#[cfg(unix)]
fn own(path: &Path, model: &Metadata) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let _ = chown(path, Some(model.uid()), Some(model.gid()));
}

#[cfg(not(unix))]
fn own(_: &Path, _: &Metadata) {}

#[cfg(unix)]
fn writable(found: Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    Permissions::from_mode(found.mode() | 0o200)
}

#[cfg(not(unix))]
fn writable(mut found: Permissions) -> Permissions {
    found.set_readonly(false);
    found
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_write_protected_file_or_folder_is_found_also_by_root() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let mode = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        fs::create_dir_all(place("set/meta")).unwrap();
        fs::create_dir_all(place("set/.git/objects")).unwrap();
        for file in ["set/meta/info.json", "set/.git/objects/pack", "blob"] {
            fs::write(place(file), "content").unwrap();
        }
        symlink(place("blob"), place("set/link")).unwrap();
        // Version control protects its objects, and caches protect what links lead to.
        for protected in ["set/.git/objects/pack", "blob"] {
            mode(&place(protected), 0o444);
        }
        check_writable(&place("set")).unwrap();
        for (protected, allowed, said) in [
            ("set/meta/info.json", 0o644, "`meta/info.json` in it is write-protected"),
            ("set/meta", 0o755, "`meta` in it is write-protected"),
            ("set", 0o755, "it is write-protected"),
        ] {
            mode(&place(protected), allowed & 0o555);
            let error = check_writable(&place("set")).unwrap_err().to_string();
            mode(&place(protected), allowed);
            assert!(error.ends_with(said), "{error}");
        }
        mode(folder.path(), 0o555);
        let error = check_writable(&place("set")).unwrap_err().to_string();
        mode(folder.path(), 0o755);
        assert!(error.contains("the folder is write-protected"), "{error}");
    }
}
