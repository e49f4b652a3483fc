//! One client: reads a request, waits for its reply, writes it, reads the next.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::inference::{Answer, Job, Order};
use crate::live::Answered;
use crate::policy::{ClientId, Request, Task};
use crate::reply::{Timing, metadata_message, reply_message, reset_message};
use crate::request::{Asked, Observation};
use crate::run::Shared;

/// How long a client that is disconnected has to read why.
const FAREWELL: Duration = Duration::from_secs(2);

/// The longest error message that a client gets, in bytes.
const LONGEST_MESSAGE: usize = 16 << 10;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it.
    Closed,
    /// The client sent nothing, not even an answer to pings.
    Silent,
    /// The client did not take what was written to it.
    Stalled,
    /// The client sent no request for too long.
    Idle,
    /// The server stops.
    Shutdown,
    /// The client was told of an error.
    Error(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => write!(f, "closed by the client"),
            End::Silent => write!(f, "it does not answer pings"),
            End::Stalled => write!(f, "it does not read its replies"),
            End::Idle => write!(f, "no request for too long"),
            End::Shutdown => write!(f, "the server stops"),
            End::Error(message) => write!(f, "error: {}", message.trim_end()),
        }
    }
}

/// Serves a client until the connection ends.
pub(crate) async fn attend(stream: Upgraded, shared: &Arc<Shared>, client: ClientId) -> End {
    let most = shared.config.max_message;
    let config = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, Some(config)).await;
    let now = Instant::now();
    let stopping = shared.stopping.subscribe();
    let mut connection =
        Connection { socket, shared, client, stopping, heard: now, asked: now, task: None, reset: true, total: None };
    let end = match connection.serve().await {
        Ok(()) => End::Closed,
        Err(end) => end,
    };
    let _ = timeout(FAREWELL, connection.farewell(&end)).await;
    end
}

struct Connection<'a> {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    shared: &'a Arc<Shared>,
    client: ClientId,
    stopping: watch::Receiver<bool>,
    /// When the client last sent anything.
    heard: Instant,
    /// When it last sent a request.
    asked: Instant,
    /// Its task.
    task: Option<Task>,
    /// Whether the next request begins an episode.
    reset: bool,
    /// How long the last request took in all.
    total: Option<Duration>,
}

impl Connection<'_> {
    async fn serve(&mut self) -> Result<(), End> {
        self.send(metadata_message(&self.shared.metadata)).await?;
        loop {
            let Some(message) = self.next().await? else { return Ok(()) };
            let received = Instant::now();
            self.asked = received;
            self.shared.metrics.received(message.len());
            let asked = self.shared.expected.read(&message).map_err(|error| {
                self.shared.metrics.error(error.kind());
                End::Error(error.to_string())
            })?;
            drop(message);
            match asked {
                Asked::Reset => {
                    self.reset = true;
                    self.send(reset_message()).await?;
                }
                Asked::Actions(observation) => self.answer(observation, received).await?,
            }
            self.total = Some(received.elapsed());
        }
    }

    /// The next request; `None` if the client closed the connection.
    async fn next(&mut self) -> Result<Option<Bytes>, End> {
        let config = &self.shared.config;
        loop {
            let quiet = config.idle.saturating_sub(self.asked.elapsed());
            if quiet.is_zero() {
                return Err(End::Idle);
            }
            let found = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return Err(End::Shutdown),
                found = timeout(quiet.min(config.ping), self.socket.next()) => found,
            };
            let Ok(found) = found else {
                if self.heard.elapsed() >= 2 * config.ping {
                    return Err(End::Silent);
                }
                self.write(Message::Ping(Bytes::new())).await?;
                continue;
            };
            self.heard = Instant::now();
            match found {
                Some(Ok(Message::Binary(message))) => return Ok(Some(message)),
                Some(Ok(Message::Text(_))) => {
                    self.shared.metrics.error("frame");
                    return Err(End::Error(
                        "the message is a text frame; expected msgpack in a binary frame".to_owned(),
                    ));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => {
                    self.shared.metrics.error("length");
                    return Err(End::Error(format!(
                        "the message is longer than {} MiB; send smaller images or raise `--max-message-mib`",
                        config.max_message >> 20
                    )));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(None),
            }
        }
    }

    /// Answers an observation.
    async fn answer(&mut self, observation: Observation, received: Instant) -> Result<(), End> {
        let Observation { pictures, state, task, reset, episode } = observation;
        let Some(task) = task.or_else(|| self.task.clone()) else {
            self.shared.metrics.error("missing");
            return Err(End::Error("the first request of a connection needs a `prompt` or a `program`".to_owned()));
        };
        let restart = self.reset || reset || self.task.as_ref() != Some(&task);
        self.task = Some(task.clone());
        let request = Request { client: self.client, pictures, state, task, restart, episode };
        let (answer, receiver) = oneshot::channel();
        let (decode, asked) = (received.elapsed(), Instant::now());
        let failed = || End::Error("the policy has stopped".to_owned());
        self.shared.orders.send(Order::Infer(Job { request, asked, answer })).map_err(|_| failed())?;
        let Answer { result, request, queue, infer, batch } = receiver.await.map_err(|_| failed())?;
        let reply = result.map_err(|error| {
            self.shared.metrics.error("policy");
            End::Error(error.to_string())
        })?;
        self.reset = false;
        let mut timing: Timing = reply.stages.iter().map(|(stage, time)| (format!("{stage}_ms"), *time)).collect();
        for (stage, time) in [("decode", decode), ("queue", queue), ("infer", infer)] {
            timing.insert(format!("{stage}_ms"), milliseconds(time));
        }
        for (stage, time) in &timing {
            self.shared.metrics.stage(stage.trim_end_matches("_ms"), *time);
        }
        if let Some(total) = self.total {
            timing.insert("prev_total_ms".to_owned(), milliseconds(total));
            self.shared.metrics.stage("total", milliseconds(total));
        }
        let (horizon, width) = (self.shared.metadata.action_horizon, self.shared.metadata.action_dim);
        self.send(reply_message(&reply, horizon, width, &timing)).await?;
        self.shared.metrics.answered();
        self.shared.hub.answered(
            self.client,
            &Answered {
                instruction: request.task.text(),
                is_program: matches!(request.task, Task::Program(_)),
                restart,
                pictures: &request.pictures,
                reply: &reply,
                timing: &timing,
                batch,
            },
        );
        Ok(())
    }

    async fn send(&mut self, message: Vec<u8>) -> Result<(), End> {
        self.shared.metrics.sent(message.len());
        self.write(Message::Binary(message.into())).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        match timeout(self.shared.config.write_timeout, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Closed),
            Err(_) => Err(End::Stalled),
        }
    }

    /// Tells the client why the connection ends, and waits until it knows.
    async fn farewell(&mut self, end: &End) {
        let (code, reason) = match end {
            End::Stalled | End::Silent => return,
            End::Closed => (CloseCode::Normal, ""),
            End::Idle => (CloseCode::Away, "no request for too long"),
            End::Shutdown => (CloseCode::Away, "the server stops"),
            End::Error(message) => {
                let _ = self.socket.send(Message::Text(shortened(message).into())).await;
                (CloseCode::Error, "")
            }
        };
        let frame = CloseFrame { code, reason: reason.into() };
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        // Until the client has closed as well: closing a socket with unread bytes would take back what was written.
        while let Some(Ok(_)) = self.socket.next().await {}
        let mut rest = [0; 1 << 14];
        while self.socket.get_mut().read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn shortened(message: &str) -> String {
    let end = (0..=LONGEST_MESSAGE.min(message.len())).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    message[..end].to_owned()
}
