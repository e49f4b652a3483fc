//! Stitch's regression inputs: all compress, verify and get no dearer.

use compression::{CostKind, verify};

use crate::corpora::{COSTS, compressed, config, corpus, fixture, fixtures, total};

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixtures().join("corpora"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "nuts-bolts")
        .collect();
    names.sort();
    names
}

#[test]
fn all_compress_and_verify_at_every_cost_and_arity() {
    let names = names();
    assert_eq!(names.len(), 25);
    for name in names {
        let corpus = corpus(&fixture(&name));
        for cost in COSTS {
            for arity in 0..=3 {
                let compression = compressed(&corpus, &config(cost, arity, 3));
                let case = format!("{name} {cost:?} arity {arity}");
                verify(&corpus, &compression).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert!(total(&compression) <= compression.original_cost, "{case}");
                assert!(
                    compression.abstractions.iter().all(|entry| entry.arity <= arity && entry.gain > 0.0),
                    "{case}"
                );
            }
        }
    }
}

/// Stitch itself panics here.
#[test]
fn the_corpus_that_panics_stitch_compresses() {
    let corpus = corpus(&fixture("panic"));
    let compression = compressed(&corpus, &config(CostKind::Stitch, 1, 1));
    verify(&corpus, &compression).unwrap();
    assert_eq!(compression.abstractions.len(), 1);
}

#[test]
fn no_rounds_leave_the_corpus_as_it_is() {
    let corpus = corpus(&fixture("identical"));
    let compression = compressed(&corpus, &config(CostKind::Stitch, 2, 0));
    assert_eq!(compression.rewritten, fixture("identical"));
    assert_eq!(total(&compression), compression.original_cost);
}

#[test]
fn extreme_settings_are_no_trouble() {
    let corpus = corpus(&fixture("hof"));
    let extreme = compression::Config {
        lookahead: f64::INFINITY,
        time_limit: Some(std::time::Duration::MAX),
        max_arity: usize::MAX,
        per_round: usize::MAX,
        ..config(CostKind::Stitch, 2, 2)
    };
    verify(&corpus, &compressed(&corpus, &extreme)).unwrap();
    let never = compression::Config { min_gain: f64::INFINITY, ..config(CostKind::Nats, 2, 2) };
    assert!(compressed(&corpus, &never).abstractions.is_empty());
    let nonsense = compression::Config { min_gain: f64::NAN, lookahead: f64::NAN, ..config(CostKind::Nats, 2, 2) };
    verify(&corpus, &compressed(&corpus, &nonsense)).unwrap();
}
