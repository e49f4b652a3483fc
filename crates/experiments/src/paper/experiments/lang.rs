//! Libraries of task language: what the paper's Lang cell and its ablations A3 and A4 measure.

use compression::{Library, Programs, RefactorConfig, Shape, Verdict, refactor};
use language::{TermStore, instruction};

use super::super::Bench;
use crate::cycle::corpus::{INSTRUCTED, primitives};
use crate::cycle::demonstrations::Demonstrations;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Candidates that a step judges, far more than there are.
const MOST: usize = 1000;

/// What a sleep step made of the instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Learned {
    /// Programs.
    pub(super) programs: usize,
    /// Entries that were admitted.
    pub(super) admitted: usize,
    /// By how many nats programs and library became shorter together.
    pub(super) nats: f64,
    /// Nats of a program after it over nats before it, the library's own included.
    pub(super) ratio: f64,
}

/// The instruction of every demonstration as a program: parsed by the grammar, or as one primitive with the sentence.
pub(super) fn instructions(bench: &Bench<'_>, prepared: &Prepared, parsed: bool) -> Result<Programs> {
    let demonstrations = Demonstrations::new(prepared, &bench.settings.run.cycle.segments)?;
    let mut store = TermStore::new();
    let mut base = primitives(&demonstrations, &mut store);
    let unexpected = |error: &dyn std::fmt::Display| Error::Mismatch(format!("internal error: {error}"));
    let (name, scheme, meaning) = INSTRUCTED;
    base.declare(&mut store, name, scheme, meaning).map_err(|error| unexpected(&error))?;
    let mut terms = Vec::new();
    for demonstration in &demonstrations.all {
        let text = &demonstration.instruction;
        let understood = parsed.then(|| instruction::understand(text, &mut store, &base).ok()).flatten();
        terms.push(match understood {
            Some(found) => found.term,
            None => {
                let sentence = store.text(text);
                store.call(name, &[sentence]).map_err(|error| unexpected(&error))?
            }
        });
    }
    Ok(Programs::new(&store, &base, &Library::new(), terms)?)
}

/// One sleep step on programs with a gate on description length alone: entries that save more than `min_gain` nats.
pub(super) fn learned(programs: &Programs, min_gain: f64) -> Result<Learned> {
    let config = RefactorConfig {
        max_admitted: MOST,
        max_judged: MOST,
        min_gain,
        shape: Shape::Any,
        ..RefactorConfig::default()
    };
    let step = refactor(programs, &config, |_, _| Verdict { admitted: true, figures: () })?;
    let (before, after) = (step.before.total(), step.after.total());
    Ok(Learned {
        programs: programs.len(),
        admitted: step.programs.library().len(),
        nats: before - after,
        ratio: after / before.max(f64::MIN_POSITIVE),
    })
}
