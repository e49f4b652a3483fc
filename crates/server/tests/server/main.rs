//! The server as its clients see it: over sockets, with a policy that needs no model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up fails loudly"
)]

mod bad_input;
mod clients;
// The browser of the report's tests.
#[path = "../../../report/tests/browser/devtools.rs"]
#[expect(dead_code, reason = "files are opened there, addresses here")]
mod devtools;
mod openpi;
mod page;
mod policy;
mod protocol;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use server::message::{Key, Limits, Value, decode, write_array, write_text};
use server::{Config, Notice, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::policy::{Puppet, Strings};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server in this process.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
    strings: Arc<Strings>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Running {
    async fn start(config: Config) -> Running {
        let config = Config { port: 0, ..config };
        let (strings, notices) = (Arc::new(Strings::default()), Arc::new(Mutex::new(Vec::new())));
        let heard = notices.clone();
        let observer = move |notice| heard.lock().unwrap().push(notice);
        let server = Server::bind(Box::new(Puppet::new(strings.clone())), config, observer).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let done = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Running { address, stop, done, strings, notices }
    }

    /// Waits until something is so.
    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{what}; the policy was asked {:?}", self.strings.asked());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the policy has been asked to do something.
    async fn until_asked(&self, prompt: &str) {
        self.until(&format!("nobody asks `{prompt}`"), || self.strings.asked().iter().any(|asked| asked == prompt))
            .await;
    }

    /// Waits until so many clients have left, and says why they did, in their order.
    async fn until_left(&self, clients: usize) -> Vec<String> {
        let left = || -> Vec<String> {
            let why = |notice: &Notice| match notice {
                Notice::Left { why, .. } => Some(why.clone()),
                _ => None,
            };
            self.notices.lock().unwrap().iter().filter_map(why).collect()
        };
        self.until("the client is still there", || left().len() >= clients).await;
        left()
    }

    async fn stop(self) {
        self.strings.release();
        let _ = self.stop.send(());
        timeout(PATIENCE, self.done).await.unwrap().unwrap();
    }

    /// The response to a request without a body, head and all.
    async fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap().unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A client.
struct Robot {
    socket: WebSocketStream<TcpStream>,
    metadata: BTreeMap<Key, Value>,
}

/// What a client hears.
#[derive(Debug)]
enum Heard {
    Reply(BTreeMap<Key, Value>),
    Error(String),
    Closed(Option<CloseFrame>),
}

impl Robot {
    async fn connect(server: &Running) -> Robot {
        Robot::connect_with(server, &[]).await.unwrap()
    }

    async fn connect_with(server: &Running, headers: &[(&'static str, &str)]) -> Result<Robot, String> {
        Robot::connect_over(server, TcpStream::connect(server.address).await.unwrap(), headers).await
    }

    /// A client whose receive buffer is as small as the system allows.
    async fn connect_narrowly(server: &Running) -> Robot {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1 << 12).unwrap();
        Robot::connect_over(server, socket.connect(server.address).await.unwrap(), &[]).await.unwrap()
    }

    async fn connect_over(
        server: &Running,
        stream: TcpStream,
        headers: &[(&'static str, &str)],
    ) -> Result<Robot, String> {
        let mut request = format!("ws://{}", server.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let connected = timeout(PATIENCE, tokio_tungstenite::client_async(request, stream)).await.unwrap();
        let (socket, _) = connected.map_err(|error| error.to_string())?;
        let mut robot = Robot { socket, metadata: BTreeMap::new() };
        match robot.hear().await {
            Heard::Reply(metadata) => robot.metadata = metadata,
            other => panic!("no metadata: {other:?}"),
        }
        Ok(robot)
    }

    async fn ask(&mut self, parts: &[(&str, Vec<u8>)]) -> Heard {
        self.say(Message::Binary(map(parts))).await;
        self.hear().await
    }

    /// Asks, and expects a reply.
    async fn act(&mut self, prompt: &str) -> BTreeMap<Key, Value> {
        match self.ask(&observation(prompt)).await {
            Heard::Reply(reply) => reply,
            other => panic!("{prompt}: {other:?}"),
        }
    }

    async fn say(&mut self, message: Message) {
        timeout(PATIENCE, self.socket.send(message)).await.unwrap().unwrap();
    }

    async fn hear(&mut self) -> Heard {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Binary(message))) => match decode(&message, &Limits::default()) {
                    Ok(Value::Map(map)) => return Heard::Reply(map),
                    other => panic!("{other:?}"),
                },
                Some(Ok(Message::Text(text))) => return Heard::Error(text.to_string()),
                Some(Ok(Message::Close(frame))) => return Heard::Closed(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed(None),
            }
        }
    }

    /// Writes bytes that need not be a frame.
    async fn write(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.socket.get_mut().write_all(bytes)).await.unwrap().unwrap();
    }

    /// The message of the error that ends the connection with code 1011.
    async fn error(&mut self) -> String {
        let (message, code) = self.error_and_code().await;
        assert_eq!(code, 1011, "{message}");
        message
    }

    async fn error_and_code(&mut self) -> (String, u16) {
        let message = match self.hear().await {
            Heard::Error(message) => message,
            other => panic!("no error: {other:?}"),
        };
        match self.hear().await {
            Heard::Closed(Some(frame)) => (message, frame.code.into()),
            other => panic!("{message}: {other:?}"),
        }
    }
}

fn text_of<'a>(reply: &'a BTreeMap<Key, Value>, key: &str) -> &'a Value {
    reply.get(&Key::Text(key.to_owned())).unwrap_or_else(|| panic!("no `{key}` in {reply:?}"))
}

/// The request of LIBERO's clients.
fn observation(prompt: &str) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("observation/image", image(4, 6)),
        ("observation/wrist_image", image(8, 8)),
        ("observation/state", state(&[0.5; 8])),
        ("prompt", text(prompt)),
    ]
}

fn map(parts: &[(&str, Vec<u8>)]) -> Bytes {
    let mut out = vec![0x80 | parts.len() as u8];
    for (key, value) in parts {
        write_text(&mut out, key);
        out.extend(value);
    }
    out.into()
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_text(&mut out, text);
    out
}

fn state(values: &[f32]) -> Vec<u8> {
    let mut out = Vec::new();
    write_array(&mut out, &[values.len()], values);
    out
}

fn image(height: u8, width: u8) -> Vec<u8> {
    let pixels = vec![100; usize::from(height) * usize::from(width) * 3];
    let mut out = vec![0x84, 0xc4, 11];
    out.extend(b"__ndarray__\xc3\xc4\x04data\xc5");
    out.extend((pixels.len() as u16).to_be_bytes());
    out.extend(pixels);
    out.extend(b"\xc4\x05dtype\xa3|u1\xc4\x05shape\x93");
    out.extend([height, width, 3]);
    out
}
