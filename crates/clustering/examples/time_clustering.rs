//! How long clustering and scoring take: our side of `benches/compare_scikit.py`.
//!
//! ```text
//! cargo run --release -p clustering --example time_clustering -- <points.f32> <width> <labels.i64> <other labels.i64>
//! ```
//! Reads raw little-endian numbers, then answers each line of stdin, a measure, with one line of JSON: seconds and what came
//! out. The measures are `kmeans <k> <restarts> <seed>`, `nmi`, `ami`, `ari`, `silhouette`, `hdbscan <min cluster size>
//! <min samples>`. One process answers all, as the peer's does, so that no side pays for reading and starting up.
#![expect(clippy::print_stdout, reason = "a command of its own")]

use std::error::Error;
use std::io::BufRead as _;
use std::time::Instant;

use clustering::{ClusteringError, HdbscanConfig, KMeansConfig, Points, ami, ari, hdbscan, kmeans, nmi, silhouette};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [points, width, labels, others] = arguments.as_slice() else {
        return Err("wanted points, their width, labels and other labels".into());
    };
    let values: Vec<f32> =
        std::fs::read(points)?.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let read = |path: &str| -> Result<Vec<i64>, std::io::Error> {
        Ok(std::fs::read(path)?.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect())
    };
    let (width, labels, others) = (width.parse()?, read(labels)?, read(others)?);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [measure, settings @ ..] = words.as_slice() else { continue };
        let settings: Vec<usize> = settings.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
        let started = Instant::now();
        let mut answer = answer(measure, &settings, &values, width, &labels, &others)?;
        answer["seconds"] = json!(started.elapsed().as_secs_f64());
        println!("{answer}");
    }
    Ok(())
}

fn answer(
    measure: &str,
    settings: &[usize],
    values: &[f32],
    width: usize,
    labels: &[i64],
    others: &[i64],
) -> Result<Value, Box<dyn Error>> {
    // Looking at the values is part of what is measured: the peer does so too.
    let points = || -> Result<Points<'_>, ClusteringError> { Points::new(values, width) };
    Ok(match (measure, settings) {
        ("kmeans", &[clusters, restarts, seed]) => {
            let config = KMeansConfig { clusters, restarts, seed: seed as u64, ..KMeansConfig::default() };
            let found = kmeans(points()?, &config)?;
            json!({ "inertia": found.inertia, "iterations": found.iterations })
        }
        ("hdbscan", &[min_cluster_size, min_samples]) => {
            let config = HdbscanConfig { min_cluster_size, min_samples, ..HdbscanConfig::default() };
            let found = hdbscan(points()?, &config)?;
            json!({ "clusters": found.clusters, "labels": found.labels })
        }
        ("silhouette", []) => json!({ "score": silhouette(points()?, labels)? }),
        ("nmi", []) => json!({ "score": nmi(labels, others)? }),
        ("ami", []) => json!({ "score": ami(labels, others)? }),
        ("ari", []) => json!({ "score": ari(labels, others)? }),
        _ => return Err(format!("`{measure}` with {} settings is no measure", settings.len()).into()),
    })
}
