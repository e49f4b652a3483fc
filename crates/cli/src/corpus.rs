//! Where corpora come from: a JSON array of strings in a file or on stdin, or the instructions embedded in the binary.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use compression::Corpus;
use language::{TermId, instruction, parse, read};
use serde::Deserialize;
use serde_json::Value;

use crate::args::Format;
use crate::failure::{Failure, Problem};
use crate::files::{read_text, shown};
use crate::vocabulary::Vocabulary;

/// The largest corpus file, in bytes.
const MAX_CORPUS_BYTES: u64 = 1 << 30;

/// How often each task occurs in an embedded corpus.
const EPISODES: usize = 20;

/// The embedded corpora: name and suites.
const EMBEDDED: [(&str, &[&str]); 2] = [
    ("libero_object", &["libero_object"]),
    ("libero", &["libero_object", "libero_spatial", "libero_goal", "libero_10"]),
];

/// The instructions of LIBERO by suite.
const INSTRUCTIONS: &str = include_str!("../../language/fixtures/libero_instructions.json");

/// The longest piece of a program that an error message quotes, in characters.
const MAX_QUOTED: usize = 48;

/// Reads a corpus: `embedded:NAME`, a file, or stdin for `-`.
pub(crate) fn load(name: &str, format: Format) -> Result<Corpus, Failure> {
    if let Some(name) = name.strip_prefix("embedded:") {
        let instructions = embedded(name)?;
        let repeated: Vec<&str> =
            instructions.iter().flat_map(|text| std::iter::repeat_n(text.as_str(), EPISODES)).collect();
        return from_language(&repeated, Format::Instruction, name);
    }
    let path = Path::new(name);
    let text = read_text(path, MAX_CORPUS_BYTES)?;
    let programs = strings(text.trim_start_matches('\u{feff}'), path)?;
    let programs: Vec<&str> = programs.iter().map(|program| &*program.0).collect();
    let format = match format {
        Format::Auto => detect(&programs),
        stated => stated,
    };
    match format {
        Format::Sexpr => Corpus::from_sexprs(&programs).map_err(|error| {
            let problems = error.problems.iter().map(|(at, problem)| (*at, problem.to_string()));
            bad_programs(&programs, problems, format, name).into()
        }),
        other => from_language(&programs, other, name),
    }
}

/// A string of the corpus, borrowed from the file's text where it has no escapes.
#[derive(Deserialize)]
struct Program<'t>(#[serde(borrow)] Cow<'t, str>);

fn strings<'t>(text: &'t str, path: &Path) -> Result<Vec<Program<'t>>, Failure> {
    let expected = "a JSON array of strings, such as `[\"(f x)\", \"(f y)\"]`";
    let problem = |message: String| Problem::new(message).fact("expected", expected);
    let programs: Vec<Program<'t>> = match serde_json::from_str(text) {
        Ok(programs) => programs,
        // Reading once more, as any JSON, tells what is there instead.
        Err(_) => {
            return Err(match serde_json::from_str::<Value>(text) {
                Err(error) => problem(format!("{} is not JSON: {error}", shown(path))).into(),
                Ok(Value::Array(elements)) => {
                    let wrong = elements
                        .iter()
                        .enumerate()
                        .filter(|(_, element)| !element.is_string())
                        .map(|(at, element)| format!("[{at}]  {}", kind(element)));
                    problem(format!("{} has elements that are not strings", shown(path))).list(wrong).into()
                }
                Ok(other) => {
                    let problem = problem(format!("{} is {}, not an array", shown(path), kind(&other)));
                    match array_field(&other) {
                        Some(field) => {
                            problem.hint(format!("its field `{field}` is an array of strings; give only that")).into()
                        }
                        None => problem.into(),
                    }
                }
            });
        }
    };
    match programs.is_empty() {
        true => Err(problem(format!("{} has no programs", shown(path))).into()),
        false => Ok(programs),
    }
}

/// The first field that could be the corpus.
fn array_field(value: &Value) -> Option<&String> {
    let is_corpus = |value: &Value| value.as_array().is_some_and(|array| array.iter().all(Value::is_string));
    let mut fields = value.as_object()?.iter();
    fields.find(|(_, value)| is_corpus(value)).map(|(field, _)| field)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whatever most of the strings look like, so that a few broken ones are reported as what they were meant to be.
fn detect(programs: &[&str]) -> Format {
    let looks = programs.iter().filter(|program| looks_like_sexpr(program)).count();
    match 2 * looks >= programs.len() {
        true => Format::Sexpr,
        false => Format::Auto,
    }
}

/// S-expressions have parentheses, or are one word; what only our programs have is brackets, commas, quotes and λ.
fn looks_like_sexpr(program: &str) -> bool {
    let program = program.trim();
    let ours = |c: char| matches!(c, '[' | ']' | ',' | '"' | '\\' | 'λ');
    !program.contains(ours) && (program.starts_with('(') || !program.contains(char::is_whitespace))
}

/// A corpus of programs of our language; with [`Format::Auto`] each text is a program or an instruction.
fn from_language(texts: &[&str], format: Format, name: &str) -> Result<Corpus, Failure> {
    let mut known = Vocabulary::new(None)?;
    let mut understood: BTreeMap<&str, Result<TermId, String>> = BTreeMap::new();
    let mut programs = Vec::with_capacity(texts.len());
    let mut problems = Vec::new();
    for (at, &text) in texts.iter().enumerate() {
        match understood.entry(text).or_insert_with(|| understand(text, format, &mut known)) {
            Ok(term) => programs.push(*term),
            Err(message) => problems.push((at, message.clone())),
        }
    }
    if !problems.is_empty() {
        return Err(bad_programs(texts, problems, format, name).into());
    }
    Corpus::from_programs(&known.store, &known.signature, &programs).map_err(|error| {
        let problems = error.problems.iter().map(|(at, problem)| (*at, problem.to_string()));
        bad_programs(texts, problems, format, name).into()
    })
}

fn understand(text: &str, format: Format, known: &mut Vocabulary) -> Result<TermId, String> {
    let found = understand_with(text, format, known);
    if found.is_ok() {
        return found;
    }
    // Only a corpus that says more than LIBERO pays for the primitives of general instructions.
    known.signature.declare_general(&mut known.store);
    understand_with(text, format, known)
}

fn understand_with(text: &str, format: Format, known: &mut Vocabulary) -> Result<TermId, String> {
    let Vocabulary { store, signature } = known;
    let is_instruction = match format {
        Format::Instruction => true,
        Format::Auto => !text.contains(['[', '(', '"', '\\', 'λ']) && parse(store, signature, text).is_err(),
        Format::Program | Format::Sexpr => false,
    };
    if is_instruction {
        return instruction::program(text, store, signature).map_err(|error| error.to_string());
    }
    let joined = |report: language::Report| {
        let messages: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
        messages.join("; ")
    };
    read(store, signature, text, None).map(|typed| typed.term).map_err(joined)
}

fn bad_programs(
    texts: &[&str],
    problems: impl IntoIterator<Item = (usize, String)>,
    format: Format,
    name: &str,
) -> Problem {
    let listed: Vec<String> = problems
        .into_iter()
        .map(|(at, message)| format!("[{at}]  {}: {message}", quoted(texts.get(at).unwrap_or(&""))))
        .collect();
    let (noun, hint) = match format {
        Format::Sexpr => {
            ("an s-expression", "a constant is a word, an application `(f x y)`, a lambda `(lam e)`, its variable `$0`")
        }
        Format::Program => ("a program", "`refactor-vla program check EXPR` shows where a program is wrong"),
        Format::Instruction => {
            ("an instruction", "`refactor-vla program from-instruction TEXT` shows where an instruction is wrong")
        }
        Format::Auto => (
            "a program or instruction",
            "`refactor-vla program check EXPR` and `program from-instruction TEXT` show where",
        ),
    };
    let (bad, all, from) = (listed.len(), texts.len(), shown(Path::new(name)));
    Problem::new(format!("{bad} of the {all} strings of {from} cannot be read as {noun}")).list(listed).hint(hint)
}

/// The beginning of a text, on one line.
fn quoted(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_QUOTED).collect();
    match text.chars().nth(MAX_QUOTED) {
        Some(_) => format!("`{line}…`"),
        None => format!("`{line}`"),
    }
}

fn embedded(name: &str) -> Result<Vec<String>, Failure> {
    let Some((_, suites)) = EMBEDDED.iter().find(|(known, _)| *known == name) else {
        let names: Vec<String> = EMBEDDED.iter().map(|(name, _)| format!("`embedded:{name}`")).collect();
        return Err(Problem::new(format!("there is no embedded corpus `{name}`"))
            .fact("expected", names.join(" or "))
            .hint("a file is named by its path, without `embedded:`")
            .into());
    };
    let mut all: BTreeMap<String, Vec<String>> = serde_json::from_str(INSTRUCTIONS)
        .map_err(|error| Problem::new(format!("the embedded instructions are broken: {error}")))?;
    Ok(suites.iter().flat_map(|&suite| all.remove(suite).unwrap_or_default()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_corpora_have_their_tasks() {
        assert_eq!(embedded("libero_object").unwrap().len(), 10);
        assert_eq!(embedded("libero").unwrap().len(), 40);
        assert!(embedded("libero_90").is_err());
    }

    #[test]
    fn formats_are_told_apart() {
        for text in ["(f x)", "x", "(lam (f $0))", "(f x"] {
            assert!(looks_like_sexpr(text), "{text}");
        }
        for text in [r#"(\x. pick x) "a""#, "seq[]", "turn on the stove", "move still", r#"pick "a""#] {
            assert!(!looks_like_sexpr(text), "{text}");
        }
        assert_eq!(detect(&["(f x)", "(f y)", "f y)"]), Format::Sexpr);
        assert_eq!(detect(&["turn on the stove", "(f y)", "seq[]"]), Format::Auto);
    }

    #[test]
    fn programs_and_instructions_mix() {
        let mut known = Vocabulary::new(None).unwrap();
        let [spoken, written] =
            ["turn on the stove", r#"turn_on "stove""#].map(|text| understand(text, Format::Auto, &mut known).unwrap());
        assert_eq!(spoken, written);
        assert!(understand("move still", Format::Auto, &mut known).is_ok());
    }

    #[test]
    fn quotations_are_short_and_on_one_line() {
        assert_eq!(quoted("a\nb"), "`a b`");
        assert_eq!(quoted(&"é".repeat(60)).chars().count(), MAX_QUOTED + 3);
    }
}
