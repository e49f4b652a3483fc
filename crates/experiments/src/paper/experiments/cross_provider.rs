//! Whether amortizers that were trained on disjoint thirds of the demonstrations find the same clusters.

use dataset::EpisodeId;
use models::amortizer::Supervision;
use models::world_model::ContrastMode;

use super::super::{
    BOUNDARY_F1, Bench, Cell, Clusterer, Column, Experiment, Measured, NMI_PHASE, NMI_TASK, Quoted, Suite,
};
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// `cross-provider`.
pub(super) struct CrossProvider;

/// The mean NMI between the clusters of two thirds.
const PAIRS: &str = "nmi_pairs";

const COLUMNS: [Column; 4] = [
    Column::new(PAIRS, "NMI between thirds", 3),
    Column::new(NMI_TASK, "NMI task", 3),
    Column::new(NMI_PHASE, "NMI phase", 3),
    Column::new(BOUNDARY_F1, "boundary F1", 3),
];

const ROW: &str = "three thirds";

impl Experiment for CrossProvider {
    fn name(&self) -> &'static str {
        "cross-provider"
    }

    fn question(&self) -> &'static str {
        "Do amortizers trained on disjoint thirds of the demonstrations find the same clusters"
    }

    fn source(&self) -> &'static str {
        "section 4.4 (c) and supplement G, tables `supp_xprov_persuite` and `supp_xprov_vsgt`"
    }

    fn departures(&self) -> &'static str {
        "No labels. Each third has every third training episode of each task, and all three amortizers share a world model \
         and the first centres of KMeans. The paper's world model is that of `libero_object` for all suites; ours is that of \
         the dataset, so it has seen all thirds. The paper draws its 12 pairs again, which share models; we draw episodes."
    }

    fn units(&self) -> &'static [&'static str] {
        &["thirds"]
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column) {
            (ROW, PAIRS) => Quoted::of_suite(suite, [0.6693, 0.6954, 0.7530, 0.7007]),
            // The means of its three seeds.
            (ROW, NMI_TASK) => Quoted::of_suite(suite, [0.242, 0.414, 0.462, 0.399]),
            _ => None,
        }
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let teacher = bench.world_model(prepared, &bench.world_settings(ContrastMode::None), cell.seed)?;
        let mut settings = bench.student_settings(Supervision::Distillation);
        settings.train.steps = settings.train.steps.min(bench.settings.paper.provider_steps);
        settings.train.warmup = settings.train.warmup.min(settings.train.steps / 2);
        let mut found = Vec::new();
        for third in thirds(prepared)? {
            let run = bench.amortizer_on(prepared, &third, &settings, Some(&teacher), cell.seed)?;
            let vectors = bench.embedded(prepared, &run)?;
            found.push(bench.judged(prepared, ROW, &vectors, Clusterer::KMeans, cell.seed)?);
        }
        Ok(vec![together(&found)?])
    }
}

/// Every third training episode of each task.
///
/// # Errors
/// If a third would be empty.
fn thirds(prepared: &Prepared) -> Result<[Vec<EpisodeId>; 3]> {
    let spans = prepared.source.dataset.spans();
    let mut thirds: [Vec<EpisodeId>; 3] = Default::default();
    let mut next = std::collections::BTreeMap::<_, usize>::new();
    for episode in &prepared.split.train {
        // Tasks begin with different thirds, so that four episodes of each do not make one third twice as large.
        let tasks = next.len();
        let third = next.entry(spans[episode.at()].task).or_insert(tasks);
        thirds[*third % 3].push(*episode);
        *third += 1;
    }
    if thirds.iter().any(Vec::is_empty) {
        return Err(Error::Mismatch(format!(
            "`{}` has {} training episodes and no task with three of them, so they cannot be cut into thirds; use a dataset \
             with more episodes, or hold out fewer",
            prepared.source.name,
            prepared.split.train.len()
        )));
    }
    Ok(thirds)
}

/// One row out of those of three thirds: the mean of each figure, and the mean NMI between two of them.
fn together(thirds: &[Measured]) -> Result<Measured> {
    let mut row = Measured::new(ROW, []);
    let (Some(first), count) = (thirds.first(), thirds.len() as f64) else { return Ok(row) };
    for figure in first.figures.keys() {
        row = row.with(figure, thirds.iter().map(|one| one.figures[figure]).sum::<f64>() / count);
    }
    for figure in first.agreements.keys() {
        let all = thirds.iter().flat_map(|one| one.agreements[figure].clone()).collect();
        row.agreements.insert(figure.clone(), all);
    }
    let labels: Vec<&Vec<i64>> = thirds.iter().map(|one| &one.agreements[NMI_TASK][0].1).collect();
    let mut pairs = Vec::new();
    for (at, one) in labels.iter().enumerate() {
        pairs.extend(labels[at + 1..].iter().map(|other| ((*one).clone(), (*other).clone())));
    }
    let nmis = pairs.iter().map(|(one, other)| Ok(clustering::nmi(one, other)?)).collect::<Result<Vec<f64>>>()?;
    row = row.with(PAIRS, nmis.iter().sum::<f64>() / nmis.len().max(1) as f64);
    row.agreements.insert(PAIRS.to_owned(), pairs);
    row.episodes.clone_from(&first.episodes);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_that_agree_with_each_other_need_not_agree_with_the_tasks() {
        let third = |labels: [i64; 4]| {
            let tasks = vec![0, 0, 1, 1];
            let mut one =
                Measured::new(ROW, [(NMI_TASK, clustering::nmi(&tasks, &labels).unwrap()), (BOUNDARY_F1, 0.5)]);
            one.agreements.insert(NMI_TASK.to_owned(), vec![(tasks, labels.to_vec())]);
            one.episodes = vec![0, 0, 1, 1];
            one
        };
        let row = together(&[third([0, 1, 0, 1]), third([5, 3, 5, 3]), third([1, 0, 1, 0])]).unwrap();
        for (figure, wanted) in [(PAIRS, 1.0), (NMI_TASK, 0.0), (BOUNDARY_F1, 0.5)] {
            assert!((row.figures[figure] - wanted).abs() < 1e-12, "{figure}: {row:?}");
        }
        assert_eq!((row.agreements[PAIRS].len(), row.agreements[NMI_TASK].len()), (3, 3));
        let row = together(&[third([0, 0, 1, 1]), third([0, 0, 1, 1]), third([0, 1, 0, 1])]).unwrap();
        assert!((row.figures[PAIRS] - 1.0 / 3.0).abs() < 1e-12, "one pair of three agrees");
    }
}
