//! The cheapest way through an episode: which step every row belongs to.
//!
//! With steps as the states of a graph, an alignment is a walk s₁ … sₘ over stretches R₁ … Rₘ that cover the rows in order.
//! It minimises
//!
//! ```text
//! start(s₁) + Σᵢ Σ_{t ∈ Rᵢ} cost(t, sᵢ) + Σᵢ (edge(sᵢ, sᵢ₊₁) + switch(first row of Rᵢ₊₁)) + end(sₘ)
//! ```
//!
//! where every stretch has [`Problem::least`] rows or more. Prices of edges say which steps are skipped or tried again, prices
//! of switches where the motion changes: a boundary between segments is cheap, any other row is dear. So segments of one step
//! are merged, and a segment that two steps share is split where the rows say so. Dynamic programming finds the minimum
//! exactly, in time proportional to rows times edges.

use std::ops::Range;

/// What is to be aligned.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// How many rows there are.
    pub rows: usize,
    /// How many states there are.
    pub states: usize,
    /// `[states, rows]`: what a row costs in a state.
    pub cost: Vec<f64>,
    /// For each state the states that may come before it, with the price of going on from there.
    pub edges: Vec<Vec<(usize, f64)>>,
    /// For each state the price of starting there.
    pub start: Vec<f64>,
    /// For each state the price of ending there.
    pub end: Vec<f64>,
    /// For each row the price of a boundary in front of it.
    pub switch: Vec<f64>,
    /// The least rows of a stretch; an episode that is shorter is one stretch.
    pub least: usize,
}

/// A cheapest walk.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// The stretches in order, each with its state. They cover all rows.
    pub stretches: Vec<(usize, Range<usize>)>,
    /// What it costs.
    pub cost: f64,
}

/// The cheapest walk; among equals the one that a fixed order of states prefers. `None` if there is no row, no state, or no
/// walk of finite cost.
pub fn align(problem: &Problem) -> Option<Alignment> {
    let (rows, states) = (problem.rows, problem.states);
    if rows == 0 || states == 0 {
        return None;
    }
    let least = problem.least.clamp(1, rows);
    // `[states, rows + 1]`: what the rows before each one cost.
    let sums: Vec<f64> = (0..states)
        .flat_map(|state| {
            let own = &problem.cost[state * rows..(state + 1) * rows];
            let mut sum = 0.0;
            std::iter::once(0.0).chain(own.iter().map(move |cost| {
                sum += cost;
                sum
            }))
        })
        .collect();
    let sum = |state: usize, row: usize| sums[state * (rows + 1) + row];
    let at = |row: usize, state: usize| row * states + state;
    // `best[row, state]`: the cheapest walk over the rows before `row` that ends in `state`.
    let mut best = vec![f64::INFINITY; (rows + 1) * states];
    // For walks whose last stretch starts at a row: the state before it.
    let mut before = vec![usize::MAX; (rows + 1) * states];
    // Whether the best walk has a stretch that is as short as possible and ends here.
    let mut entered = vec![false; (rows + 1) * states];
    for end in least..=rows {
        let start = end - least;
        for state in 0..states {
            let mut entry = f64::INFINITY;
            if start == 0 {
                entry = problem.start[state];
            } else {
                for &(from, price) in &problem.edges[state] {
                    let found = best[at(start, from)] + price;
                    if found < entry {
                        entry = found;
                        before[at(start, state)] = from;
                    }
                }
                entry += problem.switch[start];
            }
            let entry = entry + sum(state, end) - sum(state, start);
            let stay = best[at(end - 1, state)] + problem.cost[state * rows + end - 1];
            let place = at(end, state);
            entered[place] = entry < stay;
            best[place] = entry.min(stay);
        }
    }
    let mut last = None;
    for state in 0..states {
        let cost = best[at(rows, state)] + problem.end[state];
        if cost.is_finite() && last.is_none_or(|(_, least)| cost < least) {
            last = Some((state, cost));
        }
    }
    let (mut state, cost) = last?;
    let mut stretches = Vec::new();
    let (mut end, mut row) = (rows, rows);
    loop {
        if !entered[at(row, state)] {
            row -= 1;
            continue;
        }
        let start = row - least;
        stretches.push((state, start..end));
        if start == 0 {
            break;
        }
        state = before[at(start, state)];
        (end, row) = (start, start);
    }
    stretches.reverse();
    Some(Alignment { stretches, cost })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least cost of all walks, by trying each of them.
    fn brute_force(problem: &Problem) -> f64 {
        fn go(problem: &Problem, row: usize, from: Option<usize>) -> f64 {
            if row == problem.rows {
                return from.map_or(f64::INFINITY, |state| problem.end[state]);
            }
            let least = problem.least.clamp(1, problem.rows);
            let mut best = f64::INFINITY;
            for state in 0..problem.states {
                let entry = match from {
                    None => problem.start[state],
                    Some(from) => {
                        let found = problem.edges[state].iter().filter(|edge| edge.0 == from).map(|edge| edge.1);
                        found.fold(f64::INFINITY, f64::min) + problem.switch[row]
                    }
                };
                for end in row + least..=problem.rows {
                    let own: f64 = problem.cost[state * problem.rows..][row..end].iter().sum();
                    best = best.min(entry + own + go(problem, end, Some(state)));
                }
            }
            best
        }
        go(problem, 0, None)
    }

    fn cost_of(problem: &Problem, alignment: &Alignment) -> f64 {
        let mut cost = 0.0;
        for (at, (state, rows)) in alignment.stretches.iter().enumerate() {
            cost += problem.cost[state * problem.rows..][rows.clone()].iter().sum::<f64>();
            cost += match at.checked_sub(1).map(|at| alignment.stretches[at].0) {
                None => problem.start[*state],
                Some(from) => {
                    let edges = problem.edges[*state].iter().filter(|edge| edge.0 == from).map(|edge| edge.1);
                    edges.fold(f64::INFINITY, f64::min) + problem.switch[rows.start]
                }
            };
        }
        cost + problem.end[alignment.stretches.last().unwrap().0]
    }

    fn problems() -> impl Strategy<Value = Problem> {
        (1..8usize, 1..4usize, 1..4usize).prop_flat_map(|(rows, states, least)| {
            let prices = |count: usize| prop::collection::vec(0.0..1.0f64, count);
            let edges = prop::collection::vec(prop::collection::vec((0..states, 0.0..1.0f64), 0..=states), states);
            (prices(rows * states), edges, prices(states), prices(states), prices(rows)).prop_map(
                move |(cost, edges, start, end, switch)| Problem {
                    rows,
                    states,
                    cost,
                    edges,
                    start,
                    end,
                    switch,
                    least,
                },
            )
        })
    }

    proptest! {
        #[test]
        fn the_cheapest_of_all_walks_is_found(problem in problems()) {
            let found = align(&problem);
            let wanted = brute_force(&problem);
            prop_assert_eq!(found.is_some(), wanted.is_finite());
            if let Some(found) = found {
                prop_assert!((found.cost - wanted).abs() < 1e-9, "{} and not {wanted}", found.cost);
                prop_assert!((cost_of(&problem, &found) - wanted).abs() < 1e-9, "{found:?}");
            }
        }

        #[test]
        fn stretches_cover_all_rows_in_order(problem in problems()) {
            if let Some(found) = align(&problem) {
                let mut row = 0;
                for (_, rows) in &found.stretches {
                    prop_assert_eq!(rows.start, row);
                    prop_assert!(rows.len() >= problem.least.min(problem.rows));
                    row = rows.end;
                }
                prop_assert_eq!(row, problem.rows);
            }
        }
    }

    #[test]
    fn nothing_is_aligned_with_nothing() {
        assert_eq!(align(&Problem::default()), None);
        let forbidden = Problem {
            rows: 2,
            states: 1,
            cost: vec![0.0; 2],
            start: vec![f64::INFINITY],
            end: vec![0.0],
            ..Problem::default()
        };
        assert_eq!(align(&Problem { edges: vec![vec![]], switch: vec![0.0; 2], least: 1, ..forbidden }), None);
    }
}
