//! `annotate` as it is typed.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::args::KeyArgs;

/// What `annotate --help` ends with.
pub(crate) const EXAMPLES: &str = r#"Examples:
  refactor-vla annotate demos/kitchen demos/kitchen_subtasks
  refactor-vla annotate demos/kitchen --in-place
  refactor-vla annotate demos/kitchen demos/kitchen_subtasks --segments subtasks.csv
  refactor-vla annotate demos/kitchen out --names names.toml --segments-from corrected.csv
  refactor-vla annotate demos/kitchen demos/kitchen_skills --run runs/kitchen

Subtasks come from states, actions and instructions; images are not used and nothing is trained.

The result has `subtask_index` with `meta/subtasks.parquet` as lerobot 0.4 reads them
(`item["subtask"]`), and `skill_index` with `meta/skills.json`: classes of motions, found without
labels. `--format language` writes the columns `language_persistent` and `language_events` of
lerobot 0.6 instead.

To correct names, edit `meta/subtasks.toml` of the result and annotate again: it is read from the
dataset, and a file given with `--names` goes over it. To correct boundaries, write a table with
`--segments`, edit `start`, `end` (frames; seconds are not read) and `name`, and pass it back with
`--segments-from`; it may hold some episodes only. Corrections are kept in
`meta/subtasks_corrections.csv` of the result, which is read when it is annotated again. To keep
subtasks that were edited in the data files, pass the dataset itself: `--segments-from DATASET`. A
file that exists and is different is not overwritten.

`--replace` replaces `subtask_index`, `skill_index`, their names in `meta`, and rows of style
`subtask` in `language_persistent`. Language rows of other styles and events are always kept;
language columns with nothing else in them are removed unless `--format language` is given.

With `--in-place`, the dataset is renamed to `DATASET.backup-1` and the result takes its place.
Hidden entries such as `.git` move to the result, empty folders stay in the backup, and links to
files become files in the result. Modes and owners are kept, and a dataset that is write-protected is
not replaced."#;

#[derive(Debug, clap::Args)]
pub(crate) struct AnnotateArgs {
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Directory to create; must not exist, or be empty. Required unless `--in-place` is given
    #[arg(value_name = "OUT", conflicts_with = "in_place")]
    pub(crate) out: Option<PathBuf>,
    /// Catches three places, as `data annotate RUN DATASET OUT` takes them.
    #[arg(hide = true)]
    pub(crate) extra: Option<String>,
    /// Replace the dataset, which is kept as `DATASET.backup-1`
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Make videos of the result hard links instead of copies: they take no space, but changing one
    /// of them changes both datasets
    #[arg(long)]
    pub(crate) link_videos: bool,
    /// Replace subtasks and classes that this program did not write, or that were edited since
    #[arg(long)]
    pub(crate) replace: bool,
    /// How subtasks are written
    #[arg(long, value_enum, default_value_t = FormArg::Subtasks)]
    pub(crate) format: FormArg,
    /// Use the skills and the library of a run as classes and names
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,

    /// Vocabulary to use: for each generated name the name to write (TOML); goes over
    /// `meta/subtasks.toml` of the dataset, if there is one
    #[arg(long, value_name = "FILE", help_heading = "Corrections")]
    pub(crate) names: Option<PathBuf>,
    /// Subtasks that a person wrote or corrected, as `--segments` writes them (CSV or JSON), or a dataset that has
    /// them; goes over `meta/subtasks_corrections.csv` of the dataset, and other episodes are annotated as usual
    #[arg(long, value_name = "FILE", help_heading = "Corrections")]
    pub(crate) segments_from: Option<PathBuf>,

    /// Write all subtasks as a table as well: `.csv`, or `.json`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) segments: Option<PathBuf>,
    /// Write the vocabulary to this file as well
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) write_names: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

impl AnnotateArgs {
    /// `annotate DATASET OUT --run RUN`, with everything else as it is by default.
    pub(crate) fn of_run(run: &Path, dataset: &str, out: &Path, json: bool) -> AnnotateArgs {
        AnnotateArgs {
            dataset: dataset.to_owned(),
            out: Some(out.to_owned()),
            extra: None,
            in_place: false,
            link_videos: false,
            replace: false,
            format: FormArg::Subtasks,
            run: Some(run.to_owned()),
            names: None,
            segments_from: None,
            segments: None,
            write_names: None,
            json,
            keys: KeyArgs::default(),
        }
    }
}

/// How subtasks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// `subtask_index` and `meta/subtasks.parquet`, as lerobot 0.4 reads them
    Subtasks,
    /// `language_persistent` and `language_events`, as lerobot 0.6 reads them
    Language,
}
