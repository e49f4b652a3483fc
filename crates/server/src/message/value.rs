//! What a message consists of.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::array::Array;

/// A value of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes, shared with the message.
    Binary(Bytes),
    /// A list.
    List(Vec<Value>),
    /// A map.
    Map(BTreeMap<Key, Value>),
    /// A NumPy array.
    Array(Array),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

impl Key {
    /// Its length in bytes.
    pub fn length(&self) -> usize {
        match self {
            Key::Text(text) => text.len(),
            Key::Binary(bytes) => bytes.len(),
        }
    }

    /// The key for messages to people.
    pub fn shown(&self) -> String {
        match self {
            Key::Text(text) => text.clone(),
            Key::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

impl Value {
    /// What it is, in words for messages.
    pub fn kind(&self) -> String {
        match self {
            Value::Nil => "nothing".to_owned(),
            Value::Bool(_) => "a truth value".to_owned(),
            Value::Integer(_) => "an integer".to_owned(),
            Value::Float(_) => "a number".to_owned(),
            Value::Text(_) => "a text".to_owned(),
            Value::Binary(bytes) => format!("{} bytes", bytes.len()),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(_) => "a map".to_owned(),
            Value::Array(array) => array.kind(),
        }
    }
}
