//! Observations of Python as the server's values, so that both are checked by the same rules.

use std::collections::BTreeMap;

use bytes::Bytes;
use cli::call::Complaint;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use server::message::{Array, Key, Value};

use crate::raised;

/// How deep maps and lists may be nested.
const MAX_DEPTH: usize = 16;

/// The value of an object: numbers, texts, NumPy arrays, and dictionaries and lists of them.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, "the observation", MAX_DEPTH)
}

fn nested(object: &Bound<'_, PyAny>, name: &str, depth: usize) -> PyResult<Value> {
    let refuse = |found: String| {
        let expected = "NumPy arrays, numbers, texts, and dictionaries or lists of them";
        let message = format!("{name} is {found}; expected {expected}");
        raised(object.py(), Complaint::new(message))
    };
    if depth == 0 {
        return Err(refuse("nested too deeply".to_owned()));
    }
    // Truth values are integers to Python, so they come first.
    if object.is_none() {
        Ok(Value::Nil)
    } else if let Ok(found) = object.cast::<PyBool>() {
        Ok(Value::Bool(found.is_true()))
    } else if object.is_instance_of::<PyInt>() {
        Ok(Value::Integer(object.extract()?))
    } else if object.is_instance_of::<PyFloat>() {
        Ok(Value::Float(object.extract()?))
    } else if object.is_instance_of::<PyString>() {
        Ok(Value::Text(object.extract()?))
    } else if let Ok(found) = object.cast::<PyDict>() {
        let mut entries = BTreeMap::new();
        for (key, inner) in found.iter() {
            let key: String =
                key.extract().map_err(|_| refuse("a dictionary with a key that is not a text".to_owned()))?;
            let inner = nested(&inner, &format!("`{key}`"), depth - 1)?;
            entries.insert(Key::Text(key), inner);
        }
        Ok(Value::Map(entries))
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|item| nested(&item?, name, depth - 1));
        Ok(Value::List(items.collect::<PyResult<Vec<Value>>>()?))
    } else if object.hasattr("__array_interface__")? {
        let dtype: String = object.getattr("dtype")?.getattr("str")?.extract()?;
        let shape: Vec<usize> = object.getattr("shape")?.extract()?;
        // In C order, whatever the strides.
        let data = object.call_method0("tobytes")?;
        let data = Bytes::copy_from_slice(data.cast::<PyBytes>()?.as_bytes());
        Array::from_numpy(&dtype, shape, data)
            .map(Value::Array)
            .map_err(|reason| raised(object.py(), Complaint::new(format!("{name}: {reason}"))))
    } else {
        Err(refuse(format!("a `{}`", object.get_type().name()?)))
    }
}
