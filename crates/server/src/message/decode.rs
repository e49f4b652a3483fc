//! From bytes to values, within limits.

use std::collections::BTreeMap;

use bytes::Bytes;
use rmp::Marker;
use thiserror::Error;

use super::array::{Array, Dtype, MAX_DIMENSIONS};
use super::value::{Key, Value};

/// Limits of a message's structure. Its length is limited where it is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep lists and maps may be nested.
    pub depth: usize,
    /// How many items all lists and maps of a message may have together. An item takes more memory than its byte.
    pub items: usize,
    /// Most bytes of a text.
    pub text: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { depth: 16, items: 1 << 16, text: 1 << 16 }
    }
}

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It ends too early.
    #[error("the message ends after {length} bytes in the middle of a value; expected one whole msgpack map")]
    Truncated {
        /// Its length.
        length: usize,
    },
    /// It has bytes after its value.
    #[error("the message has {bytes} bytes after its value; expected one msgpack map")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A list or map declares more items than the message can have.
    #[error("a list or map declares {declared} items and {left} bytes follow")]
    Declared {
        /// How many it declares.
        declared: usize,
        /// The bytes that follow.
        left: usize,
    },
    /// Lists and maps are nested too deeply.
    #[error("lists and maps are nested more than {limit} deep")]
    Depth {
        /// The limit.
        limit: usize,
    },
    /// There are too many items.
    #[error("lists and maps have more than {limit} items; send numbers as NumPy arrays")]
    Items {
        /// The limit.
        limit: usize,
    },
    /// A text is too long.
    #[error("a text has {length} bytes; at most {limit} are read")]
    LongText {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A text is not UTF-8.
    #[error("a text is not valid UTF-8")]
    Utf8,
    /// A key of a map is neither text nor binary.
    #[error("a key of a map is {found}; expected text")]
    BadKey {
        /// What it is.
        found: String,
    },
    /// A key is there twice.
    #[error("the key `{key}` is there twice in one map")]
    Twice {
        /// The key.
        key: String,
    },
    /// A msgpack extension, or the byte that means nothing.
    #[error("the message has a msgpack extension type; expected plain values and NumPy arrays")]
    Extension,
    /// A NumPy array or scalar that is none.
    #[error("bad NumPy value: {reason}")]
    NumPy {
        /// Why.
        reason: String,
    },
}

/// Reads a message that is one value.
///
/// # Errors
/// If it is not msgpack, or beyond the limits.
pub fn decode(message: &Bytes, limits: &Limits) -> Result<Value, DecodeError> {
    let mut reader = Reader { message, at: 0, items: 0, limits };
    let value = reader.value(0)?;
    match message.len() - reader.at {
        0 => Ok(value),
        bytes => Err(DecodeError::Trailing { bytes }),
    }
}

struct Reader<'a> {
    message: &'a Bytes,
    /// Never beyond the end of the message.
    at: usize,
    items: usize,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let [marker] = self.array()?;
        Ok(match Marker::from_u8(marker) {
            Marker::Null => Value::Nil,
            Marker::True => Value::Bool(true),
            Marker::False => Value::Bool(false),
            Marker::FixPos(value) => Value::Integer(value.into()),
            Marker::FixNeg(value) => Value::Integer(value.into()),
            Marker::U8 => Value::Integer(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Value::Integer(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Value::Integer(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => Value::Integer(u64::from_be_bytes(self.array()?).into()),
            Marker::I8 => Value::Integer(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Value::Integer(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Value::Integer(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Value::Integer(i64::from_be_bytes(self.array()?).into()),
            Marker::F32 => Value::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Value::Float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(length) => self.text(length.into())?,
            Marker::Str8 => {
                let length = self.length_8()?;
                self.text(length)?
            }
            Marker::Str16 => {
                let length = self.length_16()?;
                self.text(length)?
            }
            Marker::Str32 => {
                let length = self.length_32()?;
                self.text(length)?
            }
            Marker::Bin8 => {
                let length = self.length_8()?;
                Value::Binary(self.take(length)?)
            }
            Marker::Bin16 => {
                let length = self.length_16()?;
                Value::Binary(self.take(length)?)
            }
            Marker::Bin32 => {
                let length = self.length_32()?;
                Value::Binary(self.take(length)?)
            }
            Marker::FixArray(count) => self.list(count.into(), depth)?,
            Marker::Array16 => {
                let count = self.length_16()?;
                self.list(count, depth)?
            }
            Marker::Array32 => {
                let count = self.length_32()?;
                self.list(count, depth)?
            }
            Marker::FixMap(count) => self.map(count.into(), depth)?,
            Marker::Map16 => {
                let count = self.length_16()?;
                self.map(count, depth)?
            }
            Marker::Map32 => {
                let count = self.length_32()?;
                self.map(count, depth)?
            }
            Marker::Ext8
            | Marker::Ext16
            | Marker::Ext32
            | Marker::FixExt1
            | Marker::FixExt2
            | Marker::FixExt4
            | Marker::FixExt8
            | Marker::FixExt16
            | Marker::Reserved => return Err(DecodeError::Extension),
        })
    }

    fn list(&mut self, count: usize, depth: usize) -> Result<Value, DecodeError> {
        self.enter(count, 1, depth)?;
        // Not with the declared capacity: what is there counts.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, count: usize, depth: usize) -> Result<Value, DecodeError> {
        self.enter(count, 2, depth)?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let key = match self.value(depth + 1)? {
                Value::Text(text) => Key::Text(text),
                Value::Binary(bytes) => Key::Binary(bytes),
                other => return Err(DecodeError::BadKey { found: other.kind() }),
            };
            let value = self.value(depth + 1)?;
            if entries.contains_key(&key) {
                return Err(DecodeError::Twice { key: key.shown().chars().take(64).collect() });
            }
            entries.insert(key, value);
        }
        numpy(entries)
    }

    /// Checks what a list or map declares before anything of it is read.
    fn enter(&mut self, count: usize, bytes: usize, depth: usize) -> Result<(), DecodeError> {
        if depth >= self.limits.depth {
            return Err(DecodeError::Depth { limit: self.limits.depth });
        }
        let left = self.message.len() - self.at;
        if count.checked_mul(bytes).is_none_or(|least| least > left) {
            return Err(DecodeError::Declared { declared: count, left });
        }
        self.items = self.items.saturating_add(count);
        if self.items > self.limits.items {
            return Err(DecodeError::Items { limit: self.limits.items });
        }
        Ok(())
    }

    fn text(&mut self, length: usize) -> Result<Value, DecodeError> {
        if length > self.limits.text {
            return Err(DecodeError::LongText { length, limit: self.limits.text });
        }
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| DecodeError::Utf8)?;
        Ok(Value::Text(text.to_owned()))
    }

    fn length_8(&mut self) -> Result<usize, DecodeError> {
        Ok(u8::from_be_bytes(self.array()?).into())
    }

    fn length_16(&mut self) -> Result<usize, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?).into())
    }

    fn length_32(&mut self) -> Result<usize, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let found = self.message.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let bytes = *found.ok_or(DecodeError::Truncated { length: self.message.len() })?;
        self.at += N;
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        if length > self.message.len() - self.at {
            return Err(DecodeError::Truncated { length: self.message.len() });
        }
        let start = self.at;
        self.at += length;
        Ok(self.message.slice(start..self.at))
    }
}

/// A map, or the NumPy array or scalar that it stands for.
fn numpy(mut entries: BTreeMap<Key, Value>) -> Result<Value, DecodeError> {
    let key = |name: &'static str| Key::Binary(Bytes::from_static(name.as_bytes()));
    let is_array = entries.contains_key(&key("__ndarray__"));
    if !is_array && !entries.contains_key(&key("__npgeneric__")) {
        return Ok(Value::Map(entries));
    }
    let bad = |reason: String| DecodeError::NumPy { reason };
    let mut part = |name: &'static str| {
        entries.remove(&key(name)).ok_or_else(|| bad(format!("an array or scalar without `{name}`")))
    };
    let Value::Text(dtype) = part("dtype")? else { return Err(bad("the dtype is not a text".to_owned())) };
    if !is_array {
        return match part("data")? {
            scalar @ (Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_)) => Ok(scalar),
            other => Err(bad(format!("the data of a scalar are {}", other.kind()))),
        };
    }
    let Value::Binary(data) = part("data")? else { return Err(bad("the data of an array are not binary".to_owned())) };
    let Value::List(sides) = part("shape")? else { return Err(bad("the shape is not a list".to_owned())) };
    if sides.len() > MAX_DIMENSIONS {
        return Err(bad(format!("an array of {} dimensions; at most {MAX_DIMENSIONS} are read", sides.len())));
    }
    let side = |side: &Value| match side {
        Value::Integer(side) => usize::try_from(*side).map_err(|_| bad(format!("a side of length {side}"))),
        other => Err(bad(format!("a side whose length is {}", other.kind()))),
    };
    let shape = sides.iter().map(side).collect::<Result<Vec<usize>, DecodeError>>()?;
    let dtype = Dtype::parse(&dtype).map_err(bad)?;
    Ok(Value::Array(Array::new(dtype, shape, data).map_err(bad)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value, DecodeError> {
        decode(&Bytes::copy_from_slice(bytes), &Limits::default())
    }

    #[test]
    fn plain_values_are_read() {
        assert_eq!(read(&[0xc0]), Ok(Value::Nil));
        assert_eq!(read(&[0xff]), Ok(Value::Integer(-1)));
        assert_eq!(read(&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255]), Ok(Value::Integer(u64::MAX.into())));
        assert_eq!(read(&[0xca, 0x3f, 0x80, 0, 0]), Ok(Value::Float(1.0)));
        assert_eq!(read(&[0x92, 0xc3, 0xa1, b'a']), Ok(Value::List(vec![Value::Bool(true), Value::Text("a".into())])));
        let map = BTreeMap::from([(Key::Text("a".to_owned()), Value::Binary(Bytes::from_static(&[7])))]);
        assert_eq!(read(&[0x81, 0xa1, b'a', 0xc4, 1, 7]), Ok(Value::Map(map)));
    }

    #[test]
    fn every_kind_of_damage_has_its_message() {
        let deep = [[0x91_u8; 100].as_slice(), &[0xc0]].concat();
        let many = [&[0xdd, 0, 2, 0, 0][..], &vec![0xc0; 0x20000]].concat();
        let long = [&[0xdb, 0, 2, 0, 0][..], &vec![b'a'; 0x20000]].concat();
        let cases: [(&[u8], &str); 12] = [
            (&[], "ends after 0 bytes"),
            (&[0xcd, 1], "ends after 2 bytes"),
            (&[0xc6, 255, 255, 255, 255, 1], "ends after 6 bytes"),
            (&[0xdd, 255, 255, 255, 255], "declares 4294967295 items and 0 bytes follow"),
            (&[0xdf, 0, 0, 0, 2, 0xc0, 0xc0], "declares 2 items and 2 bytes follow"),
            (&deep, "more than 16 deep"),
            (&many, "more than 65536 items"),
            (&long, "a text has 131072 bytes"),
            (&[0xa2, 0xff, 0xff], "not valid UTF-8"),
            (&[0x81, 1, 1], "a key of a map is an integer"),
            (&[0x82, 0xa1, b'a', 1, 0xa1, b'a', 2], "the key `a` is there twice"),
            (&[0xc0, 0xc0], "1 bytes after its value"),
        ];
        for (bytes, part) in cases {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for extension in [&[0xc1_u8][..], &[0xd4, 1, 2], &[0xc7, 1, 1, 1]] {
            assert_eq!(read(extension), Err(DecodeError::Extension));
        }
    }

    /// A key and the bytes of its value.
    type Entry = (&'static str, &'static [u8]);

    /// A map with binary keys.
    fn numpy(entries: &[(&str, &[u8])]) -> Result<Value, DecodeError> {
        let mut bytes = vec![0x80 | entries.len() as u8];
        for (key, value) in entries {
            bytes.extend([0xc4, key.len() as u8]);
            bytes.extend(key.as_bytes());
            bytes.extend(*value);
        }
        read(&bytes)
    }

    #[test]
    fn arrays_and_scalars_are_read_or_refused() {
        let flag: Entry = ("__ndarray__", &[0xc3]);
        let (data, dtype): (Entry, Entry) = (("data", &[0xc4, 2, 3, 4]), ("dtype", b"\xa3|u1"));
        let Ok(Value::Array(array)) = numpy(&[flag, data, dtype, ("shape", &[0x92, 1, 2])]) else { panic!("no array") };
        assert_eq!((array.shape(), array.numbers()), (&[1, 2][..], vec![3.0, 4.0]));
        let scalar = numpy(&[("__npgeneric__", &[0xc3]), ("data", &[5]), ("dtype", b"\xa3<i8")]);
        assert_eq!(scalar, Ok(Value::Integer(5)));
        let shapes: [(&[u8], &str); 5] = [
            (&[0x91, 3], "an array of uint8 [3] has 2 bytes"),
            (&[0x91, 0xff], "a side of length -1"),
            (&[0x91, 0xc0], "a side whose length is nothing"),
            (&[0x99, 1, 1, 1, 1, 1, 1, 1, 1, 2], "9 dimensions"),
            (&[0xc0], "the shape is not a list"),
        ];
        for (shape, part) in shapes {
            let error = numpy(&[flag, data, dtype, ("shape", shape)]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let huge: &[u8] =
            &[0x92, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255];
        assert!(numpy(&[flag, data, dtype, ("shape", huge)]).is_err());
        let other: [(&[Entry], &str); 4] = [
            (&[flag, data, ("shape", &[0x91, 2])], "without `dtype`"),
            (&[flag, data, ("dtype", b"\xa2|O"), ("shape", &[0x91, 2])], "the dtype `|O` is not supported"),
            (&[flag, ("data", &[1]), dtype, ("shape", &[0x91, 2])], "not binary"),
            (&[("__npgeneric__", &[0xc3]), ("data", &[0x90]), dtype], "the data of a scalar are a list"),
        ];
        for (entries, part) in other {
            let error = numpy(entries).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn binary_data_are_not_copied() {
        let message = Bytes::from([&[0xc6, 0, 1, 0, 0][..], &[9; 0x10000]].concat());
        let Ok(Value::Binary(data)) = decode(&message, &Limits::default()) else { panic!("no bytes") };
        assert_eq!(data.as_ptr(), message[5..].as_ptr());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
