//! PELT: the best piecewise constant signal.
//!
//! ```text
//! minimise  Σ over segments S of Σ_{t ∈ S} ‖x_t − mean of S‖²  +  penalty · (number of segments)
//! ```
//! by the recursion of optimal partitioning, in which a start is dropped once it can never win again (Killick, Fearnhead
//! and Eckley 2012). With segments of two rows or more this is `Pelt(model="l2", min_size=2, jump=1)` of Python's
//! `ruptures`, whose change points are in `fixtures/golden/pelt` and must be found here as well. Unlike our own
//! segmentation, it knows neither bells nor grippers.

use super::Cutter;
use crate::annotate_eval::samples::{Sample, Signal};
use crate::error::Result;

/// The least rows of a segment, as in `ruptures`.
const LEAST: usize = 2;

/// Penalties that are tried. A cut must lower the sum of squared deviations of all columns by so much.
const PENALTIES: [f64; 9] = [2.0, 5.0, 9.0, 13.0, 20.0, 40.0, 100.0, 300.0, 1000.0];

/// PELT on a signal.
pub struct Pelt {
    velocities: bool,
}

impl Pelt {
    /// On standardised actions.
    pub fn on_actions() -> Pelt {
        Pelt { velocities: false }
    }

    /// On standardised velocities, where actions are positions: a constant position is rest and nothing else.
    pub fn on_velocities() -> Pelt {
        Pelt { velocities: true }
    }
}

impl Cutter for Pelt {
    fn name(&self) -> String {
        format!("PELT on {}", if self.velocities { "velocities" } else { "actions" })
    }

    fn settings(&self) -> Vec<String> {
        PENALTIES.iter().map(|penalty| format!("penalty {penalty}")).collect()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        let signal = if self.velocities { &sample.signals.velocities } else { &sample.signals.actions };
        Ok(pelt(signal, PENALTIES[setting.min(PENALTIES.len() - 1)], LEAST))
    }
}

/// The change points of a signal: rows at which segments begin, but for the first.
pub fn pelt(signal: &Signal, penalty: f64, least: usize) -> Vec<usize> {
    let (count, width, least) = (signal.len(), signal.width, least.max(1));
    if count < 2 * least {
        return Vec::new();
    }
    // Prefix sums: [count + 1, width] of values, and [count + 1] of squares.
    let mut sums = vec![0.0; (count + 1) * width];
    let mut squares = vec![0.0; count + 1];
    for at in 0..count {
        let row = signal.row(at);
        squares[at + 1] = squares[at] + row.iter().map(|value| value * value).sum::<f64>();
        for (column, value) in row.iter().enumerate() {
            sums[(at + 1) * width + column] = sums[at * width + column] + value;
        }
    }
    let cost = |start: usize, end: usize| {
        let (before, after) = (&sums[start * width..][..width], &sums[end * width..][..width]);
        let explained = before.iter().zip(after).map(|(before, after)| (after - before).powi(2)).sum::<f64>();
        (squares[end] - squares[start] - explained / (end - start) as f64).max(0.0)
    };
    let mut best = vec![f64::INFINITY; count + 1];
    let mut from = vec![0; count + 1];
    best[0] = 0.0;
    // Starts that may still win, each with the end from which on it cannot. A start that loses at `end` by the penalty loses
    // to a cut at `end` ever after, once a segment that begins there is long enough.
    let mut starts: Vec<(usize, usize)> = Vec::new();
    for end in least..=count {
        let newest = end - least;
        if best[newest].is_finite() {
            starts.push((newest, usize::MAX));
        }
        starts.retain(|(_, dead)| end < *dead);
        let totals: Vec<f64> = starts.iter().map(|(start, _)| best[*start] + cost(*start, end) + penalty).collect();
        for ((start, _), total) in starts.iter().zip(&totals) {
            if *total < best[end] {
                (best[end], from[end]) = (*total, *start);
            }
        }
        for ((_, dead), total) in starts.iter_mut().zip(&totals) {
            if *dead == usize::MAX && total - penalty > best[end] + 1e-9 {
                *dead = end + least;
            }
        }
    }
    let mut cuts = Vec::new();
    let mut end = count;
    while from[end] > 0 {
        end = from[end];
        cuts.push(end);
    }
    cuts.reverse();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(values: &[f64]) -> Signal {
        Signal { width: 1, values: values.to_vec() }
    }

    /// The cost of some cuts, in full.
    fn cost(values: &[f64], cuts: &[usize], penalty: f64) -> f64 {
        let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([values.len()]).collect();
        let one = |part: &[f64]| {
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(|value| (value - mean).powi(2)).sum::<f64>() + penalty
        };
        ends.windows(2).map(|two| one(&values[two[0]..two[1]])).sum()
    }

    #[test]
    fn steps_are_found_and_a_large_penalty_finds_none() {
        let values: Vec<f64> = (0..30).map(|at| f64::from(at / 10)).collect();
        assert_eq!(pelt(&signal(&values), 0.5, 2), [10, 20]);
        assert_eq!(pelt(&signal(&values), 100.0, 2), [0; 0]);
        assert_eq!(pelt(&signal(&[1.0, 2.0]), 0.0, 2), [0; 0]);
        assert_eq!(pelt(&Signal::default(), 1.0, 2), [0; 0]);
    }

    #[test]
    fn change_points_are_those_of_ruptures() {
        #[derive(serde::Deserialize)]
        struct Golden {
            cases: Vec<Case>,
        }
        #[derive(serde::Deserialize)]
        struct Case {
            width: usize,
            values: Vec<f64>,
            cuts: std::collections::BTreeMap<String, Vec<usize>>,
        }
        let golden = include_str!("../../../fixtures/golden/pelt/ruptures.json");
        let golden: Golden = serde_json::from_str(golden).unwrap();
        assert!(!golden.cases.is_empty());
        for (at, case) in golden.cases.into_iter().enumerate() {
            let signal = Signal { width: case.width, values: case.values };
            for (penalty, cuts) in case.cuts {
                assert_eq!(pelt(&signal, penalty.parse().unwrap(), LEAST), cuts, "case {at}, penalty {penalty}");
            }
        }
    }

    #[test]
    fn no_other_segmentation_is_cheaper() {
        // All 2^9 segmentations of ten rows with segments of two rows or more.
        for seed in 0..40_u64 {
            let values: Vec<f64> =
                (0..10).map(|at| (((seed * 31 + at * 17) * 2654435761) % 97) as f64 / 20.0).collect();
            for penalty in [0.3, 1.0, 4.0] {
                let found = cost(&values, &pelt(&signal(&values), penalty, 2), penalty);
                let best = (0..1_u32 << 9)
                    .map(|bits| (1..10).filter(|cut| bits >> (cut - 1) & 1 == 1).collect::<Vec<usize>>())
                    .filter(|cuts| {
                        let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([10]).collect();
                        ends.windows(2).all(|two| two[1] - two[0] >= 2)
                    })
                    .map(|cuts| cost(&values, &cuts, penalty))
                    .fold(f64::INFINITY, f64::min);
                assert!((found - best).abs() < 1e-9, "{seed} {penalty}: {found} {best}");
            }
        }
    }
}
