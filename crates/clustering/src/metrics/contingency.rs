//! How often each class meets each cluster, and the scores that follow from it.
//!
//! With n_ij things of class i in cluster j, a_i and b_j the sums, n all:
//!
//! ```text
//! I    = Σ n_ij/n · ln(n n_ij / (a_i b_j))          H(U) = −Σ a_i/n · ln(a_i/n)
//! NMI  = I / mean(H(U), H(V))                        AMI  = (I − E[I]) / (mean(H(U), H(V)) − E[I])
//! ```
//!
//! E[I] is exact, the mean over all tables with the same sums, each n_ij hypergeometric (Vinh, Epps and Bailey 2010).

use std::collections::BTreeMap;

use crate::error::ClusteringError;

/// Label ranges up to this many times the number of labels are numbered by a table instead of by sorting.
const DENSE: i128 = 4;

/// The table of two labellings of the same things, without its zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contingency {
    /// Class, cluster and how many things are of both, sorted.
    cells: Vec<(usize, usize, u64)>,
    classes: Vec<u64>,
    clusters: Vec<u64>,
    total: u64,
}

impl Contingency {
    /// Counts. Classes and clusters are numbered by rising label.
    ///
    /// # Errors
    /// On labellings of different lengths.
    pub fn new(truth: &[i64], predicted: &[i64]) -> Result<Contingency, ClusteringError> {
        if truth.len() != predicted.len() {
            return Err(ClusteringError::OtherLength { truth: truth.len(), predicted: predicted.len() });
        }
        let ((of_class, classes), (of_cluster, clusters)) = (numbered(truth), numbered(predicted));
        let pairs = of_class.iter().zip(&of_cluster).map(|(&class, &cluster)| (class as usize, cluster as usize));
        let mut cells = Vec::new();
        if classes * clusters <= DENSE as usize * truth.len() + 1024 {
            let mut table = vec![0u64; classes * clusters];
            pairs.for_each(|(class, cluster)| table[class * clusters + cluster] += 1);
            for (at, &count) in table.iter().enumerate().filter(|(_, count)| **count > 0) {
                cells.push((at / clusters, at % clusters, count));
            }
        } else {
            let mut table = BTreeMap::new();
            pairs.for_each(|pair| *table.entry(pair).or_default() += 1);
            cells.extend(table.into_iter().map(|((class, cluster), count)| (class, cluster, count)));
        }
        let (mut by_class, mut by_cluster) = (vec![0; classes], vec![0; clusters]);
        for &(class, cluster, count) in &cells {
            by_class[class] += count;
            by_cluster[cluster] += count;
        }
        Ok(Contingency { cells, classes: by_class, clusters: by_cluster, total: truth.len() as u64 })
    }

    /// Class, cluster and how many things are of both, sorted, without zeros.
    pub fn cells(&self) -> &[(usize, usize, u64)] {
        &self.cells
    }

    /// How many things are of each class.
    pub fn classes(&self) -> &[u64] {
        &self.classes
    }

    /// How many things are in each cluster.
    pub fn clusters(&self) -> &[u64] {
        &self.clusters
    }

    /// See [`nmi`](super::nmi).
    pub fn nmi(&self) -> f64 {
        if self.is_trivial() {
            return 1.0;
        }
        match self.mutual_information() {
            0.0 => 0.0,
            information => information / self.mean_entropy(),
        }
    }

    /// See [`ami`](super::ami).
    pub fn ami(&self) -> f64 {
        if self.is_trivial() {
            return 1.0;
        }
        if self.classes.len() == 1 || self.clusters.len() == 1 {
            return 0.0;
        }
        // Neither difference may be 0, so that 0/0 is what its signs say.
        let apart = |difference: f64| {
            if difference < 0.0 { difference.min(-f64::EPSILON) } else { difference.max(f64::EPSILON) }
        };
        let chance = self.expected_information();
        apart(self.mutual_information() - chance) / apart(self.mean_entropy() - chance)
    }

    /// See [`ari`](super::ari).
    pub fn ari(&self) -> f64 {
        let squares =
            |counts: &mut dyn Iterator<Item = u64>| counts.map(|count| u128::from(count).pow(2)).sum::<u128>();
        let total = u128::from(self.total);
        let both = squares(&mut self.cells.iter().map(|cell| cell.2));
        let (classes, clusters) =
            (squares(&mut self.classes.iter().copied()), squares(&mut self.clusters.iter().copied()));
        // Ordered pairs of different things: together on both sides, on one side only, on none.
        let together = (both - total) as f64;
        let (split, joined) = ((classes - both) as f64, (clusters - both) as f64);
        let apart = (total * total + both - classes - clusters) as f64;
        if split == 0.0 && joined == 0.0 {
            return 1.0;
        }
        2.0 * (together * apart - split * joined)
            / ((together + split) * (split + apart) + (together + joined) * (joined + apart))
    }

    /// See [`purity`](super::purity).
    pub fn purity(&self) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        let mut commonest = vec![0; self.clusters.len()];
        for &(_, cluster, count) in &self.cells {
            commonest[cluster] = count.max(commonest[cluster]);
        }
        commonest.into_iter().sum::<u64>() as f64 / self.total as f64
    }

    /// I(U; V) in nats.
    pub fn mutual_information(&self) -> f64 {
        if self.classes.len() <= 1 || self.clusters.len() <= 1 {
            return 0.0;
        }
        let total = self.total as f64;
        let terms = self.cells.iter().map(|&(class, cluster, count)| {
            let outer = u128::from(self.classes[class]) * u128::from(self.clusters[cluster]);
            let (share, count) = (count as f64 / total, count as f64);
            let term = share * (count.ln() - total.ln()) + share * (2.0 * total.ln() - (outer as f64).ln());
            // What is left of a cancellation is no information: independent labels share exactly none.
            if term.abs() < f64::EPSILON { 0.0 } else { term }
        });
        terms.sum::<f64>().max(0.0)
    }

    /// No things, or a single class in a single cluster.
    fn is_trivial(&self) -> bool {
        self.classes.len() == self.clusters.len() && self.classes.len() <= 1
    }

    fn mean_entropy(&self) -> f64 {
        let total = self.total as f64;
        let entropy = |counts: &[u64]| {
            let terms = counts.iter().map(|&count| count as f64 / total * ((count as f64).ln() - total.ln()));
            -terms.sum::<f64>()
        };
        (entropy(&self.classes) + entropy(&self.clusters)) / 2.0
    }

    /// E[I] over all tables with these sums.
    fn expected_information(&self) -> f64 {
        let n = self.total as usize;
        let factorials = log_factorials(n);
        let logs: Vec<f64> = (0..=n).map(|count| (count as f64).ln()).collect();
        let repeated = |counts: &[u64]| {
            let mut times = BTreeMap::new();
            counts.iter().for_each(|&count| *times.entry(count as usize).or_insert(0.0) += 1.0);
            times
        };
        // Classes and clusters of equal sizes give equal terms.
        let (classes, clusters) = (repeated(&self.classes), repeated(&self.clusters));
        let mut expected = 0.0;
        for (&a, &a_times) in &classes {
            for (&b, &b_times) in &clusters {
                let fixed = factorials[a] + factorials[b] + factorials[n - a] + factorials[n - b] - factorials[n];
                let mut sum = 0.0;
                for both in (a + b).saturating_sub(n).max(1)..=a.min(b) {
                    let log_chance = fixed
                        - factorials[both]
                        - factorials[a - both]
                        - factorials[b - both]
                        - factorials[n + both - a - b];
                    // Below this the exponential is 0 in any case.
                    if log_chance > -746.0 {
                        let information = logs[n] + logs[both] - logs[a] - logs[b];
                        sum += both as f64 / n as f64 * information * log_chance.exp();
                    }
                }
                expected += sum * a_times * b_times;
            }
        }
        expected
    }
}

/// ln 0!, ln 1!, …, ln n!. The sum carries its rounding error along (Neumaier), so that every entry is good to its last bits.
fn log_factorials(n: usize) -> Vec<f64> {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    let mut table = Vec::with_capacity(n + 1);
    table.push(0.0);
    for value in 1..=n {
        let term = (value as f64).ln();
        let next = sum + term;
        lost += if sum >= term { (sum - next) + term } else { (term - next) + sum };
        sum = next;
        table.push(sum + lost);
    }
    table
}

/// Labels as numbers from 0 in rising order, and how many different ones there are.
pub(super) fn numbered(labels: &[i64]) -> (Vec<u32>, usize) {
    let (Some(&least), Some(&most)) = (labels.iter().min(), labels.iter().max()) else { return (Vec::new(), 0) };
    let range = i128::from(most) - i128::from(least) + 1;
    if range <= DENSE * labels.len() as i128 + 1024 {
        let place = |label: i64| label.wrapping_sub(least) as usize;
        let mut numbers = vec![0u32; range as usize];
        labels.iter().for_each(|&label| numbers[place(label)] = 1);
        let mut count = 0;
        for number in &mut numbers {
            count += std::mem::replace(number, count);
        }
        return (labels.iter().map(|&label| numbers[place(label)]).collect(), count as usize);
    }
    let mut distinct = labels.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let number = |label: &i64| distinct.binary_search(label).unwrap_or_default() as u32;
    (labels.iter().map(number).collect(), distinct.len())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn cells_are_sorted_and_without_zeros() {
        let table = Contingency::new(&[5, -1, 5, 5], &[0, 7, 7, 0]).unwrap();
        assert_eq!(table.cells(), [(0, 1, 1), (1, 0, 2), (1, 1, 1)]);
        assert_eq!((table.classes(), table.clusters()), (&[1, 3][..], &[2, 2][..]));
    }

    #[test]
    fn labels_far_apart_are_numbered_like_labels_close_together() {
        assert_eq!(numbered(&[i64::MAX, i64::MIN, 0, i64::MAX]), (vec![2, 0, 1, 2], 3));
        assert_eq!(numbered(&[3, -1, 2, 3]), (vec![2, 0, 1, 2], 3));
        assert_eq!(numbered(&[]), (vec![], 0));
    }

    #[test]
    fn many_classes_need_no_full_table() {
        let labels: Vec<i64> = (0..3000).collect();
        let table = Contingency::new(&labels, &labels).unwrap();
        assert_eq!((table.cells().len(), table.nmi(), table.ari(), table.purity()), (3000, 1.0, 1.0, 1.0));
    }

    #[test]
    fn factorials_are_products() {
        let table = log_factorials(20);
        assert!((table[20] - 2_432_902_008_176_640_000f64.ln()).abs() < 1e-14);
        assert_eq!(table[..2], [0.0, 0.0]);
    }
}
