//! `config`: the settings of a run, as its directory records them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use experiments::presets::names;
use experiments::run_dir::CONFIG;
use serde_json::Value;

use crate::command_line::quoted;
use crate::failure::{Failure, Problem};
use crate::files::{self, shown};
use crate::run_directory::not_a_run;

/// The longest record of settings, in bytes.
const MAX_CONFIG: u64 = 64 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings of a run, each as `--set` takes it
    #[command(after_help = "Examples:
  refactor-vla config show demo-run
  refactor-vla config show runs/goal --json | jq .settings.cycle")]
    Show {
        /// Results directory of `run`, `demo` or `train`
        #[arg(value_name = "RUN")]
        run: PathBuf,
        /// Print the whole record as JSON: settings, dataset, split and seed
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    let ConfigCommand::Show { run, json } = command;
    let path = run.join(CONFIG);
    if !path.is_file() {
        return Err(not_a_run(run));
    }
    let record: Value = serde_json::from_str(&files::read_text(&path, MAX_CONFIG)?).map_err(|error| {
        Problem::new(format!("{} is not a record of settings: {error}", shown(&path)))
            .hint("the file is damaged; repeat the run in a new directory")
    })?;
    match json {
        true => files::print(&files::json_bytes(&record)?),
        false => files::print(in_words(run, &record).as_bytes()),
    }
}

fn in_words(run: &Path, record: &Value) -> String {
    let mut text = format!("{}", run.display());
    if let Some(version) = record["version"].as_str() {
        let _ = write!(text, ": written by version {version}");
    }
    if let Some(preset) = record["preset"].as_str() {
        let presets: Vec<String> = names(preset).iter().map(|name| format!("--preset {}", quoted(name))).collect();
        let _ = write!(text, ", {}", presets.join(" "));
    }
    if let Some(seed) = record["seed"].as_u64() {
        let _ = write!(text, ", --seed {seed}");
    }
    text.push_str("\n\n");
    let mut settings = Vec::new();
    leaves(&record["settings"], String::new(), &mut settings);
    for (key, value) in settings {
        let _ = writeln!(text, "{}", quoted(&format!("{key}={value}")));
    }
    text
}

/// The dotted names and the values of all settings. A list is one value, and so is what is switched off.
fn leaves(tree: &Value, name: String, found: &mut Vec<(String, String)>) {
    match tree {
        Value::Object(fields) => {
            for (key, value) in fields {
                leaves(value, if name.is_empty() { key.clone() } else { format!("{name}.{key}") }, found);
            }
        }
        Value::Null => found.push((name, "none".to_owned())),
        Value::String(text) => found.push((name, text.clone())),
        other => found.push((name, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use experiments::cycle::RunSettings;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_gives_the_same_settings_again() {
        let sets = ["cycle.iterations=7".to_owned(), "world_model.train.ema=0.9".to_owned()];
        let settings = RunSettings::resolve("m188+fast-wake", &sets).unwrap();
        let record = json!({ "version": "1", "preset": "m188+fast-wake", "seed": 3, "settings": settings });
        let text = in_words(Path::new("runs/a"), &record);
        let head = "runs/a: written by version 1, --preset m188 --preset fast-wake, --seed 3\n\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\ncycle.iterations=7\n") && text.contains("\nworld_model.train.ema=0.9\n"), "{text}");
        let mut found = Vec::new();
        leaves(&record["settings"], String::new(), &mut found);
        let again: Vec<String> = found.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(RunSettings::resolve("m188+fast-wake", &again).unwrap(), settings);
    }
}
