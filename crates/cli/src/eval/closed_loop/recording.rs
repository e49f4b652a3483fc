//! What the server sees of episodes: times of each request, and the images of those that are filmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dataset::Frame;
use report::Moment;
use server::policy::ClientId;
use server::{Metadata, Picture, Policy, PolicyError, Reply, Request, Status};

/// The quality of JPEG images.
const QUALITY: u8 = 85;

/// Episodes under way, by the names that clients give them. Shared by the server and the evaluation.
#[derive(Clone, Default)]
pub(super) struct Recordings(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Episodes to film.
    wanted: BTreeSet<String>,
    current: BTreeMap<ClientId, String>,
    episodes: BTreeMap<String, Recording>,
}

/// One episode.
#[derive(Default)]
pub(super) struct Recording {
    /// Milliseconds of each request by stage.
    pub(super) timings: BTreeMap<String, Vec<f64>>,
    moments: Vec<(Vec<Picture>, String, Status)>,
}

impl Recordings {
    /// Films an episode once it begins.
    pub(super) fn film(&self, episode: &str) {
        self.lock().wanted.insert(episode.to_owned());
    }

    /// Takes an episode that has ended.
    pub(super) fn take(&self, episode: &str) -> Option<Recording> {
        let mut inner = self.lock();
        inner.wanted.remove(episode);
        inner.episodes.remove(episode)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    /// The film with encoded images; none if the episode was not filmed.
    pub(super) fn developed(&self) -> Option<Vec<Moment>> {
        let develop = |(pictures, prompt, status): &(Vec<Picture>, String, Status)| Moment {
            pictures: pictures.iter().filter_map(jpeg).map(report::Picture).collect(),
            prompt: prompt.clone(),
            program: status.program.clone(),
            active: status.active.as_ref().map(|span| (span.start as u64, span.end as u64)),
            task: status.task.clone(),
            skill: status.skill.as_ref().map(|skill| skill.readable.clone()),
            progress: status.progress,
        };
        (!self.moments.is_empty()).then(|| self.moments.iter().map(develop).collect())
    }
}

fn jpeg(picture: &Picture) -> Option<Vec<u8>> {
    let Picture { width, height, ref pixels } = *picture;
    Frame { width, height, pixels: pixels.as_ref().into() }.jpeg(QUALITY)
}

/// A policy whose episodes are recorded.
pub(super) struct Recorded {
    pub(super) policy: Box<dyn Policy>,
    pub(super) recordings: Recordings,
}

impl Policy for Recorded {
    fn metadata(&self) -> Metadata {
        self.policy.metadata()
    }

    fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>> {
        let begun = Instant::now();
        let replies = self.policy.infer(batch);
        let all = begun.elapsed().as_secs_f64() * 1000.0;
        let inner = &mut *self.recordings.lock();
        for (request, reply) in batch.iter().zip(&replies) {
            if let Some(name) = &request.episode {
                inner.current.insert(request.client, name.clone());
                // The same episode again, after a process that failed.
                inner.episodes.remove(name);
            }
            let (Ok(reply), Some(name)) = (reply, inner.current.get(&request.client)) else { continue };
            let recording = inner.episodes.entry(name.clone()).or_default();
            let stages = reply.stages.iter().map(|(stage, time)| (*stage, *time)).chain([("all", all)]);
            for (stage, time) in stages {
                recording.timings.entry(stage.to_owned()).or_default().push((time * 100.0).round() / 100.0);
            }
            if inner.wanted.contains(name) {
                let prompt = request.task.text().to_owned();
                recording.moments.push((request.pictures.clone(), prompt, reply.status.clone()));
            }
        }
        replies
    }

    fn forget(&mut self, client: ClientId) {
        self.recordings.lock().current.remove(&client);
        self.policy.forget(client);
    }
}

#[cfg(test)]
mod tests {
    use server::Task;

    use super::*;

    /// Replies with the number of the request.
    struct Counting(f32);

    impl Policy for Counting {
        fn metadata(&self) -> Metadata {
            Metadata::default()
        }

        fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>> {
            self.0 += 1.0;
            let status = Status { program: format!("step {}", self.0), active: Some(0..4), ..Status::default() };
            let stages = BTreeMap::from([("decoder", 2.004)]);
            batch
                .iter()
                .map(|_| Ok(Reply { actions: vec![self.0], status: status.clone(), stages: stages.clone() }))
                .collect()
        }

        fn forget(&mut self, _: ClientId) {}
    }

    fn request(client: u64, episode: Option<&str>) -> Request {
        let picture = Picture { height: 8, width: 8, pixels: vec![100; 192].into() };
        Request {
            client: ClientId(client),
            pictures: vec![picture],
            state: vec![],
            task: Task::Prompt("open it".to_owned()),
            restart: episode.is_some(),
            episode: episode.map(str::to_owned),
        }
    }

    #[test]
    fn requests_belong_to_the_episode_that_their_client_began() {
        let recordings = Recordings::default();
        let mut policy = Recorded { policy: Box::new(Counting(0.0)), recordings: recordings.clone() };
        recordings.film("0/5");
        policy.infer(&[request(1, Some("0/5")), request(2, Some("1/5"))]);
        policy.infer(&[request(1, None), request(2, None)]);
        policy.infer(&[request(1, Some("0/6")), request(3, None)]);
        let first = recordings.take("0/5").unwrap();
        assert_eq!(first.timings["decoder"], [2.0, 2.0]);
        let film = first.developed().unwrap();
        assert_eq!(film.iter().map(|moment| moment.program.as_str()).collect::<Vec<_>>(), ["step 1", "step 2"]);
        assert_eq!(film[0].pictures[0].media_type(), Some("image/jpeg"));
        assert_eq!((film[0].active, film[0].prompt.as_str()), (Some((0, 4)), "open it"));
        let other = recordings.take("1/5").unwrap();
        assert!(other.developed().is_none() && other.timings["all"].len() == 2);
        assert_eq!(recordings.take("0/6").unwrap().timings["all"].len(), 1);
        assert!(recordings.take("0/5").is_none());
    }
}
