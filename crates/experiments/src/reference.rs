//! D_φ of a world model on a dataset, by sampled rollouts: what the amortizer and the separable form learn, and what every
//! form is compared with.
//!
//! The starts s are states that the training episodes visit. They, the noise and the weights are given by a
//! [`KernelConfig`], so a form that stores the configuration it learned from can be compared with the very same distances.

use std::ops::Range;

use models::kernel::{Distances, KernelConfig, MonteCarlo, Signatures, Targets, visited};
use models::{FragmentBatch, FragmentTable, WorldModel, WorldModelConfig};
use skills::SegmentConfig;

use crate::cycle::classes::ClassSettings;
use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::settings::CycleSettings;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::trained::Loaded;
use crate::windows::Windows;

/// Windows that are handed to the world model at once; it imagines them in parts of its own.
const CHUNK: usize = 64;

/// Which D_φ a world model teaches, and how demonstrations are cut into the segments that it is used on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistanceSettings {
    /// How episodes are cut.
    pub segments: SegmentConfig,
    /// The weights, horizon, starts and samples of D_φ.
    pub classes: ClassSettings,
}

impl From<&CycleSettings> for DistanceSettings {
    fn from(cycle: &CycleSettings) -> DistanceSettings {
        DistanceSettings { segments: cycle.segments.clone(), classes: cycle.classes.clone() }
    }
}

/// The Monte-Carlo reference.
pub struct Reference<'a> {
    monte_carlo: MonteCarlo<'a, WorldModel>,
    kernel: KernelConfig,
}

impl<'a> Reference<'a> {
    /// Draws the starts from the training episodes.
    ///
    /// # Errors
    /// On a horizon that the world model or the fragments do not have.
    pub fn new(
        prepared: &Prepared,
        world_model: &'a Loaded<WorldModel, WorldModelConfig>,
        table: &FragmentTable,
        kernel: KernelConfig,
    ) -> Result<Reference<'a>> {
        let (index, model) = (&prepared.training, &world_model.model);
        let longest = index.length().min(model.config().horizon);
        if kernel.horizon > longest {
            return Err(Error::Settings(vec![format!(
                "the kernel's `horizon` is {}, and the world model and the fragments have {longest} steps; set it to \
                 {longest} or less",
                kernel.horizon
            )]));
        }
        let step = (index.len() / kernel.starts.max(1)).max(1);
        let chosen: Vec<usize> = index.iter().step_by(step).map(|(_, fragment)| fragment.frames.start).collect();
        let starts = visited(&table.gather(&chosen, 1)?, kernel.starts, kernel.seed)?;
        Ok(Reference { monte_carlo: MonteCarlo::new(model, &starts, kernel)?, kernel })
    }

    /// What follows from each window.
    pub fn signatures(&self, windows: &Windows) -> Result<Signatures> {
        let chunks = windows.chunks(CHUNK);
        Ok(self
            .monte_carlo
            .signatures(chunks.iter().map(|chunk| windows.actions(chunk).map_err(Error::for_trainer)))?)
    }

    /// D_φ between all pairs.
    pub fn distances(&self, signatures: &Signatures) -> Distances {
        self.monte_carlo.distances(signatures)
    }

    /// What the separable form learns of some windows.
    pub(crate) fn targets(&self, windows: &FragmentBatch) -> Result<Targets> {
        Ok(self.monte_carlo.targets(windows)?)
    }

    /// D_φ's settings.
    pub fn kernel(&self) -> KernelConfig {
        self.kernel
    }
}

/// The windows that D_φ is taught on: those of about `count` training fragments, evenly chosen without looking at tasks, and
/// those of all segments of the training demonstrations.
///
/// Segments are fewer than fragments, and many are shorter than a window, whose rest is stillness. Every second fragment is
/// therefore cut to the length of such a segment: otherwise a form would know stillness from too few examples, and rank
/// distances between short segments badly.
pub(crate) fn lessons(
    prepared: &Prepared,
    table: &FragmentTable,
    segments: &SegmentConfig,
    count: usize,
    kernel: KernelConfig,
) -> Result<Windows> {
    let steps = kernel.horizon;
    let demonstrations = Demonstrations::new(prepared, segments)?;
    let ids = demonstrations.segments_of(&demonstrations.which(false));
    let own: Vec<Range<usize>> = ids.iter().map(|id| demonstrations.frames(*id)).collect();
    let mut short = own.iter().map(Range::len).filter(|length| *length < steps).cycle();
    let step = prepared.training.len().div_ceil(count.max(1)).max(1);
    let chosen = prepared.training.iter().step_by(step).enumerate().map(|(at, (_, fragment))| {
        let first = fragment.frames.start;
        let length = if at % 2 == 1 { short.next() } else { None };
        first..first + length.unwrap_or(steps)
    });
    let stretches: Vec<Range<usize>> = chosen.chain(own.iter().cloned()).collect();
    Windows::of_stretches(prepared, &demonstrations.layout, &stretches, steps, table)
}
