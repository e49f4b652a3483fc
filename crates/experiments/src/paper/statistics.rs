//! Statistics of the experiments: means over seeds, intervals over episodes, paired differences.
//!
//! - A figure is a mean with its standard deviation (n − 1) over seeds.
//! - The interval of a mean NMI is a percentile bootstrap **over episodes**: fragments of an episode overlap and are not
//!   independent, so whole episodes are drawn, with replacement, and the same ones for all seeds. Episodes that are drawn
//!   twice count twice, and those that are not drawn are absent; NMI of fewer different episodes is a little higher, so an
//!   interval need not be symmetric about the estimate.
//! - A difference is paired: seed by seed, and with the same episodes on both sides.
//! - Other figures have no interval. In particular **the sup-norm η is never bootstrapped**: a resample cannot exceed the
//!   maximum of the sample, so the upper end would be the estimate itself.

use clustering::{BootstrapConfig, bootstrap};
use serde::{Deserialize, Serialize};

use super::Measured;
use crate::error::{Error, Result};

/// A figure over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// How many seeds.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n − 1); none for a single seed.
    pub std: Option<f64>,
    /// The 95 % interval of the mean, by percentile bootstrap over episodes; none for figures that are no agreement.
    pub interval: Option<(f64, f64)>,
}

/// Mean and deviation of a figure over seeds, without an interval.
///
/// # Errors
/// On no values.
pub fn over_seeds(values: &[f64]) -> Result<Spread> {
    let n = values.len();
    if n == 0 {
        return Err(Error::Mismatch("no seed has this figure".to_owned()));
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let std = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
    Ok(Spread { n, mean, std, interval: None })
}

/// A figure of the same row over seeds, with an interval over episodes if it is an agreement. `None` if no seed has it.
pub fn spread(seeds: &[&Measured], figure: &str, resamples: usize) -> Result<Option<Spread>> {
    let values: Vec<f64> = seeds.iter().filter_map(|one| one.figures.get(figure).copied()).collect();
    if values.is_empty() {
        return Ok(None);
    }
    let interval = match Agreements::of(seeds, figure)? {
        Some(agreements) => Some(interval(&agreements, resamples, |agreements, counts| agreements.mean(counts))?),
        None => None,
    };
    Ok(Some(Spread { interval, ..over_seeds(&values)? }))
}

/// The figure of one row minus that of another, seed by seed: those seeds that both have. `None` if there are none.
pub fn difference(
    one: &[(u64, &Measured)],
    other: &[(u64, &Measured)],
    figure: &str,
    resamples: usize,
) -> Result<Option<Spread>> {
    let mut pairs: Vec<(&Measured, &Measured)> = Vec::new();
    for (seed, first) in one {
        let second = other.iter().find(|(of, _)| of == seed);
        let both = second.filter(|(_, second)| [first, second].iter().all(|row| row.figures.contains_key(figure)));
        pairs.extend(both.map(|(_, second)| (*first, *second)));
    }
    if pairs.is_empty() {
        return Ok(None);
    }
    let values: Vec<f64> = pairs.iter().map(|(one, other)| one.figures[figure] - other.figures[figure]).collect();
    let (firsts, seconds): (Vec<&Measured>, Vec<&Measured>) = pairs.into_iter().unzip();
    let interval = match (Agreements::of(&firsts, figure)?, Agreements::of(&seconds, figure)?) {
        (Some(one), Some(other)) if one.episodes == other.episodes => {
            Some(interval(&(one, other), resamples, |(one, other), counts| one.mean(counts) - other.mean(counts))?)
        }
        _ => None,
    };
    Ok(Some(Spread { interval, ..over_seeds(&values)? }))
}

/// What is drawn again: something that is about episodes.
trait OfEpisodes: Sync {
    fn episodes(&self) -> usize;
}

impl OfEpisodes for Agreements {
    fn episodes(&self) -> usize {
        self.episodes.len()
    }
}

impl OfEpisodes for (Agreements, Agreements) {
    fn episodes(&self) -> usize {
        self.0.episodes()
    }
}

/// The percentile interval of a statistic of how often each episode was drawn.
fn interval<T: OfEpisodes>(
    of: &T,
    resamples: usize,
    statistic: impl Fn(&T, &[u32]) -> f64 + Sync,
) -> Result<(f64, f64)> {
    let config = BootstrapConfig { resamples, ..BootstrapConfig::default() };
    let found = bootstrap(of.episodes(), &config, |drawn| {
        let mut counts = vec![0_u32; of.episodes()];
        drawn.iter().for_each(|at| counts[*at as usize] += 1);
        statistic(of, &counts)
    })?;
    Ok((found.low, found.high))
}

/// Mean NMIs over seeds and pairs of labellings, as contingency tables by episode: sums of those are all that a resample needs.
struct Agreements {
    /// The episodes of the probe, in ascending order.
    episodes: Vec<u32>,
    tables: Vec<Table>,
}

/// The contingency table of two labellings, episode by episode.
struct Table {
    shape: (usize, usize),
    /// For each episode its cells, each with the number of its fragments.
    of_episode: Vec<Vec<(u32, u32)>>,
}

impl Agreements {
    /// Those of all seeds. `None` if a seed has none, or if seeds have other probes.
    fn of(seeds: &[&Measured], figure: &str) -> Result<Option<Agreements>> {
        let Some(first) = seeds.first().filter(|one| !one.episodes.is_empty()) else { return Ok(None) };
        let mut episodes = first.episodes.clone();
        episodes.sort_unstable();
        episodes.dedup();
        let mut tables = Vec::new();
        for seed in seeds {
            let Some(pairs) = seed.agreements.get(figure).filter(|_| seed.episodes == first.episodes) else {
                return Ok(None);
            };
            for (one, other) in pairs {
                if one.len() != first.episodes.len() || other.len() != one.len() {
                    return Err(Error::Mismatch(format!(
                        "`{figure}` of `{}` has labels of {} and {} fragments, and the probe has {}",
                        seed.row,
                        one.len(),
                        other.len(),
                        first.episodes.len()
                    )));
                }
                tables.push(Table::new(one, other, &first.episodes, &episodes));
            }
        }
        Ok((!tables.is_empty()).then_some(Agreements { episodes, tables }))
    }

    fn mean(&self, counts: &[u32]) -> f64 {
        self.tables.iter().map(|table| table.nmi(counts)).sum::<f64>() / self.tables.len().max(1) as f64
    }
}

impl Table {
    fn new(one: &[i64], other: &[i64], of: &[u32], episodes: &[u32]) -> Table {
        let numbered = |labels: &[i64]| -> (Vec<usize>, usize) {
            let mut known: Vec<i64> = labels.to_vec();
            known.sort_unstable();
            known.dedup();
            (labels.iter().map(|label| known.partition_point(|other| other < label)).collect(), known.len())
        };
        let ((one, rows), (other, columns)) = (numbered(one), numbered(other));
        let mut of_episode = vec![std::collections::BTreeMap::<u32, u32>::new(); episodes.len()];
        for (at, episode) in of.iter().enumerate() {
            let place = episodes.partition_point(|known| known < episode);
            *of_episode[place].entry((one[at] * columns + other[at]) as u32).or_default() += 1;
        }
        Table {
            shape: (rows, columns),
            of_episode: of_episode.into_iter().map(|map| map.into_iter().collect()).collect(),
        }
    }

    /// NMI (arithmetic) of the fragments of episodes that were drawn so often. Labels that occur on one side only in a single
    /// value carry no information: 1 if both sides have one value, otherwise 0, as `clustering::nmi` has it.
    fn nmi(&self, counts: &[u32]) -> f64 {
        let (rows, columns) = self.shape;
        let mut cells = vec![0_u64; rows * columns];
        for (cells_of, times) in self.of_episode.iter().zip(counts).filter(|(_, times)| **times > 0) {
            for (cell, count) in cells_of {
                cells[*cell as usize] += u64::from(*count) * u64::from(*times);
            }
        }
        let (mut by_row, mut by_column) = (vec![0_u64; rows], vec![0_u64; columns]);
        for (at, count) in cells.iter().enumerate() {
            by_row[at / columns] += count;
            by_column[at % columns] += count;
        }
        let total = by_row.iter().sum::<u64>() as f64;
        let entropy = |counts: &[u64]| -> f64 {
            let shares = counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / total);
            shares.map(|share| -share * share.ln()).sum()
        };
        let (of_rows, of_columns, of_cells) = (entropy(&by_row), entropy(&by_column), entropy(&cells));
        match (of_rows > 0.0, of_columns > 0.0) {
            (false, false) => 1.0,
            (true, true) => ((of_rows + of_columns - of_cells) / f64::midpoint(of_rows, of_columns)).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn draws(count: usize, below: u64, seed: u64) -> Vec<i64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..count).map(|_| (next() % below) as i64).collect()
    }

    fn measured(truth: Vec<i64>, found: Vec<i64>, episodes: Vec<u32>) -> Measured {
        let nmi = clustering::nmi(&truth, &found).unwrap();
        let mut one = Measured::new("row", [("nmi_task", nmi)]);
        one.agreements.insert("nmi_task".to_owned(), vec![(truth, found)]);
        one.episodes = episodes;
        one
    }

    #[test]
    fn with_every_episode_once_a_table_has_the_nmi_of_the_clustering_crate() {
        for seed in 1..40 {
            let (truth, mut found) = (draws(90, 1 + seed % 6, seed), draws(90, 1 + seed % 4, seed + 100));
            found.iter_mut().zip(&truth).take(60).for_each(|(found, truth)| *found = truth - 1);
            let episodes: Vec<u32> = (0..90).map(|at| 7 * (at / 10)).collect();
            let known: Vec<u32> = (0..9).map(|at| 7 * at).collect();
            let table = Table::new(&truth, &found, &episodes, &known);
            let wanted = clustering::nmi(&truth, &found).unwrap();
            assert!((table.nmi(&[1; 9]) - wanted).abs() < 1e-9, "{seed}: {} {wanted}", table.nmi(&[1; 9]));
            // An episode drawn twice is the same as its fragments twice.
            let mut twice = (truth.clone(), found.clone());
            twice.0.extend(&truth[20..30]);
            twice.1.extend(&found[20..30]);
            let wanted = clustering::nmi(&twice.0, &twice.1).unwrap();
            let mut counts = [1; 9];
            counts[2] = 2;
            assert!((table.nmi(&counts) - wanted).abs() < 1e-9, "{seed}");
        }
    }

    #[test]
    fn fragments_that_repeat_within_an_episode_do_not_narrow_the_interval() {
        let (truth, found) = (draws(24, 3, 5), draws(24, 3, 6));
        let mixed: Vec<i64> =
            truth.iter().zip(&found).enumerate().map(|(at, (t, f))| if at % 3 == 0 { *f } else { *t }).collect();
        let width = |copies: usize| {
            let repeated = |of: &[i64]| of.iter().flat_map(|label| vec![*label; copies]).collect::<Vec<i64>>();
            let episodes = (0..24 * copies).map(|at| (at / copies) as u32).collect();
            let one = measured(repeated(&truth), repeated(&mixed), episodes);
            let found = spread(&[&one], "nmi_task", 400).unwrap().unwrap();
            let (low, high) = found.interval.unwrap();
            assert!(0.0 <= low && low < high && high <= 1.0, "{found:?}");
            high - low
        };
        assert!((width(1) - width(20)).abs() < 1e-12, "{} {}", width(1), width(20));
    }

    #[test]
    fn differences_are_paired_by_seed_and_by_episode() {
        let episodes: Vec<u32> = (0..60).map(|at| at / 6).collect();
        let truth = draws(60, 4, 1);
        let noisy = |seed: u64, every: usize| {
            let noise = draws(60, 4, seed);
            let found = truth.iter().enumerate().map(|(at, label)| if at % every == 0 { noise[at] } else { *label });
            measured(truth.clone(), found.collect(), episodes.clone())
        };
        let (one, other, third) = (noisy(3, 4), noisy(4, 2), noisy(9, 3));
        let rows = [(0, &one), (1, &other)];
        let nothing = difference(&rows, &rows, "nmi_task", 200).unwrap().unwrap();
        assert_eq!((nothing.n, nothing.mean, nothing.std, nothing.interval), (2, 0.0, Some(0.0), Some((0.0, 0.0))));
        let shared = difference(&rows, &[(1, &third), (5, &one)], "nmi_task", 200).unwrap().unwrap();
        assert_eq!(shared.n, 1, "one seed is shared");
        assert!((shared.mean - (other.figures["nmi_task"] - third.figures["nmi_task"])).abs() < 1e-12);
        assert_eq!(difference(&rows, &[(5, &one)], "nmi_task", 200).unwrap(), None);
    }

    #[test]
    fn a_figure_that_is_no_agreement_has_a_deviation_and_never_an_interval() {
        let rows: Vec<Measured> =
            [0.181, 0.216, 0.173, 0.269, 0.185].map(|eta| Measured::new("z", [("eta_sup", eta)])).into();
        let found = spread(&rows.iter().collect::<Vec<_>>(), "eta_sup", 1000).unwrap().unwrap();
        // The paper's five seeds, and its summary of them.
        assert!((found.mean - 0.205).abs() < 5e-4 && (found.std.unwrap() - 0.039).abs() < 5e-4, "{found:?}");
        assert_eq!((found.n, found.interval), (5, None));
        assert_eq!(spread(&rows.iter().collect::<Vec<_>>(), "nothing", 10).unwrap(), None);
        assert_eq!(over_seeds(&[2.0]).unwrap().std, None);
        assert!(over_seeds(&[]).is_err());
    }

    #[test]
    fn the_same_input_gives_the_same_interval_and_labels_of_another_length_are_refused() {
        let episodes: Vec<u32> = (0..60).map(|at| at / 6).collect();
        let one = measured(draws(60, 3, 1), draws(60, 3, 2), episodes);
        let first = spread(&[&one], "nmi_task", 300).unwrap();
        assert_eq!(first, spread(&[&one], "nmi_task", 300).unwrap());
        let mut wrong = one.clone();
        wrong.episodes.pop();
        assert!(spread(&[&wrong], "nmi_task", 10).unwrap_err().to_string().contains("the probe has 59"));
    }
}
