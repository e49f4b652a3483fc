//! `library compress`.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use compression::{Abstraction, Config, CostKind, Progress, Rules, Stop, verify};
use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::{CompressArgs, Cost, Rule};
use crate::corpus;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};

/// The threshold of the paper, in nats (SPEC §7).
const MIN_GAIN_NATS: f64 = 4.0;

/// Compresses a corpus, prints the library and writes the JSON.
pub(crate) fn compress(options: &CompressArgs) -> Result<(), Failure> {
    // Since here and not since the process began: `cargo run` becomes this process, with the time it has taken itself.
    let started = ProcessTime::now();
    check_places(options)?;
    let corpus = corpus::load(&options.corpus, options.format)?;
    let config = config(options);
    let compression = watched(|progress| compression::compress(&corpus, &config, progress))
        .map_err(|error| Problem::new(error.to_string()))?;
    if options.verify {
        verify(&corpus, &compression).map_err(|error| {
            Problem::new(format!("the rewritten corpus is not the original one: {error}"))
                .hint("this is a bug of ours, and nothing was written; please report the corpus and the options")
        })?;
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        corpus: &options.corpus,
        programs: corpus.len(),
        cost: match config.cost {
            CostKind::Stitch => "stitch",
            CostKind::Nats => "nats",
            CostKind::UniformNats => "uniform-nats",
        },
        max_arity: config.max_arity,
        rounds: config.rounds,
        per_round: config.per_round,
        min_gain: config.min_gain,
        lookahead: config.lookahead,
        original_cost: compression.original_cost,
        final_cost: compression.final_cost,
        library_cost: compression.library_cost,
        stop: compression.stop,
        max_memory: options.max_memory,
        stop_reason: compression.stop.to_string(),
        steps: compression.steps,
        cpu_seconds: started.elapsed().as_secs_f64(),
        verified: options.verify,
        abstractions: compression.abstractions.iter().map(Entry::new).collect(),
        rewritten: &compression.rewritten,
    };
    match options.json {
        true => files::print(&files::json_bytes(&report)?),
        false => files::print(report.text().as_bytes()),
    }
}

/// Refuses `--json FILE`, as it was once typed.
fn check_places(options: &CompressArgs) -> Result<(), Failure> {
    let file = match &options.extra {
        Some(extra) => extra.as_path(),
        None => match Path::new(&options.corpus) {
            only if options.json && only.extension().is_some_and(|ending| ending == "json") && !only.exists() => only,
            _ => return Ok(()),
        },
    };
    Err(Problem::new(format!("{} is not a corpus to read", files::shown(file)))
        .fact("expected", "one corpus, and `--json` without a value")
        .hint(format!("to write JSON to a file, type `--output {}`", file.display()))
        .into())
}

fn config(options: &CompressArgs) -> Config {
    let cost = match options.cost {
        Cost::Stitch => CostKind::Stitch,
        Cost::Nats => CostKind::Nats,
        Cost::UniformNats => CostKind::UniformNats,
    };
    let default_gain = match cost {
        CostKind::Stitch => 0.0,
        CostKind::Nats | CostKind::UniformNats => MIN_GAIN_NATS,
    };
    let all_cores = || available_parallelism().map_or(1, usize::from);
    Config {
        max_arity: options.max_arity,
        rounds: options.rounds,
        per_round: usize::from(options.per_round),
        cost,
        min_gain: options.min_gain.unwrap_or(default_gain),
        lookahead: options.lookahead,
        threads: options.threads.map_or_else(all_cores, usize::from),
        max_steps: options.max_steps,
        max_memory: options.max_memory << 20,
        time_limit: options.time_limit,
        rules: rules(&options.without, &options.with),
    }
}

fn rules(without: &[Rule], with: &[Rule]) -> Rules {
    let mut rules = Rules::default();
    let off = without.iter().map(|rule| (rule, false));
    let on = with.iter().map(|rule| (rule, true));
    for (rule, state) in off.chain(on) {
        *match rule {
            Rule::ArgumentCapture => &mut rules.argument_capture,
            Rule::RedundantArgument => &mut rules.redundant_argument,
            Rule::SinglePlace => &mut rules.single_place,
            Rule::SpentRows => &mut rules.spent_rows,
            Rule::ExhaustedArity => &mut rules.exhausted_arity,
            Rule::Overlap => &mut rules.overlap,
        } = state;
    }
    rules
}

/// Runs the search, with its progress on stderr if somebody is there to see it.
fn watched<T>(search: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T) -> T {
    if !io::stderr().is_terminal() {
        return search(&|_| {});
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    let found = search(&|progress: Progress| {
        let Progress { round, steps, cost, .. } = progress;
        bar.set_message(format!("round {round}, {steps} steps, cost {cost:.1}"));
    });
    bar.finish_and_clear();
    found
}

/// What `--json` writes.
#[derive(Serialize)]
struct Report<'r> {
    version: &'static str,
    corpus: &'r str,
    programs: usize,
    cost: &'static str,
    max_arity: usize,
    rounds: usize,
    per_round: usize,
    min_gain: f64,
    lookahead: f64,
    original_cost: f64,
    final_cost: f64,
    library_cost: f64,
    #[serde(skip)]
    stop: Stop,
    /// In MiB.
    #[serde(skip)]
    max_memory: u64,
    stop_reason: String,
    steps: u64,
    /// From the start of the command to its report, reading and verifying included.
    cpu_seconds: f64,
    verified: bool,
    abstractions: Vec<Entry<'r>>,
    rewritten: &'r [String],
}

#[derive(Serialize)]
struct Entry<'r> {
    name: &'r str,
    arity: usize,
    /// Missing where the body has no type, which untyped corpora allow.
    #[serde(rename = "type")]
    principal_type: Option<&'r str>,
    uses: u64,
    gain: f64,
    body: &'r str,
}

impl<'r> Entry<'r> {
    fn new(abstraction: &'r Abstraction) -> Entry<'r> {
        Entry {
            name: &abstraction.name,
            arity: abstraction.arity,
            principal_type: abstraction.principal_type.as_deref(),
            uses: abstraction.uses,
            gain: abstraction.gain,
            body: &abstraction.body,
        }
    }
}

impl Report<'_> {
    fn text(&self) -> String {
        let total = self.final_cost + self.library_cost;
        let row = |name: &str, [corpus, library]: [f64; 2], note: String| {
            let [corpus, library, total] = [corpus, library, corpus + library].map(|cost| self.number(cost));
            vec![name.to_string(), corpus, library, total, note]
        };
        let costs = table(
            &[
                (self.cost, Align::Left),
                ("corpus", Align::Right),
                ("library", Align::Right),
                ("total", Align::Right),
                ("", Align::Left),
            ],
            &[
                row("before", [self.original_cost, 0.0], String::new()),
                row(
                    "after",
                    [self.final_cost, self.library_cost],
                    format!("{:.2}x shorter", self.original_cost / total),
                ),
            ],
        );
        let heading = format!("{} programs of {}", self.programs, files::shown(Path::new(self.corpus)));
        format!("{heading}\n\n{}\n{costs}\n{}\n", self.library(), self.ending())
    }

    fn library(&self) -> String {
        if self.abstractions.is_empty() {
            return format!("  no abstraction gains more than {}\n", self.number(self.min_gain));
        }
        let mut columns = vec![
            ("name", Align::Left),
            ("arity", Align::Right),
            ("uses", Align::Right),
            ("gain", Align::Right),
            ("body", Align::Left),
        ];
        let typed = self.abstractions.iter().any(|entry| entry.principal_type.is_some());
        if typed {
            columns.insert(4, ("type", Align::Left));
        }
        let row = |entry: &Entry<'_>| {
            let mut row = vec![
                entry.name.to_string(),
                entry.arity.to_string(),
                entry.uses.to_string(),
                self.number(entry.gain),
                entry.body.to_string(),
            ];
            if typed {
                row.insert(4, entry.principal_type.unwrap_or("-").to_string());
            }
            row
        };
        table(&columns, &self.abstractions.iter().map(row).collect::<Vec<_>>())
    }

    /// Why the search stopped, and what it took.
    fn ending(&self) -> String {
        let stopped = match self.stop {
            Stop::Optimal if self.cost == "stitch" => "search complete".to_owned(),
            // The optimum of the additive weights near the description length, whose candidates are then priced exactly.
            Stop::Optimal => {
                "search complete for the weights that propose candidates, not for the nats of whole libraries"
                    .to_owned()
            }
            Stop::OptimalUnderRules => {
                "search finished; the optimum may be lost to the pruning rules argument capture \
                 and single place (off with `--without argument-capture --without single-place`)"
                    .to_owned()
            }
            Stop::Budget => "search stopped by its budget of steps (`--max-steps`)".to_owned(),
            Stop::Memory => format!("search stopped by its memory limit of {} MiB (`--max-memory`)", self.max_memory),
            Stop::Time => "search stopped by its time limit (`--time-limit`)".to_owned(),
        };
        let verified = match self.verified {
            true => "; verified: inlining gives back every program",
            false => "",
        };
        format!("{stopped}: {} steps, {:.3} s CPU{verified}", self.steps, self.cpu_seconds)
    }

    /// A cost: Stitch's are whole numbers.
    fn number(&self, value: f64) -> String {
        match self.cost {
            "stitch" => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        }
    }
}
