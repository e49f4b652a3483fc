//! Loss curves, from the lines that the trainer wrote.

use std::collections::BTreeMap;
use std::path::Path;

use models::training::metrics;
use report::{LossTerm, Series, TrainingPhase};
use serde_json::Value;

use crate::error::{Error, Result};

/// The curves of the world model, of the kernel that was trained on it, of the heads of each iteration, and of the heads of
/// the policies that are compared at the end.
pub(super) fn trainings(out: &Path, iterations: u32) -> Result<Vec<TrainingPhase>> {
    let mut found = vec![training(&out.join("world_model"), "world model", None)?];
    let iterations = (1..=iterations).map(|t| (format!("t{t}/"), String::new(), Some(t)));
    let arms = [("with/", ", with library"), ("no_programs/", ", no programs")]
        .map(|(folder, suffix)| (folder.to_owned(), suffix.to_owned(), None));
    let places = std::iter::once((String::new(), String::new(), None)).chain(iterations).chain(arms);
    for (folder, suffix, t) in places {
        for name in ["amortizer", "separable", "emitter", "decoder"] {
            let run = out.join(format!("{folder}{name}"));
            if run.join(metrics::FILE).is_file() {
                found.push(training(&run, &format!("{name}{suffix}"), t)?);
            }
        }
    }
    Ok(found)
}

fn training(run: &Path, name: &str, iteration: Option<u32>) -> Result<TrainingPhase> {
    let path = run.join(metrics::FILE);
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    Ok(TrainingPhase { name: name.to_owned(), iteration, terms: terms(&text) })
}

/// The terms of a loss, the total first and the others by name. A line that is cut off is left out.
fn terms(lines: &str) -> Vec<LossTerm> {
    let (mut training, mut held_out) = (BTreeMap::<String, Series>::new(), BTreeMap::<String, Series>::new());
    let add = |series: &mut BTreeMap<String, Series>, name: &str, step: f64, value: &Value| {
        let series = series.entry(name.to_owned()).or_default();
        series.steps.push(step);
        series.values.push(value.as_f64().unwrap_or(f64::NAN));
    };
    for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let step = line["step"].as_f64().unwrap_or(f64::NAN);
        if let Some(loss) = line.get("loss") {
            add(&mut training, TOTAL, step, loss);
        }
        for (field, series) in [("terms", &mut training), ("evaluation", &mut held_out)] {
            for (name, value) in line[field].as_object().into_iter().flatten() {
                add(series, name, step, value);
            }
        }
    }
    let mut names: Vec<String> = training.keys().chain(held_out.keys()).cloned().collect();
    names.sort_by_key(|name| (name != TOTAL, name.clone()));
    names.dedup();
    let term = |name: String| LossTerm {
        training: training.remove(&name).unwrap_or_default(),
        held_out: held_out.remove(&name).unwrap_or_default(),
        name,
    };
    names.into_iter().map(term).collect()
}

/// The name of the whole loss.
const TOTAL: &str = "total";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_comes_first_and_held_out_values_join_their_term() {
        let lines = r#"{"step": 1, "loss": 3.0, "terms": {"kl": 1.0}}
{"step": 2, "loss": null, "terms": {"kl": 0.5}, "evaluation": {"kl": 0.6, "accuracy": 0.9}}
{"step": 3, "loss""#;
        let found = terms(lines);
        assert_eq!(found.iter().map(|term| term.name.as_str()).collect::<Vec<_>>(), ["total", "accuracy", "kl"]);
        assert_eq!(found[0].training.steps, [1.0, 2.0]);
        assert!(found[0].training.values[0] == 3.0 && found[0].training.values[1].is_nan());
        assert_eq!(found[2].training.values, [1.0, 0.5]);
        assert_eq!((&found[2].held_out.steps[..], &found[2].held_out.values[..]), (&[2.0][..], &[0.6][..]));
        assert!(found[1].training.steps.is_empty());
    }

    #[test]
    fn a_missing_file_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = trainings(folder.path(), 1).unwrap_err().to_string();
        assert!(error.contains("world_model") && error.contains(metrics::FILE), "{error}");
    }
}
