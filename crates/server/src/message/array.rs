//! NumPy arrays.

use std::fmt;

use bytes::Bytes;

/// No array has more dimensions.
pub(super) const MAX_DIMENSIONS: usize = 8;

/// A NumPy array whose data are exactly what its type and shape say, in C order.
#[derive(Clone, PartialEq)]
pub struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Bytes,
}

/// The types of numbers that arrays have here: those of machines with little-endian numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// `|b1`
    Bool,
    /// `|u1`, `<u2`, `<u4`, `<u8`, by bytes.
    Unsigned(u8),
    /// `|i1`, `<i2`, `<i4`, `<i8`, by bytes.
    Signed(u8),
    /// `<f4`
    Float32,
    /// `<f8`
    Float64,
}

impl Dtype {
    /// Reads NumPy's spelling; other types are refused with a reason.
    pub(super) fn parse(text: &str) -> Result<Dtype, String> {
        let shown: String = text.chars().take(32).collect();
        if text.starts_with('>') {
            return Err(format!("the dtype `{shown}` is big-endian; convert the array to little-endian"));
        }
        match text.trim_start_matches(['|', '<', '=']) {
            "b1" | "?" => Ok(Dtype::Bool),
            "u1" => Ok(Dtype::Unsigned(1)),
            "u2" => Ok(Dtype::Unsigned(2)),
            "u4" => Ok(Dtype::Unsigned(4)),
            "u8" => Ok(Dtype::Unsigned(8)),
            "i1" => Ok(Dtype::Signed(1)),
            "i2" => Ok(Dtype::Signed(2)),
            "i4" => Ok(Dtype::Signed(4)),
            "i8" => Ok(Dtype::Signed(8)),
            "f4" => Ok(Dtype::Float32),
            "f8" => Ok(Dtype::Float64),
            _ => Err(format!("the dtype `{shown}` is not supported; expected booleans, integers, `<f4` or `<f8`")),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Dtype::Bool => 1,
            Dtype::Unsigned(bytes) | Dtype::Signed(bytes) => usize::from(bytes),
            Dtype::Float32 => 4,
            Dtype::Float64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dtype::Bool => write!(f, "bool"),
            Dtype::Unsigned(bytes) => write!(f, "uint{}", bytes * 8),
            Dtype::Signed(bytes) => write!(f, "int{}", bytes * 8),
            Dtype::Float32 => write!(f, "float32"),
            Dtype::Float64 => write!(f, "float64"),
        }
    }
}

impl Array {
    /// An array by NumPy's name of its type, such as `<f4`, and its data in C order.
    ///
    /// # Errors
    /// If the type is not supported, or the data are not as long as type and shape say.
    pub fn from_numpy(dtype: &str, shape: Vec<usize>, data: Bytes) -> Result<Array, String> {
        match shape.len() <= MAX_DIMENSIONS {
            true => Array::new(Dtype::parse(dtype)?, shape, data),
            false => Err(format!("an array of {} dimensions; at most {MAX_DIMENSIONS} are read", shape.len())),
        }
    }

    /// An array, if its data are as long as type and shape say.
    pub(super) fn new(dtype: Dtype, shape: Vec<usize>, data: Bytes) -> Result<Array, String> {
        let count = shape.iter().try_fold(1_usize, |count, side| count.checked_mul(*side));
        match count.and_then(|count| count.checked_mul(dtype.bytes())) {
            Some(bytes) if bytes == data.len() => Ok(Array { dtype, shape, data }),
            _ => Err(format!("an array of {dtype} {shape:?} has {} bytes of data", data.len())),
        }
    }

    /// The type of its numbers.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The lengths of its dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its bytes, shared with the message.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Its type and shape, for messages.
    pub fn kind(&self) -> String {
        format!("{} {:?}", self.dtype, self.shape)
    }

    /// Its numbers in C order.
    pub fn numbers(&self) -> Vec<f64> {
        let each = |read: fn(&[u8]) -> f64| self.data.chunks_exact(self.dtype.bytes()).map(read).collect();
        match self.dtype {
            Dtype::Bool | Dtype::Unsigned(_) => each(|bytes| unsigned(bytes) as f64),
            Dtype::Signed(_) => each(|bytes| signed(bytes) as f64),
            Dtype::Float32 => each(|bytes| f64::from(f32::from_bits(unsigned(bytes) as u32))),
            Dtype::Float64 => each(|bytes| f64::from_bits(unsigned(bytes))),
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({})", self.kind())
    }
}

/// At most eight bytes, the least significant first.
fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    ((unsigned(bytes) << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dtype: &str, shape: &[usize], data: &[u8]) -> Result<Array, String> {
        Array::new(Dtype::parse(dtype)?, shape.to_vec(), Bytes::copy_from_slice(data))
    }

    #[test]
    fn numbers_of_all_types_are_read() {
        let floats: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(array("<f4", &[2], &floats).unwrap().numbers(), [1.5, -2.0]);
        assert_eq!(array("<f8", &[1, 1], &0.1_f64.to_le_bytes()).unwrap().numbers(), [0.1]);
        assert_eq!(array("<i2", &[2], &[0xff, 0xff, 1, 0]).unwrap().numbers(), [-1.0, 1.0]);
        assert_eq!(array("<i8", &[], &(-7_i64).to_le_bytes()).unwrap().numbers(), [-7.0]);
        assert_eq!(array("|u1", &[3], &[0, 128, 255]).unwrap().numbers(), [0.0, 128.0, 255.0]);
        assert_eq!(array("|b1", &[2], &[0, 1]).unwrap().numbers(), [0.0, 1.0]);
        assert_eq!(array("<u4", &[0, 5], &[]).unwrap().numbers(), [0.0; 0]);
    }

    #[test]
    fn other_types_and_lengths_are_refused() {
        assert!(array(">f4", &[1], &[0; 4]).unwrap_err().contains("big-endian"));
        for dtype in ["|O", "<c8", "<U4", "|V3", "", "f4f4", "<f2"] {
            assert!(array(dtype, &[1], &[0; 8]).unwrap_err().contains("not supported"), "{dtype}");
        }
        assert_eq!(array("<f4", &[2], &[0; 7]).unwrap_err(), "an array of float32 [2] has 7 bytes of data");
        assert!(array("<f8", &[usize::MAX, usize::MAX], &[0; 8]).is_err(), "its length overflows");
    }
}
