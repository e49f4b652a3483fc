//! What holds for every input.

use clustering::{
    DpMeansConfig, HdbscanConfig, KMeansConfig, MiniBatchConfig, NOISE, Points, ami, ari, boundary_f1, dp_means, dtw,
    dtw_path, hdbscan, kmeans, lambda_for_clusters, mini_batch_kmeans, nearest_centres, nmi, purity, silhouette,
};
use proptest::prelude::*;

fn labellings() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    (1usize..120, 1i64..9, 1i64..9).prop_flat_map(|(count, classes, clusters)| {
        (prop::collection::vec(-1..classes, count), prop::collection::vec(-1..clusters, count))
    })
}

fn matrices(rows: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<f32>, usize)> {
    (rows, 1usize..9).prop_flat_map(|(rows, width)| (prop::collection::vec(-5.0f32..5.0, rows * width), Just(width)))
}

fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// Clouds of points around a few places, made without a generator.
fn clouds(count: usize, width: usize) -> Vec<f32> {
    let wave =
        |at: usize, row: usize| (((at * 7 + row * 13) % 101) as f32 / 50.0 - 1.0) * ((row % 7) as f32 * 0.1 + 0.3);
    (0..count * width).map(|at| wave(at, at / width) + ((at / width % 5) * (at % width + 1)) as f32 * 0.5).collect()
}

proptest! {
    #[test]
    fn scores_are_symmetric_and_blind_to_names((truth, predicted) in labellings()) {
        let renamed: Vec<i64> = predicted.iter().map(|label| 1000 - 3 * label).collect();
        for score in [nmi, ami, ari] {
            let found = score(&truth, &predicted).unwrap();
            prop_assert!((found - score(&predicted, &truth).unwrap()).abs() < 1e-12);
            prop_assert!((found - score(&truth, &renamed).unwrap()).abs() < 1e-12);
            prop_assert!(found <= 1.0 + 1e-9);
            prop_assert!((score(&truth, &truth).unwrap() - 1.0).abs() < 1e-9);
        }
        prop_assert!((purity(&truth, &predicted).unwrap() - purity(&truth, &renamed).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn scores_keep_to_their_bounds((truth, predicted) in labellings()) {
        prop_assert!((-1e-12..=1.0 + 1e-12).contains(&nmi(&truth, &predicted).unwrap()));
        prop_assert!((-1.0..=1.0 + 1e-12).contains(&ari(&truth, &predicted).unwrap()));
        let pure = purity(&truth, &predicted).unwrap();
        prop_assert!(pure > 0.0 && pure <= 1.0);
        let places: Vec<f32> = truth.iter().map(|&label| label as f32).collect();
        if let Ok(score) = silhouette(Points::new(&places, 1).unwrap(), &predicted) {
            prop_assert!((-1.0..=1.0).contains(&score));
        }
    }

    #[test]
    fn boundaries_agree_with_themselves_and_more_with_tolerance((truth, predicted) in labellings()) {
        prop_assert_eq!(boundary_f1(&[&truth], &[&truth], 0).unwrap().f1, 1.0);
        let scores: Vec<f64> =
            (0..6).map(|tolerance| boundary_f1(&[&truth], &[&predicted], tolerance).unwrap().f1).collect();
        prop_assert!(scores.is_sorted() && scores.iter().all(|score| (0.0..=1.0).contains(score)));
        let back = boundary_f1(&[&predicted], &[&truth], 2).unwrap();
        let there = boundary_f1(&[&truth], &[&predicted], 2).unwrap();
        prop_assert_eq!((back.precision, back.recall, back.f1), (there.recall, there.precision, there.f1));
    }

    #[test]
    fn inertia_never_rises((values, width) in matrices(12..200), clusters in 1usize..12, seed: u64) {
        let points = Points::new(&values, width).unwrap();
        let run = |max_iterations| {
            let config =
                KMeansConfig { clusters, restarts: 1, swaps: 0, max_iterations, tolerance: 0.0, seed };
            kmeans(points, &config).unwrap()
        };
        let mut before = f64::INFINITY;
        for iterations in 1..8 {
            let found = run(iterations);
            // Centres are rounded to single precision.
            prop_assert!(found.inertia <= before * (1.0 + 1e-6) + 1e-9, "{} after {before}", found.inertia);
            before = found.inertia;
        }
        let swapped = KMeansConfig { clusters, restarts: 1, swaps: 8, max_iterations: 7, tolerance: 0.0, seed };
        prop_assert!(kmeans(points, &swapped).unwrap().inertia <= before * (1.0 + 1e-6) + 1e-9);
    }

    #[test]
    fn points_are_with_their_nearest_centre((values, width) in matrices(12..100), clusters in 1usize..12, seed: u64) {
        let points = Points::new(&values, width).unwrap();
        let found = kmeans(points, &KMeansConfig { clusters, seed, ..KMeansConfig::default() }).unwrap();
        prop_assert_eq!(found.centres.len(), clusters * width);
        let nearest = nearest_centres(points, Points::new(&found.centres, width).unwrap()).unwrap();
        let square = |row: &[f32], centre: i64| -> f32 {
            let centre = &found.centres[centre as usize * width..][..width];
            row.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        for (row, (&label, &nearest)) in points.rows().zip(found.labels.iter().zip(&nearest)) {
            prop_assert!(square(row, label) <= square(row, nearest) * (1.0 + 1e-5) + 1e-6);
        }
    }

    #[test]
    fn the_price_of_clusters_is_paid_back((values, width) in matrices(6..120), clusters in 1usize..6) {
        let points = Points::new(&values, width).unwrap();
        let lambda = lambda_for_clusters(points, clusters).unwrap();
        let mut before = f64::INFINITY;
        for max_iterations in 1..8 {
            let found = dp_means(points, &DpMeansConfig { lambda, max_iterations }).unwrap();
            prop_assert!(found.objective <= before * (1.0 + 1e-5), "{} after {before}", found.objective);
            before = found.objective;
        }
    }

    #[test]
    fn warping_is_symmetric_and_zero_on_itself(
        (left, width) in matrices(1..20),
        rows in 1usize..20,
        band in 0usize..12,
        more in prop::collection::vec(-5.0f32..5.0, 20 * 9),
    ) {
        let (left, right) = (Points::new(&left, width).unwrap(), Points::new(&more[..rows * width], width).unwrap());
        let free = dtw(left, right, None).unwrap();
        prop_assert_eq!(dtw(left, left, Some(band)).unwrap(), 0.0);
        prop_assert!((free - dtw(right, left, None).unwrap()).abs() <= 1e-12 * free);
        let banded = dtw_path(left, right, Some(band)).unwrap();
        prop_assert!(banded.distance >= free);
        prop_assert_eq!(banded.distance, dtw(left, right, Some(band)).unwrap());
        prop_assert_eq!((banded.path[0], banded.path.last()), ((0, 0), Some(&(left.len() - 1, rows - 1))));
        let steps = banded.path.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
        prop_assert!(steps.into_iter().all(|step| matches!(step, (0, 1) | (1, 0) | (1, 1))));
        let length = |at: usize, to: usize| -> f64 {
            let pairs = left.row(at).iter().zip(right.row(to));
            pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
        };
        let walked: f64 = banded.path.iter().map(|&(at, to)| length(at, to)).sum();
        prop_assert!((walked - banded.distance).abs() <= 1e-9 * walked.max(1.0));
    }

    #[test]
    fn density_clusters_are_large_enough(
        (values, width) in matrices(10..150),
        size in 2usize..9,
        samples in 1usize..8,
    ) {
        let config = HdbscanConfig { min_cluster_size: size, min_samples: samples, allow_single_cluster: false };
        let found = hdbscan(Points::new(&values, width).unwrap(), &config).unwrap();
        for cluster in 0..found.clusters as i64 {
            prop_assert!(found.labels.iter().filter(|&&label| label == cluster).count() >= size);
        }
        prop_assert!(found.labels.iter().all(|&label| (NOISE..found.clusters as i64).contains(&label)));
        prop_assert!(found.clusters != 1, "a single cluster was not allowed");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let values = clouds(6000, 16);
    let points = Points::new(&values, 16).unwrap();
    let kmeans = |threads| {
        on_threads(threads, || kmeans(points, &KMeansConfig { clusters: 9, ..KMeansConfig::default() }).unwrap())
    };
    assert_eq!(kmeans(1), kmeans(3));
    let labels = kmeans(1).labels;
    let silhouette = |threads| on_threads(threads, || silhouette(points, &labels).unwrap());
    assert_eq!(silhouette(1), silhouette(3));
    let density = |threads| on_threads(threads, || hdbscan(points, &HdbscanConfig::default()).unwrap());
    assert_eq!(density(1), density(3));
    let priced = |threads| {
        on_threads(threads, || dp_means(points, &DpMeansConfig { lambda: 20.0, max_iterations: 20 }).unwrap())
    };
    assert_eq!(priced(1), priced(3));
}

#[test]
fn swaps_found_on_a_sample_are_no_worse_for_the_whole() {
    let values = clouds(40_000, 6);
    let points = Points::new(&values, 6).unwrap();
    let run = |swaps, seed| {
        kmeans(points, &KMeansConfig { clusters: 11, restarts: 1, swaps, seed, ..KMeansConfig::default() }).unwrap()
    };
    let (plain, swapped): (Vec<f64>, Vec<f64>) =
        (0..6).map(|seed| (run(0, seed).inertia, run(32, seed).inertia)).unzip();
    assert!(swapped.iter().zip(&plain).all(|(swapped, plain)| *swapped <= plain * (1.0 + 1e-6)));
    assert!(swapped.iter().sum::<f64>() < plain.iter().sum::<f64>(), "{swapped:?} {plain:?}");
}

#[test]
fn a_stream_is_clustered_nearly_as_well_as_the_whole() {
    let values = clouds(20_000, 8);
    let points = Points::new(&values, 8).unwrap();
    let whole = kmeans(points, &KMeansConfig { clusters: 5, ..KMeansConfig::default() }).unwrap();
    let config = MiniBatchConfig { clusters: 5, seeding_points: 512, ..MiniBatchConfig::default() };
    let stream = mini_batch_kmeans(values.chunks(8 * 256), 8, &config).unwrap();
    assert_eq!(stream.points, 20_000);
    assert!(stream.inertia < whole.inertia * 1.02, "{} {}", stream.inertia, whole.inertia);
    let labels = nearest_centres(points, Points::new(&stream.centres, 8).unwrap()).unwrap();
    assert!(nmi(&whole.labels, &labels).unwrap() > 0.95);
    // Batches of any size, and centres that start badly come round.
    let uneven = mini_batch_kmeans([&values[..8 * 7], &values[8 * 7..]], 8, &config).unwrap();
    assert_eq!(uneven.points, 20_000);
    assert!(mini_batch_kmeans([&values[..8 * 3]], 8, &config).is_err(), "three points are no five clusters");
    assert!(mini_batch_kmeans([&values[..9]], 8, &config).is_err());
}

#[test]
fn empty_clusters_get_a_point() {
    // Two places, five clusters: however they start, no centre is left without meaning.
    let values: Vec<f32> = (0..40).map(|at| if at < 36 { 0.0 } else { at as f32 }).collect();
    let found =
        kmeans(Points::new(&values, 1).unwrap(), &KMeansConfig { clusters: 5, ..KMeansConfig::default() }).unwrap();
    assert_eq!(found.inertia, 0.0);
    assert!(found.centres.iter().all(|centre| centre.is_finite()));
    let same = [2.5; 30];
    let found =
        kmeans(Points::new(&same, 3).unwrap(), &KMeansConfig { clusters: 4, ..KMeansConfig::default() }).unwrap();
    assert_eq!((found.inertia, found.centres), (0.0, vec![2.5; 12]));
}

#[test]
fn what_cannot_be_clustered_is_refused() {
    let points = Points::new(&[1.0, 2.0, 3.0], 1).unwrap();
    let default = KMeansConfig::default();
    for config in [
        KMeansConfig { clusters: 4, ..default.clone() },
        KMeansConfig { clusters: 0, ..default.clone() },
        KMeansConfig { clusters: 2, restarts: 0, ..default.clone() },
        KMeansConfig { clusters: 2, tolerance: f64::NAN, ..default },
    ] {
        assert!(kmeans(points, &config).is_err(), "{config:?}");
    }
    for (min_cluster_size, min_samples) in [(1, 2), (2, 0), (2, 4)] {
        let config = HdbscanConfig { min_cluster_size, min_samples, allow_single_cluster: false };
        assert!(hdbscan(points, &config).is_err(), "{config:?}");
    }
    assert!(silhouette(points, &[0, 0, 0]).is_err());
    assert!(silhouette(points, &[0, 1, 2]).is_err());
    assert!(silhouette(points, &[0, 1]).is_err());
    assert!(nmi(&[0], &[0, 1]).is_err());
}
