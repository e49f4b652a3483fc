//! The corpus laid out for the search: every distinct subterm in flat arrays, and the one dynamic programme that both
//! the bound and the exact cost of an abstraction come from.
//!
//! For an abstraction A that matches at a set of subterms, the cheapest rewriting of the corpus is, over the distinct
//! subterms n in order of height,
//!
//! ```text
//! v(n) = min( own(n) + Σ v(children of n),  call + Σ_i (app + v(argument_i at n))   if A matches at n )
//! ```
//!
//! and the total is body(A) + Σ_roots weight · v(root). For a *partial* abstraction, whose holes are still open, the same
//! recursion with holes at no charge is a lower bound on the total of each of its completions: a completion matches at
//! no more places, has no fewer arguments and no smaller a body. It counts overlapping matches once, which is what makes
//! it far tighter than the sum over matches on corpora of long spines.

use crate::cost::Weights;
use crate::term::{Term, TermId, Terms};

/// An index into a [`Space`]: a distinct subterm of the corpus, by height.
pub(crate) type Node = u32;

/// The constructor of a node, as the search branches on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Constructor {
    App,
    Lam(u32),
    /// A leaf: a constant, a variable or a parameter. Leaves are distinct, so the node names it.
    Leaf(Node),
}

/// λ-depth below which arguments with free variables are looked for. An argument under more binders of the pattern must
/// be closed.
const MAX_LOWERING: u32 = 32;

/// The nodes that any argument may be and that the rewriting visits.
pub(crate) struct Space {
    term: Vec<TermId>,
    left: Vec<Node>,
    right: Vec<Node>,
    /// Cost of the node itself, without its children.
    own: Vec<u32>,
    /// Cost of the subterm.
    cost: Vec<u32>,
    pub(crate) shapes: Vec<(u32, Vec<u32>)>,
    /// How often the subterm occurs in the corpus, counted by root weight.
    weight: Vec<u32>,
    constructor: Vec<Constructor>,
    code: Vec<u32>,
    codes: usize,
    /// Bloom filter of the nodes that occur in each node.
    parts: Vec<u64>,
    open: Vec<u32>,
    has_param: Vec<bool>,
    leaves: usize,
    /// Number of nodes of the corpus; nodes from here on are lowered arguments, see [`Space::argument`].
    corpus_len: usize,
    /// For each node past `corpus_len`, the node it was lowered from.
    origin: Vec<(Node, u32)>,
    lowered: rustc_hash::FxHashMap<(Node, u32), Node>,
    roots: Vec<(Node, u64)>,
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
        let reachable = reachable(terms, roots);
        let mut height = vec![0u32; terms.len()];
        let mut order: Vec<TermId> = Vec::with_capacity(reachable.len());
        for &id in &reachable {
            height[id.0 as usize] = terms.children(id).map(|c| height[c.0 as usize] + 1).max().unwrap_or(0);
            order.push(id);
        }
        order.sort_by_key(|id| (height[id.0 as usize], *id));
        let leaves = order.iter().take_while(|id| height[id.0 as usize] == 0).count() + 1;

        // Node 0 stands for the missing second child of a λ and costs nothing.
        let len = order.len() + 1;
        let mut space = Self {
            term: Vec::with_capacity(len),
            left: Vec::with_capacity(len),
            right: Vec::with_capacity(len),
            own: Vec::with_capacity(len),
            cost: Vec::with_capacity(len),
            shapes: Vec::new(),
            weight: vec![0; len],
            constructor: Vec::with_capacity(len),
            code: Vec::new(),
            codes: 0,
            parts: Vec::with_capacity(len),
            open: Vec::with_capacity(len),
            has_param: Vec::with_capacity(len),
            leaves,
            corpus_len: len,
            origin: Vec::new(),
            lowered: Default::default(),
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
                Term::App(f, x) => {
                    ((node_of[f.0 as usize], node_of[x.0 as usize]), weights.app, Constructor::App)
                }
                Term::Lam(tag, body) => ((node_of[body.0 as usize], 0), weights.lam, Constructor::Lam(tag)),
                leaf => ((0, 0), weights.leaf(leaf), Constructor::Leaf(node)),
            };
            space.push(id, children, own, constructor, (terms.open(id), terms.has_param(id)));
        }
        let mut merged = std::collections::BTreeMap::new();
        for &(root, weight) in roots {
            *merged.entry(node_of[root.0 as usize]).or_insert(0) += weight;
        }
        space.roots = merged.into_iter().collect();
        let mut occurrences = vec![0u64; len];
        for &(root, weight) in &space.roots {
            occurrences[root as usize] += weight;
            space.total += weight * u64::from(space.cost[root as usize]);
        }
        for node in (space.leaves..len).rev() {
            occurrences[space.left[node] as usize] += occurrences[node];
            occurrences[space.right[node] as usize] += occurrences[node];
        }
        // A subterm that occurs more often than that is no less worth abstracting for the cap.
        space.weight = occurrences.iter().map(|&count| u32::try_from(count).unwrap_or(u32::MAX)).collect();
        let mut tags: Vec<u32> = space.constructor.iter().filter_map(|c| match c { Constructor::Lam(t) => Some(*t), _ => None }).collect();
        tags.sort_unstable(); tags.dedup();
        space.code = space.constructor.iter().map(|c| match c { Constructor::App => 0, Constructor::Lam(t) => 1 + tags.binary_search(t).unwrap_or(0) as u32, Constructor::Leaf(n) => 1 + tags.len() as u32 + n }).collect();
        space.codes = 1 + tags.len() + leaves;
        for node in 0..len {
            let below = space.parts.get(space.left[node] as usize).copied().unwrap_or(0) | space.parts.get(space.right[node] as usize).copied().unwrap_or(0);
            space.parts.push(below | bloom(node as Node));
        }
        let mut atom = space.smallest_leaf.max(weights.call);
        for _ in 0..6 {
            let mut shapes = rustc_hash::FxHashMap::default();
            let mut shape: Vec<u32> = Vec::with_capacity(len);
            for node in 0..len {
                let key = if space.cost[node] <= atom { (0,0,0) } else { match space.constructor[node] { Constructor::Leaf(_) => (0,0,0), Constructor::Lam(t) => (1+t, shape[space.left[node] as usize], 0), Constructor::App => (u32::MAX, shape[space.left[node] as usize], shape[space.right[node] as usize]) } };
                let next = shapes.len() as u32;
                shape.push(*shapes.entry(key).or_insert(next));
            }
            space.shapes.push((atom, shape));
            atom = atom * 2 + space.app;
        }
        space.shapes.push((u32::MAX, vec![0; len]));
        space.lower_arguments(terms, &mut node_of);
        space
    }

    pub(crate) fn coarse_shape(&self, atom: u32) -> &[u32] {
        let at = self.shapes.partition_point(|s| s.0 < atom);
        &self.shapes[at].1
    }

    /// Number of nodes of the corpus, node 0 included.
    pub(crate) fn len(&self) -> usize {
        self.corpus_len
    }

    /// The nodes that are no leaves, by height.
    pub(crate) fn inner(&self) -> std::ops::Range<Node> {
        self.leaves as Node..self.corpus_len as Node
    }

    pub(crate) fn cost(&self, node: Node) -> u32 {
        self.cost[node as usize]
    }

    pub(crate) fn weight(&self, node: Node) -> u32 {
        self.weight[node as usize]
    }

    pub(crate) fn code(&self, node: Node) -> u32 {
        self.code[node as usize]
    }

    pub(crate) fn codes(&self) -> usize {
        self.codes
    }

    pub(crate) fn is_inner(&self, node: Node) -> bool {
        node as usize >= self.leaves && (node as usize) < self.corpus_len
    }

    pub(crate) fn constructor(&self, node: Node) -> Constructor {
        self.constructor[node as usize]
    }

    pub(crate) fn left(&self, node: Node) -> Node {
        self.left[node as usize]
    }

    pub(crate) fn right(&self, node: Node) -> Node {
        self.right[node as usize]
    }

    /// The node a lowered argument was lowered from, and by how much; `None` for nodes of the corpus.
    pub(crate) fn lowered_from(&self, node: Node) -> Option<(Node, u32)> {
        Some(self.origin[(node as usize).checked_sub(self.corpus_len)?])
    }

    pub(crate) fn term(&self, node: Node) -> TermId {
        self.term[node as usize]
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

    /// Whether `part` may occur in `whole`: a Bloom filter, so yes may be wrong and no is sure.
    ///
    /// An open argument stands raised under binders, as another node, so for it the answer is always yes.
    pub(crate) fn may_contain(&self, whole: Node, part: Node) -> bool {
        self.open[part as usize] > 0 || self.parts[whole as usize] & bloom(part) != 0
    }

    /// The least cost of the corpus under a partial or whole abstraction that matches at `rows` (ascending) with the
    /// arguments `params[i][row]`, its body aside. `values` is scratch space and afterwards holds v of every node.
    pub(crate) fn rewritten_cost(&self, partial: &crate::pattern::Partial, values: &mut Vec<u32>) -> u64 {
        let rows = partial.nodes();
        values.clear();
        values.extend_from_slice(&self.cost[..self.corpus_len]);
        let mut from = rows.first().map_or(self.corpus_len, |&n| n as usize);
        for (row, &node) in rows.iter().enumerate() {
            let node = node as usize;
            self.propagate(from..node + 1, values);
            let call = (0..partial.arity).fold(self.call, |sum, param| {
                sum + self.app + values[self.home(partial.param(param)[row]) as usize]
            });
            values[node] = values[node].min(call);
            from = node + 1;
        }
        self.propagate(from..self.corpus_len, values);
        self.roots.iter().map(|&(root, weight)| weight * u64::from(values[root as usize])).sum()
    }

    /// The nodes where the cheapest rewriting calls the abstraction, ascending, each with its row.
    pub(crate) fn chosen_calls(&self, abstraction: &crate::pattern::Partial, values: &mut Vec<u32>) -> Vec<(Node, usize)> {
        self.rewritten_cost(abstraction, values);
        let is_call = |&(_, &node): &(usize, &Node)| {
            let node = node as usize;
            values[node] < self.own[node] + values[self.left[node] as usize] + values[self.right[node] as usize]
        };
        abstraction.nodes().iter().enumerate().filter(is_call).map(|(row, &node)| (node, row)).collect()
    }

    /// The nodes of some terms of the corpus.
    pub(crate) fn nodes_of(&self, terms: &[TermId]) -> Vec<Node> {
        let mut node_of: rustc_hash::FxHashMap<TermId, Node> = Default::default();
        for node in 1..self.corpus_len {
            node_of.insert(self.term[node], node as Node);
        }
        terms.iter().map(|term| node_of.get(term).copied().unwrap_or(0)).collect()
    }

    fn propagate(&self, nodes: std::ops::Range<usize>, values: &mut [u32]) {
        for node in nodes {
            values[node] =
                self.own[node] + values[self.left[node] as usize] + values[self.right[node] as usize];
        }
    }

    fn home(&self, node: Node) -> Node {
        match (node as usize).checked_sub(self.corpus_len) {
            None => node,
            Some(lowered) => self.origin[lowered].0,
        }
    }

    fn push(
        &mut self,
        term: TermId,
        (left, right): (Node, Node),
        own: u32,
        constructor: Constructor,
        (open, has_param): (u32, bool),
    ) {
        let cost = match constructor {
            Constructor::Leaf(_) => own,
            _ => own + self.cost[left as usize] + self.cost[right as usize],
        };
        self.term.push(term);
        self.left.push(left);
        self.right.push(right);
        self.own.push(own);
        self.cost.push(cost);
        self.constructor.push(constructor);
        self.open.push(open);
        self.has_param.push(has_param);
    }

    /// Finds, for every open subterm and number of binders, the subterm seen from outside those binders.
    fn lower_arguments(&mut self, terms: &mut Terms, node_of: &mut Vec<Node>) {
        for node in 1..self.corpus_len {
            for depth in 1..=self.open[node].min(MAX_LOWERING) {
                let Some(id) = terms.lower(self.term[node], depth) else { break };
                node_of.resize(terms.len(), 0);
                let mut target = node_of[id.0 as usize];
                if target == 0 {
                    target = self.term.len() as Node;
                    node_of[id.0 as usize] = target;
                    self.push(id, (0, 0), 0, Constructor::Leaf(target), (terms.open(id), terms.has_param(id)));
                    self.cost[target as usize] = self.cost[node];
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

/// The terms reachable from the roots, ascending.
fn reachable(terms: &Terms, roots: &[(TermId, u64)]) -> Vec<TermId> {
    let mut seen = vec![false; terms.len()];
    for &(root, _) in roots {
        seen[root.0 as usize] = true;
    }
    for index in (0..terms.len()).rev() {
        if seen[index] {
            for child in terms.children(TermId(index as u32)) {
                seen[child.0 as usize] = true;
            }
        }
    }
    (0..terms.len()).filter(|&index| seen[index]).map(|index| TermId(index as u32)).collect()
}
