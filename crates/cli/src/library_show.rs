//! `library show`: the library of a run, or of a file, for a person to read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use compression::Share;
use dataset::printable;
use experiments::cycle::driver::LIBRARY;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, Problem};
use crate::files::{self, shown};
use crate::run_directory::{file_of, is_loop, unfinished};
use crate::table::{Align, table};
use crate::vocabulary::MAX_LIBRARY_BYTES;

/// What one iteration found, in its folder.
const STEP: &str = "refactor.json";

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Results directory of `run` or `demo`, or a library as JSON; `-` reads stdin
    #[arg(value_name = "RUN_OR_FILE")]
    pub(crate) from: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// A library, and where it was found.
#[derive(Serialize)]
struct Shown {
    source: PathBuf,
    /// Of a run of the loop: whether the library is its last one. A single phase is given its library, and learns none.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<bool>,
    /// What gains are counted in.
    cost: String,
    abstractions: Vec<Entry>,
}

/// The fields that libraries of runs and of `library compress` have. Only name and body are in both.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object with `name` and `body`")]
struct Entry {
    name: String,
    #[serde(rename = "type")]
    principal_type: Option<String>,
    iteration: Option<u32>,
    uses: Option<u64>,
    gain: Option<f64>,
    posterior: Option<Share>,
    /// Other entries that the body names.
    #[serde(skip_deserializing)]
    calls: Vec<String>,
    body: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `abstractions`")]
struct LibraryFile {
    /// What `library compress` minimised; runs minimise nats.
    cost: Option<String>,
    abstractions: Vec<Entry>,
}

/// Shows a library.
pub(crate) fn run(options: &ShowArgs) -> Result<(), Failure> {
    let (source, finished) = match options.from.is_dir() {
        true => of_run(&options.from)?,
        false => (options.from.clone(), None),
    };
    let LibraryFile { cost, abstractions } = read(&source)?;
    let found = Shown { source, finished, cost: cost.unwrap_or_else(|| "nats".to_owned()), abstractions };
    match options.json {
        true => files::print(&files::json_bytes(&found)?),
        false => files::print(found.text().as_bytes()),
    }
}

/// The library's file of a run or, before its end, of the newest iteration, and of the loop, whether it is the last.
fn of_run(run: &Path) -> Result<(PathBuf, Option<bool>), Failure> {
    if let Some(path) = file_of(run, LIBRARY)? {
        return Ok((path, is_loop(run).then_some(true)));
    }
    let steps = (1..).map(|t| run.join(format!("t{t}")).join(STEP)).take_while(|path| path.is_file());
    steps.last().map(|path| (path, Some(false))).ok_or_else(|| unfinished(run, &format!("t1/{STEP}")).into())
}

fn read(path: &Path) -> Result<LibraryFile, Failure> {
    let text = files::read_text(path, MAX_LIBRARY_BYTES)?;
    let none = |error: serde_json::Error| {
        let problem = Problem::new(format!("{} is not a library: {error}", shown(path)))
            .fact("expected", "JSON written by `run`, `demo` or `library compress --output FILE`");
        match text.starts_with("library ") {
            true => problem.hint("this is the library as text, for people; the JSON file is next to it"),
            false => problem,
        }
    };
    let mut value: Value = serde_json::from_str(&text).map_err(none)?;
    // A stage stores its result next to its inputs, and the result of an iteration has a library among other things.
    if let Some(result) = value.get_mut("result") {
        value = result.take();
    }
    let library = match value.get_mut("library") {
        Some(library) => library.take(),
        None => value,
    };
    let mut file: LibraryFile = serde_json::from_value(library).map_err(none)?;
    let names: Vec<String> = file.abstractions.iter().map(|entry| entry.name.clone()).collect();
    for entry in &mut file.abstractions {
        let words = words(&entry.body);
        entry.calls = names.iter().filter(|name| words.contains(name)).cloned().collect();
    }
    Ok(file)
}

/// The words of a body that do not stand in quotes.
fn words(body: &str) -> Vec<String> {
    let unescaped = body.replace(r"\\", "").replace("\\\"", "");
    let outside = unescaped.split('"').step_by(2);
    let words = outside.flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\''))));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Shown {
    fn text(&self) -> String {
        let count = self.abstractions.len();
        let entries = if count == 1 { "entry" } else { "entries" };
        let mut text = format!("{}: {count} {entries}\n", shown(&self.source));
        if self.finished == Some(false) {
            text.push_str("the run is not finished; this is the library of its newest iteration\n");
        }
        if count == 0 {
            return text;
        }
        let _ = write!(text, "\n{}\n", self.figures());
        for entry in &self.abstractions {
            let _ = writeln!(text, "{} = {}", printable(&entry.name), printable(&entry.body));
        }
        text
    }

    fn figures(&self) -> String {
        let columns = [
            ("name", Align::Left),
            ("t", Align::Right),
            ("uses", Align::Right),
            (if self.cost == "stitch" { "gain" } else { "nats" }, Align::Right),
            ("share of calls", Align::Left),
            ("calls", Align::Left),
            ("type", Align::Left),
        ];
        let row = |entry: &Entry| {
            let share = entry.posterior.map(|Share { mean, low, high }| format!("{mean:.3} ({low:.3} to {high:.3})"));
            let calls = (!entry.calls.is_empty()).then(|| entry.calls.join(", "));
            vec![
                entry.name.clone(),
                known(entry.iteration.map(|t| t.to_string())),
                known(entry.uses.map(|uses| uses.to_string())),
                known(entry.gain.map(|gain| format!("{gain:.1}"))),
                known(share),
                known(calls),
                known(entry.principal_type.clone()),
            ]
        };
        table(&columns, &self.abstractions.iter().map(row).collect::<Vec<_>>())
    }
}

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_quotes_are_no_calls() {
        assert_eq!(
            words(r#"\x0. seq[fn_1 x0, pick "fn_2 \" fn_3", fn_4]"#),
            ["x0", "seq", "fn_1", "x0", "pick", "fn_4"]
        );
    }
}
