//! What is fuzzed: each target reads a text, says whether it was accepted, and checks what must hold of it.
//!
//! Every input meets a fresh copy of the same small world – the default signature and a library with polymorphic entries –
//! so that a failure depends on nothing but its input.

mod compressing;
mod damaging;
mod libraries;
mod prefix;
mod reading;

use std::fmt::Display;

use language::{Signature, TermStore, parse};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use crate::inputs::Source;

/// What a target made of an input. An error is a property that does not hold.
pub(crate) type Verdict = Result<Outcome, String>;

/// Whether an input was good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was read.
    Accepted,
    /// It was refused with an error that can be shown.
    Refused,
}

/// One target.
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: &'static str,
    /// How many inputs of a parser one input of this target stands for.
    pub(crate) cost: u64,
    /// Where its inputs come from.
    pub(crate) source: Source,
    /// What is checked.
    pub(crate) check: Box<dyn Fn(&str) -> Verdict + Send + Sync>,
}

/// Every target, in the order of the summary.
pub(crate) fn all() -> Vec<Target> {
    vec![
        reading::program(),
        reading::type_text(),
        reading::instruction(),
        reading::s_expression(),
        prefix::prefix(),
        libraries::library(),
        damaging::dataset(),
        damaging::video(),
        damaging::picture(),
        damaging::message(),
        compressing::s_expressions(),
        compressing::programs(),
        compressing::pruning(),
    ]
}

/// The default signature and a small library.
struct World {
    store: TermStore,
    signature: Signature,
}

impl World {
    /// The primitives alone.
    fn without_library() -> World {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        World { store, signature }
    }

    fn new() -> World {
        let World { mut store, mut signature } = World::without_library();
        for (name, source) in [
            ("f0", r"\x. \p. seq[pick x, place x p]"),
            ("twice", r"\f. \x. f (f x)"),
            ("const", r"\x. \y. x"),
            ("f1", r#"\x. repeat(twice (\m. seq[m, f0 x (in "basket")]) (open x), 2)"#),
        ] {
            // Were one of these refused, the share of accepted inputs would fall, and a test watches over that.
            if let Ok(parsed) = parse(&mut store, &signature, source) {
                let _ = signature.define(&mut store, name, parsed.term);
            }
        }
        World { store, signature }
    }

    /// The names of all constants.
    fn constants(&self) -> Vec<String> {
        let spelling = |entry: &language::Entry| self.store.spelling(entry.name).to_string();
        self.signature.entries().iter().map(spelling).collect()
    }
}

/// Fails with a message unless the condition holds.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(message()),
    }
}

/// An error can be shown: it has a message, and its labels lie within the source, between characters.
fn showable(error: &(impl Diagnostic + Display), source: &str) -> Result<(), String> {
    ensure(!error.to_string().is_empty(), || "an error without a message".into())?;
    let _ = error.help().map(|help| help.to_string());
    for label in error.labels().into_iter().flatten() {
        let (start, end) = (label.offset(), label.offset().saturating_add(label.len()));
        ensure(source.is_char_boundary(start) && source.is_char_boundary(end), || {
            format!("the label {start}..{end} of \"{error}\" is not between characters of the source")
        })?;
    }
    for related in error.related().into_iter().flatten() {
        for label in related.labels().into_iter().flatten() {
            let (start, end) = (label.offset(), label.offset().saturating_add(label.len()));
            ensure(source.is_char_boundary(start) && source.is_char_boundary(end), || {
                format!("the label {start}..{end} of \"{related}\" is not between characters of the source")
            })?;
        }
    }
    Ok(())
}

/// The error drawn over its source, as users see it. Slow, so only a share of the errors is drawn.
fn drawable(error: &dyn Diagnostic) -> Result<(), String> {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .render_report(&mut text, error)
        .map_err(|_| format!("\"{error}\" cannot be drawn over its source"))
}

/// A share of the inputs, chosen by their content so that it does not depend on the order.
fn one_in(times: u64, input: &str) -> bool {
    (hash(input) >> 20).is_multiple_of(times)
}

/// FNV-1a.
fn hash(input: &str) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    input.bytes().fold(0xcbf2_9ce4_8422_2325, add)
}
