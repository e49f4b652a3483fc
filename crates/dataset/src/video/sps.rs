//! The sequence parameter set of H.264 (ITU-T H.264 §7.3.2.1): size, sampling and colours of the pictures.
//!
//! The decoder does not tell colours, and it allocates what a stream asks for; so the set is read before it gets there.

use crate::video::color::Matrix;

/// What a sequence says of its pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Without what is cropped.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) matrix: Matrix,
    pub(crate) full_range: bool,
}

/// Reads the set from its unit, head included. What our decoder cannot decode is an error.
pub(crate) fn read(unit: &[u8]) -> Result<Sequence, String> {
    let raw = without_emulation(unit.get(1..).unwrap_or_default());
    parse(&mut Bits { bytes: &raw, at: 0 }).ok_or("its parameter set is cut off")?
}

fn parse(bits: &mut Bits<'_>) -> Option<Result<Sequence, String>> {
    let profile = bits.take(8)?;
    bits.take(16)?; // Constraints and level.
    bits.number()?; // The number of the set.
    let mut format = 1;
    if matches!(profile, 44 | 83 | 86 | 100 | 110 | 118 | 122 | 128 | 134 | 135 | 138 | 139 | 244) {
        format = bits.number()?;
        if format == 3 {
            bits.take(1)?;
        }
        let (luma, chroma) = (bits.number()?, bits.number()?);
        if luma != 0 || chroma != 0 {
            return Some(Err(format!(
                "it is H.264 with {} bits per sample, 8 are read",
                u64::from(luma.max(chroma)) + 8
            )));
        }
        bits.take(1)?;
        if bits.take(1)? == 1 {
            for list in 0..if format == 3 { 12 } else { 8 } {
                if bits.take(1)? == 1 {
                    skip_scaling(bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    if format != 1 {
        return Some(Err("it is H.264 without 4:2:0 chroma".to_string()));
    }
    bits.number()?; // Bits of a frame number.
    match bits.number()? {
        0 => _ = bits.number()?,
        1 => {
            bits.take(1)?;
            bits.number()?;
            bits.number()?;
            let count = bits.number()?;
            if count > 255 {
                return None;
            }
            for _ in 0..count {
                bits.number()?;
            }
        }
        _ => {}
    }
    bits.number()?; // Reference frames.
    bits.take(1)?;
    let (columns, rows) = (bits.number()?, bits.number()?);
    if bits.take(1)? == 0 {
        return Some(Err("it is interlaced H.264".to_string()));
    }
    bits.take(1)?;
    let mut crop = [0; 4];
    if bits.take(1)? == 1 {
        for side in &mut crop {
            *side = bits.number()?;
        }
    }
    let [left, right, top, bottom] = crop;
    let side = |blocks: u32, before: u32, after: u32| {
        let side = (u64::from(blocks) + 1) * 16;
        side.checked_sub((u64::from(before) + u64::from(after)) * 2).and_then(|side| usize::try_from(side).ok())
    };
    let (width, height) = (side(columns, left, right)?, side(rows, top, bottom)?);
    let (matrix, full_range) = if bits.take(1)? == 1 { colours(bits)? } else { (2, false) };
    let matrix = Matrix::of(matrix).ok_or_else(|| format!("its colours are coded by matrix {matrix}"));
    Some(matrix.map(|matrix| Sequence { width, height, matrix, full_range }))
}

/// The beginning of the usability information: the matrix and whether the range is full.
fn colours(bits: &mut Bits<'_>) -> Option<(u32, bool)> {
    if bits.take(1)? == 1 && bits.take(8)? == 255 {
        bits.take(32)?;
    }
    if bits.take(1)? == 1 {
        bits.take(1)?;
    }
    if bits.take(1)? == 0 {
        return Some((2, false));
    }
    bits.take(3)?;
    let full_range = bits.take(1)? == 1;
    if bits.take(1)? == 0 {
        return Some((2, full_range));
    }
    bits.take(16)?;
    Some((bits.take(8)?, full_range))
}

fn skip_scaling(bits: &mut Bits<'_>, size: usize) -> Option<()> {
    let (mut last, mut next) = (8i64, 8i64);
    for _ in 0..size {
        if next != 0 {
            let code = i64::from(bits.number()?);
            let delta = if code % 2 == 1 { (code + 1) / 2 } else { -(code / 2) };
            next = (last + delta).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// Leaves out the threes that keep start codes from occurring inside a unit.
fn without_emulation(unit: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(unit.len());
    let mut zeros = 0;
    for &byte in unit {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        raw.push(byte);
    }
    raw
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// An unsigned Exp-Golomb code.
    fn number(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.take(1)? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1u32 << zeros) - 1 + self.take(zeros)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Baseline, level 1.0, 64×48: written by hand from the standard.
    const SMALL: &[u8] = &[0x67, 66, 0xc0, 10, 0b1111_0110, 0b0001_0000, 0b1111_1001, 0b0000_0000];

    #[test]
    fn a_cut_off_set_is_an_error_and_nothing_worse() {
        for length in 0..SMALL.len() {
            let _ = read(&SMALL[..length]);
        }
        assert!(read(&[]).is_err() && read(&[0x67]).is_err());
    }

    #[test]
    fn numbers_are_exp_golomb() {
        let mut bits = Bits { bytes: &[0b1010_0110, 0b0100_0010, 0b1000_0000], at: 0 };
        let numbers: Vec<_> = std::iter::from_fn(|| bits.number()).take(5).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        let zeros = [0; 8];
        assert_eq!(Bits { bytes: &zeros, at: 0 }.number(), None);
        assert_eq!(without_emulation(&[0, 0, 3, 1, 0, 0, 3, 3]), [0, 0, 1, 0, 0, 3]);
    }
}
