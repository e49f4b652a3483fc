//! `data synth`: datasets whose segments or returns are known.

use std::path::Path;

use dataset::synthetic::{Noise, Options, Synthetic, Written};
use dataset::write::Summary;
use serde::Serialize;

use super::counted;
use crate::args::{SynthCommand, SynthRobotArgs};
use crate::failure::Failure;
use crate::files;

/// Writes a synthetic dataset.
pub(crate) fn run(command: &SynthCommand) -> Result<(), Failure> {
    match command {
        SynthCommand::RecursivePour { out, demos, seed } => {
            let summary = dataset::recursive_pour::write(out, *demos as usize, *seed)?;
            files::print(wrote(&summary, out).as_bytes())
        }
        SynthCommand::So101(options) => robot(Synthetic::So101, options),
        SynthCommand::Aloha(options) => robot(Synthetic::Aloha, options),
        SynthCommand::Humanoid(options) => robot(Synthetic::Humanoid, options),
        SynthCommand::Mobile(options) => robot(Synthetic::Mobile, options),
        SynthCommand::StateOnly(options) => robot(Synthetic::StateOnly, options),
    }
}

fn robot(robot: Synthetic, options: &SynthRobotArgs) -> Result<(), Failure> {
    let SynthRobotArgs { out, episodes, seed, noise, json } = options;
    let noise = Noise::level(*noise).unwrap_or_default();
    let wanted = Options { per_task: *episodes as usize, seed: *seed, noise };
    let written = dataset::synthetic::write(out, robot, &wanted)?;
    if *json {
        return files::print(&files::json_bytes(&Told::new(robot, out, &written))?);
    }
    files::print(format!("{}{}", wrote(&written.summary, out), segments(&written)).as_bytes())
}

fn wrote(summary: &Summary, out: &Path) -> String {
    let Summary { episodes, frames, tasks, .. } = summary;
    format!("wrote {episodes} episodes, {frames} frames, {tasks} tasks to {}\n", files::shown(out))
}

/// The true segments of each task.
fn segments(written: &Written) -> String {
    let rewards = if written.rewards { "with rewards" } else { "no rewards" };
    let mut text = format!(
        "{}, {} fps, {}, {rewards}\n\nsegments  seconds  instruction\n",
        counted(written.columns as u64, "column", "columns"),
        written.fps,
        counted(written.cameras as u64, "camera", "cameras"),
    );
    for task in &written.tasks {
        text.push_str(&format!("{:>8}  {:>7.1}  {}\n", task.segments, task.seconds, task.instruction));
    }
    text
}

/// The same as JSON.
#[derive(Serialize)]
struct Told<'a> {
    robot: &'static str,
    out: String,
    episodes: u64,
    frames: u64,
    fps: u32,
    columns: usize,
    cameras: usize,
    rewards: bool,
    /// Classes of segments by the numbers in the column `phase`.
    phases: &'a [&'static str],
    tasks: Vec<ToldTask>,
}

#[derive(Serialize)]
struct ToldTask {
    instruction: &'static str,
    /// True segments of each episode.
    segments: usize,
    /// Mean length of an episode in seconds.
    seconds: f64,
}

impl<'a> Told<'a> {
    fn new(robot: Synthetic, out: &Path, written: &'a Written) -> Told<'a> {
        let task = |task: &dataset::synthetic::TaskSegments| ToldTask {
            instruction: task.instruction,
            segments: task.segments,
            seconds: task.seconds,
        };
        Told {
            robot: robot.name(),
            out: out.display().to_string(),
            episodes: written.summary.episodes,
            frames: written.summary.frames,
            fps: written.fps,
            columns: written.columns,
            cameras: written.cameras,
            rewards: written.rewards,
            phases: &written.phases,
            tasks: written.tasks.iter().map(task).collect(),
        }
    }
}
