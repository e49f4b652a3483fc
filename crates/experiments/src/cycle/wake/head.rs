//! Heads of the policy as values: what phase B trains, and the held-out figures of each.
//!
//! A head is a part of the policy with its own training: the emitter writes programs, the decoder turns programs into
//! actions. The driver knows heads only through [`Head`] and [`TrainedHead`], and figures travel as [`Measure`]s from here
//! to the report's table, so a new head is one file and one line in [`heads`](super::heads).

use models::vocabulary::Piece;
use report::Better;
use serde::{Deserialize, Serialize};

use super::{Before, WakeData};
use crate::error::Result;
use crate::trained::Launch;

/// A part of the policy that is trained by itself.
pub trait Head {
    /// Its name, which is also the name of its directory.
    fn name(&self) -> &'static str;

    /// Whether it is about programs, so that a policy without programs has no use for it.
    fn writes_programs(&self) -> bool {
        false
    }

    /// Trains the head into the directory of the launch, or loads it if its training has finished there. With `before` it
    /// starts from the weights of an earlier policy whose vocabulary has grown since.
    ///
    /// # Errors
    /// `Interrupted` if training was stopped; it resumes from its checkpoint.
    fn train(
        &self,
        data: &WakeData<'_>,
        launch: Launch<'_>,
        before: Option<&Before<'_>>,
    ) -> Result<Box<dyn TrainedHead>>;
}

/// A head after its training.
pub trait TrainedHead {
    /// The programs that it writes for some frames; `None` if it does not write programs.
    fn programs(&self, _data: &WakeData<'_>, _frames: &[usize]) -> Result<Option<Vec<Vec<Piece>>>> {
        Ok(None)
    }

    /// Its figures on held-out frames.
    fn measures(&self, data: &WakeData<'_>, held_out: &HeldOutPrograms) -> Result<Vec<Measure>>;
}

/// Held-out frames, and the programs that a policy has there.
pub struct HeldOutPrograms {
    /// Frames, evenly chosen, at which figures that need no emitted programs are measured.
    pub judged: Vec<usize>,
    /// Frames, evenly chosen, for which programs are emitted.
    pub frames: Vec<usize>,
    /// The programs of `frames` as the demonstrations have them. They describe the episode's own future: an oracle.
    pub oracle: Vec<Vec<Piece>>,
    /// The plans of `frames` as the demonstrations have them, an oracle too.
    pub plans: Vec<Vec<Piece>>,
    /// The programs that the policy wrote for `frames`; `None` if it writes none.
    pub emitted: Option<Vec<Vec<Piece>>>,
}

/// One held-out figure of a head, with all that a table needs to show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The head or the part of the policy that it belongs to.
    pub group: String,
    /// Its name, unique within the group.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Which direction is better.
    pub better: Better,
    /// The paper's value, where it has one.
    pub paper: Option<String>,
    /// What a reader must know to interpret it.
    pub note: String,
}

impl Measure {
    /// A figure of which more is better.
    pub fn higher(group: &str, name: &str, value: f64, note: &str) -> Measure {
        Measure::new(group, name, value, Better::Higher, note)
    }

    /// A figure of which less is better.
    pub fn lower(group: &str, name: &str, value: f64, note: &str) -> Measure {
        Measure::new(group, name, value, Better::Lower, note)
    }

    fn new(group: &str, name: &str, value: f64, better: Better, note: &str) -> Measure {
        let (group, name, note) = (group.to_owned(), name.to_owned(), note.to_owned());
        Measure { group, name, value, better, paper: None, note }
    }

    /// The same with the paper's value next to it.
    pub fn with_paper(self, paper: &str) -> Measure {
        Measure { paper: Some(paper.to_owned()), ..self }
    }
}

/// The value of a figure by group and name.
pub fn value_of(measures: &[Measure], group: &str, name: &str) -> Option<f64> {
    measures.iter().find(|one| one.group == group && one.name == name).map(|one| one.value)
}
