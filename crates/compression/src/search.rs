//! Best-first search for the abstractions that make the corpus cheapest.
//!
//! The search starts from the pattern that is one hole and matches everywhere, and fills holes one by one: with a
//! constructor that stands there at some of the matches, with a parameter already in use, or with a new one. Every whole
//! abstraction is reached by exactly one sequence of fillings. A partial abstraction is bounded from above by what all its
//! matches together could save if its holes cost nothing; the queue is ordered by that bound, so the search may stop as
//! soon as the bound is no better than what has been found. The result is then optimal ([`Stop::Optimal`], or
//! [`Stop::OptimalUnderRules`] where two of the rules may have lost it).
//!
//! The queue is worked off in batches whose size depends on its length alone. Batches are expanded in parallel and merged
//! in order, so the result does not depend on the number of threads.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

use rayon::prelude::*;

use crate::bound::{self, Groups};
use crate::capture;
use crate::pattern::{Filling, Partial};
use crate::shape::Shape;
use crate::space::{Constructor, Node, Space};

/// The pruning rules, each with its off-switch. They change how long the search takes, not how good the best abstraction
/// is. One exception: argument capture and the single place give up abstractions that use a parameter more often in their
/// body than they are called, such as `(f #0 #0 #0)` called once. Where that may have cost the best abstraction, the search
/// says so ([`Stop::OptimalUnderRules`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Argument capture (Stitch, §4.3): a parameter whose argument is the same everywhere is written into the body
    /// instead, and a hole that has the same content everywhere is filled with it at once. No worse as long as there are
    /// no fewer calls than uses of the parameter in the body: the argument is then paid for at every use instead of at
    /// every call.
    pub argument_capture: bool,
    /// Redundant argument elimination (Stitch, §4.3): two parameters whose arguments agree everywhere are one.
    pub redundant_argument: bool,
    /// A closed subterm that is the only match is best abstracted as it is, without parameters; those abstractions are
    /// all tried first.
    pub single_place: bool,
    /// A row whose potential is used up by its arguments is dropped: no completion calls the abstraction there.
    pub spent_rows: bool,
    /// The bound for patterns whose parameters are used up, see the `bound` module.
    pub exhausted_arity: bool,
    /// The bound that counts overlapping matches once, see the `space` module. One pass over the corpus for each partial
    /// abstraction: it saves expansions on long spines and costs more time than it saves, so it is off by
    /// default.
    pub overlap: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            argument_capture: true,
            redundant_argument: true,
            single_place: true,
            spent_rows: true,
            exhausted_arity: true,
            overlap: false,
        }
    }
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Nothing better exists.
    Optimal,
    /// Nothing better exists among what argument capture and the single place keep. An abstraction that uses a parameter more
    /// often in its body than it is called may be better.
    OptimalUnderRules,
    /// The allowed number of steps was used up.
    Budget,
    /// The partial abstractions that wait to be expanded took more than the allowed memory.
    Memory,
    /// The allowed time was used up.
    Time,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Optimal => "optimal",
            Self::OptimalUnderRules => "optimal under argument capture and single place",
            Self::Budget => "budget",
            Self::Memory => "memory",
            Self::Time => "time",
        })
    }
}

/// What a search may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchLimits {
    pub(crate) max_arity: usize,
    /// How many abstractions to find.
    pub(crate) keep: usize,
    /// Only abstractions that gain more than this are of interest.
    pub(crate) floor: i64,
    pub(crate) max_steps: u64,
    /// The most bytes that the queue may take.
    pub(crate) max_memory: u64,
    pub(crate) deadline: Option<Instant>,
    pub(crate) parallel: bool,
    pub(crate) rules: Rules,
    /// Which abstractions are searched; the space is laid out accordingly.
    pub(crate) shape: Shape,
}

/// What a search found.
pub(crate) struct Found {
    /// The best abstractions, best first. Among equally good ones the one that saves more (and has the larger body) is
    /// first: a body is paid for once and may itself become shorter in later rounds.
    pub(crate) best: Vec<Partial>,
    /// How many partial abstractions were expanded.
    pub(crate) steps: u64,
    pub(crate) stop: Stop,
}

/// The most partial abstractions expanded at once.
const MAX_BATCH: usize = 32;

/// The memory in bytes that the queue of a search may take if nothing else is said: 1 GiB. A search that would take more
/// stops with what it has found ([`Stop::Memory`]). A corpus of ordinary programs stays far below; one that is a single chain
/// of 100 000 calls does not.
pub const DEFAULT_MAX_MEMORY: u64 = 1 << 30;

/// Finds the abstractions that gain the most.
pub(crate) fn search(space: &Space, limits: &SearchLimits) -> Found {
    let mut found = Found { best: Vec::new(), steps: 0, stop: Stop::Optimal };
    add_constants(space, limits, &mut found);
    let mut queue = BinaryHeap::new();
    let mut sequence = 0;
    let mut queued_bytes: u64 = 0;
    let nodes: Vec<Node> = space.inner().collect();
    queue.push(Queued { gain: i64::MAX, sequence, partial: Partial::hole(&nodes, space) });
    let mut scratch = Scratch::default();
    loop {
        let least = found.least_gain(limits);
        let size = (queue.len() / 4).clamp(1, MAX_BATCH);
        let mut batch = Vec::with_capacity(size);
        while batch.len() < size {
            match queue.pop() {
                Some(queued) if queued.gain > least => {
                    queued_bytes = queued_bytes.saturating_sub(queued.partial.bytes() as u64);
                    batch.push(queued.partial);
                }
                Some(_) => {
                    queue.clear();
                    queued_bytes = 0;
                }
                None => break,
            }
        }
        if batch.is_empty() {
            let best = found.best.first().map_or(limits.floor, |best| best.gain(space));
            let may_lose = limits.rules.argument_capture || limits.rules.single_place;
            if may_lose && capture::may_have_lost(space, limits.max_arity, best) {
                found.stop = Stop::OptimalUnderRules;
            }
            return found;
        }
        if found.steps >= limits.max_steps {
            return Found { stop: Stop::Budget, ..found };
        }
        if queued_bytes > limits.max_memory {
            return Found { stop: Stop::Memory, ..found };
        }
        if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Found { stop: Stop::Time, ..found };
        }
        found.steps += batch.len() as u64;
        let expansion = |partial: &Partial, scratch: &mut Scratch| {
            let mut expansion = Expansion { partial, space, limits, least, scratch, children: Vec::new() };
            expansion.run();
            expansion.children
        };
        let children: Vec<Vec<Partial>> = if limits.parallel && batch.len() >= 4 {
            batch.par_iter().map_init(Scratch::default, |scratch, partial| expansion(partial, scratch)).collect()
        } else {
            batch.iter().map(|partial| expansion(partial, &mut scratch)).collect()
        };
        for child in children.into_iter().flatten() {
            let gain = child.gain(space);
            if child.holes.is_empty() {
                found.add(child, limits, space);
            } else if gain > found.least_gain(limits) {
                sequence += 1;
                queued_bytes += child.bytes() as u64;
                queue.push(Queued { gain, sequence, partial: child });
            }
        }
    }
}

impl Found {
    /// What an abstraction must gain more than to be of interest.
    fn least_gain(&self, limits: &SearchLimits) -> i64 {
        let worst =
            self.best.get(limits.keep.saturating_sub(1)).map_or(i64::MIN, |p| p.saving as i64 - i64::from(p.body));
        worst.max(limits.floor)
    }

    fn add(&mut self, abstraction: Partial, limits: &SearchLimits, space: &Space) {
        let rank = |p: &Partial| (p.gain(space), p.saving);
        if abstraction.gain(space) <= limits.floor {
            return;
        }
        let at = self.best.partition_point(|known| rank(known) >= rank(&abstraction));
        if at < limits.keep {
            self.best.insert(at, abstraction);
            self.best.truncate(limits.keep);
        }
    }
}

/// Adds the best abstractions without parameters: every closed subterm that occurs more than once.
fn add_constants(space: &Space, limits: &SearchLimits, found: &mut Found) {
    let mut constants: Vec<(std::cmp::Reverse<i64>, Node)> = space
        .inner()
        .filter(|&node| space.is_fixable(node, 0) && space.weight(node) >= 2)
        .map(|node| {
            let saved = u64::from(space.weight(node)) * u64::from(space.cost(node).saturating_sub(space.call));
            (std::cmp::Reverse(saved as i64 - i64::from(space.cost(node))), node)
        })
        .collect();
    constants.sort_unstable();
    for &(_, node) in constants.iter().take(limits.keep) {
        found.add(Partial::constant(node, space), limits, space);
    }
}

/// A partial abstraction in the queue: the most promising first, among equals the oldest.
struct Queued {
    gain: i64,
    sequence: u64,
    partial: Partial,
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.cmp(&other.gain).then(other.sequence.cmp(&self.sequence))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

/// Buffers that outlive an expansion.
#[derive(Default)]
struct Scratch {
    values: Vec<u32>,
    buckets: Vec<u32>,
    met: Vec<u32>,
    order: Vec<u32>,
    rows: Vec<u32>,
    groups: Groups,
}

/// The expansion of one partial abstraction at one hole.
struct Expansion<'a> {
    partial: &'a Partial,
    space: &'a Space,
    limits: &'a SearchLimits,
    /// What a child must promise more than.
    least: i64,
    scratch: &'a mut Scratch,
    children: Vec<Partial>,
}

impl Expansion<'_> {
    fn run(&mut self) {
        // The hole with the least at stake: small holes decide soonest which rows stay.
        let Some(hole) = (0..self.partial.holes.len()).min_by_key(|&hole| self.partial.holes[hole].stake) else {
            return;
        };
        if self.partial.is_root() {
            self.fill_by_constructor(hole);
            return;
        }
        let takes_params = self.partial.holes[hole].takes_params(self.space);
        for param in 0..if takes_params { self.partial.arity } else { 0 } {
            self.reuse_param(hole, param);
        }
        if self.partial.arity < self.limits.max_arity {
            if takes_params {
                self.add_param(hole);
            }
            self.fill_by_constructor(hole);
        } else {
            self.fill_by_node(hole);
            self.fill_around_params(hole);
        }
    }

    fn reuse_param(&mut self, hole: usize, param: usize) {
        let (space, depth) = (self.space, self.partial.holes[hole].depth);
        let content = self.partial.content(hole);
        let arguments = self.partial.param(param);
        let is_match = |&row: &u32| space.argument(content[row as usize], depth) == Some(arguments[row as usize]);
        let mut rows = std::mem::take(&mut self.scratch.rows);
        rows.clear();
        rows.extend((0..content.len() as u32).filter(is_match));
        self.consider(hole, Filling::Param(param as u32), &rows);
        self.scratch.rows = rows;
    }

    fn add_param(&mut self, hole: usize) {
        let (space, depth) = (self.space, self.partial.holes[hole].depth);
        let content = self.partial.content(hole);
        let potentials = self.partial.potentials();
        let is_match = |&row: &u32| {
            let row = row as usize;
            space.argument(content[row], depth).is_some_and(|argument| {
                !self.limits.rules.spent_rows || potentials[row] > space.app + space.cost(argument)
            })
        };
        let mut rows = std::mem::take(&mut self.scratch.rows);
        rows.clear();
        rows.extend((0..content.len() as u32).filter(is_match));
        self.consider(hole, Filling::Param(self.partial.arity as u32), &rows);
        self.scratch.rows = rows;
    }

    /// Fills the hole with each constructor that stands there.
    fn fill_by_constructor(&mut self, hole: usize) {
        let (space, depth) = (self.space, self.partial.holes[hole].depth);
        let content = self.partial.content(hole);
        self.for_groups(
            content,
            |node| space.code(node),
            |this, rows| {
                let filling = match space.constructor(content[rows[0] as usize]) {
                    Constructor::App => Filling::App,
                    Constructor::Lam(tag) => Filling::Lam(tag),
                    Constructor::Leaf(node) if space.is_fixable(node, depth) => Filling::Node(node),
                    Constructor::Leaf(_) => return,
                };
                this.consider(hole, filling, rows);
            },
        );
    }

    /// Fills the hole with each whole subterm that stands there: with no parameter to give, that is what most
    /// completions do.
    fn fill_by_node(&mut self, hole: usize) {
        let (space, depth) = (self.space, self.partial.holes[hole].depth);
        let content = self.partial.content(hole);
        self.for_groups(
            content,
            |node| node,
            |this, rows| {
                let node = content[rows[0] as usize];
                if space.is_fixable(node, depth) {
                    this.consider(hole, Filling::Node(node), rows);
                }
            },
        );
    }

    /// Opens up the hole where a parameter in use may stand inside its content.
    fn fill_around_params(&mut self, hole: usize) {
        let space = self.space;
        let content = self.partial.content(hole);
        let may_hold_param = |row: u32| {
            let node = content[row as usize];
            (0..self.partial.arity)
                .map(|param| self.partial.param(param)[row as usize])
                .any(|argument| argument != node && space.may_contain(node, argument))
        };
        let rows: Vec<u32> = (0..content.len() as u32).filter(|&row| may_hold_param(row)).collect();
        let inner: Vec<Node> = rows.iter().map(|&row| content[row as usize]).collect();
        self.for_groups(
            &inner,
            |node| space.code(node),
            |this, group| {
                let group: Vec<u32> = group.iter().map(|&at| rows[at as usize]).collect();
                match space.constructor(content[group[0] as usize]) {
                    Constructor::App => this.consider(hole, Filling::App, &group),
                    Constructor::Lam(tag) => this.consider(hole, Filling::Lam(tag), &group),
                    Constructor::Leaf(_) => {}
                }
            },
        );
    }

    /// Calls `visit` with the rows of each group of a column by key, in order of key; keys are below the space's length.
    fn for_groups(&mut self, column: &[Node], key: impl Fn(Node) -> u32, mut visit: impl FnMut(&mut Self, &[u32])) {
        let mut buckets = std::mem::take(&mut self.scratch.buckets);
        let mut met = std::mem::take(&mut self.scratch.met);
        let mut order = std::mem::take(&mut self.scratch.order);
        buckets.resize(self.space.len() + 1, 0);
        met.clear();
        for &node in column {
            let bucket = &mut buckets[key(node) as usize];
            if *bucket == 0 {
                met.push(key(node));
            }
            *bucket += 1;
        }
        met.sort_unstable();
        let mut start = 0;
        for &k in &met {
            start += std::mem::replace(&mut buckets[k as usize], start);
        }
        order.clear();
        order.resize(column.len(), 0);
        for (row, &node) in column.iter().enumerate() {
            let bucket = &mut buckets[key(node) as usize];
            order[*bucket as usize] = row as u32;
            *bucket += 1;
        }
        let mut from = 0;
        for &k in &met {
            let to = std::mem::take(&mut buckets[k as usize]) as usize;
            visit(self, &order[from..to]);
            from = to;
        }
        self.scratch.buckets = buckets;
        self.scratch.met = met;
        self.scratch.order = order;
    }

    /// Fills the hole at some rows, and keeps the child if it is promising.
    fn consider(&mut self, hole: usize, filling: Filling, rows: &[u32]) {
        let (partial, space, rules) = (self.partial, self.space, &self.limits.rules);
        let (weights, potentials) = (partial.weights(), partial.potentials());
        let potential = |&row: &u32| u64::from(weights[row as usize]) * u64::from(potentials[row as usize]);
        let saving: u64 = rows.iter().map(potential).sum();
        let body = i64::from(partial.body) + (partial.holes.len() as i64 - 1) * i64::from(space.smallest_leaf);
        if rows.is_empty() || saving as i64 - body <= self.least {
            return;
        }
        if rules.single_place && rows.len() == 1 && space.is_fixable(partial.nodes()[rows[0] as usize], 0) {
            return;
        }
        let child = partial.fill(hole, filling, rows, space, rules.argument_capture);
        let Some(mut child) = child.and_then(|child| self.with_head(child)) else {
            return;
        };
        self.bound(&mut child);
        if child.gain(space) > self.least {
            self.children.push(child);
        }
    }

    /// Opens a call down to what is applied, which in a search of skills is the same at all rows; the function of the
    /// call, if it is open, is the last hole.
    fn with_head(&self, mut child: Partial) -> Option<Partial> {
        let space = self.space;
        while space.is_of_skills()
            && let Some(hole) = child.holes.len().checked_sub(1)
            && child.holes[hole].is_function
        {
            let filling = match space.constructor(*child.content(hole).first()?) {
                Constructor::App => Filling::App,
                Constructor::Lam(tag) => Filling::Lam(tag),
                Constructor::Leaf(node) if space.is_fixable(node, child.holes[hole].depth) => Filling::Node(node),
                Constructor::Leaf(_) => return None,
            };
            let rows: Vec<u32> = (0..child.rows() as u32).collect();
            child = child.fill(hole, filling, &rows, space, self.limits.rules.argument_capture)?;
        }
        Some(child)
    }

    /// Sets the saving of a child, or a bound on it; to 0 when another abstraction is sure to be as good.
    fn bound(&mut self, child: &mut Partial) {
        let (space, rules) = (self.space, &self.limits.rules);
        child.saving = child.weights().iter().zip(child.potentials()).map(|(&w, &p)| u64::from(w) * u64::from(p)).sum();
        let is_redundant = |param: usize| (0..param).any(|other| child.param(param) == child.param(other));
        if rules.redundant_argument && (1..child.arity).any(is_redundant) {
            child.saving = 0;
        }
        if child.gain(space) <= self.least {
            return;
        }
        let left = self.limits.max_arity - child.arity;
        let is_whole = child.holes.is_empty();
        if rules.exhausted_arity && left <= 1 && child.holes.len() > left {
            child.saving = child.saving.min(bound::consumed(child, left, space, &mut self.scratch.groups));
        }
        if is_whole || rules.overlap && child.gain(space) > self.least {
            let rewritten = space.rewritten_cost(child, &mut self.scratch.values);
            child.saving = child.saving.min(space.total.saturating_sub(rewritten));
        }
    }
}
