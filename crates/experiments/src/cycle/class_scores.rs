//! How good the classes of segments are: the form of D_φ that made them against the Monte-Carlo reference, and the classes
//! against classes of the same segments by their actions.

use clustering::{KMeansConfig, Points, kmeans};
use models::FragmentTable;
use models::kernel::{Distances, KernelForm, agreement};
use serde::{Deserialize, Serialize};
use skills::{PhaseScores, score_phases};

use super::classes::{ClassSettings, Classes};
use super::demonstrations::Demonstrations;
use super::segment_kernel::SegmentDistances;
use super::skill_scores::held_out_segments;
use crate::amortizer_phase::Teacher;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::prepared::{Prepared, commonest};
use crate::reference::Reference;
use crate::scores::{Agreement, agreement as scored, tolerance};

/// The form of D_φ that the loop uses, compared with the Monte-Carlo reference on held-out segments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelAgreement {
    /// The form.
    pub form: KernelForm,
    /// k of D_φ.
    pub horizon: usize,
    /// Starts that the reference imagines each segment from.
    pub starts: usize,
    /// Rollouts that it draws from each start; one follows the means.
    pub samples: usize,
    /// Held-out segments that were compared.
    pub segments: usize,
    /// Pairs of them.
    pub pairs: usize,
    /// Spearman's ρ between the form's distances and the reference's; none where one of them is the same for all pairs.
    pub spearman: Option<f64>,
    /// KMeans clusters of these segments under the form against their phases, where the dataset has phases.
    pub phases: Option<Agreement>,
    /// The same under the reference.
    pub reference_phases: Option<Agreement>,
}

/// Classes of held-out segments against phases, frame by frame, and the same for the matched baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchedScores {
    /// Classes under D_φ.
    pub kernel: PhaseScores,
    /// As many classes of the same segments by KMeans on the actions of the same windows.
    pub actions: PhaseScores,
}

/// Compares the form of D_φ behind some classes with the reference, on at most `settings.compared` held-out segments. `None`
/// where there are fewer than three.
pub fn kernel_agreement(
    classes: &Classes,
    prepared: &Prepared,
    demonstrations: &Demonstrations,
    teacher: &Teacher,
    table: &FragmentTable,
    settings: &ClassSettings,
) -> Result<Option<KernelAgreement>> {
    let held_out = classes.places_of(&demonstrations.which(true));
    let step = held_out.len().div_ceil(settings.compared.max(1)).max(1);
    let chosen: Vec<usize> = held_out.into_iter().step_by(step).collect();
    if settings.compared < 3 || chosen.len() < 3 {
        return Ok(None);
    }
    let kernel = classes.kernel;
    let reference = Reference::new(prepared, &teacher.loaded, table, kernel)?;
    let signatures = reference.signatures(&classes.windows.some(&chosen)?)?;
    let truth = reference.distances(&signatures);
    let found = Distances::between(chosen.len(), |one, other| classes.distance(chosen[one], chosen[other]));
    let compared = agreement(&truth, &found, usize::MAX, kernel.seed)?;

    let phases = prepared.source.dataset.columns().labels.get("phase").map(|phases| -> Vec<i64> {
        chosen.iter().map(|at| commonest(&phases[demonstrations.frames(classes.ids[*at])])).collect()
    });
    let clusters = settings.classes.clamp(1, chosen.len());
    let scores = |points: Embeddings| -> Result<Option<Agreement>> {
        let config = KMeansConfig { clusters, seed: kernel.seed, ..Default::default() };
        let labels = kmeans(Points::new(&points.values, points.width)?, &config)?.labels;
        phases.as_deref().map(|phases| scored(phases, &labels)).transpose()
    };
    let all = classes.distances.coordinates()?;
    let own = Embeddings { values: all.rows(chosen.iter().copied()), width: all.width };
    let theirs = SegmentDistances::Imagined { signatures, w_r: kernel.w_r, w_e: kernel.w_e };
    Ok(Some(KernelAgreement {
        form: classes.form,
        horizon: kernel.horizon,
        starts: kernel.starts,
        samples: kernel.samples,
        segments: chosen.len(),
        pairs: compared.pairs,
        spearman: compared.spearman,
        phases: scores(own)?,
        reference_phases: scores(theirs.coordinates()?)?,
    }))
}

/// Scores classes and the matched baseline against phases on held-out frames, where the dataset has phases.
pub fn matched_scores(
    classes: &Classes,
    prepared: &Prepared,
    demonstrations: &Demonstrations,
    settings: &ClassSettings,
    seed: u64,
) -> Result<Option<MatchedScores>> {
    let actions = classes.by_actions(demonstrations, settings, seed)?;
    let scores = (class_phases(classes, prepared, demonstrations)?, class_phases(&actions, prepared, demonstrations)?);
    Ok(match scores {
        (Some(kernel), Some(actions)) => Some(MatchedScores { kernel, actions }),
        _ => None,
    })
}

/// Classes of held-out segments against phases, over frames, where the dataset has phases.
pub fn class_phases(
    classes: &Classes,
    prepared: &Prepared,
    demonstrations: &Demonstrations,
) -> Result<Option<PhaseScores>> {
    let Some(phases) = prepared.source.dataset.columns().labels.get("phase") else { return Ok(None) };
    let (held_out, segments) = held_out_segments(demonstrations);
    let truth: Vec<&[i64]> = held_out.iter().map(|at| &phases[demonstrations.all[*at].frames.clone()]).collect();
    let labels: Vec<Vec<i64>> = held_out.iter().map(|at| classes.labels_of(*at)).collect();
    Ok(Some(score_phases(&truth, &segments, &labels, tolerance(demonstrations.layout.fps))?))
}
