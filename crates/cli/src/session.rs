//! The policy of a run as functions of this process: observations in, replies out, as `serve` answers them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum as _;
use experiments::policy::{Executor, PolicyOptions};
use models::DeviceChoice;
use server::message::{Limits, Value};
use server::policy::ClientId;
use server::reply::metadata_json;
use server::request::{Asked, Conversation, Expected};
use server::{Metadata, Policy as _, Reply, Request};

use crate::call::{Complaint, Unsuccessful, capturing};
use crate::failure::{Failure, Problem};
use crate::serve::{Emit, Served, checked, load};

/// How a policy is loaded; the fields are the options of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// `auto`, `cpu` or `cuda:N`.
    pub device: String,
    /// Directory of the encoder's weights.
    pub weights: Option<PathBuf>,
    /// Actions of each reply that are executed.
    pub replan: usize,
    /// When programs are written: `plan`, `call` or `request`.
    pub emit: String,
    /// Which of the run's policies.
    pub arm: Option<String>,
}

/// A loaded policy with the episodes that are under way.
pub struct Session {
    policy: Served,
    metadata: Metadata,
    expected: Expected,
    clients: BTreeMap<u64, Conversation>,
}

impl Session {
    /// Loads the policy of a finished run; with it the warnings.
    ///
    /// # Errors
    /// If the run is not finished, its files do not belong together, or an option is wrong.
    pub fn load(run: &Path, options: &SessionOptions) -> Result<(Session, Vec<String>), Complaint> {
        let loaded = capturing(&Arc::default(), || loaded(run, options)).map_err(|error| match error {
            Unsuccessful::Complaint(complaint) => complaint,
            Unsuccessful::Interrupted => Complaint::new("interrupted"),
        });
        let (said, policy) = loaded?;
        let policy = policy.map_err(Failure::into_complaint)?;
        let metadata = policy.metadata();
        let expected = Expected::new(&metadata, Limits::default());
        Ok((Session { policy, metadata, expected, clients: BTreeMap::new() }, said.warnings))
    }

    /// What the policy expects and returns, as the server tells its clients.
    pub fn metadata(&self) -> serde_json::Value {
        metadata_json(&self.metadata)
    }

    /// Rows and columns of a reply's actions.
    pub fn shape(&self) -> [usize; 2] {
        [self.metadata.action_horizon, self.metadata.action_dim]
    }

    /// Answers observations, at most one of each client, in their order. `None` is the answer to a message that only resets.
    pub fn infer(&mut self, observations: &[(u64, Value)]) -> Vec<Result<Option<Reply>, String>> {
        let asked: Vec<Result<Option<Request>, String>> =
            observations.iter().map(|(client, message)| self.request(*client, message)).collect();
        let requests: Vec<Request> = asked.iter().flatten().flatten().cloned().collect();
        let mut replies = if requests.is_empty() { Vec::new() } else { self.policy.infer(&requests) }.into_iter();
        let answers = asked.into_iter().map(|asked| {
            let Some(request) = asked? else { return Ok(None) };
            let reply = replies.next().ok_or("internal error: no reply")?.map_err(|error| error.to_string())?;
            self.clients.entry(request.client.0).or_default().answered();
            Ok(Some(reply))
        });
        answers.collect()
    }

    /// Forgets all episodes.
    pub fn reset(&mut self) {
        for client in std::mem::take(&mut self.clients).into_keys() {
            self.policy.forget(ClientId(client));
        }
    }

    fn request(&mut self, client: u64, message: &Value) -> Result<Option<Request>, String> {
        let asked = self.expected.check(message).map_err(|error| error.to_string())?;
        let conversation = self.clients.entry(client).or_default();
        match asked {
            Asked::Reset => {
                conversation.reset();
                Ok(None)
            }
            Asked::Actions(observation) => {
                conversation.request(ClientId(client), observation).map(Some).map_err(|error| error.to_string())
            }
        }
    }
}

fn loaded(run: &Path, options: &SessionOptions) -> Result<Served, Failure> {
    checked(run)?;
    let device: DeviceChoice = options.device.parse().map_err(|error| {
        Problem::new(format!("`{}` is not a device: {error}", options.device))
            .fact("expected", "`auto`, `cpu` or `cuda:N`")
    })?;
    let emit = Emit::from_str(&options.emit, false).map_err(|_| {
        Problem::new(format!("`{}` says nothing about when programs are written", options.emit))
            .fact("expected", "`plan`, `call` or `request`")
    })?;
    load(
        run,
        &PolicyOptions {
            device: device.open()?,
            weights: options.weights.clone(),
            replan: options.replan,
            emission: emit.emission(),
            executor: Executor::default(),
            arm: options.arm.clone(),
        },
    )
}
