//! Whether argument capture and the single place may have lost the best abstraction.
//!
//! Both rules give up an abstraction A in favour of A*, in which every parameter whose argument is the same term a at all
//! matches is written into the body. With u uses of that parameter in the body and N calls,
//!
//! ```text
//! gain(A) − gain(A*) = u · (cost(a) − param) − N · (app + cost(a))
//! ```
//!
//! for each such parameter, because A and A* match at the same places. So A* is as good unless u · (cost(a) − param) > N ·
//! (app + cost(a)) for one of them, which takes more uses than calls: `(f #0 #0 #0)` called once, as in Stitch's `cex.json`.
//!
//! Whether there is such an A with a larger gain than the best that was found is decided here from above. A has a match
//! of largest cost, n. There a occurs at least u times, so u is at most the number of times that a occurs in n, which limits N,
//! and N calls save at most N · (cost(n) − call − app − cost(a)). All of this grows with n, so looking at the roots of the corpus
//! is enough: one pass over each program. If no root allows a larger gain, nothing was lost and the search was exact.

use crate::space::{Node, Space};

/// Whether an abstraction of at most `max_arity` parameters that gains more than `best` may have been given up.
pub(crate) fn may_have_lost(space: &Space, max_arity: usize, best: i64) -> bool {
    if max_arity == 0 {
        return false;
    }
    let mut occurrences = vec![0u64; space.len()];
    let mut inside: Vec<Node> = Vec::new();
    for root in space.root_nodes() {
        collect(space, root, &mut occurrences, &mut inside);
        let is_lost = |&part: &Node| {
            part != root
                && most_gain(space, max_arity, root, part, occurrences[part as usize]).is_some_and(|g| g > best)
        };
        let found = inside.iter().any(is_lost);
        inside.drain(..).for_each(|node| occurrences[node as usize] = 0);
        if found {
            return true;
        }
    }
    false
}

/// The most that an abstraction gains whose largest match is in `whole` and that uses a parameter for `part`, if that can be
/// better than `part` in its body.
fn most_gain(space: &Space, max_arity: usize, whole: Node, part: Node, uses: u64) -> Option<i64> {
    let (cost, argument) = (i64::from(space.cost(whole)), i64::from(space.cost(part)));
    let saved = (argument - i64::from(space.param)).saturating_mul(i64::try_from(uses).unwrap_or(i64::MAX));
    let paid = i64::from(space.app) + argument;
    if uses < 2 || saved <= paid || !space.is_fixable(part, 0) {
        return None;
    }
    // The largest number of calls with which it is still better.
    let calls = (saved - 1) / paid.max(1);
    let most = |calls: i64| calls.saturating_mul(cost - i64::from(space.call) - paid);
    match max_arity {
        // No other parameter: what is not an argument is paid for in the body.
        1 => [1, calls].into_iter().map(|calls| most(calls).saturating_sub(cost).saturating_add(saved)).max(),
        _ => Some(most(calls)),
    }
}

/// Counts how often each node occurs in a root; `inside` are those that do.
fn collect(space: &Space, root: Node, occurrences: &mut [u64], inside: &mut Vec<Node>) {
    let mut pending = vec![root];
    occurrences[root as usize] = 1;
    while let Some(node) = pending.pop() {
        inside.push(node);
        for child in space.children(node) {
            if occurrences[child as usize] == 0 {
                occurrences[child as usize] = 1;
                pending.push(child);
            }
        }
    }
    // Nodes are ordered by height, so parents are settled before their parts.
    inside.sort_unstable_by(|a, b| b.cmp(a));
    inside.iter().for_each(|&node| occurrences[node as usize] = 0);
    occurrences[root as usize] = 1;
    for &node in inside.iter() {
        let count = occurrences[node as usize];
        for child in space.children(node) {
            let below = &mut occurrences[child as usize];
            *below = below.saturating_add(count);
        }
    }
}
