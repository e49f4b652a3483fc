//! What the user sees when something is wrong: what was found, what was wanted, what to do next.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use miette::{GraphicalReportHandler, GraphicalTheme};

/// The most single problems listed under one error.
const MAX_LISTED: usize = 20;

/// The width to which messages about programs are wrapped, in characters.
const WIDTH: usize = 100;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that has no place in a program.
    Plain(Problem),
    /// What is wrong with a dataset, and a line that sums it up.
    Faults(Vec<dataset::Fault>, Option<String>),
    /// Something with a place in a program, drawn over its source.
    Drawn(miette::Report),
    /// Already told on stdout, as JSON.
    Told,
    /// The reader of stdout has had enough, which is no error.
    ReaderGone,
}

/// An error with its facts, the single problems that it consists of, and a hint.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    message: String,
    facts: Vec<(&'static str, String)>,
    list: Vec<String>,
    hint: Option<String>,
}

impl Problem {
    /// An error: lower case, no full stop.
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), ..Problem::default() }
    }

    /// Adds a fact, such as the file or what was expected.
    pub(crate) fn fact(mut self, name: &'static str, value: impl fmt::Display) -> Problem {
        self.facts.push((name, value.to_string()));
        self
    }

    /// Adds single problems; only the first few are shown, with a count of the others.
    pub(crate) fn list(mut self, problems: impl IntoIterator<Item = String>) -> Problem {
        self.list.extend(problems);
        self
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            writeln!(f, "  {name:width$}  {value}")?;
        }
        for problem in self.list.iter().take(MAX_LISTED) {
            writeln!(f, "  {problem}")?;
        }
        if self.list.len() > MAX_LISTED {
            writeln!(f, "  … and {} more", self.list.len() - MAX_LISTED)?;
        }
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Plain(problem)
    }
}

impl From<dataset::Error> for Failure {
    fn from(error: dataset::Error) -> Failure {
        Failure::Faults(error.into_faults(), None)
    }
}

impl From<subtasks::Error> for Failure {
    fn from(error: subtasks::Error) -> Failure {
        match error {
            subtasks::Error::Dataset(error) => error.into(),
            other => Problem::new(other.to_string()).into(),
        }
    }
}

impl From<models::Error> for Failure {
    fn from(error: models::Error) -> Failure {
        match error {
            models::Error::Dataset(error) => error.into(),
            models::Error::File { ref source, .. } if is_about_space(source) => {
                Problem::new(error.to_string()).hint(WRITE_HINT).into()
            }
            error @ models::Error::NoDevice { .. } => Problem::new(error.to_string())
                .hint("`--device cpu` works everywhere, `--device auto` takes what is there")
                .into(),
            other => Problem::new(other.to_string()).into(),
        }
    }
}

impl From<experiments::Error> for Failure {
    fn from(error: experiments::Error) -> Failure {
        use experiments::Error;
        let message = error.to_string();
        match error {
            Error::Dataset(error) => error.into(),
            Error::Models(error) => error.into(),
            Error::NoDataset { .. } => Problem::new(message)
                .fact("expected", "a directory in the LeRobot format v3.0, or `embedded:libero_goal_mini`")
                .hint("`refactor-vla data inspect DIR` shows what a directory holds")
                .into(),
            Error::NoFeatures { advice, .. } => Problem::new(message).hint(advice).into(),
            Error::RunExists { .. } => Problem::new(message)
                .fact("expected", "a directory that is empty or does not exist")
                .hint("continue the run with `--resume`, or give another `--out`")
                .into(),
            Error::Write { .. } => Problem::new(message).hint(WRITE_HINT).into(),
            Error::File { .. } => Problem::new(message).hint("check the path, and that you may read the file").into(),
            Error::Settings(list) => match &list[..] {
                [_] => Problem::new(message).into(),
                _ => Problem::new("invalid settings").list(list).into(),
            },
            _ => Problem::new(message).into(),
        }
    }
}

const WRITE_HINT: &str = "choose a directory that you may write to and that has room, such as with `--out DIR`";

/// Whether a file could not be written because of where it is, rather than what it is.
fn is_about_space(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

impl Failure {
    /// A failure to write to stdout.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Problem::new(format!("cannot write to stdout: {}", dataset::files::reason(error)))
                .hint("check that the disk is not full")
                .into(),
        }
    }

    /// Tells the user on stderr, and gives the exit code.
    pub(crate) fn report(self) -> u8 {
        let text = match self {
            Failure::ReaderGone => return 0,
            Failure::Told => return 2,
            Failure::Plain(problem) => problem.to_string(),
            Failure::Faults(faults, None) => dataset::explain(&faults),
            Failure::Faults(faults, Some(sum)) => format!("{}\n{sum}\n", dataset::explain(&faults)),
            Failure::Drawn(report) => drawn(&report),
        };
        // With stderr gone as well there is nobody left to tell.
        let _ = io::stderr().write_all(text.as_bytes());
        2
    }

    /// The same as data, for callers in this process.
    pub(crate) fn into_complaint(self) -> Complaint {
        match self {
            Failure::Plain(problem) => {
                let text = problem.to_string();
                let Problem { message, facts, list, hint } = problem;
                let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                Complaint { text, message, facts, problems: list, hint }
            }
            Failure::Faults(faults, _) => {
                let message = faults.first().map_or_else(|| "bad dataset".to_owned(), ToString::to_string);
                let problems = faults.iter().map(ToString::to_string).collect();
                Complaint { text: dataset::explain(&faults), message, problems, ..Complaint::default() }
            }
            Failure::Drawn(report) => Complaint::new(report.to_string()).shown_as(drawn_plain(&report)),
            Failure::Told => Complaint::new("the command failed; its output says why"),
            Failure::ReaderGone => Complaint::new("stdout was closed"),
        }
    }
}

/// An error as data: what was found, what was expected and what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaint {
    /// The whole message, as the command line prints it.
    pub text: String,
    /// Its first line, lower case and without a full stop.
    pub message: String,
    /// Facts by name, such as `found` and `expected`.
    pub facts: Vec<(String, String)>,
    /// The single problems, if there are several.
    pub problems: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Complaint {
    /// An error without facts.
    pub fn new(message: impl Into<String>) -> Complaint {
        let message = message.into();
        Complaint { text: format!("error: {message}\n"), message, ..Complaint::default() }
    }

    fn shown_as(self, text: String) -> Complaint {
        Complaint { text, ..self }
    }
}

/// Draws a problem on stderr that does not stop the command.
pub(crate) fn note(report: &miette::Report) {
    // With stderr gone, the result on stdout still says it.
    let _ = io::stderr().write_all(drawn(report).as_bytes());
}

/// Writes a line for the user on stderr.
pub(crate) fn say(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}

/// The errors over their source. The look is decided here and not by features of `miette`, which other crates of a build
/// can change.
fn drawn(report: &miette::Report) -> String {
    let theme = match io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        true => GraphicalTheme::unicode(),
        false => GraphicalTheme::unicode_nocolor(),
    };
    drawn_with(report, theme)
}

/// The same without colours, for others than the terminal.
pub(crate) fn drawn_plain(report: &miette::Report) -> String {
    drawn_with(report, GraphicalTheme::unicode_nocolor())
}

fn drawn_with(report: &miette::Report, theme: GraphicalTheme) -> String {
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH);
    let mut text = String::new();
    match handler.render_report(&mut text, report.as_ref()) {
        Ok(()) => text,
        Err(_) => Problem::new(report.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_a_count() {
        let problem = Problem::new("found many problems")
            .fact("file", "a.json")
            .fact("expected", "none")
            .list((0..25).map(|at| format!("program {at}")))
            .hint("fix them");
        let text = problem.to_string();
        assert!(text.starts_with("error: found many problems\n  file      a.json\n  expected  none\n  program 0\n"));
        assert!(text.ends_with("  program 19\n  … and 5 more\nhint: fix them\n"), "{text}");
    }
}
