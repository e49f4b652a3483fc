//! What the page shows: the last request and reply of each client, and the skills before them.

use std::collections::{BTreeMap, VecDeque};
use std::io::Cursor;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use image::codecs::jpeg::JpegEncoder;
use image::{RgbImage, imageops};
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use crate::policy::{ClientId, Metadata, Picture, Reply};
use crate::reply::{Timing, status_json};

/// How many skills of a client are remembered.
const TIMELINE: usize = 64;

/// How many inference times of a client are remembered.
const LATENCIES: usize = 120;

/// The longest side of an image on the page, in pixels.
const SIDE: u32 = 320;

/// The quality of images on the page.
const QUALITY: u8 = 82;

/// All clients as the page sees them. Locks are held for the time of a copy.
pub(crate) struct Hub {
    clients: Mutex<BTreeMap<ClientId, Watched>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
    started: Instant,
}

/// One client.
#[derive(Clone)]
struct Watched {
    address: String,
    since: Instant,
    requests: u64,
    episodes: u64,
    last: Option<Shown>,
    timeline: VecDeque<Stretch>,
    latencies: VecDeque<f64>,
}

/// The last request of a client with its reply.
#[derive(Clone)]
struct Shown {
    instruction: String,
    is_program: bool,
    pictures: Vec<Picture>,
    reply: Reply,
    timing: Timing,
    batch: usize,
}

/// Requests during which one skill was active.
#[derive(Clone)]
struct Stretch {
    episode: u64,
    skill: String,
    requests: u64,
}

/// What has been answered.
pub(crate) struct Answered<'a> {
    pub(crate) instruction: &'a str,
    pub(crate) is_program: bool,
    pub(crate) restart: bool,
    pub(crate) pictures: &'a [Picture],
    pub(crate) reply: &'a Reply,
    pub(crate) timing: &'a Timing,
    pub(crate) batch: usize,
}

impl Hub {
    pub(crate) fn new() -> Hub {
        Hub { clients: Mutex::default(), changes: watch::Sender::new(0), started: Instant::now() }
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn joined(&self, client: ClientId, address: String) {
        let (timeline, latencies) = (VecDeque::new(), VecDeque::new());
        let new = Watched { address, since: Instant::now(), requests: 0, episodes: 0, last: None, timeline, latencies };
        self.lock().insert(client, new);
        self.changed();
    }

    pub(crate) fn left(&self, client: ClientId) {
        self.lock().remove(&client);
        self.changed();
    }

    pub(crate) fn answered(&self, client: ClientId, answered: &Answered<'_>) {
        if let Some(watched) = self.lock().get_mut(&client) {
            watched.answered(answered);
        }
        self.changed();
    }

    /// The list of clients.
    pub(crate) fn list(&self) -> Json {
        let clients = self.lock();
        let list = clients.iter().map(|(id, one)| {
            json!({
                "id": id,
                "address": one.address,
                "seconds": one.since.elapsed().as_secs(),
                "requests": one.requests,
                "episodes": one.episodes,
                "instruction": one.last.as_ref().map(|last| last.instruction.clone()),
            })
        });
        json!({ "clients": list.collect::<Vec<_>>(), "up": self.started.elapsed().as_secs() })
    }

    /// One client in full, with its images. Encoding them takes milliseconds, so this is not for the threads of sockets.
    pub(crate) fn shown(&self, client: ClientId, metadata: &Metadata) -> Option<Json> {
        let watched = self.lock().get(&client).cloned()?;
        let mut all = json!({
            "id": client,
            "requests": watched.requests,
            "episode": watched.episodes,
            "latencies": watched.latencies,
            "timeline": watched.timeline.iter().map(Stretch::json).collect::<Vec<_>>(),
        });
        if let (Json::Object(all), Some(last)) = (&mut all, &watched.last) {
            all.extend(status_json(&last.reply));
            let width = metadata.action_dim.max(1);
            let pictures = metadata.cameras.iter().zip(&last.pictures).filter_map(|(camera, picture)| {
                Some(json!({ "camera": camera, "data": data_url(picture)?, "size": [picture.width, picture.height] }))
            });
            all.insert("pictures".to_owned(), pictures.collect());
            all.insert("instruction".to_owned(), json!(last.instruction));
            all.insert("is_program".to_owned(), json!(last.is_program));
            all.insert("actions".to_owned(), json!(last.reply.actions.chunks(width).collect::<Vec<_>>()));
            all.insert("timing".to_owned(), json!(last.timing));
            all.insert("batch".to_owned(), json!(last.batch));
        }
        Some(all)
    }

    /// The client to show if the page has chosen none: the newest.
    pub(crate) fn newest(&self) -> Option<ClientId> {
        self.lock().keys().next_back().copied()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientId, Watched>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn answered(&mut self, answered: &Answered<'_>) {
        self.requests += 1;
        if answered.restart {
            self.episodes += 1;
        }
        let skill = answered.reply.status.skill.as_ref().map_or_else(|| "–".to_owned(), |skill| skill.readable.clone());
        match self.timeline.back_mut() {
            Some(last) if last.skill == skill && last.episode == self.episodes => last.requests += 1,
            _ => self.timeline.push_back(Stretch { episode: self.episodes, skill, requests: 1 }),
        }
        while self.timeline.len() > TIMELINE {
            self.timeline.pop_front();
        }
        self.latencies.push_back(answered.timing.get("infer_ms").copied().unwrap_or(0.0));
        while self.latencies.len() > LATENCIES {
            self.latencies.pop_front();
        }
        self.last = Some(Shown {
            instruction: answered.instruction.to_owned(),
            is_program: answered.is_program,
            pictures: answered.pictures.to_vec(),
            reply: answered.reply.clone(),
            timing: answered.timing.clone(),
            batch: answered.batch,
        });
    }
}

impl Stretch {
    fn json(&self) -> Json {
        json!({ "episode": self.episode, "skill": self.skill, "requests": self.requests })
    }
}

/// A picture as a JPEG that a page can show without another request.
fn data_url(picture: &Picture) -> Option<String> {
    let (width, height) = (u32::try_from(picture.width).ok()?, u32::try_from(picture.height).ok()?);
    let image = RgbImage::from_raw(width, height, picture.pixels.to_vec())?;
    let image = match width.max(height) > SIDE {
        true => {
            let scale = f64::from(SIDE) / f64::from(width.max(height));
            let side = |side: u32| ((f64::from(side) * scale) as u32).max(1);
            imageops::thumbnail(&image, side(width), side(height))
        }
        false => image,
    };
    let mut out = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut out, QUALITY).encode_image(&image).ok()?;
    Some(format!("data:image/jpeg;base64,{}", base64::engine::general_purpose::STANDARD.encode(out.into_inner())))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::policy::{ActiveSkill, Status};

    #[test]
    fn a_client_is_shown_with_its_timeline_and_images() {
        let hub = Hub::new();
        let client = ClientId(3);
        hub.joined(client, "127.0.0.1:9".to_owned());
        let metadata = Metadata { cameras: vec!["top".to_owned()], action_dim: 2, ..Metadata::default() };
        assert!(hub.shown(client, &metadata).unwrap().get("program").is_none(), "nothing was asked yet");
        let picture = Picture { height: 2, width: 500, pixels: Bytes::from(vec![9; 3000]) };
        for (at, skill) in ["reach", "reach", "grasp"].into_iter().enumerate() {
            let skill = ActiveSkill { readable: skill.to_owned(), ..ActiveSkill::default() };
            let status = Status { skill: Some(skill), ..Status::default() };
            let reply = Reply { actions: vec![0.0, 1.0, 2.0, 3.0], status, ..Reply::default() };
            hub.answered(
                client,
                &Answered {
                    instruction: "open it",
                    is_program: false,
                    restart: at == 0,
                    pictures: std::slice::from_ref(&picture),
                    reply: &reply,
                    timing: &Timing::from([("infer_ms".to_owned(), 2.0)]),
                    batch: 1,
                },
            );
        }
        let shown = hub.shown(client, &metadata).unwrap();
        assert_eq!(shown["timeline"][0], json!({ "episode": 1, "skill": "reach", "requests": 2 }));
        assert_eq!(shown["actions"], json!([[0.0, 1.0], [2.0, 3.0]]));
        assert!(shown["pictures"][0]["data"].as_str().unwrap().starts_with("data:image/jpeg;base64,/9j/"));
        assert_eq!(hub.list()["clients"][0]["instruction"], "open it");
        assert_eq!(hub.newest(), Some(client));
        hub.left(client);
        assert!(hub.shown(client, &metadata).is_none() && hub.newest().is_none());
    }
}
