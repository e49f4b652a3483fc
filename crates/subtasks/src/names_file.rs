//! The vocabulary of subtasks as a file that people can edit: for each generated name the name to use.
//!
//! ```toml
//! [names]
//! # 12 subtasks, 340 frames
//! "reach for the black bowl" = "reach for the black bowl"
//!
//! [by_motion]
//! # 3 subtasks, 51 frames
//! "move about 10 cm left, gripper open" = "move about 10 cm left, gripper open"
//! ```
//! Names in `[by_motion]` say what the motion is, since the instruction does not fit it. Names that are not in the file stay as
//! they are, and several names may become one. A file that a person writes needs `[names]` alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use crate::annotate::{Annotated, Use};
use crate::error::{Error, Result};

/// Where the vocabulary of an annotated dataset is.
pub const NAMES: &str = "meta/subtasks.toml";

/// For each generated name the name to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    renamed: BTreeMap<String, String>,
    /// Names that were used before others took their place, by generated name.
    before: BTreeMap<String, String>,
    /// Generated names that say what the motion is.
    by_motion: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    names: BTreeMap<String, String>,
    #[serde(default)]
    by_motion: BTreeMap<String, String>,
}

impl Names {
    /// Reads a vocabulary.
    ///
    /// # Errors
    /// On text that is not such a file, and on empty names; all of them are reported.
    pub fn parse(text: &str) -> Result<Names> {
        let written: Written = toml::from_str(text).map_err(|error| Error::Names(vec![error.to_string()]))?;
        let by_motion = written.by_motion.keys().cloned().collect();
        let both = || written.names.iter().chain(&written.by_motion);
        let empty = both().filter(|(_, name)| name.trim().is_empty());
        let problems: Vec<String> = empty.map(|(generated, _)| format!("the name of `{generated}` is empty")).collect();
        match problems.is_empty() {
            true => {
                let renamed = both().map(|(generated, name)| (generated.clone(), name.trim().to_owned())).collect();
                Ok(Names { renamed, before: BTreeMap::new(), by_motion })
            }
            false => Err(Error::Names(problems)),
        }
    }

    /// Whether a name is used for what the motion is: generated so, and left so.
    pub fn is_by_motion(&self, used: &str) -> bool {
        self.by_motion.contains(used) && self.of(used) == used
    }

    /// The name to use for a generated one.
    pub fn of<'a>(&'a self, generated: &'a str) -> &'a str {
        self.renamed.get(generated).map_or(generated, String::as_str)
    }

    /// These names, and those of another vocabulary where these say nothing.
    #[must_use]
    pub fn over(&self, other: &Names) -> Names {
        let by_motion = self.by_motion.union(&other.by_motion).cloned().collect();
        let mut both = Names { renamed: other.renamed.clone(), before: other.renamed.clone(), by_motion };
        both.renamed.extend(self.renamed.clone());
        both
    }

    /// Whether a generated name is written so: as it was generated, as it is used, or as it was used before.
    pub fn knows(&self, generated: &str, written: &str) -> bool {
        written == generated
            || written == self.of(generated)
            || self.before.get(generated).is_some_and(|before| before == written)
    }

    /// Names of the file that differ from the generated ones and were never generated: slips of an editor.
    pub fn unused(&self, annotated: &Annotated) -> Vec<&str> {
        let changed = self.renamed.iter().filter(|(generated, name)| generated != name);
        changed.map(|(generated, _)| generated.as_str()).filter(|it| !annotated.vocabulary.contains_key(*it)).collect()
    }
}

/// The vocabulary of an annotation as a file, with how often each name occurs. Names that a person gave and that are not used
/// this time are kept at its end.
pub fn names_file(annotated: &Annotated, names: &Names) -> String {
    let mut text = "\
# Names of subtasks: on the left as generated, on the right as used. Change the right side and run
#   refactor-vla annotate DATASET OUT --names THIS_FILE
# Several names may become one.

[names]
"
    .to_owned();
    let line = |generated: &str, used: &Use| {
        let subtasks = if used.subtasks == 1 { "subtask" } else { "subtasks" };
        let name = annotated.names.get(used.name).map_or("", String::as_str);
        let (generated, name) = (quoted(generated), quoted(name));
        format!("# {} {subtasks}, {} frames\n{generated} = {name}\n", used.subtasks, used.frames)
    };
    let of = |by_motion: bool| annotated.vocabulary.iter().filter(move |(_, used)| used.by_motion == by_motion);
    text.extend(of(false).map(|(generated, used)| line(generated, used)));
    for generated in names.unused(annotated) {
        let _ = writeln!(text, "# not used\n{} = {}", quoted(generated), quoted(names.of(generated)));
    }
    if of(true).next().is_some() {
        text.push_str("\n# Names after the motion, where the instruction does not fit it.\n[by_motion]\n");
    }
    text.extend(of(true).map(|(generated, used)| line(generated, used)));
    text
}

/// A basic string of TOML, which may be a key too.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", letter as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_read_as_it_was_written() {
        let odd = ["grasp \"it\"", "open\\close", "two\nlines", "größer · 12 cm", "it's", ""];
        let mut annotated = Annotated::default();
        for (at, generated) in odd.iter().enumerate() {
            annotated.names.push(format!("name {generated}").trim().to_owned());
            annotated
                .vocabulary
                .insert((*generated).to_owned(), Use { name: at, subtasks: at, frames: 3, by_motion: at % 2 == 1 });
        }
        let kept = Names::parse("[names]\n\"gone\" = \"kept\"").unwrap();
        let written = names_file(&annotated, &kept);
        let (instructed, moved) = written.split_once("\n[by_motion]\n").unwrap();
        assert!(moved.contains("# 1 subtask, 3 frames\n\"open"), "{written}");
        assert!(instructed.contains("# 2 subtasks, 3 frames\n"), "{written}");
        let names = Names::parse(&written).unwrap();
        assert_eq!(names.of("gone"), "kept");
        for generated in odd {
            assert_eq!(names.of(generated), format!("name {generated}").trim());
        }
        assert_eq!(names.of("other"), "other");
        assert_eq!(names.unused(&annotated), ["gone"]);
    }

    #[test]
    fn names_after_the_motion_are_known_as_such_until_a_person_changes_them() {
        let text = "[names]\n\"a\" = \"b\"\n[by_motion]\n\"move\" = \"move\"\n\"turn\" = \"unscrew\"\n";
        let names = Names::parse(text).unwrap();
        assert!(names.is_by_motion("move") && names.of("turn") == "unscrew");
        assert!(["turn", "unscrew", "a", "b"].iter().all(|name| !names.is_by_motion(name)));
        let over = Names::parse("[names]\n\"move\" = \"carry\"\n").unwrap().over(&names);
        assert!(!over.is_by_motion("move") && !over.is_by_motion("carry"));
    }

    #[test]
    fn a_vocabulary_goes_over_another_one() {
        let own = Names::parse("[names]\n\"a\" = \"mine\"\n\"b\" = \" spaced \"\n").unwrap();
        let both = Names::parse("[names]\n\"a\" = \"yours\"\n").unwrap().over(&own);
        assert_eq!((both.of("a"), both.of("b"), both.of("c")), ("yours", "spaced", "c"));
        assert!(["a", "mine", "yours"].iter().all(|name| both.knows("a", name)));
        assert!(!both.knows("a", "other") && !both.knows("c", "mine"));
    }

    #[test]
    fn what_is_no_vocabulary_is_refused() {
        let refused = |text: &str| Names::parse(text).unwrap_err().to_string();
        assert!(refused("names = 3").contains("names"));
        assert!(refused("[name]\n\"a\" = \"b\"").contains("unknown field `name`"));
        assert!(refused("[names]\n\"a\" = \" \"\n\"b\" = \"\"").contains("`b` is empty"));
        let names = Names::parse("[names]\n\"gasp\" = \"grasp\"\n\"same\" = \"same\"").unwrap();
        assert_eq!(names.unused(&Annotated::default()), ["gasp"]);
    }
}
