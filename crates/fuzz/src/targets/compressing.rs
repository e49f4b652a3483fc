//! The compressor on tiny corpora, one program a line: what it says must be true.
//!
//! The settings – arity, rounds, cost, lookahead, rules – are chosen by the content of the corpus, so that they are as
//! arbitrary as the corpus and yet a function of it.

use compression::sexpr::{self, Params};
use compression::term::{Term, TermId, Terms};
use compression::{Compression, Config, Corpus, CostKind, Rules, Stop, compress, verify};
use language::{EvaluateError, TypeId, evaluate, read};

use super::reading::{generated, seeds_of};
use super::{Outcome, Target, Verdict, World, ensure, hash, one_in};
use crate::grammar;
use crate::inputs::Source;

/// A corpus longer than this is compressed with few steps: it is there for its depth.
const LONG: usize = 2000;

/// Corpora of s-expressions.
pub(super) fn s_expressions() -> Target {
    Target { name: "compression", cost: 100, source: s_expression_source(), check: Box::new(check_s_expressions) }
}

/// Where a search says that nothing better exists, one round without any rule finds nothing better.
pub(super) fn pruning() -> Target {
    Target { name: "pruning", cost: 100, source: s_expression_source(), check: Box::new(check_pruning) }
}

fn s_expression_source() -> Source {
    let words = [
        "(",
        ")",
        "(f ",
        "(g ",
        "(lam ",
        "(lam (lam ",
        "$0",
        "$1",
        "$2",
        "a",
        "b",
        "1",
        "fn_0",
        "fn_1",
        "(fn_0 a)",
        "\n",
        "\n",
        "(f a b)",
        "(f (g a) (g b))",
        "(lam ($0 a))",
        "(lam_1 $0_1)",
        "é",
    ];
    let seeds = [
        "(q (foo (foo (b a) (b a)) (foo (b a) (b a))))\n(r (foo (foo (b c) (b c)) (foo (b c) (b c))))\n(s (foo (b d) (b d)))",
        "(a b c d e f g h (A B C) (A B C) (A B C) (A B C))\n(a b c d e f g h (A B C) (A B C) (A B C) (A B C))",
        "(A (lam (lam (+ (a b c $0 $1 f) (a b c $0 $1 f)))))\n(A (lam (lam (+ (a b z $0 $1 f) (a b z $0 $1 f)))))",
        "(a (lam ((a $0) (a $0))))\n(a (lam (($0 b) ($0 b))))",
        "(lam (a (lam (lam (a (lam (lam (a (lam (lam ($5 b))) 0))) 0))) 0))",
        "(Y (lam (lam ((is_nil $0) nil (cons (+ $0))))))\n(Y (lam (lam ((is_nil $0) nil (cons (- $0))))))",
        "(a (lam_1 (a $0_1 $0_1)))\n(b (lam_1 (b $0_2 $0_2)))",
        "(T (T l (M 1 0 -0.5 0)) (M 2 0 0 0))\n(T (T r (M 1 0 -1.5 0.5)) (M 1 0 0 0.5))\n(C (T l (M 1 0 -0.5 0)) l)",
    ];
    Source {
        words: words.map(String::from).to_vec(),
        seeds: seeds.map(String::from).to_vec(),
        nests: &[
            ("(f ", "x", ")"),
            ("(lam ", "$0", ")"),
            ("(", "f", " x)"),
            ("(f a\n", "x", ")"),
            ("(f (f a a) ", "x", ")"),
            ("(lam (f $0 ", "x", "))"),
            ("(f x)\n", "(f y)", "\n(f z)"),
        ],
        grammar: Box::new(grammar::corpus),
    }
}

/// Corpora of programs of our language.
pub(super) fn programs() -> Target {
    // A library that was there before is inlined by the verification as well, so such corpora are not for it yet.
    let world = World::without_library();
    let generator = World::without_library();
    let seeds = seeds_of(&world);
    Target {
        name: "programs",
        cost: 100,
        source: Source {
            words: seeds.iter().map(|seed| format!("\n{seed}\n")).collect(),
            seeds: seeds.chunks(4).map(|some| some.join("\n")).collect(),
            nests: &[
                ("repeat(", "move still", ", 2)"),
                ("seq[move still, ", "seq[]", "]"),
                ("pick \"a\"\n", "open \"a\"", "\nclose \"a\""),
                ("(\\x. seq[x, x]) (", "move still", ")"),
            ],
            grammar: Box::new(move |random| {
                let one = generated(&generator, random).replace('\n', " ");
                // Instances of one program: other names for things, and the whole within something else.
                let lines: Vec<String> = (0..1 + random.below(5))
                    .map(|_| {
                        let line = one.replace("x_pos", random.word(&["x_pos", "y_neg", "still"]));
                        let line = line.replace("left", random.word(&["left", "right", "(in \"tray\")"]));
                        match random.below(4) {
                            0 => format!("seq[{line}, {line}]"),
                            1 => format!("repeat({line}, {})", random.below(4)),
                            2 => generated(&generator, random).replace('\n', " "),
                            _ => line,
                        }
                    })
                    .collect();
                lines.join("\n")
            }),
        },
        check: Box::new(move |text| check_programs(&world, text)),
    }
}

fn check_s_expressions(text: &str) -> Verdict {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut terms = Terms::new();
    if Corpus::from_sexprs(&lines).is_err() {
        // The good lines of a corpus that is refused are a corpus as well.
        lines.retain(|line| sexpr::parse(&mut terms, line, Params::Refuse).is_ok());
    }
    let corpus = Corpus::from_sexprs(&lines).map_err(|error| format!("good lines are a bad corpus: {error}"))?;
    let config = config(text);
    let Some(compression) = checked(&corpus, &config, text)? else {
        return Ok(Outcome::Refused);
    };
    if config.cost == CostKind::Stitch {
        let bodies: Vec<&str> = compression.abstractions.iter().map(|it| it.body.as_str()).collect();
        let rewritten: Vec<&str> = compression.rewritten.iter().map(String::as_str).collect();
        for (name, said, texts) in [
            ("original", compression.original_cost, &lines),
            ("final", compression.final_cost, &rewritten),
            ("library", compression.library_cost, &bodies),
        ] {
            let counted = texts.iter().map(|text| stitch_cost(text)).sum::<Option<u64>>();
            ensure(counted == Some(said as u64), || format!("the {name} cost is {counted:?}, not {said}"))?;
        }
    }
    Ok(Outcome::Accepted)
}

fn check_pruning(text: &str) -> Verdict {
    let mut terms = Terms::new();
    let good = |line: &&str| sexpr::parse(&mut terms, line, Params::Refuse).is_ok();
    let lines: Vec<&str> = text.lines().filter(good).collect();
    let Ok(corpus) = Corpus::from_sexprs(&lines) else {
        return Err("good lines are a bad corpus".into());
    };
    if lines.is_empty() || text.len() > 300 {
        return Ok(Outcome::Refused);
    }
    let pruned = Config { cost: CostKind::Stitch, rounds: 1, per_round: 1, lookahead: 0.0, ..config(text) };
    let exhaustive = Config { rules: no_rules(), ..pruned.clone() };
    let best = |config: &Config| compress(&corpus, config, &|_| ()).map_err(|error| error.to_string());
    let (best, best_of_all) = (best(&pruned)?, best(&exhaustive)?);
    // A search that says that its rules may have lost something claims nothing.
    if (best.stop, best_of_all.stop) != (Stop::Optimal, Stop::Optimal) {
        return Ok(Outcome::Refused);
    }
    let (with, without) = (total(&best), total(&best_of_all));
    ensure((with - without).abs() < 1e-6, || {
        format!("the best is {without} without pruning, and {with} with {pruned:?}")
    })?;
    Ok(Outcome::Accepted)
}

fn total(compression: &Compression) -> f64 {
    compression.final_cost + compression.library_cost
}

fn check_programs(world: &World, text: &str) -> Verdict {
    let mut store = world.store.clone();
    let programs: Vec<language::TermId> = text
        .lines()
        .filter_map(|line| read(&mut store, &world.signature, line, Some(TypeId::MOTION)).ok())
        .map(|typed| typed.term)
        .collect();
    // The verification compares normal forms; programs whose normal form is over the limits are not for it.
    let is_small = |&program: &language::TermId| {
        let trace = evaluate(&mut store, &world.signature, program);
        !matches!(trace, Err(EvaluateError::Normalize(_)))
    };
    let programs: Vec<language::TermId> = programs.into_iter().filter(is_small).collect();
    let corpus = Corpus::from_programs(&store, &world.signature, &programs)
        .map_err(|error| format!("well-typed programs are a bad corpus: {error}"))?;
    match checked(&corpus, &config(text), text)? {
        Some(_) => Ok(Outcome::Accepted),
        None => Ok(Outcome::Refused),
    }
}

/// Compresses and checks what holds for every corpus; nothing for one without programs.
fn checked(corpus: &Corpus, config: &Config, text: &str) -> Result<Option<Compression>, String> {
    let run = |config: &Config| compress(corpus, config, &|_| ());
    let Ok(found) = run(config) else {
        return ensure(corpus.is_empty(), || "a corpus is refused".into()).map(|()| None);
    };
    verify(corpus, &found).map_err(|error| format!("{error}; with {config:?}"))?;
    ensure(total(&found) <= found.original_cost * (1.0 + 1e-9) + 1e-6, || {
        format!("the cost grew from {} to {}, with {config:?}", found.original_cost, total(&found))
    })?;
    for abstraction in &found.abstractions {
        ensure(abstraction.arity <= config.max_arity, || format!("{abstraction:?} has too many parameters"))?;
    }
    if one_in(16, text) {
        let parallel = run(&Config { threads: 2, ..config.clone() }).map_err(|error| error.to_string())?;
        let same = parallel.rewritten == found.rewritten && parallel.abstractions == found.abstractions;
        ensure(same, || format!("two threads give another result, with {config:?}"))?;
    }
    Ok(Some(found))
}

fn config(text: &str) -> Config {
    let mut hash = hash(text);
    let mut below = |bound: u64| {
        hash = hash.rotate_left(17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 33) % bound
    };
    let long = text.len() > LONG;
    Config {
        max_arity: below(4) as usize,
        rounds: if long { 1 } else { 1 + below(4) as usize },
        per_round: 1 + below(3) as usize,
        cost: [CostKind::Stitch, CostKind::Nats, CostKind::UniformNats][below(3) as usize],
        min_gain: [0.0, 1.0, 4.0][below(3) as usize],
        lookahead: [0.0, 0.0, 1.5][below(3) as usize],
        threads: 1,
        max_steps: Some(if long { 20 } else { 5000 }),
        max_memory: compression::DEFAULT_MAX_MEMORY,
        time_limit: None,
        rules: Rules {
            argument_capture: below(4) > 0,
            redundant_argument: below(4) > 0,
            single_place: below(4) > 0,
            exhausted_arity: below(4) > 0,
            overlap: below(2) > 0,
            ..Rules::default()
        },
    }
}

fn no_rules() -> Rules {
    Rules {
        argument_capture: false,
        redundant_argument: false,
        single_place: false,
        spent_rows: false,
        exhausted_arity: false,
        overlap: false,
    }
}

/// Stitch's cost, counted here once more: terminal 100, application and λ 1.
fn stitch_cost(text: &str) -> Option<u64> {
    let mut terms = Terms::new();
    let mut open: Vec<TermId> = vec![sexpr::parse(&mut terms, text, Params::Allow).ok()?];
    let mut cost = 0;
    while let Some(id) = open.pop() {
        cost += match terms.get(id) {
            Term::App(..) | Term::Lam(..) => 1,
            Term::Symbol(_) | Term::Var(..) | Term::Param(_) => 100,
        };
        open.extend(terms.children(id));
    }
    Some(cost)
}
