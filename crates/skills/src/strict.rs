//! The paper's motor cell: run-length programs over 17 symbols, anti-unified token by token.
//!
//! Each fragment (or episode) becomes a run-length program of [`language::motor_program`]; the corpus is compressed once
//! at the lowest threshold, and each threshold counts the abstractions that it admits. The paper finds none, with
//! dynamic time warping within clusters and without. It states its unit as "nats per emitted token" and does not say of
//! which tokens, so gains are reported in three units, none of which is preferred here:
//!
//! * per emitted token: the gain over the tokens of the whole rewritten corpus, all that an emitter has to write;
//! * per call token: over the tokens of the calls of the abstraction alone, arguments included;
//! * total: as our own gate counts (SPEC §7).

use clustering::Points;
use compression::{Compression, Config, Corpus, Stop, compress};
use language::{MotorSymbol, Signature, Term, TermId, TermStore, motor_program, quantize, tokens_of};
use serde::{Deserialize, Serialize};

use crate::align::align_to_medoids;
use crate::error::SkillError;
use crate::library::adopt;

/// How the cell is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrictConfig {
    /// Commands of this magnitude or less are no motion.
    pub dead_band: f64,
    /// The thresholds of the sweep, in nats, in each of the units.
    pub thresholds: Vec<f64>,
    /// The most parameters of an abstraction.
    pub max_arity: usize,
    /// The most abstractions.
    pub rounds: usize,
    /// The most steps of one search; without it each ends with its optimum.
    pub max_steps: Option<u64>,
    /// The Sakoe–Chiba radius in steps.
    pub band: Option<usize>,
    /// How many members of a cluster its medoid is chosen among.
    pub medoid_sample: usize,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

impl Default for StrictConfig {
    /// The union of the paper's two lists of thresholds, and its K_max of 8.
    fn default() -> StrictConfig {
        StrictConfig {
            dead_band: 0.05,
            thresholds: vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0],
            max_arity: 2,
            rounds: 8,
            max_steps: None,
            band: None,
            medoid_sample: 64,
            threads: 1,
        }
    }
}

/// An abstraction that was found at the lowest threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrictAbstraction {
    /// Its body.
    pub body: String,
    /// Its parameters.
    pub arity: usize,
    /// How often it is called.
    pub uses: u64,
    /// What it saved when it was admitted, in nats.
    pub gain: f64,
    /// How many motor symbols its body fixes, entries that it calls unfolded. Without any it abbreviates syntax, such as
    /// `repeat(move x, n)`, and names no motion.
    pub symbols: usize,
    /// The gain over the tokens of the rewritten corpus.
    pub per_emitted_token: f64,
    /// The gain over the tokens of its calls.
    pub per_call_token: f64,
}

/// How many abstractions one threshold admits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrictCell {
    /// The threshold.
    pub threshold: f64,
    /// Admitted if it is nats per emitted token.
    pub per_emitted_token: usize,
    /// Admitted if it is nats per token of the abstraction's calls.
    pub per_call_token: usize,
    /// Admitted if it is nats in all.
    pub total: usize,
    /// Those of the last that fix a motor symbol.
    pub total_with_symbols: usize,
}

/// One corpus, compressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrictRun {
    /// Whether fragments were aligned to the medoids of their clusters before.
    pub aligned: bool,
    /// Programs of the corpus.
    pub programs: usize,
    /// Different ones among them.
    pub distinct: usize,
    /// Tokens before.
    pub tokens: usize,
    /// Tokens of the rewritten programs.
    pub emitted_tokens: usize,
    /// Nats before.
    pub original_cost: f64,
    /// Nats after, library included.
    pub final_cost: f64,
    /// Why the searches stopped. Even [`Stop::Optimal`] is about the weights that propose candidates: the nats of whole libraries
    /// are not additive.
    pub search: Stop,
    /// What was found.
    pub abstractions: Vec<StrictAbstraction>,
    /// What each threshold makes of it.
    pub cells: Vec<StrictCell>,
}

/// Runs the cell without alignment and, if there are labels of clusters, with it.
///
/// # Errors
/// On fragments that are no rows of 6 or 7 actions, empty corpora, and labels that are not one for each fragment.
pub fn strict_sweep(
    fragments: &[Points<'_>],
    labels: Option<&[i64]>,
    config: &StrictConfig,
) -> Result<Vec<StrictRun>, SkillError> {
    let plain: Vec<Vec<Vec<f64>>> = fragments
        .iter()
        .map(|rows| rows.rows().map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect())
        .collect();
    let mut runs = vec![run(&plain, false, config)?];
    if let Some(labels) = labels {
        let aligned = align_to_medoids(fragments, labels, config.band, config.medoid_sample)?;
        runs.push(run(&aligned, true, config)?);
    }
    Ok(runs)
}

fn run(fragments: &[Vec<Vec<f64>>], aligned: bool, config: &StrictConfig) -> Result<StrictRun, SkillError> {
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    let mut programs = Vec::with_capacity(fragments.len());
    for rows in fragments {
        let symbols = quantize(rows, config.dead_band)?;
        programs.push(motor_program(&mut store, &symbols)?);
    }
    let corpus = Corpus::from_programs(&store, &signature, &programs)?;
    let lowest = config.thresholds.iter().copied().fold(f64::INFINITY, f64::min);
    let settings = Config {
        max_arity: config.max_arity,
        rounds: config.rounds,
        min_gain: if lowest.is_finite() { lowest } else { 0.0 },
        max_steps: config.max_steps,
        threads: config.threads,
        ..Config::default()
    };
    let found = compress(&corpus, &settings, &|_| ())?;
    let rewritten = adopt(&mut store, &mut signature, &found)?;
    let count = |programs: &[TermId]| programs.iter().map(|&program| tokens_of(&store, program).len()).sum::<usize>();
    let (tokens, emitted_tokens) = (count(&programs), count(&rewritten));
    let abstractions = described(&mut store, &signature, &found, &rewritten, emitted_tokens)?;
    let cells = config.thresholds.iter().map(|&threshold| cell(&abstractions, threshold)).collect();
    let mut distinct = programs.clone();
    distinct.sort_unstable();
    distinct.dedup();
    Ok(StrictRun {
        aligned,
        programs: programs.len(),
        distinct: distinct.len(),
        tokens,
        emitted_tokens,
        original_cost: found.original_cost,
        final_cost: found.final_cost + found.library_cost,
        search: found.stop,
        abstractions,
        cells,
    })
}

fn described(
    store: &mut TermStore,
    signature: &Signature,
    found: &Compression,
    rewritten: &[TermId],
    emitted_tokens: usize,
) -> Result<Vec<StrictAbstraction>, SkillError> {
    let mut abstractions = Vec::new();
    for entry in &found.abstractions {
        let at_calls: usize = rewritten.iter().map(|&program| call_tokens(store, program, &entry.name)).sum();
        abstractions.push(StrictAbstraction {
            body: entry.body.clone(),
            arity: entry.arity,
            uses: entry.uses,
            gain: entry.gain,
            symbols: symbols_in(store, signature, &entry.name)?,
            per_emitted_token: entry.gain / emitted_tokens.max(1) as f64,
            // An entry that only other entries call is emitted nowhere; its gain counts as a whole.
            per_call_token: entry.gain / at_calls.max(1) as f64,
        });
    }
    Ok(abstractions)
}

/// The motor symbols in an entry once all entries that it calls are unfolded.
fn symbols_in(store: &mut TermStore, signature: &Signature, name: &str) -> Result<usize, SkillError> {
    let call = store.call(name, &[])?;
    let mut pending = vec![signature.inline(store, call, |_| true)?];
    let mut found = 0;
    while let Some(term) = pending.pop() {
        if let Term::Constant(name) = store.get(term) {
            found += usize::from(MotorSymbol::ALL.iter().any(|symbol| symbol.name() == store.spelling(*name)));
        }
        pending.extend(store.get(term).children().iter().map(|&(child, _)| child));
    }
    Ok(found)
}

/// The tokens of the calls of an entry in a program, those inside arguments of other calls too.
fn call_tokens(store: &TermStore, term: TermId, name: &str) -> usize {
    let (head, arguments) = store.spine(term);
    match store.get(head) {
        Term::Constant(constant) if store.spelling(*constant) == name => tokens_of(store, term).len(),
        _ => {
            let mut parts = arguments;
            parts.extend(store.get(head).children().iter().map(|&(child, _)| child));
            parts.iter().map(|&part| call_tokens(store, part, name)).sum()
        }
    }
}

/// Rounds admit one after the other and end with the first that gains too little, so a threshold admits a prefix in
/// total nats. The other units are of each abstraction by itself.
fn cell(abstractions: &[StrictAbstraction], threshold: f64) -> StrictCell {
    let admitted = || abstractions.iter().take_while(|found| found.gain > threshold);
    StrictCell {
        threshold,
        per_emitted_token: abstractions.iter().filter(|found| found.per_emitted_token > threshold).count(),
        per_call_token: abstractions.iter().filter(|found| found.per_call_token > threshold).count(),
        total: admitted().count(),
        total_with_symbols: admitted().filter(|found| found.symbols > 0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_fragments_compress_and_units_differ() {
        let row = |x: f32, y: f32| [x, y, 0.0, 0.0, 0.0, 0.0, -1.0];
        let fragment: Vec<f32> =
            (0..24).flat_map(|at| row([0.5, -0.5, 0.0][at % 3], [0.0, 0.0, 0.7][at % 3])).collect();
        let fragments = vec![Points::new(&fragment, 7).unwrap(); 30];
        let runs = strict_sweep(&fragments, Some(&[0; 30]), &StrictConfig::default()).unwrap();
        assert_eq!(runs.len(), 2);
        let run = &runs[0];
        assert_eq!((run.programs, run.distinct, run.aligned, runs[1].aligned), (30, 1, false, true));
        assert!(
            run.search <= Stop::OptimalUnderRules
                && run.final_cost < run.original_cost
                && run.emitted_tokens < run.tokens
        );
        assert!(run.cells[0].total > 0 && run.cells[0].total >= run.cells[6].total);
        // Equal fragments are their own medoid.
        assert_eq!(run.cells, runs[1].cells);
    }

    #[test]
    fn six_columns_are_enough_and_five_are_not() {
        let rows = [0.5; 12];
        let sweep = |width| strict_sweep(&[Points::new(&rows, width).unwrap()], None, &StrictConfig::default());
        assert!(sweep(6).is_ok());
        assert!(matches!(sweep(4), Err(SkillError::Motor(_))));
        assert!(matches!(strict_sweep(&[], None, &StrictConfig::default()), Err(SkillError::Compress(_))));
    }
}
