//! Weights on disk: safetensors, written beside their place, synced and renamed.
//!
//! ```text
//! checkpoints/step-00000400.safetensors
//!   weights/<name>, moments/<name>.mean, moments/<name>.square, averages/<name>    f32
//!   checksum                                                                       u8 [4], the last bytes of the file
//!   __metadata__.run                                                               JSON: step, settings, readings
//! model.safetensors
//!   <name>                                                                         f32
//!   __metadata__.run                                                               JSON: step, settings
//! ```
//! The checksum is CRC-32C of all bytes before it, so a file that was cut short or changed is never mistaken for a
//! whole one. What is not finite is not written.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use dataset::whole_file::{PARTIAL, WholeFile};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// The folder of checkpoints in the run's directory.
pub const FOLDER: &str = "checkpoints";

/// The weights of a finished run, in its directory.
pub const MODEL: &str = "model.safetensors";

const CHECKSUM: &str = "checksum";
const METADATA: &str = "run";

/// Tensors and what is said about them.
pub struct Stored {
    /// By name.
    pub tensors: BTreeMap<String, Tensor>,
    /// What was written with them.
    pub metadata: Value,
}

/// Puts the weights of a `model.safetensors` into a model, and returns what is said about them.
pub fn load_model(path: &Path, parameters: &Parameters) -> Result<Value> {
    let Stored { tensors, metadata } = parse(path, &read(path)?, parameters.device())?;
    parameters.assign(&tensors).map_err(|error| format_error(path, error))?;
    Ok(metadata)
}

/// Where the checkpoint of a step is.
pub fn path_of(run: &Path, step: u64) -> PathBuf {
    run.join(FOLDER).join(format!("step-{step:08}.safetensors"))
}

/// All checkpoints of a run, the newest first, whether they are whole or not.
pub fn list(run: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let folder = run.join(FOLDER);
    let mut found: Vec<(u64, PathBuf)> = names(&folder)?
        .into_iter()
        .filter_map(|name| {
            let step = name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok()?;
            Some((step, folder.join(name)))
        })
        .collect();
    found.sort_unstable_by(|left, right| right.cmp(left));
    Ok(found)
}

/// Reads a checkpoint, or says why it is damaged.
pub fn load(path: &Path, device: &Device) -> Result<Stored> {
    let bytes = read(path)?;
    let damaged = |reason: String| Error::Format { path: path.to_owned(), reason };
    let Some((before, checksum)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged(format!("damaged: {} bytes are no checkpoint", bytes.len())));
    };
    if crc32c::crc32c(before) != u32::from_le_bytes(*checksum) {
        return Err(damaged("damaged: its checksum is not that of its bytes; it was cut short or changed".into()));
    }
    let mut stored = parse(path, &bytes, device)?;
    stored.tensors.remove(CHECKSUM);
    Ok(stored)
}

/// Writes f32 tensors with a checksum. If one has a value that is not finite, nothing is written and its name returned.
pub fn save(path: &Path, tensors: &BTreeMap<String, Tensor>, metadata: &Value) -> Result<Option<String>> {
    write(path, tensors, metadata, true)
}

/// Like [`save`], without the checksum: for readers that want weights and nothing else.
pub fn save_model(path: &Path, tensors: &BTreeMap<String, Tensor>, metadata: &Value) -> Result<Option<String>> {
    write(path, tensors, metadata, false)
}

/// Removes all checkpoints but the newest ones.
pub fn prune(run: &Path, keep: usize) -> Result<()> {
    list(run)?.into_iter().skip(keep).try_for_each(|(_, path)| remove(&path))
}

/// Makes the folder, and removes what a killed run left in it.
pub fn prepare_folder(run: &Path) -> Result<()> {
    let folder = run.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder.clone(), source })?;
    let unfinished = names(&folder)?.into_iter().filter(|name| name.ends_with(PARTIAL));
    unfinished.into_iter().try_for_each(|name| remove(&folder.join(name)))
}

fn write(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    metadata: &Value,
    with_checksum: bool,
) -> Result<Option<String>> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut file = Summed { file: WholeFile::create(path).map_err(failed)?, sum: 0 };
    let header = header(tensors, metadata, with_checksum).map_err(|error| format_error(path, error))?;
    file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
    file.write_all(header.as_bytes()).map_err(failed)?;
    for (name, tensor) in tensors {
        let values = tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        if !values.iter().all(|value| value.is_finite()) {
            return Ok(Some(name.clone()));
        }
        let mut bytes = Vec::with_capacity(1 << 20);
        for chunk in values.chunks(1 << 18) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
            file.write_all(&bytes).map_err(failed)?;
        }
    }
    if with_checksum {
        let sum = file.sum.to_le_bytes();
        file.write_all(&sum).map_err(failed)?;
    }
    file.file.finish().map_err(failed)?;
    Ok(None)
}

fn header(tensors: &BTreeMap<String, Tensor>, metadata: &Value, with_checksum: bool) -> Result<String> {
    let mut end = 0;
    let mut place = |name: &str, dtype: Dtype, shape: Vec<usize>, bytes: usize| {
        let start = end;
        end += bytes;
        (name.to_owned(), TensorInfo { dtype, shape, data_offsets: (start, end) })
    };
    let mut entries: Vec<_> = tensors
        .iter()
        .map(|(name, tensor)| place(name, Dtype::F32, tensor.dims().to_vec(), tensor.elem_count() * 4))
        .collect();
    if with_checksum {
        entries.push(place(CHECKSUM, Dtype::U8, vec![4], 4));
    }
    let said = HashMap::from([(METADATA.to_owned(), metadata.to_string())]);
    let metadata = Metadata::new(Some(said), entries).map_err(|error| Error::Config(error.to_string()))?;
    let mut text = serde_json::to_string(&metadata).map_err(|error| Error::Config(error.to_string()))?;
    // Values start at a multiple of eight bytes.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    Ok(text)
}

fn parse(path: &Path, bytes: &[u8], device: &Device) -> Result<Stored> {
    let damaged = |reason: String| Error::Format { path: path.to_owned(), reason };
    let not_ours = |what: &dyn std::fmt::Display| damaged(format!("not a file of weights of ours: {what}"));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| not_ours(&error))?;
    let said = metadata.metadata().as_ref().and_then(|said| said.get(METADATA));
    let said = said.ok_or_else(|| not_ours(&format!("its metadata has no `{METADATA}`")))?;
    let metadata = serde_json::from_str(said).map_err(|error| not_ours(&error))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in SafeTensors::deserialize(bytes).map_err(|error| not_ours(&error))?.iter() {
        let dtype = match view.dtype() {
            Dtype::F32 => DType::F32,
            Dtype::U8 => DType::U8,
            other => return Err(not_ours(&format!("`{name}` is {other:?}, wanted f32"))),
        };
        tensors.insert(name.to_owned(), Tensor::from_raw_buffer(view.data(), dtype, view.shape(), device)?);
    }
    Ok(Stored { tensors, metadata })
}

/// Everything that is written, and its checksum so far.
struct Summed {
    file: WholeFile,
    sum: u32,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// The names of files in a folder, none if there is no folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry.map_err(failed)?.file_name().into_string().ok());
    entries.filter_map(|entry| name(entry).transpose()).collect()
}

fn format_error(path: &Path, error: Error) -> Error {
    Error::Format { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tensors(values: &[f32]) -> BTreeMap<String, Tensor> {
        BTreeMap::from([("weights/a".to_owned(), Tensor::new(values, &Device::Cpu).unwrap())])
    }

    #[test]
    fn any_changed_or_missing_byte_is_noticed() {
        let run = tempfile::tempdir().unwrap();
        prepare_folder(run.path()).unwrap();
        let path = path_of(run.path(), 7);
        assert_eq!(save(&path, &tensors(&[1.0, -2.5]), &json!({ "step": 7 })).unwrap(), None);
        let stored = load(&path, &Device::Cpu).unwrap();
        assert_eq!(stored.metadata, json!({ "step": 7 }));
        assert_eq!(stored.tensors.len(), 1);
        assert_eq!(stored.tensors["weights/a"].to_vec1::<f32>().unwrap(), [1.0, -2.5]);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            fs::write(&path, &changed).unwrap();
            assert!(load(&path, &Device::Cpu).is_err(), "byte {at} changed");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(load(&path, &Device::Cpu).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn what_is_not_finite_is_not_written() {
        let run = tempfile::tempdir().unwrap();
        prepare_folder(run.path()).unwrap();
        let path = path_of(run.path(), 7);
        assert_eq!(save(&path, &tensors(&[1.0, f32::NAN]), &json!({})).unwrap(), Some("weights/a".to_owned()));
        assert!(names(&run.path().join(FOLDER)).unwrap().is_empty());
    }

    #[test]
    fn the_newest_are_kept_and_leftovers_removed() {
        let run = tempfile::tempdir().unwrap();
        prepare_folder(run.path()).unwrap();
        for step in [3, 12, 100_000_000, 7] {
            save(&path_of(run.path(), step), &tensors(&[1.0]), &json!({})).unwrap();
        }
        fs::write(run.path().join(FOLDER).join("step-00000200.safetensors.partial"), b"half").unwrap();
        prepare_folder(run.path()).unwrap();
        prune(run.path(), 2).unwrap();
        let left: Vec<u64> = list(run.path()).unwrap().into_iter().map(|(step, _)| step).collect();
        assert_eq!(left, [100_000_000, 12]);
        assert_eq!(names(&run.path().join(FOLDER)).unwrap().len(), 2);
    }
}
