//! A policy that needs no model: it does what the prompt says.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::sleep;
use std::time::Duration;

use server::policy::{ActiveSkill, ClientId};
use server::{Metadata, Policy, PolicyError, Reply, Request, Status};

/// How long a program is that does not fit into the buffers of any socket, in bytes.
pub(crate) const LONG: usize = 16 << 20;

/// Actions are the number of the client's request in its episode.
#[derive(Default)]
pub(crate) struct Puppet {
    requests: BTreeMap<ClientId, u32>,
    strings: Arc<Strings>,
}

/// What a test holds of its puppet.
#[derive(Default)]
pub(crate) struct Strings {
    /// The tasks that it was asked, in their order.
    asked: Mutex<Vec<String>>,
    /// Whether it may answer `hold`.
    released: Mutex<bool>,
    changed: Condvar,
}

impl Strings {
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// From now on `hold` is answered.
    pub(crate) fn release(&self) {
        *self.released.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn hold(&self) {
        drop(self.changed.wait_while(self.released.lock().unwrap(), |released| !*released).unwrap());
    }
}

impl Puppet {
    pub(crate) fn new(strings: Arc<Strings>) -> Puppet {
        Puppet { requests: BTreeMap::new(), strings }
    }
}

impl Policy for Puppet {
    fn metadata(&self) -> Metadata {
        Metadata {
            run: "puppet".to_owned(),
            action_horizon: 4,
            action_dim: 7,
            action_names: ["x", "y", "z", "roll", "pitch", "yaw", "gripper"].map(str::to_owned).to_vec(),
            cameras: vec!["observation.images.image".to_owned(), "observation.images.wrist_image".to_owned()],
            state_key: "observation.state".to_owned(),
            state_dim: 8,
            state_names: ["x", "y", "z", "a", "b", "c", "left", "right"].map(str::to_owned).to_vec(),
            fps: 20.0,
            library_size: 1,
            encoder: "none".to_owned(),
            ..Metadata::default()
        }
    }

    fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>> {
        self.strings.asked.lock().unwrap().extend(batch.iter().map(|request| request.task.text().to_owned()));
        if batch.iter().any(|request| request.task.text() == "hold") {
            self.strings.hold();
        }
        if batch.iter().any(|request| request.task.text() == "slow") {
            sleep(Duration::from_millis(300));
        }
        assert!(batch.iter().all(|request| request.task.text() != "panic"), "asked to");
        batch.iter().map(|request| self.one(request)).collect()
    }

    fn forget(&mut self, client: ClientId) {
        self.requests.remove(&client);
    }
}

impl Puppet {
    fn one(&mut self, request: &Request) -> Result<Reply, PolicyError> {
        if request.task.text() == "refuse" {
            return Err(PolicyError::Refused("nothing is called `refuse`".to_owned()));
        }
        let count = self.requests.entry(request.client).or_default();
        *count = if request.restart { 1 } else { *count + 1 };
        let program = match request.task.text() {
            "long" => "a".repeat(LONG),
            _ => "seq[skill_0 pose[0,0,0,0,0,0], fn_0 \"bowl\"]".to_owned(),
        };
        let (name, readable) = match *count % 8 {
            0..4 => ("skill_0", "move down, open"),
            _ => ("skill_1", "close the gripper"),
        };
        let skill = ActiveSkill { name: name.to_owned(), readable: readable.to_owned(), call: name.to_owned() };
        let status = Status {
            active: Some(4..29),
            task: "pick \"bowl\"".to_owned(),
            library: vec!["fn_0".to_owned()],
            skill: Some(skill),
            progress: Some(f64::from(*count % 4) / 4.0),
            estimated_return: Some(0.75),
            rewritten: request.restart,
            program,
            ..Status::default()
        };
        let wave = |at: usize| (at as f32 / 9.0 + *count as f32 / 5.0).sin();
        let mut actions: Vec<f32> = (0..28).map(wave).collect();
        actions[0] = *count as f32;
        Ok(Reply { actions, status, stages: BTreeMap::from([("vision", 3.0), ("emitter", 0.5), ("decoder", 2.0)]) })
    }
}
