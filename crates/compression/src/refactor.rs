//! One refactoring step (sleep): propose abstractions, let a gate judge each, admit, rewrite (SPEC §7).
//!
//! The corpus is already written with a library F_{t−1}. The search proposes candidates, the exact description length ranks
//! them, and the caller's gate sees them one by one, best first: what the candidate is, what it gains, and which steps of
//! which program each of its calls would stand for, so that a gate can look up the motions that it would merge. After each
//! admission the corpus is rewritten and the search starts anew. A candidate that was rejected is not proposed again in the
//! step, in whatever order its parameters stand and whatever entries its body is written with. Candidates that save too
//! little are not proposed at all; the result says how many there were ([`NotProposed`]).

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use language::{MAX_NORMALIZE_STEPS, MAX_SIZE, Signature, TermId as TreeId, TermStore};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::compress::CompressError;
use crate::factored::Factored;
use crate::library::LibraryEntry;
use crate::loaded::{DescriptionLength, LoadError, Loaded};
use crate::lookahead::{self, Choice};
use crate::places::{self, Folded};
use crate::programs::{Parameter, Programs, parameters};
use crate::rewrite;
use crate::search::{DEFAULT_MAX_MEMORY, Rules, SearchLimits, Stop};
use crate::shape::Shape;
use crate::term::{Term, TermId, Terms};

/// How to refactor.
#[derive(Clone, Debug)]
pub struct RefactorConfig {
    /// The outer iteration t, which new entries are marked with.
    pub iteration: u32,
    /// The most entries that one step admits (K_max in the paper).
    pub max_admitted: usize,
    /// The most candidates that the gate is asked about; a gate may be dear.
    pub max_judged: usize,
    /// An abstraction must lower the description length by more than this, in nats.
    pub min_gain: f64,
    /// The most parameters an abstraction may have.
    pub max_arity: usize,
    /// The number of threads of the search. The result does not depend on it.
    pub threads: usize,
    /// The most steps of one search; without it a search runs until its result is optimal.
    pub max_steps: Option<u64>,
    /// The most time of the step, the gate's own included. With it the result may depend on the machine.
    pub time_limit: Option<Duration>,
    /// The pruning rules of the search.
    pub rules: Rules,
    /// The shape of the abstractions that are searched for. A departure from the paper, which takes whatever compresses:
    /// on programs of motions that is mostly syntax, such as `seq[x0, skill_1 x1 x2, x3]`.
    pub shape: Shape,
}

impl Default for RefactorConfig {
    /// The paper's: K_max = 8, more than 4 nats.
    fn default() -> Self {
        Self {
            iteration: 1,
            max_admitted: 8,
            max_judged: 64,
            min_gain: 4.0,
            max_arity: 2,
            threads: 1,
            max_steps: None,
            time_limit: None,
            rules: Rules::default(),
            shape: Shape::Skill,
        }
    }
}

/// An abstraction that could be admitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The name that it will have if it is admitted.
    pub name: String,
    /// The number of its parameters.
    pub arity: usize,
    /// Its λ-body, a term of the store that the gate is given.
    pub term: TreeId,
    /// Its λ-body in concrete syntax.
    pub body: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Its principal type.
    pub principal_type: String,
    /// How much it lowers the description length, its body included, in nats.
    pub gain: f64,
    /// How often programs and other entries would call it.
    pub uses: u64,
    /// Every call that running the programs would make, by program and then by first step. A call in the body of another
    /// entry is there once for each time that a program runs it.
    pub places: Vec<Place>,
    /// Programs that call it and whose trace is past the limits (100 000 steps), so that none of their calls is in `places`.
    pub unplaced: Vec<usize>,
}

/// A call, with what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The program, by its place in the corpus, from 0.
    pub program: usize,
    /// The arguments, all entries unfolded: terms of the store that the gate is given.
    pub arguments: Vec<TreeId>,
    /// What the call unfolds to.
    pub expansion: TreeId,
    /// The steps of the program's trace that the call stands for, as indices of [`language::evaluate`]'s events. For a call
    /// that is no motion but part of an argument, the step of the primitive that it is an argument of. None where only the
    /// world can decide whether it happens, and for calls inside conditions and counts.
    pub steps: Option<Range<usize>>,
    /// The runs of those steps that the body itself makes; the others are made by its arguments.
    pub own: Vec<Range<usize>>,
}

/// What a gate says of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict<T> {
    /// Whether it is to be admitted.
    pub admitted: bool,
    /// What the gate wants to keep: its figures, its reasons.
    pub figures: T,
}

/// A candidate with what the gate said.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged<T> {
    /// The candidate.
    pub candidate: Candidate,
    /// The verdict.
    pub verdict: Verdict<T>,
}

/// Why a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// As many entries were admitted as may be.
    Admitted,
    /// Nothing that was not rejected gains enough.
    NothingGains,
    /// As many candidates were judged as may be.
    Judged,
    /// The time was used up.
    Time,
}

/// Candidates that the searches of a step found and priced, but that no gate has seen, because they save no more than
/// [`RefactorConfig::min_gain`]. Each is counted once, however many searches found it. A search keeps its best candidates
/// only (24, and one more for each that was rejected), so there may be others that save even less.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotProposed {
    /// How many there were.
    pub count: usize,
    /// The largest saving among them, in nats; below 0 if all of them make the corpus longer.
    pub best_gain: Option<f64>,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub struct Refactoring<T> {
    /// The programs, rewritten with F_t before pruning.
    pub programs: Programs,
    /// The store that the terms of the candidates belong to.
    pub store: TermStore,
    /// The description length at the start.
    pub before: DescriptionLength,
    /// The description length at the end.
    pub after: DescriptionLength,
    /// All candidates in the order in which they were judged.
    pub judged: Vec<Judged<T>>,
    /// Candidates that save too little to be judged.
    pub not_proposed: NotProposed,
    /// Why the step ended.
    pub end: StepEnd,
    /// Why the searches stopped: optimal only if each of them was.
    pub stop: Stop,
    /// How many partial abstractions were expanded in all.
    pub steps: u64,
}

/// Takes one refactoring step. The gate is given each candidate with the store of its terms.
pub fn refactor<T>(
    programs: &Programs,
    config: &RefactorConfig,
    mut gate: impl FnMut(&Candidate, &TermStore) -> Verdict<T>,
) -> Result<Refactoring<T>, LoadError> {
    let loaded = Loaded::new(programs)?;
    let objective = loaded.objective();
    let pool = match config.threads {
        0 | 1 => None,
        threads => Some(
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .map_err(|error| CompressError::Threads { threads, reason: error.to_string() })?,
        ),
    };
    // A limit past the end of time is none.
    let deadline = config.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let min_gain = (config.min_gain.max(0.0) * objective.unit()) as u64;
    let store = loaded.dictionary.store.clone();
    let mut state = State { loaded: &loaded, store, refused: FxHashSet::default(), judged: FxHashSet::default() };
    let mut unproposed: BTreeMap<TreeId, f64> = BTreeMap::new();
    let mut corpus = loaded.corpus.clone();
    let mut cost = objective.cost(&corpus).total();
    let mut judged: Vec<Judged<T>> = Vec::new();
    let (mut admitted, mut steps, mut stop) = (0, 0, Stop::Optimal);
    let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let end = 'rounds: loop {
        if is_late() {
            break StepEnd::Time;
        }
        if admitted >= config.max_admitted || corpus.programs.is_empty() {
            break if admitted >= config.max_admitted { StepEnd::Admitted } else { StepEnd::NothingGains };
        }
        let search = SearchLimits {
            max_arity: config.max_arity,
            // What was refused comes up again and must not crowd out the rest.
            keep: objective.candidates() + state.refused.len(),
            floor: 0,
            max_steps: config.max_steps.unwrap_or(u64::MAX),
            max_memory: DEFAULT_MAX_MEMORY,
            deadline,
            parallel: config.threads > 1,
            rules: config.rules,
            shape: config.shape,
        };
        let propose = || lookahead::propose(&corpus, cost, &objective, &search, min_gain);
        let proposals = match &pool {
            Some(pool) => pool.install(propose),
            None => propose(),
        };
        steps += proposals.steps;
        stop = stop.max(proposals.stop);
        for choice in &proposals.below {
            let key = state.key(&corpus, &proposals.terms, choice);
            let gain = (cost as f64 - choice.cost as f64) / objective.unit();
            let best = unproposed.entry(key).or_insert(gain);
            *best = best.max(gain);
        }
        let mut refused_any = false;
        let weights = objective.weights(&corpus);
        for choice in &proposals.choices {
            let key = state.key(&corpus, &proposals.terms, choice);
            if state.refused.contains(&key) {
                continue;
            }
            if judged.len() >= config.max_judged {
                break 'rounds StepEnd::Judged;
            }
            let mut terms = proposals.terms.clone();
            let Some(next) = corpus.admit(&mut terms, choice.body, choice.arity, &weights) else { continue };
            let gain = cost.saturating_sub(choice.cost) as f64 / objective.unit();
            let candidate = state.candidate(&next, gain)?;
            let verdict = gate(&candidate, &state.store);
            state.judged.insert(key);
            let is_admitted = verdict.admitted;
            judged.push(Judged { candidate, verdict });
            if is_admitted {
                (corpus, cost) = (next, choice.cost);
                admitted += 1;
                continue 'rounds;
            }
            state.refused.insert(key);
            refused_any = true;
        }
        if !refused_any {
            break if is_late() { StepEnd::Time } else { StepEnd::NothingGains };
        }
    };
    let known = |name: &str| {
        programs.library.get(name).cloned().or_else(|| {
            let of_name = |judged: &&Judged<T>| judged.verdict.admitted && judged.candidate.name == name;
            judged.iter().find(of_name).map(|judged| new_entry(&judged.candidate, config.iteration))
        })
    };
    unproposed.retain(|key, _| !state.judged.contains(key));
    Ok(Refactoring {
        programs: loaded.written(programs, &corpus, known)?,
        before: loaded.description_length(&objective, &loaded.corpus),
        after: loaded.description_length(&objective, &corpus),
        judged,
        not_proposed: NotProposed {
            count: unproposed.len(),
            best_gain: unproposed.values().copied().max_by(f64::total_cmp),
        },
        end,
        stop,
        steps,
        store: state.store,
    })
}

fn new_entry(candidate: &Candidate, iteration: u32) -> LibraryEntry {
    LibraryEntry {
        name: candidate.name.clone(),
        arity: candidate.arity,
        principal_type: candidate.principal_type.clone(),
        iteration,
        gain: candidate.gain,
        uses: candidate.uses,
        posterior: None,
        body: candidate.body.clone(),
    }
}

/// What is kept between candidates.
struct State<'l> {
    loaded: &'l Loaded,
    /// One store for the whole step, so that equal terms have equal ids.
    store: TermStore,
    /// What was rejected, unfolded, with parameters in the order of their first use.
    refused: FxHashSet<TreeId>,
    /// What was judged, in the same form.
    judged: FxHashSet<TreeId>,
}

impl State<'_> {
    /// What a candidate is, however it is written.
    fn key(&mut self, corpus: &Factored, terms: &Terms, choice: &Choice) -> TreeId {
        let mut terms = terms.clone();
        let used = terms.params(choice.body);
        let number = |param: usize| used.iter().position(|&known| known as usize == param).unwrap_or(param) as u32;
        let renumbered: Vec<TermId> = (0..choice.arity).map(|param| terms.add(Term::Param(number(param)))).collect();
        let body = rewrite::instantiate(&mut terms, choice.body, &renumbered);
        let dictionary = &self.loaded.dictionary;
        let signature = dictionary.define(&mut self.store, corpus);
        let Ok(tree) = dictionary.decode_body(&mut self.store, &terms, body, choice.arity) else {
            return self.store.natural(0);
        };
        // Past the bounds of normalisation the body as it is written must do.
        unfold(&mut self.store, &signature, tree, |_| true).unwrap_or(tree)
    }

    /// Describes the newest entry of a corpus.
    fn candidate(&mut self, corpus: &Factored, gain: f64) -> Result<Candidate, LoadError> {
        let dictionary = &self.loaded.dictionary;
        let store = &mut self.store;
        let signature = dictionary.define(store, corpus);
        let uses = corpus.uses();
        let Some((entry, uses)) = corpus.entries.last().zip(uses.last().copied()) else {
            return Err(language::TermError::TooDeep.into());
        };
        let spelling = corpus.terms.name(entry.symbol);
        let name = store.name(spelling)?;
        let tree = dictionary.decode_body(store, &corpus.terms, entry.body, entry.arity)?;
        let scheme = signature.get(name).map(|entry| entry.scheme);
        let mut candidate = Candidate {
            name: spelling.to_owned(),
            arity: entry.arity,
            term: tree,
            body: language::print(store, tree),
            parameters: scheme.map(|scheme| parameters(store, tree, scheme, entry.arity)).unwrap_or_default(),
            principal_type: scheme.map(|scheme| store.types().show_scheme(scheme)).unwrap_or_default(),
            gain,
            uses,
            places: Vec::new(),
            unplaced: Vec::new(),
        };
        let folded = unfold(store, &signature, tree, |_| true).map(|body| Folded { name, arity: entry.arity, body });
        // Corpora repeat programs; what one of them calls, its copies call.
        let mut known: FxHashMap<TermId, Option<Vec<Place>>> = FxHashMap::default();
        for (program, &root) in corpus.programs.iter().enumerate() {
            let places = known.entry(root).or_insert_with(|| {
                let tree = dictionary.decode(store, &corpus.terms, root).ok()?;
                let tree = unfold(store, &signature, tree, |called| called != name).ok()?;
                if !store.constants(tree).contains(&name) {
                    return Some(Vec::new());
                }
                let (calls, _) = places::find_calls(store, folded.clone().ok()?, tree).ok()?;
                let place = |call: places::FoundCall| Place {
                    program,
                    arguments: call.arguments,
                    expansion: call.expansion,
                    steps: call.steps,
                    own: call.own,
                };
                Some(calls.into_iter().map(place).collect())
            });
            match places {
                Some(places) => {
                    let copies = places.iter().map(|place| Place { program, ..place.clone() });
                    candidate.places.extend(copies);
                }
                None => candidate.unplaced.push(program),
            }
        }
        Ok(candidate)
    }
}

/// A term with the chosen entries unfolded, in normal form.
fn unfold(
    store: &mut TermStore,
    signature: &Signature,
    tree: TreeId,
    chosen: impl Fn(language::Name) -> bool,
) -> Result<TreeId, language::TermError> {
    let inlined = signature.inline(store, tree, chosen)?;
    store.beta_normalize(inlined, MAX_SIZE, MAX_NORMALIZE_STEPS)
}

/// A gate that admits everything: compression alone decides.
pub fn admit_all(_: &Candidate, _: &TermStore) -> Verdict<()> {
    Verdict { admitted: true, figures: () }
}
