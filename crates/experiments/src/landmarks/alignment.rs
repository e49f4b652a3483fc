//! Which target of one motion is which of another one.

use super::{Place, distance};

/// For each target of one motion the place of a target of another one, in the same order. What is left out or taken twice costs
/// `skip`.
pub(super) fn aligned(own: &[Place], other: &[Place], skip: f64) -> Vec<usize> {
    if own.is_empty() || other.is_empty() {
        return Vec::new();
    }
    // The cost of the best way that ends at a pair, and where it came from.
    let mut costs: Vec<f64> =
        other.iter().enumerate().map(|(at, one)| distance(&own[0], one) + skip * at as f64).collect();
    let mut ways: Vec<Vec<usize>> = Vec::with_capacity(own.len());
    for target in &own[1..] {
        let (mut next, mut way) = (Vec::with_capacity(other.len()), Vec::with_capacity(other.len()));
        for (at, one) in other.iter().enumerate() {
            let skipped = |from: usize| skip * (at as f64 - from as f64 - 1.0).abs();
            let cost = |from: &usize| costs[*from] + skipped(*from);
            let best = (0..=at).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(at);
            next.push(cost(&best) + distance(target, one));
            way.push(best);
        }
        costs = next;
        ways.push(way);
    }
    let whole = |at: usize| costs[at] + skip * (other.len() - 1 - at) as f64;
    let mut at = (0..other.len()).min_by(|a, b| whole(*a).total_cmp(&whole(*b))).unwrap_or(0);
    let mut found = vec![at];
    for way in ways.iter().rev() {
        at = way[at];
        found.push(at);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(places: &[f64]) -> Vec<Place> {
        places.iter().map(|x| [*x, 0.0, 0.0]).collect()
    }

    #[test]
    fn targets_are_matched_in_order_with_one_left_out_or_taken_twice() {
        let other = line(&[0.0, 5.0, 9.0]);
        assert_eq!(aligned(&line(&[0.1, 5.2, 9.1]), &other, 0.1), [0, 1, 2]);
        assert_eq!(aligned(&line(&[0.1, 8.9]), &other, 0.1), [0, 2]);
        assert_eq!(aligned(&line(&[0.1, 0.2, 5.0, 9.0]), &other, 0.1), [0, 0, 1, 2]);
        // A motion that returns does not go back in the other one.
        assert_eq!(aligned(&line(&[0.0, 9.0, 0.0]), &line(&[0.0, 9.0, 0.0]), 0.1), [0, 1, 2]);
        assert!(aligned(&[], &other, 0.1).is_empty() && aligned(&other, &[], 0.1).is_empty());
    }
}
