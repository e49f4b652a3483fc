//! Ablation A1: fragments as programs, compared by their syntax.
//!
//! A fragment is a run-length program over the 17 motor symbols, `seq[repeat(move x_pos, 5), …]`. The least general
//! generalisation of two programs keeps what they share from the front: a run with the same symbol and count whole, one with
//! another count or another symbol with a variable in its place. Their distance is what it loses:
//!
//! ```text
//! d(p, q) = |p| + |q| − 2 |lgg(p, q)| ,   |p| in constructors, symbols and counts
//! ```
//! KMeans needs vectors: a program is described by its distances to programs of training fragments, evenly chosen. (The
//! paper does not say how it clusters by such a distance.)

use language::{MotorSymbol, quantize};

use crate::cycle::demonstrations::rows;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Training programs to which distances are measured.
const LANDMARKS: usize = 128;

/// Commands of this magnitude or less are no motion, as in the strict motor cell.
const DEAD_BAND: f64 = 0.05;

/// A run-length program: symbols with their counts.
type Program = Vec<(MotorSymbol, usize)>;

/// All held-out fragments by their distances to training programs.
///
/// # Errors
/// On actions that are not three translations, three rotations and perhaps a gripper.
pub(super) fn syntactic(prepared: &Prepared) -> Result<Embeddings> {
    let every = prepared.training.len().div_ceil(LANDMARKS).max(1);
    let landmarks: Vec<Program> = (prepared.training.iter().step_by(every))
        .map(|(_, fragment)| program(prepared, fragment.frames))
        .collect::<Result<_>>()?;
    let mut values = Vec::new();
    for (_, fragment) in prepared.held_out.index.iter() {
        let own = program(prepared, fragment.frames)?;
        values.extend(landmarks.iter().map(|other| distance(&own, other) as f32));
    }
    Ok(Embeddings { values, width: landmarks.len() })
}

fn program(prepared: &Prepared, frames: std::ops::Range<usize>) -> Result<Program> {
    let actions = rows(&prepared.source.dataset, &frames)?;
    let rows: Vec<Vec<f64>> = actions.rows().map(|row| row.iter().copied().map(f64::from).collect()).collect();
    let symbols = quantize(&rows, DEAD_BAND).map_err(|error| {
        Error::Mismatch(format!("the actions of `{}` are not motor symbols: {error}", prepared.source.name))
    })?;
    Ok(runs(&symbols))
}

fn runs(symbols: &[MotorSymbol]) -> Program {
    let mut runs: Program = Vec::new();
    for symbol in symbols {
        match runs.last_mut() {
            Some((last, count)) if last == symbol => *count += 1,
            _ => runs.push((*symbol, 1)),
        }
    }
    runs
}

/// What the least general generalisation of two programs loses.
fn distance(one: &Program, other: &Program) -> usize {
    // A run is a place in the sequence, `repeat`, a symbol and a count.
    const RUN: usize = 4;
    let shared = |((symbol, count), (of, times)): (&(MotorSymbol, usize), &(MotorSymbol, usize))| {
        2 + usize::from(symbol == of) + usize::from(count == times)
    };
    let common: usize = one.iter().zip(other).map(shared).sum();
    RUN * (one.len() + other.len()) - 2 * common
}

#[cfg(test)]
mod tests {
    use MotorSymbol::{GripClose, XPos, YNeg};

    use super::*;

    #[test]
    fn a_distance_is_what_generalising_loses() {
        let of = |symbols: &[MotorSymbol]| runs(symbols);
        let one = of(&[XPos, XPos, XPos, YNeg]);
        assert_eq!(one, [(XPos, 3), (YNeg, 1)]);
        assert_eq!(distance(&one, &one), 0);
        assert_eq!(distance(&one, &of(&[XPos, XPos, YNeg])), 2, "a count is lost on both sides");
        assert_eq!(distance(&one, &of(&[GripClose, GripClose, GripClose, YNeg])), 2, "a symbol is");
        assert_eq!(distance(&one, &of(&[XPos, XPos, XPos])), 4, "a run is too much");
        let other = of(&[GripClose, XPos]);
        assert_eq!(distance(&one, &other), distance(&other, &one));
    }
}
