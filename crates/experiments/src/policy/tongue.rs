//! The language of a policy: its primitives, skills, library and tokens, and what can be said about a program in it.
//!
//! A server runs for months, and terms are never freed, so the store of a [`Tongue`] does not grow: programs of clients and of
//! the emitter live in a clone for as long as they are looked at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use compression::Library;
use language::{
    EvaluateError, Event, GENERAL_PRIM_TYPES, Limits, PrefixChecker, Report, Signature, Term, TermId, TermStore, Token,
    evaluate, evaluate_within, parse, print, read, term_of,
};
use models::Vocabulary;
use models::vocabulary::{BoundVocabulary, Piece, VectorKind};
use skills::{Argument, SkillAlphabet, SkillCall, SkillId};

use super::record::TaskRecord;
use crate::cycle::corpus::{GOAL, INSTRUCTED};
use crate::cycle::distances::Distances;
use crate::cycle::driver::LIBRARY;
use crate::cycle::plan::{Plan, Planner, nothing};
use crate::error::{Error, Result};
use crate::run_dir::read_json;

/// The most calls that a client's program may make. All clients wait while a program is read, and `repeat` writes many calls in
/// a few bytes.
pub(super) const MOST_CALLS: usize = 1000;

/// The most bytes of these calls as text. They are kept for as long as the program is executed.
const MOST_BYTES: usize = 1 << 16;

/// The most steps of normalisation of a client's program, which may write a large argument in few bytes as well.
const MOST_STEPS: u64 = 1 << 18;

/// A program is shown with other words if its targets are off by no more than this.
const SHOWN: f64 = 1e-4;

/// The language of a policy.
pub(super) struct Tongue {
    pub(super) store: TermStore,
    pub(super) signature: Signature,
    pub(super) bound: BoundVocabulary,
    /// Which numbers an emitter may write as distances.
    pub(super) distances: Distances,
    pub(super) alphabet: SkillAlphabet,
    pub(super) library: Library,
    /// Spellings of the vocabulary, for messages.
    vocabulary: Vocabulary,
    /// Instructions by the calls of their task's program.
    known: BTreeMap<Vec<String>, String>,
    /// The most calls of a known program.
    longest: usize,
}

/// A program as it is shown and executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    /// Its text.
    pub(super) text: String,
    /// The calls of skills that it makes; empty if it calls anything else.
    pub(super) calls: Vec<SkillCall>,
    /// For each call its text.
    pub(super) call_texts: Vec<String>,
    /// For each call the bytes of `text` that make it.
    pub(super) spans: Vec<Range<usize>>,
    /// The library entries in it.
    pub(super) entries: Vec<String>,
}

/// A step of a program that a client sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A task that training had an instruction for.
    Known {
        /// The instruction.
        instruction: String,
        /// Its program.
        text: String,
    },
    /// A task that training did not have, as the beginning of what the emitter writes.
    New {
        /// Its program.
        text: String,
        /// Its tokens, with the separator.
        beginning: Vec<Piece>,
    },
    /// Skills with their targets, which need no emitter.
    Motion {
        /// The program.
        written: Written,
    },
}

/// Why a program is not executed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// It is not well-typed.
    Program(Report),
    /// Another reason, in words.
    Other(String),
}

impl Tongue {
    /// The language of a run's policy.
    pub(super) fn load(
        run: &Path,
        alphabet: SkillAlphabet,
        vocabulary: &Vocabulary,
        tasks: &[TaskRecord],
    ) -> Result<Tongue> {
        let broken =
            |error: &dyn std::fmt::Display| Error::Mismatch(format!("the run's language cannot be read: {error}"));
        let mut store = TermStore::new();
        let mut base = Signature::standard(&mut store);
        let has = |name: &str| vocabulary.spellings().iter().any(|spelling| is_call_of(spelling, name));
        if GENERAL_PRIM_TYPES.iter().any(|(name, ..)| has(name)) {
            base.declare_general(&mut store);
        }
        let (name, scheme, meaning) = INSTRUCTED;
        base.declare(&mut store, name, scheme, meaning).map_err(|error| broken(&error))?;
        alphabet.declare(&mut store, &mut base)?;
        let path = run.join(LIBRARY);
        let library: Library = if path.is_file() { read_json(&path)? } else { Library::new() };
        // A policy without the library is served without it.
        let library = if library.entries().iter().all(|entry| has(&entry.name)) { library } else { Library::new() };
        let signature = library.define(&mut store, &base)?;
        let bound = vocabulary.bind(&mut store)?;
        let mut known = BTreeMap::new();
        for task in tasks {
            let mut scratch = store.clone();
            if let Ok(typed) = read(&mut scratch, &signature, &task.program, Some(GOAL))
                && let Ok(trace) = evaluate(&mut scratch, &signature, typed.term)
                && let Some(calls) = texts(&scratch, &trace)
            {
                known.entry(calls).or_insert_with(|| task.instruction.clone());
            }
        }
        let longest = known.keys().map(Vec::len).max().unwrap_or(0);
        let distances = Distances::new(&bound, &alphabet.layout);
        Ok(Tongue {
            store,
            signature,
            bound,
            distances,
            alphabet,
            library,
            vocabulary: vocabulary.clone(),
            known,
            longest,
        })
    }

    /// What checks emitted prefixes.
    pub(super) fn checker(&self) -> PrefixChecker {
        PrefixChecker::new(&self.store, &self.signature, GOAL)
    }

    /// A program that the emitter wrote, by its tokens.
    pub(super) fn written(&self, tokens: &[Token]) -> Written {
        let mut store = self.store.clone();
        let Ok(term) = term_of(&mut store, tokens) else { return Written::default() };
        self.look_at(&mut store, term)
    }

    /// A program of this language as it is shown; nothing if it is not of this language.
    pub(super) fn read(&self, text: &str) -> Written {
        let mut store = self.store.clone();
        match read(&mut store, &self.signature, text, Some(GOAL)) {
            Ok(typed) => self.look_at(&mut store, typed.term),
            Err(_) => Written::default(),
        }
    }

    /// A motion with other targets, as it is shown: in the words of `motion` if its own targets can be replaced there one by one,
    /// and without the library otherwise.
    pub(super) fn moved(&self, motion: &str, calls: &[SkillCall]) -> Result<Written> {
        let own = self.read(motion);
        let numbers = |calls: &[SkillCall]| -> Vec<Vec<f64>> {
            let arguments = calls.iter().flat_map(|call| &call.arguments);
            arguments
                .map(|argument| match argument {
                    Argument::To(numbers) | Argument::By(numbers) => numbers.clone(),
                })
                .collect()
        };
        let (before, after) = (numbers(&own.calls), numbers(calls));
        if before.len() == after.len()
            && let Some(mut pieces) = self.pieces(motion)
        {
            self.replace_poses(&mut pieces, &before, &after);
            if let Some(written) = self.bound.decode(&pieces).first().map(|tokens| self.written(tokens)) {
                let skills = |calls: &[SkillCall]| -> Vec<SkillId> { calls.iter().map(|call| call.skill).collect() };
                let near = |(one, other): (&Vec<f64>, &Vec<f64>)| {
                    one.iter().zip(other).all(|(one, other)| (one - other).abs() <= SHOWN * (1.0 + other.abs()))
                };
                let found = numbers(&written.calls);
                if skills(&written.calls) == skills(calls) && found.iter().zip(&after).all(near) {
                    return Ok(written);
                }
            }
        }
        let mut store = self.store.clone();
        let term = self.alphabet.program(&mut store, calls)?;
        Ok(self.look_at(&mut store, term))
    }

    /// The tokens of a program.
    fn pieces(&self, text: &str) -> Option<Vec<Piece>> {
        let mut store = self.store.clone();
        let term = read(&mut store, &self.signature, text, Some(GOAL)).ok()?.term;
        Some(self.bound.encode(&store, &[term]).pieces)
    }

    /// Puts other numbers in the place of poses that a program writes out.
    fn replace_poses(&self, pieces: &mut [Piece], before: &[Vec<f64>], after: &[Vec<f64>]) {
        let Some(first) = VectorKind::Pose.symbols().next().map(|symbol| self.bound.id(symbol)) else { return };
        let starts: Vec<usize> = (0..pieces.len()).filter(|at| pieces[*at].id == first).collect();
        let mut is_taken = vec![false; before.len()];
        for start in starts {
            let pose = &mut pieces[start..];
            let is_own = |at: &usize| {
                let numbers = before[*at].iter();
                !is_taken[*at] && numbers.zip(pose.iter()).all(|(number, piece)| (number - piece.number).abs() < 1e-9)
            };
            let Some(at) = (0..before.len()).find(is_own) else { continue };
            is_taken[at] = true;
            for (piece, number) in pose.iter_mut().zip(&after[at]) {
                piece.number = format!("{number:.4e}").parse().unwrap_or(*number);
            }
        }
    }

    /// What makes plans of programs.
    pub(super) fn planner(&self) -> Planner<'_> {
        let Tongue { store, signature, bound, alphabet, .. } = self;
        Planner { store, signature, bound, alphabet }
    }

    /// The tokens of an instruction, as the decoder of a policy without programs reads them.
    pub(super) fn instruction_plan(&self, instruction: &str) -> Result<Plan> {
        let mut store = self.store.clone();
        let broken = |error: language::TermError| Error::Mismatch(error.to_string());
        let sentence = store.text(instruction);
        let task = store.call(INSTRUCTED.0, &[sentence]).map_err(broken)?;
        let nothing = nothing(&mut store)?;
        Ok(Plan::new(self.bound.encode(&store, &[task, nothing]), &self.alphabet, &[]))
    }

    /// A program of a client as steps.
    ///
    /// # Errors
    /// If it is not well-typed, cannot be decided without the world, makes too many calls, or has words that the policy has
    /// never seen.
    pub(super) fn steps(&self, source: &str) -> std::result::Result<Vec<Step>, Refusal> {
        let mut store = self.store.clone();
        let typed = read(&mut store, &self.signature, source, Some(GOAL)).map_err(Refusal::Program)?;
        let limits = Limits { max_events: MOST_CALLS, max_steps: MOST_STEPS };
        let trace = evaluate_within(&mut store, &self.signature, typed.term, limits).map_err(unexecuted)?;
        let calls = self.calls(&store, &trace)?;
        let texts: Vec<String> = calls.iter().map(|call| call.text.clone()).collect();
        let mut steps = Vec::new();
        let mut new_steps: BTreeMap<&str, Step> = BTreeMap::new();
        let mut at = 0;
        while at < calls.len() {
            if calls[at].is_skill {
                let end = (at..calls.len()).find(|place| !calls[*place].is_skill).unwrap_or(calls.len());
                let source = format!("seq[{}]", texts[at..end].join(", "));
                let typed = read(&mut store, &self.signature, &source, Some(GOAL)).map_err(Refusal::Program)?;
                steps.push(Step::Motion { written: self.look_at(&mut store, typed.term) });
                at = end;
                continue;
            }
            if let Some((length, instruction)) = known_beginning(&texts[at..], self.longest, |key| self.known.get(key))
            {
                steps.push(Step::Known { instruction: instruction.clone(), text: joined(&texts[at..at + length]) });
                at += length;
                continue;
            }
            let step = match new_steps.get(texts[at].as_str()) {
                Some(step) => step.clone(),
                None => self.new_step(&mut store, &texts[at])?,
            };
            new_steps.insert(&texts[at], step.clone());
            steps.push(step);
            at += 1;
        }
        Ok(steps)
    }

    /// The calls of a trace. Each that occurs several times is printed and judged once.
    fn calls(&self, store: &TermStore, trace: &[Event]) -> std::result::Result<Vec<ClientCall>, Refusal> {
        let refused = |reason: String| Err(Refusal::Other(reason));
        if trace.is_empty() {
            return refused("the program does nothing; expected at least one call".to_owned());
        }
        let mut looked: BTreeMap<TermId, ClientCall> = BTreeMap::new();
        let mut calls = Vec::with_capacity(trace.len());
        let mut bytes = 0;
        for event in trace {
            let &Event::Call { term, .. } = event else {
                return refused(
                    "the program has a branch or a repetition that only the world can decide; a served policy executes \
                     sequences"
                        .to_owned(),
                );
            };
            // A node is printed as one byte or more, so a term that is far too large is never printed.
            let least = bytes + store.size(term) as usize;
            if least <= MOST_BYTES {
                let call = looked.entry(term).or_insert_with(|| ClientCall {
                    text: print(store, term),
                    is_skill: self.alphabet.calls_of_trace(store, std::slice::from_ref(event)).is_ok(),
                });
                bytes += call.text.len();
                calls.push(call.clone());
            }
            if least.max(bytes) > MOST_BYTES {
                return refused(format!(
                    "the calls of the program have more than {MOST_BYTES} bytes written out; a served policy executes \
                     shorter ones: send the program in parts"
                ));
            }
        }
        Ok(calls)
    }

    /// A task that training did not have.
    fn new_step(&self, store: &mut TermStore, text: &str) -> std::result::Result<Step, Refusal> {
        let typed = read(store, &self.signature, text, Some(GOAL)).map_err(Refusal::Program)?;
        let encoded = self.bound.encode(store, &[typed.term]);
        if encoded.unknown > 0 {
            let texts = self.vocabulary.spellings().iter().filter(|spelling| spelling.starts_with('"'));
            return Err(Refusal::Other(format!(
                "`{text}` has words that no training program has; the objects that this policy knows are {}",
                texts.cloned().collect::<Vec<_>>().join(", ")
            )));
        }
        let mut beginning = encoded.pieces;
        // The end becomes a separator: the motion follows.
        beginning.pop();
        beginning.push(Piece::plain(models::vocabulary::SEPARATOR));
        Ok(Step::New { text: text.to_owned(), beginning })
    }

    fn look_at(&self, store: &mut TermStore, term: TermId) -> Written {
        let text = print(store, term);
        let items = match store.get(term) {
            Term::Seq(items) => items.to_vec(),
            _ => vec![term],
        };
        let places = spans_of(store, &self.signature, &text, items.len());
        let (mut calls, mut call_texts, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut looked: BTreeMap<TermId, Option<CallsWithTexts>> = BTreeMap::new();
        for (item, place) in items.into_iter().zip(places) {
            let look = || {
                let trace = evaluate(store, &self.signature, item).unwrap_or_default();
                Some((self.alphabet.calls_of_trace(store, &trace).ok()?, texts(store, &trace)?))
            };
            let Some((own, own_texts)) = looked.entry(item).or_insert_with(look).clone() else {
                (calls, call_texts, spans) = (Vec::new(), Vec::new(), Vec::new());
                break;
            };
            spans.extend(own.iter().map(|_| place.clone()));
            calls.extend(own);
            call_texts.extend(own_texts);
        }
        Written { entries: self.entries(store, term), text, calls, call_texts, spans }
    }

    /// The library entries that a term mentions.
    fn entries(&self, store: &TermStore, term: TermId) -> Vec<String> {
        let names = store.constants(term).into_iter().map(|name| store.spelling(name).to_owned());
        let mut names: Vec<String> = names.filter(|name| self.library.get(name).is_some()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The calls of an item, and each as text.
type CallsWithTexts = (Vec<SkillCall>, Vec<String>);

/// A call of a client's program.
#[derive(Clone)]
struct ClientCall {
    text: String,
    /// Whether it calls a skill, which needs no emitter.
    is_skill: bool,
}

/// Why a well-typed program is not executed.
fn unexecuted(error: EvaluateError) -> Refusal {
    Refusal::Other(match error {
        EvaluateError::TooManyEvents { limit } => format!(
            "the program makes more than {limit} calls; a served policy executes at most {limit}: lower a count of \
             `repeat`, or send the program in parts"
        ),
        EvaluateError::Normalize(_) => "the program becomes too large when its functions are applied; a served policy \
                                        executes smaller ones: send the program in parts"
            .to_owned(),
        EvaluateError::IllTyped { .. } => error.to_string(),
    })
}

/// The longest stretch at the beginning of some calls that is known, and what is known of it. No known one has more than
/// `longest` calls.
fn known_beginning<'k>(
    calls: &[String],
    longest: usize,
    mut known: impl FnMut(&[String]) -> Option<&'k String>,
) -> Option<(usize, &'k String)> {
    (1..=longest.min(calls.len())).rev().find_map(|length| Some((length, known(&calls[..length])?)))
}

/// The calls of a trace as text; `None` if the world must decide something.
fn texts(store: &TermStore, trace: &[Event]) -> Option<Vec<String>> {
    let text = |event: &Event| match event {
        Event::Call { term, .. } => Some(print(store, *term)),
        Event::Branch { .. } | Event::Repeat { .. } => None,
    };
    trace.iter().map(text).collect()
}

fn joined(calls: &[String]) -> String {
    match calls {
        [only] => only.clone(),
        several => format!("seq[{}]", several.join(", ")),
    }
}

/// Where the items of a printed sequence are.
fn spans_of(store: &mut TermStore, signature: &Signature, text: &str, items: usize) -> Vec<Range<usize>> {
    let whole = vec![0..text.len(); items];
    let Ok(parsed) = parse(store, signature, text) else { return whole };
    let Some(root) = parsed.spans.root().filter(|_| items > 1) else { return whole };
    let spans: Vec<Range<usize>> = parsed
        .spans
        .children(root)
        .iter()
        .map(|child| {
            let span = parsed.spans.span(*child);
            span.start..span.end
        })
        .collect();
    if spans.len() == items { spans } else { whole }
}

/// Whether a token, such as `put/2`, calls a constant.
fn is_call_of(spelling: &str, name: &str) -> bool {
    spelling
        .strip_prefix(name)
        .is_some_and(|rest| rest.strip_prefix('/').is_some_and(|digits| digits.parse::<u32>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stretch_is_looked_up_that_is_longer_than_the_longest_known() {
        let calls: Vec<String> = (0..500).map(|at| format!("call_{}", at % 3)).collect();
        let known = BTreeMap::from([(calls[..2].to_vec(), "two".to_owned()), (calls[..1].to_vec(), "one".to_owned())]);
        let mut lookups = 0;
        let mut search = |from: usize| {
            let lookup = |key: &[String]| {
                lookups += 1;
                known.get(key)
            };
            known_beginning(&calls[from..], 2, lookup).map(|(length, what)| (length, what.clone()))
        };
        assert_eq!(search(0), Some((2, "two".to_owned())), "the longest counts");
        assert_eq!(search(1), None);
        assert_eq!(search(498), Some((2, "two".to_owned())));
        assert_eq!(search(499), None, "the end is not passed");
        assert!((0..500).filter(|from| search(*from).is_some()).count() == 167);
        assert!(lookups <= 2 * 504, "{lookups}");
    }
}
