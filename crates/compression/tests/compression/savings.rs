//! What the search says an abstraction saves is what it saves.

use compression::{Config, CostKind, verify};
use proptest::prelude::*;

use crate::corpora::{COSTS, Shape, compressed, config, corpus, fixture, programs, total};

/// The cost from the text alone, as Stitch counts it: terminal 100, application and λ 1.
fn stitch_cost(text: &str) -> f64 {
    let mut parts = Vec::new();
    let mut cost = 0.0;
    for word in text.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        match word {
            "(" => {
                parts.push(0);
                continue;
            }
            // n parts are n − 1 applications; `lam` and its body are one λ.
            ")" => cost += f64::from(parts.pop().unwrap() - 1),
            _ if word == "lam" || word == "lam_1" => {}
            _ => cost += 100.0,
        }
        if let Some(parts) = parts.last_mut() {
            *parts += 1;
        }
    }
    cost
}

fn check(texts: &[String], config: &Config) {
    let corpus = corpus(texts);
    let compression = compressed(&corpus, config);
    verify(&corpus, &compression).unwrap();
    let gains: f64 = compression.abstractions.iter().map(|entry| entry.gain).sum();
    let predicted = compression.original_cost - gains;
    let measured = total(&compression);
    if config.cost == CostKind::Stitch {
        assert_eq!(predicted, measured);
        assert_eq!(compression.original_cost, texts.iter().map(|text| stitch_cost(text)).sum::<f64>());
        let programs: f64 = compression.rewritten.iter().map(|text| stitch_cost(text)).sum();
        let library: f64 = compression.abstractions.iter().map(|entry| stitch_cost(&entry.body)).sum();
        assert_eq!((compression.final_cost, compression.library_cost), (programs, library));
    } else {
        assert!((predicted - measured).abs() < 1e-5, "{predicted} predicted, {measured} measured");
    }
    assert!(compression.abstractions.iter().all(|entry| entry.gain > config.min_gain));
}

#[test]
fn nuts_bolts_saves_what_was_predicted() {
    for cost in COSTS {
        check(&fixture("nuts-bolts"), &Config { lookahead: 0.5, ..config(cost, 2, 5) });
    }
    // Several abstractions in one round.
    check(&fixture("nuts-bolts"), &Config { per_round: 4, ..config(CostKind::Stitch, 3, 2) });
    check(&fixture("nuts-bolts"), &Config { per_round: 4, lookahead: 0.0, ..config(CostKind::Nats, 2, 2) });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_corpora_save_what_was_predicted(
        programs in programs(Shape {
            symbols: &["f", "g", "a", "fn_0"], lambdas: true, tags: true, leaves: 20, programs: 8,
        }),
        cost in prop::sample::select(COSTS.to_vec()),
        arity in 0..=3usize,
        per_round in 1..=3usize,
    ) {
        check(&programs, &Config { per_round, ..config(cost, arity, 3) });
    }
}
