//! Partial abstractions: a body with holes, and where in the corpus it matches.
//!
//! Matches are kept as dense columns. Row r is one distinct subterm of the corpus; column by column it says which
//! subterm stands at each parameter and at each hole there. Filling a hole selects rows and gathers columns, so one
//! expansion costs a few linear passes over 32-bit integers and nothing is looked up.

use std::sync::Arc;

use crate::shape::Position;
use crate::space::{Constructor, Node, Space};
use crate::term::{Term, TermId, Terms};

/// What a hole was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// An application; its function and argument are the next two holes.
    App,
    /// A λ with this tag; its body is the next hole.
    Lam(u32),
    /// A subterm of the corpus, as it is.
    Node(Node),
    /// A parameter, new or used again.
    Param(u32),
}

/// The choices that made a partial abstraction, newest first; partial abstractions share their tails.
#[derive(Debug)]
struct Choice {
    hole: u32,
    filling: Filling,
    before: Option<Arc<Choice>>,
}

/// An open place of a partial abstraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    id: u32,
    /// How many λ of the pattern stand above it.
    pub(crate) depth: u32,
    /// Where it stands, or the call whose function it is.
    place: Position,
    /// Whether it is applied to something.
    pub(crate) is_function: bool,
    /// What stands there in all rows together, in cost: how much the hole has at stake.
    pub(crate) stake: u64,
}

impl Hole {
    /// Whether a parameter may stand there.
    pub(crate) fn takes_params(&self, space: &Space) -> bool {
        !space.is_of_skills() || !self.is_function && self.place != Position::Fixed
    }
}

/// A body with holes and its matches.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    /// No completion saves more than this, its body aside; for a whole abstraction it is what it saves.
    pub(crate) saving: u64,
    /// Cost of the body so far.
    pub(crate) body: u32,
    pub(crate) holes: Vec<Hole>,
    pub(crate) arity: usize,
    rows: usize,
    /// Columns of `rows` entries each: row node, weight, potential, then one per parameter, then one per hole.
    columns: Vec<u32>,
    choices: Option<Arc<Choice>>,
    next_hole: u32,
}

/// Columns before those of the parameters.
const FIRST_PARAM: usize = 3;

impl Partial {
    /// The pattern that is one hole, at the given nodes (ascending).
    pub(crate) fn hole(nodes: &[Node], space: &Space) -> Self {
        let mut columns = nodes.to_vec();
        columns.extend(nodes.iter().map(|&n| space.weight(n)));
        columns.extend(nodes.iter().map(|&n| space.cost(n).saturating_sub(space.call)));
        columns.extend_from_slice(nodes);
        Self {
            saving: u64::MAX,
            body: 0,
            holes: vec![Hole { id: 0, depth: 0, place: Position::Tail, is_function: false, stake: 0 }],
            arity: 0,
            rows: nodes.len(),
            columns,
            choices: None,
            next_hole: 1,
        }
    }

    /// The whole abstraction without parameters that is `node` itself.
    pub(crate) fn constant(node: Node, space: &Space) -> Self {
        let mut partial = Self::hole(&[node], space);
        partial.choose(0, Filling::Node(node));
        partial.body = space.cost(node);
        partial.saving = u64::from(space.weight(node)) * u64::from(space.cost(node).saturating_sub(space.call));
        partial.columns.truncate(FIRST_PARAM);
        partial.holes.clear();
        partial
    }

    /// What it gains, or the most that a completion may gain: the saving less the least the body costs.
    pub(crate) fn gain(&self, space: &Space) -> i64 {
        let body = i64::from(self.body) + self.holes.len() as i64 * i64::from(space.smallest_leaf);
        i64::try_from(self.saving).unwrap_or(i64::MAX).saturating_sub(body)
    }

    /// The memory that its columns take.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.len() * size_of::<u32>()
    }

    /// The number of distinct subterms where it matches.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The subterms where it matches, ascending.
    pub(crate) fn nodes(&self) -> &[Node] {
        self.column(0)
    }

    /// How often each row's subterm occurs.
    pub(crate) fn weights(&self) -> &[u32] {
        self.column(1)
    }

    /// The most that one occurrence of each row's subterm can save: all of it but the call and the arguments so far.
    pub(crate) fn potentials(&self) -> &[u32] {
        self.column(2)
    }

    /// The argument of a parameter, by row.
    pub(crate) fn param(&self, index: usize) -> &[Node] {
        self.column(FIRST_PARAM + index)
    }

    /// What stands at a hole, by row.
    pub(crate) fn content(&self, hole: usize) -> &[Node] {
        self.column(FIRST_PARAM + self.arity + hole)
    }

    /// Fills a hole, at some of the rows. The filling must be right at all of them.
    ///
    /// With `capture`, holes that have become constant are filled too, and `None` comes back when a parameter has become
    /// constant (see [`crate::search::Rules::argument_capture`]).
    pub(crate) fn fill(
        &self,
        hole: usize,
        filling: Filling,
        rows: &[u32],
        space: &Space,
        capture: bool,
    ) -> Option<Self> {
        let len = rows.len();
        let content = self.content(hole);
        let Hole { depth, place, .. } = self.holes[hole];
        let new_param = matches!(filling, Filling::Param(index) if index as usize == self.arity);
        let arity = self.arity + usize::from(new_param);
        let mut columns: Vec<u32> = Vec::with_capacity(len * (FIRST_PARAM + arity + self.holes.len() + 1));
        for index in 0..FIRST_PARAM + self.arity {
            gather(self.column(index), rows, &mut columns);
            if index >= FIRST_PARAM && capture && is_constant(&columns[index * len..], space, 0) {
                return None;
            }
        }
        if new_param {
            columns.extend(rows.iter().map(|&row| {
                let node = content[row as usize];
                space.argument(node, depth).unwrap_or(node)
            }));
            let (before, argument) = columns.split_at_mut((FIRST_PARAM + self.arity) * len);
            for (potential, &node) in before[2 * len..3 * len].iter_mut().zip(&*argument) {
                *potential = potential.saturating_sub(space.app + space.cost(node));
            }
        }
        let mut child = Self {
            saving: self.saving,
            body: self.body,
            holes: Vec::with_capacity(self.holes.len() + 1),
            arity,
            rows: len,
            columns,
            choices: self.choices.clone(),
            next_hole: self.next_hole,
        };
        child.choose(self.holes[hole].id, filling);
        for (other, &kept) in self.holes.iter().enumerate() {
            if other != hole {
                child.open(kept, |columns| gather(self.content(other), rows, columns), space, capture);
            }
        }
        let below = rows.iter().map(|&row| content[row as usize]);
        match filling {
            Filling::App => {
                child.body += space.app;
                let id = child.next_hole;
                child.next_hole += 2;
                // Where it matters, the rows are parted by what is applied, so any of them tells the place.
                let argument = rows.first().map_or(place, |&row| space.place_of_argument(content[row as usize], place));
                let argument = Hole { id: id + 1, depth, place: argument, is_function: false, stake: 0 };
                let function = Hole { id, depth, place, is_function: true, stake: 0 };
                // The function is opened last, so that taking the last hole walks the body from left to right.
                child.open(argument, |columns| columns.extend(below.clone().map(|n| space.right(n))), space, capture);
                child.open(function, |columns| columns.extend(below.map(|n| space.left(n))), space, capture);
            }
            Filling::Lam(_) => {
                child.body += space.lam;
                let inner = Hole { id: child.next_hole, depth: depth + 1, place, is_function: false, stake: 0 };
                child.next_hole += 1;
                child.open(inner, |columns| columns.extend(below.map(|n| space.left(n))), space, capture);
            }
            Filling::Node(node) => child.body += space.cost(node),
            Filling::Param(_) => child.body += space.param,
        }
        Some(child)
    }

    /// The whole abstraction with this body, at all places where it matches; `None` when there is none.
    pub(crate) fn matching(body: TermId, terms: &Terms, space: &Space) -> Option<Self> {
        let nodes: Vec<Node> = space.inner().collect();
        let mut partial = Self::hole(&nodes, space);
        let mut pending = vec![body];
        let mut met: Vec<u32> = Vec::new();
        let mut selection = Vec::new();
        while !pending.is_empty() {
            // A subterm without parameters is matched whole, and at once, so that few holes are open at a time.
            let is_whole = |&at: &usize| !terms.has_param(pending[at]);
            let hole = pending.len().checked_sub(2).filter(is_whole).unwrap_or(pending.len() - 1);
            let term = pending.remove(hole);
            let content = partial.content(hole);
            let depth = partial.holes[hole].depth;
            selection.clear();
            let mut keep = |is_match: &dyn Fn(usize) -> bool| {
                selection.extend((0..content.len()).filter(|&row| is_match(row)).map(|row| row as u32));
            };
            let filling = match terms.get(term) {
                _ if !terms.has_param(term) => {
                    keep(&|row| space.term(content[row]) == term);
                    Filling::Node(selection.first().map_or(0, |&row| content[row as usize]))
                }
                Term::App(f, x) => {
                    pending.extend([x, f]);
                    keep(&|row| space.constructor(content[row]) == Constructor::App);
                    Filling::App
                }
                Term::Lam(tag, inner) => {
                    pending.push(inner);
                    keep(&|row| space.constructor(content[row]) == Constructor::Lam(tag));
                    Filling::Lam(tag)
                }
                Term::Param(index) => match met.iter().position(|&known| known == index) {
                    Some(known) => {
                        let param = partial.param(known);
                        keep(&|row| space.argument(content[row], depth) == Some(param[row]));
                        Filling::Param(known as u32)
                    }
                    None => {
                        met.push(index);
                        keep(&|row| space.argument(content[row], depth).is_some());
                        Filling::Param(met.len() as u32 - 1)
                    }
                },
                // A leaf that is no parameter has none.
                Term::Symbol(_) | Term::Var(..) => return None,
            };
            if selection.is_empty() {
                return None;
            }
            partial = partial.fill(hole, filling, &selection, space, false)?;
        }
        // Parameters were met from left to right; put their columns in the order of their numbers.
        let mut columns = partial.columns[..FIRST_PARAM * partial.rows].to_vec();
        for index in 0..partial.arity as u32 {
            columns.extend_from_slice(partial.param(met.iter().position(|&known| known == index)?));
        }
        partial.columns = columns;
        Some(partial)
    }

    /// The body as a term.
    pub(crate) fn body_term(&self, space: &Space, terms: &mut Terms) -> TermId {
        let mut choices = Vec::new();
        let mut choice = self.choices.as_ref();
        while let Some(c) = choice {
            choices.push((c.hole, c.filling));
            choice = c.before.as_ref();
        }
        // Holes are numbered in the order in which the choices opened them.
        let holes = self.next_hole as usize;
        let mut filled = vec![None; holes];
        let mut next = 1;
        for &(hole, filling) in choices.iter().rev() {
            filled[hole as usize] = Some((filling, next));
            next += match filling {
                Filling::App => 2,
                Filling::Lam(_) => 1,
                Filling::Node(_) | Filling::Param(_) => 0,
            };
        }
        // A child has a larger number than its parent, so one pass from the end builds the term.
        let mut built = vec![TermId(0); holes];
        for hole in (0..holes).rev() {
            if let Some((filling, child)) = filled[hole] {
                built[hole] = match filling {
                    Filling::App => terms.add(Term::App(built[child], built[child + 1])),
                    Filling::Lam(tag) => terms.add(Term::Lam(tag, built[child])),
                    Filling::Node(node) => space.term(node),
                    Filling::Param(index) => terms.add(Term::Param(index)),
                };
            }
        }
        built[0]
    }

    /// Whether nothing has been chosen yet.
    pub(crate) fn is_root(&self) -> bool {
        self.choices.is_none()
    }

    fn column(&self, index: usize) -> &[u32] {
        &self.columns[index * self.rows..(index + 1) * self.rows]
    }

    fn choose(&mut self, hole: u32, filling: Filling) {
        self.choices = Some(Arc::new(Choice { hole, filling, before: self.choices.take() }));
    }

    /// Adds a hole with its column, or fills it at once when the column is constant.
    fn open(&mut self, hole: Hole, add: impl FnOnce(&mut Vec<Node>), space: &Space, capture: bool) {
        let start = self.columns.len();
        add(&mut self.columns);
        let column = &self.columns[start..];
        if capture && is_constant(column, space, hole.depth) {
            let node = column[0];
            self.columns.truncate(start);
            self.body += space.cost(node);
            self.choose(hole.id, Filling::Node(node));
            return;
        }
        let at_stake = |(&node, &weight): (&Node, &u32)| u64::from(weight) * u64::from(space.cost(node));
        let stake = column.iter().zip(self.weights()).map(at_stake).sum();
        self.holes.push(Hole { stake, ..hole });
    }
}

/// Appends the selected entries of a column.
fn gather(column: &[u32], rows: &[u32], into: &mut Vec<u32>) {
    if rows.len() == column.len() {
        into.extend_from_slice(column);
    } else {
        into.extend(rows.iter().map(|&row| column[row as usize]));
    }
}

/// Whether all entries are the same subterm and it may stand in the body under `depth` binders.
fn is_constant(column: &[Node], space: &Space, depth: u32) -> bool {
    match column.split_first() {
        Some((&first, rest)) => rest.iter().all(|&n| n == first) && space.is_fixable(first, depth),
        None => false,
    }
}
