//! Rounds of abstraction, and looking ahead across them.
//!
//! The greedy path takes the best abstraction of each round. That loses: an abstraction that is second best now, or the
//! same one with its parameters in another order, may leave a corpus that compresses further. So after the greedy path
//! we take *discrepancies*: at some round of the best path known, take another of that round's candidates and go on
//! greedily from there; the end decides. Candidates that lose the least against the best of their round come first
//! (limited discrepancy search). A path that ends better becomes the one to deviate from.
//!
//! The work is limited to a multiple of the steps of the greedy path, so looking ahead costs a known factor. Paths are
//! tried in batches of fixed size, in parallel, and compared in order: the result does not depend on the threads.

use std::sync::Arc;

use rayon::prelude::*;

use crate::factored::Factored;
use crate::objective::Objective;
use crate::pattern::Partial;
use crate::rewrite;
use crate::search::{self, SearchLimits, Stop};
use crate::shape::Shape;
use crate::space::Space;
use crate::term::{Term, TermId, Terms};

/// What the rounds may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundLimits {
    pub(crate) rounds: usize,
    /// The most abstractions that one round admits.
    pub(crate) per_round: usize,
    /// The steps of all discrepancies together, as a multiple of those of the greedy path.
    pub(crate) lookahead: f64,
    /// An abstraction must gain more than this.
    pub(crate) min_gain: u64,
    pub(crate) search: SearchLimits,
}

/// A path of abstractions from the corpus to its end.
#[derive(Clone)]
pub(crate) struct Path {
    stages: Vec<Stage>,
    /// The corpus at the end of the path.
    pub(crate) end: Arc<Factored>,
    /// Its cost, library included.
    pub(crate) cost: u64,
    /// The cost before each abstraction, and at the end.
    pub(crate) costs: Vec<u64>,
    steps: u64,
    stop: Stop,
}

impl Path {
    /// What a rival path must gain in the next round so as not to fall behind this one too far to catch up.
    fn least_gain(&self, round: usize, cost: u64, limits: &RoundLimits) -> u64 {
        let ahead = self.stages.get(round + 1).map_or(self.cost, |stage| stage.cost);
        let rounds_left = (limits.rounds - round - 1) as f64 / limits.rounds as f64;
        let allowed = (ahead as f64 * (1.0 + SLACK * rounds_left)) as u64;
        limits.min_gain.max(cost.saturating_sub(allowed))
    }
}

/// A corpus on a path, with the abstractions that could come next.
#[derive(Clone)]
struct Stage {
    corpus: Arc<Factored>,
    /// The cost before each abstraction so far, and now.
    costs: Vec<u64>,
    cost: u64,
    proposals: Arc<Proposals>,
}

/// A corpus to go on from.
struct Reached {
    corpus: Factored,
    /// The cost before each abstraction so far, and now.
    costs: Vec<u64>,
}

impl Reached {
    fn cost(&self) -> u64 {
        self.costs.last().copied().unwrap_or(u64::MAX)
    }
}

/// The candidates of a round.
pub(crate) struct Proposals {
    /// The terms of the corpus and of the candidates' bodies.
    pub(crate) terms: Terms,
    /// Best first.
    pub(crate) choices: Vec<Choice>,
    /// Candidates that were found and priced, but do not gain enough.
    pub(crate) below: Vec<Choice>,
    pub(crate) steps: u64,
    pub(crate) stop: Stop,
}

/// An abstraction that could be admitted.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) body: TermId,
    pub(crate) arity: usize,
    /// The cost of the corpus with it, library included.
    pub(crate) cost: u64,
}

/// The result of all rounds.
pub(crate) struct Rounds {
    pub(crate) best: Path,
    pub(crate) steps: u64,
    pub(crate) stop: Stop,
}

/// How many paths at most are tried before the next are chosen.
const BATCH: usize = 2;

/// How far a path may fall behind the best one, as a share of its cost, with all rounds to go; with fewer, less.
const SLACK: f64 = 0.01;

/// Runs the rounds. `progress` hears of each abstraction on the way.
pub(crate) fn run(
    corpus: Factored,
    objective: &Objective<'_>,
    limits: &RoundLimits,
    progress: &(dyn Fn(usize, u64, u64) + Sync),
) -> Rounds {
    let costs = vec![objective.cost(&corpus).total()];
    let mut best = greedy(Vec::new(), Reached { corpus, costs }, None, objective, limits, progress);
    let (mut steps, mut stop) = (best.steps, best.stop);
    let allowed = (best.steps as f64 * limits.lookahead) as u64;
    let mut open: Vec<Discrepancy> = Vec::new();
    add_discrepancies(&best, 0, limits, &mut open);
    let greedy_steps = best.steps;
    while !open.is_empty() && steps < greedy_steps.saturating_add(allowed) {
        open.sort_by(|a, b| a.key().partial_cmp(&b.key()).unwrap_or(std::cmp::Ordering::Equal));
        // As many as the steps left allow, if they take what the path they leave took; one at the least.
        let mut left = greedy_steps.saturating_add(allowed) - steps;
        let fits = |discrepancy: &&Discrepancy| {
            let fits = discrepancy.steps <= left;
            left -= discrepancy.steps.min(left);
            fits
        };
        let count = open.iter().take(BATCH).take_while(fits).count().max(1);
        let batch: Vec<Discrepancy> = open.drain(..count).collect();
        let try_path = |discrepancy: &Discrepancy| discrepancy.follow(&best, objective, limits, progress);
        let paths: Vec<Option<Path>> = if limits.search.parallel {
            batch.par_iter().map(try_path).collect()
        } else {
            batch.iter().map(try_path).collect()
        };
        for (discrepancy, path) in batch.iter().zip(paths) {
            let Some(path) = path else { continue };
            steps += path.steps;
            stop = stop.max(path.stop);
            if path.cost < best.cost {
                // Those of the path that is left behind, past where the two part, are of no interest any more.
                open.retain(|other| other.depth <= discrepancy.depth);
                add_discrepancies(&path, discrepancy.depth + 1, limits, &mut open);
                best = path;
            }
        }
    }
    Rounds { best, steps, stop }
}

/// A path left at some stage for another candidate.
struct Discrepancy {
    /// The stages of the path up to and including the one where it is left.
    stages: Vec<Stage>,
    choice: usize,
    depth: usize,
    /// What the candidate loses against the best of its round, as a share of that one's gain.
    loss: f64,
    /// The steps that the path took from here to its end.
    steps: u64,
}

impl Discrepancy {
    fn key(&self) -> (f64, usize, usize) {
        (self.loss, self.depth, self.choice)
    }

    fn follow(
        &self,
        rival: &Path,
        objective: &Objective<'_>,
        limits: &RoundLimits,
        progress: &(dyn Fn(usize, u64, u64) + Sync),
    ) -> Option<Path> {
        let stage = self.stages.last()?;
        let reached = stage.admit(self.choice, objective, limits)?;
        Some(greedy(self.stages.clone(), reached, Some(rival), objective, limits, progress))
    }
}

fn add_discrepancies(path: &Path, from: usize, limits: &RoundLimits, open: &mut Vec<Discrepancy>) {
    // Nothing comes after the last round, so the best of it is the best.
    for depth in from..path.stages.len().min(limits.rounds.saturating_sub(1)) {
        let choices = &path.stages[depth].proposals.choices;
        let Some(best) = choices.first() else { continue };
        let gain = path.stages[depth].cost.saturating_sub(best.cost).max(1) as f64;
        let steps = path.stages[depth + 1..].iter().map(|stage| stage.proposals.steps).sum();
        for (choice, candidate) in choices.iter().enumerate().skip(1) {
            let loss = candidate.cost.saturating_sub(best.cost) as f64 / gain;
            open.push(Discrepancy { stages: path.stages[..=depth].to_vec(), choice, depth, loss, steps });
        }
    }
}

/// Goes on greedily from a corpus to the last round.
fn greedy(
    mut stages: Vec<Stage>,
    mut reached: Reached,
    rival: Option<&Path>,
    objective: &Objective<'_>,
    limits: &RoundLimits,
    progress: &(dyn Fn(usize, u64, u64) + Sync),
) -> Path {
    let (mut steps, mut stop) = (0, Stop::Optimal);
    loop {
        let cost = reached.cost();
        let corpus = Arc::new(reached.corpus);
        let costs = reached.costs;
        if stages.len() >= limits.rounds {
            return Path { stages, end: corpus, cost, costs, steps, stop };
        }
        let floor = rival.map_or(limits.min_gain, |rival| rival.least_gain(stages.len(), cost, limits));
        let proposals = propose(&corpus, cost, objective, &limits.search, floor);
        steps += proposals.steps;
        stop = stop.max(proposals.stop);
        let stage = Stage { corpus: corpus.clone(), costs: costs.clone(), cost, proposals: Arc::new(proposals) };
        match stage.admit(0, objective, limits) {
            None => {
                return Path { stages, end: corpus, cost, costs, steps, stop };
            }
            Some(next) => reached = next,
        }
        stages.push(stage);
        progress(stages.len(), steps, reached.cost());
    }
}

impl Stage {
    /// Admits one of the candidates, and after it as many of the others as a round may and the corpus still gains from.
    fn admit(&self, first: usize, objective: &Objective<'_>, limits: &RoundLimits) -> Option<Reached> {
        let Proposals { terms, choices, .. } = &*self.proposals;
        let choice = choices.get(first)?;
        let weights = objective.weights(&self.corpus);
        let mut corpus = self.corpus.admit(&mut terms.clone(), choice.body, choice.arity, &weights)?;
        let mut costs = self.costs.clone();
        let mut cost = choice.cost;
        costs.push(cost);
        for other in choices.iter().enumerate().filter(|&(index, _)| index != first).map(|(_, other)| other) {
            if costs.len() - self.costs.len() >= limits.per_round {
                break;
            }
            let weights = objective.weights(&corpus);
            let mut extended = corpus.terms.clone();
            let body = extended.copy(terms, other.body);
            let Some(next) = corpus.admit(&mut extended, body, other.arity, &weights) else {
                continue;
            };
            let next_cost = objective.cost(&next).total();
            if next_cost.saturating_add(limits.min_gain) < cost {
                (corpus, cost) = (next, next_cost);
                costs.push(cost);
            }
        }
        Some(Reached { corpus, costs })
    }
}

/// The candidates for the next abstraction, best first.
pub(crate) fn propose(
    corpus: &Factored,
    cost: u64,
    objective: &Objective<'_>,
    limits: &SearchLimits,
    floor: u64,
) -> Proposals {
    let mut terms = corpus.terms.clone();
    let weights = objective.weights(corpus);
    let mut space = corpus.space(&mut terms, &weights);
    if let (Shape::Skill, Some(dictionary)) = (limits.shape, objective.dictionary) {
        space.restrict_to_skills(&dictionary.slots(corpus), &terms);
    }
    let search = SearchLimits { floor: objective.search_floor(floor), ..*limits };
    let found = search::search(&space, &search);
    let mut choices: Vec<Choice> = Vec::new();
    for abstraction in &found.best {
        let body = abstraction.body_term(&space, &mut terms);
        for order in [Order::CheapFirst, Order::DearFirst] {
            let body = in_order(body, abstraction, order, &space, &mut terms);
            if choices.iter().any(|known| known.body == body) {
                continue;
            }
            let arity = abstraction.arity;
            let with_it = objective.cost_with(corpus, &mut terms, body, abstraction, &space, &weights);
            choices.extend(with_it.map(|cost| Choice { body, arity, cost }));
        }
    }
    let (mut choices, below): (Vec<Choice>, Vec<Choice>) =
        choices.into_iter().partition(|choice| choice.cost.saturating_add(floor) < cost);
    choices.sort_by_key(|choice| choice.cost);
    Proposals { terms, choices, below, steps: found.steps, stop: found.stop }
}

/// In which order an abstraction takes its parameters.
///
/// The order does not change what a call costs, but what later abstractions can do: a call may be cut after its first
/// arguments, so those that come last are free for an abstraction whose parameters are used up.
#[derive(Clone, Copy)]
enum Order {
    /// Arguments that cost little in all calls together come first.
    CheapFirst,
    /// The other way round.
    DearFirst,
}

/// The body with its parameters renumbered.
fn in_order(body: TermId, abstraction: &Partial, order: Order, space: &Space, terms: &mut Terms) -> TermId {
    let spent = |param: usize| -> u64 {
        let arguments = abstraction.param(param).iter().zip(abstraction.weights());
        arguments.map(|(&node, &weight)| u64::from(space.cost(node)) * u64::from(weight)).sum()
    };
    // Among equals, as they come in the body from left to right.
    let mut params: Vec<usize> = terms.params(body).into_iter().map(|param| param as usize).collect();
    match order {
        Order::CheapFirst => params.sort_by_key(|&param| spent(param)),
        Order::DearFirst => params.sort_by_key(|&param| std::cmp::Reverse(spent(param))),
    }
    let number = |param| params.iter().position(|&known| known == param).unwrap_or(param) as u32;
    let renumbered: Vec<TermId> = (0..abstraction.arity).map(|param| terms.add(Term::Param(number(param)))).collect();
    rewrite::instantiate(terms, body, &renumbered)
}
