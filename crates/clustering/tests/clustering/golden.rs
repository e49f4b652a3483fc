//! Equal to scikit-learn, the hdbscan package, SciPy and fastdtw, on what `fixtures/golden/export.py` wrote.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clustering::{
    BootstrapConfig, HdbscanConfig, KMeansConfig, NOISE, Points, ami, ari, bootstrap_mean, dtw, dtw_path, hdbscan,
    kmeans, nmi, principal_plane, purity, quantile, silhouette,
};
use serde_json::Value;

#[test]
fn scores_of_labels_are_those_of_scikit_learn() {
    for case in cases("metrics") {
        let (truth, predicted) = (labels(&case["truth"]), labels(&case["predicted"]));
        for (score, name) in [(nmi as Score, "nmi"), (ami, "ami"), (ari, "ari"), (purity, "purity")] {
            let (found, wanted) = (score(&truth, &predicted).unwrap(), number(&case[name]));
            assert!((found - wanted).abs() <= 1e-9, "{name} of {}: {found}, wanted {wanted}", case["name"]);
        }
    }
}

type Score = fn(&[i64], &[i64]) -> Result<f64, clustering::ClusteringError>;

#[test]
fn silhouettes_are_those_of_scikit_learn() {
    for case in cases("silhouette") {
        let (values, width) = points(&case);
        let found = silhouette(Points::new(&values, width).unwrap(), &labels(&case["labels"])).unwrap();
        let wanted = number(&case["score"]);
        assert!((found - wanted).abs() <= 1e-9, "{} {}: {found}, wanted {wanted}", case["points"], case["kind"]);
    }
}

/// Both sides run with twenty seeds of ten restarts each, and the mean counts: a single run is a matter of luck.
#[test]
fn inertia_is_no_worse_than_scikit_learns() {
    let mut worse = Vec::new();
    for case in cases("kmeans") {
        let (values, width) = points(&case);
        let clusters = case["clusters"].as_u64().unwrap() as usize;
        let run = |seed| {
            let config = KMeansConfig { clusters, seed, ..KMeansConfig::default() };
            kmeans(Points::new(&values, width).unwrap(), &config).unwrap().inertia
        };
        let found = (0..20).map(run).sum::<f64>() / 20.0;
        let wanted = case["inertia"].as_array().unwrap().iter().map(number).sum::<f64>() / 20.0;
        // The centres are stored in single precision, which costs up to 1e-7 of the inertia's scale.
        if found > wanted * (1.0 + 1e-6) + 1e-9 {
            worse.push(format!("{} in {clusters}: {found}, wanted {wanted}", case["points"]));
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}

/// Where edges tie, the references differ among themselves, as they sort unstably; scikit-learn with a stable sort is
/// met always, and all of them where they agree.
#[test]
fn density_clusters_are_those_of_scikit_learn_and_hdbscan() {
    let mut other = Vec::new();
    for case in cases("hdbscan") {
        let (values, width) = points(&case);
        let setting = |name: &str| case[name].as_u64().unwrap() as usize;
        let config = HdbscanConfig {
            min_cluster_size: setting("min_cluster_size"),
            min_samples: setting("min_samples"),
            allow_single_cluster: case["allow_single_cluster"].as_bool().unwrap(),
        };
        let found = hdbscan(Points::new(&values, width).unwrap(), &config).unwrap();
        let differing =
            ["stable", "kd_tree", "brute", "package"].map(|name| differing(&found.labels, &labels(&case[name])));
        if differing[0] > 0 || (case["agree"].as_bool().unwrap() && differing != [0; 4]) {
            other.push(format!("{} {config:?}: labels that differ {differing:?}", case["points"]));
        }
    }
    assert!(other.is_empty(), "{other:#?}");
}

/// Either direction of an axis is right; which one scikit-learn takes depends on rounding where two coefficients tie.
#[test]
fn principal_planes_are_those_of_scikit_learn() {
    for case in cases("principal_plane") {
        let (values, width) = points(&case);
        let (found, share) = principal_plane(Points::new(&values, width).unwrap());
        let wanted: f64 = case["shares"].as_array().unwrap().iter().map(number).sum();
        assert!((share - wanted).abs() <= 1e-9, "{}: share {share}, wanted {wanted}", case["points"]);
        let wanted = case["plane"].as_array().unwrap();
        assert_eq!(found.len(), wanted.len());
        for axis in 0..2 {
            let wanted: Vec<f64> = wanted.iter().map(|row| number(&row[axis])).collect();
            let scale = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let sign = found.iter().zip(&wanted).map(|(found, wanted)| found[axis] * wanted).sum::<f64>().signum();
            let error = found.iter().zip(&wanted).map(|(found, wanted)| (sign * found[axis] - wanted).abs());
            let error = error.fold(0.0, f64::max);
            assert!(error <= 1e-7 * scale, "{}, axis {axis}: off by {error} of {scale}", case["points"]);
        }
    }
}

#[test]
fn warped_distances_are_those_of_fastdtw() {
    for case in cases("dtw") {
        let width = case["width"].as_u64().unwrap() as usize;
        let (left, right) = (floats(&case["left"]), floats(&case["right"]));
        let (left, right) = (Points::new(&left, width).unwrap(), Points::new(&right, width).unwrap());
        let band = case["band"].as_u64().map(|band| band as usize);
        let (found, wanted) = (dtw_path(left, right, band).unwrap(), number(&case["distance"]));
        assert!((found.distance - wanted).abs() <= 1e-9 * wanted, "{} {wanted}", found.distance);
        assert_eq!(dtw(left, right, band).unwrap(), found.distance);
        if let Some(path) = case["path"].as_array() {
            let step = |pair: &Value| (pair[0].as_u64().unwrap() as usize, pair[1].as_u64().unwrap() as usize);
            assert_eq!(found.path, path.iter().map(step).collect::<Vec<_>>());
        }
    }
}

/// The resamples are others than SciPy's, so the interval agrees to what 10 000 of them can tell: 4 % of its width.
#[test]
fn intervals_are_those_of_scipy_and_quantiles_those_of_numpy() {
    for case in cases("bootstrap") {
        let mut values: Vec<f64> = case["values"].as_array().unwrap().iter().map(number).collect();
        let found = bootstrap_mean(&values, &BootstrapConfig::default()).unwrap();
        let (low, high) = (number(&case["low"]), number(&case["high"]));
        assert!((found.estimate - number(&case["mean"])).abs() < 1e-12);
        assert!((found.low - low).abs() < 0.04 * (high - low), "{found:?}, wanted {low} to {high}");
        assert!((found.high - high).abs() < 0.04 * (high - low), "{found:?}, wanted {low} to {high}");
        values.sort_unstable_by(f64::total_cmp);
        for (share, wanted) in case["shares"].as_array().unwrap().iter().zip(case["quantiles"].as_array().unwrap()) {
            assert!((quantile(&values, number(share)) - number(wanted)).abs() < 1e-12);
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

fn cases(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let cases = golden["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn points(case: &Value) -> (Vec<f32>, usize) {
    let bytes = std::fs::read(folder().join(format!("{}.f32", case["points"].as_str().unwrap()))).unwrap();
    let values = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    (values, case["width"].as_u64().unwrap() as usize)
}

fn labels(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|label| label.as_i64().unwrap()).collect()
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|value| number(value) as f32).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// How many labels differ under a renaming of clusters, one to one and noise to noise; 0 for equal clusterings.
fn differing(found: &[i64], wanted: &[i64]) -> usize {
    assert_eq!(found.len(), wanted.len());
    let (mut there, mut back) = (BTreeMap::from([(NOISE, NOISE)]), BTreeMap::from([(NOISE, NOISE)]));
    let mut differs = |&(&found, &wanted): &(&i64, &i64)| {
        *there.entry(found).or_insert(wanted) != wanted || *back.entry(wanted).or_insert(found) != found
    };
    found.iter().zip(wanted).filter(|pair| differs(pair)).count()
}
