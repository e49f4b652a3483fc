//! `completions`: a script that teaches a shell our commands.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::failure::Failure;
use crate::files::print;

/// Prints the script.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "refactor-vla", &mut script);
    print(&script)
}
