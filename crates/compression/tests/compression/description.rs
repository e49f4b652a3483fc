//! Description length in nats, against arithmetic done by hand.

use compression::{Config, Corpus, CostKind};
use language::{Signature, TermStore};

use crate::corpora::{compressed, config, corpus, total};

fn is_close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-5, "found {found}, by hand {wanted}");
}

/// Two programs `(f a b)` and `(f a c)`, one type of slot. Productions, with how often they are used: f with 2 arguments
/// (2), a (2), b (1), c (1). N = 6 uses of K = 4 productions, so p = (n + 1) / 10:
///
/// f and a: 3/10 each, 4 uses; b and c: 2/10 each, 2 uses.
#[test]
fn two_programs_cost_what_a_hand_counts() {
    let corpus = corpus(&["(f a b)", "(f a c)"]);
    let ln = f64::ln;
    let estimated = compressed(&corpus, &Config { min_gain: 1e9, ..config(CostKind::Nats, 1, 1) });
    is_close(estimated.original_cost, -(4.0 * ln(0.3) + 2.0 * ln(0.2)));
    assert_eq!((estimated.final_cost, estimated.library_cost), (estimated.original_cost, 0.0));
    // All four alike: six times ln 4.
    let uniform = compressed(&corpus, &Config { min_gain: 1e9, ..config(CostKind::UniformNats, 1, 1) });
    is_close(uniform.original_cost, 6.0 * ln(4.0));
}

/// λ and variables: `(lam (lam (f $0 $1)))`. λ (2), f with 2 (1), variable (2): N = 5, K = 3, p = 3/8, 2/8, 3/8; each
/// variable is one of two in scope, ln 2.
#[test]
fn variables_pay_for_their_names() {
    let corpus = corpus(&["(lam (lam (f $0 $1)))"]);
    let alone = compressed(&corpus, &config(CostKind::Nats, 0, 0));
    is_close(alone.original_cost, -(4.0 * (3.0f64 / 8.0).ln() + (2.0f64 / 8.0).ln()) + 2.0 * 2.0f64.ln());
}

/// Four programs `(f (g a a a) (g a a a))`, uniform. Before: productions f/2, g/3, a: K = 3, and 4 · 9 = 36 uses, so
/// 36 ln 3. With fn_0 = `(f (g a a a) (g a a a))` the four programs are one call each, the body has 9 productions, and
/// there are K = 4 productions: 4 ln 4 for the programs, 9 ln 4 for the body, and ln 2 for its arity of 0; there is one
/// type, ln 1 = 0.
#[test]
fn an_abstraction_gains_the_drop_of_the_whole() {
    let corpus = corpus(&["(f (g a a a) (g a a a))"; 4]);
    let found = compressed(&corpus, &config(CostKind::UniformNats, 0, 1));
    assert_eq!(found.abstractions[0].body, "(f (g a a a) (g a a a))");
    let ln = f64::ln;
    is_close(found.original_cost, 36.0 * ln(3.0));
    is_close(found.final_cost, 4.0 * ln(4.0));
    is_close(found.library_cost, 9.0 * ln(4.0) + ln(2.0));
    is_close(found.abstractions[0].gain, found.original_cost - total(&found));
}

#[test]
fn a_gain_must_be_larger_than_the_threshold() {
    let texts = ["(f (g a a a) (g a a a))"; 4];
    for cost in [CostKind::Stitch, CostKind::Nats, CostKind::UniformNats] {
        let corpus = corpus(&texts);
        let gain = compressed(&corpus, &config(cost, 0, 1)).abstractions[0].gain;
        let admitted = |min_gain| compressed(&corpus, &Config { min_gain, ..config(cost, 0, 1) }).abstractions.len();
        assert_eq!((admitted(gain - 0.01), admitted(gain + 0.01)), (1, 0), "{cost:?}");
    }
    // Exactly the gain is not enough.
    let gain = compressed(&corpus(&texts), &config(CostKind::Stitch, 0, 1)).abstractions[0].gain;
    let exact = Config { min_gain: gain, ..config(CostKind::Stitch, 0, 1) };
    assert!(compressed(&corpus(&texts), &exact).abstractions.is_empty());
}

/// Typed slots: `pick "a"` and `pick "b"`. Slots of type Motion: pick with one argument, 2 uses, K = 1: probability 1.
/// Slots of type Lang: "a" and "b", 1 use each, p = 2/4. So 2 ln 2 in all.
#[test]
fn types_narrow_what_can_stand_in_a_slot() {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    let programs: Vec<_> =
        [r#"pick "a""#, r#"pick "b""#].map(|text| language::parse(&mut store, &signature, text).unwrap().term).to_vec();
    let corpus = Corpus::from_programs(&store, &signature, &programs).unwrap();
    let alone = compressed(&corpus, &config(CostKind::Nats, 0, 0));
    is_close(alone.original_cost, 2.0 * 2.0f64.ln());
}
