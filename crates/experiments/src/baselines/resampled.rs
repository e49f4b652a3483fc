//! Scores of resampled episodes: fragments of one episode depend on each other, so episodes are drawn, not fragments.
//!
//! A score is kept as counts by episode. Those of a resample are sums, so ten thousand resamples take seconds.

use std::collections::{BTreeMap, BTreeSet};

use clustering::{BootstrapConfig, bootstrap, matched_boundaries};

use super::Found;
use crate::error::Result;
use crate::prepared::HeldOut;

/// A score as counts by episode.
pub(super) enum Counts {
    /// Of labels and classes.
    Information { labels: usize, classes: usize, episodes: Vec<Vec<(usize, u32)>> },
    /// Of boundaries: matched, true, and found ones.
    Boundaries(Vec<[usize; 3]>),
}

impl Counts {
    /// NMI of the probe's labels and classes.
    pub(super) fn information(truth: &[i64], found: &[i64], held_out: &HeldOut) -> Counts {
        let numbered = |labels: &[i64]| -> BTreeMap<i64, usize> {
            labels.iter().collect::<BTreeSet<_>>().into_iter().enumerate().map(|(at, label)| (*label, at)).collect()
        };
        let (of_label, of_class) = (numbered(truth), numbered(found));
        let classes = of_class.len();
        let mut episodes = vec![BTreeMap::<usize, u32>::new(); held_out.index.episodes().len()];
        let place_of = |fragment: dataset::FragmentId| {
            let episode = held_out.index.get(fragment).episode;
            held_out.index.episodes().iter().position(|one| *one == episode).unwrap_or_default()
        };
        for ((fragment, label), class) in held_out.probe.iter().zip(truth).zip(found) {
            *episodes[place_of(*fragment)].entry(of_label[label] * classes + of_class[class]).or_default() += 1;
        }
        let episodes = episodes.into_iter().map(|counts| counts.into_iter().collect()).collect();
        Counts::Information { labels: of_label.len(), classes, episodes }
    }

    /// F1 of boundaries between phases; `None` without phases or cuts.
    pub(super) fn boundaries(found: &Found, held_out: &HeldOut) -> Option<Counts> {
        let (phases, cuts) = (held_out.episodes.as_ref()?, found.cuts.as_ref()?);
        let counted = phases.iter().zip(cuts).map(|(phases, cuts)| {
            let changes = phases.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
            let truth: Vec<usize> = changes.map(|(at, _)| at + 1).collect();
            [matched_boundaries(&truth, cuts, held_out.tolerance), truth.len(), cuts.len()]
        });
        Some(Counts::Boundaries(counted.collect()))
    }

    /// How many episodes there are.
    pub(super) fn episodes(&self) -> usize {
        match self {
            Counts::Information { episodes, .. } => episodes.len(),
            Counts::Boundaries(episodes) => episodes.len(),
        }
    }

    /// The score of some episodes, some of them several times.
    pub(super) fn score(&self, drawn: &[u32]) -> f64 {
        match self {
            Counts::Information { labels, classes, episodes } => {
                let mut table = vec![0_u32; labels * classes];
                for (cell, count) in drawn.iter().flat_map(|at| &episodes[*at as usize]) {
                    table[*cell] += count;
                }
                nmi(&table, *classes)
            }
            Counts::Boundaries(episodes) => {
                let sum = |part: usize| drawn.iter().map(|at| episodes[*at as usize][part]).sum::<usize>();
                let (matched, all) = (sum(0), sum(1) + sum(2));
                if all == 0 { 1.0 } else { 2.0 * matched as f64 / all as f64 }
            }
        }
    }
}

/// The 95 % interval of the mean over seeds, by percentile bootstrap over episodes. With `less`, of the difference, for which
/// both sides have the same episodes drawn.
pub(super) fn interval(own: &[&Counts], less: Option<&[&Counts]>, resamples: usize) -> Result<(f64, f64)> {
    let count = own.first().map_or(0, |counts| counts.episodes());
    let mean = |of: &[&Counts], drawn: &[u32]| {
        of.iter().map(|counts| counts.score(drawn)).sum::<f64>() / of.len().max(1) as f64
    };
    let config = BootstrapConfig { resamples, ..BootstrapConfig::default() };
    let found = bootstrap(count, &config, |drawn| mean(own, drawn) - less.map_or(0.0, |less| mean(less, drawn)))?;
    Ok((found.low, found.high))
}

/// Normalised mutual information of a table, as [`clustering::nmi`] has it.
fn nmi(table: &[u32], classes: usize) -> f64 {
    let rows: Vec<u32> = table.chunks_exact(classes.max(1)).map(|row| row.iter().sum()).collect();
    let columns: Vec<u32> = (0..classes).map(|at| table.iter().skip(at).step_by(classes).sum()).collect();
    let all: u32 = rows.iter().sum();
    // Σ n ln n of counts, from which all entropies follow.
    let weigh = |counts: &[u32]| {
        counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) * f64::from(*count).ln()).sum::<f64>()
    };
    let n = f64::from(all.max(1));
    let entropy = |counts: &[u32]| n.ln() - weigh(counts) / n;
    let (one, other) = (entropy(&rows), entropy(&columns));
    let present = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count();
    match (present(&rows), present(&columns)) {
        (0 | 1, 0 | 1) => 1.0,
        (0 | 1, _) | (_, 0 | 1) => 0.0,
        _ => ((one + other - entropy(table)) / (0.5 * (one + other))).clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resample_scores_as_its_fragments_do() {
        // Three episodes with their labels and classes.
        let episodes: [(&[i64], &[i64]); 3] =
            [(&[0, 0, 1, 1], &[5, 5, 7, 5]), (&[1, 2, 2], &[7, 9, 9]), (&[0, 2, 1], &[5, 9, 5])];
        let cells = |(labels, classes): &(&[i64], &[i64])| {
            let mut counts = BTreeMap::<usize, u32>::new();
            for (label, class) in labels.iter().zip(*classes) {
                *counts.entry(*label as usize * 3 + (*class as usize - 5) / 2).or_default() += 1;
            }
            counts.into_iter().collect()
        };
        let counts = Counts::Information { labels: 3, classes: 3, episodes: episodes.iter().map(cells).collect() };
        for drawn in [&[0, 1, 2][..], &[0, 0, 2], &[1, 1, 1], &[2, 0, 2]] {
            let truth: Vec<i64> = drawn.iter().flat_map(|at| episodes[*at as usize].0).copied().collect();
            let found: Vec<i64> = drawn.iter().flat_map(|at| episodes[*at as usize].1).copied().collect();
            let wanted = clustering::nmi(&truth, &found).unwrap();
            assert!((counts.score(drawn) - wanted).abs() < 1e-12, "{drawn:?}");
        }
        assert_eq!(nmi(&[4, 0, 0, 0], 2), 1.0);
        assert_eq!(nmi(&[4, 0, 3, 0], 2), 0.0);
    }

    #[test]
    fn differences_are_paired() {
        let counts = |extra: usize| Counts::Boundaries((0..12).map(|at| [at % 4, 4 + extra, 4]).collect());
        let (one, same, worse) = (counts(0), counts(0), counts(4));
        assert_eq!(interval(&[&one], Some(&[&same]), 500).unwrap(), (0.0, 0.0), "the same episodes on both sides");
        let (low, high) = interval(&[&one], Some(&[&worse]), 500).unwrap();
        let (below, above) = interval(&[&one], None, 500).unwrap();
        assert!(low > 0.0 && high - low < above - below, "{low} {high} {below} {above}");
    }
}
