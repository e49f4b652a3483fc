//! The result of an experiment: rows over seeds with the paper's value next to ours, as data, as a grid and as Markdown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::statistics::{Spread, difference, over_seeds, spread};
use super::{Bench, Cell, Column, Experiment, Measured, Quoted, Suite};
use crate::error::Result;
use crate::prepared::Prepared;

/// A figure of ours, and the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Ours.
    pub ours: Spread,
    /// The paper's, where it has one.
    pub paper: Option<Quoted>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The dataset's name, or `mean of N datasets`.
    pub dataset: String,
    /// What was measured.
    pub row: String,
    /// By name, those without a column as well.
    pub figures: BTreeMap<String, Entry>,
}

/// The paired difference of two rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The dataset's name.
    pub dataset: String,
    /// The row.
    pub row: String,
    /// What is subtracted from it.
    pub minus: String,
    /// Of which figure.
    pub figure: String,
    /// Ours.
    pub ours: Spread,
    /// The paper's, where it has both values.
    pub paper: Option<f64>,
}

/// What a dataset of an experiment is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataNote {
    /// Its name.
    pub name: String,
    /// Training episodes and held-out ones.
    pub episodes: (usize, usize),
    /// Fragments of the probe.
    pub probe: usize,
    /// The encoder of its pictures; none without cameras.
    pub encoder: Option<String>,
}

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its name.
    pub experiment: String,
    /// What it asks.
    pub question: String,
    /// The table or section of the paper that it repeats.
    pub source: String,
    /// Where it departs from the paper.
    pub departures: String,
    /// The preset.
    pub preset: String,
    /// How many seeds.
    pub seeds: u64,
    /// The device, in words.
    pub runs_on: String,
    /// The command that makes it again.
    pub command: String,
    /// The data.
    pub datasets: Vec<DataNote>,
    /// The columns of the table: name, heading, digits.
    pub columns: Vec<(String, String, usize)>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Paired differences.
    pub differences: Vec<Difference>,
}

/// The rows of a dataset with their seeds, in the order in which they were measured.
type ByRow<'a> = Vec<(&'a str, Vec<(u64, &'a Measured)>)>;

impl Report {
    pub(super) fn new(
        experiment: &dyn Experiment,
        bench: &Bench<'_>,
        seeds: u64,
        cells: Vec<(Cell, Vec<Measured>)>,
    ) -> Result<Report> {
        let resamples = bench.settings.paper.resamples;
        let mut names: Vec<&str> = Vec::new();
        for (cell, _) in &cells {
            if !names.contains(&cell.dataset.as_str()) {
                names.push(&cell.dataset);
            }
        }
        let (mut rows, mut differences, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let suite = Suite::of(name);
            let found = by_row(&cells, name);
            for (row, seeds) in &found {
                let measured: Vec<&Measured> = seeds.iter().map(|(_, one)| *one).collect();
                let mut figures = BTreeMap::new();
                for key in keys(&measured) {
                    if let Some(ours) = spread(&measured, key, resamples)? {
                        figures.insert(key.to_owned(), Entry { ours, paper: experiment.paper(suite, row, key) });
                    }
                }
                rows.push(Row { dataset: (*name).to_owned(), row: (*row).to_owned(), figures });
            }
            for (row, minus) in experiment.contrasts() {
                let of = |wanted: &str| found.iter().find(|(row, _)| *row == wanted).map(|(_, seeds)| seeds);
                let (Some(one), Some(other)) = (of(row), of(minus)) else { continue };
                for Column { key, .. } in experiment.columns() {
                    let Some(ours) = difference(one, other, key, resamples)? else { continue };
                    let quoted = |row: &str| Some(experiment.paper(suite, row, key)?.mean);
                    differences.push(Difference {
                        dataset: (*name).to_owned(),
                        row: (*row).to_owned(),
                        minus: (*minus).to_owned(),
                        figure: (*key).to_owned(),
                        ours,
                        paper: quoted(row).zip(quoted(minus)).map(|(one, other)| one - other),
                    });
                }
            }
            all.push(found);
        }
        rows.extend(means(&all, &rows)?);
        Ok(Report {
            experiment: experiment.name().to_owned(),
            question: experiment.question().to_owned(),
            source: experiment.source().to_owned(),
            departures: experiment.departures().to_owned(),
            preset: bench.preset.to_owned(),
            seeds,
            runs_on: bench.runs_on.clone(),
            command: bench.command.clone(),
            datasets: match experiment.needs_datasets() {
                true => bench.datasets.iter().map(note).collect(),
                false => Vec::new(),
            },
            columns: (experiment.columns().iter())
                .map(|column| (column.key.to_owned(), column.heading.to_owned(), column.digits))
                .collect(),
            rows,
            differences,
        })
    }

    /// The table as headings and rows of text: the first two columns are words, the others numbers.
    pub fn grid(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let quoted =
            |key: &str| self.rows.iter().any(|row| row.figures.get(key).is_some_and(|entry| entry.paper.is_some()));
        let mut headings = vec!["dataset".to_owned(), "row".to_owned()];
        for (key, heading, _) in &self.columns {
            headings.push(heading.clone());
            headings.extend(quoted(key).then(|| "paper".to_owned()));
        }
        let line = |row: &Row| {
            let mut cells = vec![row.dataset.clone(), row.row.clone()];
            for (key, _, digits) in &self.columns {
                let entry = row.figures.get(key);
                cells.push(entry.map_or_else(dash, |entry| shown(&entry.ours, *digits)));
                let paper = entry.and_then(|entry| entry.paper);
                cells.extend(quoted(key).then(|| paper.map_or_else(dash, |paper| quoted_text(paper, *digits))));
            }
            cells
        };
        (headings, self.rows.iter().map(line).collect())
    }

    /// Paired differences in the same form.
    pub fn differences_grid(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let headings = ["dataset", "row", "minus", "figure", "difference", "paper"].map(str::to_owned).to_vec();
        let line = |one: &Difference| {
            let column = self.columns.iter().find(|(key, ..)| *key == one.figure);
            let digits = column.map_or(3, |(_, _, digits)| *digits);
            vec![
                one.dataset.clone(),
                one.row.clone(),
                one.minus.clone(),
                column.map_or(one.figure.clone(), |(_, heading, _)| heading.clone()),
                shown(&one.ours, digits),
                one.paper.map_or_else(dash, |paper| format!("{paper:+.digits$}")),
            ]
        };
        (headings, self.differences.iter().map(line).collect())
    }

    /// What the table says and how it was made, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("{} (paper: {}).", self.question, self.source)];
        for DataNote { name, episodes, probe, encoder } in &self.datasets {
            let encoder = encoder.as_deref().unwrap_or("no cameras");
            notes.push(format!(
                "{name}: {} training episodes and {} held out, a probe of {probe} fragments, features: {encoder}.",
                episodes.0, episodes.1
            ));
        }
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        notes.push(format!("{seeds}, preset `{}`, {}.", self.preset, self.runs_on));
        if self.rows.iter().any(|row| row.figures.values().any(|entry| entry.ours.interval.is_some())) {
            notes.push(
                "Mean ± standard deviation over seeds; in brackets the 95 % interval by percentile bootstrap over held-out \
                 episodes."
                    .to_owned(),
            );
        }
        notes.push(self.departures.clone());
        notes
    }

    /// The whole report as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.experiment, markdown_table(&self.grid()));
        if !self.differences.is_empty() {
            text += &format!("\nPaired differences:\n\n{}\n", markdown_table(&self.differences_grid()));
        }
        for note in self.notes() {
            text += &format!("\n{}\n", wrapped(&note));
        }
        text + &format!("\n```sh\n{}\n```\n\n![{}](figure.svg)\n", self.command, self.experiment)
    }
}

/// The rows of a dataset.
fn by_row<'a>(cells: &'a [(Cell, Vec<Measured>)], dataset: &str) -> ByRow<'a> {
    let mut found: ByRow<'a> = Vec::new();
    for (cell, measured) in cells.iter().filter(|(cell, _)| cell.dataset == dataset) {
        for one in measured {
            match found.iter_mut().find(|(row, _)| *row == one.row) {
                Some((_, seeds)) => seeds.push((cell.seed, one)),
                None => found.push((&one.row, vec![(cell.seed, one)])),
            }
        }
    }
    found
}

/// The names of all figures of a row.
fn keys<'a>(measured: &[&'a Measured]) -> Vec<&'a str> {
    let all: std::collections::BTreeSet<&str> =
        measured.iter().flat_map(|one| one.figures.keys().map(String::as_str)).collect();
    all.into_iter().collect()
}

/// Rows of means over datasets, for rows and figures that all of them have; none for a single dataset. Seeds are paired.
fn means(all: &[ByRow<'_>], rows: &[Row]) -> Result<Vec<Row>> {
    let Some((first, others)) = all.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut means = Vec::new();
    for (name, seeds) in first {
        let rest: Vec<_> = others.iter().filter_map(|of| of.iter().find(|(row, _)| row == name)).collect();
        if rest.len() < others.len() {
            continue;
        }
        let of_name: Vec<&Row> = rows.iter().filter(|row| row.row == *name).collect();
        let mut figures = BTreeMap::new();
        for key in of_name.first().into_iter().flat_map(|row| row.figures.keys()) {
            let value = |seeds: &[(u64, &Measured)], seed: u64| {
                seeds.iter().find(|(of, _)| *of == seed).and_then(|(_, one)| one.figures.get(key).copied())
            };
            let of_seed = |seed: u64| -> Option<f64> {
                let values = rest.iter().map(|(_, seeds)| seeds).chain([seeds]).map(|seeds| value(seeds, seed));
                Some(values.collect::<Option<Vec<f64>>>()?.iter().sum::<f64>() / all.len() as f64)
            };
            let values: Vec<f64> = seeds.iter().filter_map(|(seed, _)| of_seed(*seed)).collect();
            if values.len() < seeds.len() {
                continue;
            }
            let quoted = of_name.iter().map(|row| Some(row.figures.get(key)?.paper?.mean));
            let paper = quoted.collect::<Option<Vec<f64>>>();
            let paper = paper.and_then(|values| Quoted::value(values.iter().sum::<f64>() / values.len() as f64));
            figures.insert(key.clone(), Entry { ours: over_seeds(&values)?, paper });
        }
        means.push(Row { dataset: format!("mean of {} datasets", all.len()), row: (*name).to_owned(), figures });
    }
    Ok(means)
}

fn note(prepared: &Prepared) -> DataNote {
    DataNote {
        name: prepared.source.name.clone(),
        episodes: (prepared.split.train.len(), prepared.split.held_out.len()),
        probe: prepared.held_out.probe.len(),
        encoder: prepared.source.encoder.clone(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// A figure as the table shows it.
fn shown(spread: &Spread, digits: usize) -> String {
    let mut text = format!("{:.digits$}", spread.mean);
    if let Some(std) = spread.std {
        text += &format!(" ± {std:.digits$}");
    }
    if let Some((low, high)) = spread.interval {
        text += &format!(" [{low:.digits$}, {high:.digits$}]");
    }
    text
}

fn quoted_text(quoted: Quoted, digits: usize) -> String {
    match quoted.std {
        None => format!("{:.digits$}", quoted.mean),
        Some(std) => format!("{:.digits$} ± {std:.digits$}", quoted.mean),
    }
}

fn markdown_table((headings, rows): &(Vec<String>, Vec<Vec<String>>)) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let rule: Vec<&str> = headings.iter().map(|_| "---").collect();
    let body: Vec<String> = rows.iter().map(|row| line(row)).collect();
    format!("{}\n| {} |\n{}", line(headings), rule.join(" | "), body.join("\n"))
}

/// Lines of at most so many characters, as our Markdown has them.
fn wrapped(text: &str) -> String {
    const LONGEST: usize = 120;
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LONGEST {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report of two datasets, as `new` makes it.
    pub(crate) fn sample() -> Report {
        let spread = |mean: f64| Spread { n: 3, mean, std: Some(0.02), interval: Some((mean - 0.05, mean + 0.04)) };
        let row = |dataset: &str, row: &str, task: f64, paper: Option<Quoted>| Row {
            dataset: dataset.to_owned(),
            row: row.to_owned(),
            figures: BTreeMap::from([
                ("nmi_task".to_owned(), Entry { ours: spread(task), paper }),
                ("nmi_phase".to_owned(), Entry { ours: spread(task / 2.0), paper: None }),
            ]),
        };
        Report {
            experiment: "matrix".to_owned(),
            question: "How do fragments cluster".to_owned(),
            source: "table 1".to_owned(),
            departures: "Rows with `supcon` use task labels.".to_owned(),
            preset: "smoke".to_owned(),
            seeds: 3,
            runs_on: "cpu".to_owned(),
            command: "refactor-vla eval matrix a b --out runs/x".to_owned(),
            datasets: vec![DataNote { name: "a".to_owned(), episodes: (27, 9), probe: 1024, encoder: None }],
            columns: vec![
                ("nmi_task".to_owned(), "NMI task".to_owned(), 3),
                ("nmi_phase".to_owned(), "NMI phase".to_owned(), 3),
            ],
            rows: vec![
                row("a", "none", 0.4, Quoted::value(0.285)),
                row("a", "supcon <b>|", 0.6, Quoted::spread(0.462, 0.021)),
                row("b", "none", 0.3, None),
            ],
            differences: vec![Difference {
                dataset: "a".to_owned(),
                row: "supcon".to_owned(),
                minus: "none".to_owned(),
                figure: "nmi_task".to_owned(),
                ours: spread(0.2),
                paper: Some(0.177),
            }],
        }
    }

    #[test]
    fn the_papers_value_is_next_to_ours() {
        let markdown = sample().markdown();
        for line in [
            "# matrix",
            "| dataset | row | NMI task | paper | NMI phase |",
            "| a | none | 0.400 ± 0.020 [0.350, 0.440] | 0.285 | 0.200 ± 0.020 [0.150, 0.240] |",
            "| a | supcon <b>\\| | 0.600 ± 0.020 [0.550, 0.640] | 0.462 ± 0.021 | 0.300 ± 0.020 [0.250, 0.340] |",
            "| b | none | 0.300 ± 0.020 [0.250, 0.340] | - | 0.150 ± 0.020 [0.100, 0.190] |",
            "| a | supcon | none | NMI task | 0.200 ± 0.020 [0.150, 0.240] | +0.177 |",
            "How do fragments cluster (paper: table 1).",
            "a: 27 training episodes and 9 held out, a probe of 1024 fragments, features: no cameras.",
            "3 seeds, preset `smoke`, cpu.",
            "refactor-vla eval matrix a b --out runs/x",
        ] {
            assert!(markdown.lines().any(|found| found == line), "{line}\n{markdown}");
        }
        assert_eq!(sample().grid().1[2][3], "-", "no value of the paper");
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), sample());
    }

    #[test]
    fn means_over_datasets_are_paired_by_seed_and_left_out_where_a_dataset_lacks_the_row() {
        let one = |row: &str, value: f64| Measured::new(row, [("nmi_task", value)]);
        let rows = [one("none", 0.2), one("none", 0.4), one("none", 0.6), one("none", 1.0), one("more", 0.1)];
        let first: ByRow<'_> = vec![("none", vec![(0, &rows[0]), (1, &rows[1])]), ("more", vec![(0, &rows[4])])];
        let second: ByRow<'_> = vec![("none", vec![(0, &rows[2]), (1, &rows[3])])];
        let entry = |paper| Entry { ours: over_seeds(&[0.0]).unwrap(), paper };
        let row = |dataset: &str, paper| Row {
            dataset: dataset.to_owned(),
            row: "none".to_owned(),
            figures: BTreeMap::from([("nmi_task".to_owned(), entry(paper))]),
        };
        let shown = [row("a", Quoted::value(0.2)), row("b", Quoted::value(0.4))];
        let found = means(&[first.clone(), second], &shown).unwrap();
        assert_eq!(found.len(), 1);
        let Entry { ours, paper } = found[0].figures["nmi_task"];
        assert!((ours.mean - 0.55).abs() < 1e-12 && ours.n == 2, "{ours:?}");
        assert!((ours.std.unwrap() - 0.212).abs() < 1e-3);
        assert!((paper.unwrap().mean - 0.3).abs() < 1e-12);
        assert!(means(&[first], &shown).unwrap().is_empty(), "one dataset has no mean");
    }

    #[test]
    fn lines_of_notes_are_short() {
        let text = wrapped(&"words of a note ".repeat(40));
        assert!(text.lines().all(|line| line.chars().count() <= 120) && text.lines().count() > 4);
    }
}
