//! The parsers of programs, types, instructions and s-expressions, and everything that a text goes through once read.

use compression::sexpr::{self, Params};
use compression::term::Terms;
use language::{
    DEFAULT_PRIM_TYPES, EvaluateError, Generator, KEYWORDS, Limits, TermId, TermStore, TypeId, check, evaluate,
    evaluate_within, infer, instruction, parse, parse_scheme, parse_type, pretty, print, read, show_trace, term_of,
    tokens_of,
};

use super::{Outcome, Target, Verdict, World, drawable, ensure, one_in, showable};
use crate::grammar;
use crate::inputs::Source;
use crate::random::Random;

/// The instructions of LIBERO: every quoted string of these files that is not a key.
const LIBERO: [&str; 2] = [
    include_str!("../../../language/fixtures/libero_instructions.json"),
    include_str!("../../../language/fixtures/libero_90_instructions.json"),
];

/// Programs: parser, printer, type checker and evaluator.
pub(super) fn program() -> Target {
    let world = World::new();
    let constants = world.constants();
    let mut words = constants.clone();
    words.extend(KEYWORDS.map(String::from));
    words.extend(
        [
            "\\x.",
            "λy:",
            ".",
            ":",
            ",",
            "(",
            ")",
            "[",
            "]",
            "->",
            "→",
            "∀",
            "forall",
            "a",
            "Lang",
            "x",
            "y",
            "\"b\"",
            "\"",
            "\"\\u{e9}\"",
            "3",
            "-1.5e3",
            "18446744073709551616",
            "$0",
            "$4294967296",
            "# c",
            "\n",
            "é",
            "seq[",
            "repeat(",
            "branch(",
            "pose[0,0,0,0,0,0]",
            "joints[0, 1]",
            "twist[1, 2, 3",
            "seq[]",
        ]
        .map(String::from),
    );
    let seeds = seeds_of(&world);
    let generator = World::new();
    Target {
        name: "program",
        cost: 1,
        source: Source {
            words,
            seeds,
            nests: &[
                ("(", "seq[]", ")"),
                ("\\x.", "x", ""),
                ("\\x:(", "Lang", "). x"),
                ("seq[", "pick \"a\"", "]"),
                ("seq[move still, ", "seq[]", "]"),
                ("repeat(", "move still", ", 2)"),
                ("branch(true, ", "seq[]", ", seq[])"),
                ("branch(", "true", ""),
                ("pick (", "\"a\"", ")"),
                ("not (", "true", ")"),
                ("(\\x. x) (", "seq[]", ")"),
                ("twice (", "\\m. m", ")"),
                ("pick ", "\"a\"", ""),
                ("seq[], ", "seq[]", ","),
                ("pose[", "0", "]"),
                ("\"", "a", "\""),
                ("# ", "a", "\n"),
                ("9", "9", "9"),
            ],
            grammar: Box::new(move |random| match random.below(3) {
                0 => grammar::program(random, &constants),
                _ => generated(&generator, random),
            }),
        },
        check: Box::new(move |text| check_program(&world, text)),
    }
}

/// Types and type schemes.
pub(super) fn type_text() -> Target {
    let words = [
        "a",
        "b",
        "z",
        "a1",
        "Lang",
        "Motion",
        "Pose",
        "Nat",
        "Bool",
        "Twist",
        "Wrench",
        "GripperPhase",
        "lang",
        "->",
        "→",
        "(",
        ")",
        "forall",
        "∀",
        ".",
        "#",
        "\n",
        "A",
        "1",
        "é",
        "[",
        ",",
        "a'",
    ];
    Target {
        name: "type",
        cost: 1,
        source: Source {
            words: words.map(String::from).to_vec(),
            seeds: DEFAULT_PRIM_TYPES.map(|(_, type_text, _)| type_text.to_string()).to_vec(),
            nests: &[
                ("(", "a", ")"),
                ("a -> ", "a", ""),
                ("(", "a", " -> a)"),
                ("forall a. ", "a", ""),
                ("(a -> b) -> ", "a", ""),
                ("a ", "a", " a"),
            ],
            grammar: Box::new(grammar::type_text),
        },
        check: Box::new(check_type),
    }
}

/// Instructions in English.
pub(super) fn instruction() -> Target {
    let mut world = World::new();
    world.signature.declare_general(&mut world.store);
    let mut words: Vec<String> = instruction::lexicon_words().map(String::from).collect();
    words.extend(
        ["it", "them", "'s", ",", ".", "KITCHEN_SCENE3", "_", "demo", "bowls", "flurb", "é", "'"].map(String::from),
    );
    Target {
        name: "instruction",
        cost: 1,
        source: Source {
            words,
            seeds: LIBERO.iter().flat_map(|file| quoted(file)).map(String::from).collect(),
            nests: &[
                ("put the bowl on the ", "plate", ""),
                ("put the bowl ", "on the plate", " and close it"),
                ("put the bowl in the drawer of the ", "cabinet", " of the drawer"),
                ("and ", "open the drawer", " and"),
                ("the ", "bowl", " bowl"),
                ("put both ", "bowls", " on the plates"),
                ("open the ", "cabinet", "'s drawer"),
                (",", "", "."),
            ],
            grammar: Box::new(grammar::instruction),
        },
        check: Box::new(move |text| check_instruction(&world, text)),
    }
}

/// S-expressions in Stitch's syntax.
pub(super) fn s_expression() -> Target {
    let words = [
        "(",
        ")",
        "lam",
        "lambda",
        "lam_1",
        "lam_65536",
        "lam_01",
        "lam_x",
        "$0",
        "$1",
        "$65535",
        "$65536",
        "$0_1",
        "$_",
        "$",
        "#0",
        "#1",
        "#",
        "#x",
        "f",
        "x",
        "1.5",
        "-0",
        "fn_0",
        "é",
        "\"",
        "(lam $0)",
        "()",
        "\n",
        "\u{a0}",
    ];
    let seeds = [
        "(C (T (T (T l (M 3 (/ pi 2) 0 -2)) (M 1 0 0 0)) (M 1 0 0 0)) (T (T (T l (M 1 0 -0.5 0)) (M 2 0 0 0)) (M 1 0 0 1)))",
        "(T (repeat (T l (M 1 0 -0.5 0)) 6 (M 1 (/ (* 2 pi) 6) 0 0)) (M (/ 0.5 (tan (/ pi 6))) 0 0.5 0))",
        "(lam (logo_forLoop 6 (lam (lam (logo_FWRT (logo_MULL logo_UL $1) (logo_SUBA logo_UA logo_UA) $0))) $0))",
        "(Y (lam (lam (if (nil? $0) nil (cons (+ 2 (car $0) (car $0)) ($1 (cdr $0)))))))",
        "(a (lam_1 (a $0_1 $0_2)))",
        "((lam ($0 $0)) (lam ($0 $0)))",
        "(q (foo (foo (b a) (b a)) (foo (b a) (b a))))",
    ];
    Target {
        name: "s-expression",
        cost: 1,
        source: Source {
            words: words.map(String::from).to_vec(),
            seeds: seeds.map(String::from).to_vec(),
            nests: &[
                ("(", "a", ")"),
                ("(f ", "x", ")"),
                ("(lam ", "$0", ")"),
                ("(", "f", " x)"),
                ("(f (lam $0) ", "x", ")"),
                ("(lam (f $0 ", "x", "))"),
                ("f ", "x", " "),
            ],
            grammar: Box::new(|random| {
                let params = random.once_in(4);
                grammar::s_expression(random, params)
            }),
        },
        check: Box::new(check_s_expression),
    }
}

/// A well-typed program, printed on one line or on many.
pub(super) fn generated(world: &World, random: &mut Random) -> String {
    let mut store = world.store.clone();
    let budget = random.magnitude(60) as u32;
    let term = Generator::new(random.next()).term(&mut store, &world.signature, TypeId::MOTION, budget);
    match term {
        Ok(Some(term)) if random.once_in(2) => pretty(&store, term, random.magnitude(100)),
        Ok(Some(term)) => print(&store, term),
        _ => String::new(),
    }
}

/// Good programs.
pub(super) fn seeds_of(world: &World) -> Vec<String> {
    let mut random = Random::new(0, "seeds", 0);
    let mut seeds: Vec<String> = (0..100).map(|_| generated(world, &mut random)).collect();
    seeds.extend(
        [
            r#"seq[pick "alphabet soup", place "alphabet soup" (in "basket")]"#,
            r"\x:Lang. \p. seq[pick x, place x p]",
            r#"branch(not (is_open "drawer"), open "drawer", seq[])"#,
            "repeat(move twist[0.1, -0, 1e-3, 0, 0, 0], 5)",
            r"twice (\m. repeat(m, 3)) (grip grip_open)",
            r"(\f:Motion -> Motion. f (f (move still))) (\m. seq[m, m])",
            r#"f1 (at "drawer" top) # a comment"#,
        ]
        .map(String::from),
    );
    seeds
}

fn check_program(world: &World, text: &str) -> Verdict {
    let (mut store, signature) = (world.store.clone(), &world.signature);
    let parsed = match parse(&mut store, signature, text) {
        Ok(parsed) => parsed,
        Err(report) => {
            ensure(!report.errors.is_empty(), || "a report without errors".into())?;
            showable(&report, text)?;
            if text.len() < 10_000 && one_in(32, text) {
                drawable(&report)?;
            }
            return Ok(Outcome::Refused);
        }
    };
    let term = parsed.term;
    round_trips(world, &mut store, term)?;
    // Reading is parsing and then checking.
    let checked = check(&mut store, signature, term, TypeId::MOTION);
    let both = read(&mut store, signature, text, Some(TypeId::MOTION));
    ensure(checked.is_ok() == both.is_ok(), || "`read` and `check` disagree".into())?;
    if let Err(report) = both {
        showable(&report, text)?;
        if text.len() < 10_000 && one_in(32, text) {
            drawable(&report)?;
        }
    }
    let inferred = infer(&mut store, signature, term);
    ensure(inferred.is_ok() || checked.is_err(), || "a motion has no principal type".into())?;
    // The limit is the default one now and then; towers of `twice` reach any.
    let trace = match one_in(1024, text) {
        true => evaluate(&mut store, signature, term),
        false => evaluate_within(&mut store, signature, term, Limits { max_events: 10_000, max_steps: 20_000 }),
    };
    match trace {
        Ok(events) => {
            ensure(checked.is_ok(), || "an ill-typed term has a trace".into())?;
            let _ = show_trace(&store, &events);
        }
        Err(EvaluateError::IllTyped { .. }) => ensure(checked.is_err(), || "a well-typed term has no trace".into())?,
        Err(limit) => {
            ensure(checked.is_ok() && !limit.to_string().is_empty(), || "an ill-typed term was run".into())?;
        }
    }
    Ok(Outcome::Accepted)
}

/// What is printed is read back as the same term, and so are its tokens.
fn round_trips(world: &World, store: &mut TermStore, term: TermId) -> Result<(), String> {
    let width = store.size(term) as usize % 60;
    for printed in [print(store, term), pretty(store, term, width)] {
        let again = parse(store, &world.signature, &printed);
        ensure(again.is_ok_and(|parsed| parsed.term == term), || {
            format!("what is printed is not read back as the same term: {printed}")
        })?;
    }
    let tokens = tokens_of(store, term);
    ensure(term_of(store, &tokens) == Ok(term), || "tokens are not read back as the same term".into())
}

fn check_type(text: &str) -> Verdict {
    let mut store = TermStore::new();
    let types = store.types_mut();
    let mut outcome = Outcome::Refused;
    match parse_type(types, text) {
        Ok(id) => {
            outcome = Outcome::Accepted;
            let shown = types.show(id);
            ensure(parse_type(types, &shown) == Ok(id), || format!("the type is not read back: {shown}"))?;
        }
        Err(report) => {
            showable(&report, text)?;
            if text.len() < 10_000 && one_in(32, text) {
                drawable(&report)?;
            }
        }
    }
    match parse_scheme(types, text) {
        Ok(scheme) => {
            outcome = Outcome::Accepted;
            let shown = types.show_scheme(scheme);
            ensure(parse_scheme(types, &shown) == Ok(scheme), || format!("the scheme is not read back: {shown}"))?;
        }
        Err(report) => showable(&report, text)?,
    }
    Ok(outcome)
}

fn check_instruction(world: &World, text: &str) -> Verdict {
    let (mut store, signature) = (world.store.clone(), &world.signature);
    let term = match instruction::program(text, &mut store, signature) {
        Ok(term) => term,
        Err(error) => {
            showable(&error, text)?;
            if text.len() < 10_000 && one_in(32, text) {
                drawable(miette::Report::new(error).with_source_code(text.to_string()).as_ref())?;
            }
            return Ok(Outcome::Refused);
        }
    };
    let typed = check(&mut store, signature, term, TypeId::MOTION);
    ensure(typed.is_ok(), || format!("an ill-typed program: {}", print(&store, term)))?;
    round_trips(world, &mut store, term)?;
    // The plan writes the program that it builds.
    let written = instruction::plan(text).map(|plan| plan.to_string()).unwrap_or_default();
    let again = parse(&mut store, signature, &written);
    ensure(again.is_ok_and(|parsed| parsed.term == term), || format!("the plan says otherwise: {written}"))?;
    let trace = evaluate(&mut store, signature, term);
    ensure(!matches!(trace, Err(EvaluateError::IllTyped { .. })), || "the program has no trace".into())?;
    Ok(Outcome::Accepted)
}

fn check_s_expression(text: &str) -> Verdict {
    let mut outcome = Outcome::Refused;
    let mut terms = Terms::new();
    for params in [Params::Refuse, Params::Allow] {
        match sexpr::parse(&mut terms, text, params) {
            Ok(id) => {
                outcome = Outcome::Accepted;
                let printed = sexpr::print(&terms, id);
                ensure(sexpr::parse(&mut terms, &printed, params) == Ok(id), || {
                    format!("what is printed is not read back as the same term: {printed}")
                })?;
            }
            Err(error) => ensure(!error.to_string().is_empty(), || "an error without a message".into())?,
        }
    }
    Ok(outcome)
}

/// The strings of a JSON file that are not keys; none of these files has an escape.
fn quoted(file: &str) -> Vec<&str> {
    let parts: Vec<&str> = file.split('"').collect();
    let strings = parts.windows(2).skip(1).step_by(2);
    strings.filter(|pair| !pair[1].trim_start().starts_with(':')).map(|pair| pair[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_good() {
        let instructions: Vec<&str> = LIBERO.iter().flat_map(|file| quoted(file)).collect();
        assert_eq!(instructions.len(), 77 + 90);
        for target in [program(), type_text(), instruction(), s_expression()] {
            for seed in &target.source.seeds {
                assert_eq!((target.check)(seed), Ok(Outcome::Accepted), "{}: {seed}", target.name);
            }
        }
    }
}
