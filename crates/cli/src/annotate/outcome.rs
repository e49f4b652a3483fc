//! The outcome of `annotate`, as text and as JSON.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use dataset::Stream;
use serde::Serialize;
use subtasks::annotate::Annotated;
use subtasks::segments_file::{CORRECTIONS, word};

use super::AnnotateArgs;
use crate::data::counted;
use crate::table::{Align, table};

/// Names that are shown.
const SHOWN: usize = 20;

/// The result in numbers.
#[derive(Serialize)]
pub(super) struct Outcome {
    dataset: String,
    /// Where the dataset is that was replaced.
    backup: Option<String>,
    format: &'static str,
    episodes: usize,
    frames: usize,
    hours: f64,
    /// Subtasks of all episodes.
    subtasks: usize,
    /// Share of the subtasks by where their names come from.
    named_by: Vec<(&'static str, f64)>,
    /// Episodes whose subtasks a person wrote.
    corrected: usize,
    /// Episodes whose corrections an earlier annotation left in the dataset.
    corrections_kept: usize,
    names: Vec<NameUse>,
    classes: Vec<ClassUse>,
    seconds: f64,
    hours_per_minute: f64,
    /// The most memory that the process has taken, in MiB; Linux only.
    peak_mib: Option<f64>,
}

#[derive(Serialize)]
struct NameUse {
    name: String,
    subtasks: usize,
    frames: usize,
}

#[derive(Serialize)]
struct ClassUse {
    name: String,
    segments: usize,
    frames: usize,
}

impl Outcome {
    pub(super) fn new(
        options: &AnnotateArgs,
        stream: &Stream,
        annotated: &Annotated,
        corrections_kept: usize,
        backup: Option<PathBuf>,
        took: Duration,
    ) -> Outcome {
        let frames = stream.frames();
        let hours = frames as f64 / annotated.fps.max(1e-9) / 3600.0;
        let mut names: Vec<NameUse> =
            annotated.names.iter().map(|name| NameUse { name: name.clone(), subtasks: 0, frames: 0 }).collect();
        let mut classes: Vec<ClassUse> =
            annotated.class_names.iter().map(|name| ClassUse { name: name.clone(), segments: 0, frames: 0 }).collect();
        let mut sources: Vec<(&'static str, f64)> =
            ["instruction", "motion", "library", "person"].map(|source| (source, 0.0)).to_vec();
        let mut subtasks = 0;
        for episode in &annotated.episodes {
            for one in &episode.subtasks {
                names[one.name].subtasks += 1;
                names[one.name].frames += one.rows.len();
                let source = word(one.named_by);
                sources.iter_mut().filter(|(name, _)| *name == source).for_each(|(_, count)| *count += 1.0);
                subtasks += 1;
            }
            let mut start = 0;
            for (end, class) in &episode.segments {
                if let Some(class) = class.and_then(|class| classes.get_mut(class as usize)) {
                    class.segments += 1;
                    class.frames += (end - start) as usize;
                }
                start = *end;
            }
        }
        sources.iter_mut().for_each(|(_, count)| *count /= f64::from(subtasks.max(1)));
        sources.retain(|(_, share)| *share > 0.0);
        names.sort_by(|one, other| other.subtasks.cmp(&one.subtasks).then(one.name.cmp(&other.name)));
        let seconds = took.as_secs_f64();
        Outcome {
            dataset: options.out.as_ref().map_or_else(|| options.dataset.clone(), |out| out.display().to_string()),
            backup: backup.map(|path| path.display().to_string()),
            format: match options.format {
                super::FormArg::Subtasks => "subtasks",
                super::FormArg::Language => "language",
            },
            episodes: annotated.episodes.len(),
            frames,
            hours,
            subtasks: subtasks as usize,
            named_by: sources,
            corrected: annotated.episodes.iter().filter(|episode| episode.corrected).count(),
            corrections_kept,
            names,
            classes,
            seconds,
            hours_per_minute: hours / (seconds / 60.0).max(1e-9),
            peak_mib: peak_mib(),
        }
    }

    pub(super) fn in_words(&self) -> String {
        let sources: Vec<String> =
            self.named_by.iter().map(|(source, share)| format!("{:.0} % by {source}", 100.0 * share)).collect();
        let mut text = format!(
            "wrote `{}`: {} in {}, {} and {}\nnamed {}\n",
            self.dataset,
            counted(self.subtasks as u64, "subtask", "subtasks"),
            counted(self.episodes as u64, "episode", "episodes"),
            counted(self.names.len() as u64, "name", "names"),
            counted(self.classes.len() as u64, "class of motions", "classes of motions"),
            sources.join(", "),
        );
        if self.corrections_kept > 0 {
            let episodes = counted(self.corrections_kept as u64, "episode", "episodes");
            let _ = writeln!(text, "read corrections of {episodes} from `{CORRECTIONS}` of the dataset");
        }
        if self.corrected > 0 {
            let episodes = counted(self.corrected as u64, "episode", "episodes");
            let _ = writeln!(text, "{episodes} corrected by a person, kept in `{CORRECTIONS}`");
        }
        if let Some(backup) = &self.backup {
            let _ = writeln!(text, "the dataset as it was is in `{backup}`");
        }
        let columns = [("subtask", Align::Left), ("count", Align::Right), ("share of frames", Align::Right)];
        let share = |frames: usize| format!("{:.1} %", 100.0 * frames as f64 / self.frames.max(1) as f64);
        let row = |used: &NameUse| vec![used.name.clone(), used.subtasks.to_string(), share(used.frames)];
        let rows: Vec<Vec<String>> = self.names.iter().take(SHOWN).map(row).collect();
        let _ = write!(text, "\n{}", table(&columns, &rows));
        if self.names.len() > SHOWN {
            let _ = writeln!(text, "… and {} more names in `meta/subtasks.toml`", self.names.len() - SHOWN);
        }
        let minutes = self.hours * 60.0;
        let _ = writeln!(text, "\n{minutes:.1} minutes of demonstrations in {:.1} s", self.seconds);
        text
    }
}

/// The most memory that this process has taken.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib / 1024.0)
}
