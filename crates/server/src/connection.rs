//! One client: reads a request, waits for its reply, writes it, reads the next.
//!
//! While a request is being answered the connection still listens, so pings are answered and a client that leaves is noticed:
//! nothing is computed for it then. One request may arrive early and waits for its turn; after that nothing is read until
//! the reply is written, so a client that sends without reading fills its own buffers and no others.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::inference::{Answer, Job, Order};
use crate::live::Answered;
use crate::policy::{ClientId, Task};
use crate::reply::{Timing, metadata_message, reply_message, reset_message};
use crate::request::{Asked, Conversation, Observation};
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
    /// It broke without a closing frame.
    Lost,
    /// The client sent nothing, not even an answer to pings.
    Silent,
    /// The client did not take what was written to it.
    Stalled,
    /// The client sent no request for too long.
    Idle,
    /// The server stops.
    Shutdown,
    /// The client was told of an error.
    Error {
        /// The message.
        message: String,
        /// The close code that follows it.
        code: CloseCode,
    },
}

impl End {
    /// An error of a request, with the close code of openpi.
    fn error(message: impl Into<String>) -> End {
        End::Error { message: message.into(), code: CloseCode::Error }
    }

    /// Whether nobody is there to read an answer.
    fn is_departure(&self) -> bool {
        matches!(self, End::Closed | End::Lost | End::Silent | End::Stalled)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => write!(f, "closed by the client"),
            End::Lost => write!(f, "the connection was lost"),
            End::Silent => write!(f, "it does not answer pings"),
            End::Stalled => write!(f, "it does not read its replies"),
            End::Idle => write!(f, "no request for too long"),
            End::Shutdown => write!(f, "the server stops"),
            End::Error { message, .. } => write!(f, "error: {}", message.trim_end()),
        }
    }
}

/// Serves a client until the connection ends.
pub(crate) async fn attend(stream: Upgraded, shared: &Arc<Shared>, client: ClientId) -> End {
    let most = shared.config.max_message;
    let config = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, Some(config)).await;
    let asked = Instant::now();
    let conversation = Conversation::default();
    let mut connection =
        Connection { socket, shared, client, pinged: None, asked, early: None, conversation, total: None };
    let end = match connection.serve().await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    let _ = timeout(FAREWELL, connection.farewell(&end)).await;
    end
}

struct Connection<'a> {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    shared: &'a Arc<Shared>,
    client: ClientId,
    /// When the client was sent a ping, if it has sent nothing since.
    pinged: Option<Instant>,
    /// When it last sent a request.
    asked: Instant,
    /// What it sent while a request was being answered.
    early: Option<Result<Bytes, End>>,
    /// Its task, and whether an episode is under way.
    conversation: Conversation,
    /// How long the last request took in all.
    total: Option<Duration>,
}

impl Connection<'_> {
    async fn serve(&mut self) -> Result<Infallible, End> {
        self.send(metadata_message(&self.shared.metadata)).await?;
        loop {
            let message = self.request().await?;
            let received = Instant::now();
            self.asked = received;
            self.shared.metrics.received(message.len());
            let asked = self.shared.expected.read(&message).map_err(|error| {
                self.shared.metrics.error(error.kind());
                End::error(error.to_string())
            })?;
            drop(message);
            match asked {
                Asked::Reset => {
                    self.conversation.reset();
                    self.send(reset_message()).await?;
                }
                Asked::Actions(observation) => self.answer(observation, received).await?,
            }
            self.total = Some(received.elapsed());
        }
    }

    /// The next request.
    async fn request(&mut self) -> Result<Bytes, End> {
        let (idle, mut stopping) = (self.asked + self.shared.config.idle, self.shared.stopping.subscribe());
        let next = async {
            match self.early.take() {
                Some(early) => early,
                None => self.hear().await,
            }
        };
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => Err(End::Shutdown),
            next = next => next,
            () = sleep_until(idle.into()) => Err(End::Idle),
        }
    }

    /// The answer to a request, unless the client leaves first.
    async fn wait(&mut self, mut answer: oneshot::Receiver<Answer>) -> Result<Answer, End> {
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|_| End::error("the policy has stopped")),
                heard = self.hear(), if self.early.is_none() => match heard {
                    Err(end) if end.is_departure() => return Err(end),
                    // An error is told after the answer to what came before it.
                    heard => self.early = Some(heard),
                },
            }
        }
    }

    /// The next binary frame. Answers pings and sends its own. Nothing is lost if it is dropped while it waits.
    async fn hear(&mut self) -> Result<Bytes, End> {
        let ping = self.shared.config.ping;
        loop {
            let Ok(found) = timeout(ping, self.socket.next()).await else {
                match self.pinged {
                    Some(pinged) if pinged.elapsed() >= ping => return Err(End::Silent),
                    Some(_) => {}
                    None => {
                        self.write(Message::Ping(Bytes::new())).await?;
                        self.pinged = Some(Instant::now());
                    }
                }
                continue;
            };
            self.pinged = None;
            match found {
                Some(Ok(Message::Binary(message))) => return Ok(message),
                Some(Ok(Message::Text(_))) => {
                    self.shared.metrics.error("frame");
                    return Err(End::error("the message is a text frame; expected msgpack in a binary frame"));
                }
                // The answer is written before more is read, or answers would pile up for a client that takes none.
                Some(Ok(Message::Ping(_))) => self.flush().await?,
                Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Err(End::Closed),
                Some(Err(error)) => return Err(self.failed(&error)),
            }
        }
    }

    /// Why nothing more can be read.
    fn failed(&self, error: &Error) -> End {
        let (kind, code, message) = match error {
            Error::Capacity(_) => (
                "length",
                CloseCode::Error,
                format!(
                    "the message is longer than {} MiB; send smaller images or raise `--max-message-mib`",
                    self.shared.config.max_message >> 20
                ),
            ),
            Error::Utf8(_) => (
                "websocket",
                CloseCode::Invalid,
                "bad websocket frame: a text that is not valid UTF-8; expected msgpack in a binary frame".to_owned(),
            ),
            Error::Protocol(error) if *error != ProtocolError::ResetWithoutClosingHandshake => (
                "websocket",
                CloseCode::Protocol,
                format!("bad websocket frame: {error}; expected masked frames as RFC 6455 has them"),
            ),
            _ => return End::Lost,
        };
        self.shared.metrics.error(kind);
        End::Error { message, code }
    }

    /// Answers an observation.
    async fn answer(&mut self, observation: Observation, received: Instant) -> Result<(), End> {
        let request = self.conversation.request(self.client, observation).map_err(|error| {
            self.shared.metrics.error(error.kind());
            End::error(error.to_string())
        })?;
        let restart = request.restart;
        let (answer, receiver) = oneshot::channel();
        let (decode, asked) = (received.elapsed(), Instant::now());
        // Without the thread there is no sender of an answer either.
        let _ = self.shared.orders.send(Order::Infer(Job { request, asked, answer }));
        let Answer { result, request, queue, infer, batch } = self.wait(receiver).await?;
        let reply = result.map_err(|error| {
            self.shared.metrics.error("policy");
            End::error(error.to_string())
        })?;
        self.conversation.answered();
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
        taken(timeout(self.shared.config.write_timeout, self.socket.send(message)).await)
    }

    async fn flush(&mut self) -> Result<(), End> {
        taken(timeout(self.shared.config.write_timeout, self.socket.flush()).await)
    }

    /// Tells the client why the connection ends, and waits until it knows.
    async fn farewell(&mut self, end: &End) {
        let (code, reason) = match end {
            End::Lost | End::Stalled | End::Silent => return,
            End::Closed => (CloseCode::Normal, ""),
            End::Idle => (CloseCode::Away, "no request for too long"),
            End::Shutdown => (CloseCode::Away, "the server stops"),
            End::Error { message, code } => {
                let _ = self.socket.send(Message::Text(shortened(message).into())).await;
                (*code, "")
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

/// Whether the client has taken what was written to it.
fn taken(written: Result<Result<(), Error>, Elapsed>) -> Result<(), End> {
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Lost),
        Err(_) => Err(End::Stalled),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn shortened(message: &str) -> String {
    let end = (0..=LONGEST_MESSAGE.min(message.len())).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    message[..end].to_owned()
}
