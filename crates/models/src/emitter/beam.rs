//! Programs by beam search in which every prefix is type-checked.
//!
//! At each step a [`PrefixChecker`] says which tokens may come next, and the others get **no score**: they are left out
//! before the softmax, so that they have no share in its sum, and p(program) is a distribution over well-typed programs.
//! Inside a vector its next place follows, and the checker hears of it when it is whole. The number that a symbol carries is
//! the most likely one; a density is no probability, so numbers have no part in the order of hypotheses.
//! A complete term leaves no choice: `<separator>` or `<eos>` follows with probability one, and the checker starts again.
//!
//! A task and a motion are two terms, and what the second one costs says nothing about the first: a motion has many more tokens
//! than a task, so a search over both together would prefer whatever task allows a short motion. Therefore each term is searched
//! for by itself and settled before the next one is begun ([`BeamConfig::term_by_term`]).
//!
//! Searches of a batch run side by side, one row of the model for each open hypothesis; keys and values of what was read
//! are kept, and rows are moved when hypotheses are. Equal scores are ordered by the numbers of their tokens, so the result
//! is a function of the weights.

use std::cmp::Ordering;

use candle_core::Tensor;
use language::{PrefixChecker, PrefixState, TermId, TermStore, Token, TokenError, term_of};
use serde::{Deserialize, Serialize};

use super::model::{Condition, Emitter};
use crate::error::{Error, Result};
use crate::ops::without_gradients;
use crate::transformer::Cache;
use crate::vocabulary::{
    BOS, BoundVocabulary, EOS, Joined, OpenVector, PAD, Piece, PieceTensor, SEPARATOR, Symbol, UNKNOWN,
};

/// How programs are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BeamConfig {
    /// Open hypotheses after each step, and the most programs that are returned; 1 is greedy.
    pub width: usize,
    /// The most tokens, separators and end counted; at most the emitter's own.
    pub tokens: usize,
    /// How many terms come one after the other.
    pub terms: usize,
    /// Whether the most likely term is settled before the next one is written; off, all terms are ranked together. Without type
    /// checking terms have no known end, so they are ranked together.
    pub term_by_term: bool,
    /// Whether prefixes are type-checked; off, any token may follow any other.
    pub typed: bool,
    /// Whether keys and values are kept from step to step; off, everything is read anew.
    pub cached: bool,
}

impl Default for BeamConfig {
    fn default() -> Self {
        BeamConfig { width: 8, tokens: 96, terms: 2, term_by_term: true, typed: true, cached: true }
    }
}

/// What a search found for one row of the condition.
#[derive(Clone, Debug)]
pub struct Emission {
    /// The best first. None if no program was complete within the limit.
    pub hypotheses: Vec<Hypothesis>,
    /// What it took.
    pub statistics: BeamStatistics,
    /// Why it ended.
    pub stop: Stop,
}

/// Programs, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// As in a target: separators between programs, `<eos>` at the end.
    pub pieces: Vec<Piece>,
    /// The tokens of each program.
    pub programs: Vec<Vec<Token>>,
    /// ln p of all tokens, among those that were allowed.
    pub log_probability: f64,
}

impl Hypothesis {
    /// The programs as terms. An error only without type checking.
    pub fn terms(&self, store: &mut TermStore) -> std::result::Result<Vec<TermId>, TokenError> {
        self.programs.iter().map(|tokens| term_of(store, tokens)).collect()
    }
}

/// Counts of one search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeamStatistics {
    /// Tokens read one after the other.
    pub steps: usize,
    /// Extensions that were type-checked.
    pub checked: usize,
    /// Those of them that were refused, and so not scored.
    pub refused: usize,
    /// Hypotheses that were dropped at the limit of length.
    pub cut: usize,
    /// Hypotheses that no token of the vocabulary may follow.
    pub dead: usize,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// As many programs as wanted are complete, and none that is open can overtake them.
    Settled,
    /// No hypothesis is open any more.
    Exhausted,
}

/// The share of programs that are the targets, symbol by symbol; the numbers that symbols carry are not compared. A target with
/// a symbol that the vocabulary does not have is never met.
pub fn exact_match(programs: &[Vec<Piece>], targets: &[Vec<Piece>]) -> f64 {
    let ids = |pieces: &[Piece]| pieces.iter().map(|piece| piece.id).collect::<Vec<u32>>();
    let is_right = |found: &[Piece], target: &[Piece]| ids(found) == ids(target) && !ids(target).contains(&UNKNOWN);
    let right = programs.iter().zip(targets).filter(|(found, target)| is_right(found, target));
    right.count() as f64 / targets.len().max(1) as f64
}

/// The best programs of each emission; empty where there are none.
pub fn best(emissions: &[Emission]) -> Vec<Vec<Piece>> {
    let best = |one: &Emission| one.hypotheses.first().map_or_else(Vec::new, |best| best.pieces.clone());
    emissions.iter().map(best).collect()
}

impl Emitter {
    /// The most likely programs for each row of a condition. The checker is for the terms' type, over the signature that
    /// the vocabulary's constants are from; it starts anew for each term.
    pub fn emit(
        &self,
        condition: &Condition,
        vocabulary: &BoundVocabulary,
        checker: &mut PrefixChecker,
        beam: &BeamConfig,
    ) -> Result<Vec<Emission>> {
        self.emit_after(condition, &[], beam.width, vocabulary, checker, beam)
    }

    /// The same, with the beginnings of programs given: for each row the tokens that every hypothesis begins with, without
    /// `<bos>`; rows beyond the list are free. A beginning must be well-typed and have no unknown symbols. A search ends as soon
    /// as its `wanted` best programs are known, which for one is sooner than for a whole beam.
    pub fn emit_after(
        &self,
        condition: &Condition,
        beginnings: &[Vec<Piece>],
        wanted: usize,
        vocabulary: &BoundVocabulary,
        checker: &mut PrefixChecker,
        beam: &BeamConfig,
    ) -> Result<Vec<Emission>> {
        let BeamConfig { width, tokens, terms, .. } = *beam;
        if width == 0 || tokens == 0 || terms == 0 || tokens > self.config.tokens {
            return Err(Error::Config(format!(
                "a beam of width {width} for {terms} terms of {tokens} tokens; wanted at least one of each, and at most {} \
                 tokens",
                self.config.tokens
            )));
        }
        if vocabulary.len() != self.symbols.tokens {
            return Err(Error::Config(format!(
                "a vocabulary of {} tokens for an emitter of {}; grow the emitter with its vocabulary",
                vocabulary.len(),
                self.symbols.tokens
            )));
        }
        let (samples, _) = condition.words.dims2()?;
        let known = |piece: &Piece| piece.id == SEPARATOR || vocabulary.symbol(piece.id).is_some();
        if let Some(row) = beginnings.iter().position(|pieces| !pieces.iter().all(known)) {
            return Err(Error::Config(format!("the beginning of program {row} has a symbol that no program has")));
        }
        let beginning =
            |row: usize| Begun { pieces: beginnings.get(row).cloned().unwrap_or_default(), ..Begun::default() };
        let mut begun: Vec<Begun> = (0..samples).map(beginning).collect();
        if beam.term_by_term && beam.typed {
            for terms in 1..beam.terms {
                self.settle(condition, &mut begun, vocabulary, checker, &BeamConfig { terms, ..*beam })?;
            }
        }
        let searches = self.search(condition, begun, wanted, &mut Rules::new(vocabulary, checker, beam))?;
        Ok(searches.into_iter().map(|search| search.finish(vocabulary)).collect())
    }

    /// Continues all beginnings that have fewer than `terms` whole terms with the most likely terms. A beginning for which the
    /// search finds none stays as it is.
    fn settle(
        &self,
        condition: &Condition,
        begun: &mut [Begun],
        vocabulary: &BoundVocabulary,
        checker: &mut PrefixChecker,
        beam: &BeamConfig,
    ) -> Result<()> {
        let is_open = |begun: &Begun| separators(&begun.pieces) < beam.terms;
        let rows: Vec<usize> = (0..begun.len()).filter(|row| is_open(&begun[*row])).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let selected = rows.iter().map(|row| *row as u32).collect::<Vec<u32>>();
        let condition = if rows.len() == begun.len() { condition.clone() } else { condition.select(&selected)? };
        let beginnings = rows.iter().map(|row| begun[*row].clone()).collect();
        let searches = self.search(&condition, beginnings, 1, &mut Rules::new(vocabulary, checker, beam))?;
        for (row, search) in rows.into_iter().zip(searches) {
            begun[row].statistics = search.statistics;
            if let Some((mut pieces, score)) = search.complete.into_iter().next() {
                pieces.pop();
                pieces.push(Piece::plain(SEPARATOR));
                (begun[row].pieces, begun[row].score) = (pieces, score);
            }
        }
        Ok(())
    }

    fn search(
        &self,
        condition: &Condition,
        begun: Vec<Begun>,
        wanted: usize,
        rules: &mut Rules<'_>,
    ) -> Result<Vec<Search>> {
        let whole_terms = begun.iter().map(|begun| begun.whole_terms(rules.beam)).min().unwrap_or(0);
        let begun = begun.into_iter().enumerate();
        let searches = begun.map(|(row, begun)| Search::new(row, begun, whole_terms, wanted, rules));
        let mut searches: Vec<Search> = searches.collect::<Result<_>>()?;
        let mut reader = Reader { emitter: self, condition, cache: None, cached: rules.beam.cached };
        loop {
            let open: Vec<(u32, &Partial)> = (0..)
                .zip(&searches)
                .flat_map(|(sample, search)| search.open.iter().map(move |partial| (sample, partial)))
                .collect();
            if open.is_empty() {
                return Ok(searches);
            }
            let scores = without_gradients(|| reader.read(&open))?;
            // Rows are in the order of searches; hypotheses remember the row that they came from, for the cache.
            let mut scores = scores.into_iter();
            let mut first_row = 0;
            for search in &mut searches {
                let own: Vec<Scored> = scores.by_ref().take(search.open.len()).collect();
                first_row += search.advance(&own, rules, first_row)?;
            }
        }
    }
}

/// What every hypothesis of a search begins with.
#[derive(Clone, Default)]
struct Begun {
    pieces: Vec<Piece>,
    /// ln p of what was found, not given.
    score: f64,
    /// What finding it took.
    statistics: BeamStatistics,
}

impl Begun {
    /// The number of pieces up to the last term that is whole, which are read at once.
    fn whole_terms(&self, beam: &BeamConfig) -> usize {
        let end = self.pieces.iter().rposition(|piece| piece.id == SEPARATOR).map_or(0, |last| last + 1);
        if separators(&self.pieces) < beam.terms && end < beam.tokens { end } else { 0 }
    }
}

fn separators(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| piece.id == SEPARATOR).count()
}

/// What may follow what.
struct Rules<'a> {
    checker: &'a mut PrefixChecker,
    vocabulary: &'a BoundVocabulary,
    /// Symbols that begin a token, by number.
    starts: Vec<u32>,
    /// For each of them a token that begins with it.
    examples: Vec<Token>,
    beam: &'a BeamConfig,
}

impl<'a> Rules<'a> {
    fn new(vocabulary: &'a BoundVocabulary, checker: &'a mut PrefixChecker, beam: &'a BeamConfig) -> Rules<'a> {
        let (mut starts, mut examples) = (Vec::new(), Vec::new());
        for id in 0..vocabulary.len() as u32 {
            if let Some(token) = vocabulary.symbol(id).and_then(Symbol::example) {
                starts.push(id);
                examples.push(token);
            }
        }
        Rules { checker, vocabulary, starts, examples, beam }
    }

    /// The numbers that may come next.
    fn allowed(&mut self, partial: &Partial, statistics: &mut BeamStatistics) -> Vec<u32> {
        if !self.beam.typed {
            return (0..self.vocabulary.len() as u32).filter(|id| ![PAD, BOS, UNKNOWN].contains(id)).collect();
        }
        if let Some(open) = &partial.open {
            return Some(self.vocabulary.id(open.next())).filter(|id| *id != UNKNOWN).into_iter().collect();
        }
        if partial.state.is_complete() {
            return vec![SEPARATOR];
        }
        let allowed = self.checker.allowed(&partial.state, &self.examples);
        let ids: Vec<u32> = self.starts.iter().zip(&allowed).filter(|(_, yes)| **yes).map(|(id, _)| *id).collect();
        statistics.checked += allowed.len();
        statistics.refused += allowed.len() - ids.len();
        ids
    }

    /// What is open, and the state, after a symbol that is allowed.
    fn step(&mut self, partial: &Partial, piece: Piece) -> Result<(Option<OpenVector>, PrefixState)> {
        let Piece { id, number } = piece;
        if !self.beam.typed {
            return Ok((None, partial.state.clone()));
        }
        let Some(symbol) = self.vocabulary.symbol(id) else { return Ok((None, self.checker.start())) };
        match symbol.join(partial.open.clone(), number) {
            Some(Joined::Open(vector)) => Ok((Some(vector), partial.state.clone())),
            Some(Joined::Whole(token)) => match self.checker.step(&partial.state, token) {
                Ok(state) => Ok((None, state)),
                Err(error) => Err(Error::Config(error.to_string())),
            },
            None => Err(Error::Config(format!("symbol {id} cannot stand where it was allowed"))),
        }
    }
}

/// A hypothesis that is not complete.
#[derive(Clone)]
struct Partial {
    pieces: Vec<Piece>,
    score: f64,
    /// The vector that is being written.
    open: Option<OpenVector>,
    /// Of the term that is being written, up to its last whole token.
    state: PrefixState,
    /// The row of the step before that it goes on from.
    row: usize,
}

/// The search for one sample.
struct Search {
    open: Vec<Partial>,
    /// The best first.
    complete: Vec<(Vec<Piece>, f64)>,
    statistics: BeamStatistics,
    settled: bool,
    /// What every hypothesis begins with.
    beginning: Vec<Piece>,
    /// How many programs are wanted.
    wanted: usize,
}

impl Search {
    /// A search that has written the first `whole_terms` pieces of its beginning.
    fn new(row: usize, begun: Begun, whole_terms: usize, wanted: usize, rules: &mut Rules<'_>) -> Result<Search> {
        let Begun { pieces: beginning, score, statistics } = begun;
        let mut start = Partial { pieces: Vec::new(), score, open: None, state: rules.checker.start(), row };
        for piece in &beginning[..whole_terms] {
            (start.open, start.state) = rules.step(&start, *piece)?;
            start.pieces.push(*piece);
        }
        Ok(Search { open: vec![start], complete: Vec::new(), statistics, settled: false, beginning, wanted })
    }

    /// Every open hypothesis with every allowed token, of which the best stay. Gives the rows that it had.
    fn advance(&mut self, scores: &[Scored], rules: &mut Rules<'_>, first_row: usize) -> Result<usize> {
        let rows = self.open.len();
        if rows == 0 {
            return Ok(0);
        }
        let BeamConfig { width, tokens: limit, terms, typed, .. } = *rules.beam;
        let mut extensions: Vec<(f64, usize, Piece)> = Vec::new();
        for (at, (partial, scored)) in self.open.iter().zip(scores).enumerate() {
            let given = self.beginning.get(partial.pieces.len()).copied();
            let allowed = match given {
                Some(given) => vec![given.id],
                None => rules.allowed(partial, &mut self.statistics),
            };
            self.statistics.dead += usize::from(allowed.is_empty());
            for (id, log) in allowed.iter().zip(log_softmax(&scored.symbols, &allowed)?) {
                let piece = given.unwrap_or_else(|| Piece { id: *id, number: scored.number(*id) });
                extensions.push((partial.score + log, at, piece));
            }
        }
        let ids = |&(_, at, piece): &(f64, usize, Piece)| ids(&self.open[at].pieces).chain([piece.id]);
        extensions.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| ids(a).cmp(ids(b))));
        extensions.truncate(width);
        let mut open = Vec::new();
        for (score, at, piece) in extensions {
            let parent = &self.open[at];
            let (vector, state) = rules.step(parent, piece)?;
            let mut pieces = parent.pieces.clone();
            pieces.push(piece);
            let written = 1 + separators(&pieces);
            let ended = if typed { state.is_complete() && written == terms } else { piece.id == EOS };
            if ended && typed {
                // Nothing else may follow, so it need not be asked for.
                pieces.push(Piece::plain(EOS));
            }
            match pieces.len() {
                length if ended && length <= limit => self.complete.push((pieces, score)),
                length if !ended && length < limit => {
                    open.push(Partial { pieces, score, open: vector, state, row: first_row + at });
                }
                _ => self.statistics.cut += 1,
            }
        }
        self.statistics.steps += 1;
        self.open = open;
        self.complete.sort_by(better);
        self.complete.truncate(width);
        // Scores only fall as hypotheses grow.
        let best = self.open.first().map_or(f64::NEG_INFINITY, |partial| partial.score);
        let last = self.wanted.clamp(1, width) - 1;
        if self.complete.get(last).is_some_and(|worst| worst.1 >= best) {
            self.settled = true;
            self.open.clear();
        }
        Ok(rows)
    }

    fn finish(self, vocabulary: &BoundVocabulary) -> Emission {
        let hypothesis = |(pieces, log_probability): (Vec<Piece>, f64)| {
            let programs = vocabulary.decode(&pieces);
            Hypothesis { pieces, programs, log_probability }
        };
        Emission {
            hypotheses: self.complete.into_iter().map(hypothesis).collect(),
            statistics: self.statistics,
            stop: if self.settled { Stop::Settled } else { Stop::Exhausted },
        }
    }
}

fn better(a: &(Vec<Piece>, f64), b: &(Vec<Piece>, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then_with(|| ids(&a.0).cmp(ids(&b.0)))
}

fn ids(pieces: &[Piece]) -> impl Iterator<Item = u32> {
    pieces.iter().map(|piece| piece.id)
}

/// What the model says of the next piece of a hypothesis.
struct Scored {
    /// The score of each symbol.
    symbols: Vec<f32>,
    /// The most likely number of each symbol that carries one, by symbol.
    numbers: Vec<(u32, f64)>,
}

impl Scored {
    /// The number that a symbol would carry; zero if it carries none.
    fn number(&self, id: u32) -> f64 {
        self.numbers.iter().find(|(slot, _)| *slot == id).map_or(0.0, |(_, number)| *number)
    }
}

/// ln softmax over the allowed symbols alone, in their order.
fn log_softmax(scores: &[f32], allowed: &[u32]) -> Result<Vec<f64>> {
    let chosen: Vec<f64> = allowed.iter().map(|id| f64::from(scores[*id as usize])).collect();
    let most = chosen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = chosen.iter().map(|score| (score - most).exp()).sum();
    if !chosen.is_empty() && !(most + sum).is_finite() {
        return Err(Error::Config("the emitter's scores are not finite; its weights diverged".into()));
    }
    Ok(chosen.into_iter().map(|score| score - most - sum.ln()).collect())
}

/// From hypotheses to scores of the next token.
struct Reader<'a> {
    emitter: &'a Emitter,
    condition: &'a Condition,
    /// Keys and values of what was read; none before the first step.
    cache: Option<Cache>,
    cached: bool,
}

impl Reader<'_> {
    /// All open hypotheses have the same number of tokens. Gives a row of scores for each.
    fn read(&mut self, open: &[(u32, &Partial)]) -> Result<Vec<Scored>> {
        let device = self.condition.words.device();
        let length = open[0].1.pieces.len();
        let begun = |emitter: &Emitter| {
            let row = |(_, partial): &(u32, &Partial)| {
                std::iter::once(Piece::plain(BOS)).chain(partial.pieces.iter().copied()).collect()
            };
            let rows: Vec<Vec<Piece>> = open.iter().map(row).collect();
            emitter.placed_inputs(&PieceTensor::new(&rows, length + 1, device)?, 0)
        };
        let seen = if !self.cached {
            let samples: Vec<u32> = open.iter().map(|(sample, _)| *sample).collect();
            let condition = self.condition.select(&samples)?;
            let tokens = Tensor::cat(&[self.emitter.prefix(&condition)?, begun(self.emitter)?], 1)?;
            self.emitter.transformer.forward(&tokens)?
        } else if let Some(cache) = &mut self.cache {
            let rows: Vec<u32> = open.iter().map(|(_, partial)| partial.row as u32).collect();
            *cache = cache.select(&rows)?;
            let last: Vec<Vec<Piece>> = open.iter().map(|(_, partial)| vec![partial.pieces[length - 1]]).collect();
            let last = PieceTensor::new(&last, 1, device)?;
            self.emitter.transformer.extend(&self.emitter.placed_inputs(&last, length)?, cache)?
        } else {
            let tokens = Tensor::cat(&[self.emitter.prefix(self.condition)?, begun(self.emitter)?], 1)?;
            self.emitter.transformer.extend(&tokens, self.cache.get_or_insert_default())?
        };
        let last = seen.narrow(1, seen.dim(1)? - 1, 1)?.squeeze(1)?.contiguous()?;
        let symbols = self.emitter.score(&last)?.to_vec2::<f32>()?;
        let numbers = match self.emitter.writer() {
            Some(writer) => writer.values(&last)?,
            None => vec![Vec::new(); symbols.len()],
        };
        Ok(symbols.into_iter().zip(numbers).map(|(symbols, numbers)| Scored { symbols, numbers }).collect())
    }
}
