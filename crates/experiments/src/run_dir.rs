//! Run directories and their stages: results that are computed once, stored whole, and loaded again.
//!
//! A *stage* is a step of a run with inputs and a result. [`RunDir::stage`] loads the result if it was stored with the same
//! inputs, and otherwise computes and stores it. Inputs are plain data (settings, hashes of what came before), so `run`,
//! `train` and `eval` find each other's finished stages in a directory; a result that was made from other inputs is an error
//! that names the differences, never a silent mix-up.
//!
//! With several processes the first one computes and stores, and the others receive its result, so that stages do not depend
//! on how many processes there are.
//!
//! **Files appear whole or not at all**: everything is written to a `.partial` file and renamed. A start that fails before
//! anything is computed takes its settings away again, so that the directory is what it was before.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataset::whole_file::{PARTIAL, WholeFile};
use models::training::distributed::Transport;
use models::training::{Difference, differences};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The file with the resolved settings of a run.
pub const CONFIG: &str = "config.json";

/// Files that a run may leave before its first stage is finished; a directory with nothing else counts as empty.
const BEFORE_STAGES: [&str; 2] = [CONFIG, "time.json"];

/// How many differences a message names.
const SHOWN: usize = 5;

/// What the first process tells the others about a stage: the result follows, it failed, or the user interrupted it.
const COMPUTED: u8 = 1;
const FAILED: u8 = 2;
const INTERRUPTED: u8 = 3;

/// Parts of a configuration that say how a run was asked for, not what it is: they may change when it is resumed.
const NOT_COMPARED: [&str; 4] = ["/version", "/preset", "/source/name", "/source/datasets"];

/// A directory in which the results of a run are stored.
pub struct RunDir {
    root: PathBuf,
    transport: Arc<dyn Transport>,
    /// Whether the directory was made for this run.
    is_new: bool,
}

/// A stage as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    inputs: Value,
    result: T,
}

impl RunDir {
    /// Creates a directory for a run, or opens it to resume. Settings that are stored already must not contradict `config`;
    /// settings of further phases are added to them, so that single phases and whole runs can share a directory.
    ///
    /// # Errors
    /// If the directory holds something else, a run with other settings, or a run while `resume` is false.
    pub fn open(root: &Path, resume: bool, config: &Value, transport: Arc<dyn Transport>) -> Result<RunDir> {
        let run = RunDir { root: root.to_owned(), transport, is_new: !root.exists() };
        let opened = if run.is_first() { run.prepare(resume, config) } else { Ok(()) };
        let is_open = run.agreed(|| opened.is_ok())?;
        opened?;
        match is_open {
            true => Ok(run),
            false => Err(Error::Mismatch("the first process could not open the run; its message says why".to_owned())),
        }
    }

    fn prepare(&self, resume: bool, config: &Value) -> Result<()> {
        // A start that failed before its first result leaves nothing worth keeping.
        let known = claim(&self.root, resume, has_results(&self.root), config)?;
        fs::create_dir_all(&self.root).map_err(Error::write(&self.root))?;
        let merged = known.as_ref().map_or_else(|| config.clone(), |known| merged(known, config));
        if known == Some(merged.clone()) { Ok(()) } else { write_json(&self.root.join(CONFIG), &merged) }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The way to the other processes of the run.
    pub fn transport(&self) -> Arc<dyn Transport> {
        self.transport.clone()
    }

    /// Whether this is the process that computes stages and writes files.
    pub fn is_first(&self) -> bool {
        self.transport.rank() == 0
    }

    /// Waits until all processes are here.
    pub fn wait(&self) -> Result<()> {
        Ok(self.transport.barrier()?)
    }

    /// Whether a stage has a stored result. All processes get the first one's answer.
    pub fn is_done(&self, name: &str) -> Result<bool> {
        self.agreed(|| self.file(name).is_file())
    }

    /// The first process's answer to a question, on all processes.
    pub fn agreed(&self, ask: impl FnOnce() -> bool) -> Result<bool> {
        let answer = if self.is_first() { vec![u8::from(ask())] } else { vec![0] };
        Ok(self.transport.broadcast_bytes(answer)? == [1])
    }

    /// The result of a stage: the stored one, or a new one that is then stored in `NAME.json`.
    ///
    /// # Errors
    /// Those of `compute`; and if the stored result was made from other inputs.
    pub fn stage<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        inputs: &impl Serialize,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let path = self.file(name);
        if !self.is_first() {
            let sent = self.transport.broadcast_bytes(Vec::new())?;
            return match sent.split_first() {
                Some((&COMPUTED, result)) => parsed(&path, result),
                Some((&INTERRUPTED, _)) => Err(Error::Interrupted),
                _ => Err(Error::Mismatch(format!(
                    "the first process failed at the stage `{name}`; its message says why"
                ))),
            };
        }
        let found = self.found(name, &path, inputs, compute);
        if self.transport.world() > 1 {
            let sent = match &found {
                Ok(result) => {
                    json_bytes(&path, result).map_or_else(|_| vec![FAILED], |bytes| [vec![COMPUTED], bytes].concat())
                }
                Err(Error::Interrupted) => vec![INTERRUPTED],
                Err(_) => vec![FAILED],
            };
            self.transport.broadcast_bytes(sent)?;
        }
        found
    }

    fn found<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        path: &Path,
        inputs: &impl Serialize,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let inputs = serde_json::to_value(inputs).map_err(|error| unwritten(path, &error))?;
        if path.is_file() {
            let stored: Stored<T> = read_json(path)?;
            let other = differences(&stored.inputs, &inputs);
            if !other.is_empty() {
                let reason = format!("holds the stage `{name}` of a run that differs: {}", named(&other));
                return Err(Error::RunExists { run: self.root.clone(), reason });
            }
            return Ok(stored.result);
        }
        let result = compute()?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::write(folder))?;
        }
        let stored = Stored { inputs, result };
        write_json(path, &stored)?;
        Ok(stored.result)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.json"))
    }
}

impl Drop for RunDir {
    /// Removes the settings of a run that has computed nothing: nobody could resume it, and it is no run to look at.
    fn drop(&mut self) {
        if !self.is_first() || !is_bare(&self.root) {
            return;
        }
        remove_early_files(&self.root);
        if self.is_new {
            // Fails where something else has been put there, which then stays.
            let _ = fs::remove_dir(&self.root);
        }
    }
}

/// Whether a directory and those below have nothing but files that a run leaves before its first stage.
fn is_bare(root: &Path) -> bool {
    names_in(root).all(|name| is_early(&name) || (is_folder(&root.join(&name)) && is_bare(&root.join(&name))))
}

/// Whether something is a directory itself, not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Removes the files that a run leaves before its first stage, and directories that are empty without them.
fn remove_early_files(root: &Path) {
    for name in names_in(root) {
        let path = root.join(&name);
        match is_folder(&path) {
            true => {
                remove_early_files(&path);
                let _ = fs::remove_dir(&path);
            }
            false if is_early(&name) => drop(fs::remove_file(&path)),
            false => {}
        }
    }
}

/// Whether a file is one that a run may leave before its first stage.
fn is_early(name: &str) -> bool {
    BEFORE_STAGES.contains(&name.strip_suffix(PARTIAL).unwrap_or(name))
}

/// The stored result of a stage, for commands that only look at a run; `None` if it is not there.
pub fn stored<T: DeserializeOwned>(run: &Path, name: &str) -> Result<Option<T>> {
    let path = run.join(format!("{name}.json"));
    if !path.is_file() {
        return Ok(None);
    }
    read_json::<Stored<T>>(&path).map(|stored| Some(stored.result))
}

/// Refuses a directory that holds something else than the run described by `config`. Returns the settings that are stored
/// there, if the run has `begun`: if it has results that resuming would continue.
///
/// # Errors
/// If the directory is a file, has other files in it, has a run while `resume` is false, or a run with other settings.
pub(crate) fn claim(root: &Path, resume: bool, begun: bool, config: &Value) -> Result<Option<Value>> {
    let exists = |reason: String| Error::RunExists { run: root.to_owned(), reason };
    if root.is_file() {
        return Err(exists("is a file; expected a directory to create".to_owned()));
    }
    let path = root.join(CONFIG);
    if !path.is_file() {
        return match is_bare(root) {
            true => Ok(None),
            false => Err(exists("contains other files".to_owned())),
        };
    }
    if !begun {
        return Ok(None);
    }
    if !resume {
        return Err(exists("already contains a run".to_owned()));
    }
    let known: Value = read_json(&path)?;
    let other = conflicts(&comparable(&known), &comparable(config));
    match other.is_empty() {
        true => Ok(Some(known)),
        false => Err(exists(format!("contains a run with other settings: {}", named(&other)))),
    }
}

/// A configuration without the parts that are not compared.
fn comparable(config: &Value) -> Value {
    let mut config = config.clone();
    for place in NOT_COMPARED {
        if let Some(value) = config.pointer_mut(place) {
            *value = Value::Null;
        }
    }
    config
}

/// Whether a directory has the result of a stage, a trained model or a checkpoint, in itself or below.
fn has_results(root: &Path) -> bool {
    names_in(root).any(|name| {
        let path = root.join(&name);
        let is_early = BEFORE_STAGES.contains(&name.as_str());
        let is_result = (name.ends_with(".json") || name.ends_with(".safetensors")) && !is_early;
        is_result || (path.is_dir() && has_results(&path))
    })
}

/// The names of what is in a directory.
fn names_in(root: &Path) -> impl Iterator<Item = String> {
    let entries = root.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The places that both values have and at which they differ.
fn conflicts(was: &Value, is: &Value) -> Vec<Difference> {
    let mut found = differences(was, is);
    found.retain(|difference| difference.was.is_some() && difference.is.is_some());
    found
}

fn named(differences: &[Difference]) -> String {
    let shown: Vec<String> = differences.iter().take(SHOWN).map(Difference::to_string).collect();
    let mut text = shown.join(", ");
    if differences.len() > SHOWN {
        text += &format!(" and {} more", differences.len() - SHOWN);
    }
    text
}

/// Both values, with the fields of either.
fn merged(known: &Value, added: &Value) -> Value {
    let (Value::Object(known), Value::Object(added)) = (known, added) else { return added.clone() };
    let mut all: Map<String, Value> = known.clone();
    for (name, value) in added {
        let value = all.get(name).map_or_else(|| value.clone(), |old| merged(old, value));
        all.insert(name.clone(), value);
    }
    Value::Object(all)
}

/// Reads JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parsed(path, &fs::read(path).map_err(Error::file(path))?)
}

fn parsed<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Format { path: path.to_owned(), reason: error.to_string() })
}

/// Writes JSON to a file that appears whole or not at all.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_text(path, &json_bytes(path, value)?)
}

/// What [`write_json`] writes; the path is for the message of a failure.
pub(crate) fn json_bytes(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| unwritten(path, &error))?;
    text.push(b'\n');
    Ok(text)
}

/// Writes a file that appears whole or not at all.
pub fn write_text(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = WholeFile::create(path).map_err(Error::write(path))?;
    file.write_all(text).and_then(|()| file.finish()).map_err(Error::write(path))
}

fn unwritten(path: &Path, error: &serde_json::Error) -> Error {
    Error::Format { path: path.to_owned(), reason: format!("cannot be written: {error}") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use models::training::distributed::Alone;
    use serde_json::json;

    use super::*;

    fn open(root: &Path, resume: bool, config: &Value) -> Result<RunDir> {
        RunDir::open(root, resume, config, Arc::new(Alone::default()))
    }

    #[test]
    fn a_stage_is_computed_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let computed = Cell::new(0);
        let stage = |run: &RunDir, seed: u64| -> Result<Vec<u32>> {
            run.stage("deep/numbers", &json!({ "seed": seed }), || {
                computed.set(computed.get() + 1);
                Ok(vec![1, 2, 3])
            })
        };
        let run = open(&root, false, &json!({ "seed": 1 })).unwrap();
        assert!(!run.is_done("deep/numbers").unwrap());
        assert_eq!(stage(&run, 1).unwrap(), [1, 2, 3]);
        assert!(run.is_done("deep/numbers").unwrap());
        assert_eq!(stage(&run, 1).unwrap(), [1, 2, 3]);
        // Another process that resumes finds it as well.
        let again = open(&root, true, &json!({ "seed": 1 })).unwrap();
        assert_eq!(stage(&again, 1).unwrap(), [1, 2, 3]);
        assert_eq!(computed.get(), 1);
        assert_eq!(stored::<Vec<u32>>(&root, "deep/numbers").unwrap(), Some(vec![1, 2, 3]));
        assert_eq!(stored::<Vec<u32>>(&root, "other").unwrap(), None);
        let error = stage(&again, 2).unwrap_err().to_string();
        assert!(error.contains("the stage `deep/numbers` of a run that differs: `seed` was 1, is 2"), "{error}");
        assert_eq!(computed.get(), 1, "nothing is computed over another result");
    }

    #[test]
    fn a_stage_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = open(&folder.path().join("run"), false, &json!({})).unwrap();
        let failed: Result<u32> = run.stage("one", &(), || Err(Error::Mismatch("no".to_owned())));
        assert!(failed.is_err() && !run.is_done("one").unwrap());
        assert_eq!(run.stage("one", &(), || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn single_phases_and_whole_runs_share_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let first = open(&root, false, &json!({ "seed": 3, "settings": { "a": { "steps": 5 } } })).unwrap();
        first.stage("a", &(), || Ok(1)).unwrap();
        let whole = json!({ "seed": 3, "settings": { "a": { "steps": 5 }, "b": { "steps": 6 } } });
        let error = open(&root, false, &whole).err().unwrap().to_string();
        assert!(error.contains("already contains a run"), "{error}");
        open(&root, true, &whole).unwrap();
        assert_eq!(read_json::<Value>(&root.join(CONFIG)).unwrap(), whole);
        let other = json!({ "seed": 4, "settings": { "b": { "steps": 7 } } });
        let error = open(&root, true, &other).err().unwrap().to_string();
        assert!(error.contains("`seed` was 3, is 4, `settings.b.steps` was 6, is 7"), "{error}");
    }

    #[test]
    fn other_directories_are_refused_and_failed_starts_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("config.json"), "{\"seed\": 1}").unwrap();
        fs::write(root.join("config.json.partial"), "{").unwrap();
        open(&root, false, &json!({ "seed": 2 })).unwrap();
        fs::write(root.join("notes.txt"), "mine").unwrap();
        let error = open(&root, true, &json!({ "seed": 2 })).err().unwrap().to_string();
        assert!(error.contains("contains other files"), "{error}");
        let error = open(&root.join("notes.txt"), true, &json!({})).err().unwrap().to_string();
        assert!(error.contains("is a file"), "{error}");
    }

    #[test]
    fn finding_10_a_start_that_computes_nothing_leaves_the_directory_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::create_dir(&old).unwrap();
        for root in [&new, &old] {
            let run = open(root, false, &json!({ "seed": 1 })).unwrap();
            let failed: Result<u32> = run.stage("one", &(), || Err(Error::Mismatch("no".to_owned())));
            assert!(failed.is_err() && root.join(CONFIG).is_file());
            fs::create_dir_all(root.join("world_model/checkpoints")).unwrap();
            fs::write(root.join("world_model/config.json"), "{}").unwrap();
        }
        assert!(!new.exists() && names_in(&old).next().is_none());
        // What was computed stays, and so does what someone else put there.
        open(&new, false, &json!({ "seed": 2 })).unwrap().stage("one", &(), || Ok(7)).unwrap();
        assert!(new.join(CONFIG).is_file());
        let run = open(&old, false, &json!({ "seed": 2 })).unwrap();
        fs::write(old.join("notes.txt"), "mine").unwrap();
        drop(run);
        assert!(old.join(CONFIG).is_file() && old.join("notes.txt").is_file());
    }

    #[test]
    fn finding_10_a_directory_that_cannot_be_written_is_said_in_words() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = open(&folder.path().join("file/run"), false, &json!({})).err().unwrap();
        let said = error.to_string();
        assert!(matches!(error, Error::Write { .. }) && !said.contains("os error"), "{said}");
        assert!(said.ends_with("a part of the path is a file, not a directory"), "{said}");
        let read_only = Error::write(Path::new("run"))(std::io::ErrorKind::ReadOnlyFilesystem.into());
        assert_eq!(read_only.to_string(), "cannot write to `run`: the file system is read-only");
    }

    #[test]
    fn a_training_that_failed_before_its_first_checkpoint_does_not_block_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let run = open(&root, false, &json!({ "seed": 1 })).unwrap();
        fs::create_dir_all(root.join("world_model/checkpoints")).unwrap();
        fs::write(root.join("world_model/config.json"), "{}").unwrap();
        fs::write(root.join("world_model/metrics.jsonl"), "{}").unwrap();
        drop(run);
        assert!(root.join(CONFIG).is_file(), "what a training has noted stays, with its settings");
        open(&root, false, &json!({ "seed": 2 })).unwrap();
        fs::write(root.join("world_model/checkpoints/step-5.safetensors"), "").unwrap();
        assert!(open(&root, false, &json!({ "seed": 2 })).is_err());
    }

    #[test]
    fn versions_presets_and_names_may_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let config = |version: &str, name: &str, hash: &str| json!({ "version": version, "preset": version, "source": { "name": name, "fingerprint": hash } });
        open(&root, false, &config("1", "a", "x")).unwrap().stage("one", &(), || Ok(7)).unwrap();
        open(&root, true, &config("2", "b", "x")).unwrap();
        assert!(open(&root, true, &config("2", "b", "y")).is_err(), "other data");
    }

    #[test]
    fn differences_name_places_and_values() {
        let found = differences(&json!({ "a": { "b": 1, "c": 2 }, "d": [1] }), &json!({ "a": { "b": 3 }, "d": [1] }));
        let found: Vec<String> = found.iter().map(Difference::to_string).collect();
        assert_eq!(found, ["`a.b` was 1, is 3", "`a.c` was 2, is absent"]);
        assert!(conflicts(&json!({ "a": 1 }), &json!({ "b": 2 })).is_empty());
        let many = differences(&json!({}), &json!({ "a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6 }));
        let shown: Vec<String> = many[..SHOWN].iter().map(Difference::to_string).collect();
        assert_eq!(named(&many), format!("{} and 2 more", shown.join(", ")));
    }
}
