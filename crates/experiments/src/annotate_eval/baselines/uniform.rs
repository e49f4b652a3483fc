//! Segments of equal length.

use super::Cutter;
use crate::annotate_eval::samples::Sample;
use crate::error::Result;

/// As many segments of equal length as there truly are: what the number alone is worth.
pub struct Uniform;

impl Cutter for Uniform {
    fn name(&self) -> String {
        "uniform, true count".to_owned()
    }

    fn settings(&self) -> Vec<String> {
        vec!["true count".to_owned()]
    }

    fn cuts(&self, _setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        Ok(equal(sample.len(), sample.truth.len()))
    }
}

/// The inner ends of `count` parts of `length` rows.
fn equal(length: usize, count: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..count).map(|at| (at * length + count / 2) / count).collect();
    cuts.retain(|cut| *cut > 0 && *cut < length);
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_within_the_episode() {
        assert_eq!(equal(12, 4), [3, 6, 9]);
        assert_eq!(equal(10, 3), [3, 7]);
        assert_eq!(equal(10, 1), [0; 0]);
        assert_eq!(equal(0, 5), [0; 0]);
        assert_eq!(equal(2, 5), [1]);
    }
}
