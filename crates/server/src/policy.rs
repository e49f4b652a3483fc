//! What is served: the trait of a policy, and the data that go in and out.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use thiserror::Error;

/// A policy behind the server. It lives on a thread of its own and sees the requests of all clients in batches.
///
/// The state of an episode (its program and the position in it) belongs to a client. A policy keeps it by [`ClientId`] and
/// drops it in [`forget`](Policy::forget).
pub trait Policy: Send {
    /// What clients are told when they connect. It does not change while the policy is served.
    fn metadata(&self) -> Metadata;

    /// Answers some requests, at most one of each client, in their order. One that fails does not affect the others.
    fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>>;

    /// A client has left.
    fn forget(&mut self, client: ClientId);
}

/// Identifies a connection; never used twice by one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ClientId(pub u64);

/// What a policy expects and returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metadata {
    /// The run or checkpoint that is served.
    pub run: String,
    /// Rows of a reply's `actions`.
    pub action_horizon: usize,
    /// Columns of a reply's `actions`.
    pub action_dim: usize,
    /// The names of these columns; empty if they have none.
    pub action_names: Vec<String>,
    /// The cameras whose images a request must contain, by the dataset's names.
    pub cameras: Vec<String>,
    /// The name of the state in the dataset; empty for a policy that expects none.
    pub state_key: String,
    /// How many numbers a state has.
    pub state_dim: usize,
    /// The names of these numbers; empty if they have none.
    pub state_names: Vec<String>,
    /// Control steps per second.
    pub fps: f64,
    /// Entries of the library.
    pub library_size: usize,
    /// The encoder of images.
    pub encoder: String,
    /// What a user of the policy should know, such as images that it cannot see.
    pub notes: Vec<String>,
}

/// One observation of a robot, checked against the [`Metadata`].
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Who asks.
    pub client: ClientId,
    /// One picture for each camera, in the order of the metadata.
    pub pictures: Vec<Picture>,
    /// `[state_dim]`, all finite.
    pub state: Vec<f32>,
    /// What the robot should do.
    pub task: Task,
    /// Whether an episode begins: the first request, another task than before, or `reset`.
    pub restart: bool,
    /// The client's name of an episode that begins, if it sent one as `episode`.
    pub episode: Option<String>,
}

/// What the robot should do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// An instruction in English.
    Prompt(String),
    /// A program in the language of the policy.
    Program(String),
}

impl Task {
    /// The instruction or program as it was sent.
    pub fn text(&self) -> &str {
        match self {
            Task::Prompt(text) | Task::Program(text) => text,
        }
    }
}

/// An image: 8 bits for each of red, green and blue, rows from the top.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// In pixels, at least 1.
    pub height: usize,
    /// In pixels, at least 1.
    pub width: usize,
    /// `height × width × 3` bytes, a part of the client's message.
    pub pixels: Bytes,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}×{})", self.height, self.width)
    }
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// `[action_horizon, action_dim]`, in the units of the dataset.
    pub actions: Vec<f32>,
    /// What the policy is doing.
    pub status: Status,
    /// Milliseconds of each stage of the inference. Stages that served a whole batch count in full for each of its requests.
    pub stages: BTreeMap<&'static str, f64>,
}

/// What a policy is doing, for the extra keys of a reply and for the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// The program that is being executed.
    pub program: String,
    /// The bytes of `program` that are its active call.
    pub active: Option<Range<usize>>,
    /// The program of the task as a whole.
    pub task: String,
    /// The names of the library entries in the programs.
    pub library: Vec<String>,
    /// The skill of the active call.
    pub skill: Option<ActiveSkill>,
    /// How much of the active call is done, from 0 to 1; `None` if the policy cannot tell.
    pub progress: Option<f64>,
    /// The step of a program that is under way, and how many steps it has.
    pub step: Option<(usize, usize)>,
    /// The estimated return from here on.
    pub estimated_return: Option<f64>,
    /// Whether the program was written for this very request.
    pub rewritten: bool,
}

/// A skill under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActiveSkill {
    /// Its name in programs.
    pub name: String,
    /// Its name for people.
    pub readable: String,
    /// The call with its arguments.
    pub call: String,
}

/// Why a policy does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The request cannot be answered; the message says what to change.
    #[error("{0}")]
    Refused(String),
    /// The policy failed.
    #[error("the policy failed: {0}")]
    Failed(String),
}
