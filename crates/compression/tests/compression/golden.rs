//! Against Stitch's results on the cogsci corpora (`fixtures/golden/stitch`).

use std::path::Path;

use compression::{CostKind, verify};

use crate::corpora::{compressed, config, corpus, fixture, fixtures, read, total};

struct Row {
    corpus: String,
    max_arity: usize,
    rounds: usize,
    original: f64,
    finally: f64,
    library: f64,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(fixtures().join("golden/stitch/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = results["rows"].as_array().unwrap().iter();
    rows.map(|row| Row {
        corpus: row["corpus"].as_str().unwrap().to_owned(),
        max_arity: row["max_arity"].as_u64().unwrap() as usize,
        rounds: row["rounds"].as_u64().unwrap() as usize,
        original: row["original"].as_f64().unwrap(),
        finally: row["final"].as_f64().unwrap(),
        library: row["library"].as_f64().unwrap(),
    })
    .collect()
}

/// Compares one row, and says where it is worse.
fn check(row: &Row, programs: &[String]) -> Option<String> {
    let corpus = corpus(programs);
    let ours = compressed(&corpus, &config(CostKind::Stitch, row.max_arity, row.rounds));
    verify(&corpus, &ours).unwrap();
    assert_eq!(ours.original_cost, row.original, "{}", row.corpus);
    let theirs = row.finally + row.library;
    let greedy_loses = row.max_arity == 3 && row.rounds == 10 && ["dials", "bridge", "house"].contains(&&*row.corpus);
    let is_fine = ours.final_cost <= row.finally
        && total(&ours) <= theirs
        && (!greedy_loses || ours.final_cost < row.finally && total(&ours) < theirs);
    (!is_fine).then(|| {
        format!(
            "{} arity {} rounds {}: final {} against {}, with library {} against {theirs}",
            row.corpus,
            row.max_arity,
            row.rounds,
            ours.final_cost,
            row.finally,
            total(&ours),
        )
    })
}

#[test]
fn nuts_bolts_is_no_worse_than_stitch() {
    let programs = fixture("nuts-bolts");
    let rows = rows();
    assert_eq!(rows.len(), 24);
    let worse: Vec<String> =
        rows.iter().filter(|row| row.corpus == "nuts-bolts").filter_map(|row| check(row, &programs)).collect();
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

#[test]
fn the_other_corpora_are_no_worse_than_stitch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/cogsci");
    if !folder.is_dir() {
        eprintln!("skipped: {} is no folder; it holds the corpora that are not in the repository", folder.display());
        return;
    }
    let worse: Vec<String> = rows()
        .iter()
        .filter(|row| row.corpus != "nuts-bolts")
        .filter_map(|row| check(row, &read(&folder.join(format!("{}.json", row.corpus)))))
        .collect();
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
