//! Pruning rules change how long a search takes, not what its best abstraction gains.

use compression::{Config, Corpus, CostKind, Rules, Stop};
use proptest::prelude::*;

use crate::corpora::{Shape, compressed, corpus, first_round, fixture, programs, total};

/// The exact rules switched, over rules that are on or off throughout.
fn exact_variants(base: Rules) -> Vec<(&'static str, Rules)> {
    vec![
        ("redundant_argument switched", Rules { redundant_argument: !base.redundant_argument, ..base }),
        ("spent_rows switched", Rules { spent_rows: !base.spent_rows, ..base }),
        ("exhausted_arity switched", Rules { exhausted_arity: !base.exhausted_arity, ..base }),
        ("overlap switched", Rules { overlap: !base.overlap, ..base }),
    ]
}

/// Every rule off.
fn none() -> Rules {
    Rules {
        argument_capture: false,
        redundant_argument: false,
        single_place: false,
        spent_rows: false,
        exhausted_arity: false,
        overlap: false,
    }
}

/// The default with each rule switched, and all off.
fn all_variants() -> Vec<(&'static str, Rules)> {
    let default = Rules::default();
    let mut variants = exact_variants(default);
    variants.push(("without argument_capture", Rules { argument_capture: false, ..default }));
    variants.push(("without single_place", Rules { single_place: false, ..default }));
    variants.push(("without any", none()));
    variants
}

fn first_cost(corpus: &Corpus, max_arity: usize, rules: Rules) -> f64 {
    first(corpus, max_arity, rules).0
}

/// What the first round costs, and why its search stopped: without the two rules that may lose something, always with the
/// optimum.
fn first(corpus: &Corpus, max_arity: usize, rules: Rules) -> (f64, Stop) {
    let compression = compressed(corpus, &Config { rules, ..first_round(max_arity) });
    let may_lose = rules.argument_capture || rules.single_place;
    let is_complete = compression.stop == Stop::Optimal || may_lose && compression.stop == Stop::OptimalUnderRules;
    assert!(is_complete, "{:?}", compression.stop);
    (total(&compression), compression.stop)
}

/// The rules under which the first round costs something else than under `base`.
fn differing(programs: &[String], max_arity: usize, base: Rules, variants: &[(&'static str, Rules)]) -> Vec<String> {
    let corpus = corpus(programs);
    let expected = first_cost(&corpus, max_arity, base);
    let differs = |&(name, rules): &(&'static str, Rules)| {
        let other = first_cost(&corpus, max_arity, rules);
        (other != expected).then(|| format!("{name}: {other} instead of {expected}"))
    };
    variants.iter().filter_map(differs).collect()
}

#[test]
fn nuts_bolts_has_the_same_best_first_round_under_all_rules() {
    let programs = fixture("nuts-bolts");
    for arity in [1, 2] {
        assert_eq!(differing(&programs, arity, Rules::default(), &all_variants()), Vec::<String>::new());
    }
}

#[test]
fn regression_inputs_have_the_same_best_first_round_under_all_rules() {
    // Without any rule, larger ones take gigabytes.
    let names = ["identical", "panic", "simple_hof", "ctx_thread_1", "safe_ctx_thread_bug", "tmp_crash"];
    for name in names {
        for arity in 0..=2 {
            let differing = differing(&fixture(name), arity, Rules::default(), &all_variants());
            assert_eq!(differing, Vec::<String>::new(), "{name} arity {arity}");
        }
    }
}

/// The one exception: `(a b c d e f g h #0 #0 #0 #0)` is called twice and uses its parameter four times, so writing
/// `(A B C)` into the body costs more than giving it at both calls.
#[test]
fn a_parameter_used_more_often_than_called_is_given_up() {
    let corpus = corpus(&fixture("cex"));
    // And the search does not claim to be complete.
    assert_eq!(first(&corpus, 1, Rules::default()), (2219.0, Stop::OptimalUnderRules));
    assert_eq!(first(&corpus, 0, Rules::default()).1, Stop::Optimal);
    assert_eq!(
        first_cost(&corpus, 1, Rules { argument_capture: false, single_place: false, ..Rules::default() }),
        2017.0
    );
    assert_eq!(first_cost(&corpus, 1, none()), 2017.0);
}

/// The bound grouped rows by the shape of a hole's content above subterms as large as the largest argument, but a small
/// argument makes the structure around it small as well: `(g x)` and `(g B)` belong to one abstraction `(g #0)`.
#[test]
fn arguments_of_very_different_sizes_share_an_abstraction() {
    // A subterm of just 807, which is 8 leaves, and of other sizes around the sizes of atoms.
    for leaves in [2, 4, 7, 8, 9, 16] {
        let big = |first: &str| format!("({first}{})", " b".repeat(leaves - 1));
        let program = |argument: &str| format!("(h {argument} (g {argument}) (k k k k))");
        let programs: Vec<String> =
            ["x", "y", "z", "u", "v", &big("m"), &big("n")].iter().map(|&argument| program(argument)).collect();
        let differing = differing(&programs, 1, Rules::default(), &exact_variants(Rules::default()));
        assert_eq!(differing, Vec::<String>::new(), "{leaves} leaves");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn exact_rules_are_exact_on_random_lambdas(
        programs in programs(Shape { symbols: &["a", "b", "c"], lambdas: true, tags: false, leaves: 12, programs: 5 }),
        arity in 0..=2usize,
    ) {
        check_exact(&programs, arity)?;
    }

    #[test]
    fn exact_rules_are_exact_on_random_applications(
        programs in programs(Shape { symbols: &["f", "g", "x"], lambdas: false, tags: false, leaves: 24, programs: 6 }),
        arity in 1..=3usize,
    ) {
        check_exact(&programs, arity)?;
    }
}

fn check_exact(programs: &[String], arity: usize) -> Result<(), TestCaseError> {
    let default = Rules::default();
    let free = Rules { argument_capture: false, single_place: false, ..default };
    for base in [default, free, none()] {
        prop_assert_eq!(differing(programs, arity, base, &exact_variants(base)), Vec::<String>::new(), "{:?}", base);
    }
    let corpus = corpus(programs);
    prop_assert_eq!(first_cost(&corpus, arity, free), first_cost(&corpus, arity, none()));
    let (cost, stop) = first(&corpus, arity, default);
    prop_assert!(first_cost(&corpus, arity, free) <= cost);
    // A search that says that nothing was lost has lost nothing.
    prop_assert!(stop == Stop::OptimalUnderRules || cost == first_cost(&corpus, arity, free));
    Ok(())
}

/// Where no part of a program occurs often enough, nothing can be lost, and the search says so under all rules.
#[test]
fn a_search_that_cannot_have_lost_anything_is_complete() {
    let programs = ["(f (g a) (h b))", "(f (g c) (h d))", "(f (g e) (h i))"];
    for arity in 0..=3 {
        let (cost, stop) = first(&corpus(&programs), arity, Rules::default());
        assert_eq!((cost, stop), (first_cost(&corpus(&programs), arity, none()), Stop::Optimal));
    }
    // `(f #0 #0)` called once pays for itself, but its argument alone gains more, so giving it up loses nothing.
    let twice = corpus(&["(f (g a b c d e) (g a b c d e))", "(f x y)"]);
    assert_eq!(first(&twice, 1, Rules::default()), (first_cost(&twice, 1, none()), Stop::Optimal));
}

#[test]
fn a_budget_is_kept_and_said() {
    let corpus = corpus(&fixture("nuts-bolts"));
    let config = Config { max_steps: Some(10), cost: CostKind::Stitch, ..first_round(3) };
    let compression = compressed(&corpus, &config);
    assert_eq!(compression.stop, Stop::Budget);
    let config = Config { time_limit: Some(std::time::Duration::ZERO), ..first_round(3) };
    assert_eq!(compressed(&corpus, &config).stop, Stop::Time);
}

/// Without a limit of steps, a search that ended because of its memory said that its budget of steps was used up.
#[test]
fn finding_10_a_search_that_ends_because_of_memory_says_so() {
    let corpus = corpus(&fixture("nuts-bolts"));
    let limited = |max_memory| compressed(&corpus, &Config { max_memory, cost: CostKind::Stitch, ..first_round(3) });
    let (small, large) = (limited(1), limited(compression::DEFAULT_MAX_MEMORY));
    assert_eq!((small.stop, small.stop.to_string().as_str()), (Stop::Memory, "memory"));
    assert!(large.stop <= Stop::OptimalUnderRules && large.steps > small.steps, "{:?}", large.stop);
    // What was found until then is kept, and is a compression of the same corpus.
    compression::verify(&corpus, &small).unwrap();
}
