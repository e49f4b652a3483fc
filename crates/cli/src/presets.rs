//! `presets`: which there are, and what they set.

use clap::Subcommand;
use experiments::cycle::RunSettings;
use experiments::presets::{AND, PARTS, about, text};
use experiments::settings::PRESETS;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::table::{Align, table};

/// The width of descriptions in the list, in characters.
const WIDTH: usize = 88;

#[derive(Debug, Subcommand)]
pub(crate) enum PresetsCommand {
    /// List the presets
    #[command(after_help = "Example:
  refactor-vla presets list")]
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Show what a preset sets, as a file that `--preset` reads
    #[command(after_help = "Examples:
  refactor-vla presets show m188
  refactor-vla presets show m188 > mine.toml
  refactor-vla presets show m188 fast-wake --json

Settings that a preset does not mention have the values of the paper's run; `--json` shows all of
them. Several presets compose from left to right.")]
    Show {
        /// Presets, by name or as TOML files
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Print all settings as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs one of the commands.
pub(crate) fn run(command: &PresetsCommand) -> Result<(), Failure> {
    match command {
        PresetsCommand::List { json } => list(*json),
        PresetsCommand::Show { names, json: true } => {
            let settings = RunSettings::resolve(&names.join(&AND.to_string()), &[])?;
            files::print(&files::json_bytes(&json!({ "presets": names, "settings": settings }))?)
        }
        PresetsCommand::Show { names, json: false } => {
            let texts = names.iter().map(|name| text(name));
            let texts = texts.collect::<Result<Vec<String>, experiments::Error>>()?;
            files::print(texts.join("\n").as_bytes())
        }
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let all = || PRESETS.iter().map(|one| (one, false)).chain(PARTS.iter().map(|one| (one, true)));
    if json {
        let one =
            |((name, text), part): (&(&str, &str), bool)| json!({ "name": name, "about": about(text), "part": part });
        return files::print(&files::json_bytes(&all().map(one).collect::<Vec<_>>())?);
    }
    let rows: Vec<Vec<String>> = all()
        .flat_map(|((name, text), _)| {
            let lines = wrapped(&about(text));
            let named = std::iter::once((*name).to_owned()).chain(std::iter::repeat(String::new()));
            named.zip(lines).map(|(name, line)| vec![name, line]).collect::<Vec<_>>()
        })
        .collect();
    files::print(table(&[("preset", Align::Left), ("for", Align::Left)], &rows).as_bytes())
}

/// A text in lines of at most [`WIDTH`] characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let at = lines.len() - 1;
        match lines[at].chars().count() + 1 + word.chars().count() <= WIDTH {
            true if lines[at].is_empty() => lines[at] = word.to_owned(),
            true => lines[at] += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}
