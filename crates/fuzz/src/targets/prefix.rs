//! The incremental checker on sequences of tokens, against inference on the whole.
//!
//! Tokens are written as words – `place/2 "bowl"/0 in/1 "basket"/0`, `lam:Lang`, `apply/1`, `seq … end` – so that the same
//! generators and mutations serve here. Words that are no token are literals.

use std::collections::BTreeMap;

use language::{
    Generator, Head, Index, JointVector, Literal, PrefixChecker, TermStore, Token, TokenError, TypeId, Vector6, check,
    parse_type, term_of, tokens_of,
};

use super::{Outcome, Target, Verdict, World, ensure};
use crate::inputs::Source;
use crate::random::Random;

/// The annotations that a λ may have. A checker knows the types that its store had when it was made, and no later ones.
type Annotations = BTreeMap<String, TypeId>;

/// The prefix checker.
pub(super) fn prefix() -> Target {
    let (world, annotations) = annotated_world();
    let constants = world.constants();
    let mut words: Vec<String> =
        constants.iter().flat_map(|name| (0..4).map(move |args| format!("{name}/{args}"))).collect();
    // As many of the structural words as of all constants, or else soup is made of constants only.
    for _ in 0..12 {
        words.extend(
            [
                "seq",
                "end",
                "end",
                "repeat",
                "branch",
                "lam",
                "lam:Lang",
                "lam:Motion",
                "lam:a",
                "lam:a->b",
                "apply/1",
                "apply/2",
                "$0/0",
                "$0/1",
                "$1/0",
                "$7/0",
                "\"b\"/0",
                "3/0",
                "true/0",
                "pose/0",
                "$0/4294967295",
                "\"b\"/1",
            ]
            .map(String::from),
        );
    }
    let checker = PrefixChecker::new(&world.store, &world.signature, TypeId::MOTION);
    let (generator, generator_annotations) = annotated_world();
    let walker = checker.clone();
    let vocabulary = words.clone();
    let mut random = Random::new(0, "seeds", 0);
    let seeds = (0..100).map(|_| written(&world, &mut random)).collect();
    Target {
        name: "prefix",
        cost: 1,
        source: Source {
            words,
            seeds,
            nests: &[
                ("lam ", "$0/0", ""),
                ("seq ", "seq end", " end"),
                ("seq lam ", "$0/0", " end"),
                ("seq move/1 still/0 ", "end", ""),
                ("repeat ", "seq end", " 2/0"),
                ("branch true/0 ", "seq end", " seq end"),
                ("apply/1 lam ", "$0/0", " $0/0"),
                ("twice/2 lam $0/0 ", "seq end", ""),
                ("const/2 ", "seq end", " lam lam $1/0"),
                ("twice/1 ", "const/0", ""),
            ],
            grammar: Box::new(move |random| match random.below(3) {
                0 => walk(&generator, &generator_annotations, &walker, &vocabulary, random),
                _ => written(&generator, random),
            }),
        },
        check: Box::new(move |text| check_prefix(&world, &annotations, &checker, text)),
    }
}

fn annotated_world() -> (World, Annotations) {
    const BASES: [&str; 9] = ["a", "Lang", "Motion", "Pose", "Nat", "Bool", "Twist", "Wrench", "GripperPhase"];
    let mut world = World::new();
    let functions = BASES.iter().flat_map(|from| BASES.iter().map(move |to| format!("{from}->{to}")));
    let others = ["a->b", "(a->b)->a", "(Motion->Motion)->Motion", "(a->b)->(b->a)->a->c"];
    let texts = BASES.iter().chain(&others).map(|text| text.to_string()).chain(functions);
    let types = world.store.types_mut();
    let annotations = texts.filter_map(|text| Some((text.clone(), parse_type(types, &text).ok()?))).collect();
    (world, annotations)
}

/// The tokens of a well-typed program, sometimes cut short.
fn written(world: &World, random: &mut Random) -> String {
    let mut store = world.store.clone();
    let budget = random.magnitude(60) as u32;
    let Ok(Some(term)) = Generator::new(random.next()).term(&mut store, &world.signature, TypeId::MOTION, budget)
    else {
        return String::new();
    };
    let mut words: Vec<String> = tokens_of(&store, term).into_iter().map(|token| word_of(&store, token)).collect();
    if random.once_in(4) {
        words.truncate(random.below(words.len() + 1));
    }
    words.join(" ")
}

/// A random walk among the tokens that the checker allows.
fn walk(
    world: &World,
    annotations: &Annotations,
    checker: &PrefixChecker,
    vocabulary: &[String],
    random: &mut Random,
) -> String {
    let mut store = world.store.clone();
    let mut checker = checker.clone();
    let mut state = checker.start();
    let mut words = Vec::new();
    for _ in 0..random.magnitude(40) {
        let allowed = (0..12).find_map(|_| {
            let word = random.pick(vocabulary)?;
            let next = checker.step(&state, token_of(&mut store, annotations, word)).ok()?;
            Some((word.clone(), next))
        });
        let Some((word, next)) = allowed else { break };
        words.push(word);
        state = next;
    }
    words.join(" ")
}

fn check_prefix(world: &World, annotations: &Annotations, checker: &PrefixChecker, text: &str) -> Verdict {
    let (mut store, mut checker) = (world.store.clone(), checker.clone());
    let tokens: Vec<Token> = text.split_whitespace().map(|word| token_of(&mut store, annotations, word)).collect();
    let mut state = checker.start();
    let mut refusal = None;
    for (at, &token) in tokens.iter().enumerate() {
        let allowed = checker.allowed(&state, &[token]) == [true];
        match checker.step(&state, token) {
            Ok(next) => state = next,
            Err(error) => refusal = Some((at, error.to_string())),
        }
        ensure(allowed == refusal.is_none(), || format!("`allowed` and `step` disagree on token {at}"))?;
        if refusal.is_some() {
            break;
        }
    }
    ensure(state.is_complete() == checker.wanted(&state).is_none() || refusal.is_some(), || {
        "a complete term wants more".into()
    })?;
    let term = term_of(&mut store, &tokens);
    let typed = match &term {
        Ok(term) => check(&mut store, &world.signature, *term, TypeId::MOTION).is_ok(),
        Err(_) => false,
    };
    match refusal {
        Some((at, message)) => {
            ensure(!typed, || format!("token {at} of a well-typed term is refused: {message}"))?;
            Ok(Outcome::Refused)
        }
        None if state.is_complete() => {
            ensure(typed, || format!("an ill-typed term is accepted: {term:?}"))?;
            Ok(Outcome::Accepted)
        }
        None => {
            ensure(term == Err(TokenError::Truncated), || format!("an incomplete term is {term:?}"))?;
            Ok(Outcome::Accepted)
        }
    }
}

fn word_of(store: &TermStore, token: Token) -> String {
    match token {
        Token::Head { head, args } => match head {
            Head::Constant(name) => format!("{}/{args}", store.spelling(name)),
            Head::Variable(index) => format!("${}/{args}", index.0),
            Head::Literal(Literal::Natural(value)) => format!("{value}/{args}"),
            Head::Literal(Literal::Boolean(value)) => format!("{value}/{args}"),
            Head::Literal(Literal::Text(_)) => format!("\"b\"/{args}"),
            Head::Literal(Literal::Pose(_)) => format!("pose/{args}"),
            Head::Literal(Literal::Twist(_)) => format!("twist/{args}"),
            Head::Literal(Literal::Wrench(_)) => format!("wrench/{args}"),
            Head::Literal(Literal::Joints(_)) => format!("joints/{args}"),
        },
        Token::Lambda(None) => "lam".into(),
        Token::Lambda(Some(annotation)) => format!("lam:{}", store.types().show(annotation).replace(' ', "")),
        Token::Apply { args } => format!("apply/{args}"),
        Token::Seq => "seq".into(),
        Token::EndSeq => "end".into(),
        Token::Repeat => "repeat".into(),
        Token::Branch => "branch".into(),
    }
}

fn token_of(store: &mut TermStore, annotations: &Annotations, word: &str) -> Token {
    let (stem, args) = word.rsplit_once('/').unwrap_or((word, ""));
    let args: u32 = args.parse().unwrap_or(args.len() as u32);
    let literal = |literal| Token::Head { head: Head::Literal(literal), args };
    let zero = Vector6::new([0.0; 6]);
    match (stem, zero) {
        ("seq", _) => Token::Seq,
        ("end", _) => Token::EndSeq,
        ("repeat", _) => Token::Repeat,
        ("branch", _) => Token::Branch,
        ("apply", _) => Token::Apply { args },
        ("lam", _) => Token::Lambda(None),
        ("true" | "false", _) => literal(Literal::Boolean(stem == "true")),
        ("pose", Ok(zero)) => literal(Literal::Pose(zero)),
        ("twist", Ok(zero)) => literal(Literal::Twist(zero)),
        ("wrench", Ok(zero)) => literal(Literal::Wrench(zero)),
        ("joints", _) => JointVector::new(&[0.0; 6]).map_or(Token::Seq, |zero| literal(Literal::Joints(zero))),
        _ => {
            if let Some(annotation) = stem.strip_prefix("lam:") {
                return Token::Lambda(annotations.get(annotation).copied());
            }
            if let Some(index) = stem.strip_prefix('$') {
                let index = Index(index.parse().unwrap_or(index.len() as u32));
                return Token::Head { head: Head::Variable(index), args };
            }
            if let Ok(value) = stem.parse() {
                return literal(Literal::Natural(value));
            }
            match store.find_name(stem) {
                Some(name) => Token::Head { head: Head::Constant(name), args },
                None => {
                    let text = store.text_literal(stem.trim_matches('"'));
                    Token::Head { head: Head::Literal(text), args }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_tokens_are_inverse() {
        let (mut world, annotations) = annotated_world();
        for word in prefix().source.words {
            let token = token_of(&mut world.store, &annotations, &word);
            let again = word_of(&world.store, token);
            assert_eq!(token_of(&mut world.store, &annotations, &again), token, "{word}");
        }
    }
}
