//! The corpus laid out for the search: every distinct subterm in flat arrays, and the one dynamic programme that the
//! exact saving of an abstraction comes from.
//!
//! For an abstraction A that matches at a set of subterms, the cheapest rewriting of the corpus is, over the distinct
//! subterms n in order of height,
//!
//! ```text
//! v(n) = min( own(n) + Σ v(children of n),  call + Σ_i (app + v(argument_i at n))   if A matches at n )
//! ```
//!
//! and the cost of the rewritten corpus is Σ_roots weight · v(root). For a *partial* abstraction, whose holes are still
//! open, the same recursion with holes at no charge is a lower bound on that of each of its completions: a completion
//! matches at no more places and has no fewer arguments. It counts overlapping matches once.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::cost::Weights;
use crate::pattern::Partial;
use crate::shape::{Position, Slots};
use crate::term::{Term, TermId, Terms};

/// An index into a [`Space`]: a distinct subterm of the corpus. Nodes are ordered by height, leaves first.
pub(crate) type Node = u32;

/// The constructor of a node, as the search branches on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Constructor {
    App,
    Lam(u32),
    /// A leaf: a constant, a variable or a parameter. Leaves are distinct, so the node names it.
    Leaf(Node),
}

/// λ-depth up to which arguments with free variables are looked for. An argument under more binders of the pattern than
/// that must be closed.
const MAX_LOWERING: u32 = 32;

/// The largest height of an open λ that is looked for as an argument. Lowering a λ takes a walk over it, so that without
/// a limit λ nested a hundred thousand deep would take hours.
const MAX_LOWERED_HEIGHT: u32 = 256;

/// The distinct subterms of a corpus, with what the search wants to know of each.
pub(crate) struct Space {
    term: Vec<TermId>,
    left: Vec<Node>,
    right: Vec<Node>,
    /// Cost of the node itself, without its children.
    own: Vec<u32>,
    cost: Vec<u32>,
    weight: Vec<u32>,
    constructor: Vec<Constructor>,
    /// See [`Space::code`].
    code: Vec<u32>,
    /// For a search of skills, where each application puts its argument; otherwise empty.
    slots: Vec<Position>,
    open: Vec<u32>,
    has_param: Vec<bool>,
    /// Bloom filter of the nodes that occur in each node.
    parts: Vec<u64>,
    /// See [`Space::outlines`]; made when first asked for.
    outlines: OnceLock<Vec<u32>>,
    leaves: usize,
    /// Number of nodes of the corpus; nodes from here on are lowered arguments.
    corpus_len: usize,
    /// For each node past `corpus_len`, the node it was lowered from and by how much.
    origin: Vec<(Node, u32)>,
    lowered: FxHashMap<(Node, u32), Node>,
    roots: Vec<(Node, u64)>,
    /// What the weights say.
    pub(crate) call: u32,
    pub(crate) app: u32,
    pub(crate) lam: u32,
    pub(crate) param: u32,
    pub(crate) smallest_leaf: u32,
    /// Cost of the corpus as it stands.
    pub(crate) total: u64,
}

impl Space {
    /// Lays out everything reachable from the roots, each with its weight.
    ///
    /// `terms` is extended by lowered arguments where the corpus has λ.
    pub(crate) fn new(terms: &mut Terms, roots: &[(TermId, u64)], weights: &Weights) -> Self {
        let mut height = vec![0u32; terms.len()];
        let mut order = terms.reachable(roots.iter().map(|&(root, _)| root));
        for &id in &order {
            height[id.0 as usize] = terms.children(id).map(|c| height[c.0 as usize] + 1).max().unwrap_or(0);
        }
        order.sort_by_key(|id| (height[id.0 as usize], *id));

        // Node 0 stands for the missing second child of a λ and costs nothing.
        let len = order.len() + 1;
        let mut space = Self {
            term: Vec::with_capacity(len),
            left: Vec::with_capacity(len),
            right: Vec::with_capacity(len),
            own: Vec::with_capacity(len),
            cost: Vec::with_capacity(len),
            weight: Vec::new(),
            constructor: Vec::with_capacity(len),
            code: Vec::new(),
            slots: Vec::new(),
            open: Vec::with_capacity(len),
            has_param: Vec::with_capacity(len),
            parts: Vec::with_capacity(len),
            outlines: OnceLock::new(),
            leaves: order.iter().take_while(|id| height[id.0 as usize] == 0).count() + 1,
            corpus_len: len,
            origin: Vec::new(),
            lowered: FxHashMap::default(),
            roots: Vec::new(),
            call: weights.call,
            app: weights.app,
            lam: weights.lam,
            param: weights.param,
            smallest_leaf: weights.smallest_leaf(),
            total: 0,
        };
        space.push(TermId(u32::MAX), (0, 0), 0, Constructor::Leaf(0), (0, true));
        let mut node_of = vec![0; terms.len()];
        for &id in &order {
            let node = space.term.len() as Node;
            node_of[id.0 as usize] = node;
            let (children, own, constructor) = match terms.get(id) {
                Term::App(f, x) => ((node_of[f.0 as usize], node_of[x.0 as usize]), weights.app, Constructor::App),
                Term::Lam(tag, body) => ((node_of[body.0 as usize], 0), weights.lam, Constructor::Lam(tag)),
                leaf => ((0, 0), weights.leaf(leaf), Constructor::Leaf(node)),
            };
            space.push(id, children, own, constructor, (terms.open(id), terms.has_param(id)));
        }
        space.count_occurrences(roots.iter().map(|&(root, weight)| (node_of[root.0 as usize], weight)));
        space.number_constructors();
        space.lower_arguments(terms, &mut node_of);
        space
    }

    /// Number of nodes of the corpus, node 0 included.
    pub(crate) fn len(&self) -> usize {
        self.corpus_len
    }

    /// The nodes that are no leaves.
    pub(crate) fn inner(&self) -> std::ops::Range<Node> {
        self.leaves as Node..self.corpus_len as Node
    }

    /// Cost of the subterm.
    pub(crate) fn cost(&self, node: Node) -> u32 {
        self.cost[node as usize]
    }

    /// How often the subterm occurs in the corpus, counted by root weight.
    pub(crate) fn weight(&self, node: Node) -> u32 {
        self.weight[node as usize]
    }

    pub(crate) fn constructor(&self, node: Node) -> Constructor {
        self.constructor[node as usize]
    }

    /// The constructor as a number below [`Space::len`]. In a search of skills applications are told apart by what is
    /// applied to how many arguments.
    pub(crate) fn code(&self, node: Node) -> u32 {
        self.code[node as usize]
    }

    /// Whether only abstractions of [`crate::Shape::Skill`] are searched for.
    pub(crate) fn is_of_skills(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Where the argument of an application stands when the call that it belongs to stands at `place`.
    pub(crate) fn place_of_argument(&self, application: Node, place: Position) -> Position {
        self.slots.get(application as usize).map_or(Position::Value, |&slot| place.of_argument(slot))
    }

    /// Searches only abstractions of [`crate::Shape::Skill`] from now on.
    pub(crate) fn restrict_to_skills(&mut self, slots: &Slots, terms: &Terms) {
        // The first node of each constructor, and of each head with each number of arguments.
        let mut heads: FxHashMap<u32, Node> = FxHashMap::default();
        let mut calls: FxHashMap<(Node, u32), Node> = FxHashMap::default();
        let mut spines: Vec<(Node, u32)> = Vec::with_capacity(self.corpus_len);
        self.slots = vec![Position::Fixed; self.corpus_len];
        for node in 0..self.corpus_len {
            let spine = match self.constructor[node] {
                Constructor::App => {
                    let (head, before) = spines[self.left[node] as usize];
                    self.slots[node] = slots.argument(terms, self.term[head as usize], before as usize);
                    (head, before + 1)
                }
                _ => (*heads.entry(self.code[node]).or_insert(node as Node), 0),
            };
            spines.push(spine);
        }
        for (node, spine) in spines.into_iter().enumerate() {
            self.code[node] = *calls.entry(spine).or_insert(node as Node);
        }
    }

    /// The distinct roots of the corpus.
    pub(crate) fn root_nodes(&self) -> impl Iterator<Item = Node> {
        self.roots.iter().map(|&(root, _)| root)
    }

    /// The parts of a node: none of a leaf, one of a λ, two of an application.
    pub(crate) fn children(&self, node: Node) -> impl Iterator<Item = Node> + use<> {
        [self.left[node as usize], self.right[node as usize]].into_iter().filter(|&child| child != 0)
    }

    /// The function of an application, the body of a λ.
    pub(crate) fn left(&self, node: Node) -> Node {
        self.left[node as usize]
    }

    /// The argument of an application.
    pub(crate) fn right(&self, node: Node) -> Node {
        self.right[node as usize]
    }

    pub(crate) fn term(&self, node: Node) -> TermId {
        self.term[node as usize]
    }

    /// The nodes of some terms of the corpus.
    pub(crate) fn nodes_of(&self, terms: &[TermId]) -> Vec<Node> {
        let nodes = 1..self.corpus_len;
        let node_of: FxHashMap<TermId, Node> = nodes.map(|node| (self.term[node], node as Node)).collect();
        terms.iter().map(|term| node_of.get(term).copied().unwrap_or(0)).collect()
    }

    /// Whether a subterm may stand as it is under `depth` binders of an abstraction's body.
    pub(crate) fn is_fixable(&self, node: Node, depth: u32) -> bool {
        self.open[node as usize] <= depth && !self.has_param[node as usize]
    }

    /// What a subterm under `depth` binders of the pattern is as an argument, outside them: `None` when it uses one.
    pub(crate) fn argument(&self, node: Node, depth: u32) -> Option<Node> {
        if depth == 0 || self.open[node as usize] == 0 {
            return Some(node);
        }
        self.lowered.get(&(node, depth)).copied()
    }

    /// The node an argument was lowered from, and by how much; `None` for nodes of the corpus.
    pub(crate) fn lowered_from(&self, node: Node) -> Option<(Node, u32)> {
        Some(self.origin[(node as usize).checked_sub(self.corpus_len)?])
    }

    /// Whether `part` may occur in `whole`: a Bloom filter, so yes may be wrong and no is sure.
    ///
    /// An open argument stands raised under binders, as another node, so for it the answer is always yes.
    pub(crate) fn may_contain(&self, whole: Node, part: Node) -> bool {
        self.open[part as usize] > 0 || self.parts[whole as usize] & bloom(part) != 0
    }

    /// The outline of every node, lowered arguments included, as a number: two nodes have the same if they differ in
    /// nothing but their leaves. That of a leaf is 0.
    pub(crate) fn outlines(&self) -> &[u32] {
        self.outlines.get_or_init(|| {
            let mut known: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
            let mut outlines: Vec<u32> = Vec::with_capacity(self.term.len());
            for node in 0..self.corpus_len {
                let below = |child: Node| outlines[child as usize];
                let key = match self.constructor[node] {
                    Constructor::Leaf(_) => (0, 0, 0),
                    Constructor::App => (1, below(self.left[node]), below(self.right[node])),
                    Constructor::Lam(tag) => (tag.saturating_add(2), below(self.left[node]), 0),
                };
                let next = known.len() as u32;
                outlines.push(*known.entry(key).or_insert(next));
            }
            // Lowering renames variables, which are leaves.
            for &(from, _) in &self.origin {
                outlines.push(outlines[from as usize]);
            }
            outlines
        })
    }

    /// The least cost of the corpus under a partial or whole abstraction, its body aside. `values` is scratch space and
    /// afterwards holds v of every node.
    pub(crate) fn rewritten_cost(&self, abstraction: &Partial, values: &mut Vec<u32>) -> u64 {
        values.clear();
        values.extend_from_slice(&self.cost[..self.corpus_len]);
        let nodes = abstraction.nodes();
        let mut from = nodes.first().map_or(self.corpus_len, |&n| n as usize);
        for (row, &node) in nodes.iter().enumerate() {
            let node = node as usize;
            self.propagate(from..node + 1, values);
            let call = (0..abstraction.arity).fold(self.call, |sum, param| {
                sum + self.app + values[self.home(abstraction.param(param)[row]) as usize]
            });
            values[node] = values[node].min(call);
            from = node + 1;
        }
        self.propagate(from..self.corpus_len, values);
        self.roots.iter().map(|&(root, weight)| weight * u64::from(values[root as usize])).sum()
    }

    /// The nodes where the cheapest rewriting calls the abstraction, ascending, each with its row.
    pub(crate) fn chosen_calls(&self, abstraction: &Partial) -> Vec<(Node, usize)> {
        let mut values = Vec::new();
        self.rewritten_cost(abstraction, &mut values);
        let is_call = |&(_, &node): &(usize, &Node)| {
            let node = node as usize;
            values[node] < self.own[node] + values[self.left[node] as usize] + values[self.right[node] as usize]
        };
        abstraction.nodes().iter().enumerate().filter(is_call).map(|(row, &node)| (node, row)).collect()
    }

    fn propagate(&self, nodes: std::ops::Range<usize>, values: &mut [u32]) {
        for node in nodes {
            values[node] = self.own[node] + values[self.left[node] as usize] + values[self.right[node] as usize];
        }
    }

    /// The node of the corpus whose value an argument has: lowering changes no cost.
    fn home(&self, node: Node) -> Node {
        self.lowered_from(node).map_or(node, |(from, _)| from)
    }

    fn push(
        &mut self,
        term: TermId,
        (left, right): (Node, Node),
        own: u32,
        constructor: Constructor,
        (open, has_param): (u32, bool),
    ) {
        let node = self.term.len() as Node;
        let (cost, parts) = match constructor {
            Constructor::Leaf(_) => (own, bloom(node)),
            _ => (
                own + self.cost[left as usize] + self.cost[right as usize],
                bloom(node) | self.parts[left as usize] | self.parts[right as usize],
            ),
        };
        self.term.push(term);
        self.left.push(left);
        self.right.push(right);
        self.own.push(own);
        self.cost.push(cost);
        self.constructor.push(constructor);
        self.open.push(open);
        self.has_param.push(has_param);
        self.parts.push(parts);
    }

    fn count_occurrences(&mut self, roots: impl Iterator<Item = (Node, u64)>) {
        let mut merged = std::collections::BTreeMap::new();
        for (root, weight) in roots {
            *merged.entry(root).or_insert(0) += weight;
        }
        self.roots = merged.into_iter().collect();
        let mut occurrences = vec![0u64; self.corpus_len];
        for &(root, weight) in &self.roots {
            occurrences[root as usize] += weight;
            self.total += weight * u64::from(self.cost[root as usize]);
        }
        for node in (self.leaves..self.corpus_len).rev() {
            let count = occurrences[node];
            occurrences[self.left[node] as usize] += count;
            occurrences[self.right[node] as usize] += count;
        }
        // The corpus was read from text, so no subterm occurs 2³² times; the cap keeps the conversion total.
        self.weight = occurrences.iter().map(|&count| u32::try_from(count).unwrap_or(u32::MAX)).collect();
    }

    fn number_constructors(&mut self) {
        let mut tags: Vec<u32> = Vec::new();
        for constructor in &self.constructor {
            match constructor {
                Constructor::Lam(tag) if !tags.contains(tag) => tags.push(*tag),
                _ => {}
            }
        }
        // Leaves are numbered by node, λ after them, application by the number of node 0, which is no leaf of the corpus.
        let lam = |tag: u32| self.leaves + tags.iter().position(|&t| t == tag).unwrap_or(0);
        self.code = self
            .constructor
            .iter()
            .map(|&c| match c {
                Constructor::App => 0,
                Constructor::Lam(tag) => lam(tag) as u32,
                Constructor::Leaf(node) => node,
            })
            .collect();
    }

    /// Finds, for every open subterm and number of binders, the subterm seen from outside those binders.
    fn lower_arguments(&mut self, terms: &mut Terms, node_of: &mut Vec<Node>) {
        // The nearest free variables of each node, as bits, and the height of those that are open.
        let mut free: Vec<u64> = Vec::with_capacity(self.corpus_len);
        let mut height: Vec<u32> = Vec::with_capacity(self.corpus_len);
        for node in 0..self.corpus_len {
            let (left, right) = (self.left[node] as usize, self.right[node] as usize);
            let bits = match self.constructor[node] {
                Constructor::App => free[left] | free[right],
                Constructor::Lam(_) => free[left] >> 1,
                Constructor::Leaf(_) if self.open[node] > 0 => 1u64.checked_shl(self.open[node] - 1).unwrap_or(0),
                Constructor::Leaf(_) => 0,
            };
            free.push(bits);
            let is_inner = self.open[node] > 0 && node >= self.leaves;
            height.push(if is_inner { 1 + height[left].max(height[right]) } else { 0 });
        }
        for node in 1..self.corpus_len {
            for depth in 1..=self.open[node].min(MAX_LOWERING) {
                if free[node] & ((1 << depth) - 1) != 0 {
                    break;
                }
                let part = |child: Node| self.argument(child, depth).map(|lowered| self.term[lowered as usize]);
                let id = match self.constructor[node] {
                    // The parts of an application have been lowered before it.
                    Constructor::App => match (part(self.left[node]), part(self.right[node])) {
                        (Some(f), Some(x)) => Some(terms.add(Term::App(f, x))),
                        _ => None,
                    },
                    _ if height[node] > MAX_LOWERED_HEIGHT => None,
                    _ => terms.lower(self.term[node], depth),
                };
                let Some(id) = id else {
                    break;
                };
                node_of.resize(terms.len(), 0);
                let mut target = node_of[id.0 as usize];
                if target == 0 {
                    target = self.term.len() as Node;
                    node_of[id.0 as usize] = target;
                    self.push(
                        id,
                        (0, 0),
                        self.cost[node],
                        Constructor::Leaf(target),
                        (terms.open(id), terms.has_param(id)),
                    );
                    self.origin.push((node as Node, depth));
                }
                self.lowered.insert((node as Node, depth), target);
            }
        }
    }
}

fn bloom(node: Node) -> u64 {
    1 << (node.wrapping_mul(0x9E37_79B1) >> 26)
}
