//! The run-length motor alphabet: action rows to 17 symbols, symbols to programs, and back.
//!
//! Twelve signed axes, standing still, and four gripper phases. A program is a sequence of runs, `repeat(move x_pos, 5)`,
//! and a run of one is the bare motion. One row of actions is one symbol, so positions in the unrolled program are
//! frames of the episode; a change of the gripper command outranks the motion of that frame.
//!
//! The paper gives the size of the alphabet (17), not its symbols; these are ours.

use thiserror::Error;

use crate::print::print;
use crate::term::{Literal, Term, TermError, TermId, TermStore};

/// The most symbols that [`motor_symbols`] unrolls.
pub const MAX_MOTOR_SYMBOLS: usize = 1 << 22;

/// A symbol of the motor alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MotorSymbol {
    /// Along +x.
    XPos,
    /// Along -x.
    XNeg,
    /// Along +y.
    YPos,
    /// Along -y.
    YNeg,
    /// Along +z.
    ZPos,
    /// Along -z.
    ZNeg,
    /// About +x.
    RollPos,
    /// About -x.
    RollNeg,
    /// About +y.
    PitchPos,
    /// About -y.
    PitchNeg,
    /// About +z.
    YawPos,
    /// About -z.
    YawNeg,
    /// No motion, and nothing known about the gripper.
    Still,
    /// The gripper command changes to open.
    GripOpen,
    /// The gripper command changes to closed.
    GripClose,
    /// No motion, gripper open.
    HoldOpen,
    /// No motion, gripper closed.
    HoldClosed,
}

impl MotorSymbol {
    /// All symbols: axes in the order of an action row, positive first, then the others.
    pub const ALL: [MotorSymbol; 17] = [
        MotorSymbol::XPos,
        MotorSymbol::XNeg,
        MotorSymbol::YPos,
        MotorSymbol::YNeg,
        MotorSymbol::ZPos,
        MotorSymbol::ZNeg,
        MotorSymbol::RollPos,
        MotorSymbol::RollNeg,
        MotorSymbol::PitchPos,
        MotorSymbol::PitchNeg,
        MotorSymbol::YawPos,
        MotorSymbol::YawNeg,
        MotorSymbol::Still,
        MotorSymbol::GripOpen,
        MotorSymbol::GripClose,
        MotorSymbol::HoldOpen,
        MotorSymbol::HoldClosed,
    ];

    /// The primitive of the default signature.
    pub fn name(self) -> &'static str {
        match self {
            MotorSymbol::XPos => "x_pos",
            MotorSymbol::XNeg => "x_neg",
            MotorSymbol::YPos => "y_pos",
            MotorSymbol::YNeg => "y_neg",
            MotorSymbol::ZPos => "z_pos",
            MotorSymbol::ZNeg => "z_neg",
            MotorSymbol::RollPos => "roll_pos",
            MotorSymbol::RollNeg => "roll_neg",
            MotorSymbol::PitchPos => "pitch_pos",
            MotorSymbol::PitchNeg => "pitch_neg",
            MotorSymbol::YawPos => "yaw_pos",
            MotorSymbol::YawNeg => "yaw_neg",
            MotorSymbol::Still => "still",
            MotorSymbol::GripOpen => "grip_open",
            MotorSymbol::GripClose => "grip_close",
            MotorSymbol::HoldOpen => "hold_open",
            MotorSymbol::HoldClosed => "hold_closed",
        }
    }

    /// The unit twist of the symbol; zero for standing still and for the gripper.
    pub fn direction(self) -> [f64; 6] {
        let mut direction = [0.0; 6];
        let position = self as usize;
        if let Some(component) = direction.get_mut(position / 2) {
            *component = if position.is_multiple_of(2) { 1.0 } else { -1.0 };
        }
        direction
    }

    /// Whether the symbol is a gripper phase rather than a twist.
    pub fn is_gripper(self) -> bool {
        self > MotorSymbol::Still
    }

    /// The motion of one step: `move x_pos` or `grip grip_close`.
    fn motion(self, store: &mut TermStore) -> Result<TermId, TermError> {
        let symbol = store.call(self.name(), &[])?;
        store.call(if self.is_gripper() { "grip" } else { "move" }, &[symbol])
    }
}

/// A row of actions or a program that does not fit the alphabet.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MotorError {
    /// A row of the wrong length.
    #[error("action row {row} has {found} numbers, wanted 7, or 6 without a gripper, in all rows alike")]
    WrongLength {
        /// The row.
        row: usize,
        /// Its length.
        found: usize,
    },
    /// NaN or an infinity.
    #[error("action row {row} has {value} in column {column}, wanted a finite number; remove the frame or repair it")]
    NotFinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The number.
        value: f64,
    },
    /// A dead-band that is no magnitude.
    #[error("the dead-band is {value}, wanted a finite number that is not negative")]
    BadDeadBand {
        /// The number.
        value: f64,
    },
    /// A term that is no run-length program.
    #[error("found `{found}`, wanted `move`, `grip` or a `repeat` of one of them")]
    NotMotor {
        /// The part that is not.
        found: String,
    },
    /// Too many symbols.
    #[error("the program has more than {MAX_MOTOR_SYMBOLS} steps; lower its counts")]
    TooLong,
}

/// Rows of actions to symbols, one for each row.
///
/// A row is three translations, three rotations and, optionally, the gripper command (negative open, positive closed;
/// zero keeps what was commanded before). The largest of the six magnitudes decides, the first one in a tie, if it is
/// above the dead-band. LIBERO's actions are normalised to [-1, 1] on all axes, so translations and rotations compare.
pub fn quantize<R: AsRef<[f64]>>(rows: &[R], dead_band: f64) -> Result<Vec<MotorSymbol>, MotorError> {
    if !(dead_band.is_finite() && dead_band >= 0.0) {
        return Err(MotorError::BadDeadBand { value: dead_band });
    }
    let width = rows.first().map_or(7, |row| row.as_ref().len());
    let mut closed: Option<bool> = None;
    let mut symbols = Vec::with_capacity(rows.len());
    for (row, values) in rows.iter().enumerate() {
        let values = values.as_ref();
        if values.len() != width || !(6..=7).contains(&width) {
            return Err(MotorError::WrongLength { row, found: values.len() });
        }
        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
            return Err(MotorError::NotFinite { row, column, value: values[column] });
        }
        let command = values.get(6).map(|&value| match value {
            _ if value > 0.0 => true,
            _ if value < 0.0 => false,
            _ => closed.unwrap_or(false),
        });
        let changed = closed.is_some() && command != closed;
        closed = command;
        symbols.push(match (command, changed, dominant(&values[..6], dead_band)) {
            (Some(true), true, _) => MotorSymbol::GripClose,
            (Some(false), true, _) => MotorSymbol::GripOpen,
            (_, _, Some(symbol)) => symbol,
            (Some(true), _, None) => MotorSymbol::HoldClosed,
            (Some(false), _, None) => MotorSymbol::HoldOpen,
            (None, _, None) => MotorSymbol::Still,
        });
    }
    Ok(symbols)
}

/// The run-length program of a sequence of symbols.
pub fn motor_program(store: &mut TermStore, symbols: &[MotorSymbol]) -> Result<TermId, TermError> {
    let mut runs = Vec::new();
    for run in symbols.chunk_by(|left, right| left == right) {
        let motion = run[0].motion(store)?;
        runs.push(match run.len() {
            1 => motion,
            length => {
                let count = store.natural(length as u64);
                store.repeat(motion, count)?
            }
        });
    }
    store.seq(&runs)
}

/// The symbols of a run-length program: the inverse of [`motor_program`].
pub fn motor_symbols(store: &TermStore, program: TermId) -> Result<Vec<MotorSymbol>, MotorError> {
    let runs = match store.get(program) {
        Term::Seq(items) => items.to_vec(),
        _ => vec![program],
    };
    let mut symbols = Vec::new();
    for run in runs {
        let (motion, count) = match *store.get(run) {
            Term::Repeat(motion, count) => match *store.get(count) {
                Term::Literal(Literal::Natural(count)) => (motion, count),
                _ => {
                    return Err(MotorError::NotMotor { found: print(store, run) });
                }
            },
            _ => (run, 1),
        };
        let symbol = symbol_of(store, motion).ok_or_else(|| MotorError::NotMotor { found: print(store, motion) })?;
        let room = MAX_MOTOR_SYMBOLS - symbols.len();
        let count = usize::try_from(count).ok().filter(|&count| count <= room).ok_or(MotorError::TooLong)?;
        symbols.extend(std::iter::repeat_n(symbol, count));
    }
    Ok(symbols)
}

fn dominant(axes: &[f64], dead_band: f64) -> Option<MotorSymbol> {
    let mut best: Option<(f64, usize)> = None;
    for (axis, value) in axes.iter().enumerate() {
        if value.abs() > best.map_or(dead_band, |(magnitude, _)| magnitude) {
            best = Some((value.abs(), 2 * axis + usize::from(*value < 0.0)));
        }
    }
    best.and_then(|(_, position)| MotorSymbol::ALL.get(position).copied())
}

fn symbol_of(store: &TermStore, motion: TermId) -> Option<MotorSymbol> {
    let Term::Apply(function, argument) = *store.get(motion) else {
        return None;
    };
    let (Term::Constant(function), Term::Constant(argument)) = (store.get(function), store.get(argument)) else {
        return None;
    };
    let symbol = MotorSymbol::ALL.into_iter().find(|symbol| symbol.name() == store.spelling(*argument))?;
    let injection = if symbol.is_gripper() { "grip" } else { "move" };
    (store.spelling(*function) == injection).then_some(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::check;
    use crate::signature::Signature;
    use crate::types::TypeId;

    #[test]
    fn the_alphabet_is_in_the_signature_and_its_programs_are_motions() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let program = motor_program(&mut store, &MotorSymbol::ALL).unwrap();
        assert!(check(&mut store, &signature, program, TypeId::MOTION).is_ok());
        assert_eq!(motor_symbols(&store, program).unwrap(), MotorSymbol::ALL);
        for (position, symbol) in MotorSymbol::ALL.into_iter().enumerate() {
            assert_eq!(symbol as usize, position);
        }
    }

    #[test]
    fn rows_become_runs() {
        let mut rows = vec![[0.5, 0.1, 0.0, 0.0, 0.0, 0.0, -1.0]; 5];
        rows.push([0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        rows.extend([[0.0, 0.01, 0.0, 0.0, 0.0, 0.0, 1.0]; 2]);
        rows.push([0.0, 0.0, 0.3, 0.0, 0.0, -0.4, 1.0]);
        rows.push([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
        rows.push([0.0; 7]);
        let symbols = quantize(&rows, 0.05).unwrap();
        let mut store = TermStore::new();
        let program = motor_program(&mut store, &symbols).unwrap();
        assert_eq!(
            print(&store, program),
            "seq[repeat(move x_pos, 5), grip grip_close, repeat(grip hold_closed, 2), move yaw_neg, grip grip_open, \
             grip hold_open]"
        );
        assert_eq!(motor_symbols(&store, program).unwrap(), symbols);
    }

    #[test]
    fn without_a_gripper_nothing_moves_is_still() {
        assert_eq!(quantize(&[[0.0; 6]], 0.1), Ok(vec![MotorSymbol::Still]));
        assert_eq!(quantize::<[f64; 7]>(&[], 0.1), Ok(vec![]));
    }

    #[test]
    fn bad_rows_are_errors() {
        assert!(matches!(quantize(&[vec![0.0; 5]], 0.1), Err(MotorError::WrongLength { row: 0, found: 5 })));
        assert!(matches!(quantize(&[vec![0.0; 7], vec![0.0; 6]], 0.1), Err(MotorError::WrongLength { row: 1, .. })));
        let bad = [0.0, 0.0, f64::INFINITY, 0.0, 0.0, 0.0];
        assert!(matches!(quantize(&[bad], 0.1), Err(MotorError::NotFinite { row: 0, column: 2, .. })));
        assert!(matches!(quantize(&[[0.0; 6]], f64::NAN), Err(MotorError::BadDeadBand { .. })));
    }

    #[test]
    fn other_programs_are_no_motor_programs() {
        let mut store = TermStore::new();
        let still = store.call("still", &[]).unwrap();
        let wrong = store.call("grip", &[still]).unwrap();
        assert!(matches!(motor_symbols(&store, wrong), Err(MotorError::NotMotor { .. })));
        let (right, many) = (store.call("move", &[still]).unwrap(), store.natural(u64::MAX));
        let long = store.repeat(right, many).unwrap();
        assert_eq!(motor_symbols(&store, long), Err(MotorError::TooLong));
    }
}
