//! `programs.json`: every demonstration as two programs, which a server of the run's policy executes as they stand.
//!
//! Targets are exact, not on the grid of the library, so that a demonstration can be repeated from its own start.

use dataset::EpisodeId;
use language::print;
use serde::{Deserialize, Serialize};

use super::corpus::Corpus;
use super::demonstrations::Demonstrations;
use crate::error::Result;

/// The file in the directory of a run.
pub const PROGRAMS: &str = "programs.json";

/// The programs of a demonstration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemonstrationPrograms {
    /// Which episode.
    pub episode: EpisodeId,
    /// Whether it is held out.
    pub held_out: bool,
    /// Its instruction.
    pub instruction: String,
    /// What was asked for.
    pub task: String,
    /// What was done.
    pub motion: String,
}

/// The programs of all demonstrations.
pub fn demonstration_programs(demonstrations: &Demonstrations, corpus: &Corpus) -> Result<Vec<DemonstrationPrograms>> {
    let mut store = corpus.store.clone();
    let mut all = Vec::with_capacity(demonstrations.all.len());
    for (at, one) in demonstrations.all.iter().enumerate() {
        let motion = corpus.alphabet.program(&mut store, &corpus.exact[at])?;
        all.push(DemonstrationPrograms {
            episode: one.episode,
            held_out: one.held_out,
            instruction: one.instruction.clone(),
            task: print(&store, corpus.tasks[at]),
            motion: print(&store, motion),
        });
    }
    Ok(all)
}
