//! `verify` reads a compression as a stranger would, and notices what is wrong with it.

use compression::{Compression, Corpus, CostKind, VerifyError, verify};
use language::{Signature, TermStore};

use crate::corpora::{compressed, config, corpus};

fn compression() -> (Corpus, Compression) {
    let corpus = corpus(&["(f (g a) (g b))", "(f (g c) (g d))", "(f (g e) (g e))"]);
    let compression = compressed(&corpus, &config(CostKind::Stitch, 2, 1));
    verify(&corpus, &compression).unwrap();
    (corpus, compression)
}

fn typed() -> (Corpus, Compression) {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    let programs: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|name| format!(r#"seq[pick "{name}", place "{name}" (in "basket")]"#))
        .iter()
        .map(|text| language::parse(&mut store, &signature, text).unwrap().term)
        .collect();
    let corpus = Corpus::from_programs(&store, &signature, &programs).unwrap();
    let compression = compressed(&corpus, &config(CostKind::Stitch, 1, 1));
    assert_eq!(compression.abstractions[0].body, r#"\x0. seq[pick x0, place x0 (in "basket")]"#);
    verify(&corpus, &compression).unwrap();
    (corpus, compression)
}

#[test]
fn a_changed_body_is_noticed() {
    let (corpus, mut changed) = compression();
    changed.abstractions[0].body = "(f (g #1) (g #0))".into();
    let error = verify(&corpus, &changed).unwrap_err();
    let expected = VerifyError::Differs { index: 0, found: "(f (g b) (g a))".into(), wanted: "(f (g a) (g b))".into() };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "program 0 inlines to `(f (g b) (g a))`, but it was `(f (g a) (g b))`");

    let (corpus, mut changed) = typed();
    changed.abstractions[0].body = r#"\x0. seq[pick x0, place x0 (on "basket")]"#.into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Differs { index: 0, .. })));
    changed.abstractions[0].body = r"\x0. pick (pick x0)".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));
}

#[test]
fn a_body_with_too_many_parameters_or_none_at_all_is_noticed() {
    let (corpus, mut changed) = compression();
    changed.abstractions[0].body = "(f (g #0) (g #2))".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));
    changed.abstractions[0].body = "(f (g #0".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));
    changed.abstractions.clear();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Differs { index: 0, .. })));
}

#[test]
fn a_changed_program_is_noticed() {
    let (corpus, mut changed) = compression();
    changed.rewritten[1] = "(fn_0 c e)".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Differs { index: 1, .. })));
    changed.rewritten[1] = "(fn_0 c #0)".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Program { index: 1, .. })));

    let (corpus, mut changed) = typed();
    changed.rewritten[2] = r#"fn_0 "x""#.into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Differs { index: 2, .. })));
    changed.rewritten[2] = "fn_0 nonsense".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Program { index: 2, .. })));
}

#[test]
fn a_missing_program_is_noticed() {
    let (corpus, mut changed) = compression();
    changed.rewritten.pop();
    assert_eq!(verify(&corpus, &changed), Err(VerifyError::Count { found: 2, wanted: 3 }));
}

#[test]
fn a_circular_library_is_noticed() {
    let (corpus, mut changed) = compression();
    changed.abstractions[0].body = "(fn_0 #0 #1)".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));
    let mut other = changed.abstractions[0].clone();
    changed.abstractions[0].body = "(fn_1 #0 #1)".into();
    other.name = "fn_1".into();
    changed.abstractions.push(other);
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));

    let (corpus, mut changed) = typed();
    changed.abstractions[0].body = r"\x0. fn_0 x0".into();
    assert!(matches!(verify(&corpus, &changed), Err(VerifyError::Body { .. })));
}
