//! The table of held-out figures: rows are what is measured, columns are the arms of the comparison.

use serde::{Deserialize, Serialize};

use crate::json_number;

/// The group of metrics that the page shows with the skills instead of with the policy.
pub const SKILL_GROUP: &str = "skills";

/// One arm of a comparison, such as the policy with the library or a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name, such as `with library`; values of [`Metric`] refer to it.
    pub name: String,
    /// What distinguishes it from the other arms, as a sentence.
    pub description: String,
}

/// One row of the table of held-out figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Heading of the row, such as `emitter (TPE)`; rows of a group follow each other and share their columns.
    pub group: String,
    /// What is measured, such as `exact match`.
    pub name: String,
    /// Unit, empty for a dimensionless number.
    pub unit: String,
    /// Whether more or less is better.
    pub better: Better,
    /// Whether the model was given programs that contain the future of the episode it is evaluated on. Such a figure is a
    /// bound and not what the policy achieves.
    pub oracle: bool,
    /// Whether the head of the page shows this row, too.
    pub headline: bool,
    /// Values by the name of their [`Arm`]; an arm without a value is left out.
    pub values: Vec<(String, Estimate)>,
    /// The paper's value as it prints it (`0.900`, `0.090–0.113`); `None` where nothing is comparable.
    pub paper: Option<String>,
    /// How it was measured, or what differs from the paper's setting. May be empty.
    pub note: String,
}

impl Metric {
    /// The value of an arm.
    pub fn value(&self, arm: &str) -> Option<Estimate> {
        self.values.iter().find(|(name, _)| name == arm).map(|(_, estimate)| *estimate)
    }

    /// The best mean of the row: `None` if no direction is better, or if there are no two different finite values.
    pub fn best(&self) -> Option<f64> {
        let means: Vec<f64> =
            self.values.iter().map(|(_, estimate)| estimate.mean).filter(|mean| mean.is_finite()).collect();
        if means.iter().all(|mean| *mean == means[0]) {
            return None;
        }
        match self.better {
            Better::Higher => means.into_iter().max_by(f64::total_cmp),
            Better::Lower => means.into_iter().min_by(f64::total_cmp),
            Better::Neither => None,
        }
    }
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The figure itself, in the unit of its row.
    #[serde(deserialize_with = "json_number::one")]
    pub mean: f64,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
}

impl Estimate {
    /// A figure without an interval.
    pub fn exact(mean: f64) -> Estimate {
        Estimate { mean, low: None, high: None }
    }
}

/// Which direction of a figure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better: accuracies, agreement.
    Higher,
    /// Less is better: errors, description lengths.
    Lower,
    /// The figure describes, it does not judge.
    Neither,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(better: Better, means: &[f64]) -> Metric {
        let value = |(at, mean): (usize, &f64)| (format!("arm {at}"), Estimate::exact(*mean));
        Metric {
            group: String::new(),
            name: String::new(),
            unit: String::new(),
            better,
            oracle: false,
            headline: false,
            values: means.iter().enumerate().map(value).collect(),
            paper: None,
            note: String::new(),
        }
    }

    #[test]
    fn the_best_value_needs_a_direction_and_something_to_compare_with() {
        assert_eq!(metric(Better::Higher, &[0.5, f64::NAN, 0.7]).best(), Some(0.7));
        assert_eq!(metric(Better::Lower, &[0.5, 0.7]).best(), Some(0.5));
        assert_eq!(metric(Better::Lower, &[0.5]).best(), None);
        assert_eq!(metric(Better::Higher, &[0.5, f64::NAN]).best(), None);
        assert_eq!(metric(Better::Higher, &[0.5, 0.5]).best(), None, "a tie has no winner");
        assert_eq!(metric(Better::Higher, &[]).best(), None);
        assert_eq!(metric(Better::Neither, &[0.5, 0.7]).best(), None);
    }

    #[test]
    fn values_are_found_by_the_name_of_their_arm() {
        let metric = metric(Better::Higher, &[0.5, 0.7]);
        assert_eq!(metric.value("arm 1"), Some(Estimate::exact(0.7)));
        assert_eq!(metric.value("arm 2"), None);
    }
}
