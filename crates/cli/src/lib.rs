//! The command line: reads arguments, calls the libraries, prints. The binary and the Python module share it.
//!
//! Results go to stdout, everything else to stderr. The exit code is 0, or 2 if something was wrong; a reader that closes
//! the pipe early is nothing wrong.

mod annotate;
mod args;
pub mod call;
mod command_line;
mod completions;
mod config;
mod corpus;
mod data;
mod eval;
mod failure;
mod features;
mod files;
pub mod launch;
mod library;
mod library_show;
mod old_spellings;
mod presets;
mod program;
mod report_page;
mod run;
mod run_directory;
mod serve;
pub mod session;
mod table;
mod train;
mod vocabulary;

use std::ffi::OsString;

use args::{Args, Command, LibraryCommand};
use clap::Parser as _;
use failure::Failure;
use files::Destination;

/// The name of the program in its messages.
const PROGRAM: &str = "refactor-vla";

/// Runs a command, given by its words without the name of the program. Returns the exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = std::iter::once(OsString::from(PROGRAM)).chain(words).collect();
    launch::keep(&words[1..]);
    let done = match parse(&words) {
        Ok(args) => {
            train::note(&old_spellings::notes(&words));
            run(args)
        }
        Err(error) => {
            // With stdout or stderr gone there is nobody to tell.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    match done {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// The command in some words. `--output` means `--json` as well, in commands that have it.
fn parse(words: &[OsString]) -> Result<Args, clap::Error> {
    let args = Args::try_parse_from(words)?;
    let json = OsString::from("--json");
    if args.output.is_none() || args.command.has_file() || words.contains(&json) {
        return Ok(args);
    }
    let is_output = |word: &OsString| word.to_string_lossy().split('=').next() == Some("--output");
    let places = words.iter().position(is_output).into_iter().chain([words.len()]);
    let with_json = places.map(|at| [&words[..at], std::slice::from_ref(&json), &words[at..]].concat());
    Ok(with_json.filter_map(|words| Args::try_parse_from(words).ok()).next().unwrap_or(args))
}

/// Runs a command, and writes its result to the file of `--output` if there is one.
fn run(args: Args) -> Result<(), Failure> {
    let Args { output, command } = args;
    match output {
        Some(path) if !command.has_file() => {
            let destination = Destination::new(&path, "result.json")?;
            let (printed, done) = call::redirected(|| run_command(command));
            if !printed.is_empty() {
                destination.write(&printed)?;
            }
            done
        }
        _ => run_command(command),
    }
}

fn run_command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Program(command) => program::run(command),
        Command::Library(LibraryCommand::Compress(options)) => library::compress(&options),
        Command::Library(LibraryCommand::Show(options)) => library_show::run(&options),
        Command::Annotate(options) => annotate::run(&options),
        Command::Data(command) => data::run(command),
        Command::Features(options) => features::run(&options),
        Command::Train(command) => train::run(&command),
        Command::Run(options) => run::run(&options),
        Command::Demo(options) => run::demo(&options),
        Command::Eval(command) => eval::run(&command),
        Command::Report(options) => report_page::run(&options),
        Command::Serve(options) => serve::run(&options),
        Command::Presets(command) => presets::run(&command),
        Command::Config(command) => config::run(&command),
        Command::Completions { shell } => completions::run(shell),
    }
}
