//! Readings for TensorBoard: its event files, with the few fields that scalars need.
//!
//! A file is records: length (u64), its checksum, the bytes of a message, their checksum, all little-endian. Checksums
//! are CRC-32C, turned right by 15 bits, plus a constant. A message is `Event` in the wire format of protocol buffers:
//! ```text
//! Event   { 1: wall_time double, 2: step int64, 3: file_version string, 5: Summary, 7: SessionLog }
//! Summary { 1: repeated Value { 1: tag string, 2: simple_value float } }
//! SessionLog { 1: status, START = 1 }
//! ```
//! Each start writes a file of its own. `SessionLog` in it makes TensorBoard forget what earlier files say of the same
//! steps.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

/// The folder of event files in the run's directory.
pub const FOLDER: &str = "events";

const PREFIX: &str = "events.out.tfevents.";

/// An event file that is written to.
pub struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// A new file for a run that goes on after `step`, 0 for a new one.
    pub fn create(run: &Path, step: u64) -> Result<Events> {
        let folder = run.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder.clone(), source })?;
        // Files are read in the order of their names; two starts within a second must not share one.
        let path = folder.join(format!("{PREFIX}{}", (now() as u64).max(last_start(&folder)? + 1)));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|source| Error::File { path: path.clone(), source })?;
        let mut events = Events { path, file };
        let mut version = Message::event(0);
        version.bytes(3, b"brain.Event:2");
        events.record(&version)?;
        if step > 0 {
            let mut start = Message::default();
            start.varint(1, 1);
            let mut event = Message::event(step + 1);
            event.bytes(7, &start.0);
            events.record(&event)?;
        }
        Ok(events)
    }

    /// Adds scalars of a step.
    pub fn add<'a>(&mut self, step: u64, scalars: impl IntoIterator<Item = (&'a str, f64)>) -> Result<()> {
        let mut summary = Message::default();
        for (tag, value) in scalars {
            let mut one = Message::default();
            one.bytes(1, tag.as_bytes());
            one.float(2, value as f32);
            summary.bytes(1, &one.0);
        }
        let mut event = Message::event(step);
        event.bytes(5, &summary.0);
        self.record(&event)
    }

    fn record(&mut self, message: &Message) -> Result<()> {
        let length = (message.0.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(message.0.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked_checksum(&length).to_le_bytes());
        record.extend_from_slice(&message.0);
        record.extend_from_slice(&masked_checksum(&message.0).to_le_bytes());
        self.file.write_all(&record).map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

/// A message in the wire format of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn event(step: u64) -> Message {
        let mut message = Message::default();
        message.key(1, 1);
        message.0.extend_from_slice(&now().to_le_bytes());
        message.varint(2, step);
        message
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.raw_varint(field << 3 | wire_type);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.raw_varint(value);
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Seven bits a byte, the lowest first; the top bit says that more follow.
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The second in the name of the newest file.
fn last_start(folder: &Path) -> Result<u64> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let mut last = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let second = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|second| second.parse().ok());
        last = last.max(second.unwrap_or(0));
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field number, wire type and payload of each field: written from the format's description, apart from the code
    /// above.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return value;
                }
            }
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key & 7 {
                0 => {
                    let value = varint(&mut bytes);
                    found.push((key >> 3, value.to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            found.push((key >> 3, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        found
    }

    /// CRC-32C bit by bit.
    fn checksum(bytes: &[u8]) -> u32 {
        let mut state = !0_u32;
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                state = if state & 1 == 1 { state >> 1 ^ 0x82f6_3b78 } else { state >> 1 };
            }
        }
        let sum = !state;
        sum.rotate_right(15).wrapping_add(0xa282_ead8)
    }

    fn records(path: &Path) -> Vec<Vec<u8>> {
        let bytes = fs::read(path).unwrap();
        let (mut at, mut found) = (0, Vec::new());
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        while at < bytes.len() {
            let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            assert_eq!(word(at + 8), checksum(&bytes[at..at + 8]));
            let data = &bytes[at + 12..at + 12 + length];
            assert_eq!(word(at + 12 + length), checksum(data));
            found.push(data.to_vec());
            at += 16 + length;
        }
        found
    }

    fn field(message: &[u8], number: u64) -> Vec<u8> {
        fields(message).into_iter().find(|(found, _)| *found == number).unwrap().1
    }

    #[test]
    fn an_independent_reader_finds_versions_steps_and_values() {
        let run = tempfile::tempdir().unwrap();
        let mut events = Events::create(run.path(), 0).unwrap();
        events.add(300, [("train/loss", 0.25), ("train/rate", 3e-4)]).unwrap();
        let found = records(&events.path);
        assert_eq!(found.len(), 2);
        assert_eq!(field(&found[0], 3), b"brain.Event:2");
        let wall_time = f64::from_le_bytes(field(&found[0], 1).try_into().unwrap());
        assert!((now() - wall_time).abs() < 60.0);
        assert_eq!(field(&found[1], 2), 300_u64.to_le_bytes());
        let values = fields(&field(&found[1], 5));
        assert_eq!(values.len(), 2);
        for ((number, value), (tag, wanted)) in values.iter().zip([("train/loss", 0.25_f32), ("train/rate", 3e-4)]) {
            assert_eq!(*number, 1);
            assert_eq!(field(value, 1), tag.as_bytes());
            assert_eq!(field(value, 2), wanted.to_le_bytes());
        }
    }

    #[test]
    fn a_resumed_run_has_a_later_file_that_starts_a_session() {
        let run = tempfile::tempdir().unwrap();
        let first = Events::create(run.path(), 0).unwrap();
        let second = Events::create(run.path(), 40).unwrap();
        assert!(second.path > first.path);
        let found = records(&second.path);
        assert_eq!(field(&found[1], 2), 41_u64.to_le_bytes());
        assert_eq!(field(&field(&found[1], 7), 1), 1_u64.to_le_bytes());
    }
}
