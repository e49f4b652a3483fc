//! `data …`: datasets of robot demonstrations.

mod annotate;
mod inspect;
mod skills_file;
mod synth;
mod validate;
mod view;

use std::path::PathBuf;

use dataset::{EMBEDDED_NAMES, Overrides, Root};

use crate::args::{DataCommand, KeyArgs};
use crate::failure::{Failure, Problem};

/// How a dataset in the program itself is addressed.
pub(crate) const EMBEDDED: &str = "embedded:";

/// Runs one of the commands.
pub(crate) fn run(command: DataCommand) -> Result<(), Failure> {
    match command {
        DataCommand::Inspect(options) => inspect::run(&options),
        DataCommand::Validate(options) => validate::run(&options),
        DataCommand::Synth(command) => synth::run(&command),
        DataCommand::View(options) => view::run(&options),
        DataCommand::Annotate(options) => annotate::run(&options),
    }
}

/// Where a dataset is: in a directory, or in the program.
pub(crate) fn root(written: &str) -> Result<Root, Failure> {
    let Some(name) = written.strip_prefix(EMBEDDED) else {
        return Ok(Root::Directory(PathBuf::from(written)));
    };
    dataset::embedded(name).ok_or_else(|| {
        let known: Vec<String> = EMBEDDED_NAMES.iter().map(|name| format!("`{EMBEDDED}{name}`")).collect();
        Problem::new(format!("there is no embedded dataset `{name}`"))
            .fact("expected", known.join(", "))
            .hint("give a directory to read a dataset of your own")
            .into()
    })
}

pub(crate) fn overrides(keys: &KeyArgs) -> Overrides {
    let some = |keys: &Vec<String>| (!keys.is_empty()).then(|| keys.clone());
    Overrides {
        state: keys.state_key.clone(),
        action: keys.action_key.clone(),
        cameras: some(&keys.camera_key),
        reward: keys.reward_key.clone(),
        labels: some(&keys.label_key),
        control: keys.control.clone(),
        // `none` besides a column is a contradiction, which opening the dataset reports.
        grippers: some(&keys.gripper)
            .map(|columns| if columns.iter().all(|column| column == "none") { Vec::new() } else { columns }),
    }
}

/// A number of things.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
