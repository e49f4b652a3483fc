//! Optimal assignment: which column each row takes so that the sum of costs is least.
//!
//! Shortest augmenting paths with potentials, after Jonker and Volgenant. Potentials start as the least of each column, then of
//! what is left of each row, and rows take the columns that are tight under them while these are free: most of them, in
//! practice. The other rows enter one by one, each along a path that is shortest in costs reduced by the potentials, found as
//! by Dijkstra over columns. O(n³), exact up to rounding in f64.

/// For each row of a square matrix of finite costs, row after row, its column in a cheapest assignment.
///
/// # Shapes
/// `costs`: `size · size` numbers.
pub fn assign(costs: &[f64], size: usize) -> Vec<usize> {
    debug_assert_eq!(costs.len(), size * size, "costs are a square matrix");
    // Column `size` is a place outside the matrix where each new row starts.
    let outside = size;
    let mut column_potential = vec![f64::INFINITY; size + 1];
    for row in costs.chunks_exact(size.max(1)) {
        column_potential.iter_mut().zip(row).for_each(|(least, cost)| *least = least.min(*cost));
    }
    let mut row_potential = vec![0.0; size];
    let mut taken_by: Vec<Option<usize>> = vec![None; size + 1];
    let mut waiting = Vec::new();
    for (row, costs) in costs.chunks_exact(size.max(1)).enumerate() {
        let (mut least, mut tight) = (f64::INFINITY, outside);
        for (column, (cost, potential)) in costs.iter().zip(&column_potential).enumerate() {
            if cost - potential < least {
                (least, tight) = (cost - potential, column);
            }
        }
        row_potential[row] = least;
        if tight != outside && taken_by[tight].is_none() {
            taken_by[tight] = Some(row);
        } else {
            waiting.push(row);
        }
    }
    let mut distance = vec![0.0; size];
    let mut before = vec![outside; size];
    let mut done = vec![false; size + 1];
    for row in waiting {
        taken_by[outside] = Some(row);
        distance.fill(f64::INFINITY);
        done.fill(false);
        let mut column = outside;
        while let Some(from) = taken_by[column] {
            done[column] = true;
            let (mut step, mut nearest) = (f64::INFINITY, outside);
            for next in (0..size).filter(|next| !done[*next]) {
                let reduced = costs[from * size + next] - row_potential[from] - column_potential[next];
                if reduced < distance[next] {
                    (distance[next], before[next]) = (reduced, column);
                }
                if distance[next] < step {
                    (step, nearest) = (distance[next], next);
                }
            }
            if nearest == outside {
                // Costs were not finite. The rows so far keep their columns, this one gets none of its own.
                column = outside;
                break;
            }
            for at in 0..=size {
                if done[at] {
                    column_potential[at] -= step;
                    if let Some(row) = taken_by[at] {
                        row_potential[row] += step;
                    }
                } else if at < size {
                    distance[at] -= step;
                }
            }
            column = nearest;
        }
        // Back along the path: each column goes to the row that reached it.
        while column != outside {
            let previous = before[column];
            taken_by[column] = taken_by[previous];
            column = previous;
        }
    }
    let mut columns = vec![0; size];
    for (column, row) in taken_by.iter().take(size).enumerate() {
        if let Some(row) = row {
            columns[*row] = column;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(costs: &[f64], columns: &[usize]) -> f64 {
        columns.iter().enumerate().map(|(row, column)| costs[row * columns.len() + column]).sum()
    }

    fn least_by_trying_all(costs: &[f64], size: usize, row: usize, free: &mut Vec<bool>) -> f64 {
        if row == size {
            return 0.0;
        }
        let mut least = f64::INFINITY;
        for column in 0..size {
            if free[column] {
                free[column] = false;
                least = least.min(costs[row * size + column] + least_by_trying_all(costs, size, row + 1, free));
                free[column] = true;
            }
        }
        least
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_cheaper(
            (size, costs) in (1_usize..=7).prop_flat_map(|size| (Just(size), prop::collection::vec(-9.0..9.0, size * size)))
        ) {
            let columns = assign(&costs, size);
            let mut seen = columns.clone();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..size).collect::<Vec<_>>());
            let least = least_by_trying_all(&costs, size, 0, &mut vec![true; size]);
            prop_assert!((sum(&costs, &columns) - least).abs() < 1e-9);
        }

        #[test]
        fn ties_still_give_a_cheapest_permutation(
            (size, costs) in (1_usize..=6).prop_flat_map(|size| (Just(size), prop::collection::vec(0_u8..3, size * size)))
        ) {
            let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
            let least = least_by_trying_all(&costs, size, 0, &mut vec![true; size]);
            prop_assert_eq!(sum(&costs, &assign(&costs, size)), least);
        }
    }

    #[test]
    fn a_hidden_permutation_is_found_at_the_largest_size_in_use() {
        let size = 64;
        let hidden: Vec<usize> = (0..size).map(|row| (row * 37 + 11) % size).collect();
        let cost = |row: usize, column: usize| if hidden[row] == column { 0.0 } else { 1.0 + (row ^ column) as f64 };
        let costs: Vec<f64> = (0..size * size).map(|at| cost(at / size, at % size)).collect();
        assert_eq!(assign(&costs, size), hidden);
    }

    #[test]
    fn costs_that_are_not_finite_end() {
        assert_eq!(assign(&[], 0), Vec::<usize>::new());
        assert_eq!(assign(&[f64::NAN; 9], 3).len(), 3);
        assert_eq!(assign(&[f64::INFINITY; 4], 2).len(), 2);
    }
}
