//! How this program was started, so that it can start itself again: it may run in Python's process, which is another program.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// The program with its first arguments, if it is not the binary.
static LAUNCHER: OnceLock<Vec<OsString>> = OnceLock::new();

/// What was typed after the name of the program.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says how this program is started where the binary of the process is another one, such as `python -m refactor_vla`.
pub fn started_by(launcher: Vec<OsString>) {
    let _ = LAUNCHER.set(launcher);
}

/// Keeps what was typed.
pub(crate) fn keep(words: &[OsString]) {
    let _ = WORDS.set(words.to_vec());
}

/// What was typed, without the name of the program.
pub(crate) fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_default()
}

/// This program, without arguments.
pub(crate) fn again() -> io::Result<Command> {
    match LAUNCHER.get().and_then(|launcher| launcher.split_first()) {
        Some((program, first)) => {
            let mut command = Command::new(program);
            command.args(first);
            Ok(command)
        }
        None => env::current_exe().map(Command::new),
    }
}
