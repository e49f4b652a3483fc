//! From a message to a request: names, shapes, types and numbers are checked here, so that a policy sees none that is wrong.

use std::collections::BTreeMap;

use bytes::Bytes;
use thiserror::Error;

use crate::message::{self, DecodeError, Dtype, Key, Limits, Value};
use crate::names::{Names, normalized};
use crate::policy::{ClientId, Metadata, Picture, Request, Task};

/// The longest side of an image, in pixels.
const MAX_SIDE: usize = 8192;

/// The longest name of an episode, and of an input with the names of the maps around it, in bytes.
const LONGEST_NAME: usize = 256;

/// Keys that a message lists in an error.
const SHOWN: usize = 16;

/// Checks messages against what a policy expects.
#[derive(Clone, Debug)]
pub struct Expected {
    names: Names,
    cameras: Vec<String>,
    state: usize,
    limits: Limits,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Actions for an observation.
    Actions(Observation),
    /// Nothing but that the next observation begins an episode.
    Reset,
}

/// One observation as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// One picture for each camera.
    pub pictures: Vec<Picture>,
    /// The state.
    pub state: Vec<f32>,
    /// The task, if the message has one.
    pub task: Option<Task>,
    /// Whether the client says that an episode begins.
    pub reset: bool,
    /// The client's name of that episode.
    pub episode: Option<String>,
}

/// What a client asked before, which later observations need not repeat.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    task: Option<Task>,
    /// Whether an observation of the episode was answered.
    under_way: bool,
}

impl Conversation {
    /// The next observation begins an episode.
    pub fn reset(&mut self) {
        self.under_way = false;
    }

    /// An observation was answered.
    pub fn answered(&mut self) {
        self.under_way = true;
    }

    /// The request of an observation: with its own task, or with that of the one before.
    ///
    /// # Errors
    /// If the first observation has no task.
    pub fn request(&mut self, client: ClientId, observation: Observation) -> Result<Request, RequestError> {
        let Observation { pictures, state, task, reset, episode } = observation;
        let task = task.or_else(|| self.task.clone()).ok_or(RequestError::NoTask)?;
        let restart = !self.under_way || reset || self.task.as_ref() != Some(&task);
        self.task = Some(task.clone());
        Ok(Request { client, pictures, state, task, restart, episode })
    }
}

/// Why a message is not a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// It cannot be read.
    #[error(transparent)]
    Message(#[from] DecodeError),
    /// It is not a map.
    #[error(
        "the message is {found}; expected a map of observations, such as `{{\"observation/state\": …, \"prompt\": …}}`"
    )]
    NotMap {
        /// What it is.
        found: String,
    },
    /// Something is missing.
    #[error("the request has no {what}; expected it as {expected}, and found {found}")]
    Missing {
        /// What.
        what: String,
        /// The accepted names.
        expected: String,
        /// The keys that there are.
        found: String,
    },
    /// Something is not what it should be.
    #[error("`{key}` is {found}; expected {expected}")]
    Wrong {
        /// The key.
        key: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Two keys are the same name.
    #[error("`{key}` and `{other}` are the same name; send one of them")]
    Twice {
        /// The key.
        key: String,
        /// The other one.
        other: String,
    },
    /// A key is too long.
    #[error("a key has {length} bytes, with those of the maps around it; at most {LONGEST_NAME} are read")]
    LongKey {
        /// Its length.
        length: usize,
    },
    /// The request has both a prompt and a program, or neither.
    #[error("the request has {found}; expected either `prompt` or `program`")]
    Task {
        /// What it has.
        found: &'static str,
    },
    /// The first request says nothing about what to do.
    #[error("the first request needs a `prompt` or a `program`")]
    NoTask,
}

impl RequestError {
    /// A word for counting errors.
    pub fn kind(&self) -> &'static str {
        match self {
            RequestError::Message(_) => "message",
            RequestError::NotMap { .. }
            | RequestError::Missing { .. }
            | RequestError::Task { .. }
            | RequestError::NoTask => "missing",
            RequestError::Wrong { .. } | RequestError::Twice { .. } | RequestError::LongKey { .. } => "wrong",
        }
    }
}

impl Expected {
    /// What a policy expects.
    pub fn new(metadata: &Metadata, limits: Limits) -> Expected {
        let (names, cameras) = (Names::new(metadata), metadata.cameras.clone());
        Expected { names, cameras, state: metadata.state_dim, limits }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it is damaged, or not what the policy expects.
    pub fn read(&self, message: &Bytes) -> Result<Asked, RequestError> {
        self.check(&message::decode(message, &self.limits)?)
    }

    /// Checks a message that is decoded.
    ///
    /// # Errors
    /// If it is not what the policy expects.
    pub fn check(&self, message: &Value) -> Result<Asked, RequestError> {
        let entries = match message {
            Value::Map(entries) => entries,
            other => return Err(RequestError::NotMap { found: other.kind() }),
        };
        let mut flat = BTreeMap::new();
        flatten(entries, "", &mut flat)?;
        let reset = match flat.remove("reset") {
            None | Some((_, Value::Nil)) => false,
            Some((_, Value::Bool(reset))) => *reset,
            Some((key, other)) => return Err(wrong(&key, other.kind(), "true or false")),
        };
        if reset && flat.is_empty() {
            return Ok(Asked::Reset);
        }
        let episode = match flat.remove("episode") {
            None | Some((_, Value::Nil)) => None,
            Some((_, Value::Text(name))) if name.len() <= LONGEST_NAME => Some(name.clone()),
            Some((key, other)) => {
                let found = match other {
                    Value::Text(name) => format!("a text of {} bytes", name.len()),
                    other => other.kind(),
                };
                return Err(wrong(&key, found, &format!("a text of at most {LONGEST_NAME} bytes")));
            }
        };
        let pictures = self.cameras.iter().zip(&self.names.cameras).map(|(camera, names)| {
            let (key, value) = find(&flat, &format!("image of the camera `{camera}`"), names)?;
            picture(key, value)
        });
        let pictures = pictures.collect::<Result<Vec<Picture>, RequestError>>()?;
        let state = match self.state {
            0 => Vec::new(),
            _ => {
                let (key, value) = find(&flat, "state", &self.names.state)?;
                self.numbers(key, value)?
            }
        };
        Ok(Asked::Actions(Observation { pictures, state, task: task(&flat)?, reset, episode }))
    }

    fn numbers(&self, key: &str, value: &Value) -> Result<Vec<f32>, RequestError> {
        let expected = format!("{} finite numbers, float32 or float64", self.state);
        let wrong = |found: String| wrong(key, found, &expected);
        let numbers = match value {
            Value::Array(array) if array.dtype() != Dtype::Bool && array.shape() == [self.state] => array.numbers(),
            Value::List(items) if items.len() == self.state => {
                let number = |item: &Value| match item {
                    Value::Float(number) => Ok(*number),
                    Value::Integer(number) => Ok(*number as f64),
                    other => Err(wrong(format!("a list with {}", other.kind()))),
                };
                items.iter().map(number).collect::<Result<Vec<f64>, RequestError>>()?
            }
            other => return Err(wrong(other.kind())),
        };
        let numbers: Vec<f32> = numbers.into_iter().map(|number| number as f32).collect();
        match numbers.iter().position(|number| !number.is_finite()) {
            None => Ok(numbers),
            Some(at) => Err(wrong(format!("{} at place {at}", numbers[at]))),
        }
    }
}

/// A map with nested maps as one, by normalised names; each with the key as the client wrote it.
///
/// # Errors
/// If two keys are the same name, or one is so long that nested maps would multiply it.
fn flatten<'v>(
    entries: &'v BTreeMap<Key, Value>,
    prefix: &str,
    flat: &mut BTreeMap<String, (String, &'v Value)>,
) -> Result<(), RequestError> {
    for (key, value) in entries {
        let length = prefix.len() + key.length();
        if length > LONGEST_NAME {
            return Err(RequestError::LongKey { length });
        }
        let key = format!("{prefix}{}", key.shown());
        match value {
            Value::Map(inner) => flatten(inner, &format!("{key}/"), flat)?,
            other => {
                if let Some((other, _)) = flat.insert(normalized(&key), (key.clone(), other)) {
                    return Err(RequestError::Twice { key, other });
                }
            }
        }
    }
    Ok(())
}

fn find<'f>(
    flat: &'f BTreeMap<String, (String, &Value)>,
    what: &str,
    names: &[String],
) -> Result<(&'f str, &'f Value), RequestError> {
    let found = names.iter().find_map(|name| flat.get(name));
    found.map(|(key, value)| (key.as_str(), *value)).ok_or_else(|| RequestError::Missing {
        what: what.to_owned(),
        expected: quoted(names.iter().map(String::as_str)),
        found: match flat.is_empty() {
            true => "nothing".to_owned(),
            false => quoted(flat.values().take(SHOWN).map(|(key, _)| key.as_str())),
        },
    })
}

fn picture(key: &str, value: &Value) -> Result<Picture, RequestError> {
    let wrong = |found: String| wrong(key, found, "an image as uint8 [height, width, 3]");
    match value {
        Value::Array(array) => match (array.dtype(), array.shape()) {
            (Dtype::Unsigned(1), &[height, width, 3]) => {
                match [height, width].iter().all(|side| (1..=MAX_SIDE).contains(side)) {
                    true => Ok(Picture { height, width, pixels: array.data().clone() }),
                    false => {
                        Err(wrong(format!("{}, which is not from 1 to {MAX_SIDE} pixels wide and high", array.kind())))
                    }
                }
            }
            (Dtype::Unsigned(1), &[3, _, _]) => Err(wrong(format!("{} with channels first", array.kind()))),
            _ => Err(wrong(array.kind())),
        },
        other => Err(wrong(other.kind())),
    }
}

fn task(flat: &BTreeMap<String, (String, &Value)>) -> Result<Option<Task>, RequestError> {
    let text = |name: &str| match flat.get(name) {
        None | Some((_, Value::Nil)) => Ok(None),
        Some((_, Value::Text(text))) => Ok(Some(text.clone())),
        Some((key, other)) => Err(wrong(key, other.kind(), "a text")),
    };
    match (text("prompt")?, text("program")?) {
        (Some(_), Some(_)) => Err(RequestError::Task { found: "both a prompt and a program" }),
        (Some(prompt), None) => Ok(Some(Task::Prompt(prompt))),
        (None, Some(program)) => Ok(Some(Task::Program(program))),
        (None, None) => Ok(None),
    }
}

fn wrong(key: &str, found: impl Into<String>, expected: &str) -> RequestError {
    RequestError::Wrong { key: key.to_owned(), found: found.into(), expected: expected.to_owned() }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{write_array, write_json, write_text};

    fn expected() -> Expected {
        let metadata = Metadata {
            cameras: vec!["observation.images.image".to_owned(), "observation.images.wrist_image".to_owned()],
            state_key: "observation.state".to_owned(),
            state_dim: 2,
            ..Metadata::default()
        };
        Expected::new(&metadata, Limits::default())
    }

    /// A map of parts that are encoded already.
    fn map(parts: &[(&str, Vec<u8>)]) -> Bytes {
        let mut out = Vec::new();
        rmp::encode::write_map_len(&mut out, parts.len() as u32).unwrap();
        for (key, value) in parts {
            write_text(&mut out, key);
            out.extend(value);
        }
        Bytes::from(out)
    }

    fn bytes_array(dtype: &str, shape: &[u64], data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        rmp::encode::write_map_len(&mut out, 4).unwrap();
        let mut key = |name: &str, value: Vec<u8>| {
            rmp::encode::write_bin(&mut out, name.as_bytes()).unwrap();
            out.extend(value);
        };
        key("__ndarray__", vec![0xc3]);
        let mut bytes = Vec::new();
        rmp::encode::write_bin(&mut bytes, data).unwrap();
        key("data", bytes);
        key("dtype", text(dtype));
        let mut sides = Vec::new();
        rmp::encode::write_array_len(&mut sides, shape.len() as u32).unwrap();
        shape.iter().for_each(|side| drop(rmp::encode::write_uint(&mut sides, *side)));
        key("shape", sides);
        out
    }

    fn text(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write_text(&mut out, text);
        out
    }

    fn state(values: &[f32]) -> Vec<u8> {
        let mut out = Vec::new();
        write_array(&mut out, &[values.len()], values);
        out
    }

    fn image() -> Vec<u8> {
        bytes_array("|u1", &[2, 1, 3], &[1, 2, 3, 4, 5, 6])
    }

    fn parts() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("observation/image", image()),
            ("observation/wrist_image", image()),
            ("observation/state", state(&[0.5, -1.0])),
            ("prompt", text("open the drawer")),
        ]
    }

    fn error(parts: &[(&str, Vec<u8>)]) -> String {
        expected().read(&map(parts)).unwrap_err().to_string()
    }

    #[test]
    fn libero_requests_are_read() {
        let Asked::Actions(found) = expected().read(&map(&parts())).unwrap() else { panic!("no observation") };
        assert_eq!((found.pictures[1].height, found.pictures[1].width), (2, 1));
        assert_eq!((found.state, found.reset), (vec![0.5, -1.0], false));
        assert_eq!(found.task, Some(Task::Prompt("open the drawer".to_owned())));
    }

    #[test]
    fn other_names_nested_maps_and_lists_are_read() {
        let mut inner = Vec::new();
        write_json(&mut inner, &serde_json::json!([1, 2.5]));
        let observation = map(&[("images.image", image()), ("wrist_image", image()), ("state", inner)]).to_vec();
        let asked =
            expected().read(&map(&[("observation", observation), ("program", text("seq[]")), ("reset", vec![0xc3])]));
        let Asked::Actions(found) = asked.unwrap() else { panic!("no observation") };
        assert_eq!((found.state, found.reset), (vec![1.0, 2.5], true));
        assert_eq!(found.task, Some(Task::Program("seq[]".to_owned())));
        assert_eq!(expected().read(&map(&[("reset", vec![0xc3])])), Ok(Asked::Reset));
        let double = bytes_array("<f8", &[2], &[0.25_f64.to_le_bytes(), 4_f64.to_le_bytes()].concat());
        let mut parts = parts();
        parts[2].1 = double;
        let Ok(Asked::Actions(found)) = expected().read(&map(&parts)) else { panic!("no observation") };
        assert_eq!(found.state, [0.25, 4.0]);
    }

    #[test]
    fn keys_that_are_the_same_name_are_refused_and_not_overwritten() {
        let inner = map(&[("state", state(&[1.0, 2.0]))]).to_vec();
        let mut binary = vec![0x81, 0xc4, 6];
        binary.extend(b"prompt");
        binary.extend(text("b"));
        let cases = [
            (
                ("observation.state", state(&[1.0, 2.0])),
                "`observation/state` and `observation.state` are the same name",
            ),
            (("observation", inner), "`observation/state` and `observation/state` are the same name"),
            (("prompt/", text("b")), ""),
        ];
        for ((key, value), part) in cases {
            let mut parts = parts();
            parts.push((key, value));
            let found = expected().read(&map(&parts)).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(found.contains(part) && found.is_empty() == part.is_empty(), "{key}: {found}");
        }
        // A key as text and the same as bytes.
        let mut message = map(&parts()).to_vec();
        message[0] += 1;
        message.extend(&binary[1..]);
        let error = expected().read(&message.into()).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            ("wrong", "`prompt` and `prompt` are the same name; send one of them")
        );
    }

    /// Each map multiplied the keys of the maps around it: a message of 2 MB could take 100 GB.
    #[test]
    fn long_keys_of_nested_maps_are_refused_before_they_are_joined() {
        let mut message = Vec::new();
        for _ in 0..4 {
            message.push(0x81);
            write_text(&mut message, &"a".repeat(100));
        }
        rmp::encode::write_map_len(&mut message, 2).unwrap();
        for key in ["b", "c"] {
            write_text(&mut message, key);
            message.push(0xc0);
        }
        let error = expected().read(&message.into()).unwrap_err();
        assert_eq!(error, RequestError::LongKey { length: 302 });
        assert!(error.to_string().contains("a key has 302 bytes, with those of the maps around it; at most 256"));
    }

    #[test]
    fn every_violation_says_what_was_found_and_expected() {
        let with = |at: usize, value: Vec<u8>| {
            let mut parts = parts();
            parts[at].1 = value;
            error(&parts)
        };
        let without = |at: usize| {
            let mut parts = parts();
            parts.remove(at);
            error(&parts)
        };
        assert!(without(1).contains("no image of the camera `observation.images.wrist_image`"), "{}", without(1));
        assert!(without(1).contains("found `observation/image`, `observation/state`, `prompt`"), "{}", without(1));
        assert!(without(2).contains("no state"));
        let cases = [
            (0, bytes_array("<f4", &[1, 1, 3], &[0; 12]), "is float32 [1, 1, 3]; expected an image as uint8"),
            (0, bytes_array("|u1", &[3, 2, 2], &[0; 12]), "with channels first"),
            (0, bytes_array("|u1", &[0, 2, 3], &[]), "which is not from 1 to 8192 pixels"),
            (0, bytes_array("|u1", &[2, 2], &[0; 4]), "uint8 [2, 2]"),
            (0, text("image.png"), "is a text"),
            (2, state(&[1.0]), "float32 [1]; expected 2 finite numbers"),
            (2, state(&[1.0, f32::NAN]), "is NaN at place 1"),
            (2, bytes_array("<f8", &[2], &[1e300_f64.to_le_bytes(), 0_f64.to_le_bytes()].concat()), "inf at place 0"),
            (2, bytes_array("|b1", &[2], &[0, 1]), "is bool [2]"),
            (3, vec![7], "`prompt` is an integer; expected a text"),
        ];
        for (at, value, part) in cases {
            let error = with(at, value);
            assert!(error.contains(part), "{error}");
        }
        let mut both = parts();
        both.push(("program", text("seq[]")));
        assert!(error(&both).contains("both a prompt and a program"));
        let mut reset = parts();
        reset.push(("reset", text("yes")));
        assert!(error(&reset).contains("`reset` is a text; expected true or false"));
        for (name, part) in [
            (vec![0xd9, 44].into_iter().chain([b'a'; 44]).collect(), None),
            (vec![7], Some("`episode` is an integer; expected a text of at most 256 bytes")),
            (text(&"a".repeat(257)), Some("`episode` is a text of 257 bytes; expected a text of at most 256 bytes")),
        ] as [(Vec<u8>, Option<&str>); 3]
        {
            let mut episode = parts();
            episode.push(("episode", name));
            assert_eq!(expected().read(&map(&episode)).err().map(|error| error.to_string()).as_deref(), part);
        }
        let list = expected().read(&Bytes::from_static(&[0x90])).unwrap_err().to_string();
        assert!(list.starts_with("the message is a list of 0; expected a map"), "{list}");
    }
}
