//! Best-first search for the abstraction that makes the corpus cheapest.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rayon::prelude::*;

use crate::pattern::{Filling, Partial};
use crate::space::{Constructor, Node, Space};

/// Pruning rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// a
    pub argument_capture: bool,
    /// b
    pub redundant_argument: bool,
    /// c
    pub single_place: bool,
    /// d
    pub exhausted_arity: bool,
    /// e
    pub overlap: bool,
}

/// How a search is bounded, and which pruning rules it uses.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    /// The most parameters an abstraction may have.
    pub max_arity: usize,
    /// The most partial abstractions expanded.
    pub max_expansions: u64,
    /// Candidates kept.
    pub keep: usize,
    /// rules
    pub rules: Rules,
    /// policy
    pub policy: u32,
}

/// Result.
pub(crate) struct Found {
    pub(crate) best: Vec<Partial>,
    pub(crate) expansions: u64,
    pub(crate) evaluations: u64,
    pub(crate) pushed: u64,
}

struct Queued {
    gain: i64,
    sequence: u64,
    partial: Partial,
}
impl PartialEq for Queued { fn eq(&self, o: &Self) -> bool { self.cmp(o) == Ordering::Equal } }
impl Eq for Queued {}
impl PartialOrd for Queued { fn partial_cmp(&self, o: &Self) -> Option<Ordering> { Some(self.cmp(o)) } }
impl Ord for Queued { fn cmp(&self, o: &Self) -> Ordering { self.gain.cmp(&o.gain).then(o.sequence.cmp(&self.sequence)) } }

#[derive(Default)]
struct Scratch {
    values: Vec<u32>,
    counts: Vec<u32>,
    touched: Vec<u32>,
    order: Vec<u32>,
    selection: Vec<u32>,
    tally: Tally,
    keys: Vec<u64>,
    evaluations: u64,
}

#[derive(Default)]
struct Tally { slots: Vec<(u64, u64)>, mask: usize }
impl Tally {
    fn reset(&mut self, rows: usize) {
        let capacity = (rows * 2).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(capacity, (0, 0));
        self.mask = capacity - 1;
    }
    fn add(&mut self, key: u64, amount: u64) -> u64 {
        let key = key | 1;
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & self.mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.0 == key { slot.1 += amount; return slot.1; }
            if slot.0 == 0 { *slot = (key, amount); return amount; }
            at = (at + 1) & self.mask;
        }
    }
}

fn gain(saving: u64, body: u64) -> i64 { saving as i64 - body as i64 }

pub(crate) fn search(space: &Space, config: &SearchConfig) -> Found {
    let mut best: Vec<Partial> = Vec::new();
    let mut queue = BinaryHeap::new();
    let mut sequence = 0u64;
    let mut expansions = 0;
    let mut evaluations = 0;
    let mut constants: Vec<(Reverse<i64>, Node)> = space.inner().filter(|&n| space.is_fixable(n, 0) && space.weight(n) >= 2)
        .map(|n| (Reverse(gain(u64::from(space.weight(n)) * u64::from(space.cost(n).saturating_sub(space.call)), u64::from(space.cost(n)))), n)).collect();
    constants.sort_unstable();
    let value = |p: &Partial| gain(p.saving, u64::from(p.body));
    let merge = |best: &mut Vec<Partial>, p: Partial| {
        let at = best.partition_point(|b| value(b) >= value(&p));
        if at < config.keep { best.insert(at, p); best.truncate(config.keep); }
    };
    let limit = |best: &Vec<Partial>| best.get(config.keep - 1).map_or(0, &value).max(0);
    for &(Reverse(gain), n) in constants.iter().take(config.keep) {
        if gain > 0 { merge(&mut best, Partial::constant(n, space)); }
    }
    let nodes: Vec<Node> = space.inner().collect();
    queue.push(Queued { gain: i64::MAX, sequence, partial: Partial::hole(&nodes, space) });
    let mut single = Scratch::default();
    loop {
        let lim = limit(&best);
        let size = (queue.len() / 4).clamp(1, 32);
        let mut batch = Vec::with_capacity(size);
        while batch.len() < size {
            let Some(q) = queue.pop() else { break };
            if q.gain <= lim { queue.clear(); break; }
            batch.push(q.partial);
        }
        if batch.is_empty() { break; }
        expansions += batch.len() as u64;
        let results: Vec<Vec<Partial>> = if rayon::current_num_threads() == 1 || batch.len() < 4 {
            batch.iter().map(|p| expand(p, space, config, lim, &mut single)).collect()
        } else {
            batch.par_iter().map_init(Scratch::default, |scratch, p| expand(p, space, config, lim, scratch)).collect()
        };
        evaluations += std::mem::take(&mut single.evaluations);
        for children in results {
            for child in children {
                let body = u64::from(child.body) + child.holes.len() as u64 * u64::from(space.smallest_leaf);
                let gain = gain(child.saving, body);
                if gain <= limit(&best) { continue; }
                if child.holes.is_empty() { merge(&mut best, child); }
                else {
                    sequence += 1;
                    queue.push(Queued { gain, sequence, partial: child });
                }
            }
        }
        if expansions > config.max_expansions { break; }
    }
    Found { best, expansions, evaluations, pushed: sequence }
}

fn expand(partial: &Partial, space: &Space, config: &SearchConfig, limit: i64, scratch: &mut Scratch) -> Vec<Partial> {
    let mut out = Vec::new();
    let n = partial.holes.len();
    let hole = match config.policy {
        1 => n - 1,
        5 => (0..n).min_by_key(|&h| partial.holes[h].stake).unwrap_or(0),
        _ => 0,
    };
    let depth = partial.holes[hole].depth;
    let content = partial.content(hole);
    let weights = partial.weights();
    let potentials = partial.potentials();
    let rows = partial.rows();
    let can_grow = partial.arity < config.max_arity;
    let root = partial.next_is_root();
    let floor = u64::from(partial.body) + (n as u64 - 1) * u64::from(space.smallest_leaf);
    let mut selection = std::mem::take(&mut scratch.selection);
    if !root {
        for i in 0..partial.arity {
            let param = partial.param(i);
            selection.clear();
            selection.extend((0..rows).filter(|&r| space.argument(content[r], depth) == Some(param[r])).map(|r| r as u32));
            consider(partial, hole, Filling::Param(i as u32), &selection, floor, space, config, limit, scratch, &mut out);
        }
        if can_grow {
            selection.clear();
            let mut saving = 0u64;
            for r in 0..rows {
                if let Some(node) = space.argument(content[r], depth) {
                    let left = potentials[r].saturating_sub(space.app + space.cost(node));
                    if left > 0 { selection.push(r as u32); saving += u64::from(weights[r]) * u64::from(left); }
                }
            }
            if gain(saving, floor) > limit {
                consider(partial, hole, Filling::Param(partial.arity as u32), &selection, floor, space, config, limit, scratch, &mut out);
            }
        }
    }
    // by constructor
    let exhausted = !can_grow && !root;
    let mut order = std::mem::take(&mut scratch.order);
    let mut touched = std::mem::take(&mut scratch.touched);
    let mut counts = std::mem::take(&mut scratch.counts);
    counts.resize(space.codes().max(space.len()), 0);
    touched.clear();
    let key = |r: usize| if exhausted { content[r] } else { space.code(content[r]) };
    for r in 0..rows { let k = key(r); if counts[k as usize] == 0 { touched.push(k); } counts[k as usize] += 1; }
    touched.sort_unstable();
    let mut start = 0;
    for &k in &touched { let c = counts[k as usize]; counts[k as usize] = start; start += c; }
    order.clear(); order.resize(rows, 0);
    for r in 0..rows { let k = key(r) as usize; order[counts[k] as usize] = r as u32; counts[k] += 1; }
    let mut from = 0;
    for &k in &touched {
        let to = counts[k as usize] as usize;
        counts[k as usize] = 0;
        let group = &order[from..to];
        from = to;
        let filling = if exhausted { if !space.is_fixable(k, depth) { continue; } Filling::Node(k) } else {
            match space.constructor(content[group[0] as usize]) {
                Constructor::App => Filling::App,
                Constructor::Lam(tag) => Filling::Lam(tag),
                Constructor::Leaf(node) if space.is_fixable(node, depth) => Filling::Node(node),
                Constructor::Leaf(_) => continue,
            }
        };
        consider(partial, hole, filling, group, floor, space, config, limit, scratch, &mut out);
    }
    if exhausted {
        for app in [true, false] {
            selection.clear();
            selection.extend((0..rows).filter(|&r| {
                let node = content[r];
                space.is_inner(node) && (space.constructor(node) == Constructor::App) == app
                    && (0..partial.arity).any(|i| partial.param(i)[r] != node && space.may_contain(node, partial.param(i)[r]))
            }).map(|r| r as u32));
            if app { consider(partial, hole, Filling::App, &selection, floor, space, config, limit, scratch, &mut out); }
            else if !selection.is_empty() {
                let mut tags: Vec<u32> = selection.iter().filter_map(|&r| match space.constructor(content[r as usize]) { Constructor::Lam(t) => Some(t), _ => None }).collect();
                tags.sort_unstable(); tags.dedup();
                for tag in tags {
                    let rows: Vec<u32> = selection.iter().copied().filter(|&r| space.constructor(content[r as usize]) == Constructor::Lam(tag)).collect();
                    consider(partial, hole, Filling::Lam(tag), &rows, floor, space, config, limit, scratch, &mut out);
                }
            }
        }
    }
    scratch.order = order; scratch.touched = touched; scratch.counts = counts; scratch.selection = selection;
    out
}

#[allow(clippy::too_many_arguments)]
fn consider(partial: &Partial, hole: usize, filling: Filling, rows: &[u32], floor: u64, space: &Space, config: &SearchConfig, limit: i64, scratch: &mut Scratch, out: &mut Vec<Partial>) {
    if rows.is_empty() { return; }
    let rules = &config.rules;
    let weights = partial.weights();
    let potentials = partial.potentials();
    let saving: u64 = rows.iter().map(|&r| u64::from(weights[r as usize]) * u64::from(potentials[r as usize])).sum();
    if gain(saving, floor) <= limit { return; }
    if rules.single_place && rows.len() == 1 && space.is_fixable(partial.nodes()[rows[0] as usize], 0) { return; }
    let Some(mut child) = partial.fill(hole, filling, rows, space, true, rules.argument_capture) else { return };
    if rules.redundant_argument {
        for i in 1..child.arity { for j in 0..i { if child.param(i) == child.param(j) { return; } } }
    }
    if child.arity > partial.arity {
        child.saving = child.weights().iter().zip(child.potentials()).map(|(&w, &p)| u64::from(w) * u64::from(p)).sum();
    } else { child.saving = saving; }
    let body = u64::from(child.body) + child.holes.len() as u64 * u64::from(space.smallest_leaf);
    if gain(child.saving, body) <= limit { return; }
    if child.holes.is_empty() {
        scratch.evaluations += 1;
        child.saving = space.total.saturating_sub(space.rewritten_cost(&child, &mut scratch.values));
        if gain(child.saving, body) <= limit { return; }
        out.push(child);
        return;
    }
    if rules.exhausted_arity {
        let left = config.max_arity - child.arity;
        if left == 0 || (left == 1 && child.holes.len() > 1) {
            let bound = consumed(&child, left, space, scratch);
            if gain(bound, body) <= limit { return; }
            child.saving = child.saving.min(bound);
        }
    }
    if rules.overlap {
        scratch.evaluations += 1;
        let bound = space.total.saturating_sub(space.rewritten_cost(&child, &mut scratch.values));
        if gain(bound, body) <= limit { return; }
        child.saving = child.saving.min(bound);
    }
    out.push(child);
}

fn consumed(child: &Partial, left: usize, space: &Space, scratch: &mut Scratch) -> u64 {
    let rows = child.rows();
    let holes = child.holes.len();
    let mut largest = 0;
    let mut second = 0;
    for r in 0..rows {
        let (mut top, mut next) = (0, 0);
        for h in 0..holes { let c = space.cost(child.content(h)[r]); if c > top { next = top; top = c; } else if c > next { next = c; } }
        for p in 0..child.arity { let c = space.cost(child.param(p)[r]); if c <= top { largest = largest.max(c); } }
        second = second.max(next);
    }
    let weights = child.weights(); let potentials = child.potentials();
    let mut best = 0;
    let mut run = |atom: u32, except: Option<usize>| {
        let shape = space.coarse_shape(atom);
        scratch.keys.clear();
        scratch.keys.resize(rows, 0);
        for h in 0..holes {
            if Some(h) == except { continue; }
            for (key, &n) in scratch.keys.iter_mut().zip(child.content(h)) {
                *key = (key.rotate_left(23) ^ u64::from(shape[n as usize])).wrapping_mul(0x517C_C1B7_2722_0A95);
            }
        }
        scratch.tally.reset(rows);
        for r in 0..rows {
            let total = scratch.tally.add(scratch.keys[r], u64::from(weights[r]) * u64::from(potentials[r]));
            best = best.max(total);
        }
    };
    if left == 0 { run(largest, None); } else {
        for h in 0..holes { run(largest, Some(h)); }
        run(largest.max(second), None);
    }
    best
}
