//! The parent process: starts the run as a child, and explains a death that the child could not.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{self, Command, ExitStatus};
use std::sync::Arc;

use crate::explained;
use crate::run::{Failure, JOURNAL_ENTRY, input_of};
use crate::targets::Target;

/// Runs the same command line in a child process; whether all went well.
pub(crate) fn supervise(targets: &[Arc<Target>], seed: u64) -> io::Result<bool> {
    let journal = env::temp_dir().join(format!("fuzz-{}.journal", process::id()));
    fs::write(&journal, [])?;
    let status = child(&journal);
    let entries = fs::read(&journal).unwrap_or_default();
    let outcome = status.and_then(|status| match status.code() {
        Some(0) => Ok(true),
        Some(1 | 2) => Ok(false),
        _ => explain(targets, seed, status, &entries, &journal).map(|()| false),
    });
    fs::remove_file(&journal)?;
    outcome
}

fn child(journal: &Path) -> io::Result<ExitStatus> {
    Command::new(env::current_exe()?).args(env::args_os().skip(1)).arg("--journal").arg(journal).status()
}

/// Tries the last input of every worker again, each alone, and reports those that kill the process.
fn explain(targets: &[Arc<Target>], seed: u64, status: ExitStatus, entries: &[u8], journal: &Path) -> io::Result<()> {
    let mut explanations = 0;
    println!("the run died: {status}; trying the last inputs again, one by one");
    for entry in entries.chunks_exact(JOURNAL_ENTRY) {
        let (number, index) = entry.split_at(JOURNAL_ENTRY / 2);
        let (number, index) = (little_endian(number), little_endian(index));
        // Numbers are counted from one, so that an entry never written is not mistaken for the first target.
        let Some(target) = number.checked_sub(1).and_then(|number| targets.get(number as usize)) else {
            continue;
        };
        let again = Command::new(env::current_exe()?)
            .args(["--target", target.name, "--seed", &seed.to_string(), "--only", &index.to_string()])
            .arg("--journal")
            .arg(journal)
            .output()?;
        if again.status.code().is_none() {
            let last_line = String::from_utf8_lossy(&again.stderr).lines().last().unwrap_or_default().to_string();
            let message = format!("{} ({last_line})", again.status);
            let input = input_of(target, seed, index);
            println!("{}", explained(target, seed, &Failure { index, message, input }));
            explanations += 1;
        }
    }
    if explanations == 0 {
        println!("none of them does it again, so what ended the run came from outside");
    }
    Ok(())
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
