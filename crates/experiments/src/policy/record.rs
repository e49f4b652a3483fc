//! `policy.json`: what a run writes down so that its policy can be served without its data.
//!
//! Models carry their scales and vocabularies; cameras and encoder are in their records, skills and library in files of their
//! own. Missing are the names of columns, the limits of actions, a hash of the encoder's weights, and which program an
//! instruction stands for.

use std::collections::BTreeSet;
use std::path::Path;

use language::print;
use serde::{Deserialize, Serialize};
use skills::ActionLayout;

use crate::cycle::corpus::Corpus;
use crate::cycle::demonstrations::Demonstrations;
use crate::error::Result;
use crate::prepared::Prepared;
use crate::run_dir::read_json;

/// The file in the directory of a run.
pub const POLICY: &str = "policy.json";

/// What a run says about its policy's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRecord {
    /// Control steps per second.
    pub fps: f64,
    /// The column of states.
    pub state_key: String,
    /// The names of its numbers, where the data have them.
    pub state_names: Vec<String>,
    /// The names of an action's numbers, where the data have them.
    pub action_names: Vec<String>,
    /// For each number of an action the least and the largest of the training episodes.
    pub limits: Vec<[f32; 2]>,
    /// A hash of the encoder's weights, where it is known.
    pub encoder: Option<String>,
    /// The training instructions with the programs of their tasks.
    pub tasks: Vec<TaskRecord>,
}

/// An instruction and its program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRecord {
    /// The instruction.
    pub instruction: String,
    /// The program of its task, without a library.
    pub program: String,
}

impl PolicyRecord {
    /// That of a run.
    pub fn of(prepared: &Prepared, demonstrations: &Demonstrations, corpus: &Corpus) -> PolicyRecord {
        let (source, dataset) = (&prepared.source, &prepared.source.dataset);
        let names = |key: &str| dataset.info().feature(key).and_then(|feature| feature.dimension_names());
        let roles = dataset.roles();
        let state_key = roles.state.clone();
        let actions = &dataset.columns().actions;
        let mut limits = vec![[f32::INFINITY, f32::NEG_INFINITY]; actions.width];
        for episode in &prepared.split.train {
            let Some(span) = dataset.spans().get(episode.at()) else { continue };
            for row in actions.rows(span.frames.clone()).chunks_exact(actions.width.max(1)) {
                for (limit, value) in limits.iter_mut().zip(row) {
                    *limit = [limit[0].min(*value), limit[1].max(*value)];
                }
            }
        }
        let training = demonstrations.all.iter().zip(&corpus.tasks).filter(|(one, _)| !one.held_out);
        let tasks: BTreeSet<TaskRecord> = training
            .map(|(one, task)| TaskRecord {
                instruction: one.instruction.clone(),
                program: print(&corpus.store, *task),
            })
            .collect();
        PolicyRecord {
            fps: dataset.info().fps,
            state_names: names(&state_key).unwrap_or_default(),
            state_key,
            action_names: names(&roles.action).unwrap_or_default(),
            limits,
            encoder: source.weights().map(str::to_owned),
            tasks: tasks.into_iter().collect(),
        }
    }

    /// That of a run's directory; one that is made of the skills' layout if an earlier version made the run.
    pub(super) fn load(run: &Path, layout: &ActionLayout) -> Result<PolicyRecord> {
        let path = run.join(POLICY);
        if path.is_file() {
            return read_json(&path);
        }
        let mut limits = vec![[f32::NEG_INFINITY, f32::INFINITY]; layout.width];
        let groups = layout.groups.iter().flat_map(|group| group.columns.iter().zip(&group.limits));
        let grippers = layout.grippers.iter().map(|gripper| (&gripper.column, &gripper.limits));
        for (column, limit) in groups.chain(grippers) {
            if let Some(place) = limits.get_mut(*column) {
                *place = limit.map(|value| value as f32);
            }
        }
        Ok(PolicyRecord {
            fps: layout.fps,
            state_key: "observation.state".to_owned(),
            state_names: Vec::new(),
            action_names: Vec::new(),
            limits,
            encoder: None,
            tasks: Vec::new(),
        })
    }

    /// Cuts actions to their limits.
    pub(super) fn clip(&self, actions: &mut [f32]) {
        for row in actions.chunks_mut(self.limits.len().max(1)) {
            for (value, [low, high]) in row.iter_mut().zip(&self.limits) {
                *value = value.max(*low).min(*high);
            }
        }
    }
}
