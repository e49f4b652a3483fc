//! `report`: regenerates the HTML report of a run from its data.

use std::fs;
use std::path::{Path, PathBuf};

use report::{Report, ReportError, render};
use serde_json::json;

use crate::failure::{Failure, Problem};
use crate::files::{self, Destination, shown};
use crate::run_directory::{file_of, unfinished};

/// The data of the report, in the directory of the run.
const DATA: &str = "report.json";

/// The report, in the same directory.
const PAGE: &str = "report.html";

/// The largest file of data, in bytes. It contains pictures.
const MAX_DATA_BYTES: u64 = 1 << 30;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Results directory of `run` or `demo`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// HTML file to write [default: `report.html` in the results directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the paths of the run and the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes the report and prints its path.
pub(crate) fn run(options: &ReportArgs) -> Result<(), Failure> {
    let data = file_of(&options.run, DATA)?.ok_or_else(|| unfinished(&options.run, DATA))?;
    let out = options.out.clone().unwrap_or_else(|| options.run.join(PAGE));
    if is_same(&out, &data) {
        return Err(Problem::new(format!("{} is the data of the report", shown(&out)))
            .fact("expected", "another file for the HTML report")
            .hint(format!("choose another `--out`, such as `{}`", options.run.join(PAGE).display()))
            .into());
    }
    let destination = Destination::new(&out, PAGE)?;
    let text = files::read_text(&data, MAX_DATA_BYTES)?;
    let report = Report::from_json(&text).map_err(|error| unreadable(&data, &error))?;
    destination.write(render(&report).as_bytes())?;
    match options.json {
        true => files::print(&files::json_bytes(&json!({ "run": options.run, "report": out }))?),
        false => files::print(format!("report: {}\n", out.display()).as_bytes()),
    }
}

/// Whether both paths name the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

fn unreadable(data: &Path, error: &ReportError) -> Problem {
    let again =
        "repeat the command of the run with `--resume`: it writes the report again and repeats no finished stage";
    match error {
        ReportError::Json(reason) => {
            Problem::new(format!("{} is not a report", shown(data))).fact("reason", reason).hint(again)
        }
        ReportError::Schema { found } => {
            let is_newer = *found > u64::from(report::SCHEMA);
            Problem::new(format!("{} was written by another version of this program", shown(data)))
                .fact("found", format!("schema {found}"))
                .fact("expected", format!("schema {}", report::SCHEMA))
                .hint(if is_newer { "update this program" } else { again })
        }
    }
}
