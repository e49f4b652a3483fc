//! Reading whole files within a limit, and writing them whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use dataset::whole_file::WholeFile;
use serde::Serialize;

use crate::call;
use crate::failure::{Failure, Problem};

/// The longest program read from a file or from stdin, in bytes.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;

/// The text of an argument: itself, the content of `@FILE`, or stdin for `-`.
pub(crate) fn argument(written: &str) -> Result<String, Failure> {
    let text = match written.strip_prefix('@') {
        Some(path) => read_text(Path::new(path), MAX_PROGRAM_BYTES)?,
        None if written == "-" => read_text(Path::new("-"), MAX_PROGRAM_BYTES)?,
        None => return Ok(written.to_string()),
    };
    // Editors end files with a line break, which is no part of what was meant.
    Ok(text.trim_end().to_string())
}

/// The text of a file of at most `limit` bytes; `-` is stdin.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Failure> {
    let bytes = match path == Path::new("-") {
        true => read_within(io::stdin().lock(), limit),
        false => File::open(path).and_then(|file| read_within(file, limit)),
    };
    let bytes = bytes.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    String::from_utf8(bytes).map_err(|error| {
        Problem::new(format!("{} is not a text file", shown(path)))
            .fact("found", format!("a byte that is not UTF-8 at {}", error.utf8_error().valid_up_to()))
            .hint("save it as UTF-8")
            .into()
    })
}

/// The bytes of a file of at most `limit`; none if there is no such file.
pub(crate) fn read_if_there(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    match File::open(path).and_then(|file| read_within(file, limit)) {
        Ok(bytes) if bytes.len() as u64 > limit => Err(too_large(path, limit)),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Prints to stdout.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    if call::take_output(bytes) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// A value as indented JSON with a final line break.
pub(crate) fn json_bytes(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| Problem::new(format!("cannot write JSON: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A file that will be written; made before long work, so that a wrong path is known at once.
#[derive(Debug)]
pub(crate) struct Destination {
    written: PathBuf,
    /// Where the path leads to after links, and whether that is something else than a file, such as a terminal.
    resolved: PathBuf,
    special: bool,
}

impl Destination {
    /// Checks that a file can be made at the path. `example` is what such a file could be called.
    pub(crate) fn new(path: &Path, example: &str) -> Result<Destination, Failure> {
        let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let special = match fs::metadata(&resolved) {
            Ok(found) if found.is_dir() => {
                return Err(Problem::new(format!("{} is a directory", shown(path)))
                    .hint(format!("name a file in it, such as `{}`", path.join(example).display()))
                    .into());
            }
            Ok(found) => !found.is_file(),
            Err(_) => false,
        };
        let parent = parent_of(&resolved);
        match fs::metadata(parent) {
            Ok(found) if found.is_dir() => Ok(Destination { written: path.to_path_buf(), resolved, special }),
            _ => Err(Problem::new(format!("there is no directory {}", shown(parent)))
                .fact("file", path.display())
                .hint(format!("run `mkdir -p {}` first", parent.display()))
                .into()),
        }
    }

    /// Writes the file beside its place and renames it, so that nobody ever sees a part of it.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let done = match self.special {
            true => fs::write(&self.resolved, bytes),
            false => replace(&self.resolved, bytes),
        };
        done.map_err(|error| {
            Problem::new(format!("cannot write {}: {}", shown(&self.written), reason(&error)))
                .hint("choose a directory that you may write to and that has room")
                .into()
        })
    }
}

/// A path as it stands in a message.
pub(crate) fn shown(path: &Path) -> String {
    match path == Path::new("-") {
        true => "stdin".to_string(),
        false => format!("`{}`", path.display()),
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::create_shared(path)?;
    file.write_all(bytes)?;
    file.finish()
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// At most one byte more than the limit.
fn read_within(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn too_large(path: &Path, limit: u64) -> Failure {
    Problem::new(format!("{} is too large", shown(path)))
        .fact("found", format!("more than {limit} bytes"))
        .fact("expected", format!("at most {limit} bytes"))
        .hint("split it into several files")
        .into()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let problem = Problem::new(format!("cannot read {}: {}", shown(path), reason(error)));
    match error.kind() {
        io::ErrorKind::NotFound => problem.hint("check the path, and the directory that you are in").into(),
        io::ErrorKind::IsADirectory => problem.hint("name a file in that directory").into(),
        _ => problem.into(),
    }
}

/// The reason in the style of our messages, without the system's number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_string(),
        _ => dataset::files::reason(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        for content in ["first", "second, longer"] {
            Destination::new(&path, "out.json").unwrap().write(content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_over_the_limit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.txt");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let Err(Failure::Plain(problem)) = read_text(&path, 4) else {
            panic!("five bytes are more than four");
        };
        assert!(problem.to_string().contains("at most 4 bytes"));
    }
}
