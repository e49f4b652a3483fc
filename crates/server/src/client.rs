//! A client in Rust: one request, one reply.
//!
//! `examples/client.rs` is a whole robot in ten lines.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use thiserror::Error;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::message::{DecodeError, Key, Limits, Value, decode, write_array, write_text};

/// A connection to a policy server.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    metadata: BTreeMap<Key, Value>,
}

/// A value of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input<'a> {
    /// An instruction, a program.
    Text(&'a str),
    /// A state.
    Numbers(&'a [f32]),
    /// An image: its height, its width, and `height × width × 3` bytes.
    Image(usize, usize, &'a [u8]),
    /// A flag, such as `reset`.
    Flag(bool),
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The rows of `actions`.
    pub actions: Vec<Vec<f32>>,
    /// All of the reply.
    pub all: BTreeMap<Key, Value>,
}

/// Why there is no reply.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No connection, or it ended.
    #[error("no connection to the policy server: {0}")]
    Socket(#[from] Box<tungstenite::Error>),
    /// The server does not like the request.
    #[error("error in the policy server: {0}")]
    Server(String),
    /// The server closed the connection.
    #[error("the policy server closed the connection")]
    Closed,
    /// The reply cannot be read.
    #[error("the reply cannot be read: {0}")]
    Reply(#[from] DecodeError),
    /// The reply is not what it should be.
    #[error("the reply has no `actions`")]
    NoActions,
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:8000`.
    ///
    /// # Errors
    /// If nobody is there, or the key is wrong.
    pub async fn connect(address: &str, key: Option<&str>) -> Result<Client, ClientError> {
        Client::connect_with_buffer(address, key, None).await
    }

    /// Connects with a receive buffer of so many bytes instead of the system's, as tests of slow clients need it.
    ///
    /// # Errors
    /// If nobody is there, or the key is wrong.
    pub async fn connect_with_buffer(
        address: &str,
        key: Option<&str>,
        buffer: Option<u32>,
    ) -> Result<Client, ClientError> {
        let mut request = format!("ws://{address}/").into_client_request().map_err(Box::new)?;
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Api-Key {key}"));
            let value =
                value.map_err(|error| Box::new(tungstenite::Error::from(tungstenite::http::Error::from(error))))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let stream = connected(address, buffer).await.map_err(|error| Box::new(error.into()))?;
        stream.set_nodelay(true).map_err(|error| Box::new(error.into()))?;
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let connected = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = connected.map_err(Box::new)?;
        let mut client = Client { socket, metadata: BTreeMap::new() };
        client.metadata = client.receive().await?;
        Ok(client)
    }

    /// What the server said when the client connected.
    pub fn metadata(&self) -> &BTreeMap<Key, Value> {
        &self.metadata
    }

    /// A number of the metadata, such as `action_horizon`.
    pub fn number(&self, name: &str) -> Option<usize> {
        match self.metadata.get(&Key::Text(name.to_owned()))? {
            Value::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Sends an observation and waits for the actions.
    ///
    /// # Errors
    /// If the server refuses the request or is gone; the connection is of no use then.
    pub async fn infer(&mut self, observation: &[(&str, Input<'_>)]) -> Result<Answer, ClientError> {
        self.send(observation).await?;
        let all = self.receive().await?;
        let Some(Value::Array(array)) = all.get(&Key::Text("actions".to_owned())) else {
            return Err(ClientError::NoActions);
        };
        let &[_, width] = array.shape() else { return Err(ClientError::NoActions) };
        let numbers: Vec<f32> = array.numbers().into_iter().map(|number| number as f32).collect();
        Ok(Answer { actions: numbers.chunks(width.max(1)).map(<[f32]>::to_vec).collect(), all })
    }

    /// Sends an observation and does not wait.
    ///
    /// # Errors
    /// If the server is gone.
    pub async fn send(&mut self, observation: &[(&str, Input<'_>)]) -> Result<(), ClientError> {
        Ok(self.socket.send(Message::Binary(request(observation))).await.map_err(Box::new)?)
    }

    async fn receive(&mut self) -> Result<BTreeMap<Key, Value>, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Binary(message))) => match decode(&message, &Limits::default())? {
                    Value::Map(map) => return Ok(map),
                    _ => return Err(ClientError::NoActions),
                },
                Some(Ok(Message::Text(text))) => return Err(ClientError::Server(text.to_string())),
                Some(Ok(Message::Close(_))) | None => return Err(ClientError::Closed),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Box::new(error).into()),
            }
        }
    }
}

async fn connected(address: &str, buffer: Option<u32>) -> io::Result<TcpStream> {
    let Some(buffer) = buffer else { return TcpStream::connect(address).await };
    let mut last = None;
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_recv_buffer_size(buffer)?;
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

/// The message of an observation.
pub fn request(observation: &[(&str, Input<'_>)]) -> Bytes {
    let mut out = Vec::new();
    let _ = rmp::encode::write_map_len(&mut out, observation.len() as u32);
    for (key, value) in observation {
        write_text(&mut out, key);
        match value {
            Input::Text(text) => write_text(&mut out, text),
            Input::Numbers(values) => write_array(&mut out, &[values.len()], values),
            Input::Image(height, width, pixels) => write_image(&mut out, *height, *width, pixels),
            Input::Flag(flag) => {
                let _ = rmp::encode::write_bool(&mut out, *flag);
            }
        }
    }
    out.into()
}

fn write_image(out: &mut Vec<u8>, height: usize, width: usize, pixels: &[u8]) {
    let key = |out: &mut Vec<u8>, name: &str| {
        let _ = rmp::encode::write_bin(out, name.as_bytes());
    };
    let _ = rmp::encode::write_map_len(out, 4);
    key(out, "__ndarray__");
    let _ = rmp::encode::write_bool(out, true);
    key(out, "data");
    let _ = rmp::encode::write_bin(out, pixels);
    key(out, "dtype");
    write_text(out, "|u1");
    key(out, "shape");
    let _ = rmp::encode::write_array_len(out, 3);
    for side in [height, width, 3] {
        let _ = rmp::encode::write_uint(out, side as u64);
    }
}
