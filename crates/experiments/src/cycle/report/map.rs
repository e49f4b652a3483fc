//! All segments in the plane, and the kernel that places them.

use clustering::{Points, principal_plane};
use models::kernel::KernelForm;
use report::{ClusterMap, KernelAgreement};

use super::overview::origin;
use crate::cycle::driver::World;
use crate::cycle::summary::RunSummary;
use crate::error::Result;
use crate::prepared::Prepared;

/// The first two principal components of the segments' coordinates under D_φ.
pub(super) fn map(prepared: &Prepared, world: &World) -> Result<ClusterMap> {
    let (values, width) = world.classes.coordinates()?;
    let (plane, share) = principal_plane(Points::new(&values, width)?);
    let columns = prepared.source.dataset.columns();
    let phases = columns.labels.get("phase");
    let mut map = ClusterMap {
        method: method(share),
        x: plane.iter().map(|at| at[0]).collect(),
        y: plane.iter().map(|at| at[1]).collect(),
        skill: Vec::new(),
        phase: Vec::new(),
        task: Vec::new(),
        dataset: Vec::new(),
        episode: Vec::new(),
        first_frame: Vec::new(),
        end_frame: Vec::new(),
    };
    for id in &world.classes.ids {
        let demonstration = &world.demonstrations.all[id.demonstration];
        let (frames, first) = (world.demonstrations.frames(*id), demonstration.frames.start);
        map.skill.push(world.corpus.calls[id.demonstration][id.segment].skill.0 as i64);
        map.phase.extend(phases.map(|phases| phases[frames.start + frames.len() / 2]));
        map.task.push(columns.tasks[frames.start]);
        let (dataset, episode) = origin(prepared, demonstration.episode);
        map.dataset.push(dataset);
        map.episode.push(episode);
        map.first_frame.push((frames.start - first) as u64);
        map.end_frame.push((frames.end - first) as u64);
    }
    Ok(map)
}

/// The kernel that segments are clustered with, and how well it agrees with Monte Carlo.
pub(super) fn kernel(summary: &RunSummary) -> Option<KernelAgreement> {
    let found = summary.kernel?;
    let is_reference = found.form == KernelForm::MonteCarlo;
    Some(KernelAgreement {
        kernel: found.form.name().to_owned(),
        samples: found.samples as u64,
        spearman: if is_reference { None } else { found.spearman },
        pairs: if is_reference { None } else { Some(found.pairs as u64) },
    })
}

fn method(share: f64) -> String {
    format!("the first two principal components of D_φ, {:.0} % of the variance", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    #[test]
    fn the_share_of_variance_is_a_percentage() {
        assert_eq!(method(0.614), "the first two principal components of D_φ, 61 % of the variance");
    }

    #[test]
    fn agreement_is_that_of_the_summary() {
        let mut summary = fixture::summary();
        assert_eq!(kernel(&summary).unwrap().spearman, Some(0.93));
        summary.kernel.as_mut().unwrap().form = KernelForm::MonteCarlo;
        assert_eq!(kernel(&summary).unwrap().spearman, None, "the reference is not compared with itself");
        summary.kernel = None;
        assert_eq!(kernel(&summary), None);
    }
}
