//! Episodes summed up: success per task with Wilson's interval, steps and latency.

use std::collections::BTreeMap;

use clustering::{quantile, wilson_interval};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tasks::Chosen;
use super::{EpisodeRecord, LoopSettings, Played};

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopReport {
    /// What was evaluated: a suite, or the name of a file of compositions.
    pub name: String,
    /// What the episodes depend on.
    pub settings: LoopSettings,
    /// Processes of the simulator that ran at the same time, on which latencies depend.
    pub workers: usize,
    /// The first start state and the number of start states of each task.
    pub starts: (u64, u64),
    /// The run: its settings and the record of its policy; null for other servers.
    pub run: Value,
    /// The tasks in their order.
    pub tasks: Vec<TaskScore>,
    /// All tasks together.
    pub total: Totals,
    /// Milliseconds of a request by stage, measured by the server; empty for other servers.
    pub latency_ms: BTreeMap<String, Latency>,
    /// Every episode.
    pub episodes: Vec<EpisodeRecord>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskScore {
    /// Its number in the suite or file.
    pub task: usize,
    /// Its instruction.
    pub instruction: String,
    /// Episodes.
    pub episodes: u64,
    /// Episodes that succeeded.
    pub successes: u64,
    /// Their share.
    pub rate: f64,
    /// Wilson's 95 % interval of the rate.
    pub interval: (f64, f64),
    /// Mean control steps of an episode.
    pub mean_steps: f64,
    /// Mean number of tasks of a composition that were done in order.
    pub mean_done: Option<f64>,
}

/// All tasks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Episodes.
    pub episodes: u64,
    /// Episodes that succeeded.
    pub successes: u64,
    /// Wilson's 95 % interval of the rate over all episodes.
    pub interval: (f64, f64),
    /// Mean of the tasks' rates.
    pub mean_over_tasks: f64,
    /// Mean control steps of an episode.
    pub mean_steps: f64,
    /// Mean time of a request in milliseconds, measured by the clients.
    pub client_latency_ms: Option<f64>,
}

/// Times of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Requests that were measured.
    pub requests: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl LoopReport {
    /// Sums up episodes, which are in the order of tasks and start states.
    pub fn new<'a>(
        name: &str,
        settings: LoopSettings,
        run: Value,
        chosen: &Chosen,
        starts: (u64, u64),
        workers: usize,
        played: impl Iterator<Item = &'a Played>,
    ) -> LoopReport {
        let (mut episodes, mut times) = (Vec::new(), BTreeMap::<String, Vec<f64>>::new());
        for one in played {
            episodes.push(one.episode.clone());
            for (stage, values) in &one.timings {
                times.entry(stage.clone()).or_default().extend(values);
            }
        }
        let tasks: Vec<TaskScore> = chosen
            .tasks
            .iter()
            .filter_map(|(task, instruction)| {
                let of: Vec<&EpisodeRecord> = episodes.iter().filter(|one| one.task == *task).collect();
                (!of.is_empty()).then(|| score(*task, instruction, &of))
            })
            .collect();
        let latency_ms = times.into_iter().filter_map(|(stage, values)| Some((stage, latency(values)?))).collect();
        let total = totals(&tasks, &episodes);
        LoopReport { name: name.to_owned(), settings, workers, starts, run, tasks, total, latency_ms, episodes }
    }
}

/// The tables of some evaluations in Markdown.
pub fn markdown(reports: &[LoopReport]) -> String {
    let mut text = String::new();
    for report in reports {
        let LoopReport { name, settings, total, starts: (first, count), .. } = report;
        text += &format!("## {name}\n\n| task | success | rate | 95 % interval | steps | instruction |\n");
        text += "|---:|---:|---:|---:|---:|---|\n";
        for row in &report.tasks {
            let done = row.mean_done.map_or(String::new(), |done| format!(" ({done:.1} done)"));
            let TaskScore { task, successes, episodes, rate, interval, mean_steps, instruction, .. } = row;
            text += &format!(
                "| {task} | {successes}/{episodes} | {} | {} | {mean_steps:.1} | {}{done} |\n",
                percent(*rate),
                span(*interval),
                instruction.replace('|', "\\|")
            );
        }
        let rate = total.successes as f64 / total.episodes.max(1) as f64;
        text += &format!(
            "| all | {}/{} | {} | {} | {:.1} | mean over tasks {} |\n\n",
            total.successes,
            total.episodes,
            percent(rate),
            span(total.interval),
            total.mean_steps,
            percent(total.mean_over_tasks)
        );
        text += &format!(
            "Start states {first} to {}, `--replan {}`, prompt `{}`, {} simulators at once.",
            (first + count).saturating_sub(1),
            settings.replan,
            settings.prompt,
            report.workers
        );
        let stages: Vec<String> =
            report.latency_ms.iter().map(|(stage, time)| format!("{stage} {:.1}", time.p50)).collect();
        if !stages.is_empty() {
            text += &format!("\nLatency of the server, p50 in ms: {}.", stages.join(", "));
        }
        text += "\n\n";
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn score(task: usize, instruction: &str, of: &[&EpisodeRecord]) -> TaskScore {
    let (episodes, successes) = (of.len() as u64, of.iter().filter(|one| one.success).count() as u64);
    let done: Option<Vec<f64>> = of.iter().map(|one| one.done.map(|done| done as f64)).collect();
    TaskScore {
        task,
        instruction: instruction.to_owned(),
        episodes,
        successes,
        rate: successes as f64 / episodes as f64,
        interval: wilson_interval(successes, episodes),
        mean_steps: mean(of.iter().map(|one| one.steps as f64)).unwrap_or(0.0),
        mean_done: done.and_then(|done| mean(done.into_iter())),
    }
}

fn totals(tasks: &[TaskScore], episodes: &[EpisodeRecord]) -> Totals {
    let (count, successes) = (episodes.len() as u64, episodes.iter().filter(|one| one.success).count() as u64);
    Totals {
        episodes: count,
        successes,
        interval: wilson_interval(successes, count),
        mean_over_tasks: mean(tasks.iter().map(|task| task.rate)).unwrap_or(0.0),
        mean_steps: mean(episodes.iter().map(|one| one.steps as f64)).unwrap_or(0.0),
        client_latency_ms: mean(episodes.iter().filter_map(|one| one.latency_ms)),
    }
}

fn latency(mut values: Vec<f64>) -> Option<Latency> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let requests = values.len() as u64;
    (requests > 0).then(|| Latency { requests, p50: quantile(&values, 0.5), p95: quantile(&values, 0.95) })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn percent(rate: f64) -> String {
    format!("{:.1} %", 100.0 * rate)
}

fn span((low, high): (f64, f64)) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use super::super::{Answering, Init};
    use super::*;

    fn played(task: usize, start: u64, success: bool, done: Option<u64>) -> Played {
        let episode = EpisodeRecord {
            task,
            start,
            seed: start,
            success,
            steps: 100 + start,
            requests: 2,
            seconds: 0.5,
            latency_ms: Some(4.0),
            done,
        };
        Played { episode, timings: BTreeMap::from([("decoder".to_owned(), vec![1.0, 3.0])]), film: None }
    }

    fn report(done: Option<u64>) -> LoopReport {
        let settings = LoopSettings {
            suite: "goal".to_owned(),
            compose: None,
            prompt: "instruction".to_owned(),
            replan: 8,
            size: 128,
            init: Init::Fixed,
            camera: 128,
            seed: 9_000_000,
            emission: None,
            executor: None,
            policy: Answering::Run("abc".to_owned()),
            program: None,
        };
        let tasks = BTreeMap::from([(0, "turn on the stove".to_owned()), (4, "open|close".to_owned())]);
        let all =
            [played(0, 0, true, done), played(0, 1, true, done), played(4, 0, false, done), played(4, 1, true, done)];
        let chosen = Chosen { suite: "goal".to_owned(), tasks };
        LoopReport::new("goal", settings, Value::Null, &chosen, (0, 2), 3, all.iter())
    }

    #[test]
    fn rates_have_intervals_and_totals_are_over_tasks_and_episodes() {
        let report = report(None);
        assert_eq!((report.tasks[0].successes, report.tasks[1].rate, report.total.mean_over_tasks), (2, 0.5, 0.75));
        assert_eq!((report.total.successes, report.total.episodes, report.total.mean_steps), (3, 4, 100.5));
        assert_eq!(report.latency_ms["decoder"], Latency { requests: 8, p50: 2.0, p95: 3.0 });
        assert_eq!(report.tasks[0].mean_done, None);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<LoopReport>(&text).unwrap(), report);
    }

    #[test]
    fn the_table_in_markdown() {
        let text = markdown(&[report(None), report(Some(1))]);
        assert!(text.contains("| 0 | 2/2 | 100.0 % | 34.2 to 100.0 % | 100.5 | turn on the stove |\n"), "{text}");
        assert!(text.contains("| open\\|close (1.0 done) |\n"), "bars in cells are escaped: {text}");
        assert!(text.contains(" | mean over tasks 75.0 % |\n\nStart states 0 to 1, `--replan 8`"), "{text}");
        assert!(text.ends_with("Latency of the server, p50 in ms: decoder 2.0.\n"), "{text}");
    }
}
