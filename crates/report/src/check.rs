//! Contradictions within a report. The page is drawn nevertheless and lists them: a figure that is silently wrong is worse
//! than one with a warning.

use std::collections::BTreeSet;

use crate::figure::Figure;
use crate::motion::{ClusterMap, Span};
use crate::report::{Report, SCHEMA};

/// Problems of one kind that are listed before the rest is counted only.
const LISTED: usize = 5;

impl Report {
    /// Everything that contradicts itself, as sentences; empty for a sound report.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.schema != SCHEMA {
            problems.push(format!("The report has schema {}, this page draws {SCHEMA}.", self.schema));
        }
        if let Some(map) = &self.map {
            self.map_problems(map, &mut problems);
        }
        keep_few(self.episode_problems(), "episodes", &mut problems);
        keep_few(self.library_problems(), "the library", &mut problems);
        keep_few(self.candidate_problems(), "candidates", &mut problems);
        keep_few(self.metric_problems(), "held-out figures", &mut problems);
        for training in &self.training {
            for term in &training.terms {
                for series in [&term.training, &term.held_out] {
                    let (steps, values) = (series.steps.len(), series.values.len());
                    if steps != values {
                        let (phase, name) = (&training.name, &term.name);
                        problems.push(format!("Loss `{name}` of {phase} has {steps} steps and {values} values."));
                    }
                }
            }
        }
        if self.iterations.windows(2).any(|pair| pair[0].t >= pair[1].t) {
            problems.push("The iterations are not in ascending order.".to_owned());
        }
        problems
    }

    fn map_problems(&self, map: &ClusterMap, problems: &mut Vec<String>) {
        let segments = map.x.len();
        for (name, length, optional) in [
            ("y", map.y.len(), false),
            ("skill", map.skill.len(), false),
            ("phase", map.phase.len(), true),
            ("task", map.task.len(), true),
            ("dataset", map.dataset.len(), false),
            ("episode", map.episode.len(), false),
            ("first_frame", map.first_frame.len(), false),
            ("end_frame", map.end_frame.len(), false),
        ] {
            if length != segments && !(optional && length == 0) {
                problems.push(format!("The map has {segments} segments, but its `{name}` has {length} values."));
            }
        }
        for (name, labels, known) in [
            ("skill", &map.skill, self.skills.len()),
            ("phase", &map.phase, self.phases.len()),
            ("task", &map.task, self.tasks.len()),
        ] {
            let strangers = labels.iter().filter(|label| !is_known(**label, known)).count();
            if strangers > 0 {
                problems.push(format!("{strangers} labels of `{name}` in the map do not exist."));
            }
        }
    }

    fn episode_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for episode in &self.episodes {
            let sound = |spans: &[Span], known: usize| {
                spans
                    .iter()
                    .all(|span| span.first < span.end && span.end <= episode.frames && is_known(span.label, known))
                    && spans.windows(2).all(|pair| pair[0].end <= pair[1].first)
            };
            if !sound(&episode.skills, self.skills.len()) {
                problems.push(format!("The skills of episode {} overlap or lie outside it.", episode.index));
            }
            if !sound(&episode.phases, self.phases.len()) {
                problems.push(format!("The phases of episode {} overlap or lie outside it.", episode.index));
            }
            if !is_known(episode.task, self.tasks.len()) {
                problems.push(format!("Episode {} has a task that is not listed.", episode.index));
            }
            if usize::try_from(episode.dataset).map_or(true, |dataset| dataset >= self.run.datasets.len()) {
                problems.push(format!("Episode {} has a dataset that is not listed.", episode.index));
            }
        }
        problems
    }

    fn library_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for entry in &self.library {
            if !names.insert(entry.name.as_str()) {
                problems.push(format!("Two entries are called `{}`.", entry.name));
            }
        }
        for entry in &self.library {
            for call in entry.calls.iter().filter(|call| !names.contains(call.as_str())) {
                problems.push(format!("Entry `{}` calls `{call}`, which is not in the library.", entry.name));
            }
        }
        problems
    }

    fn candidate_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for candidate in &self.candidates {
            let (t, body) = (candidate.iteration, &candidate.body);
            let rejected = candidate.figures.iter().any(Figure::rejects);
            if candidate.admitted && rejected {
                problems.push(format!("Candidate `{body}` of t = {t} was admitted although a gate rejects it."));
            }
            if !candidate.admitted && !rejected {
                problems.push(format!("Candidate `{body}` of t = {t} was rejected although no gate rejects it."));
            }
            let gates: BTreeSet<&str> = candidate.figures.iter().map(|figure| figure.gate.as_str()).collect();
            if gates.len() != candidate.figures.len() {
                problems.push(format!("Candidate `{body}` of t = {t} has two figures of one gate."));
            }
        }
        problems
    }

    fn metric_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let arms: BTreeSet<&str> = self.arms.iter().map(|arm| arm.name.as_str()).collect();
        if arms.len() != self.arms.len() {
            problems.push("Two arms have the same name.".to_owned());
        }
        for metric in &self.metrics {
            for (arm, _) in metric.values.iter().filter(|(arm, _)| !arms.contains(arm.as_str())) {
                problems.push(format!("`{}` has a value for the arm `{arm}`, which is not listed.", metric.name));
            }
        }
        problems
    }
}

/// Whether a label is −1 or an index below `known`.
fn is_known(label: i64, known: usize) -> bool {
    label == -1 || usize::try_from(label).is_ok_and(|index| index < known)
}

fn keep_few(found: Vec<String>, what: &str, problems: &mut Vec<String>) {
    let more = found.len().saturating_sub(LISTED);
    problems.extend(found.into_iter().take(LISTED));
    if more > 0 {
        problems.push(format!("There are {more} more problems with {what}."));
    }
}
