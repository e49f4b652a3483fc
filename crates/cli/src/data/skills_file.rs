//! Skills from elsewhere, as a JSON file that `data annotate` writes into a dataset.

use std::collections::BTreeSet;
use std::path::Path;

use dataset::write::{Outline, vocabulary_file, wrong_key};
use dataset::{Info, Root};
use serde::Deserialize;

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

/// Skills of a file, laid out over the frames of a dataset.
pub(super) struct Read {
    /// The column to write.
    pub(super) key: String,
    /// What the skills are called.
    pub(super) names: Vec<String>,
    /// For each frame the place of its skill in the names, or −1.
    pub(super) values: Vec<i64>,
    /// Episodes that have skills.
    pub(super) annotated: usize,
}

/// Reads a file of skills for a dataset.
pub(super) fn read(file: &Path, dataset: &str, root: &Root, outline: &Outline) -> Result<Read, Failure> {
    let text = files::read_text(file, MAX_SKILLS_BYTES)?;
    let skills: Skills = serde_json::from_str(&text).map_err(|error| {
        Problem::new(format!("{} is not a file of skills: {error}", files::shown(file)))
            .fact(
                "expected",
                r#"{"feature": "skill", "names": ["reach"], "episodes": [{"episode": 0, "skills": […]}]}"#,
            )
            .hint("run `refactor-vla data annotate --help` for an example")
    })?;
    let lengths: Vec<usize> = outline.episodes.iter().map(|episode| episode.frames.len()).collect();
    let named = misnamed(&skills, root, &outline.info);
    let placed = misplaced(&skills, &lengths);
    if !named.is_empty() || !placed.is_empty() {
        return Err(unfit(file, dataset, named, placed));
    }
    let mut values = vec![-1; outline.frames()];
    for EpisodeSkills { episode, skills } in &skills.episodes {
        let start = outline.episodes[*episode].frames.start;
        for Stretch { from, to, skill } in skills {
            values[start + from..start + to].fill(*skill as i64);
        }
    }
    let annotated = skills.episodes.iter().filter(|episode| !episode.skills.is_empty()).count();
    let Skills { feature: key, names, .. } = skills;
    Ok(Read { key, names, values, annotated })
}

fn unfit(skills: &Path, dataset: &str, named: Vec<String>, placed: Vec<String>) -> Failure {
    let hint = match placed.is_empty() {
        true => format!("correct {} with an editor", files::shown(skills)),
        false => "frames count from 0 in each episode, and `to` is the first frame after the skill".to_string(),
    };
    let problems = named.into_iter().chain(placed);
    Problem::new(format!("{} does not fit `{dataset}`", files::shown(skills))).list(problems).hint(hint).into()
}

/// All that is wrong with the column's name and those of the skills.
fn misnamed(skills: &Skills, root: &Root, info: &Info) -> Vec<String> {
    let mut problems = Vec::new();
    let Skills { feature, names, .. } = skills;
    let file = vocabulary_file(feature);
    if let Some(expected) = wrong_key(feature) {
        problems.push(format!("its `feature` is `{}`, expected {expected}", feature.escape_debug()));
    } else if info.feature(feature).is_some() {
        problems.push(format!("the dataset has a column `{feature}` already; choose another `feature`"));
    } else if root.has(&file) {
        problems.push(format!("the dataset has a file `{file}` already; choose another `feature`"));
    }
    if names.is_empty() {
        problems.push("`names` is empty, expected a name for each skill".to_string());
    }
    let mut known = BTreeSet::new();
    problems
        .extend(names.iter().filter(|name| !known.insert(*name)).map(|name| format!("two skills are called `{name}`")));
    problems
}

/// All that is wrong with the places of the skills.
fn misplaced(skills: &Skills, lengths: &[usize]) -> Vec<String> {
    let mut problems = Vec::new();
    let Skills { names, episodes, .. } = skills;
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
