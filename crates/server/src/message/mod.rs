//! Messages: msgpack with NumPy arrays, as `openpi-client` writes it.
//!
//! An array is a map with the **binary** keys `__ndarray__`, `data`, `dtype` and `shape`; a NumPy scalar one with
//! `__npgeneric__`, `data` and `dtype`. [`decode`] reads a message within [`Limits`]: it never allocates for a declared length
//! that the message does not have, never recurses beyond a depth, and takes binary data out of the message without a copy.

mod array;
mod decode;
mod encode;
mod value;

pub use array::{Array, Dtype};
pub use decode::{DecodeError, Limits, decode};
pub use encode::{write_array, write_json, write_text};
pub use value::{Key, Value};
