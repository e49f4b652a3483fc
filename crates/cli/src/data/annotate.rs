//! `data annotate`: what a run found out about the episodes goes back into a dataset.

use std::collections::BTreeSet;
use std::path::Path;

use dataset::write::{Annotation, annotate};
use dataset::{Dataset, Overrides};
use serde::Deserialize;

use super::{counted, root};
use crate::args::AnnotateArgs;
use crate::failure::{Failure, Problem};
use crate::files;

/// The longest file of skills, in bytes.
const MAX_SKILLS_BYTES: u64 = 1 << 30;

/// A file of skills.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Skills {
    /// The column to write.
    feature: String,
    /// What the skills are called.
    names: Vec<String>,
    episodes: Vec<EpisodeSkills>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EpisodeSkills {
    episode: usize,
    skills: Vec<Stretch>,
}

/// A stretch of an episode: its first frame, the first one after it, and the skill's place in the names.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stretch {
    from: usize,
    to: usize,
    skill: usize,
}

/// Writes the skills into a copy.
pub(crate) fn run(options: &AnnotateArgs) -> Result<(), Failure> {
    let text = files::read_text(&options.skills, MAX_SKILLS_BYTES)?;
    let skills: Skills = serde_json::from_str(&text).map_err(|error| {
        Problem::new(format!("{} is no file of skills: {error}", files::shown(&options.skills)))
            .fact(
                "expected",
                r#"{"feature": "skill", "names": ["reach"], "episodes": [{"episode": 0, "skills": […]}]}"#,
            )
            .hint("run `refactor-vla data annotate --help` for an example")
    })?;
    let root = root(&options.dataset)?;
    let dataset = Dataset::open(root.clone(), &Overrides::default())?;
    let lengths: Vec<usize> = dataset.episodes().iter().map(|episode| episode.frames.len()).collect();
    let problems = problems(&skills, &lengths, dataset.info().feature(&skills.feature).is_some());
    if !problems.is_empty() {
        return Err(unfit(&options.skills, &options.dataset, problems));
    }
    let mut values = vec![-1; dataset.frames()];
    for EpisodeSkills { episode, skills } in &skills.episodes {
        let start = dataset.episodes()[*episode].frames.start;
        for Stretch { from, to, skill } in skills {
            values[start + from..start + to].fill(*skill as i64);
        }
    }
    let without = values.iter().filter(|value| **value < 0).count() as u64;
    let Skills { feature: key, names, .. } = skills;
    let line = format!(
        "wrote {} with `{key}`: {} over {}, {} without one\n",
        files::shown(&options.out),
        counted(names.len() as u64, "skill", "skills"),
        counted(lengths.len() as u64, "episode", "episodes"),
        counted(without, "frame", "frames"),
    );
    annotate(&root, &options.out, &Annotation { key, names, values, subtasks: !options.no_subtasks })?;
    files::print(line.as_bytes())
}

fn unfit(skills: &Path, dataset: &str, problems: Vec<String>) -> Failure {
    Problem::new(format!("{} does not fit `{dataset}`", files::shown(skills)))
        .list(problems)
        .hint("frames count from 0 in each episode, and `to` is the first frame after the skill")
        .into()
}

/// All that is wrong with the skills of a dataset.
fn problems(skills: &Skills, lengths: &[usize], taken: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let Skills { feature, names, episodes } = skills;
    if feature.is_empty() || feature.contains(['/', '\\']) {
        problems.push(format!("`feature` is `{feature}`, wanted a name of a column without `/`"));
    }
    if taken {
        problems.push(format!("the dataset has a column `{feature}` already; choose another `feature`"));
    }
    if names.is_empty() {
        problems.push("`names` is empty, wanted a name for each skill".to_string());
    }
    let mut known = BTreeSet::new();
    problems
        .extend(names.iter().filter(|name| !known.insert(*name)).map(|name| format!("two skills are called `{name}`")));
    let mut seen = BTreeSet::new();
    for EpisodeSkills { episode, skills } in episodes {
        if !seen.insert(episode) {
            problems.push(format!("episode {episode} occurs twice"));
        }
        match lengths.get(*episode) {
            None => problems.push(format!("there is no episode {episode}, the dataset has {}", lengths.len())),
            Some(length) => stretches(*episode, *length, skills, names.len(), &mut problems),
        }
    }
    problems
}

fn stretches(episode: usize, length: usize, skills: &[Stretch], names: usize, problems: &mut Vec<String>) {
    let mut ordered: Vec<Stretch> = skills.to_vec();
    ordered.sort_by_key(|stretch| (stretch.from, stretch.to));
    let mut end = 0;
    for Stretch { from, to, skill } in ordered {
        if from >= to || to > length {
            problems.push(format!("episode {episode} has {length} frames, a skill of it goes from {from} to {to}"));
        } else if from < end {
            problems
                .push(format!("two skills of episode {episode} overlap: one ends at {end}, the next starts at {from}"));
        }
        end = end.max(to);
        if skill >= names {
            problems.push(format!("episode {episode} has skill {skill}, there are {names} names"));
        }
    }
}
