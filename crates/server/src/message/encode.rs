//! From values to bytes. Writing into a vector does not fail, so nothing here returns an error.

use serde_json::Value as Json;

/// Writes a text.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    let _ = rmp::encode::write_str(out, text);
}

/// Writes an array of f32 as `openpi-client` reads it.
pub fn write_array(out: &mut Vec<u8>, shape: &[usize], values: &[f32]) {
    let key = |out: &mut Vec<u8>, name: &str| {
        let _ = rmp::encode::write_bin(out, name.as_bytes());
    };
    let _ = rmp::encode::write_map_len(out, 4);
    key(out, "__ndarray__");
    let _ = rmp::encode::write_bool(out, true);
    key(out, "data");
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let _ = rmp::encode::write_bin(out, &data);
    key(out, "dtype");
    write_text(out, "<f4");
    key(out, "shape");
    let _ = rmp::encode::write_array_len(out, shape.len() as u32);
    for side in shape {
        let _ = rmp::encode::write_uint(out, *side as u64);
    }
}

/// Writes plain data.
pub fn write_json(out: &mut Vec<u8>, value: &Json) {
    match value {
        Json::Null => {
            let _ = rmp::encode::write_nil(out);
        }
        Json::Bool(value) => {
            let _ = rmp::encode::write_bool(out, *value);
        }
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => {
                let _ = rmp::encode::write_uint(out, value);
            }
            (None, Some(value)) => {
                let _ = rmp::encode::write_sint(out, value);
            }
            (None, None) => {
                let _ = rmp::encode::write_f64(out, number.as_f64().unwrap_or(f64::NAN));
            }
        },
        Json::String(text) => write_text(out, text),
        Json::Array(items) => {
            let _ = rmp::encode::write_array_len(out, items.len() as u32);
            items.iter().for_each(|item| write_json(out, item));
        }
        Json::Object(entries) => {
            let _ = rmp::encode::write_map_len(out, entries.len() as u32);
            for (key, value) in entries {
                write_text(out, key);
                write_json(out, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::super::{Key, Limits, Value, decode};
    use super::*;

    fn read(bytes: Vec<u8>) -> Value {
        decode(&Bytes::from(bytes), &Limits::default()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        write_json(&mut out, &json!({ "a": [1, -2, 0.5, null, true, "ä"], "b": {} }));
        let Value::Map(map) = read(out) else { panic!("no map") };
        let items = [
            Value::Integer(1),
            Value::Integer(-2),
            Value::Float(0.5),
            Value::Nil,
            Value::Bool(true),
            Value::Text("ä".to_owned()),
        ];
        assert_eq!(map[&Key::Text("a".to_owned())], Value::List(items.to_vec()));
        let mut out = Vec::new();
        write_array(&mut out, &[2, 1], &[1.0, -0.25]);
        let Value::Array(array) = read(out) else { panic!("no array") };
        assert_eq!((array.shape(), array.numbers()), (&[2, 1][..], vec![1.0, -0.25]));
    }
}
