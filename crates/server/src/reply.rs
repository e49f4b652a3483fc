//! From replies to messages.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::message::{write_array, write_json, write_text};
use crate::policy::{Metadata, Reply};

/// Milliseconds by name, for `server_timing`.
pub type Timing = BTreeMap<String, f64>;

/// The message that a client gets when it connects.
pub fn metadata_message(metadata: &Metadata) -> Vec<u8> {
    let mut out = Vec::new();
    write_json(&mut out, &metadata_json(metadata));
    out
}

/// The metadata with the name and version of the server.
pub fn metadata_json(metadata: &Metadata) -> Json {
    let mut all = json!({ "server": "refactor-vla", "version": env!("CARGO_PKG_VERSION") });
    if let (Json::Object(all), Ok(Json::Object(own))) = (&mut all, serde_json::to_value(metadata)) {
        all.extend(own);
    }
    all
}

/// The message of a reply. `actions` and `server_timing` are what every client of openpi reads; the other keys are ours, and
/// other clients ignore them.
///
/// | key | value |
/// |---|---|
/// | `actions` | float32 [horizon, width], in the units of the dataset |
/// | `server_timing` | milliseconds: `infer_ms`, from the second reply on `prev_total_ms`, and those of each stage |
/// | `program`, `task` | the program that is being executed, and that of the task as a whole |
/// | `active_span` | the bytes of `program` that are its active call |
/// | `library` | names of the library entries in the programs |
/// | `skill` | `name`, `readable` and `call` of the active skill |
/// | `progress` | how much of the active call is done, from 0 to 1 |
/// | `step` | `index` and `count` of the steps of a program that the client sent |
/// | `estimated_return` | nil if the policy does not estimate it |
/// | `rewritten` | whether the program was written for this request |
pub fn reply_message(reply: &Reply, horizon: usize, width: usize, timing: &Timing) -> Vec<u8> {
    let status = status_json(reply);
    let mut out = Vec::with_capacity(reply.actions.len() * 4 + 1024);
    let _ = rmp::encode::write_map_len(&mut out, 2 + status.len() as u32);
    write_text(&mut out, "actions");
    write_array(&mut out, &[horizon, width], &reply.actions);
    write_text(&mut out, "server_timing");
    write_json(&mut out, &json!(timing));
    for (key, value) in &status {
        write_text(&mut out, key);
        write_json(&mut out, value);
    }
    out
}

/// The answer to a request that only resets.
pub fn reset_message() -> Vec<u8> {
    let mut out = Vec::new();
    write_json(&mut out, &json!({ "reset": true }));
    out
}

/// The keys of a reply that are about the program.
pub fn status_json(reply: &Reply) -> serde_json::Map<String, Json> {
    let status = &reply.status;
    let fields = json!({
        "program": status.program,
        "active_span": status.active.as_ref().map(|span| [span.start, span.end]),
        "task": status.task,
        "library": status.library,
        "skill": status.skill,
        "progress": status.progress,
        "step": status.step.map(|(index, count)| json!({ "index": index, "count": count })),
        "estimated_return": status.estimated_return,
        "rewritten": status.rewritten,
    });
    match fields {
        Json::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Key, Limits, Value, decode};

    #[test]
    fn a_reply_has_what_openpi_reads() {
        let reply = Reply { actions: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], ..Reply::default() };
        let timing = Timing::from([("infer_ms".to_owned(), 1.5)]);
        let message = Bytes::from(reply_message(&reply, 3, 2, &timing));
        let Ok(Value::Map(map)) = decode(&message, &Limits::default()) else { panic!("no map") };
        let get = |key: &str| map[&Key::Text(key.to_owned())].clone();
        let Value::Array(actions) = get("actions") else { panic!("no array") };
        assert_eq!(actions.shape(), [3, 2]);
        let Value::Map(timing) = get("server_timing") else { panic!("no timing") };
        assert_eq!(timing[&Key::Text("infer_ms".to_owned())], Value::Float(1.5));
        assert_eq!((get("estimated_return"), get("rewritten")), (Value::Nil, Value::Bool(false)));
    }
}
