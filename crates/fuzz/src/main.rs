//! Throws millions of generated inputs at every parser and at what lies behind it.
//!
//! ```text
//! cargo run --release -p fuzz -- --inputs 10000000
//! ```
//! No input may panic, overflow the stack, take longer than `--patience`, need more than `--memory`, or break what a target
//! promises (print→parse round trips, agreement of two checkers, programs that keep their meaning). The inputs are a function
//! of seed, target and index, so a failure is reproduced by naming those. The run happens in a child process: what kills
//! that – a stack overflow cannot be caught – is explained by the parent from a journal of what each worker was about to try.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command of its own: the summary goes to stdout, progress to stderr"
)]

mod grammar;
mod inputs;
mod memory;
mod random;
mod run;
mod shrink;
mod supervise;
mod targets;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use crate::run::{Failure, Settings, Summary, input_of, run};
use crate::targets::Target;

/// Fuzz the parsers, the checkers, the evaluator and the compressor.
#[derive(Debug, Parser)]
struct Arguments {
    /// Inputs for each parser; slower targets take their share of it
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// Seed of all inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only these targets [default: all]
    #[arg(long, num_args = 1.., value_name = "NAME")]
    target: Vec<String>,
    /// Number of workers [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// How many seconds one input may take
    #[arg(long, default_value_t = 10)]
    patience: u64,
    /// How many MiB may be allocated at once
    #[arg(long, default_value_t = 512)]
    memory: usize,
    /// Try only the input of this index and show it
    #[arg(long, value_name = "INDEX")]
    only: Option<u64>,
    /// Where the workers note what they try; set by the parent process
    #[arg(long, hide = true)]
    journal: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut targets: Vec<Arc<Target>> = targets::all().into_iter().map(Arc::new).collect();
    if let Some(unknown) = arguments.target.iter().find(|name| targets.iter().all(|target| target.name != **name)) {
        let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
        eprintln!("error: there is no target `{unknown}`, only {}", names.join(", "));
        return ExitCode::from(2);
    }
    if !arguments.target.is_empty() {
        targets.retain(|target| arguments.target.iter().any(|name| name == target.name));
    }
    let done = match arguments.journal {
        Some(_) => fuzz(&targets, &arguments),
        None => supervise::supervise(&targets, arguments.seed),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the targets one after the other; whether all went well.
fn fuzz(targets: &[Arc<Target>], arguments: &Arguments) -> io::Result<bool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let journal = arguments.journal.as_ref().map(|path| OpenOptions::new().write(true).open(path));
    let mut settings = Settings {
        seed: arguments.seed,
        inputs: (0, 0),
        threads: arguments.threads.unwrap_or(cores).max(1),
        patience: Duration::from_secs(arguments.patience),
        memory: arguments.memory << 20,
        journal: journal.transpose()?.map(Arc::new),
    };
    let mut good = true;
    println!(
        "{:<14} {:>11} {:>9} {:>10} {:>10} {:>22} {:>20}  failures",
        "target", "inputs", "accepted", "inputs/s", "peak", "largest input (index)", "slowest (index)"
    );
    for (number, target) in targets.iter().enumerate() {
        settings.inputs = match arguments.only {
            Some(index) => (index, index + 1),
            None => (0, arguments.inputs.div_ceil(target.cost)),
        };
        if let Some(index) = arguments.only {
            eprintln!("input {index} of {}: {}", target.name, shown(&input_of(target, arguments.seed, index)));
        }
        let summary = run(target, number as u64, &settings, |summary| progress(target, &settings, summary))?;
        if io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        println!("{}", row(target, &summary));
        for failure in &summary.failures {
            good = false;
            println!("{}", explained(target, arguments.seed, failure));
        }
    }
    Ok(good)
}

fn row(target: &Target, summary: &Summary) -> String {
    format!(
        "{:<14} {:>11} {:>8.1}% {:>10.0} {:>6.1} MiB {:>22} {:>20}  {}",
        target.name,
        summary.inputs,
        100.0 * summary.accepted as f64 / summary.inputs.max(1) as f64,
        summary.inputs as f64 / summary.elapsed.as_secs_f64(),
        mebibytes(summary.peak),
        format!("{:.1} MiB ({})", mebibytes(summary.largest.0), summary.largest.1),
        format!("{:.0} ms ({})", summary.slowest.0.as_secs_f64() * 1e3, summary.slowest.1),
        summary.failures.len(),
    )
}

fn progress(target: &Target, settings: &Settings, summary: &Summary) {
    // A log wants no line a second.
    if io::stderr().is_terminal() {
        let share = 100.0 * summary.inputs as f64 / (settings.inputs.1 - settings.inputs.0).max(1) as f64;
        eprint!("\r\x1b[K{share:>5.1}%  {}", row(target, summary));
    }
}

/// A failure with what is needed to see it again.
fn explained(target: &Target, seed: u64, failure: &Failure) -> String {
    format!(
        "failure of {name}: {message}\n  input  {input}\n  again  fuzz --target {name} --seed {seed} --only {index}",
        name = target.name,
        message = failure.message,
        input = shown(&failure.input),
        index = failure.index,
    )
}

/// An input with its odd characters escaped, and its middle left out if it is long.
fn shown(input: &str) -> String {
    const ENDS: usize = 1000;
    let count = input.chars().count();
    if count <= 2 * ENDS {
        return format!("{input:?}");
    }
    let head: String = input.chars().take(ENDS).collect();
    let tail: String = input.chars().skip(count - ENDS).collect();
    format!("{head:?} … {} characters … {tail:?}", count - 2 * ENDS)
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_thousand_inputs_for_every_target() {
        for (number, target) in targets::all().into_iter().map(Arc::new).enumerate() {
            let inputs = (20_000 / target.cost).max(200);
            let settings = Settings {
                seed: 1,
                inputs: (0, inputs),
                threads: 2,
                patience: Duration::from_secs(60),
                memory: 512 << 20,
                journal: None,
            };
            let summary = run(&target, number as u64, &settings, |_| ()).unwrap();
            let failures: Vec<String> = summary.failures.iter().map(|it| explained(&target, 1, it)).collect();
            assert!(failures.is_empty(), "{}", failures.join("\n"));
            assert_eq!(summary.inputs, inputs);
            // Inputs that are all refused would test the first lines of the parser only; all accepted, no error path.
            let share = summary.accepted as f64 / inputs as f64;
            assert!((0.2..0.9).contains(&share), "{}: {share} of the inputs are accepted", target.name);
        }
    }
}
