//! A run's skills and library as the classes and names of an annotation.
//!
//! Episodes that the run has seen get the segments and skills that the run gave them; others are cut with the settings of the
//! run, and each segment gets the skill that replays its actions best. Where the skills of some segments are those of a library
//! entry, in its order, the segments together get the name of the entry.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset::{Dataset, EpisodeId};
use serde::Deserialize;
use skills::{ActionLayout, Episode, ScoredSegment, segment_scored};
use subtasks::annotate::Cutter;

use super::annotation::{NearestSkill, RunSkills};
use crate::error::Result;
use crate::run_dir::read_json;

/// The file of a run with its library.
pub const LIBRARY: &str = "library.json";

/// Cuts episodes as a run does.
pub struct RunCutter<'a> {
    run: &'a RunSkills,
    layout: ActionLayout,
    names: Vec<String>,
    /// Library entries over two skills or more: the skills in order, and the name.
    entries: Vec<(Vec<usize>, String)>,
    /// What a user should know.
    pub notes: Vec<String>,
    seen: AtomicUsize,
    labelled: AtomicUsize,
}

#[derive(Deserialize)]
struct Library {
    abstractions: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    body: String,
}

impl<'a> RunCutter<'a> {
    /// Prepares a run for a dataset, of which a sample is given. A run without a library has skills only.
    ///
    /// # Errors
    /// If the dataset's actions are not those that the run's skills are made of, or the library cannot be read.
    pub fn new(run: &'a RunSkills, directory: &Path, sample: &Dataset) -> Result<RunCutter<'a>> {
        let found = run.annotate(sample, &NearestSkill(&run.alphabet))?;
        let library = directory.join(LIBRARY);
        let library: Option<Library> = if library.is_file() { Some(read_json(&library)?) } else { None };
        let primitives: Vec<&str> = run.alphabet.skills.iter().map(|skill| skill.name.as_str()).collect();
        let entries =
            library.map_or_else(Vec::new, |library| entries(&library.abstractions, &primitives, &found.names));
        Ok(RunCutter {
            run,
            layout: ActionLayout { fps: sample.info().fps, ..run.alphabet.layout.clone() },
            names: found.names,
            entries,
            notes: found.notes,
            seen: AtomicUsize::new(0),
            labelled: AtomicUsize::new(0),
        })
    }

    /// Episodes that the run has seen, and episodes whose segments were labelled anew.
    pub fn episodes(&self) -> (usize, usize) {
        (self.seen.load(Ordering::Relaxed), self.labelled.load(Ordering::Relaxed))
    }

    fn skill(&self, motions: &Episode, rows: &Range<usize>) -> subtasks::Result<Option<usize>> {
        Ok(self.run.alphabet.nearest(&motions.motion(rows)?).map(|skill| skill.0))
    }
}

impl Cutter for RunCutter<'_> {
    fn layout(&self) -> &ActionLayout {
        &self.layout
    }

    fn class_names(&self) -> &[String] {
        &self.names
    }

    fn cut(
        &self,
        dataset: &Dataset,
        episode: EpisodeId,
        motions: &Episode,
    ) -> subtasks::Result<Vec<(ScoredSegment, Option<usize>)>> {
        let own = segment_scored(motions, &self.layout, &self.run.segments)?;
        let known = self.run.annotation.as_ref().and_then(|run| run.episodes.get(&dataset.contents(episode)));
        let fits = |known: &&Vec<(usize, usize)>| known.last().is_some_and(|(end, _)| *end == motions.len());
        if let Some(known) = known.filter(fits) {
            self.seen.fetch_add(1, Ordering::Relaxed);
            let starts = std::iter::once(0).chain(known.iter().map(|(end, _)| *end));
            let segments = starts.zip(known).map(|(start, (end, skill))| {
                let confidence = own.iter().find(|one| one.rows.start == start).map_or(1.0, |one| one.confidence);
                (ScoredSegment { rows: start..*end, confidence }, Some(*skill))
            });
            return Ok(segments.filter(|(segment, _)| !segment.rows.is_empty()).collect());
        }
        self.labelled.fetch_add(1, Ordering::Relaxed);
        let with_skill = |segment: ScoredSegment| {
            let skill = self.skill(motions, &segment.rows)?;
            Ok((segment, skill))
        };
        own.into_iter().map(with_skill).collect()
    }

    fn class_of(&self, motions: &Episode, rows: &Range<usize>) -> subtasks::Result<Option<usize>> {
        self.skill(motions, rows)
    }

    fn phrases(&self, classes: &[Option<usize>]) -> Vec<(Range<usize>, String)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < classes.len() {
            let matches = |skills: &[usize]| {
                let here = classes.get(at..at + skills.len());
                here.is_some_and(|here| here.iter().zip(skills).all(|(class, skill)| *class == Some(*skill)))
            };
            // The longest entry, the first of equals.
            let mut best: Option<&(Vec<usize>, String)> = None;
            for entry in self.entries.iter().filter(|(skills, _)| matches(skills)) {
                if best.is_none_or(|best| entry.0.len() > best.0.len()) {
                    best = Some(entry);
                }
            }
            match best {
                Some((skills, name)) => {
                    found.push((at..at + skills.len(), name.clone()));
                    at += skills.len();
                }
                None => at += 1,
            }
        }
        found
    }
}

/// The entries that name two skills or more and nothing that happens at times only.
fn entries(library: &[Entry], primitives: &[&str], names: &[String]) -> Vec<(Vec<usize>, String)> {
    let mut found = Vec::new();
    for entry in library {
        let Some(skills) = skills_of(&entry.name, library, primitives, 0) else { continue };
        if skills.len() < 2 {
            continue;
        }
        let words = |skill: &usize| {
            let name = names.get(*skill).map_or("", String::as_str);
            name.split_once(" · ").map_or(name, |(_, words)| words).to_owned()
        };
        let mut steps: Vec<String> = skills.iter().map(words).collect();
        steps.dedup();
        if steps.len() > 3 {
            steps.splice(1..steps.len() - 1, ["…".to_owned()]);
        }
        found.push((skills, format!("{} · {}", entry.name, steps.join(", then "))));
    }
    found
}

/// Entries call each other no deeper.
const MAX_DEPTH: usize = 32;

/// The skills that an entry names, in the order of its text, with those of the entries that it calls. What comes after it as an
/// argument comes last in its body, so the text is in the order of execution. `None` for repetitions and branches.
fn skills_of(name: &str, library: &[Entry], primitives: &[&str], depth: usize) -> Option<Vec<usize>> {
    let body = &library.iter().find(|entry| entry.name == name)?.body;
    let mut found = Vec::new();
    for word in body.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')) {
        match primitives.iter().position(|primitive| *primitive == word) {
            Some(skill) => found.push(skill),
            None if word == "repeat" || word == "branch" => return None,
            None if depth < MAX_DEPTH && library.iter().any(|entry| entry.name == word) => {
                found.extend(skills_of(word, library, primitives, depth + 1)?);
            }
            None => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_skills_that_they_name_in_order() {
        let entry = |name: &str, body: &str| Entry { name: name.to_owned(), body: body.to_owned() };
        let library = [
            entry("fn_0", r"\x0. \x1. seq[skill_1 x0, skill_1_open, x1]"),
            entry("fn_1", r"\x0. fn_0 joints[1, 2] (seq[skill_0 x0, skill_2])"),
            entry("fn_2", r#"seq[pick "skill", place "bowl" (on "plate")]"#),
            entry("fn_3", "repeat(seq[skill_0, skill_1], 3)"),
        ];
        let primitives = ["skill_0", "skill_1", "skill_1_open", "skill_2"];
        let names = ["skill_0 · reach", "skill_1 · lift", "skill_1_open · open gripper", "skill_2"].map(str::to_owned);
        let found = entries(&library, &primitives, &names);
        assert_eq!(
            found,
            [
                (vec![1, 2], "fn_0 · lift, then open gripper".to_owned()),
                (vec![1, 2, 0, 3], "fn_1 · lift, then …, then skill_2".to_owned()),
            ]
        );
    }
}
