//! Cells over seeds: means, deviations, intervals, and the table that a person reads.

use std::collections::BTreeMap;

use clustering::{BootstrapConfig, bootstrap_mean};
use serde::{Deserialize, Serialize};

use super::{CellResult, Mode};
use crate::error::Result;
use crate::scores::Scores;

/// A figure over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistic {
    /// How many seeds.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n − 1); none for a single seed.
    pub std: Option<f64>,
    /// The 95 % interval of the mean, by percentile bootstrap over seeds.
    pub interval: (f64, f64),
}

/// All that is said about one kind of vectors of one mode on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The dataset's name.
    pub dataset: String,
    /// The mode, or `raw windows`.
    pub mode: String,
    /// `z_T`, `k_χ`, `k_χ + vision` or `windows`.
    pub vectors: String,
    /// By name, such as `kmeans.task.nmi`.
    pub figures: BTreeMap<String, Statistic>,
}

/// All entries, with what they were made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// In the order of datasets, modes and vectors.
    pub entries: Vec<Entry>,
    /// The cells.
    pub cells: Vec<CellResult>,
}

/// Gathers cells; `raw` has the raw windows of each dataset, in the order of the table.
pub fn matrix(raw: &[(String, Scores)], cells: Vec<CellResult>) -> Result<Matrix> {
    let mut entries = Vec::new();
    for (dataset, scores) in raw {
        entries.push(entry(dataset, "raw windows", "windows", &[*scores])?);
        for mode in Mode::ALL {
            let of: Vec<&CellResult> =
                cells.iter().filter(|cell| cell.dataset == *dataset && cell.mode == mode).collect();
            let kinds: [(&str, Vec<Scores>); 3] = [
                ("z_T", of.iter().filter_map(|cell| cell.world_model).collect()),
                ("k_χ", of.iter().map(|cell| cell.amortizer).collect()),
                ("k_χ + vision", of.iter().filter_map(|cell| cell.with_vision).collect()),
            ];
            for (vectors, scores) in kinds.into_iter().filter(|(_, scores)| !scores.is_empty()) {
                entries.push(entry(dataset, mode.name(), vectors, &scores)?);
            }
        }
    }
    Ok(Matrix { entries, cells })
}

impl Matrix {
    /// The table in Markdown: one row for mode and vectors, NMI against task and phase for each dataset.
    pub fn markdown(&self) -> String {
        let mut datasets: Vec<&str> = Vec::new();
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for entry in &self.entries {
            if !datasets.contains(&entry.dataset.as_str()) {
                datasets.push(&entry.dataset);
            }
            if !rows.contains(&(&entry.mode, &entry.vectors)) {
                rows.push((&entry.mode, &entry.vectors));
            }
        }
        let mut text = String::new();
        for (title, name) in [
            ("NMI of KMeans against `task_index`", "kmeans.task.nmi"),
            ("NMI of KMeans against `phase`", "kmeans.phase.nmi"),
            ("F1 of phase boundaries", "kmeans.boundary_f1"),
            ("NMI of HDBSCAN against `task_index`", "hdbscan.task.nmi"),
            ("NMI of HDBSCAN against `phase`", "hdbscan.phase.nmi"),
        ] {
            let found = |mode: &str, vectors: &str, dataset: &str| {
                let same = |entry: &&Entry| entry.mode == mode && entry.vectors == vectors && entry.dataset == dataset;
                self.entries.iter().find(same).and_then(|entry| entry.figures.get(name)).copied()
            };
            if !rows.iter().any(|(mode, vectors)| datasets.iter().any(|set| found(mode, vectors, set).is_some())) {
                continue;
            }
            text.push_str(&format!("## {title}\n\n| mode | vectors |"));
            datasets.iter().for_each(|dataset| text.push_str(&format!(" {dataset} |")));
            text.push_str(&format!(" mean |\n|---|---|{}---|\n", "---|".repeat(datasets.len())));
            for (mode, vectors) in &rows {
                let cells: Vec<Option<Statistic>> =
                    datasets.iter().map(|dataset| found(mode, vectors, dataset)).collect();
                text.push_str(&format!("| {mode} | {vectors} |"));
                cells.iter().for_each(|cell| text.push_str(&format!(" {} |", shown(*cell))));
                let means: Option<Vec<f64>> = cells.iter().map(|cell| cell.map(|it| it.mean)).collect();
                let mean = means.map(|means| means.iter().sum::<f64>() / means.len() as f64);
                text.push_str(&format!(" {} |\n", mean.map_or("-".to_owned(), |mean| format!("{mean:.3}"))));
            }
            text.push('\n');
        }
        text.push_str(
            "Held-out fragments only. Mean ± standard deviation over seeds, with the 95 % interval of the mean by \
             bootstrap. A fragment's phase is the commonest among its frames; k is the number of tasks.\n",
        );
        text
    }
}

fn shown(statistic: Option<Statistic>) -> String {
    match statistic {
        None => "-".to_owned(),
        Some(Statistic { mean, std: None, .. }) => format!("{mean:.3}"),
        Some(Statistic { mean, std: Some(std), interval: (low, high), .. }) => {
            format!("{mean:.3} ± {std:.3} [{low:.3}, {high:.3}]")
        }
    }
}

fn entry(dataset: &str, mode: &str, vectors: &str, scores: &[Scores]) -> Result<Entry> {
    let mut values = BTreeMap::<String, Vec<f64>>::new();
    for Scores { kmeans, hdbscan, .. } in scores {
        for (clusterer, clustered) in [("kmeans", kmeans), ("hdbscan", hdbscan)] {
            let mut add = |name: &str, value: f64| {
                values.entry(format!("{clusterer}.{name}")).or_default().push(value);
            };
            for (against, agreement) in [("task", Some(clustered.task)), ("phase", clustered.phase)] {
                let Some(agreement) = agreement else { continue };
                add(&format!("{against}.nmi"), agreement.nmi);
                add(&format!("{against}.ami"), agreement.ami);
                add(&format!("{against}.ari"), agreement.ari);
                add(&format!("{against}.purity"), agreement.purity);
            }
            add("clusters", clustered.clusters as f64);
            clustered.boundary_f1.into_iter().for_each(|value| add("boundary_f1", value));
            clustered.silhouette.into_iter().for_each(|value| add("silhouette", value));
        }
    }
    let figures = values.into_iter().map(|(name, values)| Ok((name, statistic(&values)?)));
    Ok(Entry {
        dataset: dataset.to_owned(),
        mode: mode.to_owned(),
        vectors: vectors.to_owned(),
        figures: figures.collect::<Result<_>>()?,
    })
}

/// Mean, deviation and interval of a figure over seeds.
pub(crate) fn statistic(values: &[f64]) -> Result<Statistic> {
    let n = values.len();
    let interval = bootstrap_mean(values, &BootstrapConfig::default())?;
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let std = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
    Ok(Statistic { n, mean, std, interval: (interval.low, interval.high) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::{Agreement, Clustered};

    fn scores(nmi: f64, phases: bool) -> Scores {
        let task = Agreement { nmi, ami: nmi, ari: nmi, purity: nmi };
        let phase = phases.then_some(Agreement { nmi: nmi / 2.0, ..task });
        let kmeans = Clustered { clusters: 9, task, phase, boundary_f1: phases.then_some(0.5), silhouette: Some(0.25) };
        Scores { fragments: 1024, kmeans, hdbscan: Clustered { boundary_f1: None, ..kmeans } }
    }

    #[test]
    fn the_table_has_means_over_seeds_and_gaps_where_nothing_was_run() {
        let cell = |dataset: &str, mode, seed, nmi, phases: bool| CellResult {
            dataset: dataset.to_owned(),
            mode,
            seed,
            seconds: 1.0,
            world_model: (mode == Mode::Supcon).then_some(scores(nmi, phases)),
            amortizer: scores(nmi - 0.1, phases),
            with_vision: Some(scores(nmi + 0.1, phases)),
        };
        let cells = vec![
            cell("goal", Mode::Supcon, 0, 0.6, true),
            cell("goal", Mode::Supcon, 1, 0.7, true),
            cell("goal", Mode::Supcon, 2, 0.8, true),
            cell("goal", Mode::TaskIndex, 0, 0.9, true),
            cell("object", Mode::Supcon, 0, 0.5, false),
        ];
        let raw = [("goal".to_owned(), scores(0.4, true)), ("object".to_owned(), scores(0.3, false))];
        let matrix = matrix(&raw, cells).unwrap();
        insta::assert_snapshot!(matrix.markdown());
        let text = serde_json::to_string(&matrix).unwrap();
        assert_eq!(serde_json::from_str::<Matrix>(&text).unwrap(), matrix);
    }
}
