//! The one binary: reads arguments, calls the libraries, prints.
//!
//! Results go to stdout, everything else to stderr. The exit code is 0, or 2 if something was wrong; a reader that closes
//! the pipe early is nothing wrong.

mod annotate;
mod args;
mod command_line;
mod completions;
mod corpus;
mod data;
mod eval;
mod failure;
mod features;
mod files;
mod library;
mod library_show;
mod program;
mod report_page;
mod run;
mod run_directory;
mod serve;
mod table;
mod train;
mod vocabulary;

use std::process::ExitCode;

use args::{Args, Command, LibraryCommand};
use clap::Parser as _;

fn main() -> ExitCode {
    models::prepare_process();
    let done = match Args::parse().command {
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
        Command::Completions { shell } => completions::run(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
