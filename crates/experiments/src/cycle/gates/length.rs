//! The length gate: a candidate must make the corpus shorter, its own definition included (SPEC §7 iii).

use compression::Candidate;
use report::{Figure, Verdict};

use super::scene::Scene;
use super::{Gate, measured};
use crate::error::Result;

/// Compares the drop in description length with a minimum.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// The drop must be larger, in nats.
    pub min_gain: f64,
}

impl Gate for Length {
    fn name(&self) -> &'static str {
        "length"
    }

    fn judge(&self, candidate: &Candidate, _: &Scene<'_>) -> Result<Figure> {
        let mut figure = measured(self.name(), candidate.gain, self.min_gain, "nats");
        if candidate.gain.is_nan() || candidate.gain <= self.min_gain {
            figure.verdict = Verdict::Failed;
            figure.reason = format!(
                "the description length drops by {:.2} nats, more than {} are required",
                candidate.gain, self.min_gain
            );
        }
        Ok(figure)
    }
}
