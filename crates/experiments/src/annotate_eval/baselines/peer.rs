//! Cuts that another program wrote into a file, such as those of Python's `ruptures` or of frozen features.
//!
//! ```json
//! {"name": "ruptures PELT", "settings": ["penalty 1", "penalty 2"],
//!  "cuts": {"libero_goal": {"0": [[31, 42], [31]], "1": [[20, 30, 46], [46]]}}}
//! ```
//! For each dataset and episode there is one list of rows for each setting. An episode may be missing: training episodes that
//! are, are not used to choose the setting, and a peer that misses a held-out one is not scored.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Cutter;
use crate::annotate_eval::samples::Sample;
use crate::error::{Error, Result};

/// The cuts of a peer on one dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    name: String,
    settings: Vec<String>,
    cuts: BTreeMap<u32, Vec<Vec<usize>>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    settings: Vec<String>,
    cuts: BTreeMap<String, BTreeMap<u32, Vec<Vec<usize>>>>,
}

impl Peer {
    /// Reads what a file says about a dataset; `None` if it says nothing.
    ///
    /// # Errors
    /// If the file cannot be read, is something else, or lacks a setting of an episode.
    pub fn read(path: &Path, dataset: &str) -> Result<Option<Peer>> {
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        let wrong = |reason: String| Error::Format { path: path.to_owned(), reason };
        let mut file: File = serde_json::from_slice(&bytes).map_err(|error| {
            wrong(format!("expected `name`, `settings` and `cuts` by dataset and episode: {error}"))
        })?;
        let Some(cuts) = file.cuts.remove(dataset) else { return Ok(None) };
        if let Some((episode, lists)) = cuts.iter().find(|(_, lists)| lists.len() != file.settings.len()) {
            let (found, wanted) = (lists.len(), file.settings.len());
            return Err(wrong(format!(
                "episode {episode} of `{dataset}` has cuts for {found} of {wanted} settings; write one list for each setting"
            )));
        }
        Ok(Some(Peer { name: file.name, settings: file.settings, cuts }))
    }
}

impl Cutter for Peer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn settings(&self) -> Vec<String> {
        self.settings.clone()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        let own = self.cuts.get(&sample.episode.0).and_then(|lists| lists.get(setting));
        let mut cuts = own.cloned().unwrap_or_default();
        cuts.retain(|cut| *cut > 0 && *cut < sample.len());
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts)
    }

    fn knows(&self, sample: &Sample) -> bool {
        self.cuts.contains_key(&sample.episode.0)
    }
}
