//! Runs the missing episodes of an evaluation in parallel processes of the simulator.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use experiments::closed_loop::parts::{Job, Parts};
use experiments::closed_loop::tasks::Chosen;
use experiments::closed_loop::{LoopSettings, Played, simulator_results};

use super::recording::Recordings;
use super::simulator::{Process, Simulator};
use crate::failure::{Failure, Problem};
use crate::train::watch::{bar, say};

/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is evaluated, and how.
pub(super) struct Evaluation<'a> {
    pub(super) name: &'a str,
    pub(super) simulator: &'a Simulator,
    pub(super) settings: &'a LoopSettings,
    pub(super) chosen: &'a Chosen,
    pub(super) compose: Option<&'a Path>,
    pub(super) starts: Range<u64>,
    pub(super) workers: usize,
    /// Episodes of each task to film.
    pub(super) videos: u64,
    pub(super) stop: &'static AtomicBool,
}

/// Where requests go.
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    /// What our own server records; none for others, which may not know how episodes are marked.
    pub(super) recordings: Option<Recordings>,
}

impl Target {
    /// A server in this process.
    pub(super) fn here(address: SocketAddr, recordings: Recordings) -> Target {
        Target { host: address.ip().to_string(), port: address.port(), recordings: Some(recordings) }
    }
}

/// A process with its job and the file of its results.
struct Running {
    job: Job,
    process: Process,
    results: PathBuf,
}

impl Evaluation<'_> {
    /// The numbers of the tasks.
    pub(super) fn tasks(&self) -> Vec<usize> {
        self.chosen.tasks.keys().copied().collect()
    }

    /// What is not finished.
    pub(super) fn missing(&self, parts: &Parts) -> Vec<Job> {
        parts.missing(&self.tasks(), self.starts.clone(), self.workers)
    }

    /// Runs what is not finished, and stores it.
    pub(super) fn run(&self, parts: &mut Parts, target: &Target) -> Result<(), Failure> {
        let mut queue = VecDeque::from(self.missing(parts));
        self.simulator.prepare()?;
        let work =
            tempfile::tempdir().map_err(|error| Problem::new(format!("cannot make a temporary folder: {error}")))?;
        let mut running: Vec<Running> = Vec::new();
        let mut progress = Progress::new(self, parts);
        while !queue.is_empty() || !running.is_empty() {
            if self.stop.load(Ordering::Relaxed) {
                // All at once, so that none waits for another.
                running.iter_mut().for_each(|one| one.process.ask_to_end());
                return Err(stopped());
            }
            while running.len() < self.workers {
                let Some(job) = queue.pop_front() else { break };
                running.push(self.start(job, work.path(), target)?);
            }
            let mut at = 0;
            while at < running.len() {
                match running[at].process.ended() {
                    Ok(None) => at += 1,
                    Ok(Some(status)) if status.success() => {
                        let Running { job, results, .. } = running.swap_remove(at);
                        parts.store(&job, self.played(&job, &results, target)?)?;
                        progress.show(self, parts);
                    }
                    ended => {
                        let one = running.swap_remove(at);
                        running.iter_mut().for_each(|one| one.process.ask_to_end());
                        let how = ended.map(|status| status.map(|status| status.to_string()).unwrap_or_default());
                        return Err(self.failed(one, how.unwrap_or_else(|error| error.to_string())));
                    }
                }
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn start(&self, job: Job, work: &Path, target: &Target) -> Result<Running, Failure> {
        let Job { task, ref starts } = job;
        let results = work.join(format!("{task}_{}.json", starts.start));
        let count = starts.end - starts.start;
        let LoopSettings { suite, init, prompt, replan, size, camera, seed, .. } = self.settings;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: String| arguments.extend([name.into(), value.into()]);
        add("--suite", suite.clone());
        add("--tasks", task.to_string());
        add("--episodes", count.to_string());
        add("--block", count.to_string());
        add("--first", starts.start.to_string());
        // The seed belongs to the start state, whichever process runs it.
        add("--seed", (seed + starts.start).to_string());
        add("--init", init.name().to_owned());
        add("--prompt", prompt.clone());
        add("--replan", replan.to_string());
        add("--size", size.to_string());
        add("--camera", camera.to_string());
        add("--workers", "1".to_owned());
        add("--host", target.host.clone());
        add("--port", target.port.to_string());
        if let Some(file) = self.compose {
            arguments.extend(["--compose".into(), file.into()]);
        }
        arguments.extend(["--out".into(), results.clone().into()]);
        if let Some(recordings) = &target.recordings {
            let filmed = self.starts.start..self.starts.start + self.videos;
            starts
                .clone()
                .filter(|start| filmed.contains(start))
                .for_each(|start| recordings.film(&self.label(task, start)));
        }
        let process = self.simulator.start(work, arguments, target.recordings.is_some())?;
        Ok(Running { job, process, results })
    }

    /// The name that the driver gives to an episode.
    fn label(&self, task: usize, start: u64) -> String {
        format!("{task}/{}", self.settings.seed + start)
    }

    /// The results of a job that has ended.
    fn played(&self, job: &Job, results: &Path, target: &Target) -> Result<Vec<Played>, Failure> {
        let episodes = simulator_results(results)?.episodes;
        let mut played: Vec<Played> = Vec::new();
        for one in episodes {
            let episode = one.record(job.starts.start);
            let taken = target.recordings.as_ref().and_then(|all| all.take(&self.label(episode.task, episode.start)));
            let (timings, film) = taken.map(|taken| (taken.timings.clone(), taken.developed())).unwrap_or_default();
            played.push(Played { episode, timings, film });
        }
        let found: Vec<(usize, u64)> = played.iter().map(|one| (one.episode.task, one.episode.start)).collect();
        let expected: Vec<(usize, u64)> = job.starts.clone().map(|start| (job.task, start)).collect();
        match found == expected {
            true => Ok(played),
            false => Err(Problem::new("the simulator returned other episodes than it was asked for")
                .fact("found", format!("{found:?} (task, start state)"))
                .fact("expected", format!("{expected:?}"))
                .into()),
        }
    }

    fn failed(&self, one: Running, how: String) -> Failure {
        let Job { task, starts } = &one.job;
        let what = format!("the simulator failed at task {task}, start states {} to {}", starts.start, starts.end - 1);
        Problem::new(what)
            .fact("ended", how)
            .list(one.process.said())
            .hint("finished episodes are kept: after a repair the same command continues")
            .into()
    }
}

/// Episodes and successes so far, on stderr: a bar, or a line for each finished task.
struct Progress {
    bar: Option<indicatif::ProgressBar>,
    told: Vec<usize>,
}

impl Progress {
    fn new(evaluation: &Evaluation<'_>, parts: &Parts) -> Progress {
        let tasks = evaluation.tasks();
        let all = tasks.len() as u64 * (evaluation.starts.end - evaluation.starts.start);
        let kept = parts.among(&tasks, evaluation.starts.clone()).count();
        say(&format!("{}: {} tasks, {all} episodes, {kept} of them finished", evaluation.name, tasks.len()));
        let mut progress = Progress { bar: bar(all, "{elapsed} {bar:30} {pos}/{len} {msg}"), told: Vec::new() };
        progress.told = tasks.into_iter().filter(|task| is_finished(evaluation, parts, *task)).collect();
        progress.show(evaluation, parts);
        progress
    }

    fn show(&mut self, evaluation: &Evaluation<'_>, parts: &Parts) {
        let tasks = evaluation.tasks();
        let count = |tasks: &[usize]| {
            let of: Vec<bool> = parts.among(tasks, evaluation.starts.clone()).map(|one| one.episode.success).collect();
            (of.iter().filter(|success| **success).count(), of.len())
        };
        let (successes, done) = count(&tasks);
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
            bar.set_message(format!("episodes, {successes} successes"));
        }
        for task in tasks {
            if self.told.contains(&task) || !is_finished(evaluation, parts, task) {
                continue;
            }
            self.told.push(task);
            let (of_task, all) = count(&[task]);
            let line = format!("task {task}: {of_task} of {all}; so far {successes} of {done} episodes succeeded");
            match &self.bar {
                Some(bar) => bar.suspend(|| say(&line)),
                None => say(&line),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn is_finished(evaluation: &Evaluation<'_>, parts: &Parts, task: usize) -> bool {
    evaluation.starts.clone().all(|start| parts.get(task, start).is_some())
}

fn stopped() -> Failure {
    Problem::new("stopped; finished episodes are kept").hint("the same command continues").into()
}
